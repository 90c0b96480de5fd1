"""Draws random mutants. Each mutant changes one place of the code by a cosmic-ray operator.

``cosmic-ray.toml`` lists the operators that this module does not use.
"""

from __future__ import annotations

import ast
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

# Modules of sql_ext to mutate: their unit tests need no driver.
_DECIDING = (
    "driver/roots driver/settings frontend/pruning statements/comments statements/table_functions "
    "statements/parser statements/syntax_error"
).split()

_FILTERS = tomllib.loads((Path(__file__).parent / "cosmic-ray.toml").read_text())["cosmic-ray"]
_EXCLUDED = re.compile("|".join(_FILTERS["filters"]["operators-filter"]["exclude-operators"]))
_GUARDS = ("eq", "frozen", "kw_only", "repr", "slots", "strict")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place in one module.

    Attributes:
        module: the module's path, relative to the project's root.
        line: number of the changed line. The first line of a module has number 1.
        before, after: the line's old and new text, without spaces at the ends.
        source: whole source text of the module after the change.
    """

    module: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before}  ->  {self.after}"


def draw(root: Path, seed: str, only: str = "") -> Iterator[Mutant]:
    """Yields a seed's mutants, at different places of the modules whose path contains ``only``."""
    rng = random.Random(seed)
    places = [(path, *place) for path in _modules(root, only) for place in _places(path)]
    rng.shuffle(places)
    for path, line, operators in places:
        name, occurrence = rng.choice(operators)
        source = path.read_text()
        changed = _mutated(source, name, occurrence)
        if changed is None or not _is_python(changed) or _same_program(source, changed):
            continue
        before, after = source.splitlines()[line - 1], _line(source, changed, line)
        yield Mutant(str(path.relative_to(root)), line, before.strip(), after, changed)


def _modules(root: Path, only: str) -> list[Path]:
    paths = [*(root / "sieve").rglob("*.py"), *(root / "sql_ext" / f"{n}.py" for n in _DECIDING)]
    return sorted(path for path in paths if only in str(path.relative_to(root)) and path.exists())


def _places(path: Path) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Yields the line of each place that operators can change, and the place's operators."""
    nodes = list(ast_nodes(get_ast(path.read_text())))
    places: dict[tuple[object, object], list[tuple[str, int]]] = defaultdict(list)
    for name in sorted(name for name in operator_names() if not _EXCLUDED.fullmatch(name)):
        kind = get_operator(name)
        if kind.arguments():
            continue
        operator = kind()
        positions = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(positions):
            places[start, end].append((name, occurrence))
    for (start, _), operators in places.items():
        yield start[0], operators  # type: ignore[index]


def _mutated(source: str, operator: str, occurrence: int) -> str | None:
    try:
        return mutate_code(source, get_operator(operator)(), occurrence)
    except AttributeError:
        return None  # ExceptionReplacer supports only plain names, and fails at ``module.Error``


class _Bare(ast.NodeTransformer):
    """Removes code that never runs, and checks that only detect programming errors."""

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        return None if node.arg in _GUARDS else self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        """Treats keyword-only and positional-only arguments as plain arguments."""
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults += [default for default in node.kw_defaults if default is not None]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Removes needless decorators: the base class makes subclasses without fields records."""
        if node.bases and not any(isinstance(part, ast.AnnAssign) for part in node.body):
            node.decorator_list = []
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _is_python(source: str) -> bool:
    """Whether the source is valid. cosmic-ray can write invalid Python, such as ``- not``."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _same_program(one: str, other: str) -> bool:
    return ast.dump(_Bare().visit(ast.parse(one))) == ast.dump(_Bare().visit(ast.parse(other)))


def _line(source: str, changed: str, line: int) -> str:
    """The text of the first line that differs. For equal sources, the text of line ``line``."""
    lines = zip(source.splitlines(), changed.splitlines(), strict=False)
    differing = (new for old, new in lines if old != new)
    return next(differing, changed.splitlines()[line - 1]).strip()
