//! `tgp guardian`: what may not be broken, and who says so.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use console::Style;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Code, Decision, Plan, ToolError};
use tgp::guardian::{
    Assertion, FindingSeverity, InvariantCheck, PlanOutcome, PlanReport, Reconciled, Review, StepStatus,
    UndecidedInvariant,
};

use super::{done, result_of, text_of};
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::exit::{Failure, ShownError};
use crate::printer::Printer;
use crate::session;
use crate::text::{count, visible};

/// Bytes of a plan: it contains file contents.
const MAX_PLAN_BYTES: u64 = 16 << 20;

#[derive(Debug, Args)]
pub struct GuardianArgs {
    #[command(subcommand)]
    command: GuardianCommand,
}

#[derive(Debug, Subcommand)]
enum GuardianCommand {
    /// Say whether a plan may be carried out, and why not.
    Review {
        /// A JSON file: {"id": "...", "steps": [{"type": "EDIT_FILE", ...}]}.
        plan: PathBuf,
    },
    /// Review a plan, and carry it out if no objections.
    Run {
        /// As for review.
        plan: PathBuf,
        /// Agree to every question, but not on files that run later.
        #[arg(long)]
        yes: bool,
    },
    /// Check what must hold; what is broken halts all work.
    Assert {
        /// One more assertion, in Cypher.
        #[arg(long, value_name = "QUERY", requires = "expect")]
        cypher: Option<String>,
        /// Whether it has to find something.
        #[arg(long, value_enum, requires = "cypher")]
        expect: Option<Expected>,
    },
    /// Ask one invariant: what it finds, how long it takes, and how.
    Test {
        /// The name of the invariant.
        name: String,
    },
    /// Find contradictions, and say what to do about them.
    Inquire,
    /// Accept the current state, so that halted work can resume.
    Reconcile {
        /// The file that chronicle and graph disagree about.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        file: Option<String>,
        /// Every file that they disagree about now.
        #[arg(long)]
        all: bool,
        /// The hash of the accepted change.
        #[arg(long, value_name = "HASH", default_value = "worktree")]
        diff_ref: String,
        /// The invariant whose violations of now are accepted.
        #[arg(long, value_name = "NAME")]
        invariant: Option<String>,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Expected {
    Rows,
    None,
}

pub async fn run(arguments: GuardianArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let command = arguments.command;
    // A plan that cannot be read needs no kernel.
    let plan = match &command {
        GuardianCommand::Review { plan } | GuardianCommand::Run { plan, .. } => {
            Some(read_plan(&within(global, plan))?)
        }
        _ => None,
    };
    let kernel =
        session::boot(global, Some(std::sync::Arc::new(TerminalApprover { has_yes: false })), printer)
            .await?;
    let outcome = match (command, plan) {
        (GuardianCommand::Review { .. }, Some(plan)) => review(&kernel, &plan, printer).await,
        (GuardianCommand::Run { yes, .. }, Some(plan)) => carry_out(&kernel, &plan, yes, printer).await,
        (GuardianCommand::Assert { cypher, expect }, _) => assert(&kernel, cypher, expect, printer).await,
        (GuardianCommand::Test { name }, _) => try_invariant(&kernel, &name, printer).await,
        (GuardianCommand::Reconcile { file, diff_ref, invariant, reason, .. }, _) => {
            let accepted = json!({ "diff_ref": diff_ref, "invariant": invariant, "reason": reason });
            reconcile(&kernel, file, &accepted, printer).await
        }
        _ => inquire(&kernel, printer).await,
    };
    kernel.shutdown().await;
    outcome
}

fn within(global: &Global, file: &Path) -> PathBuf {
    global.directory.as_ref().map_or_else(|| file.to_owned(), |directory| directory.join(file))
}

fn read_plan(file: &Path) -> Result<Plan, Failure> {
    let shown = file.display().to_string();
    let unreadable = |why: &str| {
        ToolError::new(Code::Validation, format!("the plan `{shown}` cannot be read: {why}"))
            .help("name a JSON file, such as plan.json")
    };
    // Opening a pipe without a writer would block forever.
    let found = std::fs::metadata(file).map_err(|error| unreadable(&error.to_string()))?;
    if !found.is_file() {
        return Err(unreadable("it is not a file").into());
    }
    if found.len() > MAX_PLAN_BYTES {
        let message = format!("it has {} bytes, more than the {MAX_PLAN_BYTES} allowed", found.len());
        return Err(unreadable(&message).into());
    }
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_PLAN_BYTES).read_to_string(&mut text))
        .map_err(|error| unreadable(&error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place = tgp::contract::SourceLocation {
            file: shown.clone(),
            line: u32::try_from(line).unwrap_or_default(),
            column: u32::try_from(column.max(1)).unwrap_or(1),
        };
        let error =
            ToolError::new(Code::Validation, format!("{shown} is not a plan: {error}")).place(&place).help(
                "a plan is {\"id\": \"...\", \"steps\": [{\"type\": \"EDIT_FILE\", \"filePath\": \"...\"}]}",
            );
        Failure::Error(Box::new(ShownError { error, source: Some(text.clone()) }))
    })
}

async fn review(kernel: &Kernel, plan: &Plan, printer: &Printer) -> Result<(), Failure> {
    let review = kernel.review_plan(plan, &session::typed(true)).await?;
    let denied = matches!(review.decision, Decision::Deny { .. });
    if printer.json() {
        printer.document(&done(serde_json::to_value(&review).unwrap_or_default()));
    } else {
        show_review(&review, printer);
    }
    if denied { Err(Failure::Silent(Code::Policy)) } else { Ok(()) }
}

fn show_review(review: &Review, printer: &Printer) {
    for finding in &review.findings {
        let file = finding.file.as_ref().map(|file| format!(" {file}")).unwrap_or_default();
        let step = finding.step.map_or_else(|| "plan".to_owned(), |step| format!("step {step}"));
        let line = format!("{step}{file}: {}: {}", finding.fact, finding.reason);
        printer.line(&visible(&line));
    }
    for undecided in &review.undecided {
        printer.warn(&visible(&undecided.sentence()));
    }
    match &review.decision {
        Decision::Approve { justification } => {
            let word = printer.paint_out(&Style::new().green(), "approved");
            printer.line(&format!("{word}: {}", visible(justification)));
        }
        Decision::Deny { reason } => {
            let word = printer.paint_out(&Style::new().red(), "denied");
            // The reason is all findings in one line, which are above.
            let against = match review.findings.len() {
                0 => visible(reason),
                1 => "1 finding".to_owned(),
                number => format!("{number} findings"),
            };
            printer.line(&format!("{word}: {against}"));
        }
    }
}

async fn carry_out(kernel: &Kernel, plan: &Plan, yes: bool, printer: &Printer) -> Result<(), Failure> {
    let mut context = session::typed(false);
    context.consent = if yes { tgp::contract::Consent::Everything } else { tgp::contract::Consent::Ask };
    let report = kernel.carry_out(plan, context).await?;
    let whole = serde_json::to_value(&report).unwrap_or_default();
    let failed = match (report.outcome, &report.error) {
        (PlanOutcome::Completed | PlanOutcome::Approved, _) => None,
        (_, Some(error)) => Some(error.clone()),
        (_, None) => Some(ToolError::new(Code::Runtime, "the plan was not completed")),
    };
    if !printer.json() {
        show_report(&report, printer);
        return failed.map_or(Ok(()), |error| Err(Failure::Silent(error.code)));
    }
    match failed {
        // What was done before is in the report.
        Some(error) => Err(error.detail("report", whole).into()),
        None => {
            printer.document(&done(whole));
            Ok(())
        }
    }
}

fn show_report(report: &PlanReport, printer: &Printer) {
    show_review(&report.review, printer);
    if report.outcome == PlanOutcome::Denied {
        printer.note("nothing was called and nothing was changed");
        return;
    }
    for step in &report.steps {
        let file = step.file.as_ref().map(|file| format!(" {file}")).unwrap_or_default();
        let outcome = match (step.status, &step.error) {
            (StepStatus::Done, _) => printer.paint_out(&Style::new().green(), "done"),
            (StepStatus::Failed, Some(error)) => {
                printer.paint_out(&Style::new().red(), &visible(&error.to_string()))
            }
            (StepStatus::Failed, None) => printer.paint_out(&Style::new().red(), "failed"),
            (StepStatus::NotRun, _) => printer.paint_out(&Style::new().dim(), "not run"),
        };
        printer.line(&format!("step {} {}{}: {outcome}", step.step, visible(&step.kind), visible(&file)));
    }
    if let Some(error) = report.error.as_ref().filter(|_| report.outcome == PlanOutcome::Halted) {
        printer.warn(&visible(&error.to_string()));
    }
}

