// The programs of docs/node.md print what the page says.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { PACKAGE } from '../support/installed.mjs';
import { project, skip } from '../support/real.mjs';

const page = readFileSync(join(PACKAGE, '..', '..', 'docs', 'node.md'), 'utf8');
const programs = [...page.matchAll(/```js\n(\/\/ (\S+)\n[^]*?)```\n\n```text\n([^]*?)```/g)];

test('the page has its programs', () => assert.equal(programs.length, 6));

test('the route handler of the page is the one of the example', () => {
  const example = readFileSync(join(PACKAGE, '..', '..', 'examples', 'nextjs', 'app', 'api', 'agent', 'route.ts'), 'utf8');
  assert.ok(page.includes(`\`\`\`ts\n${example}\`\`\``));
});

for (const [, source, name, output] of programs) {
  test(name, { skip }, (t) => {
    const { directory, env } = project(t);
    mkdirSync(join(directory, 'node_modules', '@tgp'), { recursive: true });
    symlinkSync(PACKAGE, join(directory, 'node_modules', '@tgp', 'core'));
    writeFileSync(join(directory, name), source);
    const options = { cwd: directory, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };
    assert.equal(execFileSync(process.execPath, ['--no-warnings', name], options), output);
    rmSync(join(directory, 'node_modules'), { recursive: true });
  });
}
