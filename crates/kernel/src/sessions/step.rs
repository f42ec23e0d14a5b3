//! An agent that does one step of a query, in its own session.

use std::collections::BTreeSet;
use std::fs;

use async_trait::async_trait;
use serde_json::json;
use tgp_agent::{
    AgentEvent, AgentLimits, AgentOptions, Budgets, Ending, ResumeOptions, StopLevel, StopSignal, Summary,
    TranscriptLine, TranscriptLineKind, step_prompt,
};
use tgp_contract::{
    AgentFailure, AgentResult, AgentRunner, AgentTask, Cancellation, Code, FileEffect, SharedBudget,
    ToolError, Usage, canonical,
};
use tokio::sync::mpsc;

use super::ModelChoice;
use super::provider::{NAMED, SCRIPT, SelectedModel};
use super::session_run::{Work, clock_of};
use super::store::Head;
use crate::Kernel;

/// Events that wait for the collector of a step's changes.
const EVENTS: usize = 64;
/// Files that a step's report names; the audit has all.
const MAX_FILES: usize = 1000;

/// Does steps with the models of one kernel.
pub(crate) struct StepRunner {
    kernel: Kernel,
    /// What holds where a step names no model, or only the name of one.
    usual: ModelChoice,
}

impl StepRunner {
    pub(crate) fn new(kernel: &Kernel, usual: ModelChoice) -> Self {
        Self { kernel: kernel.share(), usual }
    }

    /// `NAME`, `PROVIDER/NAME` or `script:FILE`. Names of models may hold a slash themselves.
    fn choice(&self, model: Option<&str>) -> ModelChoice {
        let Some(model) = model else { return self.usual.clone() };
        if model.starts_with(SCRIPT) {
            return ModelChoice { provider: Some(model.to_owned()), ..ModelChoice::default() };
        }
        match model.split_once('/') {
            Some((provider, name)) if NAMED.iter().any(|(known, _)| *known == provider) => {
                let is_usual = self.usual.provider.as_deref() == Some(provider);
                ModelChoice {
                    provider: Some(provider.to_owned()),
                    model: Some(name.to_owned()),
                    base_url: self.usual.base_url.clone().filter(|_| is_usual),
                    key_variable: self.usual.key_variable.clone().filter(|_| is_usual),
                }
            }
            _ => ModelChoice { model: Some(model.to_owned()), ..self.usual.clone() },
        }
    }

    /// Distinguishes two models that would do a step with this name, or with none. `None` where no model is named, or a
    /// script cannot be read.
    pub(crate) fn model_version(&self, model: Option<&str>) -> Option<String> {
        let chosen = self.kernel.choose_model(&self.choice(model), None).ok()?;
        let script = match chosen.name.strip_prefix(SCRIPT) {
            // It was read a moment ago, so its size is known to be within bounds.
            Some(file) => Some(canonical::sha256_hex(&fs::read(self.kernel.project().join(file)).ok()?)),
            None => None,
        };
        let model = chosen.model?;
        // Addresses may hold keys, so only the hash leaves this place.
        let version = json!({
            "provider": chosen.name,
            "model": model,
            "baseUrl": chosen.base_url,
            "script": script,
        });
        canonical::hash(&version).ok()
    }

