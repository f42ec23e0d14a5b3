"""The protocol of the relay, for a part that is written in Python.

One JSON object a line comes in on standard input, and one goes out on standard output. See relay/README.md.
"""

import json
import sys
import threading

PROTOCOL = 1
MAX_LINE = 8 << 20


class PartError(Exception):
    """What a request is answered with when it cannot be done."""

    def __init__(self, code, message, help=None, **details):
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = dict(details)
        if help:
            self.details["help"] = help

    def to_json(self):
        return {"code": self.code, "message": self.message, "details": self.details}


class ExactInteger(int):
    """An integer as it was written. Canonical JSON has to know whether it survives being a double."""


def loads(text):
    return json.loads(text, parse_int=ExactInteger)


class Part:
    """A part: a subclass has a method for each method of the protocol, named `on_<method>`."""

    kind = None
    name = "python-example"
    version = "1.0"

    def __init__(self):
        self.directory = None
        self._output = threading.Lock()

    def start(self):
        """Called once, when the directory is known."""

    def say(self, message):
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        with self._output:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def event(self, request, event):
        """One event of a stream; the last one is an end or an error."""
        self.say({"id": request, "event": event})

    def on_hello(self, request, params):
        if params.get("protocol") != PROTOCOL:
            raise PartError("EVALIDATION", f"protocol {params.get('protocol')} is not spoken here")
        if params.get("part") != self.kind:
            raise PartError("EVALIDATION", f"this program is {self.kind}, not {params.get('part')}")
        self.directory = params["directory"]
        self.start()
        return {"name": self.name, "version": self.version}

    def answer(self, message):
        request = message["id"]
        try:
            method = getattr(self, "on_" + message["method"], None)
            if method is None:
                raise PartError("ENOTFOUND", f"there is no method `{message['method']}`")
            if self.directory is None and message["method"] != "hello":
                raise PartError("EVALIDATION", "say hello first")
            result = method(request, message.get("params") or {})
            # A method that has said events itself gives nothing back.
            if result is not NotImplemented:
                self.say({"id": request, "result": result})
        except PartError as error:
            self.say({"id": request, "error": error.to_json()})

    def run(self):
        while True:
            line = sys.stdin.readline(MAX_LINE)
            if not line:
                return
            message = loads(line)
            # A notification, such as `cancel`, wants no answer.
            if "id" in message:
                self.answer(message)
