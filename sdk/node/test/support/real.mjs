// Projects for the real kernel, which is `TGP_BIN` or `tgp` on the path.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { TGP } from '@tgp/core';

const binary = process.env.TGP_BIN ?? 'tgp';

/** Why the tests on the real kernel cannot run, or `false`. */
export const skip = (() => {
  try {
    const help = execFileSync(binary, ['serve', '--help'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return help.includes('--stdio') ? false : `${binary} has no \`serve --stdio\``;
  } catch {
    return '`tgp` was not found: set TGP_BIN';
  }
})();

/** A project that `tgp init` has made, with a home of its own. */
export function project(test, { config, files = {} } = {}) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'tgp-node-')));
  const directory = join(base, 'project');
  mkdirSync(directory);
  const env = { ...process.env, TGP_HOME: join(base, 'home') };
  const tgp = (...args) => execFileSync(binary, args, { cwd: directory, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  tgp('init', '--json');
  const configFile = join(directory, 'tgp.config.ts');
  if (config !== undefined) writeFileSync(configFile, `export default ${JSON.stringify(config)};\n`);
  // A person has written this configuration.
  if (config?.tdd !== undefined) tgp('trust', '--yes');
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  // Kernels end before their files are removed: they write until then.
  const kernels = [];
  test.after(async () => {
    await Promise.all(kernels.map((kernel) => kernel.shutdown()));
    await removeTree(base);
  });
  return { directory, configFile, env, tgp, kernels };
}

/**
 * The kernel of an application that has ended writes its last records after that, also into a directory whose files are gone
 * already. `maxRetries` does not remove what came in between.
 */
async function removeTree(base) {
  for (let attempt = 1; ; attempt++) {
    try {
      return rmSync(base, { recursive: true, force: true });
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' || attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** A kernel in a new project. */
export function realKernel(test, { config, files, ...options } = {}) {
  const place = project(test, { config, files });
  const kernel = new TGP({ configFile: place.configFile, env: place.env, ...options });
  place.kernels.push(kernel);
  return { kernel, ...place };
}

export const FIB_TEST = `import { expect, test } from '@tgp/test';
import fib from './fib.ts';
test('the tenth number', () => expect(fib({ n: 10 })).toBe(55));
`;

export const FIB = `/** The n-th Fibonacci number. */
export default function fib(args: { n: number }): number {
  return args.n < 2 ? args.n : fib({ n: args.n - 1 }) + fib({ n: args.n - 2 });
}
`;

/** Calls that find, forge, test and run a tool, as a model makes them. */
export const FORGE_CALLS = [
  ['search', { query: 'compute a Fibonacci number' }],
  ['write_file', { path: 'tools/math/fib.test.ts', content: FIB_TEST }],
  ['test_tool', { path: 'tools/math/fib.ts' }],
  ['write_file', { path: 'tools/math/fib.ts', content: FIB }],
  ['check_tool', { path: 'tools/math/fib.ts' }],
  ['test_tool', { path: 'tools/math/fib.ts' }],
  ['exec_tool', { path: 'tools/math/fib.ts', args: { n: 10 } }],
];

/** Stores a tool without the gate of TDD; the project's mode has to be `explore`. */
export const EXPLORE = { tdd: { mode: 'explore' } };
