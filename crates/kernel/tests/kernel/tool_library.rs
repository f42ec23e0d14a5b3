//! The library of tools with a remote: what a write and a search cost, and that they know what others pushed.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tempfile::TempDir;
use tgp::contract::{Change, CommitVote, Consent, Entry, FileSystem, FsError, RelativePath, Visibility};
use tgp_fs::DiskFs;
use tgp_router::Router;
use tgp_tool_runtime::ToolLibrary;

use crate::router::{Agreeable, call, context, tools_with_remote};
use crate::support::{Project, Records, data};

/// Tools that are there from the beginning: far more than one change has.
const TOOLS: usize = 40;

/// The files of the tools, and how many were read through it.
struct Counted {
    files: DiskFs,
    reads: AtomicUsize,
}

impl FileSystem for Counted {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.files.read(path)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        self.files.entry(path)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        self.files.list(directory)
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        self.files.apply_if(changes, last_word)
    }
}

struct Fixture {
    hub: TempDir,
    project: Project,
    router: Arc<Router>,
    library: Arc<ToolLibrary>,
    counted: Arc<Counted>,
    files: Arc<dyn FileSystem>,
}

impl Fixture {
    /// A library whose remote has `TOOLS` tools, and which has seen them all.
    async fn new() -> Self {
        let hub = tempfile::Builder::new().prefix("tgp-test-").tempdir().unwrap();
        git(hub.path(), &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"]);
        git(hub.path(), &["clone", "--quiet", "remote.git", "person"]);
        for number in 0..TOOLS {
            put(hub.path(), &format!("old{number}"), &format!("old job{number}"));
        }
        push(hub.path(), &["--force"]);
        let project = Project::new();
        let (tools, workspace, library) =
            tools_with_remote(&project, Some(&hub.path().join("remote.git"))).await;
        let records = Arc::new(Records::default());
        let approver = Arc::new(Agreeable::default());
        let router = Arc::new(Router::new(tools, Vec::new(), approver, records as _, workspace).unwrap());
        let files = DiskFs::open(&project.file(".tgp")).unwrap();
        let counted = Arc::new(Counted { files, reads: AtomicUsize::new(0) });
        let files = Arc::clone(&counted) as Arc<dyn FileSystem>;
        let fixture = Self { hub, project, router, library, counted, files };
        assert!(fixture.finds("old7", "old job7").await);
        assert!(fixture.reads() >= TOOLS, "the first look is at all");
        fixture
    }

    /// Files that were read since the last question.
    fn reads(&self) -> usize {
        self.counted.reads.swap(0, Ordering::Relaxed)
    }

    async fn write(&self, name: &str, job: &str) {
        let path = format!("tools/{name}.ts");
        let arguments = json!({ "path": path, "content": source(job) });
        let answer = self.router.call(call("write_file", arguments), context(Consent::Given)).await;
        assert_eq!(data(&answer)["pushed"], true, "{answer:?}");
    }

    /// Whether the tool is the best one for its job.
    async fn finds(&self, name: &str, job: &str) -> bool {
        let query = format!("Does the {job}");
        let (found, warnings) =
            self.library.search(&self.files, &query, 50, &Visibility::everything()).await.unwrap();
        assert_eq!(warnings, [] as [String; 0]);
        let best = found.results.first();
        best.is_some_and(|hit| {
            hit.path.as_str() == format!("tools/{name}.ts")
                && hit.description.contains(&format!("Does the {job}."))
        })
    }

    /// The index knows exactly what is there, and `meta.json` says the same.
    async fn assert_complete(&self) {
        let root = self.project.file(".tgp");
        let index: serde_json::Value =
            serde_json::from_slice(&std::fs::read(root.join("meta.json")).unwrap()).unwrap();
        let text = index.to_string();
        let mut standing = 0;
        for file in std::fs::read_dir(root.join("tools")).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".ts") {
                continue;
            }
            assert!(text.contains(&format!("tools/{name}")), "{name} is not in meta.json");
            standing += 1;
        }
        assert_eq!(text.matches("\"hash\"").count(), standing, "{text}");
        assert_eq!(git(&root, &["status", "--porcelain", "--untracked-files=no"]), "");
    }
}

fn source(job: &str) -> String {
    format!("/** Does the {job}. */\nexport default (): string => '{job}';\n")
}

/// A person writes a tool in their clone.
fn put(hub: &Path, name: &str, job: &str) {
    std::fs::create_dir_all(hub.join("person/tools")).unwrap();
    std::fs::write(hub.join(format!("person/tools/{name}.ts")), source(job)).unwrap();
}

fn push(hub: &Path, options: &[&str]) {
    let person = hub.join("person");
    git(&person, &["add", "--all"]);
    git(&person, &["commit", "--quiet", "--message", "By hand"]);
    let mut arguments = vec!["push", "--quiet"];
    arguments.extend(options);
    arguments.extend(["origin", "HEAD:refs/heads/main"]);
    git(&person, &arguments);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_with_a_remote_every_write_had_all_tools_read_again() {
    let fixture = Fixture::new().await;
    for number in 0..3 {
        fixture.write(&format!("new{number}"), &format!("new chore{number}")).await;
        assert!(fixture.finds(&format!("new{number}"), &format!("new chore{number}")).await);
        // The tool and the index.
        let reads = fixture.reads();
        assert!(reads <= 4, "{reads} files were read for one that was written");
    }
    assert!(fixture.finds("old7", "old job7").await);
    assert_eq!(fixture.reads(), 0, "nothing has changed");
    fixture.assert_complete().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_push_between_two_writes_is_known() {
    let fixture = Fixture::new().await;
    fixture.write("first", "first errand").await;
    let hub = fixture.hub.path();
    git(&hub.join("person"), &["pull", "--quiet", "--rebase", "origin", "main"]);
    put(hub, "foreign", "foreign ballad");
    put(hub, "old1", "changed minuet");
    git(&hub.join("person"), &["mv", "tools/old2.ts", "tools/renamed.ts"]);
    git(&hub.join("person"), &["rm", "--quiet", "tools/old3.ts"]);
    push(hub, &[]);
    fixture.write("second", "second errand").await;
    fixture.reads();
    assert!(fixture.finds("second", "second errand").await);
    let reads = fixture.reads();
    assert!(reads <= 8, "{reads} files were read for five that differ");
    for (name, job) in [
        ("first", "first errand"),
        ("foreign", "foreign ballad"),
        ("old1", "changed minuet"),
        ("renamed", "old job2"),
        ("old4", "old job4"),
    ] {
        assert!(fixture.finds(name, job).await, "{name}");
    }
    for (name, job) in [("old3", "old job3"), ("old2", "old job2"), ("old1", "old job1")] {
        assert!(!fixture.finds(name, job).await, "{name}");
    }
    fixture.assert_complete().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewritten_remote_leaves_no_tool_behind_that_is_gone() {
    let fixture = Fixture::new().await;
    let hub = fixture.hub.path();
    let person = hub.join("person");
    git(&person, &["checkout", "--quiet", "--orphan", "anew"]);
    for number in 1..TOOLS {
        git(&person, &["rm", "--quiet", "--force", &format!("tools/old{number}.ts")]);
    }
    put(hub, "rewritten", "rewritten sonata");
    push(hub, &["--force"]);
    fixture.write("after", "after party").await;
    for (name, job) in [("after", "after party"), ("rewritten", "rewritten sonata"), ("old0", "old job0")] {
        assert!(fixture.finds(name, job).await, "{name}");
    }
    assert!(!fixture.finds("old7", "old job7").await);
    fixture.assert_complete().await;
}
