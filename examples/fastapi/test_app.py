"""The service with a fake model and the real kernel."""

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest
from app import create_app
from fastapi.testclient import TestClient
from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tgp import KernelNotFoundError, find_binary

TOOL = """\
import { exchange_rate } from 'host:shop';

/** The sum of all open orders in a currency. */
export default async function openOrders(args: { currency: string }): Promise<number> {
  const rows = await tgp.exec_sql('SELECT sum(price) AS total FROM orders WHERE paid = ?', [0]);
  return rows[0].total * (await exchange_rate({ currency: args.currency }));
}
"""


def forge(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """A model that writes a tool, runs it, and answers with its result."""
    calls = [
        ToolCallPart("write_file", {"path": "tools/open.ts", "content": TOOL}),
        ToolCallPart("exec_tool", {"path": "tools/open.ts", "args": {"currency": "USD"}}),
    ]
    turn = len(messages) // 2
    if turn < len(calls):
        return ModelResponse([calls[turn]])
    result = messages[-1].parts[0].content
    return ModelResponse([TextPart(json.dumps(result["data"]["result"] if result["ok"] else result))])


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    try:
        binary = find_binary()
    except KernelNotFoundError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("TGP_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run([binary, "-C", project, "init", "--json"], check=True, stdout=subprocess.DEVNULL)
    (project / "tgp.config.ts").write_text("export default { tdd: { mode: 'explore' } };\n")
    subprocess.run([binary, "-C", project, "trust", "--yes"], check=True, stdout=subprocess.DEVNULL)
    database = str(tmp_path / "shop.db")
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE orders (price REAL, paid INTEGER)")
        connection.execute("INSERT INTO orders VALUES (10, 0), (20, 1), (30, 0)")
    with TestClient(create_app(FunctionModel(forge), str(project), database)) as client:
        yield client


def test_the_agent_forges_a_tool_and_the_service_runs_it(client: TestClient) -> None:
    answer = client.post("/chat", json={"message": "How much is open?"})
    assert answer.status_code == 200
    assert answer.json() == {"text": "50"}
    assert client.post("/tools/open", json={"currency": "EUR"}).json() == 40
    assert client.post("/tools/nothing", json={}).status_code == 404
    wrong = client.post("/tools/open", json={"currency": 5})
    assert (wrong.status_code, wrong.json()["detail"]["code"]) == (422, "EVALIDATION")
