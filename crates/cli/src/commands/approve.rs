//! `tgp approve`: a person answers calls that wait for an approval.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};
use tgp::approvals::{ApprovalState, Approvals, KeptQuestion, MAX_TIMES};
use tgp::contract::{Actor, ApprovalDecision, Code, ToolError};

use super::{done, shown_time};
use crate::approval;
use crate::arguments::Global;
use crate::candidates;
use crate::conversation::{Answer, ApprovalQuestion};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, single_line, visible};

#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The id of the question, or the beginning of it; without one, all are listed.
    #[arg(add = ArgValueCandidates::new(candidates::approvals))]
    id: Option<String>,
    /// Forget all questions and answers of this project.
    #[arg(long, conflicts_with_all = ["id", "deny", "times"])]
    clear: bool,
    /// Refuse it, without being asked.
    #[arg(long, requires = "id")]
    deny: bool,
    /// Why, for the agent to read.
    #[arg(long, value_name = "TEXT", requires = "deny")]
    reason: Option<String>,
    /// How often the run may make exactly this call.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "deny",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TIMES)))]
    times: u32,
}

pub async fn run(arguments: ApproveArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let approvals = approvals(global)?;
    if arguments.clear {
        let runs = approvals.clear()?;
        say(&format!("forgot {}", count(runs, "run")), json!({ "cleared": runs }), printer);
        return Ok(());
    }
    let Some(id) = &arguments.id else { return list(&approvals, printer) };
    let question = approvals.find(id)?;
    if question.state() != ApprovalState::Pending {
        let message = format!("`{}` was answered already", question.id);
        return Err(ToolError::new(Code::Conflict, message).help("`tgp approve` shows what waits").into());
    }
    let by = format!("{}, tgp approve", session::user_name());
    if arguments.deny {
        return deny(&approvals, &question, by, arguments.reason.as_deref(), printer);
    }
    if !approval::can_ask() {
        let error =
            ToolError::new(Code::Approval, "an approval is given at a terminal, after its content was read")
                .help(format!("run `tgp approve {}` in a terminal; `--deny` needs none", question.id));
        return Err(error.into());
    }
    if let Some(run) = around(&question) {
        printer.lines(&run);
    }
    match approval::ask(&ApprovalQuestion::new(&question.request())).await {
        Answer::Yes | Answer::Always => {
            let times = arguments.times;
            let granted = ApprovalDecision::Granted { by, times, spent: 0 };
            approvals.decide(&question.id, question.hash(), granted)?;
            let often = if times == 1 { String::new() } else { format!(", up to {times} times in this run") };
            say(
                &format!("approved {}{often}; the caller can make the call again now", question.id),
                json!({ "id": question.id, "state": "approved", "times": times }),
                printer,
            );
            Ok(())
        }
        Answer::No { reason } => deny(&approvals, &question, by, Some(&reason), printer),
    }
}

/// The store of the project of this directory, without booting on it: a kernel may be at work there.
fn approvals(global: &Global) -> Result<Approvals, Failure> {
    let options = session::records_options(global)?;
    let project = options.directory.canonicalize().unwrap_or_else(|_| options.directory.clone());
    let store = Approvals::of_user(&options.environment, &project)?;
    store.ok_or_else(|| {
        ToolError::new(Code::Config, "approvals cannot be kept: the home directory of the user is not known")
            .help("set HOME or TGP_HOME to an absolute path")
            .into()
    })
}

fn deny(
    approvals: &Approvals,
    question: &KeptQuestion,
    by: String,
    reason: Option<&str>,
    printer: &Printer,
) -> Result<(), Failure> {
    let reason = reason.unwrap_or("no reason was given").to_owned();
    let denied = ApprovalDecision::Denied { by, reason: reason.clone() };
    approvals.decide(&question.id, question.hash(), denied)?;
    let document = json!({ "id": question.id, "state": "denied", "reason": reason });
    say(&format!("denied {}", question.id), document, printer);
    Ok(())
}

fn list(approvals: &Approvals, printer: &Printer) -> Result<(), Failure> {
    let questions = approvals.list()?;
    if printer.json() {
        let all: Vec<Value> = questions.iter().map(document).collect();
        printer.document(&done(json!({ "approvals": all })));
        return Ok(());
    }
    let pending = questions.iter().filter(|question| question.state() == ApprovalState::Pending).count();
    for question in &questions {
        let asked = ApprovalQuestion::new(&question.request());
        let why = asked.reasons.first().map(|reason| reason.reason.as_str()).unwrap_or_default();
        printer.line(&format!(
            "{}  {:<8}  {}  {}  by {}: {}",
            question.id,
            word(question.state()),
            shown_time(question.asked_ms),
            visible(&asked.tool),
            single_line(&asked.actor),
            single_line(why),
        ));
    }
    match pending {
        0 => printer.note("no call waits for an approval"),
        _ => printer.note(&format!(
            "{} to be answered: `tgp approve ID` shows what the call would do, and asks",
            count(pending, "question")
        )),
    }
    Ok(())
}

/// Characters of the arguments of a run that are shown before its question; `--json` shows them whole.
const MAX_ARGUMENTS: usize = 2000;

/// The run that a question of an inner call is a part of: the answer holds for it alone.
fn around(question: &KeptQuestion) -> Option<String> {
    let (run, request) = (question.run.as_ref()?, question.request());
    if run.tool == request.call.tool && run.arguments == request.call.arguments {
        return None;
    }
    let actor = match &run.actor {
        Actor::Person(id) | Actor::Agent(id) => id.clone(),
        Actor::Tool(path) => path.to_string(),
    };
    let arguments = single_line(&run.arguments.to_string());
    let shown: String = arguments.chars().take(MAX_ARGUMENTS).collect();
    let rest = if shown.len() < arguments.len() { " ... (`tgp approve --json` shows all)" } else { "" };
    Some(format!(
        "a part of the run of `{}` by {}:\n  {shown}{rest}",
        visible(&run.tool),
        single_line(&actor)
    ))
}

fn word(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Pending => "pending",
        ApprovalState::Approved => "approved",
        ApprovalState::Denied => "denied",
    }
}

fn document(question: &KeptQuestion) -> Value {
    let request = question.request();
    json!({
        "id": question.id,
        "state": question.state(),
        "hash": question.hash(),
        "tool": request.definition.name,
        "arguments": request.call.arguments,
        "actor": request.context.actor,
        "session": request.context.session,
        "targets": request.targets,
        "reasons": request.reasons,
        "preview": request.preview,
        "run": question.run,
        "asked_ms": question.asked_ms,
        "expires_ms": question.expires_ms,
        "answer": question.answer,
    })
}

fn say(line: &str, document: Value, printer: &Printer) {
    if printer.json() {
        printer.document(&done(document));
    } else {
        printer.line(line);
    }
}
