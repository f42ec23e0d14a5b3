//! `forge`: a tool with its test, in the order that test-driven work has: test, red, source, green.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError, canonical};

use crate::approval;
use crate::arguments::ForgeArgs;
use crate::client::Caller;
use crate::options::{test_path, tool_name, tool_path};

/// Characters of a refused name that are said back.
const MAX_NAME_CHARS: usize = 80;

/// One step of the work, as errors name it.
#[derive(Clone, Copy)]
enum Step {
    WriteTest,
    Red,
    WriteSource,
    Check,
    Green,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::WriteTest => "write_test",
            Self::Red => "red",
            Self::WriteSource => "write_source",
            Self::Check => "check",
            Self::Green => "green",
        }
    }
}

pub(super) async fn forge(caller: &Caller, arguments: ForgeArgs) -> Result<Value, ToolError> {
    let ForgeArgs { name, test, source, override_similar } = arguments;
    check_name(&name)?;
    let path = tool_path(&name);
    let test_file = test_path(&path);
    let at = |step: Step| move |error: ToolError| waiting(step, error).detail("step", step.name());
    // A step that waited for an approval is repeated, and those before it are not.
    let wanted = canonical::hash_exact(json!([&path, &test, &source, override_similar]));
    let progress = &caller.client.forging;
    let done = progress.of(&wanted);

    let red = match done.red {
        Some(red) => red,
        None => {
            if !done.has_test {
                let call = json!({ "path": test_file, "content": test });
                caller.ask("write_file", call).await.map_err(at(Step::WriteTest))?;
                progress.note(&wanted, Forged { has_test: true, ..Forged::default() });
            }
            caller.ask("test_tool", json!({ "path": test_file })).await.map_err(at(Step::Red))?
        }
    };
    if let Some(broken) = broken_test(&red, &test_file) {
        progress.forget(&wanted);
        return Err(at(Step::Red)(
            ToolError::new(
                Code::State,
                format!("the test of `{name}` cannot run, so it shows nothing: {broken}"),
            )
            .detail("tests", red)
            .help("correct the test, and forge again; the source was not stored"),
        ));
    }
    // A source that was stored and never was green has been seen to fail.
    if failed(&red) == 0 && !progress.is_unproven(&path) {
        progress.forget(&wanted);
        let message =
            format!("the test of `{name}` passes before the source was stored, so it shows nothing new");
        return Err(at(Step::Red)(
            ToolError::new(Code::State, message)
                .detail("tests", red)
                .help("write a test that fails without the change, and forge again"),
        ));
    }
    let seen = Forged { has_test: true, red: Some(red.clone()), written: None };
    progress.note(&wanted, seen.clone());
    let written = match done.written {
        Some(written) => written,
        None => {
            let call = json!({ "path": path, "content": source, "override_similar": override_similar });
            let written = caller.ask("write_file", call).await;
            written.map_err(|error| similar(error, &test_file)).map_err(at(Step::WriteSource))?
        }
    };
    progress.note(&wanted, Forged { written: Some(written.clone()), ..seen });
    let check = caller.ask("check_tool", json!({ "path": path })).await.map_err(at(Step::Check))?;
    let green = caller.ask("test_tool", json!({ "path": test_file })).await.map_err(at(Step::Green))?;
    progress.forget(&wanted);
    progress.prove(&path, failed(&green) == 0);
    if failed(&green) > 0 {
        let message = format!("the test of `{name}` does not pass with the new source");
        return Err(at(Step::Green)(
            ToolError::new(Code::State, message)
                .detail("tests", green)
                .detail("check", check)
                .help("the source is stored and not green; correct the source or the test, and forge again"),
        ));
    }
    Ok(json!({
        "tool": tool_name(&path),
        "path": path,
        "test": test_file,
        "commit": written.get("commit"),
        "red": count(&red),
        "green": count(&green),
        "check": check,
    }))
}

