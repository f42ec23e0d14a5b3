//! Events of a chronicle one after the other, and the last of them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use tgp_contract::{ChronicleEvent, ChronicleRevision, RelativePath, ToolError};
use tgp_fs::Stamp;

use crate::chronicle::ChronicleInner;
use crate::dirfd::Missing;
use crate::failure::{Doing, Failure};
use crate::line::{self, LineError};
use crate::lines::{self, Lines};
use crate::lock;
use crate::torn::{self, Extent, Torn};

/// What the last events may weigh together, since they are answered in one list.
const MAX_TAIL_BYTES: u64 = 64 << 20;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    #[default]
    Beginning,
    /// A line, counted from 1.
    Line(u64),
    /// A place that [`ChronicleEntry::next`] named.
    Offset(u64),
}

/// An event and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct ChronicleEntry {
    /// Where its line begins in the file.
    pub offset: u64,
    /// Where the next line begins, or will begin.
    pub next: u64,
    pub event: ChronicleEvent,
}

/// The events of a chronicle as it was when it was opened, in memory for one at a time. A line that is not an event is an
/// error; the caller can ask for the one after it.
#[derive(Debug)]
pub struct Events {
    /// Of the file, so that an error leads to it.
    path: RelativePath,
    /// Nothing when there is no such chronicle, and after the disk has failed.
    source: Option<Source>,
    torn: Option<Torn>,
    /// What follows the last event is not the work of a crash, and is said after it.
    is_foreign: bool,
}

#[derive(Debug)]
struct Source {
    lines: Lines<File>,
    /// A second handle, to count lines for an error.
    file: File,
}

impl Events {
    /// The unfinished line at the end, which a crash has left; the events stop before it.
    #[must_use]
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    pub(crate) fn open(keeper: &ChronicleInner, path: &RelativePath, start: Start) -> Result<Self, Failure> {
        let stored = keeper.file_of(path)?;
        let Some((file, extent)) = open(keeper, path)? else {
            return Ok(Self { path: stored, source: None, torn: None, is_foreign: false });
        };
        Self::of(&stored, file, extent, start)
    }

    fn of(path: &RelativePath, file: File, extent: Extent, start: Start) -> Result<Self, Failure> {
        const DOING: &str = "cannot read";
        let offset = match start {
            Start::Offset(offset) => check_offset(&file, path, &extent, offset)?,
            Start::Beginning | Start::Line(_) => 0,
        };
        let second = file.try_clone().doing(DOING, path)?;
        let mut lines = Lines::new(file, offset, extent.whole).doing(DOING, path)?;
        if let Start::Line(line) = start {
            lines.skip(line.saturating_sub(1)).doing(DOING, path)?;
        }
        let source = Some(Source { lines, file: second });
        Ok(Self { path: path.clone(), source, torn: extent.torn, is_foreign: extent.is_foreign })
    }
}

impl Iterator for Events {
    type Item = Result<ChronicleEntry, ToolError>;

    fn next(&mut self) -> Option<Self::Item> {
        let source = self.source.as_mut()?;
        match next(source, &self.path) {
            Ok(Some(entry)) => Some(Ok(entry)),
            Ok(None) if std::mem::take(&mut self.is_foreign) => {
                Some(Err(Failure::Foreign { path: self.path.clone(), what: torn::FOREIGN }.into()))
            }
            Ok(None) => None,
            Err(failure) => {
                // After a failure of the disk it is unknown where the next line is.
                if matches!(failure, Failure::Disk { .. }) {
                    self.source = None;
                }
                Some(Err(failure.into()))
            }
        }
    }
}

fn next(source: &mut Source, path: &RelativePath) -> Result<Option<ChronicleEntry>, Failure> {
    const DOING: &str = "cannot read";
    let Some(found) = source.lines.next().doing(DOING, path)? else { return Ok(None) };
    let offset = found.offset;
    let decoded = found.bytes.ok_or(LineError::TooLong).and_then(line::decode);
    match decoded {
        Ok(event) => Ok(Some(ChronicleEntry { offset, next: source.lines.position(), event })),
        Err(error) => {
            let line = lines::number_at(&source.file, offset).doing(DOING, path)?;
            Err(Failure::Broken { path: path.clone(), line, what: error.to_string() })
        }
    }
}

fn check_offset(file: &File, path: &RelativePath, extent: &Extent, offset: u64) -> Result<u64, Failure> {
    let mut before = [b'\n'];
    if offset > 0 && offset <= extent.whole {
        file.read_exact_at(&mut before, offset - 1).doing("cannot read", path)?;
    }
    if offset > extent.whole || before != [b'\n'] {
        return Err(Failure::Request(format!("no line of `{path}` begins at byte {offset}")));
    }
    Ok(offset)
}

/// Opens a chronicle to read it, as far as its whole lines go now. Nothing when there is none.
pub(crate) fn open(keeper: &ChronicleInner, path: &RelativePath) -> Result<Option<(File, Extent)>, Failure> {
    let stored = keeper.file_of(path)?;
    let Some(directory) = keeper.project.directory(&stored.parent(), Missing::Refuse)? else {
        return Ok(None);
    };
    let Some(file) = directory.open(stored.name().unwrap_or_default())? else { return Ok(None) };
    // Who is in the middle of a line now has finished it then. What is whole stays so, and needs no lock.
    lock::take(&file, lock::LockKind::Shared, keeper.lock_wait, &stored)?;
    let extent = torn::extent(&file).doing("cannot read", &stored)?;
    file.unlock().doing("cannot unlock", &stored)?;
    Ok(Some((file, extent)))
}

/// The content of a chronicle by its file's metadata, unless it changed so recently that the next change may not show.
pub(crate) fn revision(keeper: &ChronicleInner, path: &RelativePath) -> Option<ChronicleRevision> {
    let now = SystemTime::now();
    let stored = keeper.file_of(path).ok()?;
    let directory = keeper.project.directory(&stored.parent(), Missing::Refuse).ok()?;
    let file = match directory {
        Some(directory) => directory.open(stored.name().unwrap_or_default()).ok()?,
        None => None,
    };
    let Some(file) = file else { return Some(ChronicleRevision::Absent) };
    let stamp = Stamp::of(&file.metadata().ok()?);
    stamp.is_settled(now).then_some(ChronicleRevision::Content {
        size: stamp.size,
        device: stamp.device,
        inode: stamp.inode,
        changed_ns: stamp.ctime_ns,
    })
}

/// The last `most` events, oldest first.
pub(crate) fn tail(
    keeper: &ChronicleInner,
    path: &RelativePath,
    most: usize,
) -> Result<Vec<ChronicleEvent>, ToolError> {
    let Some((file, extent)) = open(keeper, path)? else { return Ok(Vec::new()) };
    if most == 0 {
        return Ok(Vec::new());
    }
    let path = &keeper.file_of(path)?;
    let start = lines::start_of_last(&file, extent.whole, most, MAX_TAIL_BYTES).doing("cannot read", path)?;
    let Some(start) = start else {
        let message = format!("the last {most} events of `{path}` are more than {MAX_TAIL_BYTES} bytes");
        return Err(Failure::Request(message).into());
    };
    Events::of(path, file, extent, Start::Offset(start))?
        .map(|entry| entry.map(|entry| entry.event))
        .collect()
}
