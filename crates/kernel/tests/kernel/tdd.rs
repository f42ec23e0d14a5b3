//! Test-driven work through a whole kernel: forged tools, and a project with a test command.

use serde_json::{Value, json};
use tgp::contract::{RelativePath, Root, TddMode, TddState};
use tgp::gates::Scope;
use tgp::{BootOptions, Kernel};

use tgp_builtins::testing::{detect, read_counts};

use crate::support::{Project, code, data, error, exec};

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
    // A restarted kernel continues where it was.
    let kernel = strict(&project).await;
    assert_eq!(state(&kernel, "tools/double.ts"), TddState::Refactor);
    let found = kernel.call("search", json!({ "query": "doubles a number" })).await;
    assert!(!data(&found).to_string().contains("double.test.ts"), "a test is not a tool: {found:?}");
    kernel.shutdown().await;
}

/// A project whose tests are a shell script, so that no toolchain is needed.
fn scripted() -> Project {
    let project = Project::new();
    project.put(
        "tgp.config.json",
        &json!({ "tdd": { "command": "sh tests/all.sh" }, "sandbox": { "cpuMs": 5_000 } }).to_string(),
    );
    project.put("tests/all.sh", "test \"$(cat src/answer.txt.py 2>/dev/null)\" != wrong\n");
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
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = scripted();
    let kernel = strict(&project).await;
    let code_file = "src/answer.py";
    assert_eq!(code(&fs_write(&kernel, code_file, "42").await), "ESTATE", "idle");
    assert!(fs_write(&kernel, "README.md", "words").await.is_ok(), "exempt files are free");
    assert!(
        fs_write(&kernel, "tests/answer.sh", "test \"$(cat src/answer.py 2>/dev/null)\" = 42\n")
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
    // A user edits code outside: the green run says nothing of it any more.
    project.put(code_file, "43");
    let stale = fs_write(&kernel, code_file, "44").await;
    assert_eq!(code(&stale), "ESTATE", "a stale result admits nothing: {stale:?}");
    project.put(code_file, "42");
    assert!(kernel.call("fs_delete", json!({ "path": code_file })).await.is_ok(), "dead code can go");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_run_writes_nothing() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = scripted();
    project.put("tests/all.sh", "echo sneaky > src.py; echo changed > tests/all.sh; exit 0\n");
    let kernel = strict(&project).await;
    let run = test_run(&kernel).await;
    assert_eq!(run["exitCode"], 0, "{run}");
    assert!(!project.file("src.py").exists(), "a test run is no way to write");
    assert!(project.text("tests/all.sh").unwrap().contains("sneaky"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_no_name_lets_code_run_that_no_test_has_asked_for() {
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000 } }).to_string());
    let kernel = strict(&project).await;
    for path in [
        "bin/a.ts",
        "a.ts",
        "lib/a.ts",
        "types/a.ts",
        "docs/x.ts",
        "bin/a.js",
        "bin/a.mjs",
        "tools/a.test.js",
    ] {
        let written = write(&kernel, path, TOOL).await;
        assert_eq!(code(&written), "ESTATE", "{path}");
        assert!(!project.file(&format!(".tgp/{path}")).exists(), "{path}");
    }
    // What may be written at any time cannot be run.
    for path in ["tools/README.md", "docs/x.txt", "data/x.json", "bin/types.d.ts"] {
        assert!(write(&kernel, path, TOOL).await.is_ok(), "{path}");
        let ran = exec(&kernel, path, json!({ "n": 2 })).await;
        assert_eq!(code(&ran), "EVALIDATION", "{path}: {ran:?}");
        assert!(error(&ran).help_of().is_some());
    }
    // Nor can it be had by way of a test.
    assert!(write(&kernel, "tools/free.test.ts", TOOL).await.is_ok());
    assert_eq!(code(&exec(&kernel, "tools/free.test.ts", json!({})).await), "EVALIDATION");
    project.tool("by_hand.ts", "import free from './free.test.ts';\nexport default () => free({ n: 2 });\n");
    let ran = exec(&kernel, "tools/by_hand.ts", json!({})).await;
    assert_eq!(code(&ran), "ECOMPILE", "{ran:?}");
    // Outside of `tools/` code has its test beside it as well.
    assert!(write(&kernel, "bin/double.test.ts", TEST).await.is_ok());
    kernel.call("test_tool", json!({ "path": "bin/double.test.ts" })).await;
    assert_eq!(state(&kernel, "bin/double.ts"), TddState::Red);
    assert!(write(&kernel, "bin/double.ts", TOOL).await.is_ok());
    kernel.call("test_tool", json!({ "path": "bin/double.ts" })).await;
    assert_eq!(state(&kernel, "bin/double.ts"), TddState::Green);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_test_file_without_tests_makes_nothing_red() {
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000 } }).to_string());
    let kernel = strict(&project).await;
    for nothing in ["// nothing\n", "import { test } from '@tgp/test';\nexport const unused = test;\n"] {
        assert!(write(&kernel, "tools/double.test.ts", nothing).await.is_ok());
        let run = kernel.call("test_tool", json!({ "path": "tools/double.test.ts" })).await;
        assert_eq!(data(&run)["failed"], 1, "for whoever asked it has failed: {run:?}");
        assert_eq!(state(&kernel, "tools/double.ts"), TddState::TestWritten, "{nothing}");
        assert_eq!(code(&write(&kernel, "tools/double.ts", TOOL).await), "ESTATE");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_exit_code_out_of_a_manifest_decides_nothing() {
    // What is believed of a run, whether or not npm is here to make it.
    let manifest =
        |path: &str| (path == "package.json").then(|| json!({ "scripts": { "test": "exit 1" } }).to_string());
    let (found, chosen) = (detect(None, &manifest).unwrap(), detect(Some("make check"), &manifest).unwrap());
    for exit_code in [0, 1] {
        let silent = |runner| read_counts(runner, Some(exit_code), "", "").evidence(runner);
        assert_eq!((silent(&found), silent(&chosen)), ((Some(0), Some(0)), (None, None)));
    }
    let counted = read_counts(&found, Some(1), "test result: FAILED. 1 passed; 2 failed; 0 ignored\n", "");
    assert_eq!(counted.evidence(&found), (Some(0), Some(0)), "what a script prints decides nothing either");
    assert_eq!(counted.evidence(&chosen), (Some(1), Some(2)));

    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000 } }).to_string());
    // Scripts run later, so a rule that names the manifest lets an agent change them.
    project.put("tgp.policy.yaml", "version: 1\nrules:\n  - {id: scripts, effect: allow, tools: fs_write, where: {path: package.json}}\n");
    let kernel = strict(&project).await;
    assert!(fs_write(&kernel, "tests/new.test.js", "// never run").await.is_ok());
    let forged = "printf 'ok 1 - x\\n# tests 1\\n# pass 1\\n# fail 0\\n'; exit 0; node --test";
    let forged_red = "printf 'not ok 1 - x\\n# tests 1\\n# pass 0\\n# fail 1\\n'; exit 1; node --test";
    for script in ["exit 1", "exit 0", forged, forged_red] {
        let package = json!({ "scripts": { "test": script } }).to_string();
        assert!(fs_write(&kernel, "package.json", &package).await.is_ok());
        let run = test_run(&kernel).await;
        assert_eq!(run["state"]["outcome"], "inconclusive", "{run}");
        assert!(run["state"]["why"].as_str().unwrap().contains("tdd.command"), "{run}");
        assert_eq!(state(&kernel, "project"), TddState::TestWritten);
        assert_eq!(code(&fs_write(&kernel, "src/a.js", "1").await), "ESTATE");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_filter_is_no_option_and_blames_no_test_that_did_not_run() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = scripted();
    project.put("tests/all.sh", "test -z \"$1\" || exit 1\n");
    let kernel = strict(&project).await;
    assert!(fs_write(&kernel, "tests/new.sh", "exit 0\n").await.is_ok());
    for option in ["-x", "--help", " --collect-only", "-"] {
        let refused = kernel.call("test_run", json!({ "only": option })).await;
        assert_eq!(code(&refused), "EVALIDATION", "{option}");
    }
    let run = kernel.call("test_run", json!({ "only": "nothing-is-called-so" })).await;
    assert_eq!(
        (&data(&run)["exitCode"], &data(&run)["state"]["outcome"]),
        (&json!(1), &json!("inconclusive"))
    );
    assert_eq!(state(&kernel, "project"), TddState::TestWritten);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_data_of_forged_tools_needs_no_test() {
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000 } }).to_string());
    let kernel = strict(&project).await;
    assert!(fs_write(&kernel, "tmp/report.csv", "a,b\n").await.is_ok());
    assert_eq!(code(&fs_write(&kernel, "src/tmp/report.py", "a = 1\n").await), "ESTATE");
    kernel.shutdown().await;
}

