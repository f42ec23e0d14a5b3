//! `tgp approve`: a person answers calls that wait for an approval.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};
use tgp::BootOptions;
use tgp::approvals::{ApprovalState, Approvals, Grant, KeptQuestion, MAX_TIMES};
use tgp::audit::{Decision, record_decision, record_tightening};
use tgp::contract::{Access, Actor, ApprovalDecision, Code, Target, ToolError};

use super::{done, shown_time};
use crate::approval;
use crate::arguments::Global;
use crate::candidates;
use crate::conversation::{
    Answer, ApprovalQuestion, Offer, Output, StandardError, is_unanswered, key_arguments,
};
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
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "deny", requires = "id",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TIMES)))]
    times: u32,
}

pub async fn run(arguments: ApproveArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let approvals = approvals(global)?;
    if arguments.clear {
        let cleared = Decision::new("approvals_clear", json!({ "questions": approvals.list()?.len() }));
        let decision = session::record_decision(global, cleared).await?;
        let runs = approvals.clear(decision)?;
        say(&format!("forgot {}", count(runs, "run")), json!({ "cleared": runs }), printer);
        return Ok(());
    }
    let Some(id) = &arguments.id else { return list(&approvals, printer) };
    let (approvals, question) = find(approvals, id, printer)?;
    if question.state() == ApprovalState::Approved {
        let message = format!("`{}` was approved already", question.id);
        return Err(ToolError::new(Code::Conflict, message)
            .help("the caller can make the call; `tgp approve --clear` takes it back before that")
            .into());
    }
    let by = format!("{}, tgp approve", session::user_name());
    if arguments.deny {
        return deny(&approvals, &question, by, arguments.reason.as_deref(), global, printer).await;
    }
    if !approval::can_ask() {
        let error =
            ToolError::new(Code::Approval, "an approval is given at a terminal, after its content was read")
                .help(format!("run `tgp approve {}` in a terminal; `--deny` needs none", question.id));
        return Err(error.into());
    }
    match around(&question) {
        Some(run) => printer.lines(&run),
        None if arguments.times > 1 => {
            let message =
                format!("`{}` is a call of its own, which is made once for each answer", question.id);
            return Err(ToolError::new(Code::Validation, message)
                .help("leave `--times` out; it is for calls that a run makes several times")
                .into());
        }
        None => {}
    }
    if let Some(ApprovalDecision::Denied { by, reason }) = &question.answer {
        printer.note(&format!("denied before by {}: {}", single_line(by), single_line(reason)));
    }
    if question.has_lost_its_caller() {
        printer.note(LOST);
    }
    let offer = Offer::Times(arguments.times);
    match approval::ask(&ApprovalQuestion::new(&question.request()), offer).await {
        Answer::No { reason } if is_unanswered(&reason) => {
            printer.note(&format!("{} was not answered, and stays as it is", question.id));
            Ok(())
        }
        Answer::Yes | Answer::Always => {
            let times = arguments.times;
            let decision = question.decision("approve", &json!({ "times": times }));
            let decision = record_decision(&options_of(&approvals, global)?, decision).await?;
            approvals.grant(&question.id, question.hash(), Grant { by, times }, decision)?;
            let often = if times == 1 { String::new() } else { format!(", up to {times} times in this run") };
            let next = match question.has_lost_its_caller() {
                true => "its connection has ended, so a new one asks again",
                false => "the caller can make the call again now",
            };
            say(
                &format!("approved {}{often}; {next}", question.id),
                json!({ "id": question.id, "state": "approved", "times": times }),
                printer,
            );
            Ok(())
        }
        Answer::No { reason } => deny(&approvals, &question, by, Some(&reason), global, printer).await,
    }
}

/// Columns of what a call is about, in the list.
const ABOUT_COLUMNS: usize = 40;
/// Hosts and files that one line of the list names.
const MAX_BEYOND: usize = 3;
/// What becomes of an answer to a question whose host has gone.
const LOST: &str =
    "the connection that asked this has ended: a host that has connected anew asks again under another id";

