// MariaDB through mysql2, with promises and with callbacks.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import callbacks from 'mysql2';
import promises from 'mysql2/promise';
import { mysqlExecutor } from '@tgp/core';
import { mariadb } from '../support/databases.mjs';
import { checkExecutor } from '../support/sql-contract.mjs';

let server;
before(async () => {
  server = await mariadb();
});
after(() => server?.stop());

const contract = { p: () => '?' };

test('a pool with promises', async () => {
  const pool = promises.createPool({ uri: server.url, connectionLimit: 3, multipleStatements: true });
  await checkExecutor(mysqlExecutor(pool), contract);
  await pool.end();
});

test('a pool with callbacks', async () => {
  const pool = callbacks.createPool({ uri: server.url, connectionLimit: 3 });
  await checkExecutor(mysqlExecutor(pool), contract);
  await new Promise((resolve) => pool.end(resolve));
});

test('a connection with promises', async () => {
  const connection = await promises.createConnection(server.url);
  await checkExecutor(mysqlExecutor(connection), contract);
  await connection.end();
});

test('exact values', async () => {
  const pool = promises.createPool({ uri: server.url, connectionLimit: 1, timezone: '+05:00' });
  await pool.query("SET time_zone = '+05:00'");
  const executor = mysqlExecutor(pool);
  await executor.execute({ sql: 'CREATE TABLE v (ts TIMESTAMP(3), dt DATETIME(3), j JSON, b VARBINARY(9), u BIGINT UNSIGNED, d DECIMAL(9,2))', parameters: [], maxRows: 0 });
  const transaction = await executor.begin({ readOnly: false });
  const moment = new Date('2026-11-17T02:00:00.500Z');
  await transaction.execute({ sql: 'INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)', parameters: [moment, moment, { a: [1] }, Buffer.from('hi'), 2n ** 63n, '1.10'], maxRows: 0 });
  const { rows } = await transaction.execute({ sql: 'SELECT v.*, DATE(dt) AS day, 1.5e0 AS f, 7 AS n, NULL AS nothing, CAST(2 AS UNSIGNED) AS small FROM v', parameters: [], maxRows: 5 });
  await transaction.rollback();
  assert.deepEqual(rows, [
    {
      ts: '2026-11-17T02:00:00.500Z', dt: '2026-11-17T02:00:00.500', j: rows[0].j, b: 'aGk=', u: String(2n ** 63n), d: '1.10',
      day: '2026-11-17', f: 1.5, n: 7, nothing: null, small: 2,
    },
  ]);
  assert.deepEqual(typeof rows[0].j === 'string' ? JSON.parse(rows[0].j) : rows[0].j, { a: [1] });
  const [[zone]] = await pool.query('SELECT @@session.time_zone AS zone');
  assert.equal(zone.zone, '+05:00', 'the setting of the connection is restored');
  await executor.execute({ sql: 'DROP TABLE v', parameters: [], maxRows: 0 });
  await pool.end();
});
