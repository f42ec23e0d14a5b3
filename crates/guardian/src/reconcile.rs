//! Accepting what is there: one event for one edit, however often and from how many processes it is wanted.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{AppendResult, ChronicleEvent, Code, RelativePath, ToolError, canonical};

use crate::claims::{RECONCILIATION, RECONCILING, Scope, announced};
use crate::guardian::own_chronicle;
use crate::halt::{FirstBreak, decided};
use crate::messages::count;
use crate::{Guardian, PROJECT_CHRONICLE};

/// Rows that one reconciliation accepts: more are not a decision any more.
const MAX_ACCEPTED: usize = 1_000;
/// The longest query fits, and the event stays one that people read.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// An edit that a person accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReconcileEdit {
    pub file_path: String,
    /// What distinguishes this edit from another of the same file: a diff's hash, a commit.
    pub diff_ref: String,
    /// The invariant, or the assertion's query, whose broken rows are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a reconciliation came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reconciled {
    /// Always true: what could not be done is an error.
    pub ok: bool,
    pub event_id: String,
    /// The chronicle that has the event.
    pub chronicle: RelativePath,
    /// False when it was there already.
    pub appended: bool,
    /// Whether there was anything to accept: a claim that is not true, or rows that break the invariant.
    pub settled: bool,
    /// Whether this has lifted a halt.
    pub lifted: bool,
    /// What is still broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_broken: Option<ToolError>,
}

/// What is there now, which a reconciliation accepts.
struct State {
    present: bool,
    /// The claim of the chronicle that it is about.
    basis: Option<String>,
    /// The claim that is not true.
    settles: Option<String>,
    /// What breaks the invariant that the edit names.
    accepted: Option<BTreeSet<String>>,
}

impl State {
    /// Distinguishes one reconciliation from another: the same state of the same file is accepted once, and a file that
    /// came and went again is another state. The reason is not part of it.
    fn key(&self, edit: &ReconcileEdit) -> String {
        canonical::hash_exact(json!([
            edit.file_path,
            edit.diff_ref,
            edit.invariant,
            self.basis,
            self.present,
            self.accepted
        ]))
    }
}

impl Guardian {
    /// Appends one `RECONCILIATION` event for an edit in its present state, and lifts the halts in force when nothing is
    /// broken any more.
    ///
    /// # Errors
    /// `EVALIDATION` for an edit without a path or reference, `ENOTFOUND` for an unknown invariant.
    pub async fn reconcile(&self, edit: &ReconcileEdit) -> Result<Reconciled, ToolError> {
        let path = checked(edit)?;
        // Two spellings of a path are one file.
        let edit = &ReconcileEdit { file_path: path.as_str().to_owned(), ..edit.clone() };
        let own = RelativePath::new(&format!("{path}.sage"))?;
        let event = self.agreed(edit, &path).await?;
        let rows = event.fields.get("accepted").and_then(Value::as_array).map_or(0, Vec::len);
        let settled = event.fields.contains_key("settles") || rows > 0;
        let (chronicle, done) = match self.parts.chronicle.append(&own, event.clone()).await {
            // A file outside the chronicle's scope does not have its own.
            Err(error) if error.code == Code::Permission => {
                let shared = RelativePath::new(PROJECT_CHRONICLE)?;
                let done = self.parts.chronicle.append(&shared, event).await?;
                (shared, done)
            }
            done => (own, done?),
        };
        let open = self.open_halts().await?;
        let FirstBreak { broken, check } = self.first_break(&[], &open).await?;
        let lifted = broken.is_none() && self.lift(&decided(open, &check)).await?;
        let mut still_broken = broken.map(|broken| broken.error());
        if still_broken.is_none() && check.is_undecided() {
            // What is undecided now may still be broken: its halt stays.
            still_broken = self.halted().await?.map(|halt| halt.error());
        }
        let AppendResult { event_id, appended } = done;
        Ok(Reconciled { ok: true, event_id, chronicle, appended, settled, lifted, still_broken })
    }

    /// The event that all who reconcile this edit append, so that the chronicle keeps it once. Each of them says in the
    /// Guardian's chronicle what the event would be; that chronicle only grows, so all see the same first proposal.
    async fn agreed(&self, edit: &ReconcileEdit, path: &RelativePath) -> Result<ChronicleEvent, ToolError> {
        let _writing = self.writing.lock().await;
        let state = self.state_of(edit, path).await?;
        let key = state.key(edit);
        if let Some(event) = self.proposal(&key).await? {
            return Ok(event);
        }
        let event = self.reconciliation(edit, state, &key);
        let mut fields = Map::new();
        fields.insert("edit".to_owned(), json!(key));
        fields.insert("event".to_owned(), json!(event));
        let proposal = self.event(RECONCILING, "reconciler", Some(path.as_str().to_owned()), fields);
        self.parts.chronicle.append(&own_chronicle()?, proposal).await?;
        Ok(self.proposal(&key).await?.unwrap_or(event))
    }

