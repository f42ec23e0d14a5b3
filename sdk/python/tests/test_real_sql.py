"""Forged tools of the real kernel on every database that is there: a run is one transaction of the application's database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from databases import EXECUTORS

from tgp import TGP, SqlExecutor, TGPError

SOURCE = """\
/** Inserts a user, survives a statement that fails, and fails if asked to. */
export default async function insert(args: { id: number; name: string; fail: boolean }): Promise<unknown> {
  await tgp.exec_sql('INSERT INTO tgp_users (id, name) VALUES (:id, :name)', { id: args.id, name: args.name });
  let failed = false;
  try {
    await tgp.exec_sql('INSERT INTO tgp_users (id, name) VALUES (:id, :name)', { id: args.id, name: 'again' });
  } catch {
    failed = true;
  }
  if (args.fail) throw new Error('changed my mind');
  const rows = await tgp.exec_sql("SELECT name FROM tgp_users WHERE name LIKE '%n%' OR id = :id OR id = :id", { id: args.id });
  return { failed, names: rows.map((row) => row.name) };
}
"""


@pytest.mark.parametrize("make", EXECUTORS, ids=lambda make: str(make.__name__))
def test_a_run_is_a_transaction(project: Path, tmp_path: Path, make: Callable[[Path], SqlExecutor]) -> None:
    with TGP(project, sql=make(tmp_path)) as kernel:
        kernel.call("exec_sql", {"sql": "DROP TABLE IF EXISTS tgp_users"})
        kernel.call("exec_sql", {"sql": "CREATE TABLE tgp_users (id INTEGER PRIMARY KEY, name VARCHAR(50))"})
        kernel.call("write_file", {"path": "tools/insert.ts", "content": SOURCE})
        result = kernel.exec("tools/insert.ts", {"id": 1, "name": "Ann", "fail": False})
        assert result == {"failed": True, "names": ["Ann"]}
        with pytest.raises(TGPError, match="changed my mind"):
            kernel.exec("tools/insert.ts", {"id": 2, "name": "Bob", "fail": True})
        data = kernel.call("exec_sql", {"sql": "SELECT id, name FROM tgp_users"})
        assert data["rows"] == [{"id": 1, "name": "Ann"}]
