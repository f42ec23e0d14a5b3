"""The connection: JSON-RPC lines in both directions, requests under way, and every bound of it.

Three threads serve a connection: one reads, one writes (so that a kernel that does not read never blocks an event loop), and one
keeps the end of the log. Answers are ``concurrent.futures.Future``, which both clients wait for in their own way.
"""

from __future__ import annotations

import copy
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from ._json import NOT_JSON, find_not_json, is_object, to_json
from ._process import KernelProcess
from .errors import KernelExitedError, ProtocolError, TGPError, from_rpc, shut_down

MAX_LINE = 16 * 1024 * 1024
"""Bytes of a message with its line end."""
MAX_IN_FLIGHT = 1024
"""Requests that the kernel has and has not answered. Further ones wait here."""
MAX_WAITING = 16 * 1024
"""Requests that wait for their turn. Reaching it fails the next one."""
MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that the kernel has not read yet."""
_READER_SECONDS = 1.0
"""How long the end of the output is waited for after the end of the process."""

Params = Mapping[str, Any]
EventHandler = Callable[[Mapping[str, Any]], None]


class RequestHandler(Protocol):
    """What a connection does with messages of the kernel. It is called on the reading thread and must not wait."""

    def on_request(self, request_id: int | str, method: str, params: Mapping[str, Any]) -> None: ...
    def on_cancel(self, request_id: int | str) -> None: ...
    def on_notification(self, method: str, params: Mapping[str, Any]) -> None: ...
    def on_close(self) -> None: ...


class _Pending:
    """A request without an answer."""

    def __init__(self, line: bytes, on_event: EventHandler | None) -> None:
        self.line = line
        self.on_event = on_event
        self.future: Future[Any] = Future()


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as its line. Raises one of ``NOT_JSON`` for a value without a JSON form."""
    return to_json(message) + b"\n"


