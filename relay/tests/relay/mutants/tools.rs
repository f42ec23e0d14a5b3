//! Tools with one fault each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{
    CallContext, CallRecord, Cancellation, Code, ToolCall, ToolCaller, ToolDefinition, ToolError, ToolResult,
};
use tgp_fs::DiskFs;
use tgp_relay::Substitutes;
use tgp_relay_fakes::FakeTools;

use super::{Line, Mutant, corpus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    IgnoresHash,
    IgnoresHashOnDelete,
    IgnoresHashOfAbsent,
    WritesThenConflicts,
    OtherConflict,
    OtherHash,
    FollowsUp,
    FollowsAbsolute,
    FollowsFileLinks,
    FollowsFolderLinks,
    TellsOfOutside,
    RunsDry,
    RandomPreview,
    EmptyPreview,
    TakesUnknown,
    TakesMissing,
    WritesThenChecks,
    OtherValidation,
    EditsNothing,
    DeletesNothing,
    WritesNothing,
    ReadsOnce,
    ReadsNothing,
    EchoesNothing,
    KnowsNoAlias,
    OpenSchemas,
    LooseTypes,
    NothingRequired,
    ForgedTakesUnknown,
    ForgedTakesText,
    ForgedNeedsNothing,
}

const TABLE: &[Line<Fault>] = &[
    (
        Fault::IgnoresHash,
        "ignores-hash",
        "a file that has not `expected_sha256` is ECONFLICT",
        &["t1.expected-hash"],
    ),
    (
        Fault::IgnoresHashOnDelete,
        "ignores-hash-on-delete",
        "fs_delete compares `expected_sha256`",
        &["t1.expected-hash"],
    ),
    (
        Fault::IgnoresHashOfAbsent,
        "ignores-hash-of-absent",
        "a file that is not there has no hash",
        &["t1.expected-hash"],
    ),
    (
        Fault::WritesThenConflicts,
        "writes-then-conflicts",
        "a conflict changes nothing",
        &["t1.expected-hash"],
    ),
    (Fault::OtherConflict, "other-conflict", "a conflict is ECONFLICT", &["t1.expected-hash"]),
    (Fault::OtherHash, "other-hash", "Read gives the hash of the file", &["t1.expected-hash"]),
    (Fault::FollowsUp, "follows-up", "`..` does not lead out of the project", &["t1.inside-the-project"]),
    (Fault::FollowsAbsolute, "follows-absolute", "an absolute path is refused", &["t1.inside-the-project"]),
    (
        Fault::FollowsFileLinks,
        "follows-file-links",
        "a link to a file outside is not followed",
        &["t1.inside-the-project"],
    ),
    (
        Fault::FollowsFolderLinks,
        "follows-folder-links",
        "a link to a folder outside is not followed",
        &["t1.inside-the-project"],
    ),
    (
        Fault::TellsOfOutside,
        "tells-of-outside",
        "a refusal tells nothing of what is outside",
        &["t1.inside-the-project"],
    ),
    (Fault::RunsDry, "runs-dry", "a dry run changes nothing", &["t1.dry-run-mutators"]),
    (Fault::RandomPreview, "random-preview", "the same preview comes twice", &["t1.dry-run-mutators"]),
    (Fault::EmptyPreview, "empty-preview", "a preview shows what would change", &["t1.dry-run-mutators"]),
    (Fault::TakesUnknown, "takes-unknown", "unknown arguments are EVALIDATION", &["t1.malformed-arguments"]),
    (Fault::TakesMissing, "takes-missing", "missing arguments are EVALIDATION", &["t1.malformed-arguments"]),
    (
        Fault::WritesThenChecks,
        "writes-then-checks",
        "arguments are checked before anything is done",
        &["t1.malformed-arguments"],
    ),
    (
        Fault::OtherValidation,
        "other-validation",
        "arguments that do not fit are EVALIDATION",
        &["t1.malformed-arguments"],
    ),
    (
        Fault::EditsNothing,
        "edits-nothing",
        "Edit does what its preview says",
        &["t1.dry-run-mutators", "t1.expected-hash"],
    ),
    (Fault::DeletesNothing, "deletes-nothing", "fs_delete deletes", &["t1.expected-hash"]),
    (Fault::WritesNothing, "writes-nothing", "Write writes", &["t3.veto", "t1.backpressure"]),
    (Fault::ReadsOnce, "reads-once", "Read gives the file as it is", &["t1.backpressure"]),
    (Fault::ReadsNothing, "reads-nothing", "Read gives the content", &["t1.loop", "t4.execute"]),
    (Fault::EchoesNothing, "echoes-nothing", "Echo says the text again", &["t1.loop"]),
    (
        Fault::KnowsNoAlias,
        "knows-no-alias",
        "tools are called by their aliases",
        &["t1.loop", "t1.dry-run-mutators"],
    ),
    (Fault::OpenSchemas, "open-schemas", "schemas allow no other properties", &["t4.tool-schema"]),
    (Fault::LooseTypes, "loose-types", "schemas say the types of arguments", &["t4.tool-schema"]),
    (Fault::NothingRequired, "nothing-required", "schemas say what is required", &["t4.tool-schema"]),
    (
        Fault::ForgedTakesUnknown,
        "forged-takes-unknown",
        "unknown arguments of a forged tool are EVALIDATION",
        &["t4.forged-schema"],
    ),
    (Fault::ForgedTakesText, "forged-takes-text", "a forged tool's types are checked", &["t4.forged-schema"]),
    (
        Fault::ForgedNeedsNothing,
        "forged-needs-nothing",
        "a forged tool's required arguments are checked",
        &["t4.forged-schema"],
    ),
];

