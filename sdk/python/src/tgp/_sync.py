"""The client for programs without an event loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ._core import KernelBase, call_params, exec_arguments, field_of, read_result, wait
from ._options import check_timeout
from ._session import Event, EventBuffer, run_params

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ._protocol import InitializeResult, ToolInfo


class SessionRun(Iterator[Event]):
    """The events of a session, in order. ``summary`` is there after the last one. Closing it cancels the session."""

    def __init__(self, buffer: EventBuffer) -> None:
        self._buffer = buffer
        self._summary: dict[str, Any] | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """How the session ended. Takes the events that are left."""
        while self._summary is None:
            next(self, None)
        return self._summary

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if self._summary is not None:
            raise StopIteration
        event = self._buffer.get(block=True)
        if event is None:
            self._summary = {}
            self._summary = self._buffer.summary()
            raise StopIteration
        return event

    def close(self) -> None:
        """Cancels the session if it has not ended."""
        if self._summary is None:
            self._summary = {}
            self._buffer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class TGP(KernelBase):
    """A kernel. It starts with the first call, and ends with the ``with`` block or ``shutdown()``.

    All methods may be called from several threads.

    >>> with TGP("/srv/shop") as kernel:
    ...     kernel.exec("tools/math/fib.ts", {"n": 10})
    55
    """

    def boot(self) -> InitializeResult:
        """Starts the kernel. Calls do it by themselves, also after the kernel has ended unexpectedly."""
        return self._boot()

    def shutdown(self) -> None:
        """Waits until calls have ended, and ends the kernel. Further calls fail."""
        self._shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Calls a tool of the kernel and returns its data.

        ``dry_run`` shows what would happen and changes nothing. After ``timeout`` seconds the call is cancelled.

        Raises:
            TGPError: The call failed or was refused.
            TimeoutError: It took longer than ``timeout``.
        """
        params = call_params(tool, arguments, dry_run)
        return read_result(self._ask("tools/call", params, timeout, f"`{tool}` did not end"))

    def exec(
        self,
        path: str,
        args: Any = None,
        *,
        limits: Mapping[str, int] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Runs a forged tool in the sandbox and returns its result. ``call("exec_tool", ...)`` also gives its logs."""
        data = self.call("exec_tool", exec_arguments(path, args, limits), dry_run=dry_run, timeout=timeout)
        return field_of(data, "result")

    def tools(self) -> list[ToolInfo]:
        """The tools that can be called in this project."""
        tools: list[ToolInfo] = field_of(self._ask("tools/list", {}), "tools")
        return tools

    def system_prompt(self) -> str:
        """The system prompt with the state of this project. ``tgp.SYSTEM_PROMPT`` is the part that never changes."""
        return str(field_of(self._ask("prompt/get", {}), "prompt"))

    def run(
        self,
        task: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        max_steps: int | None = None,
        consent: Literal["rules", "effects"] = "effects",
    ) -> SessionRun:
        """Has the kernel's own agent work on a task, and gives its events.

        Every effect is put before ``approve``, because a model makes the calls; ``consent="rules"`` leaves that to rules.
        """
        buffer = EventBuffer()
        params = run_params(task, provider, model, max_steps, consent)
        buffer.attach(self._send("session/run", params, buffer.push))
        return SessionRun(buffer)

    def _ask(self, method: str, params: Mapping[str, Any], timeout: float | None = None, what: str = "") -> Any:
        if timeout is not None:
            check_timeout("timeout", timeout)
        return wait(self._send(method, params), timeout, what)
