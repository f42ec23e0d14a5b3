//! Records that a person's decisions are kept in: JSON files that their owner alone can have written.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tgp_contract::{Code, ToolError};

use crate::append_log::{at, private_directory, write_private};

/// A record that its owner alone can have written; `refused` makes the error of one that is not used, and why.
///
/// # Errors
/// When it is not used, or cannot be read.
pub fn read<T: DeserializeOwned>(
    path: &Path,
    max_bytes: u64,
    refused: impl Fn(&str) -> ToolError,
) -> Result<Option<T>, ToolError> {
    let Some(text) = read_text(path, max_bytes, &refused)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|_| refused("it is damaged"))
}

/// The text of a file that its owner alone can have written; `refused` makes the error of one that is not used, and why.
///
/// # Errors
/// When it is not used, or cannot be read.
pub fn read_text(
    path: &Path,
    max_bytes: u64,
    refused: impl Fn(&str) -> ToolError,
) -> Result<Option<String>, ToolError> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = match std::fs::File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path)(error)),
    };
    let metadata = file.metadata().map_err(at(path))?;
    if !metadata.is_file()
        || metadata.uid() != nix::unistd::geteuid().as_raw()
        || metadata.mode() & 0o022 != 0
    {
        return Err(refused("other users may have written it"));
    }
    if metadata.len() > max_bytes {
        return Err(refused("it is too large"));
    }
    let mut text = String::new();
    file.take(max_bytes).read_to_string(&mut text).map_err(at(path))?;
    Ok(Some(text))
}

/// Replaces a record as a whole.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, record: &impl Serialize) -> Result<(), ToolError> {
    if let Some(directory) = path.parent() {
        private_directory().recursive(true).create(directory).map_err(at(directory))?;
    }
    let text = serde_json::to_vec_pretty(record)
        .map_err(|error| ToolError::new(Code::Internal, format!("a record cannot be kept: {error}")))?;
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    write_private(&draft, &text).and_then(|()| std::fs::rename(&draft, path)).map_err(at(path))
}
