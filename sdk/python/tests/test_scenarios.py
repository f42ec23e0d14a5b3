"""The scenarios that every entry point of the kernel runs, through the clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import scenarios
import tgp
from scenarios import Scenario, comparable, expected_records, read_scenarios

FILE = read_scenarios()
#: The scenario that also runs through the asynchronous client.
ASYNC = "refactor"
RUNS = [("sync", scenario.name) for scenario in FILE.scenarios] + [("async", ASYNC)]


@pytest.mark.parametrize(("client", "name"), RUNS)
def test_a_scenario(client: str, name: str, binary: str, tmp_path: Path) -> None:
    number, scenario = next((n, found) for n, found in enumerate(FILE.scenarios) if found.name == name)
    source = str(Path(tgp.__file__).parent.parent)
    env = {**os.environ, "TGP_BIN": binary, "TGP_HOME": str(tmp_path / "home"), "PYTHONPATH": source}
    set_up(scenario, binary, tmp_path, env)
    for agent in range(len(scenario.agents)):
        # An agent ends with its process, and the next one knows only what was kept.
        run([sys.executable, scenarios.__file__, client, str(number), str(agent), str(tmp_path)], tmp_path, env)
    for path, content in scenario.end.disk.items():
        assert (tmp_path / path).read_bytes() == content.encode(), path
    if scenario.end.clone:
        run(["git", "clone", "--quiet", f"file://{tmp_path}/remote.git", "clone"], tmp_path, env)
    for path, content in scenario.end.clone.items():
        assert (tmp_path / "clone" / path).read_bytes() == content.encode(), f"{path} of the clone"
    for project in scenario.projects:
        tail = json.loads(run([binary, "-C", project, "--json", "audit", "tail", "-n", "1000"], tmp_path, env))
        entries = [entry["entry"] for entry in tail["data"]["entries"]]
        # The confirmation of the configuration was a person's decision, before any agent.
        found = [comparable(entry) for entry in entries if entry["tool"] != "trust_confirm"]
        assert found == expected_records(FILE, scenario, project), project


def set_up(scenario: Scenario, binary: str, folder: Path, env: dict[str, str]) -> None:
    """Makes the projects of a scenario, and the remote."""
    if scenario.setup.remote:
        run(["git", "init", "--quiet", "--bare", "--initial-branch=main", "remote.git"], folder, env)
    for project in scenario.projects:
        (folder / project).mkdir()
        if scenario.setup.init:
            run([binary, "-C", project, "init", "--json"], folder, env)
        config = f"export default {json.dumps(scenario.setup.config)};\n"
        (folder / project / "tgp.config.ts").write_text(config)
        # A person has written this configuration.
        run([binary, "-C", project, "trust", "--yes"], folder, env)
    for path, content in scenario.setup.tools.items():
        file = folder / scenario.projects[0] / ".tgp" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())


def run(command: list[str], folder: Path, env: dict[str, str]) -> str:
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout
