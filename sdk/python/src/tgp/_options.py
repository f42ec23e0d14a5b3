"""Checks what an application passes, so that a mistake is reported where it was made."""

from __future__ import annotations

import functools
import inspect
import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from ._json import kind_of
from ._suggest import suggestion
from .sql import SqlExecutor
from .sql._check import check_executor
from .vfs import Vfs

P = ParamSpec("P")


def known_options(init: Callable[P, None]) -> Callable[P, None]:
    """Has a constructor name the option that was meant."""
    names = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(*args: P.args, **options: P.kwargs) -> None:
        for name in options:
            if name not in names:
                kind = type(args[0]).__name__
                raise TypeError(f"unknown option `{name}` of `{kind}()`: {suggestion(name, names)}")
        init(*args, **options)

    return checked


def check_options(
    *,
    paths: Mapping[str, object],
    texts: Mapping[str, object],
    consent: object,
    env: object,
    boot_timeout: object,
    shutdown_timeout: object,
) -> None:
    """The options that are data. Those of ``paths`` and ``texts`` are by name."""
    for name, path in paths.items():
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"`{name}` is {kind_of(path)}, expected a path, a str or os.PathLike")
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise TypeError(f"`{name}` is {kind_of(text)}, expected a str")
    if consent not in ("rules", "effects"):
        raise ValueError(f"unknown consent `{consent}`: {suggestion(str(consent), ['rules', 'effects'])}")
    _check_environment(env)
    if boot_timeout is not None and _seconds("boot_timeout", boot_timeout, ", or None to wait for ever") <= 0:
        raise ValueError(f"`boot_timeout` is {boot_timeout}, expected a number of seconds above 0, or None")
    check_timeout("shutdown_timeout", shutdown_timeout)


def check_timeout(name: str, seconds: object) -> None:
    if _seconds(name, seconds, "") < 0:
        raise ValueError(f"`{name}` is {seconds}, expected a number of seconds that is not negative")


def _seconds(name: str, value: object, otherwise: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"`{name}` is {kind_of(value)}, expected a number of seconds{otherwise}")
    if not math.isfinite(value):
        raise ValueError(f"`{name}` is {value}, expected a number of seconds{otherwise}")
    return value


def _check_environment(env: object) -> None:
    if env is None:
        return
    if not isinstance(env, Mapping):
        raise TypeError(f"`env` is {kind_of(env)}, expected variables by name, such as `{{**os.environ, 'A': 'b'}}`")
    variables: Mapping[Any, Any] = env
    for name, value in variables.items():
        if not isinstance(name, str):
            raise TypeError(f"`env` has {kind_of(name)} as a name, expected a str")
        if not isinstance(value, str):
            raise TypeError(f"`env[{name!r}]` is {kind_of(value)}, expected a str")


def check_services(approve: object, sql: object, files: object, logger: object) -> None:
    """What is of the wrong type is reported here, not by the first call that needs it."""
    if approve is not None and not callable(approve):
        raise TypeError(f"`approve` is {kind_of(approve)}, expected a function that takes an ApprovalRequest")
    if sql is not None and not isinstance(sql, SqlExecutor):
        raise TypeError(
            f"`sql` is {kind_of(sql)}, expected an executor: `DbApiExecutor(connect, dialect)`, "
            "`SqlAlchemyExecutor(engine)`, `StatementExecutor(function, dialect)` or a subclass of `SqlExecutor`"
        )
    if sql is not None:
        check_executor(sql)
    if files is not None and not isinstance(files, Vfs):
        raise TypeError(f"`files` is {kind_of(files)}, expected `MemoryVfs()`, `DirectoryVfs(path)` or a subclass of `Vfs`")
    if logger is not None and not isinstance(logger, logging.Logger):
        raise TypeError(f"`logger` is {kind_of(logger)}, expected `logging.getLogger(name)`")
