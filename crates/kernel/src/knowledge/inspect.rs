//! What an inquiry looks at besides graph and chronicle: the registry of tools, and the audit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_agent::{AuditIndex, Finding, Gravity, InquirySources, Inspect};
use tgp_audit::{Audit, AuditReader, Filter, MAX_TAIL};
use tgp_contract::{Code, ToolError, ToolMetadata};
use tgp_tools::Library;

use crate::records::{audit_anchor, audit_file};

/// Tools that are compared one by one.
const MAX_TOOLS: usize = 100_000;

pub(super) fn sources(library: &Arc<Library>, audit: &Arc<Audit>, root: &Path) -> InquirySources {
    let records = Arc::new(Records { audit: Arc::clone(audit), root: root.to_owned() });
    InquirySources {
        inspectors: vec![
            Arc::new(Registry { library: Arc::clone(library), root: root.to_owned() }),
            Arc::clone(&records) as Arc<dyn Inspect>,
        ],
        audit: Some(records),
    }
}

/// The tools that `meta.json` knows.
pub(super) fn known_tools(root: &Path) -> Vec<ToolMetadata> {
    let text = std::fs::read_to_string(root.join("meta.json")).unwrap_or_default();
    let meta: Value = serde_json::from_str(&text).unwrap_or_default();
    let tools = meta.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    tools.into_iter().take(MAX_TOOLS).filter_map(|tool| serde_json::from_value(tool).ok()).collect()
}

struct Registry {
    library: Arc<Library>,
    root: PathBuf,
}

#[async_trait]
impl Inspect for Registry {
    fn area(&self) -> &str {
        "registry"
    }

    async fn inspect(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for tool in known_tools(&self.root) {
            if !self.root.join(tool.path.as_str()).is_file() {
                let message = format!("meta.json knows {}, and there is no such file", tool.path);
                findings.push(
                    Finding::new("registry", Gravity::Error, message)
                        .evidence(json!({ "path": tool.path }))
                        .remedy("run `tgp sync`, which derives meta.json anew"),
                );
            }
        }
        match self.library.status().await {
            Err(error) => findings.push(
                Finding::new(
                    "registry",
                    Gravity::Error,
                    format!("the tool repository cannot be read: {error}"),
                )
                .remedy("run `tgp doctor`"),
            ),
            Ok(status) if !status.kept.is_empty() => findings.push(
                Finding::new("registry", Gravity::Warning, "branches keep what lost a conflict")
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
    root: PathBuf,
}

impl Records {
    async fn reader(&self) -> Result<Option<AuditReader>, ToolError> {
        self.audit.flush().await?;
        match AuditReader::open(audit_file(&self.root), audit_anchor(&self.root)) {
            Err(error) if error.code == Code::NotFound => Ok(None),
            other => other.map(Some),
        }
    }
}

#[async_trait]
impl Inspect for Records {
    fn area(&self) -> &str {
        "audit"
    }

    async fn inspect(&self) -> Vec<Finding> {
        let verified = match self.reader().await {
            Ok(Some(reader)) => reader.verify().map(|_| ()),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let broken = |error: ToolError| {
            Finding::new("audit", Gravity::Error, format!("the audit does not hold: {error}"))
                .remedy("look at it with `tgp audit verify`; `tgp audit restart` sets a broken one aside")
        };
        verified.err().map(broken).into_iter().collect()
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
    let filter = Filter {
        session: Some(session.to_owned()),
        since_ms: Some(time),
        until_ms: Some(time.saturating_add(1)),
        ..Filter::default()
    };
    let calls: BTreeSet<String> = reader
        .tail(&filter, MAX_TAIL)?
        .iter()
        .filter_map(|entry| entry.body.get("callId").and_then(Value::as_str).map(str::to_owned))
        .collect();
    Ok(calls.contains(call))
}
