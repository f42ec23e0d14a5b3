"""Narrowing of values that came as JSON or from a driver, and what has no JSON form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

_MAX_DEPTH = 100
"""The kernel takes no deeper nesting."""
_MAX_PATH_CHARACTERS = 200


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, (list, tuple, set, frozenset))


def to_json(value: Any) -> bytes:
    """The JSON of a value.

    Raises:
        TypeError, ValueError, RecursionError: It has none.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


NOT_JSON = (TypeError, ValueError, RecursionError)
"""What `to_json` raises."""


def find_not_json(value: Any, path: str) -> tuple[str, str, str] | None:
    """The path of the first value without a JSON form, what it is, and what to pass instead."""
    return _find(value, path, [])


def _find(value: Any, path: str, parents: list[int]) -> tuple[str, str, str] | None:
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, str):
        return None if _is_text(value) else (_short(path), "a string with half a character", "pass text that is UTF-8")
    if isinstance(value, float):
        return None if math.isfinite(value) else (_short(path), str(value), "pass a finite number, None or a string")
    if id(value) in parents:
        return _short(path), "a circular reference", "pass data without references to the objects around it"
    if len(parents) >= _MAX_DEPTH:
        return _short(path), f"nested more than {_MAX_DEPTH} levels deep", "pass a flatter value"
    inner: list[tuple[str, Any]]
    if isinstance(value, dict):
        items: dict[Any, Any] = value
        for key in items:
            if not isinstance(key, (str, int, float, bool)) and key is not None:
                return _short(path), f"a dict with a key of the type {type(key).__name__}", "use strings as keys"
        inner = [(_member(path, key), item) for key, item in items.items()]
    elif isinstance(value, (list, tuple)):
        elements: list[Any] | tuple[Any, ...] = value
        inner = [(f"{path}[{index}]", element) for index, element in enumerate(elements)]
    else:
        return _short(path), _kind(value), _instead(value)
    parents.append(id(value))
    for inner_path, element in inner:
        found = _find(element, inner_path, parents)
        if found is not None:
            return found
    parents.pop()
    return None


def kind_of(value: object) -> str:
    """What a value is, for a message."""
    return "None" if value is None else _kind(value)


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _instead(value: object) -> str:
    if isinstance(value, (set, frozenset)):
        return "pass `list(value)`"
    if isinstance(value, Mapping):
        return "pass `dict(value)`"
    if isinstance(value, (bytes, bytearray)):
        return "pass text, such as `base64.b64encode(value).decode()`"
    if hasattr(value, "isoformat"):
        return "pass `value.isoformat()`"
    return "pass None, booleans, numbers, strings, lists and dicts of them"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _member(path: str, key: object) -> str:
    text = str(key)
    return f"{path}.{text}" if re.fullmatch(r"[A-Za-z_]\w*", text) else f"{path}[{json.dumps(text)}]"


def _short(path: str) -> str:
    return path if len(path) <= _MAX_PATH_CHARACTERS else f"{path[:_MAX_PATH_CHARACTERS]}…"
