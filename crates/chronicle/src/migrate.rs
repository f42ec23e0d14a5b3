//! Chronicles of the other layout, moved to where this one has them.
//!
//! Each chronicle is moved by itself: its lines are checked one by one and copied to a new file, which takes its place
//! with one rename, and only then is the old file removed. So whenever the process ends, every event is in the old file,
//! in the new one, or in both, and the next migration continues from there.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use tgp_contract::{MAX_CHRONICLE_LINE_BYTES, RelativePath, canonical, is_chronicle_content};
use tgp_fs::Replace;

use crate::chronicle::ChronicleInner;
use crate::dirfd::{Directory, Missing, Project};
use crate::failure::{Doing, Failure};
use crate::line::{self, LineError};
use crate::lines::Lines;
use crate::{lock, torn};

/// Events of the old file that are remembered, to leave out those that the new one has again. Beyond that some may be
/// there twice, as after a merge of two branches, and nothing is lost by it.
const MAX_IDS: usize = 1 << 20;
/// How often a file is opened again because it was replaced in the meantime.
const MAX_TRIES: usize = 16;

/// Whether a migration changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    Apply,
    /// Only says what would be moved and what refused.
    DryRun,
}

/// A chronicle that was moved, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migrated {
    /// Its name.
    pub chronicle: RelativePath,
    pub from: RelativePath,
    pub to: RelativePath,
    /// Events of the old file.
    pub events: u64,
    /// Whether there was a chronicle already, whose events come after those of the old file.
    pub merged: bool,
}

/// A file that was left where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub path: RelativePath,
    pub reason: String,
}

/// The results for the chronicles of the other layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MigrationReport {
    pub moved: Vec<Migrated>,
    pub refused: Vec<Refused>,
}

/// A name with a file where the other layout has it.
struct Candidate {
    name: RelativePath,
    from: RelativePath,
}

/// Whether the file at `path` of a project is a chronicle by its first line. In doubt it is; where there is no plain file it
/// is not.
#[must_use]
pub fn is_chronicle_file(project: &Path, path: &RelativePath) -> bool {
    let Ok(project) = Project::open(project) else { return true };
    match beginning(&project, path) {
        Ok(Some(bytes)) => is_chronicle_content(&bytes),
        Ok(None) | Err(Failure::Link(_) | Failure::NotDirectory(_)) => false,
        Err(_) => true,
    }
}

fn beginning(project: &Project, path: &RelativePath) -> Result<Option<Vec<u8>>, Failure> {
    let Some(directory) = project.directory(&path.parent(), Missing::Refuse)? else { return Ok(None) };
    directory.beginning(path.name().unwrap_or_default(), MAX_CHRONICLE_LINE_BYTES as u64)
}

/// Files of the other layout that look like a chronicle: one that does not verify is refused with the reason, instead of
/// being passed over.
fn candidates(keeper: &ChronicleInner) -> Result<Vec<Candidate>, Failure> {
    let other = keeper.layout.other();
    let mut found = Vec::new();
    for name in keeper.project.chronicles(&keeper.scope, other)? {
        let Ok(from) = other.file_of(&name) else { continue };
        // The chronicles of the project are where they were.
        if keeper.layout.file_of(&name).as_ref() == Ok(&from) {
            continue;
        }
        match beginning(&keeper.project, &from) {
            Ok(None) => {}
            Ok(Some(bytes)) if !bytes.starts_with(torn::BEGINNING) => {}
            // What cannot be read is refused below, with the reason.
            Ok(Some(_)) | Err(_) => found.push(Candidate { name, from }),
        }
    }
    Ok(found)
}

/// Everything that a migration would move or refuse: a damaged chronicle is not read either.
pub(crate) fn unmigrated(keeper: &ChronicleInner) -> Result<Vec<RelativePath>, Failure> {
    Ok(candidates(keeper)?.into_iter().map(|candidate| candidate.from).collect())
}

pub(crate) fn unmigrated_file_of(keeper: &ChronicleInner, name: &RelativePath) -> Option<RelativePath> {
    let file = keeper.layout.other().file_of(name).ok()?;
    let is_elsewhere = keeper.file_of(name).ok()? != file;
    let bytes = beginning(&keeper.project, &file).ok()??;
    (is_elsewhere && is_chronicle_content(&bytes)).then_some(file)
}

