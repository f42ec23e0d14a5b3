//! Who can fix an error, and how often the same one is met before a session stops.
//!
//! | who | codes | what happens | how often |
//! | --- | --- | --- | --- |
//! | the model | of a call: `EVALIDATION` `ESTATE` `EPOLICY` `EAPPROVAL` `EPERMISSION` `ESECURITY` `ECAPABILITY` `ECOMPILE` `ERR_ISOLATE_MEMORY` `ERR_ISOLATE_TIMEOUT` `ERUNTIME` `ENOTFOUND` `ECONFLICT` `EGIT` `ESQL` `EFETCH`, and `EPROVIDER` `EBUDGET` `ECONFIG`, which are some server's, database's or tool's then | the error with its place, logs and help is the call's result | the same tool with the same arguments and the same code three times since it last succeeded: the session ends as stuck |
//! | the user | of the model's turn: all but those of the next row; of a call: `ESTATE` while a person has halted the work | the session stops and can be gone on with | once: a provider has made its own attempts already, and an answer that broke off was asked for again |
//! | nobody in the session | of both: `EHALT` `EINTEGRITY` `EINTERNAL` | the session stops at once | once |

use std::collections::VecDeque;

use serde_json::{Value, json};
use tgp_contract::{Code, TddState, ToolError, canonical};

use crate::Ending;

/// Failures of the same call in the same way that end a session.
pub(crate) const MAX_FAILURES: u32 = 3;
/// Failing calls that are remembered: a model does not return to the same one after so many others.
const MAX_REMEMBERED: usize = 256;

/// Who can fix an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoverableBy {
    Model,
    User,
    Nobody,
}

impl RecoverableBy {
    /// Who can fix the error of a call. `state` is the project's state after it.
    pub(crate) fn of(error: &ToolError, state: TddState) -> Self {
        match error.code {
            // Only the person who halted the work can lift it; every other call would be refused like this one.
            Code::State if state == TddState::Halted => Self::User,
            Code::Validation
            | Code::State
            | Code::Policy
            | Code::Approval
            | Code::Permission
            | Code::Security
            | Code::Capability
            | Code::Compile
            | Code::IsolateMemory
            | Code::IsolateTimeout
            | Code::Runtime
            | Code::NotFound
            | Code::Conflict
            | Code::Git
            | Code::Sql
            | Code::Fetch
            | Code::Upstream
            | Code::Pin
            | Code::Provider
            | Code::Budget
            | Code::Config => Self::Model,
            Code::Halt | Code::Integrity | Code::Internal => Self::Nobody,
        }
    }

    /// How a session ends with an error that is not for the model, whatever its code.
    pub(crate) fn ending(error: ToolError, session: &str) -> Ending {
        let how = format!("when that is fixed, resume with `tgp run --resume {session}`");
        let help = match error.help_of() {
            None => how,
            // A recorded ending has it already.
            Some(help) if help.ends_with(&how) => help.to_owned(),
            Some(help) => format!("{help}; {how}"),
        };
        let error = error.help(help);
        match error.code {
            Code::Halt | Code::Integrity | Code::Internal => Ending::Broken { error },
            _ => Ending::NeedsUser { error },
        }
    }
}

/// The failing calls of a session, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(VecDeque<Failure>);

#[derive(Clone, Debug)]
struct Failure {
    call: String,
    code: Code,
    count: u32,
}

impl Failures {
    /// Notes how a call ended, and answers how often it has ended so since it last succeeded; 0 for a success.
    pub(crate) fn note(&mut self, tool: &str, arguments: &Value, error: Option<&ToolError>) -> u32 {
        let call = hash(&json!([tool, arguments]));
        let Some(error) = error else {
            self.0.retain(|failure| failure.call != call);
            return 0;
        };
        let known = self.0.iter().position(|failure| failure.call == call && failure.code == error.code);
        let count = known.and_then(|at| self.0.remove(at)).map_or(1, |failure| failure.count + 1);
        if self.0.len() >= MAX_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Failure { call, code: error.code, count });
        count
    }
}

/// The hash of a value's canonical form. An integer that has none counts as its digits: what a model writes must not be able
/// to stop the loop, and transcripts that hold such hashes must stay replayable.
#[expect(clippy::expect_used, reason = "integers are all that may have no canonical form, and none is left")]
pub(crate) fn hash(value: &Value) -> String {
    canonical::hash(value).unwrap_or_else(|_| {
        canonical::hash(&in_digits(value)).expect("digits in texts have a canonical form")
    })
}

fn in_digits(value: &Value) -> Value {
    match value {
        Value::Number(_) if canonical::check(value).is_err() => Value::String(value.to_string()),
        Value::Array(items) => Value::Array(items.iter().map(in_digits).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, item)| (name.clone(), in_digits(item))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What a session that is stuck says.
pub(crate) fn stuck(tool: &str, id: &str, last: &ToolError) -> ToolError {
    let message = format!(
        "`{tool}` was called with the same arguments {MAX_FAILURES} times and failed each time; the last time: {}",
        last.message
    );
    let mut error = ToolError::new(last.code, message).detail("attempts", MAX_FAILURES).detail("call", id);
    for (name, value) in &last.details {
        error = error.detail(name, value.clone());
    }
    error
}
