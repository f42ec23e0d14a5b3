"""What becomes of functions of the application that raise, or return something else than they should."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from conftest import MakeBinary

from test_host import QUESTION, ask
from test_hostile import SOURCE
from tgp import TGP, TGPError


def test_bug_the_traceback_of_a_host_tool_was_lost(fake: MakeBinary, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise LookupError("no such mail box")

    def refused() -> None:
        raise TGPError("EPERMISSION", "not yours")

    def approve(_request: object) -> bool:
        raise OSError("no terminal")

    logger = logging.getLogger("shop.host")
    tools: dict[str, dict[str, Any]] = {"mail": {"broken": broken, "refused": refused}}
    with TGP(binary=fake("serve"), host_tools=tools, approve=approve, logger=logger) as kernel:
        for name in ("broken", "refused"):
            ask(kernel, "host/call", {"module": "mail", "name": name, "arguments": {}})
        ask(kernel, "host/approve", QUESTION)
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message for record in records] == [
        "`host:mail/broken` of the application raised LookupError",
        "`approve` of the application raised OSError",
    ]
    assert records[0].name == "shop.host"
    assert "in broken" in (records[0].exc_text or "")


def test_bug_without_a_logger_nothing_told_where_a_host_tool_raised(fake: MakeBinary) -> None:
    program = """
import sys
from tgp import TGP
def broken():
    raise LookupError("no such mail box")
with TGP(binary=sys.argv[1], host_tools={"mail": {"broken": broken}}) as kernel:
    kernel.call("ask", {"method": "host/call", "params": {"module": "mail", "name": "broken", "arguments": {}}})
"""
    run = subprocess.run(
        [sys.executable, "-c", program, fake("serve")],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr.count("LookupError: no such mail box") == 1
    assert "in broken" in run.stderr
