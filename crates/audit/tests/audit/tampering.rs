//! A writer of the database cannot change the past unseen: property tests over random chains and changes.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};
use tgp_audit::{Audit, AuditFilter, AuditReader, ExportFormat, FileAnchor};
use tgp_contract::{Actor, CallRecord, Code, Recorder, Stage, Target, ToolError, ToolResult, canonical};

use crate::support::{Place, assert_broken, options, record, runtime, verdict};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn any_record()(
        arguments in any_json(),
        session in "[a-c]",
        tool in prop::option::of("[a-z_]{1,10}"),
        id in any::<String>(),
        word in prop::sample::select(vec!["allow", "ask", "deny", "approved", "refused"]),
        rule in any::<String>(),
        sql in any::<String>(),
        message in prop::option::of(any::<String>()),
        numbers in any::<(u64, u64, Option<u64>, Option<i32>, bool)>(),
    ) -> CallRecord {
        let mut record = record(&id);
        record.call.arguments = arguments;
        record.tool = tool;
        record.context.session = session;
        record.context.actor = Actor::Person(rule.clone());
        record.context.dry_run = numbers.4;
        record.verdicts = vec![verdict(Stage::Policy, "policy", word, &rule)];
        record.targets = vec![Target::Statement { sql, kinds: vec!["select".to_owned()], reads: false }];
        record.started_ms = numbers.0;
        record.duration_us = numbers.1;
        record.rows_changed = numbers.2;
        record.exit_code = numbers.3;
        if let Some(message) = message {
            record.result = ToolResult::Failed(ToolError::new(Code::Runtime, message));
        }
        record
    }
}

/// What an attacker does to the database with plain SQLite.
#[derive(Clone, Debug)]
enum Change {
    FlipByte {
        entry: prop::sample::Index,
        column: usize,
        byte: prop::sample::Index,
        bit: u8,
    },
    Drop(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Truncate(prop::sample::Index),
    /// A changed entry with a fitting hash, and nothing else recomputed.
    Rewrite(prop::sample::Index),
    /// The same, with all hashes after it recomputed, and the checkpoint set to the new end.
    RewriteOnwards(prop::sample::Index),
    /// A made-up entry behind an existing one, all others moved and recomputed.
    Splice(prop::sample::Index),
    Duplicate(prop::sample::Index),
    Checkpoint,
    Chain,
}

fn any_change() -> impl Strategy<Value = Change> {
    use Change::{
        Chain, Checkpoint, Drop, Duplicate, FlipByte, Rewrite, RewriteOnwards, Splice, Swap, Truncate,
    };
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (index(), 0..7_usize, index(), 0..8_u8)
            .prop_map(|(entry, column, byte, bit)| FlipByte { entry, column, byte, bit }),
        1 => index().prop_map(Drop),
        1 => (index(), index()).prop_map(|(one, other)| Swap(one, other)),
        1 => index().prop_map(Truncate),
        1 => index().prop_map(Rewrite),
        2 => index().prop_map(RewriteOnwards),
        1 => index().prop_map(Splice),
        1 => index().prop_map(Duplicate),
        1 => Just(Checkpoint),
        1 => Just(Chain),
    ]
}

const COLUMNS: [&str; 7] = ["sequence", "hash", "body", "time_ms", "session", "tool", "verdict"];

/// Does it. False when the change was none, such as swapping an entry with itself.
fn apply(change: &Change, place: &Place, count: usize) -> bool {
    let database = place.tamper();
    let number = |index: &prop::sample::Index| index.index(count) as i64 + 1;
    match change {
        Change::FlipByte { entry, column, byte, bit } => {
            return flip(&database, number(entry), COLUMNS[*column], byte, *bit);
        }
        Change::Drop(entry) => {
            database.execute("DELETE FROM entries WHERE sequence = ?", [number(entry)]).unwrap();
        }
        Change::Swap(one, other) => {
            if number(one) == number(other) {
                return false;
            }
            let move_to = "UPDATE entries SET sequence = ? WHERE sequence = ?";
            database.execute(move_to, [0, number(one)]).unwrap();
            database.execute(move_to, [number(one), number(other)]).unwrap();
            database.execute(move_to, [number(other), 0]).unwrap();
        }
        Change::Truncate(entry) => {
            database.execute("DELETE FROM entries WHERE sequence >= ?", [number(entry)]).unwrap();
        }
        Change::Rewrite(entry) => rewrite(&database, number(entry), number(entry)),
        Change::RewriteOnwards(entry) => {
            rewrite(&database, number(entry), count as i64);
            recheckpoint(&database);
        }
        Change::Splice(entry) => {
            for from in (number(entry)..=count as i64).rev() {
                copy(&database, from, from + 1);
                if from > number(entry) {
                    database.execute("DELETE FROM entries WHERE sequence = ?", [from]).unwrap();
                }
            }
            rewrite(&database, number(entry), count as i64 + 1);
            recheckpoint(&database);
        }
        Change::Duplicate(entry) => copy(&database, number(entry), count as i64 + 1),
        Change::Checkpoint => {
            database.execute("UPDATE chain SET checkpoint_hash = ?", ["ab".repeat(32)]).unwrap();
        }
        Change::Chain => {
            database.execute("UPDATE chain SET chain = ?", ["ab".repeat(16)]).unwrap();
        }
    }
    true
}

