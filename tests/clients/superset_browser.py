"""Uses a running Superset as users do: in a browser and over the REST API.

The Python of Superset's environment runs this script, because that environment has Selenium. The
script prints its findings as JSON.

    superset_browser.py http://localhost:8088 spark+sieve://localhost:10000/db orders.sql pictures
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

USER, PASSWORD = "admin", "admin"  # user and password on the recipe's page
DATABASE = "Spark"
WEEK = "2026-01-05 : 2026-01-12"
WAIT_S = 60


class Api:
    """A client of Superset's REST API, logged in as a user."""

    def __init__(self, base: str) -> None:
        self._base, self._session = f"{base}/api/v1", requests.Session()
        body = {"username": USER, "password": PASSWORD, "provider": "db"}
        self._session.headers["Referer"] = base
        token = self.post("security/login", body)["access_token"]
        self._session.headers["Authorization"] = f"Bearer {token}"
        self._session.headers["X-CSRFToken"] = self.get("security/csrf_token/")["result"]

    def get(self, path: str) -> Any:
        """The response to a GET request."""
        return self._answer(self._session.get(f"{self._base}/{path}", timeout=WAIT_S))

    def post(self, path: str, body: Any) -> Any:
        """The response to a POST request."""
        return self._answer(self._session.post(f"{self._base}/{path}", json=body, timeout=WAIT_S))

    def _answer(self, answer: requests.Response) -> Any:
        if not answer.ok:
            raise RuntimeError(f"{answer.status_code} {answer.text[:1000]}")
        return answer.json()

    def query(self, database: int, schema: str, sql: str) -> Any:
        """Runs a query in SQL Lab; returns its rows, or the text of its error."""
        body = {"database_id": database, "schema": schema, "sql": sql, "runAsync": False}
        try:
            return self.post("sqllab/execute/", body | {"client_id": f"{time.time_ns() % 10**10}"})[
                "data"
            ]
        except RuntimeError as error:
            return str(error)


