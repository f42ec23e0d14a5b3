//! Accepting what is there: one event for one edit, however often and from how many processes it is wanted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{ChronicleEvent, Code, RelativePath, ToolError};

use super::claims::{MAX_SHARED_EVENTS, RECONCILIATION, Scope};
use super::halt::own_chronicle;
use super::{Guardian, Halt, PROJECT_CHRONICLE};
use crate::routing::hash;

/// The event in the Guardian's chronicle that says what a reconciliation will be.
const RECONCILING: &str = "RECONCILING";
/// Rows that one reconciliation accepts: more are no decision any more.
const MAX_ACCEPTED: usize = 1_000;
/// The longest query fits, and the event stays one that people read.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// An edit that somebody stands by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edit {
    pub file_path: String,
    /// What tells this edit from another of the same file: a diff's hash, a commit.
    pub diff_ref: String,
    /// The invariant, or the assertion's query, whose broken rows are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a reconciliation came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconciled {
    /// Always true: what could not be done is an error.
    pub ok: bool,
    pub event_id: String,
    /// The chronicle that has the event.
    pub chronicle: RelativePath,
    /// False when it was there already.
    pub appended: bool,
    /// Whether this has lifted a halt.
    pub lifted: bool,
    /// What is still broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_broken: Option<ToolError>,
}

impl Guardian {
    /// Appends one `RECONCILIATION` event for an edit, and lifts the halt in force when nothing is broken any more.
    ///
    /// # Errors
    /// `EVALIDATION` for an edit without a path or reference, `ENOTFOUND` for an invariant that nobody knows.
    pub async fn reconcile(&self, edit: &Edit) -> Result<Reconciled, ToolError> {
        let path = checked(edit)?;
        // Two spellings of a path are one file.
        let edit = &Edit { file_path: path.as_str().to_owned(), ..edit.clone() };
        let key = hash(&json!(edit));
        let own = RelativePath::new(&format!("{path}.sage"))?;
        let shared = RelativePath::new(PROJECT_CHRONICLE)?;
        let found = match self.find(&own, &key).await? {
            Some(event) => Some((own.clone(), event)),
            None => self.find(&shared, &key).await?.map(|event| (shared.clone(), event)),
        };
        let (chronicle, event_id, appended) = match found {
            Some((chronicle, event)) => (chronicle, event.event_id.unwrap_or_default(), false),
            None => {
                let event = self.agreed(edit, &path, &key).await?;
                let (chronicle, done) = match self.parts.chronicle.append(&own, event.clone()).await {
                    // A file outside the chronicle's scope has none of its own.
                    Err(error) if error.code == Code::Permission => {
                        (shared.clone(), self.parts.chronicle.append(&shared, event).await?)
                    }
                    done => (own, done?),
                };
                (chronicle, done.event_id, done.appended)
            }
        };
        let open = self.halted().await?;
        let broken = self.first_break(&[], open.as_ref()).await?;
        let lifted = broken.is_none() && self.lift().await?;
        let still_broken = broken.map(|broken| broken.error());
        Ok(Reconciled { ok: true, event_id, chronicle, appended, lifted, still_broken })
    }

    async fn find(&self, chronicle: &RelativePath, key: &str) -> Result<Option<ChronicleEvent>, ToolError> {
        let events = match self.parts.chronicle.tail(chronicle, MAX_SHARED_EVENTS).await {
            Err(error) if error.code == Code::Permission => return Ok(None),
            events => events?,
        };
        Ok(events.into_iter().find(|event| {
            event.kind == RECONCILIATION && event.fields.get("edit").and_then(Value::as_str) == Some(key)
        }))
    }

    /// The event that all who reconcile this edit append, so that the chronicle keeps it once. Each of them says in the
    /// Guardian's chronicle what the event would be; that chronicle only grows, so all see the same first proposal.
    async fn agreed(&self, edit: &Edit, path: &RelativePath, key: &str) -> Result<ChronicleEvent, ToolError> {
        let _writing = self.writing.lock().await;
        if let Some(event) = self.proposal(key).await? {
            return Ok(event);
        }
        let event = self.reconciliation(edit, path, key).await?;
        let mut fields = Map::new();
        fields.insert("edit".to_owned(), json!(key));
        fields.insert("event".to_owned(), json!(event));
        let proposal = self.event(RECONCILING, "reconciler", Some(path.as_str().to_owned()), fields);
        self.parts.chronicle.append(&own_chronicle()?, proposal).await?;
        Ok(self.proposal(key).await?.unwrap_or(event))
    }

