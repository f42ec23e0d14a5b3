//! The tools that a host sees, and the adapters behind them.

mod describe;
mod direct;
mod forge;
mod run;
mod search;
mod wait;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::json;
use tgp_contract::{Code, ToolError, ToolResult};

pub(crate) use direct::DirectTool;
pub(crate) use forge::Forging;
pub(crate) use search::indexed_tools;
pub(crate) use wait::{running, wait};

use crate::approval;
use crate::arguments::{
    ApprovalArgs, DescribeArgs, ForgeArgs, GraphArgs, RunArgs, SearchArgs, approval_schema, describe_schema,
    forge_schema, graph_schema, invoke_schema, parse, run_schema, search_schema, wait_schema,
};
use crate::client::{Caller, Effects};
use crate::options::Mode;
use crate::runs::RunKind;

/// A tool of the server.
#[derive(Clone, Debug)]
pub(crate) enum HostTool {
    Search,
    Describe,
    Run,
    /// `run` without programs, for hosts that have their own.
    Invoke,
    Forge,
    Wait,
    Approval,
    Graph,
    Direct(Arc<DirectTool>),
}

/// What a tool may do, as hosts show it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Reads,
    Acts,
}

impl HostTool {
    /// The tools of a mode; those of the mode `direct` are looked up in the kernel.
    pub(crate) fn fixed(mode: &Mode) -> &'static [Self] {
        match mode {
            Mode::Code => &[
                Self::Search,
                Self::Describe,
                Self::Run,
                Self::Forge,
                Self::Wait,
                Self::Approval,
                Self::Graph,
            ],
            Mode::Search => &[Self::Search, Self::Describe, Self::Invoke, Self::Wait, Self::Approval],
            Mode::Direct(_) => &[Self::Wait, Self::Approval],
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Search => "search",
            Self::Describe => "describe",
            Self::Run => "run",
            Self::Invoke => "invoke",
            Self::Forge => "forge",
            Self::Wait => "wait",
            Self::Approval => "approval",
            Self::Graph => "graph",
            Self::Direct(tool) => tool.name(),
        }
    }

    /// Whether it runs programs, or asks what is known.
    pub(crate) fn kind(&self) -> RunKind {
        match self {
            Self::Run | Self::Invoke | Self::Forge | Self::Direct(_) => RunKind::Program,
            Self::Search | Self::Describe | Self::Wait | Self::Approval | Self::Graph => RunKind::Question,
        }
    }

    /// The definition as a host lists it.
    pub(crate) fn definition(&self) -> Tool {
        let (description, schema, hint): (&str, JsonObject, Hint) = match self {
            Self::Search => (
                "Find tools by what they do: forged ones by meaning, kernel tools by words. Call it before you write code. \
                 Verdict `reuse`: run the tool. `review`: describe it first. `forge`: write a new one.",
                search_schema(),
                Hint::Reads,
            ),
            Self::Describe => (
                "Show how tools are called: TypeScript signatures, JSON Schemas, and the source if wanted.",
                describe_schema(),
                Hint::Reads,
            ),
            Self::Run => (
                "Run a TypeScript program or a tool in a locked sandbox, as one transaction. A program imports forged tools \
                 (`import fib from './math/fib'`) and calls `await tgp.exec_tool(path, args)`, `tgp.exec_sql(sql, params)`, \
                 `tgp.fetch(url)`, `tgp.read_file(path)`, `tgp.write_file(path, text)`; there are no Node modules. Every call \
                 inside is checked and recorded on its own. A long run is answered with its `run`, for `wait`.",
                run_schema(),
                Hint::Acts,
            ),
            Self::Invoke => (
                "Run a tool by its name. A long run is answered with its `run`, for `wait`.",
                invoke_schema(),
                Hint::Acts,
            ),
            Self::Forge => (
                "Make or change a tool, test first: stores the test, sees it fail, stores the source, checks it and sees the \
                 test pass. Anything else is ESTATE with the diagnostics. `run` calls the tool by its name at once.",
                forge_schema(),
                Hint::Acts,
            ),
            Self::Wait => (
                "Wait for a run, cancel it, or read the next part of a long answer.",
                wait_schema(),
                // It can cancel a run.
                Hint::Acts,
            ),
            Self::Approval => (
                "Show which calls wait for the approval of a person, and how approvals are given here.",
                approval_schema(),
                Hint::Reads,
            ),
            Self::Graph => (
                "Ask the code graph of the project in read-only Cypher. Nodes: File {path, name, language, test, lines}, \
                 Symbol {name, qualifiedName, kind, path, line, exported}, Package {name}, Commit {sha, time, author, message}. \
                 Relationships: DEFINES, CONTAINS, IMPORTS, CALLS, CHANGED_IN, PARENT.",
                graph_schema(),
                Hint::Reads,
            ),
            Self::Direct(tool) => return tool.definition(),
        };
        let annotations = ToolAnnotations::new().read_only(hint == Hint::Reads);
        Tool::new(self.name().to_owned(), description.to_owned(), schema).with_annotations(annotations)
    }

    /// The work of a call, which may outlast its request. `wait` is not work: it is answered by the handler.
    ///
    /// # Errors
    /// `EVALIDATION` when the arguments do not fit.
    pub(crate) async fn call(&self, caller: &Caller, arguments: Option<JsonObject>) -> ToolResult {
        let result = match self {
            Self::Search => match parse::<SearchArgs>(self.name(), arguments) {
                Ok(arguments) => search::search(caller, &arguments).await,
                Err(error) => Err(error),
            },
            Self::Describe => match parse::<DescribeArgs>(self.name(), arguments) {
                Ok(arguments) => describe::describe(caller, &arguments).await,
                Err(error) => Err(error),
            },
            Self::Invoke => match parse::<RunArgs>(self.name(), arguments) {
                Ok(RunArgs { code: Some(_), .. }) => {
                    Err(ToolError::new(Code::Validation, "`invoke` takes no `code`")
                        .detail("field", "code")
                        .help("name a tool in `tool`; this server runs no programs"))
                }
                Ok(arguments) => return run::run(caller, arguments).await,
                Err(error) => Err(error),
            },
            Self::Run => match parse::<RunArgs>(self.name(), arguments) {
                Ok(arguments) => return run::run(caller, arguments).await,
                Err(error) => Err(error),
            },
            Self::Forge => match parse::<ForgeArgs>(self.name(), arguments) {
                Ok(arguments) => forge::forge(caller, arguments).await,
                Err(error) => Err(error),
            },
            Self::Approval => match parse::<ApprovalArgs>(self.name(), arguments) {
                Ok(arguments) => approval::status(caller, arguments.id.as_deref()),
                Err(error) => Err(error),
            },
            Self::Graph => match parse::<GraphArgs>(self.name(), arguments) {
                Ok(arguments) => return graph(caller, arguments).await,
                Err(error) => Err(error),
            },
            Self::Direct(tool) => return tool.call(caller, arguments).await,
            Self::Wait => Ok(serde_json::Value::Null),
        };
        result.into()
    }
}

