"""The examples of `docs/python.md`: all of them are Python, and the first one runs. The page of the API is current."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tgp

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
GENERATOR = Path(__file__).resolve().parent.parent / "scripts" / "generate_api.py"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if PAGE.exists() else []


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_python_and_imports_what_exists(example: str) -> None:
    tree = compile(example, "example", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tgp":
            for name in node.names:
                assert name.name in tgp.__all__


def test_the_first_example(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(EXAMPLES[0], {})
    assert output.getvalue() == "42\n"


def test_the_public_names_exist() -> None:
    for name in tgp.__all__:
        assert getattr(tgp, name) is not None


def test_the_page_of_the_api_is_that_of_the_sources() -> None:
    run = subprocess.run([sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
