//! T4: a query is checked before it runs, and its steps run at the same time where they can.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tgp_aql::{
    AttemptScope, Cache, EarlierOutcome, ForgedToolSchema, JournalLine, QueryCatalogue, QueryJournal,
    QueryPlan, QueryPorts, RunOptions, RunReport, TokenUsage, compile, run,
};
use tgp_contract::{
    Actor, AgentFailure, AgentResult, AgentRunner, AgentTask, Cancellation, CapabilityToken, Code, Consent,
    ToolCaller, ToolDefinition, ToolError,
};
use tokio::sync::{Barrier, mpsc};

use super::{Case, Running, t4_forged};
use crate::conversation::{Counted, end, say};
use crate::fault::{Expecting, Fault, holds, same};
use crate::world::World;

pub(super) const CASES: &[Case] = &[
    Case { id: "t4.execute", title: "a query is compiled to steps, and its values come out", run: execute },
    Case {
        id: "t4.unknown-field",
        title: "a name that is not there is a typed error before anything runs",
        run: unknown_field,
    },
    Case {
        id: "t4.parallel",
        title: "steps that do not need each other run at the same time",
        run: parallel,
    },
    Case {
        id: "t4.tool-schema",
        title: "a tool's arguments that do not fit are EVALIDATION before anything runs",
        run: tool_schema,
    },
    Case {
        id: "t4.forged-schema",
        title: "a forged tool's arguments that do not fit are EVALIDATION at the check and at the run",
        run: t4_forged::forged_schema,
    },
];

/// How long two steps that should meet wait for each other.
const MEETING: Duration = Duration::from_secs(20);
/// Events of a run that wait to be read.
const WAITING_EVENTS: usize = 64;
const NOTES: &str = "notes.md";

/// What a query needs in addition: the tools of the row, and a forged one.
struct ToolSet {
    tools: Vec<ToolDefinition>,
    /// Its path, and the schema of its arguments.
    forged: Option<(String, Value)>,
}

impl QueryCatalogue for ToolSet {
    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn forged(&self, path: &str) -> Option<ForgedToolSchema> {
        let (_, parameters) = self.forged.as_ref().filter(|(known, _)| known == path)?;
        Some(ForgedToolSchema { parameters: parameters.clone(), result: Value::Bool(true) })
    }

    fn forged_paths(&self) -> Vec<String> {
        self.forged.iter().map(|(path, _)| path.clone()).collect()
    }

    fn source(&self, path: &str) -> Result<String, ToolError> {
        Err(ToolError::new(Code::NotFound, format!("there is no file `{path}`")))
    }
}

/// Everything else that a run needs, as little as it can be.
struct StubPorts;

impl TokenUsage for StubPorts {
    fn attenuated(&self, _scope: &AttemptScope) -> Result<Option<CapabilityToken>, ToolError> {
        Ok(None)
    }
}

impl QueryJournal for StubPorts {
    fn append(&self, _line: &JournalLine) -> Result<(), ToolError> {
        Ok(())
    }
}

impl Cache for StubPorts {
    fn get(&self, _key: &str) -> Option<Value> {
        None
    }

    fn put(&self, _key: &str, _value: &Value) {}
}

#[async_trait]
impl tgp_aql::QueryHost for StubPorts {
    fn now_ms(&self) -> u64 {
        0
    }

    async fn tools_version(&self) -> Option<String> {
        None
    }

    async fn graph_version(&self, _commit: Option<&str>) -> Option<String> {
        None
    }

    async fn model_version(&self, _model: Option<&str>) -> Option<String> {
        None
    }

    async fn fate(&self, _session: &str, _call: &str) -> Result<EarlierOutcome, ToolError> {
        Ok(EarlierOutcome::Unknown)
    }
}

/// The only query of a text.
fn planned(tools: &dyn ToolCaller, text: &str) -> Result<Arc<QueryPlan>, ToolError> {
    planned_with(tools, text, None)
}

/// The same where there is a forged tool, with the schema of its arguments.
pub(super) fn planned_with(
    tools: &dyn ToolCaller,
    text: &str,
    forged: Option<(&str, Value)>,
) -> Result<Arc<QueryPlan>, ToolError> {
    let forged = forged.map(|(path, schema)| (path.to_owned(), schema));
    let shelf = ToolSet { tools: tools.definitions(), forged };
    let compiled = compile("relay.aql", text, &shelf).map_err(|problems| problems.to_error())?;
    let only = compiled.queries.into_iter().next();
    only.ok_or_else(|| ToolError::new(Code::Validation, "there is no query in the text"))
}

pub(super) async fn carried_out(
    plan: &QueryPlan,
    tools: Arc<dyn ToolCaller>,
    agents: Arc<dyn AgentRunner>,
    inputs: Map<String, Value>,
) -> Result<RunReport, Fault> {
    let rest = Arc::new(StubPorts);
    let ports = QueryPorts {
        tools,
        agents,
        tokens: rest.clone(),
        journal: rest.clone(),
        cache: rest.clone(),
        world: rest,
    };
    let options = RunOptions {
        id: "relay".to_owned(),
        actor: Actor::Agent("relay".to_owned()),
        consent: Consent::Given,
        inputs,
        history: Vec::new(),
        again: Vec::new(),
        shuffle: None,
    };
    let (sender, mut events) = mpsc::channel(WAITING_EVENTS);
    let listening = async { while events.recv().await.is_some() {} };
    let never: Cancellation<'_> = Box::pin(std::future::pending());
    let (report, ()) = tokio::join!(run(plan, options, &ports, sender, never), listening);
    report.expecting("a run that begins")
}

