//! Plain files by their path, for those that the program names and not a tool.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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

/// Writes a plain file that only its owner may write. What has its name is replaced, and no link is followed.
///
/// # Errors
/// What the system says; what was there stays then.
pub fn replace_plain(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = folder.join(format!(".tgp-tmp-{}-{name}", std::process::id()));
    let flags = OFlag::O_NOFOLLOW.bits();
    let open = || File::options().write(true).create_new(true).mode(0o644).custom_flags(flags).open(&fresh);
    let opened = open().or_else(|error| match error.kind() {
        // Left by a process with our number.
        io::ErrorKind::AlreadyExists => fs::remove_file(&fresh).and_then(|()| open()),
        _ => Err(error),
    });
    let written = opened.and_then(|mut file| file.write_all(content)).and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// Directories of state nest this deep at most.
const MAX_DEPTH: usize = 16;

/// The first entry below a directory, at any depth, that is a link, a pipe or a device: opening it would lead elsewhere.
/// A directory that is not there has none. Directories for which `leaves_out` says so are not looked into.
///
/// # Errors
/// What the system says, and `InvalidInput` for directories that nest too deeply.
pub fn first_special_file(
    directory: &Path,
    leaves_out: &dyn Fn(&Path) -> bool,
) -> io::Result<Option<PathBuf>> {
    special_below(directory, leaves_out, MAX_DEPTH)
}

fn special_below(
    directory: &Path,
    leaves_out: &dyn Fn(&Path) -> bool,
    depth: usize,
) -> io::Result<Option<PathBuf>> {
    let depth = depth.checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if leaves_out(&entry.path()) {
                continue;
            }
            match special_below(&entry.path(), leaves_out, depth)? {
                None => {}
                found => return Ok(found),
            }
        } else if !kind.is_file() && !kind.is_socket() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}
