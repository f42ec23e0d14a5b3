//! Ids that collide: every node keeps its own, and the same one the next time.

use std::collections::HashSet;

use rusqlite::Connection;

use super::Identities;
use crate::tables::schema::{LEDGER, SCHEMA};

#[test]
fn nodes_that_would_share_an_id_get_two() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection.execute_batch(LEDGER).unwrap();
    // 100 nodes on 1,024 ids: about five pairs share one.
    let paths: Vec<String> = (0..100).map(|number| format!("src/{number}.ts")).collect();
    let mut ids = Identities::with_bits(&connection, 10).unwrap();
    let first: Vec<i64> = paths.iter().map(|path| ids.claim(&connection, "File", &[path]).unwrap()).collect();
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), paths.len());
    let aliases: i64 = connection.query_row("SELECT count(*) FROM alias", [], |row| row.get(0)).unwrap();
    assert!(aliases > 0, "no collision was met");

    let mut again = Identities::with_bits(&connection, 10).unwrap();
    for (path, id) in paths.iter().zip(&first) {
        assert_eq!(again.id("File", &[path]), *id);
        assert_eq!(again.claim(&connection, "File", &[path]).unwrap(), *id);
    }
}
