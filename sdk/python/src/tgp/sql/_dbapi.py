"""Executors for drivers of Python's DB-API 2.0: sqlite3, psycopg, psycopg2, PyMySQL, mysqlclient and their relatives."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from .._json import is_object, kind_of
from ..errors import TGPError
from ._check import check_dialect
from ._executor import Dialect, SqlExecutor, SqlResult, SqlTransaction

_CHANGES = re.compile(r"\s*(insert|update|delete|replace|merge)\b", re.IGNORECASE)
_SAVEPOINT_DOES_NOT_EXIST = 1305
_UTC = "+00:00"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class DbApiExecutor(SqlExecutor):
    """Runs statements on connections of a DB-API driver.

    ``connect`` gives a connection for each transaction, in the thread that uses it; it is closed after the transaction, which
    returns it to a pool if it came from one.

    >>> import sqlite3
    >>> executor = DbApiExecutor(lambda: sqlite3.connect("shop.db"), "sqlite")
    """

    def __init__(self, connect: Callable[[], Any], dialect: Dialect) -> None:
        # A connection of `sqlite3` can be called, with a statement.
        if not callable(connect) or (hasattr(connect, "cursor") and not isinstance(connect, type)):
            raise TypeError(
                f"`connect` is {kind_of(connect)}, expected a function that returns a connection, "
                "such as `lambda: sqlite3.connect(path)`"
            )
        check_dialect(dialect)
        self.dialect = dialect
        self.placeholders = placeholders_of(dialect)
        self._connect = connect

    def begin(self, read_only: bool) -> SqlTransaction:
        connection = self._connect()
        if not callable(getattr(connection, "cursor", None)):
            raise TGPError(
                "ESQL",
                f"`connect` of the SQL executor `{type(self).__name__}` returned {kind_of(connection)}, "
                "expected a connection of the driver",
                {"help": "such as `lambda: sqlite3.connect(path)`"},
            )
        try:
            return begin_on(connection, connection, self.dialect, read_only)
        except BaseException:
            connection.close()
            raise


def placeholders_of(dialect: Dialect) -> Literal["native", "format"]:
    """Drivers of PostgreSQL and MySQL take ``%s``, those of SQLite ``?``."""
    return "native" if dialect == "sqlite" else "format"


def begin_on(connection: Any, owner: Any, dialect: Dialect, read_only: bool) -> SqlTransaction:
    """Begins a transaction on a driver's connection. ``owner`` is closed at the end: the connection, or its place in a pool."""
    if dialect == "sqlite":
        return _SqliteTransaction(connection, owner, read_only)
    if dialect == "postgresql":
        return _PostgresTransaction(connection, owner, read_only)
    return _MysqlTransaction(connection, owner, read_only)


class _DbApiTransaction(SqlTransaction):
    dialect: Dialect

    def __init__(self, connection: Any, owner: Any, read_only: bool) -> None:
        self._connection = connection
        self._owner = owner
        self._begin(read_only)

    def _begin(self, read_only: bool) -> None:
        raise NotImplementedError

    def _run(self, statement: str) -> None:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()

    def _cursor(self) -> Any:
        return self._connection.cursor()

    def _start(self, cursor: Any, sql: str, parameters: Sequence[Any]) -> None:
        # With an argument, even an empty one, a driver of the style `%s` reads `%%` as `%`.
        cursor.execute(sql, tuple(parameters))

    def execute(self, sql: str, parameters: Sequence[Any], max_rows: int) -> SqlResult:
        cursor = self._cursor()
        try:
            self._start(cursor, sql, parameters)
            if cursor.description is None:
                return SqlResult(changed=self._changed(cursor, sql))
            columns = [str(column[0]) for column in cursor.description]
            rows = [_sequence(row) for row in cursor.fetchmany(max_rows + 1)]
            truncated = len(rows) > max_rows
            return SqlResult(columns, rows[:max_rows], self._changed(cursor, sql), truncated)
        finally:
            cursor.close()

    def _changed(self, cursor: Any, sql: str) -> int:
        # With RETURNING a statement has rows and changes; the count of a SELECT is not a change. PostgreSQL reports which it was.
        status = getattr(cursor, "statusmessage", None)
        is_change = cursor.description is None or _CHANGES.match(sql)
        if isinstance(status, str):
            is_change = _CHANGES.match(status)
        return max(int(cursor.rowcount), 0) if is_change else 0

    def savepoint(self, name: str) -> None:
        self._run(f"SAVEPOINT {_identifier(name)}")

    def release(self, name: str) -> None:
        self._run(f"RELEASE SAVEPOINT {_identifier(name)}")

    def rollback_to(self, name: str) -> None:
        self._run(f"ROLLBACK TO SAVEPOINT {_identifier(name)}")

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._owner.close()


