//! A file that a call comes across, as a call of the tool that agents use for such a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tgp_contract::{Access, Effect, Root, Target};
use tgp_policy::{PastCall, PolicyRequest};

use crate::router::DynTool;

const READ_TOOL: &str = "fs_read";
const READ_TOOL_FILE: &str = "read_file";
const RUN_TOOL: &str = "exec_tool";
const WRITE_TOOL: &str = "fs_write";
const DELETE_TOOL: &str = "fs_delete";

/// The file tools with their other names: a rule that names `Read` or `fs.*` means a file however it is reached.
#[derive(Debug)]
pub(super) struct FileTools {
    aliases: BTreeMap<&'static str, Vec<String>>,
}

/// The call of a file tool that represents one access to one file.
#[derive(Debug)]
pub(super) struct FileCall<'a> {
    tool: &'static str,
    aliases: &'a [String],
    effect: Effect,
    arguments: Value,
}

impl FileTools {
    /// The file tools among all that are registered.
    pub(super) fn among(tools: &[Arc<dyn DynTool>]) -> Self {
        let names = [READ_TOOL, READ_TOOL_FILE, RUN_TOOL, WRITE_TOOL, DELETE_TOOL];
        let aliases = |name: &'static str| {
            let found = tools.iter().map(|tool| tool.definition()).find(|tool| tool.name.as_str() == name);
            (name, found.map(|tool| tool.aliases.clone()).unwrap_or_default())
        };
        Self { aliases: names.into_iter().map(aliases).collect() }
    }

    /// The call that represents a target. The tool repository has its own tools.
    pub(super) fn call_for(&self, target: &Target) -> FileCall<'_> {
        let (tool, effect) = match target.file() {
            Some((Root::Tools, _, Access::Read)) => (READ_TOOL_FILE, Effect::Read),
            Some((_, _, Access::Read)) => (READ_TOOL, Effect::Read),
            Some((_, _, Access::Delete)) => (DELETE_TOOL, Effect::Write),
            Some((_, _, Access::Write | Access::Append)) | None => (WRITE_TOOL, Effect::Write),
        };
        let arguments = target.file().map_or(Value::Null, |(_, path, _)| json!({ "path": path }));
        FileCall { tool, aliases: self.aliases_of(tool), effect, arguments }
    }

    /// The call that runs a forged tool.
    pub(super) fn run_of(&self, target: &Target) -> FileCall<'_> {
        let call = self.call_for(target);
        FileCall { tool: RUN_TOOL, aliases: self.aliases_of(RUN_TOOL), effect: Effect::Execute, ..call }
    }

    fn aliases_of(&self, tool: &str) -> &[String] {
        self.aliases.get(tool).map(Vec::as_slice).unwrap_or_default()
    }
}

impl FileCall<'_> {
    /// The question about it; `call` says who asks about which targets, and in which state.
    pub(super) fn question<'q>(&'q self, call: PolicyRequest<'q>) -> PolicyRequest<'q> {
        let Self { tool, aliases, effect, arguments } = self;
        PolicyRequest { tool, aliases, effect: *effect, arguments, ..call }
    }

    /// The same as a call that sequence rules count.
    pub(super) fn past_call(&self, call: PastCall) -> PastCall {
        PastCall {
            tool: self.tool.to_owned(),
            aliases: self.aliases.to_vec(),
            effect: self.effect,
            arguments: self.arguments.clone(),
            ..call
        }
    }
}
