"""What the adapters share: a call whose failure is a result that the model can read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from .._core import KernelBase, call_params, read_result, wait
from .._json import is_object
from ..errors import (
    BootTimeoutError,
    KernelClosedError,
    KernelExitedError,
    KernelNotFoundError,
    ProtocolError,
    TGPError,
)

CONNECTION_ERRORS = (BootTimeoutError, KernelClosedError, KernelExitedError, KernelNotFoundError, ProtocolError)
"""These are for the application: no model can repair them."""


def call(kernel: KernelBase, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """``{"ok": true, "data"}`` or ``{"ok": false, "error"}``."""
    try:
        future = kernel._send("tools/call", call_params(tool, arguments, False))
        return {"ok": True, "data": read_result(wait(future, None, ""))}
    except CONNECTION_ERRORS:
        raise
    except TGPError as error:
        return {"ok": False, "error": error.to_dict()}


async def acall(kernel: KernelBase, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """As ``call``, on the event loop. Cancelling the task cancels the call."""
    try:
        return {"ok": True, "data": await kernel._acall(tool, arguments, False)}
    except CONNECTION_ERRORS:
        raise
    except TGPError as error:
        return {"ok": False, "error": error.to_dict()}


async def prompt(kernel: KernelBase) -> str:
    """The live system prompt."""
    answer: Any = await asyncio.wrap_future(await kernel._send_in_loop("prompt/get", {}))
    return str(answer["prompt"])


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The arguments that a model wrote; nothing when they are not an object."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if is_object(arguments) else None


def invalid_arguments(tool: str) -> dict[str, Any]:
    message = f"the arguments of `{tool}` are not a JSON object"
    details = {"help": "pass one JSON object that fits the schema of the tool"}
    return {"ok": False, "error": {"code": "EVALIDATION", "message": message, "details": details}}


def to_text(result: Mapping[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False)
