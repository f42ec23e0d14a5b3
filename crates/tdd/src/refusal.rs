//! Words for a person: why something is refused or a run changed nothing, and what to do next.

use tgp_contract::{Code, RelativePath, TddMode, TddState, ToolError};

use crate::machine::RunReason;
use crate::rules::Reason;
use crate::{Scope, WriteKind};

/// What a refusal is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusalSubject<'a> {
    pub tool: &'a str,
    pub mode: TddMode,
    pub state: TddState,
    pub scope: &'a Scope,
    pub path: &'a RelativePath,
    pub kind: WriteKind,
    /// A test that would do, in backticks.
    pub test: &'a str,
    /// Why a file that is not source counts as code, and how that is changed.
    pub counts_as_code: Option<&'a str>,
    /// The files that made a result stale; `None` for one that may not be named.
    pub changed: &'a [Option<RelativePath>],
}

/// The error of a refused write.
pub(crate) fn refuse(reason: Reason, subject: RefusalSubject<'_>) -> ToolError {
    let RefusalSubject { tool, mode, state, scope, path, kind, test, counts_as_code, changed } = subject;
    if reason == Reason::Halted {
        return halted(tool, mode, scope).detail("file", path.as_str());
    }
    let (verb, again) = match kind {
        WriteKind::Create => ("created", "write the code"),
        WriteKind::Modify => ("changed", "change the code"),
        WriteKind::Delete => ("deleted", "delete the code"),
    };
    let run = how_to_run(scope);
    let fail_first = format!("write {test} so that it fails, {run}, then {again}");
    let (why, help) = match reason {
        Reason::Halted | Reason::NoFailingTest => {
            // An old test that fails is the most common reason to change old code.
            match kind {
                WriteKind::Modify => (
                    "no recorded run has a failing test".to_owned(),
                    format!("{run}: when an existing test fails, existing code may be changed; otherwise {fail_first}"),
                ),
                WriteKind::Create | WriteKind::Delete => {
                    ("no new or changed test has failed".to_owned(), fail_first)
                }
            }
        }
        Reason::TestNotRun => (
            "a test was written or changed, and no run has shown that it fails".to_owned(),
            format!("{run}; when the new test fails, {again}"),
        ),
        Reason::FailureIsStale => (
            match named(changed) {
                Some(files) => format!("the test that failed is not the one that is there now: {files}"),
                None => "the test that failed is not the one that is there now".to_owned(),
            },
            format!("{run} again; when the test still fails, {again}"),
        ),
        Reason::PassIsStale => (
            changed_since_pass(named(changed).as_deref()),
            format!("{run} again; when all tests pass, {again}"),
        ),
        Reason::NewWhileGreen => (
            "all tests pass, so existing code may be changed or moved, but new code needs a failing test".to_owned(),
            format!(
                "{fail_first}; a file that is moved, or one with 80 % of its lines from files of the last run, needs none"
            ),
        ),
        Reason::NewWhileRefactoring => (
            "existing code is being changed, and a new file has to wait".to_owned(),
            format!("{run}; when all tests pass, a file may be moved or split off; otherwise {fail_first}"),
        ),
        Reason::TestWithRepair => (
            format!("code is changed for an existing test that fails, and this call also changes {}",
                named(changed).unwrap_or_else(|| "a test".to_owned())),
            "change only the code in this call; a test that has to change is a call of its own, and has to fail first".to_owned(),
        ),
        Reason::Finished => ("the work was declared done".to_owned(), fail_first),
    };
    let help = match counts_as_code {
        Some(why) => format!("{help}; {why}"),
        None => help,
    };
    let (mode, state) = (mode.as_str(), state.as_str());
    let error = ToolError::new(
        Code::State,
        format!("`{path}` may not be {verb} by `{tool}`: {why} (mode {mode}, state {state})"),
    )
    .detail("state", state)
    .detail("mode", mode)
    .detail("scope", scope.to_string())
    .detail("file", path.as_str())
    .help(help);
    match changed.iter().flatten().next() {
        Some(first) => error.detail("changed", first.as_str()),
        None => error,
    }
}

