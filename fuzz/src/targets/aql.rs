//! Queries of agents.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tgp_aql::{CompiledQuery, ForgedToolSchema, QueryCatalogue, QueryProblems, compile, explain, format};
use tgp_contract::{Code, Effect, ExecutionPath, ToolDefinition, ToolError, ToolName};

use super::{ensure, same, text};
use crate::Target;
use crate::mutate::sentence;

pub(super) const TARGET: Target = Target {
    name: "aql",
    about: "formatting is a fixpoint that keeps the meaning, what compiles can be explained, and problems have places",
    oracle: check,
    dictionary: &[
        "query X {\n",
        "query",
        "type",
        "import \"shared.aql\"",
        "budget",
        "return",
        "else",
        " as ",
        " in ",
        " and ",
        " or ",
        "not ",
        "true",
        "false",
        "null",
        "agent()",
        "tool(fs_read)",
        "exec(\"tools/math/fib.ts\")",
        "graph(\"MATCH (n) RETURN n AS a\")",
        "sql(\"SELECT 1\")",
        "merge(x: 1)",
        "map(i in [1, 2])",
        "when(true)",
        "{ path: \"a\" }",
        "prompt: \"x\"",
        "model:",
        "retry: 2",
        "timeout: 30s",
        "on_error: skip",
        "default:",
        "cache: true",
        "after: a",
        "String",
        "Int",
        "Any",
        "[Int]",
        "?",
        "??",
        "|",
        "==",
        ">=",
        "$a",
        "1",
        "-2.5",
        "30s",
        "\"{{a}}\"",
        "\"\"\"",
        "\"",
        "{{",
        "}}",
        "# note\n",
        "\n",
        "\\",
        "\\u{20}",
        "\r\n",
        "}",
        "(",
        ")",
        "[",
        "]",
        ":",
        ",",
        ".",
    ],
    generate: Some(|random| sentence(random, GRAMMAR, "file", DEPTH).into_bytes()),
    iterations: 1_500,
};

const PATH: &str = "main.aql";

/// How deep a generated source nests.
const DEPTH: u32 = 6;

