//! What an inquiry reads in addition to graph and chronicle: the registry of tools, and the audit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_audit::{Audit, AuditFilter, AuditReader, MAX_TAIL};
use tgp_chronicle::FileChronicle;
use tgp_contract::{RelativePath, ToolError, ToolMetadata, chronicle_of};
use tgp_fs::read_plain;
use tgp_guardian::{
    AuditIndex, FindingSeverity, GuardianFinding, InquirySources, Inspect, PROJECT_CHRONICLE,
};
use tgp_tool_runtime::ToolLibrary;

use crate::state_directory::StateDirectory;

/// Lost events that are reported one by one.
const MAX_LOST: usize = 20;
/// Events of a chronicle that are compared with the audit, the newest ones.
const MAX_EVENTS: usize = 20_000;
/// What helps where events are missing.
const LOST: &str = "restore the chronicle from git or from a backup";
/// Bytes of `meta.json`; some hundred thousand tools.
const MAX_INDEX_BYTES: u64 = 64 << 20;
/// Tools that are compared one by one.
const MAX_TOOLS: usize = 100_000;

pub(super) fn sources(
    library: &Arc<ToolLibrary>,
    audit: &Arc<Audit>,
    chronicle: &Arc<FileChronicle>,
    root: &Path,
    state: &StateDirectory,
) -> InquirySources {
    let (audit, chronicle) = (Arc::clone(audit), Arc::clone(chronicle));
    let records = Arc::new(Records { audit, chronicle, state: state.clone() });
    InquirySources {
        inspectors: vec![
            Arc::new(Registry { library: Arc::clone(library), root: root.to_owned() }),
            Arc::clone(&records) as Arc<dyn Inspect>,
        ],
        audit: Some(records),
    }
}

/// Returns the bytes of `meta.json`; none when it cannot be read.
pub(crate) fn tool_index(root: &Path) -> Vec<u8> {
    read_plain(&root.join("meta.json"), MAX_INDEX_BYTES).unwrap_or_default()
}

/// The tools that `meta.json` knows.
pub(crate) fn known_tools(root: &Path) -> Vec<ToolMetadata> {
    let meta: Value = serde_json::from_slice(&tool_index(root)).unwrap_or_default();
    let tools = meta.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    tools.into_iter().take(MAX_TOOLS).filter_map(|tool| serde_json::from_value(tool).ok()).collect()
}

struct Registry {
    library: Arc<ToolLibrary>,
    root: PathBuf,
}

#[async_trait]
impl Inspect for Registry {
    fn area(&self) -> &str {
        "registry"
    }

    async fn inspect(&self) -> Vec<GuardianFinding> {
        let mut findings = Vec::new();
        for tool in known_tools(&self.root) {
            if !self.root.join(tool.path.as_str()).is_file() {
                let message = format!("meta.json knows {}, and there is no such file", tool.path);
                findings.push(
                    GuardianFinding::new("registry", FindingSeverity::Error, message)
                        .evidence(json!({ "path": tool.path }))
                        .remedy("run `tgp sync`, which derives meta.json again"),
                );
            }
        }
        match self.library.status().await {
            Err(error) => findings.push(
                GuardianFinding::new(
                    "registry",
                    FindingSeverity::Error,
                    format!("the tool repository cannot be read: {error}"),
                )
                .remedy("run `tgp doctor`"),
            ),
            Ok(status) if !status.kept.is_empty() => findings.push(
                GuardianFinding::new(
                    "registry",
                    FindingSeverity::Warning,
                    "branches keep what lost a conflict",
                )
                .evidence(json!({ "branches": status.kept }))
                .remedy("merge what is worth it, and delete the branches with git"),
            ),
            Ok(_) => {}
        }
        findings
    }
}

struct Records {
    audit: Arc<Audit>,
    chronicle: Arc<FileChronicle>,
    state: StateDirectory,
}

impl Records {
    async fn reader(&self) -> Result<Option<AuditReader>, ToolError> {
        self.audit.flush().await?;
        self.state.audit_reader_if_any()
    }
}

