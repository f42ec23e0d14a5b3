//! Runs the runners of a project one after another, each in its own jail, and puts their output together.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Code, FileFilter, RelativePath, ToolError, background};
use tgp_jail::{CacheAccess, CacheMount, CommandExit, Template};
use tgp_text::{head, tail};

use super::command_runner::{CommandRequest, MissingPackage, Network};
use super::shell_exec::{CommandEnd, CommandOutput, StreamBytes, command_output, exit_code};
use super::test_cache::{self, OpenCache};
use super::test_run::TestRunTool;
use crate::project::testing::{CacheUse, RunnerRun, SelectedRunner, nothing_selected, read_counts};
use tgp_router::Invocation;

/// Bytes of each stream of several runners together, as one command has by default.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// What a shell exits with when it does not find a program.
const COMMAND_NOT_FOUND: i32 = 127;

/// The result of one of several runners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerResult {
    /// Where it ran, relative to the project; empty for its root.
    pub folder: String,
    pub command: String,
    /// Absent when it did not run to its end.
    pub exit_code: Option<i32>,
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub skipped: Option<u64>,
    /// Why its tests are unknown, so that the run cannot pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What one runner did.
pub(super) struct Ran {
    pub(super) run: RunnerRun,
    pub(super) command: String,
    pub(super) output: CommandOutput,
    /// Why nothing is known of its tests, where that is so and has a reason of its own.
    pub(super) problem: Option<String>,
}

impl Ran {
    pub(super) fn result(&self) -> RunnerResult {
        let RunnerRun { runner, exit_code, counts } = &self.run;
        RunnerResult {
            folder: runner.folder().to_owned(),
            command: self.command.clone(),
            exit_code: *exit_code,
            passed: counts.passed,
            failed: counts.failed,
            skipped: counts.skipped,
            problem: self.run.is_unknown().then(|| self.unknown_why()),
        }
    }

    /// Why nothing is known of its tests.
    pub(super) fn unknown_why(&self) -> String {
        if let Some(problem) = &self.problem {
            return problem.clone();
        }
        match (self.output.ended, self.run.exit_code) {
            (CommandEnd::Exit, Some(0)) => "no tests could be counted in its output".to_owned(),
            (CommandEnd::Exit, code) => {
                format!("it ended with exit code {} before a test failed", code.unwrap_or_default())
            }
            (ended, _) => format!("it did not run to its end ({})", ended.as_str()),
        }
    }
}

/// Time for all runners of a call.
pub(super) struct TimeLimit {
    started: Instant,
    whole: Duration,
    /// What sets it: the argument of the call or the configuration.
    setting: &'static str,
}

impl TimeLimit {
    fn remaining_ms(&self) -> u64 {
        let remaining = self.whole.saturating_sub(self.started.elapsed());
        u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX)
    }

    /// Why nothing is known of tests that it has ended.
    fn reached(&self) -> String {
        let (ms, setting) = (self.whole.as_millis(), self.setting);
        format!(
            "the run was ended at its time limit of {ms} ms (`{setting}`), before its tests had ended; raise the limit, or \
             run a part of the tests with `only`"
        )
    }
}

impl TestRunTool {
    /// All runners have the time of one command together.
    pub(super) fn time_limit(&self, wanted_ms: Option<u64>) -> TimeLimit {
        let longest = self.yard.options.caps.deadline.unwrap_or(Template::Test.deadline());
        let wanted = wanted_ms.map(Duration::from_millis).filter(|wanted| *wanted < longest);
        let setting = if wanted.is_some() { "timeout_ms" } else { "jail.timeoutMs" };
        TimeLimit { started: Instant::now(), whole: wanted.unwrap_or(longest), setting }
    }

    /// Runs one runner to its end. One that cannot run, or has no time left, is not started.
    pub(super) async fn run_one(
        &self,
        selected: &SelectedRunner,
        invocation: Invocation<'_>,
        time: &TimeLimit,
    ) -> Result<Ran, ToolError> {
        let runner = &selected.runner;
        let command = selected.shown_command();
        let not_started = match runner.unavailable() {
            Some(lacks) => Some(lacks.to_string()),
            None if time.remaining_ms() == 0 => Some(format!("no time was left for it: {}", time.reached())),
            None => None,
        };
        if not_started.is_some() {
            let counts = read_counts(runner, None, "", "");
            let run = RunnerRun { runner: runner.clone(), exit_code: None, counts };
            return Ok(Ran { run, command, output: nothing(), problem: not_started });
        }
        let direct = self.yard.free_output(invocation, &runner.build_output()).await;
        let filter = invocation.router.file_filter(invocation).await;
        let cache = self.open_cache(selected, invocation).await;
        let request = |line: String, cache: Option<CacheMount>| {
            self.request(selected, line, cache, direct.clone(), filter.clone(), time)
        };
        let access = match runner.cache() {
            CacheUse::Filled { by } => {
                if let Some(cache) = &cache {
                    // What it says the run itself will say.
                    self.yard.run(request(by, Some(cache.mount(CacheAccess::Write)))?).await?;
                }
                CacheAccess::Read
            }
            CacheUse::Kept | CacheUse::None => CacheAccess::Write,
        };
        let mount = cache.as_ref().map(|cache| cache.mount(access));
        let finished = self.yard.run(request(selected.command(), mount)?).await?;
        if let Some(cache) = cache {
            background::run(move || {
                cache.close();
                Ok(())
            })
            .await?;
        }
        Ok(ran(selected, command, &finished, time))
    }

    fn request(
        &self,
        selected: &SelectedRunner,
        line: String,
        cache: Option<CacheMount>,
        direct: Vec<PathBuf>,
        filter: Option<FileFilter>,
        time: &TimeLimit,
    ) -> Result<CommandRequest, ToolError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Ok(CommandRequest {
            template: Template::Test,
            command: line,
            directory: RelativePath::new(selected.runner.folder())?,
            network: Network::OfTemplate,
            stdin: Vec::new(),
            deadline_ms: Some(time.remaining_ms().max(1)),
            direct,
            filter,
            environment: selected.runner.environment().iter().map(owned).collect(),
            cache,
        })
    }

    /// The cache of a runner that has one.
    async fn open_cache(&self, selected: &SelectedRunner, invocation: Invocation<'_>) -> Option<OpenCache> {
        if selected.runner.cache() == CacheUse::None {
            return None;
        }
        let options = &self.yard.options;
        let caches = options.test_caches.clone()?;
        let (project, environment) = (options.project.clone(), options.environment.clone());
        let (selected, files) = (selected.clone(), invocation.workspace.project_files());
        let open = move || {
            let key = test_cache::key(&selected, &files, &environment);
            Ok(key.and_then(|key| OpenCache::open(&caches, &project, &selected, &key)))
        };
        background::run(open).await.ok().flatten()
    }
}

fn ran(selected: &SelectedRunner, command: String, finished: &CommandExit, time: &TimeLimit) -> Ran {
    let runner = &selected.runner;
    let mut output = command_output(finished);
    let code = exit_code(finished);
    let counts = read_counts(runner, code, &output.stdout, &output.stderr);
    let missing = MissingPackage::of(output.exit_code, &output.stdout, &output.stderr)
        .map(|missing| format!("{}, and test runs have no network; {}", missing.what, missing.advice()))
        .or_else(|| runner.not_installed(&output.stdout, &output.stderr).filter(|_| code != Some(0)));
    let distrusted = runner.distrusted().map(ToString::to_string);
    output.help = missing.clone().or_else(|| distrusted.clone().filter(|_| code == Some(COMMAND_NOT_FOUND)));
    let selects_nothing = || {
        let only = selected.only.as_deref()?;
        nothing_selected(runner, only, code, &counts, [&output.stdout, &output.stderr])
            .map(|problem| problem.to_string())
    };
    let problem = distrusted
        .or(missing)
        .or_else(|| (output.ended == CommandEnd::Deadline).then(|| time.reached()))
        .or_else(selects_nothing);
    Ran { run: RunnerRun { runner: runner.clone(), exit_code: code, counts }, command, output, problem }
}

fn nothing() -> CommandOutput {
    CommandOutput {
        exit_code: None,
        ended: CommandEnd::Killed,
        stdout: String::new(),
        stderr: String::new(),
        stdout_bytes: StreamBytes { total: 0, omitted: 0 },
        stderr_bytes: StreamBytes { total: 0, omitted: 0 },
        duration_ms: 0,
        help: None,
    }
}

/// The output of all runners, each below its command. Of several each has its share of the room.
pub(super) fn joined_output(mut ran: Vec<Ran>, code: Option<i32>) -> Result<CommandOutput, ToolError> {
    if ran.len() == 1
        && let Some(only) = ran.pop()
    {
        return Ok(only.output);
    }
    if ran.is_empty() {
        return Err(ToolError::new(Code::Internal, "no test runner was selected"));
    }
    let share = MAX_OUTPUT_BYTES / ran.len();
    let mut joined = CommandOutput { exit_code: code, ended: CommandEnd::Exit, ..nothing() };
    for one in ran {
        let output = one.output;
        if joined.ended == CommandEnd::Exit && one.run.exit_code.is_none() {
            joined.ended = output.ended;
        }
        for (text, bytes, own, own_bytes) in [
            (&mut joined.stdout, &mut joined.stdout_bytes, &output.stdout, &output.stdout_bytes),
            (&mut joined.stderr, &mut joined.stderr_bytes, &output.stderr, &output.stderr_bytes),
        ] {
            bytes.total = bytes.total.saturating_add(own_bytes.total);
            bytes.omitted = bytes.omitted.saturating_add(own_bytes.omitted);
            if own.is_empty() {
                continue;
            }
            text.push_str(&format!("$ {}\n", one.command));
            let cut = own.len().saturating_sub(share);
            if cut == 0 {
                text.push_str(own);
            } else {
                let (first, last) = (head(own, share / 2), tail(own, share / 2));
                text.push_str(&format!("{first}\n[{cut} bytes left out]\n{last}"));
                bytes.omitted = bytes.omitted.saturating_add(cut as u64);
            }
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        joined.duration_ms = joined.duration_ms.saturating_add(output.duration_ms);
        joined.help = joined.help.or(output.help);
    }
    Ok(joined)
}
