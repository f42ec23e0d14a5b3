//! Append-only NDJSON events about the files of a project.
//!
//! A chronicle is a file of lines. Each line is the canonical JSON of one event with its `eventId`, and nothing else is
//! a line: any program with a hash function can check it. Files only ever grow, by whole lines, under a lock that all
//! processes share.
//!
//! What a crash leaves at the end of a file, a line that was not finished, is not an event. Readers stop before it and say
//! so. The next who appends moves it, byte for byte, to `<file>.torn-<hash>` beside the chronicle's file, and continues
//! after the last whole line; where the end does not look like the beginning of an event, the file is not ours, and
//! nothing is appended to it.
#![forbid(unsafe_code)]

mod append;
mod chronicle;
mod dedup_cache;
mod dirfd;
mod events;
mod failure;
mod line;
mod lines;
mod lock;
mod migrate;
mod options;
mod scope;
mod torn;
mod verify;

pub use append::AppendOutcome;
pub use chronicle::FileChronicle;
pub use events::{ChronicleEntry, Events, Start};
pub use line::MAX_LINE_BYTES;
pub use migrate::{Migrated, Migration, MigrationReport, Refused, is_chronicle_file};
pub use options::{ChronicleOptions, ChronicleSync, DEFAULT_TAIL};
pub use torn::{Quarantined, Torn};
pub use verify::{ChronicleReport, LineProblem};
