//! The story of two agents: one is held to the rules and forges a tool, the other finds it and uses it.

use std::path::Path;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::agent::{Ending, ModelChoice, SessionRequest, Summary};
use tgp::contract::{ApprovalAnswer, ApprovalRequest, Approver, Target};
use tokio::sync::{mpsc, watch};

use super::{Demo, cannot_write};
use crate::conversation::{InterruptState, Verbosity, follow};
use crate::exit::Failure;

pub(super) const PARCEL_TOOL: &str = "tools/shipping/billable_weight.ts";
const TEST: &str = "tools/shipping/billable_weight.test.ts";
const FIRST_DRAFT: &str = include_str!("tools/billable_weight.ts");
const TEST_SOURCE: &str = include_str!("tools/billable_weight.test.ts");
/// What the first draft has wrong, and what should be there.
const WRONG: &str = "args.size.length * args.size.width * args.size.height";
const RIGHT: &str = "args.length * args.width * args.height";

const FIRST_TASK: &str = "We bill parcels by weight or by volume, whichever is more. Make a tool for it.";
const SECOND_TASK: &str =
    "What do we bill for a box of 60 x 40 x 30 cm that weighs 5 kg? Our divisor is 5000.";
/// A question from a user who has never seen the tool.
const QUESTION: &str = "the weight a parcel is billed by, from its weight and its volume";

/// Events on their way to the screen.
const EVENT_ROOM: usize = 64;

/// The person of the demo: agrees to what changes the tools, and to no command.
pub(super) struct Person;

#[async_trait]
impl Approver for Person {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let is_command = request.targets.iter().any(|target| matches!(target, Target::Command { .. }));
        if is_command {
            return ApprovalAnswer::Refused { reason: "the person says no".to_owned() };
        }
        ApprovalAnswer::Approved { by: "the person of the demo".to_owned(), hash: request.hash }
    }
}

fn say(text: &str) -> Value {
    json!({ "type": "text", "value": format!("{text}\n") })
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "type": "tool_call", "toolName": tool, "callId": tool, "arguments": arguments })
}

/// A large box of little weight.
pub(super) fn parcel() -> Value {
    json!({ "length": 60, "width": 40, "height": 30, "weight": 5, "divisor": 5000 })
}

/// What the first model says, turn by turn.
fn forging() -> Value {
    let write = |path: &str, content: &str| call("write_file", &json!({ "path": path, "content": content }));
    json!([
        [say("Is there a tool for this already?"), call("search", &json!({ "query": QUESTION }))],
        [say("No. I write one."), write(PARCEL_TOOL, FIRST_DRAFT)],
        [say("A test has to fail first. Here is the test."), write(TEST, TEST_SOURCE)],
        [call("test_tool", &json!({ "path": TEST }))],
        [say("It fails, as it should. Now the tool."), write(PARCEL_TOOL, FIRST_DRAFT)],
        [call("check_tool", &json!({ "path": PARCEL_TOOL })), call("test_tool", &json!({ "path": TEST }))],
        [
            say("My tool throws, and the error names the line: the sizes are in args itself."),
            call("patch_file", &json!({ "path": PARCEL_TOOL, "search": WRONG, "replace": RIGHT })),
            call("test_tool", &json!({ "path": TEST })),
        ],
        [
            say("It passes. I would like to tidy the history as well."),
            call("shell_exec", &json!({ "command": "git push --force origin main" })),
        ],
        [say("Then I leave it. Every version of the tool is committed.")],
    ])
}

/// What the second model says.
fn reusing() -> Value {
    json!([
        [say("Somebody may have made a tool for this."), call("search", &json!({ "query": QUESTION }))],
        [
            say("There is one. I use it."),
            call("exec_tool", &json!({ "path": PARCEL_TOOL, "args": parcel() }))
        ],
        [say("14.4 kg: the box is large for its weight, so its volume counts.")],
    ])
}

impl Demo<'_> {
    pub(super) async fn forge_by_an_agent(&mut self, kernel: &Kernel, folder: &Path) -> Result<(), Failure> {
        self.chapter("An agent gets a task. Every call it makes passes the gates, and a person is asked");
        self.task(FIRST_TASK);
        let summary = self.session(kernel, folder, "forge", FIRST_TASK, &forging()).await?;
        self.expect(summary.forged == [PARCEL_TOOL], "the tool that was forged")?;
        self.expect(summary.refused == 2, "what was refused: code before its test, and a command")?;
        let tests = summary.tests.map(|tests| (tests.runs, tests.passed, tests.failed));
        self.expect(tests == Some((3, 1, 0)), "the tests of the tool")?;
        self.steps.push(json!({ "step": "forge", "summary": summary }));
        Ok(())
    }

    pub(super) async fn reuse_by_another(&mut self, kernel: &Kernel, folder: &Path) -> Result<(), Failure> {
        self.task(SECOND_TASK);
        let summary = self.session(kernel, folder, "reuse", SECOND_TASK, &reusing()).await?;
        self.expect(
            summary.reused == [PARCEL_TOOL] && summary.forged.is_empty(),
            "the tool that was reused",
        )?;
        self.steps.push(json!({ "step": "reuse", "summary": summary }));
        Ok(())
    }

    fn task(&self, task: &str) {
        self.say(&format!("$ tgp \"{task}\""));
        self.blank();
    }

    /// One session with a scripted model, shown as every session is.
    async fn session(
        &self,
        kernel: &Kernel,
        folder: &Path,
        name: &str,
        task: &str,
        script: &Value,
    ) -> Result<Summary, Failure> {
        let file = folder.join(name).with_extension("json");
        std::fs::write(&file, script.to_string()).map_err(|error| cannot_write(&error))?;
        let provider = Some(format!("script:{}", file.display()));
        let request = SessionRequest {
            model: ModelChoice { provider, ..ModelChoice::default() },
            ..SessionRequest::new(task)
        };
        let (sender, events) = mpsc::channel(EVENT_ROOM);
        let work = kernel.run_session(request, sender, self.stop.clone());
        let summary = if self.printer.json() {
            tokio::join!(work, drained(events)).0?
        } else {
            let (_nobody, questions) = mpsc::channel(1);
            let (_silent, heard) = watch::channel(InterruptState::Nothing);
            tokio::join!(work, follow(events, questions, heard, self.printer, Verbosity::Brief)).0?
        };
        if summary.ending == Ending::Interrupted {
            return Err(Failure::Interrupted);
        }
        self.expect(
            summary.ending == Ending::Done,
            &format!("the end of the session: {:?}", summary.ending),
        )?;
        Ok(summary)
    }
}

async fn drained<T>(mut events: mpsc::Receiver<T>) {
    while events.recv().await.is_some() {}
}
