"""The adapters with the real packages: fake models, and a server on the loopback for `anthropic`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from conftest import MakeBinary

from tgp import TGP, TOOL_DEFINITIONS, AsyncTGP, KernelExitedError

NAMES = ["list_files", "exec_tool"]
"""`list_files` of the scripted kernel works, `exec_tool` fails."""
ANSWER = {"ok": True, "data": {"path": "tools"}}


def check_failure(result: dict[str, Any]) -> None:
    assert result["ok"] is False
    assert result["error"]["code"] == "ERUNTIME"
    assert result["error"]["details"]["place"]["line"] == 3


def test_openai_agents(fake: MakeBinary) -> None:
    from agents import Agent, ModelResponse, Runner, Usage
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from tgp.adapters.openai_agents import instructions, tools

    class Script(Model):
        def __init__(self) -> None:
            self.inputs: list[Any] = []
            self.system: list[str | None] = []
            self.offered: list[str] = []

        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            system, items, _settings, offered = args[:4] if args else list(kwargs.values())[:4]
            self.system.append(system)
            self.inputs.append(items)
            self.offered = [tool.name for tool in offered]
            calls = [("list_files", '{"path": "tools"}'), ("exec_tool", "{}"), ("list_files", "not json")]
            turn = len(self.inputs) - 1
            if turn < len(calls):
                name, arguments = calls[turn]
                output: Any = ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{turn}", name=name, arguments=arguments
                )
            else:
                text = ResponseOutputText(type="output_text", text="done", annotations=[])
                output = ResponseOutputMessage(
                    type="message", id="m", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    async def main() -> None:
        async with AsyncTGP(binary=fake("adapters")) as kernel:
            model = Script()
            agent: Agent[Any] = Agent(
                name="shop", instructions=instructions(kernel), tools=list(tools(kernel, NAMES)), model=model
            )
            result = await Runner.run(agent, "go")
            assert result.final_output == "done"
            assert model.offered == NAMES
            assert model.system == ["the live prompt"] * 4
            outputs = [
                json.loads(item["output"]) for item in model.inputs[-1] if item.get("type") == "function_call_output"
            ]
            assert outputs[0] == ANSWER
            check_failure(outputs[1])
            assert outputs[2]["error"]["code"] == "EVALIDATION"

    asyncio.run(main())


def test_pydantic_ai(fake: MakeBinary) -> None:
    from pydantic_ai import Agent, ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from tgp.adapters.pydantic_ai import toolset

    seen: dict[str, Any] = {}

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen["tools"] = [tool.name for tool in info.function_tools]
        seen["schema"] = info.function_tools[0].parameters_json_schema
        seen["instructions"] = info.instructions
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("list_files", {"path": "tools"}), ToolCallPart("exec_tool", "{}")])
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        seen["results"] = [part.content for part in last.parts if isinstance(part, ToolReturnPart)]
        return ModelResponse([TextPart("done")])

    async def main() -> None:
        async with AsyncTGP(binary=fake("adapters")) as kernel:
            agent = Agent(FunctionModel(model), toolsets=[toolset(kernel, NAMES)])
            assert (await agent.run("go")).output == "done"

    asyncio.run(main())
    assert seen["tools"] == NAMES
    assert seen["schema"] == next(tool["inputSchema"] for tool in TOOL_DEFINITIONS if tool["name"] == NAMES[0])
    assert "the live prompt" in seen["instructions"]
    assert seen["results"][0] == ANSWER
    check_failure(seen["results"][1])


def test_pydantic_ai_with_the_test_model_and_a_sync_kernel(fake: MakeBinary) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from tgp.adapters.pydantic_ai import tools

    with TGP(binary=fake("adapters")) as kernel:
        agent = Agent(TestModel(), tools=tools(kernel, ["list_files"]))
        assert '"ok":true' in agent.run_sync("go").output.replace(" ", "")


class Messages(HTTPServer):
    """A server with the message API: it plays turns and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.turns: list[list[dict[str, Any]]] = []


