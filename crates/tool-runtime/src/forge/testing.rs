//! Tests of tools: a test file runs in the sandbox as a tool does, and leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tgp_compiler::{GraphBuilder, is_test_file, tested_files};
use tgp_contract::{Code, FileSystem, FsError, RelativePath, SourceLocation, ToolError, canonical};
use tgp_sandbox::{LogLine, RunInput, RunLimits, RunStats, ToolRunOptions};
use tgp_text::truncate;

use super::program::{CompiledTool, PrepareFailure};
use super::run_commit::RunCommit;
use super::sources::Sources;
use super::{ToolRuntime, bridge, failure};
use tgp_router::Invocation;

/// CPU time of a test file, where a tool has less: it runs a tool many times.
const CPU: Duration = Duration::from_secs(1);
/// The same for the time it takes: a test that waits for nothing is given up after some seconds, and others follow.
const WALL: Duration = Duration::from_secs(15);
/// Lines and bytes of a test file's logs that are reported, from their beginning.
const MAX_LOG_LINES: usize = 200;
const MAX_LOG_BYTES: usize = 16 * 1024;

/// Lines and bytes that the reports of the tests take of the log, in addition to what they write themselves.
const PROGRESS_LINES: u64 = 1_100;
const PROGRESS_BYTES: u64 = 1 << 20;
/// Begins a line that `@tgp/test` writes for the kernel; `test.ts` has it as well.
const PROGRESS: &str = "\u{1e}tgp:test ";
/// Bytes of the name of a test that a message shows.
const MAX_NAME_BYTES: usize = 200;

/// The result of one test file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    #[serde(rename = "path")]
    pub file: RelativePath,
    /// The tool that the file is beside, written or not.
    pub tool_path: Option<RelativePath>,
    /// The sources as they were run.
    pub test_sha256: String,
    pub tool_sha256: Option<String>,
    pub tests: Vec<TestResult>,
    pub passed: usize,
    /// Tests that failed; one more when the run failed as a whole.
    pub failed: usize,
    /// Why the run failed as a whole: it does not compile, a module is missing, a cap was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Whether no test ran, or their results are unreadable. The run has failed, and says nothing of the tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inconclusive: bool,
    pub logs: Vec<LogLine>,
    /// Nothing where it did not come to a run.
    pub stats: Option<RunStats>,
    /// True when the tests and logs are left out, since the answer has no more room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abridged: bool,
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    pub name: String,
    pub ok: bool,
    pub duration_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TestFailure>,
}

/// Why a test failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFailure {
    pub message: String,
    /// Where, in the TypeScript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
}

/// What `run` of `@tgp/test` gives back.
#[derive(Deserialize)]
struct RawReport {
    tests: Vec<RawResult>,
}

/// What `run` says before the first test and after each one.
#[derive(Deserialize)]
struct Progress {
    result: Option<RawResult>,
    /// The test that runs now.
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResult {
    name: String,
    ok: bool,
    duration_ms: f64,
    error: Option<RawFailure>,
}

#[derive(Deserialize)]
struct RawFailure {
    name: String,
    message: String,
    stack: String,
    code: Option<String>,
    expected: Option<String>,
    received: Option<String>,
}

impl ToolRuntime {
    /// What a test file may use where a tool has `limits`. The sandbox must allow as much.
    #[must_use]
    pub fn test_limits(limits: RunLimits) -> RunLimits {
        RunLimits {
            cpu: limits.cpu.max(CPU),
            wall: limits.wall.max(WALL),
            log_lines: limits.log_lines.saturating_add(PROGRESS_LINES),
            log_bytes: limits.log_bytes.saturating_add(PROGRESS_BYTES),
            ..limits
        }
    }

