// What the client does with a kernel that behaves well, badly, or not at all.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TGP, TGPError } from '@tgp/core';
import { fakeKernel, isAlive, recordingLogger, until } from '../support/fake.mjs';

const rejects = (promise, code, pattern) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof TGPError, `${error}`);
    assert.equal(error.code, code);
    assert.match(error.message, pattern);
    return true;
  });

test('a kernel is usable right after its construction', async (t) => {
  const kernel = fakeKernel(t);
  assert.equal(kernel.info, undefined);
  assert.deepEqual(await kernel.call('echo', { a: 1 }), { a: 1 });
  assert.equal(kernel.info.session, 'host/test');
  assert.equal(await kernel.systemPrompt(), 'live prompt');
  assert.equal((await kernel.tools())[0].name, 'echo');
});

test('answers may come in any order', async (t) => {
  const kernel = fakeKernel(t);
  const slow = kernel.call('later', { ms: 50, value: 'slow' });
  const fast = kernel.call('later', { ms: 1, value: 'fast' });
  assert.equal(await Promise.race([slow, fast]), 'fast');
  assert.equal(await slow, 'slow');
});

test('a failed call throws an error with code, details and location', async (t) => {
  const kernel = fakeKernel(t);
  await assert.rejects(kernel.call('fail'), (error) => {
    assert.equal(error.name, 'TGPError');
    assert.equal(error.code, 'ECOMPILE');
    assert.deepEqual(error.location, { file: 'tools/a.ts', line: 3, column: 7 });
    assert.equal(error.help, 'close the brace');
    assert.equal(error.details.field, 'content');
    assert.deepEqual(JSON.parse(JSON.stringify(error)).code, 'ECOMPILE');
    return true;
  });
});

test('a kernel that dies fails its calls with the end of its log', async (t) => {
  const kernel = fakeKernel(t);
  const other = kernel.call('hang');
  const died = kernel.call('die', { text: `${'x'.repeat(100_000)}the last words`, code: 3 });
  await rejects(died, 'EINTERNAL', /ended unexpectedly with exit code 3.*the last words$/s);
  await assert.rejects(other, (error) => {
    assert.ok(error.details.log.length < 10_000, 'the log is bounded');
    assert.equal(error.details.exitCode, 3);
    return true;
  });
  assert.equal(await kernel.call('echo', { alive: true }).then((data) => data.alive), true, 'the next call starts another');
});

test('a kernel that is killed fails its calls with the signal', async (t) => {
  await rejects(fakeKernel(t).call('kill'), 'EINTERNAL', /by SIGKILL; its log is empty/);
});

test('a line that is not a message ends the kernel', async (t) => {
  const kernel = fakeKernel(t);
  for (const line of ['this is no message', '[]', '{"jsonrpc":"2.0"}', '"text"', '{"id":{},"result":1}']) {
    await rejects(kernel.call('garbage', { line }), 'EINTERNAL', /a line that is not a message/);
  }
});

test('a line that is too long ends the kernel before it is kept', async (t) => {
  await rejects(fakeKernel(t).call('huge', { bytes: 17 * 1024 * 1024 }), 'EINTERNAL', /more than 16777216 bytes/);
});

test('an answer to a question that was not asked is ignored', async (t) => {
  assert.equal(await fakeKernel(t).call('stray'), 'still here');
});

test('a kernel that does not boot', async (t) => {
  await rejects(fakeKernel(t, { boot: 'never', bootTimeoutMs: 300 }).boot(), 'EINTERNAL', /did not boot within 0\.3 s/);
  await rejects(fakeKernel(t, { boot: 'exit' }).boot(), 'EINTERNAL', /exit code 2.*no such option --stdio/s);
  await rejects(fakeKernel(t, { boot: 'error' }).boot(), 'ECONFIG', /1 wrong field/);
  await rejects(fakeKernel(t, { boot: 'other-version' }).boot(), 'ECONFIG', /another version of the protocol/);
});

test('definitions of another version are reported', async (t) => {
  const logger = recordingLogger();
  await fakeKernel(t, { boot: 'notices', logger }).boot();
  assert.match(logger.lines[0], /warn: the tool definitions and the system prompt of .* \(version 9\.9\.9\) differ/);
  assert.equal(logger.lines[1], 'warn: a field was ignored');
});

