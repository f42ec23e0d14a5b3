"""SQL on the application's own database: `exec_sql` and forged tools run their statements there."""

from ._dbapi import DbApiExecutor
from ._executor import Dialect, SqlExecutor, SqlResult, SqlTransaction, StatementExecutor
from ._sqlalchemy import SqlAlchemyExecutor

__all__ = [
    "DbApiExecutor",
    "Dialect",
    "SqlAlchemyExecutor",
    "SqlExecutor",
    "SqlResult",
    "SqlTransaction",
    "StatementExecutor",
]
