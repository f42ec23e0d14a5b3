//! `tgp aql run`: a query from its inputs to its outputs.

use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value};
use tgp::Kernel;
use tgp::agent::{StopLevel, StopSignal};
use tgp::aql::{
    CompiledQuery, QueryPlan, QueryRequest, QueryType, ResumedQuery, RunEvent, RunReport, Source,
    choose_query,
};
use tgp::contract::{Code, Consent, ToolError};
use tokio::sync::mpsc;

use super::compile;
use super::progress::follow;
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::commands::parse_json;
use crate::commands::run::ModelArgs;
use crate::conversation::Interrupts;
use crate::exit::{Failure, ShownError};
use crate::printer::Printer;
use crate::session;

/// Who the calls of a query are made by.
pub(super) const ACTOR: &str = "aql";
/// Events on their way to the screen. The run waits when the screen is slower.
const EVENT_ROOM: usize = 64;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A file of queries; - reads standard input.
    #[arg(required_unless_present = "resume")]
    file: Option<String>,
    /// Which of its queries, where there are several.
    #[arg(long, value_name = "NAME")]
    query: Option<String>,
    /// One input: text as it is, everything else as JSON. Repeatable.
    #[arg(short, long = "input", value_name = "NAME=VALUE")]
    input: Vec<String>,
    /// All inputs as one JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    inputs: String,
    /// Continue this run (an id, its beginning, or `last`).
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "query", "input", "inputs"])]
    resume: Option<String>,
    /// With --resume: repeat this step, although its result is unknown.
    /// Repeatable.
    #[arg(long, value_name = "STEP")]
    again: Vec<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// Agree to every question, but not on files that run later.
    #[arg(long)]
    yes: bool,
}

impl RunArgs {
    pub(super) fn key_variable(&self) -> Option<&String> {
        self.model.key_variable.as_ref()
    }
}

pub(super) async fn run(
    arguments: RunArgs,
    global: &Global,
    printer: &Printer,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    if !arguments.again.is_empty() && arguments.resume.is_none() {
        return Err(ToolError::new(Code::Validation, "--again needs --resume")
            .help("name the run: --resume ID --again STEP")
            .into());
    }
    let kernel = session::boot(global, Some(Arc::new(TerminalApprover { has_yes: true })), printer).await?;
    let prepared = prepare(&kernel, &arguments, printer)?;
    let sources = prepared.as_ref().map(|prepared| prepared.compiled.sources.clone()).unwrap_or_default();
    let (sender, events) = mpsc::channel(EVENT_ROOM);
    let (handle, stop) = StopSignal::new();
    // A signal is a wish until the kernel is shut down in order.
    let work = async {
        let screen = follow(events, printer);
        let (outcome, ()) = tokio::join!(work(&kernel, arguments, prepared, sender, stop), screen);
        kernel.shutdown().await;
        outcome
    };
    let report = interrupts.during(handle, work).await?;
    ended(report, &sources, printer)
}

/// A query of a file with its inputs; nothing for a run that is resumed.
struct Prepared {
    compiled: CompiledQuery,
    plan: Arc<QueryPlan>,
    inputs: Map<String, Value>,
}

fn prepare(kernel: &Kernel, arguments: &RunArgs, printer: &Printer) -> Result<Option<Prepared>, Failure> {
    let Some(file) = arguments.file.as_deref().filter(|_| arguments.resume.is_none()) else {
        return Ok(None);
    };
    let compiled = compile(kernel, file, printer)?;
    let plan = choose_query(&compiled, arguments.query.as_deref())?;
    let inputs = inputs(arguments, &plan)?;
    Ok(Some(Prepared { compiled, plan, inputs }))
}

fn inputs(arguments: &RunArgs, plan: &QueryPlan) -> Result<Map<String, Value>, Failure> {
    let Value::Object(mut inputs) = parse_json("inputs", &arguments.inputs)? else {
        return Err(ToolError::new(Code::Validation, "inputs is not JSON object")
            .detail("field", "inputs")
            .help("such as --inputs '{\"path\": \"src/a.ts\"}'")
            .into());
    };
    for given in &arguments.input {
        let Some((name, text)) = given.split_once('=') else {
            return Err(ToolError::new(Code::Validation, format!("`{given}` is not an input"))
                .detail("field", "input")
                .help("write the name, an equals sign and the value, such as --input path=src/a.ts")
                .into());
        };
        let takes_text = plan.inputs.iter().any(|input| input.name == name && takes_text(&input.ty));
        let value =
            if takes_text { text.into() } else { parse_json(name, text).unwrap_or_else(|_| text.into()) };
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
}

/// Whether a value of this type is a text, so that it needs no quotes on the command line.
fn takes_text(ty: &QueryType) -> bool {
    match ty {
        QueryType::String | QueryType::Choice(_) => true,
        QueryType::OneOf(types) => types.iter().all(|ty| matches!(ty, QueryType::Null) || takes_text(ty)),
        _ => false,
    }
}

async fn work(
    kernel: &Kernel,
    arguments: RunArgs,
    prepared: Option<Prepared>,
    events: mpsc::Sender<RunEvent>,
    mut stop: StopSignal,
) -> Result<RunReport, ToolError> {
    let consent = if arguments.yes { Consent::Everything } else { Consent::Ask };
    let cancelled = Box::pin(async move { stop.reached(StopLevel::AfterCall).await });
    match prepared {
        Some(Prepared { compiled, plan, inputs }) => {
            let request = QueryRequest {
                compiled: &compiled,
                plan: &plan,
                inputs,
                model: arguments.model.into(),
                consent,
                actor: ACTOR.to_owned(),
            };
            kernel.run_query(request, events, cancelled).await
        }
        None => {
            let request = ResumedQuery {
                id: arguments.resume.unwrap_or_default(),
                model: arguments.model.into(),
                consent,
                actor: ACTOR.to_owned(),
                again: arguments.again,
            };
            kernel.resume_query(request, events, cancelled).await
        }
    }
}

/// What came of it is printed; what is left is the exit code.
fn ended(report: RunReport, sources: &[Source], printer: &Printer) -> Result<(), Failure> {
    let Some(error) = report.error else {
        if !printer.json() {
            printer.value(&report.outputs);
        }
        return Ok(());
    };
    let stopped = error.is_of_cancellation();
    if !printer.json() {
        printer.note(&format!("go on with it: tgp aql run --resume {}", report.run));
    }
    // A value that turned out wrong is not a mistake in the use of the command.
    let code = if error.code == Code::Validation { Code::Runtime } else { error.code };
    match (stopped, printer.json()) {
        (true, _) => Err(Failure::Stopped),
        (false, true) => Err(Failure::Silent(code)),
        (false, false) => {
            let file = error.place_of().map(|place| place.file).unwrap_or_default();
            let source = sources.iter().find(|source| source.path == file).map(|source| source.text.clone());
            printer.failure(&Failure::Error(Box::new(ShownError { error, source })));
            Err(Failure::Silent(code))
        }
    }
}