class Browser:
    """A browser in which a user is logged in."""

    def __init__(self, base: str, pictures: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in ("headless=new", "no-sandbox", "window-size=1280,860", "hide-scrollbars"):
            options.add_argument(f"--{option}")
        service = webdriver.ChromeService("/usr/bin/chromedriver")
        self._driver = webdriver.Chrome(options=options, service=service)
        self._base, self._pictures = base, pictures
        self._driver.get(f"{base}/login/")
        self.find("input#username").send_keys(USER)
        self.find("input#password").send_keys(PASSWORD)
        self.find("button[type=submit]").click()
        self.wait(lambda: "/login" not in self._driver.current_url)

    def wait(self, done: Any) -> Any:
        """Calls a function until its result is true; returns the true result."""
        ignored = (Exception,)  # elements appear and disappear while the browser draws a page
        waiting = WebDriverWait(self._driver, WAIT_S, 0.2, ignored_exceptions=ignored)
        return waiting.until(lambda _: done())

    def open(self, path: str) -> None:
        """Opens a page."""
        self._driver.get(self._base + path)

    def find(self, selector: str, text: str = "") -> WebElement:
        """Waits until a visible element's text contains `text`; returns the first such element."""

        def found() -> WebElement | None:
            elements = self._driver.find_elements(By.CSS_SELECTOR, selector)
            seen = (one for one in elements if text in one.text and one.is_displayed())
            return next(seen, None)

        element: WebElement = self.wait(found)
        return element

    def press(self, name: str, within: str = "") -> None:
        """Clicks the button of this name as soon as the button is enabled."""

        def clicked() -> bool:
            for button in self._driver.find_elements(By.CSS_SELECTOR, f"{within} button"):
                if button.text.strip() == name and button.is_enabled():
                    button.click()
                    return True
            return False

        self.wait(clicked)

    def picture(self, name: str) -> None:
        """Saves a screenshot of the browser's page.

        First moves the pointer, so that the page shows no tooltips.
        """
        webdriver.ActionChains(self._driver).move_by_offset(0, 0).perform()
        time.sleep(1)  # wait until hints and bars have faded
        self._driver.save_screenshot(str(self._pictures / f"{name}.png"))

    def close(self) -> None:
        """Ends the browser."""
        self._driver.quit()


def main(base: str, uri: str, statements: str, pictures: str) -> dict[str, Any]:
    """Returns the statements' rows, the texts in SQL Lab, and the chart's query and scan."""
    api, schema = Api(base), uri.rpartition("/")[2]
    database = api.post("database/", {"database_name": DATABASE, "sqlalchemy_uri": uri})["id"]
    sent: list[str] = json.loads(statements)
    found: dict[str, Any] = {"rows": [api.query(database, schema, sql) for sql in sent]}
    table = f"database/{database}/table_metadata"
    place = f"?name=orders&schema={schema}"
    found["indexes"] = [index["name"] for index in api.get(f"{table}/{place}")["indexes"]]
    found["extra"] = api.get(f"{table}/extra/{place}")
    found["tables"] = [
        (one["value"], one["type"])
        for one in api.get(f"database/{database}/tables/?q=(schema_name:{schema})")["result"]
    ]
    dataset = api.post(
        "dataset/", {"database": database, "schema": schema, "table_name": "orders"}
    )["id"]
    browser = Browser(base, Path(pictures))
    try:
        found["sql_lab"] = in_sql_lab(browser, database, schema, sent[0])
        make_chart(browser, api, dataset)
    except Exception:
        browser.picture("failed")
        raise
    finally:
        browser.close()
    (chart,) = api.get("chart/")["result"]
    found["chart"] = chart["slice_name"]
    (answer,) = api.get(f"chart/{chart['id']}/data/?type=query")["result"]
    found["chart_rows"] = api.get(f"chart/{chart['id']}/data/")["result"][0]["data"]
    explain = answer["query"].replace("\\", "\\\\").replace('"', '\\"')
    found["chart_scan"] = api.query(database, schema, f'SELECT * FROM sieve_explain("{explain}")')
    return found


def in_sql_lab(browser: Browser, database: int, schema: str, sql: str) -> list[str]:
    """Runs a query in SQL Lab's editor; returns the texts of the cells that the page shows."""
    query = f"new=true&dbid={database}&schema={schema}&title=Sieve&sql={quote(sql)}"
    browser.open(f"/sqllab/?{query}")
    browser.press("Run")
    grid = browser.find(".ag-root", "files_read")
    browser.wait(lambda: "orders" in grid.text)
    browser.picture("superset-sql-lab")
    return list(grid.text.split("\n"))


def make_chart(browser: Browser, api: Api, dataset: int) -> None:
    """Makes a bar chart of one week, takes a picture of the chart, and saves the chart."""
    form = {
        "datasource": f"{dataset}__table",
        "viz_type": "echarts_timeseries_bar",
        "x_axis": "day",
        "time_grain_sqla": "P1D",
        "metrics": [
            {
                "expressionType": "SIMPLE",
                "column": {"column_name": "amount"},
                "aggregate": "SUM",
                "label": "amount",
            }
        ],
        "groupby": [],
        "adhoc_filters": [
            {
                "clause": "WHERE",
                "subject": "day",
                "operator": "TEMPORAL_RANGE",
                "comparator": WEEK,
                "expressionType": "SIMPLE",
            }
        ],
        "row_limit": 1000,
    }
    body = {"datasource_id": dataset, "datasource_type": "table", "form_data": json.dumps(form)}
    key = api.post("explore/form_data", body)["key"]
    browser.open(f"/explore/?form_data_key={key}&datasource_id={dataset}&datasource_type=table")
    browser.press("Update chart")
    browser.find("*", "7 rows")
    browser.find(".slice_container canvas")
    browser.press("Save")
    browser.find("input[data-test=new-chart-name]").send_keys("A week")
    browser.press("Save", within=".ant-modal-footer")
    browser.wait(lambda: api.get("chart/")["count"] == 1)
    browser.find("*", "Chart [A week] has been saved")
    browser.find(".slice_container canvas")
    browser.picture("superset-chart")


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))  # noqa: T201 - the test reads it
