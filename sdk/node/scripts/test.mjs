// Runs the tests: those that need Node 22 (`ai`, `openai`, `better-sqlite3`, `node:sqlite`) with the one of the package
// `node`, where this one is older. Tests on the real kernel need `TGP_BIN`, or `tgp` on the path.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const isNew = Number(process.versions.node.split('.')[0]) >= 22;
const newNode = isNew ? process.execPath : join(root, 'node_modules', '.bin', 'node');

const suites = [
  { folder: 'client', node: process.execPath },
  { folder: 'sql', node: newNode },
  { folder: 'kernel', node: process.execPath },
  { folder: 'frameworks', node: newNode },
];
const wanted = process.argv.slice(2);
let status = 0;
for (const { folder, node } of suites.filter(({ folder }) => wanted.length === 0 || wanted.includes(folder))) {
  const directory = join('test', folder);
  const files = readdirSync(join(root, directory)).filter((name) => /\.test\.[cm]js$/.test(name));
  console.error(`${directory} with ${node}`);
  const paths = files.map((name) => join(directory, name));
  const run = spawnSync(node, ['--no-warnings', '--test', ...paths], { cwd: root, stdio: 'inherit' });
  status ||= run.status ?? 1;
}
process.exit(status);
