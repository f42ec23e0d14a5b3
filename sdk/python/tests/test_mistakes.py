"""Mistakes of an application: each is reported where it was made, with what to do."""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeBinary

from test_hostile import pid_of, wait_until_gone
from tgp import (
    TGP,
    AsyncTGP,
    HostModule,
    HostTool,
    KernelClosedError,
    KernelExitedError,
    KernelNotFoundError,
    StatementExecutor,
    TGPError,
)

CIRCULAR: dict[str, Any] = {"list": [{}]}
CIRCULAR["list"][0]["self"] = CIRCULAR
DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("arguments", "path", "what"),
    [
        ({"names": {"a"}}, "arguments.names", "a set"),
        ({"a": [1, object()]}, "arguments.a[1]", "an object"),
        ({"n": float("nan")}, "arguments.n", "nan"),
        ({"a b": {"n": -float("inf")}}, 'arguments["a b"].n', "-inf"),
        ({"when": datetime.date(2026, 1, 1)}, "arguments.when", "a date"),
        ({"raw": b"x"}, "arguments.raw", "a bytes"),
        ({"run": len}, "arguments.run", "a builtin_function_or_method"),
        ({"text": "\ud800"}, "arguments.text", "a string with half a character"),
        ({"keys": {(1, 2): 3}}, "arguments.keys", "a dict with a key of the type tuple"),
        (CIRCULAR, "arguments.list[0].self", "a circular reference"),
    ],
)
def test_bug_arguments_without_a_json_form_raised_a_type_error(
    fake: MakeBinary, arguments: dict[str, Any], path: str, what: str
) -> None:
    with TGP(binary=fake("serve")) as kernel:
        with pytest.raises(TGPError) as raised:
            kernel.call("echo", arguments)
        assert raised.value.code == "EVALIDATION"
        if what == "a circular reference":
            # `call` copies the outermost dict, so the circle is seen one turn later.
            assert raised.value.message.endswith("is a circular reference, which has no JSON form")
        else:
            assert raised.value.message == f"the value at `{path}` is {what}, which has no JSON form"
            assert raised.value.details["field"] == path
        assert raised.value.help
        assert kernel.call("echo", {"a": (1, None)}) == {"a": [1, None]}


def test_bug_wrong_arguments_of_other_kinds(fake: MakeBinary) -> None:
    wrong: list[Any] = [[1], 5, "text", {"a"}]
    with TGP(binary=fake("serve")) as kernel:
        for arguments in wrong:
            with pytest.raises(TGPError, match=r"EVALIDATION: the arguments of `echo` are .*, expected a dict"):
                kernel.call("echo", arguments)
        with pytest.raises(TGPError, match="nested more than 100 levels deep"):
            kernel.call("echo", {"deep": DEEP})
        with pytest.raises(TGPError, match=r"`arguments\.args` is a set"):
            kernel.exec("tools/a.ts", {1})

    async def main() -> None:
        async with AsyncTGP(binary=fake("serve")) as kernel:
            with pytest.raises(TGPError, match=r"EVALIDATION: the value at `arguments\.a` is a set"):
                await kernel.call("echo", {"a": {1}})

    asyncio.run(main())


def test_bug_a_project_that_does_not_exist_was_blamed_on_the_program(fake: MakeBinary, tmp_path: Path) -> None:
    missing = tmp_path / "nope"
    with TGP(missing, binary=fake("serve")) as kernel, pytest.raises(TGPError) as raised:
        kernel.boot()
    assert (type(raised.value), raised.value.code) == (TGPError, "ECONFIG")
    assert raised.value.message == f"the project `{missing}` is not a directory"
    assert raised.value.help
    with TGP(config_file=missing / "tgp.config.ts", binary=fake("serve")) as kernel, pytest.raises(TGPError) as raised:
        kernel.boot()
    assert raised.value.code == "ECONFIG"
    assert raised.value.message == f"`config_file` names `{missing}/tgp.config.ts`, which is not a file"


