// An agent of a scenario, in a process of its own: `node scenario-agent.mjs SCENARIO AGENT FOLDER`.

import { join } from 'node:path';

import { TGP } from '@tgp/core';
import { readScenarios, runSteps } from './scenarios.mjs';

const [scenario, number, base] = process.argv.slice(2);
const agent = readScenarios().scenarios[Number(scenario)].agents[Number(number)];
const kernel = new TGP({ configFile: join(base, agent.project, 'tgp.config.ts') });
try {
  await runSteps(kernel, agent, base);
} finally {
  await kernel.shutdown();
}
