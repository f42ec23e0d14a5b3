//! What a session has done before, as the audit knows it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_audit::{Audit, RecordedCall};
use tgp_contract::{
    Access, Actor, Code, Effect, FileEffect, Target, TddMode, TddState, ToolError, background, has_no_token,
};
use tgp_policy::{MissingDetails, PastCall};
use tgp_router::gates::{PastCalls, PastRange};

use crate::state_directory::StateDirectory;

/// What the files count as that a command or a forged tool has changed.
const WRITE: &str = "fs_write";
const DELETE: &str = "fs_delete";
/// Calls of a session or client that sequence rules look back at. Beyond them nothing is allowed: what was forgotten
/// could be what a rule counts.
const MAX_LOOK_BACK: usize = 100_000;
/// Calls of other processes, and own ones among them, that are read between two calls.
const MAX_CAUGHT_UP: usize = 10_000;
/// Changed files of one call that its entry does not name; more count no more.
const MAX_UNNAMED: u64 = 10_000;

/// What the audit knows of a session, for rules that look back.
pub(crate) struct Past {
    audit: Arc<Audit>,
    state: StateDirectory,
    aliases: BTreeMap<String, Vec<String>>,
}

impl Past {
    pub(crate) fn new(
        audit: &Arc<Audit>,
        state: &StateDirectory,
        aliases: BTreeMap<String, Vec<String>>,
    ) -> Self {
        Self { audit: Arc::clone(audit), state: state.clone(), aliases }
    }

    /// Shows what one entry says: the files it changed in addition to those it names, and the call itself.
    fn show(&self, session: &str, call: RecordedCall, each: &mut dyn FnMut(PastCall, MissingDetails)) {
        let missing = MissingDetails {
            arguments: !call.arguments_whole,
            targets: !call.targets_whole,
            actor: call.actor.is_none(),
        };
        let actor = call.actor.unwrap_or_else(|| Actor::Agent(String::new()));
        let past_call = |tool: String, effect: Effect, arguments: Value, targets: Vec<Target>| PastCall {
            aliases: self.aliases.get(&tool).cloned().unwrap_or_default(),
            tool,
            effect,
            arguments,
            targets,
            actor: actor.clone(),
            session: session.to_owned(),
            mode: TddMode::Strict,
            state: TddState::Idle,
        };
        // Files that the arguments name are the call itself; the others came on top.
        let is_named = |file: &FileEffect| {
            call.targets.iter().filter_map(Target::file).any(|(_, path, _)| *path == file.path)
        };
        let whole = MissingDetails { arguments: false, targets: false, ..missing };
        for FileEffect { root, path, after, .. } in call.files.iter().filter(|file| !is_named(file)) {
            let (tool, access) =
                if after.is_some() { (WRITE, Access::Write) } else { (DELETE, Access::Delete) };
            let target = Target::File { root: *root, path: path.clone(), access };
            each(past_call(tool.to_owned(), Effect::Write, json!({ "path": path }), vec![target]), whole);
        }
        let unnamed = MissingDetails { arguments: true, targets: true, ..missing };
        for _ in 0..call.files_omitted.min(MAX_UNNAMED) {
            for tool in [WRITE, DELETE] {
                each(past_call(tool.to_owned(), Effect::Write, Value::Null, Vec::new()), unnamed);
            }
        }
        let effect = call.effect.unwrap_or(Effect::Read);
        each(past_call(call.tool, effect, call.arguments, call.targets), missing);
    }
}

#[async_trait]
impl PastCalls for Past {
    async fn of_session(
        &self,
        session: &str,
        which: PastRange,
        each: &mut (dyn FnMut(u64, PastCall, MissingDetails) + Send),
    ) -> Result<u64, ToolError> {
        // What this process has done itself is wanted only where everything is.
        let (after, limit) = match which {
            PastRange::All => {
                self.audit.flush().await?;
                (0, MAX_LOOK_BACK)
            }
            PastRange::OthersAfter(number) => (number, MAX_CAUGHT_UP),
        };
        // It reads a database that other processes may be writing.
        background::in_place(|| {
            let Some(reader) = self.state.audit_reader_if_any()? else { return Ok(after) };
            // Without a token all calls of the user are one past, which ends with the machine's run.
            let since_ms = if has_no_token(session) { booted_ms() } else { None };
            let mut newest = after;
            let complete = reader.each_call(session, since_ms, after, limit, &mut |number, call| {
                newest = number;
                let is_wanted = which == PastRange::All || !self.audit.is_own(number);
                if call.ran && is_wanted {
                    self.show(session, call, &mut |call, missing| each(number, call, missing));
                }
            })?;
            if complete { Ok(newest) } else { Err(too_long(session)) }
        })
    }
}

fn too_long(session: &str) -> ToolError {
    let message = format!(
        "`{session}` has made more than {MAX_LOOK_BACK} calls, too many for sequence rules to look at"
    );
    ToolError::new(Code::Policy, message).detail("session", session).help(
        "mint another token for the program (`tgp token mint`), or begin another session; without sequence rules \
         nothing is looked at",
    )
}

/// When the machine was started, in milliseconds since the epoch. `None` where the system does not say: then every call
/// counts.
fn booted_ms() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    let up = Duration::try_from_secs_f64(seconds).ok()?;
    tgp_text::now_ms().checked_sub(u64::try_from(up.as_millis()).ok()?)
}
