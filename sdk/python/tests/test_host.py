"""What the application does for the kernel: each request of the protocol, asked by a scripted kernel."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeBinary

from tgp import (
    TGP,
    Approval,
    ApprovalRequest,
    AsyncTGP,
    DirectoryVfs,
    FileChange,
    FileEntry,
    HostModule,
    HostTool,
    MemoryVfs,
    TGPError,
    Vfs,
)

QUESTION: dict[str, Any] = {
    "tool": "exec_sql",
    "arguments": {"sql": "DELETE FROM users"},
    "effect": "write",
    "targets": [{"kind": "sql", "verbs": ["delete"]}],
    "reasons": ["rows are precious"],
    "runsLater": False,
    "preview": {"changed": 3},
    "hash": "abc",
}


def ask(kernel: TGP, method: str, params: dict[str, Any]) -> Any:
    answer: dict[str, Any] = kernel.call("ask", {"method": method, "params": params})
    return answer.get("result", answer.get("error"))


@pytest.mark.parametrize(
    ("answer", "wire"),
    [
        (True, {"approved": True}),
        (False, {"approved": False}),
        (Approval(True, by="ann"), {"approved": True, "by": "ann"}),
        (Approval(False, reason="not today"), {"approved": False, "reason": "not today"}),
    ],
)
def test_an_approval(fake: MakeBinary, answer: bool | Approval, wire: dict[str, Any]) -> None:
    questions: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool | Approval:
        questions.append(request)
        return answer

    with TGP(binary=fake("serve"), approve=approve) as kernel:
        assert kernel.call("params")["host"]["approves"] is True
        assert ask(kernel, "host/approve", QUESTION) == wire
    (question,) = questions
    assert (question.tool, question.effect, question.hash) == ("exec_sql", "write", "abc")
    assert question.targets == ({"kind": "sql", "verbs": ["delete"]},)
    assert question.preview == {"changed": 3}


def test_a_truthy_answer_is_no_approval(fake: MakeBinary) -> None:
    def approve(_request: ApprovalRequest) -> Any:
        return "no"

    with TGP(binary=fake("serve"), approve=approve) as kernel:
        assert "expected bool or Approval" in ask(kernel, "host/approve", QUESTION)["message"]


def test_async_callbacks_run_on_the_loop_of_the_application(fake: MakeBinary) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def approve(_request: ApprovalRequest) -> bool:
            await asyncio.sleep(0)
            return asyncio.get_running_loop() is loop

        async with AsyncTGP(binary=fake("serve"), approve=approve) as kernel:
            answer = await kernel.call("ask", {"method": "host/approve", "params": QUESTION})
            assert answer["result"] == {"approved": True}

    asyncio.run(main())


def test_async_callbacks_of_a_program_without_a_loop(fake: MakeBinary) -> None:
    async def approve(_request: ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        return True

    with TGP(binary=fake("serve"), approve=approve) as kernel:
        assert ask(kernel, "host/approve", QUESTION) == {"approved": True}


def test_a_host_is_asked_for_nothing_else(fake: MakeBinary) -> None:
    with TGP(binary=fake("serve")) as kernel:
        for method in ("host/approve", "host/call", "host/sql/begin", "host/files/read", "nothing"):
            assert ask(kernel, method, {})["code"] == -32601


mail = HostModule("mail")


@mail.tool(effect="network")
def send(to: str, subject: str, urgent: bool = False) -> dict[str, Any]:
    """Sends a mail.

    The second paragraph is not for models.
    """
    return {"to": to, "subject": subject, "urgent": urgent}


@mail.tool
async def later(to: str) -> str:
    """Sends a mail later."""
    await asyncio.sleep(0)
    return to


def test_the_declaration_of_a_host_tool(fake: MakeBinary) -> None:
    with TGP(binary=fake("serve"), host_tools=[mail]) as kernel:
        first, second = kernel.call("params")["host"]["tools"]
    assert first == {
        "module": "mail",
        "name": "send",
        "description": "Sends a mail.",
        "effect": "network",
        "inputSchema": {
            "type": "object",
            "properties": {
                "to": {"type": "string"},
                "subject": {"type": "string"},
                "urgent": {"type": "boolean"},
            },
            "required": ["to", "subject"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "additionalProperties": {}},
    }
    assert (second["name"], second["effect"], second["outputSchema"]) == ("later", "execute", {"type": "string"})


def test_host_tools_are_called(fake: MakeBinary) -> None:
    def broken() -> None:
        raise LookupError("no such mail box")

    def refused() -> None:
        raise TGPError("EPERMISSION", "not yours", {"help": "ask for it"})

    def strange() -> object:
        return object()

    tools: dict[str, dict[str, HostTool | Callable[..., Any]]] = {
        "mail": {"send": HostTool(send), "later": later},
        "bad": {"broken": broken, "refused": refused, "strange": strange},
    }
    with TGP(binary=fake("serve"), host_tools=tools) as kernel:

        def call(module: str, name: str, arguments: dict[str, Any]) -> Any:
            return ask(kernel, "host/call", {"module": module, "name": name, "arguments": arguments})

        assert call("mail", "send", {"to": "a", "subject": "b"})["result"]["urgent"] is False
        assert call("mail", "later", {"to": "a"}) == {"result": "a"}
        assert call("bad", "broken", {}) == {"code": -32000, "message": "LookupError: no such mail box"}
        error = call("bad", "refused", {})
        assert error["data"] == {"code": "EPERMISSION", "message": "not yours", "details": {"help": "ask for it"}}
        assert call("bad", "strange", {})["message"] == "the value at `result` is an object, which has no JSON form"
        assert call("mail", "nothing", {})["data"]["code"] == "ENOTFOUND"
        assert "TypeError" in call("mail", "send", {"wrong": 1})["message"]


def test_wrong_names_of_host_tools() -> None:
    with pytest.raises(ValueError, match="invalid name `send-it` of a function in `host:mail`"):
        TGP(host_tools={"mail": {"send-it": send}})
    with pytest.raises(ValueError, match="invalid name `mail/x` of a host module"):
        TGP(host_tools={"mail/x": {"send": send}})
    with pytest.raises(ValueError, match="already has a tool"):
        mail.tool(send)


def test_the_log_arrives_at_the_logger(fake: MakeBinary, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("shop.tgp")
    logger.setLevel(logging.INFO)
    with TGP(binary=fake("log"), logger=logger) as kernel:
        assert kernel.call("params")["host"]["log"] == "info"
    records = [record for record in caplog.records if record.name == "shop.tgp.worker"]
    assert [(record.levelname, record.message) for record in records] == [("WARNING", "100% slow")]


@pytest.fixture(params=["memory", "directory"])
def vfs(request: pytest.FixtureRequest, tmp_path: Path) -> Vfs:
    return MemoryVfs() if request.param == "memory" else DirectoryVfs(tmp_path / "repository")


def test_files(vfs: Vfs) -> None:
    assert vfs.read("tools/a.ts") is None
    assert vfs.entry("tools") is None
    assert vfs.list("") == []
    vfs.apply([FileChange("tools/a.ts", b"a"), FileChange("tools/b/c.ts", b"cc"), FileChange("nothing", None)])
    assert vfs.read("tools/a.ts") == b"a"
    assert vfs.read("tools") is None
    assert vfs.entry("tools") == FileEntry("tools", True)
    assert vfs.entry("tools/b/c.ts") == FileEntry("tools/b/c.ts", False, 2)
    assert list(vfs.list("")) == [
        FileEntry("tools", True),
        FileEntry("tools/a.ts", False, 1),
        FileEntry("tools/b", True),
        FileEntry("tools/b/c.ts", False, 2),
    ]
    assert list(vfs.list("tools/b")) == [FileEntry("tools/b/c.ts", False, 2)]
    assert vfs.list("tools/a.ts") == []
    vfs.apply([FileChange("tools/a.ts", None), FileChange("tools/b/c.ts", b"new")])
    assert vfs.read("tools/a.ts") is None
    assert vfs.read("tools/b/c.ts") == b"new"


def test_changes_of_files_are_all_or_none(vfs: Vfs) -> None:
    vfs.apply([FileChange("a.ts", b"old"), FileChange("gone.ts", b"here")])
    with pytest.raises(TGPError, match="ECONFLICT"):
        vfs.apply(
            [
                FileChange("a.ts", b"new"),
                FileChange("gone.ts", None),
                FileChange("fresh.ts", b"x"),
                FileChange("a.ts/below", b"x"),
            ]
        )
    assert vfs.read("a.ts") == b"old"
    assert vfs.read("gone.ts") == b"here"
    assert vfs.read("fresh.ts") is None
    assert [entry.path for entry in vfs.list("")] == ["a.ts", "gone.ts"]


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a/../../b", "a//b", "./a", "a/", "a\0b", "a\\b"])
def test_paths_that_leave_the_repository(vfs: Vfs, path: str) -> None:
    with pytest.raises(TGPError, match="ESECURITY"):
        vfs.read(path)
    with pytest.raises(TGPError, match="ESECURITY"):
        vfs.apply([FileChange(path, b"x")])


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    root = tmp_path / "repository"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    vfs = DirectoryVfs(root)
    with pytest.raises(TGPError, match="symbolic link"):
        vfs.read("link/secret")
    with pytest.raises(TGPError, match="symbolic link"):
        vfs.apply([FileChange("link/secret", b"y")])
    assert vfs.list("") == []
    assert (tmp_path / "outside" / "secret").read_text() == "x"


def test_files_over_the_protocol(fake: MakeBinary) -> None:
    files = MemoryVfs({"tools/a.ts": "a"})
    with TGP(binary=fake("serve"), files=files) as kernel:
        assert ask(kernel, "host/files/read", {"path": "tools/a.ts"}) == {"content": "YQ=="}
        assert ask(kernel, "host/files/read", {"path": "b"}) == {"content": None}
        assert ask(kernel, "host/files/entry", {"path": ""}) == {"entry": {"path": "", "directory": True, "size": 0}}
        assert len(ask(kernel, "host/files/list", {"path": ""})["entries"]) == 2
        content = base64.b64encode(b"new").decode()
        changes = [{"path": "tools/a.ts", "content": None}, {"path": "b.ts", "content": content}]
        assert ask(kernel, "host/files/apply", {"changes": changes}) == {}
        error = ask(kernel, "host/files/read", {"path": "../x"})
        assert error["data"]["code"] == "ESECURITY"
    assert files.files() == {"b.ts": b"new"}
