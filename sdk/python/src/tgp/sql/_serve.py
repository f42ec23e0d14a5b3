"""The requests `host/sql/…`: a thread for each transaction, since drivers bind a connection to its thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import TGPError
from ._check import check_begun, check_result
from ._executor import SqlExecutor, SqlTransaction
from ._values import read_parameter, sql_error, write_result

MAX_TRANSACTIONS = 256
"""Transactions that are open at a time."""

Job = Callable[[], None]
Reply = Callable[[Any, "TGPError | None"], None]


class _Worker:
    """The thread of a transaction. Its jobs run in the order in which they came."""

    def __init__(self, name: str) -> None:
        self.transaction: SqlTransaction | None = None
        self.running: int | str | None = None
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, job: Job | None) -> None:
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        with contextlib.suppress(Exception):
            self.end(commit=False)

    def end(self, *, commit: bool) -> None:
        transaction, self.transaction = self.transaction, None
        if transaction is None:
            return
        try:
            if commit:
                transaction.commit()
            else:
                transaction.rollback()
        except Exception as error:
            if commit and not _rolls_back(transaction):
                failure = sql_error(error)
                failure.details["outcome"] = "unknown"
                raise failure from error
            raise
        finally:
            with contextlib.suppress(Exception):
                transaction.close()


class SqlService:
    """Serves the kernel's transactions on an executor."""

    def __init__(self, executor: SqlExecutor) -> None:
        self._executor = executor
        self._workers: dict[int, _Worker] = {}
        self._statements: _Worker | None = None

    def handle(self, request_id: int | str, method: str, params: Mapping[str, Any], reply: Reply) -> None:
        """Passes a request to the thread of its transaction. Called by one thread; does not wait."""
        number = int(params["transaction"])
        try:
            worker, work = self._route(number, method, params)
        except TGPError as error:
            reply(None, error)
            return

        def job() -> None:
            worker.running = request_id
            try:
                result = work()
            except Exception as error:
                if method == "host/sql/begin":
                    self._workers.pop(number, None)
                    worker.submit(None)
                reply(None, sql_error(error))
            else:
                reply(result, None)
            finally:
                worker.running = None

        worker.submit(job)
        if method == "host/sql/end":
            worker.submit(None)

    def cancel(self, request_id: int | str) -> None:
        """Stops the statement of a request, if it is running."""
        for worker in list(self._workers.values()):
            if worker.running == request_id and worker.transaction is not None:
                worker.transaction.interrupt()

    def close(self) -> None:
        """Stops what is running and rolls every open transaction back."""
        workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.submit(None)
            if worker.running is not None and worker.transaction is not None:
                with contextlib.suppress(Exception):
                    worker.transaction.interrupt()
        if self._statements is not None:
            self._statements.submit(None)

    def _route(self, number: int, method: str, params: Mapping[str, Any]) -> tuple[_Worker, Callable[[], Any]]:
        if method == "host/sql/begin":
            if number in self._workers:
                raise TGPError("ESQL", f"the transaction {number} has already begun")
            if len(self._workers) >= MAX_TRANSACTIONS:
                raise TGPError("ESQL", f"more than {MAX_TRANSACTIONS} transactions are open")
            worker = self._workers[number] = _Worker(f"tgp-sql-{number}")
            return worker, lambda: self._begin(worker, params)
        if method == "host/sql/execute" and not self._executor.transactions:
            if self._statements is None:
                self._statements = _Worker("tgp-sql")
            return self._statements, lambda: self._execute(self._executor, params)
        if method == "host/sql/end":
            found = self._workers.pop(number, None)
        else:
            found = self._workers.get(number)
        if found is None:
            raise TGPError("ESQL", f"the transaction {number} is not open")
        if method == "host/sql/execute":
            return found, lambda: self._execute(_open(found), params)
        if method == "host/sql/savepoint":
            return found, lambda: _savepoint(_open(found), params)
        return found, lambda: _end(found, params)

    def _begin(self, worker: _Worker, params: Mapping[str, Any]) -> dict[str, Any]:
        transaction = self._executor.begin(bool(params["readOnly"]))
        check_begun(self._executor, transaction)
        worker.transaction = transaction
        return {}

    def _execute(self, target: SqlExecutor | SqlTransaction, params: Mapping[str, Any]) -> dict[str, Any]:
        maximum = int(params["maxRows"])
        values = [read_parameter(value, self._executor.dialect) for value in params["parameters"]]
        result = target.execute(params["sql"], values, maximum)
        check_result(self._executor, result)
        return write_result(result, maximum)


def _rolls_back(transaction: SqlTransaction) -> bool:
    """Whether a transaction that was not committed could be undone. If not, the connection broke during COMMIT."""
    try:
        transaction.rollback()
    except Exception:
        return False
    return True


def _open(worker: _Worker) -> SqlTransaction:
    if worker.transaction is None:
        raise TGPError("ESQL", "the transaction could not begin or has ended")
    return worker.transaction


def _end(worker: _Worker, params: Mapping[str, Any]) -> dict[str, Any]:
    worker.end(commit=bool(params["commit"]))
    return {}


def _savepoint(transaction: SqlTransaction, params: Mapping[str, Any]) -> dict[str, Any]:
    action: str = params["action"]
    actions = {"set": transaction.savepoint, "release": transaction.release, "rollback": transaction.rollback_to}
    actions[action](params["name"])
    return {}
