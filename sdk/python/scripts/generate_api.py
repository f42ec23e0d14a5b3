"""Writes `docs/python-api.md` from the sources of the client: signatures and docstrings of what it exports.

    python sdk/python/scripts/generate_api.py [--check]

With `--check` nothing is written; the exit code is 1 when the page is out of date.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _generated import write_or_check

PYTHON = Path(__file__).resolve().parent.parent
SOURCE = PYTHON / "src" / "tgp"
TARGET = PYTHON.parent.parent / "docs" / "python-api.md"

HEADER = """\
# API of `tgp` for Python

Generated from the sources of the package by `sdk/python/scripts/generate_api.py`. [Use it from Python](python.md) explains
how the parts work together.
"""
PARTS = """\
## Parts of these types

These have no public name of their own.
"""
ADAPTERS = ("openai_agents", "pydantic_ai", "anthropic")
# Values, of which only name and type are shown: what they say is in the program's own documentation.
VALUES = {
    "SYSTEM_PROMPT": ("str", "The part of the system prompt that is the same for every project."),
    "TOOL_DEFINITIONS": ("list[ToolInfo]", "The tools of the kernel, as they were when this version was made."),
    "__version__": ("str", "The version of the package."),
}
# The client's own side of the connection.
INTERNAL = {"known_options", "to_wire"}

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Found:
    """A definition with its docstring, and the module that it is in."""

    module: Module
    node: Definition
    doc: str


class Module:
    """A source file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text().splitlines()
        self.body = ast.parse(path.read_text()).body
        self.defined = {name: Found(self, node, doc) for name, node, doc in definitions(self.body)}

    def text(self, first: int, last: int) -> str:
        """Lines, counted from 1, without the indentation of the first."""
        lines = self.lines[first - 1 : last]
        indentation = len(lines[0]) - len(lines[0].lstrip())
        return "\n".join(re.sub(r"  # noqa.*", "", line[indentation:]) for line in lines)


def definitions(body: list[ast.stmt]) -> Iterator[tuple[str, Definition, str]]:
    """What a module or a class defines. The docstring of a value is the string after it."""
    for index, node in enumerate(body):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node, ast.get_docstring(node) or ""
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                yield target.id, node, string_of(body[index + 1]) if index + 1 < len(body) else ""


