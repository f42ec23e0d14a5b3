//! What people do every day under `strict`: repair old code, move a file, split one.

use tgp_contract::{Actor, Root, TddMode, TddState, Verdict};
use tgp_tdd::{Scope, WriteKind};

use crate::support::{NEW_TEST, OLD_CODE, OLD_TEST, World, agent};

const MODULE: &str = "import { round } from './math';\n\nexport function price(net: number): number {\n  const rate = 1.19;\n  const gross = net * rate;\n  log(gross);\n  return round(gross);\n}\n";

fn rule(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Allow { rule } | Verdict::Deny { rule, .. } => rule,
        Verdict::Ask(_) => "ask",
    }
}

/// A project whose tests pass, with one module of several lines.
fn green() -> World {
    let world = World::at(TddMode::Strict, TddState::Green);
    world.outside("src/price.ts", Some(MODULE));
    world.passes();
    world
}

#[test]
fn bug_code_could_not_be_repaired_for_an_existing_test_that_fails() {
    let world = World::new(TddMode::Strict);
    assert!(!world.may(WriteKind::Modify, OLD_CODE), "nothing has failed yet");
    assert_eq!(world.fails(Some(&[OLD_TEST])).state_after, TddState::Refactor);
    assert!(world.may(WriteKind::Modify, OLD_CODE));
    assert!(!world.may(WriteKind::Create, "src/c.ts"), "new code needs a new test");
    world.write(OLD_CODE, Some("repaired, first try"));
    assert!(world.may(WriteKind::Modify, OLD_CODE), "until it passes");
    assert_eq!(world.fails(Some(&[OLD_TEST])).state_after, TddState::Refactor);
    world.write(OLD_CODE, Some("repaired"));
    assert_eq!(world.passes().state_after, TddState::Green);
}

#[test]
fn a_repair_leaves_the_tests_alone() {
    let world = World::new(TddMode::Strict);
    world.fails(Some(&[OLD_TEST]));
    let together = [
        world.write_of(WriteKind::Modify, OLD_CODE, None),
        world.write_of(WriteKind::Modify, OLD_TEST, None),
    ];
    let verdict = world.judge_all(&together);
    assert_eq!(rule(&verdict), "tdd/test-with-repair");
    let Verdict::Deny { error, .. } = verdict else { unreachable!() };
    assert!(error.message.contains("`tests/a.test.ts`"), "{error}");
    // A test that is changed by itself has to be run before code follows it.
    world.write(OLD_TEST, Some("weakened"));
    assert!(!world.may(WriteKind::Modify, OLD_CODE));
    // After a repair the next call is held to the same, whatever was run in between.
    let world = World::new(TddMode::Strict);
    world.fails(Some(&[OLD_TEST]));
    world.write(OLD_CODE, Some("first try"));
    world.fails(Some(&[OLD_TEST]));
    assert_eq!(rule(&world.judge_all(&together)), "tdd/test-with-repair");
}

#[test]
fn bug_tests_and_code_were_changed_together_when_a_change_outside_had_broken_the_code() {
    let world = green();
    world.outside(OLD_CODE, Some("broken by hand"));
    assert_eq!(world.fails(Some(&[OLD_TEST])).state_after, TddState::Refactor);
    let together = [
        world.write_of(WriteKind::Modify, OLD_CODE, None),
        world.write_of(WriteKind::Modify, OLD_TEST, None),
    ];
    assert_eq!(rule(&world.judge_all(&together)), "tdd/test-with-repair");
    assert!(world.may(WriteKind::Modify, OLD_CODE));
}

#[test]
fn an_outside_change_ends_a_repair() {
    let world = World::new(TddMode::Strict);
    world.fails(Some(&[OLD_TEST]));
    world.outside(OLD_TEST, Some("by hand"));
    assert_eq!(rule(&world.judge(WriteKind::Modify, OLD_CODE)), "tdd/stale-pass");
}

#[test]
fn a_failure_of_files_that_are_not_there_admits_nothing() {
    let world = World::new(TddMode::Strict);
    assert_eq!(world.fails(Some(&["tests/elsewhere.test.ts"])).state_after, TddState::Idle);
    assert!(!world.may(WriteKind::Modify, OLD_CODE));
}

