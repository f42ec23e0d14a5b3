//! `test_tool`: run the tests that are beside the tools.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tgp_compiler::{is_test_file, test_file};
use tgp_contract::{
    Access, Code, Effect, EntryKind, ExecutionPath, FileSystem, FsError, RelativePath, Root, Target,
    ToolError, canonical,
};

use tgp_router::files::is_listed;
use tgp_router::{FileSnapshot, Invocation, Preview, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolRuntime;
use tgp_tool_runtime::forge::{TestReport, TestResult, as_targets, tested_tool};
use tgp_tool_runtime::memory::TOOLS_DIRECTORY;

/// Test files of one call; a larger repository is tested directory by directory.
const MAX_FILES: usize = 1_000;
/// After this long no further file is begun; those that are left have failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of the answer; the files beyond are counted, and their tests are not shown.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

pub(super) struct TestTool(pub(super) Arc<ToolRuntime>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestToolArgs {
    /// A test file, a tool, or a directory such as `tools/math`; default: all tests.
    #[schemars(length(min = 1))]
    path: Option<String>,
}

impl TestToolArgs {
    fn path(&self) -> Result<RelativePath, ToolError> {
        Ok(RelativePath::new(self.path.as_deref().unwrap_or(TOOLS_DIRECTORY))?)
    }
}

/// The result of the tests of tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestToolResult {
    pub files: Vec<TestFile>,
    pub passed: usize,
    /// Tests that failed, and files whose run failed as a whole.
    pub failed: usize,
    pub duration_ms: u64,
}

/// The result of one test file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TestFile {
    Ran(Box<TestReport>),
    NotRun(TestNotRun),
}

/// A test file that was not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestNotRun {
    pub path: RelativePath,
    /// Always empty.
    pub tests: Vec<TestResult>,
    /// Always 0.
    pub passed: usize,
    /// Always 1.
    pub failed: usize,
    /// Why it was not run.
    pub error: ToolError,
}

impl TestFile {
    fn not_run(path: RelativePath, error: ToolError) -> Self {
        Self::NotRun(TestNotRun { path, tests: Vec::new(), passed: 0, failed: 1, error })
    }
}

#[async_trait]
impl Tool for TestTool {
    type Args = TestToolArgs;
    type Output = TestToolResult;

    const INFO: ToolSpec = ToolSpec {
        name: "test_tool",
        aliases: &[],
        description: "Run the tests of tools: `tools/x.test.ts` beside `tools/x.ts`, written with `test` and `expect` of `@tgp/test`. What they write is undone.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &TestToolArgs) -> Result<Vec<Target>, ToolError> {
        Ok(vec![Target::File { root: Root::Tools, path: args.path()?, access: Access::Read }])
    }

    /// The test files that would run, and every source they consist of.
    async fn found_targets(&self, args: &TestToolArgs, invocation: Invocation<'_>) -> Vec<Target> {
        let Ok(named) = args.path() else { return Vec::new() };
        let mut found = BTreeSet::new();
        for (file, sources) in self.chosen(invocation, &named).await.unwrap_or_default() {
            found.extend(sources.unwrap_or_default());
            found.insert(file);
        }
        found.remove(&named);
        as_targets(found)
    }

    /// Which test files would run.
    async fn preview(&self, args: TestToolArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let tools = invocation.visible_tools().await;
        let tools = tools.as_ref();
        let mut found = Vec::new();
        for (path, sources) in self.chosen(invocation, &args.path()?).await? {
            if sources.is_err() {
                continue;
            }
            let sha256 = Some(canonical::sha256_hex(&tools.read(&path)?));
            found.push(FileSnapshot { root: Root::Tools, path, sha256 });
        }
        let paths: Vec<&RelativePath> = found.iter().map(|file| &file.path).collect();
        Ok(Preview { data: Some(json!({ "tests": paths })), found, missing: None })
    }

