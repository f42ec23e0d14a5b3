//! Tools on any file system: `Echo`, and the readers and mutators of the contract under their wire names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use similar::TextDiff;
use tgp_contract::{
    CallContext, CallRecord, Cancellation, Change, Code, Effect, Execution, ExecutionPath, FileEffect,
    FileSystem, FsError, GateDecision, GateVerdict, RelativePath, Root, Stage, ToolCall, ToolCaller,
    ToolDefinition, ToolError, ToolName, ToolResult, canonical,
};

use crate::commands;

/// The forged tool that every fake has.
const FORGED: &str = "tools/relay/twice.ts";
/// Problems with arguments that one error names.
const MAX_PROBLEMS: usize = 5;

/// What came of executing a tool.
#[derive(Default)]
struct Done {
    data: Map<String, Value>,
    changes: Vec<Change>,
    exit_code: Option<i32>,
}

/// Tools that check arguments before anything else, preview where asked to, and count what they have executed.
pub struct FakeTools {
    files: Arc<dyn FileSystem>,
    definitions: Vec<ToolDefinition>,
    executed: AtomicU64,
    serial: AtomicU64,
}

impl FakeTools {
    /// # Errors
    /// Never in practice: when a name of a tool is not a wire name.
    pub fn new(files: Arc<dyn FileSystem>) -> Result<Self, ToolError> {
        let mut definitions = definitions()?;
        definitions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { files, definitions, executed: AtomicU64::new(0), serial: AtomicU64::new(0) })
    }

    /// How many calls have got past the check of their arguments, dry runs not counted.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.executed.load(Ordering::SeqCst)
    }

    fn definition(&self, name: &str) -> Result<&ToolDefinition, ToolError> {
        let is_named = |definition: &&ToolDefinition| {
            definition.name.as_str() == name || definition.aliases.iter().any(|alias| alias == name)
        };
        self.definitions.iter().find(is_named).ok_or_else(|| {
            ToolError::new(Code::NotFound, format!("there is no tool `{name}`"))
                .help("ask for the definitions to see which there are")
        })
    }

    fn perform(
        &self,
        definition: &ToolDefinition,
        arguments: &Value,
        is_dry: bool,
    ) -> Result<(Done, Vec<FileEffect>), ToolError> {
        check(definition, arguments)?;
        if !is_dry {
            self.executed.fetch_add(1, Ordering::SeqCst);
        }
        let mut done = self.work_out(definition.name.as_str(), arguments)?;
        let mut effects = Vec::new();
        let mut diffs = String::new();
        for change in &done.changes {
            let (effect, diff) = self.effect(change)?;
            effects.push(effect);
            diffs.push_str(&diff);
        }
        if is_dry {
            done.data.insert("dry_run".to_owned(), json!(true));
            done.data.insert("diff".to_owned(), json!(diffs));
            return Ok((done, Vec::new()));
        }
        self.files.apply(&done.changes)?;
        Ok((done, effects))
    }

    /// What a tool answers, and the changes that it wants. Nothing is changed yet.
    fn work_out(&self, tool: &str, arguments: &Value) -> Result<Done, ToolError> {
        let word = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        if tool == "Echo" {
            return Ok(Done { data: fields(json!({ "echoed": word("text") })), ..Done::default() });
        }
        if tool == "exec_tool" {
            let result = forged(word("path"), arguments.get("args").unwrap_or(&Value::Null))?;
            return Ok(Done { data: fields(json!({ "result": result })), ..Done::default() });
        }
        if tool == "shell_exec" {
            let ran = commands::run(word("command"), self.files.as_ref())?;
            let paths: Vec<&str> = ran.changes.iter().map(|change| change.path().as_str()).collect();
            let data = json!({ "exitCode": ran.exit_code, "stdout": ran.stdout, "stderr": ran.stderr, "changed": paths });
            return Ok(Done { data: fields(data), changes: ran.changes, exit_code: Some(ran.exit_code) });
        }
        let path = RelativePath::new(word("path"))?;
        let before = self.before(&path)?;
        let hash = before.as_deref().map(canonical::sha256_hex);
        let expected = arguments.get("expected_sha256").and_then(Value::as_str);
        if expected.is_some() && expected != hash.as_deref() {
            let message = format!("`{path}` is not what was expected");
            return Err(ToolError::new(Code::Conflict, message).help("read it again"));
        }
        if tool == "fs_write" {
            let content = word("content").as_bytes().to_vec();
            let data = json!({
                "path": path, "created": before.is_none(), "bytes": content.len(),
                "sha256": canonical::sha256_hex(&content),
            });
            let changes = vec![Change::Write { path, content: content.into() }];
            return Ok(Done { data: fields(data), changes, exit_code: None });
        }
        let text = match before {
            None => return Err(FsError::NotFound(path).into()),
            Some(_) => self.files.read_text(&path)?,
        };
        match tool {
            "fs_read" => Ok(Done { data: page(&path, &text, arguments), ..Done::default() }),
            "fs_delete" => {
                let data = fields(json!({ "path": path, "kind": "file" }));
                Ok(Done { data, changes: vec![Change::Remove { path }], exit_code: None })
            }
            _ => {
                let content = edited(&path, text, arguments)?.into_bytes();
                let data = json!({ "path": path, "bytes": content.len(), "sha256": canonical::sha256_hex(&content) });
                let changes = vec![Change::Write { path, content: content.into() }];
                Ok(Done { data: fields(data), changes, exit_code: None })
            }
        }
    }

    fn before(&self, path: &RelativePath) -> Result<Option<Vec<u8>>, ToolError> {
        match self.files.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(FsError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What a change does to its file, and how that looks.
    fn effect(&self, change: &Change) -> Result<(FileEffect, String), ToolError> {
        let path = change.path();
        let before = self.before(path)?;
        let after = match change {
            Change::Write { content, .. } => Some(content.to_vec()),
            Change::Remove { .. } => None,
        };
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let (old, new) = (text(&before), text(&after));
        let diff = TextDiff::from_lines(&old, &new)
            .unified_diff()
            .header(&format!("a/{path}"), &format!("b/{path}"))
            .to_string();
        let hash = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(canonical::sha256_hex);
        let mut effect = FileEffect::new(Root::Project, path.clone(), hash(&before), hash(&after));
        effect.diff = Some(canonical::sha256_hex(diff.as_bytes()));
        Ok((effect, diff))
    }
}

#[async_trait]
impl ToolCaller for FakeTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.definitions.clone()
    }

    async fn call(&self, call: ToolCall, context: CallContext, _cancelled: Cancellation<'_>) -> CallRecord {
        let definition = self.definition(&call.tool);
        let outcome = definition
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|definition| self.perform(definition, &call.arguments, context.dry_run));
        let verdict = |decision: GateDecision| GateVerdict {
            stage: Stage::Approval,
            gate: "fake".to_owned(),
            verdict: decision,
            rule: "none".to_owned(),
        };
        let (result, files, exit_code) = match outcome {
            Ok((done, effects)) => (ToolResult::Done(Value::Object(done.data)), effects, done.exit_code),
            Err(error) => (ToolResult::Failed(error), Vec::new(), None),
        };
        // What no gate has judged has no verdict.
        let is_invalid = result.error().is_some_and(|error| error.code == Code::Validation);
        let is_known = definition.is_ok() && !is_invalid;
        let ended = CallRecord::ended(call, context, result);
        CallRecord {
            serial: self.serial.fetch_add(1, Ordering::SeqCst),
            tool: definition.as_ref().ok().map(|definition| definition.name.to_string()),
            effect: definition.as_ref().ok().map(|definition| definition.effect),
            verdicts: if is_known { vec![verdict(GateDecision::Allow)] } else { Vec::new() },
            files,
            exit_code,
            ..if is_known { ended } else { CallRecord { execution: Execution::NotStarted, ..ended } }
        }
    }
}

