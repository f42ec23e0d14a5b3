"""Executors of every database and driver that is there.

`cargo xtask with-databases` starts PostgreSQL and MariaDB and sets their variables; without them SQLite is tested alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tgp import DbApiExecutor, SqlAlchemyExecutor, SqlExecutor

POSTGRES = "TGP_TEST_POSTGRES_URL"
MYSQL = "TGP_TEST_MYSQL_URL"


def url_of(variable: str) -> str:
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"{variable} is not set")
    return url


def sqlite(path: Path) -> SqlExecutor:
    return DbApiExecutor(lambda: sqlite3.connect(path / "test.db"), "sqlite")


def sqlite_rows_as_dictionaries(path: Path) -> SqlExecutor:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path / "test.db")

        def as_dictionary(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
            return dict(zip((column[0] for column in cursor.description), row, strict=True))

        connection.row_factory = as_dictionary
        return connection

    return DbApiExecutor(connect, "sqlite")


def sqlalchemy_sqlite(path: Path) -> SqlExecutor:
    import sqlalchemy

    return SqlAlchemyExecutor(sqlalchemy.create_engine(f"sqlite:///{path / 'test.db'}"))


def psycopg3(_path: Path) -> SqlExecutor:
    url = url_of(POSTGRES)
    import psycopg

    return DbApiExecutor(lambda: psycopg.connect(url), "postgresql")


def psycopg2(_path: Path) -> SqlExecutor:
    url = url_of(POSTGRES)
    import psycopg2

    return DbApiExecutor(lambda: psycopg2.connect(url), "postgresql")


def sqlalchemy_postgres(_path: Path) -> SqlExecutor:
    address = "postgresql+psycopg" + url_of(POSTGRES)[url_of(POSTGRES).index(":") :]
    import sqlalchemy

    return SqlAlchemyExecutor(sqlalchemy.create_engine(address))


def pymysql(_path: Path) -> SqlExecutor:
    parts = urlsplit(url_of(MYSQL))
    import pymysql

    def connect() -> Any:
        return pymysql.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            database=parts.path.lstrip("/"),
        )

    return DbApiExecutor(connect, "mysql")


def sqlalchemy_mysql(_path: Path) -> SqlExecutor:
    address = "mysql+pymysql" + url_of(MYSQL)[url_of(MYSQL).index(":") :]
    import sqlalchemy

    return SqlAlchemyExecutor(sqlalchemy.create_engine(address))


EXECUTORS: list[Callable[[Path], SqlExecutor]] = [
    sqlite,
    sqlite_rows_as_dictionaries,
    sqlalchemy_sqlite,
    psycopg3,
    psycopg2,
    sqlalchemy_postgres,
    pymysql,
    sqlalchemy_mysql,
]