/// The first file that may be named, and how many more there are; nothing when there is none.
pub(crate) fn named(changed: &[Option<RelativePath>]) -> Option<String> {
    let first = match changed.iter().flatten().next() {
        Some(path) => format!("`{path}`"),
        None => changed.first().map(|_| "a file that this call may not read".to_owned())?,
    };
    Some(match changed.len() {
        0 | 1 => first,
        2 => format!("{first} and 1 more file"),
        more => format!("{first} and {} more files", more - 1),
    })
}

/// Why a run that passed admits nothing any more.
pub(crate) fn changed_since_pass(changed: Option<&str>) -> String {
    match changed {
        Some(files) => format!("files have changed since the run that passed: {files}"),
        None => "files have changed since the run that passed".to_owned(),
    }
}

/// The error of any call while work is halted.
pub(crate) fn halted(tool: &str, mode: TddMode, scope: &Scope) -> ToolError {
    let lift = match scope {
        Scope::Project => "`tgp state set idle`".to_owned(),
        Scope::Tool(path) => format!("`tgp state set idle {path}`"),
    };
    ToolError::new(
        Code::State,
        format!("`{tool}` may not run: a person has halted all work on {scope} (state halted)"),
    )
    .detail("state", TddState::Halted.as_str())
    .detail("mode", mode.as_str())
    .detail("scope", scope.to_string())
    .help(format!("a person lifts it with {lift}"))
}

/// The error of a state that is claimed without a run.
pub(crate) fn claimed(scope: &Scope, from: TddState, to: TddState, why: &str, help: String) -> ToolError {
    ToolError::new(
        Code::State,
        format!("the state of {scope} cannot be set from {} to {}: {why}", from.as_str(), to.as_str()),
    )
    .detail("state", from.as_str())
    .detail("scope", scope.to_string())
    .help(help)
}

/// The command by which a person runs the tests of a scope, as part of a sentence.
pub(crate) fn how_a_person_runs(scope: &Scope) -> String {
    match scope {
        Scope::Project => "run the tests with `tgp call test_run '{}' --yes`".to_owned(),
        Scope::Tool(path) => format!("run the tests with `tgp test {path}`"),
    }
}

/// The tool by which an agent runs the tests of a scope, as part of a sentence.
fn how_to_run(scope: &Scope) -> String {
    match scope {
        Scope::Project => "run `test_run`".to_owned(),
        Scope::Tool(path) => format!("run `test_tool` on `{path}`"),
    }
}

/// What a run meant.
pub(crate) fn explain(reason: RunReason, state: TddState) -> &'static str {
    match (reason, state) {
        (RunReason::Halted, _) => "work is halted, so the run changes nothing; a person lifts it",
        (RunReason::Stale, _) => {
            "files changed while the tests ran, so the run says nothing; run them again while nothing is written"
        }
        (RunReason::Inconclusive, _) => {
            "no test has been seen to pass or to fail, so the run says nothing; look at its output"
        }
        (RunReason::PartIsUnknown, _) => {
            "nothing says in which file one of the selected tests has failed, so the run says nothing; run all tests"
        }
        (RunReason::OnlyAPart, _) => "the selected tests pass; only a run of all tests makes the work green",
        (RunReason::AllPass, _) => {
            "all tests pass on the files as they are; existing code may be changed while they stay green"
        }
        (RunReason::NewTestFails, TddState::CodeAllowed) => "the new test still fails; go on with the code",
        (RunReason::NewTestFails, _) => "a new or changed test fails; write the code that makes it pass",
        (RunReason::StillFails, _) => {
            "tests fail since code was written for the new test; go on until all pass"
        }
        (RunReason::RefactoringBroke, _) => {
            "tests that passed fail now; change existing code until they pass again"
        }
        (RunReason::OldTestFails, _) => {
            "an existing test fails; change existing code until it passes, and leave the tests as they are"
        }
        (RunReason::NewTestUnknown, _) => {
            "tests fail, but not the new or changed ones; a new or changed test must fail before code is written"
        }
        (RunReason::NothingKnown, _) => {
            "tests fail in files that are no tests or code of this project; run all tests"
        }
    }
}
