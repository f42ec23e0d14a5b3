"""The errors of the kernel and of the connection to it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

from ._json import is_object


class SourceLocation(NamedTuple):
    """A place in a source file. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TGPError(Exception):
    """A call that failed, or a kernel that cannot be reached.

    ``code`` is stable and listed in the documentation (``EPOLICY``, ``EVALIDATION``, ...). ``details`` holds what a program can
    use; ``details["help"]`` is the next step. ``location`` is the place in the TypeScript source, if there is one. ``str()`` has
    code, message and place, and the next step on a line of its own.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message, dict(details or {}))
        self.code = code
        self.message = message
        self.details: dict[str, Any] = dict(details or {})

    @property
    def help(self) -> str | None:
        """The next step, a sentence."""
        value = self.details.get("help")
        return value if isinstance(value, str) else None

    @property
    def location(self) -> SourceLocation | None:
        place = self.details.get("place")
        if not is_object(place):
            return None
        try:
            return SourceLocation(str(place["file"]), int(place["line"]), int(place["column"]))
        except (KeyError, TypeError, ValueError):
            return None

    def to_dict(self) -> dict[str, Any]:
        """The error as the protocol has it: ``{code, message, details}``."""
        return {"code": self.code, "message": self.message, "details": self.details}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.code, self.message, self.details, self.__dict__))

    def __str__(self) -> str:
        location = self.location
        place = f" ({location})" if location else ""
        help_line = f"\nhelp: {self.help}" if self.help else ""
        return f"{self.code}: {self.message}{place}{help_line}"


_SHOWN_LOG_CHARACTERS = 8 * 1024


def _signal_name(exit_code: int | None) -> str | None:
    if exit_code is None or exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


class KernelNotFoundError(TGPError):
    """The program ``tgp`` was not found, cannot be started, or is another program."""


class KernelClosedError(TGPError):
    """The kernel was shut down before or during the call."""


class KernelExitedError(TGPError):
    """The kernel ended unexpectedly. ``log`` is the end of what it printed on standard error; the message has its last lines.

    ``exit_code`` is negative for a kernel that was ended by a signal.
    """

    def __init__(self, exit_code: int | None, log: str) -> None:
        signal_name = _signal_name(exit_code)
        how = f"by {signal_name}" if signal_name else f"with exit code {exit_code}"
        shown = f"; the end of its log:\n{log[-_SHOWN_LOG_CHARACTERS:]}" if log else "; its log is empty"
        details = {
            "help": "the next call starts another kernel; `tgp doctor` checks this machine",
            "exitCode": None if signal_name else exit_code,
            "signal": signal_name,
            "log": log,
        }
        super().__init__("EINTERNAL", f"the kernel ended unexpectedly {how}{shown}", details)
        self.exit_code = exit_code
        self.log = log


class BootTimeoutError(TGPError, TimeoutError):
    """The kernel did not boot within ``boot_timeout`` seconds."""

    def __init__(self, seconds: float) -> None:
        help = "`tgp doctor` checks this machine; allow more time if tools are pulled from a slow remote"
        super().__init__("EINTERNAL", f"the kernel did not boot within {seconds:g} s", {"help": help})


class ProtocolError(TGPError):
    """The kernel or the client broke the protocol; their versions do not fit."""


def shut_down(message: str) -> KernelClosedError:
    """The error of calls after ``shutdown()``, and of calls that it has ended."""
    return KernelClosedError("ESTATE", message, {"help": "create another kernel: `TGP(...)`"})


def from_wire(error: object) -> TGPError:
    """The exception of ``{code, message, details}``."""
    if not is_object(error):
        return ProtocolError("EINTERNAL", "the kernel reported a failure without an error")
    details = error.get("details")
    return TGPError(
        str(error.get("code", "EINTERNAL")),
        str(error.get("message", "")),
        details if is_object(details) else None,
    )


_INVALID_PARAMS = -32602


def from_rpc(error: object) -> TGPError:
    """The exception of the ``error`` of a JSON-RPC answer."""
    if not is_object(error):
        return ProtocolError("EINTERNAL", "the kernel answered with an `error` that is not an object")
    if is_object(error.get("data")):
        return from_wire(error["data"])
    message = str(error.get("message", ""))
    if error.get("code") == _INVALID_PARAMS:
        return TGPError("EVALIDATION", message)
    return ProtocolError("EINTERNAL", message, {"rpcCode": error.get("code")})


def _restore(
    kind: type[TGPError], code: str, message: str, details: dict[str, Any], attributes: dict[str, Any]
) -> TGPError:
    error = kind.__new__(kind, code, message, details)
    error.__dict__.update(attributes)
    return error
