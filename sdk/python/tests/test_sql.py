"""SQL on the application's database, as the kernel asks for it: the same cases for every driver."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeBinary
from databases import EXECUTORS

from tgp import TGP, DbApiExecutor, SqlExecutor, SqlResult, StatementExecutor, TGPError
from tgp.sql._serve import SqlService
from tgp.sql._values import distinct, read_parameter, sql_error, write_value

_numbers = itertools.count(1)


class Database:
    """An executor behind the requests of the protocol."""

    def __init__(self, executor: SqlExecutor) -> None:
        self.executor = executor
        self.service = SqlService(executor)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.send(method, next(_numbers), **params)
        return answer()

    def send(self, method: str, request_id: int, **params: Any) -> Callable[[], dict[str, Any]]:
        done = threading.Event()
        answers: list[tuple[Any, TGPError | None]] = []

        def reply(result: Any, error: TGPError | None) -> None:
            answers.append((result, error))
            done.set()

        self.service.handle(request_id, f"host/sql/{method}", params, reply)

        def wait() -> dict[str, Any]:
            assert done.wait(30)
            result, error = answers[0]
            if error is not None:
                raise error
            assert isinstance(result, dict)
            return result

        return wait

    def begin(self, *, read_only: bool = False) -> Transaction:
        number = next(_numbers)
        self.ask("begin", transaction=number, readOnly=read_only)
        return Transaction(self, number)

    def run(self, sql: str, *parameters: Any) -> dict[str, Any]:
        transaction = self.begin()
        result = transaction.run(sql, *parameters)
        transaction.end(commit=True)
        return result

    def rows(self, sql: str) -> list[dict[str, Any]]:
        transaction = self.begin(read_only=True)
        rows: list[dict[str, Any]] = transaction.run(sql)["rows"]
        transaction.end(commit=False)
        return rows


class Transaction:
    def __init__(self, database: Database, number: int) -> None:
        self.database = database
        self.number = number

    def run(self, sql: str, *parameters: Any, max_rows: int = 100) -> dict[str, Any]:
        if self.database.executor.placeholders == "format":
            # As the kernel writes them.
            parts = re.split(r"('[^']*')", sql.replace("%", "%%"))
            sql = "".join(part if part.startswith("'") else part.replace("?", "%s") for part in parts)
        return self.database.ask(
            "execute", transaction=self.number, sql=sql, parameters=list(parameters), maxRows=max_rows
        )

    def point(self, action: str, name: str) -> None:
        self.database.ask("savepoint", transaction=self.number, action=action, name=name)

    def end(self, *, commit: bool) -> None:
        self.database.ask("end", transaction=self.number, commit=commit)


@pytest.fixture(params=EXECUTORS, ids=lambda make: str(make.__name__))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    make: Callable[[Path], SqlExecutor] = request.param
    database = Database(make(tmp_path))
    database.run("DROP TABLE IF EXISTS tgp_users")
    database.run("CREATE TABLE tgp_users (id INTEGER PRIMARY KEY, name VARCHAR(100) NOT NULL)")
    yield database
    database.service.close()


def names(database: Database) -> list[str]:
    return [row["name"] for row in database.rows("SELECT name FROM tgp_users ORDER BY id")]


def test_a_transaction_is_committed(database: Database) -> None:
    result = database.run("INSERT INTO tgp_users VALUES (?, ?), (2, '100% ?')", 1, "Ann")
    assert result == {"columns": [], "rows": [], "changed": 2, "truncated": False}
    assert names(database) == ["Ann", "100% ?"]
    assert database.run("UPDATE tgp_users SET name = ? WHERE id = 2", "Bob")["changed"] == 1
    result = database.run("SELECT id AS a, id AS a FROM tgp_users ORDER BY id")
    assert result["columns"] == ["a", "a_2"]
    assert result["rows"] == [{"a": 1, "a_2": 1}, {"a": 2, "a_2": 2}]
    assert result["changed"] == 0


def test_a_transaction_is_rolled_back(database: Database) -> None:
    transaction = database.begin()
    transaction.run("INSERT INTO tgp_users VALUES (1, 'Ann')")
    assert transaction.run("SELECT count(*) AS n FROM tgp_users")["rows"] == [{"n": 1}]
    transaction.end(commit=False)
    assert names(database) == []


def test_a_closed_connection_rolls_back(database: Database) -> None:
    transaction = database.begin()
    transaction.run("INSERT INTO tgp_users VALUES (1, 'Ann')")
    database.service.close()
    deadline = time.monotonic() + 10
    while (after := Database(database.executor)) and names(after):
        assert time.monotonic() < deadline
    assert after.run("INSERT INTO tgp_users VALUES (1, 'Bob')")["changed"] == 1


def test_savepoints(database: Database) -> None:
    transaction = database.begin()
    transaction.run("INSERT INTO tgp_users VALUES (1, 'Ann')")
    transaction.point("set", "p1")
    transaction.run("INSERT INTO tgp_users VALUES (2, 'Bob')")
    transaction.point("rollback", "p1")
    transaction.point("release", "p1")
    transaction.point("set", "p2")
    with pytest.raises(TGPError) as raised:
        transaction.run("INSERT INTO tgp_users VALUES (1, 'again')")
    assert raised.value.code == "ESQL"
    transaction.point("rollback", "p2")
    transaction.run("INSERT INTO tgp_users VALUES (3, 'Eve')")
    transaction.end(commit=True)
    assert names(database) == ["Ann", "Eve"]


def test_a_savepoint_is_an_identifier(database: Database) -> None:
    transaction = database.begin()
    with pytest.raises(TGPError, match="invalid name of a savepoint"):
        transaction.point("set", "a; DROP TABLE tgp_users")
    transaction.end(commit=False)


def test_the_database_keeps_a_read_only_transaction_from_writing(database: Database) -> None:
    transaction = database.begin(read_only=True)
    with pytest.raises(TGPError) as raised:
        transaction.run("INSERT INTO tgp_users VALUES (1, 'Ann')")
    assert raised.value.code == "ESQL"
    transaction.end(commit=False)
    assert database.run("INSERT INTO tgp_users VALUES (1, 'Ann')")["changed"] == 1


def test_rows_beyond_the_maximum_are_cut(database: Database) -> None:
    database.run("INSERT INTO tgp_users VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    transaction = database.begin(read_only=True)
    result = transaction.run("SELECT id FROM tgp_users ORDER BY id", max_rows=2)
    assert result["rows"] == [{"id": 1}, {"id": 2}]
    assert result["truncated"] is True
    assert transaction.run("SELECT id FROM tgp_users", max_rows=3)["truncated"] is False
    transaction.end(commit=False)


def test_a_running_statement_is_stopped(database: Database) -> None:
    if database.executor.dialect == "mysql":
        pytest.skip("drivers of MySQL cannot stop a statement")
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c"
    transaction = database.begin(read_only=True)
    request_id = next(_numbers)
    answer = database.send("execute", request_id, transaction=transaction.number, sql=endless, parameters=[], maxRows=1)
    time.sleep(0.3)
    database.service.cancel(request_id)
    with pytest.raises(TGPError, match="ESQL"):
        answer()
    transaction.end(commit=False)


def test_transactions_of_several_runs(database: Database) -> None:
    database.run("INSERT INTO tgp_users VALUES (1, 'Ann')")
    readers = [database.begin(read_only=True) for _ in range(3)]
    for reader in readers:
        assert reader.run("SELECT count(*) AS n FROM tgp_users")["rows"] == [{"n": 1}]
    for reader in readers:
        reader.end(commit=False)
    with pytest.raises(TGPError, match="is not open"):
        readers[0].run("SELECT 1")


def test_a_returning_statement_has_rows_and_changes(tmp_path: Path) -> None:
    database = Database(EXECUTORS[0](tmp_path))
    database.run("CREATE TABLE t (a INTEGER)")
    result = database.run("INSERT INTO t VALUES (1), (2) RETURNING a")
    assert (result["rows"], result["changed"]) == ([{"a": 1}, {"a": 2}], 2)


def test_bytes_and_large_integers(tmp_path: Path) -> None:
    database = Database(EXECUTORS[0](tmp_path))
    row = database.run("SELECT ? AS a, ? AS b, ? AS c", {"$base64": "aGk="}, {"$bigint": "9007199254740993"}, [1, 2])
    assert row["rows"] == [{"a": "aGk=", "b": "9007199254740993", "c": "[1,2]"}]


def test_an_executor_without_transactions(fake: MakeBinary) -> None:
    statements: list[tuple[str, list[Any]]] = []

    def run(sql: str, parameters: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        statements.append((sql, list(parameters)))
        return [{"a": 1}, {"b": 2}]

    executor = StatementExecutor(run, "postgresql")
    assert executor.to_wire() == {
        "dialect": "postgresql",
        "transactions": False,
        "readOnly": False,
        "savepoints": False,
    }
    with TGP(binary=fake("serve"), sql=executor) as kernel:
        params = {"transaction": 0, "sql": "SELECT $1", "parameters": [5], "maxRows": 10}
        answer = kernel.call("ask", {"method": "host/sql/execute", "params": params})
    assert answer["result"]["rows"] == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    assert statements == [("SELECT $1", [5])]


def test_a_database_that_cannot_be_reached() -> None:
    def connect() -> Any:
        raise sqlite3.OperationalError("unable to open database file")

    database = Database(DbApiExecutor(connect, "sqlite"))
    with pytest.raises(TGPError, match="ESQL: unable to open"):
        database.begin()
    with pytest.raises(TGPError, match="is not open"):
        Transaction(database, 1).end(commit=False)


def test_a_commit_without_an_answer_has_an_unknown_outcome() -> None:
    class Broken:
        total_changes = 0
        isolation_level = None
        in_transaction = False

        def cursor(self) -> Any:
            return self

        def execute(self, sql: str) -> None:
            self.in_transaction = True
            if sql in ("COMMIT", "ROLLBACK"):
                raise sqlite3.OperationalError("the connection is lost")

        def close(self) -> None:
            pass

    database = Database(DbApiExecutor(Broken, "sqlite"))
    transaction = database.begin()
    with pytest.raises(TGPError) as raised:
        transaction.end(commit=True)
    assert raised.value.details["outcome"] == "unknown"


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (-(2**63), "-9223372036854775808"),
        (decimal.Decimal("1E+3"), "1000"),
        (decimal.Decimal("0.10"), "0.10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (b"hi", "aGk="),
        (memoryview(b"hi"), "aGk="),
        (dt.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2026-01-02T01:00:00Z"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.timedelta(hours=-30, microseconds=-5), "-30:00:00.000005"),
        ({"a": [decimal.Decimal(1)]}, {"a": ["1"]}),
        (True, True),
        (None, None),
    ],
)
def test_values_of_results(value: Any, wire: Any) -> None:
    assert write_value(value) == wire


def test_values_of_parameters() -> None:
    assert read_parameter({"$base64": "aGk="}, "sqlite") == b"hi"
    assert read_parameter({"$date": "2026-11-17T02:00:00.000Z"}, "sqlite") == "2026-11-17T02:00:00.000Z"
    moment = dt.datetime(2026, 11, 17, 2, tzinfo=dt.timezone.utc)
    assert read_parameter({"$date": "2026-11-17T02:00:00.000Z"}, "postgresql") == moment
    assert read_parameter({"$date": "2026-11-17T02:00:00.000Z"}, "mysql") == moment.replace(tzinfo=None)
    assert read_parameter([1, 2], "postgresql") == [1, 2]
    assert read_parameter([{"a": 1}], "postgresql") == '[{"a":1}]'
    assert read_parameter([1, 2], "mysql") == "[1,2]"
    assert read_parameter({"a": 1}, "postgresql") == '{"a":1}'


def test_drivers_declare_their_placeholders() -> None:
    assert "placeholders" not in DbApiExecutor(lambda: None, "sqlite").to_wire()
    assert DbApiExecutor(lambda: None, "postgresql").to_wire().get("placeholders") == "format"
    assert DbApiExecutor(lambda: None, "mysql").to_wire().get("placeholders") == "format"


def test_columns_have_distinct_names() -> None:
    assert distinct(["a", "a", "a_2", "b"]) == ["a", "a_2", "a_2_2", "b"]


def test_errors_have_the_code_of_the_database() -> None:
    class Duplicate(Exception):
        pass

    error = sql_error(Duplicate(1062, "Duplicate entry"))
    assert (error.code, error.message, error.details) == ("ESQL", "Duplicate entry", {"sqlCode": "1062"})
    assert SqlResult().changed == 0
