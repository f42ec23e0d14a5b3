//! Plain files by their path, for those that the program names and not a tool.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a plain file for reading. A link with that name is not followed, and a pipe is not waited for.
///
/// # Errors
/// What the system says, and `InvalidInput` for what is not a plain file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from(io::ErrorKind::InvalidInput)) }
}

/// The content of a plain file of at most `most` bytes; nothing for anything else.
#[must_use]
pub fn read_plain(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = open_plain(path).ok()?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}