impl Records {
    /// Events that the newest entries of the audit name, and that no chronicle has any more.
    fn lost_events(&self, entries: &[Value]) -> Vec<GuardianFinding> {
        let mut known: BTreeMap<RelativePath, BTreeSet<String>> = BTreeMap::new();
        let mut lost = Vec::new();
        for file in entries.iter().filter_map(|entry| entry.pointer("/outcome/files")?.as_array()).flatten() {
            let (Some(path), Some(event)) =
                (file.get("path").and_then(Value::as_str), file.get("event").and_then(Value::as_str))
            else {
                continue;
            };
            let own = RelativePath::new(path).and_then(|path| chronicle_of(&path)).ok();
            let project = RelativePath::new(PROJECT_CHRONICLE).ok();
            let chronicles: Vec<RelativePath> = own.iter().chain(&project).cloned().collect();
            let has = chronicles.iter().any(|chronicle| {
                known.entry(chronicle.clone()).or_insert_with(|| self.events(chronicle)).contains(event)
            });
            if !has && lost.len() < MAX_LOST {
                let unmigrated = own.and_then(|own| self.chronicle.unmigrated_file_of(&own));
                let message = format!("the audit names an event about {path} that no chronicle has");
                lost.push(
                    GuardianFinding::new("chronicle", FindingSeverity::Error, message)
                        .evidence(json!({ "path": path, "eventId": event }))
                        .remedy(match unmigrated {
                            Some(file) => format!("{file} is not read; `tgp chronicle migrate` moves it"),
                            None => LOST.to_owned(),
                        }),
                );
            }
        }
        lost
    }

    /// The ids of a chronicle's newest events; none where it cannot be read, which is reported elsewhere.
    fn events(&self, chronicle: &RelativePath) -> BTreeSet<String> {
        let events = self.chronicle.tail_blocking(chronicle, MAX_EVENTS);
        events.unwrap_or_default().into_iter().filter_map(|event| event.event_id).collect()
    }
}

#[async_trait]
impl Inspect for Records {
    fn area(&self) -> &str {
        "audit"
    }

    async fn inspect(&self) -> Vec<GuardianFinding> {
        let verified = match self.reader().await {
            Ok(Some(reader)) => {
                reader.verify().and_then(|_| reader.tail(&AuditFilter::default(), MAX_TAIL)).map(|entries| {
                    let bodies: Vec<Value> = entries.into_iter().map(|entry| entry.body).collect();
                    self.lost_events(&bodies)
                })
            }
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let broken = |error: ToolError| {
            GuardianFinding::new("audit", FindingSeverity::Error, format!("the audit does not hold: {error}"))
                .remedy("look at it with `tgp audit verify`; `tgp audit restart` sets a broken one aside")
        };
        verified.unwrap_or_else(|error| vec![broken(error)])
    }
}

#[async_trait]
impl AuditIndex for Records {
    async fn missing(&self, references: &[String]) -> Result<Vec<String>, ToolError> {
        let Some(reader) = self.reader().await? else { return Ok(references.to_vec()) };
        let mut missing = Vec::new();
        for reference in references {
            if !has(&reader, reference)? {
                missing.push(reference.clone());
            }
        }
        Ok(missing)
    }
}

/// Whether there is an entry of the call that an event names.
fn has(reader: &AuditReader, reference: &str) -> Result<bool, ToolError> {
    let named: Value = serde_json::from_str(reference).unwrap_or_default();
    let (Some(session), Some(call), Some(time)) = (
        named.get("session").and_then(Value::as_str),
        named.get("callId").and_then(Value::as_str),
        named.get("time").and_then(Value::as_u64),
    ) else {
        return Ok(false);
    };
    let filter = AuditFilter {
        session: Some(session.to_owned()),
        since_ms: Some(time),
        until_ms: Some(time.saturating_add(1)),
        ..AuditFilter::default()
    };
    let calls: BTreeSet<String> = reader
        .tail(&filter, MAX_TAIL)?
        .iter()
        .filter_map(|entry| entry.body.get("callId").and_then(Value::as_str).map(str::to_owned))
        .collect();
    Ok(calls.contains(call))
}
