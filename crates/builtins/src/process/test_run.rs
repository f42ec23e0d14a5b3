//! `test_run`: the project's own tests, in a jail, and what they mean for the state of the work.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{
    Access, Code, Effect, EntryKind, ExecutionPath, RelativePath, Root, Target, ToolError, background,
    canonical,
};
use tgp_tdd::{Scope, Selection, SourceSnapshot, TestOutcome, TestRun, Transition};
use tgp_text::{head, now_ms};

use super::command_runner::CommandRunner;
use super::shell_exec::CommandOutput;
use super::test_runners::{Ran, RunnerResult, joined_output};
use crate::project::testing::{
    Failing, Manifests, RunnerRun, SET_THE_COMMAND, SelectedRunner, VisiblePrograms, combine, discover,
    joined, scripts, select, total,
};
use tgp_router::Workspace;
use tgp_router::files::ProjectFiles;
use tgp_router::gates::StateGate;
use tgp_router::{FileSnapshot, Invocation, Preview, Tool, ToolOutcome, ToolSpec};

/// Failing tests that an answer names; the rest is counted.
const MAX_NAMED: usize = 50;

/// Bytes of one script that are shown before it runs; a longer one is bound by the hash of its file.
const MAX_SCRIPT_BYTES: usize = 16 * 1024;

/// Manifests larger than this are not read to find the runner.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// Why a discovered command without counted tests says nothing.
const NOTHING_COUNTED: &str = "no tests could be counted in the output, and the exit code of a command that was found in \
     a manifest decides nothing";
pub(super) struct TestRunTool {
    pub(super) yard: Arc<CommandRunner>,
    pub(super) state: Arc<StateGate>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestRunArgs {
    /// A name or file as the runner's filter. Such a run can show that a test fails, never that all pass.
    #[schemars(length(min = 1, max = 1000))]
    only: Option<String>,
    /// Shorter than the configured limit.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
}

/// The result of a run of the project's tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRunResult {
    #[serde(flatten)]
    pub output: CommandOutput,
    /// The command that was run.
    pub command: String,
    /// Absent when the output does not say.
    pub passed: Option<u64>,
    /// Absent when the output does not say.
    pub failed: Option<u64>,
    /// Absent when the output does not say.
    pub skipped: Option<u64>,
    /// The first failing tests.
    pub failing: Vec<Failing>,
    /// Each runner, where the project has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<RunnerResult>,
    /// What the run means for the state of the work.
    pub state: Transition,
}

impl TestRunTool {
    /// The runners that run what is asked for, in their order.
    fn runners(&self, files: &ProjectFiles, only: Option<&str>) -> Result<Vec<SelectedRunner>, ToolError> {
        if let Some(only) = only {
            refuse_options(only)?;
        }
        let refused = |message: String| ToolError::new(Code::NotFound, message).help(SET_THE_COMMAND);
        let found = discover(self.yard.options.test_command.as_deref(), &Project(files))
            .map_err(|error| refused(error.to_string()))?;
        if found.is_empty() {
            return Err(refused("this project has no tests that could be found".to_owned()));
        }
        let project = self.yard.options.project.display().to_string();
        let visible =
            VisiblePrograms { project: &self.yard.options.project, readable: &self.yard.options.readable };
        let found = found.into_iter().map(|runner| visible.check(runner.at(&project)));
        let selected = select(found.collect(), only);
        if selected.is_empty() {
            return Err(refused(format!(
                "no test runner of this project runs `{}`",
                only.unwrap_or_default()
            )));
        }
        // Where nothing can run, the reason is an error and not a result.
        let lacks = |selected: &SelectedRunner| selected.runner.unavailable().cloned();
        match selected.iter().map(lacks).collect::<Option<Vec<_>>>().as_deref() {
            Some([first, ..]) => {
                Err(ToolError::new(Code::Capability, first.problem.clone()).help(first.help.clone()))
            }
            _ => Ok(selected),
        }
    }

    /// The sources of the project, off the threads that serve others.
    async fn sources(&self, workspace: &Workspace) -> Result<SourceSnapshot, ToolError> {
        let (state, workspace) = (Arc::clone(&self.state), workspace.clone());
        background::run(move || state.sources(&workspace)).await
    }
}

#[async_trait]
impl Tool for TestRunTool {
    type Args = TestRunArgs;
    type Output = TestRunResult;

    const INFO: ToolSpec = ToolSpec {
        name: "test_run",
        aliases: &["test.run"],
        description: "Run the project's tests in a jail, with the configured command or with the runner that its manifests name (cargo, npm, vitest, jest, node, pytest, go). Only build output is written to the project.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: false,
    };

    fn targets(&self, _args: &TestRunArgs) -> Result<Vec<Target>, ToolError> {
        let command =
            self.yard.options.test_command.clone().unwrap_or_else(|| "the project's tests".to_owned());
        Ok(vec![
            Target::Command { command },
            Target::File { root: Root::Project, path: RelativePath::root(), access: Access::Read },
        ])
    }

    /// The commands, which the configuration or the manifests of the project decide, and the scripts behind them.
    async fn preview(&self, args: TestRunArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let files = invocation.workspace.project_files();
        let selected = self.runners(&files, args.only.as_deref())?;
        let mut data = json!({ "command": shown_command(&selected) });
        let mut found = Vec::new();
        let scripts = scripts_behind(&selected, &files);
        if let Some(fields) = data.as_object_mut()
            && !scripts.is_empty()
        {
            let mut shown = Map::new();
            let mut is_cut = false;
            for (folder, scripts) in scripts {
                for (name, text) in scripts {
                    let name = if folder.is_empty() { name } else { format!("{folder}: {name}") };
                    is_cut |= text.len() > MAX_SCRIPT_BYTES;
                    shown.insert(name, json!(head(&text, MAX_SCRIPT_BYTES)));
                }
                let (path, sha256) = package(&files, &folder)?;
                found.push(FileSnapshot { root: Root::Project, path, sha256 });
            }
            fields.insert("scripts".to_owned(), Value::Object(shown));
            if is_cut {
                fields.insert("scriptsTruncated".to_owned(), json!(true));
            }
        }
        Ok(Preview { data: Some(data), found, missing: None })
    }

    async fn run(
        &self,
        args: TestRunArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<TestRunResult>, ToolError> {
        let workspace = invocation.workspace;
        let selected = self.runners(&workspace.project_files(), args.only.as_deref())?;
        if let Some(agreement) = invocation.agreement() {
            let files = workspace.project_files();
            for (folder, _) in scripts_behind(&selected, &files) {
                let (path, hash) = package(&files, &folder)?;
                agreement.check_hash(Root::Project, &path, hash.as_deref())?;
            }
        }
        let command = shown_command(&selected);
        let time = self.time_limit(args.timeout_ms);
        let started_ms = now_ms();
        let before = self.sources(workspace).await?;
        let mut ran = Vec::with_capacity(selected.len());
        for one in &selected {
            ran.push(self.run_one(one, invocation, &time).await?);
        }
        let after = self.sources(workspace).await?;
        let runs: Vec<RunnerRun> = ran.iter().map(|one| one.run.clone()).collect();
        let combined = combine(&runs);
        let durations = ran.iter().map(|one| one.output.duration_ms);
        let mut noted = self.state.note_run(&TestRun {
            scope: Scope::Project,
            command: command.clone(),
            selection: if args.only.is_some() { Selection::Part } else { Selection::Whole },
            exit_code: combined.exit_code,
            passed: combined.passed,
            failed: combined.failed,
            failing_files: combined.failing_files,
            before,
            after,
            started_ms,
            duration_ms: durations.fold(0, u64::saturating_add),
        })?;
        if let Some(why) = why(&ran, noted.outcome) {
            noted.why = why;
        }
        let runners = if ran.len() > 1 { ran.iter().map(Ran::result).collect() } else { Vec::new() };
        let counts = total(&runs);
        let result = TestRunResult {
            output: joined_output(ran, combined.exit_code)?,
            command,
            passed: counts.passed,
            failed: counts.failed,
            skipped: counts.skipped,
            failing: counts.failing.into_iter().take(MAX_NAMED).collect(),
            runners,
            state: noted,
        };
        Ok(ToolOutcome { exit_code: combined.exit_code, ..result.into() })
    }
}

/// All commands, as a person reads them.
fn shown_command(selected: &[SelectedRunner]) -> String {
    selected.iter().map(SelectedRunner::shown_command).collect::<Vec<_>>().join("; ")
}

/// Why a run decides nothing, where the runners know it better than the state of the work.
fn why(ran: &[Ran], outcome: TestOutcome) -> Option<String> {
    let is_inconclusive = outcome == TestOutcome::Inconclusive;
    if let [only] = ran {
        let unknown = only.run.counts.are_unknown() && !only.run.runner.decides_by_exit_code();
        return match &only.problem {
            Some(why) if is_inconclusive || only.run.runner.distrusted().is_some() => Some(why.clone()),
            None if is_inconclusive && unknown => Some(format!("{NOTHING_COUNTED}; {SET_THE_COMMAND}")),
            _ => None,
        };
    }
    if !is_inconclusive {
        return None;
    }
    let unknown: Vec<&Ran> = ran.iter().filter(|one| one.run.is_unknown()).collect();
    if unknown.is_empty() {
        // Nothing is wrong with any of them: the filter has selected none of their tests.
        let first = ran.first().and_then(|one| one.problem.clone());
        return first.filter(|_| ran.iter().all(|one| one.problem.is_some()));
    }
    let reasons: Vec<String> =
        unknown.iter().map(|one| format!("`{}`: {}", one.command, one.unknown_why())).collect();
    let reasons = reasons.join("; ");
    // The help of most reasons is the same.
    let help = if reasons.contains("tdd.command") { String::new() } else { format!("; {SET_THE_COMMAND}") };
    Some(format!("the tests of not all runners are known: {reasons}{help}"))
}

/// The scripts of `package.json` that the commands start, by the folder of the package.
fn scripts_behind(
    selected: &[SelectedRunner],
    files: &ProjectFiles,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut behind = BTreeMap::new();
    for one in selected {
        let folder = one.runner.folder();
        let found = scripts(&one.command(), &|path: &str| Project(files).read(&joined(folder, path)));
        if !found.is_empty() {
            behind.insert(folder.to_owned(), found);
        }
    }
    behind
}

/// A filter is a name, and never an option of the runner: one could make it run nothing, or something else.
fn refuse_options(only: &str) -> Result<(), ToolError> {
    if !only.trim_start().starts_with('-') {
        return Ok(());
    }
    let message = format!("`only` is `{only}`, and a name or file of tests does not begin with `-`");
    Err(ToolError::new(Code::Validation, message)
        .help("name a test or a test file; options of the runner belong into `tdd.command`"))
}

/// What decides which scripts run, by its hash.
fn package(files: &ProjectFiles, folder: &str) -> Result<(RelativePath, Option<String>), ToolError> {
    let path = RelativePath::new(folder)?.join("package.json")?;
    let content = files.read(&path)?;
    Ok((path, Some(canonical::sha256_hex(&content))))
}

/// The project as the search for its tests sees it.
struct Project<'a>(&'a ProjectFiles);

impl Manifests for Project<'_> {
    fn read(&self, path: &str) -> Option<String> {
        let path = RelativePath::new(path).ok()?;
        let entry = self.0.entry(&path).ok().flatten()?;
        if entry.kind != EntryKind::File || entry.size > MAX_MANIFEST_BYTES {
            return None;
        }
        String::from_utf8(self.0.read(&path).ok()?).ok()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let children = RelativePath::new(folder).ok().and_then(|folder| self.0.children(&folder).ok());
        let entries = children.unwrap_or_default().entries;
        entries.iter().filter_map(|entry| entry.path.name().map(str::to_owned)).collect()
    }

    fn folders(&self, folder: &str) -> Vec<String> {
        let children = RelativePath::new(folder).ok().and_then(|folder| self.0.children(&folder).ok());
        let entries = children.unwrap_or_default().entries.into_iter();
        let folders = entries.filter(|entry| entry.kind == EntryKind::Directory);
        folders.filter_map(|entry| entry.path.name().map(str::to_owned)).collect()
    }
}
