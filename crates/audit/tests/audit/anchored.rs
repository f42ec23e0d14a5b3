//! The anchor: what it finds, when it is moved, and what a start has to read.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tgp_audit::{Anchor, Audit, AuditOptions, AuditReader, AuditSync, FileAnchor, Head, Settle};
use tgp_contract::{Code, Recorder, ToolError};

use crate::support::{Place, assert_broken, record, runtime};

/// An anchor in memory that counts, and can fail.
#[derive(Default)]
struct Counting {
    head: Mutex<Option<Head>>,
    stores: AtomicUsize,
    fails: AtomicBool,
}

impl Anchor for Counting {
    fn load(&self) -> Result<Option<Head>, ToolError> {
        Ok(self.head.lock().unwrap().clone())
    }

    fn store(&self, head: &Head, settle: Settle<'_>) -> Result<(), ToolError> {
        settle()?;
        if self.fails.load(Ordering::SeqCst) {
            return Err(ToolError::new(Code::Git, "the anchor cannot be moved").help("see the disk"));
        }
        self.stores.fetch_add(1, Ordering::SeqCst);
        *self.head.lock().unwrap() = Some(head.clone());
        Ok(())
    }

    fn clear(&self) -> Result<(), ToolError> {
        *self.head.lock().unwrap() = None;
        Ok(())
    }
}

#[test]
fn a_start_reads_what_came_since_the_checkpoint() {
    let place = Place::filled(1500);
    let audit = place.open().unwrap();
    assert_eq!(audit.opened_at().sequence, 1500);
    assert!(audit.verified() <= 1, "{} entries were read", audit.verified());
    drop(audit);
    // An anchor that is behind, as after a kill, is where reading begins.
    let older = place.reader().tail(&tgp_audit::AuditFilter::default(), 11).unwrap().remove(0);
    let head = Head { sequence: older.sequence, hash: older.hash, ..place.head() };
    place.anchor().store(&head, &mut || Ok(())).unwrap();
    let audit = place.open().unwrap();
    assert_eq!((audit.verified(), audit.opened_at().sequence), (11, 1500));
    drop(audit);
    assert_eq!(place.head().sequence, 1500, "an end anchors what was found");
}

#[test]
fn what_the_checkpoint_hides_from_a_start_the_whole_verification_finds() {
    let place = Place::filled(100);
    let change =
        "UPDATE entries SET body = CAST(replace(body, 'call 6', 'call x') AS BLOB) WHERE sequence = 7";
    place.tamper().execute_batch(change).unwrap();
    drop(place.open().unwrap());
    assert_broken(place.verify(), 7);
}

#[test]
fn lost_ends_files_and_anchors_are_found() {
    let place = Place::filled(10);
    place.tamper().execute_batch("DELETE FROM entries WHERE sequence > 8").unwrap();
    assert_broken(place.open(), 9);
    assert_broken(place.verify(), 9);

    // Also with a checkpoint that was made to fit.
    let place = Place::filled(10);
    let fit = "DELETE FROM entries WHERE sequence > 8; UPDATE chain SET checkpoint_sequence = 8, \
               checkpoint_hash = (SELECT hash FROM entries WHERE sequence = 8)";
    place.tamper().execute_batch(fit).unwrap();
    assert_broken(place.open(), 9);

    let place = Place::filled(3);
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(place.folder.path().join(format!("audit.db{suffix}")));
    }
    assert_broken(place.open(), 1);
    assert_broken(AuditReader::open(place.path(), place.anchor()).map(|_| ()), 1);
    assert!(!place.path().exists(), "nothing is made in its place");

    let place = Place::filled(3);
    fs::remove_file(place.anchor_path()).unwrap();
    assert_eq!(place.open().unwrap_err().code, Code::Integrity);
    assert_eq!(place.verify().unwrap_err().code, Code::Integrity);

    let place = Place::new();
    let nothing = AuditReader::open(place.path(), place.anchor()).map(|_| ()).unwrap_err();
    assert_eq!(nothing.code, Code::NotFound);
}

