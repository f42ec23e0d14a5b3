//! What a step of a plan would do, read from its fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tgp_contract::{ChronicleLayout, Plan, PlanStep, RelativePath};
use tgp_text::nearest;

/// Steps of a plan: a person can still read so many.
pub(crate) const MAX_STEPS: usize = 200;
/// Edits of one step, as `fs_edit` takes them.
const MAX_EDITS: usize = 100;

const KINDS: [&str; 8] = [
    "CREATE_FILE",
    "WRITE_FILE",
    "EDIT_FILE",
    "DELETE_FILE",
    "RENAME_FILE",
    "RUN_COMMAND",
    "RUN_TESTS",
    "CALL_TOOL",
];

/// The fields of each type of step, in addition to `type` and `filePath`.
const FIELDS: [(&str, &[&str]); 8] = [
    ("CREATE_FILE", &["content"]),
    ("WRITE_FILE", &["content"]),
    ("EDIT_FILE", &["oldText", "newText", "all", "search", "replace", "edits"]),
    ("DELETE_FILE", &["acknowledged"]),
    ("RENAME_FILE", &["to"]),
    ("RUN_COMMAND", COMMAND_FIELDS),
    ("RUN_TESTS", TEST_FIELDS),
    ("CALL_TOOL", &["tool", "arguments", "acknowledged"]),
];
const COMMAND_FIELDS: &[&str] =
    &["command", "cwd", "template", "timeout_ms", "network", "stdin", "keep_on_failure"];
const TEST_FIELDS: &[&str] = &["only", "timeout_ms"];
const EDIT_FIELDS: &[&str] = &["oldText", "newText", "all", "search", "replace"];

/// What other tools call these fields, where the spelling alone is not enough.
const OTHER_NAMES: [(&str, &str); 16] = [
    ("args", "arguments"),
    ("cmd", "command"),
    ("contents", "content"),
    ("file", "filePath"),
    ("file_path", "filePath"),
    ("from", "filePath"),
    ("new", "newText"),
    ("newPath", "to"),
    ("new_string", "newText"),
    ("old", "oldText"),
    ("old_string", "oldText"),
    ("path", "filePath"),
    ("script", "command"),
    ("text", "content"),
    ("timeout", "timeout_ms"),
    ("input", "arguments"),
];

/// One piece of text for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) search: String,
    pub(crate) replace: String,
    pub(crate) all: bool,
}

/// What a step would do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlannedAction {
    Create {
        path: RelativePath,
        content: String,
    },
    Write {
        path: RelativePath,
        content: String,
    },
    Edit {
        path: RelativePath,
        edits: Vec<Replacement>,
    },
    Delete {
        path: RelativePath,
        acknowledged: bool,
    },
    Rename {
        path: RelativePath,
        to: RelativePath,
    },
    /// A call whose files are unknown before it runs; the gates judge them then.
    Call {
        tool: String,
        arguments: Value,
    },
}

impl PlannedAction {
    /// The files that it is about.
    pub(crate) fn paths(&self) -> Vec<&RelativePath> {
        match self {
            Self::Create { path, .. }
            | Self::Write { path, .. }
            | Self::Edit { path, .. }
            | Self::Delete { path, .. } => vec![path],
            Self::Rename { path, to } => vec![path, to],
            Self::Call { .. } => Vec::new(),
        }
    }

    /// The file whose whole content it decides.
    pub(super) fn makes(&self) -> Option<&RelativePath> {
        match self {
            Self::Create { path, .. } | Self::Write { path, .. } | Self::Rename { to: path, .. } => {
                Some(path)
            }
            Self::Edit { .. } | Self::Delete { .. } | Self::Call { .. } => None,
        }
    }

