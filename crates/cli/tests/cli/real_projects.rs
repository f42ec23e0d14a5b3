//! Work of every day on six sample projects, by an agent and without a workaround: a bug that an existing test shows, a
//! feature, a refactoring with a rename, a commit, and all of it undone.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent::{call, events, results, say, script, state};
use crate::packages::{RULES, reaches, run};
use crate::packages_cargo::{cargo_home, reaches_index};
use crate::project::Project;

/// Names the folder with the runners that `cargo xtask test` installs.
const RUNNERS: &str = "TGP_TEST_RUNNERS";

/// One sample project, and what an agent changes in it.
struct Sample {
    /// Its folder in `projects`.
    name: &'static str,
    /// The file with the fault, and the change that corrects it.
    fault: (&'static str, &'static str, &'static str),
    /// A new test, and the code for it.
    test: (&'static str, &'static str),
    code: (&'static str, &'static str),
    /// A module that is moved, and the file that names it, if one does.
    moved: (&'static str, &'static str),
    names_it: Option<(&'static str, &'static str, &'static str)>,
    /// A package that is added: the manager and arguments that find its index, and the arguments of the call.
    dependency: Option<(&'static str, &'static [&'static str], &'static str)>,
    /// What has to be installed, of the folder of runners, and where it goes.
    packages: Option<(&'static str, &'static str)>,
}

fn projects() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/projects")
}

/// One session that plays `turns`, in which every call has to succeed. Gives its id.
fn session(project: &Project, name: &str, task: &str, turns: &[Vec<Value>]) -> String {
    let provider = script(project, "tmp/model.json", turns);
    let ran = run(project, &["--json", task, "--provider", &provider, "--yes"]);
    assert_eq!(ran.code, Some(0), "{name}: {task}: {ran:?}");
    let events = events(&ran.stdout);
    for (tool, verdict, code) in results(&events) {
        let is_done = matches!(verdict.as_str(), "approved" | "allowed") && code.is_empty();
        assert!(is_done, "{name}: {task}: {tool} {verdict} {code}: {}", ran.stdout);
    }
    let began = events.iter().find(|event| event["type"] == "session");
    let id = began.and_then(|event| event["id"].as_str());
    id.unwrap_or_else(|| panic!("no session: {}", ran.stdout)).to_owned()
}

fn edit((path, search, replace): (&str, &str, &str)) -> Value {
    call("fs_edit", json!({ "path": path, "search": search, "replace": replace }))
}

fn write((path, content): (&str, &str)) -> Value {
    call("fs_write", json!({ "path": path, "content": content }))
}

fn tests() -> Value {
    call("test_run", json!({}))
}

/// The files of the sample that git knows, with their content.
fn tracked(project: &Project) -> Vec<(String, String)> {
    let names = project.shell("git ls-files").expect_code(0).stdout;
    names
        .lines()
        .filter_map(|name| Some((name.to_owned(), std::fs::read_to_string(project.file(name)).ok()?)))
        .collect()
}

fn every_day(sample: &Sample) {
    let name = sample.name;
    if !tgp::sandbox::process_support().complete() {
        println!("skipped: {name} (commands cannot be jailed here)");
        return;
    }
    let project = Project::empty();
    let copied = |from: &Path, to: &Path| {
        std::fs::create_dir_all(to).unwrap();
        let (from, to) = (from.display().to_string(), to.display().to_string());
        project.shell(&format!("cp -r '{from}/.' '{to}'")).expect_code(0);
    };
    copied(&projects().join(name), &project.file(""));
    if let Some((from, to)) = sample.packages {
        let Some(runners) = std::env::var_os(RUNNERS).map(PathBuf::from) else {
            println!("skipped: {name} (`cargo xtask test` installs its runner)");
            return;
        };
        copied(&runners.join(from), &project.file(to));
    }
    let uses_cargo = sample.dependency.is_some_and(|(manager, ..)| manager == "cargo");
    if uses_cargo && !cargo_home(&project) {
        return;
    }
    project.run(&["init"]).expect_code(0);
    // A person has answered for the lists of packages, which `--yes` does not cover.
    project.write("tgp.policy.yaml", RULES);
    project
        .write(".gitignore", "/.tgp/\n/tmp/\nnode_modules/\n.venv/\ntarget/\n__pycache__/\n.pytest_cache/\n");
    project
        .shell("git init -q -b main . && git config user.name Ada && git config user.email ada@example.com")
        .expect_code(0);
    project.shell("git add -A && git commit -qm 'The shop'").expect_code(0);
    let before = tracked(&project);

    let repair = session(
        &project,
        name,
        "fix the failing test",
        &[vec![tests()], vec![edit(sample.fault)], vec![tests()], vec![say("It passes.")]],
    );
    assert_eq!(state(&project), "green", "{name}: repaired");
    let feature = session(
        &project,
        name,
        "add the label of a product",
        &[
            vec![write(sample.test)],
            vec![tests()],
            vec![write(sample.code)],
            vec![tests()],
            vec![call("git_status", json!({})), call("git_diff", json!({}))],
            vec![say("Done.")],
        ],
    );
    assert_eq!(state(&project), "green", "{name}: feature");
    let (from, to) = sample.moved;
    let folder = Path::new(to).parent().unwrap().display();
    let mv = call("shell_exec", json!({ "command": format!("mkdir -p ./{folder} && mv {from} {to}") }));
    let mut turns = vec![vec![tests()], vec![mv]];
    turns.extend(sample.names_it.map(|change| vec![edit(change)]));
    turns.extend([vec![tests()], vec![say("Moved.")]]);
    let refactoring = session(&project, name, "rename the module of helpers", &turns);
    assert_eq!(state(&project), "green", "{name}: renamed");
    assert!(project.file(to).is_file() && !project.file(from).exists(), "{name}");

    let with_index = sample.dependency.filter(|(manager, arguments, _)| match *manager {
        "cargo" => reaches_index(),
        manager => reaches(manager, arguments),
    });
    let dependency = with_index.map(|(_, _, wanted)| {
        let wanted: Value = serde_json::from_str(wanted).unwrap();
        let install = vec![call("package_install", wanted)];
        let id = session(&project, name, "add a package", &[install, vec![tests()], vec![say("Added.")]]);
        assert_eq!(state(&project), "green", "{name}: package added");
        id
    });

    session(
        &project,
        name,
        "commit the work",
        &[
            vec![call("git_commit", json!({ "message": "Label products", "branch": "agent/label" }))],
            vec![call("git_log", json!({ "from": "agent/label" }))],
            vec![say("Committed.")],
        ],
    );
    let log = project.shell("git log --format=%s agent/label").expect_code(0);
    assert_eq!(log.stdout, "Label products\nThe shop\n", "{name}");
    let listed = project.shell("git ls-tree -r --name-only agent/label").expect_code(0).stdout;
    assert!(listed.lines().any(|file| file == to) && !listed.contains(".tgp"), "{name}: {listed}");

    for id in dependency.iter().chain([&refactoring, &feature, &repair]) {
        run(&project, &["undo", id]).expect_code(0);
    }
    let undone: Vec<(String, String)> =
        before.iter().map(|(file, _)| (file.clone(), project.read(file))).collect();
    assert_eq!(undone, before, "{name}: undone");
    assert!(!project.file(sample.test.0).exists() && !project.file(to).exists(), "{name}");
    project.run(&["audit", "verify"]).expect_code(0);
}

const TYPESCRIPT_FAULT: (&str, &str, &str) = ("src/slug.ts", "replace(' ', '-')", "replaceAll(' ', '-')");

#[test]
fn vitest() {
    every_day(&Sample {
        name: "vitest",
        fault: TYPESCRIPT_FAULT,
        test: (
            "test/label.test.ts",
            "import { expect, test } from 'vitest';\nimport { label } from '../src/label.ts';\n\ntest('marks a slug', () => expect(label('Ink')).toBe('#ink'));\n",
        ),
        code: (
            "src/label.ts",
            "import { slug } from './slug.ts';\n\nexport function label(title: string): string {\n  return `#${slug(title)}`;\n}\n",
        ),
        moved: ("src/util.ts", "src/money/cents.ts"),
        names_it: Some(("src/slug.ts", "'./util.ts'", "'./money/cents.ts'")),
        dependency: Some((
            "npm",
            &["view", "left-pad@1.3.0", "version"],
            r#"{"packages": ["left-pad@1.3.0"]}"#,
        )),
        packages: Some(("vitest/node_modules", "node_modules")),
    });
}

#[test]
fn jest_with_typescript() {
    every_day(&Sample {
        name: "jest",
        fault: TYPESCRIPT_FAULT,
        test: (
            "test/label.test.ts",
            "import { label } from '../src/label';\n\ntest('marks a slug', () => expect(label('Ink')).toBe('#ink'));\n",
        ),
        code: (
            "src/label.ts",
            "import { slug } from './slug';\n\nexport function label(title: string): string {\n  return `#${slug(title)}`;\n}\n",
        ),
        moved: ("src/util.ts", "src/money/cents.ts"),
        names_it: Some(("src/slug.ts", "'./util'", "'./money/cents'")),
        dependency: Some((
            "npm",
            &["view", "left-pad@1.3.0", "version"],
            r#"{"packages": ["left-pad@1.3.0"]}"#,
        )),
        packages: Some(("jest/node_modules", "node_modules")),
    });
}

#[test]
fn pytest_in_an_environment_of_the_project() {
    every_day(&Sample {
        name: "pytest",
        fault: ("shop/slug.py", "replace(\" \", \"-\", 1)", "replace(\" \", \"-\")"),
        test: (
            "tests/test_label.py",
            "from shop.label import label\n\n\ndef test_marks_a_slug():\n    assert label(\"Ink\") == \"#ink\"\n",
        ),
        code: (
            "shop/label.py",
            "from shop.slug import slug\n\n\ndef label(title: str) -> str:\n    return f\"#{slug(title)}\"\n",
        ),
        moved: ("shop/util.py", "shop/money.py"),
        names_it: Some(("shop/slug.py", "shop.util", "shop.money")),
        dependency: Some((
            "python3",
            &["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "six==1.17.0"],
            r#"{"manager": "pip", "packages": ["six==1.17.0"]}"#,
        )),
        packages: Some(("venv", ".venv")),
    });
}

#[test]
fn cargo_workspace() {
    every_day(&Sample {
        name: "cargo",
        fault: ("crates/core/src/lib.rs", "replacen(' ', \"-\", 1)", "replace(' ', \"-\")"),
        test: (
            "crates/app/tests/tag.rs",
            "#[test]\nfn tags_a_slug() {\n    assert_eq!(shop_app::tag(\"Ink\"), \"<ink>\");\n}\n",
        ),
        code: (
            "crates/app/src/lib.rs",
            "//! The application.\n\npub fn label(title: &str) -> String {\n    format!(\"#{}\", shop_core::slug(title))\n}\n\npub fn tag(title: &str) -> String {\n    format!(\"<{}>\", shop_core::slug(title))\n}\n",
        ),
        moved: ("crates/core/src/util.rs", "crates/core/src/money.rs"),
        names_it: Some(("crates/core/src/lib.rs", "mod util;", "mod money;\nuse money as util;")),
        dependency: Some((
            "cargo",
            &[],
            r#"{"manager": "cargo", "packages": ["itoa@=1.0.15"], "directory": "crates/core"}"#,
        )),
        packages: None,
    });
}

#[test]
fn go_module() {
    if std::process::Command::new("go").arg("version").output().is_err() {
        println!("skipped: go is not installed");
        return;
    }
    every_day(&Sample {
        name: "go",
        fault: ("slug.go", "\"-\", 1)", "\"-\", -1)"),
        test: (
            "label_test.go",
            "package shop\n\nimport \"testing\"\n\nfunc TestMarksASlug(t *testing.T) {\n\tif got := Label(\"Ink\"); got != \"#ink\" {\n\t\tt.Fatal(got)\n\t}\n}\n",
        ),
        code: (
            "label.go",
            "package shop\n\nfunc Label(title string) string {\n\treturn \"#\" + Slug(title)\n}\n",
        ),
        moved: ("util.go", "money.go"),
        names_it: None,
        dependency: None,
        packages: None,
    });
}

#[test]
fn rust_and_javascript_together() {
    every_day(&Sample {
        name: "mixed",
        fault: ("web/src/slug.js", "replace(' ', '-')", "replaceAll(' ', '-')"),
        test: (
            "web/test/label.test.js",
            "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { label } from '../src/label.js';\n\ntest('marks a slug', () => assert.equal(label('Ink'), '#ink'));\n",
        ),
        code: (
            "web/src/label.js",
            "import { slug } from './slug.js';\n\nexport function label(title) {\n  return `#${slug(title)}`;\n}\n",
        ),
        moved: ("web/src/util.js", "web/src/money/cents.js"),
        names_it: Some(("web/src/slug.js", "'./util.js'", "'./money/cents.js'")),
        dependency: Some((
            "cargo",
            &[],
            r#"{"manager": "cargo", "packages": ["itoa@=1.0.15"], "dev": true}"#,
        )),
        packages: None,
    });
}
