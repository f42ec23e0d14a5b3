//! What a person has confirmed, kept in the user's state directory and never in a project: one record for the
//! configuration of each project, and one for the rules of its tool repository.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_contract::{Code, ToolError, canonical};
use tgp_router::gates::ForeignRules;

use super::fields::SensitiveField;
use crate::boot::Environment;
use tgp_fs::append_log::{at, private_directory, write_private};
use tgp_fs::real_place;

/// The directory of records below the state directory of tgp.
const DIRECTORY: &str = "trust";
/// Bytes of a record that are read: more than the rules of a tool repository can have.
const MAX_RECORD_BYTES: u64 = 48 << 20;
/// Records that a listing reads.
const MAX_LISTED: usize = 1000;
/// The ending of a record about rules.
const RULES_ENDING: &str = ".rules.json";
const FIELDS_ENDING: &str = ".json";

/// Where confirmations are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustStore {
    directory: PathBuf,
}

/// What was confirmed of one project's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedFields {
    /// The project's path, for people; the name of the record says which project it is about.
    pub project: String,
    /// Hashes of fields by their names, and of files of the tool repository by `file:PATH`.
    pub fields: BTreeMap<String, String>,
}

/// The rules of a tool repository as they were confirmed, with their texts: the next question shows the difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedRules {
    pub project: String,
    pub hash: String,
    pub files: ForeignRules,
}

