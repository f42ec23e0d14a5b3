//! `wait`: a run that outlasted its request, or the next part of a long answer.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::json;
use tgp_contract::{Code, ToolError};

use crate::answer::failed;
use crate::arguments::{WaitArgs, parse};
use crate::client::Client;
use crate::runs::Progress;

/// The answer of a request whose run goes on.
pub(crate) fn running(run: &str) -> CallToolResult {
    let text = json!({
        "run": run,
        "state": "running",
        "next": "call `wait` with this `run`, or with `cancel`",
    });
    CallToolResult::success(vec![ContentBlock::text(text.to_string())])
}

/// Answers a call of `wait`; a run is waited for up to the server's patience by `in_time`.
pub(crate) async fn wait(client: &Client, arguments: Option<JsonObject>) -> CallToolResult {
    match answered(client, arguments).await {
        Ok(result) => result,
        Err(error) => failed(error),
    }
}

async fn answered(client: &Client, arguments: Option<JsonObject>) -> Result<CallToolResult, ToolError> {
    let arguments: WaitArgs = parse("wait", arguments)?;
    match (arguments.run, arguments.cursor) {
        (None, Some(cursor)) => client.answers.continued(&cursor),
        (Some(run), None) if arguments.cancel => {
            client.runs.cancel(&run)?;
            let text = json!({ "run": run, "state": "cancelled" });
            Ok(CallToolResult::success(vec![ContentBlock::text(text.to_string())]))
        }
        (Some(run), None) => match client.runs.wait(&run, client.shared.options.patience).await? {
            Progress::Finished(answer) => Ok(client.answers.send(&answer)),
            Progress::Running => Ok(running(&run)),
        },
        _ => Err(ToolError::new(Code::Validation, "give either `run` or `cursor`")
            .help("both come from earlier answers")),
    }
}
