//! Files of the user's state directory, which is never in a project: what is in them was decided by a person.

use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError};
pub(crate) use tgp_fs::private_record::{read, write};
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

/// The directory of what this user has set up: below `TGP_HOME`, else below the user's own. `None` without a home.
pub(crate) fn config_directory(environment: &Environment) -> Option<PathBuf> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = variable("TGP_HOME")
        .map(|home| home.join("config"))
        .or_else(|| variable("XDG_CONFIG_HOME").map(|config| config.join("tgp")))
        .or_else(|| variable("HOME").map(|home| home.join(".config/tgp")))?;
    config.is_absolute().then_some(config)
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
