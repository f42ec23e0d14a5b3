//! How a chronicle is kept.

use std::path::PathBuf;
use std::time::Duration;

use tgp_contract::{ChronicleLayout, ToolError};

/// How many events a reader who does not say otherwise wants of the end.
pub const DEFAULT_TAIL: usize = 50;
/// How long another process that appends to the same file is waited for. It needs milliseconds, a slow disk included.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Chronicles of the project, and those beside its sources.
const SCOPE: [&str; 2] = [".sage/*.sage", "src/**/*.sage"];

/// When an event counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChronicleSync {
    /// When the system has it: it survives the end of this process. What a power failure can take is bounded by the
    /// number of events after which all are synced, and ends with [`crate::FileChronicle::sync`].
    #[default]
    Batch,
    /// When it is on the disk.
    Event,
}

/// Where chronicles may be, and how they are kept.
#[derive(Clone, Debug)]
pub struct ChronicleOptions {
    /// The root that all paths are relative to.
    pub project: PathBuf,
    /// Globs of the names of the chronicles that may be read and written; `*` stays within one name. Whatever they say,
    /// the name of a chronicle ends in `.sage`, and none is in `.git`.
    pub scope: Vec<String>,
    /// Where their files are.
    pub layout: ChronicleLayout,
    pub durability: ChronicleSync,
    /// How long a lock is waited for.
    pub lock_wait: Duration,
    /// Why no chronicle of the project is written, where that is so.
    pub read_only: Option<ToolError>,
}

impl ChronicleOptions {
    pub fn new(project: impl Into<PathBuf>) -> Self {
        Self {
            project: project.into(),
            scope: SCOPE.map(str::to_owned).to_vec(),
            layout: ChronicleLayout::default(),
            durability: ChronicleSync::default(),
            lock_wait: LOCK_WAIT,
            read_only: None,
        }
    }
}
