//! Test-driven work through a whole kernel: forged tools, and a project with a test command.

use serde_json::{Value, json};
use tgp::contract::{TddMode, TddState};
use tgp::{BootOptions, Kernel, Scope};

use crate::support::{Project, code, data, error};

async fn strict(project: &Project) -> Kernel {
    let options = BootOptions { tdd_mode: Some(TddMode::Strict), ..project.options() };
    Kernel::boot(options).await.unwrap()
}

fn state(kernel: &Kernel, scope: &str) -> TddState {
    kernel.state().tdd().state(&Scope::parse(scope).unwrap()).unwrap()
}

const TEST: &str = "import { test, expect } from '@tgp/test';\nimport double from './double.ts';\ntest('doubles', () => { expect(double({ n: 2 })).toBe(4); });\n";
const TOOL: &str = "export default (args: { n: number }): number => args.n * 2;\n";

async fn write(kernel: &Kernel, path: &str, content: &str) -> tgp::contract::ToolResult {
    kernel.call("write_file", json!({ "path": path, "content": content })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tool_needs_its_failing_test_first() {
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000 } }).to_string());
    let kernel = strict(&project).await;
    let early = write(&kernel, "tools/double.ts", TOOL).await;
    assert_eq!(code(&early), "ESTATE");
    assert!(error(&early).help_of().is_some_and(|help| help.contains("test")), "{early:?}");
    assert!(!project.file(".tgp/tools/double.ts").exists());
    assert!(write(&kernel, "tools/double.test.ts", TEST).await.is_ok());
    assert_eq!(
        code(&write(&kernel, "tools/double.ts", TOOL).await),
        "ESTATE",
        "a test that was not run proves nothing"
    );
    let run = kernel.call("test_tool", json!({ "path": "tools/double.test.ts" })).await;
    assert_eq!(data(&run)["failed"], 1, "{run:?}");
    assert_eq!(state(&kernel, "tools/double.ts"), TddState::Red);
    assert_eq!(code(&write(&kernel, "tools/other.ts", TOOL).await), "ESTATE", "red is red for its own tool");
    assert!(write(&kernel, "tools/double.ts", TOOL).await.is_ok());
    let run = kernel.call("test_tool", json!({ "path": "tools/double.ts" })).await;
    assert_eq!((&data(&run)["passed"], &data(&run)["failed"]), (&json!(1), &json!(0)), "{run:?}");
    assert_eq!(state(&kernel, "tools/double.ts"), TddState::Green);
    let refactored = "export default (args: { n: number }): number => args.n + args.n;\n";
    assert!(write(&kernel, "tools/double.ts", refactored).await.is_ok(), "green may be refactored");
    assert_eq!(state(&kernel, "tools/double.ts"), TddState::Refactor);
    kernel.shutdown().await;
    // A restart goes on where it was.
    let kernel = strict(&project).await;
    assert_eq!(state(&kernel, "tools/double.ts"), TddState::Refactor);
    let found = kernel.call("search", json!({ "query": "doubles a number" })).await;
    assert!(!data(&found).to_string().contains("double.test.ts"), "a test is no tool: {found:?}");
    kernel.shutdown().await;
}

/// A project whose tests are a shell script, so that no toolchain is needed.
fn scripted() -> Project {
    let project = Project::new();
    project.put(
        "tgp.config.json",
        &json!({ "tdd": { "command": "sh tests/all.sh" }, "sandbox": { "cpuMs": 5_000 } }).to_string(),
    );
    project.put("tests/all.sh", "test \"$(cat src/answer.txt.code 2>/dev/null)\" != wrong\n");
    project
}

async fn fs_write(kernel: &Kernel, path: &str, content: &str) -> tgp::contract::ToolResult {
    kernel.call("fs_write", json!({ "path": path, "content": content })).await
}

async fn test_run(kernel: &Kernel) -> Value {
    data(&kernel.call("test_run", json!({})).await).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_follows_a_failing_test_of_the_project() {
    if !tgp::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = scripted();
    let kernel = strict(&project).await;
    let code_file = "src/answer.code";
    assert_eq!(code(&fs_write(&kernel, code_file, "42").await), "ESTATE", "idle");
    assert!(fs_write(&kernel, "README.md", "words").await.is_ok(), "exempt files are free");
    assert!(
        fs_write(&kernel, "tests/answer.sh", "test \"$(cat src/answer.code 2>/dev/null)\" = 42\n")
            .await
            .is_ok()
    );
    assert!(fs_write(&kernel, "tests/all.sh", "sh tests/answer.sh\n").await.is_ok());
    assert_eq!(state(&kernel, "project"), TddState::TestWritten);
    assert_eq!(code(&fs_write(&kernel, code_file, "42").await), "ESTATE", "not run yet");
    let run = test_run(&kernel).await;
    assert_ne!(run["exitCode"], 0, "{run}");
    assert_eq!(state(&kernel, "project"), TddState::Red, "{run}");
    assert!(fs_write(&kernel, code_file, "41").await.is_ok());
    let run = test_run(&kernel).await;
    assert_ne!(run["exitCode"], 0);
    assert!(fs_write(&kernel, code_file, "42").await.is_ok(), "it still fails, so it may be mended");
    let run = test_run(&kernel).await;
    assert_eq!(run["exitCode"], 0, "{run}");
    assert_eq!(state(&kernel, "project"), TddState::Green, "{run}");
    // Somebody edits code outside: the green run says nothing of it any more.
    project.put(code_file, "43");
    let stale = fs_write(&kernel, code_file, "44").await;
    assert_eq!(code(&stale), "ESTATE", "a stale result admits nothing: {stale:?}");
    project.put(code_file, "42");
    assert!(kernel.call("fs_delete", json!({ "path": code_file })).await.is_ok(), "dead code can go");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_run_writes_nothing() {
    if !tgp::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = scripted();
    project.put("tests/all.sh", "echo sneaky > src.code; echo changed > tests/all.sh; exit 0\n");
    let kernel = strict(&project).await;
    let run = test_run(&kernel).await;
    assert_eq!(run["exitCode"], 0, "{run}");
    assert!(!project.file("src.code").exists(), "a test run is no way to write");
    assert!(project.text("tests/all.sh").unwrap().contains("sneaky"));
    kernel.shutdown().await;
}
