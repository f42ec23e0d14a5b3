// Installed with npm from archives: the program of the platform's package is found, and `npx tgp` starts it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { FAKE_KERNEL } from '../support/fake.mjs';
import { archives, npm } from '../support/installed.mjs';

test('the package and its program are installed with npm', (t) => {
  const base = mkdtempSync(join(tmpdir(), 'tgp-install-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const application = join(base, 'application');
  mkdirSync(application);
  writeFileSync(join(application, 'package.json'), '{"private": true}');
  npm(['install', '--offline', '--no-audit', '--no-fund', '--silent', ...archives(base, FAKE_KERNEL)], application);
  const environment = { ...process.env };
  delete environment.TGP_BIN;
  const run = (...args) => execFileSync(process.execPath, args, { cwd: application, env: environment, encoding: 'utf8' });
  const program = `
    const kernel = new TGP({ logger: { debug() {}, info() {}, warn() {}, error() {} } });
    kernel.call('environment').then(({ args }) => console.log(args.join(' ')));`;
  assert.equal(run('--input-type=module', '--eval', `import { TGP } from '@tgp/core'; ${program}`), 'serve --stdio\n');
  assert.equal(run('--input-type=commonjs', '--eval', `const { TGP } = require('@tgp/core'); ${program}`), 'serve --stdio\n');
  const input = '{"jsonrpc":"2.0","id":1,"method":"prompt/get"}\n';
  const npx = execFileSync('npx', ['--no-install', 'tgp', 'serve', '--stdio'], { cwd: application, env: environment, encoding: 'utf8', input });
  assert.match(npx, /live prompt/);
});