impl TrustStore {
    /// A store in `directory` itself.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The store of this user: below `TGP_HOME`, else below the user's state directory. `None` without a home.
    #[must_use]
    pub fn of_user(environment: &Environment) -> Option<Self> {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = variable("TGP_HOME")
            .or_else(|| variable("XDG_STATE_HOME").map(|state| state.join("tgp")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/state/tgp")))?;
        // A relative path would be another store for every directory that a command starts in.
        state.is_absolute().then(|| Self::new(state.join(DIRECTORY)))
    }

    /// Whether a process with write access below `directory` could write the store.
    pub(super) fn is_below(&self, directory: &Path) -> bool {
        real_place(&self.directory).starts_with(real_place(directory))
    }

    pub(super) fn fields_record(&self, project: &Path) -> PathBuf {
        self.record(project, FIELDS_ENDING)
    }

    pub(super) fn rules_record(&self, project: &Path) -> PathBuf {
        self.record(project, RULES_ENDING)
    }

    fn record(&self, project: &Path, ending: &str) -> PathBuf {
        let name = canonical::sha256_hex(project.as_os_str().as_bytes());
        self.directory.join(format!("{name}{ending}"))
    }

    /// What was confirmed of a project's configuration.
    ///
    /// # Errors
    /// When the record cannot be believed or read.
    pub fn fields(&self, project: &Path) -> Result<ConfirmedFields, ToolError> {
        Ok(self.read(project, &self.fields_record(project))?.unwrap_or_default())
    }

    /// The rules that were confirmed last.
    ///
    /// # Errors
    /// When the record cannot be believed or read.
    pub fn rules(&self, project: &Path) -> Result<Option<ConfirmedRules>, ToolError> {
        self.read(project, &self.rules_record(project))
    }

    /// Confirms these fields of a project's configuration, and forgets those it no longer has.
    ///
    /// # Errors
    /// When the store is inside the project or cannot be written.
    pub fn confirm_fields(&self, project: &Path, fields: &[SensitiveField]) -> Result<(), ToolError> {
        let mut record = self.fields(project)?;
        record.fields.retain(|name, _| name.starts_with(FILE));
        record.fields.extend(fields.iter().map(|field| (field.name.to_owned(), field_hash(project, field))));
        self.write_fields(project, record)
    }

    /// Confirms the text of a file of the tool repository.
    ///
    /// # Errors
    /// When the store is inside the project or cannot be written.
    pub fn confirm_file(&self, project: &Path, path: &str, text: &str) -> Result<(), ToolError> {
        let mut record = self.fields(project)?;
        record.fields.insert(format!("{FILE}{path}"), file_hash(project, path, text));
        self.write_fields(project, record)
    }

    fn write_fields(&self, project: &Path, record: ConfirmedFields) -> Result<(), ToolError> {
        let record = ConfirmedFields { project: shown(project), ..record };
        self.write(project, &self.fields_record(project), &record)
    }

    /// Confirms the rules of a tool repository.
    ///
    /// # Errors
    /// When the store is inside the project or cannot be written.
    pub fn confirm_rules(&self, project: &Path, files: &ForeignRules) -> Result<(), ToolError> {
        let record = ConfirmedRules {
            project: shown(project),
            hash: rules_hash(project, files),
            files: files.clone(),
        };
        self.write(project, &self.rules_record(project), &record)
    }

    /// Takes back everything that was confirmed of a project; whether there was anything.
    ///
    /// # Errors
    /// When a record cannot be removed.
    pub fn revoke(&self, project: &Path) -> Result<bool, ToolError> {
        let mut found = false;
        for path in [self.fields_record(project), self.rules_record(project)] {
            match std::fs::remove_file(&path) {
                Ok(()) => found = true,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Ok(found)
    }

    /// Every project of which something was confirmed, with what it was.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<BTreeMap<String, Vec<String>>, ToolError> {
        let mut projects: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(projects),
            Err(error) => return Err(at(&self.directory)(error)),
        };
        for entry in entries.flatten().take(MAX_LISTED) {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if name.ends_with(RULES_ENDING) {
                if let Some(record) = believed::<ConfirmedRules>(&path)? {
                    projects.entry(record.project).or_default().push("rules".to_owned());
                }
            } else if name.ends_with(FIELDS_ENDING)
                && let Some(record) = believed::<ConfirmedFields>(&path)?
            {
                projects.entry(record.project).or_default().extend(record.fields.into_keys());
            }
        }
        Ok(projects)
    }

    fn read<T: serde::de::DeserializeOwned>(
        &self,
        project: &Path,
        path: &Path,
    ) -> Result<Option<T>, ToolError> {
        self.check_place(project)?;
        believed(path)
    }

    fn write(&self, project: &Path, path: &Path, record: &impl Serialize) -> Result<(), ToolError> {
        self.check_place(project)?;
        private_directory().recursive(true).create(&self.directory).map_err(at(&self.directory))?;
        let text = serde_json::to_vec_pretty(record).map_err(|error| {
            ToolError::new(Code::Internal, format!("a confirmation cannot be kept: {error}"))
        })?;
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        write_private(&draft, &text).and_then(|()| std::fs::rename(&draft, path)).map_err(at(path))
    }

    /// An agent may write in the project, so what is kept there confirms nothing.
    fn check_place(&self, project: &Path) -> Result<(), ToolError> {
        if !self.is_below(project) {
            return Ok(());
        }
        let message = format!(
            "confirmations are kept in `{}`, which is inside the project, where agents write",
            self.directory.display()
        );
        Err(ToolError::new(Code::Security, message).help("set TGP_HOME to a directory outside the project"))
    }
}

/// Before the name of a file in a record of fields.
const FILE: &str = "file:";

/// The hash of one field of a project.
pub(super) fn field_hash(project: &Path, field: &SensitiveField) -> String {
    hash(&json!({ "project": shown(project), "field": field.name, "value": field.confirmed_value() }))
}

/// The hash of all fields of a project, for `TGP_TRUST`.
#[must_use]
pub fn fields_hash(project: &Path, fields: &[SensitiveField]) -> String {
    let fields: BTreeMap<&str, Value> =
        fields.iter().map(|field| (field.name, field.confirmed_value())).collect();
    hash(&json!({ "project": shown(project), "fields": fields }))
}

/// The hash of the rules of a tool repository, for `TGP_TRUST`.
#[must_use]
pub fn rules_hash(project: &Path, files: &ForeignRules) -> String {
    hash(&json!({ "project": shown(project), "rules": files }))
}

/// The hash of a file of the tool repository.
pub(super) fn file_hash(project: &Path, path: &str, text: &str) -> String {
    hash(&json!({ "project": shown(project), "file": path, "text": text }))
}

pub(super) fn is_file_confirmed(confirmed: &ConfirmedFields, project: &Path, path: &str, text: &str) -> bool {
    confirmed.fields.get(&format!("{FILE}{path}")).is_some_and(|hash| *hash == file_hash(project, path, text))
}

/// A value without a canonical form has a hash that no record has.
fn hash(value: &Value) -> String {
    canonical::hash(value).unwrap_or_else(|_| "none".to_owned())
}

/// A path as text; two paths have two texts.
fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().escape_ascii().to_string(), str::to_owned)
}

/// A record that its owner alone can have written.
fn believed<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, ToolError> {
    let refused = |why: &str| {
        ToolError::new(
            Code::Security,
            format!("the confirmations in `{}` are not used: {why}", path.display()),
        )
        .help("run `tgp trust --revoke`, then `tgp trust`")
    };
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
    if metadata.len() > MAX_RECORD_BYTES {
        return Err(refused("it is too large"));
    }
    let mut text = String::new();
    file.take(MAX_RECORD_BYTES).read_to_string(&mut text).map_err(at(path))?;
    serde_json::from_str(&text).map(Some).map_err(|_| refused("it is damaged"))
}