/// The forged tool that every fake has: twice the number `count`.
fn forged(path: &str, arguments: &Value) -> Result<Value, ToolError> {
    if path != FORGED {
        return Err(ToolError::new(Code::NotFound, format!("there is no forged tool `{path}`"))
            .help(format!("the fake tools have `{FORGED}` only")));
    }
    let properties = json!({ "count": { "type": "number" }, "label": { "type": "string" } });
    fits(path, &schema(&properties, &["count"]), arguments)?;
    Ok(json!(arguments.get("count").and_then(Value::as_f64).map(|number| number * 2.0)))
}

fn check(definition: &ToolDefinition, arguments: &Value) -> Result<(), ToolError> {
    fits(definition.name.as_str(), &definition.input_schema, arguments)
}

fn fits(tool: &str, schema: &Value, arguments: &Value) -> Result<(), ToolError> {
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| ToolError::new(Code::Internal, format!("a schema is not a schema: {error}")))?;
    let problems: Vec<String> =
        validator.iter_errors(arguments).take(MAX_PROBLEMS).map(|error| at(&error)).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!("the arguments of `{tool}` do not fit: {}", problems.join("; "));
    Err(ToolError::new(Code::Validation, message).help("compare them with the tool's input schema"))
}

/// A problem with its place in the arguments.
fn at(error: &jsonschema::ValidationError<'_>) -> String {
    match error.instance_path().to_string() {
        place if place.is_empty() => error.to_string(),
        place => format!("`{}`: {error}", place.trim_start_matches('/')),
    }
}

