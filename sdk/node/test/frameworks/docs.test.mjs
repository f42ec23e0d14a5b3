// The programs of docs/node.md print what the page says.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { PACKAGE } from '../support/installed.mjs';
import { project, realKernel, skip } from '../support/real.mjs';

const page = readFileSync(join(PACKAGE, '..', '..', 'docs', 'node.md'), 'utf8');
const programs = [...page.matchAll(/```js\n(\/\/ (\S+)\n[^]*?)```\n\n```text\n([^]*?)```/g)];
const configuration = /```ts\n(\/\/ tgp\.config\.ts\n[^]*?)```/.exec(page)?.[1];
const example = readFileSync(join(PACKAGE, '..', '..', 'examples', 'nextjs', 'app', 'api', 'agent', 'route.ts'), 'utf8');

test('every block of the page is a program, the configuration, or the route handler of the example', () => {
  assert.equal(programs.length, 6);
  assert.equal(page.match(/```js\n/g).length, programs.length);
  assert.equal(page.match(/```ts\n/g).length, 2);
  assert.ok(configuration !== undefined);
  assert.ok(page.includes(`\`\`\`ts\n${example}\`\`\``));
});

for (const [, source, name, output] of programs) {
  test(`${name} runs, and runs again`, { skip }, (t) => {
    const { directory, env } = project(t);
    mkdirSync(join(directory, 'node_modules', '@tgp'), { recursive: true });
    symlinkSync(PACKAGE, join(directory, 'node_modules', '@tgp', 'core'));
    writeFileSync(join(directory, name), source);
    const options = { cwd: directory, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };
    assert.equal(execFileSync(process.execPath, ['--no-warnings', name], options), output);
    // A bug: the second run of credits.mjs failed, because its table was there.
    assert.equal(execFileSync(process.execPath, ['--no-warnings', name], options), output);
    rmSync(join(directory, 'node_modules'), { recursive: true });
  });
}

test('the kernel boots with the configuration of the page', { skip }, async (t) => {
  const { kernel } = realKernel(t, { files: { 'tgp.config.ts': configuration } });
  assert.equal((await kernel.call('exec_code', { code: 'return 6 * 7;' })).result, 42);
});