    async fn run(
        &self,
        args: TestToolArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<TestToolResult>, ToolError> {
        let (started, outer) = (Instant::now(), invocation.as_outer());
        let waited_before = outer.waited();
        let files = self.chosen(invocation, &args.path()?).await?;
        let mut result = TestToolResult { files: Vec::new(), passed: 0, failed: 0, duration_ms: 0 };
        let mut bytes = 0;
        for (file, sources) in files {
            let waited = outer.waited().saturating_sub(waited_before);
            if started.elapsed().saturating_sub(waited) > PATIENCE {
                let seconds = PATIENCE.as_secs();
                let error =
                    ToolError::new(Code::Budget, format!("not run: the tests took more than {seconds} s"))
                        .help("test a directory or a tool at a time");
                result.failed += 1;
                result.files.push(TestFile::not_run(file, error));
                continue;
            }
            if let Err(error) = sources {
                result.failed += 1;
                result.files.push(TestFile::not_run(file, error));
                continue;
            }
            let mut report = self.0.test(invocation, &file).await?;
            result.passed += report.passed;
            result.failed += report.failed;
            bytes += serde_json::to_vec(&report).map_or(0, |text| text.len());
            if bytes > MAX_ANSWER_BYTES {
                report.abridge();
            }
            result.files.push(TestFile::Ran(Box::new(report)));
        }
        result.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(result.into())
    }
}

/// The sources that a test file consists of, or why it is not run.
type TestSources = Result<BTreeSet<RelativePath>, ToolError>;

impl TestTool {
    /// The test files that a path means, each with its sources. Of a directory those are left out that the rules do not let
    /// the caller see, and a test of such a source is not run; a file that was named is the gates' to judge.
    async fn chosen(
        &self,
        invocation: Invocation<'_>,
        named: &RelativePath,
    ) -> Result<Vec<(RelativePath, TestSources)>, ToolError> {
        let tools = &invocation.workspace.tools;
        let is_directory = tools.entry(named)?.is_some_and(|entry| entry.kind == EntryKind::Directory);
        let filter = if is_directory { invocation.router.file_filter(invocation).await } else { None };
        let is_hidden = |path: &RelativePath| {
            filter.as_ref().is_some_and(|filter| !filter(Root::Tools, path, Access::Read))
        };
        let mut chosen = Vec::new();
        for file in test_files(invocation.visible_tools().await.as_ref(), named)? {
            if is_hidden(&file) {
                continue;
            }
            let mut sources = self.0.find_test_sources(tools, &file).await;
            sources.extend(tested_tool(tools.as_ref(), &file));
            let sources = match sources.iter().find(|source| is_hidden(source)) {
                None => Ok(sources),
                Some(source) => {
                    let message = format!("a rule has something against `{source}`, which `{file}` needs");
                    Err(ToolError::new(Code::Policy, message)
                        .help("name the test file to see which rule it is"))
                }
            };
            chosen.push((file, sources));
        }
        Ok(chosen)
    }
}

/// The test files that a path means: itself, the one beside a tool, or all below a directory.
fn test_files(files: &dyn FileSystem, named: &RelativePath) -> Result<Vec<RelativePath>, ToolError> {
    let entry = files.entry(named)?;
    if entry.is_some_and(|entry| entry.kind == EntryKind::Directory) {
        let found: Vec<RelativePath> = files
            .list(named)?
            .into_iter()
            .filter(|entry| is_listed(entry) && is_test_file(entry.path.as_str()))
            .map(|entry| entry.path)
            .collect();
        if found.len() > MAX_FILES {
            let message = format!("`{named}` has {} test files, more than {MAX_FILES}", found.len());
            return Err(ToolError::new(Code::Validation, message).help("name a directory with fewer"));
        }
        return Ok(found);
    }
    if named.as_str() == TOOLS_DIRECTORY {
        // A repository without tools may not have their directory yet.
        return Ok(Vec::new());
    }
    if is_test_file(named.as_str()) {
        return Ok(vec![named.clone()]);
    }
    let beside = test_file(named.as_str()).map(|path| RelativePath::new(&path)).transpose()?;
    let Some(beside) = beside else { return Err(FsError::NotFound(named.clone()).into()) };
    if files.entry(&beside)?.is_some() {
        return Ok(vec![beside]);
    }
    Err(ToolError::new(Code::NotFound, format!("`{named}` has no test"))
        .help(format!("write `{beside}` with `test` and `expect` of `@tgp/test`")))
}
