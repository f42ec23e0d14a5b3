// SQLite through better-sqlite3 and node:sqlite.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';

import Database from 'better-sqlite3';
import { betterSqliteExecutor, nodeSqliteExecutor } from '@tgp/core';
import { checkExecutor } from '../support/sql-contract.mjs';

const kinds = {
  'better-sqlite3': () => {
    const database = new Database(':memory:');
    return { database, executor: betterSqliteExecutor(database) };
  },
  'node:sqlite': () => {
    const database = new DatabaseSync(':memory:');
    return { database, executor: nodeSqliteExecutor(database) };
  },
};

for (const [name, open] of Object.entries(kinds)) {
  test(`${name}: the contract`, () => checkExecutor(open().executor, { p: () => '?', ignoresTail: name === 'node:sqlite' }));

  test(`${name}: exact values`, async () => {
    const { executor } = open();
    const parameters = [Buffer.from('hi'), new Date(0), 2 ** 40, true, null, { a: [1] }, 0.5, 2n ** 62n];
    const { rows } = await executor.execute({
      sql: 'SELECT ? AS b, ? AS d, typeof(?) AS i, ? AS t, ? AS n, ? AS j, ? AS r, ? AS l',
      parameters,
      maxRows: 1,
    });
    assert.deepEqual(rows, [
      { b: 'aGk=', d: '1970-01-01T00:00:00.000Z', i: 'integer', t: 1, n: null, j: '{"a":[1]}', r: 0.5, l: String(2n ** 62n) },
    ]);
  });

  test(`${name}: RETURNING changes rows and returns them`, async () => {
    const { database, executor } = open();
    database.exec('CREATE TABLE t (n INTEGER)');
    const sql = 'INSERT INTO t VALUES (1), (2), (3) RETURNING n';
    const result = await executor.execute({ sql, parameters: [], maxRows: 2 });
    assert.deepEqual(result, { columns: ['n'], rows: [{ n: 1 }, { n: 2 }], changed: 3, truncated: true });
    assert.equal(database.prepare('SELECT count(*) AS n FROM t').get().n, 3);
  });

  test(`${name}: a transaction of the application is not joined`, async () => {
    const { database, executor } = open();
    database.exec('BEGIN');
    await assert.rejects(executor.begin({ readOnly: false }), { code: 'ESQL', message: /in a transaction of the application/ });
    database.exec('COMMIT');
    await (await executor.begin({ readOnly: true })).rollback();
    database.exec('CREATE TABLE writable (n)');
  });
}