class _SqliteTransaction(_DbApiTransaction):
    dialect = "sqlite"

    def _begin(self, read_only: bool) -> None:
        connection = self._connection
        # The module's own handling begins late and not for every statement; from here on BEGIN and COMMIT are explicit.
        if sys.version_info >= (3, 12) and getattr(connection, "autocommit", None) is False:
            connection.autocommit = True
        connection.isolation_level = None
        if connection.in_transaction:
            connection.rollback()
        self._run(f"PRAGMA query_only = {'ON' if read_only else 'OFF'}")
        # A transaction that may write waits for its turn now: one that reads first could not write on what it has read.
        self._run("BEGIN" if read_only else "BEGIN IMMEDIATE")
        self._changes = connection.total_changes

    def _cursor(self) -> Any:
        cursor = self._connection.cursor()
        # An application may have chosen rows of another kind.
        cursor.row_factory = None
        return cursor

    def _start(self, cursor: Any, sql: str, parameters: Sequence[Any]) -> None:
        self._changes = self._connection.total_changes
        super()._start(cursor, sql, parameters)

    def _changed(self, cursor: Any, sql: str) -> int:
        if self._connection.total_changes == self._changes:
            return 0
        counter = self._cursor()
        try:
            return int(counter.execute("SELECT changes()").fetchone()[0])
        finally:
            counter.close()

    def commit(self) -> None:
        self._run("COMMIT")

    def rollback(self) -> None:
        # SQLite itself may have rolled back, after a full disk for instance.
        if self._connection.in_transaction:
            self._run("ROLLBACK")

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._run("PRAGMA query_only = OFF")
        self._owner.close()


class _PostgresTransaction(_DbApiTransaction):
    dialect = "postgresql"

    def _begin(self, read_only: bool) -> None:
        if getattr(self._connection, "autocommit", False) is True:
            self._connection.autocommit = False
        # The first statement begins the transaction. Without READ ONLY the defaults of the user's role stay.
        if read_only:
            self._run("SET TRANSACTION READ ONLY")

    def interrupt(self) -> None:
        with contextlib.suppress(Exception):
            self._connection.cancel()


class _MysqlTransaction(_DbApiTransaction):
    dialect = "mysql"

    def _begin(self, read_only: bool) -> None:
        zone = str(self.execute("SELECT @@session.time_zone", (), 1).rows[0][0])
        self._zone = None if zone == _UTC else zone
        if self._zone is not None:
            # Times of the protocol are in UTC.
            self._run(f"SET time_zone = '{_UTC}'")
        self._run("START TRANSACTION READ ONLY" if read_only else "START TRANSACTION")

    def release(self, name: str) -> None:
        try:
            super().release(name)
        except Exception as error:
            # `CREATE TABLE` and similar statements commit by themselves, which leaves no savepoint to release.
            if error.args[:1] != (_SAVEPOINT_DOES_NOT_EXIST,):
                raise

    def close(self) -> None:
        if self._zone is not None:
            # The connection may go back to a pool.
            with contextlib.suppress(Exception):
                zone = self._connection.cursor()
                zone.execute("SET time_zone = %s", (self._zone,))
                zone.close()
        super().close()


def _sequence(row: Any) -> Sequence[Any]:
    """A row as a sequence; an application may have chosen rows that are dictionaries."""
    return list(row.values()) if is_object(row) else row


def _identifier(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"invalid name of a savepoint: `{name}`")
    return name