def _not_json(method: str, params: Params, cause: Exception) -> TGPError:
    """The error of parameters without a JSON form, with the path of the value."""
    for name, value in params.items():
        found = find_not_json(value, name)
        if found is not None:
            path, what, instead = found
            message = f"the value at `{path}` is {what}, which has no JSON form"
            return TGPError("EVALIDATION", message, {"help": instead, "field": path})
    return TGPError("EVALIDATION", f"the parameters of `{method}` have no JSON form: {cause}")


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class Connection:
    """A kernel that was started, until it ends."""

    def __init__(self, process: KernelProcess, handler: RequestHandler, logger: logging.Logger) -> None:
        self._process = process
        self._handler = handler
        self._logger = logger
        self._lock = threading.Lock()
        self._can_write = threading.Condition(self._lock)
        self._has_room = threading.Condition(self._lock)
        self._next_id = 0
        self._in_flight: dict[int, _Pending] = {}
        self._waiting: deque[tuple[int, _Pending]] = deque()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._closing = False
        self._failure: TGPError | None = None
        self._has_received = False
        self._ended = threading.Event()
        threading.Thread(target=self._write_lines, name="tgp-write", daemon=True).start()
        self._reader = threading.Thread(target=self._read_lines, name="tgp-read", daemon=True)
        self._reader.start()

    @property
    def failure(self) -> TGPError | None:
        """Why the connection has ended; nothing while it is good."""
        return self._failure

    @property
    def has_received(self) -> bool:
        """Whether the kernel has sent a message of the protocol."""
        return self._has_received

    def request(self, method: str, params: Params, on_event: EventHandler | None = None) -> Future[Any]:
        """Sends a request. Cancelling the future cancels the request."""
        with self._lock:
            if self._failure is not None:
                raise copy.copy(self._failure)
            self._next_id += 1
            request_id = self._next_id
        try:
            line = encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        except NOT_JSON as error:
            raise _not_json(method, params, error) from None
        pending = _Pending(line, on_event)
        if len(pending.line) > MAX_LINE:
            raise TGPError(
                "EVALIDATION", f"the request `{method}` has {len(pending.line)} bytes, at most {MAX_LINE} are possible"
            )
        with self._lock:
            if self._failure is not None:
                raise copy.copy(self._failure)
            if self._queued_bytes + len(pending.line) > MAX_QUEUED_BYTES or len(self._waiting) >= MAX_WAITING:
                raise TGPError(
                    "EBUDGET",
                    f"too many requests wait for the kernel: at most {MAX_WAITING}, or {MAX_QUEUED_BYTES} bytes",
                    {"help": "await some of the calls before making more"},
                )
            self._queued_bytes += len(pending.line)
            self._waiting.append((request_id, pending))
            self._send_waiting()

        def send_cancel(future: Future[Any]) -> None:
            if future.cancelled():
                self._cancel(request_id)

        pending.future.add_done_callback(send_cancel)
        return pending.future

    def notify(self, method: str, params: Params) -> None:
        self._enqueue(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def answer(self, request_id: int | str, result: Any) -> None:
        """Answers a request of the kernel. Waits while the kernel does not read: never called by the reading thread."""
        line = encode({"jsonrpc": "2.0", "id": request_id, "result": result})
        if len(line) > MAX_LINE:
            message = f"the answer of the host has {len(line)} bytes, at most {MAX_LINE} are possible"
            self.answer_error(request_id, {"code": -32000, "message": message})
            return
        with self._lock:
            while self._failure is None and self._queued_bytes + len(line) > MAX_QUEUED_BYTES:
                self._has_room.wait()
        self._enqueue(line)

    def answer_error(self, request_id: int | str, error: Mapping[str, Any]) -> None:
        self._enqueue(encode({"jsonrpc": "2.0", "id": request_id, "error": error}))

    def expect_end(self) -> None:
        """The end of the kernel is not unexpected from now on."""
        with self._lock:
            self._closing = True

    def close(self, seconds: float) -> int | None:
        """Ends the kernel's input and waits for its end; kills it after ``seconds``."""
        self.expect_end()
        self._process.close_input()
        code = self._process.wait(seconds)
        self._fail(shut_down("the kernel was shut down before the call ended"))
        if threading.current_thread() is not self._reader:
            # It closes the output; a process of the kernel's that has outlived it may hold that open.
            self._reader.join(_READER_SECONDS)
        return code

    def abandon(self) -> None:
        """Ends the kernel's input and waits for nothing; the reading thread collects the process."""
        self._closing = True
        self._process.close_input()

    def _send_waiting(self) -> None:
        # The lock is held.
        while self._waiting and len(self._in_flight) < MAX_IN_FLIGHT:
            request_id, pending = self._waiting.popleft()
            if pending.future.cancelled():
                self._queued_bytes -= len(pending.line)
                continue
            self._in_flight[request_id] = pending
            self._queue.append(pending.line)
            pending.line = b""
            self._can_write.notify()

    def _cancel(self, request_id: int) -> None:
        with self._lock:
            if request_id not in self._in_flight:
                return
        self.notify("cancel", {"id": request_id})

    def _enqueue(self, line: bytes) -> None:
        with self._lock:
            if self._failure is not None:
                return
            self._queue.append(line)
            self._queued_bytes += len(line)
            self._can_write.notify()

    def _write_lines(self) -> None:
        while True:
            with self._lock:
                while not self._queue and self._failure is None:
                    self._can_write.wait()
                if self._failure is not None:
                    return
                line = self._queue.popleft()
            try:
                self._process.write(line)
            except (OSError, ValueError):
                # The kernel ends, or has closed its input; in both cases nothing can be asked any more.
                if not self._ended.wait(2.0):
                    self._process.kill()
                return
            with self._lock:
                self._queued_bytes -= len(line)
                self._has_room.notify_all()

    def _read_lines(self) -> None:
        failure: TGPError | None = None
        try:
            while line := self._read_line():
                if len(line) > MAX_LINE:
                    raise ProtocolError("EINTERNAL", f"the kernel sent a line of more than {MAX_LINE} bytes")
                if not line.endswith(b"\n"):
                    break
                self._receive(line)
        except ProtocolError as error:
            failure = error
        except Exception as error:
            failure = ProtocolError("EINTERNAL", f"a message of the kernel could not be handled: {error!r}")
        self._ended.set()
        if failure is not None:
            self._process.kill()
        self._process.close_input()
        code = self._process.wait()
        self._process.close_output()
        if failure is not None:
            self._fail(failure)
        elif self._closing:
            self._fail(shut_down("the kernel was shut down before the call ended"))
        else:
            self._fail(KernelExitedError(code, self._process.log_tail()))

    def _read_line(self) -> bytes:
        try:
            return self._process.read_line(MAX_LINE + 1)
        except (OSError, ValueError):
            return b""

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            start = line[:200].decode("utf-8", "replace").rstrip()
            raise ProtocolError("EINTERNAL", f"the kernel sent a line that is not JSON: `{start}`") from error
        if not is_object(message):
            raise ProtocolError("EINTERNAL", "the kernel sent a message that is not an object")
        self._has_received = True
        method = message.get("method")
        if method is None:
            self._receive_answer(message)
            return
        params = message.get("params", {})
        if not isinstance(method, str) or not is_object(params):
            raise ProtocolError("EINTERNAL", "the kernel sent a request without a method or with wrong parameters")
        request_id = message.get("id")
        if isinstance(request_id, (int, str)) and not isinstance(request_id, bool):
            self._handler.on_request(request_id, method, params)
        elif method == "cancel":
            self._handler.on_cancel(params.get("id", ""))
        elif method == "session/event":
            self._receive_event(params)
        else:
            self._handler.on_notification(method, params)

    def _receive_answer(self, message: dict[str, Any]) -> None:
        request_id = message.get("id")
        with self._lock:
            pending = self._in_flight.pop(request_id, None) if isinstance(request_id, int) else None
            self._send_waiting()
        if pending is None:
            if request_id is None and "error" in message:
                raise ProtocolError("EINTERNAL", f"the kernel rejected a message: {from_rpc(message['error']).message}")
            self._logger.warning("the kernel answered the unknown request %.100r", request_id)
            return
        if not pending.future.set_running_or_notify_cancel():
            return
        if "error" in message:
            pending.future.set_exception(from_rpc(message["error"]))
        else:
            pending.future.set_result(message.get("result"))

    def _receive_event(self, params: Mapping[str, Any]) -> None:
        request_id, event = params.get("request"), params.get("event")
        with self._lock:
            pending = self._in_flight.get(request_id) if isinstance(request_id, int) else None
        if pending is not None and pending.on_event is not None and is_object(event):
            pending.on_event(event)

    def _fail(self, failure: TGPError) -> None:
        with self._lock:
            if self._failure is not None:
                return
            self._failure = failure
            lost = [*self._in_flight.values(), *(pending for _, pending in self._waiting)]
            self._in_flight.clear()
            self._waiting.clear()
            self._queue.clear()
            self._can_write.notify_all()
            self._has_room.notify_all()
        if isinstance(failure, KernelExitedError) and not lost:
            # No call fails with it.
            self._logger.warning("%s", failure.message)
        for pending in lost:
            if pending.future.set_running_or_notify_cancel():
                pending.future.set_exception(copy.copy(failure))
        self._handler.on_close()
