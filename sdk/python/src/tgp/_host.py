"""What the application does for the kernel: approvals, host tools, SQL, files and the log."""

from __future__ import annotations

import asyncio
import base64
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import approval
from ._json import NOT_JSON, find_not_json, is_object
from .errors import TGPError
from .host_tools import HostTool
from .sql._serve import SqlService
from .vfs import FileChange, FileEntry, Vfs

if TYPE_CHECKING:
    from ._protocol import HostLogLevel, HostParams
    from ._rpc import Connection
    from .sql import SqlExecutor

MAX_CALLBACKS = 1024
"""Requests of the kernel that are worked on at a time."""

_METHOD_NOT_FOUND = -32601
_FAILED = -32000
_LEVELS: dict[str, int] = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


@dataclass
class HostServices:
    """What an application offers to a kernel."""

    approve: approval.Approve | None = None
    tools: Mapping[tuple[str, str], HostTool] = field(default_factory=dict[tuple[str, str], HostTool])
    sql: SqlExecutor | None = None
    files: Vfs | None = None
    logger: logging.Logger | None = None

    def to_wire(self) -> HostParams:
        wire: HostParams = {"approves": self.approve is not None, "files": self.files is not None}
        wire["tools"] = [tool.to_wire(module, name) for (module, name), tool in self.tools.items()]
        if self.sql is not None:
            wire["sql"] = self.sql.to_wire()
        if self.logger is not None:
            wire["log"] = _log_level(self.logger)
        return wire


