#!/usr/bin/env python3
"""Tools in Python: Echo, Read, Write, Edit, delete and Bash, on the files of the project."""

import difflib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from relay_part import Part, PartError

# Seconds that a command may take.
COMMAND_PATIENCE = 20
# Bytes of each output of a command that are given back.
MAX_OUTPUT = 256 << 10
# What a command does not get a copy of, and what it cannot change.
STATE = {".git", ".tgp"}

TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
LINE = {"type": "integer", "minimum": 1}
HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
EDIT = {"search": NAME, "replace": TEXT, "all": {"type": "boolean"}}


def schema(properties, required, **more):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


EDITS = {"type": "array", "minItems": 1, "items": schema(EDIT, ["search", "replace"])}
TOOLS = [
    ("Echo", [], "Say the text again.", "read", schema({"text": TEXT}, ["text"])),
    ("exec_tool", [], "Run the forged tool, which gives twice a number.", "execute",
     schema({"path": NAME, "args": {}}, ["path"])),
    ("fs_delete", [], "Delete a file.", "write", schema({"path": NAME, "expected_sha256": HASH}, ["path"])),
    ("fs_edit", ["Edit"], "Replace pieces of text in a file.", "write",
     schema({"path": NAME, "expected_sha256": HASH, "edits": EDITS, **EDIT}, ["path"],
            oneOf=[{"required": ["search", "replace"]}, {"required": ["edits"]}])),
    ("fs_read", ["Read"], "Read a text file.", "read", schema({"path": NAME, "offset": LINE, "limit": LINE}, ["path"])),
    ("fs_write", ["Write"], "Create a file or replace its content.", "write",
     schema({"path": NAME, "content": TEXT, "expected_sha256": HASH}, ["path", "content"])),
    ("shell_exec", ["Bash"], "Run a command line.", "execute", schema({"command": NAME}, ["command"])),
]
# The forged tool that is there from the beginning, with what it takes.
FORGED = {"tools/relay/twice.ts": schema({"count": {"type": "number"}, "label": TEXT}, ["count"])}
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}


def problem(value, rule, where="arguments"):
    """Why a value does not fit the few words of JSON Schema that are used above; nothing when it does."""
    if "type" in rule:
        fits = isinstance(value, TYPES[rule["type"]])
        if not fits or (rule["type"] in ("integer", "number") and isinstance(value, bool)):
            return f"{where} is not of type {rule['type']}"
    if isinstance(value, str):
        if len(value) < rule.get("minLength", 0):
            return f"{where} is too short"
        if "pattern" in rule and not re.search(rule["pattern"], value):
            return f"{where} does not match {rule['pattern']}"
    if isinstance(value, int) and value < rule.get("minimum", value):
        return f"{where} is less than {rule['minimum']}"
    if isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            return f"{where} has too few items"
        for at, item in enumerate(value):
            found = problem(item, rule.get("items", {}), f"{where}[{at}]")
            if found:
                return found
    if isinstance(value, dict):
        known = rule.get("properties", {})
        for name in rule.get("required", []):
            if name not in value:
                return f"{where} has no `{name}`"
        if rule.get("additionalProperties") is False and set(value) - set(known):
            return f"{where} has the unknown field `{sorted(set(value) - set(known))[0]}`"
        for name, item in value.items():
            found = problem(item, known.get(name, {}), f"{where}.{name}")
            if found:
                return found
    if "oneOf" in rule and sum(problem(value, option, where) is None for option in rule["oneOf"]) != 1:
        return f"{where} fits not exactly one of the allowed forms"
    return None


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def difference(path, before, after):
    lines = [(data or b"").decode("utf-8", "replace").splitlines(keepends=True) for data in (before, after)]
    return "".join(difflib.unified_diff(*lines, f"a/{path}", f"b/{path}"))


def tree(directory):
    files = {}
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name not in STATE]
        for name in names:
            place = os.path.join(folder, name)
            if os.path.isfile(place) and not os.path.islink(place):
                with open(place, "rb") as file:
                    files[os.path.relpath(place, directory)] = file.read()
    return files


