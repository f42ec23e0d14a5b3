"""The kernel's tools for the package ``anthropic``: for a loop of your own, and for its tool runner.

>>> message = client.messages.create(model=model, max_tokens=1024, tools=tools(), messages=messages)
>>> messages.append({"role": "user", "content": results(kernel, message)})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool, ToolError
from anthropic.types import Message, ToolParam, ToolResultBlockParam
from anthropic.types.beta import BetaToolUnionParam

from .._core import KernelBase, select
from .._json import is_object
from ._common import acall, call, invalid_arguments, to_text


def tools(names: Iterable[str] | None = None) -> list[ToolParam]:
    """The definitions of the tools with these names, all of them without names."""
    return [_definition(definition) for definition in select(names)]


def results(kernel: KernelBase, message: Message) -> list[ToolResultBlockParam]:
    """Makes the calls that ``message`` asks for, and returns their results for the next message of the user.

    Empty when the message asks for none.
    """
    blocks: list[ToolResultBlockParam] = []
    for block in message.content:
        if block.type == "tool_use":
            valid = is_object(block.input)
            answer = call(kernel, block.name, block.input) if valid else invalid_arguments(block.name)
            blocks.append(_block(block.id, answer))
    return blocks


async def aresults(kernel: KernelBase, message: Message) -> list[ToolResultBlockParam]:
    """As ``results``, on the event loop."""
    blocks: list[ToolResultBlockParam] = []
    for block in message.content:
        if block.type == "tool_use":
            valid = is_object(block.input)
            answer = await acall(kernel, block.name, block.input) if valid else invalid_arguments(block.name)
            blocks.append(_block(block.id, answer))
    return blocks


def runner_tools(kernel: KernelBase, names: Iterable[str] | None = None) -> list[BetaBuiltinFunctionTool]:
    """The tools for ``client.beta.messages.tool_runner(...)`` of ``Anthropic``."""
    return [_RunnerTool(kernel, _definition(definition)) for definition in select(names)]


def async_runner_tools(kernel: KernelBase, names: Iterable[str] | None = None) -> list[BetaAsyncBuiltinFunctionTool]:
    """The tools for ``client.beta.messages.tool_runner(...)`` of ``AsyncAnthropic``."""
    return [_AsyncRunnerTool(kernel, _definition(definition)) for definition in select(names)]


class _RunnerTool(BetaBuiltinFunctionTool):
    def __init__(self, kernel: KernelBase, definition: ToolParam) -> None:
        self._kernel = kernel
        self._definition = definition

    def to_dict(self) -> BetaToolUnionParam:
        return cast("BetaToolUnionParam", self._definition)

    def call(self, input: object) -> str:
        name = self._definition["name"]
        if not is_object(input):
            return _text_or_raise(invalid_arguments(name))
        return _text_or_raise(call(self._kernel, name, input))


class _AsyncRunnerTool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, kernel: KernelBase, definition: ToolParam) -> None:
        self._kernel = kernel
        self._definition = definition

    def to_dict(self) -> BetaToolUnionParam:
        return cast("BetaToolUnionParam", self._definition)

    async def call(self, input: object) -> str:
        name = self._definition["name"]
        if not is_object(input):
            return _text_or_raise(invalid_arguments(name))
        return _text_or_raise(await acall(self._kernel, name, input))


def _definition(definition: Any) -> ToolParam:
    return {
        "name": definition["name"],
        "description": definition["description"],
        "input_schema": dict(definition["inputSchema"]),
    }


def _block(tool_use_id: str, result: Mapping[str, Any]) -> ToolResultBlockParam:
    return {
        "type": "tool_result",
        "tool_use_id": tool_use_id,
        "content": to_text(result),
        "is_error": not result["ok"],
    }


def _text_or_raise(result: Mapping[str, Any]) -> str:
    if not result["ok"]:
        raise ToolError(to_text(result))
    return to_text(result)
