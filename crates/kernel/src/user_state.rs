//! Files of the user's state directory, which is never in a project: what is in them was decided by a person.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tgp_contract::{Code, ToolError};
use tgp_fs::append_log::{at, private_directory, write_private};
use tgp_fs::real_place;

use crate::boot::Environment;

/// The state directory of this user: `TGP_HOME`, else below the user's own. `None` without a home.
pub(crate) fn directory(environment: &Environment) -> Option<PathBuf> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("TGP_HOME")
        .or_else(|| variable("XDG_STATE_HOME").map(|state| state.join("tgp")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/state/tgp")))?;
    // A relative path would be another place for every directory that a command starts in.
    state.is_absolute().then_some(state)
}

/// Whether a process with write access below `directory` could write `place`.
pub(crate) fn is_below(place: &Path, directory: &Path) -> bool {
    real_place(place).starts_with(real_place(directory))
}

/// An agent may write in the project, so nothing that is kept there counts as decided by a person. `what` is kept in `place`.
///
/// # Errors
/// `ESECURITY` when it is.
pub(crate) fn check_outside(place: &Path, project: &Path, what: &str) -> Result<(), ToolError> {
    if !is_below(place, project) {
        return Ok(());
    }
    let message =
        format!("{what} are kept in `{}`, which is inside the project, where agents write", place.display());
    Err(ToolError::new(Code::Security, message).help("set TGP_HOME to a directory outside the project"))
}

/// A record that its owner alone can have written; `refused` makes the error of one that is not used, and why.
///
/// # Errors
/// When it is not used, or cannot be read.
pub(crate) fn read<T: DeserializeOwned>(
    path: &Path,
    max_bytes: u64,
    refused: impl Fn(&str) -> ToolError,
) -> Result<Option<T>, ToolError> {
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
    serde_json::from_str(&text).map(Some).map_err(|_| refused("it is damaged"))
}

/// Replaces a record as a whole.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, record: &impl Serialize) -> Result<(), ToolError> {
    if let Some(directory) = path.parent() {
        private_directory().recursive(true).create(directory).map_err(at(directory))?;
    }
    let text = serde_json::to_vec_pretty(record)
        .map_err(|error| ToolError::new(Code::Internal, format!("a record cannot be kept: {error}")))?;
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    write_private(&draft, &text).and_then(|()| std::fs::rename(&draft, path)).map_err(at(path))
}
