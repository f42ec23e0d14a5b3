// `sdk/scenarios/scenarios.json`: read strictly, and what a kernel did is compared with it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { TGPError } from '@tgp/core';

// What a value has to be: each takes the value and where it is in the file.
const list = (item) => (value, at) => {
  assert.ok(Array.isArray(value), `${at} is not a list`);
  value.forEach((element, index) => item(element, `${at}[${index}]`));
};
const byName = (item) => (value, at) => {
  isObject(value, at);
  for (const [name, element] of Object.entries(value)) item(element, `${at}.${name}`);
};
const typed = (type) => (value, at) => assert.equal(typeof value, type, at);
const any = () => {};
const optional = (item) => Object.assign((value, at) => item(value, at), { isOptional: true });
/** An object with these fields and no others: a field that no runner reads would look like a check. */
const record = (fields) => (value, at) => {
  isObject(value, at);
  for (const name of Object.keys(value)) assert.ok(Object.hasOwn(fields, name), `unknown field ${at}.${name}`);
  for (const [name, item] of Object.entries(fields)) {
    if (Object.hasOwn(value, name)) item(value[name], `${at}.${name}`);
    else assert.ok(item.isOptional, `missing field ${at}.${name}`);
  }
};
const text = typed('string');

function isObject(value, at) {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${at} is not an object`);
}

const step = record({
  tool: text,
  arguments: isObject,
  answer: optional(any),
  error: optional(isObject),
  repository: optional(list(text)),
  record: record({ targets: list(isObject), verdicts: list(list(text)), verdict: text, execution: text, outcome: isObject }),
});
const scenario = record({
  name: text,
  story: text,
  setup: record({ remote: typed('boolean'), init: typed('boolean'), config: isObject, tools: byName(text) }),
  agents: list(record({ project: text, steps: list(step) })),
  end: record({ disk: byName(text), clone: byName(text) }),
});
const scenarioFile = record({ differences: byName(record({ why: text, opening: list(isObject) })), scenarios: list(scenario) });

export function readScenarios() {
  const file = JSON.parse(readFileSync(new URL('../../../scenarios/scenarios.json', import.meta.url), 'utf8'));
  scenarioFile(file, 'scenarios.json');
  for (const { tool, answer, error } of file.scenarios.flatMap(({ agents }) => agents.flatMap(({ steps }) => steps))) {
    assert.ok((answer === undefined) !== (error === undefined), `${tool}: answer or error`);
  }
  return file;
}

/** What the audit of a project has to hold after all agents of a scenario. */
export function expectedRecords({ differences }, { agents }, project) {
  const opening = differences.node?.opening ?? [];
  const ofStep = ({ tool, arguments: args, record: expected }) => ({ tool, arguments: args, ...expected });
  return agents.filter((agent) => agent.project === project).flatMap(({ steps }) => [...opening, ...steps.map(ofStep)]);
}

/** The fields of an entry that do not depend on who called, when, and on which machine. */
export function comparable(entry) {
  const outcome = Object.entries(entry.outcome).filter(([name, value]) => name !== 'durationUs' && value !== null);
  return {
    tool: entry.tool,
    arguments: entry.arguments,
    targets: entry.targets,
    verdicts: entry.verdicts.map(({ gate, verdict }) => [gate, verdict]),
    verdict: entry.verdict,
    execution: entry.execution,
    outcome: Object.fromEntries(outcome),
  };
}

/** Makes the calls of an agent, and checks its answers. */
export async function runSteps(kernel, { project, steps }, base) {
  for (const { tool, arguments: args, answer, error, repository } of steps) {
    const [given, failure] = await kernel.call(tool, args).then(
      (data) => [data, undefined],
      (failed) => [undefined, failed],
    );
    if (failure !== undefined && !(failure instanceof TGPError)) throw failure;
    const about = `${tool} ${JSON.stringify(args)}`;
    if (error === undefined) {
      assert.equal(failure, undefined, about);
      assertContains(given, answer, about);
    } else {
      assert.ok(failure, `${about} gave ${JSON.stringify(given)}`);
      const { code, message, details } = failure;
      assertContains({ code, message, details }, error, about);
    }
    if (repository !== undefined) {
      assert.deepEqual(repositoryFiles(join(base, project, '.tgp')), repository, about);
    }
  }
}

/** The files of a tool repository, without those of git and of the kernel. */
function repositoryFiles(folder) {
  const own = ['.git', '.gitignore', '.gitattributes', '.state'];
  const list = (directory, prefix) =>
    readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
      const name = `${prefix}${entry.name}`;
      if (own.includes(name)) return [];
      return entry.isDirectory() ? list(join(directory, entry.name), `${name}/`) : [name];
    });
  return list(folder, '').sort();
}

/** That a value has everything of another: fields of objects, all elements of lists, anything else itself. */
function assertContains(value, part, at) {
  if (Array.isArray(part)) {
    assert.equal(value?.length, part.length, `${at}: ${JSON.stringify(value)}`);
    part.forEach((element, index) => assertContains(value[index], element, `${at}[${index}]`));
  } else if (typeof part === 'object' && part !== null) {
    isObject(value, at);
    for (const [name, field] of Object.entries(part)) assertContains(value[name], field, `${at}.${name}`);
  } else {
    assert.deepEqual(value, part, at);
  }
}
