//! `tgp run`, `tgp "<task>"`: an agent works on a task.

use std::io::Read;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;
use serde_json::json;
use tgp::Kernel;
use tgp::agent::{
    AgentEvent, Bounds, Ending, ModelChoice, ResumeRequest, SessionRequest, StopSignal, Summary,
};
use tgp::config::Permissions;
use tgp::contract::{Code, Consent, TddMode, ToolError};
use tokio::sync::mpsc;

use super::done;
use crate::arguments::Global;
use crate::candidates;
use crate::conversation::{ApprovalMode, Interrupts, Verbosity, approver, follow};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

/// Events on their way to the screen. The loop waits when the screen is slower.
const EVENT_ROOM: usize = 64;
/// A task that comes by standard input.
const MAX_STDIN_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// What is to be done; - reads it from standard input. With --resume, what
    /// more to say to the model.
    #[arg(required_unless_present_any = ["resume", "show_prompt"])]
    task: Option<String>,
    /// Continue this session (an id, its beginning, or `last`).
    #[arg(long, value_name = "ID", add = ArgValueCandidates::new(candidates::sessions))]
    resume: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// How strictly code has to follow tests.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Agree to every question, but not on files that run later.
    #[arg(long, conflicts_with = "ask")]
    yes: bool,
    /// Ask, also where the user configuration agrees.
    #[arg(long)]
    ask: bool,
    /// Stop after so many turns of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    max_steps: Option<u64>,
    /// Stop after so many tokens, in and out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Stop after so many seconds, waiting for answers included.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_592_000))]
    max_seconds: Option<u64>,
    /// Stop at this cost, in the currency of llm.prices.
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    max_cost: Option<f64>,
    /// Show arguments and results of calls; twice: whole.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print the system prompt and do nothing else.
    #[arg(long)]
    show_prompt: bool,
}

/// Which model works.
#[derive(Clone, Debug, Default, Args)]
pub struct ModelArgs {
    /// openai, openai-chat, anthropic, a base URL of a compatible
    /// server, or script:FILE.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The model's name at that provider.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Another address for a provider, such as a gateway.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key for that address.
    #[arg(long, value_name = "VARIABLE")]
    pub key_variable: Option<String>,
}

impl From<ModelArgs> for ModelChoice {
    fn from(arguments: ModelArgs) -> Self {
        let ModelArgs { provider, model, base_url, key_variable } = arguments;
        Self { provider, model, base_url, key_variable }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    Strict,
    Explore,
    Debug,
}

impl From<Mode> for TddMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Strict => Self::Strict,
            Mode::Explore => Self::Explore,
            Mode::Debug => Self::Debug,
        }
    }
}

fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        _ => Err("must be a number from 0 on".to_owned()),
    }
}

impl RunArgs {
    /// The variable that the command line names for the key.
    pub fn key_variable(&self) -> Option<&String> {
        self.model.key_variable.as_ref()
    }

    /// What is agreed to before it is asked: the command line comes before the configuration of the user.
    fn consent(&self, usual: Permissions) -> Consent {
        match (self.yes, self.ask) {
            (true, _) => Permissions::Yes.consent(),
            (false, true) => Permissions::Ask.consent(),
            (false, false) => usual.consent(),
        }
    }

    /// `tgp sessions resume ID`.
    pub fn resuming(id: String, task: Option<String>, yes: bool, verbose: u8) -> Self {
        Self {
            task,
            resume: Some(id),
            model: ModelArgs::default(),
            mode: None,
            yes,
            ask: false,
            max_steps: None,
            max_tokens: None,
            max_seconds: None,
            max_cost: None,
            verbose,
            show_prompt: false,
        }
    }
}

pub async fn run(
    arguments: RunArgs,
    global: &Global,
    printer: &Printer,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    if arguments.show_prompt {
        let (approver, _) = approver(ApprovalMode::found());
        let kernel =
            session::boot_for_session(global, approver, arguments.mode.map(Into::into), printer).await?;
        let prompt = kernel.system_prompt().await;
        kernel.shutdown().await;
        match printer.json() {
            true => printer.document(&done(json!({ "prompt": prompt }))),
            false => printer.data(&prompt),
        }
        return Ok(());
    }
    let arguments = with_task(arguments)?;
    let (approver, questions) = approver(ApprovalMode::found());
    let kernel = session::boot_for_session(global, approver, arguments.mode.map(Into::into), printer).await?;
    let (sender, events) = mpsc::channel(EVENT_ROOM);
    let (handle, stop) = StopSignal::new();
    let verbosity = Verbosity::from_count(arguments.verbose);
    let heard = interrupts.heard();
    // A signal is a wish until the kernel is shut down in order.
    let session = async {
        let screen = follow(events, questions, heard, printer, verbosity);
        let (outcome, _) = tokio::join!(work(&kernel, arguments, sender, stop), screen);
        kernel.shutdown().await;
        outcome
    };
    match interrupts.during(handle, session).await {
        Ok(summary) => ended(&summary),
        // A reader of event lines gets this as one, too.
        Err(error) if printer.json() => {
            let code = error.code;
            printer.document(&serde_json::to_value(AgentEvent::Error { error }).unwrap_or_default());
            Err(Failure::Silent(code))
        }
        Err(error) => Err(error.into()),
    }
}

async fn work(
    kernel: &Kernel,
    arguments: RunArgs,
    events: mpsc::Sender<AgentEvent>,
    stop: StopSignal,
) -> Result<Summary, ToolError> {
    let consent = arguments.consent(kernel.config().user.permissions);
    let RunArgs { task, resume, model, max_steps, max_tokens, max_seconds, max_cost, .. } = arguments;
    let bounds = Bounds { max_steps, max_tokens, max_seconds, max_cost };
    match resume {
        Some(id) => {
            let request = ResumeRequest {
                message: task,
                model: model.into(),
                bounds,
                consent,
                ..ResumeRequest::new(id)
            };
            kernel.resume_session(request, events, stop).await
        }
        None => {
            let request = SessionRequest {
                model: model.into(),
                bounds,
                consent,
                ..SessionRequest::new(task.unwrap_or_default())
            };
            kernel.run_session(request, events, stop).await
        }
    }
}

fn with_task(mut arguments: RunArgs) -> Result<RunArgs, Failure> {
    if arguments.task.as_deref() == Some("-") {
        let mut text = String::new();
        std::io::stdin().lock().take(MAX_STDIN_BYTES).read_to_string(&mut text).map_err(|error| {
            ToolError::new(Code::Validation, format!("the task cannot be read from standard input: {error}"))
                .help("pass it as an argument, or pipe UTF-8 text")
        })?;
        arguments.task = Some(text.trim().to_owned());
    }
    Ok(arguments)
}

/// The summary has said it all; what is left is the exit code.
fn ended(summary: &Summary) -> Result<(), Failure> {
    match &summary.ending {
        Ending::Done => Ok(()),
        Ending::Interrupted => Err(Failure::Stopped),
        Ending::Budget { error }
        | Ending::Stuck { error }
        | Ending::NeedsUser { error }
        | Ending::Broken { error } => Err(Failure::Silent(error.code)),
    }
}
