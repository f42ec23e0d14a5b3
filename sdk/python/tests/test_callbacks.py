"""What becomes of functions of the application that raise, or return something else than they should."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest
from conftest import MakeBinary

from test_host import QUESTION, ask
from test_hostile import SOURCE
from tgp import TGP, DbApiExecutor, SqlExecutor, SqlResult, StatementExecutor, TGPError


def test_bug_the_traceback_of_a_host_tool_was_lost(fake: MakeBinary, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise LookupError("no such mail box")

    def refused() -> None:
        raise TGPError("EPERMISSION", "not yours")

    def approve(_request: object) -> bool:
        raise OSError("no terminal")

    logger = logging.getLogger("shop.host")
    tools: dict[str, dict[str, Any]] = {"mail": {"broken": broken, "refused": refused}}
    with TGP(binary=fake("serve"), host_tools=tools, approve=approve, logger=logger) as kernel:
        for name in ("broken", "refused"):
            ask(kernel, "host/call", {"module": "mail", "name": name, "arguments": {}})
        ask(kernel, "host/approve", QUESTION)
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message for record in records] == [
        "`host:mail/broken` of the application raised LookupError",
        "`approve` of the application raised OSError",
    ]
    assert records[0].name == "shop.host"
    assert "in broken" in (records[0].exc_text or "")


def test_bug_without_a_logger_nothing_told_where_a_host_tool_raised(fake: MakeBinary) -> None:
    program = """
import sys
from tgp import TGP
def broken():
    raise LookupError("no such mail box")
with TGP(binary=sys.argv[1], host_tools={"mail": {"broken": broken}}) as kernel:
    kernel.call("ask", {"method": "host/call", "params": {"module": "mail", "name": "broken", "arguments": {}}})
"""
    run = subprocess.run(
        [sys.executable, "-c", program, fake("serve")],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr.count("LookupError: no such mail box") == 1
    assert "in broken" in run.stderr


def test_bug_a_wrong_executor_was_noticed_by_the_kernel() -> None:
    oracle: Any = "oracle"
    postgres: Any = "postgres"
    rows: Any = 5
    with pytest.raises(ValueError, match="unknown dialect `oracle`: expected one of sqlite"):
        StatementExecutor(lambda _sql, _parameters: [], oracle)
    with pytest.raises(TypeError, match="`function` is an int, expected a function"):
        StatementExecutor(rows, "sqlite")
    one: Any = lambda sql: [sql]  # noqa: E731
    with pytest.raises(TypeError, match=r"the SQL function `<lambda>` takes `\(sql\)`, expected `\(sql, parameters\)"):
        StatementExecutor(one, "sqlite")
    connection: Any = sqlite3.connect(":memory:")
    with pytest.raises(TypeError, match="`connect` is a Connection, expected a function that returns a connection"):
        DbApiExecutor(connection, "sqlite")
    connection.close()
    with pytest.raises(ValueError, match="unknown dialect `postgres`: did you mean `postgresql`"):
        DbApiExecutor(lambda: None, postgres)

    class Shop(SqlExecutor):
        def begin(self, read_only: bool) -> Any:
            return read_only

    with pytest.raises(ValueError, match="`dialect` of the SQL executor `Shop`: unknown dialect `None`"):
        TGP(sql=Shop())


async def later() -> None: ...


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: None, "the SQL function `query` returned None, expected a list of rows"),
        (later, "the SQL function `query` returned a coroutine, expected a list of rows"),
        (
            lambda: [(1,)],
            "the SQL function `query` returned a tuple as row 0, expected a dict with a value for each column",
        ),
        (
            lambda: SqlResult(["a", "b"], [[1]]),
            "`execute` of the SQL executor `StatementExecutor` returned 1 values as row 0, "
            "expected 2, one for each of `columns`",
        ),
        (
            lambda: SqlResult(["a"], [cast("Any", {"a": 1})]),
            "`execute` of the SQL executor `StatementExecutor` returned a dict as row 0, "
            "expected a sequence in the order of `columns`",
        ),
    ],
)
def test_bug_wrong_rows_were_an_error_of_python(fake: MakeBinary, answer: Callable[[], Any], message: str) -> None:
    def query(_sql: str, _parameters: object) -> Any:
        return answer()

    with TGP(binary=fake("serve"), sql=StatementExecutor(query, "sqlite")) as kernel:
        error = ask(
            kernel, "host/sql/execute", {"transaction": 0, "sql": "SELECT 1", "parameters": [], "maxRows": 9}
        )
    assert (error["data"]["code"], error["message"]) == ("ESQL", message)
    assert error["data"]["details"]["help"]


def test_bug_a_wrong_transaction_was_an_error_of_python(fake: MakeBinary) -> None:
    class Shop(SqlExecutor):
        dialect = "sqlite"

        def begin(self, read_only: bool) -> Any:
            return 5

    for executor, message in [
        (
            Shop(),
            "`begin` of the SQL executor `Shop` returned an int, "
            "expected a transaction with `execute`, `commit` and `rollback`",
        ),
        (
            DbApiExecutor(lambda: 5, "sqlite"),
            "`connect` of the SQL executor `DbApiExecutor` returned an int, expected a connection of the driver",
        ),
    ]:
        with TGP(binary=fake("serve"), sql=executor) as kernel:
            assert ask(kernel, "host/sql/begin", {"transaction": 1, "readOnly": True})["message"] == message
