//! A disk that is full, a file that cannot be written, a locked database: the caller gets an error.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tgp_audit::{Audit, AuditOptions, AuditSync, FileAnchor};
use tgp_contract::{Code, Recorder, ToolError};

use crate::support::{Place, options, record, runtime, with_arguments};

const FOLDER: &str = "TGP_AUDIT_FULL";

#[track_caller]
fn assert_clear(error: &ToolError) {
    assert!(matches!(error.code, Code::Internal | Code::Permission), "{error}");
    assert!(error.message.contains("audit"), "{error}");
    assert!(error.help_of().is_some(), "{error:?}");
}

/// The database is locked for longer than the writer waits. In batched mode the next record gets the error; when
/// the lock is gone, nothing has been lost.
#[test]
fn a_locked_database_fails_calls_and_loses_none() {
    for durability in [AuditSync::Batched, AuditSync::Call] {
        let place = Place::new();
        let options =
            AuditOptions { durability, lock_wait: Duration::from_millis(30), ..options(&place.path()) };
        let audit = Audit::open(options, place.anchor()).unwrap();
        runtime().block_on(async {
            audit.record(record("before")).await.unwrap();
            audit.flush().await.unwrap();
            let holder = place.tamper();
            holder.execute_batch("BEGIN IMMEDIATE").unwrap();
            let first = audit.record(record("meanwhile 1")).await;
            assert_eq!(first.is_err(), durability == AuditSync::Call);
            assert_clear(&audit.flush().await.unwrap_err());
            assert_clear(&audit.record(record("meanwhile 2")).await.unwrap_err());
            holder.execute_batch("ROLLBACK").unwrap();
            audit.record(record("after")).await.unwrap();
            let report = audit.verify_whole().await.unwrap();
            // A caller that got a failure knows that its record may be missing; here none is.
            assert_eq!(report.entries, 4);
            audit.close().await.unwrap();
        });
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told_at_once() {
    let place = Place::new();
    fs::write(place.folder.path().join("file"), "").unwrap();
    let options = options(&place.folder.path().join("file/audit.db"));
    assert_clear(&Audit::open(options, place.anchor()).unwrap_err());

    let folder = place.folder.path().join("database");
    fs::create_dir(&folder).unwrap();
    assert_clear(&Audit::open(crate::support::options(&folder), place.anchor()).unwrap_err());
}

#[test]
fn a_file_that_may_only_be_read_is_told_at_once() {
    let place = Place::filled(2);
    place.settle();
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(place.folder.path().join(format!("audit.db{suffix}")));
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let opened = place.open();
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // Root may write whatever the permissions say.
    match opened {
        Err(error) => assert_clear(&error),
        Ok(audit) => drop(audit),
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o600)).unwrap();
    place.assert_intact(2);
}

/// Files of this process cannot grow beyond a limit, which is what a full disk looks like to SQLite.
#[test]
fn a_full_disk_fails_the_call_and_breaks_nothing() {
    const TEST: &str = "faults::a_full_disk_fails_the_call_and_breaks_nothing";
    if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
        let anchor = Arc::new(FileAnchor::new(folder.join("anchor")));
        let options = AuditOptions { durability: AuditSync::Call, ..options(&folder.join("audit.db")) };
        let audit = Audit::open(options, anchor).unwrap();
        runtime().block_on(async {
            for number in 0.. {
                let filler = "x".repeat(4000);
                match audit.record(with_arguments(json!({ "number": number, "filler": filler }))).await {
                    Ok(()) => println!("\nkept {number}"),
                    Err(error) => {
                        assert_clear(&error);
                        assert_clear(&audit.record(record("still full")).await.unwrap_err());
                        println!("\nrefused");
                        break;
                    }
                }
            }
        });
        return;
    }
    let place = Place::new();
    drop(place.open().unwrap());
    let script = "trap '' XFSZ; ulimit -f 600; exec \"$0\" \"$1\" --exact --nocapture --test-threads=1";
    let output = Command::new("sh")
        .args(["-c", script, std::env::current_exe().unwrap().to_str().unwrap(), TEST])
        .env(FOLDER, place.folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let kept = stdout.lines().filter(|line| line.starts_with("kept ")).count() as u64;
    assert!(kept > 5 && stdout.contains("\nrefused"), "{stdout}");
    // With room again, the chain is whole and continues.
    drop(place.open().unwrap());
    let report = place.verify().unwrap();
    assert!(report.entries >= kept, "{} of {kept}", report.entries);
}

/// Many large records at once are held back, and not held in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_records_wait_for_each_other() {
    let place = Place::new();
    let audit = Arc::new(place.open().unwrap());
    let large = "y".repeat(4 << 20);
    let calls = (0..20).map(|number| {
        let (audit, large) = (Arc::clone(&audit), large.clone());
        tokio::spawn(async move {
            if number % 12 == 3 {
                audit.record_cancelled(with_arguments(json!({ "content": large })));
                Ok(())
            } else {
                audit.record(with_arguments(json!({ "content": large }))).await
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    audit.close().await.unwrap();
    place.assert_intact(20);
}

/// When there is no room even for the records that cannot wait, that is reported, and not forgotten.
#[test]
fn a_flood_of_cancelled_calls_is_not_lost_in_silence() {
    let place = Place::new();
    let options = AuditOptions { lock_wait: Duration::from_millis(10), ..options(&place.path()) };
    let audit = Audit::open(options, place.anchor()).unwrap();
    runtime().block_on(async {
        let holder = place.tamper();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..8 {
            audit.record_cancelled(with_arguments(json!({ "content": "z".repeat(16 << 20) })));
        }
        holder.execute_batch("ROLLBACK").unwrap();
        let error = loop {
            match audit.flush().await {
                Ok(()) => panic!("three records of eight did not fit"),
                Err(error) if error.message.contains("holds") || error.message.contains("locked") => {}
                Err(error) => break error,
            }
        };
        assert!(error.message.contains("could not keep"), "{error}");
        audit.flush().await.unwrap();
        let report = audit.verify_whole().await.unwrap();
        assert!((4..8).contains(&report.entries), "{}", report.entries);
    });
}
