// Nothing is left behind, however the application ends.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { FAKE_KERNEL, isAlive, until } from '../support/fake.mjs';

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
