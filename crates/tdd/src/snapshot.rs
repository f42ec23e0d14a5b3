//! The files a run rests on, each with the hash of its bytes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tgp_contract::RelativePath;
use tgp_contract::canonical::{self, CanonicalError};

/// The most files of one snapshot: a large project's sources, and some five megabytes.
const MAX_FILES: usize = 50_000;

/// The length of a SHA-256 in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// Why a file cannot be part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("more than {MAX_FILES} test and code files; exempt those that no test is about")]
    TooManyFiles,
    #[error("`{path}` has the hash `{hash}`, which is not a SHA-256 in lower-case hexadecimal digits")]
    NotAHash { path: RelativePath, hash: String },
}

/// Test and code files of one scope, relative to its root, with the SHA-256 of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSnapshot {
    files: BTreeMap<RelativePath, String>,
}

impl SourceSnapshot {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces its hash.
    ///
    /// # Errors
    /// When there are too many files, or the hash is none.
    pub fn insert(&mut self, path: RelativePath, hash: String) -> Result<(), SnapshotError> {
        let is_hash =
            hash.len() == HASH_DIGITS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            return Err(SnapshotError::NotAHash { path, hash });
        }
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&path) {
            return Err(SnapshotError::TooManyFiles);
        }
        self.files.insert(path, hash);
        Ok(())
    }

    /// Adds a file by its bytes.
    ///
    /// # Errors
    /// When there are too many files.
    pub fn insert_content(&mut self, path: RelativePath, content: &[u8]) -> Result<(), SnapshotError> {
        self.insert(path, canonical::sha256_hex(content))
    }

    #[must_use]
    pub fn get(&self, path: &RelativePath) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&RelativePath, &str)> {
        self.files.iter().map(|(path, hash)| (path, hash.as_str()))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// One hash for the whole: that of the canonical JSON of its files.
    pub(crate) fn fingerprint(&self) -> Result<String, CanonicalError> {
        let files: Map<String, Value> =
            self.files.iter().map(|(path, hash)| (path.to_string(), Value::from(hash.as_str()))).collect();
        canonical::hash(&Value::Object(files))
    }
}
