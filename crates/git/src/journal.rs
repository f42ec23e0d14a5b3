//! What is written down before a branch moves, so that a kill between the branch and the working tree is repaired.
//!
//! Without it the next process could not distinguish a file that a person changed from one that was not written in
//! time, and would commit the old version over the new one.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tgp_contract::ToolError;

use crate::failure::At;

const NAME: &str = "git-journal.json";
const UNFINISHED: &str = "git-journal.json.new";
/// A journal names files; a larger one is not ours.
const MAX_BYTES: u64 = 64 << 20;

/// The branch is moving between two commits, and the working tree has to follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) from: Option<String>,
    pub(crate) to: String,
    /// Uncommitted files whose content is safe on a branch: path and blob. Only that content may be overwritten.
    pub(crate) kept: Vec<(String, String)>,
}

impl Journal {
    /// Returns what has to be synced before the branch may move.
    pub(crate) fn write(&self, state: &Path) -> Result<Vec<PathBuf>, ToolError> {
        let unfinished = state.join(UNFINISHED);
        let path = state.join(NAME);
        let text = serde_json::to_vec(self).map_err(std::io::Error::other).at("cannot write", &path)?;
        fs::write(&unfinished, text).at("cannot write", &unfinished)?;
        fs::rename(&unfinished, &path).at("cannot write", &path)?;
        Ok(vec![path, state.to_owned()])
    }

    /// The journal of a move that did not come to its end. One that cannot be read was never finished itself.
    pub(crate) fn read(state: &Path) -> Result<Option<Self>, ToolError> {
        let path = state.join(NAME);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).at("cannot read", &path),
        };
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).at("cannot read", &path)?;
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Whether there is one: the branch may have moved where the working tree has not followed yet.
    pub(crate) fn exists(state: &Path) -> bool {
        state.join(NAME).symlink_metadata().is_ok()
    }

    pub(crate) fn remove(state: &Path) -> Result<(), ToolError> {
        let path = state.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at("cannot remove", &path),
            _ => Ok(()),
        }
    }
}
