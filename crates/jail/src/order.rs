//! What a whole process is given: plain data, the same on every platform.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::NetworkAccess;

const MEBIBYTE: u64 = 1 << 20;

/// Head and tail of each stream that are kept by default: what a person or a model still reads.
const OUTPUT_BYTES: usize = 256 * 1024;

/// A command of an agent, with everything it may see and use.
///
/// It runs on a private layer over the project: it reads the project, and what it writes stays in the layer until the
/// caller has read [`OverlayLayer::changes`](crate::Layer::changes). Outside the project it sees the system's programs
/// and libraries, its own `/tmp`, `/var/tmp`, `/dev/shm` and `/proc`, and the paths in `readable`; nothing else is
/// there.
///
/// Start from [`Template::order`] and change what is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// A path, or a name that is looked for in `PATH` inside the jail.
    pub program: OsString,
    /// Its arguments, without the program's own name.
    pub arguments: Vec<OsString>,
    /// Where it starts, relative to the project; empty for the project itself.
    pub directory: PathBuf,
    /// The project's root. Inside it has the same absolute path as outside.
    pub project: PathBuf,
    /// Where the layer is made: an existing directory outside the project and outside `readable`. Its file system must
    /// be able to carry an overlay (ext4, xfs, btrfs, tmpfs; not another overlay).
    pub scratch: PathBuf,
    /// The whole environment. Of the caller's own nothing is taken over; `PATH`, `HOME`, `TMPDIR` and `LANG` have
    /// sensible values when they are not named here.
    pub environment: Vec<(String, String)>,
    /// Files and directories of the project that must not even be read, relative to it. A directory is there and
    /// empty, and so is a file; neither can be written. What does not exist is skipped, since there is nothing to hide.
    pub hidden: Vec<PathBuf>,
    /// Paths of the project that cannot be written, not even in the layer, relative to it. What does not exist is
    /// skipped.
    pub read_only: Vec<PathBuf>,
    /// Directories of the project that are written without the layer, relative to it: build output. What does not
    /// exist is skipped; a symbolic link is refused.
    pub direct: Vec<PathBuf>,
    /// Absolute paths outside the project to read and run: toolchains. What does not exist is skipped.
    pub readable: Vec<PathBuf>,
    /// Absolute paths outside the project that must not even be read, though they lie in what is `readable` or in the
    /// system: credentials of the user's tools. They are as `hidden` ones are; what is not shown is skipped.
    pub secrets: Vec<PathBuf>,
    /// A directory that outlives the command, at [`CACHE_PLACE`] inside.
    pub cache: Option<CacheMount>,
    /// Whether sockets can be made.
    pub network: NetworkAccess,
    /// What it may use up.
    pub limits: ProcessLimits,
    /// After this time the whole tree of processes is killed.
    pub deadline: Duration,
    /// Bytes of standard output, and as many of standard error, that are kept: half from the head, half from the tail.
    pub output_bytes: usize,
    /// What it reads from standard input; at most [`MAX_STDIN_BYTES`].
    pub stdin: Vec<u8>,
}

/// Where a [`CacheMount`] is inside the jail. Without one it does not exist, and a command that creates it there writes
/// to its own `/tmp`.
pub const CACHE_PLACE: &str = "/tmp/cache";

/// A directory outside the project for what a tool computes again if it is lost, such as compiled packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMount {
    /// An existing directory that neither contains nor lies in the project, the scratch directory or the system.
    pub source: PathBuf,
    /// Whether the command can change it.
    pub access: CacheAccess,
}

/// What a command can do with a [`CacheMount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheAccess {
    Read,
    Write,
}

/// Standard input is held in memory, by us and by the system.
pub const MAX_STDIN_BYTES: usize = 16 * MEBIBYTE as usize;

/// What a tree of processes may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Bytes of memory. The kernel holds every single process to it (`RLIMIT_DATA`); the whole tree is checked
    /// several times a second and ended when it has more.
    pub memory_bytes: u64,
    /// Processes and threads at a time. For an ordinary user the kernel refuses more; a tree of root, whom the kernel
    /// never refuses, is ended.
    pub processes: u64,
    /// Bytes of the largest file.
    pub file_bytes: u64,
    /// One more than the largest descriptor number of each process.
    pub open_files: u64,
    /// Bytes of the layer. It is checked several times a second, and the tree is ended when it has more.
    pub layer_bytes: u64,
    /// Bytes of `/tmp`, and as many of `/var/tmp` and of `/dev/shm`. They are memory.
    pub temporary_bytes: u64,
    /// Seconds of CPU time of each process.
    pub cpu_seconds: u64,
}

/// Named beginnings of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Template {
    /// A command line: short, small, without sockets.
    Shell,
    /// A test run: longer and larger, and it may talk to itself over a loopback that no other process uses.
    Test,
    /// A build: the longest and largest, without sockets.
    Build,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 3] = [Self::Shell, Self::Test, Self::Build];

    /// The name in configuration and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Test => "test",
            Self::Build => "build",
        }
    }

    /// The template with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|template| template.name() == name)
    }

    /// What it may use up.
    #[must_use]
    pub fn limits(self) -> ProcessLimits {
        let (memory, processes, layer, seconds) = match self {
            Self::Shell => (2048, 256, 512, 60),
            Self::Test => (4096, 1024, 1024, 600),
            Self::Build => (8192, 1024, 4096, 1800),
        };
        ProcessLimits {
            memory_bytes: memory * MEBIBYTE,
            processes,
            file_bytes: layer * MEBIBYTE,
            open_files: 4096,
            layer_bytes: layer * MEBIBYTE,
            temporary_bytes: 512 * MEBIBYTE,
            cpu_seconds: seconds,
        }
    }

    /// When it is ended.
    #[must_use]
    pub fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Shell => 30,
            Self::Test => 300,
            Self::Build => 900,
        })
    }

    /// Which sockets it can make.
    #[must_use]
    pub fn network(self) -> NetworkAccess {
        match self {
            Self::Test => NetworkAccess::Loopback,
            Self::Shell | Self::Build => NetworkAccess::None,
        }
    }

    /// An order without arguments that hides nothing.
    #[must_use]
    pub fn order(
        self,
        program: impl Into<OsString>,
        project: impl Into<PathBuf>,
        scratch: impl Into<PathBuf>,
    ) -> CommandSpec {
        CommandSpec {
            program: program.into(),
            arguments: Vec::new(),
            directory: PathBuf::new(),
            project: project.into(),
            scratch: scratch.into(),
            environment: Vec::new(),
            hidden: Vec::new(),
            read_only: Vec::new(),
            direct: Vec::new(),
            readable: Vec::new(),
            secrets: Vec::new(),
            cache: None,
            network: self.network(),
            limits: self.limits(),
            deadline: self.deadline(),
            output_bytes: OUTPUT_BYTES,
            stdin: Vec::new(),
        }
    }
}
