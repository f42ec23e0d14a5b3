#!/usr/bin/env python3
"""A chronicle in Python: files of canonical JSON lines below the project."""

import datetime
import hashlib
import math
import os
import re

from relay_part import Part, PartError, loads

# Bytes of a line with its end, and levels of the value of a field.
MAX_LINE_BYTES = 1 << 20
MAX_LEVELS = 64
SCOPE = re.compile(r"^(\.sage/[^/]+|src/(?:.*/)?[^/]+)\.sage$")


def number(value):
    """A number as RFC 8785 writes it: what ECMAScript would print of the same double."""
    if isinstance(value, int):
        double = float(value) if abs(value) < 1 << 1024 else math.inf
        text = number(double) if math.isfinite(double) else ""
        if text != str(int(value)):
            raise PartError("EVALIDATION", f"{value} has no exact canonical form", help="write it as a string")
        return text
    if not math.isfinite(value):
        raise PartError("EVALIDATION", f"{value} is no number of JSON")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    # Python, too, prints the shortest digits that read back as the same double, in another notation.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        power = point - 1
        text = digits[0] + ("." + digits[1:] if count > 1 else "") + "e" + ("+" if power >= 0 else "-") + str(abs(power))
    return sign + text


SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def string(value):
    return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'


def canonical(value):
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    # Names are sorted by their UTF-16 code units.
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(string(name) + ":" + canonical(value[name]) for name in names) + "}"


def is_time(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text):
        return False
    try:
        datetime.datetime.fromisoformat(text[:19].upper())
    except ValueError:
        return False
    return True


def depth(value):
    """How many lists and objects are inside of each other, as far as it matters."""
    levels, values = 0, [value]
    while levels <= MAX_LEVELS:
        inner = [list(one.values()) if isinstance(one, dict) else one for one in values if isinstance(one, (list, dict))]
        if not inner:
            break
        values = [item for items in inner for item in items]
        levels += 1
    return levels


def event_id(event):
    """The event's own id, when it is an event at all."""
    actor = event.get("actor")
    texts = [event.get("type"), event.get("timestamp")]
    texts += [actor.get("agent"), actor.get("id")] if isinstance(actor, dict) else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise PartError("EVALIDATION", "an event has type, timestamp and an actor with agent and id")
    if not is_time(event["timestamp"]):
        raise PartError("EVALIDATION", f"`{event['timestamp']}` is no time of RFC 3339")
    if max(depth(value) for value in event.values()) > MAX_LEVELS:
        raise PartError("EVALIDATION", f"a value has more than {MAX_LEVELS} levels")
    bare = {name: value for name, value in event.items() if name != "eventId"}
    own = hashlib.sha256(canonical(bare).encode()).hexdigest()
    if event.get("eventId") not in (None, own):
        raise PartError("EVALIDATION", f"the eventId is not its own, which is {own}")
    return own


class Chronicle(Part):
    kind = "chronicle"
    name = "chronicle.py"

    def place(self, file):
        parts = file.split("/")
        if not SCOPE.match(file) or ".." in parts or any(part.lower() == ".git" for part in parts):
            raise PartError("EPERMISSION", f"`{file}` is outside the scope of the chronicle",
                            help="name `.sage/NAME.sage` or `src/PATH.sage`")
        return os.path.join(self.directory, *parts)

    def lines(self, file):
        try:
            with open(self.place(file), encoding="utf-8", newline="\n") as chronicle:
                return chronicle.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def keep(self, place, line):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "a", encoding="utf-8", newline="\n") as chronicle:
            chronicle.write(line + "\n")

    def on_append(self, _request, params):
        place = self.place(params["file"])
        event = params["event"]
        own = event_id(event)
        line = canonical({**event, "eventId": own})
        if len(line.encode()) >= MAX_LINE_BYTES:
            raise PartError("EVALIDATION", f"the event needs more than {MAX_LINE_BYTES} bytes")
        appended = line not in self.lines(params["file"])
        if appended:
            self.keep(place, line)
        return {"eventId": own, "appended": appended}

    def on_tail(self, _request, params):
        lines = self.lines(params["file"])
        most = params["most"]
        return [loads(line) for line in (lines[-most:] if most else [])]

    def on_files(self, _request, _params):
        found = []
        for top in (".sage", "src"):
            for folder, _folders, names in os.walk(os.path.join(self.directory, top)):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), self.directory).replace(os.sep, "/")
                    if SCOPE.match(path):
                        found.append(path)
        return sorted(found)


if __name__ == "__main__":
    Chronicle().run()
