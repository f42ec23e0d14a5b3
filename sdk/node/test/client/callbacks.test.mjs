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