#[test]
fn an_anchor_that_cannot_be_read_is_not_none() {
    let place = Place::filled(2);
    let good = fs::read_to_string(place.anchor_path()).unwrap();
    assert_eq!(good.trim_end().parse::<Head>().unwrap(), place.head());
    let cases = [
        String::new(),
        "\n".to_owned(),
        good.replace(" 2 ", " 02 "),
        good.replace(" 2 ", " -2 "),
        good.replace(" 2 ", " 99999999999999999999999 "),
        good.to_uppercase(),
        format!("{good}{good}"),
        good[..good.len() - 3].to_owned(),
        "x".repeat(1 << 20),
    ];
    for text in cases {
        fs::write(place.anchor_path(), &text).unwrap();
        assert_eq!(place.open().unwrap_err().code, Code::Integrity, "{text:.200}");
    }
    fs::write(place.anchor_path(), [0xff, 0xfe]).unwrap();
    assert_eq!(place.open().unwrap_err().code, Code::Integrity);
    fs::write(place.anchor_path(), good).unwrap();
    place.assert_intact(2);
    assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 4, "no temporary file is left");
}

/// An audit that is dropped, or whose process only becomes quiet, is anchored to its end.
#[test]
fn the_anchor_follows() {
    let place = Place::new();
    let anchor = Arc::new(Counting::default());
    let options = AuditOptions { anchor_every: Duration::from_secs(3600), ..place.options() };
    let audit = Audit::open(options, Arc::clone(&anchor) as Arc<dyn Anchor>).unwrap();
    assert_eq!(anchor.load().unwrap().unwrap().sequence, 0, "a new chain is anchored before its first entry");
    runtime().block_on(async {
        for number in 0..300 {
            audit.record(record(&format!("call {number}"))).await.unwrap();
        }
    });
    drop(audit);
    assert_eq!(anchor.load().unwrap().unwrap().sequence, 300);
    assert_eq!(anchor.stores.load(Ordering::SeqCst), 2, "not once a call");

    let options = AuditOptions {
        anchor_every: Duration::from_millis(1),
        durability: AuditSync::Call,
        ..place.options()
    };
    let audit = Audit::open(options, Arc::clone(&anchor) as Arc<dyn Anchor>).unwrap();
    runtime().block_on(audit.record(record("one more"))).unwrap();
    while anchor.load().unwrap().unwrap().sequence < 301 {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_anchor_that_cannot_be_moved_is_told_to_whoever_flushes() {
    let place = Place::new();
    let anchor = Arc::new(Counting::default());
    let audit = Audit::open(place.options(), Arc::clone(&anchor) as Arc<dyn Anchor>).unwrap();
    runtime().block_on(async {
        anchor.fails.store(true, Ordering::SeqCst);
        audit.record(record("kept")).await.unwrap();
        assert_eq!(audit.flush().await.unwrap_err().code, Code::Git);
        audit.record(record("kept too")).await.unwrap();
        anchor.fails.store(false, Ordering::SeqCst);
        audit.flush().await.unwrap();
        let report = audit.verify_whole().await.unwrap();
        assert_eq!((report.entries, report.anchored), (2, Some(2)));
    });
}

#[test]
fn a_file_anchor_makes_its_folder_and_says_where_it_cannot() {
    let place = Place::new();
    let head = Head { chain: "ab".repeat(16), sequence: 7, hash: "cd".repeat(32) };
    let deep = FileAnchor::new(place.folder.path().join("a/b/anchor"));
    assert_eq!(deep.load().unwrap(), None);
    deep.store(&head, &mut || Ok(())).unwrap();
    assert_eq!(deep.load().unwrap(), Some(head.clone()));
    let unsettled = deep.store(&Head { sequence: 8, ..head.clone() }, &mut || {
        Err(ToolError::new(Code::Internal, "the disk is full").help("free some space"))
    });
    assert!(
        unsettled.is_err() && deep.load().unwrap() == Some(head.clone()),
        "an anchor that is ahead of its entries"
    );
    let blocked = FileAnchor::new(place.folder.path().join("a/b/anchor/anchor"));
    let error = blocked.store(&head, &mut || Ok(())).unwrap_err();
    assert!(error.code == Code::Internal && error.help_of().is_some(), "{error:?}");
}