    /// Runs the tests of one file. Whatever they write, to files or to the database, is undone. A file that does not
    /// compile, or asks for a tool that is not there yet, has failed.
    ///
    /// # Errors
    /// When there is no such test file, or the sandbox itself fails.
    pub async fn test(
        &self,
        invocation: Invocation<'_>,
        file: &RelativePath,
    ) -> Result<TestReport, ToolError> {
        if !is_test_file(file.as_str()) {
            let message = format!("`{file}` is not a test file");
            return Err(
                ToolError::new(Code::Validation, message).help("test files are called `name.test.ts`")
            );
        }
        let tools = &invocation.visible_tools().await;
        let mut report = TestReport::new(tools.as_ref(), file)?;
        match self.judged_test(invocation, file).await {
            Ok(prepared) => {
                report.learn_hashes(&prepared);
                self.run_tests(invocation, &prepared, &mut report).await?;
            }
            Err(error) if error.code == Code::Internal => return Err(error),
            Err(error) => report.fail(error),
        }
        Ok(report)
    }

    /// The program of a test file whose sources the gates have judged.
    async fn judged_test(
        &self,
        invocation: Invocation<'_>,
        file: &RelativePath,
    ) -> Result<Arc<CompiledTool>, ToolError> {
        let tools = &invocation.workspace.tools;
        match self.test_program(tools, file, &mut Sources::Judged(invocation)).await {
            Ok(prepared) => {
                self.check_packages(invocation, prepared.package_files()).await?;
                Ok(prepared)
            }
            Err(failure) => Err(self.judged_failure(invocation, failure).await),
        }
    }

    pub(super) async fn test_program(
        &self,
        tools: &Arc<dyn FileSystem>,
        file: &RelativePath,
        sources: &mut Sources<'_>,
    ) -> Result<Arc<CompiledTool>, PrepareFailure> {
        let builder = || GraphBuilder::for_test(self.graph_host(tools), file).map_err(|error| error.0);
        self.prepared(tools, format!("test:{file}"), builder, sources).await
    }

    async fn run_tests(
        &self,
        invocation: Invocation<'_>,
        prepared: &CompiledTool,
        report: &mut TestReport,
    ) -> Result<(), ToolError> {
        let inner = invocation.workspace.overlaid;
        let _place = if inner { None } else { Some(self.running.take(&invocation.context.session).await) };
        // A test reads what its caller may read, as a tool does.
        let (workspace, overlay) = invocation.filtered_workspace().await.overlay();
        let end = RunCommit { overlay, sql: workspace.sql.run().cloned(), base: None, point: None };
        let options = self.run_options();
        let limits = Self::test_limits(options.limits);
        let bridge = bridge::ToolBridge::new(
            report.file.clone(),
            workspace,
            invocation,
            limits,
            self.options.foreign.clone(),
        );
        let input = RunInput { arguments: json!({}), call_default: true, environment: Vec::new() };
        let options = ToolRunOptions { limits, ..options };
        let ran = self.run_in_sandbox(&prepared.program, input, options, &bridge).await;
        end.undo().await;
        let ran = ran?;
        let (logs, progress) = split_progress(ran.logs);
        report.logs = shown_logs(logs, prepared);
        report.stats = Some(ran.stats);
        match ran.result.map(serde_json::from_value::<RawReport>) {
            Ok(Ok(raw)) if raw.tests.is_empty() => {
                report.inconclusive = true;
                report.fail(
                    ToolError::new(Code::Validation, format!("`{}` has no tests", report.file))
                        .help("declare one: `test('adds', () => { expect(add(1, 2)).toBe(3); });`"),
                );
            }
            Ok(Ok(raw)) => report.take(raw, prepared),
            Ok(Err(_)) => {
                report.inconclusive = true;
                report.fail(ToolError::new(Code::Runtime, "the tests gave no report that can be read"));
            }
            Err(error) => {
                let error = failure::explain(&error, &prepared.graph, &bridge.answered);
                let running = progress.last().and_then(|last| last.next.clone());
                let error = match running {
                    Some(name) => {
                        let tests = progress.into_iter().filter_map(|progress| progress.result).collect();
                        report.take(RawReport { tests }, prepared);
                        let message =
                            format!("{} (in the test `{}`)", error.message, truncate(&name, MAX_NAME_BYTES));
                        error.with_message(message)
                    }
                    // All of them have ended: which one is to blame, for a rejection that no one handled, is not known.
                    None => error,
                };
                report.fail(error);
            }
        }
        Ok(())
    }
}

impl TestReport {
    fn new(tools: &dyn FileSystem, file: &RelativePath) -> Result<Self, ToolError> {
        let (tool_path, tool) = tested(tools, file)?;
        Ok(Self {
            test_sha256: canonical::sha256_hex(&tools.read(file)?),
            tool_sha256: tool.as_deref().map(canonical::sha256_hex),
            file: file.clone(),
            tool_path,
            tests: Vec::new(),
            passed: 0,
            failed: 0,
            error: None,
            inconclusive: false,
            logs: Vec::new(),
            stats: None,
            abridged: false,
        })
    }