test('the log of the kernel goes to the logger', async (t) => {
  const logger = recordingLogger();
  const kernel = fakeKernel(t, { logger });
  await kernel.call('log', { level: 'info', message: 'hello' });
  await kernel.call('log', { level: 'debug', message: 'not wanted' });
  assert.ok(logger.lines.includes('info: fake: hello'));
  assert.ok(!logger.lines.some((line) => line.includes('not wanted')));
  const throwing = { ...logger, info() { throw new Error('a bad logger'); } };
  assert.equal(await fakeKernel(t, { logger: throwing }).call('log', { level: 'info', message: 'x' }), null);
});

test('an aborted signal rejects at once and cancels the call', async (t) => {
  const kernel = fakeKernel(t);
  await kernel.boot();
  const controller = new AbortController();
  const call = kernel.call('hang', {}, { signal: controller.signal });
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(call, { name: 'AbortError' });
  await assert.rejects(kernel.call('hang', {}, { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
  await assert.rejects(kernel.call('echo', {}, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.deepEqual(await kernel.call('echo', { after: 1 }), { after: 1 });
});

test('a signal also ends the wait for a boot', async (t) => {
  const kernel = fakeKernel(t, { boot: 'never', bootTimeoutMs: 2_000 });
  const start = Date.now();
  await assert.rejects(kernel.call('echo', {}, { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' });
  assert.ok(Date.now() - start < 1_000);
});

test('arguments arrive as they are, or are refused when they are large', async (t) => {
  const kernel = fakeKernel(t);
  await rejects(kernel.call('echo', { text: 'x'.repeat(17 * 1024 * 1024) }), 'EVALIDATION', /at most 16777216/);
  const when = new Date(0);
  const sent = { when, left: undefined, bytes: Buffer.from('a'), list: [null, 1.5, 'ä'] };
  assert.deepEqual(await kernel.call('echo', sent), JSON.parse(JSON.stringify(sent)));
});

test('more calls than the kernel takes at a time wait for their turn', async (t) => {
  const kernel = fakeKernel(t);
  const calls = Array.from({ length: 3_000 }, (_, n) => kernel.call('echo', { n }));
  const results = await Promise.all(calls);
  assert.equal(results[2_999].n, 2_999);
  const controller = new AbortController();
  const hanging = Array.from({ length: 1_030 }, () => kernel.call('hang', {}, { signal: controller.signal }));
  const settled = Promise.allSettled(hanging);
  controller.abort();
  assert.ok((await settled).every((one) => one.reason?.name === 'AbortError'));
});

test('events of a session come in order, then the summary', async (t) => {
  const kernel = fakeKernel(t);
  const run = kernel.run({ task: 'count' });
  const steps = [];
  for await (const event of run) steps.push(event.step);
  assert.deepEqual(steps, [0, 1, 2]);
  assert.deepEqual(await run.summary, { steps: 3 });
  assert.deepEqual(await kernel.run({ task: 'not read' }).summary, { steps: 3 });
});

test('leaving the loop cancels the session, and so does a signal', async (t) => {
  const kernel = fakeKernel(t);
  const run = kernel.run({ task: 'slow' });
  for await (const event of run) {
    assert.equal(event.step, 0);
    break;
  }
  await assert.rejects(run.summary, /the session was cancelled/);
  const signal = AbortSignal.timeout(50);
  await assert.rejects(async () => {
    for await (const _ of kernel.run({ task: 'slow', signal }));
  }, { name: 'TimeoutError' });
});

test('shutdown waits for calls, and nothing works after it', async (t) => {
  const kernel = fakeKernel(t);
  await kernel.boot();
  await kernel.shutdown();
  await rejects(kernel.call('echo'), 'ESTATE', /was shut down/);
  await kernel.shutdown();
  const unused = new TGP();
  await unused.shutdown();
});

test('a kernel that does not end is killed', async (t) => {
  const kernel = fakeKernel(t, { boot: 'stubborn' });
  const { pid } = await kernel.call('environment');
  await kernel.shutdown();
  await until(() => !isAlive(pid));
});
