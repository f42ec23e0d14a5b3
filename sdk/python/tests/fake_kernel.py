"""A kernel for tests: it answers `initialize` and then behaves as its first argument names."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any


def send(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def answer(message: dict[str, Any], result: Any) -> None:
    send({"id": message["id"], "result": result})


def done(message: dict[str, Any], data: Any) -> None:
    answer(message, {"ok": True, "data": data})


def ask(method: str, params: dict[str, Any], request_id: int = 1) -> dict[str, Any]:
    """Sends a request to the host and returns its answer; requests of the host in between are dropped."""
    send({"id": request_id, "method": method, "params": params})
    while True:
        message = receive()
        if "method" not in message and message["id"] == request_id:
            return message


def initialize(protocol: int = 1) -> dict[str, Any]:
    message = receive()
    assert message["method"] == "initialize", message
    kernel = {"version": "9.9.9", "definitionsHash": "d", "staticPrompt": "p"}
    result = {
        "protocolVersion": protocol,
        "kernel": kernel,
        "session": "host/test",
        "project": "/nowhere",
        "notices": ["a notice"],
    }
    answer(message, result)
    params: dict[str, Any] = message["params"]
    return params


def serve(handlers: dict[str, Any]) -> None:
    """Answers calls by the name of their tool."""
    while True:
        message = receive()
        if message.get("method") == "shutdown":
            answer(message, {})
            return
        if message.get("method") == "tools/call":
            handlers[message["params"]["tool"]](message)
        elif message.get("method") in handlers:
            handlers[message["method"]](message)


def echo(message: dict[str, Any]) -> None:
    done(message, message["params"].get("arguments"))


def fail(message: dict[str, Any]) -> None:
    details = {"place": {"file": "tools/a.ts", "line": 3, "column": 5}, "help": "do something else"}
    error = {"code": "ERUNTIME", "message": "it threw", "details": details}
    answer(message, {"ok": False, "error": error})


def main() -> None:
    behaviour = sys.argv[1]
    if "--version" in sys.argv:
        print("tgp 9.9.9")
        return
    if behaviour == "boot-silence":
        time.sleep(600)
    if behaviour == "boot-error":
        message = receive()
        data = {"code": "ECONFIG", "message": "no project", "details": {"help": "run `tgp init`"}}
        send({"id": message["id"], "error": {"code": -32000, "message": "no project", "data": data}})
        receive()
    if behaviour == "boot-death":
        print("panic: cannot boot", file=sys.stderr, flush=True)
        sys.exit(2)
    if behaviour == "other-protocol":
        initialize(2)
        receive()
    params = initialize()
    handlers: dict[str, Any] = {"echo": echo, "fail": fail}
    handlers["params"] = lambda message: done(message, params)
    handlers["ask"] = lambda message: done(
        message, ask(message["params"]["arguments"]["method"], message["params"]["arguments"]["params"])
    )
    if behaviour == "log":
        send({"method": "log", "params": {"level": "warn", "target": "worker", "message": "100% slow"}})
        serve(handlers)
    elif behaviour == "adapters":
        handlers |= {"list_files": echo, "exec_tool": fail}
        handlers["prompt/get"] = lambda message: answer(message, {"prompt": "the live prompt"})
        serve(handlers)
    elif behaviour == "serve":
        serve(handlers)
        # A kernel ends when its input ends.
        while sys.stdin.buffer.readline():
            pass
    elif behaviour == "end-at-shutdown":
        while receive().get("method") != "shutdown":
            pass
    elif behaviour == "die":
        receive()
        print("x" * 200_000, file=sys.stderr)
        print("panic: it is over", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif behaviour == "half-line":
        receive()
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":')
        sys.stdout.buffer.flush()
    elif behaviour == "garbage":
        receive()
        sys.stdout.buffer.write(b"hello, this is not JSON\n")
        sys.stdout.buffer.flush()
        time.sleep(600)
    elif behaviour == "deep":
        receive()
        sys.stdout.buffer.write(b"[" * 1_000_000 + b"\n")
        sys.stdout.buffer.flush()
        time.sleep(600)
    elif behaviour == "huge-line":
        receive()
        chunk = b"x" * (1 << 20)
        for _ in range(17):
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        time.sleep(600)
    elif behaviour == "silence":
        while True:
            message = receive()
            if message.get("method") == "cancel":
                print(json.dumps(message), file=sys.stderr, flush=True)
    elif behaviour == "deaf":
        time.sleep(600)
    elif behaviour == "unknown-ids":
        message = receive()
        for request_id in (999, "text", None, 1.5, True):
            send({"id": request_id, "result": {}})
        send({"method": "session/event", "params": {"request": 77, "event": {}}})
        send({"method": "something/new", "params": {}})
        done(message, "still here")
        serve(handlers)
    elif behaviour == "cancel":
        # Answers the next call only after the first was cancelled.
        first = receive()
        message = receive()
        assert message["method"] == "cancel" and message["params"]["id"] == first["id"], message
        answer(first, {"ok": False, "error": {"code": "ERUNTIME", "message": "cancelled", "details": {}}})
        serve(handlers)
    elif behaviour == "flood":
        message = receive()
        for request_id in range(3000):
            send({"id": request_id, "method": "host/call", "params": message["params"]["arguments"]})
        # Only refusals are answered before the message in the log.
        refusals = [receive() for _ in range(3000 - 1024)]
        assert all("already works on" in item["error"]["message"] for item in refusals)
        send({"method": "log", "params": {"level": "error", "target": "test", "message": "go on"}})
        results = [receive() for _ in range(1024)]
        done(message, [len(refusals), sum("result" in item for item in results)])
        serve(handlers)
    elif behaviour == "session":
        session(receive(), handlers)
    elif behaviour == "session-flood":
        message = receive()
        event = {"type": "text", "value": "x" * 1_000_000}
        for _ in range(80):
            send({"method": "session/event", "params": {"request": message["id"], "event": event}})
        while (message := receive()).get("method") != "cancel":
            echo(message)
        serve(handlers)


def session(message: dict[str, Any], handlers: dict[str, Any]) -> None:
    assert message["method"] == "session/run", message
    for number in range(3):
        event = {"type": "text", "value": f"{message['params']['task']} {number}"}
        send({"method": "session/event", "params": {"request": message["id"], "event": event}})
    answer(message, {"summary": {"type": "end", "state": "done"}})
    serve(handlers)


if __name__ == "__main__":
    main()