def string_of(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return inspect.cleandoc(node.value.value)
    return ""


MODULES = {path: Module(path) for path in sorted(SOURCE.rglob("*.py"))}
DEFINED = {name: found for module in MODULES.values() for name, found in module.defined.items()}


def exported() -> list[str]:
    """`__all__` of the package, without its modules."""
    values = MODULES[SOURCE / "__init__.py"].defined["__all__"].node
    assert isinstance(values, ast.Assign)
    names: list[str] = ast.literal_eval(values.value)
    return [name for name in names if name in DEFINED and name not in VALUES]


def signature(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The source of a function up to its body, with those of its decorators that are not internal."""
    shown = [decorator for decorator in node.decorator_list if ast.unparse(decorator) not in INTERNAL]
    first = min([node.lineno, *(decorator.lineno for decorator in shown)])
    body = node.body[0]
    text = module.text(first, body.lineno)
    # The body begins on the line of the colon, or on one of its own.
    tail = len(module.lines[body.lineno - 1]) - body.col_offset
    return re.sub(r":\s*(#.*\s*)*$", "", text[: len(text) - tail])


def is_public(name: str) -> bool:
    return name == "__init__" or not (name.startswith("_") or name in INTERNAL)


def class_text(found: Found) -> tuple[str, list[tuple[str, str]]]:
    """The head of a class with its fields, and its methods with their docstrings. Bases without a public name count."""
    module, node = found.module, found.node
    assert isinstance(node, ast.ClassDef)
    bases = [ast.unparse(base) for base in node.bases]
    fields: list[str] = []
    methods: list[tuple[str, str]] = []
    for base in bases:
        if base == "KernelBase":
            methods += [pair for pair in class_text(DEFINED[base])[1] if is_public(pair[0])]
            bases = [name for name in bases if name != base]
    overloaded: list[str] = []
    for name, member, doc in definitions(node.body):
        if not is_public(name):
            continue
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            text = signature(module, member)
            if name == "__init__" and "EventBuffer" in text:
                # The kernel makes it, not the application.
                continue
            if text.startswith("@overload"):
                overloaded.append(text.split("\n", 1)[1])
                continue
            if overloaded:
                text, overloaded = "\n".join(overloaded), []
            methods.append((text, doc))
        elif not isinstance(member, ast.ClassDef):
            comment = "".join(f"# {line}\n" for line in doc.replace("``", "`").splitlines() if line)
            fields.append(comment + module.text(member.lineno, member.end_lineno or member.lineno))
    head = f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
    decorators = "".join(f"@{ast.unparse(decorator)}\n" for decorator in node.decorator_list)
    body = "\n".join("    " + line for text in fields for line in text.splitlines())
    return f"{decorators}{head}" + (f":\n{body}" if fields else ""), methods


def block(code: str) -> str:
    return f"```python\n{code}\n```\n"


def prose(doc: str) -> str:
    """A docstring as Markdown: one kind of code mark, examples in blocks, parameters and exceptions as lists."""
    paragraphs: list[str] = []
    for paragraph in doc.replace("``", "`").split("\n\n"):
        title, _, rest = paragraph.partition("\n")
        if paragraph.startswith(">>>"):
            paragraphs.append(block(paragraph).rstrip())
        elif title in ("Parameters:", "Raises:"):
            items = re.findall(r"^ +(\w+): (.*)$", rest, re.MULTILINE)
            paragraphs.append("\n".join([title, "", *(f"- `{name}`: {text}" for name, text in items)]))
        elif paragraph:
            paragraphs.append(paragraph)
    return "".join(f"{paragraph}\n\n" for paragraph in paragraphs)


def entry(name: str, found: Found) -> str:
    text = f"### `{name}`\n\n"
    if isinstance(found.node, ast.ClassDef):
        head, methods = class_text(found)
        text += prose(found.doc) + block(head)
        for code, doc in methods:
            own = doc or (DEFINED["KernelBase"].doc.split("\n\n", 1)[1] if "directory:" in code else "")
            text += f"\n{block(code)}" + (f"\n{prose(own).rstrip()}\n" if own else "")
        return text
    if isinstance(found.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return text + prose(found.doc) + block(signature(found.module, found.node))
    return text + prose(found.doc) + block(found.module.text(found.node.lineno, found.node.end_lineno or 0))


def parts_of(names: list[str]) -> list[str]:
    """The types that the exported ones are made of, and those of these in turn."""
    parts: list[str] = []
    waiting = list(names)
    while waiting:
        text = entry(waiting[-1], DEFINED[waiting.pop()])
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            for name in re.findall(r"\b[A-Z]\w+\b", re.sub(r"#.*|\"[^\"]*\"", "", code)):
                if name in DEFINED and name not in names and name not in parts:
                    parts.append(name)
                    waiting.append(name)
    return sorted(parts, key=str.lower)


def page() -> str:
    names = sorted(exported(), key=str.lower)
    text = HEADER
    kinds: dict[str, type[ast.stmt]] = {"Classes": ast.ClassDef, "Functions": ast.FunctionDef}
    for title, kind in kinds.items():
        entries = [entry(name, DEFINED[name]) for name in names if isinstance(DEFINED[name].node, kind)]
        text += f"\n## {title}\n" + "".join(f"\n{part}" for part in entries) if entries else ""
    text += "\n## Values\n"
    for name, (kind_name, doc) in VALUES.items():
        text += f"\n### `{name}`\n\n{doc}\n\n{block(f'{name}: {kind_name}')}"
    for adapter in ADAPTERS:
        module = MODULES[SOURCE / "adapters" / f"{adapter}.py"]
        text += f"\n## `tgp.adapters.{adapter}`\n"
        for name, found in module.defined.items():
            if is_public(name) and isinstance(found.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                text += f"\n{entry(name, found)}"
    text += f"\n{PARTS}" + "".join(f"\n{entry(name, DEFINED[name])}" for name in parts_of(names))
    return text


def main() -> int:
    return write_or_check(TARGET, page())


if __name__ == "__main__":
    sys.exit(main())