#[test]
fn bug_a_file_could_not_be_moved_while_green() {
    let world = green();
    let moved = |after: &str| {
        [
            world.write_of(WriteKind::Delete, "src/price.ts", None),
            world.write_of(WriteKind::Create, "src/shop/price.ts", Some(after)),
        ]
    };
    assert_eq!(rule(&world.judge_all(&moved(MODULE))), "tdd/moved");
    // With the imports that a move changes, which are a large part of a small module.
    let imports = MODULE.replace("'./math'", "'../math'");
    assert_eq!(rule(&world.judge_all(&moved(&imports))), "tdd/known-lines");
    for other in ["'./math'; steal()", "'math'", "'./math' + '", "`./${steal()}`"] {
        let short = format!("import {{ round }} from {other};\nlog(gross);\n");
        assert_eq!(rule(&world.judge_all(&moved(&short))), "tdd/new-while-green", "{other}");
    }
    assert_eq!(rule(&world.judge_all(&moved("export const other = 1;\n"))), "tdd/new-while-green");
    // A file that no run has seen, because git ignores it, is new in its new place.
    let ignored = "export const unseen = 1;\n";
    world.outside("build/unseen.ts", Some(ignored));
    let unseen = [
        world.write_of(WriteKind::Delete, "build/unseen.ts", None),
        world.write_of(WriteKind::Create, "src/unseen.ts", Some(ignored)),
    ];
    assert_eq!(rule(&world.judge_all(&unseen)), "tdd/new-while-green");
    world.outside("build/unseen.ts", None);
    // A folder, all at once.
    world.outside("src/tax.ts", Some("export const tax = 1.19;\n"));
    world.passes();
    let folder: Vec<_> = moved(MODULE)
        .into_iter()
        .chain([
            world.write_of(WriteKind::Delete, "src/tax.ts", None),
            world.write_of(WriteKind::Create, "src/shop/tax.ts", Some("export const tax = 1.19;\n")),
        ])
        .collect();
    assert_eq!(rule(&world.judge_all(&folder)), "tdd/moved");
}

#[test]
fn bug_a_module_could_not_be_split_while_green() {
    let world = green();
    let split = "export function price(net: number): number {\n  const gross = net * rate;\n  return round(gross);\n}\n";
    let create = |file, text| world.write_of(WriteKind::Create, file, Some(text));
    assert_eq!(rule(&world.judge_all(&[create("src/gross.ts", split)])), "tdd/known-lines");
    // Two at once are not one.
    let two = [create("src/gross.ts", split), create("src/gross2.ts", split)];
    assert_eq!(rule(&world.judge_all(&two)), "tdd/new-while-green");
    // The first one makes it a refactoring, and the next one has to wait for green.
    world.write("src/gross.ts", Some(split));
    assert_eq!(world.state(), TddState::Refactor);
    assert_eq!(rule(&world.judge_all(&[create("src/more.ts", split)])), "tdd/new-while-refactoring");
    assert!(world.may(WriteKind::Modify, "src/price.ts"));
    world.passes();
    assert_eq!(rule(&world.judge_all(&[create("src/more.ts", split)])), "tdd/known-lines");
}

#[test]
fn new_code_is_not_hidden_among_known_lines() {
    let world = green();
    let create = |text: &str| {
        rule(&world.judge_all(&[world.write_of(WriteKind::Create, "src/x.ts", Some(text))])).to_owned()
    };
    let line = "  const gross = net * rate;\n";
    for (name, text) in [
        ("one known line, repeated", format!("{}{}", line.repeat(40), "steal();\n".repeat(10))),
        ("braces and blank lines", format!("{}steal();\n", "}\n\n{\n".repeat(50))),
        ("code without letters", format!("{MODULE}{}", "([][[]]+[])[+[]]+([][[]]+[])[+[]];\n".repeat(4))),
        ("one long line", format!("{MODULE}{}\n", "steal();".repeat(50))),
        ("lines that end with a carriage return", format!("{MODULE}steal();\rmore();\rand_more();\r")),
        ("an empty file that waits to be filled", String::new()),
        ("too large", format!("{MODULE}{}", "x".repeat(2 << 20))),
        ("a third new", format!("{MODULE}steal();\nmore();\nand_more();\n")),
    ] {
        assert_eq!(create(&text), "tdd/new-while-green", "{name}");
    }
    assert_eq!(create(MODULE), "tdd/known-lines");
    let package = world.write_of(WriteKind::Create, "shop/__init__.py", Some(""));
    assert_eq!(rule(&world.judge_all(&[package])), "tdd/known-lines");
    // Lines of a file that was changed by hand are not those of the run.
    world.outside("src/price.ts", Some("other"));
    assert_eq!(create(MODULE), "tdd/new-while-green");
}

#[test]
fn bug_what_a_forged_tool_writes_was_held_to_a_test() {
    let world = World::new(TddMode::Strict);
    let output = world.write_of(WriteKind::Create, "gen/api.ts", None);
    for tool in ["exec_tool", "exec_code"] {
        let verdict = world.tdd.judge_writes(&agent(), tool, std::slice::from_ref(&output), &world.disk);
        assert_eq!(rule(&verdict), "tdd/tool-output");
    }
    // Not the tools themselves.
    let mut tool = world.write_of(WriteKind::Create, ".tgp/tools/a.ts", None);
    tool.root = Root::Project;
    let verdict = world.tdd.judge_writes(&Actor::Agent(String::new()), "exec_tool", &[tool], &world.disk);
    assert_eq!(rule(&verdict), "tdd/no-failing-test");
    world.tdd.set(&Scope::Project, TddState::Halted, &world.disk).unwrap();
    let verdict = world.tdd.judge_writes(&agent(), "exec_tool", &[output], &world.disk);
    assert_eq!(rule(&verdict), "tdd/halted");
}

#[test]
fn a_new_test_that_fails_goes_before_an_old_one() {
    let world = World::new(TddMode::Strict);
    world.write(NEW_TEST, Some("new test"));
    assert_eq!(world.fails(Some(&[OLD_TEST, NEW_TEST])).state_after, TddState::Red);
    assert!(world.may(WriteKind::Create, "src/c.ts"));
}
