// The scenarios that every entry point of the kernel runs, through `@tgp/core`.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { skip } from '../support/real.mjs';
import { comparable, expectedRecords, readScenarios } from '../support/scenarios.mjs';

const AGENT = fileURLToPath(new URL('../support/scenario-agent.mjs', import.meta.url));
const file = readScenarios();

for (const [number, scenario] of file.scenarios.entries()) {
  test(`scenario ${scenario.name}`, { skip }, async (t) => {
    const place = setUp(t, scenario);
    for (const agent of scenario.agents.keys()) {
      // An agent ends with its process, and the next one knows only what was kept.
      await promisify(execFile)(process.execPath, [AGENT, number, agent, place.base].map(String), { env: place.env });
    }
    for (const [path, content] of Object.entries(scenario.end.disk)) {
      assert.equal(readFileSync(join(place.base, path), 'utf8'), content, path);
    }
    if (Object.keys(scenario.end.clone).length > 0) {
      place.run('git', 'clone', '--quiet', `file://${place.base}/remote.git`, 'clone');
    }
    for (const [path, content] of Object.entries(scenario.end.clone)) {
      assert.equal(readFileSync(join(place.base, 'clone', path), 'utf8'), content, `${path} of the clone`);
    }
    for (const project of place.projects) {
      const { data } = JSON.parse(place.tgp(project, '--json', 'audit', 'tail', '-n', '1000'));
      // The confirmation of the configuration was a person's decision, before any agent.
      const ofAgents = data.entries.filter(({ entry }) => entry.tool !== 'trust_confirm');
      const found = ofAgents.map(({ entry }) => comparable(entry));
      assert.deepEqual(found, expectedRecords(file, scenario, project), project);
    }
  });
}

/** The folder of a scenario: its projects, the remote, and a home of its own. */
function setUp(t, { setup, agents }) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'tgp-scenario-')));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const env = { ...process.env, TGP_HOME: join(base, 'home') };
  const run = (program, ...args) =>
    execFileSync(program, args, { cwd: base, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const tgp = (project, ...args) => run(process.env.TGP_BIN ?? 'tgp', '-C', project, ...args);
  if (setup.remote) run('git', 'init', '--quiet', '--bare', '--initial-branch=main', 'remote.git');
  const projects = [...new Set(agents.map(({ project }) => project))];
  for (const project of projects) {
    mkdirSync(join(base, project));
    if (setup.init) tgp(project, 'init', '--json');
    writeFileSync(join(base, project, 'tgp.config.ts'), `export default ${JSON.stringify(setup.config)};\n`);
    // A person has written this configuration.
    tgp(project, 'trust', '--yes');
  }
  for (const [path, content] of Object.entries(setup.tools)) {
    const name = join(base, projects[0], '.tgp', path);
    mkdirSync(dirname(name), { recursive: true });
    writeFileSync(name, content);
  }
  return { base, env, run, tgp, projects };
}
