//! A note for all processes of a repository that the remote could not be reached a moment ago.
//!
//! Without it every command of a person who is on a train would wait for the same silence again.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::OFlag;

/// How long the remote is not contacted again unless a person asks for it.
const QUIET: Duration = Duration::from_secs(15);
const NAME: &str = "git-unreachable";
/// A time, an address and a sentence.
const MAX_BYTES: u64 = 8 << 10;

/// Where the note is, and what time it is.
#[derive(Clone, Debug)]
pub(crate) struct Offline {
    path: PathBuf,
    clock: fn() -> SystemTime,
}

impl Offline {
    pub(crate) fn new(state: &Path, clock: fn() -> SystemTime) -> Self {
        Self { path: state.join(NAME), clock }
    }

    /// Why the remote at `url` could not be reached, when a process found that out just now. A note that cannot be read,
    /// is from the future or belongs to another address is none: then the remote is asked.
    pub(crate) fn recent(&self, url: &str) -> Option<String> {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.path).ok()?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let (noted, rest) = text.split_once('\n')?;
        let (of, why) = rest.split_once('\n')?;
        if of != url {
            return None;
        }
        let noted = UNIX_EPOCH.checked_add(Duration::from_millis(noted.parse().ok()?))?;
        let age = (self.clock)().duration_since(noted).ok()?;
        (age < QUIET).then(|| why.to_owned())
    }

    /// It is a favour to the next process; where it cannot be written, that one asks by itself.
    /// `url` is without credentials.
    pub(crate) fn note(&self, url: &str, why: &str) {
        let now = (self.clock)().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(&self.path);
        // In one write, so that no reader sees half of it.
        let _ = file.and_then(|mut file| file.write_all(format!("{now}\n{url}\n{why}").as_bytes()));
    }

    pub(crate) fn clear(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