class Tools(Part):
    kind = "tools"
    name = "tools.py"

    def on_definitions(self, _request, _params):
        return [
            {"name": name, "aliases": aliases, "description": description, "input_schema": rule,
             "effect": effect, "path": "fast", "dry_run": effect != "read"}
            for name, aliases, description, effect, rule in TOOLS
        ]

    def on_call(self, _request, params):
        try:
            return {"result": {"ok": True, "data": self.call(params["call"], params["context"])}}
        except PartError as error:
            return {"result": {"ok": False, "error": error.to_json()}}

    def call(self, call, context):
        found = [tool for tool in TOOLS if call["tool"] == tool[0] or call["tool"] in tool[1]]
        if not found:
            raise PartError("ENOTFOUND", f"there is no tool `{call['tool']}`")
        name, _aliases, _description, _effect, rule = found[0]
        arguments = call.get("arguments")
        self.check(name, arguments, rule)
        data, changes = self.work_out(name, arguments)
        if context["dry_run"]:
            diffs = [difference(path, self.read(path), after) for path, after in sorted(changes.items())]
            return {**data, "dry_run": True, "diff": "".join(diffs)}
        for path, after in changes.items():
            self.apply(path, after)
        return data

    def check(self, name, arguments, rule):
        found = problem(arguments, rule)
        if found:
            raise PartError("EVALIDATION", f"the arguments of `{name}` do not fit: {found}",
                            help="compare them with the tool's input schema")

    def place(self, path):
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or not parts:
            raise PartError("ESECURITY", f"`{path}` leaves the project")
        place = os.path.join(self.directory, *parts)
        if os.path.realpath(place) != os.path.join(os.path.realpath(self.directory), *parts):
            raise PartError("ESECURITY", f"`{path}` leads over a link")
        return place

    def read(self, path):
        try:
            with open(self.place(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def apply(self, path, after):
        place = self.place(path)
        if after is None:
            os.remove(place)
            return
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(after)

    def work_out(self, name, arguments):
        """What a tool answers, and the new content of each file that it would change."""
        if name == "Echo":
            return {"echoed": arguments["text"]}, {}
        if name == "exec_tool":
            return {"result": self.forged(arguments["path"], arguments.get("args"))}, {}
        if name == "shell_exec":
            return self.shell(arguments["command"])
        path = arguments["path"]
        before = self.read(path)
        expected = arguments.get("expected_sha256")
        if expected and (before is None or sha256(before) != expected):
            raise PartError("ECONFLICT", f"`{path}` is not what was expected", help="read it again")
        if name == "fs_write":
            after = arguments["content"].encode()
            return {"path": path, "created": before is None, "bytes": len(after), "sha256": sha256(after)}, {path: after}
        if before is None:
            raise PartError("ENOTFOUND", f"there is no file `{path}`")
        if name == "fs_delete":
            return {"path": path, "kind": "file"}, {path: None}
        text = before.decode("utf-8")
        if name == "fs_read":
            lines = text.splitlines(keepends=True)
            first = arguments.get("offset", 1) - 1
            last = first + arguments.get("limit", len(lines))
            data = {"path": path, "content": "".join(lines[first:last]), "sha256": sha256(before)}
            if last < len(lines):
                data["nextOffset"] = last + 1
            return data, {}
        for edit in arguments.get("edits") or [arguments]:
            times = text.count(edit["search"])
            if times == 0:
                raise PartError("ENOTFOUND", f"`{path}` does not contain the text to replace")
            if times > 1 and not edit.get("all"):
                raise PartError("ECONFLICT", f"`{path}` contains the text to replace {times} times")
            text = text.replace(edit["search"], edit["replace"])
        after = text.encode()
        return {"path": path, "bytes": len(after), "sha256": sha256(after)}, {path: after}

    def forged(self, path, arguments):
        rule = FORGED.get(path)
        if rule is None:
            raise PartError("ENOTFOUND", f"there is no forged tool `{path}`")
        wrong = problem(arguments, rule)
        if wrong:
            raise PartError("EVALIDATION", f"`{path}`: {wrong}")
        return arguments["count"] * 2

    def shell(self, command):
        """Runs a command on a copy of the project, and finds out what it would change. This is no sandbox."""
        with tempfile.TemporaryDirectory(prefix="relay-tools-") as folder:
            copy = os.path.join(folder, "project")
            shutil.copytree(self.directory, copy, symlinks=True, ignore=shutil.ignore_patterns(*STATE))
            before = tree(copy)
            try:
                ran = subprocess.run(["sh", "-c", command], cwd=copy, stdin=subprocess.DEVNULL,
                                     capture_output=True, timeout=COMMAND_PATIENCE)
            except subprocess.TimeoutExpired:
                raise PartError("ERUNTIME", f"the command has not ended within {COMMAND_PATIENCE} s") from None
            after = tree(copy)
        changed = {path: after.get(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        said = [output[:MAX_OUTPUT].decode("utf-8", "replace") for output in (ran.stdout, ran.stderr)]
        data = {"exitCode": ran.returncode, "stdout": said[0], "stderr": said[1], "changed": sorted(changed)}
        return data, changed if ran.returncode == 0 else {}


if __name__ == "__main__":
    Tools().run()
