//! Test runs are read as they were printed: the files in `testing/` are real output, only the folder is renamed.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use tgp_builtins::testing::{Counts, Manifests, Runner, RunnerKind, detect, read_counts, scripts};

const ROOT: &str = "/project";

fn captured(name: &str, stream: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtins/testing");
    // A stream on which nothing was printed has no file.
    std::fs::read_to_string(folder.join(format!("{name}.{stream}"))).unwrap_or_default()
}

/// A runner of the kind, as it is found in a project of which the captures are.
fn runner(kind: RunnerKind, name: &str) -> Runner {
    let line = match kind {
        RunnerKind::Cargo => "cargo test",
        RunnerKind::Vitest => "vitest run",
        RunnerKind::Jest => "jest",
        RunnerKind::Mocha => "mocha",
        RunnerKind::NodeTest => "node --test",
        RunnerKind::Pytest => "pytest",
        RunnerKind::Unittest => "python3 -m unittest",
        RunnerKind::Go => "go test",
        RunnerKind::Other => "make check",
    };
    let manifest =
        if name == "cargo_workspace" { "[workspace]\nmembers = ['crates/*']" } else { "[package]" };
    let files = Files(BTreeMap::from([("Cargo.toml", manifest), ("go.mod", "module example.com/x\n")]));
    let runner = detect(Some(line), &files).unwrap().at(ROOT);
    assert_eq!(runner.kind, kind);
    runner
}

fn read(kind: RunnerKind, name: &str) -> Counts {
    let (stdout, stderr) = (captured(name, "out"), captured(name, "err"));
    assert!(!stdout.is_empty() || !stderr.is_empty(), "{name} was not captured");
    let exit_code = i32::from(!(name.ends_with("_passed") || name.ends_with("_none")));
    read_counts(&runner(kind, name), Some(exit_code), &stdout, &stderr)
}

