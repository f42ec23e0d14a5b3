//! `jail`: what a command of `shell_exec` and `test_run` gets.

use std::time::Duration;

use super::fields::Fields;

/// Every cap that is not given is that of the command's template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JailConfig {
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    /// Of the largest file a command may write.
    pub file_bytes: Option<u64>,
    /// Of everything it may change at once.
    pub layer_bytes: Option<u64>,
    pub timeout: Option<Duration>,
    /// Of each of its two streams that are kept.
    pub output_bytes: Option<usize>,
    /// Files and directories that a session may add to the project.
    pub session_files: u64,
    /// Files and directories of the project that are searched before a command.
    pub project_entries: u64,
    /// Directories of the project that builds and tests write straight to, when they exist.
    pub direct: Vec<String>,
    /// Paths outside the project that commands may read, such as toolchains; `~` is the home directory.
    pub readable: Vec<String>,
}

/// Where toolchains usually live. The home directory itself is not in it, and neither is a file of credentials.
const TOOLCHAINS: [&str; 12] = [
    "~/.cargo/bin",
    "~/.cargo/registry",
    "~/.cargo/git",
    "~/.rustup",
    "~/.pyenv",
    "~/.local/lib",
    "~/.local/bin",
    "~/.local/share/uv/python",
    "~/.nvm",
    "~/.volta",
    "~/.bun",
    "~/go",
];

impl Default for JailConfig {
    fn default() -> Self {
        Self {
            memory_bytes: None,
            processes: None,
            file_bytes: None,
            layer_bytes: None,
            timeout: None,
            output_bytes: None,
            session_files: 50_000,
            project_entries: 1_000_000,
            direct: ["target", "node_modules/.cache", "node_modules/.vite"].map(str::to_owned).to_vec(),
            readable: TOOLCHAINS.map(str::to_owned).to_vec(),
        }
    }
}

/// Bytes of a megabyte.
const MEGABYTE: u64 = 1 << 20;

pub(super) fn read(mut jail: Fields<'_>) -> JailConfig {
    let defaults = JailConfig::default();
    let megabytes = |number: Option<u64>| number.map(|number| number * MEGABYTE);
    let config = JailConfig {
        memory_bytes: megabytes(jail.number("memoryMb", (16, 1 << 20))),
        processes: jail.number("processes", (1, 65_536)),
        file_bytes: megabytes(jail.number("fileMb", (1, 1 << 20))),
        layer_bytes: megabytes(jail.number("layerMb", (1, 1 << 16))),
        timeout: jail.number("timeoutMs", (100, 3_600_000)).map(Duration::from_millis),
        output_bytes: jail
            .number("outputBytes", (1024, 16 << 20))
            .and_then(|bytes| usize::try_from(bytes).ok()),
        session_files: jail.number("sessionFiles", (1, 10_000_000)).unwrap_or(defaults.session_files),
        project_entries: jail
            .number("projectEntries", (1_000, 100_000_000))
            .unwrap_or(defaults.project_entries),
        direct: jail.texts("direct").unwrap_or(defaults.direct),
        readable: jail.texts("readable").unwrap_or(defaults.readable),
    };
    jail.done();
    config
}