async fn assert(
    kernel: &Kernel,
    cypher: Option<String>,
    expect: Option<Expected>,
    printer: &Printer,
) -> Result<(), Failure> {
    let assertions: Vec<Assertion> =
        cypher.into_iter().map(|cypher| Assertion::new(cypher, expect == Some(Expected::Rows))).collect();
    let check = kernel.assert_invariants(&assertions).await?;
    // Nothing is broken; that the warnings could not be found out does not change it.
    let idle = kernel.knowledge().guardian().idle_invariants().await.unwrap_or_default();
    let verdict = match (check.defined, check.is_undecided()) {
        (0, _) => "no_invariants",
        (_, true) => "undecided",
        (_, false) => "holds",
    };
    if printer.json() {
        printer.document(&done(json!({
            "verdict": verdict,
            "holds": verdict == "holds",
            "defined": check.defined,
            "undecided": check.undecided,
            "idle": idle,
        })));
    } else {
        show_check(&check, printer);
        for idle in &idle {
            printer.warn(&visible(&idle.sentence()));
        }
    }
    if check.is_undecided() { Err(Failure::Silent(Code::Runtime)) } else { Ok(()) }
}

fn show_check(check: &InvariantCheck, printer: &Printer) {
    if check.defined == 0 {
        printer.line("no invariants are defined: write them to `.sage/invariants.yml`");
        return;
    }
    if !check.is_undecided() {
        printer.line(&format!("{}: nothing is broken", printer.paint_out(&Style::new().green(), "holds")));
        return;
    }
    let word = printer.paint_out(&Style::new().yellow(), "undecided");
    for undecided in &check.undecided {
        printer.line(&format!(
            "{word}: `{}`: {}",
            visible(&undecided.invariant),
            visible(&undecided.cause())
        ));
    }
    printer.note(&format!("nothing is known to be broken; {}", UndecidedInvariant::HELP));
}

async fn try_invariant(kernel: &Kernel, name: &str, printer: &Printer) -> Result<(), Failure> {
    let trial = kernel.knowledge().guardian().try_invariant(name).await?;
    let trial = serde_json::to_value(&trial).unwrap_or_default();
    if printer.json() {
        printer.document(&done(trial));
    } else {
        show_trial(&trial, printer);
    }
    Ok(())
}

fn show_trial(trial: &Value, printer: &Printer) {
    let list = |name: &str| trial.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let is = |name: &str| trial.get(name).and_then(Value::as_bool).unwrap_or_default();
    let number = |name: &str| trial.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (style, word) = match (text_of(trial, "verdict").as_str(), text_of(trial, "severity").as_str()) {
        ("holds", _) => (Style::new().green(), "holds"),
        ("undecided", _) => (Style::new().yellow(), "is undecided"),
        (_, "warning") => (Style::new().yellow(), "broken, as a warning"),
        _ => (Style::new().red(), "broken"),
    };
    let expected = match text_of(trial, "expect").as_str() {
        "none" => "no rows",
        "rows" => "rows",
        _ => "the rows that were there before",
    };
    let more = if is("truncated") { "more than " } else { "" };
    let total = usize::try_from(number("total")).unwrap_or(usize::MAX);
    printer.line(&format!(
        "{} {}: expected {expected}, found {more}{}",
        text_of(trial, "invariant"),
        printer.paint_out(&style, word),
        count(total, "row")
    ));
    let rows = list("rows");
    for row in &rows {
        printer.line(&format!("  {}", visible(&row.to_string())));
    }
    if let Some(left) = total.checked_sub(rows.len()).filter(|left| *left > 0) {
        printer.line(&format!("  and {left} more"));
    }
    for file in trial.pointer("/undecided/files").and_then(Value::as_array).into_iter().flatten() {
        let (path, reason) = (text_of(file, "path"), text_of(file, "reason"));
        printer.line(&format!("  unread: {} ({reason})", visible(&path)));
    }
    let limit = match trial.get("timeout_ms").and_then(Value::as_u64) {
        Some(limit) => format!("its limit is {limit} ms"),
        None => "its limit is graph.timeoutMs".to_owned(),
    };
    printer.line(&format!("took {} ms; {limit}", number("milliseconds")));
    printer.line("plan:");
    for step in &list("plan") {
        let level = step.get("level").and_then(Value::as_u64).unwrap_or_default();
        let indent = "  ".repeat(usize::try_from(level).unwrap_or_default().saturating_add(1));
        let line = format!("{indent}{} {}", text_of(step, "operation"), text_of(step, "detail"));
        printer.line(line.trim_end());
    }
    for pattern in &list("idle") {
        let pattern = pattern.as_str().unwrap_or_default();
        printer.warn(&visible(&format!("nothing in the graph matches {pattern}")));
    }
}