/// The capture, its runner, passed, failed, skipped, and each failing test as `name @ file`.
#[rustfmt::skip]
const RUNS: &[(&str, RunnerKind, [u64; 3], &[&str])] = &[
    ("cargo_mixed", RunnerKind::Cargo, [3, 7, 1], &[
        "tests::unit_wrong @ src/lib.rs",
        "second::breaks @ tests/multi/second.rs", "second::far_away @ ?", "second::result @ ?",
        "adds_wrongly @ tests/sum.rs", "panics_inside @ tests/sum.rs",
        "src/lib.rs - sum (line 2) @ src/lib.rs",
    ]),
    ("cargo_workspace", RunnerKind::Cargo, [3, 7, 1], &[
        "tests::unit_wrong @ crates/sums/src/lib.rs",
        "second::breaks @ crates/sums/tests/multi/second.rs", "second::far_away @ ?", "second::result @ ?",
        "adds_wrongly @ crates/sums/tests/sum.rs", "panics_inside @ ?",
        "crates/sums/src/lib.rs - sum (line 2) @ crates/sums/src/lib.rs",
    ]),
    ("cargo_passed", RunnerKind::Cargo, [4, 0, 0], &[]),
    ("cargo_none", RunnerKind::Cargo, [0, 0, 0], &[]),
    ("cargo_crashed", RunnerKind::Cargo, [3, 1, 0], &["a test binary crashed @ ?"]),
    ("cargo_broken_test", RunnerKind::Cargo, [0, 1, 0], &["error[E0425]: cannot find function `missing` in crate `sums` @ tests/broken.rs"]),
    ("cargo_broken_code", RunnerKind::Cargo, [0, 1, 0], &["error: this file contains an unclosed delimiter @ src/lib.rs"]),
    ("vitest_mixed", RunnerKind::Vitest, [2, 2, 1], &["broken.test.js @ broken.test.js", "sum.test.js > sum > adds wrongly @ sum.test.js"]),
    ("vitest_colour", RunnerKind::Vitest, [2, 1, 1], &["sum.test.js > sum > adds wrongly @ sum.test.js"]),
    ("vitest_passed", RunnerKind::Vitest, [1, 0, 0], &[]),
    ("vitest_none", RunnerKind::Vitest, [0, 0, 0], &[]),
    ("jest_mixed", RunnerKind::Jest, [2, 2, 1], &["sum › adds wrongly @ sum.test.js", "./broken.test.js @ broken.test.js"]),
    ("jest_passed", RunnerKind::Jest, [1, 0, 0], &[]),
    ("jest_none", RunnerKind::Jest, [0, 0, 0], &[]),
    ("mocha_mixed", RunnerKind::Mocha, [2, 1, 1], &["sum adds wrongly @ sum.test.js"]),
    ("mocha_passed", RunnerKind::Mocha, [1, 0, 0], &[]),
    ("mocha_broken", RunnerKind::Mocha, [0, 1, 0], &["Error: Cannot find module './missing' @ broken.test.js"]),
    ("mocha_none", RunnerKind::Mocha, [0, 0, 0], &[]),
    ("node_tap", RunnerKind::NodeTest, [2, 2, 1], &["/project/broken.test.js @ broken.test.js", "adds wrongly @ sum.test.js"]),
    ("node_spec", RunnerKind::NodeTest, [2, 2, 1], &["/project/broken.test.js @ broken.test.js", "adds wrongly @ sum.test.js"]),
    ("node_passed", RunnerKind::NodeTest, [1, 0, 0], &[]),
    ("node_none", RunnerKind::NodeTest, [0, 0, 0], &[]),
    ("pytest_mixed", RunnerKind::Pytest, [0, 1, 0], &["tests/test_broken.py @ tests/test_broken.py"]),
    ("pytest_failed", RunnerKind::Pytest, [3, 2, 1], &["tests/test_sum.py::TestSum::test_wrong[3] @ tests/test_sum.py", "tests/test_sum.py::test_error @ tests/test_sum.py"]),
    ("pytest_passed", RunnerKind::Pytest, [1, 0, 0], &[]),
    ("pytest_none", RunnerKind::Pytest, [0, 0, 0], &[]),
    ("pytest_missing", RunnerKind::Pytest, [0, 0, 0], &[]),
    ("unittest_mixed", RunnerKind::Unittest, [1, 3, 1], &[
        "tests.test_broken (unittest.loader._FailedTest.tests.test_broken) @ tests/test_broken.py",
        "test_error (tests.test_sum.TestSum.test_error) @ tests/test_sum.py",
        "test_wrong (tests.test_sum.TestSum.test_wrong) @ tests/test_sum.py",
    ]),
    ("unittest_passed", RunnerKind::Unittest, [1, 0, 0], &[]),
    ("unittest_none", RunnerKind::Unittest, [0, 0, 0], &[]),
    ("go_mixed", RunnerKind::Go, [2, 2, 1], &["example.com/x.TestWrong @ sum_test.go", "example.com/x/broken does not build @ broken/broken_test.go"]),
    ("go_panicked", RunnerKind::Go, [1, 1, 0], &["example.com/x/ok.TestPanics @ ok/panic_test.go"]),
    ("go_passed", RunnerKind::Go, [1, 0, 0], &[]),
    ("go_none", RunnerKind::Go, [0, 0, 0], &[]),
];

#[test]
fn real_output_is_counted_and_every_failing_test_is_named() {
    for (name, runner, [passed, failed, skipped], failing) in RUNS {
        let counts = read(*runner, name);
        let named: Vec<String> = counts
            .failing
            .iter()
            .map(|one| {
                let file = one.file.as_ref().map_or("?".to_owned(), ToString::to_string);
                format!("{} @ {file}", one.name)
            })
            .collect();
        let numbers = [counts.passed, counts.failed, counts.skipped].map(Option::unwrap);
        assert_eq!(numbers, [*passed, *failed, *skipped], "{name}");
        assert_eq!(named, *failing, "{name}");
        // Files are given only when all are known.
        let all_known = failing.iter().all(|one| !one.ends_with("@ ?")) && failing.len() as u64 == *failed;
        assert_eq!(counts.failing_files().is_some(), all_known, "{name}");
    }
    let files =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtins/testing")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        let stem = name.split('.').next().unwrap();
        assert!(RUNS.iter().any(|(name, ..)| *name == stem), "{name} is read by no test");
    }
}

