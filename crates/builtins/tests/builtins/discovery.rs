//! Which runners a project has, what each is asked for, and what their runs mean together.

use std::collections::BTreeMap;

use tgp_builtins::testing::{
    CacheUse, CombinedRun, DiscoverError, MAX_FOLDERS, MAX_RUNNERS, Manifests, Runner, RunnerKind, RunnerRun,
    VisiblePrograms, combine, discover, nothing_selected, read_counts, select,
};

/// Files by path.
struct Files(BTreeMap<String, String>);

impl Files {
    fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}

impl Manifests for Files {
    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = self.0.keys().filter_map(|path| path.strip_prefix(prefix.as_str()));
        let mut names: Vec<String> = below.map(|rest| rest.split('/').next().unwrap().to_owned()).collect();
        names.dedup();
        names
    }
}

const CARGO: &str = "cargo test --offline --no-fail-fast --color=never";
const NODE: &str = "node --test --test-reporter=tap";
const VITEST: &str = "node_modules/.bin/vitest run --reporter=default";
const PYTEST: &str = "-m pytest -q -p no:cacheprovider";
const NODE_SCRIPT: &str = r#"{"scripts":{"test":"node --test"}}"#;
const VITEST_SCRIPT: &str = r#"{"scripts":{"test":"vitest run"}}"#;
const CONFIGURED: &str = "home = /usr/bin\n";

fn commands(files: &[(&str, &str)]) -> Vec<String> {
    let found = discover(None, &Files::of(files)).unwrap();
    found.iter().map(|runner| runner.shown_command(None)).collect()
}

