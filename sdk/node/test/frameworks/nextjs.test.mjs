// The example of Next.js: built, started, and asked.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';

import { isAlive, until } from '../support/fake.mjs';
import { installedExample } from '../support/installed.mjs';
import { modelServer, responsesAnswers } from '../support/models.mjs';
import { FORGE_CALLS, skip } from '../support/real.mjs';

const CALLS = [...FORGE_CALLS, ['exec_sql', { sql: 'INSERT INTO orders (total) VALUES (?)', params: [55] }]];
const TEXT = 'The order is stored.';

test('a route handler forges a tool and uses the database of the application', { skip }, async (t) => {
  const { app, env } = installedExample(t, 'nextjs');
  const next = join(app, 'node_modules', 'next', 'dist', 'bin', 'next');
  const { url, requests } = await modelServer(t, responsesAnswers([...CALLS, undefined, ...CALLS.slice(-1)], TEXT));
  const databaseFile = join(app, 'shop.db');
  const environment = { ...env, NEXT_TELEMETRY_DISABLED: '1', OPENAI_BASE_URL: url, OPENAI_API_KEY: 'none', DATABASE_FILE: databaseFile };
  const port = await freePort();
  execFileSync(process.execPath, [next, 'build'], { cwd: app, env: environment, stdio: ['ignore', 'ignore', 'inherit'] });
  const server = spawn(process.execPath, [next, 'start', '-p', `${port}`], { cwd: app, env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(() => server.kill('SIGKILL'));
  const ask = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/api/agent`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Store an order of the tenth Fibonacci number.' }] }),
    });
    assert.equal(response.status, 200, await response.clone().text());
    return response.json();
  };
  await until(() => fetch(`http://127.0.0.1:${port}/`).then((response) => response.ok, () => false), 60_000);
  assert.deepEqual(await ask(), { text: TEXT });
  const outputs = JSON.stringify(requests[CALLS.length].body.input);
  assert.match(outputs, /\\"result\\":55/);
  assert.deepEqual(await ask(), { text: TEXT }, 'a second request uses the same kernel and database');
  const totals = new DatabaseSync(databaseFile).prepare('SELECT total FROM orders').all();
  assert.deepEqual(totals.map((row) => row.total), [55, 55]);
  server.kill('SIGTERM');
  await once(server, 'exit');
  assert.ok(!isAlive(server.pid));
});

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