/// A project whose tests pass, with code that has its own chronicle.
fn passing(layout: &str) -> Project {
    let project = Project::new();
    let config = json!({
        "tdd": { "command": "sh tests/all.sh", "exempt": ["**/*.md", "generated/**"] },
        "chronicle": { "layout": layout },
        "sandbox": { "cpuMs": 5_000 },
    });
    project.put("tgp.config.json", &config.to_string()).put("tests/all.sh", "true\n");
    project.put("src/answer.ts", "export const answer = 0;\n").put("src/other.ts", "export {};\n");
    project.put("generated/list.ts", "export {};\n");
    project
}

async fn edit(kernel: &Kernel, from: &str, to: &str) -> tgp::contract::ToolResult {
    let arguments = json!({ "path": "src/answer.ts", "search": from, "replace": to });
    kernel.call("fs_edit", arguments).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_chronicle_that_has_grown_makes_no_run_stale() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    for layout in ["tree", "beside"] {
        let project = passing(layout);
        let kernel = strict(&project).await;
        let mut at = 0;
        for _ in 0..2 {
            let run = test_run(&kernel).await;
            assert_eq!(state(&kernel, "project"), TddState::Green, "{layout}: {run}");
            for _ in 0..2 {
                let edited =
                    edit(&kernel, &format!("answer = {at};"), &format!("answer = {};", at + 1)).await;
                assert!(edited.is_ok(), "{layout}, edit {at}: {edited:?}");
                at += 1;
            }
        }
        // The kernel's own files and exempt ones may be changed by any program.
        project.put(".sage/valve.yml", "personas: []\n").put("generated/list.ts", "export const x = 1;\n");
        project.put("README.md", "words\n");
        assert!(edit(&kernel, &format!("answer = {at};"), "answer = 42;").await.is_ok(), "{layout}");
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_run_names_the_file_that_changed() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = passing("tree");
    let kernel = strict(&project).await;
    test_run(&kernel).await;
    project.put("src/other.ts", "export const other = 1;\n");
    let stale = edit(&kernel, "answer = 0", "answer = 1").await;
    assert_eq!(code(&stale), "ESTATE");
    let message = &error(&stale).message;
    assert!(message.contains("since the run that passed: `src/other.ts` (mode"), "{message}");
    assert_eq!(error(&stale).details["changed"], "src/other.ts");
    project.put("src/answer.ts", "export const answer = 0; //\n").put("tests/all.sh", "true; true\n");
    let message = error(&edit(&kernel, "answer = 0", "answer = 1").await).message.clone();
    assert!(message.contains("`src/answer.ts` and 2 more files"), "{message}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_run_does_not_name_a_file_that_the_caller_may_not_read() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = passing("tree");
    project.put("src/hidden-plan.ts", "export {};\n").put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: hide, effect: deny, where: {path: 'src/hidden-*'}, reason: hidden}\n",
    );
    let kernel = strict(&project).await;
    test_run(&kernel).await;
    project.put("src/hidden-plan.ts", "export const x = 1;\n");
    let stale = edit(&kernel, "answer = 0", "answer = 1").await;
    assert_eq!(code(&stale), "ESTATE", "{stale:?}");
    let shown = format!("{stale:?}");
    assert!(!shown.contains("hidden-plan") && shown.contains("may not read"), "{shown}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_hashing_followed_a_symlinked_directory() {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("a.py"), "secret").unwrap();
    project.put("src/b.py", "b = 1\n");
    std::os::unix::fs::symlink(outside.path(), project.file("src/link")).unwrap();
    std::os::unix::fs::symlink(project.file("src/b.py"), project.file("src/c.py")).unwrap();
    let kernel = strict(&project).await;
    let hash = |path: &str| kernel.state().disk().hash(Root::Project, &RelativePath::new(path).unwrap());
    assert!(hash("src/b.py").is_some());
    assert_eq!(hash("src/link/a.py"), None, "a directory that is a link leads nowhere");
    assert_eq!(hash("src/c.py"), None, "and so does a file");
    kernel.shutdown().await;
}