fn copy(database: &rusqlite::Connection, from: i64, to: i64) {
    database
        .execute(
            "INSERT OR REPLACE INTO entries SELECT ?, hash, body, time_ms, session, tool, verdict \
             FROM entries WHERE sequence = ?",
            [to, from],
        )
        .unwrap();
}

fn recheckpoint(database: &rusqlite::Connection) {
    let end = "(SELECT max(sequence) FROM entries)";
    let sql = format!(
        "UPDATE chain SET checkpoint_sequence = {end}, \
         checkpoint_hash = (SELECT hash FROM entries WHERE sequence = {end})"
    );
    database.execute(&sql, []).unwrap();
}

/// Flips one bit of one stored value, keeping its type where the table insists on one.
fn flip(
    database: &rusqlite::Connection,
    entry: i64,
    column: &str,
    byte: &prop::sample::Index,
    bit: u8,
) -> bool {
    let read = format!("SELECT {column} FROM entries WHERE sequence = ?");
    let mut value: rusqlite::types::Value = database.query_row(&read, [entry], |row| row.get(0)).unwrap();
    match &mut value {
        rusqlite::types::Value::Integer(number) => *number ^= 1 << (byte.index(8) * 8 + usize::from(bit)),
        rusqlite::types::Value::Blob(bytes) => {
            let place = byte.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        rusqlite::types::Value::Text(text) => {
            if text.is_empty() {
                return false;
            }
            let mut bytes = std::mem::take(text).into_bytes();
            let place = byte.index(bytes.len());
            bytes[place] ^= 1 << bit;
            // Also what is not text: SQLite does not look.
            let write = format!("UPDATE entries SET {column} = CAST(? AS TEXT) WHERE sequence = ?");
            database.execute(&write, rusqlite::params![bytes, entry]).unwrap();
            return true;
        }
        other => panic!("{column} holds {other:?}"),
    }
    let write = format!("UPDATE OR REPLACE entries SET {column} = ? WHERE sequence = ?");
    database.execute(&write, rusqlite::params![value, entry]).unwrap();
    true
}

/// Changes the entry at `from` and recomputes everything up to `to`, as an attacker who knows the format would.
fn rewrite(database: &rusqlite::Connection, from: i64, to: i64) {
    for number in from..=to {
        let (body, tool): (Vec<u8>, String) = database
            .query_row("SELECT body, tool FROM entries WHERE sequence = ?", [number], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        body["sequence"] = json!(number);
        if number > 1 {
            let previous: String = database
                .query_row("SELECT hash FROM entries WHERE sequence = ?", [number - 1], |row| row.get(0))
                .unwrap();
            body["previous"] = json!(previous);
        }
        let tool = if number == from { format!("{tool}x") } else { tool };
        body["tool"] = json!(tool);
        let text = canonical::to_string(&body).unwrap();
        database
            .execute(
                "UPDATE entries SET body = ?, hash = ?, tool = ? WHERE sequence = ?",
                rusqlite::params![text.as_bytes(), canonical::sha256_hex(text.as_bytes()), tool, number],
            )
            .unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_found(
        records in prop::collection::vec(any_record(), 1..8),
        change in any_change(),
    ) {
        let count = records.len();
        let place = Place::with(records);
        place.assert_intact(count as u64);
        if !apply(&change, &place, count) {
            return Ok(());
        }
        let found = place.verify();
        let error = match found {
            Err(error) => error,
            Ok(report) => return Err(TestCaseError::fail(format!("{change:?} was not found: {report:?}"))),
        };
        prop_assert_eq!(error.code, Code::Integrity, "{}", error);
        prop_assert!(error.help_of().is_some());
        // A kernel starts from the checkpoint; whatever it could not see there, the end is still the end.
        if let Ok(audit) = place.open() {
            drop(audit);
            prop_assert!(place.verify().is_err(), "{:?} was healed by an opening", change);
        }
    }
}

#[test]
fn the_first_bad_entry_is_named() {
    let table: [(&str, u64); 6] = [
        (
            "UPDATE entries SET body = CAST(replace(body, 'src/a.ts', 'src/b.ts') AS BLOB) WHERE sequence = 4",
            4,
        ),
        ("DELETE FROM entries WHERE sequence = 5", 5),
        ("UPDATE entries SET session = 'other' WHERE sequence = 7", 7),
        ("UPDATE entries SET sequence = -3 WHERE sequence = 2", 0),
        ("DELETE FROM entries WHERE sequence > 6", 7),
        ("UPDATE entries SET verdict = CAST(x'ff' AS TEXT) WHERE sequence = 3", 3),
    ];
    for (change, sequence) in table {
        let place = Place::filled(9);
        place.tamper().execute_batch(change).unwrap();
        assert_broken(place.verify(), sequence);
    }
}

#[test]
fn what_shows_or_hides_entries_is_found() {
    for change in [
        "CREATE TRIGGER hide AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE tool = 'x'; END",
        "CREATE VIEW extra AS SELECT 1",
        "DROP INDEX entries_by_session",
        "DROP INDEX entries_by_tool; CREATE INDEX entries_by_tool ON entries (tool, sequence) WHERE tool <> 'x'",
        "DELETE FROM chain",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') \
         WHERE name = 'entries'",
    ] {
        let place = Place::filled(3);
        place.tamper().execute_batch(change).unwrap();
        assert_eq!(place.verify().unwrap_err().code, Code::Integrity, "{change}");
        assert_eq!(place.open().unwrap_err().code, Code::Integrity, "{change}");
    }
}

#[test]
fn another_valid_chain_in_its_place_is_found() {
    let place = Place::filled(5);
    let other = Place::filled(5);
    for suffix in ["", "-wal"] {
        let name = format!("audit.db{suffix}");
        let _ = std::fs::remove_file(place.folder.path().join(&name));
        std::fs::copy(other.folder.path().join(&name), place.folder.path().join(&name)).unwrap();
    }
    let _ = std::fs::remove_file(place.folder.path().join("audit.db-shm"));
    assert_broken(place.verify(), 1);
    assert_broken(place.open(), 1);
}

#[test]
fn an_old_copy_of_the_file_is_found() {
    let place = Place::filled(3);
    place.settle();
    let old = std::fs::read(place.path()).unwrap();
    let audit = place.open().unwrap();
    runtime().block_on(async {
        audit.record(record("fourth")).await.unwrap();
        audit.close().await.unwrap();
    });
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(place.folder.path().join(format!("audit.db{suffix}")));
    }
    std::fs::write(place.path(), old).unwrap();
    assert_broken(place.open(), 4);
    assert_broken(place.verify(), 4);
}

#[test]
fn an_entry_that_was_changed_is_not_shown() {
    let place = Place::filled(3);
    let change = "UPDATE entries SET body = CAST(replace(body, 'call 1', 'call 9') AS BLOB)";
    place.tamper().execute_batch(change).unwrap();
    let reader = AuditReader::open(place.path(), place.anchor()).unwrap();
    assert_eq!(reader.tail(&AuditFilter::default(), 10).unwrap_err().code, Code::Integrity);
    assert_eq!(reader.history("session-1", 10).unwrap_err().code, Code::Integrity);
    assert_eq!(place.export(&AuditFilter::default(), ExportFormat::Csv).unwrap_err().code, Code::Integrity);
}

type Tampering = Box<dyn Fn(&Place)>;

/// The database is changed while a kernel has it open.
#[test]
fn a_running_kernel_notices_too() {
    let by_sql = |change: &'static str| {
        Box::new(move |place: &Place| place.tamper().execute_batch(change).unwrap()) as Tampering
    };
    let changes: Vec<Tampering> = vec![
        by_sql("DELETE FROM entries WHERE sequence = 3"),
        by_sql("DELETE FROM entries"),
        by_sql("UPDATE entries SET hash = 'x' WHERE sequence = 3"),
        by_sql("UPDATE chain SET chain = 'x'"),
        Box::new(|place| std::fs::remove_file(place.path()).unwrap()),
        Box::new(|place| {
            let aside = place.folder.path().join("aside");
            std::fs::copy(place.path(), &aside).unwrap();
            std::fs::rename(aside, place.path()).unwrap();
        }),
    ];
    for change in changes {
        let place = Place::new();
        let audit =
            Audit::open(options(&place.path()), Arc::new(FileAnchor::new(place.anchor_path()))).unwrap();
        runtime().block_on(async {
            for number in 0..3 {
                audit.record(record(&format!("call {number}"))).await.unwrap();
            }
            audit.flush().await.unwrap();
            change(&place);
            audit.record(record("after")).await.unwrap();
            assert_eq!(audit.flush().await.unwrap_err().code, Code::Integrity);
            // From now on no call can succeed.
            assert_eq!(audit.record(record("later")).await.unwrap_err().code, Code::Integrity);
            assert_eq!(audit.close().await.unwrap_err().code, Code::Integrity);
        });
    }
}
