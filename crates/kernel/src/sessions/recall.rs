//! `recall`: a result that was shortened, read again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_agent::{TranscriptLine, TranscriptLineKind};
use tgp_contract::{CallContext, Code, Effect, ExecutionPath, Target, ToolError, ToolResult, background};
use tgp_router::gates::TokenAuthority;
use tgp_router::{DynTool, Invocation, Tool, ToolOutcome, ToolSpec, typed};

use super::Sessions;
use tgp_fs::append_log::at;

/// Bytes of a result that one call answers.
const PAGE_BYTES: usize = 16 << 10;
/// No line of a transcript is longer.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The tool, for the sessions of one kernel.
///
/// # Errors
/// Never in practice: its name is a constant.
pub(crate) fn recall_tool(
    sessions: Sessions,
    tokens: Arc<TokenAuthority>,
) -> Result<Arc<dyn DynTool>, ToolError> {
    typed(Recall { sessions, tokens })
}

struct Recall {
    sessions: Sessions,
    tokens: Arc<TokenAuthority>,
}

impl Recall {
    /// A transcript holds everything its agent has read, unredacted. So the caller's word for its session is not enough:
    /// the call has to carry the token that this kernel has made for the loop of that very session.
    fn check_caller(&self, context: &CallContext) -> Result<(), ToolError> {
        let token = context.token.as_ref();
        let grant = token.map(|token| self.tokens.verify(token)).transpose()?;
        if grant.is_some_and(|grant| grant.speaks_for(&context.session)) {
            return Ok(());
        }
        let message = "`recall` reads results of an agent's own session, and this call belongs to none";
        Err(ToolError::new(Code::Permission, message)
            .help("call the tool again whose result you want to read"))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArgs {
    /// Such as `r3.1`.
    #[schemars(regex(pattern = r"^r[0-9]+\.[0-9]+$"))]
    id: String,
    /// The previous `nextOffset`.
    #[serde(default)]
    offset: usize,
}

/// A piece of an earlier result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecalledText {
    id: String,
    /// A piece of the result's JSON.
    text: String,
    /// Of the whole.
    total_bytes: usize,
    /// Where the next piece begins; nothing at the end.
    next_offset: Option<usize>,
}

#[async_trait]
impl Tool for Recall {
    type Args = RecallArgs;
    type Output = RecalledText;

    const INFO: ToolSpec = ToolSpec {
        name: "recall",
        aliases: &[],
        description: "Read a shortened result of this session in full.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    /// A session reads its own past only, and that is not a file to a gate.
    fn targets(&self, _args: &RecallArgs) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(
        &self,
        args: RecallArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<RecalledText>, ToolError> {
        self.check_caller(invocation.context)?;
        let session = invocation.context.session.clone();
        let sessions = self.sessions.clone();
        let id = args.id.clone();
        let result = background::run(move || find(&sessions, &session, &id)).await?;
        let text = serde_json::to_string(&result)
            .map_err(|error| ToolError::new(Code::Internal, format!("a result has no JSON form: {error}")))?;
        let start = text.floor_char_boundary(args.offset.min(text.len()));
        let page = tgp_text::head(text.get(start..).unwrap_or_default(), PAGE_BYTES);
        let end = start + page.len();
        Ok(RecalledText {
            id: args.id,
            text: page.to_owned(),
            total_bytes: text.len(),
            next_offset: (end < text.len()).then_some(end),
        }
        .into())
    }
}

fn find(sessions: &Sessions, session: &str, id: &str) -> Result<ToolResult, ToolError> {
    let missing = || {
        ToolError::new(Code::NotFound, format!("this session has no result `{id}`"))
            .help("ids stand where a result was shortened, such as r3.1")
    };
    // The name of a session that a caller has made up is not a path.
    let is_name = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let path = sessions.transcript(session);
    if !is_name || !path.is_file() {
        return Err(missing());
    }
    let needle = format!("\"id\":\"{id}\"");
    let mut reader = BufReader::new(File::open(&path).map_err(at(&path))?);
    let mut found = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(at(&path))?;
        if read == 0 {
            break;
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        if !text.contains(&needle) {
            continue;
        }
        if let Ok(TranscriptLine { kind: TranscriptLineKind::Result { id: of, result, .. }, .. }) =
            TranscriptLine::parse(text.trim_end())
            && of == id
        {
            found = Some(result);
        }
    }
    found.ok_or_else(missing)
}
