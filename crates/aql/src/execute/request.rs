//! What a step asks for: one call or one agent's work, with all values in their places.

use serde_json::{Map, Value, json};
use tgp_contract::{Actor, AgentTask, Code, ToolError, canonical};

use super::block::BlockCtx;
use super::bounds::MAX_TEXT_BYTES;
use super::evaluate::{evaluate, text};
use super::path::StepInstance;
use super::run::Run;
use crate::types::found;
use crate::{Agent, Expression, Kind, QueryType, Step};

/// Letters of a hash that distinguish the sessions of one run.
const SESSION_HASH_LETTERS: usize = 16;

/// The tool that runs forged ones.
pub(super) const EXEC_TOOL: &str = "exec_tool";

pub(super) enum Request {
    Call {
        tool: String,
        arguments: Value,
        /// The part of the answer that is the step's value; all of it where there is none.
        part: Option<&'static str>,
    },
    /// Session, bounds and token are put in for each attempt.
    Agent(Box<AgentTask>),
}

impl Request {
    /// The id of an attempt's call, or the session that an agent works in. An agent resumes its session; one whose
    /// answer could not be corrected starts a new one.
    pub(super) fn call_id(&self, path: &str, attempt: u32, last: Option<&(String, bool)>) -> String {
        match (self, last) {
            (Request::Call { .. }, _) => format!("{path}#{attempt}"),
            (Request::Agent(_), Some((session, false))) => session.clone(),
            (Request::Agent(task), Some((_, true))) => format!("{}-{attempt}", task.session),
            (Request::Agent(task), None) => task.session.clone(),
        }
    }
}

impl<'p> Run<'p> {
    pub(super) fn request(
        &self,
        level: &BlockCtx<'p>,
        step: &Step,
        here: &StepInstance,
    ) -> Result<Request, ToolError> {
        let frame = &level.frame;
        let object = |expression: &Expression| match evaluate(expression, frame)? {
            Value::Object(fields) => Ok(Value::Object(fields)),
            other => {
                Err(ToolError::new(Code::Validation, format!("expected an object, found {}", found(&other)))
                    .place(&expression.place)
                    .detail("found", found(&other))
                    .help("write the arguments as `{ name: value }`"))
            }
        };
        let call =
            |tool: &str, arguments: Value, part| Request::Call { tool: tool.to_owned(), arguments, part };
        Ok(match &step.kind {
            Kind::Tool { tool, arguments } => call(tool, object(arguments)?, None),
            Kind::Exec { path, arguments } => {
                let arguments = json!({ "path": path, "args": evaluate(arguments, frame)? });
                call(EXEC_TOOL, arguments, Some("result"))
            }
            Kind::Graph { cypher, commit, params } => {
                let mut arguments = Map::new();
                arguments.insert("query".to_owned(), json!(cypher));
                arguments.insert("params".to_owned(), object(params)?);
                if let Some(commit) = commit {
                    arguments.insert("commit".to_owned(), json!(text(commit, frame)?));
                }
                call("graph_query", Value::Object(arguments), Some("results"))
            }
            Kind::Sql { sql, params } => {
                call("exec_sql", json!({ "sql": sql, "params": object(params)? }), None)
            }
            Kind::Agent(agent) => Request::Agent(Box::new(self.task(level, step, here, agent)?)),
            Kind::Merge { .. } | Kind::Map { .. } | Kind::When { .. } | Kind::Query { .. } => {
                return Err(ToolError::new(Code::Internal, "a step without an effect came the wrong way"));
            }
        })
    }

    fn task(
        &self,
        level: &BlockCtx<'p>,
        step: &Step,
        here: &StepInstance,
        agent: &Agent,
    ) -> Result<AgentTask, ToolError> {
        let own = agent.system.as_ref().map(|system| text(system, &level.frame)).transpose()?;
        let format = json_type(step).map(answer_format);
        let parts: Vec<String> = [own, format].into_iter().flatten().collect();
        let system = Some(parts.join("\n\n")).filter(|_| !parts.is_empty());
        let prompt = text(&agent.prompt, &level.frame)?;
        let bytes = prompt.len() + system.as_ref().map_or(0, String::len);
        if bytes > MAX_TEXT_BYTES {
            let message =
                format!("a prompt can have at most {MAX_TEXT_BYTES} bytes, and this one has {bytes}");
            return Err(ToolError::new(Code::Validation, message)
                .place(&agent.prompt.place)
                .help("put a part of the value into the prompt, or let the agent read it with a tool"));
        }
        let hash: String =
            canonical::sha256_hex(here.path.as_bytes()).chars().take(SESSION_HASH_LETTERS).collect();
        Ok(AgentTask {
            session: format!("{}-{hash}", self.options.id),
            actor: match self.actor_of(step) {
                Actor::Agent(name) => name,
                Actor::Person(_) | Actor::Tool(_) => format!("{}.{}", self.query, step.name),
            },
            model: agent.model.clone(),
            system,
            prompt,
            tools: agent.tools.clone(),
            temperature: agent.temperature,
            max_steps: agent.max_steps,
            max_tokens: None,
            correction: None,
            consent: self.options.consent,
            token: None,
            allowance: None,
        })
    }

    /// What the value of a step is kept under: everything that decides it. `None` when that is not known.
    pub(super) async fn cache_key(&self, step: &Step, request: &Request) -> Option<String> {
        let ty = step.checked.as_ref().map(QueryType::to_schema);
        let content = match (&step.kind, request) {
            (Kind::Exec { .. }, Request::Call { tool, arguments, .. }) => {
                let version = self.ports.world.tools_version().await?;
                json!({ "tool": tool, "arguments": arguments, "version": version })
            }
            (Kind::Graph { .. }, Request::Call { tool, arguments, .. }) => {
                let commit = arguments.get("commit").and_then(Value::as_str);
                let version = self.ports.world.graph_version(commit).await?;
                let mut asked = arguments.clone();
                if let Some(fields) = asked.as_object_mut() {
                    // Two names of one commit are one question.
                    fields.remove("commit");
                }
                json!({ "tool": tool, "arguments": asked, "version": version })
            }
            (_, Request::Call { tool, arguments, .. }) => json!({ "tool": tool, "arguments": arguments }),
            (_, Request::Agent(task)) => {
                let version = self.ports.world.model_version(task.model.as_deref()).await?;
                let definitions: Vec<_> =
                    task.tools.iter().map(|tool| (tool, self.definitions.get(tool))).collect();
                json!({
                    "model": version,
                    "system": task.system,
                    "prompt": task.prompt,
                    "temperature": task.temperature,
                    "maxSteps": task.max_steps,
                    "tools": definitions,
                })
            }
        };
        let whole = json!({ "kind": step.kind.name(), "type": ty, "content": content });
        // A number that has no canonical form has no hash either; such a step is simply not cached.
        canonical::hash(&whole).ok()
    }
}

/// The type that an agent answers in as JSON; `None` when it answers with plain text.
pub(super) fn json_type(step: &Step) -> Option<&QueryType> {
    step.checked.as_ref().filter(|ty| **ty != QueryType::String)
}

fn answer_format(ty: &QueryType) -> String {
    format!(
        "When you are done, answer with one JSON value that fits this JSON Schema, and with nothing else: no words before or after it.\n{}",
        ty.to_schema()
    )
}