    async fn proposal(&self, key: &str) -> Result<Option<ChronicleEvent>, ToolError> {
        let events = self.parts.chronicle.tail(&own_chronicle()?, MAX_SHARED_EVENTS).await?;
        let first = events.into_iter().find(|event| {
            event.kind == RECONCILING && event.fields.get("edit").and_then(Value::as_str) == Some(key)
        });
        Ok(first.and_then(|mut event| {
            let event: ChronicleEvent = serde_json::from_value(event.fields.remove("event")?).ok()?;
            (event.kind == RECONCILIATION).then_some(event)
        }))
    }

    async fn reconciliation(
        &self,
        edit: &Edit,
        path: &RelativePath,
        key: &str,
    ) -> Result<ChronicleEvent, ToolError> {
        let known = self.known(&BTreeSet::from([path.clone()])).await?;
        let present = known.contains(path.as_str()) || self.is_on_disk(path);
        let mut fields = Map::new();
        fields.insert("diffRef".to_owned(), json!(edit.diff_ref));
        fields.insert("edit".to_owned(), json!(key));
        fields.insert("present".to_owned(), json!(present));
        let memory = self.remember(Scope::All).await?;
        if let Some(claim) = memory.claims.get(path).filter(|claim| claim.present != present) {
            fields.insert("settles".to_owned(), json!(claim.event_id));
        }
        if let Some(reason) = &edit.reason {
            fields.insert("reason".to_owned(), json!(reason));
        }
        if let Some(name) = &edit.invariant {
            let accepted = self.acceptable(name).await?;
            fields.insert("invariant".to_owned(), json!(name));
            fields.insert("accepted".to_owned(), json!(accepted));
        }
        Ok(self.event(RECONCILIATION, "reconciler", Some(path.as_str().to_owned()), fields))
    }

    /// What breaks an invariant now.
    async fn acceptable(&self, name: &str) -> Result<BTreeSet<String>, ToolError> {
        let invariants = self.invariants()?;
        let broken = match invariants.named(name) {
            Some(invariant) => self.broken_now(std::slice::from_ref(invariant)).await?.pop(),
            None => {
                let open: Option<Halt> = self.halted().await?;
                let assertion = open.and_then(|halt| halt.assertion).filter(|one| one.cypher == name);
                let Some(assertion) = assertion else {
                    let names = invariants.iter().map(|invariant| invariant.name.as_str());
                    let near = super::spelling::nearest(name, names);
                    let help = near.map_or_else(
                        || "name an invariant of `.sage/invariants.yml`, or the query that halted".to_owned(),
                        |near| format!("did you mean `{near}`?"),
                    );
                    let message = format!("there is no invariant `{}`", name.escape_debug());
                    return Err(ToolError::new(Code::NotFound, message).help(help));
                };
                self.broken_assertions(&[&assertion]).await?.pop()
            }
        };
        let accepted = broken.map(|broken| broken.fingerprints()).unwrap_or_default();
        if accepted.len() > MAX_ACCEPTED {
            let message = format!("{} rows break `{name}`, more than {MAX_ACCEPTED}", accepted.len());
            return Err(ToolError::new(Code::Validation, message)
                .help("narrow the invariant instead of accepting so much"));
        }
        Ok(accepted)
    }
}

fn checked(edit: &Edit) -> Result<RelativePath, ToolError> {
    let path = RelativePath::new(&edit.file_path)?;
    let texts = [Some(&edit.diff_ref), edit.invariant.as_ref(), edit.reason.as_ref()];
    let longest = texts.into_iter().flatten().map(String::len).max().unwrap_or(0);
    let problem = if path.is_root() {
        "it names no file".to_owned()
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
