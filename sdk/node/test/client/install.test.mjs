// Installed with npm from archives: the program of the platform's package is found, and `npx tgp` starts it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { VERSION } from '@tgp/core';
import { FAKE_KERNEL } from '../support/fake.mjs';
import { PACKAGE } from '../support/installed.mjs';

const PLATFORM = `@tgp/${process.platform}-${process.arch}`;
const LAUNCHER = join(PACKAGE, '..', '..', 'xtask', 'src', 'dist', 'tgp.js');

test('the package and its program are installed with npm', (t) => {
  const base = mkdtempSync(join(tmpdir(), 'tgp-install-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const npm = (args, cwd) => execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const pack = (directory) => join(base, npm(['pack', '--silent', '--ignore-scripts', '--pack-destination', base], directory));
  /** A package as `cargo xtask dist` makes it, with the fake kernel as its program. */
  const make = (manifest, program, source) => {
    const directory = join(base, 'source', manifest.name);
    const file = join(directory, program);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ version: VERSION, files: [program], ...manifest }));
    copyFileSync(source, file);
    chmodSync(file, 0o755);
    return pack(directory);
  };
  const archives = [
    pack(PACKAGE),
    make({ name: 'tgp', bin: { tgp: 'bin/tgp.js' }, optionalDependencies: { [PLATFORM]: VERSION } }, 'bin/tgp.js', LAUNCHER),
    make({ name: PLATFORM }, 'bin/tgp', FAKE_KERNEL),
  ];
  const application = join(base, 'application');
  mkdirSync(application);
  writeFileSync(join(application, 'package.json'), '{"private": true}');
  npm(['install', '--offline', '--no-audit', '--no-fund', ...archives], application);
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
