// What the kernel may ask the application: approvals, functions, files, SQL.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createMemoryVFS, createSqlTools, TGPError } from '@tgp/core';
import { fakeKernel, recordingLogger } from '../support/fake.mjs';

const ask = (kernel, method, params) => kernel.call('ask', { method, params });

test('what the application offers is in `initialize`', async (t) => {
  const kernel = fakeKernel(t, {
    session: 'nightly',
    client: { name: 'shop', version: '1.0' },
    consent: 'effects',
    approve: () => true,
    vfs: createMemoryVFS(),
    hostTools: { mail: { send: { description: 'Sends a mail.', input: { type: 'object' }, effect: 'network', execute() {} } } },
    sql: Object.assign(async () => [], { dialect: 'mysql' }),
    logLevel: 'debug',
  });
  const { args, params, directory } = await kernel.call('environment');
  assert.deepEqual(args, ['serve', '--stdio']);
  assert.deepEqual(params, {
    protocolVersion: 1,
    client: { name: 'shop', version: '1.0' },
    session: 'nightly',
    host: {
      directory,
      consent: 'effects',
      approves: true,
      log: 'debug',
      files: true,
      sql: { dialect: 'mysql', transactions: false, readOnly: false, savepoints: false },
      tools: [{ module: 'mail', name: 'send', description: 'Sends a mail.', inputSchema: { type: 'object' }, effect: 'network' }],
    },
  });
});

test('only `true` agrees', async (t) => {
  const request = { tool: 'exec_sql', arguments: {}, effect: 'write', targets: [], reasons: [], runsLater: false, hash: 'h' };
  const answers = [true, false, undefined, 'yes', 1, { approved: true, by: 'Ann' }, { approved: 'yes', reason: 'no' }];
  const seen = [];
  const kernel = fakeKernel(t, { approve: async (given) => seen.push(given.hash) && answers[seen.length - 1] });
  const results = [];
  for (const _ of answers) results.push((await ask(kernel, 'host/approve', request)).result);
  assert.deepEqual(results, [
    { approved: true },
    { approved: false },
    { approved: false },
    { approved: false },
    { approved: false },
    { approved: true, by: 'Ann' },
    { approved: false, reason: 'no' },
  ]);
  const failing = fakeKernel(t, { approve: () => Promise.reject(new Error('the dialog was closed')) });
  assert.equal((await ask(failing, 'host/approve', request)).error.message, 'the dialog was closed');
  assert.equal((await ask(fakeKernel(t), 'host/approve', request)).result.approved, false);
});

test('functions of the application', async (t) => {
  const kernel = fakeKernel(t, {
    hostTools: {
      mail: {
        send: { description: '', execute: async ({ to }) => ({ sent: to }) },
        nothing: { description: '', execute() {} },
        refuse: { description: '', execute() { throw new TGPError('EPERMISSION', 'not to them', { to: 'eve' }); } },
      },
    },
  });
  const call = (module, name, args = {}) => ask(kernel, 'host/call', { module, name, arguments: args });
  assert.deepEqual((await call('mail', 'send', { to: 'ann' })).result, { result: { sent: 'ann' } });
  assert.deepEqual((await call('mail', 'nothing')).result, { result: null });
  assert.deepEqual((await call('mail', 'refuse')).error, {
    code: -32000,
    message: 'not to them',
    data: { code: 'EPERMISSION', message: 'not to them', details: { to: 'eve' } },
  });
  for (const [module, name] of [['mail', 'read'], ['other', 'send'], ['__proto__', 'toString'], ['mail', 'constructor']]) {
    assert.equal((await call(module, name)).error.data.code, 'ENOTFOUND', `${module}/${name}`);
  }
});

test('a result that is too long is an error, and the connection stays', async (t) => {
  const kernel = fakeKernel(t, {
    hostTools: { big: { text: { description: '', execute: () => 'x'.repeat(17 * 1024 * 1024) } } },
  });
  const { error } = await ask(kernel, 'host/call', { module: 'big', name: 'text', arguments: {} });
  assert.match(error.message, /at most 16777216/);
});

test('a cancelled request aborts the signal of the callback', async (t) => {
  const kernel = fakeKernel(t, {
    hostTools: {
      slow: { wait: { description: '', execute: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))) } },
    },
  });
  const params = { module: 'slow', name: 'wait', arguments: {} };
  assert.deepEqual((await kernel.call('ask_and_cancel', { method: 'host/call', params })).result, { result: 'stopped' });
});

test('more requests than the application takes at a time are refused', async (t) => {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const kernel = fakeKernel(t, { hostTools: { slow: { wait: { description: '', execute: () => released } } } });
  const params = { module: 'slow', name: 'wait', arguments: {} };
  const answers = kernel.call('ask_many', { method: 'host/call', params, count: 1_100 });
  setTimeout(release, 500);
  const refused = (await answers).filter((answer) => answer.error);
  assert.equal(refused.length, 1_100 - 1_024);
  assert.match(refused[0].error.message, /1024 requests already/);
});

