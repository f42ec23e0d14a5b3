"""The clients against a scripted kernel: what is sent, what is returned, and how errors arrive."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeBinary

from tgp import (
    TGP,
    AsyncTGP,
    KernelClosedError,
    KernelExitedError,
    KernelNotFoundError,
    ProtocolError,
    SourceLocation,
    TGPError,
    find_binary,
)


def test_a_call_boots_the_kernel_and_returns_its_data(fake: MakeBinary) -> None:
    with TGP(binary=fake("serve")) as kernel:
        assert kernel.info is None
        assert kernel.call("echo", {"text": "hällo", "n": [1, None]}) == {"text": "hällo", "n": [1, None]}
        assert kernel.info is not None
        assert kernel.info["kernel"]["version"] == "9.9.9"


def test_the_options_arrive(fake: MakeBinary, tmp_path: Path) -> None:
    config_file = tmp_path / "x.json"
    config_file.write_text("{}")
    with TGP(tmp_path, binary=fake("serve"), config_file=config_file, consent="effects", session="s") as kernel:
        params: dict[str, Any] = kernel.call("params")
    assert params["protocolVersion"] == 1
    assert params["session"] == "s"
    assert params["client"]["name"] == "python"
    assert params["host"]["directory"] == str(tmp_path)
    assert params["host"]["configFile"].endswith("/x.json")
    assert params["host"]["consent"] == "effects"
    assert params["host"]["approves"] is False
    assert params["host"]["files"] is False
    assert "sql" not in params["host"]
    assert "log" not in params["host"]


def test_a_failed_call_raises_its_error(fake: MakeBinary) -> None:
    with TGP(binary=fake("serve")) as kernel, pytest.raises(TGPError) as raised:
        kernel.call("fail")
    error = raised.value
    assert (error.code, error.message, error.help) == ("ERUNTIME", "it threw", "do something else")
    assert error.location == SourceLocation("tools/a.ts", 3, 5)
    assert str(error) == "ERUNTIME: it threw (tools/a.ts:3:5)\nhelp: do something else"


@pytest.mark.parametrize("clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_can_be_copied(clone: Any) -> None:
    error = clone(KernelExitedError(3, "the log"))
    assert isinstance(error, KernelExitedError)
    assert (error.code, error.exit_code, error.log) == ("EINTERNAL", 3, "the log")


def test_calls_of_many_threads_run_at_the_same_time(fake: MakeBinary) -> None:
    results: list[int] = []
    with TGP(binary=fake("serve")) as kernel:

        def work(number: int) -> None:
            results.append(kernel.call("echo", {"number": number})["number"])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == list(range(50))


def test_more_calls_than_the_kernel_takes_wait_for_their_turn(fake: MakeBinary) -> None:
    async def main() -> None:
        async with AsyncTGP(binary=fake("serve")) as kernel:
            calls = [kernel.call("echo", {"number": number}) for number in range(3000)]
            assert [answer["number"] for answer in await asyncio.gather(*calls)] == list(range(3000))

    asyncio.run(main())


def test_a_call_after_the_shutdown_fails(fake: MakeBinary) -> None:
    kernel = TGP(binary=fake("serve"))
    kernel.boot()
    kernel.shutdown()
    kernel.shutdown()
    with pytest.raises(KernelClosedError):
        kernel.call("echo")
    with pytest.raises(KernelClosedError):
        kernel.boot()


def test_a_kernel_that_was_never_used_is_never_started() -> None:
    with TGP(binary="/does/not/exist"):
        pass


def test_a_cancelled_task_cancels_its_call(fake: MakeBinary) -> None:
    async def main() -> None:
        async with AsyncTGP(binary=fake("cancel")) as kernel:
            await kernel.boot()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(kernel.call("echo"), 0.2)
            assert await kernel.call("echo", {"a": 1}) == {"a": 1}

    asyncio.run(main())


def test_a_timeout_cancels_its_call(fake: MakeBinary) -> None:
    with TGP(binary=fake("cancel")) as kernel:
        with pytest.raises(TimeoutError):
            kernel.call("echo", timeout=0.2)
        assert kernel.call("echo", {"a": 1}, timeout=10) == {"a": 1}


def test_the_events_of_a_session(fake: MakeBinary) -> None:
    with TGP(binary=fake("session")) as kernel:
        run = kernel.run(task="count")
        assert [event["value"] for event in run] == ["count 0", "count 1", "count 2"]
        assert run.summary == {"type": "end", "state": "done"}
        assert list(run) == []
        assert kernel.call("echo") == {}


def test_the_events_of_an_async_session(fake: MakeBinary) -> None:
    async def main() -> None:
        async with AsyncTGP(binary=fake("session")) as kernel:
            run = kernel.run(task="count")
            assert [event["value"] async for event in run] == ["count 0", "count 1", "count 2"]
            assert run.summary == {"type": "end", "state": "done"}

    asyncio.run(main())


def test_other_definitions_and_notices_are_logged(fake: MakeBinary, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tgp"), TGP(binary=fake("serve")) as kernel:
        kernel.boot()
    assert any("other tool definitions" in record.message for record in caplog.records)
    assert any(record.message == "a notice" for record in caplog.records)


def test_an_error_of_the_boot(fake: MakeBinary) -> None:
    with TGP(binary=fake("boot-error")) as kernel, pytest.raises(TGPError) as raised:
        kernel.call("echo")
    assert (raised.value.code, raised.value.help) == ("ECONFIG", "run `tgp init`")


def test_another_version_of_the_protocol(fake: MakeBinary) -> None:
    with TGP(binary=fake("other-protocol")) as kernel, pytest.raises(ProtocolError, match="protocol 2"):
        kernel.boot()


def test_the_program_is_found_or_missed(fake: MakeBinary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = fake("serve")
    monkeypatch.setenv("TGP_BIN", path)
    assert find_binary() == path
    monkeypatch.setenv("TGP_BIN", "/does/not/exist")
    with pytest.raises(KernelNotFoundError, match="TGP_BIN names `/does/not/exist`"):
        find_binary()
    monkeypatch.delenv("TGP_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KernelNotFoundError) as raised:
        find_binary()
    assert raised.value.help is not None
    assert "pip install tgp-kernel" in raised.value.help
    (tmp_path / "tgp").symlink_to(path)
    assert find_binary() == str(tmp_path / "tgp")


def test_arguments_that_are_too_large(fake: MakeBinary) -> None:
    with TGP(binary=fake("serve")) as kernel:
        with pytest.raises(TGPError, match="EVALIDATION") as raised:
            kernel.call("echo", {"a": "x" * (16 << 20)})
        assert "at most 16777216" in raised.value.message
        assert kernel.call("echo", {"a": "x" * (15 << 20)})["a"] == "x" * (15 << 20)