fn execute(world: &World) -> Running<'_> {
    Box::pin(async move {
        world.workspace.write(NOTES, "the answer is 42\n")?;
        let tools = world.tools()?;
        let model = world.model(&[vec![say("ok:hi"), end()]]).await?;
        let agents = world.agents(model)?;
        let query = r#"query X { step: agent(model: "t"){prompt:"hi"} final: merge(step) }"#;
        let plan = planned(tools.as_ref(), query).expecting("the query of the specification to compile")?;
        let report = carried_out(&plan, Arc::clone(&tools), Arc::clone(&agents), Map::new()).await?;
        holds(report.error.is_none(), "a run without an error", &report)?;
        same("the outputs", &report.outputs, &json!({ "final": "ok:hi" }))?;
        // A step's value is used by another, and a tool answers beside it.
        let query = r#"
            query Y($path: String) {
              note: tool(fs_read) { path: $path }
              step: agent(model: "t") { prompt: "hi" }
              both: merge(step, step, how: "text")
              return { said: both, read: note.content }
            }
        "#;
        let plan = planned(tools.as_ref(), query).expecting("a query with a tool to compile")?;
        let inputs = json!({ "path": NOTES }).as_object().cloned().unwrap_or_default();
        let report = carried_out(&plan, tools, agents, inputs).await?;
        holds(report.error.is_none(), "a run without an error", &report)?;
        let expected = json!({ "said": "ok:hi\n\nok:hi", "read": "the answer is 42\n" });
        same("the outputs", &report.outputs, &expected)
    })
}

/// Fails unless every text is refused with a typed error that has a place, and with nothing called.
fn refused(world: &World, texts: &[(&str, &str)]) -> Result<(), Fault> {
    let tools = Counted::new(world.tools()?);
    for (text, name) in texts {
        let Err(error) = planned(&tools, text) else {
            return Err(Fault::new(format!("`{text}` to be refused for `{name}`"), "a plan"));
        };
        same(&format!("the code for `{text}`"), &error.code, &Code::Validation)?;
        holds(error.place_of().is_some(), format!("the place of the error in `{text}`"), &error)?;
        let is_named = error.message.contains(name);
        holds(is_named, format!("an error that names `{name}`"), &error.message)?;
    }
    same("the calls that were made", &tools.made(), &Vec::new())
}

fn unknown_field(world: &World) -> Running<'_> {
    Box::pin(async move {
        refused(
            world,
            &[
                (r#"query X { step: agent(model: "t") { prompt: "hi" } final: merge(stepp) }"#, "stepp"),
                (r#"query X { step: agent(model: "t", colour: "red") { prompt: "hi" } }"#, "colour"),
                (r#"query X { step: agent(model: "t") { prompt: "hi" wish: "you" } }"#, "wish"),
                (r#"query X { step: wizard(model: "t") { prompt: "hi" } }"#, "wizard"),
                (
                    r#"query X { step: agent(model: "t") as { a: String } { prompt: "hi" } final: merge(step.b) }"#,
                    "b",
                ),
                (r#"wish X { step: agent(model: "t") { prompt: "hi" } }"#, "wish"),
            ],
        )
    })
}

fn tool_schema(world: &World) -> Running<'_> {
    Box::pin(async move {
        refused(
            world,
            &[
                (r#"query X { note: tool(fs_read) { path: "notes.md", sudo: true } }"#, "sudo"),
                (r#"query X { note: tool(fs_write) { path: "notes.md" } }"#, "content"),
                (r#"query X { note: tool(fs_read) { path: 7 } }"#, "path"),
                (r#"query X { note: tool(fs_reed) { path: "notes.md" } }"#, "fs_reed"),
            ],
        )
    })
}

/// Agents of another implementation that wait for each other: none answers before both are at work.
struct Rendezvous {
    inner: Arc<dyn AgentRunner>,
    barrier: Barrier,
}

#[async_trait]
impl AgentRunner for Rendezvous {
    async fn work(&self, task: AgentTask, cancelled: Cancellation<'_>) -> Result<AgentResult, AgentFailure> {
        let met = tokio::time::timeout(MEETING, self.barrier.wait()).await;
        met.map_err(|_| {
            let message = format!("the other step did not begin within {} s", MEETING.as_secs());
            ToolError::new(Code::Runtime, message)
        })?;
        self.inner.work(task, cancelled).await
    }
}

fn parallel(world: &World) -> Running<'_> {
    Box::pin(async move {
        let tools = world.tools()?;
        let model = world.model(&[vec![say("ok:hi"), end()]]).await?;
        // Steps that take turns never meet, however fast or slow the machine is.
        let agents = Arc::new(Rendezvous { inner: world.agents(model)?, barrier: Barrier::new(2) });
        let query = r#"
            query X budget(parallel: 2) {
              left: agent(model: "t") { prompt: "hi" }
              right: agent(model: "t") { prompt: "hi" }
              final: merge(left, right, how: "text")
            }
        "#;
        let plan = planned(tools.as_ref(), query).expecting("a query with two agents to compile")?;
        let report = carried_out(&plan, tools, agents, Map::new()).await?;
        holds(report.error.is_none(), "two steps that run at the same time", &report.error)?;
        same("the outputs", &report.outputs, &json!({ "final": "ok:hi\n\nok:hi" }))
    })
}
