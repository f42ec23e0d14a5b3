//! How a process ended and what it has left.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::OverlayLayer;

/// A process whose whole tree has ended.
#[derive(Debug)]
pub struct CommandExit {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// From the start to the end of the last process of the tree.
    pub duration: Duration,
    /// What it wrote to the project. It is removed when this is dropped.
    pub layer: OverlayLayer,
}

/// How a process ended.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, from inside or from a limit of the system (`SIGKILL` for CPU time, `SIGXFSZ` for file size).
    Signal(i32),
    /// Its time was up.
    Deadline,
    /// The caller used [`KillHandle::kill`](crate::Killer::kill).
    Killed,
    /// The layer grew beyond its bytes or entries, or the disk beneath it was about to be full.
    LayerFull,
    /// The tree had more memory than it may.
    MemoryFull,
    /// The tree had more processes than it may.
    TooManyProcesses,
}

/// What was kept of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, as far as they are not in the head.
    pub tail: Vec<u8>,
    /// How many there were.
    pub total_bytes: u64,
}

impl Captured {
    /// How many bytes between head and tail were dropped.
    #[must_use]
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Head and tail as text, with a line between them when something was dropped.
    #[must_use]
    pub fn to_text(&self) -> String {
        let omitted = self.omitted_bytes();
        if omitted == 0 {
            // Together, since a character may begin in the head and end in the tail.
            return String::from_utf8_lossy(&[self.head.as_slice(), self.tail.as_slice()].concat())
                .into_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[... {omitted} bytes left out ...]\n{tail}")
    }
}

/// One difference between the project and what the process made of it.
///
/// Changes come sorted by path, a removal before what takes its place. To apply them: first the removals from the last
/// to the first, then the others from the first to the last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerChange {
    /// Relative to the project.
    pub path: PathBuf,
    /// What was done.
    pub kind: LayerChangeKind,
    /// What the project has there.
    pub before: Before,
}

/// What was done to a path. The order is the one in which changes of one path come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerChangeKind {
    /// A file, a link or something special is gone.
    Remove,
    /// A directory is gone. Whatever was in it is reported as well.
    RemoveDirectory,
    /// There is a directory now.
    MakeDirectory,
    /// There is a file now, or it has other content, or can be executed where it could not, or the other way round.
    Write {
        /// Where the content is: a file in the layer, there until the layer is dropped.
        content: PathBuf,
        /// How long it is.
        bytes: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// There is a symbolic link now, or it points elsewhere.
    Link {
        /// Where it points, as written.
        target: PathBuf,
    },
    /// There is a pipe, a socket or a device now.
    Special,
}

/// What a path was in the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Before {
    /// Not there.
    Nothing,
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// Whether this machine can run processes in the jail.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ProcessSupport {
    /// What is needed and not there, one plain sentence each. With one of them no process is started.
    pub missing: Vec<String>,
    /// Whether the system itself bounds the memory of a tree, by a control group. Without one it is watched.
    pub has_control_group: bool,
}

impl ProcessSupport {
    /// Whether nothing is missing.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.missing.is_empty()
    }
}
