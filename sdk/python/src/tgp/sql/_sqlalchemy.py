"""Statements on the connections of a SQLAlchemy engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._dbapi import begin_on, placeholders_of
from ._executor import Dialect, SqlExecutor, SqlTransaction

if TYPE_CHECKING:
    from sqlalchemy import Engine

_DIALECTS: dict[str, Dialect] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}


class SqlAlchemyExecutor(SqlExecutor):
    """Runs statements on connections of ``engine``'s pool; the dialect is the engine's.

    >>> from sqlalchemy import create_engine
    >>> executor = SqlAlchemyExecutor(create_engine("sqlite:///shop.db"))
    """

    def __init__(self, engine: Engine) -> None:
        name = engine.dialect.name
        if engine.dialect.is_async:
            raise ValueError("an async engine cannot be used: create a second engine with a synchronous driver")
        if name not in _DIALECTS:
            raise ValueError(f"unsupported dialect `{name}`: expected {', '.join(_DIALECTS)}")
        self.dialect = _DIALECTS[name]
        self.placeholders = placeholders_of(self.dialect)
        self._engine = engine

    def begin(self, read_only: bool) -> SqlTransaction:
        pooled = self._engine.raw_connection()
        try:
            driver: Any = pooled.driver_connection
            return begin_on(driver, pooled, self.dialect, read_only)
        except BaseException:
            pooled.close()
            raise
