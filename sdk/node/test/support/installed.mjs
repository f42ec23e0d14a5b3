// A copy of an example with the packed `@tgp/core` in its `node_modules`. Other packages are found above it.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const TEMPORARY = join(PACKAGE, 'test', '.tmp');

export function installedExample(test, name) {
  mkdirSync(TEMPORARY, { recursive: true });
  const directory = mkdtempSync(join(TEMPORARY, `${name}-`));
  test.after(() => rmSync(directory, { recursive: true, force: true }));
  const app = join(directory, 'app');
  cpSync(join(PACKAGE, '..', '..', 'examples', name), app, { recursive: true });
  const core = join(app, 'node_modules', '@tgp', 'core');
  mkdirSync(core, { recursive: true });
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', directory];
  const archive = execFileSync('npm', pack, { cwd: PACKAGE, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  execFileSync('tar', ['xzf', join(directory, archive), '--strip-components=1', '-C', core]);
  return { app, env: { ...process.env, TGP_HOME: join(dirname(app), 'home') } };
}
