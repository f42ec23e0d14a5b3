//! The happy path of the roadmap on real small projects: prompt, test file, failing run, code, passing run, done.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::agent::{call, events, results, say, script, state, summary};
use crate::project::{Project, Ran};

/// One language: the files a person has, and what the agent writes.
struct Language {
    name: &'static str,
    given: &'static [(&'static str, &'static str)],
    test: (&'static str, &'static str),
    code: (&'static str, &'static str),
    configuration: String,
}

/// Whether commands can run on this machine.
fn possible() -> bool {
    let support = tgp::sandbox::process_support();
    if !support.complete() {
        println!("skipped: commands cannot be jailed here ({})", support.missing.join(" "));
    }
    support.complete()
}

/// Toolchains live in the home of the user who runs the tests.
fn with_home(mut command: Command) -> Ran {
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
    command.output().unwrap().into()
}

fn happy_path(language: &Language, prepare: impl Fn(&Project)) {
    let project = Project::empty();
    for (path, text) in language.given {
        project.write(path, text);
    }
    prepare(&project);
    project.run(&["init"]).expect_code(0);
    project.write("tgp.config.ts", &language.configuration);
    project.trust();
    let write = |(path, content): (&str, &str)| call("fs_write", json!({ "path": path, "content": content }));
    let run = || call("test_run", json!({}));
    let provider = script(
        &project,
        "model.json",
        &[
            vec![say("I begin with the code."), write(language.code)],
            vec![say("The gate wants a test first."), write(language.test)],
            vec![say("It must fail."), run()],
            vec![say("Now the code."), write(language.code)],
            vec![run()],
            vec![say("The sum is there and tested.")],
        ],
    );
    let task = "write a function that adds two numbers";
    let ran = with_home(project.command(&["--json", task, "--provider", &provider, "--yes"]));
    let name = language.name;
    assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
    let events = events(&ran.stdout);
    let expected: Vec<(String, String, String)> = [
        ("fs_write", "denied", "ESTATE"),
        ("fs_write", "approved", ""),
        ("test_run", "approved", ""),
        ("fs_write", "approved", ""),
        ("test_run", "approved", ""),
    ]
    .map(|(tool, verdict, code)| (tool.to_owned(), verdict.to_owned(), code.to_owned()))
    .to_vec();
    assert_eq!(results(&events), expected, "{name}: {}", ran.stdout);
    let runs: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_result" && event["toolName"] == "test_run")
        .collect();
    assert_eq!(runs[0]["state"], "red", "{name}: {}", runs[0]);
    assert_eq!(runs[1]["state"], "green", "{name}: {}", runs[1]);
    assert_eq!(project.read(language.code.0), language.code.1);
    let summary = summary(&events);
    assert_eq!(summary["ending"]["kind"], "done", "{name}: {summary}");
    assert_eq!(summary["tests"]["runs"], 2, "{name}: {summary}");
    assert_eq!((&summary["tests"]["passed"], &summary["tests"]["failed"]), (&json!(1), &json!(0)), "{name}");
    let files: Vec<&str> =
        summary["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    let mut written = [language.code.0, language.test.0];
    written.sort_unstable();
    assert_eq!(files, written, "{name}");
    assert_eq!(state(&project), "green", "{name}");
    let replayed = project.run(&["replay"]).expect_code(0);
    assert!(replayed.stdout.contains("the same, byte for byte"), "{name}: {replayed:?}");
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn typescript_with_the_runner_of_node() {
    let Some(packages) = std::env::var_os("TGP_TEST_NODE_MODULES").map(PathBuf::from) else {
        println!("skipped: no npm packages (`cargo xtask test` installs them)");
        return;
    };
    if !possible() {
        return;
    }
    let language = Language {
        name: "TypeScript",
        given: &[(
            "package.json",
            "{ \"type\": \"module\", \"scripts\": { \"test\": \"node --import tsx --test test/sum.test.ts\" } }\n",
        )],
        test: (
            "test/sum.test.ts",
            "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { sum } from '../src/sum.ts';\n\ntest('adds two numbers', () => {\n  const result: number = sum(19, 23);\n  assert.equal(result, 42);\n});\n",
        ),
        code: ("src/sum.ts", "export function sum(a: number, b: number): number {\n  return a + b;\n}\n"),
        configuration: "export default {};\n".to_owned(),
    };
    happy_path(&language, |project| {
        let wanted = ["tsx", "esbuild", "@esbuild", "get-tsconfig", "resolve-pkg-maps"];
        for package in wanted {
            copy(&packages.join("node_modules").join(package), &project.file("node_modules").join(package));
        }
    });
}

#[test]
fn rust_with_cargo() {
    if !possible() {
        return;
    }
    let language = Language {
        name: "Rust",
        given: &[
            (
                "Cargo.toml",
                "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            ("src/lib.rs", "//! Sums.\n"),
        ],
        test: (
            "tests/sum.rs",
            "#[test]\nfn adds_two_numbers() {\n    assert_eq!(sums::sum(19, 23), 42);\n}\n",
        ),
        code: ("src/lib.rs", "//! Sums.\n\npub fn sum(a: i64, b: i64) -> i64 {\n    a + b\n}\n"),
        configuration: "export default {};\n".to_owned(),
    };
    happy_path(&language, |_| {});
}

#[test]
fn python_with_pytest() {
    let Some(python) = std::env::var("TGP_TEST_PYTEST").ok() else {
        println!("skipped: no pytest (`cargo xtask test` installs it)");
        return;
    };
    if !possible() {
        return;
    }
    let language = Language {
        name: "Python",
        given: &[(
            "pyproject.toml",
            "[project]\nname = \"sums\"\nversion = \"0.1.0\"\n\n[tool.pytest.ini_options]\npythonpath = [\".\"]\n",
        )],
        test: (
            "tests/test_sum.py",
            "from sums import add\n\n\ndef test_adds_two_numbers():\n    assert add(19, 23) == 42\n",
        ),
        code: ("sums.py", "def add(a: int, b: int) -> int:\n    return a + b\n"),
        configuration: format!("export default {{ tdd: {{ command: '{python} -m pytest -q' }} }};\n"),
    };
    happy_path(&language, |_| {});
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
