//! Beginning a new chain. The old database is set aside, never deleted.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tgp_contract::{Actor, Code, ToolError};

use crate::anchor::{Anchor, Head};
use crate::entry::UnchainedEntry;
use crate::failure::{ErrorContext, Failure};
use crate::reader::AuditReader;
use crate::redact::Redaction;
use crate::store::{self, Store, beside};
use crate::writer::new_chain_id;
use crate::{AuditOptions, AuditSync};

/// A reason is a sentence or two.
const MAX_REASON_CHARS: usize = 2000;

/// Who begins a new chain, and why.
#[derive(Clone, Debug)]
pub struct Restarter<'a> {
    pub actor: Actor,
    /// The operating system's user, as entries name one.
    pub user: Value,
    pub reason: &'a str,
}

/// What a restart did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// Where the old database is now; `None` when there was none.
    pub set_aside: Option<PathBuf>,
    /// What was wrong with the old chain, if anything was.
    pub problem: Option<String>,
    /// The new chain's first entry.
    pub head: Head,
}

/// Sets the database aside and begins a new chain. Its first entry holds who did it and why, the old file's new name, and
/// what was last known of the old head. No kernel may be running; one that is stops with `EINTEGRITY` at its next record.
///
/// # Errors
/// `EVALIDATION` without a reason, `EINTERNAL` when files cannot be moved or written.
pub fn restart(
    options: &AuditOptions,
    anchor: &Arc<dyn Anchor>,
    restarter: &Restarter<'_>,
    now_ms: u64,
) -> Result<Restarted, ToolError> {
    let reason: String = restarter.reason.trim().chars().take(MAX_REASON_CHARS).collect();
    if reason.is_empty() {
        return Err(ToolError::new(Code::Validation, "a restart of the audit needs a reason")
            .help("give the reason for readers of the new chain: `tgp audit restart --reason TEXT`"));
    }
    let redaction = Redaction::new(&options.secret_names, &options.secret_values)?;
    let problem = AuditReader::open(&options.path, Arc::clone(anchor))
        .and_then(|reader| reader.verify())
        .err()
        .map(|error| error.message);
    let anchored = anchor.load().ok().flatten();
    let stored = stored_head(&options.path);
    let set_aside = set_aside(&options.path, problem.is_some(), now_ms)?;
    let name = set_aside.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    let previous = json!({
        "file": name,
        "problem": problem,
        "anchored": anchored.as_ref().map(shown),
        "stored": stored.as_ref().map(shown),
    });
    let draft = UnchainedEntry::restart(now_ms, restarter, &reason, previous, &redaction);
    let head = begin(options, anchor.as_ref(), &draft)?;
    Ok(Restarted { set_aside, problem, head })
}

fn shown(head: &Head) -> Value {
    json!({ "chain": head.chain, "sequence": head.sequence, "hash": head.hash })
}

/// The head according to the old database, if it can be read.
fn stored_head(path: &Path) -> Option<Head> {
    let connection = store::open_to_read(path, store::ReadMode::Shared, std::time::Duration::ZERO).ok()?;
    let chain = store::chain(&connection, path).ok()?;
    store::last(&connection, &chain.id, path).ok()
}

/// Gives the database another name. Its log goes first: a log without its database would be emptied by the next one,
/// while a database without its log only lacks its newest entries, which the anchor shows.
fn set_aside(path: &Path, is_broken: bool, now_ms: u64) -> Result<Option<PathBuf>, Failure> {
    const DOING: &str = "cannot set aside";
    let word = if is_broken { "broken" } else { "ended" };
    let target = (0..1000_u32)
        .map(|number| beside(path, &format!(".{word}-{now_ms}-{number}")))
        .find(|target| {
            [target.clone(), beside(target, "-wal")].iter().all(|path| fs::symlink_metadata(path).is_err())
        })
        .ok_or_else(|| Failure::Foreign("too many old databases are set aside already".to_owned()))?;
    let mut is_moved = false;
    for suffix in ["-wal", ""] {
        match fs::rename(beside(path, suffix), beside(&target, suffix)) {
            Ok(()) => is_moved = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).doing(DOING, path),
        }
    }
    // The index of the log is rebuilt when either file is opened.
    match fs::remove_file(beside(path, "-shm")) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).doing(DOING, path),
        _ => {}
    }
    Ok(is_moved.then_some(target))
}

fn begin(options: &AuditOptions, anchor: &dyn Anchor, draft: &UnchainedEntry) -> Result<Head, Failure> {
    const DOING: &str = "cannot write";
    let path = options.path.as_path();
    let mut store = Store::open(path, AuditSync::Call, options.lock_wait)?;
    let id = new_chain_id()?;
    let transaction = store.begin()?;
    if !store::is_empty(&transaction).doing("cannot read", path)? {
        return Err(Failure::Foreign("another process began a new chain at the same time".to_owned()));
    }
    store::create(&transaction, &id).doing(DOING, path)?;
    let genesis = store::last(&transaction, &id, path)?;
    let placed = draft
        .placed(&genesis)
        .map_err(|error| Failure::Foreign(format!("the entry cannot be written: {error}")))?;
    store::append(&transaction, 1, &draft.columns, &placed).doing(DOING, path)?;
    let head = Head { chain: id, sequence: 1, hash: placed.hash };
    store::set_checkpoint(&transaction, &head).doing(DOING, path)?;
    transaction.commit().doing(DOING, path)?;
    let transaction = store.begin()?;
    let mut settle = || Ok(store::sync(path).and_then(|()| store::sync_folder(path))?);
    anchor.clear().and_then(|()| anchor.store(&head, &mut settle)).map_err(Failure::Told)?;
    transaction.commit().doing(DOING, path)?;
    Ok(head)
}