pub(crate) fn migrate(keeper: &ChronicleInner, extent: Migration) -> Result<MigrationReport, Failure> {
    let mut report = MigrationReport::default();
    for candidate in candidates(keeper)? {
        match move_one(keeper, &candidate, extent) {
            Ok(Some(moved)) => report.moved.push(moved),
            // Another process has moved it.
            Ok(None) => {}
            // The disk fails the next one too.
            Err(Failure::Disk { doing, path, source }) if source.kind() != ErrorKind::PermissionDenied => {
                return Err(Failure::Disk { doing, path, source });
            }
            Err(failure) => {
                report.refused.push(Refused { path: candidate.from, reason: failure.to_string() });
            }
        }
    }
    Ok(report)
}

fn move_one(
    keeper: &ChronicleInner,
    candidate: &Candidate,
    extent: Migration,
) -> Result<Option<Migrated>, Failure> {
    let Candidate { name, from } = candidate;
    let to = keeper.file_of(name)?;
    let Some(old) = Opened::old(keeper, from)? else { return Ok(None) };
    let old_extent = torn::extent(&old.file).doing("cannot read", from)?;
    if old_extent.is_foreign {
        return Err(Failure::Foreign { path: from.clone(), what: torn::FOREIGN });
    }
    if extent == Migration::DryRun {
        let events = copy(&old.file, old_extent.whole, from, &mut std::io::sink(), &mut Copied::default())?;
        let merged = beginning(&keeper.project, &to)?.is_some();
        return Ok(Some(Migrated { chronicle: name.clone(), from: from.clone(), to, events, merged }));
    }
    if let Some(torn) = &old_extent.torn {
        keeper.note(&torn::set_aside(&old.directory, &old.file, from, torn)?);
    }
    let Some(directory) = keeper.project.directory(&to.parent(), Missing::Make)? else {
        return Err(Failure::Restless(to));
    };
    for _ in 0..MAX_TRIES {
        // Held until the new file is in its place, so that no writer appends to the one that it replaces.
        let present = Opened::present(keeper, &directory, &to)?;
        let (events, temporary) =
            write(&directory, &old.file, old_extent.whole, from, &to, present.as_ref())?;
        let place = if present.is_some() { Replace::Anything } else { Replace::Nothing };
        if !directory.rename(&temporary, to.name().unwrap_or_default(), place)? {
            directory.remove(&temporary)?;
            continue;
        }
        directory.sync()?;
        let old_name = from.name().unwrap_or_default();
        if old.directory.names(old_name, &old.file)? {
            old.directory.remove(old_name)?;
            old.directory.sync()?;
        }
        move_set_aside(&old.directory, from, &directory, &to)?;
        let merged = present.is_some();
        return Ok(Some(Migrated { chronicle: name.clone(), from: from.clone(), to, events, merged }));
    }
    Err(Failure::Restless(to))
}

/// A chronicle that is open and locked for writing.
struct Opened {
    directory: Directory,
    file: File,
}

impl Opened {
    fn old(keeper: &ChronicleInner, path: &RelativePath) -> Result<Option<Self>, Failure> {
        let name = path.name().unwrap_or_default();
        for _ in 0..MAX_TRIES {
            let Some(directory) = keeper.project.directory(&path.parent(), Missing::Refuse)? else {
                return Ok(None);
            };
            let Some(file) = directory.open_to_write(name)? else { return Ok(None) };
            lock::take(&file, lock::LockKind::Exclusive, keeper.lock_wait, path)?;
            if directory.names(name, &file)? {
                return Ok(Some(Self { directory, file }));
            }
        }
        Err(Failure::Restless(path.clone()))
    }

    /// The chronicle that is where the old one goes, if there is one.
    fn present(
        keeper: &ChronicleInner,
        directory: &Directory,
        path: &RelativePath,
    ) -> Result<Option<Present>, Failure> {
        let name = path.name().unwrap_or_default();
        for _ in 0..MAX_TRIES {
            let Some(file) = directory.open_to_write(name)? else { return Ok(None) };
            lock::take(&file, lock::LockKind::Exclusive, keeper.lock_wait, path)?;
            if !directory.names(name, &file)? {
                continue;
            }
            let extent = torn::extent(&file).doing("cannot read", path)?;
            if extent.is_foreign {
                return Err(Failure::Foreign { path: path.clone(), what: torn::FOREIGN });
            }
            if let Some(torn) = &extent.torn {
                keeper.note(&torn::set_aside(directory, &file, path, torn)?);
            }
            return Ok(Some(Present { file, whole: extent.whole }));
        }
        Err(Failure::Restless(path.clone()))
    }
}