#[test]
fn bug_a_project_of_several_languages_has_a_runner_for_each() {
    type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
    let table: &[Case] = &[
        (&[("Cargo.toml", "[package]"), ("package.json", NODE_SCRIPT)], &[CARGO, NODE]),
        (
            &[
                ("go.mod", "module x"),
                ("package.json", NODE_SCRIPT),
                ("pytest.ini", ""),
                ("Cargo.toml", "[package]"),
            ],
            &[CARGO, NODE, "python3 -m pytest -q -p no:cacheprovider", "go test -v ./..."],
        ),
        // A manifest without tests adds no runner beside another one.
        (&[("Cargo.toml", "[package]"), ("package.json", r#"{"private":true}"#)], &[CARGO]),
        (&[("Cargo.toml", "[package]"), ("pyproject.toml", "[tool.ruff]")], &[CARGO]),
        // A folder below the root, which its own runner runs in.
        (
            &[
                ("Cargo.toml", "[package]"),
                ("web/package.json", VITEST_SCRIPT),
                ("web/node_modules/vitest/package.json", "{}"),
            ],
            &[CARGO, "cd web && node_modules/.bin/vitest run --reporter=default"],
        ),
        // Its packages may be in a folder above.
        (
            &[
                ("package.json", r#"{"workspaces":["apps/*"]}"#),
                ("node_modules/vitest/package.json", "{}"),
                ("apps/web/package.json", VITEST_SCRIPT),
            ],
            &["cd apps/web && ../../node_modules/.bin/vitest run --reporter=default"],
        ),
        // A workspace is run by the runner of its root.
        (
            &[
                ("package.json", VITEST_SCRIPT),
                ("node_modules/vitest/package.json", "{}"),
                ("packages/a/package.json", NODE_SCRIPT),
                ("Cargo.toml", "[workspace]"),
                ("crates/a/Cargo.toml", "[package]"),
            ],
            &[CARGO, VITEST],
        ),
        (
            &[("b/go.mod", "module b"), ("a/package.json", NODE_SCRIPT), ("a/sub/package.json", NODE_SCRIPT)],
            &["cd a && node --test --test-reporter=tap", "cd b && go test -v ./..."],
        ),
        // Packages, examples, hidden and deep folders have manifests of others.
        (
            &[
                ("Cargo.toml", "[package]"),
                ("node_modules/a/package.json", NODE_SCRIPT),
                ("examples/a/package.json", NODE_SCRIPT),
                ("web/vendor/package.json", NODE_SCRIPT),
                (".cache/package.json", NODE_SCRIPT),
                ("a/b/c/package.json", NODE_SCRIPT),
            ],
            &[CARGO],
        ),
        // Packages that are not installed belong to an example or a template.
        (&[("Cargo.toml", "[package]"), ("web/package.json", VITEST_SCRIPT)], &[CARGO]),
        (&[("web/package.json", r#"{"scripts":{"test":"./check.sh"}}"#)], &["cd web && npm test --silent"]),
    ];
    for (files, expected) in table {
        assert_eq!(commands(files), *expected, "{files:?}");
    }
}

#[test]
fn a_runner_in_a_folder_is_distrusted_for_the_same_reasons() {
    for files in [
        &[
            ("web/package.json", r#"{"scripts":{"test":"tsc && vitest run"}}"#),
            ("web/node_modules/vitest/package.json", "{}"),
        ][..],
        // Renaming the runner does not take the tests out of the run where packages are installed.
        &[
            ("web/package.json", r#"{"scripts":{"test":"jest"}}"#),
            ("web/node_modules/vitest/package.json", "{}"),
        ],
        &[("a/Cargo.toml", "[package]"), (".cargo/config.toml", "[target.x]\nrunner = 'sh fake.sh'")],
        &[("a/pytest.ini", ""), ("a/pytest.py", "")],
    ] {
        let found = discover(None, &Files::of(files)).unwrap();
        assert_eq!(found.len(), 1, "{files:?}");
        assert!(found[0].distrusted().is_some(), "{files:?}");
    }
}

#[test]
fn too_many_runners_or_folders_are_not_half_of_them() {
    let many = |count: usize, name: &str| {
        let files = (0..count).map(|number| (format!("p{number}/{name}"), NODE_SCRIPT.to_owned()));
        Files(files.collect())
    };
    assert_eq!(discover(None, &many(MAX_RUNNERS, "package.json")).unwrap().len(), MAX_RUNNERS);
    assert_eq!(discover(None, &many(MAX_RUNNERS + 1, "package.json")), Err(DiscoverError::TooManyRunners));
    assert_eq!(discover(Some("make check"), &many(MAX_RUNNERS + 1, "package.json")).unwrap().len(), 1);
    assert_eq!(discover(None, &many(MAX_FOLDERS + 1, "readme")), Err(DiscoverError::TooManyFolders));
}

#[test]
fn bug_python_tests_run_with_the_interpreter_of_the_project() {
    let line = |program: &str| format!("{program} {PYTEST}");
    for (files, expected) in [
        (&[("pytest.ini", "")][..], line("python3")),
        (
            &[("pytest.ini", ""), (".venv/pyvenv.cfg", CONFIGURED), (".venv/bin/python", "")],
            line(".venv/bin/python"),
        ),
        (
            &[("pytest.ini", ""), ("venv/pyvenv.cfg", CONFIGURED), ("venv/bin/python", "")],
            line("venv/bin/python"),
        ),
        (
            &[
                ("pyproject.toml", "[tool.uv]\n[tool.pytest.ini_options]"),
                ("uv.lock", ""),
                (".venv/pyvenv.cfg", ""),
                (".venv/bin/python", ""),
            ],
            line(".venv/bin/python"),
        ),
        // A folder with only that name does not count as an environment.
        (&[("pytest.ini", ""), ("venv/bin/python", "")], line("python3")),
        (&[("pytest.ini", ""), (".venv/pyvenv.cfg", CONFIGURED)], line("python3")),
        // The environment of the root serves the folders below; `venv` below the root is a name like any other.
        (
            &[("api/pytest.ini", ""), (".venv/pyvenv.cfg", CONFIGURED), (".venv/bin/python", "")],
            format!("cd api && {}", line("../.venv/bin/python")),
        ),
        (
            &[("api/pytest.ini", ""), ("api/venv/pyvenv.cfg", CONFIGURED), ("api/venv/bin/python", "")],
            format!("cd api && {}", line("python3")),
        ),
        (
            &[
                ("tests/test_a.py", "import unittest"),
                (".venv/pyvenv.cfg", CONFIGURED),
                (".venv/bin/python", ""),
            ],
            ".venv/bin/python -m unittest discover -s tests".to_owned(),
        ),
    ] {
        let found = discover(None, &Files::of(files)).unwrap();
        assert_eq!(found[0].shown_command(None), expected, "{files:?}");
        assert_eq!(found[0].unavailable(), None, "{files:?}");
    }
    // Another interpreter than the manager's would fail at every import, and that would look like failing tests.
    for (files, help) in [
        (&[("pytest.ini", ""), ("uv.lock", "")][..], "uv sync"),
        (&[("pyproject.toml", "[tool.uv.sources]\n# pytest")], "uv sync"),
        (&[("pytest.ini", ""), ("poetry.lock", "")], "poetry config virtualenvs.in-project true"),
        (
            &[("pyproject.toml", "[tool.poetry.dependencies]\npytest = '*'")],
            "poetry config virtualenvs.in-project true",
        ),
    ] {
        let found = discover(None, &Files::of(files)).unwrap();
        let lacks = found[0].unavailable().unwrap_or_else(|| panic!("{files:?}"));
        assert!(lacks.help.contains(help) && lacks.help.contains("tdd.command"), "{lacks:?}");
    }
    let found = discover(None, &Files::of(&[("pytest.ini", "")])).unwrap();
    let missing = "/usr/bin/python3: No module named pytest\n";
    assert!(found[0].not_installed("", missing).is_some_and(|help| help.contains(".venv")));
    assert_eq!(found[0].not_installed("1 passed in 0.1s\n", ""), None);
    // A command of the user that names a runner of npm, in a fresh clone.
    let configured = discover(Some("npm run build && vitest run"), &Files::of(&[])).unwrap();
    let help = configured[0].not_installed("", "sh: 1: vitest: not found\n").unwrap();
    assert!(help.contains("vitest is not installed") && help.contains("package_install"), "{help}");
    assert_eq!(configured[0].not_installed("", "Tests  1 passed (1)\n"), None);
}

#[test]
fn bug_a_file_goes_to_the_runner_of_its_language_and_folder() {
    let files = Files::of(&[
        ("Cargo.toml", "[package]"),
        ("web/package.json", VITEST_SCRIPT),
        ("web/node_modules/vitest/package.json", "{}"),
        ("admin/package.json", NODE_SCRIPT),
        ("api/go.mod", "module api"),
    ]);
    let runners = discover(None, &files).unwrap();
    assert_eq!(runners.len(), 4);
    let web = |rest: &str| format!("cd web && {VITEST} {rest}");
    let admin = |rest: &str| format!("cd admin && {NODE} {rest}");
    for (only, expected) in [
        ("web/src/slug.test.js", vec![web("src/slug.test.js")]),
        ("./web/src/slug.test.js", vec![web("src/slug.test.js")]),
        ("web/src", vec![web("./src")]),
        ("web/src/parts", vec![web("src/parts")]),
        ("tests/sum.rs", vec![format!("{CARGO} --test sum")]),
        ("api/pkg/sum_test.go", vec!["cd api && go test -v ./pkg".to_owned()]),
        ("api/sum_test.go", vec!["cd api && go test -v .".to_owned()]),
        // From which folder it is named is unknown, so all of the language are asked.
        ("slug.test.js", vec![admin("slug.test.js"), web("slug.test.js")]),
        ("tests/test_a.py::test_b", vec![]),
        (
            "adds up",
            vec![
                format!("{CARGO} -- 'adds up'"),
                admin("'--test-name-pattern=adds up'"),
                "cd api && go test -v ./... '-run=adds up'".to_owned(),
                web("'--testNamePattern=adds up'"),
            ],
        ),
    ] {
        let selected = select(runners.clone(), Some(only));
        let lines: Vec<String> =
            selected.iter().map(tgp_builtins::testing::SelectedRunner::shown_command).collect();
        assert_eq!(lines, expected, "{only}");
    }
    assert_eq!(select(runners, None).len(), 4);
    // A configured command may run anything.
    let configured = discover(Some("make check"), &files).unwrap();
    assert_eq!(select(configured, Some("web/a.test.js"))[0].command(), "make check web/a.test.js");
}

fn ran(runner: &Runner, exit_code: Option<i32>, stdout: &str) -> RunnerRun {
    RunnerRun { runner: runner.clone(), exit_code, counts: read_counts(runner, exit_code, stdout, "") }
}

fn words(combined: &CombinedRun) -> (Option<i32>, Option<u64>, Option<u64>, Option<Vec<String>>) {
    let files = combined.failing_files.as_ref();
    let files = files.map(|files| files.iter().map(ToString::to_string).collect());
    (combined.exit_code, combined.passed, combined.failed, files)
}

#[test]
fn several_runs_pass_only_together_and_fail_by_file() {
    let files =
        Files::of(&[("Cargo.toml", "[package]"), ("web/package.json", NODE_SCRIPT), ("api/pytest.ini", "")]);
    let runners: Vec<Runner> =
        discover(None, &files).unwrap().into_iter().map(|runner| runner.at("/project")).collect();
    let [cargo, pytest, node] = &runners[..] else { panic!("{runners:?}") };
    assert_eq!((pytest.kind, node.kind), (RunnerKind::Pytest, RunnerKind::NodeTest));
    let cargo_passed = ran(
        cargo,
        Some(0),
        "\nrunning 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n",
    );
    let cargo_empty = ran(
        cargo,
        Some(0),
        "\nrunning 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n",
    );
    let node_passed = ran(node, Some(0), "ok 1 - a\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n");
    let node_failed = ran(
        node,
        Some(1),
        "not ok 1 - a\n  ---\n  location: '/project/web/src/a.test.js:3:1'\n  failureType: 'testCodeFailure'\n  ...\n# tests 1\n# suites 0\n# pass 0\n# fail 1\n",
    );
    let pytest_passed = ran(pytest, Some(0), "1 passed in 0.01s\n");
    let pytest_none = ran(pytest, Some(5), "no tests ran in 0.01s\n");
    let none = Some(Vec::new());
    let failed = Some(vec!["web/src/a.test.js".to_owned()]);
    for (runs, expected) in [
        (vec![&cargo_passed, &pytest_passed, &node_passed], (Some(0), Some(4), Some(0), none.clone())),
        // A runner without tests does not stop the others.
        (vec![&cargo_empty, &pytest_none, &node_passed], (Some(0), Some(1), Some(0), none.clone())),
        (vec![&cargo_passed, &node_failed], (Some(1), Some(2), Some(1), failed.clone())),
        // Whatever another runner did not get to, a failure is one.
        (vec![&ran(cargo, None, ""), &node_failed], (Some(1), Some(0), Some(1), failed)),
    ] {
        let runs: Vec<RunnerRun> = runs.into_iter().cloned().collect();
        assert_eq!(words(&combine(&runs)), expected);
    }
    // One of which nothing is known keeps the others from passing.
    let distrusted =
        discover(None, &Files::of(&[("web/package.json", r#"{"scripts":{"test":"./x"}}"#)])).unwrap();
    for unknown in [
        ran(node, None, ""),
        ran(node, Some(0), ""),
        ran(node, Some(127), ""),
        ran(node, Some(1), ""),
        ran(&distrusted[0], Some(0), "ok 1 - a\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n"),
    ] {
        assert!(unknown.is_unknown());
        let combined = combine(&[cargo_passed.clone(), unknown.clone()]);
        assert_eq!(words(&combined), (unknown.exit_code, Some(0), Some(0), Some(Vec::new())));
    }
    // A single run is taken as it is.
    assert_eq!(combine(&[cargo_empty]).passed, Some(0));
}

#[test]
fn what_is_kept_between_runs_is_filled_without_code_of_the_project_where_that_is_possible() {
    let found = |files: &[(&str, &str)]| discover(None, &Files::of(files)).unwrap().remove(0);
    let go = found(&[("go.mod", "module x")]);
    assert!(matches!(go.cache(), CacheUse::Filled { by } if by.contains("-exec=/bin/true")), "{go:?}");
    assert!(go.environment().contains(&("GOFLAGS", "-count=1")), "no result comes from a cache");
    let jest = found(&[
        ("package.json", r#"{"scripts":{"test":"jest"}}"#),
        ("node_modules/jest/package.json", "{}"),
    ]);
    assert_eq!(jest.cache(), CacheUse::Kept);
    assert!(jest.command(None).ends_with("--cacheDirectory=/tmp/cache/jest"));
    assert_eq!(found(&[("Cargo.toml", "[package]")]).cache(), CacheUse::None);
}

#[test]
fn bug_a_runner_that_cannot_run_was_taken_for_ready() {
    let project = tempfile::tempdir().unwrap();
    let packages = project.path().join(".venv/lib/python3.12/site-packages");
    std::fs::create_dir_all(&packages).unwrap();
    std::fs::create_dir(project.path().join(".venv/bin")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/env", project.path().join(".venv/bin/python")).unwrap();
    let visible = VisiblePrograms { project: project.path(), readable: &[] };
    let problem = |files: &[(&str, &str)], search: Option<&str>| {
        let found = discover(None, &Files::of(files)).unwrap();
        visible.problem(&found[0], search).map(|problem| problem.to_string())
    };
    let python: &[(&str, &str)] =
        &[("pytest.ini", ""), (".venv/pyvenv.cfg", CONFIGURED), (".venv/bin/python", "")];
    let why = problem(python, None).unwrap();
    assert!(why.contains("pytest is not installed for `.venv/bin/python`"), "{why}");
    std::fs::create_dir(packages.join("pytest")).unwrap();
    assert_eq!(problem(python, None), None);
    // A program that is nowhere, and one in a directory that commands do not have.
    let own = tempfile::tempdir().unwrap();
    std::fs::write(own.path().join("go"), "").unwrap();
    let search = own.path().display().to_string();
    for search in ["/nowhere", search.as_str()] {
        let why = problem(&[("go.mod", "module x")], Some(search)).unwrap();
        assert!(why.contains("`go` is not installed where commands can see it"), "{why}");
    }
    let real = own.path().canonicalize().unwrap();
    let visible = VisiblePrograms { project: project.path(), readable: std::slice::from_ref(&real) };
    let found = discover(None, &Files::of(&[("go.mod", "module x")])).unwrap();
    assert_eq!(visible.problem(&found[0], Some(&search)), None);
}

#[test]
fn bug_a_filter_that_selects_nothing_was_not_named() {
    const JEST: &str = "Tests:       2 skipped, 2 total\n";
    const CARGO_OK: &str = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s\n";
    for (line, code, stdout, stderr, expected) in [
        ("vitest run", Some(1), "", "No test files found, exiting with code 1\n\nfilter: x\n", true),
        ("vitest run", Some(0), " Test Files  1 skipped (1)\n      Tests  2 skipped (2)\n", "", true),
        ("jest", Some(1), "No tests found, exiting with code 1\n", "", true),
        ("jest", Some(0), "", JEST, true),
        ("pytest -q", Some(5), "no tests ran in 0.01s\n", "", true),
        ("pytest -q", Some(5), "2 deselected in 0.01s\n", "", true),
        ("pytest -q", Some(4), "", "ERROR: file or directory not found: x.py\n", true),
        ("cargo test", Some(0), CARGO_OK, "", true),
        ("cargo test", Some(101), "", "error: no test target named `x`\n", true),
        // A run that says something, or that did not come to its tests.
        ("vitest run", Some(1), "", "Error: Cannot find module './setup.js'\n", false),
        ("vitest run", Some(0), "      Tests  1 passed | 2 skipped (3)\n", "", false),
        ("vitest run", Some(1), "      Tests  1 failed | 2 skipped (3)\n", "", false),
        ("cargo test", Some(101), "", "error: could not compile `x`\n", false),
        ("pytest -q", None, "", "", false),
    ] {
        let runner = discover(Some(line), &Files::of(&[])).unwrap().remove(0);
        let counts = read_counts(&runner, code, stdout, stderr);
        let found = nothing_selected(&runner, "x", code, &counts, [stdout, stderr]);
        assert_eq!(found.is_some(), expected, "{line} {stdout}{stderr}: {found:?}");
    }
}
