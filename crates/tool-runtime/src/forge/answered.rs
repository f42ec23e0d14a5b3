//! The errors that the kernel has answered the calls of a run with.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tgp_contract::{Code, ToolError};

/// Errors of which the details are kept: a tool lets one of its last ones through.
const MAX_KEPT: usize = 32;

/// Bytes of a message that are compared. The worker cuts longer ones.
const MAX_COMPARED: usize = 4096;

/// What a caller can use of an error that a tool let through.
const KEPT_DETAILS: [&str; 3] = ["sqlCode", "retry", HOST];

/// The detail by which an error of a function of the host names it.
const HOST: &str = "host";

/// Only code and message of an error cross to a tool, so that its details are looked up here when the tool lets it
/// through.
#[derive(Debug, Default)]
pub(super) struct AnsweredErrors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The codes that were really answered: a tool can make one up.
    codes: BTreeSet<Code>,
    recent: VecDeque<ToolError>,
}

/// What is known of an error beside its code and message.
#[derive(Debug, Default)]
pub(super) struct KnownError {
    pub(super) details: Map<String, Value>,
    pub(super) help: Option<String>,
    /// Where an inner tool threw it, unless the message says so already.
    pub(super) thrown_at: Option<String>,
}

impl AnsweredErrors {
    pub(super) fn note(&self, error: &ToolError) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.codes.insert(error.code);
        if state.recent.len() >= MAX_KEPT {
            state.recent.pop_front();
        }
        state.recent.push_back(error.clone());
    }

    /// Whether an error with this code came from the kernel, and was not made up by the tool.
    pub(super) fn has(&self, code: Code) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).codes.contains(&code)
    }

    /// The last error with this code and message.
    pub(super) fn find(&self, code: &str, message: &str) -> Option<KnownError> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |error: &&ToolError| {
            error.code.as_str() == code && message.starts_with(tgp_text::head(&error.message, MAX_COMPARED))
        };
        let error = state.recent.iter().rev().find(is_same)?;
        let mut details = Map::new();
        for key in KEPT_DETAILS {
            details.extend(error.details.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        let inner = inner_error(error);
        // What stopped an inner run, or keeps it from compiling, has its place in the message already.
        let is_thrown = error.details.contains_key("stack")
            && !error.details.contains_key(INNER)
            && !matches!(error.code, Code::IsolateTimeout | Code::IsolateMemory);
        let thrown_at =
            error.place_of().filter(|_| inner.is_some() && is_thrown).map(|place| place.to_string());
        details.extend(inner.map(|inner| (INNER.to_owned(), inner)));
        let retries = error.details.get("retry") == Some(&Value::Bool(true));
        // The tool is not at fault for what a function of the host threw.
        let is_of_host = error.details.contains_key(HOST);
        // Those of a path that may not be written name where it may.
        let suggests = |help: &&str| match error.code {
            Code::NotFound => help.starts_with("did you mean"),
            Code::Security => help.starts_with("write "),
            _ => false,
        };
        let help = error.help_of().filter(|help| retries || is_of_host || suggests(help)).map(str::to_owned);
        Some(KnownError { details, help, thrown_at })
    }
}

/// The detail that says which tool failed inside another one.
const INNER: &str = "inner";
/// The detail by which an error of `tgp.exec_tool` names the tool.
pub(super) const INNER_TOOL: &str = "tool";

/// The tool that failed inside a run, where, and what failed inside that one.
fn inner_error(error: &ToolError) -> Option<Value> {
    let tool = error.details.get(INNER_TOOL)?;
    let mut inner = json!({ INNER_TOOL: tool });
    if let Some(fields) = inner.as_object_mut() {
        for key in ["place", "stack", INNER] {
            fields.extend(error.details.get(key).map(|value| (key.to_owned(), value.clone())));
        }
    }
    Some(inner)
}
