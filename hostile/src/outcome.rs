//! What came of one step.

use serde_json::Value;

use crate::expected::OK;

/// The outcome of a step, whichever entry point it was made through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `ok`, an error code, or words in brackets where there was no answer to read a code from.
    pub code: String,
    /// Everything the attacker learns from it.
    pub text: String,
}

impl Outcome {
    /// An outcome that is not an answer of the product, so that it equals nothing a file can expect.
    #[must_use]
    pub fn none(why: &str, text: impl Into<String>) -> Self {
        Self { code: format!("[{why}]"), text: text.into() }
    }

    /// Reads `{"ok": …}`, as `tgp call`, the socket and transcripts write results. `besides` is what was printed in
    /// addition to it.
    #[must_use]
    pub fn of_result(result: &Value, besides: &str) -> Self {
        let code = match result.get("ok") {
            Some(Value::Bool(true)) => OK.to_owned(),
            _ => code_of(result.get("error")),
        };
        Self { code, text: format!("{result}\n{besides}") }
    }

    /// The error `{"code", "message", …}` of a step that failed.
    #[must_use]
    pub fn of_error(error: &Value) -> Self {
        Self { code: code_of(Some(error)), text: error.to_string() }
    }

    /// Whether the outcome is one of these.
    #[must_use]
    pub fn is_one_of(&self, expected: &[String]) -> bool {
        expected.contains(&self.code)
    }
}

fn code_of(error: Option<&Value>) -> String {
    let code = error.and_then(|error| error.get("code")).and_then(Value::as_str);
    code.map_or_else(|| "[no code]".to_owned(), str::to_owned)
}
