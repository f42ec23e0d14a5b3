//! The valve of this kernel: what changes in the project becomes events, and events become work through the router.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tgp_agent::AgentClock;
use tgp_aql::QueryPlan;
use tgp_contract::{
    Actor, AgentFailure, AgentRunner, AgentTask, CallContext, Cancellation, CapabilityToken, Code, Consent,
    RelativePath, ToolCall, ToolError, ToolResult,
};
use tgp_policy::Caveats;
use tgp_text::RulePurpose;
use tgp_valve::{Action, ActionFailure, ActionReport, Actions, AgentAction, Trigger, ValveOptions};
pub use tgp_valve::{Persona, PersonaStatus, Personas, ScanReport, ValveEvent};
pub use tgp_valve::{ScanRequest, Valve, ValveStatus};
use tokio::sync::mpsc;

use crate::Kernel;
use crate::queries::{QueryRequest, choose_query};
use crate::sessions::{ModelChoice, StepRunner, SystemClock, new_id};
use crate::tokens::{EXEC_TOOL, only_tools};

/// What is known of the files, in the kernel's own state.
const JOURNAL: &str = "valve.sqlite";
/// How long the token of one action lives: longer than anything that runs by itself should.
const TOKEN_SECONDS: u64 = 86_400;
/// Turns of an agent that a persona asks, where it does not say.
const USUAL_STEPS: u64 = 16;
/// Events of a query without a watcher.
const EVENTS: usize = 16;

/// How a valve works.
#[derive(Clone, Debug, Default)]
pub struct ValveRequest {
    /// Whether the first scan reports every file as created. Otherwise it is only remembered.
    pub all: bool,
    /// Whether what personas do counts as agreed to; otherwise the user is asked, or it is refused.
    pub agreed: bool,
    /// The model of personas that name none.
    pub model: ModelChoice,
    pub look: ScanRequest,
}

impl Kernel {
    /// The valve of this project. Two cannot work at the same time.
    ///
    /// # Errors
    /// `ECONFIG` when the personas cannot be read, `ECONFLICT` when another one works.
    pub fn valve(&self, request: ValveRequest) -> Result<Valve, ToolError> {
        self.policy().check_files()?;
        let file = self.personas_file();
        if self.is_in_tools(file) {
            let message = format!("`{file}` is in the tool repository, which remotes and agents change");
            return Err(ToolError::new(Code::Security, message).help(
                "keep the personas in the project, and the tool repository in a directory of its own",
            ));
        }
        let consent = if request.agreed { Consent::Everything } else { Consent::Ask };
        Valve::open(&ValveOptions {
            project: self.project().to_owned(),
            repository: self.config().repository.clone(),
            journal: self.state_directory().join(JOURNAL),
            personas_file: RelativePath::new(file)?,
            chronicle: self.knowledge().chronicle(),
            layout: self.knowledge().layout(),
            actions: Arc::new(KernelActions { kernel: self.share(), consent, model: request.model }),
            clock: Arc::new(|| SystemClock.now_ms()),
            all: request.all,
            look: request.look,
        })
    }

    /// Whether the project has a file of personas, readable or not.
    #[must_use]
    pub fn has_personas(&self) -> bool {
        self.project().join(self.personas_file()).symlink_metadata().is_ok()
    }

    /// The file of personas that is there, relative to the project; the first of the usual names where none is.
    fn personas_file(&self) -> &'static str {
        let usual = RulePurpose::Personas.paths();
        let there = usual.iter().find(|name| self.project().join(name).symlink_metadata().is_ok());
        there.or(usual.first()).copied().unwrap_or_default()
    }

    /// The state of the valve, whether one works or not.
    ///
    /// # Errors
    /// When its journal cannot be read.
    pub fn valve_status(&self) -> Result<ValveStatus, ToolError> {
        let journal = self.state_directory().join(JOURNAL);
        Valve::status(self.project(), &journal, &RelativePath::new(self.personas_file())?)
    }
}

/// Does what personas want, through the router.
struct KernelActions {
    kernel: Kernel,
    consent: Consent,
    model: ModelChoice,
}

