"""A FastAPI service whose agent forges and runs tools on the service's own database."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models import Model

from tgp import Approval, ApprovalRequest, AsyncTGP, DbApiExecutor, HostModule, TGPError
from tgp.adapters.pydantic_ai import toolset

shop = HostModule("shop")


@shop.tool(effect="read")
def exchange_rate(currency: str) -> float:
    """The value of one euro in a currency."""
    return {"EUR": 1.0, "USD": 1.25}[currency]


def approve(request: ApprovalRequest) -> Approval:
    """Refuses every call that a rule wants a person to see: this service has no person to ask."""
    return Approval(False, reason=f"{request.tool} needs a person: {'; '.join(request.reasons)}")


class Question(BaseModel):
    message: str


class Answer(BaseModel):
    text: str


def create_app(model: Model | str | None = None, directory: str = ".", database: str = "shop.db") -> FastAPI:
    """The service. The kernel starts with its first use and ends with the service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sql = DbApiExecutor(lambda: sqlite3.connect(database), "sqlite")
        async with AsyncTGP(directory, sql=sql, host_tools=[shop], approve=approve, client="shop") as kernel:
            app.state.kernel = kernel
            app.state.agent = Agent(model or os.environ["MODEL"], toolsets=[toolset(kernel)])
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/chat")
    async def chat(question: Question, request: Request) -> Answer:
        agent: Agent[None, str] = request.app.state.agent
        return Answer(text=(await agent.run(question.message)).output)

    @app.post("/tools/{path:path}")
    async def run_tool(path: str, args: dict[str, Any], request: Request) -> Any:
        """Runs a forged tool without a model."""
        kernel: AsyncTGP = request.app.state.kernel
        try:
            return await kernel.exec(f"tools/{path}.ts", args)
        except TGPError as error:
            raise HTTPException(404 if error.code == "ENOTFOUND" else 422, error.to_dict()) from error

    return app


def __getattr__(name: str) -> Any:
    """`uvicorn app:app` creates the service; a test creates its own."""
    if name == "app":
        return create_app()
    raise AttributeError(name)
