"""What both clients share: the options, the boot, the calls and the shutdown of a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from . import _definitions
from ._binary import check_is_tgp, find_binary
from ._host import Host, HostServices
from ._json import is_object, kind_of
from ._options import check_options, check_services, check_timeout, known_options
from ._process import EXIT_SECONDS, KernelProcess
from ._protocol import PROTOCOL_VERSION
from ._rpc import Connection, EventHandler
from ._suggest import suggestion
from ._version import VERSION
from .errors import (
    BootTimeoutError,
    KernelClosedError,
    KernelExitedError,
    ProtocolError,
    TGPError,
    from_wire,
    shut_down,
)
from .host_tools import HostTools, collect
from .sql import SqlExecutor
from .vfs import Vfs

if TYPE_CHECKING:
    from ._protocol import HostConsent, InitializeParams, InitializeResult
    from .approval import Approve

_logger = logging.getLogger("tgp")

_NO_TRANSACTIONS = "the SQL executor has no transactions: each statement is on its own and stays when a run fails"


class KernelBase:
    """A kernel that is started by the first call, and its options. `TGP` and `AsyncTGP` add the calls.

    Parameters:
        directory: The project. The current directory when there is none.
        config_file: A configuration file other than ``tgp.config.{ts,js,json}`` of the project.
        approve: Answers calls that need an approval; without it they fail with ``EAPPROVAL``.
        consent: ``"rules"`` asks for what a rule asks for and for files that run later, ``"effects"`` for every effect.
        host_tools: Functions that forged tools import from ``host:MODULE``.
        sql: Executes the SQL of ``exec_sql`` and of tools.
        files: Keeps the files of the tool repository.
        logger: Takes the kernel's log, from its effective level on.
        client: What the application calls itself, for the record.
        session: What the application calls its work, for the record.
        binary: The program ``tgp``; found by itself when there is none.
        env: The environment of the kernel instead of the one of this process.
        boot_timeout: Seconds that the boot may take; ``None`` waits for ever.
        shutdown_timeout: Seconds that calls may take to end in ``shutdown()``, before the kernel is killed.
    """

    @known_options
    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        config_file: str | os.PathLike[str] | None = None,
        approve: Approve | None = None,
        consent: HostConsent = "rules",
        host_tools: HostTools | None = None,
        sql: SqlExecutor | None = None,
        files: Vfs | None = None,
        logger: logging.Logger | None = None,
        client: str = "python",
        session: str | None = None,
        binary: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        boot_timeout: float | None = 120.0,
        shutdown_timeout: float = 30.0,
    ) -> None:
        check_options(
            paths={"directory": directory, "config_file": config_file, "binary": binary},
            texts={"client": client, "session": session},
            consent=consent,
            env=env,
            boot_timeout=boot_timeout,
            shutdown_timeout=shutdown_timeout,
        )
        check_services(approve, sql, files, logger)
        self._services = HostServices(approve, collect(host_tools), sql, files, logger)
        self._log = logger or _logger
        self._directory = None if directory is None else os.path.abspath(directory)
        self._config_file = None if config_file is None else os.path.abspath(config_file)
        self._consent: HostConsent = consent
        self._client = client
        self._session = session
        self._binary = binary
        self._env = env
        self._boot_timeout = boot_timeout
        self._shutdown_timeout = shutdown_timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._warned_of_sql = False
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._boot_lock = threading.Lock()
        self._connection: Connection | None = None
        self._finalizer: weakref.finalize[..., KernelBase] | None = None
        self._info: InitializeResult | None = None
        self._closing = False
        self._closed = False
        self._unsent: dict[object, int] = {}
        self._all_sent = threading.Condition()

    @property
    def info(self) -> InitializeResult | None:
        """What the kernel reported when it booted: its version, the session, the project and notices."""
        return self._info

    def _live(self) -> Connection | None:
        """The connection, if there is one. A forked process has none: it starts a kernel of its own."""
        if self._pid != os.getpid():
            self._reset()
        return self._connection

    def _boot(self) -> InitializeResult:
        """Starts the kernel if there is none, or the last one has died."""
        self._live()
        with self._boot_lock:
            if self._closed:
                raise shut_down("the kernel was shut down")
            if self._connection is not None and self._connection.failure is None and self._info is not None:
                return self._info
            self._check_places()
            binary = find_binary(self._binary)
            process = KernelProcess([binary, "serve", "--stdio"], self._directory, self._env)
            host = Host(self._services, self._log, self._loop)
            connection = Connection(process, host, self._log)
            host.connection = connection
            try:
                future = connection.request("initialize", self._initialize_params())
                self._info = self._read_info(self._wait_for_boot(future))
            except BaseException as error:
                connection.close(0)
                if isinstance(error, (BootTimeoutError, KernelExitedError, ProtocolError)) and not connection.has_received:
                    check_is_tgp(binary, self._env, "the variable TGP_BIN" if self._binary is None else "`binary`")
                raise
            self._connection = connection
            if self._finalizer is not None:
                # That of a kernel that has ended.
                self._finalizer.detach()
            self._finalizer = weakref.finalize(self, connection.abandon)
            return self._info

    def _wait_for_boot(self, future: Future[Any]) -> Any:
        try:
            return wait(future, self._boot_timeout, "")
        except TimeoutError:
            assert self._boot_timeout is not None
            raise BootTimeoutError(self._boot_timeout) from None

    def _check_places(self) -> None:
        """A process started in a directory that does not exist fails as if its program did not."""
        if self._config_file is not None and not os.path.isfile(self._config_file):
            folder = os.path.dirname(self._config_file)
            raise TGPError(
                "ECONFIG",
                f"`config_file` names `{self._config_file}`, which is not a file",
                {"help": f"run `tgp init` in `{folder}`, or correct `config_file`"},
            )
        if self._directory is not None and not os.path.isdir(self._directory):
            raise TGPError(
                "ECONFIG",
                f"the project `{self._directory}` is not a directory",
                {"help": "correct `directory`, or create it and run `tgp init` in it"},
            )

    def _initialize_params(self) -> InitializeParams:
        host = self._services.to_wire()
        sql = self._services.sql
        if sql is not None and not sql.transactions and not self._warned_of_sql:
            self._warned_of_sql = True
            self._log.warning("%s", _NO_TRANSACTIONS)
        host["consent"] = self._consent
        if self._directory is not None:
            host["directory"] = self._directory
        if self._config_file is not None:
            host["configFile"] = self._config_file
        params: InitializeParams = {
            "protocolVersion": PROTOCOL_VERSION,
            "client": {"name": self._client, "version": VERSION},
            "host": host,
        }
        if self._session is not None:
            params["session"] = self._session
        return params

    def _read_info(self, answer: Any) -> InitializeResult:
        try:
            info: InitializeResult = answer
            version, kernel = info["protocolVersion"], info["kernel"]
            made_of = (kernel["definitionsHash"], kernel["staticPrompt"])
        except (KeyError, TypeError) as error:
            raise ProtocolError("EINTERNAL", "the kernel answered `initialize` with something else") from error
        if version != PROTOCOL_VERSION:
            raise ProtocolError("ECAPABILITY", f"the kernel speaks protocol {version}, this client {PROTOCOL_VERSION}")
        if made_of != (_definitions.DEFINITIONS_HASH, _definitions.SYSTEM_PROMPT):
            self._log.warning(
                "the kernel %s has other tool definitions than this client %s: tools() and system_prompt() are right, "
                "TOOL_DEFINITIONS and SYSTEM_PROMPT may be out of date",
                kernel["version"],
                VERSION,
            )
        for notice in info["notices"]:
            self._log.warning("%s", notice)
        return info

    @contextlib.contextmanager
    def _sending(self) -> Iterator[None]:
        """From the beginning of a call until its request was sent; ``shutdown()`` waits for that."""
        self._live()
        call = object()
        with self._all_sent:
            if self._closing:
                raise shut_down("the kernel was shut down")
            self._unsent[call] = threading.get_ident()
        try:
            yield
        finally:
            with self._all_sent:
                self._unsent.pop(call, None)
                self._all_sent.notify_all()

    def _wait_until_sent(self) -> None:
        """Waits for the boot that calls of other threads wait for. This thread cannot wait for itself."""
        this_thread = threading.get_ident()
        with self._all_sent:
            self._closing = True
            self._all_sent.wait_for(
                lambda: all(thread == this_thread for thread in self._unsent.values()), self._boot_timeout
            )

    def _request(self, method: str, params: Mapping[str, Any], on_event: EventHandler | None = None) -> Future[Any]:
        """Sends a request to the kernel, which was booted before."""
        connection = self._live()
        if connection is None or self._closed:
            raise shut_down("the kernel was shut down")
        return connection.request(method, params, on_event)

    def _needs_boot(self) -> bool:
        connection = self._live()
        return not self._closed and (connection is None or connection.failure is not None)

    def _shutdown(self) -> None:
        """Waits until calls have ended, and ends the kernel. Nothing of it is left afterwards."""
        self._live()
        self._wait_until_sent()
        with self._boot_lock:
            self._closed = True
            connection = self._connection
            if connection is None:
                return
            try:
                # It may end before or with its answer: from here on its end is not unexpected.
                connection.expect_end()
                if connection.failure is None:
                    wait(connection.request("shutdown", {}), self._shutdown_timeout, "the kernel did not shut down")
            except KernelClosedError:
                connection.close(0)
            except (TGPError, TimeoutError) as error:
                self._log.warning("the kernel is killed: %s", error)
                connection.close(0)
            else:
                connection.close(EXIT_SECONDS)

    async def _boot_in_loop(self) -> InitializeResult:
        return await asyncio.to_thread(self._boot)

    def _send(self, method: str, params: Mapping[str, Any], on_event: EventHandler | None = None) -> Future[Any]:
        """Sends a request; boots the kernel before that if there is none."""
        with self._sending():
            if self._needs_boot():
                self._boot()
            return self._request(method, params, on_event)

    async def _send_in_loop(
        self, method: str, params: Mapping[str, Any], on_event: EventHandler | None = None
    ) -> Future[Any]:
        """As ``_send``, on the event loop that is running."""
        with self._sending():
            if self._needs_boot():
                await self._boot_in_loop()
            return self._request(method, params, on_event)

    async def _acall(
        self, tool: str, arguments: Mapping[str, Any] | None, dry_run: bool, timeout: float | None = None
    ) -> Any:
        """A call on the event loop that is running; both clients have it for the adapters."""
        params = call_params(tool, arguments, dry_run)
        if timeout is not None:
            check_timeout("timeout", timeout)

        async def answer() -> Any:
            return read_result(await asyncio.wrap_future(await self._send_in_loop("tools/call", params)))

        if timeout is None:
            return await answer()
        task = asyncio.ensure_future(answer())
        try:
            await asyncio.wait({task}, timeout=timeout)
            if not task.done():
                raise TimeoutError(f"`{tool}` did not end in {timeout} s")
            return task.result()
        finally:
            task.cancel()


def call_params(tool: str, arguments: Mapping[str, Any] | None, dry_run: bool) -> dict[str, Any]:
    if arguments is not None and not isinstance(arguments, Mapping):
        raise TGPError(
            "EVALIDATION",
            f"the arguments of `{tool}` are {kind_of(arguments)}, expected a dict",
            {"help": "pass a dict with the fields of the schema of the tool"},
        )
    params: dict[str, Any] = {"tool": tool, "arguments": dict(arguments or {})}
    if dry_run:
        params["dryRun"] = True
    return params


def exec_arguments(path: str, args: Any, limits: Mapping[str, int] | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {"path": path}
    if args is not None:
        arguments["args"] = args
    if limits is not None:
        arguments["limits"] = dict(limits)
    return arguments


def read_result(answer: Any) -> Any:
    """The data of a call; a call that failed raises its error."""
    if not is_object(answer) or not isinstance(answer.get("ok"), bool):
        raise ProtocolError("EINTERNAL", "the kernel answered a call with something else")
    if answer["ok"]:
        return answer.get("data")
    raise from_wire(answer.get("error"))


def field_of(answer: Any, name: str) -> Any:
    if not is_object(answer) or name not in answer:
        raise ProtocolError("EINTERNAL", f"the kernel answered without `{name}`")
    return answer[name]


def wait(future: Future[Any], seconds: float | None, what: str) -> Any:
    """The result of a request. A time-out or an interrupt (Ctrl-C) cancels the request."""
    try:
        return future.result(seconds)
    except FutureTimeoutError:
        future.cancel()
        raise TimeoutError(f"{what} in {seconds} s") from None
    except KeyboardInterrupt:
        future.cancel()
        raise


def select(names: Iterable[str] | None) -> list[Any]:
    """The static definitions with these names, all of them without names."""
    if names is None:
        return list(_definitions.TOOL_DEFINITIONS)
    if isinstance(names, str) or not isinstance(names, Iterable):
        shown = names if isinstance(names, str) else "exec_tool"
        raise TypeError(f"`names` is {kind_of(names)}, expected a list of names, such as `names=[{shown!r}]`")
    known = {tool["name"]: tool for tool in _definitions.TOOL_DEFINITIONS}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise ValueError(f"unknown tool `{name}`: {suggestion(name, sorted(known))}")
    return [known[name] for name in wanted]