async fn inquire(kernel: &Kernel, printer: &Printer) -> Result<(), Failure> {
    let findings = kernel.inquire().await?;
    if printer.json() {
        printer.document(&done(json!({ "findings": findings })));
        return Ok(());
    }
    for finding in &findings {
        let (style, word) = match finding.severity {
            FindingSeverity::Error => (Style::new().red(), "error"),
            FindingSeverity::Warning => (Style::new().yellow(), "warning"),
            FindingSeverity::Info => (Style::new().dim(), "info"),
        };
        let word = printer.paint_out(&style, word);
        printer.line(&format!("{word} {}: {}", visible(&finding.area), visible(&finding.message)));
        if !finding.remedy.is_empty() {
            printer.line(&format!("  remedy: {}", visible(&finding.remedy)));
        }
    }
    let wrong = findings.iter().filter(|finding| finding.severity != FindingSeverity::Info).count();
    printer.note(&if wrong == 0 { "everything fits together".to_owned() } else { count(wrong, "finding") });
    Ok(())
}

/// Accepts one file as it is, or all that are disagreed about.
async fn reconcile(
    kernel: &Kernel,
    file: Option<String>,
    accepted: &Value,
    printer: &Printer,
) -> Result<(), Failure> {
    let files = match file {
        Some(file) => vec![file],
        None => kernel.knowledge().guardian().contradictions_now().await?,
    };
    let mut answers = Vec::new();
    for file in &files {
        let mut arguments = accepted.as_object().cloned().unwrap_or_default();
        arguments.retain(|_, value| !value.is_null());
        arguments.insert("path".to_owned(), json!(file));
        let call = session::call(kernel, "reconcile", Value::Object(arguments), session::typed(false));
        answers.push(call.await?);
    }
    let reconciled: Vec<Reconciled> =
        answers.iter().cloned().map(result_of).collect::<Result<_, Failure>>()?;
    let still_broken = reconciled.last().and_then(|last| last.still_broken.as_ref());
    if printer.json() {
        printer.document(&done(match <[Value; 1]>::try_from(answers) {
            Ok([one]) => one,
            Err(many) => json!({ "reconciled": many }),
        }));
    } else {
        reconciled.iter().for_each(|one| show_reconciled(one, printer));
        if files.is_empty() {
            printer.note("chronicle and files agree about everything, so nothing was done");
        } else if let Some(error) = still_broken {
            printer.warn(&format!("work is still halted: {}", visible(&error.message)));
        } else {
            printer.note("work can go on");
        }
    }
    still_broken.map_or(Ok(()), |_| Err(Failure::Silent(Code::Halt)))
}

fn show_reconciled(reconciled: &Reconciled, printer: &Printer) {
    let chronicle = visible(reconciled.chronicle.as_str());
    printer.line(&visible(&reconciled.event_id));
    printer.note(&match (reconciled.appended, reconciled.settled) {
        (true, true) => format!("one RECONCILIATION event in {chronicle}"),
        (true, false) => {
            format!("one RECONCILIATION event in {chronicle}, though there was nothing to settle")
        }
        (false, _) => format!("{chronicle} has this reconciliation already"),
    });
}
