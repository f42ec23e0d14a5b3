// Packages as `cargo xtask dist` makes them, and an example that npm installs them in.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const REPOSITORY = join(PACKAGE, '..', '..');
const LAUNCHER = join(REPOSITORY, 'xtask', 'src', 'dist', 'tgp.js');
const PLATFORM = `@tgp/${process.platform}-${process.arch}`;
const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));

export function npm(args, cwd) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** Archives of `@tgp/core`, of `tgp`, and of the platform's package with this program. */
export function archives(base, program) {
  const pack = (directory) => join(base, npm(['pack', '--silent', '--ignore-scripts', '--pack-destination', base], directory));
  const make = (manifest, name, source) => {
    const directory = join(base, 'source', manifest.name);
    const file = join(directory, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ version, files: [name], ...manifest }));
    copyFileSync(source, file);
    chmodSync(file, 0o755);
    return pack(directory);
  };
  return [
    pack(PACKAGE),
    make({ name: 'tgp', bin: { tgp: 'bin/tgp.js' }, optionalDependencies: { [PLATFORM]: version } }, 'bin/tgp.js', LAUNCHER),
    make({ name: PLATFORM }, 'bin/tgp', program),
  ];
}

/** A copy of an example after `npm install` and `npx tgp init`. The program is that of the tests. */
export function installedExample(test, name) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), `tgp-example-${name}-`)));
  // The kernel of an application that has ended writes its last records after that.
  test.after(() => rmSync(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));
  const app = join(base, 'app');
  cpSync(join(REPOSITORY, 'examples', name), app, { recursive: true });
  // A debug build is too large to be packed: the package has a script that starts it.
  const program = join(base, 'program.sh');
  const tested = process.env.TGP_BIN === undefined ? 'tgp' : resolve(process.env.TGP_BIN);
  writeFileSync(program, `#!/bin/sh\nexec '${tested}' "$@"\n`);
  npm(['install', '--prefer-offline', '--no-audit', '--no-fund', '--silent', ...archives(base, program)], app);
  const env = { ...process.env, TGP_HOME: join(base, 'home') };
  delete env.TGP_BIN;
  execFileSync('npx', ['--no-install', 'tgp', 'init', '--json'], { cwd: app, env, stdio: ['ignore', 'ignore', 'inherit'] });
  return { app, env };
}
