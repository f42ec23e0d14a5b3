//! `test_run` on real runners: several languages, the project's own Python, and what survives a run.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tgp::contract::{TddMode, TddState, ToolResult};
use tgp::gates::Scope;
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, data, error};

/// False on a machine that lacks the jail or a program; then it says so.
fn possible(programs: &[&str]) -> bool {
    let support = tgp::sandbox::process_support();
    if !support.complete() {
        println!("skipped: commands cannot be jailed here ({})", support.missing.join(" "));
        return false;
    }
    for program in programs {
        // Where commands of these tests look for it.
        if !Path::new("/usr/bin").join(program).exists() {
            println!("skipped: {program} is not installed");
            return false;
        }
    }
    true
}

async fn strict(project: &Project, cache: Option<&Path>) -> Kernel {
    let options = BootOptions {
        tdd_mode: Some(TddMode::Strict),
        cache_directory: cache.map(Path::to_owned),
        ..project.options()
    };
    Kernel::boot(options).await.unwrap()
}

async fn test_run(kernel: &Kernel, args: Value) -> Value {
    data(&kernel.call("test_run", args).await).clone()
}

async fn write(kernel: &Kernel, path: &str, content: &str) -> ToolResult {
    kernel.call("fs_write", json!({ "path": path, "content": content })).await
}

async fn shell(kernel: &Kernel, command: &str) -> Value {
    data(&kernel.call("shell_exec", json!({ "command": command })).await).clone()
}

fn state(kernel: &Kernel) -> TddState {
    kernel.state().tdd().state(&Scope::Project).unwrap()
}

