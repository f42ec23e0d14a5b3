//! `chronicle_read`: the newest events of a chronicle.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Access, Chronicle, ChronicleEvent, Effect, ExecutionPath, RelativePath, Root, Target, ToolError,
};

use super::{chronicle_file, chronicle_path, shows_event};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

/// Events in one answer where the caller does not say how many.
const DEFAULT_EVENTS: usize = 50;
/// Events in one answer; all of a long chronicle are in its file.
const MAX_EVENTS: usize = 1_000;

pub(super) struct ChronicleRead(pub(super) Arc<dyn Chronicle>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChronicleReadArgs {
    /// A file, such as src/a.ts, or a chronicle, such as .sage/decisions.sage.
    #[schemars(length(min = 1))]
    path: String,
    #[serde(default = "default_events")]
    #[schemars(range(min = 1, max = MAX_EVENTS))]
    last: usize,
}

fn default_events() -> usize {
    DEFAULT_EVENTS
}

/// The newest events of a chronicle, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChroniclePage {
    pub path: RelativePath,
    pub events: Vec<ChronicleEvent>,
}

#[async_trait]
impl Tool for ChronicleRead {
    type Args = ChronicleReadArgs;
    type Output = ChroniclePage;

    const INFO: ToolSpec = ToolSpec {
        name: "chronicle_read",
        aliases: &["chronicle.read"],
        description: "Read the newest events of a chronicle, oldest first: what was done to a file, by whom, and why.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &ChronicleReadArgs) -> Result<Vec<Target>, ToolError> {
        chronicle_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: ChronicleReadArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ChroniclePage>, ToolError> {
        let path = chronicle_path(&args.path)?;
        let visible = invocation.visibility().await;
        // The chronicle of a file that may not be seen is as if there were none.
        let mut events: Vec<ChronicleEvent> = match visible.shows(Root::Project, &path) {
            true => self.0.tail(&path, MAX_EVENTS).await?,
            false => Vec::new(),
        };
        events.retain(|event| shows_event(&visible, event));
        let events = events.split_off(events.len().saturating_sub(args.last.min(MAX_EVENTS)));
        Ok(ChroniclePage { path, events }.into())
    }
}
