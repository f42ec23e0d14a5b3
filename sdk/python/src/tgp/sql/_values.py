"""Values between JSON and Python drivers: exact numbers, base64 for bytes, ISO 8601 for times."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from collections.abc import Sequence
from typing import Any

from .._json import is_list, is_object
from ..errors import TGPError
from ._executor import Dialect, SqlResult

_LARGEST_EXACT = 2**53


def read_parameter(value: Any, dialect: Dialect) -> Any:
    """A parameter of the protocol as the value that a driver takes."""
    if is_list(value):
        if dialect == "postgresql" and not any(isinstance(item, dict) for item in value):
            return [read_parameter(item, dialect) for item in value]
        return _json(value)
    if not is_object(value):
        return value
    if len(value) == 1:
        tag, content = next(iter(value.items()))
        if tag == "$base64" and isinstance(content, str):
            return base64.b64decode(content, validate=True)
        if tag == "$bigint" and isinstance(content, str):
            return int(content)
        if tag == "$date" and isinstance(content, str):
            return _read_time(content, dialect)
    return _json(value)


def _read_time(text: str, dialect: Dialect) -> Any:
    if dialect == "sqlite":
        return text
    moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    # The types of MySQL have no zone; a value is in UTC.
    return moment.replace(tzinfo=None) if dialect == "mysql" else moment


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_value(value: Any) -> Any:
    """A value of a driver as the protocol has it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -_LARGEST_EXACT <= value <= _LARGEST_EXACT else str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, decimal.Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dt.datetime):
        return _write_time(value)
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _write_duration(value)
    if is_object(value):
        return {str(key): write_value(item) for key, item in value.items()}
    if is_list(value):
        return [write_value(item) for item in value]
    return str(value)


def _write_time(value: dt.datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat() + "Z"


def _write_duration(value: dt.timedelta) -> str:
    minus = "-" if value < dt.timedelta(0) else ""
    seconds, micro = divmod(abs(value) // dt.timedelta(microseconds=1), 1_000_000)
    fraction = f".{micro:06}" if micro else ""
    return f"{minus}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def distinct(names: Sequence[str]) -> list[str]:
    """Column names without repetition: a second ``id`` is ``id_2``."""
    taken: dict[str, None] = {}
    for name in names:
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        taken[candidate] = None
    return list(taken)


def write_result(result: SqlResult, max_rows: int) -> dict[str, Any]:
    """The answer to ``host/sql/execute``."""
    columns = distinct([str(name) for name in result.columns])
    rows = [dict(zip(columns, map(write_value, row), strict=True)) for row in result.rows[:max_rows]]
    return {
        "columns": columns,
        "rows": rows,
        "changed": max(result.changed, 0),
        "truncated": result.truncated or len(result.rows) > max_rows,
    }


def sql_error(error: Exception) -> TGPError:
    """The ``ESQL`` of an exception of a driver, with the database's own code."""
    if isinstance(error, TGPError):
        return error
    original = getattr(error, "orig", None)
    cause = original if isinstance(original, Exception) else error
    details: dict[str, Any] = {}
    for attribute in ("sqlstate", "pgcode", "sqlite_errorname"):
        code = getattr(cause, attribute, None)
        if isinstance(code, str) and code:
            details["sqlCode"] = code
            break
    else:
        if len(cause.args) > 1 and isinstance(cause.args[0], int):
            # PyMySQL and its relatives: (1062, "Duplicate entry").
            details["sqlCode"] = str(cause.args[0])
    message = str(cause.args[1]) if "sqlCode" in details and len(cause.args) > 1 else str(cause)
    return TGPError("ESQL", message.strip() or type(cause).__name__, details)