#[test]
fn an_unknown_command_is_read_by_what_it_prints() {
    for (name, runner, ..) in RUNS {
        let (known, found) = (read(*runner, name), read(RunnerKind::Other, name));
        // Only where the runner itself said nothing that can be counted is nothing known.
        let says_nothing = found == Counts::default() && known.passed == Some(0) && known.failed == Some(0);
        assert!(found == known || says_nothing, "{name}: {found:?}");
    }
    let unknown = runner(RunnerKind::Other, "");
    assert_eq!(read_counts(&unknown, Some(0), "all 12 checks passed in no time\n", ""), Counts::default());
}

#[test]
fn packages_that_are_well_without_numbers_are_not_nothing() {
    let go = runner(RunnerKind::Go, "");
    let read = |text: &str| read_counts(&go, Some(0), text, "").passed;
    assert_eq!(read("ok  \texample.com/x\t0.002s\n"), None);
    assert_eq!(read("ok  \texample.com/x\t0.002s [no tests to run]\n"), Some(0));
    assert_eq!(read("?   \texample.com/x\t[no test files]\n"), Some(0));
}

#[test]
fn a_run_that_ended_well_is_not_spoilt_by_what_a_test_prints() {
    let vitest = runner(RunnerKind::Vitest, "");
    let noise = captured("vitest_passed", "out") + " FAIL  not/a/test.js [ x ]\n";
    let counts = read_counts(&vitest, Some(0), &noise, "");
    assert_eq!((counts.passed, counts.failed, counts.failing.len()), (Some(1), Some(0), 0));
    assert_eq!(read_counts(&vitest, Some(1), &noise, "").failed, Some(1));
}

#[test]
fn strange_output_is_survived() {
    let kinds: HashSet<RunnerKind> =
        RUNS.iter().map(|(_, kind, ..)| *kind).chain([RunnerKind::Other]).collect();
    let mut strange: Vec<String> = [
        "",
        "\u{1b}",
        "\u{1b}[",
        "\u{1b}[31",
        "\u{1b}[31mred\u{1b}[0m\n",
        "test  ... FAILED\n",
        "---- \n",
        "# pass\n",
        "# pass 99999999999999999999999\n",
        "Ran x tests\nOK\n",
        "FAIL \n  ● \n",
        "  1) \n",
        "Tests  | | |\n",
        "FAIL\t\n",
        "FAIL\t [build failed]\n",
        "--- FAIL: \nFAIL\tx\n",
        "not ok \nlocation: '\n",
        "FAILED ::\n1 failed in 1s\n",
        "test result: \n",
        "test result: ok. 18446744073709551615 passed; 18446744073709551615 failed\n",
        "in 1s\n",
        " in s\n",
    ]
    .map(str::to_owned)
    .to_vec();
    let everything: String =
        RUNS.iter().map(|(name, ..)| captured(name, "out") + &captured(name, "err")).collect();
    strange.extend([
        "é\u{1b}[1mß".repeat(10),
        everything.repeat(50),
        "x".repeat(1_000_000),
        "(".repeat(200_000),
    ]);
    // Every capture, cut at every line.
    for (name, ..) in RUNS {
        let text = captured(name, "out");
        strange.extend(text.match_indices('\n').map(|(end, _)| text[..end].to_owned()));
    }
    for kind in kinds {
        for text in &strange {
            let counts = read_counts(&runner(kind, ""), Some(1), text, text);
            assert!(counts.failing.len() <= 1_000);
            assert!(counts.failing.iter().all(|one| one.name.len() <= 512));
        }
    }
}

/// Files by path.
struct Files(BTreeMap<&'static str, &'static str>);

impl Manifests for Files {
    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).map(|text| (*text).to_owned())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = self.0.keys().filter_map(|path| path.strip_prefix(prefix.as_str()));
        below.map(|rest| rest.split('/').next().unwrap().to_owned()).collect()
    }
}

/// Files of a project, and how its tests are run.
type Case = (&'static [(&'static str, &'static str)], Option<(RunnerKind, &'static str)>);

