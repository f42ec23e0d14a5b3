"""The programs of `docs/python.md` print what the page says, with models on the loopback. The page of the API is current."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import tgp

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
GENERATOR = Path(__file__).resolve().parent.parent / "scripts" / "generate_api.py"
SOURCE = Path(tgp.__file__).parent.parent
TEXT = PAGE.read_text() if PAGE.exists() else ""
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
PROGRAMS = re.compile(r"```python\n(# (\S+\.py)(?:, after (\S+\.py))?\n.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
FOUND: dict[str, tuple[str, str, str]] = {
    name: (source, before, output) for source, name, before, output in PROGRAMS.findall(TEXT)
}
OF_A_MODEL = "There are 3.\n"
"""What programs without an output on the page print: the answer of the model."""


class Models(BaseHTTPRequestHandler):
    """Servers of OpenAI and Anthropic that always say the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        text = OF_A_MODEL.strip()
        answers: dict[str, dict[str, Any]] = {
            "/responses": {
                "id": "r",
                "object": "response",
                "created_at": 0,
                "model": "gpt-5",
                "status": "completed",
                "output": [
                    {
                        "type": "message",
                        "id": "m",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": text, "annotations": []}],
                    }
                ],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            },
            "/chat/completions": {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": "gpt-5",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            },
            "/v1/messages": {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "fake",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        }
        body = json.dumps(answers[self.path.split("?")[0]]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_every_block_of_the_page_is_a_program() -> None:
    assert len(FOUND) == len(BLOCKS) == 11
    for block in BLOCKS:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module == "tgp":
                assert {name.name for name in node.names} <= set(tgp.__all__)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FOUND)
def test_bug_a_program_of_the_page_did_not_run_alone(binary: str, tmp_path: Path, models: str, name: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    env = {
        **os.environ,
        "TGP_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(SOURCE),
        "OPENAI_BASE_URL": models,
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_BASE_URL": models,
        "ANTHROPIC_API_KEY": "none",
    }
    subprocess.run([binary, "init", "--json"], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    source, before, output = FOUND[name]
    # Twice: what a program leaves behind does not keep it from running again.
    programs = [(FOUND[before][0], FOUND[before][2])] if before else []
    for program, expected in [*programs, (source, output), (source, output)]:
        # Not a file in the project: a module of a library may have its name.
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert (run.stdout, run.returncode) == (expected or OF_A_MODEL, 0), run.stderr


def test_the_public_names_exist() -> None:
    for name in tgp.__all__:
        assert getattr(tgp, name) is not None


def test_the_page_of_the_api_is_that_of_the_sources() -> None:
    run = subprocess.run([sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
