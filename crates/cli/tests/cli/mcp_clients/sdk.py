"""The official Python SDK: over stdio (`sdk.py stdio TGP ARGS…`) and over HTTP (`sdk.py http URL TOKEN`)."""

import asyncio
import contextlib
import json
import os
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

TEST = """import { expect, test } from '@tgp/test';
import half from './half.ts';
test('halves', () => expect(half({ n: 4 })).toBe(2));
"""
SOURCE = """/** Half of a number. */
export default function half(args: { n: number }): number {
  return args.n / 2;
}
"""


def text(result):
    return result.content[0].text


def data(result):
    assert not result.is_error, text(result)
    return json.loads(text(result))


async def steps(session):
    async def call(name, arguments):
        result = await session.call_tool(name, arguments)
        # A slow machine answers with a handle after 20 s.
        while not result.is_error and text(result).startswith('{"run":"') and '"state":"running"' in text(result):
            result = await session.call_tool("wait", {"run": json.loads(text(result))["run"]})
        return result

    tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == ["search", "describe", "run", "forge", "wait", "approval", "graph"]
    assert data(await call("run", {"code": "return 6 * 7;"}))["result"] == 42
    name = "clients/half"
    forge = {"name": name, "test": TEST, "source": SOURCE}
    assert data(await call("forge", forge))["green"]["failed"] == 0
    assert data(await call("run", {"tool": name, "args": {"n": 84}}))["result"] == 42
    wrong = await call("run", {"tool": name, "args": {"n": "four"}})
    assert wrong.is_error and "EVALIDATION" in text(wrong), text(wrong)
    endless = {"code": "while (true) { await new Promise((done) => setTimeout(done, 5)); }"}
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(session.call_tool("run", endless), timeout=0.3)
    calls = [call("run", {"code": "return args.n + 1;", "args": {"n": n}}) for n in range(100)]
    for n, answer in enumerate(await asyncio.gather(*calls)):
        assert data(answer)["result"] == n + 1, text(answer)
    audit = await session.read_resource("tgp://audit")
    assert "exec_code" in audit.contents[0].text


async def main():
    kind, target, *rest = sys.argv[1:]
    async with contextlib.AsyncExitStack() as stack:
        if kind == "stdio":
            server = StdioServerParameters(command=target, args=rest, env=dict(os.environ))
            errors = stack.enter_context(open(os.devnull, "w"))
            streams = await stack.enter_async_context(stdio_client(server, errors))
        else:
            headers = {"Authorization": f"Bearer {rest[0]}"}
            client = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            streams = await stack.enter_async_context(streamable_http_client(target, http_client=client))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        await steps(session)
    print("done")


asyncio.run(main())
