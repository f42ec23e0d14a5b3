//! `fs_edit`: some pieces of a file's text for others, all of them or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Code, Effect, ExecutionPath, FsError, RelativePath, Target, ToolDefinition, ToolError,
};

use super::change::{Expected, answer, change};
use super::{Desk, project_file};
use crate::builtin::Definition;
use crate::files::{Replacement, patch};
use crate::router::{Invocation, Outcome, Tool};

/// Edits of one call; with more, the whole file is written sooner.
const MAX_EDITS: usize = 100;

pub(super) struct FsEdit {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    edits: Option<Vec<Edit>>,
    search: Option<String>,
    replace: Option<String>,
    #[serde(default)]
    all: bool,
    expected_sha256: Option<String>,
}

#[derive(Deserialize)]
struct Edit {
    search: String,
    replace: String,
    #[serde(default)]
    all: bool,
}

impl Arguments {
    fn replacements(&mut self) -> Vec<Replacement> {
        let alone = self.search.take().zip(self.replace.take());
        let alone = alone.map(|(search, replace)| Edit { search, replace, all: self.all });
        let edits = self.edits.take().into_iter().flatten().chain(alone);
        edits.map(|Edit { search, replace, all }| Replacement { search, replace, all }).collect()
    }
}

impl FsEdit {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let search = json!({ "type": "string", "minLength": 1, "description": "Literal text that occurs exactly once, unless `all` is true; add lines around it to make it so." });
        let replace = json!({ "type": "string", "description": "What stands there instead, literally." });
        let all = json!({ "type": "boolean", "default": false, "description": "Replace every occurrence." });
        let definition = Definition {
            name: "fs_edit",
            aliases: &["fs.edit", "Edit"],
            description: "Replace pieces of text in a file of the project: one {search, replace}, or several as `edits`, each applied to what the one before left. All of them take place or none. Answers {path, replacements, bytes, sha256}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the project, such as `src/main.rs`." },
                    "search": search,
                    "replace": replace,
                    "all": all,
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MAX_EDITS,
                        "items": {
                            "type": "object",
                            "properties": { "search": search, "replace": replace, "all": all },
                            "required": ["search", "replace"],
                            "additionalProperties": false
                        }
                    },
                    "expected_sha256": Expected::schema()
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, desk })
    }
}

/// Either `search` and `replace`, or `edits`. Providers of models refuse a schema that says so at its top.
fn one_way(arguments: &Value) -> Result<(), ToolError> {
    let has = |name: &str| arguments.get(name).is_some();
    let problem = match (has("edits"), has("search"), has("replace")) {
        (true, false, false) if !has("all") => return Ok(()),
        (false, true, true) => return Ok(()),
        (true, ..) => "`edits` stands alone: `search`, `replace` and `all` belong into each of them",
        (false, true, false) => "`replace` is missing",
        (false, false, true) => "`search` is missing",
        (false, false, false) => "`search` and `replace`, or `edits`, are missing",
    };
    Err(ToolError::new(Code::Validation, format!("the arguments of `fs_edit` do not fit: {problem}"))
        .help("give {path, search, replace}, or {path, edits: [{search, replace}, …]}"))
}

#[async_trait]
impl Tool for FsEdit {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        one_way(arguments)?;
        project_file(arguments, Access::Write)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let mut arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let replacements = arguments.replacements();
        let expected = Expected::new(&path, arguments.expected_sha256);
        let count = Arc::new(AtomicUsize::new(0));
        let (meant, counted) = (path.clone(), Arc::clone(&count));
        let changed = change(&self.desk, invocation, &path, move |before| {
            expected.check(before)?;
            let before = before.ok_or_else(|| FsError::NotFound(meant.clone()))?;
            let mut text = std::str::from_utf8(before)
                .map_err(|error| FsError::NotText { path: meant.clone(), offset: error.valid_up_to() })?
                .to_owned();
            let mut places = 0;
            for (index, replacement) in replacements.iter().enumerate() {
                let (patched, more) =
                    patch(&meant, &text, replacement).map_err(|error| error.detail("edit", index))?;
                text = patched;
                places += more;
            }
            counted.store(places, Ordering::Relaxed);
            Ok(Some(text.into_bytes()))
        })
        .await?;
        let replacements = count.load(Ordering::Relaxed);
        Ok(answer(invocation, &path, &changed, json!({ "replacements": replacements })))
    }
}
