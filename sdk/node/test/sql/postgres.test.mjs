// PostgreSQL through pg.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import pg from 'pg';
import { postgresExecutor } from '@tgp/core';
import { postgres } from '../support/databases.mjs';
import { checkExecutor } from '../support/sql-contract.mjs';

let server;
before(async () => {
  server = await postgres();
});
after(() => server?.stop());

const one = (sql, parameters = []) => ({ sql, parameters, maxRows: 10 });

test('a pool', async () => {
  const pool = new pg.Pool({ connectionString: server.url, max: 4 });
  await checkExecutor(postgresExecutor(pool), { p: (n) => `$${n}` });
  assert.equal(pool.idleCount, pool.totalCount, 'every connection was given back');
  await pool.end();
});

test('a connection', async () => {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await checkExecutor(postgresExecutor(client), { p: (n) => `$${n}` });
  await client.end();
});

test('exact values', async () => {
  const pool = new pg.Pool({ connectionString: server.url });
  await pool.query("ALTER ROLE tgp SET TimeZone = 'Europe/Berlin'");
  const executor = postgresExecutor(pool);
  const transaction = await executor.begin({ readOnly: true });
  const { rows } = await transaction.execute(
    one(`SELECT 5::int8 AS small, 9007199254740993 AS large, 1.10::numeric AS decimal, 'NaN'::float8 AS nan, true AS yes,
      '\\x6869'::bytea AS bytes, '{"a":1}'::jsonb AS json, '2026-11-17 02:00:00.5+00'::timestamptz AS zoned,
      '2026-11-17 02:00:00'::timestamp AS local, '2026-11-17'::date AS day, ARRAY[1,2] AS list, NULL AS nothing,
      $1::timestamptz AS moment, $2::jsonb AS given, $3::int[] AS numbers, $4::bytea AS raw, $5::int8 AS big`,
      [new Date(0), { a: [1] }, [3, 4], Buffer.from('hi'), 2n ** 60n]),
  );
  await transaction.rollback();
  assert.deepEqual(rows, [
    {
      small: 5, large: '9007199254740993', decimal: '1.10', nan: 'NaN', yes: true, bytes: 'aGk=', json: { a: 1 },
      zoned: '2026-11-17T02:00:00.5Z', local: '2026-11-17T02:00:00', day: '2026-11-17', list: [1, 2], nothing: null,
      moment: '1970-01-01T00:00:00Z', given: { a: [1] }, numbers: [3, 4], raw: 'aGk=', big: String(2n ** 60n),
    },
  ]);
  await pool.end();
});

test('rows that are not wanted are not kept, and a lost connection is not used again', async () => {
  const pool = new pg.Pool({ connectionString: server.url, max: 1 });
  pool.on('error', () => {});
  const executor = postgresExecutor(pool);
  const many = await executor.execute({ sql: 'SELECT generate_series(1, 200000) AS n', parameters: [], maxRows: 3 });
  assert.deepEqual([many.rows.length, many.truncated, many.changed], [3, true, 0]);
  const transaction = await executor.begin({ readOnly: false });
  await assert.rejects(transaction.execute(one('SELECT pg_terminate_backend(pg_backend_pid())')), { code: 'ESQL' });
  await assert.rejects(transaction.commit(), { code: 'ESQL' });
  assert.equal((await executor.execute(one('SELECT 1 AS n'))).rows[0].n, 1);
  await pool.end();
});
