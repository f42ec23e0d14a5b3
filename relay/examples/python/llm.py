#!/usr/bin/env python3
"""A model in Python: the puppet that relay/README.md describes."""

import json

from relay_part import Part

ECHO = "Echo"


def told(messages):
    """The turn that the task of the conversation wants now, if it wants one."""
    answers = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            answers += 1
            continue
        for block in reversed(message["blocks"]):
            if block["type"] != "text":
                continue
            try:
                task = json.loads(block["text"])
            except ValueError:
                continue
            if isinstance(task, dict) and isinstance(task.get("relay"), list):
                turns = task["relay"]
                return turns[answers] if answers < len(turns) else None
    return None


def turn(options):
    events = told(options["messages"])
    if events is not None:
        return events
    message = options["messages"][-1] if options["messages"] else {"role": "user", "blocks": []}
    block = message["blocks"][-1] if message["blocks"] else {"type": "text", "text": ""}
    said = block.get("text") if block["type"] == "text" else block.get("content", "")
    is_asked = message["role"] == "user" and block["type"] == "text"
    if is_asked and any(tool["name"] == ECHO for tool in options["tools"]):
        call = {"type": "tool_call", "toolName": ECHO, "callId": f"call_{options['turn']}", "arguments": {"text": said}}
        return [call]
    return [{"type": "text", "value": f"ok:{said}"}]


class Model(Part):
    kind = "llm"
    name = "llm.py"

    def on_models(self, _request, _params):
        return [{"name": "test-1"}]

    def on_chat(self, request, params):
        events = turn(params)
        for event in events:
            self.event(request, event)
        if not events or events[-1]["type"] not in ("end", "error"):
            self.event(request, {"type": "end"})
        return NotImplemented


if __name__ == "__main__":
    Model().run()
