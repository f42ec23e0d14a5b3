//! What a person has confirmed, kept in the user's state directory and never in a project: one record for the
//! configuration of each project, and one for the rules of its tool repository.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_audit::RecordedDecision;
use tgp_contract::{Code, ToolError, canonical};
use tgp_router::gates::ForeignRules;

use super::fields::{REPOSITORY, SensitiveField, repository_value};
use crate::boot::Environment;
use crate::records::Decision;
use crate::user_state;
use tgp_fs::append_log::at;
use tgp_fs::outside_places;

/// The entry of a confirmation.
const TRUST_CONFIRM: &str = "trust_confirm";
/// The directory of records below the state directory of tgp.
const DIRECTORY: &str = "trust";
/// Bytes of a record that are read: more than the rules of a tool repository can have.
const MAX_RECORD_BYTES: u64 = 48 << 20;
/// Records that a listing reads.
const MAX_LISTED: usize = 1000;
/// The ending of a record about rules.
const RULES_ENDING: &str = ".rules.json";
const FIELDS_ENDING: &str = ".json";
/// The ending of a record about the servers of sessions.
const SERVERS_ENDING: &str = ".servers.json";
/// Sessions of one project whose servers are known.
const MAX_SESSIONS: usize = 1000;

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

/// With which servers the sessions of a project began. Their own files are in the project, which may be a copy from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SessionServers {
    project: String,
    /// Hashes by the ids of sessions, which begin with the time.
    sessions: BTreeMap<String, String>,
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
        Some(Self::new(user_state::directory(environment)?.join(DIRECTORY)))
    }

    /// Whether a process with write access below `directory` could write the store, or what else the user's state
    /// directory holds.
    pub(super) fn is_below(&self, directory: &Path) -> bool {
        let state = self.directory.parent().unwrap_or(&self.directory);
        user_state::is_below(&self.directory, directory) || user_state::is_below(directory, state)
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

    /// Confirms these fields of a project's configuration, and forgets those it no longer has. The decision is in the audit
    /// before.
    ///
    /// # Errors
    /// `ECONFIG` for a field that only its owner confirms; when the store is inside the project or cannot be written.
    pub fn confirm_fields(
        &self,
        project: &Path,
        fields: &[SensitiveField],
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        check_may_be_stored(fields)?;
        decision.take_effect();
        let mut record = self.fields(project)?;
        record.fields.retain(|name, _| name.starts_with(FILE));
        record.fields.extend(fields.iter().map(|field| (field.name.to_owned(), field_hash(project, field))));
        self.write_fields(project, with_own_repository(project, record))
    }

    /// Returns the decision to confirm the repository of a project that uses no place outside of it. `None` where it is
    /// confirmed already, and where it leads out: then it is confirmed where its places are shown.
    ///
    /// # Errors
    /// When the record cannot be believed or read.
    pub fn own_repository_decision(&self, project: &Path) -> Result<Option<Decision>, ToolError> {
        let record = self.fields(project)?;
        let confirmed = with_own_repository(project, record.clone());
        if confirmed == record {
            return Ok(None);
        }
        let hashes = json!({ REPOSITORY: confirmed.fields.get(REPOSITORY) });
        let content = json!({ "project": shown_path(project), "fields": hashes });
        Ok(Some(Decision::new(TRUST_CONFIRM, content)))
    }

    /// Confirms the repository of a project, if it uses no place outside of it: its work trees and submodules need no question
    /// then. The decision is in the audit before.
    ///
    /// # Errors
    /// When the store is inside the project or cannot be written.
    pub fn confirm_own_repository(
        &self,
        project: &Path,
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        decision.take_effect();
        let record = self.fields(project)?;
        self.write_fields(project, with_own_repository(project, record))
    }

    /// Confirms the text of a file of the tool repository.
    ///
    /// # Errors
    /// When the store is inside the project or cannot be written.
    pub fn confirm_file(
        &self,
        project: &Path,
        path: &str,
        text: &str,
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        decision.take_effect();
        let mut record = self.fields(project)?;
        record.fields.insert(format!("{FILE}{path}"), file_hash(project, path, text));
        self.write_fields(project, record)
    }

    /// Notes the server with which a session of this user began; those of the oldest sessions are forgotten.
    pub(crate) fn note_server(&self, project: &Path, session: &str, server: &Value) -> Result<(), ToolError> {
        let path = self.record(project, SERVERS_ENDING);
        let mut record: SessionServers = self.read(project, &path)?.unwrap_or_default();
        record.project = shown_path(project);
        record.sessions.insert(session.to_owned(), server_hash(project, session, server));
        while record.sessions.len() > MAX_SESSIONS {
            record.sessions.pop_first();
        }
        self.write(project, &path, &record)
    }

    /// Whether a session of this user began with this server. A record that cannot be believed knows none.
    pub(crate) fn knows_server(&self, project: &Path, session: &str, server: &Value) -> bool {
        let record = self.read::<SessionServers>(project, &self.record(project, SERVERS_ENDING));
        let known = record.ok().flatten().and_then(|record| record.sessions.get(session).cloned());
        known.is_some_and(|hash| hash == server_hash(project, session, server))
    }

    fn write_fields(&self, project: &Path, record: ConfirmedFields) -> Result<(), ToolError> {
        let record = ConfirmedFields { project: shown_path(project), ..record };
        self.write(project, &self.fields_record(project), &record)
    }

    /// Confirms the rules of a tool repository.
    ///
    /// # Errors
    /// When the store is inside the project or cannot be written.
    pub fn confirm_rules(
        &self,
        project: &Path,
        files: &ForeignRules,
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        decision.take_effect();
        let record = ConfirmedRules {
            project: shown_path(project),
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
        let servers = self.record(project, SERVERS_ENDING);
        for path in [self.fields_record(project), self.rules_record(project), servers] {
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
                && !name.ends_with(SERVERS_ENDING)
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
        user_state::write(path, record)
    }

    fn check_place(&self, project: &Path) -> Result<(), ToolError> {
        user_state::check_outside(&self.directory, project, "confirmations")
    }
}

/// Before the name of a file in a record of fields.
const FILE: &str = "file:";

/// The record with the repository of the project itself, if nothing of it is outside.
fn with_own_repository(project: &Path, mut record: ConfirmedFields) -> ConfirmedFields {
    if project.join(".git").is_dir() && outside_places(project).is_ok_and(|places| places.is_empty()) {
        record.fields.insert(REPOSITORY.to_owned(), repository_hash(project, &BTreeSet::new()));
    }
    record
}

/// The hash of the places outside of a project that its repository uses.
pub(super) fn repository_hash(project: &Path, places: &BTreeSet<PathBuf>) -> String {
    hash(&json!({ "project": shown_path(project), "field": REPOSITORY, "value": repository_value(places) }))
}

/// The hash of one field of a project.
pub(super) fn field_hash(project: &Path, field: &SensitiveField) -> String {
    hash(&json!({ "project": shown_path(project), "field": field.name, "value": field.confirmed_value() }))
}

/// The hash of all fields of a project, for `TGP_TRUST`.
#[must_use]
pub fn fields_hash(project: &Path, fields: &[SensitiveField]) -> String {
    let fields: BTreeMap<&str, Value> =
        fields.iter().map(|field| (field.name, field.confirmed_value())).collect();
    hash(&json!({ "project": shown_path(project), "fields": fields }))
}

/// Returns the decision to confirm fields, as the audit keeps it: names and hashes.
///
/// # Errors
/// `ECONFIG` for a field that only its owner confirms: what cannot hold is not recorded.
pub fn fields_decision(project: &Path, fields: &[SensitiveField]) -> Result<Decision, ToolError> {
    check_may_be_stored(fields)?;
    let hashes: BTreeMap<&str, String> =
        fields.iter().map(|field| (field.name, field_hash(project, field))).collect();
    let content =
        json!({ "project": shown_path(project), "fields": hashes, "hash": fields_hash(project, fields) });
    Ok(Decision::new(TRUST_CONFIRM, content))
}

/// Refuses fields that the record of this user cannot confirm.
fn check_may_be_stored(fields: &[SensitiveField]) -> Result<(), ToolError> {
    let Some(field) = fields.iter().find(|field| !super::may_be_stored(field)) else { return Ok(()) };
    let message = format!("root cannot confirm `{}`: the project belongs to another user", field.name);
    Err(ToolError::new(Code::Config, message).help(
        "run the command as that user; in a container, set TGP_TRUST to what `tgp trust --print` shows",
    ))
}

/// Returns the decision to confirm a file of the tool repository.
#[must_use]
pub fn file_decision(project: &Path, path: &str, text: &str) -> Decision {
    let hash = file_hash(project, path, text);
    Decision::new(TRUST_CONFIRM, json!({ "project": shown_path(project), "file": path, "hash": hash }))
}

/// Returns the decision to confirm the rules of a tool repository.
#[must_use]
pub fn rules_decision(project: &Path, files: &ForeignRules) -> Decision {
    let names: Vec<&String> = files.keys().collect();
    let hash = rules_hash(project, files);
    Decision::new("policy_trust", json!({ "project": shown_path(project), "files": names, "hash": hash }))
}

/// The hash of the rules of a tool repository, for `TGP_TRUST`.
#[must_use]
pub fn rules_hash(project: &Path, files: &ForeignRules) -> String {
    hash(&json!({ "project": shown_path(project), "rules": files }))
}

/// The hash of a file of the tool repository.
pub(super) fn file_hash(project: &Path, path: &str, text: &str) -> String {
    hash(&json!({ "project": shown_path(project), "file": path, "text": text }))
}

fn server_hash(project: &Path, session: &str, server: &Value) -> String {
    hash(&json!({ "project": shown_path(project), "session": session, "server": server }))
}

pub(super) fn is_file_confirmed(confirmed: &ConfirmedFields, project: &Path, path: &str, text: &str) -> bool {
    confirmed.fields.get(&format!("{FILE}{path}")).is_some_and(|hash| *hash == file_hash(project, path, text))
}

/// A value without a canonical form has a hash that no record has.
fn hash(value: &Value) -> String {
    canonical::hash(value).unwrap_or_else(|_| "none".to_owned())
}

/// A path as text; two paths have two texts.
pub(super) fn shown_path(path: &Path) -> String {
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
    user_state::read(path, MAX_RECORD_BYTES, refused)
}
