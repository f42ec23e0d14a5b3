"""The parts of relay/examples/python, each with one mistake that its first argument names."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "python"))

import chronicle
import graph
import llm
import tools


class WritesTwice(chronicle.Chronicle):
    def lines(self, file):
        # It has forgotten what is there when it appends, and not when it reads.
        return [] if self.appending else super().lines(file)

    def on_append(self, request, params):
        self.appending = True
        try:
            return super().on_append(request, params)
        finally:
            self.appending = False

    appending = False


class KnowsNoScope(chronicle.Chronicle):
    def place(self, file):
        return os.path.join(self.directory, file)


class ForgetsTheNewest(chronicle.Chronicle):
    def on_tail(self, request, params):
        return super().on_tail(request, params)[:-1]


def unsorted():
    """Canonical JSON as people write it who have not read RFC 8785."""
    chronicle.canonical = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return chronicle.Chronicle()


class ForgetsTheCommit(graph.Graph):
    def meant(self, commit):
        return super().meant(commit if commit == graph.WORK_TREE else None)


class CountsTwice(graph.Graph):
    times = 0

    def on_ingest(self, request, params):
        self.times += 1
        return super().on_ingest(request, params)

    def ask(self, snapshot, standing, question):
        answer = super().ask(snapshot, standing, question)
        return {**answer, "rows": answer["rows"] * self.times}


class KnowsNoRenames(graph.Graph):
    def facts(self, snapshot):
        return super().facts({**snapshot, "renames": set()})


class SeesNoImports(graph.Graph):
    def imported(self, snapshot, path, text):
        return []


class ChecksNothing(tools.Tools):
    def check(self, name, arguments, rule):
        if not isinstance(arguments, dict):
            raise tools.PartError("EVALIDATION", "the arguments are no object")

    def work_out(self, name, arguments):
        given = {"content": "", "replace": "", **arguments}
        given = {key: value if isinstance(value, str) else str(value) for key, value in given.items()}
        return super().work_out(name, given)


class RunsDry(tools.Tools):
    def call(self, call, context):
        data = super().call(call, context)
        if context["dry_run"]:
            super().call(call, {**context, "dry_run": False})
        return data


class Reorders(llm.Model):
    def on_chat(self, request, params):
        events = llm.turn(params)
        if len(events) > 3:
            events = [events[1], events[0], *events[2:]]
        for event in events:
            self.event(request, event)
        if events[-1]["type"] != "end":
            self.event(request, {"type": "end"})
        return NotImplemented


class CallsNothing(llm.Model):
    def on_chat(self, request, params):
        self.event(request, {"type": "text", "value": "no"})
        self.event(request, {"type": "end"})
        return NotImplemented


PARTS = {
    "chronicle-writes-twice": WritesTwice,
    "chronicle-knows-no-scope": KnowsNoScope,
    "chronicle-forgets-the-newest": ForgetsTheNewest,
    "chronicle-unsorted": unsorted,
    "graph-forgets-the-commit": ForgetsTheCommit,
    "graph-counts-twice": CountsTwice,
    "graph-knows-no-renames": KnowsNoRenames,
    "graph-sees-no-imports": SeesNoImports,
    "tools-check-nothing": ChecksNothing,
    "tools-run-dry": RunsDry,
    "llm-reorders": Reorders,
    "llm-calls-nothing": CallsNothing,
}

PARTS[sys.argv[1]]().run()
