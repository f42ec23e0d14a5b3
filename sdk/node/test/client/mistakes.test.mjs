// Mistakes of an application: each is reported where it was made, with what to do.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { executeToolCall, TGP, TGPError, tgpTools } from '@tgp/core';
import { z } from 'zod';
import { FAKE_KERNEL, fakeKernel, recordingLogger, silent, until } from '../support/fake.mjs';

/** The error, which has a next step. */
async function failure(work, code, message) {
  const error = await Promise.resolve().then(work).then(() => assert.fail('it did not fail'), (error) => error);
  assert.ok(error instanceof TGPError, inspect(error));
  assert.equal(error.code, code, inspect(error));
  assert.match(error.message, message);
  assert.ok(error.help?.length > 0, `no help: ${error}`);
  return error;
}

test('bug: arguments without a JSON form were lost, or threw a TypeError', async (t) => {
  const kernel = fakeKernel(t);
  const circular = { list: [{}] };
  circular.list[0].self = circular;
  const deep = JSON.parse(`${'['.repeat(101)}${']'.repeat(101)}`);
  for (const [args, path, what] of [
    [{ n: 5n }, 'arguments.n', 'a bigint'],
    [{ n: { m: [1, 2n ** 60n] } }, 'arguments.n.m[1]', 'a bigint'],
    [{ run() {} }, 'arguments.run', 'a function'],
    [{ 'a b': [Symbol('x')] }, 'arguments["a b"][0]', 'a symbol'],
    [circular, 'arguments.list[0].self', 'a circular reference'],
    [{ list: [undefined] }, 'arguments.list[0]', 'undefined'],
    [{ list: [, 1] }, 'arguments.list[0]', 'undefined'],
    [{ n: Number.NaN }, 'arguments.n', 'NaN'],
    [{ n: -Infinity }, 'arguments.n', '-Infinity'],
    [{ names: new Set(['a']) }, 'arguments.names', 'a Set'],
    [{ names: new Map([['a', 1]]) }, 'arguments.names', 'a Map'],
    [{ row: { toJSON: () => ({ id: 1n }) } }, 'arguments.row.id', 'a bigint'],
  ]) {
    const error = await failure(() => kernel.call('echo', args), 'EVALIDATION', /has no JSON form/);
    assert.equal(error.message, `the value at \`${path}\` is ${what}, which has no JSON form`);
    assert.equal(error.details.field, path);
  }
  await failure(() => kernel.call('echo', { deep }), 'EVALIDATION', /nested more than 100 levels deep/);
  await failure(() => kernel.exec('tools/a.ts', () => 1), 'EVALIDATION', /`arguments\.args` is a function/);
  for (const args of [null, 5, 'text', [1], () => 1]) {
    await failure(() => kernel.call('echo', args), 'EVALIDATION', /the arguments of `echo` are .*, expected an object/);
  }
  assert.deepEqual(await kernel.call('echo', undefined), {});
  const shared = { a: 1 };
  assert.deepEqual(await kernel.call('echo', { one: shared, two: shared }), { one: { a: 1 }, two: { a: 1 } });
});

test('bug: the text of an error had neither its code nor its location nor its help', async (t) => {
  const error = await failure(() => fakeKernel(t).call('fail'), 'ECOMPILE', /^it does not compile$/);
  const text = 'TGPError: ECOMPILE: it does not compile (tools/a.ts:3:7)\nhelp: close the brace';
  assert.equal(String(error), text);
  assert.ok(error.stack.startsWith(`${text}\n    at `), error.stack);
  assert.ok(inspect(error).startsWith(text), inspect(error));
  assert.equal(error.toJSON().message, 'it does not compile');
  assert.equal(String(new TGPError('ESQL', '')), 'TGPError: ESQL: ');
  // An error for a model has everything in its message, once.
  const tools = tgpTools(fakeKernel(t));
  const shown = await tools.search.execute({}).catch((reason) => String(reason));
  assert.equal(shown.match(/EINTERNAL/g)?.length, 1, shown);
});