    async fn proposal(&self, key: &str) -> Result<Option<ChronicleEvent>, ToolError> {
        let events = self.own_events().await?;
        let is_this = |event: &&ChronicleEvent| event.fields.get("edit").and_then(Value::as_str) == Some(key);
        Ok(events.iter().filter(is_this).find_map(announced))
    }

    async fn state_of(&self, edit: &ReconcileEdit, path: &RelativePath) -> Result<State, ToolError> {
        let known = self.known(&BTreeSet::from([path.clone()])).await?;
        let present = known.contains(path.as_str()) || self.is_on_disk(path);
        let memory = self.remember(Scope::All).await?;
        let claim = memory.claims.get(path);
        let untrue = claim.filter(|claim| claim.present != present);
        let accepted = match &edit.invariant {
            Some(name) => Some(self.acceptable(name).await?),
            None => None,
        };
        Ok(State {
            present,
            basis: claim.and_then(|claim| claim.basis_of(present)),
            settles: untrue.map(|claim| claim.event_id.clone()),
            accepted,
        })
    }

    fn reconciliation(&self, edit: &ReconcileEdit, state: State, key: &str) -> ChronicleEvent {
        let mut fields = Map::new();
        fields.insert("diffRef".to_owned(), json!(edit.diff_ref));
        fields.insert("edit".to_owned(), json!(key));
        fields.insert("present".to_owned(), json!(state.present));
        let texts = [
            ("basis", &state.basis),
            ("settles", &state.settles),
            ("reason", &edit.reason),
            ("invariant", &edit.invariant),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.insert(name.to_owned(), json!(text));
            }
        }
        if let Some(accepted) = state.accepted {
            fields.insert("accepted".to_owned(), json!(accepted));
        }
        self.event(RECONCILIATION, "reconciler", Some(edit.file_path.clone()), fields)
    }

    /// What breaks an invariant now.
    async fn acceptable(&self, name: &str) -> Result<BTreeSet<String>, ToolError> {
        let invariants = self.invariants()?;
        let broken = match invariants.named(name) {
            Some(invariant) => {
                self.broken_now(std::slice::from_ref(invariant), &invariants).await?.broken.pop()
            }
            None => {
                let open = self.open_halts().await?;
                let mut halting = open.into_iter().rev().filter_map(|halt| halt.assertion);
                let Some(assertion) = halting.find(|one| one.cypher == name) else {
                    let names = invariants.iter().map(|invariant| invariant.name.as_str());
                    let near = tgp_text::nearest(name, names);
                    let help = near.map_or_else(
                        || "name an invariant of `.sage/invariants.yml`, or the query that halted".to_owned(),
                        |near| format!("did you mean `{near}`?"),
                    );
                    let message = format!("there is no invariant `{}`", name.escape_debug());
                    return Err(ToolError::new(Code::NotFound, message).help(help));
                };
                self.broken_assertions(&[&assertion], &invariants).await?.broken.pop()
            }
        };
        let is_cut = broken.as_ref().is_some_and(|broken| broken.cut);
        let accepted = broken.map(|broken| broken.fingerprints()).unwrap_or_default();
        // What was not shown cannot be accepted.
        if is_cut || accepted.len() > MAX_ACCEPTED {
            let shown = if is_cut { accepted.len() } else { MAX_ACCEPTED };
            let message = format!("more than {} break `{name}`", count(shown, "row"));
            return Err(ToolError::new(Code::Validation, message)
                .help("narrow the invariant instead of accepting so much"));
        }
        Ok(accepted)
    }
}

fn checked(edit: &ReconcileEdit) -> Result<RelativePath, ToolError> {
    let path = RelativePath::new(&edit.file_path)?;
    let texts = [Some(&edit.diff_ref), edit.invariant.as_ref(), edit.reason.as_ref()];
    let longest = texts.into_iter().flatten().map(String::len).max().unwrap_or(0);
    let problem = if path.is_root() {
        "it names no file".to_owned()
    } else if path.as_str().ends_with(".sage") {
        format!("`{path}` is a chronicle; name the file that it tells of")
    } else if edit.diff_ref.trim().is_empty() {
        "its `diffRef` is empty".to_owned()
    } else if longest > MAX_TEXT_BYTES {
        format!("one of its texts has {longest} bytes, more than {MAX_TEXT_BYTES}")
    } else {
        return Ok(path);
    };
    Err(ToolError::new(Code::Validation, format!("the edit cannot be reconciled: {problem}"))
        .help("give `filePath` below the project and `diffRef`, such as the hash of the diff"))
}