@pytest.mark.parametrize("program", ["/bin/ls", "/bin/true"])
def test_bug_a_program_that_is_not_tgp_was_a_kernel_that_ended(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with TGP(binary=program) as kernel, pytest.raises(KernelNotFoundError) as raised:
        kernel.boot()
    assert raised.value.code == "ECAPABILITY"
    assert raised.value.message.startswith(f"`{program}` is not the program `tgp`: it prints ")
    assert raised.value.help is not None and "`binary`" in raised.value.help
    monkeypatch.setenv("TGP_BIN", program)
    with TGP() as kernel, pytest.raises(KernelNotFoundError, match="TGP_BIN"):
        kernel.boot()


def test_bug_the_clients_differed_in_what_they_said_of_an_ended_kernel(
    fake: MakeBinary, caplog: pytest.LogCaptureFixture
) -> None:
    kernel = TGP(binary=fake("serve"))
    kernel.boot()
    pid = pid_of(kernel)
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    connection = kernel._connection
    assert connection is not None
    deadline = time.monotonic() + 20
    while connection.failure is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    failure = connection.failure
    assert isinstance(failure, KernelExitedError)
    assert failure.message == "the kernel ended unexpectedly by SIGKILL; its log is empty"
    assert (failure.details["exitCode"], failure.details["signal"], failure.details["log"]) == (None, "SIGKILL", "")
    assert kernel.call("echo", {"a": 1}) == {"a": 1}
    assert pid_of(kernel) != pid
    kernel.shutdown()
    for call in (lambda: kernel.call("echo"), kernel.boot, kernel.tools):
        with pytest.raises(KernelClosedError) as raised:
            call()
        assert (raised.value.code, raised.value.message) == ("ESTATE", "the kernel was shut down")
        assert raised.value.help
    ends = [record.message for record in caplog.records if "unexpectedly" in record.message]
    assert ends == [failure.message], "an end that no call fails with is in the log, and a shutdown is not one"


def test_bug_services_of_the_wrong_type_were_noticed_at_the_first_call() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sql": "sqlite:///shop.db"}, r"`sql` is a str, expected an executor: `DbApiExecutor\(connect, dialect\)`"),
        ({"files": "/srv/tools"}, "`files` is a str, expected `MemoryVfs"),
        ({"approve": True}, "`approve` is a bool, expected a function"),
        ({"logger": print}, "`logger` is a builtin_function_or_method, expected `logging.getLogger"),
        ({"host_tools": HostModule("mail")}, r"expected a list of them: `host_tools=\[module\]`"),
        ({"host_tools": [len]}, "expected HostModule"),
        ({"host_tools": {"mail": len}}, "expected functions by name"),
        ({"host_tools": {"mail": {"send": "text"}}}, "`host:mail/send` is a str, expected a function or a HostTool"),
        ({"host_tools": {"mail": {"send": HostTool(len, "", input_schema=5)}}}, "expected a JSON Schema"),  # type: ignore[arg-type]
    ]
    for options, message in wrong:
        with pytest.raises(TypeError, match=message):
            TGP(**options)


def test_bug_wrong_host_tools_were_noticed_at_the_boot() -> None:
    def positional(to: str, /) -> None: ...

    def send(to: str) -> None: ...

    effect: Any = "reads"
    wrong: list[tuple[HostTool, str]] = [
        (HostTool(positional), "`host:mail/send` cannot be declared: `to` is a positional-only parameter"),
        (HostTool(send, effect=effect), "unknown effect `reads` of `host:mail/send`: did you mean `read`"),
        (HostTool(send, input_schema={"type": {1}}), r"`inputSchema\.type` of `host:mail/send` is a set"),
    ]
    for tool, message in wrong:
        with pytest.raises(ValueError, match=message):
            TGP(host_tools={"mail": {"send": tool}})
    consent: Any = "effect"
    with pytest.raises(ValueError, match="unknown consent `effect`: did you mean `effects`"):
        TGP(consent=consent)


def test_bug_calls_of_the_async_client_had_no_timeout(fake: MakeBinary) -> None:
    async def main() -> None:
        async with AsyncTGP(binary=fake("cancel")) as kernel:
            await kernel.boot()
            with pytest.raises(TimeoutError, match=r"`echo` did not end in 0\.2 s"):
                await kernel.call("echo", timeout=0.2)
            assert await kernel.call("echo", {"a": 1}, timeout=30) == {"a": 1}

    asyncio.run(main())


def test_the_log_of_a_boot_that_failed_is_in_the_error_alone(
    fake: MakeBinary, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        TGP(binary=fake("boot-death")) as kernel,
        pytest.raises(KernelExitedError, match="panic: cannot boot"),
    ):
        kernel.boot()
    assert caplog.records == []


def test_bug_an_executor_without_transactions_was_never_mentioned(
    fake: MakeBinary, caplog: pytest.LogCaptureFixture
) -> None:
    executor = StatementExecutor(lambda _sql, _parameters: [], "sqlite")
    with TGP(binary=fake("serve"), sql=executor) as kernel:
        for _ in range(2):
            kernel.boot()
            os.kill(pid_of(kernel), signal.SIGKILL)
            with pytest.raises(KernelExitedError):
                kernel.call("echo")
                kernel.call("echo")
        kernel.boot()
    warnings = [record for record in caplog.records if "has no transactions" in record.message]
    assert [record.message for record in warnings] == [
        "the SQL executor has no transactions: each statement is on its own and stays when a run fails"
    ]
    assert warnings[0].levelname == "WARNING"