#[test]
fn the_command_is_found_in_the_manifests() {
    const PYTEST: &str = "python3 -m pytest -q -p no:cacheprovider";
    const NODE: &str = "node --test --test-reporter=tap";
    const VITEST: (&str, &str) = ("node_modules/vitest/package.json", "{}");
    #[rustfmt::skip]
    let table: &[Case] = &[
        (&[], None),
        (&[("README.md", "")], None),
        (&[("Cargo.toml", "[package]"), ("package.json", "{}")], Some((RunnerKind::Cargo, "cargo test --offline --no-fail-fast --color=never"))),
        (&[("package.json", r#"{"scripts":{"test":"vitest"}}"#), VITEST], Some((RunnerKind::Vitest, "node_modules/.bin/vitest run --reporter=default"))),
        (&[("package.json", r#"{"scripts":{"test":"vitest --watch --dir src"}}"#), VITEST], Some((RunnerKind::Vitest, "node_modules/.bin/vitest run --dir src --reporter=default"))),
        (&[("package.json", r#"{"scripts":{"test":"vitest run"}}"#)], Some((RunnerKind::Other, "npm test --silent"))),
        (&[("package.json", r#"{"scripts":{"test":"tsc && vitest run; rm -rf /"}}"#), VITEST], Some((RunnerKind::Other, "npm test --silent"))),
        (&[("package.json", r#"{"scripts":{"test":"vitest run $(id)"}}"#), VITEST], Some((RunnerKind::Other, "npm test --silent"))),
        (&[("package.json", r#"{"scripts":{"test":"jest --ci"}}"#), ("node_modules/jest/package.json", "{}")], Some((RunnerKind::Jest, "node_modules/.bin/jest --ci --reporters=default --cacheDirectory=/tmp/cache/jest"))),
        (&[("package.json", r#"{"scripts":{"test":"NODE_ENV=test ./node_modules/.bin/mocha 'test/**/*.js'"}}"#)], Some((RunnerKind::Other, "npm test --silent"))),
        (&[("package.json", r#"{"scripts":{"test":"node --test"}}"#)], Some((RunnerKind::NodeTest, NODE))),
        (&[("package.json", r#"{"scripts":{"test":"./check.sh"}}"#)], Some((RunnerKind::Other, "npm test --silent"))),
        (&[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#)], Some((RunnerKind::NodeTest, NODE))),
        (&[("package.json", r#"{"devDependencies":{"vitest":"^4"}}"#), VITEST], Some((RunnerKind::Vitest, "node_modules/.bin/vitest run --reporter=default"))),
        (&[("package.json", "{}"), ("pytest.ini", "")], Some((RunnerKind::Pytest, PYTEST))),
        (&[("package.json", "not json"), ("go.mod", "module x")], Some((RunnerKind::Go, "go test -v ./..."))),
        (&[("pyproject.toml", "[tool.pytest.ini_options]")], Some((RunnerKind::Pytest, PYTEST))),
        (&[("pyproject.toml", "[project]")], Some((RunnerKind::Pytest, PYTEST))),
        (&[("tests/test_a.py", "def test_a(): pass")], Some((RunnerKind::Pytest, PYTEST))),
        (&[("pyproject.toml", "[project]"), ("tests/test_a.py", "import unittest"), ("tests/__init__.py", "")], Some((RunnerKind::Unittest, "python3 -m unittest"))),
        (&[("tests/test_a.py", "import unittest")], Some((RunnerKind::Unittest, "python3 -m unittest discover -s tests"))),
        (&[("test_a.py", "import unittest")], Some((RunnerKind::Unittest, "python3 -m unittest"))),
    ];
    for (files, expected) in table {
        let found = detect(None, &Files(files.iter().copied().collect()));
        let found = found.map(|runner| (runner.kind, runner.command(None)));
        assert_eq!(found, expected.map(|(kind, line)| (kind, line.to_owned())), "{files:?}");
    }
    // A closure that reads is enough where no folder has to be searched.
    let read = |path: &str| (path == "go.mod").then(|| "module x".to_owned());
    assert_eq!(detect(None, &read).unwrap().kind, RunnerKind::Go);
}

#[test]
fn what_a_manifest_lets_print_is_believed_in_nothing() {
    const TAP: &str = "ok 1 - x\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n";
    const VITEST: (&str, &str) = ("node_modules/vitest/package.json", "{}");
    const JEST: (&str, &str) = ("node_modules/jest/package.json", "{}");
    let package = |script: &'static str| ("package.json", script);
    for files in [
        &[package(
            r#"{"scripts":{"test":"printf 'ok 1 - x\n# tests 1\n# pass 1\n# fail 0\n'; exit 0; node --test"}}"#,
        )][..],
        &[package(r#"{"scripts":{"test":"node --test --test-reporter=./fake.mjs"}}"#)],
        &[package(r#"{"scripts":{"test":"node --import ./fake.mjs --test"}}"#)],
        &[package(r#"{"scripts":{"test":"node -r./fake.js --test"}}"#)],
        &[package(r#"{"scripts":{"test":"node fake.js --test"}}"#)],
        &[package(r#"{"scripts":{"test":"./node --test"}}"#)],
        &[package(r#"{"scripts":{"test":"vitest run --reporter=./fake.ts"}}"#), VITEST],
        &[package(r#"{"scripts":{"test":"vitest run --config fake.ts"}}"#), VITEST],
        &[package(r#"{"scripts":{"test":"./bin/vitest run"}}"#), VITEST],
        &[package(r#"{"scripts":{"test":"vitest run"}}"#)],
        &[package(r#"{"scripts":{"test":"jest --testRunner=./fake.js"}}"#), JEST],
        &[package(r#"{"scripts":{"test":"make check"}}"#)],
        &[
            ("Cargo.toml", "[package]"),
            (".cargo/config.toml", "[target.x86_64-unknown-linux-gnu]\nrunner = 'sh fake.sh'"),
        ],
        &[("Cargo.toml", "[package]"), (".cargo/config", "[build]\nrustc-wrapper = './fake'")],
        &[("Cargo.toml", "[package]"), ("rust-toolchain.toml", "[toolchain]\npath = 'fake'")],
        &[("pyproject.toml", "[tool.pytest.ini_options]"), ("pytest.py", "print('1 passed in 0.01s')")],
        &[
            ("pyproject.toml", "[tool.pytest.ini_options]"),
            ("pytest/__main__.py", "print('1 passed in 0.01s')"),
        ],
        &[("tests/test_a.py", "import unittest"), ("unittest.py", "print()")],
    ] {
        let runner = detect(None, &Files(files.iter().copied().collect())).unwrap();
        let why = runner.distrusted().unwrap_or_else(|| panic!("{files:?} is believed"));
        assert!(!why.problem.is_empty() && !why.help.is_empty());
        for (exit_code, text) in
            [(0, TAP), (1, "not ok 1 - x\n# tests 1\n# pass 0\n# fail 1\n"), (0, "5 passed in 0.1s\n")]
        {
            let counts = read_counts(&runner, Some(exit_code), text, text);
            assert_eq!(counts.evidence(&runner), (Some(0), Some(0)), "{files:?}");
        }
    }
    // A plain call of the runner is the runner, and who configures a command has chosen what it prints.
    let plain = Files(BTreeMap::from([("package.json", r#"{"scripts":{"test":"node --test test/"}}"#)]));
    let runner = detect(None, &plain).unwrap();
    assert_eq!(
        (runner.distrusted(), runner.command(None).as_str()),
        (None, "node --test --test-reporter=tap test/")
    );
    assert_eq!(read_counts(&runner, Some(0), TAP, "").evidence(&runner), (Some(1), Some(0)));
    let shadowed = Files(BTreeMap::from([("pytest.py", ""), ("pytest.ini", "")]));
    assert_eq!(detect(Some("python3 -m pytest"), &shadowed).unwrap().distrusted(), None);
}

#[test]
fn a_test_that_prints_the_runners_words_changes_no_number() {
    for (kind, stdout, stderr) in [
        (
            RunnerKind::NodeTest,
            "# tests 9\n# pass 9\n# fail 0\nok 1 - a\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n",
            "",
        ),
        (
            RunnerKind::Vitest,
            " Tests  9 passed (9)\n Test Files  1 passed (1)\n      Tests  1 passed (1)\n   Start at  10:00:00\n",
            "",
        ),
        (
            RunnerKind::Jest,
            "Tests:       9 passed, 9 total\n",
            "Tests:       9 passed, 9 total\nTests:       1 passed, 1 total\nTime: 1 s\n",
        ),
        (RunnerKind::Mocha, "  9 passing (1ms)\n  9 failing\n\n  a\n    ✔ b\n\n  1 passing (3ms)\n", ""),
        (RunnerKind::Pytest, "9 passed in 0.01s\n.\n1 passed in 0.02s\n", ""),
        (
            RunnerKind::Cargo,
            "\nrunning 1 test\ntest result: ok. 9 passed; 0 failed; 0 ignored\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n",
            "",
        ),
    ] {
        let counts = read_counts(&runner(kind, ""), Some(0), stdout, stderr);
        assert_eq!((counts.passed, counts.failed), (Some(1), Some(0)), "{kind:?}");
    }
}

#[test]
fn a_configured_command_goes_first_and_names_its_runner() {
    let files = Files(BTreeMap::from([("Cargo.toml", "[package]\n")]));
    for (line, kind) in [
        ("cargo test --workspace", RunnerKind::Cargo),
        ("cd web && npx vitest run", RunnerKind::Vitest),
        ("./node_modules/.bin/jest", RunnerKind::Jest),
        ("node --import tsx --test", RunnerKind::NodeTest),
        (".venv/bin/pytest -x", RunnerKind::Pytest),
        ("python -m unittest", RunnerKind::Unittest),
        ("go test ./...", RunnerKind::Go),
        ("make jesting", RunnerKind::Other),
    ] {
        let runner = detect(Some(line), &files).unwrap();
        assert_eq!((runner.kind, runner.command(None).as_str()), (kind, line));
    }
    assert_eq!(detect(Some("  "), &files).unwrap().kind, RunnerKind::Cargo);
}

#[test]
fn the_scripts_behind_a_command_are_told_with_those_they_start() {
    let package = r#"{"scripts":{
        "pretest": "npm run build", "test": "./check.sh", "posttest": "echo over", "build": "tsc -p .",
        "loop": "yarn loop", "check:all": "run-s lint test", "lint": "eslint .", "number": 5
    }}"#;
    let files = Files(BTreeMap::from([("package.json", package)]));
    for (line, expected) in [
        ("npm test --silent", &["build", "posttest", "pretest", "test"][..]),
        ("npm t", &["build", "posttest", "pretest", "test"]),
        (
            "cd . && /usr/bin/npm run 'check:all'",
            &["build", "check:all", "lint", "posttest", "pretest", "test"],
        ),
        ("npm run loop", &["loop"]),
        ("npm run number", &[]),
        ("npm run absent", &[]),
        ("cargo test", &[]),
        ("./test", &[]),
    ] {
        let found = scripts(line, &files);
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{line}");
    }
    assert_eq!(scripts("npm test", &files)["test"], "./check.sh");
    assert!(scripts("npm test", &Files(BTreeMap::from([("package.json", "no JSON")]))).is_empty());
    // The report does not list a thousand of them.
    let many: BTreeMap<String, String> =
        (0..1_000).map(|number| (number.to_string(), format!("npm run {}", number + 1))).collect();
    let text = serde_json::json!({ "scripts": many }).to_string();
    assert_eq!(scripts("npm run 0", &|_: &str| Some(text.clone())).len(), 32);
}

#[test]
fn a_selection_is_one_word_to_the_shell_and_in_the_runners_own_words() {
    for (line, only, expected) in [
        ("cargo test", "adds", "cargo test -- adds"),
        ("cargo test", "tests/sum.rs", "cargo test --test sum"),
        ("cargo test", "tests/multi/main.rs", "cargo test --test multi"),
        ("vitest run", "src/a.test.ts", "vitest run src/a.test.ts"),
        ("vitest run", "adds up", "vitest run '--testNamePattern=adds up'"),
        ("mocha", "it's; rm -rf /x", r"mocha 'it'\''s; rm -rf /x'"),
        ("node --test", "$(id)", "node --test '--test-name-pattern=$(id)'"),
        ("pytest", "tests/test_a.py::test_b", "pytest tests/test_a.py::test_b"),
        ("pytest", "a or b", "pytest -k 'a or b'"),
        ("go test -v ./...", "TestA", "go test -v ./... -run=TestA"),
        ("go test -v ./...", "./pkg", "go test -v ./pkg"),
        ("make check", "", "make check ''"),
    ] {
        let none = |_: &str| None::<String>;
        assert_eq!(detect(Some(line), &none).unwrap().command(Some(only)), expected);
    }
    let npm = |path: &str| (path == "package.json").then(|| r#"{"scripts":{"test":"a && jest"}}"#.to_owned());
    let runner = detect(None, &npm).unwrap();
    assert_eq!(runner.command(Some("src/a.test.js")), "npm test --silent -- src/a.test.js");
}
