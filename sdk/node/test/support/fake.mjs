// A `TGP` on the fake kernel.

import { fileURLToPath } from 'node:url';

import { TGP } from '@tgp/core';

export const FAKE_KERNEL = fileURLToPath(new URL('fake-kernel.mjs', import.meta.url));

export const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** `boot` chooses how the fake kernel boots; the kernel is shut down when the test ends. */
export function fakeKernel(test, { boot, ...options } = {}) {
  const env = { ...process.env, ...(boot === undefined ? {} : { FAKE_BOOT: boot }) };
  const kernel = new TGP({ binary: FAKE_KERNEL, logger: silent, env, ...options });
  test.after(() => kernel.shutdown());
  return kernel;
}

/** A logger that keeps its lines. */
export function recordingLogger() {
  const lines = [];
  const at = (level) => (message) => lines.push(`${level}: ${message}`);
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Whether a process exists. */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export async function until(condition, milliseconds = 10_000) {
  const end = Date.now() + milliseconds;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${milliseconds} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