class Host:
    """Answers the requests of one kernel. Each runs in a thread of its own, so none can block another."""

    def __init__(self, services: HostServices, logger: logging.Logger, loop: asyncio.AbstractEventLoop | None) -> None:
        self._services = services
        self._logger = logger
        self._loop = loop
        self._sql = None if services.sql is None else SqlService(services.sql)
        self._running: dict[int | str, Future[Any] | None] = {}
        self._lock = threading.Lock()
        self.connection: Connection | None = None
        self._methods: dict[str, Callable[[int | str, Mapping[str, Any]], Any]] = {}
        if services.approve is not None:
            self._methods["host/approve"] = self._approve
        if services.tools:
            self._methods["host/call"] = self._call
        if services.files is not None:
            self._methods |= {
                "host/files/read": self._read_file,
                "host/files/entry": self._file_entry,
                "host/files/list": self._list_files,
                "host/files/apply": self._apply_files,
            }

    def on_request(self, request_id: int | str, method: str, params: Mapping[str, Any]) -> None:
        with self._lock:
            full = len(self._running) >= MAX_CALLBACKS
            if not full:
                self._running[request_id] = None
        if full:
            self._fail(request_id, _FAILED, f"the host already works on {MAX_CALLBACKS} requests")
        elif self._sql is not None and method.startswith("host/sql/"):
            try:
                self._sql.handle(request_id, method, params, lambda *answer: self._reply(request_id, *answer))
            except Exception as error:
                self._reply(request_id, None, _as_error(error))
        elif method in self._methods:
            threading.Thread(
                target=self._work, args=(request_id, method, params), name=f"tgp-{method}", daemon=True
            ).start()
        else:
            self._finish(request_id)
            self._fail(request_id, _METHOD_NOT_FOUND, f"the host does not have the method `{method:.100}`")

    def on_cancel(self, request_id: int | str) -> None:
        with self._lock:
            future = self._running.get(request_id)
        if future is not None:
            future.cancel()
        if self._sql is not None:
            # `interrupt` of a driver may use the network.
            threading.Thread(target=self._sql.cancel, args=(request_id,), name="tgp-cancel", daemon=True).start()

    def on_notification(self, method: str, params: Mapping[str, Any]) -> None:
        logger = self._services.logger
        if method == "log" and logger is not None:
            child = logger.getChild(str(params.get("target", "kernel"))[:64])
            child.log(_LEVELS.get(str(params.get("level")), logging.INFO), "%s", params.get("message", ""))

    def on_close(self) -> None:
        with self._lock:
            futures = [future for future in self._running.values() if future is not None]
        for future in futures:
            future.cancel()
        if self._sql is not None:
            self._sql.close()

    def _work(self, request_id: int | str, method: str, params: Mapping[str, Any]) -> None:
        try:
            result = self._methods[method](request_id, params)
        except BaseException as error:
            self._report(method, params, error)
            self._reply(request_id, None, _as_error(error))
        else:
            self._reply(request_id, result, None)

    def _report(self, method: str, params: Mapping[str, Any], error: BaseException) -> None:
        """Where a function of the application raised. The kernel, and so the caller, gets the message alone.

        A ``TGPError`` is an answer that the function chose, and a cancelled call is of no more interest.
        """
        if isinstance(error, (TGPError, asyncio.CancelledError, CancelledError)):
            return
        shown = f"host:{params.get('module')}/{params.get('name')}" if method == "host/call" else method.removeprefix("host/")
        self._logger.error("`%s` of the application raised %s", shown, type(error).__name__, exc_info=error)

    def _reply(self, request_id: int | str, result: Any, error: TGPError | None) -> None:
        self._finish(request_id)
        if self.connection is None:
            return
        if error is None:
            try:
                self.connection.answer(request_id, result)
            except NOT_JSON as cause:
                self._fail(request_id, _FAILED, _not_json(result, cause))
        elif error.code:
            wire = {"code": _FAILED, "message": error.message, "data": error.to_dict()}
            try:
                self.connection.answer_error(request_id, wire)
            except NOT_JSON:
                self._fail(request_id, _FAILED, error.message)
        else:
            self._fail(request_id, _FAILED, error.message)

    def _fail(self, request_id: int | str, code: int, message: str) -> None:
        if self.connection is not None:
            message = message.encode("utf-8", "replace").decode()
            self.connection.answer_error(request_id, {"code": code, "message": message})

    def _finish(self, request_id: int | str) -> None:
        with self._lock:
            self._running.pop(request_id, None)

    def _result_of(self, request_id: int | str, value: Any) -> Any:
        """What a function of the application returned; a coroutine runs on the application's event loop, if it has one."""
        if not inspect.isawaitable(value):
            return value

        async def wait() -> Any:
            return await value

        if self._loop is None or self._loop.is_closed():
            return asyncio.run(wait())
        future: Future[Any] = asyncio.run_coroutine_threadsafe(wait(), self._loop)
        with self._lock:
            if request_id in self._running:
                self._running[request_id] = future
        return future.result()

    def _approve(self, request_id: int | str, params: Mapping[str, Any]) -> Any:
        assert self._services.approve is not None
        answer = self._services.approve(approval.read_request(params))
        return approval.write_answer(self._result_of(request_id, answer))

    def _call(self, request_id: int | str, params: Mapping[str, Any]) -> Any:
        tool = self._services.tools.get((params["module"], params["name"]))
        if tool is None:
            raise TGPError(
                "ENOTFOUND",
                f"the application has no function `host:{params['module']}/{params['name']}`",
                {"help": "add it to `host_tools`"},
            )
        return {"result": self._result_of(request_id, tool.function(**params["arguments"]))}

    def _read_file(self, _request_id: int | str, params: Mapping[str, Any]) -> Any:
        content = self._vfs().read(params["path"])
        return {"content": None if content is None else base64.b64encode(content).decode()}

    def _file_entry(self, _request_id: int | str, params: Mapping[str, Any]) -> Any:
        entry = self._vfs().entry(params["path"])
        return {"entry": None if entry is None else _wire_entry(entry)}

    def _list_files(self, _request_id: int | str, params: Mapping[str, Any]) -> Any:
        return {"entries": [_wire_entry(entry) for entry in self._vfs().list(params["path"])]}

    def _apply_files(self, _request_id: int | str, params: Mapping[str, Any]) -> Any:
        self._vfs().apply([_read_change(change) for change in params["changes"]])
        return {}

    def _vfs(self) -> Vfs:
        assert self._services.files is not None
        return self._services.files


def _wire_entry(entry: FileEntry) -> dict[str, Any]:
    return {"path": entry.path, "directory": entry.directory, "size": entry.size}


def _read_change(change: Mapping[str, Any]) -> FileChange:
    content = change.get("content")
    return FileChange(change["path"], None if content is None else base64.b64decode(content, validate=True))


def _not_json(result: Any, cause: Exception) -> str:
    """Why an answer cannot be sent. The kernel names the function of the application in its error."""
    for name, value in result.items() if is_object(result) else ():
        found = find_not_json(value, name)
        if found is not None:
            path, what, _ = found
            return f"the value at `{path}` is {what}, which has no JSON form"
    return f"the answer of the host has no JSON form: {cause}"


def _as_error(error: BaseException) -> TGPError:
    """The error that is shown as the cause. An exception of the application has no code of TGP."""
    if isinstance(error, TGPError):
        return error
    if isinstance(error, (asyncio.CancelledError, CancelledError)):
        return TGPError("", "the work of the host was cancelled")
    text = str(error)
    return TGPError("", f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _log_level(logger: logging.Logger) -> HostLogLevel:
    level = logger.getEffectiveLevel()
    if level <= logging.DEBUG:
        return "debug"
    if level <= logging.INFO:
        return "info"
    return "warn" if level <= logging.WARNING else "error"
