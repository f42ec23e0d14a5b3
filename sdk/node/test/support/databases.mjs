// PostgreSQL and MariaDB for the tests: taken from the environment, or started here and stopped at the end.

import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PASSWORD = 'tgp-test-password';

export async function postgres() {
  return process.env.TGP_TEST_POSTGRES_URL ? given(process.env.TGP_TEST_POSTGRES_URL) : startPostgres();
}

export async function mariadb() {
  return process.env.TGP_TEST_MYSQL_URL ? given(process.env.TGP_TEST_MYSQL_URL) : startMariadb();
}

const given = (url) => ({ url, stop() {} });

async function startPostgres() {
  const { folder, user } = prepare('postgres', ['postgres', 'nobody']);
  const port = await freePort();
  const data = join(folder, 'data');
  const secret = join(folder, 'secret');
  writeFileSync(secret, PASSWORD);
  const make = ['--pgdata', data, '--pwfile', secret, '--username=tgp', '--auth-host=scram-sha-256', '--auth-local=trust', '--locale=C', '--encoding=UTF8', '--no-sync'];
  execFileSync('setpriv', [...asUser(user, 'KILL'), program('initdb'), ...make], { cwd: folder, stdio: 'ignore' });
  const settings = ['listen_addresses=127.0.0.1', 'fsync=off', 'shared_buffers=32MB'].flatMap((setting) => ['-c', setting]);
  const server = launch(folder, user, 'QUIT', [program('postgres'), '-D', data, '-p', `${port}`, '-k', folder, ...settings]);
  await answers(port, Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  return { url: `postgres://tgp:${PASSWORD}@127.0.0.1:${port}/postgres`, stop: () => stop(server, 'SIGINT', folder) };
}

async function startMariadb() {
  const { folder, user } = prepare('mariadb', ['mysql', 'nobody']);
  const port = await freePort();
  const data = `--datadir=${join(folder, 'data')}`;
  const make = ['--no-defaults', data, '--auth-root-authentication-method=normal', '--skip-test-db'];
  execFileSync('setpriv', [...asUser(user, 'KILL'), program('mariadb-install-db'), ...make], { cwd: folder, stdio: 'ignore' });
  const first = join(folder, 'first.sql');
  writeFileSync(first, `CREATE DATABASE tgp_test CHARACTER SET utf8mb4;\nCREATE USER 'tgp'@'%' IDENTIFIED BY '${PASSWORD}';\nGRANT ALL ON *.* TO 'tgp'@'%';\n`);
  const options = ['--no-defaults', data, '--bind-address=127.0.0.1', '--skip-name-resolve', '--innodb-buffer-pool-size=32M', '--skip-log-bin',
    `--port=${port}`, `--init-file=${first}`, `--socket=${join(folder, 'socket')}`, `--pid-file=${join(folder, 'pid')}`];
  const server = launch(folder, user, 'KILL', [program('mariadbd'), ...options]);
  await answers(port, Buffer.alloc(0));
  return { url: `mysql://tgp:${PASSWORD}@127.0.0.1:${port}/tgp_test`, stop: () => stop(server, 'SIGTERM', folder) };
}

function program(name) {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/lib/postgresql/15/bin'];
  const found = folders.map((folder) => join(folder, name)).find(existsSync);
  if (found === undefined) throw new Error(`${name} is not installed`);
  return found;
}

/** The servers refuse to run as root. */
function prepare(name, users) {
  const folder = mkdtempSync(join(tmpdir(), `tgp-test-${name}-`));
  if (process.getuid() !== 0) return { folder, user: undefined };
  const known = readFileSync('/etc/passwd', 'utf8').split('\n').map((line) => line.split(':'));
  const [user, , uid, gid] = users.map((wanted) => known.find(([name]) => name === wanted)).find(Boolean);
  chownSync(folder, Number(uid), Number(gid));
  return { folder, user };
}

/** `setpriv` also ends the server when this process dies. */
function asUser(user, signal) {
  return ['--pdeathsig', signal, ...(user === undefined ? [] : ['--reuid', user, '--regid', user, '--clear-groups'])];
}

function launch(folder, user, signal, command) {
  return spawn('setpriv', [...asUser(user, signal), ...command], { cwd: folder, stdio: 'ignore' });
}

async function stop(server, signal, folder) {
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill(signal);
  await ended;
  rmSync(folder, { recursive: true, force: true });
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Waits until the server sends something back. */
async function answers(port, greeting) {
  for (let attempt = 0; attempt < 600; attempt++) {
    const isReady = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(greeting));
      socket.setTimeout(1_000, () => resolve(false));
      socket.once('data', () => resolve(true)).once('error', () => resolve(false)).once('close', () => resolve(false));
      setTimeout(() => socket.destroy(), 1_000).unref();
    });
    if (isReady) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no server answers on port ${port}`);
}
