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


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"configfile": "x"}, TypeError, "unknown option `configfile` of `TGP()`: did you mean `config_file`?"),
        ({"zebra": 1}, TypeError, "unknown option `zebra` of `TGP()`: expected one of directory, config_file"),
        ({"directory": 42}, TypeError, "`directory` is an int, expected a path, a str or os.PathLike"),
        ({"config_file": b"x"}, TypeError, "`config_file` is a bytes, expected a path"),
        ({"binary": ["tgp"]}, TypeError, "`binary` is a list, expected a path"),
        ({"client": 5}, TypeError, "`client` is an int, expected a str"),
        ({"session": b"x"}, TypeError, "`session` is a bytes, expected a str"),
        ({"env": {"A": 1}}, TypeError, "`env['A']` is an int, expected a str"),
        ({"env": {1: "a"}}, TypeError, "`env` has an int as a name, expected a str"),
        ({"env": ["A=1"]}, TypeError, "`env` is a list, expected variables by name"),
        ({"boot_timeout": "10"}, TypeError, "`boot_timeout` is a str, expected a number of seconds, or None"),
        ({"boot_timeout": True}, TypeError, "`boot_timeout` is a bool"),
        ({"boot_timeout": -1}, ValueError, "`boot_timeout` is -1, expected a number of seconds above 0, or None"),
        ({"boot_timeout": float("nan")}, ValueError, "`boot_timeout` is nan"),
        ({"shutdown_timeout": None}, TypeError, "`shutdown_timeout` is None, expected a number of seconds"),
        ({"shutdown_timeout": -0.5}, ValueError, "`shutdown_timeout` is -0.5, expected a number of seconds that is not"),
        ({"host_tools": 5}, TypeError, "`host_tools` is an int, expected functions by module and name, or a list"),
        ({"host_tools": "mail"}, TypeError, "`host_tools` is a str"),
    ],
)
def test_bug_wrong_options_were_noticed_by_the_first_call(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    for client in (TGP, AsyncTGP):
        with pytest.raises(kind) as raised:
            client(**options)
        assert message.replace("TGP()", f"{client.__name__}()") in str(raised.value)


def test_bug_a_wrong_timeout_of_a_call_was_an_error_of_python(fake: MakeBinary) -> None:
    wrong: Any = "10"
    with TGP(binary=fake("serve")) as kernel:
        with pytest.raises(TypeError, match="`timeout` is a str, expected a number of seconds"):
            kernel.call("echo", timeout=wrong)
        with pytest.raises(ValueError, match="`timeout` is -1, expected a number of seconds that is not negative"):
            kernel.call("echo", timeout=-1)

    async def main() -> None:
        async with AsyncTGP(binary=fake("serve")) as kernel:
            with pytest.raises(TypeError, match="`timeout` is a str"):
                await kernel.call("echo", timeout=wrong)

    asyncio.run(main())


def test_bug_names_and_schemas_of_host_tools_were_refused_by_the_kernel() -> None:
    def send(to: str) -> None: ...

    wrong: list[tuple[Any, str]] = [
        ({"mail": {"delete": send}}, "invalid name `delete` of a function in `host:mail`: .* not a word of TypeScript"),
        ({"mail": {"then": send}}, "invalid name `then`"),
        ({"mail": {5: send}}, "invalid name `5`"),
        ({5: {"send": send}}, "invalid name `5` of a host module"),
        ({"mail": {}}, "`host:mail` has no functions: add one, or leave the module out"),
        ([HostModule("mail")], "`host:mail` has no functions"),
        (
            {"mail": {"send": HostTool(send, input_schema={"type": "string"})}},
            "`input_schema` of `host:mail/send` has the type `string`: expected `object`",
        ),
        (
            {"mail": {"send": HostTool(send, output_schema={"type": "sting"})}},
            r"unknown type `sting` in `output_schema` of `host:mail/send`: did you mean `string`\?",
        ),
    ]
    for host_tools, message in wrong:
        with pytest.raises(ValueError, match=message):
            TGP(host_tools=host_tools)
    TGP(host_tools={"mail": {"send": HostTool(send, input_schema={}, output_schema={"type": ["string", "null"]})}})