/// A name that can be typed and imported without quoting.
fn check_name(name: &str) -> Result<(), ToolError> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./".contains(letter);
    let is_inside = name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
    if name.chars().all(is_plain) && is_inside {
        return Ok(());
    }
    let message = format!("`{}` is not a name of a tool", tgp_text::one_line(name, MAX_NAME_CHARS));
    Err(ToolError::new(Code::Validation, message)
        .detail("field", "name")
        .help("use letters, digits, `-`, `_` and `/` for folders: `math/fib`"))
}

/// Says of a source that others duplicate what this server offers instead.
fn similar(error: ToolError, test_file: &str) -> ToolError {
    let Some(known) = error.details.get("similar").and_then(Value::as_array) else { return error };
    let paths: Vec<&Value> = known.iter().filter_map(|tool| tool.get("path")).collect();
    let help = format!(
        "call that tool with `run`, or `forge` it under its own name to change it; when none of them does the job, forge again \
         with `override_similar: {}`; the test stays stored as `{test_file}`",
        json!(paths)
    );
    error.help(help)
}

/// Says of a step that waits for an approval that the steps before it are done.
fn waiting(step: Step, error: ToolError) -> ToolError {
    if matches!(step, Step::WriteTest) {
        return error;
    }
    let Some(id) = approval::pending_id(&error).map(str::to_owned) else {
        return match approval::is_denied(&error) {
            true => {
                error.help("what the steps before have stored stays; a person has decided: do without it")
            }
            false => error,
        };
    };
    error.help(format!(
        "what the steps before `{}` have stored stays; when a person has agreed with `tgp approve {id}` at a terminal, make \
         the same call again, and it goes on from here",
        step.name()
    ))
}

/// Work of `forge` that waits for approvals at a time.
const MAX_FORGING: usize = 16;
/// Sources that are remembered as not green.
const MAX_UNPROVEN: usize = 64;

/// How far a call of `forge` has come.
#[derive(Clone, Debug, Default)]
struct Forged {
    has_test: bool,
    red: Option<Value>,
    written: Option<Value>,
}

/// The work of a connection's calls to `forge` that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Forging(Mutex<ForgingState>);

#[derive(Debug, Default)]
struct ForgingState {
    /// By what they want.
    begun: BTreeMap<String, Forged>,
    /// The paths of sources that were stored and have not passed their test.
    unproven: BTreeSet<String>,
}

impl Forging {
    fn state(&self) -> MutexGuard<'_, ForgingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, wanted: &str) -> Forged {
        self.state().begun.get(wanted).cloned().unwrap_or_default()
    }

    fn note(&self, wanted: &str, forged: Forged) {
        let mut state = self.state();
        if state.begun.len() >= MAX_FORGING && !state.begun.contains_key(wanted) {
            // The others begin again.
            state.begun.clear();
        }
        state.begun.insert(wanted.to_owned(), forged);
    }

    fn forget(&self, wanted: &str) {
        self.state().begun.remove(wanted);
    }

    fn is_unproven(&self, path: &str) -> bool {
        self.state().unproven.contains(path)
    }

    fn prove(&self, path: &str, is_green: bool) {
        let mut state = self.state();
        if is_green || state.unproven.len() >= MAX_UNPROVEN {
            state.unproven.remove(path);
        } else {
            state.unproven.insert(path.to_owned());
        }
    }
}

/// Why a test shows nothing: it does not compile, throws by itself, or declares no test. A test whose tool is not there
/// yet fails as it should.
fn broken_test(report: &Value, test_file: &str) -> Option<String> {
    let file = report.get("files")?.as_array()?.first()?;
    let error = file.get("error").filter(|error| !error.is_null())?;
    let has_tests = file.get("tests").and_then(Value::as_array).is_some_and(|tests| !tests.is_empty());
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let waits_for_tool = text(error.get("code")) == Code::NotFound.as_str();
    let place = text(
        error.get("details").and_then(|details| details.get("place")).and_then(|place| place.get("file")),
    );
    let is_own = place.is_empty() || place == test_file;
    (!has_tests && !waits_for_tool && is_own).then(|| text(error.get("message")))
}

fn failed(report: &Value) -> u64 {
    report.get("failed").and_then(Value::as_u64).unwrap_or_default()
}

fn count(report: &Value) -> Value {
    json!({ "passed": report.get("passed"), "failed": report.get("failed") })
}