#[async_trait]
impl Actions for KernelActions {
    async fn act(
        &self,
        action: &Action,
        trigger: &Trigger,
        cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure> {
        match action {
            Action::Record => Ok(ActionReport::default()),
            Action::Tool { path, args } => self.run_tool(path, args, trigger, cancelled).await,
            Action::Query { file, name, inputs } => {
                self.run_query(file, name.as_deref(), inputs, trigger, cancelled).await
            }
            Action::Agent(agent) => self.ask_agent(agent, trigger, cancelled).await,
        }
    }
}

impl KernelActions {
    /// The tool gets its arguments, and the trigger as `trigger` where it declares that or declares nothing.
    async fn run_tool(
        &self,
        path: &str,
        args: &Map<String, Value>,
        trigger: &Trigger,
        cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure> {
        let mut args = args.clone();
        if let Some(trigger) = self.declared_trigger(path, trigger).await {
            args.insert("trigger".to_owned(), trigger);
        }
        let session = session_of(trigger);
        let token = self.token(&[EXEC_TOOL.to_owned()], &session, trigger).await?;
        let call = ToolCall {
            id: format!("valve-{}", trigger.sequence),
            tool: EXEC_TOOL.to_owned(),
            arguments: json!({ "path": path, "args": args }),
        };
        let context = CallContext {
            actor: Actor::Agent(actor_of(trigger)),
            session,
            consent: self.consent,
            dry_run: false,
            depth: 0,
            token: Some(token),
        };
        let record = self.kernel.tool_caller().call(call, context, cancelled).await;
        let files = record.files;
        match record.result {
            ToolResult::Done(data) => {
                let result = data.get("result").map(Value::to_string).unwrap_or_default();
                Ok(ActionReport { summary: format!("{path} answered {result}"), files })
            }
            ToolResult::Failed(error) => Err(ActionFailure { files, ..error.into() }),
        }
    }

    /// The trigger as the tool declares it: without fields that it does not have, and nothing where it has no `trigger`.
    async fn declared_trigger(&self, path: &str, trigger: &Trigger) -> Option<Value> {
        let path = RelativePath::new(path).ok();
        let declared = match &path {
            Some(path) => self.kernel.declared_types(path).await,
            None => None,
        };
        let trigger = json!(trigger);
        let Some(declared) = declared else { return Some(trigger) };
        let Some(fields) = declared.only_fields() else { return Some(trigger) };
        Some(declared.prune(&fields.get("trigger")?.ty, trigger))
    }

    /// Inputs of the query that are not given are taken from the trigger, by name.
    async fn run_query(
        &self,
        file: &str,
        name: Option<&str>,
        inputs: &Map<String, Value>,
        trigger: &Trigger,
        cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure> {
        let text = self.kernel.query_source(file)?;
        let compiled = self.kernel.compile_queries(file, &text).map_err(|problems| problems.to_error())?;
        let plan = choose_query(&compiled, name)?;
        let request = QueryRequest {
            compiled: &compiled,
            plan: &plan,
            inputs: inputs_of(&plan, inputs, trigger),
            model: self.model.clone(),
            consent: self.consent,
            actor: actor_of(trigger),
        };
        let (events, mut heard) = mpsc::channel(EVENTS);
        let drain = async { while heard.recv().await.is_some() {} };
        let (report, ()) = tokio::join!(self.kernel.run_query(request, events, cancelled), drain);
        let report = report?;
        if let Some(error) = report.error {
            let error = error.detail("run", report.run);
            return Err(ActionFailure { files: report.files, ..error.into() });
        }
        let summary = format!("run {} of {}: {}", report.run, report.query, report.outputs);
        Ok(ActionReport { summary, files: report.files })
    }

    async fn ask_agent(
        &self,
        agent: &AgentAction,
        trigger: &Trigger,
        cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure> {
        let session = new_id(SystemClock.now_ms(), None)?;
        let tools = agent.tools.clone().unwrap_or_default();
        let token = self.token(&tools, &session, trigger).await?;
        let told = serde_json::to_string_pretty(trigger).unwrap_or_default();
        let task = AgentTask {
            session: session.clone(),
            actor: actor_of(trigger),
            model: agent.model.clone(),
            system: None,
            prompt: format!("{}\n\nWhat happened, as data:\n```json\n{told}\n```", agent.prompt),
            tools,
            temperature: None,
            max_steps: agent.max_steps.unwrap_or(USUAL_STEPS),
            max_tokens: None,
            correction: None,
            consent: self.consent,
            token: Some(token),
            allowance: None,
        };
        let runner = StepRunner::new(&self.kernel, self.model.clone());
        let work = runner
            .work(task, cancelled)
            .await
            .map_err(|AgentFailure { error, files, .. }| ActionFailure { files, ..(*error).into() })?;
        Ok(ActionReport { summary: format!("session {session}: {}", work.answer), files: work.files })
    }

    /// A token that is good for these tools in this session.
    async fn token(
        &self,
        tools: &[String],
        session: &str,
        trigger: &Trigger,
    ) -> Result<CapabilityToken, ToolError> {
        let caveats = Caveats {
            session: Some(session.to_owned()),
            expires_ms: Some(SystemClock.now_ms() + TOKEN_SECONDS * 1000),
            note: Some(format!("persona {}", trigger.persona)),
            ..only_tools(tools.to_vec())
        };
        self.kernel.mint_token(&caveats).await
    }
}

fn actor_of(trigger: &Trigger) -> String {
    format!("valve:{}", trigger.persona)
}

fn session_of(trigger: &Trigger) -> String {
    format!("valve-{}", trigger.persona)
}

/// What a trigger passes to a query, by the names of its inputs.
const TOLD: [&str; 7] = ["path", "change", "from", "before", "after", "persona", "trigger"];

/// The given inputs, and those further inputs of the query that the trigger provides.
fn inputs_of(plan: &QueryPlan, given: &Map<String, Value>, trigger: &Trigger) -> Map<String, Value> {
    let told = json!(trigger);
    let known = |name: &str| match name {
        "trigger" => told.clone(),
        "path" => json!(trigger.file_path),
        // What there is none of is null: a created file has no `before`.
        name => told.get(name).cloned().unwrap_or_default(),
    };
    let mut inputs = given.clone();
    let is_wanted = |name: &str| TOLD.contains(&name) && !given.contains_key(name);
    for input in plan.inputs.iter().filter(|input| is_wanted(&input.name)) {
        let value = known(&input.name);
        // A default of the query says what null would mean.
        if !(value.is_null() && input.default.is_some()) {
            inputs.insert(input.name.clone(), value);
        }
    }
    inputs
}
