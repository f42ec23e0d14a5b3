//! What the calls of a session have done, from their records only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tgp_contract::{CallVerdict, FileEffect, RelativePath, Root, ToolResult};

use crate::{TestCount, TouchedFile, render};

/// Files that a summary names one by one; the others are counted.
const MAX_FILES: usize = 1_000;
/// Tools that a summary names as forged or reused: more than one session can forge.
const MAX_TOOLS: usize = 256;
/// Calls of unknown fate that a summary names: each of them is one kill of the process.
const MAX_UNKNOWN: usize = 100;
/// Names for a test run without a result: no test ran, or it is unknown which failed or which files it saw.
const WITHOUT_RESULT: [&str; 2] = ["inconclusive", "stale"];
/// Where forged tools are in their repository.
const TOOLS_DIRECTORY: &str = "tools/";

/// One call that has ended.
pub(crate) struct FinishedCall<'a> {
    pub(crate) id: &'a str,
    /// The tool's own name.
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) result: &'a ToolResult,
    pub(crate) verdict: CallVerdict,
    /// Whether it may have changed something, which is unknown.
    pub(crate) is_unknown: bool,
    pub(crate) files: &'a [FileEffect],
    pub(crate) files_omitted: u64,
}

/// What was at a file's path before the first change, and after the last.
#[derive(Clone, Copy, Debug)]
struct FileSpan {
    before: bool,
    after: bool,
}

/// What the calls have done.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallStats {
    pub(crate) calls: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
    pub(crate) tests: Option<TestCount>,
    files: BTreeMap<(Root, String), FileSpan>,
    pub(crate) files_omitted: u64,
    forged: BTreeSet<String>,
    executed: BTreeSet<String>,
    unknown: Vec<String>,
    unknown_omitted: u64,
}

impl CallStats {
    pub(crate) fn add(&mut self, ended: &FinishedCall<'_>) {
        self.calls += 1;
        match ended.verdict {
            CallVerdict::Denied | CallVerdict::Refused => self.refused += 1,
            _ if ended.is_unknown => self.lose(render::call_words(ended.id, ended.tool, ended.arguments)),
            CallVerdict::Cancelled => {}
            _ if !ended.result.is_ok() => self.failed += 1,
            _ => {}
        }
        self.touch(ended.files);
        self.files_omitted += ended.files_omitted;
        if ended.result.is_ok() {
            match ended.tool {
                "write_file" | "patch_file" => self.forge(ended.files),
                "exec_tool" => self.execute(ended.arguments),
                "test_run" | "test_tool" => self.test(ended.result),
                _ => {}
            }
        }
    }

    fn lose(&mut self, words: String) {
        if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.push(words);
        } else {
            self.unknown_omitted += 1;
        }
    }

    /// The calls whose fate is not known, and those that were begun and are not looked up yet.
    pub(crate) fn unknown(&self, begun: impl Iterator<Item = String>) -> Vec<String> {
        let mut named = self.unknown.clone();
        named.extend(begun);
        let omitted = self.unknown_omitted + named.len().saturating_sub(MAX_UNKNOWN) as u64;
        named.truncate(MAX_UNKNOWN);
        named.extend((omitted > 0).then(|| format!("and {omitted} more")));
        named
    }

    fn touch(&mut self, files: &[FileEffect]) {
        for file in files {
            let key = (file.root, file.path.to_string());
            let (before, after) = (file.before.is_some(), file.after.is_some());
            if let Some(span) = self.files.get_mut(&key) {
                span.after = after;
            } else if self.files.len() < MAX_FILES {
                self.files.insert(key, FileSpan { before, after });
            } else {
                self.files_omitted += 1;
            }
        }
    }

    fn forge(&mut self, files: &[FileEffect]) {
        let created = files.iter().filter(|file| file.before.is_none() && file.after.is_some());
        for file in created.filter(|file| file.root == Root::Tools && is_tool(file.path.as_str())) {
            if self.forged.len() < MAX_TOOLS {
                self.forged.insert(file.path.to_string());
            }
        }
    }

    fn execute(&mut self, arguments: &Value) {
        let named = arguments.get("path").and_then(Value::as_str).map(RelativePath::new);
        if let Some(Ok(path)) = named
            && self.executed.len() < MAX_TOOLS
        {
            self.executed.insert(path.to_string());
        }
    }

    fn test(&mut self, result: &ToolResult) {
        let count = |name: &str| result.data().and_then(|data| data.get(name)).and_then(Value::as_u64);
        let tests = self.tests.get_or_insert_default();
        tests.runs += 1;
        (tests.passed, tests.failed) = (count("passed").unwrap_or(0), count("failed").unwrap_or(0));
        let word = |place: &str| result.data().and_then(|data| data.pointer(place)).and_then(Value::as_str);
        tests.inconclusive = word("/state/outcome").is_some_and(|outcome| WITHOUT_RESULT.contains(&outcome))
            || word("/ended").is_some_and(|how| how != "exit");
    }

    pub(crate) fn files(&self) -> Vec<TouchedFile> {
        let touched = self.files.iter().filter(|(_, span)| span.before || span.after);
        touched
            .map(|((root, path), span)| TouchedFile {
                root: *root,
                path: path.clone(),
                created: !span.before,
                deleted: !span.after,
            })
            .collect()
    }

    pub(crate) fn forged(&self) -> Vec<String> {
        self.forged.iter().cloned().collect()
    }

    /// Tools that were run and not written in this session.
    pub(crate) fn reused(&self) -> Vec<String> {
        self.executed.difference(&self.forged).cloned().collect()
    }
}

fn is_tool(path: &str) -> bool {
    path.starts_with(TOOLS_DIRECTORY)
        && path.ends_with(".ts")
        && !path.ends_with(".test.ts")
        && !path.ends_with(".d.ts")
}
