//! A session from its task to its summary, and on from where it was left.

use std::sync::Arc;

use tgp_agent::{
    AgentClock, AgentEvent, AgentLimits, AgentOptions, Budgets, ResumeOptions, StopSignal, Summary,
    TranscriptLine, TranscriptLineKind,
};
use tgp_contract::{CapabilityToken, Code, Consent, ToolError, canonical};
use tgp_llm::OnRetry;
use tgp_policy::Caveats;
use tokio::sync::mpsc;

use super::Sessions;
use super::ports::SystemClock;
use super::provider::{self, ModelChoice, SelectedModel};
use super::session_run::{Work, clock_of};
use super::store::Head;
use crate::Kernel;
use crate::tokens::only_tools;

/// How long a session's token lives where no time was set: an agent is not expected to run longer.
const TOKEN_SECONDS: u64 = 7 * 86_400;
/// What a token lives longer than the session's own time, so that the session ends first.
const TOKEN_SLACK_SECONDS: u64 = 3_600;
/// A task is a message, no document.
const MAX_TASK_BYTES: usize = 256 << 10;

/// Who the calls of a session are made by, unless the request names another actor.
pub(super) const USUAL_ACTOR: &str = "agent";

/// Bounds of a session that differ from those that would hold otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    pub max_steps: Option<u64>,
    pub max_tokens: Option<u64>,
    pub max_seconds: Option<u64>,
    pub max_cost: Option<f64>,
}

impl Bounds {
    fn within(self, usual: Budgets) -> Budgets {
        Budgets {
            max_steps: self.max_steps.unwrap_or(usual.max_steps),
            max_tokens: self.max_tokens.or(usual.max_tokens),
            max_seconds: self.max_seconds.or(usual.max_seconds),
            max_cost: self.max_cost.or(usual.max_cost),
        }
    }
}

/// On which terms a session begins.
struct RunSettings {
    budgets: Budgets,
    consent: Consent,
    actor: String,
}

/// What an agent is to do, and within which bounds. What is `None` is as the configuration says.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub task: String,
    pub model: ModelChoice,
    pub bounds: Bounds,
    pub consent: Consent,
    /// Who the agent is, for rules and the record.
    pub actor: String,
}

impl SessionRequest {
    #[must_use]
    pub fn new(task: impl Into<String>) -> Self {
        Self {
            task: task.into(),
            model: ModelChoice::default(),
            bounds: Bounds::default(),
            consent: Consent::Ask,
            actor: USUAL_ACTOR.to_owned(),
        }
    }
}

/// How a session is resumed. Its task, prompt and tools stay what they were.
#[derive(Clone, Debug)]
pub struct ResumeRequest {
    pub id: String,
    /// Something more to be said to the model; a session that is done needs it.
    pub message: Option<String>,
    pub model: ModelChoice,
    pub bounds: Bounds,
    pub consent: Consent,
}

impl ResumeRequest {
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            message: None,
            model: ModelChoice::default(),
            bounds: Bounds::default(),
            consent: Consent::Ask,
        }
    }
}

