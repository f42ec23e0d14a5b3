//! Tools that outlive the process: committed, pushed, hydrated, found again.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp::contract::TddMode;
use tgp::trust::Trust;
use tgp::{BootOptions, Kernel};

use crate::support::{Project, WORKER, code, data, error, exec, result};

const HELLO: &str = "/** Greets somebody by name. */\nexport default (args: { name: string }): string => `hello ${args.name}`;\n";

/// A bare remote and folders that know it.
struct Hub {
    directory: TempDir,
}

impl Hub {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("tgp-test-").tempdir().unwrap();
        let hub = Self { directory };
        git(hub.path(), &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"]);
        hub
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn remote(&self) -> PathBuf {
        self.path().join("remote.git")
    }

    /// An empty project that knows nothing but the remote.
    fn agent(&self, name: &str, mut config: Value) -> PathBuf {
        let project = self.path().join(name);
        std::fs::create_dir_all(&project).unwrap();
        let git = config.as_object_mut().unwrap().entry("git").or_insert_with(|| json!({}));
        git["url"] = json!("../remote.git");
        git["auth"] = json!({ "user": "test agent", "email": "agent@example.com", "token": "s3cr3t-token" });
        std::fs::write(project.join("tgp.config.json"), config.to_string()).unwrap();
        project
    }

    async fn boot(&self, project: &Path) -> Kernel {
        Kernel::boot(options(project)).await.unwrap()
    }

    /// What a stranger sees: a new clone.
    fn clone(&self, name: &str) -> PathBuf {
        let url = format!("file://{}", self.remote().display());
        git(self.path(), &["clone", "--quiet", &url, name]);
        self.path().join(name)
    }

    fn log(&self) -> Vec<String> {
        git(&self.remote(), &["log", "--format=%an: %s", "main"]).lines().map(str::to_owned).collect()
    }
}

fn options(project: &Path) -> BootOptions {
    BootOptions {
        worker: Some(PathBuf::from(WORKER)),
        environment: std::sync::Arc::new(|name| std::env::var(name).ok()),
        tdd_mode: Some(TddMode::Explore),
        trust: Trust::Everything,
        ..BootOptions::new(project)
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

async fn write(kernel: &Kernel, path: &str, content: &str) -> Value {
    data(&kernel.call("write_file", json!({ "path": path, "content": content })).await).clone()
}

/// A tool with its own name and task, so that none is like another.
fn numbered(agent: usize, tool: usize) -> String {
    format!("/** Number {tool} of agent {agent}. */\nexport default (): number => {};\n", agent * 100 + tool)
}

/// Section 1 of the integration plan, first and second scenario.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integration_1_hydration_and_fabrication() {
    let hub = Hub::new();
    let person = hub.clone("person");
    std::fs::create_dir(person.join("tools")).unwrap();
    std::fs::write(person.join("tools/hello.ts"), HELLO).unwrap();
    git(&person, &["add", "."]);
    git(&person, &["commit", "--quiet", "-m", "A first tool"]);
    git(&person, &["push", "--quiet", "origin", "HEAD:main"]);

    let project = hub.agent("agent", json!({}));
    let kernel = hub.boot(&project).await;
    assert_eq!(kernel.notices(), [] as [String; 0]);
    assert_eq!(std::fs::read_to_string(project.join(".tgp/tools/hello.ts")).unwrap(), HELLO);
    let read = kernel.call("read_file", json!({ "path": "tools/hello.ts" })).await;
    assert!(data(&read).to_string().contains("Greets somebody"));
    assert_eq!(result(&exec(&kernel, "tools/hello.ts", json!({ "name": "Ann" })).await), json!("hello Ann"));

    let made = write(&kernel, "tools/new.ts", &numbered(0, 1)).await;
    assert_eq!((made["pushed"].clone(), made["created"].clone()), (json!(true), json!(true)), "{made}");
    let patch = json!({ "path": "tools/new.ts", "search": "Number 1", "replace": "Number one" });
    assert_eq!(data(&kernel.call("patch_file", patch).await)["pushed"], true);
    data(&kernel.call("sync", json!({})).await);
    assert_eq!(
        hub.log()[..3],
        ["test agent: Refactor: tools/new.ts", "test agent: Forge: tools/new.ts", "somebody: A first tool"]
    );
    assert_eq!(git(&project.join(".tgp"), &["status", "--porcelain"]), "", "the tree is clean for a person");
    let log = kernel.call("log", json!({ "path": "tools/new.ts" })).await;
    let subjects: Vec<&str> = data(&log)["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["Refactor: tools/new.ts", "Forge: tools/new.ts"]);
    kernel.shutdown().await;

    let next = hub.clone("next");
    assert!(std::fs::read_to_string(next.join("tools/new.ts")).unwrap().contains("Number one"));
    for text in [
        git(&hub.remote(), &["log", "-p", "main"]),
        std::fs::read_to_string(project.join(".tgp/.git/config")).unwrap(),
    ] {
        assert!(!text.contains("s3cr3t"), "the token is on the disk");
    }
}

/// Section 1, third scenario, and eight kernels instead of two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integration_1_eight_kernels_forge_25_tools_each_at_once() {
    let hub = Hub::new();
    let mut kernels = Vec::new();
    for agent in 0..8 {
        // Their tools are as like each other as numbers are.
        let config = json!({ "sandbox": { "pool": 1 }, "registry": { "onDuplicate": "warn" } });
        let project = hub.agent(&format!("agent{agent}"), config);
        kernels.push(hub.boot(&project).await);
    }
    let work = kernels.iter().enumerate().map(|(agent, kernel)| async move {
        for tool in 0..25 {
            let path = format!("tools/agent{agent}/tool{tool}.ts");
            let answer =
                kernel.call("write_file", json!({ "path": path, "content": numbered(agent, tool) })).await;
            let made = data(&answer);
            assert!(made["pushed"] == true || made["why"].is_string(), "{made}");
        }
        let synced = kernel.call("sync", json!({})).await;
        assert!(data(&synced).get("why").is_none(), "{:?}", data(&synced));
    });
    futures_util::future::join_all(work).await;
    let stranger = hub.clone("stranger");
    for agent in 0..8 {
        for tool in 0..25 {
            let text = std::fs::read_to_string(stranger.join(format!("tools/agent{agent}/tool{tool}.ts")));
            assert_eq!(text.unwrap_or_default(), numbered(agent, tool), "agent {agent}, tool {tool}");
        }
    }
    // The index at the remote says exactly what a rebuild from its files says.
    let index = std::fs::read(stranger.join("meta.json")).unwrap();
    let index_text = String::from_utf8(index.clone()).unwrap();
    assert_eq!(index_text.matches("\"path\":\"tools/").count(), 200, "{index_text}");
    let fresh = hub.agent("fresh", json!({}));
    let kernel = hub.boot(&fresh).await;
    std::fs::remove_file(fresh.join(".tgp/meta.json")).unwrap();
    let found = kernel.call("search", json!({ "query": "number 7 of agent 3" })).await;
    assert!(data(&found)["warnings"][0].as_str().unwrap().contains("meta.json was missing"), "{found:?}");
    assert_eq!(std::fs::read(fresh.join(".tgp/meta.json")).unwrap(), index, "equal to a rebuild");
    kernel.shutdown().await;
    for kernel in kernels {
        kernel.shutdown().await;
    }
    // Every commit of every agent is there, once.
    let forged = hub.log().iter().filter(|line| line.contains("Forge: tools/agent")).count();
    assert_eq!(forged, 200);
    git(&hub.remote(), &["fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_tool_on_both_sides_is_a_conflict_that_loses_nothing() {
    let hub = Hub::new();
    let (one, other) = (hub.agent("one", json!({})), hub.agent("other", json!({})));
    let (first, second) = (hub.boot(&one).await, hub.boot(&other).await);
    write(&first, "tools/shared.ts", &numbered(1, 1)).await;
    let refused =
        second.call("write_file", json!({ "path": "tools/shared.ts", "content": numbered(2, 2) })).await;
    assert_eq!(code(&refused), "ECONFLICT");
    let details = &error(&refused).details;
    let branch = details["branch"].as_str().unwrap();
    assert!(error(&refused).message.contains(branch) && details["theirs"].is_string(), "{details:?}");
    let stands = second.call("read_file", json!({ "path": "tools/shared.ts" })).await;
    assert!(data(&stands).to_string().contains("Number 1 of agent 1"), "the remote's version stands");
    let ours = git(&other.join(".tgp"), &["show", &format!("{branch}:tools/shared.ts")]);
    assert_eq!(ours, numbered(2, 2), "ours is kept");
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offline_nothing_is_lost_and_sync_delivers_later() {
    let hub = Hub::new();
    let project = hub.agent("agent", json!({}));
    let kernel = hub.boot(&project).await;
    std::fs::rename(hub.remote(), hub.path().join("away.git")).unwrap();
    let made = write(&kernel, "tools/offline.ts", &numbered(1, 1)).await;
    assert_eq!(made["pushed"], false);
    assert!(!made["why"].as_str().unwrap().is_empty());
    let synced = kernel.call("sync", json!({})).await;
    assert!(data(&synced)["why"].is_string(), "{synced:?}");
    kernel.shutdown().await;
    let kernel = hub.boot(&project).await;
    assert!(kernel.offline().is_some(), "the start tells that the remote is away");
    assert!(kernel.repository().await.unwrap().unpushed > 0);
    std::fs::rename(hub.path().join("away.git"), hub.remote()).unwrap();
    let synced = kernel.call("sync", json!({})).await;
    assert!(data(&synced).get("why").is_none(), "{synced:?}");
    assert!(hub.log().contains(&"test agent: Forge: tools/offline.ts".to_owned()));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gatekeeper_mode_leaves_the_branch_alone() {
    let hub = Hub::new();
    let project = hub.agent("agent", json!({}));
    let kernel = hub.boot(&project).await;
    write(&kernel, "tools/first.ts", &numbered(1, 1)).await;
    kernel.shutdown().await;
    let before = hub.log();
    let gated = hub.agent("gated", json!({ "git": { "writeStrategy": "pr" } }));
    let kernel = hub.boot(&gated).await;
    let made = write(&kernel, "tools/math/add.ts", &numbered(2, 2)).await;
    let branch = made["branch"].as_str().unwrap();
    assert!(branch.starts_with("feat/"), "{made}");
    assert!(made["why"].as_str().unwrap().contains(branch), "it says what to do by hand: {made}");
    assert_eq!(hub.log(), before);
    let proposed = git(&hub.remote(), &["show", &format!("{branch}:tools/math/add.ts")]);
    assert_eq!(proposed, numbered(2, 2));
    assert_eq!(result(&exec(&kernel, "tools/math/add.ts", json!({})).await), json!(202), "it can be run");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_is_repaired_with_a_warning_and_written_by_nobody_else() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    write(&kernel, "tools/hello.ts", HELLO).await;
    let good = project.text(".tgp/meta.json").unwrap();
    assert!(good.contains("Greets somebody by name."));
    kernel.shutdown().await;
    for damage in ["", "{}", "not json", &good.replace("hello", "hullo"), &good[..good.len() / 2]] {
        project.put(".tgp/meta.json", damage);
        let kernel = project.kernel(json!({})).await;
        let found = kernel.call("search", json!({ "query": "greet a person" })).await;
        assert_eq!(data(&found)["results"][0]["path"], "tools/hello.ts", "{found:?}");
        assert_eq!(project.text(".tgp/meta.json").unwrap(), good, "{damage:?}");
        let read = serde_json::from_str::<Value>(damage).is_ok_and(|value| value.get("tools").is_some());
        assert!(
            read || data(&found)["warnings"][0].as_str().unwrap().contains("damaged"),
            "{damage:?}: {found:?}"
        );
        kernel.shutdown().await;
    }
    let kernel = project.kernel(json!({})).await;
    for tool in ["write_file", "patch_file"] {
        let call = json!({ "path": "meta.json", "content": "{}", "search": "a", "replace": "b" });
        let call = match tool {
            "write_file" => json!({ "path": call["path"], "content": call["content"] }),
            _ => json!({ "path": call["path"], "search": "a", "replace": "b" }),
        };
        assert_eq!(code(&kernel.call(tool, call).await), "EPERMISSION", "{tool}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tool_is_told_what_does_the_same() {
    const CSV: &str = "/** Converts an array of objects to CSV text with a header row. */\nexport default (args: { rows: Record<string, string>[] }): string => Object.keys(args.rows[0] ?? {}).join(',');\n";
    let project = Project::new();
    let kernel = project.kernel(json!({ "registry": { "onDuplicate": "warn" } })).await;
    write(&kernel, "tools/to_csv.ts", CSV).await;
    let made = write(&kernel, "tools/hello.ts", HELLO).await;
    assert_eq!(made.get("similar"), None, "{made}");
    let twin = "/** Converts a list of objects to CSV text with a header row. */\nexport default (args: { items: object[] }): string => String(args.items.length);\n";
    let made = write(&kernel, "tools/csv_export.ts", twin).await;
    assert_eq!(made["similar"][0]["path"], "tools/to_csv.ts", "{made}");
    assert!(made["similar"][0]["score"].as_f64().unwrap() >= 0.85);
    kernel.shutdown().await;
    // The same source under another name is the same tool; refusing leaves nothing.
    let kernel = project.kernel(json!({ "registry": { "onDuplicate": "refuse" } })).await;
    let refused = kernel.call("write_file", json!({ "path": "tools/export/csv.ts", "content": CSV })).await;
    assert_eq!(code(&refused), "EPOLICY");
    assert!(error(&refused).message.contains("tools/to_csv.ts"), "{}", error(&refused).message);
    assert!(!project.file(".tgp/tools/export/csv.ts").exists());
    let other = "/** The area of a circle. */\nexport default (args: { radius: number }): number => Math.PI * args.radius ** 2;\n";
    write(&kernel, "tools/circle.ts", other).await;
    kernel.shutdown().await;
}

/// A repository that git cannot read any more takes nothing with it: the tools are there and run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_damaged_repository_keeps_no_tool_from_running() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    write(&kernel, "tools/hello.ts", HELLO).await;
    kernel.shutdown().await;
    project.put(".tgp/.git/config", "this is [no configuration");
    let kernel = project.kernel(json!({})).await;
    assert!(kernel.notices()[0].contains("not written"), "{:?}", kernel.notices());
    assert_eq!(result(&exec(&kernel, "tools/hello.ts", json!({ "name": "Ann" })).await), json!("hello Ann"));
    let found = kernel.call("search", json!({ "query": "greet somebody by name" })).await;
    assert_eq!(data(&found)["results"][0]["path"], "tools/hello.ts");
    data(&kernel.call("exec_sql", json!({ "sql": "SELECT 1 AS one" })).await);
    let refused = kernel.call("write_file", json!({ "path": "tools/new.ts", "content": "1" })).await;
    assert_eq!(code(&refused), "EGIT");
    assert!(!project.file(".tgp/tools/new.ts").exists());
    kernel.shutdown().await;
}

/// Of many that write one new file at once, one creates it; a writer that saw another version gets an error and
/// overwrites nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_write_never_overwrites_what_its_writer_has_not_seen() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let writes = (0..8).map(|number| {
        kernel.call("write_file", json!({ "path": "tools/one.ts", "content": numbered(number, number) }))
    });
    let answers = futures_util::future::join_all(writes).await;
    let done: Vec<&Value> = answers.iter().filter(|answer| answer.is_ok()).map(data).collect();
    assert_eq!(done.iter().filter(|made| made["created"] == true).count(), 1, "{answers:?}");
    for refused in answers.iter().filter(|answer| !answer.is_ok()) {
        assert_eq!(code(refused), "ECONFLICT");
    }
    let log = kernel.call("log", json!({ "path": "tools/one.ts" })).await;
    assert_eq!(
        data(&log)["versions"].as_array().unwrap().len(),
        done.len(),
        "a commit for each that was told so"
    );
    kernel.shutdown().await;
}