/// Sources that mostly can be formatted, and of which some can be compiled.
const GRAMMAR: &[(&str, &[&str])] = &[
    (
        "file",
        &[
            "query X { return 1 }",
            "<query>",
            "<query>\n\n<file>",
            "import \"shared.aql\"\n<query>",
            "type T = <type>\n<query>",
            "# <word>\n<query># <word>",
        ],
    ),
    (
        "query",
        &[
            "query X($a: String) { return $a }",
            "query X($a: String) {<gap><steps><gap>}",
            "query X($a: <type> = <value>, $b: Int?) budget(calls: 3, time: 5m) {<gap><steps>\nreturn <value><gap>}",
        ],
    ),
    (
        "steps",
        &[
            "s: merge(x: 1)",
            "s: <step>",
            "s: <step>\nt: <step>",
            "s: <step> # <word>\n\n\n t: <step>\n u: merge(s, t)",
        ],
    ),
    (
        "step",
        &[
            "merge(x: 1)",
            "merge(x: <value>, y: <value>)",
            "tool(fs_read<options>) { path: <value> }",
            "exec(\"tools/math/fib.ts\"<options>) { n: <value> }",
            "map(i in <value>) {<gap><steps><gap>}",
            "when(<value>) { <steps> } else { return <value> }",
            "agent(tools: [fs_read]) as <type> { prompt: <value> }",
            "sql(\"SELECT 1\") { a: <value> }",
            "query(Inner, n: <value>)",
            "graph(\"MATCH (n) RETURN n.name AS name\") { }",
        ],
    ),
    (
        "options",
        &[
            "",
            ", retry: 2",
            ", timeout: 30s, cache: true",
            ", on_error: skip",
            ", on_error: default, default: <value>",
        ],
    ),
    (
        "value",
        &[
            "1",
            "$a",
            "s",
            "i",
            "null",
            "-2.5",
            "true",
            "\"x\"",
            "\"a {{$a}} b\"",
            "\"{{<value>}}\"",
            "[<value>, <value>]",
            "{ a: <value>,<gap>b: <value> }",
            "<value> ?? <value>",
            "<value> == <value>",
            "<value> and not <value>",
            "(<value>)",
            "length(<value>)",
            "<value>.a",
            "<value>[0]",
            "contains(<value>, <value>)",
            "\"\"\"<gap>  a {{$a}}\n    b<gap>\"\"\"",
            "<value> in <value>",
            "join([\"a\"], <value>)",
            "\"\\u{e9}\\n\\\"\"",
        ],
    ),
    (
        "type",
        &[
            "Int",
            "String",
            "Any",
            "Shared",
            "[<type>]",
            "<type>?",
            "{ a: <type>, b: <type>? }",
            "\"a\" | \"b\"",
            "<type> | <type>",
            "{ }",
        ],
    ),
    ("gap", &[" ", "\n", "\n  ", "\n\n\n", " # <word>\n", "\r\n", "\t"]),
    ("word", &["note", "é }", "\"", "  two  words ", "{{"]),
];

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let compiled = compile(PATH, &text, &World);
    match &compiled {
        Ok(compiled) => explained(compiled)?,
        Err(problems) => placed(problems)?,
    }
    match format(PATH, &text) {
        Err(problems) => {
            placed(&problems)?;
            ensure!(compiled.is_err(), "what cannot be parsed was compiled");
        }
        Ok(formatted) => {
            let again = format(PATH, &formatted);
            let again = again.map_err(|problems| {
                format!("the formatted text is refused: {}\n{formatted}", first(&problems))
            })?;
            same("formatting twice is another text than once", &again, &formatted)?;
            same_meaning(&compiled, &compile(PATH, &formatted, &World), &formatted)?;
        }
    }
    Ok(())
}

fn first(problems: &QueryProblems) -> String {
    problems
        .problems
        .first()
        .map(|problem| format!("{}: {}", problem.place, problem.message))
        .unwrap_or_default()
}

fn explained(compiled: &CompiledQuery) -> Result<(), String> {
    for plan in &compiled.queries {
        let explanation = explain(plan);
        ensure!(
            explanation.text().contains(&plan.name),
            "the explanation of `{}` does not name it",
            plan.name
        );
        ensure!(!explanation.mermaid().is_empty() && !explanation.dot().is_empty(), "a diagram is empty");
    }
    Ok(())
}

type Outcome = Result<CompiledQuery, QueryProblems>;

fn same_meaning(one: &Outcome, other: &Outcome, formatted: &str) -> Result<(), String> {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let plans = |compiled: &CompiledQuery| without_places(&format!("{:?}", compiled.queries));
            same("formatting changes the plans", &plans(one), &plans(other))
        }
        // A list of a hundred problems is full: which of them are in it depends on their order.
        (Err(one), Err(other)) if one.problems.len() < 100 && other.problems.len() < 100 => {
            let kinds = |problems: &QueryProblems| {
                let mut kinds: Vec<&str> = problems.problems.iter().map(|problem| problem.kind).collect();
                kinds.sort_unstable();
                kinds
            };
            same(&format!("formatting changes the problems of\n{formatted}"), &kinds(one), &kinds(other))
        }
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(problems)) => Err(format!("formatting breaks it: {}\n{formatted}", first(problems))),
        (Err(problems), Ok(_)) => Err(format!("formatting mends it: {}\n{formatted}", first(problems))),
    }
}

/// Places move when a source is formatted; everything else of a plan stays.
fn without_places(plans: &str) -> String {
    let mut pieces = plans.split("SourceLocation {");
    let mut rest = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        rest.push_str(piece.split_once('}').map_or(piece, |(_, after)| after));
    }
    rest
}

