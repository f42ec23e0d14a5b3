//! A run from its query to its outputs, and on from where it was left.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tgp_agent::AgentClock;
use tgp_aql::{
    CompiledQuery, JournalLine, Kind, PlanBlock, QueryJournal, QueryPlan, QueryPorts, QueryProblems,
    RunEvent, RunOptions, RunReport, compile,
};
use tgp_contract::{Actor, Cancellation, CapabilityToken, Code, Consent, ToolError, ToolResult, canonical};
use tgp_policy::Caveats;
use tokio::sync::mpsc;

use super::cache::ValueCache;
use super::catalogue::{KernelCatalogue, read_source};
use super::host::{KernelQueryHost, StepTokens};
use super::store::{End, Head, Runs};
use crate::Kernel;
use crate::sessions::{ModelChoice, StepRunner, SystemClock, new_id};
use crate::tokens::{EXEC_TOOL, only_tools};

/// How long a run may take where its query does not say; its token lives that long and a little longer.
const USUAL_SECONDS: u64 = 3_600;
const TOKEN_SLACK_SECONDS: u64 = 600;
/// The act of the audit that says what was asked for.
const ACT: &str = "aql_run";

/// What is to be run.
pub struct QueryRequest<'a> {
    pub compiled: &'a CompiledQuery,
    pub plan: &'a QueryPlan,
    pub inputs: Map<String, Value>,
    /// What holds where an agent names no model, or only the name of one.
    pub model: ModelChoice,
    pub consent: Consent,
    /// Who the calls are made by, for the gates and the record.
    pub actor: String,
}

/// Which run is resumed, and how.
#[derive(Clone, Debug)]
pub struct ResumedQuery {
    pub id: String,
    /// Other models than before.
    pub model: ModelChoice,
    pub consent: Consent,
    pub actor: String,
    /// Steps that may be repeated although their result is unknown.
    pub again: Vec<String>,
}

impl Kernel {
    /// Checks a file of queries against what this kernel has.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile_queries(&self, path: &str, text: &str) -> Result<CompiledQuery, QueryProblems> {
        compile(path, text, &KernelCatalogue::new(self, None))
    }

    /// The text of a file of queries of the project.
    ///
    /// # Errors
    /// `ENOTFOUND`, and `EVALIDATION` when it is not such a file.
    pub fn query_source(&self, path: &str) -> Result<String, ToolError> {
        read_source(&self.project().join(path), path)
    }

    /// Runs a query. Events come in order, and the last one holds the report that is returned.
    ///
    /// # Errors
    /// When the run cannot begin. What happens later is in the report.
    pub async fn run_query(
        &self,
        request: QueryRequest<'_>,
        events: mpsc::Sender<RunEvent>,
        cancelled: Cancellation<'_>,
    ) -> Result<RunReport, ToolError> {
        self.check_sources(&request.compiled.sources, request.consent)?;
        let created_ms = SystemClock.now_ms();
        let head = Head {
            id: new_id(created_ms, None)?,
            query: request.plan.name.clone(),
            inputs: request.inputs,
            created_ms,
            provider: request.model.provider.clone(),
            model: request.model.model.clone(),
            base_url: request.model.base_url.clone(),
            sources: Head::keep(&request.compiled.sources),
        };
        let (head, journal) = self.runs().create(head)?;
        let work = Work {
            head,
            history: Vec::new(),
            origin: Origin::New,
            again: Vec::new(),
            journal: Arc::new(journal),
        };
        let terms = RunSettings { model: request.model, consent: request.consent, actor: request.actor };
        self.execute(request.plan, work, terms, events, cancelled).await
    }

    /// Resumes a run that was killed, stopped or has failed, without repeating what was done.
    ///
    /// # Errors
    /// When there is no such run, another process works on it, or its sources no longer fit the tools.
    pub async fn resume_query(
        &self,
        request: ResumedQuery,
        events: mpsc::Sender<RunEvent>,
        cancelled: Cancellation<'_>,
    ) -> Result<RunReport, ToolError> {
        let runs = self.runs();
        let head = runs.head(&runs.find(&request.id)?)?;
        let sources = head.sources();
        let main = sources.first().cloned().ok_or_else(|| {
            ToolError::new(Code::Integrity, "the run has kept no source").help("begin another run")
        })?;
        self.check_sources(&sources, request.consent)?;
        let catalogue = KernelCatalogue::new(self, Some(sources));
        let compiled = compile(&main.path, &main.text, &catalogue).map_err(|problems| problems.to_error())?;
        let plan = choose_query(&compiled, Some(&head.query))?;
        let (journal, history, end) = runs.reopen(&head.id)?;
        let kept = head.choice();
        let model = ModelChoice {
            provider: request.model.provider.or(kept.provider),
            model: request.model.model.or(kept.model),
            base_url: request.model.base_url.or(kept.base_url),
            key_variable: request.model.key_variable,
        };
        let work = Work {
            head,
            history,
            origin: Origin::Resumed(end),
            again: request.again,
            journal: Arc::new(journal),
        };
        let terms = RunSettings { model, consent: request.consent, actor: request.actor };
        self.execute(&plan, work, terms, events, cancelled).await
    }

    /// The runs of this kernel.
    #[must_use]
    pub fn runs(&self) -> Runs {
        Runs::below(self.state_directory())
    }

    async fn execute(
        &self,
        plan: &QueryPlan,
        work: Work,
        terms: RunSettings,
        events: mpsc::Sender<RunEvent>,
        cancelled: Cancellation<'_>,
    ) -> Result<RunReport, ToolError> {
        let Work { head, history, origin, again, journal } = work;
        let ports = QueryPorts {
            tools: self.tool_caller(),
            agents: Arc::new(StepRunner::new(self, terms.model.clone())),
            tokens: Arc::new(StepTokens(self.run_token(plan, &head.id).await?)),
            journal,
            cache: Arc::new(ValueCache::new(self.state_directory().join("aql-cache"))),
            world: Arc::new(KernelQueryHost::new(self, terms.model)),
        };
        let options = RunOptions {
            id: head.id.clone(),
            actor: Actor::Agent(terms.actor),
            consent: terms.consent,
            inputs: head.inputs.clone(),
            history,
            again,
            shuffle: None,
        };
        let run = tgp_aql::run(plan, options, &ports, events, cancelled).await;
        let runs = self.runs();
        let report = match run {
            Ok(report) => report,
            Err(error) => {
                // It has not even begun: a new one leaves nothing, an old one stays what it was.
                match origin {
                    Origin::New => runs.forget(&head.id)?,
                    Origin::Resumed(Some(end)) => runs.end(&head.id, &end)?,
                    Origin::Resumed(None) => {}
                }
                return Err(error);
            }
        };
        let error = report.error.clone();
        runs.end(
            &head.id,
            &End { stopped: error.as_ref().map(ToolError::is_of_cancellation), error: error.clone() },
        )?;
        let sources = serde_json::to_value(&head.sources).unwrap_or_default();
        let arguments = json!({
            "run": head.id,
            "query": head.query,
            "sources": canonical::hash(&sources).ok(),
            "inputs": canonical::hash(&Value::Object(head.inputs)).ok(),
        });
        let told = error.map_or(ToolResult::Done(Value::Null), ToolResult::Failed);
        self.record_act(ACT, arguments, told).await?;
        self.flush().await?;
        Ok(report)
    }

    /// A token that is good for the tools of this query and the sessions of this run only; each step gets less of it.
    async fn run_token(&self, plan: &QueryPlan, run: &str) -> Result<CapabilityToken, ToolError> {
        let tools = ToolUsage::by(&plan.body).tools;
        let seconds = plan.budget.time.map_or(USUAL_SECONDS, |time| time.as_secs()) + TOKEN_SLACK_SECONDS;
        let caveats = Caveats {
            expires_ms: Some(SystemClock.now_ms() + seconds * 1000),
            run: Some(run.to_owned()),
            note: Some(format!("a run of the query {}", plan.name)),
            ..only_tools(tools.into_iter().collect())
        };
        self.mint_token(&caveats).await
    }
}

