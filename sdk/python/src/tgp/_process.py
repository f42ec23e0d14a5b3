"""The process of the kernel: its streams, the end of its log, and its end."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import threading
import weakref
from collections.abc import Mapping, Sequence

from .errors import KernelNotFoundError

LOG_TAIL_BYTES = 64 * 1024
"""How much of the kernel's standard error is kept for an exception."""

EXIT_SECONDS = 10.0
"""How long a kernel may take to end after its input has ended, before it is killed."""


class KernelProcess:
    """A running ``tgp serve --stdio``.

    The kernel ends when its input ends, so nothing is left behind when this program dies in any way. It has a session of its
    own: Ctrl-C at a terminal is for this program, which decides what becomes of the kernel.
    """

    def __init__(self, command: Sequence[str], directory: str | None, env: Mapping[str, str] | None) -> None:
        try:
            self._popen = subprocess.Popen(
                command,
                bufsize=0,
                cwd=directory,
                env=None if env is None else dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise KernelNotFoundError(
                "ECAPABILITY",
                f"`{command[0]}` cannot be started: {error}",
                {"help": "check that the file is the program `tgp` for this machine"},
            ) from error
        assert isinstance(self._popen.stdin, io.FileIO)
        assert isinstance(self._popen.stdout, io.FileIO)
        assert isinstance(self._popen.stderr, io.FileIO)
        self._owner = os.getpid()
        self._stdin = self._popen.stdin
        self._stdout = io.BufferedReader(self._popen.stdout, 256 * 1024)
        self._stderr = self._popen.stderr
        self._tail = bytearray()
        self._wait_lock = threading.Lock()
        self._log_reader = threading.Thread(target=self._read_log, name="tgp-log", daemon=True)
        self._log_reader.start()
        _running.add(self)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def write(self, data: bytes) -> None:
        """Writes all of ``data``. Only one thread writes."""
        view = memoryview(data)
        while view:
            written = self._stdin.write(view)
            view = view[written or 0 :]

    def read_line(self, limit: int) -> bytes:
        """The next line with its ``\\n``, at most ``limit`` bytes of it; empty at the end. Only one thread reads."""
        return self._stdout.readline(limit)

    def close_input(self) -> None:
        """Ends the kernel's input: it cancels what is under way and ends."""
        with contextlib.suppress(OSError, ValueError):
            self._stdin.close()

    def close_output(self) -> None:
        """Called by the thread that reads, after the last line."""
        with contextlib.suppress(OSError, ValueError):
            self._stdout.close()

    def kill(self) -> None:
        if not self._is_owner():
            return
        with contextlib.suppress(OSError):
            self._popen.kill()

    def wait(self, seconds: float = EXIT_SECONDS) -> int | None:
        """Waits for the end of the process, and kills it after ``seconds``. Returns its exit code."""
        if not self._is_owner():
            return None
        with self._wait_lock:
            try:
                code = self._popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                code = self._popen.wait()
        self._log_reader.join(1.0)
        return code

    def log_tail(self) -> str:
        """The end of what the kernel has printed on standard error."""
        return bytes(self._tail).decode("utf-8", "replace").strip()

    def _read_log(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := self._stderr.read(8192):
                self._tail += chunk
                del self._tail[:-LOG_TAIL_BYTES]
        with contextlib.suppress(OSError):
            self._stderr.close()

    def detach_after_fork(self) -> None:
        """In a forked child: replaces its copies of the pipes, so that the kernel still sees the end of its real host."""
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(null, stream.fileno(), inheritable=False)
        os.close(null)

    def _is_owner(self) -> bool:
        return os.getpid() == self._owner


_running: weakref.WeakSet[KernelProcess] = weakref.WeakSet()


def _detach_all_after_fork() -> None:
    for process in list(_running):
        process.detach_after_fork()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_detach_all_after_fork)
