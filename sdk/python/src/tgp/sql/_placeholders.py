"""Placeholders for drivers of the style ``%s`` (psycopg2, PyMySQL, mysqlclient).

The kernel writes ``?`` or ``$1``. This is the least that finds them: it skips strings, quoted names and comments. What a statement
does was decided by the kernel before; a mistake here makes the driver refuse the statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_POSTGRES = re.compile(
    r"""
      (?P<skip>
        \b[eE]'(?:[^'\\]|\\.|'')*'                                # string with backslashes
      | '(?:[^']|'')*'                                            # string
      | "(?:[^"]|"")*"                                            # quoted name
      | (?<![\w$])\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$   # dollar quotes
      | --[^\n]*
      | [A-Za-z_][\w$]*                                           # a name may contain $1
      )
    | (?P<open>/\*)
    | \$(?P<number>\d+)
    """,
    re.VERBOSE | re.DOTALL,
)
_MYSQL = re.compile(
    r"""
      (?P<skip>
        '(?:[^'\\]|\\.|'')*'
      | "(?:[^"\\]|\\.|"")*"
      | `(?:[^`]|``)*`
      | --[\s][^\n]* | --\Z
      | \#[^\n]*
      )
    | (?P<open>/\*)
    | (?P<number>\?)
    """,
    re.VERBOSE | re.DOTALL,
)


def to_format(sql: str, parameters: Sequence[Any], dialect: str) -> tuple[str, list[Any]]:
    """The statement with ``%s`` and its parameters in the order of use. Every other ``%`` is doubled."""
    pattern = _POSTGRES if dialect == "postgresql" else _MYSQL
    pieces: list[str] = []
    values: list[Any] = []
    position = 0
    while match := pattern.search(sql, position):
        pieces.append(sql[position : match.start()].replace("%", "%%"))
        position = match.end()
        number = match["number"]
        if match["open"]:
            position = _comment_end(sql, position, nested=dialect == "postgresql")
            pieces.append(sql[match.start() : position].replace("%", "%%"))
        elif number is None:
            pieces.append(match[0].replace("%", "%%"))
        else:
            index = len(values) if number == "?" else int(number) - 1
            if not 0 <= index < len(parameters):
                raise ValueError(f"the statement has the placeholder {match[0]}, but {len(parameters)} parameters")
            pieces.append("%s")
            values.append(parameters[index])
    pieces.append(sql[position:].replace("%", "%%"))
    return "".join(pieces), values


def _comment_end(sql: str, position: int, *, nested: bool) -> int:
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(sql, position):
        if match[0] == "*/":
            depth -= 1
        elif nested:
            depth += 1
        if depth == 0:
            return match.end()
    return len(sql)
