//! A call that the gates have let through, and how often it may change until it runs.

use tgp_contract::{Code, GateDecision, GateRequest, GateVerdict, ToolError};

use super::{CallEnv, Registered};

/// How often the user is asked about one call that changes meanwhile. A user who agrees to a fourth version reads
/// none of them.
pub(super) const MAX_ROUNDS: usize = 3;

/// A call that has passed the gates and is about to run.
#[derive(Clone, Copy)]
pub(super) struct AuthorizedCall<'a> {
    pub(super) registered: &'a Registered,
    pub(super) request: GateRequest<'a>,
    pub(super) env: CallEnv<'a>,
}

/// A call that was different each time it was compared with what was agreed to, or with what the gates had judged.
pub(super) fn keeps_changing(
    request: GateRequest<'_>,
    code: Code,
    verdicts: &mut Vec<GateVerdict>,
) -> ToolError {
    verdicts.push(GateVerdict::approval(GateDecision::Refused, "it keeps changing"));
    let done = if code == Code::Approval { "approved" } else { "judged" };
    let message = format!(
        "`{}` was {done} {MAX_ROUNDS} times, and each time what it would do had changed: it keeps changing",
        request.definition.name
    );
    ToolError::new(code, message)
        .help("nothing was changed; stop whatever else works on this, and repeat the call")
}