/// The query of a file that is meant: the one of this name, or the only one.
///
/// # Errors
/// `EVALIDATION` with the names there are.
pub fn choose_query(compiled: &CompiledQuery, name: Option<&str>) -> Result<Arc<QueryPlan>, ToolError> {
    let names: Vec<&str> = compiled.queries.iter().map(|plan| plan.name.as_str()).collect();
    let found = match (name, compiled.queries.as_slice()) {
        (None, [only]) => return Ok(Arc::clone(only)),
        (None, []) => {
            return Err(ToolError::new(Code::Validation, "the file holds no query")
                .help("write one: query Name { step: agent() { prompt: \"…\" } }"));
        }
        (None, _) => None,
        (Some(name), queries) => queries.iter().find(|plan| plan.name == name),
    };
    found.map(Arc::clone).ok_or_else(|| {
        let message = match name {
            Some(name) => format!("there is no query `{name}` in the file"),
            None => "the file holds several queries".to_owned(),
        };
        ToolError::new(Code::Validation, message).help(format!("name one of them: {}", names.join(", ")))
    })
}

/// Every tool that a query can call. Queries that many steps use are read once.
#[derive(Default)]
struct ToolUsage {
    tools: BTreeSet<String>,
    seen: BTreeSet<*const QueryPlan>,
}

impl ToolUsage {
    fn by(block: &PlanBlock) -> Self {
        let mut used = Self::default();
        used.block(block);
        used
    }

    fn block(&mut self, block: &PlanBlock) {
        for step in &block.steps {
            match &step.kind {
                Kind::Agent(agent) => self.tools.extend(agent.tools.iter().cloned()),
                Kind::Tool { tool, .. } => self.tool(tool),
                Kind::Exec { .. } => self.tool(EXEC_TOOL),
                Kind::Graph { .. } => self.tool("graph_query"),
                Kind::Sql { .. } => self.tool("exec_sql"),
                Kind::Merge { .. } => {}
                Kind::Map { body, .. } => self.block(body),
                Kind::When { then, otherwise, .. } => {
                    self.block(then);
                    otherwise.iter().for_each(|block| self.block(block));
                }
                Kind::Query { query, .. } => {
                    if self.seen.insert(Arc::as_ptr(query)) {
                        self.block(&query.body);
                    }
                }
            }
        }
    }

    fn tool(&mut self, name: &str) {
        self.tools.insert(name.to_owned());
    }
}

/// Whether a run begins, or is resumed after it ended this way or was killed.
enum Origin {
    New,
    Resumed(Option<End>),
}

/// The state of one run.
struct Work {
    head: Head,
    history: Vec<JournalLine>,
    origin: Origin,
    again: Vec<String>,
    journal: Arc<dyn QueryJournal>,
}

/// On which terms it works.
struct RunSettings {
    model: ModelChoice,
    consent: Consent,
    actor: String,
}