test('bug: a project or a configuration file that does not exist was blamed on the program', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'tgp-places-'));
  t.after(() => rmSync(base, { recursive: true }));
  const missing = join(base, 'nope');
  const directory = await failure(() => fakeKernel(t, { directory: missing }).boot(), 'ECONFIG', /is not a directory/);
  assert.ok(directory.message.includes(missing), directory.message);
  const configFile = join(missing, 'tgp.config.ts');
  const config = await failure(() => fakeKernel(t, { configFile }).boot(), 'ECONFIG', /`configFile` names .* is not a file/);
  assert.ok(config.message.includes(configFile), config.message);
  await failure(() => fakeKernel(t, { configFile: base, directory: base }).boot(), 'ECONFIG', /is not a file/);
});

test('bug: a program that is not tgp was reported as a kernel that ended', async (t) => {
  for (const program of ['/bin/ls', '/bin/cat', '/bin/true']) {
    const byOption = await failure(() => fakeKernel(t, { binary: program, logger: silent }).boot(), 'ECAPABILITY', /is not the program `tgp`/);
    assert.ok(byOption.message.includes(program) && byOption.help.includes('`binary`'), `${byOption}`);
  }
  const env = { ...process.env, TGP_BIN: '/bin/ls' };
  const byVariable = await failure(() => fakeKernel(t, { binary: undefined, env }).boot(), 'ECAPABILITY', /is not the program `tgp`: it prints/);
  assert.match(byVariable.help, /`TGP_BIN`/);
  await failure(() => fakeKernel(t, { binary: '/nope' }).boot(), 'ECAPABILITY', /`binary` names `\/nope`/);
});

test('bug: the end of a kernel between two calls was not reported, and a shutdown had two codes', async (t) => {
  const logger = recordingLogger();
  const kernel = fakeKernel(t, { logger });
  const { pid } = await kernel.call('environment');
  process.kill(pid, 'SIGKILL');
  await until(() => logger.lines.some((line) => line === 'warn: the kernel ended unexpectedly by SIGKILL; its log is empty'));
  assert.notEqual((await kernel.call('environment')).pid, pid, 'the next call starts another');
  const killed = await failure(() => kernel.call('kill'), 'EINTERNAL', /^the kernel ended unexpectedly by SIGKILL; its log is empty$/);
  assert.deepEqual({ exitCode: killed.details.exitCode, signal: killed.details.signal, log: killed.details.log }, { exitCode: null, signal: 'SIGKILL', log: '' });
  await kernel.shutdown();
  await failure(() => kernel.call('echo'), 'ESTATE', /^the kernel was shut down$/);
  await failure(() => kernel.boot(), 'ESTATE', /^the kernel was shut down$/);
  assert.equal(logger.lines.filter((line) => line.includes('unexpectedly')).length, 1, 'a shutdown is not unexpected');
});

test('bug: misspelled options were ignored', async (t) => {
  for (const [options, message, help] of [
    [{ config: './tgp.config.ts' }, /unknown option `config`/, /expected one of|did you mean/],
    [{ configfile: './tgp.config.ts' }, /unknown option `configfile`/, /did you mean `configFile`\?/],
    [{ hosttools: {} }, /unknown option `hosttools`/, /did you mean `hostTools`\?/],
    [{ host_tools: {} }, /unknown option `host_tools`/, /did you mean `hostTools`\?/],
    [{ aprove: () => true }, /unknown option `aprove`/, /did you mean `approve`\?/],
    [{ zebra: 1 }, /unknown option `zebra`/, /expected one of `configFile`/],
    [{ consent: 'effect' }, /unknown consent `effect`/, /did you mean `effects`\?/],
    [{ approve: true }, /`approve` is a boolean, expected a function/, /request/],
    [{ directory: new URL('file:///x') }, /`directory` is a URL, expected a string/, /string/],
    [{ sql: 'sqlite://shop.db' }, /a string is not a database connection/, /pool or connection/],
    [{ sql: {} }, /an object is not a database connection/, /pool or connection/],
    ['./tgp.config.ts', /the options of `new TGP\(\)` are a string/, /configFile/],
  ]) {
    const error = await failure(() => new TGP(options), 'ECONFIG', message);
    assert.match(error.help, help);
  }
  const kernel = fakeKernel(t);
  const dry = await failure(() => kernel.call('echo', {}, { dryrun: true }), 'EVALIDATION', /unknown option `dryrun` of a call/);
  assert.equal(dry.help, 'did you mean `dryRun`?');
  const steps = await failure(() => kernel.run({ task: 'x', maxSteps: 1, steps: 2 }), 'EVALIDATION', /unknown option `steps` of `run\(\)`/);
  assert.match(steps.help, /`maxSteps`/);
  await failure(() => kernel.run({ tsk: 'x' }), 'EVALIDATION', /the task of a session is undefined, expected a string/);
});

