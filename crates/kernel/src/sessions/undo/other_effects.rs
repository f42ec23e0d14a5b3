//! What a session did that no file brings back: rows, commits, requests. Known from the audit.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_audit::{AuditFilter, MAX_TAIL};
use tgp_contract::ToolError;

use crate::state_directory::StateDirectory;

/// Calls of a session whose effects are not undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherEffect {
    /// What they had an effect on.
    pub kind: String,
    /// How many of the session's last calls.
    pub calls: u64,
}

/// The effects of a session's calls that are not on files of the project.
pub(super) fn other_effects(state: &StateDirectory, session: &str) -> Result<Vec<OtherEffect>, ToolError> {
    let Some(reader) = state.audit_reader_if_any()? else { return Ok(Vec::new()) };
    let filter = AuditFilter { session: Some(session.to_owned()), ..AuditFilter::default() };
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in reader.tail(&filter, MAX_TAIL)? {
        if let Some(kind) = kind_of(&entry.body) {
            *counts.entry(kind).or_default() += 1;
        }
    }
    Ok(counts.into_iter().map(|(kind, calls)| OtherEffect { kind: kind.to_owned(), calls }).collect())
}

/// What a call had an effect on, where that is not a file of the project.
fn kind_of(body: &Value) -> Option<&'static str> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let has_effect = matches!(text("/execution"), "done" | "unknown")
        && text("/effect") != "read"
        && body.get("dryRun").and_then(Value::as_bool) != Some(true);
    if !has_effect {
        return None;
    }
    let targets = body.get("targets").and_then(Value::as_array);
    let has_target = |kind: &str| {
        let is_kind = |target: &Value| target.get("kind").and_then(Value::as_str) == Some(kind);
        targets.is_some_and(|targets| targets.iter().any(is_kind))
    };
    match text("/tool") {
        "exec_sql" => {
            let reads = |target: &Value| target.get("reads").and_then(Value::as_bool) == Some(true);
            let only_reads = targets.is_some_and(|targets| targets.iter().all(reads));
            (!only_reads).then_some("database")
        }
        "git_commit" => Some("git commits"),
        "package_install" => Some("installed packages"),
        "write_file" | "patch_file" => Some("tool repository"),
        "sync" | "call_upstream" => Some("network"),
        "call_host" => Some("host program"),
        "fetch" => {
            (!matches!(text("/arguments/method"), "" | "GET" | "HEAD" | "get" | "head")).then_some("network")
        }
        "shell_exec" if has_target("network") => Some("network"),
        "shell_exec" if text("/arguments/template") == "build" => Some("build output"),
        _ => None,
    }
}
