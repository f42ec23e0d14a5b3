//! How an event is added to a chronicle.

use std::fs::File;
use std::io::{self, Write};

use tgp_contract::{AppendResult, ChronicleEvent, RelativePath};

use crate::chronicle::ChronicleInner;
use crate::dirfd::{Directory, Missing};
use crate::failure::{Doing, Failure};
use crate::line::{self, Encoded};
use crate::torn::{self, Quarantined};
use crate::{ChronicleSync, lock};

/// How often a chronicle is opened again because it was replaced in the meantime, as git does when it changes branch.
const MAX_TRIES: usize = 16;

/// The result of an append, and what was found at the end of the chronicle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendOutcome {
    pub appended: AppendResult,
    /// The torn line that a crash had left, which was moved out of the way.
    pub set_aside: Option<Quarantined>,
}

/// A chronicle that is open and locked for writing.
struct Locked {
    directory: Directory,
    file: File,
}

pub(crate) fn append(
    keeper: &ChronicleInner,
    path: &RelativePath,
    event: ChronicleEvent,
) -> Result<AppendOutcome, Failure> {
    let stored = keeper.file_of(path)?;
    let event = line::encode(event).map_err(|error| Failure::Event(error.to_string()))?;
    let Locked { directory, file } = open(keeper, &stored)?;
    let extent = torn::extent(&file).doing("cannot read", &stored)?;
    if extent.is_foreign {
        return Err(Failure::Foreign { path: stored, what: torn::FOREIGN });
    }
    let set_aside = match &extent.torn {
        Some(torn) => Some(torn::set_aside(&directory, &file, &stored, torn)?),
        None => None,
    };
    let is_new = add_once(keeper, path, &file, extent.whole, &event)?;
    settle(keeper, path, &file, is_new)?;
    // The next who appends may come now; the names below need no lock.
    drop(file);
    if let Some(set_aside) = &set_aside {
        keeper.note(set_aside);
    }
    Ok(AppendOutcome { appended: AppendResult { event_id: event.id, appended: is_new }, set_aside })
}

fn open(keeper: &ChronicleInner, path: &RelativePath) -> Result<Locked, Failure> {
    let name = path.name().unwrap_or_default();
    for _ in 0..MAX_TRIES {
        let Some(directory) = keeper.project.directory(&path.parent(), Missing::Make)? else { continue };
        let Some((file, is_made)) = directory.open_to_append(name)? else { continue };
        if is_made {
            directory.sync()?;
        }
        lock::take(&file, lock::LockKind::Exclusive, keeper.lock_wait, path)?;
        if directory.names(name, &file)? {
            return Ok(Locked { directory, file });
        }
    }
    Err(Failure::Restless(path.clone()))
}

/// Writes the line, unless it is there. Returns whether it did.
fn add_once(
    keeper: &ChronicleInner,
    path: &RelativePath,
    file: &File,
    whole: u64,
    event: &Encoded,
) -> Result<bool, Failure> {
    // Should anything fail from here, what was known is dropped, and found out again the next time.
    let mut known = keeper.known.take(path);
    keeper.known.refresh(&mut known, file, whole).doing("cannot read", path)?;
    let is_there = keeper.known.contains(&known, file, whole, &event.line).doing("cannot read", path)?;
    if !is_there {
        write(file, whole, &event.line).doing("cannot append to", path)?;
        keeper.known.add(&mut known, file, whole, &event.line).doing("cannot look at", path)?;
    }
    keeper.known.put(path, known);
    Ok(!is_there)
}

/// One write, so that the lines of two writers are never mixed, even if one ignores locks.
fn write(mut file: &File, whole: u64, line: &[u8]) -> io::Result<()> {
    let outcome = loop {
        match file.write(line) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(size) if size == line.len() => return Ok(()),
            Ok(_) => {
                break io::Error::new(io::ErrorKind::StorageFull, "only a part of the line could be written");
            }
            Err(error) => break error,
        }
    };
    // These bytes are our own and were not reported. If they cannot be removed, they are a torn line.
    let _ = file.set_len(whole);
    Err(outcome)
}

fn settle(keeper: &ChronicleInner, path: &RelativePath, file: &File, is_new: bool) -> Result<(), Failure> {
    match keeper.durability {
        // Also for an event that was there: its writer may not have waited for the disk.
        ChronicleSync::Event => file.sync_data().doing("cannot sync", path),
        ChronicleSync::Batch if is_new && keeper.unsynced(path) => keeper.sync(),
        ChronicleSync::Batch => Ok(()),
    }
}
