//! What the approver sees of an effect, and the approval that applies to nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::{Value, json};
use tgp_contract::{Code, RelativePath, Root, ToolError, canonical};

use super::ToolOutcome;
use crate::files::difference_with_mode;

/// Bytes of differences in one preview of many files: more would not be read before an answer. The files beyond are
/// named, and bound by their hashes all the same.
const MAX_SHOWN_BYTES: usize = 1024 * 1024;

/// What is shown of a call in addition to its arguments and targets.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// What would happen; nothing where the arguments say it all.
    pub data: Option<Value>,
    /// The files whose content decides the effect, as they are now.
    pub found: Vec<FileSnapshot>,
    /// Why there is no preview, where there could be one.
    pub missing: Option<String>,
}

/// A file by the SHA-256 of its bytes; nothing where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSnapshot {
    pub root: Root,
    pub path: RelativePath,
    pub sha256: Option<String>,
}

/// One file of many that a running call wants to change.
pub struct FileDiff {
    pub root: Root,
    pub path: RelativePath,
    pub before: Option<Arc<[u8]>>,
    pub after: Option<Arc<[u8]>>,
    /// Whether it can be executed afterwards, where that changes.
    pub executable: Option<bool>,
}

impl Preview {
    /// No preview, and why.
    pub fn missing(why: impl Into<String>) -> Self {
        Self { missing: Some(why.into()), ..Self::default() }
    }

    /// The differences of many files, as many as there is room for: what is most important comes first. Each is read by
    /// itself, so that the contents of one are in memory at a time.
    pub fn of_changes(
        changes: impl IntoIterator<Item = Result<FileDiff, ToolError>>,
    ) -> Result<Self, ToolError> {
        let (mut list, mut found, mut bytes) = (Vec::new(), Vec::new(), 0);
        for change in changes {
            let FileDiff { root, path, before, after, executable } = change?;
            let (before, after) = (before.as_deref(), after.as_deref());
            let sha256 = before.map(canonical::sha256_hex);
            let word = match (before, after) {
                (_, None) => "deleted",
                (None, Some(_)) => "created",
                (Some(_), Some(_)) => "changed",
            };
            let mut entry = json!({ "root": root, "path": path, "change": word });
            if let Some(fields) = entry.as_object_mut() {
                fields.insert("sha256".to_owned(), json!(after.map(canonical::sha256_hex)));
                if let Some(executable) = executable {
                    fields.insert("executable".to_owned(), json!(executable));
                }
                let mut complete = false;
                if bytes < MAX_SHOWN_BYTES {
                    let shown = difference_with_mode(path.as_str(), before, after, executable);
                    bytes += shown.text.len();
                    complete = shown.complete;
                    fields.insert("diff".to_owned(), json!(shown.text));
                }
                if !complete {
                    fields.insert("diffTruncated".to_owned(), json!(true));
                }
            }
            list.push(entry);
            found.push(FileSnapshot { root, path, sha256 });
        }
        Ok(Self { data: Some(json!({ "changes": list })), found, missing: None })
    }

    /// As a request for approval carries it. The hashes of what was found are part of it, because a difference does
    /// not show every byte of a long or binary file.
    pub(super) fn to_value(&self) -> Option<Value> {
        let mut data = self.data.clone()?;
        if let Some(fields) = data.as_object_mut()
            && !self.found.is_empty()
        {
            fields.insert("found".to_owned(), json!(self.found));
        }
        Some(data)
    }
}

impl From<ToolOutcome> for Preview {
    /// What a dry run has answered.
    fn from(outcome: ToolOutcome) -> Self {
        let found = |file: tgp_contract::FileEffect| FileSnapshot {
            root: file.root,
            path: file.path,
            sha256: file.before,
        };
        Self {
            data: Some(outcome.data),
            found: outcome.files.into_iter().map(found).collect(),
            missing: None,
        }
    }
}

/// What the user has agreed to, or what the gates have judged: an effect on files that are as they were then. The
/// code that carries out the effect checks it at the last moment, where nothing can come in between.
#[derive(Debug)]
pub struct ApprovedSnapshot {
    found: BTreeMap<(Root, RelativePath), Option<String>>,
    others: Others,
    broken: AtomicBool,
}

/// What an agreement says of the files that it does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// They are not a part of the effect.
    Refused,
    /// They may be as they like.
    Free,
}

impl ApprovedSnapshot {
    /// Nothing where no preview could be made: then it is unknown what was there.
    pub(super) fn to(preview: &Preview) -> Option<Self> {
        preview.data.as_ref()?;
        Some(Self::new(preview.found.iter().cloned(), Others::Refused))
    }

    /// For a change of many files that needed no approval: some of them were judged by what they were before.
    /// Nothing where none was.
    pub fn on_judged(found: impl IntoIterator<Item = FileSnapshot>) -> Option<Arc<Self>> {
        let agreement = Self::new(found, Others::Free);
        (!agreement.found.is_empty()).then(|| Arc::new(agreement))
    }

    fn new(found: impl IntoIterator<Item = FileSnapshot>, others: Others) -> Self {
        let found = found.into_iter().map(|FileSnapshot { root, path, sha256 }| ((root, path), sha256));
        Self { found: found.collect(), others, broken: AtomicBool::new(false) }
    }

    /// Whether a preview shows the files as they are here. Where nothing is shown there is nothing to compare.
    pub(super) fn is_to(&self, preview: &Preview) -> bool {
        Self::to(preview).is_none_or(|shown| shown.found == self.found)
    }

    /// Whether a file has the content that was shown.
    pub fn check(&self, root: Root, path: &RelativePath, content: Option<&[u8]>) -> Result<(), ToolError> {
        self.check_hash(root, path, content.map(canonical::sha256_hex).as_deref())
    }

    /// The same for a file that was hashed already.
    pub fn check_hash(&self, root: Root, path: &RelativePath, hash: Option<&str>) -> Result<(), ToolError> {
        let holds = match self.found.get(&(root, path.clone())) {
            Some(shown) => shown.as_deref() == hash,
            None => self.others == Others::Free,
        };
        if holds { Ok(()) } else { Err(self.refuse(path)) }
    }

    /// Whether the effect that was shown is on no file at all, such as the removal of an empty directory.
    pub fn check_no_file(&self, path: &RelativePath) -> Result<(), ToolError> {
        if self.found.is_empty() { Ok(()) } else { Err(self.refuse(path)) }
    }

    /// Whether another content was found than the one that was agreed to, so that nothing was done.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    fn refuse(&self, path: &RelativePath) -> ToolError {
        self.broken.store(true, Ordering::Release);
        ToolError::new(Code::Conflict, format!("`{path}` was changed since its change was judged"))
            .detail("path", path.as_str())
            .help("nothing was changed; look at the file again and repeat the call")
    }
}