fn placed(problems: &QueryProblems) -> Result<(), String> {
    ensure!(
        !problems.problems.is_empty() && problems.problems.len() <= 100,
        "{} problems",
        problems.problems.len()
    );
    for problem in &problems.problems {
        ensure!(!problem.message.is_empty(), "a problem at {} says nothing", problem.place);
        ensure!(
            !problem.message.chars().any(char::is_control),
            "a message has a control character: {:?}",
            problem.message
        );
        let labels = problem.labels.iter().map(|(place, end, _)| (place, *end));
        for (place, end) in std::iter::once((&problem.place, problem.end_column)).chain(labels) {
            let source = problems.sources.iter().find(|source| source.path == place.file);
            let source = source.ok_or_else(|| format!("the place {place} is in no source"))?;
            let line =
                (place.line as usize).checked_sub(1).and_then(|line| source.text.split('\n').nth(line));
            let line = line.ok_or_else(|| format!("the line of {place} does not exist"))?;
            let width = line.chars().count();
            ensure!(
                (1..=width + 1).contains(&(place.column as usize)),
                "the column of {place} does not exist"
            );
            ensure!(
                end > place.column && end as usize <= width + 2,
                "the end {end} of {place} does not exist"
            );
        }
    }
    Ok(())
}

/// What some of the seeds import.
const FINDINGS: &str = "type Finding { file: String, note: String? }\n\
                        query Summarise($findings: [Finding]) { text: agent() { prompt: \"{{$findings}}\" } return text }\n";

/// A few tools, one forged tool, and two files to import.
struct World;

static TOOLS: LazyLock<Vec<ToolDefinition>> = LazyLock::new(|| {
    let tool = |name: &str, alias: &str, effect, properties: Value, required: &str| {
        Some(ToolDefinition {
            name: ToolName::new(name).ok()?,
            aliases: vec![alias.to_owned()],
            description: String::new(),
            input_schema: json!({
                "type": "object", "properties": properties, "required": [required], "additionalProperties": false
            }),
            effect,
            path: ExecutionPath::Fast,
            dry_run: false,
        })
    };
    let text = || json!({ "type": "string", "minLength": 1 });
    let tools = [
        tool(
            "fs_read",
            "fs.read",
            Effect::Read,
            json!({ "path": text(), "offset": { "type": "integer", "minimum": 0 } }),
            "path",
        ),
        tool(
            "fs_write",
            "Write",
            Effect::Write,
            json!({ "path": text(), "content": { "type": "string" } }),
            "path",
        ),
        tool("search_grep", "Grep", Effect::Read, json!({ "pattern": text(), "paths": {} }), "pattern"),
        tool("exec_sql", "db.query", Effect::Write, json!({ "sql": text(), "params": {} }), "sql"),
        tool("graph_query", "GraphQuery", Effect::Read, json!({ "query": text(), "params": {} }), "query"),
        tool("exec_tool", "Exec", Effect::Execute, json!({ "path": text(), "args": {} }), "path"),
        tool("shell_exec", "Bash", Effect::Execute, json!({ "command": text() }), "command"),
    ];
    tools.into_iter().flatten().collect()
});

impl QueryCatalogue for World {
    fn tools(&self) -> &[ToolDefinition] {
        &TOOLS
    }

    fn forged(&self, path: &str) -> Option<ForgedToolSchema> {
        (path == "tools/math/fib.ts").then(|| ForgedToolSchema {
            parameters: json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
            result: json!({ "type": "number" }),
        })
    }

    fn forged_paths(&self) -> Vec<String> {
        vec!["tools/math/fib.ts".to_owned()]
    }

    fn source(&self, path: &str) -> Result<String, ToolError> {
        match path {
            "shared.aql" => {
                Ok("type Shared { a: Int, b: String? }\nquery Inner($n: Int) { return $n }\n".to_owned())
            }
            "shared/findings.aql" => Ok(FINDINGS.to_owned()),
            _ => Err(ToolError::new(Code::NotFound, "there is no such file")),
        }
    }
}
