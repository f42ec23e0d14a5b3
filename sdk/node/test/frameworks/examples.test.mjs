// The other examples.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { installedExample } from '../support/installed.mjs';
import { chatAnswers, modelServer } from '../support/models.mjs';
import { FORGE_CALLS, skip } from '../support/real.mjs';

test('node-agent: a person approves every effect', { skip }, async (t) => {
  const { app, env } = installedExample(t, 'node-agent');
  const { url, requests } = await modelServer(t, chatAnswers(FORGE_CALLS, 'It is 55.'));
  const environment = { ...env, OPENAI_BASE_URL: url, OPENAI_API_KEY: 'none' };
  const agent = spawn(process.execPath, ['agent.mjs', 'go'], { cwd: app, env: environment, stdio: ['pipe', 'pipe', 'pipe'] });
  let questions = '';
  agent.stderr.on('data', (piece) => {
    questions += piece;
    if (String(piece).includes('[y/N]')) agent.stdin.write('y\n');
  });
  let output = '';
  agent.stdout.on('data', (piece) => (output += piece));
  const [code] = await once(agent, 'exit');
  assert.equal(code, 0, questions);
  assert.equal(output.trim(), 'It is 55.');
  assert.match(questions, /\+\+\+ b\/tools\/math\/fib\.ts[^]*write_file \([0-9a-f]{8}\)\? \[y\/N\]/);
  assert.match(requests.at(-1).body.messages.at(-1).content, /"result":55/);
});
