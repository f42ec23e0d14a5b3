//! `audit_tail`: a caller's own last calls, and how they ended.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_audit::{Audit, AuditEntry, AuditFilter};
use tgp_contract::{Effect, ExecutionPath, Target, ToolError, background, counted_session};
use tgp_router::{DynTool, Invocation, Tool, ToolOutcome, ToolSpec, typed};

use crate::state_directory::StateDirectory;

const DEFAULT_ENTRIES: usize = 20;
const MAX_ENTRIES: usize = 200;

/// The tool, for the audit of one kernel.
///
/// # Errors
/// Never in practice: its name is a constant.
pub(crate) fn audit_tail_tool(
    state: &StateDirectory,
    audit: &Arc<Audit>,
) -> Result<Arc<dyn DynTool>, ToolError> {
    typed(AuditTail { state: state.clone(), audit: Arc::clone(audit) })
}

struct AuditTail {
    state: StateDirectory,
    audit: Arc<Audit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AuditTailArgs {
    #[serde(default = "default_entries")]
    #[schemars(range(min = 1, max = MAX_ENTRIES))]
    last: usize,
}

fn default_entries() -> usize {
    DEFAULT_ENTRIES
}

/// The last calls of the caller, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct OwnCalls {
    calls: Vec<OwnCall>,
}

/// One call as its caller may see it: its name and its end. What the gates found on the way is not for callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnCall {
    sequence: u64,
    time: String,
    call_id: String,
    tool: String,
    verdict: String,
    execution: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
}

impl OwnCall {
    fn new(entry: &AuditEntry) -> Self {
        let find = |name: &str| {
            let outcome = entry.body.get("outcome");
            entry.body.get(name).or_else(|| outcome.and_then(|outcome| outcome.get(name)))
        };
        let text = |name: &str| find(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            sequence: entry.sequence,
            time: find("time").map(shown_time).unwrap_or_default(),
            call_id: text("callId"),
            tool: text("tool"),
            verdict: text("verdict"),
            execution: text("execution"),
            error_code: find("errorCode").and_then(Value::as_str).map(str::to_owned),
        }
    }
}

/// Entries have their time in milliseconds since the epoch.
fn shown_time(time: &Value) -> String {
    time.as_u64().map(tgp_text::rfc3339).or_else(|| time.as_str().map(str::to_owned)).unwrap_or_default()
}

#[async_trait]
impl Tool for AuditTail {
    type Args = AuditTailArgs;
    type Output = OwnCalls;

    const INFO: ToolSpec = ToolSpec {
        name: "audit_tail",
        aliases: &[],
        description: "List your own last calls and how they ended, oldest first.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    /// A caller reads its own past only, and that is not a file to a gate.
    fn targets(&self, _args: &AuditTailArgs) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(
        &self,
        args: AuditTailArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<OwnCalls>, ToolError> {
        // Records are written by another thread; those of calls that have ended are waited for.
        self.audit.settle().await?;
        let session = counted_session(&invocation.context.session).to_owned();
        let state = self.state.clone();
        let read = move || {
            let filter = AuditFilter { session: Some(session), ..AuditFilter::default() };
            state.audit_reader()?.tail(&filter, args.last)
        };
        let entries = background::run(read).await?;
        Ok(OwnCalls { calls: entries.iter().map(OwnCall::new).collect() }.into())
    }
}
