"""The kernel's tools for the OpenAI Agents SDK (``pip install openai-agents``).

>>> agent = Agent(name="shop", instructions=instructions(kernel), tools=tools(kernel))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from .._core import KernelBase, select
from ._common import acall, invalid_arguments, parse_arguments, prompt, to_text


def tools(kernel: KernelBase, names: Iterable[str] | None = None) -> list[FunctionTool]:
    """The tools with these names, all of them without names. A failed call is a result that the model reads."""
    return [_tool(kernel, definition) for definition in select(names)]


def instructions(kernel: KernelBase) -> Callable[[Any, Any], Awaitable[str]]:
    """Instructions for an ``Agent``: the kernel's system prompt with the state of the project at each run."""

    async def live(_context: Any, _agent: Any) -> str:
        return await prompt(kernel)

    return live


def _tool(kernel: KernelBase, definition: Any) -> FunctionTool:
    name: str = definition["name"]

    async def invoke(_context: ToolContext[Any], text: str) -> str:
        arguments = parse_arguments(text)
        return to_text(invalid_arguments(name) if arguments is None else await acall(kernel, name, arguments))

    return FunctionTool(
        name=name,
        description=definition["description"],
        params_json_schema=dict(definition["inputSchema"]),
        on_invoke_tool=invoke,
        # The kernel's schemas have optional fields, which the strict mode of the API does not.
        strict_json_schema=False,
    )