test('bug: wrong host tools were noticed at the first call', async () => {
  const execute = () => 1;
  const good = { description: 'Sends.', execute };
  for (const [hostTools, message, help] of [
    [[], /`hostTools` is an array/, /hostTools: \{ mail/],
    [{ Mail: { send: good } }, /invalid name `Mail` of a host module/, /lower-case letters/],
    [{ mail: execute }, /`hostTools\.mail` is a function, expected functions by name/, /hostTools: \{ mail/],
    [{ mail: { 'send-it': good } }, /invalid name `send-it` of a function in `host:mail`/, /letters, digits/],
    [{ mail: { send: execute } }, /`hostTools\.mail\.send` is a function, expected an object with `execute`/, /execute/],
    [{ mail: { send: { description: 'Sends.' } } }, /`hostTools\.mail\.send\.execute` is undefined/, /execute/],
    [{ mail: { send: { description: 'Sends.', handler: execute } } }, /unknown field `handler`/, /`execute`/],
    [{ mail: { send: { ...good, inputs: {} } } }, /unknown field `inputs` of `hostTools\.mail\.send`/, /did you mean `input`\?/],
    [{ mail: { send: { execute } } }, /`hostTools\.mail\.send\.description` is undefined/, /sentence/],
    [{ mail: { send: { ...good, effect: 'reads' } } }, /unknown effect `reads`/, /did you mean `read`\?/],
    [{ mail: { send: { ...good, input: 'object' } } }, /`hostTools\.mail\.send\.input` is a string, expected a JSON Schema/, /type/],
    [{ mail: { send: { ...good, input: { type: Object } } } }, /`hostTools\.mail\.send\.input\.type` is a function/, /data/],
    [{ mail: { send: { ...good, input: z.object({ to: z.string() }) } } }, /input` is a schema of a library/, /z\.toJSONSchema/],
  ]) {
    const error = await failure(() => new TGP({ binary: FAKE_KERNEL, hostTools }), 'ECONFIG', message);
    assert.match(error.help, help);
  }
});

test('bug: a result of a host function lost what has no JSON form', async (t) => {
  const circular = {};
  circular.self = circular;
  const values = { set: new Set(), call: { run() {} }, circular, big: { small: 5n, large: 2n ** 60n } };
  const functions = Object.entries(values).map(([name, value]) => [name, { description: '', execute: () => value }]);
  const kernel = fakeKernel(t, { hostTools: { odd: Object.fromEntries(functions) } });
  const call = (name) => kernel.call('ask', { method: 'host/call', params: { module: 'odd', name, arguments: {} } });
  assert.equal((await call('set')).error.message, 'the value at `result` is a Set, which has no JSON form');
  assert.equal((await call('call')).error.message, 'the value at `result.run` is a function, which has no JSON form');
  assert.equal((await call('circular')).error.message, 'the value at `result.self` is a circular reference, which has no JSON form');
  assert.deepEqual((await call('big')).result, { result: { small: 5, large: String(2n ** 60n) } });
});

test('bug: an unknown tool of a model had no suggestion', async (t) => {
  const tools = tgpTools(fakeKernel(t));
  const near = await executeToolCall(tools, 'read_fil', '{}');
  assert.deepEqual(near, { content: 'ENOTFOUND: unknown tool `read_fil`\nhelp: did you mean `read_file`?', isError: true });
  const far = await executeToolCall(tools, 'zebra', '{}');
  assert.match(far.content, /help: expected one of `search`, /);
  const text = await executeToolCall(tools, 'search', '{');
  assert.match(text.content, /^EVALIDATION: the arguments of `search` are not JSON: [^]*help: pass one JSON object/);
  const error = await failure(() => tgpTools(fakeKernel(t), { only: ['exec_tol'] }), 'ENOTFOUND', /no tool `exec_tol`/);
  assert.equal(error.help, 'did you mean `exec_tool`?');
});
