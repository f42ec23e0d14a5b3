"""A program that breaks the protocol of the relay in the way that its argument names."""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "python"))

from chronicle import Chronicle

MODE = sys.argv[1]


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def line(value):
    write(json.dumps(value, separators=(",", ":")).encode() + b"\n")


def misbehave(request):
    """Answers a request that comes after hello."""
    if MODE == "garbage":
        write(b"Hello, I am a program.\n")
    elif MODE == "not-text":
        write(b'{"id":2,"result":"\xff\xfe"}\n')
    elif MODE == "flood":
        piece = b"x" * (1 << 20)
        for _ in range(64):
            write(piece)
    elif MODE == "half-a-line":
        write(b'{"id":2,"res')
        sys.exit(0)
    elif MODE == "wrong-id":
        line({"id": request + 1000, "result": None})
    elif MODE == "no-id":
        line({"result": None})
    elif MODE == "both":
        line({"id": request, "result": None, "error": {"code": "EINTERNAL", "message": ""}})
    elif MODE == "event":
        line({"id": request, "event": {"type": "text", "value": "a"}})
    elif MODE == "bad-error":
        line({"id": request, "error": "no"})
    elif MODE == "bad-result":
        line({"id": request, "result": {"appended": "perhaps"}})
    elif MODE == "exit-later":
        sys.stderr.write("noise\n" * 100_000 + "I have had enough\n")
        sys.exit(3)
    elif MODE == "killed":
        os.kill(os.getpid(), 9)
    elif MODE == "silent":
        time.sleep(3600)
    elif MODE.startswith("chat"):
        chat(request)


def chat(request):
    if MODE == "chat-result":
        line({"id": request, "result": []})
    elif MODE == "chat-no-event":
        line({"id": request, "event": {"type": "song"}})
    elif MODE == "chat-error":
        line({"id": request, "error": {"code": "EPROVIDER", "message": "the model is tired"}})
    elif MODE == "chat-endless":
        while True:
            line({"id": request, "event": {"type": "text", "value": "and "}})
    elif MODE == "chat-after-end":
        call = {"type": "tool_call", "toolName": "Echo", "callId": "1", "arguments": {"text": "hello"}}
        for event in (call, {"type": "end"}, {"type": "text", "value": "one more thing"}):
            line({"id": request, "event": event})


class Pieces(Chronicle):
    """A chronicle that is right, byte by byte."""

    def say(self, message):
        for byte in json.dumps(message).encode() + b"\n":
            write(bytes([byte]))


class Twice(Chronicle):
    """A chronicle that is right, and says everything after hello twice."""

    def say(self, message):
        line(message)
        if message["id"] > 1:
            line(message)


def main():
    if MODE == "twice":
        Twice().run()
    if MODE in ("pieces", "stubborn"):
        Pieces().run()
        # A stubborn program does not mind that nobody wants it any more.
        while MODE == "stubborn":
            time.sleep(3600)
        return
    if MODE == "exit-at-once":
        return
    if MODE == "silent-hello":
        time.sleep(3600)
    hello = json.loads(sys.stdin.readline())
    if MODE == "bad-hello":
        line({"id": hello["id"], "result": {"greeting": "hello"}})
    elif MODE == "refused-hello":
        line({"id": hello["id"], "error": {"code": "EVALIDATION", "message": "I speak something else"}})
    else:
        line({"id": hello["id"], "result": {"name": "hostile.py", "version": "1"}})
    if MODE == "deaf":
        time.sleep(3600)
    for request in sys.stdin:
        message = json.loads(request)
        if "id" in message:
            misbehave(message["id"])


main()