test('what is not offered is not served', async (t) => {
  const kernel = fakeKernel(t);
  for (const method of ['host/sql/begin', 'host/files/read', 'host/unknown', 'toString']) {
    assert.equal((await ask(kernel, method, {})).error.code, -32601, method);
  }
});

test('files of the application', async (t) => {
  const vfs = createMemoryVFS({ 'tools/a.ts': 'one' });
  const kernel = fakeKernel(t, { vfs });
  const base64 = (text) => Buffer.from(text).toString('base64');
  assert.equal((await ask(kernel, 'host/files/read', { path: 'tools/a.ts' })).result.content, base64('one'));
  assert.equal((await ask(kernel, 'host/files/read', { path: 'tools/b.ts' })).result.content, null);
  assert.deepEqual((await ask(kernel, 'host/files/entry', { path: 'tools' })).result.entry, { path: 'tools', directory: true, size: 0 });
  assert.equal((await ask(kernel, 'host/files/entry', { path: 'other' })).result.entry, null);
  const changes = [{ path: 'tools/b.ts', content: base64('two') }, { path: 'tools/a.ts', content: null }];
  assert.deepEqual((await ask(kernel, 'host/files/apply', { changes })).result, {});
  const { entries } = (await ask(kernel, 'host/files/list', { path: '' })).result;
  assert.deepEqual(entries.map((entry) => entry.path), ['tools', 'tools/b.ts']);
  for (const path of ['../a', 'tools/../../a', 'a\0b']) {
    assert.equal((await ask(kernel, 'host/files/read', { path })).error.data.code, 'ESECURITY', path);
  }
});

test('an adapter with five methods is enough', async (t) => {
  const { readFile, writeFile, remove, exists, listFiles } = createMemoryVFS({ 'tools/a.ts': 'one', 'tools/x/b.ts': 'two' });
  const failing = { readFile, remove, exists, listFiles, writeFile: async (path, content) => {
    if (path === 'bad') throw new Error('the disk is full');
    await writeFile(path, content);
  } };
  const kernel = fakeKernel(t, { vfs: failing });
  const { entries } = (await ask(kernel, 'host/files/list', { path: 'tools' })).result;
  assert.deepEqual(entries.map((entry) => entry.path).sort(), ['tools/a.ts', 'tools/x', 'tools/x/b.ts']);
  assert.equal((await ask(kernel, 'host/files/entry', { path: 'tools/x' })).result.entry.directory, true);
  assert.equal((await ask(kernel, 'host/files/read', { path: 'tools/x' })).result.content, null);
  const changes = [{ path: 'tools/a.ts', content: '' }, { path: 'new', content: '' }, { path: 'bad', content: '' }];
  assert.match((await ask(kernel, 'host/files/apply', { changes })).error.message, /the disk is full/);
  assert.equal(await readFile('tools/a.ts'), 'one', 'the first change was undone');
  assert.equal(await exists('new'), false);
});

test('a function without transactions serves single statements and says so', async (t) => {
  const logger = recordingLogger();
  const kernel = fakeKernel(t, { logger });
  const rows = [{ n: 1n }, { n: 2n ** 60n }, { n: new Date(0) }];
  createSqlTools(async (sql, parameters) => (sql === 'SELECT ?' ? rows : parameters), kernel);
  const { params } = await kernel.call('environment');
  assert.deepEqual(params.host.sql, { dialect: 'sqlite', transactions: false, readOnly: false, savepoints: false });
  assert.ok(logger.lines.some((line) => line.includes('has no transactions')));
  assert.ok(logger.lines.some((line) => line.includes('the dialect of the SQL function is not known')));
  const execute = { transaction: 1, sql: 'SELECT ?', parameters: [{ $base64: 'aGk=' }], maxRows: 2 };
  assert.deepEqual((await ask(kernel, 'host/sql/execute', execute)).result, {
    columns: ['n'],
    rows: [{ n: 1 }, { n: String(2n ** 60n) }],
    changed: 0,
    truncated: true,
  });
  assert.equal((await ask(kernel, 'host/sql/begin', { transaction: 1, readOnly: true })).error.data.code, 'ECAPABILITY');
});

test('transactions are rolled back when the kernel dies', async (t) => {
  const events = [];
  const transaction = { execute: async () => ({}), commit: async () => events.push('commit'), rollback: async () => events.push('rollback') };
  const executor = { dialect: 'sqlite', execute: transaction.execute, begin: async () => transaction };
  const kernel = fakeKernel(t, { sql: executor });
  await ask(kernel, 'host/sql/begin', { transaction: 7, readOnly: false });
  await ask(kernel, 'host/sql/begin', { transaction: 8, readOnly: false });
  await ask(kernel, 'host/sql/end', { transaction: 8, commit: true });
  assert.match((await ask(kernel, 'host/sql/end', { transaction: 8, commit: true })).error.message, /not open/);
  await assert.rejects(kernel.call('kill'));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(events, ['commit', 'rollback']);
});
