// What every executor does: the transaction contract, exact values, bounded rows.

import assert from 'node:assert/strict';

const statement = (sql, parameters = [], maxRows = 100) => ({ sql, parameters, maxRows });

/** `p` writes a place holder: `$1` or `?`. A driver that `ignoresTail` runs the first of several statements. */
export async function checkExecutor(executor, { p, ignoresTail = false }) {
  const run = (sql, parameters, maxRows) => executor.execute(statement(sql, parameters, maxRows));
  await run('DROP TABLE IF EXISTS credits');
  await run('CREATE TABLE credits (name VARCHAR(20) PRIMARY KEY, amount BIGINT)');

  const writing = await executor.begin({ readOnly: false });
  const inserted = await writing.execute(statement(`INSERT INTO credits VALUES (${p(1)}, ${p(2)}), (${p(3)}, ${p(4)})`, ['ann', 10, 'bob', 9007199254740993n]));
  assert.equal(inserted.changed, 2);
  await writing.commit();
  const all = await run('SELECT name, amount FROM credits ORDER BY name');
  assert.deepEqual(all, {
    columns: ['name', 'amount'],
    rows: [{ name: 'ann', amount: 10 }, { name: 'bob', amount: '9007199254740993' }],
    changed: 0,
    truncated: false,
  });

  const undone = await executor.begin({ readOnly: false });
  await undone.execute(statement('DELETE FROM credits'));
  await undone.rollback();
  assert.equal((await run('SELECT name FROM credits')).rows.length, 2, 'a rollback undoes');

  const nested = await executor.begin({ readOnly: false });
  await nested.execute(statement(`UPDATE credits SET amount = 1 WHERE name = ${p(1)}`, ['ann']));
  await nested.savepoint('set', 'inner');
  await nested.execute(statement(`UPDATE credits SET amount = 2 WHERE name = ${p(1)}`, ['ann']));
  await nested.savepoint('rollback', 'inner');
  await nested.savepoint('release', 'inner');
  await nested.savepoint('set', 'inner');
  await assert.rejects(nested.execute(statement("INSERT INTO credits VALUES ('ann', 0)")), { code: 'ESQL' });
  await nested.savepoint('rollback', 'inner');
  await nested.commit();
  assert.equal((await run("SELECT amount FROM credits WHERE name = 'ann'")).rows[0].amount, 1, 'a savepoint undoes a part');

  const reading = await executor.begin({ readOnly: true });
  assert.equal((await reading.execute(statement('SELECT name FROM credits'))).rows.length, 2);
  await assert.rejects(reading.execute(statement('DELETE FROM credits')), { code: 'ESQL' }, 'the database refuses to write');
  await reading.rollback();

  const many = await run('SELECT name FROM credits ORDER BY name', [], 1);
  assert.deepEqual([many.rows, many.truncated], [[{ name: 'ann' }], true]);

  await assert.rejects(run('SELECT nothing FROM nowhere'), (error) => {
    assert.equal(error.code, 'ESQL');
    assert.ok(error.details.sqlCode, 'the code of the database');
    return true;
  });
  const two = run('SELECT 1; DELETE FROM credits');
  await (ignoresTail ? two : assert.rejects(two, { code: 'ESQL' }, 'one statement at a time'));

  const parallel = await Promise.all(
    Array.from({ length: 5 }, async (_, n) => {
      const transaction = await executor.begin({ readOnly: false });
      await transaction.execute(statement(`INSERT INTO credits VALUES (${p(1)}, ${p(2)})`, [`n${n}`, n]));
      await transaction.commit();
      return n;
    }),
  );
  assert.equal(parallel.length, 5);
  assert.equal(Number((await run('SELECT count(*) AS n FROM credits')).rows[0].n), 7);
  await run('DROP TABLE credits');
}
