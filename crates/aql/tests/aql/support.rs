//! A catalogue that does not change, and how problems look.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tgp_aql::{CompiledQuery, ForgedToolSchema, QueryCatalogue, QueryProblems, compile};
use tgp_contract::{Code, Effect, ExecutionPath, SourceLocation, ToolDefinition, ToolError, ToolName};

pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aql/golden")
}

pub struct QueryHost {
    tools: Vec<ToolDefinition>,
    /// Sources in addition to those in `golden/shared`.
    pub sources: Vec<(String, String)>,
}

fn tool(name: &str, aliases: &[&str], effect: Effect, input_schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: ToolName::new(name).unwrap(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        description: String::new(),
        input_schema,
        effect,
        path: ExecutionPath::Fast,
        dry_run: false,
    }
}

/// A text that is needed, and something else beside it.
fn takes(text: &str, besides: &str) -> Value {
    json!({
        "type": "object",
        "properties": { text: { "type": "string", "minLength": 1 }, besides: {} },
        "required": [text],
        "additionalProperties": false
    })
}

impl Default for QueryHost {
    fn default() -> Self {
        let read = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1, "pattern": "^[^/]" },
                "offset": { "type": "integer", "minimum": 0 },
                "encoding": { "enum": ["utf8", "base64"] }
            },
            "required": ["path"],
            "additionalProperties": false
        });
        let write = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1 },
                "content": { "type": "string" },
                "edits": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "search": { "type": "string" }, "all": { "type": "boolean" } },
                    "required": ["search"],
                    "additionalProperties": false
                } },
                "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }
            },
            "required": ["path", "content"],
            "additionalProperties": false
        });
        let grep = json!({
            "type": "object",
            "properties": { "pattern": { "type": "string" }, "paths": { "type": "array", "items": { "type": "string" } } },
            "required": ["pattern"]
        });
        let tools = vec![
            tool("fs_read", &["fs.read", "Read"], Effect::Read, read),
            tool("fs_write", &["fs.write", "Write"], Effect::Write, write),
            tool("search_grep", &[], Effect::Read, grep),
            tool("exec_sql", &["db.query"], Effect::Write, takes("sql", "params")),
            tool("graph_query", &["GraphQuery"], Effect::Read, takes("query", "params")),
            tool("shell_exec", &["Bash"], Effect::Execute, takes("command", "stdin")),
            tool("exec_tool", &[], Effect::Execute, takes("path", "args")),
            tool("test_tool", &[], Effect::Execute, takes("path", "only")),
        ];
        Self { tools, sources: Vec::new() }
    }
}

impl QueryCatalogue for QueryHost {
    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn forged(&self, path: &str) -> Option<ForgedToolSchema> {
        match path {
            "tools/math/fib.ts" => Some(ForgedToolSchema {
                parameters: json!({
                    "type": "object",
                    "properties": { "n": { "type": "integer", "minimum": 0 } },
                    "required": ["n"],
                    "additionalProperties": false
                }),
                result: json!({ "type": "number" }),
            }),
            "tools/text/words.ts" => Some(ForgedToolSchema {
                parameters: json!(true),
                result: json!({
                    "type": "object",
                    "properties": {
                        "words": { "type": "array", "items": { "$ref": "#/$defs/word" } },
                        "language": { "type": ["string", "null"] }
                    },
                    "required": ["words"],
                    "additionalProperties": false,
                    "$defs": { "word": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"], "additionalProperties": false } }
                }),
            }),
            _ => None,
        }
    }

    fn forged_paths(&self) -> Vec<String> {
        vec!["tools/math/fib.ts".to_owned(), "tools/text/words.ts".to_owned()]
    }

    /// Knows `RETURN a AS b, c AS d`, and the mistake of writing `MACTH`.
    fn cypher(&self, query: &str) -> Result<Option<Vec<String>>, ToolError> {
        for (number, line) in query.lines().enumerate() {
            if let Some(at) = line.find("MACTH") {
                let column = u32::try_from(line[..at].chars().count() + 1).unwrap();
                let place = SourceLocation {
                    file: "query".to_owned(),
                    line: u32::try_from(number + 1).unwrap(),
                    column,
                };
                return Err(ToolError::new(Code::Validation, "`MACTH` is not a clause")
                    .place(&place)
                    .help("did you mean MATCH?"));
            }
        }
        let Some((_, columns)) = query.split_once("RETURN ") else { return Ok(None) };
        let names = columns
            .split(',')
            .map(|column| column.rsplit_once(" AS ").map(|(_, name)| name.trim().to_owned()));
        Ok(names.collect())
    }

    fn source(&self, path: &str) -> Result<String, ToolError> {
        if let Some((_, text)) = self.sources.iter().find(|(known, _)| known == path) {
            return Ok(text.clone());
        }
        std::fs::read_to_string(golden().join(path))
            .map_err(|_| ToolError::new(Code::NotFound, "there is no such file"))
    }
}

pub fn compiled(text: &str) -> Result<CompiledQuery, QueryProblems> {
    compile("main.aql", text, &QueryHost::default())
}

/// What a person sees, without colours.
pub fn rendered(problems: &QueryProblems) -> String {
    let mut text = String::new();
    let line = |place: &SourceLocation| {
        let source = problems.sources.iter().find(|source| source.path == place.file);
        source
            .and_then(|source| source.text.lines().nth(place.line as usize - 1))
            .unwrap_or_default()
            .to_owned()
    };
    let marked = |place: &SourceLocation, end: u32, sign: char, said: &str| {
        let number = place.line.to_string();
        let blanks = " ".repeat(number.len());
        let written = line(place);
        let before = written.chars().take(place.column as usize - 1);
        let before = before.map(|letter| if letter == '\t' { '\t' } else { ' ' });
        let signs = sign.to_string().repeat((end - place.column).max(1) as usize);
        let mark: String = before.collect::<String>() + &signs;
        let said = if said.is_empty() { String::new() } else { format!(" {said}") };
        format!("{blanks}--> {place}\n{number} | {}\n{blanks} | {mark}{said}\n", line(place))
    };
    for problem in &problems.problems {
        let head = marked(&problem.place, problem.end_column, '^', "");
        let labels: String =
            problem.labels.iter().map(|(place, end, said)| marked(place, *end, '-', said)).collect();
        let help = problem.help.as_ref().map(|help| format!("help: {help}\n")).unwrap_or_default();
        writeln!(text, "error[{}]: {}\n{head}{labels}{help}", problem.kind, problem.message).unwrap();
    }
    text
}
