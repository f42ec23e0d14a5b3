"""Functions of the application that forged tools import from ``host:MODULE``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ._json import find_not_json, kind_of
from ._schema import input_schema_of, output_schema_of
from ._suggest import suggestion

if TYPE_CHECKING:
    from ._protocol import HostEffect
    from ._protocol import HostTool as WireHostTool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MODULE = re.compile(r"[a-z][a-z0-9-]{0,39}")
_WORDS = (
    "arguments async await break case catch class const continue debugger default delete do else enum eval export extends "
    "false finally for function if implements import in instanceof interface let new null package private protected public "
    "return static super switch then this throw true try typeof undefined var void while with yield"
)
_RESERVED = frozenset(_WORDS.split())
"""Names that TypeScript cannot export. The kernel has the same list."""
_TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"]
_EFFECTS = ["read", "write", "execute", "network"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class HostTool:
    """A function that forged tools can call. It gets the fields of its one argument as keyword arguments.

    The function may be a coroutine function. Without ``input_schema`` the schema is derived from the annotations; without
    ``description`` the first paragraph of the docstring is taken. ``effect`` is what the gates decide by.
    """

    function: Callable[..., Any]
    description: str | None = None
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    effect: HostEffect = "execute"

    def to_wire(self, module: str, name: str) -> WireHostTool:
        wire: WireHostTool = {
            "module": module,
            "name": name,
            "description": self.description if self.description is not None else _summary(self.function),
            "inputSchema": dict(self.input_schema or input_schema_of(self.function)),
            "effect": self.effect,
        }
        output = self.output_schema or output_schema_of(self.function)
        if output is not None:
            wire["outputSchema"] = dict(output)
        return wire


@dataclass
class HostModule:
    """The functions of one module, collected with a decorator.

    >>> mail = HostModule("mail")
    >>> @mail.tool(effect="network")
    ... def send(to: str, subject: str) -> bool:
    ...     "Sends a mail."
    ...     return True
    """

    name: str
    tools: dict[str, HostTool] = field(default_factory=dict[str, HostTool])

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        effect: HostEffect = "execute",
    ) -> Callable[[Function], Function]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        effect: HostEffect = "execute",
    ) -> Any:
        """Adds a function to the module and returns it unchanged."""

        def add(function: Function) -> Function:
            key = name or str(getattr(function, "__name__", ""))
            if key in self.tools:
                raise ValueError(f"the module `{self.name}` already has a tool `{key}`")
            self.tools[key] = HostTool(function, description, input_schema, output_schema, effect)
            return function

        return add if function is None else add(function)


HostTools = Mapping[str, Mapping[str, HostTool | Callable[..., Any]]] | Iterable[HostModule]
"""``{"mail": {"send": HostTool(send)}}`` (a plain function is taken too), or modules."""


def collect(tools: HostTools | None) -> dict[tuple[str, str], HostTool]:
    """All functions by module and name. Names are checked here, so that a mistake is reported before the boot."""
    found: dict[tuple[str, str], HostTool] = {}
    if tools is None:
        return found
    for module, functions in _modules(tools):
        if not isinstance(module, str) or not _MODULE.fullmatch(module):
            raise ValueError(
                f"invalid name `{module}` of a host module: "
                "use 1 to 40 lower-case letters, digits and `-`, beginning with a letter"
            )
        if not isinstance(functions, Mapping):
            raise TypeError(f"`host_tools[{module!r}]` is {kind_of(functions)}, expected functions by name")
        if not functions:
            raise ValueError(f"`host:{module}` has no functions: add one, or leave the module out")
        for name, function in functions.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
                raise ValueError(
                    f"invalid name `{name}` of a function in `host:{module}`: "
                    "use letters, digits and `_`, and not a word of TypeScript"
                )
            if (module, name) in found:
                raise ValueError(f"the host tool `{module}/{name}` is defined twice")
            tool = function if isinstance(function, HostTool) else HostTool(function)
            _check(tool, module, name)
            found[module, name] = tool
    return found


def _check(tool: HostTool, module: str, name: str) -> None:
    """What cannot be called or declared is reported before the boot."""
    shown = f"host:{module}/{name}"
    if not callable(tool.function):
        raise TypeError(f"`{shown}` is {kind_of(tool.function)}, expected a function or a HostTool")
    if tool.effect not in _EFFECTS:
        raise ValueError(f"unknown effect `{tool.effect}` of `{shown}`: {suggestion(str(tool.effect), _EFFECTS)}")
    for field_name in ("input_schema", "output_schema"):
        schema: object = getattr(tool, field_name)
        if schema is not None and not isinstance(schema, Mapping):
            raise TypeError(f"`{field_name}` of `{shown}` is {kind_of(schema)}, expected a JSON Schema, a dict")
    try:
        declared = tool.to_wire(module, name)
    except ValueError as error:
        raise ValueError(f"`{shown}` cannot be declared: {error}") from None
    for key, value in declared.items():
        not_json = find_not_json(value, key)
        if not_json is not None:
            path, what, instead = not_json
            raise ValueError(f"the value at `{path}` of `{shown}` is {what}, which has no JSON form: {instead}")
    _check_type("input_schema", shown, tool.input_schema or {})
    _check_type("output_schema", shown, tool.output_schema or {})


def _check_type(field_name: str, shown: str, schema: Mapping[str, Any]) -> None:
    if "type" not in schema:
        return
    kind = schema["type"]
    if field_name == "input_schema" and kind != "object":
        raise ValueError(f"`input_schema` of `{shown}` has the type `{kind}`: expected `object`, whose fields are the arguments")
    for one in kind if isinstance(kind, list) else [kind]:
        if one not in _TYPES:
            raise ValueError(f"unknown type `{one}` in `{field_name}` of `{shown}`: {suggestion(str(one), _TYPES)}")


def _modules(tools: HostTools) -> Iterable[tuple[str, Mapping[str, HostTool | Callable[..., Any]]]]:
    if isinstance(tools, Mapping):
        return cast("Mapping[str, Mapping[str, HostTool | Callable[..., Any]]]", tools).items()
    if isinstance(tools, HostModule):
        raise TypeError("`host_tools` is a HostModule, expected a list of them: `host_tools=[module]`")
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        raise TypeError(f"`host_tools` is {kind_of(tools)}, expected functions by module and name, or a list of HostModule")
    modules: list[tuple[str, Mapping[str, HostTool | Callable[..., Any]]]] = []
    for module in tools:
        if not isinstance(module, HostModule):
            raise TypeError(f"`host_tools` has {kind_of(module)}, expected HostModule")
        modules.append((module.name, module.tools))
    return modules


def _summary(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n", 1)[0].split())