async fn graph(caller: &Caller, arguments: GraphArgs) -> ToolResult {
    let GraphArgs { query, params, commit } = arguments;
    let mut call = json!({ "query": query, "params": params });
    if let (Some(fields), Some(commit)) = (call.as_object_mut(), commit) {
        fields.insert("commit".to_owned(), json!(commit));
    }
    caller.call("graph_query", call, Effects::Real).await
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;
    use serde_json::{Value, json};

    use super::{HostTool, parse};
    use crate::arguments::{ApprovalArgs, DescribeArgs, ForgeArgs, GraphArgs, RunArgs, SearchArgs, WaitArgs};
    use crate::options::Mode;

    /// Tokens of all tools together: every conversation of a host pays for them.
    const MAX_TOKENS: usize = 2_000;

    #[test]
    fn the_tools_are_few_and_small() {
        let tools: Vec<_> = HostTool::fixed(&Mode::Code).iter().map(HostTool::definition).collect();
        let text = serde_json::to_string(&tools).unwrap();
        let tokens = tiktoken_rs::o200k_base_singleton().encode_with_special_tokens(&text).len();
        println!("{} tools, {tokens} tokens", tools.len());
        assert!(tokens < MAX_TOKENS, "{tokens} tokens");
        for tool in &tools {
            let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
            assert!(tool.name.len() <= 40 && tool.name.chars().all(is_plain), "{}", tool.name);
        }
    }

    /// A value that fits a property of a schema.
    fn sample(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("string") => json!("x"),
            Some("boolean") => json!(true),
            Some("integer") => json!(1),
            Some("array") => json!([sample(&schema["items"])]),
            Some("object") => {
                let fields = schema["properties"].as_object().cloned().unwrap_or_default();
                fields.iter().map(|(name, field)| (name.clone(), sample(field))).collect()
            }
            _ => Value::Null,
        }
    }

    #[test]
    fn the_schemas_are_those_of_the_types() {
        for tool in HostTool::fixed(&Mode::Code).iter().chain(HostTool::fixed(&Mode::Search)) {
            let definition = tool.definition();
            let Value::Object(all) = sample(&Value::Object(definition.input_schema.as_ref().clone())) else {
                panic!("{} takes no object", tool.name());
            };
            let required: JsonObject = match definition.input_schema.get("required").and_then(Value::as_array)
            {
                Some(names) => {
                    all.clone().into_iter().filter(|(name, _)| names.contains(&json!(name))).collect()
                }
                None => JsonObject::new(),
            };
            for arguments in [all, required] {
                let shown = json!(arguments);
                let parsed = match tool {
                    HostTool::Search => parse::<SearchArgs>("", Some(arguments)).map(drop),
                    HostTool::Describe => parse::<DescribeArgs>("", Some(arguments)).map(drop),
                    HostTool::Run | HostTool::Invoke => parse::<RunArgs>("", Some(arguments)).map(drop),
                    HostTool::Forge => parse::<ForgeArgs>("", Some(arguments)).map(drop),
                    HostTool::Wait => parse::<WaitArgs>("", Some(arguments)).map(drop),
                    HostTool::Approval => parse::<ApprovalArgs>("", Some(arguments)).map(drop),
                    HostTool::Graph => parse::<GraphArgs>("", Some(arguments)).map(drop),
                    HostTool::Direct(_) => Ok(()),
                };
                assert!(parsed.is_ok(), "{} {shown}: {parsed:?}", tool.name());
            }
        }
    }
}