    /// A file may be written at any moment; what counts is what was compiled.
    fn learn_hashes(&mut self, prepared: &CompiledTool) {
        if let Some(hash) = prepared.source_hash(&self.file) {
            hash.clone_into(&mut self.test_sha256);
        }
        if let Some(hash) = self.tool_path.as_ref().and_then(|path| prepared.source_hash(path)) {
            self.tool_sha256 = Some(hash.to_owned());
        }
    }

    fn fail(&mut self, error: ToolError) {
        self.failed += 1;
        self.error = Some(error);
    }

    fn take(&mut self, raw: RawReport, prepared: &CompiledTool) {
        self.tests = raw.tests.into_iter().map(|test| test.explained(prepared)).collect();
        self.passed = self.tests.iter().filter(|test| test.ok).count();
        self.failed = self.tests.len() - self.passed;
    }

    /// The same without what is long, for an answer that has no more room.
    pub fn abridge(&mut self) {
        self.tests.clear();
        self.logs.clear();
        self.abridged = true;
    }
}

/// The tool beside a test file, when it is there: a report names its hash.
pub fn tested_tool(tools: &dyn FileSystem, file: &RelativePath) -> Option<RelativePath> {
    match tested(tools, file) {
        Ok((path, Some(_))) => path,
        _ => None,
    }
}

/// The tool beside a test file with its content, or where it would be.
fn tested(
    tools: &dyn FileSystem,
    file: &RelativePath,
) -> Result<(Option<RelativePath>, Option<Vec<u8>>), ToolError> {
    let mut usual = None;
    for path in tested_files(file.as_str()).filter_map(|path| RelativePath::new(&path).ok()) {
        match tools.read(&path) {
            Ok(bytes) => return Ok((Some(path), Some(bytes))),
            Err(FsError::NotFound(_)) => usual = usual.or(Some(path)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((usual, None))
}

impl RawResult {
    fn explained(self, prepared: &CompiledTool) -> TestResult {
        let error = self.error.map(|error| {
            let named = !matches!(error.name.as_str(), "" | "Error" | "AssertionError");
            let message = match (&error.code, named) {
                (Some(code), _) => format!("{code}: {}", error.message),
                (None, true) => format!("{}: {}", error.name, error.message),
                (None, false) => error.message,
            };
            let place = failure::first_place(&error.stack, &prepared.graph);
            TestFailure { message, place, expected: error.expected, received: error.received }
        });
        // A report of the test's own making has no say against an error in it.
        TestResult { name: self.name, ok: self.ok && error.is_none(), duration_ms: self.duration_ms, error }
    }
}

/// The lines of the tests, and what `@tgp/test` says between them.
fn split_progress(logs: Vec<LogLine>) -> (Vec<LogLine>, Vec<Progress>) {
    let mut progress = Vec::new();
    let logs = logs.into_iter().filter(|line| match line.text.strip_prefix(PROGRESS) {
        Some(text) => {
            progress.extend(serde_json::from_str::<Progress>(text));
            false
        }
        None => true,
    });
    (logs.collect(), progress)
}

fn shown_logs(logs: Vec<LogLine>, prepared: &CompiledTool) -> Vec<LogLine> {
    let mut bytes = 0;
    logs.into_iter()
        .map(|line| LogLine { text: failure::map_log(&line.text, &prepared.graph), ..line })
        .take(MAX_LOG_LINES)
        .take_while(|line| {
            bytes += line.text.len();
            bytes <= MAX_LOG_BYTES
        })
        .collect()
}
