//! What people let an agent do every day under `strict`, through a whole kernel: repair, move, split, generate.

use serde_json::json;
use tgp::contract::{TddMode, TddState, ToolResult};
use tgp::gates::Scope;
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, data, error, exec};

const PRICE: &str =
    "RATE = 1.19\n\ndef gross(net):\n    value = net * RATE\n    print(value)\n    return value\n";

async fn strict(project: &Project) -> Kernel {
    let options = BootOptions { tdd_mode: Some(TddMode::Strict), ..project.options() };
    Kernel::boot(options).await.unwrap()
}

fn state(kernel: &Kernel) -> TddState {
    kernel.state().tdd().state(&Scope::Project).unwrap()
}

/// A project whose tests are a shell script that looks for a word in the code.
fn project() -> Project {
    let project = Project::new();
    let config = json!({
        "tdd": { "command": "sh tests/all.sh" },
        "fs": { "allowedDirs": ["./exports", "./gen"] },
        "sandbox": { "cpuMs": 5_000 },
    });
    project.put("tgp.config.json", &config.to_string());
    project.put("tests/all.sh", "grep -rq RATE src\n").put("src/price.py", PRICE);
    project
}

async fn fs_write(kernel: &Kernel, path: &str, content: &str) -> ToolResult {
    kernel.call("fs_write", json!({ "path": path, "content": content })).await
}

async fn test_run(kernel: &Kernel) -> TddState {
    let run = kernel.call("test_run", json!({})).await;
    assert!(run.is_ok(), "{run:?}");
    state(kernel)
}

fn can_run_commands() -> bool {
    let can = tgp::sandbox::process_support().complete();
    if !can {
        println!("commands cannot run here, skipped");
    }
    can
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_fixing_code_for_a_failing_test_was_refused_and_renaming_the_test_was_not() {
    if !can_run_commands() {
        return;
    }
    let project = project();
    project.put("src/price.py", "TYPO = 1.19\n");
    let kernel = strict(&project).await;
    let early = fs_write(&kernel, "src/price.py", PRICE).await;
    assert_eq!(code(&early), "ESTATE");
    assert!(error(&early).help_of().is_some_and(|help| help.starts_with("run `test_run`")), "{early:?}");
    assert_eq!(test_run(&kernel).await, TddState::Refactor);
    assert_eq!(
        code(&fs_write(&kernel, "src/new.py", "RATE = 1\n").await),
        "ESTATE",
        "new code needs a new test"
    );
    let both = kernel
        .call("shell_exec", json!({ "command": "echo RATE=2 > src/price.py; echo true > tests/all.sh" }))
        .await;
    assert_eq!(code(&both), "ESTATE", "{both:?}");
    assert!(fs_write(&kernel, "src/price.py", PRICE).await.is_ok());
    assert_eq!(test_run(&kernel).await, TddState::Green);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_moving_a_module_while_green_was_refused_as_new_code() {
    if !can_run_commands() {
        return;
    }
    let project = project();
    let kernel = strict(&project).await;
    assert_eq!(test_run(&kernel).await, TddState::Green);
    let moved = kernel
        .call("shell_exec", json!({ "command": "mkdir src/shop && mv src/price.py src/shop/price.py" }))
        .await;
    assert!(moved.is_ok(), "{moved:?}");
    assert_eq!(project.text("src/shop/price.py").as_deref(), Some(PRICE));
    assert_eq!(state(&kernel), TddState::Refactor);
    assert_eq!(test_run(&kernel).await, TddState::Green);
    // With the tools for files: the new place first, then the old one goes.
    assert!(fs_write(&kernel, "src/price.py", &PRICE.replace("RATE = 1.19", "RATE = 1.2")).await.is_ok());
    assert_eq!(code(&fs_write(&kernel, "src/third.py", PRICE).await), "ESTATE", "one file until green");
    assert!(kernel.call("fs_delete", json!({ "path": "src/shop/price.py" })).await.is_ok());
    assert_eq!(test_run(&kernel).await, TddState::Green);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_file_has_known_lines_and_nothing_else() {
    if !can_run_commands() {
        return;
    }
    let project = project();
    let kernel = strict(&project).await;
    assert_eq!(test_run(&kernel).await, TddState::Green);
    let new = fs_write(&kernel, "src/steal.py", "import os\nos.system('x')\n").await;
    assert_eq!(code(&new), "ESTATE");
    assert!(!project.file("src/steal.py").exists());
    let dry = tgp::contract::ToolCall {
        id: "dry".to_owned(),
        tool: "fs_write".to_owned(),
        arguments: json!({ "path": "src/steal.py", "content": "import os\n" }),
    };
    let context =
        tgp::contract::CallContext { dry_run: true, ..crate::router::context(tgp::contract::Consent::Given) };
    let dry = kernel.call_with(dry, context).await;
    assert_eq!(code(&dry), "ESTATE", "a dry run is judged as the call itself: {dry:?}");
    assert!(
        fs_write(&kernel, "src/gross.py", "def gross(net):\n    value = net * RATE\n    return value\n")
            .await
            .is_ok()
    );
    assert_eq!(state(&kernel), TddState::Refactor);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_forged_tool_could_not_write_a_report() {
    let project = project();
    project.tool(
        "report.ts",
        "export default async (args: { file: string }): Promise<string> => { await tgp.write_file(args.file, 'a,b\\n'); return args.file; };\n",
    );
    let kernel = strict(&project).await;
    for file in ["exports/report.csv", "gen/client.ts"] {
        let answer = exec(&kernel, "tools/report.ts", json!({ "file": file })).await;
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(project.text(file).as_deref(), Some("a,b\n"));
    }
    assert_eq!(
        data(&fs_write(&kernel, "exports/other.csv", "a\n").await)["created"],
        true,
        "data is no code"
    );
    assert_eq!(
        code(&fs_write(&kernel, "gen/other.ts", "a\n").await),
        "ESTATE",
        "the agent itself wrote no output"
    );
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_the_state_answered_before_the_policy() {
    let project = project();
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: vendored, effect: deny, tools: fs_write, where: {path: 'src/vendor/**'}}\n",
    );
    let kernel = strict(&project).await;
    let refused = fs_write(&kernel, "src/vendor/a.py", "x = 1\n").await;
    assert_eq!(code(&refused), "EPOLICY", "a failing test would not change the rule: {refused:?}");
    assert_eq!(error(&refused).details["rule"], "vendored");
    assert_eq!(code(&fs_write(&kernel, "src/a.py", "x = 1\n").await), "ESTATE");
    for protected in ["tgp.config.ts", ".env"] {
        assert_eq!(code(&fs_write(&kernel, protected, "x").await), "EPOLICY", "{protected}");
    }
    kernel.state().tdd().set(&Scope::Project, TddState::Halted, kernel.state().disk()).unwrap();
    let halted = fs_write(&kernel, "src/vendor/a.py", "x = 1\n").await;
    assert_eq!(code(&halted), "ESTATE", "what a person has halted comes first");
    kernel.shutdown().await;
}