const PYTHON_TEST: &str = "import unittest\n\n\nclass Sum(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(1 + 2, 3)\n";
const NODE_TEST: &str = "const { test } = require('node:test');\nconst assert = require('node:assert');\nconst { slug } = require('./slug.js');\ntest('slug', () => assert.strictEqual(slug('A B'), 'a-b'));\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_test_of_the_second_language_becomes_red_and_then_green() {
    if !possible(&["python3", "node"]) {
        return;
    }
    let project = Project::new();
    project.put("tests/test_sum.py", PYTHON_TEST);
    project.put("web/package.json", r#"{ "scripts": { "test": "node --test" } }"#);
    let kernel = strict(&project, None).await;
    assert!(write(&kernel, "web/slug.test.js", NODE_TEST).await.is_ok());
    let run = test_run(&kernel, json!({})).await;
    assert_eq!(state(&kernel), TddState::Red, "{run}");
    assert_eq!(run["failing"][0]["file"], "web/slug.test.js", "{run}");
    let runners = run["runners"].as_array().unwrap();
    let numbers: Vec<(&str, &Value, &Value)> =
        runners.iter().map(|one| (one["folder"].as_str().unwrap(), &one["passed"], &one["failed"])).collect();
    assert_eq!(numbers, [("", &json!(1), &json!(0)), ("web", &json!(0), &json!(1))], "{run}");
    // One that passes does not speak for the other.
    let part = test_run(&kernel, json!({ "only": "tests/test_sum.py" })).await;
    assert_eq!(part["command"], "python3 -m unittest discover -s tests -p test_sum.py", "{part}");
    assert!(part.get("runners").is_none() && part["passed"] == 1, "{part}");
    let code_file = "exports.slug = (text) => text.toLowerCase().replace(' ', '-');\n";
    assert!(write(&kernel, "web/slug.js", code_file).await.is_ok());
    let part = test_run(&kernel, json!({ "only": "web/slug.test.js" })).await;
    assert_eq!(part["command"], "cd web && node --test --test-reporter=tap slug.test.js");
    assert_eq!((&part["passed"], state(&kernel)), (&json!(1), TddState::CodeAllowed), "{part}");
    let run = test_run(&kernel, json!({})).await;
    assert_eq!(
        (&run["passed"], &run["failed"], state(&kernel)),
        (&json!(2), &json!(0), TddState::Green),
        "{run}"
    );
    assert!(run["stdout"].as_str().unwrap().contains("$ cd web && node --test"), "{run}");
    let refused = kernel.call("test_run", json!({ "only": "src/lib.rs" })).await;
    assert_eq!(code(&refused), "ENOTFOUND");
    // Broken JavaScript is not green, whatever Python says.
    project.put("web/slug.test.js", "process.exit(3);\n");
    let run = test_run(&kernel, json!({})).await;
    assert_ne!(run["state"]["outcome"], "passed", "{run}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_tests_run_with_the_python_of_the_project_and_no_call_replaces_it() {
    if !possible(&["python3"]) {
        return;
    }
    let project = Project::new();
    let made = Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(project.path())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: python3 cannot make environments");
        return;
    }
    let test = PYTHON_TEST
        .replace("import unittest\n", "import sys\nimport unittest\n")
        .replace("1 + 2, 3", "sys.prefix[-6:], '/.venv'");
    project.put("tests/test_prefix.py", &test);
    let kernel = strict(&project, None).await;
    let run = test_run(&kernel, json!({})).await;
    assert!(run["command"].as_str().unwrap().starts_with(".venv/bin/python -m unittest"), "{run}");
    assert_eq!((&run["passed"], state(&kernel)), (&json!(1), TddState::Green), "{run}");
    kernel.shutdown().await;
    // Where no test is asked for either.
    let kernel = project.boot().await.unwrap();
    for path in [
        ".venv/bin/python",
        ".venv/lib/unittest.py",
        "venv/pyvenv.cfg",
        "api/.venv/pyvenv.cfg",
        "node_modules/.bin/vitest",
        "web/node_modules/.bin/vitest",
        "apps/web/node_modules/vitest/index.js",
    ] {
        assert_eq!(code(&write(&kernel, path, "echo 1 passed").await), "ESECURITY", "{path}");
        let folder = Path::new(path).parent().unwrap().display().to_string();
        let command = format!("mkdir -p {folder} && rm -f {path} && echo 1 passed > {path}");
        let answer = kernel.call("shell_exec", json!({ "command": command })).await;
        assert_eq!(code(&answer), "ESECURITY", "{path}: {answer:?}");
    }
    // Test data that looks like packages is deeper than any runner is looked for.
    assert!(write(&kernel, "tests/data/app/x/node_modules/a/index.js", "1").await.is_ok());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_environment_that_is_elsewhere_is_an_error_with_the_next_step() {
    let project = Project::new();
    project.put("pyproject.toml", "[tool.poetry]\nname = 'x'\n[tool.pytest.ini_options]\n");
    let kernel = strict(&project, None).await;
    let answer = kernel.call("test_run", json!({})).await;
    assert_eq!(code(&answer), "ECAPABILITY");
    let help = error(&answer).help_of().unwrap();
    assert!(help.contains("poetry config virtualenvs.in-project true"), "{help}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_tool_that_is_not_installed_fails_at_once_and_says_so() {
    if !possible(&["npx"]) {
        return;
    }
    let project = Project::new();
    let kernel = strict(&project, None).await;
    let answer = shell(&kernel, "npx prettier --version").await;
    // Not by its deadline.
    assert_eq!(answer["ended"], "exit", "{answer}");
    assert_ne!(answer["exitCode"], 0, "{answer}");
    assert!(answer["help"].as_str().is_some_and(|help| help.contains("not installed")), "{answer}");
    assert!(shell(&kernel, "false").await.get("help").is_none());
    kernel.shutdown().await;
}

/// The directories of caches below a cache directory: those of one runner each.
fn caches(cache: &Path) -> Vec<PathBuf> {
    let below =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = below(&cache.join("tests")).flat_map(|project| below(&project).collect::<Vec<_>>());
    folders.map(|folder| folder.join("data")).filter(|data| data.is_dir()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_survives_test_runs_with_the_same_key_and_no_other_command_sees_it() {
    if !possible(&[]) {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let project = Project::new();
    project.put("package.json", "{}");
    project.put("tests/all.sh", "echo run >> /tmp/cache/runs; wc -l < /tmp/cache/runs\n");
    project.put("tgp.config.json", &json!({ "tdd": { "command": "sh tests/all.sh" } }).to_string());
    let kernel = strict(&project, Some(cache.path())).await;
    let runs = async || test_run(&kernel, json!({})).await["stdout"].as_str().unwrap().trim().to_owned();
    assert_eq!((runs().await, runs().await), ("1".to_owned(), "2".to_owned()));
    let hidden = shell(
        &kernel,
        "ls -A /tmp/cache; cat /tmp/cache/runs; mkdir -p /tmp/cache && echo no > /tmp/cache/runs",
    )
    .await;
    assert_eq!(hidden["stdout"], "", "{hidden}");
    let by_name = shell(&kernel, &format!("ls {0} {0}/tests", cache.path().display())).await;
    assert_ne!(by_name["exitCode"], 0, "{by_name}");
    assert_eq!(runs().await, "3");
    // Other packages, another cache.
    project.put("package-lock.json", "{}");
    assert_eq!((runs().await, runs().await), ("1".to_owned(), "2".to_owned()));
    assert_eq!(caches(cache.path()).len(), 1);
    // A run without one works as well.
    std::fs::remove_dir_all(cache.path().join("tests")).unwrap();
    assert_eq!(runs().await, "1");
    kernel.shutdown().await;
    for folder in caches(cache.path()) {
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_of_go_cannot_write_what_later_runs_compile_from() {
    if !possible(&["go"]) {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let project = Project::new();
    project.put("go.mod", "module example.com/x\n\ngo 1.19\n");
    project.put(
        "sum_test.go",
        "package x\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestCache(t *testing.T) {\n\tif os.WriteFile(\"/tmp/cache/go/forged\", []byte(\"x\"), 0o600) == nil {\n\t\tt.Fatal(\"the cache can be written\")\n\t}\n\tfiles, _ := os.ReadDir(\"/tmp/cache/go\")\n\tif len(files) < 10 {\n\t\tt.Fatal(\"the cache is empty\")\n\t}\n}\n",
    );
    let kernel = strict(&project, Some(cache.path())).await;
    for _ in 0..2 {
        let run = test_run(&kernel, json!({})).await;
        assert_eq!((&run["passed"], &run["failed"]), (&json!(1), &json!(0)), "{run}");
        assert!(!run["stdout"].as_str().unwrap().contains("(cached)"), "{run}");
        assert_eq!(state(&kernel), TddState::Green, "{run}");
    }
    let data = caches(cache.path());
    assert_eq!(data.len(), 1);
    assert!(!data[0].join("go/forged").exists());
    kernel.shutdown().await;
}
