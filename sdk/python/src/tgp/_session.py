"""The events of a session on their way from the reading thread to the application."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Literal

from ._json import is_object
from .errors import TGPError

MAX_BUFFERED_BYTES = 64 * 1024 * 1024
"""Events that the application has not taken yet, as JSON. Beyond it the session is cancelled."""

Event = dict[str, Any]


class EventBuffer:
    """A queue of events with a bound. The reading thread never waits for a slow application.

    ``wake`` is called after each event and at the end.
    """

    def __init__(self, wake: Callable[[], None] | None = None) -> None:
        self._events: queue.SimpleQueue[tuple[Event, int] | None] = queue.SimpleQueue()
        self._bytes = 0
        self._overflow = False
        self._wake = wake
        self._future: Future[Any] | None = None

    def attach(self, future: Future[Any]) -> None:
        """Connects the buffer with the request of its session."""
        self._future = future
        future.add_done_callback(lambda _: self._put(None))

    def push(self, event: Mapping[str, Any]) -> None:
        size = len(json.dumps(event))
        if self._overflow or self._bytes + size > MAX_BUFFERED_BYTES:
            self._overflow = True
            if self._future is not None:
                self._future.cancel()
            return
        self._bytes += size
        self._put((dict(event), size))

    def get(self, *, block: bool) -> Event | None:
        """The next event, ``None`` after the last. Raises ``queue.Empty`` when there is none yet and ``block`` is false."""
        item = self._events.get(block)
        if item is None:
            return None
        event, size = item
        self._bytes -= size
        return event

    def summary(self) -> dict[str, Any]:
        """The summary of a session that has ended, or the error it ended with."""
        if self._overflow:
            raise TGPError(
                "EBUDGET",
                f"the session was cancelled: more than {MAX_BUFFERED_BYTES} bytes of its events were not taken",
                {"help": "take the events of a session while it runs"},
            )
        assert self._future is not None
        answer = self._future.result(0)
        summary = answer.get("summary") if is_object(answer) else None
        return summary if is_object(summary) else {}

    def cancel(self) -> None:
        if self._future is not None:
            self._future.cancel()

    def _put(self, item: tuple[Event, int] | None) -> None:
        self._events.put(item)
        if self._wake is not None:
            self._wake()


def run_params(
    task: str,
    provider: str | None,
    model: str | None,
    max_steps: int | None,
    consent: Literal["rules", "effects"],
) -> dict[str, Any]:
    params: dict[str, Any] = {"task": task, "consent": consent}
    if provider is not None:
        params["provider"] = provider
    if model is not None:
        params["model"] = model
    if max_steps is not None:
        params["maxSteps"] = max_steps
    return params
