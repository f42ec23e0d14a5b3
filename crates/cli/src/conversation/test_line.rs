//! The result of a test run: how many passed, which failed first, or why it is unknown.

use serde_json::Value;
use tgp::contract::{SourceLocation, ToolError};

use super::TextStyle;
use super::call_line::{message, note};
use crate::text::short_line;

/// How a run ended that came to its own end.
const OWN_END: &str = "exit";
/// Columns of the word for how a run was ended.
const MAX_ENDED: usize = 24;

/// The answer of a run of tests: of the project (`test_run`) or of tools (`test_tool`).
#[derive(Clone, Copy, Debug)]
pub struct TestRun<'a> {
    data: &'a Value,
    passed: u64,
    failed: u64,
}

impl<'a> TestRun<'a> {
    /// Nothing for an answer that counts no tests. A number that the runner did not report is null.
    pub fn of(data: &'a Value) -> Option<Self> {
        let number = |name: &str| match data.get(name)? {
            Value::Null => Some(0),
            other => other.as_u64(),
        };
        Some(Self { data, passed: number("passed")?, failed: number("failed")? })
    }

    /// True when tests ran, and all of them passed.
    pub fn is_good(&self) -> bool {
        let exit_code = self.data.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        self.has_result() && self.failed == 0 && exit_code == 0 && !self.files().any(is_inconclusive)
    }

    /// The numbers, or that there is no result.
    pub fn words(&self) -> String {
        let counted = format!("{} passed, {} failed", self.passed, self.failed);
        let ended = match self.ended() {
            Some(ended) => format!(" ({})", short_line(&ended.replace('_', " "), MAX_ENDED, "...")),
            None => String::new(),
        };
        match (self.has_result(), self.has_counted()) {
            (true, true) => counted,
            (true, false) => "passed, no test was counted".to_owned(),
            (false, true) if self.files().next().is_none() => format!("{counted}, no result{ended}"),
            (false, _) => format!("no result{ended}"),
        }
    }

    /// Why there is no result.
    pub fn why(&self) -> Option<String> {
        if self.has_result() {
            return None;
        }
        let state = self.data.get("state").and_then(|state| state.get("why")).and_then(Value::as_str);
        let state = state.map(str::trim).filter(|why| !why.is_empty()).map(str::to_owned);
        let file = || self.files().find_map(file_error).map(|error| message(&error));
        let why =
            state.or_else(file).or_else(|| self.last_line("stderr")).or_else(|| self.last_line("stdout"));
        Some(why.unwrap_or_else(|| "there was no test to run".to_owned()))
    }

    /// The first failing test below the line: its name, what it says and where.
    pub fn notes(&self, manner: TextStyle) -> String {
        let mut text = String::new();
        let Some(first) = self.first_failure() else { return text };
        if let Some(what) = first.what {
            let words: Vec<&str> = what.split_whitespace().collect();
            text.push_str(&note("failed: ", &words.join(" "), manner));
        }
        if let Some(place) = first.place {
            text.push_str(&note("at ", &place, manner));
        }
        if let Some(help) = first.help {
            text.push_str(&note("help: ", &help, manner));
        }
        text
    }

    fn first_failure(&self) -> Option<FirstFailure> {
        if let Some(failing) = self.data.get("failing").and_then(Value::as_array).and_then(|all| all.first())
        {
            let text = |name: &str| failing.get(name).and_then(Value::as_str).map(str::to_owned);
            return Some(FirstFailure { what: text("name"), place: text("file"), help: None });
        }
        self.files().find_map(|file| {
            if let Some(error) = file_error(file) {
                let path = file.get("path").and_then(Value::as_str).unwrap_or_default();
                let what = format!("{path}: {}: {}", error.code, message(&error));
                return Some(FirstFailure {
                    // Where there is no result the line says it already.
                    what: self.has_result().then_some(what),
                    place: error.place_of().map(|place| place.to_string()),
                    help: error.help_of().map(str::to_owned),
                });
            }
            let tests = file.get("tests").and_then(Value::as_array)?;
            let failed = tests.iter().find(|test| test.get("ok").and_then(Value::as_bool) == Some(false))?;
            let name = failed.get("name").and_then(Value::as_str).unwrap_or_default();
            let error = failed.get("error");
            let said = error.and_then(|error| error.get("message")).and_then(Value::as_str);
            let place = error.and_then(|error| error.get("place")).cloned();
            let place = place.and_then(|place| serde_json::from_value::<SourceLocation>(place).ok());
            Some(FirstFailure {
                what: Some(said.map_or_else(|| name.to_owned(), |said| format!("{name}: {said}"))),
                place: place.map(|place| place.to_string()),
                help: None,
            })
        })
    }

    /// True when the run says something about the tests: it came to its end, and something was counted or is believed.
    fn has_result(&self) -> bool {
        let outcome = self.data.get("state").and_then(|state| state.get("outcome")).and_then(Value::as_str);
        let is_known = outcome.is_none_or(|outcome| matches!(outcome, "passed" | "failed"));
        let is_empty = self.files().next().is_some() && self.files().all(is_inconclusive);
        let is_counted = self.has_counted() || outcome == Some("passed");
        self.ended().is_none() && is_known && is_counted && !is_empty
    }

    fn has_counted(&self) -> bool {
        self.passed > 0 || self.failed > 0
    }

    /// What ended the run before its own end.
    fn ended(&self) -> Option<&'a str> {
        self.data.get("ended").and_then(Value::as_str).filter(|ended| *ended != OWN_END)
    }

    fn files(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.data.get("files").and_then(Value::as_array).into_iter().flatten()
    }

    fn last_line(&self, stream: &str) -> Option<String> {
        let text = self.data.get(stream).and_then(Value::as_str)?;
        let line = text.lines().rev().map(console::strip_ansi_codes).find(|line| !line.trim().is_empty())?;
        Some(line.trim().to_owned())
    }
}

struct FirstFailure {
    what: Option<String>,
    place: Option<String>,
    help: Option<String>,
}

fn is_inconclusive(file: &Value) -> bool {
    file.get("inconclusive").and_then(Value::as_bool) == Some(true)
}

/// Why a test file failed as a whole.
fn file_error(file: &Value) -> Option<ToolError> {
    let error = file.get("error").filter(|error| !error.is_null())?;
    serde_json::from_value(error.clone()).ok()
}
