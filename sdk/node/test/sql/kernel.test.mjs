// `createSqlTools` with the real kernel: the application's database takes part in runs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';

import Database from 'better-sqlite3';
import promises from 'mysql2/promise';
import pg from 'pg';
import { createSqlTools, postgresExecutor } from '@tgp/core';
import { mariadb, postgres } from '../support/databases.mjs';
import { until } from '../support/fake.mjs';
import { EXPLORE, realKernel, skip } from '../support/real.mjs';

const PAY = `/** Moves credit from one user to another. */
export default async function pay(args: { from: string; to: string; amount: number }): Promise<number> {
  await tgp.exec_sql('UPDATE users SET credit = credit + :amount WHERE name = :to', { amount: args.amount, to: args.to });
  await tgp.exec_sql('UPDATE users SET credit = credit - :amount WHERE name = :from', { amount: args.amount, from: args.from });
  const payer = await tgp.exec_sql('SELECT credit FROM users WHERE name = :from', { from: args.from });
  if (payer[0].credit < 0) throw new Error(\`\${args.from} cannot pay that\`);
  return payer[0].credit;
}
`;

/** `query` is the application's own way to the database. */
async function checkDatabase(t, source, query) {
  const { kernel } = realKernel(t, { config: EXPLORE });
  const { exec_sql } = createSqlTools(source, kernel);
  // A run that was stopped may have left it on a server that stays.
  await exec_sql.execute({ sql: 'DROP TABLE IF EXISTS users' });
  await exec_sql.execute({ sql: 'CREATE TABLE users (name VARCHAR(20), credit INTEGER)' });
  await exec_sql.execute({ sql: 'INSERT INTO users VALUES (?, ?), (?, ?)', params: ['ann', 10, 'bob', 0] });
  const credits = async () => (await query('SELECT credit FROM users ORDER BY name')).map((row) => Number(row.credit));
  assert.deepEqual(await credits(), [10, 0], 'the application sees what the kernel committed');
  await kernel.call('write_file', { path: 'tools/pay.ts', content: PAY });
  assert.equal(await kernel.exec('tools/pay.ts', { from: 'ann', to: 'bob', amount: 4 }), 6);
  assert.deepEqual(await credits(), [6, 4]);
  await assert.rejects(kernel.exec('tools/pay.ts', { from: 'ann', to: 'bob', amount: 40 }), { code: 'ERUNTIME', message: /cannot pay/ });
  assert.deepEqual(await credits(), [6, 4], 'a run that fails is rolled back');
  await exec_sql.execute({ sql: 'DELETE FROM users' }).catch(() => {});
  const { rows } = await kernel.call('exec_sql', { sql: 'SELECT count(*) AS n FROM users' });
  assert.equal(Number(rows[0].n), 0);
  // A bug: an error of the database had no next step.
  await assert.rejects(exec_sql.execute({ sql: 'SELECT * FROM nowhere' }), (error) => error.code === 'ESQL' && /correct the statement/.test(error.help));
  await exec_sql.execute({ sql: 'DROP TABLE users' });
}

let databases;
before(async () => {
  databases = skip ? undefined : { postgres: await postgres(), mariadb: await mariadb() };
});
after(() => Promise.all(Object.values(databases ?? {}).map((server) => server.stop())));

test('pg', { skip }, async (t) => {
  const pool = new pg.Pool({ connectionString: databases.postgres.url, max: 4 });
  await checkDatabase(t, pool, async (sql) => (await pool.query(sql)).rows);
  await pool.end();
});

test('mysql2', { skip }, async (t) => {
  const pool = promises.createPool(databases.mariadb.url);
  await checkDatabase(t, pool, async (sql) => (await pool.query(sql))[0]);
  await pool.end();
});

test('better-sqlite3', { skip }, async (t) => {
  const database = new Database(':memory:');
  await checkDatabase(t, database, async (sql) => database.prepare(sql).all());
});

test('node:sqlite', { skip }, async (t) => {
  const database = new DatabaseSync(':memory:');
  await checkDatabase(t, database, async (sql) => database.prepare(sql).all());
});

test('a database that is bound after the boot', { skip }, async (t) => {
  const { kernel } = realKernel(t, { config: EXPLORE });
  await kernel.boot();
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE late (n INTEGER)');
  const { exec_sql } = createSqlTools(database);
  await exec_sql.execute({ sql: 'INSERT INTO late VALUES (:n)', params: { n: 7 } });
  assert.equal(database.prepare('SELECT n FROM late').get().n, 7);
});

test('a function without transactions keeps each statement', { skip }, async (t) => {
  const pool = new pg.Pool({ connectionString: databases.postgres.url });
  const { kernel } = realKernel(t, { config: EXPLORE });
  t.after(() => pool.end());
  const { exec_sql } = createSqlTools(async (sql, parameters) => (await pool.query(sql, parameters)).rows, kernel);
  await pool.query('DROP TABLE IF EXISTS single');
  await exec_sql.execute({ sql: 'CREATE TABLE single (n INTEGER)' });
  await exec_sql.execute({ sql: 'INSERT INTO single VALUES (?)', params: [1] });
  const content = `/** Writes and fails. */
export default async function half(): Promise<void> {
  await tgp.exec_sql('INSERT INTO single VALUES (2)');
  throw new Error('failed after the insert');
}
`;
  await kernel.call('write_file', { path: 'tools/half.ts', content });
  await assert.rejects(kernel.exec('tools/half.ts'));
  assert.equal((await pool.query('SELECT * FROM single')).rows.length, 2, 'the statement stays');
  await pool.query('DROP TABLE single');
});

test('a transaction is rolled back when the kernel is killed', { skip }, async (t) => {
  const pool = new pg.Pool({ connectionString: databases.postgres.url });
  t.after(() => pool.end());
  await pool.query('DROP TABLE IF EXISTS lost');
  await pool.query('CREATE TABLE lost (n INTEGER)');
  const { kernel } = realKernel(t, { config: EXPLORE });
  const executor = postgresExecutor(pool);
  const begin = async (options) => {
    const transaction = await executor.begin(options);
    const execute = async (statement) => {
      const rows = await transaction.execute(statement);
      if (statement.sql.includes('VALUES (2)')) killKernel();
      return rows;
    };
    return { ...transaction, execute };
  };
  createSqlTools({ ...executor, begin }, kernel);
  const content = `/** Writes twice. */
export default async function lose(): Promise<void> {
  await tgp.exec_sql('INSERT INTO lost VALUES (1)');
  await tgp.exec_sql('INSERT INTO lost VALUES (2)');
}
`;
  await kernel.call('write_file', { path: 'tools/lose.ts', content });
  await assert.rejects(kernel.exec('tools/lose.ts'), { code: 'EINTERNAL', message: /SIGKILL/ });
  await until(() => pool.idleCount === pool.totalCount);
  assert.equal((await pool.query('SELECT * FROM lost')).rows.length, 0);
  assert.equal((await kernel.call('exec_sql', { sql: 'SELECT count(*) AS n FROM lost' })).rows[0].n, 0, 'the next call starts another');
  await pool.query('DROP TABLE lost');
});

function killKernel() {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean);
  const kernel = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--stdio'));
  process.kill(Number(kernel), 'SIGKILL');
}
