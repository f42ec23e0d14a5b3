"""The kernel's tools for pydantic-ai (``pip install pydantic-ai-slim``).

>>> agent = Agent(model, toolsets=[toolset(kernel)])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from .._core import KernelBase, select
from ._common import acall, prompt


def tools(kernel: KernelBase, names: Iterable[str] | None = None) -> list[Tool[Any]]:
    """The tools with these names, all of them without names. A failed call is a result that the model reads."""
    return [_tool(kernel, definition) for definition in select(names)]


def toolset(
    kernel: KernelBase, names: Iterable[str] | None = None, *, instructions: bool = True
) -> FunctionToolset[Any]:
    """The tools as a toolset. With ``instructions`` it adds the kernel's system prompt with the state of the project."""

    async def live(_context: RunContext[Any]) -> str:
        return await prompt(kernel)

    return FunctionToolset[Any](tools(kernel, names), id="tgp", instructions=live if instructions else None)


def _tool(kernel: KernelBase, definition: Any) -> Tool[Any]:
    name: str = definition["name"]

    async def invoke(**arguments: Any) -> dict[str, Any]:
        return await acall(kernel, name, arguments)

    tool: Tool[Any] = Tool.from_schema(invoke, name, definition["description"], dict(definition["inputSchema"]))
    return tool
