//! Paths that are deeper than the kernel writes and lists: the caller learns the path, the limit and what to do, and nothing
//! of its call is kept.

use serde_json::json;
use tgp::contract::ToolResult;

use crate::support::{Project, data, error};

/// Names below each other that a file or a directory may have.
const LIMIT: usize = 64;

fn directories(count: usize) -> String {
    vec!["d"; count].join("/")
}

fn is_refused(answer: &ToolResult, help: &str) {
    let error = error(answer);
    assert_eq!(error.code.as_str(), "EVALIDATION", "{error}");
    assert!(
        error.message.contains("deeper than 64 directories") && error.message.contains("d/d/d"),
        "{error}"
    );
    assert!(error.help_of().is_some_and(|text| text.contains(help)), "{:?}", error.details);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_command_that_leaves_a_path_too_deep_is_told_the_limit() {
    let support = tgp::sandbox::process_support();
    if !support.complete() {
        println!("commands cannot run here, skipped: {}", support.missing.join(" "));
        return;
    }
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let shell = async |command: String| kernel.call("shell_exec", json!({ "command": command })).await;
    let file = |count: usize| format!("mkdir -p {0} && echo x > {0}/f.md", directories(count));
    let leaves = [
        file(LIMIT),
        file(LIMIT + 1),
        file(200),
        // Directories without a file, and links.
        format!("mkdir -p {}", directories(LIMIT + 1)),
        format!("mkdir -p {}", directories(200)),
        format!("mkdir -p {0} && ln -s x {0}/link", directories(LIMIT)),
    ];
    for command in leaves {
        let answer = shell(format!("echo y > other.md; {command}")).await;
        is_refused(&answer, "nothing was applied");
        assert_eq!(
            error(&answer).details["path"].as_str().map(|path| path.split('/').count()),
            Some(LIMIT + 1)
        );
        assert!(!project.file("d").exists() && !project.file("other.md").exists(), "{command}");
    }
    assert!(shell(file(LIMIT - 1)).await.is_ok());
    assert!(project.file(&format!("{}/f.md", directories(LIMIT - 1))).exists());
    assert!(shell("mv d e".to_owned()).await.is_ok());
    // What is in the project already can be removed, however deep it is.
    for count in [LIMIT + 1, 200] {
        project.put(&format!("{}/f.md", directories(count)), "x");
        let answer = shell("rm -r d; ls -A".to_owned()).await;
        assert_eq!(data(&answer)["exitCode"], 0, "{answer:?}");
        assert!(!project.file("d").exists(), "{answer:?}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_writes_a_path_too_deep_is_told_the_limit() {
    let project = Project::new();
    project.tool(
        "deep.ts",
        "export default async (args: any) => { await tgp.write_file('tmp/other.md', 'y'); await tgp.write_file(args.path, 'x'); };",
    );
    let kernel = project.boot().await.unwrap();
    for count in [LIMIT, LIMIT + 1, 200] {
        let path = format!("tmp/{}/f.md", directories(count));
        let direct = kernel.call("fs_write", json!({ "path": path, "content": "x" })).await;
        is_refused(&direct, "fewer directories");
        let forged =
            kernel.call("exec_tool", json!({ "path": "tools/deep.ts", "args": { "path": path } })).await;
        is_refused(&forged, "correct the arguments");
        assert!(!project.file("tmp/d").exists() && !project.file("tmp/other.md").exists(), "{count}");
    }
    kernel.shutdown().await;
}
