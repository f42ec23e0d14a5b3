"""``sdk/scenarios/scenarios.json``, read strictly, and an agent of a scenario in a process of its own.

``python scenarios.py sync|async SCENARIO AGENT FOLDER`` makes the calls of the agent and checks its answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tgp import TGP, AsyncTGP, TGPError

FILE = Path(__file__).parents[2] / "scenarios" / "scenarios.json"
#: What git and the kernel keep in a tool repository.
OWN_FILES = {".git", ".gitignore", ".gitattributes", ".state"}

# The constructors refuse unknown and missing fields: a field that no runner reads would look like a check.


@dataclass
class ExpectedRecord:
    """What the audit has of a call, beside its tool and its arguments."""

    targets: list[dict[str, Any]]
    verdicts: list[list[str]]
    verdict: str
    execution: str
    outcome: dict[str, Any]


@dataclass
class Step:
    tool: str
    arguments: dict[str, Any]
    record: ExpectedRecord
    answer: Any = None
    error: dict[str, Any] | None = None
    repository: list[str] | None = None


@dataclass
class Agent:
    project: str
    steps: list[Step]


@dataclass
class Setup:
    remote: bool
    init: bool
    config: dict[str, Any]
    tools: dict[str, str]


@dataclass
class End:
    disk: dict[str, str]
    clone: dict[str, str]


@dataclass
class Scenario:
    name: str
    story: str
    setup: Setup
    agents: list[Agent]
    end: End

    @property
    def projects(self) -> list[str]:
        return list(dict.fromkeys(agent.project for agent in self.agents))


@dataclass
class Difference:
    """What an entry point records beside what all of them record."""

    why: str
    opening: list[dict[str, Any]]


@dataclass
class ScenarioFile:
    differences: dict[str, Difference]
    scenarios: list[Scenario] = field(default_factory=list)


def read_scenarios() -> ScenarioFile:
    document = json.loads(FILE.read_text())
    scenarios = [_scenario(**fields) for fields in document.pop("scenarios")]
    differences = {name: Difference(**fields) for name, fields in document.pop("differences").items()}
    return ScenarioFile(differences, scenarios, **document)


def _scenario(
    *, setup: dict[str, Any], agents: list[dict[str, Any]], end: dict[str, Any], **rest: Any
) -> Scenario:
    return Scenario(setup=Setup(**setup), agents=[_agent(**fields) for fields in agents], end=End(**end), **rest)


def _agent(*, steps: list[dict[str, Any]], **rest: Any) -> Agent:
    return Agent(steps=[_step(**fields) for fields in steps], **rest)


def _step(*, record: dict[str, Any], **rest: Any) -> Step:
    assert ("answer" in rest) != ("error" in rest), f"{rest}: answer or error"
    return Step(record=ExpectedRecord(**record), **rest)


def expected_records(file: ScenarioFile, scenario: Scenario, project: str) -> list[dict[str, Any]]:
    """What the audit of a project has to hold after all agents of a scenario."""
    opening = file.differences["python"].opening if "python" in file.differences else []
    records: list[dict[str, Any]] = []
    for agent in scenario.agents:
        if agent.project == project:
            records += opening
            records += [{"tool": step.tool, "arguments": step.arguments, **vars(step.record)} for step in agent.steps]
    return records


def comparable(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry that do not depend on who called, when, and on which machine."""
    return {
        **{name: entry[name] for name in ("tool", "arguments", "targets", "verdict", "execution")},
        "verdicts": [[verdict["gate"], verdict["verdict"]] for verdict in entry["verdicts"]],
        "outcome": {
            name: value for name, value in entry["outcome"].items() if name != "durationUs" and value is not None
        },
    }


def check(step: Step, given: Any, failure: TGPError | None, root: Path) -> None:
    """Compares what a call gave with what it has to give."""
    about = f"{step.tool} {step.arguments}"
    if step.error is None:
        assert failure is None, f"{about}: {failure}"
        check_contains(given, step.answer, about)
    else:
        assert failure is not None, f"{about} gave {given}"
        check_contains(failure.to_dict(), step.error, about)
    if step.repository is not None:
        assert repository_files(root) == step.repository, about


def repository_files(root: Path) -> list[str]:
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0] not in OWN_FILES)


def check_contains(value: Any, part: Any, at: str) -> None:
    """That a value has everything of another: fields of objects, all elements of lists, anything else itself."""
    if isinstance(part, dict):
        assert isinstance(value, dict), f"{at}: {value}"
        for name, expected in part.items():
            assert name in value, f"{at}.{name} is missing: {value}"
            check_contains(value[name], expected, f"{at}.{name}")
    elif isinstance(part, list):
        assert isinstance(value, list) and len(value) == len(part), f"{at}: {value}"
        for number, expected in enumerate(part):
            check_contains(value[number], expected, f"{at}[{number}]")
    else:
        assert value == part and isinstance(value, bool) == isinstance(part, bool), f"{at}: {value!r}, not {part!r}"


def run_sync(agent: Agent, project: Path) -> None:
    with TGP(project) as kernel:
        for step in agent.steps:
            given, failure = None, None
            try:
                given = kernel.call(step.tool, step.arguments)
            except TGPError as error:
                failure = error
            check(step, given, failure, project / ".tgp")


async def run_async(agent: Agent, project: Path) -> None:
    async with AsyncTGP(project) as kernel:
        for step in agent.steps:
            given, failure = None, None
            try:
                given = await kernel.call(step.tool, step.arguments)
            except TGPError as error:
                failure = error
            check(step, given, failure, project / ".tgp")


def main(client: str, scenario: str, number: str, folder: str) -> None:
    agent = read_scenarios().scenarios[int(scenario)].agents[int(number)]
    project = Path(folder) / agent.project
    if client == "async":
        asyncio.run(run_async(agent, project))
    else:
        run_sync(agent, project)


if __name__ == "__main__":
    main(*sys.argv[1:])