class Handler(BaseHTTPRequestHandler):
    server: Messages  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = self.server.turns[len(self.server.requests)]
        self.server.requests.append(request)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        body = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Messages]:
    server = Messages()
    server.turns = [
        [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "list_files", "input": {"path": "tools"}},
            {"type": "tool_use", "id": "t2", "name": "exec_tool", "input": {}},
        ],
        [{"type": "text", "text": "done"}],
    ]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def check_conversation(server: Messages) -> None:
    first, second = server.requests
    assert [tool["name"] for tool in first["tools"]] == NAMES
    assert first["tools"][0]["input_schema"]["type"] == "object"
    results = second["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in results] == ["t1", "t2"]
    assert [bool(block.get("is_error")) for block in results] == [False, True]
    texts = [
        block["content"] if isinstance(block["content"], str) else block["content"][0]["text"] for block in results
    ]
    assert json.loads(texts[0]) == ANSWER
    check_failure(json.loads(texts[1]))


def address(server: Messages) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_anthropic_with_a_loop_of_the_application(fake: MakeBinary, server: Messages) -> None:
    from anthropic import Anthropic
    from anthropic.types import MessageParam

    from tgp.adapters.anthropic import results, tools

    client = Anthropic(api_key="none", base_url=address(server), max_retries=0)
    messages: list[MessageParam] = [{"role": "user", "content": "go"}]
    with TGP(binary=fake("adapters")) as kernel:
        while True:
            message = client.messages.create(model="fake", max_tokens=100, tools=tools(NAMES), messages=messages)
            answers = results(kernel, message)
            if not answers:
                break
            messages.append({"role": "assistant", "content": message.content})
            messages.append({"role": "user", "content": answers})
    check_conversation(server)


def test_anthropic_with_an_async_loop(fake: MakeBinary, server: Messages) -> None:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam

    from tgp.adapters.anthropic import aresults, tools

    async def main() -> None:
        messages: list[MessageParam] = [{"role": "user", "content": "go"}]
        async with (
            AsyncAnthropic(api_key="none", base_url=address(server), max_retries=0) as client,
            AsyncTGP(binary=fake("adapters")) as kernel,
        ):
            create = client.messages.create
            message = await create(model="fake", max_tokens=100, tools=tools(NAMES), messages=messages)
            messages.append({"role": "assistant", "content": message.content})
            messages.append({"role": "user", "content": await aresults(kernel, message)})
            message = await create(model="fake", max_tokens=100, tools=tools(NAMES), messages=messages)
            assert await aresults(kernel, message) == []

    asyncio.run(main())
    check_conversation(server)


def test_the_tool_runner_of_anthropic(fake: MakeBinary, server: Messages) -> None:
    from anthropic import Anthropic

    from tgp.adapters.anthropic import runner_tools

    client = Anthropic(api_key="none", base_url=address(server), max_retries=0)
    with TGP(binary=fake("adapters")) as kernel:
        runner = client.beta.messages.tool_runner(
            model="fake",
            max_tokens=100,
            tools=runner_tools(kernel, NAMES),
            messages=[{"role": "user", "content": "go"}],
        )
        assert len(list(runner)) == 2
    check_conversation(server)


def test_the_async_tool_runner_of_anthropic(fake: MakeBinary, server: Messages) -> None:
    from anthropic import AsyncAnthropic

    from tgp.adapters.anthropic import async_runner_tools

    async def main() -> None:
        async with (
            AsyncAnthropic(api_key="none", base_url=address(server), max_retries=0) as client,
            AsyncTGP(binary=fake("adapters")) as kernel,
        ):
            runner = client.beta.messages.tool_runner(
                model="fake",
                max_tokens=100,
                tools=async_runner_tools(kernel, NAMES),
                messages=[{"role": "user", "content": "go"}],
            )
            assert len([message async for message in runner]) == 2

    asyncio.run(main())
    check_conversation(server)


def test_a_dead_kernel_is_not_told_to_the_model(fake: MakeBinary) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from tgp.adapters.pydantic_ai import tools

    with TGP(binary=fake("die")) as kernel:
        agent = Agent(TestModel(), tools=tools(kernel, ["list_files"]))
        with pytest.raises(KernelExitedError):
            agent.run_sync("go")


def test_an_unknown_name() -> None:
    from tgp.adapters.anthropic import tools

    with pytest.raises(ValueError, match="unknown tool `nothing`"):
        tools(["nothing"])


def test_bug_a_text_as_the_names_of_tools_was_a_list_of_letters() -> None:
    from tgp.adapters import anthropic, openai_agents, pydantic_ai

    text: Any = "exec_tool"
    kernel = TGP()
    for select in (
        lambda: anthropic.tools(text),
        lambda: anthropic.runner_tools(kernel, text),
        lambda: openai_agents.tools(kernel, text),
        lambda: pydantic_ai.toolset(kernel, text),
    ):
        with pytest.raises(
            TypeError, match=r"`names` is a str, expected a list of names, such as `names=\['exec_tool'\]`"
        ):
            select()
    with pytest.raises(ValueError, match=r"unknown tool `exec_tol`: did you mean `exec_tool`\?"):
        anthropic.tools(["exec_tol"])
