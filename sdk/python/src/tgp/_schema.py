"""JSON Schema of a function's annotations: as much as forged code needs for its types, anything else is `{}`."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
}
_LISTS: tuple[Any, ...] = (list, Sequence)
_DICTS: tuple[Any, ...] = (dict, Mapping)


def schema_of(annotation: Any) -> dict[str, Any]:
    """The schema of a type; ``{}``, which accepts everything, for a type without a schema."""
    if annotation in _SIMPLE:
        return dict(_SIMPLE[annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return schema_of(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Union or origin is types.UnionType:
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if annotation in _LISTS or origin in _LISTS:
        return {"type": "array", "items": schema_of(arguments[0]) if arguments else {}}
    if annotation in _DICTS or origin in _DICTS:
        return {"type": "object", "additionalProperties": schema_of(arguments[1]) if arguments else {}}
    if typing.is_typeddict(annotation):
        fields = _hints(annotation)
        return {
            "type": "object",
            "properties": {name: schema_of(kind) for name, kind in fields.items()},
            "required": sorted(annotation.__required_keys__),
        }
    return {}


def input_schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of the object whose fields are the keyword arguments of ``function``."""
    hints = _hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    more: bool | dict[str, Any] = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = schema_of(hints[name]) if name in hints else {}
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            properties[name] = schema_of(hints.get(name, Any))
            if parameter.default is parameter.empty:
                required.append(name)
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            raise ValueError(f"`{name}` is a positional-only parameter: a host tool gets keyword arguments")
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def output_schema_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    hints = _hints(function)
    return (schema_of(hints["return"]) or None) if "return" in hints else None


def _hints(subject: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(subject)
    except Exception:
        # A name that exists only for type checkers.
        return {}
