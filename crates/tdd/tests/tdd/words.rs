//! Every refusal says what, why, and what to do next; every run says what it meant.

use tgp_contract::{ChronicleLayout, Code, TddMode, TddState, ToolError, Verdict};
use tgp_tdd::{Scope, Store, Tdd, TddOptions, WriteKind};

use crate::support::{NEW_TEST, OLD_CODE, World};

fn refusal(world: &World, kind: WriteKind, file: &str) -> ToolError {
    match world.judge(kind, file) {
        Verdict::Deny { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refusal_names_file_mode_state_reason_and_next_step() {
    #[rustfmt::skip]
    let table = [
        (TddState::Idle, WriteKind::Create, "`src/c.ts` may not be created by `fs_write`: no new or changed test has failed (mode strict, state idle)",
            "write `src/c.test.ts` so that it fails, run `test_run`, then write the code"),
        (TddState::TestWritten, WriteKind::Delete, "`src/c.ts` may not be deleted by `fs_write`: a test was written or changed, and no run has shown that it fails (mode strict, state test_written)",
            "run `test_run`; when the new test fails, delete the code"),
        (TddState::Green, WriteKind::Create, "`src/c.ts` may not be created by `fs_write`: all tests pass, so existing code may be changed or moved, but new code needs a failing test (mode strict, state green)",
            "write `src/c.test.ts` so that it fails, run `test_run`, then write the code; a file that is moved, or one with 80 % of its lines from files of the last run, needs none"),
        (TddState::Refactor, WriteKind::Create, "`src/c.ts` may not be created by `fs_write`: existing code is being changed, and a new file has to wait (mode strict, state refactor)",
            "run `test_run`; when all tests pass, a file may be moved or split off; otherwise write `src/c.test.ts` so that it fails, run `test_run`, then write the code"),
        (TddState::Idle, WriteKind::Modify, "`src/c.ts` may not be changed by `fs_write`: no recorded run has a failing test (mode strict, state idle)",
            "run `test_run`: when an existing test fails, existing code may be changed; otherwise write `src/c.test.ts` so that it fails, run `test_run`, then change the code"),
        (TddState::Done, WriteKind::Modify, "`src/c.ts` may not be changed by `fs_write`: the work was declared done (mode strict, state done)",
            "write `src/c.test.ts` so that it fails, run `test_run`, then change the code"),
        (TddState::Halted, WriteKind::Modify, "`fs_write` may not run: a person has halted all work on project (state halted)",
            "a person lifts it with `tgp state set idle`"),
    ];
    for (state, kind, message, help) in table {
        let error = refusal(&World::at(TddMode::Strict, state), kind, "src/c.ts");
        assert_eq!((error.code, error.message.as_str(), error.help_of()), (Code::State, message, Some(help)));
        assert_eq!(error.details["state"], state.as_str());
        assert_eq!(error.details["mode"], "strict");
        assert_eq!(error.details["scope"], "project");
        if state != TddState::Halted {
            assert_eq!(error.details["file"], "src/c.ts");
        }
    }
}

#[test]
fn stale_results_are_called_stale() {
    let world = World::at(TddMode::Strict, TddState::Red);
    world.outside(NEW_TEST, Some("other"));
    let error = refusal(&world, WriteKind::Create, "src/c.ts");
    assert!(error.message.contains("the test that failed is not the one that is there now"), "{error}");
    let world = World::at(TddMode::Strict, TddState::Green);
    world.outside(OLD_CODE, Some("other"));
    let error = refusal(&world, WriteKind::Modify, OLD_CODE);
    assert!(error.message.contains("files have changed since the run that passed"), "{error}");
    assert_eq!(error.help_of(), Some("run `test_run` again; when all tests pass, change the code"));
}

#[test]
fn a_stale_result_names_the_first_file_and_counts_the_others() {
    let world = World::new(TddMode::Strict);
    for file in ["src/m.ts", "src/n.ts"] {
        world.outside(file, Some("1"));
    }
    world.passes();
    world.outside("src/n.ts", None);
    let error = refusal(&world, WriteKind::Modify, OLD_CODE);
    assert!(error.message.contains("since the run that passed: `src/n.ts` (mode strict"), "{error}");
    world.outside("src/m.ts", Some("2"));
    let error = refusal(&world, WriteKind::Modify, OLD_CODE);
    assert!(error.message.contains("since the run that passed: `src/m.ts` and 1 more file (mode"), "{error}");
    assert_eq!(error.details["changed"], "src/m.ts");
    let error = world.tdd.set(&world.scope, TddState::Done, &world.disk).unwrap_err();
    assert!(error.message.contains("`src/m.ts` and 1 more file"), "{error}");
}

#[test]
fn the_kernels_own_files_and_exempt_ones_make_no_result_stale() {
    for (layout, chronicle) in
        [(ChronicleLayout::Tree, ".sage/files/src/a.ts.sage"), (ChronicleLayout::Beside, "src/a.ts.sage")]
    {
        let options = TddOptions { layout, ..TddOptions::default() };
        let world = World::with(Tdd::open(Store::open_in_memory().unwrap(), &options).unwrap());
        let own = [chronicle, ".sage/project.sage", ".sage/valve.yml", "README.md"];
        own.iter().for_each(|file| world.outside(file, Some("1")));
        world.passes();
        own.iter().for_each(|file| world.outside(file, Some("2")));
        world.outside(chronicle, None);
        assert!(matches!(world.judge(WriteKind::Modify, OLD_CODE), Verdict::Allow { .. }), "{layout:?}");
    }
    // In the tree a name alone makes no chronicle.
    let world = World::new(TddMode::Strict);
    world.outside("src/curve.sage", Some("1"));
    world.passes();
    world.outside("src/curve.sage", Some("2"));
    let error = refusal(&world, WriteKind::Modify, OLD_CODE);
    assert!(error.message.contains("`src/curve.sage`"), "{error}");
}

/// Earlier versions counted chronicles beside the sources as code.
#[test]
fn a_chronicle_that_was_migrated_makes_no_result_of_an_earlier_version_stale() {
    let world = World::new(TddMode::Strict);
    let chronicle = format!("{OLD_CODE}.sage");
    world.outside(&chronicle, Some("1"));
    world.passes();
    world.outside(&chronicle, None);
    assert!(matches!(world.judge(WriteKind::Modify, OLD_CODE), Verdict::Allow { .. }));
}

#[test]
fn the_test_that_is_suggested_would_count_as_one() {
    let mut world = World::new(TddMode::Strict);
    for (code, test) in [
        ("src/parser.rs", "`tests/parser.rs`"),
        ("pkg/parser.py", "`tests/test_parser.py`"),
        ("pkg/parser.go", "`pkg/parser_test.go`"),
        ("src/Parser.java", "`src/ParserTest.java`"),
        ("bin/serve", "a test file (one that matches `**/tests/**`)"),
    ] {
        let error = refusal(&world, WriteKind::Create, code);
        let help = error.help_of().unwrap();
        assert!(help.starts_with(&format!("write {test} so that it fails")), "{help}");
        let path = test.trim_matches('`');
        assert!(path.contains(' ') || world.kind(path) == tgp_tdd::FileKind::Test, "{path}");
    }
    world.scope = Scope::parse("tools/math/fib.ts").unwrap();
    assert_eq!(
        refusal(&world, WriteKind::Create, "tools/math/fib.ts").help_of(),
        Some(
            "write `tools/math/fib.test.ts` so that it fails, run `test_tool` on `tools/math/fib.ts`, then write the code"
        )
    );
    let none = TddOptions { test_patterns: Vec::new(), ..TddOptions::default() };
    let world = World::with(Tdd::open(Store::open_in_memory().unwrap(), &none).unwrap());
    let error = refusal(&world, WriteKind::Create, "src/a.ts");
    assert!(error.help_of().unwrap().contains("`tdd.tests` names none"), "{error}");
}

#[test]
fn bug_a_file_that_is_no_source_was_refused_as_code_without_a_reason() {
    let world = World::new(TddMode::Strict);
    for file in ["bin/serve", "scripts/deploy"] {
        let error = refusal(&world, WriteKind::Create, file);
        let help = error.help_of().unwrap();
        let why = format!("`{file}` counts as code because its name has no ending that says otherwise");
        assert!(help.contains(&why) && help.ends_with("adds a pattern for it to `tdd.exempt`"), "{help}");
        assert!(help.starts_with("write a test file (one that matches `**/tests/**`)"), "{help}");
    }
    assert!(!refusal(&world, WriteKind::Create, "src/a.ts").help_of().unwrap().contains("counts as code"));
}

#[test]
fn a_run_says_what_it_meant() {
    let world = World::new(TddMode::Strict);
    let mut heard = vec![world.fails(None).why];
    world.write(NEW_TEST, Some("new test"));
    heard.push(world.fails(Some(&["tests/a.test.ts"])).why);
    heard.push(world.note(&world.run(0, 0, 0)).why);
    heard.push(world.fails(None).why);
    world.write(OLD_CODE, Some("code"));
    heard.push(world.fails(None).why);
    heard.push(world.passes().why);
    heard.push(world.fails(None).why);
    let beginnings = [
        "an existing test fails; change existing code",
        "an existing test fails; change existing code",
        "no test has been seen to pass or to fail",
        "a new or changed test fails; write the code",
        "the new test still fails",
        "all tests pass on the files as they are",
        "tests that passed fail now",
    ];
    for (why, beginning) in heard.iter().zip(beginnings) {
        assert!(why.starts_with(beginning), "{why}");
    }
    assert_eq!(heard.len(), beginnings.len());
}

#[test]
fn a_state_that_is_claimed_says_how_it_is_reached() {
    let world = World::new(TddMode::Strict);
    let error = world.tdd.set(&Scope::Project, TddState::Green, &world.disk).unwrap_err();
    assert_eq!(
        error.message,
        "the state of project cannot be set from idle to green: it follows from recorded runs and cannot be claimed"
    );
    let error = world.tdd.finish(&Scope::Project, &world.disk).unwrap_err();
    assert_eq!(
        error.message,
        "the state of project cannot be set from idle to done: only work that is green can be done"
    );
    assert_eq!(
        error.help_of(),
        Some("run the tests with `tgp call test_run '{}' --yes`, and declare it done when all tests pass"),
        "a person reads it at the command line"
    );
    let tool = Scope::parse("tools/math/fib.ts").unwrap();
    let error = world.tdd.finish(&tool, &world.disk).unwrap_err();
    assert!(
        error.help_of().unwrap().starts_with("run the tests with `tgp test tools/math/fib.ts`"),
        "{error}"
    );
}
