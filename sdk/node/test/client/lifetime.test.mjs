// Nothing is left behind, however the application ends.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { FAKE_KERNEL, fakeKernel, isAlive, until } from '../support/fake.mjs';

/** Runs an application that prints the id of its kernel's process. */
async function application(body) {
  const source = `
    import { TGP } from '@tgp/core';
    const kernel = new TGP({ binary: ${JSON.stringify(FAKE_KERNEL)} });
    const { pid } = await kernel.call('environment');
    console.log(pid);
    ${body}`;
  const host = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    cwd: new URL('../..', import.meta.url),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(host.stdout, 'data');
  return { host, pid: Number(String(line)) };
}

for (const [name, body] of [
  ['the end of its code', ''],
  ['process.exit', 'process.exit(5);'],
  ['an exception', "setTimeout(() => { throw new Error('crash'); }); void kernel.call('hang');"],
  ['shutdown', 'await kernel.shutdown();'],
]) {
  test(`the kernel ends after ${name}`, async () => {
    const { host, pid } = await application(body);
    if (host.exitCode === null) await once(host, 'exit');
    await until(() => !isAlive(pid));
  });
}

for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT']) {
  test(`the kernel ends when the application is ended by ${signal}`, async () => {
    const { host, pid } = await application("await kernel.call('hang');");
    assert.ok(isAlive(pid));
    host.kill(signal);
    await once(host, 'exit');
    await until(() => !isAlive(pid));
  });
}

test('bug: `shutdown` did not wait for a call that was just made', async (t) => {
  for (const isBooted of [true, false]) {
    for (const turns of [0, 1, 2, 5]) {
      const kernel = fakeKernel(t);
      if (isBooted) await kernel.boot();
      const call = kernel.call('later', { ms: 50, value: 7 });
      const listing = kernel.tools();
      const run = kernel.run({ task: 'count' });
      for (let turn = 0; turn < turns; turn++) await null;
      const end = kernel.shutdown();
      await assert.rejects(kernel.call('echo'), /was shut down/);
      assert.equal(await call, 7, `booted: ${isBooted}, turns: ${turns}`);
      assert.equal((await listing).length, 1);
      assert.deepEqual(await run.summary, { steps: 3 });
      await end;
    }
  }
});

test('a call that was aborted before it was sent does not hold up a shutdown', async (t) => {
  const kernel = fakeKernel(t);
  const abort = new AbortController();
  const call = kernel.call('hang', {}, { signal: abort.signal });
  abort.abort(new Error('the user left'));
  const end = kernel.shutdown();
  await assert.rejects(call, /the user left/);
  await end;
});
