"""The client for asyncio."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ._core import KernelBase, exec_arguments, field_of
from ._session import Event, EventBuffer, run_params

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ._protocol import InitializeResult, ToolInfo


_TURNS = 4
"""Turns of the event loop until a call whose task was just made has begun: that of the task, of ``wait_for``, of a timeout."""


class AsyncSessionRun(AsyncIterator[Event]):
    """The events of a session, in order. ``summary`` is there after the last one. Closing it cancels the session."""

    def __init__(
        self, send: Callable[[Mapping[str, Any], EventBuffer], Awaitable[None]], params: Mapping[str, Any]
    ) -> None:
        self._send = send
        self._params = params
        self._buffer: EventBuffer | None = None
        self._ready = asyncio.Event()
        self._summary: dict[str, Any] | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """How the session ended; empty before its end."""
        return self._summary or {}

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._summary is not None:
            raise StopAsyncIteration
        buffer = await self._start()
        while True:
            self._ready.clear()
            try:
                event = buffer.get(block=False)
            except queue.Empty:
                await self._ready.wait()
                continue
            if event is None:
                self._summary = {}
                self._summary = buffer.summary()
                raise StopAsyncIteration
            return event

    async def aclose(self) -> None:
        """Cancels the session if it has not ended."""
        self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._summary is None:
            self._summary = {}
            if self._buffer is not None:
                self._buffer.cancel()

    async def _start(self) -> EventBuffer:
        if self._buffer is None:
            loop = asyncio.get_running_loop()

            def wake() -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(self._ready.set)

            buffer = EventBuffer(wake)
            await self._send(self._params, buffer)
            self._buffer = buffer
        return self._buffer


class AsyncTGP(KernelBase):
    """A kernel for asyncio. It starts with the first call, and ends with the ``async with`` block or ``shutdown()``.

    Cancelling a task cancels its call in the kernel.

    >>> async with AsyncTGP("/srv/shop") as kernel:
    ...     await kernel.exec("tools/math/fib.ts", {"n": 10})
    55
    """

    async def boot(self) -> InitializeResult:
        """Starts the kernel. Calls do it by themselves, also after the kernel has ended unexpectedly."""
        return await self._boot_in_loop()

    async def _boot_in_loop(self) -> InitializeResult:
        self._loop = asyncio.get_running_loop()
        return await super()._boot_in_loop()

    async def shutdown(self) -> None:
        """Waits until calls have ended, and ends the kernel. Further calls fail."""

        async def end() -> None:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            await asyncio.to_thread(self._shutdown)

        await asyncio.shield(end())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def call(
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
        return await self._acall(tool, arguments, dry_run, timeout)

    async def exec(
        self,
        path: str,
        args: Any = None,
        *,
        limits: Mapping[str, int] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Runs a forged tool in the sandbox and returns its result. ``call("exec_tool", ...)`` also gives its logs."""
        data = await self.call("exec_tool", exec_arguments(path, args, limits), dry_run=dry_run, timeout=timeout)
        return field_of(data, "result")

    async def tools(self) -> list[ToolInfo]:
        """The tools that can be called in this project."""
        tools: list[ToolInfo] = field_of(await self._ask("tools/list"), "tools")
        return tools

    async def system_prompt(self) -> str:
        """The system prompt with the state of this project. ``tgp.SYSTEM_PROMPT`` is the part that never changes."""
        return str(field_of(await self._ask("prompt/get"), "prompt"))

    def run(
        self,
        task: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        max_steps: int | None = None,
        consent: Literal["rules", "effects"] = "effects",
    ) -> AsyncSessionRun:
        """Has the kernel's own agent work on a task, and gives its events.

        Every effect is put before ``approve``, because a model makes the calls; ``consent="rules"`` leaves that to rules.
        """
        return AsyncSessionRun(self._send_run, run_params(task, provider, model, max_steps, consent))

    async def _send_run(self, params: Mapping[str, Any], buffer: EventBuffer) -> None:
        buffer.attach(await self._send_in_loop("session/run", params, buffer.push))

    async def _ask(self, method: str) -> Any:
        return await asyncio.wrap_future(await self._send_in_loop(method, {}))
