"""The clients with the real kernel that `TGP_BIN` names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from test_hostile import pid_of, start_host, wait_until_gone
from tgp import (
    TGP,
    TOOL_DEFINITIONS,
    Approval,
    ApprovalRequest,
    AsyncTGP,
    DbApiExecutor,
    HostModule,
    KernelExitedError,
    MemoryVfs,
    StatementExecutor,
    TGPError,
)

DOUBLE = """\
/** Doubles a number. */
export default (args: { n: number }): number => args.n * 2;
"""
THROWS = """\
/** Throws. */
export default function throws(): number {
  throw new Error('no luck');
}
"""
ENDLESS = """\
/** Waits. */
export default async function waits(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 9000));
  return 1;
}
"""
INSERTS = """\
/** Inserts a user, and fails if asked to. */
export default async function insert(args: { name: string; fail: boolean }): Promise<number> {
  await tgp.exec_sql('INSERT INTO users (name) VALUES (?)', [args.name]);
  if (args.fail) throw new Error('changed my mind');
  const rows = await tgp.exec_sql('SELECT count(*) AS n FROM users');
  return rows[0].n;
}
"""
MAILS = """\
import { send } from 'host:mail';

/** Sends a mail. */
export default async function mails(args: { to: string }): Promise<unknown> {
  return send({ to: args.to });
}
"""


def write(kernel: TGP, path: str, content: str) -> None:
    kernel.call("write_file", {"path": path, "content": content})


def test_from_the_boot_to_a_forged_tool(project: Path) -> None:
    with TGP(project) as kernel:
        info = kernel.boot()
        assert Path(info["project"]).resolve() == project.resolve()
        assert {tool["name"] for tool in kernel.tools()} >= {"write_file", "exec_tool", "exec_sql"}
        assert "exec_tool" in kernel.system_prompt()
        preview = kernel.call("write_file", {"path": "tools/double.ts", "content": DOUBLE}, dry_run=True)
        assert preview
        with pytest.raises(TGPError, match="ENOTFOUND"):
            kernel.exec("tools/double.ts", {"n": 21})
        write(kernel, "tools/double.ts", DOUBLE)
        assert kernel.exec("tools/double.ts", {"n": 21}) == 42
        with pytest.raises(TGPError) as raised:
            kernel.exec("tools/double.ts", {"n": "x"})
        assert raised.value.code == "EVALIDATION"


def test_an_exception_of_a_tool_has_its_place(project: Path) -> None:
    with TGP(project) as kernel:
        write(kernel, "tools/throws.ts", THROWS)
        with pytest.raises(TGPError) as raised:
            kernel.exec("tools/throws.ts")
    error = raised.value
    assert (error.code, error.message) == ("ERUNTIME", "no luck")
    assert error.location is not None
    assert error.location.file.endswith("tools/throws.ts")
    assert error.location.line == 3


def test_the_async_client_and_a_cancelled_call(project: Path) -> None:
    async def main() -> None:
        async with AsyncTGP(project) as kernel:
            await kernel.call("write_file", {"path": "tools/waits.ts", "content": ENDLESS})
            await kernel.call("write_file", {"path": "tools/double.ts", "content": DOUBLE})
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(kernel.exec("tools/waits.ts"), 0.5)
            results = await asyncio.gather(*(kernel.exec("tools/double.ts", {"n": n}) for n in range(20)))
            assert results == [n * 2 for n in range(20)]

    asyncio.run(main())


def test_sql_of_a_run_is_one_transaction(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    with TGP(project, sql=DbApiExecutor(lambda: sqlite3.connect(path), "sqlite")) as kernel:
        write(kernel, "tools/insert.ts", INSERTS)
        assert kernel.exec("tools/insert.ts", {"name": "Ann", "fail": False}) == 1
        with pytest.raises(TGPError, match="changed my mind"):
            kernel.exec("tools/insert.ts", {"name": "Bob", "fail": True})
        data = kernel.call("exec_sql", {"sql": "SELECT name FROM users WHERE name <> ?", "params": ["x"]})
        assert data["rows"] == [{"name": "Ann"}]
        with pytest.raises(TGPError) as raised:
            kernel.call("exec_sql", {"sql": "SELECT * FROM no_table"})
        assert raised.value.code == "ESQL"
        assert "no such table" in raised.value.message
        # A bug: an error of an executor had no next step.
        assert raised.value.help is not None and "correct the statement" in raised.value.help
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM users").fetchall() == [("Ann",)]


def test_sql_without_transactions(project: Path) -> None:
    statements: list[str] = []

    def run(sql: str, _parameters: Any) -> list[dict[str, Any]]:
        statements.append(sql)
        return [{"one": 1}]

    with TGP(project, sql=StatementExecutor(run, "sqlite")) as kernel:
        assert kernel.call("exec_sql", {"sql": "SELECT 1 AS one"})["rows"] == [{"one": 1}]
    assert statements == ["SELECT 1 AS one"]


def test_host_tools(project: Path) -> None:
    mail = HostModule("mail")
    sent: list[str] = []

    @mail.tool(effect="network")
    def send(to: str) -> dict[str, Any]:
        """Sends a mail."""
        if to == "nobody":
            raise LookupError("no such person")
        sent.append(to)
        return {"sent": len(sent)}

    with TGP(project, host_tools=[mail]) as kernel:
        write(kernel, "tools/mails.ts", MAILS)
        assert kernel.exec("tools/mails.ts", {"to": "ann"}) == {"sent": 1}
        with pytest.raises(TGPError, match="no such person"):
            kernel.exec("tools/mails.ts", {"to": "nobody"})
    assert sent == ["ann"]


def test_approvals(project: Path) -> None:
    questions: list[ApprovalRequest] = []
    answers: Iterator[bool | Approval] = iter([Approval(False, reason="not today"), True])

    def approve(request: ApprovalRequest) -> bool | Approval:
        questions.append(request)
        return next(answers)

    with TGP(project, approve=approve, consent="effects") as kernel:
        with pytest.raises(TGPError) as raised:
            write(kernel, "tools/double.ts", DOUBLE)
        assert raised.value.code == "EAPPROVAL"
        assert "not today" in json.dumps(raised.value.to_dict())
        write(kernel, "tools/double.ts", DOUBLE)
        assert kernel.call("read_file", {"path": "tools/double.ts"})
    assert [question.tool for question in questions] == ["write_file", "write_file"]
    assert questions[0].effect == "write"
    assert len(questions[0].hash) == 64


def test_the_files_of_the_host(project: Path) -> None:
    files = MemoryVfs()
    with TGP(project, files=files) as kernel:
        write(kernel, "tools/double.ts", DOUBLE)
        assert kernel.exec("tools/double.ts", {"n": 4}) == 8
    assert files.files()["tools/double.ts"].decode() == DOUBLE


def test_a_session(project: Path) -> None:
    script = [
        [{"type": "tool_call", "toolName": "list_files", "callId": "1", "arguments": {}}],
        [{"type": "text", "value": "There is nothing."}],
    ]
    (project / "model.json").write_text(json.dumps(script))
    with TGP(project) as kernel:
        run = kernel.run(task="look around", provider=f"script:{project / 'model.json'}")
        events = list(run)
        assert any(event.get("type") == "tool_call" for event in events)
        assert "There is nothing." in json.dumps(events)
        assert run.summary


def test_a_killed_kernel(project: Path) -> None:
    with TGP(project) as kernel:
        kernel.boot()
        pid = pid_of(kernel)
        os.kill(pid, signal.SIGKILL)
        wait_until_gone(pid)
        with contextlib.suppress(KernelExitedError):
            # The client may not have noticed yet.
            kernel.tools()
        assert kernel.tools(), "a call starts another"
        assert pid_of(kernel) != pid


def test_nothing_is_left_of_a_killed_host(project: Path, binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    host, pid = start_host(binary, "time.sleep(600)")
    host.kill()
    host.communicate()
    wait_until_gone(pid)


def test_a_folder_without_a_project(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TGP_HOME", str(tmp_path / "home2"))
    empty = tmp_path / "empty"
    empty.mkdir()
    with TGP(empty) as kernel, pytest.raises(TGPError) as raised:
        kernel.boot()
    assert raised.value.code == "ECONFIG"
    assert raised.value.help is not None


def test_the_definitions_are_those_of_the_kernel(project: Path) -> None:
    with TGP(project) as kernel:
        live = {tool["name"]: tool for tool in kernel.tools()}
    for tool in TOOL_DEFINITIONS:
        assert live[tool["name"]] == tool


def test_a_session_that_is_left_is_cancelled(project: Path) -> None:
    wait = {"path": "tools/waits.ts"}
    script = [[{"type": "tool_call", "toolName": "exec_tool", "callId": "1", "arguments": wait}]]
    (project / "model.json").write_text(json.dumps(script))

    async def main() -> None:
        async with AsyncTGP(project) as kernel:
            await kernel.call("write_file", {"path": "tools/waits.ts", "content": ENDLESS})
            async with kernel.run(task="wait", provider=f"script:{project / 'model.json'}") as run:
                async for _ in run:
                    break
            assert await kernel.tools()

    asyncio.run(main())
