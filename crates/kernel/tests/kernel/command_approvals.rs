//! An approval of a command is for what the files hold that its command line names.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp::approvals::Grant;
use tgp::contract::{Actor, CallContext, Consent, ToolCall, ToolResult};
use tgp::{BootOptions, Kernel};

use crate::pending::Away;
use crate::support::{Project, code, data, error, recorded};

/// An agent's command, with no person at the terminal.
async fn command(kernel: &Kernel, line: &str) -> ToolResult {
    let arguments = json!({ "command": line });
    let call = ToolCall { id: "1".to_owned(), tool: "shell_exec".to_owned(), arguments };
    let context = CallContext {
        actor: Actor::Agent("agent".to_owned()),
        session: "agent".to_owned(),
        consent: Consent::Ask,
        dry_run: false,
        depth: 0,
        token: None,
    };
    kernel.call_with(call, context).await
}

/// Approves what a call waits for, and returns what was shown.
#[track_caller]
fn approve(kernel: &Kernel, answer: &ToolResult) -> Value {
    assert_eq!(code(answer), "EAPPROVAL", "{answer:?}");
    let id = error(answer).details["needs_approval"]["id"].as_str().unwrap().to_owned();
    let approvals = kernel.approvals().unwrap().unwrap();
    let question = approvals.find(&id).unwrap();
    let grant = Grant { by: "ada".to_owned(), times: 1 };
    approvals.grant(&id, question.hash(), grant, recorded()).unwrap();
    question.request().preview.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_approved_command_ran_a_script_that_was_changed_since() {
    if !tgp::sandbox::process_support().complete() {
        println!("skipped: this machine cannot lock commands");
        return;
    }
    let (project, home) = (Project::new(), tempfile::tempdir().unwrap());
    let place = home.path().display().to_string();
    let options = BootOptions {
        approver: Arc::new(Away),
        environment: Arc::new(move |name| (name == "TGP_HOME").then(|| place.clone())),
        ..project.options()
    };
    let kernel = Kernel::boot(options).await.unwrap();
    for (line, file) in [
        ("sh run.sh", "run.sh"),
        ("sh 'run.sh'", "run.sh"),
        (". ./run.sh", "run.sh"),
        ("cat run.sh | sh", "run.sh"),
        ("cd deep && sh ../deep/inner.sh", "deep/inner.sh"),
        ("sh linked.sh", "run.sh"),
    ] {
        project.put("run.sh", "echo shown\n").put("deep/inner.sh", "echo shown\n");
        let _ = std::os::unix::fs::symlink("run.sh", project.file("linked.sh"));
        let shown = approve(&kernel, &command(&kernel, line).await);
        let files = shown["files"].as_array().unwrap_or_else(|| panic!("{line}: {shown}"));
        assert!(files.iter().any(|one| one["path"] == file && one["begins"] == "echo shown\n"), "{shown}");
        project.put(file, "echo pwned\n");
        let changed = command(&kernel, line).await;
        assert_eq!(code(&changed), "EAPPROVAL", "{line}: {changed:?}");
        // What was shown runs.
        project.put(file, "echo shown\n");
        let ran = command(&kernel, line).await;
        assert_eq!(data(&ran)["stdout"], "shown\n", "{line}: {ran:?}");
    }
    // A file that comes into being is one that was not shown.
    approve(&kernel, &command(&kernel, "sh new.sh; true").await);
    project.put("new.sh", "echo pwned\n");
    assert_eq!(code(&command(&kernel, "sh new.sh; true").await), "EAPPROVAL");
    // Files that the command does not name may change.
    approve(&kernel, &command(&kernel, "echo hello").await);
    project.put("run.sh", "echo other\n");
    assert_eq!(data(&command(&kernel, "echo hello").await)["stdout"], "hello\n");
    // More files than can be shown: the answer is for no later call.
    for number in 0..40 {
        project.put(&format!("many/{number}.txt"), "x\n");
    }
    let names: Vec<String> = (0..40).map(|number| format!("many/{number}.txt")).collect();
    let line = format!("cat {}", names.join(" "));
    let shown = approve(&kernel, &command(&kernel, &line).await);
    assert!(shown["cut"].as_str().is_some_and(|cut| cut.contains("this call only")), "{shown}");
    assert_eq!(code(&command(&kernel, &line).await), "EAPPROVAL");
    kernel.shutdown().await;
}
