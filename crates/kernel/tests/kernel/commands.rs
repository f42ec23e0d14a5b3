//! `shell_exec`: what a command may do to the project, and what becomes of what it did.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp::contract::{
    CallContext, CallRecord, Consent, Database, SqlAccess, SqlRows, SqlStatement, SqlTransaction, TddMode,
    ToolError, ToolResult,
};
use tgp::{BootOptions, Kernel};
use tokio::sync::Semaphore;

use crate::approval::{Asked, boot};
use crate::router::{call, context};
use crate::support::{Project, Records, code, data, error};

/// False on a machine whose jail lacks a part; then it says so.
fn possible() -> bool {
    let support = tgp::sandbox::process_support();
    if !support.complete() {
        println!("commands cannot run here, skipped: {}", support.missing.join(" "));
    }
    support.complete()
}

async fn shell(kernel: &Kernel, command: &str) -> ToolResult {
    kernel.call("shell_exec", json!({ "command": command })).await
}

fn paths(answer: &ToolResult) -> Vec<(String, String)> {
    data(answer)["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            (
                change["path"].as_str().unwrap().to_owned(),
                change["change"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn pair(path: &str, change: &str) -> (String, String) {
    (path.to_owned(), change.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commands_changes_are_applied_together_when_it_succeeds() {
    if !possible() {
        return;
    }
    let project = Project::new();
    project.put("docs/old.md", "old").put("docs/gone.md", "gone").put("run.sh", "#!/bin/sh\necho hello\n");
    let kernel = project.boot().await.unwrap();
    let answer = shell(
        &kernel,
        "cat docs/old.md; echo new > docs/old.md; echo made > docs/made.md; rm docs/gone.md; mkdir -p empty/inside; chmod +x run.sh",
    )
    .await;
    assert_eq!(data(&answer)["exitCode"], 0, "{answer:?}");
    assert_eq!(data(&answer)["stdout"], "old");
    assert_eq!(
        paths(&answer),
        [
            pair("docs/gone.md", "deleted"),
            pair("docs/made.md", "created"),
            pair("docs/old.md", "changed"),
            pair("run.sh", "changed"),
            pair("empty", "directory made"),
            pair("empty/inside", "directory made"),
        ]
    );
    assert_eq!(project.text("docs/old.md").as_deref(), Some("new\n"));
    assert_eq!(project.text("docs/made.md").as_deref(), Some("made\n"));
    assert!(!project.file("docs/gone.md").exists() && project.file("empty/inside").is_dir());
    assert_eq!(data(&shell(&kernel, "./run.sh").await)["stdout"], "hello\n", "it can be executed now");
    let failed = shell(&kernel, "echo half > docs/old.md; exit 3").await;
    assert_eq!((&data(&failed)["exitCode"], &data(&failed)["applied"]), (&json!(3), &json!(false)));
    assert_eq!(project.text("docs/old.md").as_deref(), Some("new\n"), "a command that fails leaves nothing");
    let kept = json!({ "command": "echo half > docs/old.md; exit 3", "keep_on_failure": true });
    assert_eq!(data(&kernel.call("shell_exec", kept).await)["applied"], true);
    assert_eq!(project.text("docs/old.md").as_deref(), Some("half\n"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_is_exact_and_changes_nothing() {
    if !possible() {
        return;
    }
    let project = Project::new();
    project.put("notes.md", "one\ntwo\n");
    let kernel = project.boot().await.unwrap();
    let dry = || CallContext { dry_run: true, ..context(Consent::Given) };
    let command = || call("shell_exec", json!({ "command": "sed -i s/two/2/ notes.md; echo x > more.md" }));
    let first = kernel.call_with(command(), dry()).await;
    let second = kernel.call_with(command(), dry()).await;
    assert_eq!(data(&first)["changes"], data(&second)["changes"], "the same every time");
    let diff = data(&first)["changes"][1]["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("-two\n") && diff.contains("+2\n"), "{diff}");
    assert_eq!(project.text("notes.md").as_deref(), Some("one\ntwo\n"));
    assert!(!project.file("more.md").exists());
    kernel.call_with(command(), context(Consent::Given)).await;
    assert_eq!(project.text("notes.md").as_deref(), Some("one\n2\n"), "the real run does what was shown");
    kernel.shutdown().await;
}

/// Whatever `fs_write` may not write, a command may not either, by whichever way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_cannot_write_what_fs_write_may_not() {
    if !possible() {
        return;
    }
    let project = Project::new();
    project.put("src/code.py", "x = 1\n").put("migrations/1.md", "-- one\n").put("notes.md", "n\n");
    project.put(".env", "KEY=treasure\n").put("tgp.policy.yaml", "version: 1\nrules:\n  - {id: no-migrations, effect: deny, tools: [fs_write, fs_delete], where: {path: 'migrations/**'}, reason: people write them}\n");
    let options = BootOptions { tdd_mode: Some(TddMode::Strict), ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    for (command, expected) in [
        ("echo x > src/code.py", "ESTATE"),
        ("echo x > src/new.py", "ESTATE"),
        ("python3 -c \"open('src/code.py','w').write('x')\"", "ESTATE"),
        ("cp notes.md src/code.py", "ESTATE"),
        ("mv notes.md src/other.py", "ESTATE"),
        ("echo x > notes.md; echo x >> src/code.py", "ESTATE"),
        ("echo x >> migrations/1.md", "EPOLICY"),
        ("rm migrations/1.md", "EPOLICY"),
        ("echo x > tgp.policy.yaml", "EPOLICY"),
        ("mkdir -p sub/.git/hooks", "EPOLICY"),
        ("mkdir docs; echo x > docs/key.pem", "ESECURITY"),
        ("ln -s /etc/passwd notes2.md", "ESECURITY"),
    ] {
        let answer = shell(&kernel, command).await;
        // Some of them fail inside the jail already; then nothing is applied either.
        match &answer {
            ToolResult::Done(data) => assert_ne!(data["exitCode"], 0, "`{command}`: {data}"),
            ToolResult::Failed(error) => assert_eq!(error.code.as_str(), expected, "`{command}`: {error}"),
        }
        assert_eq!(project.text("src/code.py").as_deref(), Some("x = 1\n"), "`{command}`");
        assert_eq!(project.text("migrations/1.md").as_deref(), Some("-- one\n"), "`{command}`");
        assert_eq!(project.text("notes.md").as_deref(), Some("n\n"), "`{command}`: all or nothing");
        assert!(!project.file("src/new.py").exists() && !project.file("sub").exists(), "`{command}`");
    }
    let answer = shell(&kernel, "cat .env .tgp/.state/* 2>/dev/null; ls -A .tgp").await;
    assert!(!format!("{answer:?}").contains("treasure"), "a secret was read: {answer:?}");
    assert!(shell(&kernel, "echo ok > notes.md").await.is_ok(), "an exempt file is free");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_tool_writes_output_and_nothing_that_is_protected() {
    let project = Project::new();
    project.put(
        "tgp.config.json",
        &json!({ "fs": { "allowedDirs": ["./src", "./docs", "./tmp"] }, "sandbox": { "cpuMs": 5000 } })
            .to_string(),
    );
    project.tool("writes.ts", "export default (args: any) => tgp.write_file(args.path, 'x');");
    let options = BootOptions { tdd_mode: Some(TddMode::Strict), ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    let run = async |path: &str| {
        kernel.call("exec_tool", json!({ "path": "tools/writes.ts", "args": { "path": path } })).await
    };
    // A person has made `src` a directory for output; `fs_write` of the agent needs its failing test there.
    assert!(run("src/code.py").await.is_ok());
    let direct = kernel.call("fs_write", json!({ "path": "src/other.py", "content": "x" })).await;
    assert_eq!(code(&direct), "ESTATE");
    assert_eq!(code(&run("docs/key.pem").await), "ESECURITY");
    let written = run("src/x.test.py").await;
    assert!(written.is_ok() && project.file("src/x.test.py").exists(), "a test may be written: {written:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changed_meanwhile_is_not_overwritten() {
    if !possible() {
        return;
    }
    let project = Project::new();
    project.put("notes.md", "old");
    let kernel = project.boot().await.unwrap();
    // The command reports through build output, which has no layer, that it has begun.
    std::fs::create_dir(project.file("target")).unwrap();
    let (command, interfere) = (
        kernel.call(
            "shell_exec",
            json!({ "command": "echo mine > notes.md; touch target/begun; sleep 1", "template": "build" }),
        ),
        async {
            while !project.file("target/begun").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            project.put("notes.md", "somebody else");
        },
    );
    let (answer, ()) = tokio::join!(command, interfere);
    assert_eq!(code(&answer), "ECONFLICT");
    assert!(error(&answer).help_of().is_some());
    assert_eq!(project.text("notes.md").as_deref(), Some("somebody else"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_output_and_network_are_bounded() {
    if !possible() {
        return;
    }
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let late = kernel
        .call(
            "shell_exec",
            json!({ "command": "setsid sleep 60 & echo x > late.md; sleep 60", "timeout_ms": 300 }),
        )
        .await;
    assert_eq!((&data(&late)["ended"], &data(&late)["applied"]), (&json!("deadline"), &json!(false)));
    assert!(!project.file("late.md").exists());
    let long = shell(&kernel, "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last").await;
    let text = data(&long)["stdout"].as_str().unwrap();
    assert!(
        text.len() < 1_000_000 && text.starts_with("first") && text.ends_with("last\n"),
        "{}",
        text.len()
    );
    assert!(data(&long)["stdoutBytes"]["omitted"].as_u64().unwrap() > 4_000_000);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\"");
    assert_ne!(data(&shell(&kernel, &connect).await)["exitCode"], 0, "there is no network");
    let refused = CallContext { dry_run: true, ..context(Consent::Given) };
    let wanted = call("shell_exec", json!({ "command": connect, "network": true }));
    assert_eq!(code(&kernel.call_with(wanted, refused).await), "EPERMISSION", "a dry run reaches nobody");
    kernel.shutdown().await;
}

/// Dropping the call's future ends every process of its command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_command_leaves_nothing() {
    if !possible() {
        return;
    }
    let project = Project::new();
    std::fs::create_dir(project.file("target")).unwrap();
    let kernel = project.boot().await.unwrap();
    let command =
        "echo x > left.md; touch target/begun; (setsid sh -c 'sleep 1; touch target/survived') & sleep 60";
    let call = kernel.call("shell_exec", json!({ "command": command, "template": "build" }));
    let begun = async {
        while !project.file("target/begun").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = call => panic!("it cannot have ended"),
        () = begun => {}
    }
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert!(!project.file("target/survived").exists(), "a process outlived its call");
    assert!(!project.file("left.md").exists());
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let last: Value = reader.tail(&tgp::audit::AuditFilter::default(), 1).unwrap().remove(0).body;
    assert_eq!((&last["tool"], &last["verdict"]), (&json!("shell_exec"), &json!("cancelled")));
    kernel.shutdown().await;
}

/// Waits for the one record of a call whose caller has gone.
async fn only_record(records: &Records) -> CallRecord {
    loop {
        let mut left = records.take();
        assert!(left.len() < 2, "{left:?}");
        if let Some(record) = left.pop() {
            return record;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A caller that leaves while the changes of a command are applied finds all of them in the project and in the
/// record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_caller_leaves_while_it_is_applied_is_recorded_with_its_files() {
    const FILES: usize = 200;
    if !possible() {
        return;
    }
    let project = Project::new();
    let records = Arc::new(Records::default());
    let options = BootOptions { recorder: Some(Arc::clone(&records) as _), ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    let there = || std::fs::read_dir(project.path()).unwrap().filter_map(Result::ok);
    let made = || there().filter(|entry| entry.file_name().to_string_lossy().ends_with(".md")).count();
    let command = format!("i=0; while [ $i -lt {FILES} ]; do echo x > f$i.md; i=$((i+1)); done");
    let call = kernel.call("shell_exec", json!({ "command": command }));
    let begun = async {
        while made() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = call => {}
        () = begun => {}
    }
    let record = only_record(&records).await;
    assert!(record.result.is_ok(), "{:?}", record.result);
    assert_eq!((record.files.len(), made()), (FILES, FILES));
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let last: Value = reader.tail(&tgp::audit::AuditFilter::default(), 1).unwrap().remove(0).body;
    assert_eq!((&last["tool"], &last["verdict"]), (&json!("shell_exec"), &json!("approved")));
    assert_eq!(last["outcome"]["ok"], true);
    kernel.shutdown().await;
}

/// A database whose commit takes until it is let go.
#[derive(Clone)]
struct Slow {
    committing: Arc<Semaphore>,
    go: Arc<Semaphore>,
}

#[async_trait]
impl Database for Slow {
    fn dialect(&self) -> &str {
        "slow"
    }

    async fn begin(&self, _access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl SqlTransaction for Slow {
    async fn execute(&mut self, _statement: &SqlStatement) -> Result<SqlRows, ToolError> {
        Ok(SqlRows { changed: 3, ..SqlRows::default() })
    }

    async fn mark(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    async fn keep(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    async fn undo(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), ToolError> {
        self.committing.add_permits(1);
        self.go.acquire().await.unwrap().forget();
        Ok(())
    }

    async fn rollback(self: Box<Self>) {}
}

/// The same for a run, whose files are in place while the database commits, and for a statement alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_caller_leaves_while_it_commits_is_recorded_with_files_and_rows() {
    let slow = Slow { committing: Arc::new(Semaphore::new(0)), go: Arc::new(Semaphore::new(0)) };
    let project = Project::new();
    project.tool(
        "both.ts",
        "export default async () => { await tgp.write_file('tmp/a.txt', 'new'); await tgp.exec_sql('x'); };",
    );
    project.tool("rows.ts", "export default () => tgp.exec_sql('x');");
    let records = Arc::new(Records::default());
    let options = BootOptions {
        recorder: Some(Arc::clone(&records) as _),
        database: Some(Arc::new(slow.clone())),
        ..project.options()
    };
    let kernel = Kernel::boot(options).await.unwrap();
    for (tool, arguments, files) in [
        ("exec_tool", json!({ "path": "tools/both.ts" }), 1),
        ("exec_tool", json!({ "path": "tools/rows.ts" }), 0),
        ("exec_sql", json!({ "sql": "x" }), 0),
    ] {
        let call = kernel.call(tool, arguments.clone());
        tokio::select! {
            answer = call => panic!("{tool} {arguments}: {answer:?}"),
            committing = slow.committing.acquire() => committing.unwrap().forget(),
        }
        let is_inner = |record: &CallRecord| record.context.depth > 0;
        let before = records.take();
        assert!(before.iter().all(is_inner), "{tool} {arguments}: {before:?}");
        slow.go.add_permits(1);
        let record = only_record(&records).await;
        assert!(record.result.is_ok(), "{tool} {arguments}: {:?}", record.result);
        assert_eq!((record.rows_changed, record.files.len()), (Some(3), files), "{tool} {arguments}");
    }
    assert_eq!(project.text("tmp/a.txt").as_deref(), Some("new"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_behind_the_tests_is_shown_and_bound() {
    let project = Project::new();
    let package = |script: &str| json!({ "scripts": { "pretest": "echo pre", "test": script } }).to_string();
    project.put("package.json", &package("./check.sh"));
    let file = project.file("package.json");
    let meanwhile = package("./evil.sh");
    let approver = Asked::new(move |before, _| {
        if before == 0 {
            std::fs::write(&file, &meanwhile).unwrap();
        }
        before == 0
    });
    let kernel = boot(&project, json!({}), &approver).await;
    let answer = kernel.call_with(call("test_run", json!({})), context(Consent::Ask)).await;
    assert_eq!(code(&answer), "EAPPROVAL", "{answer:?}");
    let shown = approver.take();
    assert_eq!(shown.len(), 2, "what it would run has changed: {shown:?}");
    for (shown, script) in shown.iter().zip(["./check.sh", "./evil.sh"]) {
        let preview = shown.preview();
        assert_eq!(preview["command"], "npm test --silent");
        assert_eq!(preview["scripts"], json!({ "pretest": "echo pre", "test": script }));
        assert_eq!(preview["found"][0]["path"], "package.json");
    }
    kernel.shutdown().await;
}