fn part(fault: Fault) -> Substitutes {
    let make = move |project: &Path| -> Result<Arc<dyn ToolCaller>, ToolError> {
        Ok(Arc::new(FaultyTools {
            fault,
            project: project.to_owned(),
            inner: FakeTools::new(Arc::new(DiskFs::open(project).unwrap()))?,
            read: Mutex::default(),
            calls: AtomicU64::new(0),
        }))
    };
    Substitutes { tools: Some(Arc::new(make)), ..Substitutes::default() }
}

pub(super) fn sound() -> Substitutes {
    part(Fault::None)
}

pub(super) fn mutants() -> Vec<Mutant> {
    corpus("tools", TABLE, part)
}

struct FaultyTools {
    fault: Fault,
    project: PathBuf,
    inner: FakeTools,
    read: Mutex<BTreeMap<String, Value>>,
    calls: AtomicU64,
}

/// A field of arguments that are an object.
fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn keep_only(arguments: &mut Value, names: &[&str]) {
    if let Some(fields) = arguments.as_object_mut() {
        fields.retain(|name, _| names.contains(&name.as_str()));
    }
}

impl FaultyTools {
    /// The tool's own name.
    fn name(&self, tool: &str) -> String {
        let definitions = self.inner.definitions();
        let found = definitions.iter().find(|known| known.aliases.iter().any(|alias| alias == tool));
        found.map_or(tool.to_owned(), |known| known.name.to_string())
    }

    /// What the fault makes of arguments.
    fn changed(&self, tool: &str, mut arguments: Value) -> Value {
        let is_there = self.project.join(text(&arguments, "path")).exists();
        let Some(fields) = arguments.as_object_mut() else { return arguments };
        let ignores_hash = match self.fault {
            Fault::IgnoresHash => true,
            Fault::IgnoresHashOnDelete => tool == "fs_delete",
            Fault::IgnoresHashOfAbsent => !is_there,
            _ => false,
        };
        if ignores_hash {
            fields.remove("expected_sha256");
        }
        match (self.fault, tool) {
            (Fault::TakesUnknown, "fs_write") => {
                keep_only(&mut arguments, &["path", "content", "expected_sha256"]);
            }
            (Fault::TakesMissing, "fs_write") => {
                fields.entry("content").or_insert(json!(""));
            }
            (Fault::ForgedTakesUnknown, "exec_tool") => keep_only(&mut fields["args"], &["count", "label"]),
            (Fault::ForgedTakesText, "exec_tool") => {
                if let Ok(number) = text(&fields["args"], "count").parse::<f64>() {
                    fields["args"]["count"] = json!(number);
                }
            }
            (Fault::ForgedNeedsNothing, "exec_tool") if fields["args"].get("count").is_none() => {
                fields["args"]["count"] = json!(0);
            }
            _ => {}
        }
        arguments
    }

