"""Forms with the official Python SDK."""

import asyncio
import contextlib
import json
import os
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

answers = []


async def person(context, form):
    action, choose = answers.pop(0)
    choices = json.loads(form.model_dump_json(by_alias=True))["requestedSchema"]["properties"]["choice"]["enum"]
    content = {"choice": choices[1]} if choose else None
    return types.ElicitResult(action=action, content=content)


async def steps(session):
    async def call(code, action, choose):
        answers.append((action, choose))
        return await session.call_tool("run", {"code": code})

    done = await call("return 6 * 7;", "accept", True)
    assert not done.is_error, done.content[0].text
    assert json.loads(done.content[0].text)["result"] == 42
    empty = await call("return 1;", "accept", False)
    assert empty.is_error and "EAPPROVAL" in empty.content[0].text, empty
    declined = await call("return 2;", "decline", False)
    assert declined.is_error and "declined" in declined.content[0].text, declined
    assert not answers


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
        session = ClientSession(streams[0], streams[1], elicitation_callback=person)
        session = await stack.enter_async_context(session)
        await session.initialize()
        await steps(session)
    print("done")


asyncio.run(main())