/// The lines that were asked for, each with its end.
fn page(path: &RelativePath, text: &str, arguments: &Value) -> Map<String, Value> {
    let number = |name: &str, default: u64| arguments.get(name).and_then(Value::as_u64).unwrap_or(default);
    let first = usize::try_from(number("offset", 1)).unwrap_or(usize::MAX).saturating_sub(1);
    let most = usize::try_from(number("limit", u64::MAX)).unwrap_or(usize::MAX);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let shown: String = lines.iter().skip(first).take(most).copied().collect();
    let after = first.saturating_add(most);
    let mut data = fields(json!({
        "path": path, "content": shown, "firstLine": first + 1, "totalLines": lines.len(),
        "truncated": lines.len() > after, "sha256": canonical::sha256_hex(text.as_bytes()),
    }));
    if lines.len() > after {
        data.insert("nextOffset".to_owned(), json!(after + 1));
    }
    data
}

/// Applies one `{search, replace}`, or all of `edits`, each to what the one before has left.
fn edited(path: &RelativePath, mut text: String, arguments: &Value) -> Result<String, ToolError> {
    let alone = std::slice::from_ref(arguments);
    let edits = arguments.get("edits").and_then(Value::as_array).map_or(alone, Vec::as_slice);
    for edit in edits {
        let word = |name: &str| edit.get(name).and_then(Value::as_str).unwrap_or_default();
        let (search, replace) = (word("search"), word("replace"));
        let is_all = edit.get("all").and_then(Value::as_bool).unwrap_or(false);
        match text.matches(search).count() {
            0 => {
                let message = format!("`{path}` does not contain the text to replace");
                return Err(ToolError::new(Code::NotFound, message).help("read the file again"));
            }
            1 => {}
            _ if is_all => {}
            times => {
                let message = format!("`{path}` contains the text to replace {times} times");
                return Err(ToolError::new(Code::Conflict, message).help("add lines around it, or say `all`"));
            }
        }
        text = text.replace(search, replace);
    }
    Ok(text)
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn definitions() -> Result<Vec<ToolDefinition>, ToolError> {
    let path = json!({ "type": "string", "minLength": 1 });
    let hash = json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
    let replacement = json!({
        "search": { "type": "string", "minLength": 1 },
        "replace": { "type": "string" },
        "all": { "type": "boolean" },
    });
    let item = schema(&replacement, &["search", "replace"]);
    let mut edit = replacement;
    for (name, value) in [
        ("path", path.clone()),
        ("expected_sha256", hash.clone()),
        ("edits", json!({ "type": "array", "minItems": 1, "maxItems": 100, "items": item })),
    ] {
        edit.as_object_mut().map(|properties| properties.insert(name.to_owned(), value));
    }
    let mut edit = schema(&edit, &["path"]);
    edit.as_object_mut().map(|fields| {
        let forms = json!([{ "required": ["search", "replace"] }, { "required": ["edits"] }]);
        fields.insert("oneOf".to_owned(), forms)
    });
    let line = json!({ "type": "integer", "minimum": 1 });
    let table = [
        (
            "Echo",
            None,
            "Say the text again.",
            Effect::Read,
            schema(&json!({ "text": { "type": "string" } }), &["text"]),
        ),
        (
            "fs_read",
            Some("Read"),
            "Read a text file.",
            Effect::Read,
            schema(&json!({ "path": path, "offset": line, "limit": line }), &["path"]),
        ),
        (
            "fs_write",
            Some("Write"),
            "Create a file or replace its content.",
            Effect::Write,
            schema(
                &json!({ "path": path, "content": { "type": "string" }, "expected_sha256": hash }),
                &["path", "content"],
            ),
        ),
        ("fs_edit", Some("Edit"), "Replace pieces of text in a file.", Effect::Write, edit),
        (
            "fs_delete",
            None,
            "Delete a file.",
            Effect::Write,
            schema(&json!({ "path": path, "expected_sha256": hash }), &["path"]),
        ),
        (
            "exec_tool",
            None,
            "Run the forged tool, which gives twice a number.",
            Effect::Execute,
            schema(&json!({ "path": path, "args": {} }), &["path"]),
        ),
        (
            "shell_exec",
            Some("Bash"),
            "Run one of a few commands.",
            Effect::Execute,
            schema(&json!({ "command": { "type": "string", "minLength": 1 } }), &["command"]),
        ),
    ];
    table
        .into_iter()
        .map(|(name, alias, description, effect, input_schema)| {
            let name =
                ToolName::new(name).map_err(|error| ToolError::new(Code::Internal, error.to_string()))?;
            Ok(ToolDefinition {
                name,
                aliases: alias.into_iter().map(str::to_owned).collect(),
                description: description.to_owned(),
                input_schema,
                effect,
                path: ExecutionPath::Fast,
                dry_run: effect != Effect::Read,
            })
        })
        .collect()
}

fn schema(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