    /// What a tool does that goes wherever a path leads to.
    fn anywhere(&self, tool: &str, arguments: &Value, is_dry: bool) -> Option<Result<Value, ToolError>> {
        let path = text(arguments, "path");
        let place = self.project.join(path);
        let is_link = std::fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink());
        let is_wanted = match self.fault {
            Fault::FollowsUp => path.contains("../") && !path.starts_with('/'),
            Fault::FollowsAbsolute => path.starts_with('/'),
            Fault::FollowsFileLinks => is_link,
            Fault::FollowsFolderLinks => {
                let folder = place.parent()?.canonicalize().ok()?;
                !path.contains("..") && !path.starts_with('/') && !folder.starts_with(&self.project)
            }
            _ => false,
        };
        if !is_wanted || !tool.starts_with("fs_") {
            return None;
        }
        let failed = |error: std::io::Error| ToolError::new(Code::NotFound, error.to_string());
        let content = std::fs::read_to_string(&place).map_err(failed);
        Some(match tool {
            "fs_read" => content.map(|content| json!({ "content": content })),
            _ if is_dry => Ok(json!({ "dry_run": true })),
            "fs_write" => {
                std::fs::write(place, text(arguments, "content")).map(|()| json!({})).map_err(failed)
            }
            "fs_delete" => std::fs::remove_file(place).map(|()| json!({})).map_err(failed),
            _ => content.and_then(|content| {
                let content = content.replace(text(arguments, "search"), text(arguments, "replace"));
                std::fs::write(place, content).map(|()| json!({})).map_err(failed)
            }),
        })
    }

    async fn inner(&self, call: ToolCall, context: CallContext) -> CallRecord {
        self.inner.call(call, context, Box::pin(std::future::pending())).await
    }
}

#[async_trait]
impl ToolCaller for FaultyTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let mut definitions = self.inner.definitions();
        for definition in &mut definitions {
            let schema = &mut definition.input_schema;
            match self.fault {
                Fault::KnowsNoAlias => definition.aliases.clear(),
                Fault::OpenSchemas => schema["additionalProperties"] = json!(true),
                Fault::LooseTypes => schema["properties"]["path"] = json!({}),
                Fault::NothingRequired => schema["required"] = json!([]),
                _ => {}
            }
        }
        definitions
    }

    async fn call(&self, call: ToolCall, context: CallContext, _cancelled: Cancellation<'_>) -> CallRecord {
        let tool = self.name(&call.tool);
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.fault == Fault::KnowsNoAlias && tool != call.tool {
            let error = ToolError::new(Code::NotFound, "it is called otherwise");
            return CallRecord::not_begun(call, context, error);
        }
        if let Some(result) = self.anywhere(&tool, &call.arguments, context.dry_run) {
            let result = result.map_or_else(ToolResult::Failed, ToolResult::Done);
            return CallRecord::ended(call, context, result);
        }
        let given = call.arguments.clone();
        let mut call = ToolCall { arguments: self.changed(&tool, given.clone()), ..call };
        let mut done = context.clone();
        let does_nothing = match self.fault {
            Fault::EditsNothing => tool == "fs_edit",
            Fault::DeletesNothing => tool == "fs_delete",
            Fault::WritesNothing => tool == "fs_write",
            _ => false,
        };
        done.dry_run |= does_nothing;
        if self.fault == Fault::WritesThenChecks {
            std::fs::write(self.project.join("a.md"), "").unwrap();
        }
        if self.fault == Fault::RunsDry {
            done.dry_run = false;
        }
        let mut record = self.inner(call.clone(), done).await;
        let refused = record.result.error().map(|error| error.code);
        match (self.fault, refused) {
            (Fault::WritesThenConflicts, Some(Code::Conflict)) => {
                call.arguments.as_object_mut().unwrap().remove("expected_sha256");
                self.inner(call, context.clone()).await;
            }
            (Fault::OtherConflict, Some(Code::Conflict))
            | (Fault::OtherValidation, Some(Code::Validation)) => {
                record.result = ToolResult::Failed(ToolError::new(Code::Runtime, "something went wrong"));
            }
            (Fault::TellsOfOutside, Some(code)) => {
                let content = std::fs::read_to_string(self.project.join(text(&given, "path")));
                let error = ToolError::new(code, format!("it says {}", content.unwrap_or_default()));
                record.result = ToolResult::Failed(error);
            }
            _ => {}
        }
        if let ToolResult::Done(data) = &mut record.result {
            match (self.fault, tool.as_str()) {
                (Fault::OtherHash, "fs_read") => data["sha256"] = json!("0".repeat(64)),
                (Fault::ReadsOnce, "fs_read") => {
                    let mut read = self.read.lock().unwrap();
                    *data = read.entry(text(&given, "path").to_owned()).or_insert(data.clone()).clone();
                }
                (Fault::ReadsNothing, "fs_read") => data["content"] = json!(""),
                (Fault::EchoesNothing, "Echo") => data["echoed"] = json!(""),
                (Fault::RandomPreview, _) if context.dry_run => data["number"] = json!(number),
                (Fault::EmptyPreview, _) if context.dry_run => data["diff"] = json!(""),
                _ => {}
            }
        }
        record
    }
}
