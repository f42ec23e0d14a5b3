"""A kernel that dies, talks nonsense or never answers, and a host that dies."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import MakeBinary

import tgp
from tgp import TGP, AsyncTGP, BootTimeoutError, KernelExitedError, KernelNotFoundError, ProtocolError, TGPError
from tgp._process import LOG_TAIL_BYTES

SOURCE = Path(tgp.__file__).parent.parent


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline, f"the process {pid} is still there"
        time.sleep(0.02)


def pid_of(kernel: TGP | AsyncTGP) -> int:
    assert kernel._connection is not None
    return kernel._connection._process.pid


def test_a_kernel_that_dies_raises_the_end_of_its_log(fake: MakeBinary) -> None:
    with TGP(binary=fake("die")) as kernel:
        with pytest.raises(KernelExitedError) as raised:
            kernel.call("echo")
        error = raised.value
        assert error.exit_code == -signal.SIGKILL
        assert error.log.endswith("panic: it is over")
        assert len(error.log) <= LOG_TAIL_BYTES
        assert error.message.startswith("the kernel ended unexpectedly by SIGKILL; the end of its log:\n")
        assert error.message.endswith("panic: it is over")
        assert len(error.message) < 10_000
        # The next call starts another.
        assert kernel.boot()["session"] == "host/test"


def test_all_calls_under_way_fail_with_the_kernel(fake: MakeBinary) -> None:
    async def main() -> None:
        async with AsyncTGP(binary=fake("silence")) as kernel:
            await kernel.boot()
            calls = [asyncio.ensure_future(kernel.call("echo")) for _ in range(2000)]
            await asyncio.sleep(0.1)
            os.kill(pid_of(kernel), signal.SIGKILL)
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(result, KernelExitedError) for result in results)

    asyncio.run(main())


def test_a_kernel_that_dies_at_boot(fake: MakeBinary) -> None:
    with TGP(binary=fake("boot-death")) as kernel, pytest.raises(KernelExitedError) as raised:
        kernel.boot()
    assert (raised.value.exit_code, raised.value.log) == (2, "panic: cannot boot")


def test_a_kernel_that_never_boots(fake: MakeBinary) -> None:
    with TGP(binary=fake("boot-silence"), boot_timeout=0.3) as kernel, pytest.raises(BootTimeoutError) as raised:
        kernel.boot()
    # As Node has it.
    assert isinstance(raised.value, TimeoutError)
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
        assert isinstance(error, BootTimeoutError)
        assert (error.code, error.message) == ("EINTERNAL", "the kernel did not boot within 0.3 s")
        assert error.help == "`tgp doctor` checks this machine; allow more time if tools are pulled from a slow remote"


def test_bug_a_program_that_never_speaks_was_a_boot_that_took_too_long(tmp_path: Path) -> None:
    program = tmp_path / "hang"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo "other 1.0"\nexec sleep 600\n')
    program.chmod(0o755)
    with (
        TGP(binary=program, boot_timeout=0.3) as kernel,
        pytest.raises(KernelNotFoundError, match=r"is not the program `tgp`: it prints `other 1\.0`"),
    ):
        kernel.boot()


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("garbage", "not JSON: `hello, this is not JSON`"),
        ("deep", "not JSON"),
        ("huge-line", "more than 16777216 bytes"),
    ],
)
def test_a_broken_protocol_ends_the_kernel(fake: MakeBinary, behaviour: str, message: str) -> None:
    with TGP(binary=fake(behaviour)) as kernel:
        kernel.boot()
        pid = pid_of(kernel)
        with pytest.raises(ProtocolError, match=message):
            kernel.call("echo")
        wait_until_gone(pid)


def test_half_a_line_is_the_end(fake: MakeBinary) -> None:
    with TGP(binary=fake("half-line")) as kernel, pytest.raises(KernelExitedError, match="exit code 0"):
        kernel.call("echo")


def test_unknown_ids_and_methods_change_nothing(fake: MakeBinary) -> None:
    with TGP(binary=fake("unknown-ids")) as kernel:
        assert kernel.call("echo") == "still here"
        assert kernel.call("echo", {"a": 1}) == {"a": 1}


def test_a_kernel_that_never_answers_is_killed_by_the_shutdown(fake: MakeBinary) -> None:
    kernel = TGP(binary=fake("silence"), shutdown_timeout=0.3)
    kernel.boot()
    pid = pid_of(kernel)
    with pytest.raises(TimeoutError):
        kernel.call("echo", timeout=0.2)
    kernel.shutdown()
    assert not is_alive(pid)


def test_requests_that_are_not_read_are_bounded(fake: MakeBinary) -> None:
    async def main() -> None:
        kernel = AsyncTGP(binary=fake("deaf"), shutdown_timeout=0.2)
        await kernel.boot()
        text = "x" * (10 << 20)
        calls = [asyncio.ensure_future(kernel.call("echo", {"text": text})) for _ in range(10)]
        done, _ = await asyncio.wait(calls, timeout=2)
        errors = [task.exception() for task in done]
        assert len(errors) == 4
        assert all(isinstance(error, TGPError) and error.code == "EBUDGET" for error in errors)
        await kernel.shutdown()
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(main())


def test_a_flood_of_requests_is_bounded(fake: MakeBinary) -> None:
    release = threading.Event()

    class Release(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            release.set()

    def slow() -> None:
        release.wait(50)

    logger = logging.getLogger("flood")
    logger.getChild("test").addHandler(Release())
    with TGP(binary=fake("flood"), host_tools={"slow": {"wait": slow}}, logger=logger) as kernel:
        counts = kernel.call("flood", {"module": "slow", "name": "wait", "arguments": {}})
        assert counts == [3000 - 1024, 1024]
        assert kernel.call("echo", {"a": 1}) == {"a": 1}


def test_events_that_are_not_taken_are_bounded(fake: MakeBinary) -> None:
    with TGP(binary=fake("session-flood")) as kernel:
        run = kernel.run(task="flood")
        assert kernel.call("echo", {"a": 1}) == {"a": 1}
        events = 0
        with pytest.raises(TGPError, match="EBUDGET"):
            for _ in run:
                events += 1
        assert 60 < events < 70


def test_nothing_is_left_when_the_client_is_dropped(fake: MakeBinary) -> None:
    kernel = TGP(binary=fake("serve"))
    kernel.boot()
    pid = pid_of(kernel)
    del kernel
    wait_until_gone(pid)


HOST = """
import signal, sys, time
from tgp import TGP
# A test runner in the background of a shell passes on that SIGINT is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
kernel = TGP(binary=sys.argv[1])
kernel.boot()
print(kernel._connection._process.pid, flush=True)
exec(sys.argv[2])
"""


def start_host(binary: str, then: str) -> tuple[subprocess.Popen[str], int]:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, binary, then],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None
    return host, int(host.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_host_is_killed(fake: MakeBinary, number: int) -> None:
    host, pid = start_host(fake("serve"), "time.sleep(600)")
    assert is_alive(pid)
    host.send_signal(number)
    host.communicate()
    wait_until_gone(pid)


def test_nothing_is_left_when_the_host_ends_without_a_shutdown(fake: MakeBinary) -> None:
    host, pid = start_host(fake("serve"), "pass")
    host.communicate()
    assert host.returncode == 0
    wait_until_gone(pid)


def test_a_forked_child_does_not_keep_the_kernel_and_starts_its_own(fake: MakeBinary) -> None:
    then = """
import os
if os.fork() == 0:
    own = kernel.call("echo", {"a": 1})
    print(own, kernel._connection._process.pid, flush=True)
    time.sleep(600)
time.sleep(600)
"""
    host, pid = start_host(fake("serve"), then)
    assert host.stdout is not None
    line = host.stdout.readline()
    assert line.startswith("{'a': 1} ")
    own = int(line.split()[-1])
    assert own != pid
    host.kill()
    host.wait()
    wait_until_gone(pid)
    assert is_alive(own)
    child = int(Path(f"/proc/{own}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(child, signal.SIGKILL)
    wait_until_gone(own)