/// A chronicle to which the old one's events are added. Its lock lasts as long as this.
struct Present {
    file: File,
    whole: u64,
}

/// Writes the new file under its own name. Returns the events of the old one, and that name.
fn write(
    directory: &Directory,
    old: &File,
    whole: u64,
    from: &RelativePath,
    to: &RelativePath,
    present: Option<&Present>,
) -> Result<(u64, String), Failure> {
    // Short enough for every file system, the same for every try, and no name of a chronicle.
    let digits = canonical::sha256_hex(to.as_str().as_bytes());
    let temporary = format!(".tgp-migrate-{}", digits.get(..16).unwrap_or(&digits));
    let file = match directory.create(&temporary)? {
        Some(file) => file,
        // A migration that was killed has left it. No other one works on it: we hold the lock of the old file.
        None => {
            directory.remove(&temporary)?;
            directory.create(&temporary)?.ok_or_else(|| Failure::Restless(to.clone()))?
        }
    };
    let written = fill(file, old, whole, from, to, present);
    if written.is_err() {
        let _ = directory.remove(&temporary);
    }
    Ok((written?, temporary))
}

fn fill(
    file: File,
    old: &File,
    whole: u64,
    from: &RelativePath,
    to: &RelativePath,
    present: Option<&Present>,
) -> Result<u64, Failure> {
    const DOING: &str = "cannot write";
    let mut writer = BufWriter::new(file);
    let mut copied = Copied::default();
    let events = copy(old, whole, from, &mut writer, &mut copied)?;
    if let Some(present) = present {
        copied.leaves_out = true;
        copy(&present.file, present.whole, to, &mut writer, &mut copied)?;
    }
    let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error).doing(DOING, to)?;
    file.sync_all().doing(DOING, to)?;
    Ok(events)
}

/// The ids of the lines that were copied.
#[derive(Default)]
struct Copied {
    ids: HashSet<u128>,
    /// Whether a line that was copied before is left out.
    leaves_out: bool,
}

/// Copies the whole lines of a chronicle, each of which must be an event. Returns how many there are.
fn copy(
    file: &File,
    whole: u64,
    path: &RelativePath,
    to: &mut dyn Write,
    copied: &mut Copied,
) -> Result<u64, Failure> {
    const DOING: &str = "cannot read";
    let mut lines = Lines::new(file, 0, whole).doing(DOING, path)?;
    let mut number = 0;
    while let Some(found) = lines.next().doing(DOING, path)? {
        number += 1;
        let broken =
            |error: LineError| Failure::Broken { path: path.clone(), line: number, what: error.to_string() };
        let bytes = found.bytes.ok_or(LineError::TooLong).map_err(broken)?;
        let event = line::decode(bytes).map_err(broken)?;
        let id = short(event.event_id.as_deref().unwrap_or_default());
        if copied.leaves_out && copied.ids.contains(&id) {
            continue;
        }
        if copied.ids.len() < MAX_IDS {
            copied.ids.insert(id);
        }
        to.write_all(bytes).and_then(|()| to.write_all(b"\n")).doing("cannot write", path)?;
    }
    Ok(number)
}

/// Half of an id: finding two events that share it is infeasible.
fn short(id: &str) -> u128 {
    id.get(..32).and_then(|digits| u128::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

/// Takes the torn lines that were set aside along. A file that only has such a name stays where it is: its name is the
/// hash of its bytes.
fn move_set_aside(
    from: &Directory,
    old: &RelativePath,
    to: &Directory,
    new: &RelativePath,
) -> Result<(), Failure> {
    let own = old.name().unwrap_or_default();
    for name in from.children()?.into_iter().filter(|name| torn::is_kept(name, own)) {
        let Some(file) = from.open(&name)? else { continue };
        let path = new.parent().join(&name).unwrap_or_default();
        if torn::is_named_by_hash(&name, &file).doing("cannot read", &path)?
            && torn::keep_whole(to, &name, &path, &file)?
        {
            to.sync()?;
            from.remove(&name)?;
        }
    }
    Ok(())
}
