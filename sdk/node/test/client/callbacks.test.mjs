// What becomes of functions of the application that throw, or return something else than they should.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { TGPError } from '@tgp/core';
import { FAKE_KERNEL, fakeKernel, recordingLogger } from '../support/fake.mjs';

const ask = (kernel, method, params) => kernel.call('ask', { method, params });
const callHost = (kernel, name) => ask(kernel, 'host/call', { module: 'mail', name, arguments: {} });

class SmtpError extends Error {}

const throwing = {
  undefinedField: (args) => args.b.c,
  own: () => {
    throw new SmtpError('refused');
  },
  plain: () => {
    throw new Error('no route');
  },
  text: () => {
    throw 'a text';
  },
  answer: () => {
    throw new TGPError('EPERMISSION', 'not to them');
  },
};
const mail = Object.fromEntries(Object.entries(throwing).map(([name, execute]) => [name, { description: '', execute }]));

test('bug: the stack of a function of the application was lost, and the class of its error', async (t) => {
  const logger = recordingLogger();
  const kernel = fakeKernel(t, { logger, hostTools: { mail }, approve: () => null.x });
  const message = async (name) => (await callHost(kernel, name)).error.message;
  assert.match(await message('undefinedField'), /^TypeError: Cannot read properties of undefined/);
  assert.equal(await message('own'), 'SmtpError: refused');
  assert.equal(await message('plain'), 'no route');
  assert.equal(await message('text'), 'a text');
  assert.equal(await message('answer'), 'not to them');
  await ask(kernel, 'host/approve', {});
  const errors = logger.lines.filter((line) => line.startsWith('error: '));
  assert.equal(errors.length, 5, 'an answer with a code is not one');
  assert.match(errors[0], /^error: `host:mail\/undefinedField` of the application threw TypeError: [^]*callbacks\.test\.mjs:\d+/);
  assert.equal(errors[3], 'error: `host:mail/text` of the application threw a text');
  assert.match(errors[4], /^error: `approve` of the application threw TypeError/);
});

test('bug: without a logger nothing said where a function of the application had thrown', () => {
  const program = `
    import { TGP } from '@tgp/core';
    const broken = () => { throw new RangeError('too far'); };
    const kernel = new TGP({ binary: process.argv[1], hostTools: { mail: { broken: { description: '', execute: broken } } } });
    await kernel.call('ask', { method: 'host/call', params: { module: 'mail', name: 'broken', arguments: {} } });
    await kernel.shutdown();`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program, FAKE_KERNEL], {
    cwd: new URL('../..', import.meta.url),
    encoding: 'utf8',
  });
  assert.match(stderr, /tgp: `host:mail\/broken` of the application threw RangeError: too far\n +at .*broken/);
  assert.equal(stderr.match(/too far/g).length, 1);
});

test('bug: an executor without transactions was reported with each start of the kernel', async (t) => {
  const logger = recordingLogger();
  const kernel = fakeKernel(t, { logger, sql: Object.assign(() => [], { dialect: 'sqlite' }) });
  await assert.rejects(kernel.call('kill'));
  await kernel.boot();
  assert.equal(logger.lines.filter((line) => line.includes('has no transactions')).length, 1);
});

test('bug: a wrong executor of SQL was noticed by the kernel, or not at all', async (t) => {
  const config = (sql, message, help) =>
    assert.throws(() => fakeKernel(t, { sql }), (error) => error.code === 'ECONFIG' && message.test(error.message) && help.test(error.help));
  const oracle = Object.assign(function query() {}, { dialect: 'oracle' });
  config(oracle, /^`dialect` of the SQL function `query`: unknown dialect `oracle`$/, /expected one of `sqlite`/);
  class Shop {
    dialect = 'postgres';
    execute() {}
  }
  config(new Shop(), /^`dialect` of the SQL executor `Shop`: unknown dialect `postgres`$/, /did you mean `postgresql`\?/);
  config({ dialect: 'sqlite', execute: 5 }, /^`execute` of the SQL executor is a number, expected a function$/, /begin/);
  config({ dialect: 'sqlite', execute() {}, begin: {} }, /^`begin` of the SQL executor is an object, expected a function$/, /begin/);

  const params = { transaction: 1, sql: 'SELECT 1', parameters: [], maxRows: 5, readOnly: true };
  const failure = async (sql, method) => (await ask(fakeKernel(t, { sql }), `host/sql/${method}`, params)).error;
  for (const [rows, message] of [
    [undefined, 'the SQL function `query` returned undefined, expected a list of rows'],
    [{ rows: [] }, 'the SQL function `query` returned an object, expected a list of rows'],
    [[[1]], 'the SQL function `query` returned an array as row 0, expected an object with a value for each column'],
  ]) {
    const query = Object.assign(() => rows, { dialect: 'sqlite' });
    Object.defineProperty(query, 'name', { value: 'query' });
    const error = await failure(query, 'execute');
    assert.equal(error.message, message);
    assert.equal(error.data.code, 'ESQL');
    assert.ok(error.data.details.help);
  }
  const executor = (begun, result) => ({ dialect: 'sqlite', execute: async () => result, ...(begun && { begin: async () => begun }) });
  assert.equal(
    (await failure(executor({ execute() {} }), 'begin')).message,
    '`begin` of the SQL executor returned an object, expected a transaction with `execute`, `commit` and `rollback`',
  );
  assert.equal(
    (await failure(executor(undefined, [{ n: 1 }]), 'execute')).message,
    '`execute` of the SQL executor returned an array, expected an object with `columns`, `rows`, `changed`, `truncated`',
  );
  assert.equal(
    (await failure(executor(undefined, { columns: ['n'], rows: 5 }), 'execute')).message,
    '`execute` of the SQL executor returned a number as `rows`, expected a list',
  );
  const { result } = await ask(fakeKernel(t, { sql: executor(undefined, { changed: 1 }) }), 'host/sql/execute', params);
  assert.deepEqual(result, { changed: 1 }, 'fields that are not there are empty');
  assert.equal(
    (await failure(executor(undefined, { columns: ['n'], rows: [[1]], changed: 0, truncated: false }), 'execute')).message,
    '`execute` of the SQL executor returned an array as row 0, expected an object with a value for each column',
  );
});
