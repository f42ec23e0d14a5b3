"""What an executor of the application is and returns. A mistake names the executor, and what is expected of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._json import is_object, kind_of
from .._suggest import suggestion
from ..errors import TGPError

DIALECTS = ("sqlite", "postgresql", "mysql")
_TRANSACTION = ("execute", "commit", "rollback")


def check_dialect(dialect: object) -> None:
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect `{dialect}`: {suggestion(str(dialect), DIALECTS)}")


def check_function(function: Any) -> None:
    """The function of a ``StatementExecutor``."""
    if not callable(function):
        raise TypeError(f"`function` is {kind_of(function)}, expected a function `(sql, parameters) -> rows`")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # One that is not written in Python.
        return
    try:
        signature.bind("", ())
    except TypeError:
        name = name_of(function)
        message = f"the SQL function `{name}` takes `{signature}`, expected `(sql, parameters) -> rows`"
        raise TypeError(message) from None


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def function_rows(function: Callable[..., Any], answer: Any) -> Sequence[dict[str, Any]]:
    """The rows that the function of a ``StatementExecutor`` has returned."""
    returned = f"the SQL function `{name_of(function)}` returned"
    if not isinstance(answer, (list, tuple)):
        _close(answer)
        raise _wrong(f"{returned} {kind_of(answer)}, expected a list of rows")
    rows: list[dict[str, Any]] = []
    row: Any
    for number, row in enumerate(answer):
        try:
            rows.append(row if is_object(row) else dict(row.items()))
        except AttributeError:
            raise _wrong(
                f"{returned} {kind_of(row)} as row {number}, expected a dict with a value for each column"
            ) from None
    return rows


def check_begun(executor: object, transaction: object) -> None:
    """What ``begin`` has returned."""
    if not all(callable(getattr(transaction, name, None)) for name in _TRANSACTION):
        _close(transaction)
        raise _wrong(
            f"`begin` of the SQL executor `{type(executor).__name__}` returned {kind_of(transaction)}, "
            "expected a transaction with `execute`, `commit` and `rollback`"
        )


def check_result(executor: object, result: Any) -> None:
    """What ``execute`` has returned. Its type is that of ``SqlResult``, by its fields."""
    returned = f"`execute` of the SQL executor `{type(executor).__name__}` returned"
    if not all(hasattr(result, name) for name in ("columns", "rows", "changed", "truncated")):
        _close(result)
        raise _wrong(f"{returned} {kind_of(result)}, expected a SqlResult with `columns`, `rows`, `changed`, `truncated`")
    columns = len(result.columns)
    for number, row in enumerate(result.rows):
        is_row = hasattr(row, "__iter__") and hasattr(row, "__len__") and not isinstance(row, (str, bytes))
        if not is_row or is_object(row):
            raise _wrong(f"{returned} {kind_of(row)} as row {number}, expected a sequence in the order of `columns`")
        if len(row) != columns:
            raise _wrong(f"{returned} {len(row)} values as row {number}, expected {columns}, one for each of `columns`")


def _close(answer: object) -> None:
    """A coroutine that nothing awaits would be reported as such."""
    if inspect.iscoroutine(answer):
        answer.close()


def _wrong(message: str) -> TGPError:
    return TGPError("ESQL", message, {"help": "correct the executor: the documentation of the client has its form"})


def check_executor(executor: Any) -> None:
    """The attributes of an executor, which a subclass sets."""
    try:
        check_dialect(getattr(executor, "dialect", None))
    except ValueError as error:
        raise ValueError(f"`dialect` of the SQL executor `{type(executor).__name__}`: {error}") from None
