"""The end of a kernel: calls that were just made, what is reported, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
import warnings
from typing import Any

import pytest
from conftest import MakeBinary

from test_hostile import pid_of
from tgp import TGP, AsyncTGP, KernelClosedError, KernelExitedError


@pytest.mark.parametrize("booted", [True, False])
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_bug_a_shutdown_did_not_wait_for_a_call_that_was_just_made(
    fake: MakeBinary, booted: bool, timeout: float | None
) -> None:
    async def main() -> None:
        kernel = AsyncTGP(binary=fake("serve"))
        if booted:
            await kernel.boot()
        call = asyncio.ensure_future(kernel.call("echo", {"a": 1}, timeout=timeout))
        waited = asyncio.ensure_future(asyncio.wait_for(kernel.call("echo", {"a": 2}, timeout=timeout), 30))
        await kernel.shutdown()
        assert await call == {"a": 1}
        assert await waited == {"a": 2}
        with pytest.raises(KernelClosedError):
            await kernel.call("echo")

    asyncio.run(main())


def test_bug_a_shutdown_did_not_wait_for_the_call_of_a_thread_that_was_booting(fake: MakeBinary) -> None:
    kernel = TGP(binary=fake("serve"))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(kernel.call("echo", {"a": 1})))
    thread.start()
    while not kernel._unsent and not results:
        pass
    kernel.shutdown()
    thread.join()
    assert results == [{"a": 1}]


def test_a_shutdown_on_the_thread_of_a_call_that_boots_does_not_wait_for_itself(fake: MakeBinary) -> None:
    async def main() -> None:
        kernel = TGP(binary=fake("serve"))
        call = asyncio.ensure_future(kernel._acall("echo", {}, False))
        await asyncio.sleep(0)
        kernel.shutdown()
        with pytest.raises(KernelClosedError):
            await call

    asyncio.run(main())


@pytest.mark.parametrize("behaviour", ["end-at-shutdown", "serve"])
def test_bug_a_normal_end_was_reported_as_unexpected(
    fake: MakeBinary, caplog: pytest.LogCaptureFixture, behaviour: str
) -> None:
    for _ in range(5):
        with TGP(binary=fake(behaviour)) as kernel:
            kernel.boot()
            caplog.clear()
        assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_bug_the_pipes_of_an_ended_kernel_stayed_open(fake: MakeBinary) -> None:
    # What earlier tests have left is not this test's.
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernels = [TGP(binary=fake("serve")) for _ in range(3)]
        before = descriptors()
        for kernel in kernels:
            kernel.boot()
            os.kill(pid_of(kernel), signal.SIGKILL)
            with pytest.raises(KernelExitedError):
                while True:
                    kernel.call("echo")
            kernel.boot()
        # Those that were killed are closed, the others have three each.
        assert descriptors() == before + 3 * len(kernels)
        for kernel in kernels:
            kernel.shutdown()
        assert descriptors() == before
        kernel = kernels.pop()
        del kernel
        kernels.clear()
        gc.collect()
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []
