//! `test_run`: the project's own tests, in a jail, and what they mean for the state of the work.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{
    Access, Code, Effect, EntryKind, ExecutionPath, RelativePath, Root, Target, ToolError, background,
    canonical,
};
use tgp_jail::Template;
use tgp_tdd::{Scope, Selection, SourceSnapshot, TestOutcome, TestRun, Transition};
use tgp_text::{head, now_ms};

use super::command_runner::{CommandRequest, CommandRunner, Network};
use super::shell_exec::{CommandOutput, command_output, exit_code};
use crate::project::testing::{Failing, Manifests, Runner, detect, read_counts, scripts};
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
/// What helps.
const SET_THE_COMMAND: &str = "set `tdd.command` in the configuration to the command that runs the tests";

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
    /// What the run means for the state of the work.
    pub state: Transition,
}

impl TestRunTool {
    fn runner(&self, files: &ProjectFiles) -> Result<Runner, ToolError> {
        let found = detect(self.yard.options.test_command.as_deref(), &Project(files));
        found.map(|runner| runner.at(self.yard.options.project.display().to_string())).ok_or_else(|| {
            ToolError::new(Code::NotFound, "this project has no tests that could be found")
                .help("set `tdd.command` in the configuration to the command that runs them")
        })
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

    /// The command, which the configuration or the manifests of the project decide, and the scripts behind it.
    async fn preview(&self, args: TestRunArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        if let Some(only) = args.only.as_deref() {
            refuse_options(only)?;
        }
        let files = invocation.workspace.project_files();
        let command = self.runner(&files)?.command(args.only.as_deref());
        let scripts = scripts(&command, &Project(&files));
        let mut data = json!({ "command": command });
        let mut found = Vec::new();
        if let Some(fields) = data.as_object_mut()
            && !scripts.is_empty()
        {
            let is_cut = scripts.values().any(|text| text.len() > MAX_SCRIPT_BYTES);
            let cut = |text: &str| head(text, MAX_SCRIPT_BYTES).to_owned();
            let shown: Map<String, Value> =
                scripts.into_iter().map(|(name, text)| (name, json!(cut(&text)))).collect();
            fields.insert("scripts".to_owned(), Value::Object(shown));
            if is_cut {
                fields.insert("scriptsTruncated".to_owned(), json!(true));
            }
            let (path, sha256) = package(&files)?;
            found.push(FileSnapshot { root: Root::Project, path, sha256 });
        }
        Ok(Preview { data: Some(data), found, missing: None })
    }

    async fn run(
        &self,
        args: TestRunArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<TestRunResult>, ToolError> {
        if let Some(only) = args.only.as_deref() {
            refuse_options(only)?;
        }
        let workspace = invocation.workspace;
        let runner = self.runner(&workspace.project_files())?;
        let command = runner.command(args.only.as_deref());
        if let Some(agreement) = invocation.agreement()
            && !scripts(&command, &Project(&workspace.project_files())).is_empty()
        {
            let (path, hash) = package(&workspace.project_files())?;
            agreement.check_hash(Root::Project, &path, hash.as_deref())?;
        }
        let direct = self.yard.free_output(invocation, runner.build_output()).await;
        let started_ms = now_ms();
        let before = self.sources(workspace).await?;
        let finished = self
            .yard
            .run(CommandRequest {
                template: Template::Test,
                command: command.clone(),
                directory: RelativePath::root(),
                network: Network::OfTemplate,
                stdin: Vec::new(),
                deadline_ms: args.timeout_ms,
                direct,
                filter: invocation.router.file_filter(invocation).await,
                environment: runner
                    .environment()
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
            })
            .await?;
        let after = self.sources(workspace).await?;
        let counts = read_counts(
            &runner,
            exit_code(&finished),
            &finished.stdout.to_text(),
            &finished.stderr.to_text(),
        );
        let (passed, failed) = counts.evidence(&runner);
        let mut noted = self.state.note_run(&TestRun {
            scope: Scope::Project,
            command: command.clone(),
            selection: if args.only.is_some() { Selection::Part } else { Selection::Whole },
            exit_code: exit_code(&finished),
            passed,
            failed,
            failing_files: counts.failing_files(),
            before,
            after,
            started_ms,
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        })?;
        if let Some(why) = runner.distrusted() {
            noted.why = format!("{why}; {SET_THE_COMMAND}");
        } else if noted.outcome == TestOutcome::Inconclusive
            && counts.are_unknown()
            && !runner.decides_by_exit_code()
        {
            noted.why = format!("{NOTHING_COUNTED}; {SET_THE_COMMAND}");
        }
        let result = TestRunResult {
            output: command_output(&finished),
            command,
            passed: counts.passed,
            failed: counts.failed,
            skipped: counts.skipped,
            failing: counts.failing.into_iter().take(MAX_NAMED).collect(),
            state: noted,
        };
        Ok(ToolOutcome { exit_code: exit_code(&finished), ..result.into() })
    }
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
fn package(files: &ProjectFiles) -> Result<(RelativePath, Option<String>), ToolError> {
    let path = RelativePath::new("package.json")?;
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
        let entries = children.unwrap_or_default();
        entries.iter().filter_map(|entry| entry.path.name().map(str::to_owned)).collect()
    }
}
