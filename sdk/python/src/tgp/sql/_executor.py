"""What an executor of SQL is to the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ._check import check_dialect, check_function, function_rows

if TYPE_CHECKING:
    from .._protocol import HostSql

Dialect = Literal["sqlite", "postgresql", "mysql"]


@dataclass
class SqlResult:
    """What a statement gave.

    Rows are sequences in the order of ``columns``. Values may be Python values (``Decimal``, ``bytes``, ``datetime``, ...); they
    are written as the protocol wants them.
    """

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = field(default_factory=list[Sequence[Any]])
    changed: int = 0
    truncated: bool = False


class SqlTransaction(ABC):
    """A transaction. All its methods except ``interrupt`` are called by one thread."""

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any], max_rows: int) -> SqlResult:
        """Runs one statement with the placeholders that the executor has declared."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    def savepoint(self, name: str) -> None:
        raise NotImplementedError

    def release(self, name: str) -> None:
        raise NotImplementedError

    def rollback_to(self, name: str) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:  # noqa: B027
        """Stops the statement that is running. Called by another thread; does nothing where the driver cannot do it."""

    def close(self) -> None:  # noqa: B027
        """Gives the connection back. Called once, after ``commit`` or ``rollback``."""


class SqlExecutor(ABC):
    """A database of the application. The attributes tell the kernel what it can do."""

    dialect: Dialect
    transactions: bool = True
    """Without transactions every statement is on its own and stays when the run of a tool fails."""
    read_only: bool = True
    """The database itself keeps a read-only transaction from writing. Without it every statement counts as a write."""
    savepoints: bool = True
    """Without savepoints a statement that fails ends its transaction."""

    placeholders: Literal["native", "format"] = "native"
    """How parameters are marked: ``native`` is ``?``, or ``$1`` for PostgreSQL.

    ``format`` is ``%s``, and every other ``%`` is doubled.
    """

    @abstractmethod
    def begin(self, read_only: bool) -> SqlTransaction:
        """Begins a transaction on a connection of its own."""

    def execute(self, sql: str, parameters: Sequence[Any], max_rows: int) -> SqlResult:
        """Runs a statement on its own. Only called without ``transactions``."""
        raise NotImplementedError

    def to_wire(self) -> HostSql:
        wire: HostSql = {
            "dialect": self.dialect,
            "transactions": self.transactions,
            "readOnly": self.transactions and self.read_only,
            "savepoints": self.transactions and self.savepoints,
        }
        if self.placeholders != "native":
            wire["placeholders"] = self.placeholders
        return wire


class StatementExecutor(SqlExecutor):
    """An executor without transactions: a function ``(sql, parameters) -> rows`` that runs one statement.

    ``parameters`` is a list of Python values in the order of the place holders: ``?``, in PostgreSQL ``$1``. ``rows`` is a list
    with a dict for each row, by column, and ``[]`` for a statement without rows; a ``SqlResult`` also has the number of changes.

    Each statement takes effect at once, also when the run of the tool fails later. The kernel knows it from the declaration.
    """

    transactions = False
    read_only = False
    savepoints = False

    def __init__(
        self,
        function: Callable[[str, Sequence[Any]], SqlResult | Sequence[Mapping[str, Any]]],
        dialect: Dialect,
    ) -> None:
        check_function(function)
        check_dialect(dialect)
        self.dialect = dialect
        self._function = function

    def begin(self, read_only: bool) -> SqlTransaction:
        raise NotImplementedError("this executor has no transactions")

    def execute(self, sql: str, parameters: Sequence[Any], max_rows: int) -> SqlResult:
        answer = self._function(sql, parameters)
        if isinstance(answer, SqlResult):
            return answer
        rows = function_rows(self._function, answer)
        columns = list(dict.fromkeys(name for row in rows for name in row))
        return SqlResult(columns, [[row.get(name) for name in columns] for row in rows])