impl Kernel {
    /// Works on a task until the model is done, a bound is reached or a stop is requested. Events come in order, and
    /// the last one holds the summary that is returned.
    ///
    /// # Errors
    /// When the session cannot begin: no provider, no key, no place to write. What happens later is in the summary.
    pub async fn run_session(
        &self,
        request: SessionRequest,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Result<Summary, ToolError> {
        check_text("task", &request.task)?;
        self.policy().check_files()?;
        let budgets = request.bounds.within(self.config().llm.budgets);
        self.check_budgets(&budgets)?;
        let chosen = self.choose_model(&request.model, Some(&events))?;
        let model = chosen.model().await?;
        let clock = clock_of(&chosen);
        let created_ms = clock.now_ms();
        let head = Head {
            id: new_id(created_ms, chosen.seed)?,
            task: request.task.clone(),
            provider: chosen.name.clone(),
            base_url: chosen.base_url.clone(),
            model: model.clone(),
            created_ms,
        };
        let (head, journal) = self.sessions().create(head)?;
        self.note_server(&head);
        let work = Work::new(self, &chosen, clock.as_ref(), journal, None);
        let terms = RunSettings { budgets, consent: request.consent, actor: request.actor };
        self.begin(&head, &work, terms, events, stop).await
    }

    /// Runs a session from its first line.
    async fn begin(
        &self,
        head: &Head,
        work: &Work<'_>,
        terms: RunSettings,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Result<Summary, ToolError> {
        let RunSettings { budgets, consent, actor } = terms;
        let system = self.system_prompt_at(work.clock.now_ms(), &actor, &head.id).await;
        let options = AgentOptions {
            session: head.id.clone(),
            actor,
            task: head.task.clone(),
            model: head.model.clone(),
            system,
            mode: self.state().tdd().mode(),
            budgets,
            limits: self.limits(),
            consent,
            token: Some(self.session_token(&head.id, &budgets, None).await?),
        };
        let run = tgp_agent::run(options, work.ports(), events.clone(), stop).await;
        self.close_session(&head.id, run, &events).await
    }

    /// Resumes a session that was killed, stopped or has reached a bound, without repeating what was done.
    ///
    /// # Errors
    /// When there is no such session, another process works on it, or its transcript is damaged.
    pub async fn resume_session(
        &self,
        request: ResumeRequest,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Result<Summary, ToolError> {
        if let Some(message) = &request.message {
            check_text("message", message)?;
        }
        self.policy().check_files()?;
        let sessions = self.sessions();
        let id = sessions.find(&request.id)?;
        let head = sessions.head(&id)?;
        self.check_server(&head, &request.model)?;
        // Another provider has other models, and its key is nothing for the server of the old one.
        let is_same = request.model.provider.as_ref().is_none_or(|provider| *provider == head.provider);
        let choice = ModelChoice {
            provider: request.model.provider.or_else(|| Some(head.provider.clone())),
            model: request.model.model.or_else(|| is_same.then(|| head.model.clone())),
            base_url: request.model.base_url.or_else(|| head.base_url.clone().filter(|_| is_same)),
            // Not kept: a file of the project does not decide which key is sent where.
            key_variable: request.model.key_variable,
        };
        let chosen = self.choose_model(&choice, Some(&events))?;
        let clock = clock_of(&chosen);
        let (journal, past, notice) = sessions.reopen(&id)?;
        let work = Work::new(self, &chosen, clock.as_ref(), journal, None);
        if let Some(message) = notice {
            let _ = events.send(AgentEvent::Notice { message }).await;
        }
        let Some(before) = budgets_of(&past) else {
            // It was killed before its first line, so it has done nothing yet.
            let budgets = request.bounds.within(self.config().llm.budgets);
            self.check_budgets(&budgets)?;
            let terms = RunSettings { budgets, consent: request.consent, actor: USUAL_ACTOR.to_owned() };
            return self.begin(&head, &work, terms, events, stop).await;
        };
        let budgets = request.bounds.within(before);
        self.check_budgets(&budgets)?;
        let options = ResumeOptions {
            model: Some(chosen.model().await?),
            budgets,
            limits: self.limits(),
            message: request.message,
            consent: request.consent,
            token: Some(self.session_token(&id, &budgets, self.narrower_tools(&past)).await?),
        };
        let run = tgp_agent::resume(past, options, work.ports(), events.clone(), stop).await;
        self.close_session(&id, run, &events).await
    }

    /// The sessions of this kernel.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        Sessions::below(self.state_directory())
    }

    /// The names of the models that the provider offers.
    ///
    /// # Errors
    /// `ECONFIG` and `EPROVIDER`.
    pub async fn models(&self, choice: &ModelChoice) -> Result<Vec<String>, ToolError> {
        let models = self.choose_model(choice, None)?.provider.models().await?;
        Ok(models.into_iter().map(|model| model.name).collect())
    }

    /// The listener gets an event when a request has to wait.
    pub(super) fn choose_model(
        &self,
        choice: &ModelChoice,
        listener: Option<&mpsc::Sender<AgentEvent>>,
    ) -> Result<SelectedModel, ToolError> {
        self.check_provider_confirmed(choice)?;
        let on_wait = listener.cloned().map(|events| -> OnRetry {
            // A listener that is behind learns of the next one.
            Arc::new(move |waiting| {
                drop(events.try_send(AgentEvent::Notice { message: waiting.to_string() }))
            })
        });
        provider::choose(choice, self.config(), self.environment(), self.project(), on_wait)
    }

    /// Another provider than the one the project names could be one that its owner does not want to see the code.
    pub(super) fn check_provider_confirmed(&self, choice: &ModelChoice) -> Result<(), ToolError> {
        if choice.provider.is_some() || !self.config().ignored.contains(&"llm") {
            return Ok(());
        }
        Err(ToolError::new(Code::Config, "the provider of the configuration is not confirmed")
            .detail("field", "llm")
            .help("run `tgp trust`, or name a provider with --provider"))
    }

    /// What the configuration says now, also of a session that began under another.
    pub(super) fn limits(&self) -> AgentLimits {
        let config = &self.config().llm;
        AgentLimits {
            context_tokens: config.context_tokens,
            max_output_tokens: config.max_output_tokens,
            temperature: config.temperature,
            prices: config.prices,
        }
    }

    fn check_budgets(&self, budgets: &Budgets) -> Result<(), ToolError> {
        if budgets.max_cost.is_some() && self.config().llm.prices.is_none() {
            return Err(ToolError::new(Code::Config, "a bound on the cost needs prices")
                .detail("field", "llm.prices")
                .help("set llm.prices: { input, output } per million tokens in tgp.config.ts"));
        }
        Ok(())
    }

    /// The tools of a session that was given only some of them: one that did a step of a query resumes with the same
    /// tools.
    fn narrower_tools(&self, past: &[TranscriptLine]) -> Option<Vec<String>> {
        let given = past.iter().find_map(|line| match &line.kind {
            TranscriptLineKind::Session { tools, .. } => Some(tools),
            _ => None,
        })?;
        let names: Vec<String> = given.iter().map(|tool| tool.name.to_string()).collect();
        let is_narrower = self.definitions().any(|tool| !names.contains(&tool.name.to_string()));
        is_narrower.then_some(names)
    }

    /// A token that is good for this session only. The calls it makes carry it.
    async fn session_token(
        &self,
        id: &str,
        budgets: &Budgets,
        tools: Option<Vec<String>>,
    ) -> Result<CapabilityToken, ToolError> {
        let seconds = budgets.max_seconds.map_or(TOKEN_SECONDS, |most| most + TOKEN_SLACK_SECONDS);
        let caveats = Caveats {
            session: Some(id.to_owned()),
            expires_ms: Some(SystemClock.now_ms() + seconds * 1000),
            note: Some("a session of an agent".to_owned()),
            ..tools.map_or_else(Caveats::default, only_tools)
        };
        self.mint_token(&caveats).await
    }
}

/// The bounds that held last.
fn budgets_of(past: &[TranscriptLine]) -> Option<Budgets> {
    past.iter().rev().find_map(|line| match &line.kind {
        TranscriptLineKind::Session { budgets, .. } | TranscriptLineKind::Resumed { budgets, .. } => {
            Some(*budgets)
        }
        _ => None,
    })
}

fn check_text(field: &str, text: &str) -> Result<(), ToolError> {
    let problem = if text.trim().is_empty() {
        format!("the {field} is empty")
    } else if text.len() > MAX_TASK_BYTES {
        format!("the {field} has {} bytes, more than the {MAX_TASK_BYTES} allowed", text.len())
    } else {
        return Ok(());
    };
    Err(ToolError::new(Code::Validation, problem)
        .detail("field", field)
        .help("say in a few sentences what is to be done; long texts belong into files of the project"))
}

/// `20261115-120301-9f3c`: when it began, and a suffix that distinguishes it from another of the same second.
pub(crate) fn new_id(now_ms: u64, seed: Option<u64>) -> Result<String, ToolError> {
    let chance = match seed {
        Some(seed) => canonical::sha256_hex(&seed.to_be_bytes()),
        None => {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(|error| {
                ToolError::new(Code::Internal, format!("the operating system gives no randomness: {error}"))
            })?;
            canonical::sha256_hex(&bytes)
        }
    };
    let chance: String = chance.chars().take(4).collect();
    // `2026-11-15T12:03:01` without what is between the numbers.
    let time = tgp_text::rfc3339(now_ms);
    let time: String = time.chars().take(19).filter(char::is_ascii_alphanumeric).collect();
    Ok(format!("{}-{chance}", time.replace('T', "-")))
}