/// The question with this id, in this project or in the other project of this user that has one.
fn find(approvals: Approvals, id: &str, printer: &Printer) -> Result<(Approvals, KeptQuestion), Failure> {
    let missing = match approvals.find(id) {
        Ok(question) => return Ok((approvals, question)),
        Err(error) if error.code == Code::NotFound => error,
        Err(error) => return Err(error.into()),
    };
    let has_it =
        |open: &[KeptQuestion]| !id.is_empty() && open.iter().any(|question| question.id.starts_with(id));
    let elsewhere = approvals.elsewhere()?.into_iter();
    let mut others: Vec<Approvals> =
        elsewhere.filter(|(_, open)| has_it(open)).map(|(store, _)| store).collect();
    let Some(other) = others.pop() else { return Err(missing.into()) };
    if !others.is_empty() {
        others.push(other);
        let projects =
            others.iter().map(|other| shell_word(&visible(&other.project().display().to_string())));
        let calls: Vec<String> = projects.map(|project| format!("`tgp -C {project} approve {id}`")).collect();
        let message = format!("questions of {} projects have this id", others.len());
        return Err(ToolError::new(Code::Conflict, message)
            .help(format!("choose one: {}", calls.join(", ")))
            .into());
    }
    let question = other.find(id)?;
    printer.note(&format!("in the project {}:", visible(&other.project().display().to_string())));
    Ok((other, question))
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

/// The options of the project that the questions are of, which may be another than that of the command.
fn options_of(approvals: &Approvals, global: &Global) -> Result<BootOptions, Failure> {
    let options = session::records_options(global)?;
    let own = options.directory.canonicalize().unwrap_or_else(|_| options.directory.clone());
    let project = approvals.project();
    Ok(if own == project { options } else { session::boot_options(project.to_owned()) })
}

async fn deny(
    approvals: &Approvals,
    question: &KeptQuestion,
    by: String,
    reason: Option<&str>,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let reason = reason.unwrap_or("no reason was given").to_owned();
    approvals.deny(&question.id, question.hash(), by, reason.clone())?;
    let denied = question.decision("approval_deny", &json!({ "reason": reason }));
    if let Some(warning) = record_tightening(&options_of(approvals, global)?, denied).await {
        printer.warn(&visible(&warning));
    }
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
    let waits = |question: &&KeptQuestion| {
        question.state() == ApprovalState::Pending && !question.has_lost_its_caller()
    };
    let pending = questions.iter().filter(waits).count();
    for question in &questions {
        let asked = ApprovalQuestion::new(&question.request());
        let about =
            key_arguments(&asked.tool, &asked.arguments, ABOUT_COLUMNS, StandardError::new().manner());
        let by_rule = (!question.request().is_default()).then_some(asked.reasons.first()).flatten();
        let why = by_rule.map(|reason| format!(" ({})", single_line(&reason.reason))).unwrap_or_default();
        let beyond = beyond(question);
        let lost = if question.has_lost_its_caller() { " (its connection has ended)" } else { "" };
        printer.line(&format!(
            "{}  {:<8}  {}  {}  {}{beyond}  by {}{why}{lost}",
            question.id,
            word(question.state()),
            shown_time(question.asked_ms),
            visible(&asked.tool),
            single_line(&about),
            single_line(&asked.actor),
        ));
    }
    match pending {
        0 => printer.note("no call waits for an approval"),
        _ => printer.note(&format!(
            "{} to be answered: `tgp approve ID` shows what the call would do, and asks",
            count(pending, "question")
        )),
    }
    for (other, open) in approvals.elsewhere()? {
        let project = visible(&other.project().display().to_string());
        let waiting = open.iter().filter(waits).count();
        if waiting == 0 {
            continue;
        }
        let waiting = count(waiting, "question");
        printer.note(&format!("{waiting} in {project}: `tgp -C {} approve`", shell_word(&project)));
    }
    Ok(())
}

/// What a question is about beside the arguments of its call, by which questions of one call differ: hosts, and files that
/// would be written.
fn beyond(question: &KeptQuestion) -> String {
    let request = question.request();
    let arguments = request.call.arguments.to_string();
    let about = request.targets.iter().filter_map(|target| match target {
        Target::Host { host } => Some(("host ", host.clone())),
        Target::File { path, access: Access::Write | Access::Delete, .. } => Some(("", path.to_string())),
        _ => None,
    });
    let about: Vec<(&str, String)> =
        about.filter(|(_, name)| !name.is_empty() && !arguments.contains(name.as_str())).collect();
    let mut words: Vec<String> =
        about.iter().take(MAX_BEYOND).map(|(kind, name)| format!("{kind}{}", single_line(name))).collect();
    if about.len() > words.len() {
        words.push(format!("{} more", about.len() - words.len()));
    }
    if words.is_empty() { String::new() } else { format!("  [{}]", words.join(", ")) }
}

/// A path as a shell takes it.
fn shell_word(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-~+".contains(letter);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
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
        "caller_gone": question.has_lost_its_caller(),
    })
}

fn say(line: &str, document: Value, printer: &Printer) {
    if printer.json() {
        printer.document(&done(document));
    } else {
        printer.line(line);
    }
}