    async fn begin(
        &self,
        task: &AgentTask,
        chosen: &SelectedModel,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Result<Summary, ToolError> {
        let clock = clock_of(chosen);
        let head = Head {
            id: task.session.clone(),
            task: task.prompt.clone(),
            provider: chosen.name.clone(),
            base_url: chosen.base_url.clone(),
            model: chosen.model().await?,
            created_ms: clock.now_ms(),
        };
        let (head, journal) = self.kernel.sessions().create(head)?;
        self.kernel.note_server(&head);
        let work = Work::new(&self.kernel, chosen, clock.as_ref(), journal, Some(tools_of(task)))
            .within(task.allowance.clone());
        self.first_run(task, &head, &work, events, stop).await
    }

    async fn first_run(
        &self,
        task: &AgentTask,
        head: &Head,
        work: &Work<'_>,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Result<Summary, ToolError> {
        let options = AgentOptions {
            session: head.id.clone(),
            actor: task.actor.clone(),
            task: task.prompt.clone(),
            model: head.model.clone(),
            system: step_prompt(self.has_tools(task), task.system.as_deref()),
            mode: self.kernel.state().tdd().mode(),
            budgets: budgets(task, None),
            limits: self.limits(task),
            consent: task.consent,
            token: task.token.clone(),
        };
        let run = tgp_agent::run(options, work.ports(), events.clone(), stop).await;
        self.kernel.close_session(&head.id, run, &events).await
    }

    /// Resumes what was begun before: after a kill, or with a correction.
    async fn go_on(
        &self,
        task: &AgentTask,
        chosen: &SelectedModel,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Result<(Summary, Usage), ToolError> {
        let sessions = self.kernel.sessions();
        let clock = clock_of(chosen);
        let (journal, past, _) = sessions.reopen(&task.session)?;
        let mut stops = past.iter().rev().filter_map(stop_of);
        let last = stops.next().cloned();
        let is_last = past.last().is_some_and(|line| stop_of(line).is_some());
        if let Some(summary) = last.clone().filter(|summary| is_last && summary.ending == Ending::Done)
            && task.correction.is_none()
        {
            // It was done when the run around it was killed; only its answer was not received.
            let before = stops.next().map(|earlier| earlier.usage).unwrap_or_default();
            return Ok((summary, before));
        }
        let work = Work::new(&self.kernel, chosen, clock.as_ref(), journal, Some(tools_of(task)))
            .within(task.allowance.clone());
        if past.is_empty() {
            let head = sessions.head(&task.session)?;
            return Ok((self.first_run(task, &head, &work, events, stop).await?, Usage::default()));
        }
        let options = ResumeOptions {
            model: Some(chosen.model().await?),
            budgets: budgets(task, last.as_ref()),
            limits: self.limits(task),
            message: task.correction.clone(),
            consent: task.consent,
            token: task.token.clone(),
        };
        let run = tgp_agent::resume(past, options, work.ports(), events.clone(), stop).await;
        let summary = self.kernel.close_session(&task.session, run, &events).await?;
        Ok((summary, last.map(|summary| summary.usage).unwrap_or_default()))
    }

    fn has_tools(&self, task: &AgentTask) -> bool {
        let tools = tools_of(task);
        self.kernel.definitions().any(|tool| tools.contains(tool.name.as_str()))
    }

    fn limits(&self, task: &AgentTask) -> AgentLimits {
        let limits = self.kernel.limits();
        AgentLimits { temperature: task.temperature.or(limits.temperature), ..limits }
    }
}

#[async_trait]
impl AgentRunner for StepRunner {
    async fn work(&self, task: AgentTask, cancelled: Cancellation<'_>) -> Result<AgentResult, AgentFailure> {
        let choice = self.choice(task.model.as_deref());
        let mut chosen = self.kernel.choose_model(&choice, None)?;
        if let Some(allowance) = &task.allowance {
            chosen.provider = allowance.ration(chosen.provider);
        }
        let spent = || task.allowance.as_ref().map(SharedBudget::spent);
        let before_work = spent();
        let (events, heard) = mpsc::channel(EVENTS);
        let (handle, stop) = StopSignal::new();
        let run = async {
            if self.kernel.sessions().has(&task.session) {
                self.go_on(&task, &chosen, events, stop).await
            } else {
                let summary = self.begin(&task, &chosen, events, stop).await?;
                Ok((summary, Usage::default()))
            }
        };
        let stopped = async {
            cancelled.await;
            handle.request(StopLevel::Now);
            std::future::pending::<()>().await;
        };
        let run = async {
            tokio::select! {
                ended = run => ended,
                () = stopped => Err(ToolError::new(Code::Internal, "a wish ended by itself")),
            }
        };
        let (ended, collected) = tokio::join!(run, collect(heard));
        // Calls that were refused because none was left are not counted.
        let calls = match (before_work, spent()) {
            (Some(before), Some(now)) => now.calls.saturating_sub(before.calls),
            _ => collected.calls,
        };
        let (summary, before) = match ended {
            Ok(ended) => ended,
            // What it has done before is done. Its tokens are those that its allowance has counted.
            Err(error) => return Err(AgentFailure { calls, files: collected.files, ..error.into() }),
        };
        let usage = summary.usage.saturating_sub(before);
        let error = match summary.ending {
            Ending::Done => {
                return Ok(AgentResult {
                    answer: summary.answer,
                    steps: summary.steps,
                    calls,
                    usage,
                    files: collected.files,
                });
            }
            Ending::Interrupted => ToolError::new(Code::Runtime, "the agent was stopped").of_cancellation(),
            Ending::Budget { error }
            | Ending::Stuck { error }
            | Ending::NeedsUser { error }
            | Ending::Broken { error } => error,
        };
        // The usual advice is for a separate session; resuming this one would not resume the query that it is part of.
        let help = format!("see what it did: tgp sessions show {}", task.session);
        let error = error
            .detail("session", task.session)
            .detail("usage", json!(usage))
            .detail("calls", calls)
            .detail("files", json!(collected.files))
            .help(help);
        Err(AgentFailure { usage, calls, files: collected.files, ..error.into() })
    }
}

/// What the events of a run report about its calls.
#[derive(Default)]
struct Collected {
    calls: u64,
    files: Vec<FileEffect>,
}

async fn collect(mut events: mpsc::Receiver<AgentEvent>) -> Collected {
    let mut collected = Collected::default();
    while let Some(event) = events.recv().await {
        if let AgentEvent::ToolResult { files, .. } = event {
            collected.calls += 1;
            let room = MAX_FILES.saturating_sub(collected.files.len());
            collected.files.extend(files.into_iter().take(room));
        }
    }
    collected
}

fn tools_of(task: &AgentTask) -> BTreeSet<String> {
    task.tools.iter().cloned().collect()
}

fn stop_of(line: &TranscriptLine) -> Option<&Summary> {
    match &line.kind {
        TranscriptLineKind::Stop { summary } => Some(summary),
        _ => None,
    }
}

/// Bounds of a session are those of all its runs together.
fn budgets(task: &AgentTask, before: Option<&Summary>) -> Budgets {
    let steps = before.map_or(0, |summary| summary.steps);
    let used = before.map_or(0, |summary| summary.usage.input_tokens + summary.usage.output_tokens);
    Budgets {
        max_steps: steps.saturating_add(task.max_steps),
        max_tokens: task.max_tokens.map(|most| used.saturating_add(most)),
        max_seconds: None,
        max_cost: None,
    }
}
