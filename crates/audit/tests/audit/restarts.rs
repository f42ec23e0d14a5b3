//! Restarting after a break: nothing is deleted, and the new chain says what it follows.

use std::fs;

use std::sync::Arc;

use serde_json::json;
use tgp_audit::{Anchor, AuditFilter, AuditOptions, ExportFormat, Restarted, Restarter};
use tgp_contract::{Actor, Code, Recorder, ToolError};

use crate::support::{Place, assert_broken, bodies, record, runtime};

/// A restart by a user named ada.
fn restart(
    options: &AuditOptions,
    anchor: &Arc<dyn Anchor>,
    reason: &str,
    now_ms: u64,
) -> Result<Restarted, ToolError> {
    let actor = Actor::Person("ada".to_owned());
    let restarter = Restarter { actor, user: json!({ "name": "ada", "uid": 1000 }), reason };
    tgp_audit::restart(options, anchor, &restarter, now_ms)
}

#[test]
fn a_broken_chain_is_set_aside_whole() {
    let place = Place::filled(6);
    let old = place.head();
    place.tamper().execute_batch("DELETE FROM entries WHERE sequence = 3").unwrap();
    assert_broken(place.verify(), 3);
    let anchor = place.anchor();
    let reason = restart(&place.options(), &anchor, "  ", 5).unwrap_err();
    assert_eq!(reason.code, Code::Validation);
    let restarted = restart(
        &place.options(),
        &anchor,
        "the disk was damaged; see ticket 12, password=hunter2-hunter2",
        1_800_000_000_000,
    )
    .unwrap();
    let aside = restarted.set_aside.unwrap();
    let audit = place.open().unwrap();
    runtime().block_on(async {
        audit.record(record("first of the new chain")).await.unwrap();
        audit.close().await.unwrap();
    });
    place.assert_intact(2);
    assert_ne!(place.head().chain, old.chain);
    let first = bodies(&place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap()).remove(0);
    assert_eq!(first["kind"], "restart");
    assert_eq!(first["verdict"], "restarted");
    assert_eq!(first["actor"], json!({"id": "ada", "kind": "person"}));
    assert_eq!(first["user"], json!({"name": "ada", "uid": 1000}));
    assert!(aside.display().to_string().contains(".broken-"));
    assert_eq!(first["reason"], "the disk was damaged; see ticket 12, password=[redacted]");
    let head = json!({"chain": old.chain, "sequence": 6, "hash": old.hash});
    assert_eq!(first["previousChain"]["anchored"], head);
    assert_eq!(first["previousChain"]["stored"], head);
    assert_eq!(first["previousChain"]["file"], json!(aside.file_name().unwrap().to_str().unwrap()));
    assert_eq!(first["previousChain"]["problem"], json!(restarted.problem.unwrap()));
    assert_eq!(place.reader().history("", 10).unwrap(), [], "a restart is not a call");
    // What is left of the old chain can still be read by a person who examines it.
    let left = rusqlite::Connection::open(aside).unwrap();
    let count: i64 = left.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 5);
    let table = place.export(&AuditFilter::default(), ExportFormat::Csv).unwrap();
    assert!(String::from_utf8(table).unwrap().contains("the disk was damaged"));
}

#[test]
fn a_vanished_a_foreign_and_a_senseless_database_can_be_followed_too() {
    let breaks: [&dyn Fn(&Place); 4] = [
        &|place| {
            for suffix in ["", "-wal", "-shm"] {
                let _ = fs::remove_file(place.folder.path().join(format!("audit.db{suffix}")));
            }
        },
        &|place| {
            place.settle();
            fs::write(place.path(), "nonsense ".repeat(1000)).unwrap();
        },
        &|place| fs::write(place.anchor_path(), "nonsense").unwrap(),
        &|place| fs::remove_file(place.anchor_path()).unwrap(),
    ];
    for damage in breaks {
        let place = Place::filled(4);
        damage(&place);
        let before = fs::read(place.path()).ok();
        assert_eq!(place.open().unwrap_err().code, Code::Integrity);
        let restarted = restart(&place.options(), &place.anchor(), "it is broken", 7).unwrap();
        assert!(restarted.problem.is_some());
        assert_eq!(restarted.set_aside.as_ref().map(|aside| fs::read(aside).unwrap()), before);
        drop(place.open().unwrap());
        place.assert_intact(1);
        // And once more at the same moment: the names differ.
        let again = restart(&place.options(), &place.anchor(), "to be sure", 7).unwrap();
        assert_eq!(again.problem, None);
        assert!(again.set_aside.as_ref().unwrap().display().to_string().contains(".ended-"));
        assert_ne!(again.set_aside, restarted.set_aside);
        place.assert_intact(1);
    }
}

#[test]
fn a_kernel_that_runs_on_notices_the_restart() {
    let place = Place::filled(2);
    let audit = place.open().unwrap();
    restart(&place.options(), &place.anchor(), "while it runs", 7).unwrap();
    runtime().block_on(async {
        audit.record(record("to the old chain")).await.unwrap();
        assert_eq!(audit.flush().await.unwrap_err().code, Code::Integrity);
    });
    drop(audit);
    place.assert_intact(1);
}
