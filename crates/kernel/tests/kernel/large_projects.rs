//! Limits of scans and of change sets: one that is reached denies, and nothing is read before its size is known.

use serde_json::json;
use tgp::contract::ToolResult;
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, data, error, exec};

fn possible() -> bool {
    let complete = tgp::sandbox::process_support().complete();
    if !complete {
        println!("commands cannot run here, skipped");
    }
    complete
}

async fn shell(kernel: &Kernel, command: &str) -> ToolResult {
    kernel.call("shell_exec", json!({ "command": command })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_with_too_many_entries_runs_no_command_instead_of_hiding_nothing() {
    if !possible() {
        return;
    }
    let project = Project::new();
    project.put(".env", "SECRET=hunter2\n").put("z/.env", "SECRET=hunter2\n");
    for number in 0..1_100 {
        project.put(&format!("data/{number}"), "");
    }
    let kernel = project.kernel(json!({ "jail": { "projectEntries": 1000 } })).await;
    for tool in ["shell_exec", "test_run"] {
        let arguments =
            if tool == "shell_exec" { json!({ "command": "cat .env z/.env" }) } else { json!({}) };
        project.put("Cargo.toml", "[package]\nname = \"x\"\n");
        let refused = kernel.call(tool, arguments).await;
        assert_eq!(code(&refused), "ESECURITY", "{tool}: {refused:?}");
        assert!(error(&refused).message.contains("more than 1000"), "{refused:?}");
        assert!(
            error(&refused).details["help"].as_str().unwrap().contains("jail.projectEntries"),
            "{refused:?}"
        );
        assert!(!format!("{refused:?}").contains("hunter2"));
    }
    kernel.shutdown().await;
    let kernel = project.kernel(json!({ "jail": { "projectEntries": 5000 } })).await;
    let empty = shell(&kernel, "cat .env z/.env; echo end").await;
    assert_eq!(data(&empty)["stdout"], "end\n", "{empty:?}");
    kernel.shutdown().await;
}

/// What is hidden is found at any depth, in what git ignores too, and what cannot be read is hidden as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_files_are_found_in_every_place() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    if !possible() {
        return;
    }
    let project = Project::new();
    project
        .put(".gitignore", "/ignored\n")
        .put("ignored/a/b/c/d/.env", "hunter2")
        .put("x/server.pem", "hunter2");
    // A name that is longer than any path of ours when it is written as text.
    let mut odd = b".env.".to_vec();
    odd.resize(250, 0xff);
    std::fs::write(project.file("x").join(std::ffi::OsStr::from_bytes(&odd)), "hunter2").unwrap();
    project.put("locked/.env", "hunter2");
    std::fs::set_permissions(project.file("locked"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let kernel = project.boot().await.unwrap();
    let answer = shell(&kernel, "chmod -R u+rwx locked 2>/dev/null; cat ignored/a/b/c/d/.env x/* x/.* locked/* locked/.* 2>/dev/null; echo end").await;
    std::fs::set_permissions(project.file("locked"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!format!("{answer:?}").contains("hunter2"), "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_adds_only_so_many_files_whichever_way() {
    if !possible() {
        return;
    }
    let project = Project::new();
    project.put("tmp/keep", "").tool("many.ts", "export default async (a: { n: number }) => { for (let i = 0; i < a.n; i++) await tgp.write_file(`tmp/t${i}.txt`, ''); };\n");
    let kernel =
        project.kernel(json!({ "fs": { "allowedDirs": ["tmp"] }, "jail": { "sessionFiles": 10 } })).await;
    let write = async |path: &str| kernel.call("fs_write", json!({ "path": path, "content": "" })).await;
    // Four by a command, three by a tool for files (one with its two directories), three by a forged tool: the limit.
    data(&shell(&kernel, "mkdir d; touch d/1.md d/2.md d/3.md").await);
    data(&write("a/b/c.md").await);
    data(&exec(&kernel, "tools/many.ts", json!({ "n": 3 })).await);
    for (way, refused) in [
        ("fs_write", write("one-more.md").await),
        ("shell_exec", shell(&kernel, "touch one-more.md").await),
        ("exec_tool", exec(&kernel, "tools/many.ts", json!({ "n": 4 })).await),
    ] {
        assert_eq!(code(&refused), "ESECURITY", "{way}: {refused:?}");
        assert!(error(&refused).message.contains("jail.sessionFiles"), "{way}: {refused:?}");
    }
    assert!(!project.file("one-more.md").exists() && !project.file("tmp/t3.txt").exists());
    // Changing what is there adds nothing, and what is removed makes room.
    data(&shell(&kernel, "echo x > d/1.md").await);
    data(&shell(&kernel, "rm d/1.md").await);
    data(&write("one-more.md").await);
    assert_eq!(code(&write("two-more.md").await), "ESECURITY");
    kernel.shutdown().await;
    // Another kernel starts again.
    let kernel = Kernel::boot(BootOptions { ..project.options() }).await.unwrap();
    data(&kernel.call("fs_write", json!({ "path": "two-more.md", "content": "" })).await);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_set_is_refused_by_its_size_before_it_is_read() {
    if !possible() {
        return;
    }
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let large = shell(&kernel, "truncate -s 65M a.md; echo x > b.md").await;
    assert_eq!(code(&large), "EVALIDATION", "{large:?}");
    assert!(error(&large).message.contains("`a.md`"), "{large:?}");
    let many = shell(&kernel, "for i in 1 2 3 4; do truncate -s 40M f$i.md; done").await;
    assert_eq!(code(&many), "EVALIDATION", "{many:?}");
    assert!(error(&many).details["help"].as_str().unwrap().contains("jail.direct"), "{many:?}");
    assert!(
        !project.file("a.md").exists() && !project.file("b.md").exists() && !project.file("f1.md").exists()
    );
    // Length counts in the layer, holes included.
    let full = shell(&kernel, "for i in $(seq 100); do truncate -s 500M s$i.md; done; sleep 2").await;
    assert!(matches!(full, ToolResult::Failed(_)) || data(&full)["ended"] == "layer_full", "{full:?}");
    kernel.shutdown().await;
}