    /// Bytes that it brings along.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Create { content, .. } | Self::Write { content, .. } => content.len(),
            Self::Edit { edits, .. } => edits.iter().map(|edit| edit.search.len() + edit.replace.len()).sum(),
            Self::Delete { .. } | Self::Rename { .. } => 0,
            Self::Call { arguments, .. } => arguments.to_string().len(),
        }
    }

    /// # Errors
    /// What is wrong with the step, in one sentence.
    pub(super) fn of(step: &PlanStep) -> Result<Self, String> {
        let fields = Fields(&step.fields);
        if let Some((_, known)) = FIELDS.iter().find(|(kind, _)| *kind == step.kind) {
            fields.none_but(known, "a step of this type")?;
        }
        let path = || match &step.file_path {
            None => Err("`filePath` is missing".to_owned()),
            Some(text) => file("filePath", text),
        };
        match step.kind.as_str() {
            "CREATE_FILE" => Ok(Self::Create { path: path()?, content: fields.text("content")? }),
            "WRITE_FILE" => Ok(Self::Write { path: path()?, content: fields.text("content")? }),
            "EDIT_FILE" => Ok(Self::Edit { path: path()?, edits: fields.edits()? }),
            "DELETE_FILE" => Ok(Self::Delete { path: path()?, acknowledged: fields.flag("acknowledged")? }),
            "RENAME_FILE" => {
                let (path, to) = (path()?, file("to", &fields.text("to")?)?);
                if path == to {
                    return Err(format!("`{path}` is renamed to itself"));
                }
                Ok(Self::Rename { path, to })
            }
            "RUN_COMMAND" => {
                if fields.text("command")?.trim().is_empty() {
                    return Err("`command` is empty".to_owned());
                }
                Ok(Self::Call { tool: "shell_exec".to_owned(), arguments: fields.only(COMMAND_FIELDS) })
            }
            "RUN_TESTS" => {
                Ok(Self::Call { tool: "test_run".to_owned(), arguments: fields.only(TEST_FIELDS) })
            }
            "CALL_TOOL" => {
                let tool = fields.text("tool")?;
                let arguments = step.fields.get("arguments").cloned().unwrap_or_else(|| json!({}));
                Self::of_call(&tool, arguments, fields)
            }
            other => {
                let known = nearest(other, KINDS).map_or_else(
                    || format!("the known ones are {}", KINDS.join(", ")),
                    |near| format!("did you mean {near}?"),
                );
                Err(format!("`{}` is not a type of step; {known}", other.escape_debug()))
            }
        }
    }

    /// A call of a tool that writes files is treated as the equivalent step: no plan bypasses a rule under another
    /// name.
    fn of_call(tool: &str, arguments: Value, step: Fields<'_>) -> Result<Self, String> {
        let Value::Object(map) = &arguments else {
            return Err("`arguments` is not an object".to_owned());
        };
        let fields = Fields(map);
        let path = || file("arguments.path", &fields.text("path")?);
        match tool {
            "fs_write" | "fs.write" | "Write" => {
                Ok(Self::Write { path: path()?, content: fields.text("content")? })
            }
            "fs_edit" | "fs.edit" | "Edit" => Ok(Self::Edit { path: path()?, edits: fields.edits()? }),
            "fs_delete" | "fs.delete" => {
                Ok(Self::Delete { path: path()?, acknowledged: step.flag("acknowledged")? })
            }
            "" => Err("`tool` is empty".to_owned()),
            _ => Ok(Self::Call { tool: tool.to_owned(), arguments }),
        }
    }
}

/// Every file that a plan names, whether its steps can be taken or not.
#[must_use]
pub fn planned_files(plan: &Plan) -> BTreeSet<RelativePath> {
    let texts = plan.steps.iter().flat_map(|step| {
        let fields = ["to", "path", "file", "file_path"].iter().filter_map(|name| step.fields.get(*name));
        let arguments = step.fields.get("arguments").and_then(|arguments| arguments.get("path"));
        let others = fields.chain(arguments).filter_map(Value::as_str);
        step.file_path.as_deref().into_iter().chain(others)
    });
    texts.filter_map(|text| RelativePath::new(text).ok()).filter(|path| !path.is_root()).collect()
}

fn file(field: &str, text: &str) -> Result<RelativePath, String> {
    let path = RelativePath::new(text).map_err(|error| format!("`{field}`: {error}"))?;
    if path.is_root() {
        return Err(format!("`{field}` names no file"));
    }
    // A file that is only named so is judged by its content when the step is made.
    if ChronicleLayout::Tree.reserves(&path) {
        return Err(format!("`{path}` belongs to the chronicle and the invariants, which no plan changes"));
    }
    Ok(path)
}

#[derive(Clone, Copy)]
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(self, name: &str) -> Result<String, String> {
        match self.0.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("`{name}` is not text")),
            None => Err(format!("`{name}` is missing")),
        }
    }

    fn flag(self, name: &str) -> Result<bool, String> {
        match self.0.get(name) {
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("`{name}` is neither true nor false")),
            None => Ok(false),
        }
    }

    /// An unknown field is a mistake: its content would be ignored.
    fn none_but(self, known: &[&str], what: &str) -> Result<(), String> {
        let Some(name) = self.0.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let is_meant = |meant: &&str| known.contains(meant) || *meant == "filePath";
        let other = OTHER_NAMES.iter().find(|(other, _)| other == name).map(|(_, meant)| *meant);
        let near =
            other.filter(is_meant).or_else(|| nearest(name, known.iter().copied().chain(["filePath"])));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "it has none".to_owned(),
            None => format!("the known ones are {}", known.join(", ")),
        };
        Err(format!("`{}` is not a field of {what}; {help}", name.escape_debug()))
    }

    fn only(self, names: &[&str]) -> Value {
        let wanted = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Value::Object(wanted.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn edits(self) -> Result<Vec<Replacement>, String> {
        let Some(edits) = self.0.get("edits") else { return Ok(vec![self.edit()?]) };
        let Some(edits) = edits.as_array() else { return Err("`edits` is not a list".to_owned()) };
        if edits.is_empty() || edits.len() > MAX_EDITS {
            return Err(format!("`edits` has {} edits, it can have 1 to {MAX_EDITS}", edits.len()));
        }
        let one = |edit: &Value| match edit {
            Value::Object(fields) => {
                Fields(fields).none_but(EDIT_FIELDS, "an edit")?;
                Fields(fields).edit()
            }
            _ => Err("an edit is not an object".to_owned()),
        };
        edits.iter().map(one).collect()
    }

    /// As a plan writes it, or as `fs_edit` does.
    fn edit(self) -> Result<Replacement, String> {
        let is_tools = self.0.contains_key("search") || self.0.contains_key("replace");
        let (search, replace) = if is_tools { ("search", "replace") } else { ("oldText", "newText") };
        let edit =
            Replacement { search: self.text(search)?, replace: self.text(replace)?, all: self.flag("all")? };
        if edit.search.is_empty() {
            return Err(format!("`{search}` is empty"));
        }
        Ok(edit)
    }
}
