//! Every way out of the jail that `crates/jail` knows, tried through `shell_exec` of a whole kernel: all fail, and all
//! are audited.

use std::path::{Path, PathBuf};

use serde_json::json;
use tgp::audit::AuditFilter;
use tgp::contract::{CallContext, Consent, TddMode};
use tgp::{BootOptions, Kernel};

use crate::router::{call, context};
use crate::support::Project;

const TABLE: &str = include_str!("../../../jail/tests/jail/escapes.txt");

/// One way out.
struct Row {
    name: String,
    needs: Vec<String>,
    script: String,
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in TABLE.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            let name = name.to_owned();
            rows.push(Row { name, needs: Vec::new(), script: String::new() });
            continue;
        }
        let Some(row) = rows.last_mut() else { continue };
        if let Some(more) = line.strip_prefix("#: ") {
            if let Some(programs) = more.strip_prefix("needs ") {
                row.needs.extend(programs.split_whitespace().map(str::to_owned));
            }
        } else {
            row.script.push_str(line);
            row.script.push('\n');
        }
    }
    rows
}

fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).exists()))
}

/// What must stay as it is, with what it holds.
struct Treasures(Vec<(PathBuf, Vec<u8>)>);

impl Treasures {
    fn bury(project: &Project, outside: &Path) -> Self {
        project.put("src/real", "real\n").put(".env", "KEY=treasure\n").put("deploy/id_rsa", "treasure\n");
        project
            .put(".git/config", "[core]\n")
            .put(".git/HEAD", "ref: refs/heads/main\n")
            .put("secrets/key", "plain\n");
        project.put(".tgp/policy.yaml", "mine\n").put(".tgp/policy/keep.yaml", "version: 1\nrules: []\n");
        std::fs::create_dir_all(project.file("target")).unwrap();
        std::fs::write(outside.join("secret"), "treasure\n").unwrap();
        let names = [
            "src/real",
            ".env",
            "deploy/id_rsa",
            ".git/config",
            ".git/HEAD",
            ".tgp/policy.yaml",
            ".tgp/policy/keep.yaml",
            "tgp.config.json",
            "tgp.policy.yaml",
        ];
        let paths = names.iter().map(|name| project.file(name)).chain([outside.join("secret")]);
        Self(paths.filter_map(|path| std::fs::read(&path).ok().map(|content| (path, content))).collect())
    }

    fn assert_untouched(&self, name: &str) {
        for (path, content) in &self.0 {
            let now = std::fs::read(path).ok();
            assert_eq!(now.as_ref(), Some(content), "`{name}` has changed {}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_known_way_out_fails_and_is_audited() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000 } }).to_string());
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: hands-off, effect: deny, tools: [fs_write, fs_delete], where: {path: 'src/**'}, reason: it is mine}\n",
    );
    let treasures = Treasures::bury(&project, outside.path());
    let kernel =
        Kernel::boot(BootOptions { tdd_mode: Some(TddMode::Strict), ..project.options() }).await.unwrap();
    // Where a kernel without a cache directory makes its layers.
    let scratch = std::env::temp_dir().join(format!("tgp-layers-{}", nix::unistd::geteuid()));
    let mut tried = 0;
    for row in rows() {
        if let Some(missing) = row.needs.iter().find(|program| !is_installed(program)) {
            println!("`{}` skipped: no {missing}", row.name);
            continue;
        }
        let script = row
            .script
            .replace("{project}", &project.path().display().to_string())
            .replace("{outside}", &outside.path().display().to_string())
            .replace("{scratch}", &scratch.display().to_string())
            .replace("{kernel_pid}", &std::process::id().to_string())
            .replace("{descriptor}", "9")
            .replace("{abstract}", "tgp-no-such-socket");
        let arguments = json!({ "command": script, "timeout_ms": 20_000, "keep_on_failure": true });
        let context = CallContext { session: "escapes".to_owned(), ..context(Consent::Given) };
        let answer = kernel.call_with(call("shell_exec", arguments), context).await;
        let told = format!("{answer:?}");
        assert!(
            !told.contains("treasure") && !told.contains("ESCAPED"),
            "`{}` got through: {told}",
            row.name
        );
        treasures.assert_untouched(&row.name);
        tried += 1;
    }
    // Whatever they started is gone by now; nothing may come later.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    treasures.assert_untouched("all of them together");
    assert!(tried >= 40, "only {tried} ways could be tried here");
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let entries = reader
        .tail(&AuditFilter { session: Some("escapes".to_owned()), ..AuditFilter::default() }, 1000)
        .unwrap();
    assert_eq!(entries.len(), tried, "one entry each");
    assert!(entries.iter().all(|entry| entry.body["tool"] == "shell_exec"));
    println!("{tried} ways tried");
    kernel.shutdown().await;
}
