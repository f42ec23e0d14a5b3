// Installs what development needs. `npm install` alone fails while the package `tgp` is not published: its version cannot
// be found. So the development dependencies are installed in `.dev`, and `node_modules` is a link to them.

import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const development = join(root, '.dev');
mkdirSync(development, { recursive: true });
const manifest = { name: `${name}-development`, private: true, dependencies: devDependencies };
writeFileSync(join(development, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
const install = spawnSync('npm', ['install', '--no-audit', '--no-fund'], { cwd: development, stdio: 'inherit' });
if (install.status !== 0) {
  process.exit(install.status ?? 1);
}
const link = join(root, 'node_modules');
if (!existsSync(link)) {
  symlinkSync(join('.dev', 'node_modules'), link);
} else if (!lstatSync(link).isSymbolicLink()) {
  console.error('node_modules is a directory already; it was left as it is');
}
