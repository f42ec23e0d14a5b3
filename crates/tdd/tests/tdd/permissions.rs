//! What an agent, a person and a tool may write, in every mode and state.

use tgp_contract::{Access, Actor, Root, Target, TddMode, TddState, Verdict};
use tgp_tdd::{Contents, Permissions, Scope, Write, WriteKind, WriteRequest};

use crate::support::{NEW_CODE, NEW_TEST, OLD_CODE, World, agent, path};

/// For each state in the order of the documentation: what an agent may do to code. `c` create, `m` modify, `d` delete.
#[rustfmt::skip]
const TABLE: &[(TddMode, [&str; 8])] = &[
    //                    idle    test    red     code    green  refactor done   halted
    (TddMode::Strict,  ["--d",  "---",  "cmd",  "cmd",  "-md",  "-md",  "---",  "---"]),
    (TddMode::Explore, ["cmd",  "cmd",  "cmd",  "cmd",  "cmd",  "cmd",  "cmd",  "---"]),
    (TddMode::Debug,   ["-md",  "-md",  "cmd",  "cmd",  "-md",  "-md",  "-md",  "---"]),
];

fn letters(permissions: Permissions) -> String {
    [(permissions.create, 'c'), (permissions.modify, 'm'), (permissions.delete, 'd')]
        .map(|(may, letter)| if may { letter } else { '-' })
        .iter()
        .collect()
}

#[test]
fn code_may_be_written_exactly_where_the_table_says() {
    for (mode, row) in TABLE {
        for (state, expected) in TddState::ALL.iter().zip(row) {
            let world = World::at(*mode, *state);
            let said = world.tdd.permissions(&agent(), &world.scope, &world.disk).unwrap();
            assert_eq!(letters(said), *expected, "{mode:?} {state:?}");
            // The verdicts of single files say the same as the summary, and so does the status.
            let judged = Permissions {
                create: world.may(WriteKind::Create, "src/never.ts"),
                modify: world.may(WriteKind::Modify, OLD_CODE),
                delete: world.may(WriteKind::Delete, OLD_CODE),
            };
            assert_eq!(judged, said, "{mode:?} {state:?}");
            assert_eq!(world.tdd.standing(&world.scope, &world.disk).unwrap().code, said);
            // Tests and exempt files are free, unless everything is stopped.
            let free = *state != TddState::Halted;
            for file in [NEW_TEST, "README.md", "Cargo.lock"] {
                for kind in [WriteKind::Create, WriteKind::Modify, WriteKind::Delete] {
                    assert_eq!(world.may(kind, file), free, "{kind:?} {file} in {mode:?} {state:?}");
                }
            }
        }
    }
}

fn verdict(world: &World, actor: &Actor, targets: &[Target]) -> Verdict {
    let request = WriteRequest { actor, tool: "some_tool", targets, is_judged_later: false };
    let verdict = world.tdd.judge(request, &world.disk);
    // Now that the state is in memory: where there is a quick answer, it is the same.
    if let Some(quick) = world.tdd.judge_at_once(request) {
        assert_eq!(quick, verdict, "{targets:?}");
    }
    verdict
}

#[test]
fn a_call_that_only_reads_is_judged_at_once_and_no_other() {
    let world = World::new(TddMode::Strict);
    let actor = agent();
    let quick = |targets: &[Target]| {
        world.tdd.judge_at_once(WriteRequest {
            actor: &actor,
            tool: "some_tool",
            targets,
            is_judged_later: false,
        })
    };
    let read = [file(OLD_CODE, Access::Read)];
    assert!(matches!(verdict(&world, &actor, &read), Verdict::Allow { .. }));
    assert_eq!(quick(&read), Some(Verdict::Allow { rule: "tdd/no-write".to_owned() }));
    assert_eq!(quick(&[file(OLD_CODE, Access::Read), file(OLD_CODE, Access::Write)]), None);
    assert_eq!(quick(&[file(OLD_CODE, Access::Delete)]), None);
    world.tdd.set(&Scope::Project, TddState::Halted, &world.disk).unwrap();
    assert_eq!(quick(&read), None, "a refusal is left to whoever can explain it");
}

fn rule(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allow { rule } => rule,
        other => panic!("{other:?}"),
    }
}

fn file(file: &str, access: Access) -> Target {
    Target::File { root: Root::Project, path: path(file), access }
}

#[test]
fn a_person_owns_the_project_and_a_tool_does_not() {
    for state in TddState::ALL {
        let world = World::at(TddMode::Strict, *state);
        let target = [file("src/by_hand.ts", Access::Write)];
        let by_person = verdict(&world, &Actor::Person("ada".to_owned()), &target);
        let by_agent = verdict(&world, &agent(), &target);
        let by_tool = verdict(&world, &Actor::Tool(path("tools/x.ts")), &target);
        if *state == TddState::Halted {
            assert!(matches!(by_person, Verdict::Deny { .. }));
        } else {
            assert_eq!(rule(by_person), "tdd/person");
        }
        assert_eq!(
            matches!(by_agent, Verdict::Allow { .. }),
            matches!(state, TddState::Red | TddState::CodeAllowed),
            "{state:?}"
        );
        assert_eq!(by_agent, by_tool);
    }
}

#[test]
fn whether_a_file_is_new_is_asked_of_the_disk() {
    let world = World::at(TddMode::Strict, TddState::Green);
    assert_eq!(rule(verdict(&world, &agent(), &[file(NEW_CODE, Access::Write)])), "tdd/refactor");
    assert!(matches!(verdict(&world, &agent(), &[file("src/c.ts", Access::Write)]), Verdict::Deny { .. }));
}

#[test]
fn one_file_that_may_not_be_written_refuses_the_whole_call() {
    let world = World::at(TddMode::Strict, TddState::Idle);
    let mixed = [
        file("README.md", Access::Write),
        file(NEW_TEST, Access::Write),
        file(NEW_CODE, Access::Write),
        file("docs/x.md", Access::Delete),
    ];
    let Verdict::Deny { rule, error } = verdict(&world, &agent(), &mixed) else { panic!("allowed") };
    assert_eq!(rule, "tdd/no-failing-test");
    assert_eq!(error.details["file"], NEW_CODE);
    // Without it the same call is free.
    assert!(matches!(verdict(&world, &agent(), &mixed[..2]), Verdict::Allow { .. }));
}

#[test]
fn halting_stops_reads_commands_and_the_network_too() {
    let targets = [
        file(OLD_CODE, Access::Read),
        Target::Network,
        Target::Host { host: "example.com".to_owned() },
        Target::Command { command: "ls".to_owned() },
        Target::Statement { sql: "select 1".to_owned(), kinds: vec!["select".to_owned()], reads: false },
    ];
    for state in TddState::ALL {
        let world = World::at(TddMode::Strict, *state);
        let halted = *state == TddState::Halted;
        for target in &targets {
            let answer = verdict(&world, &agent(), std::slice::from_ref(target));
            assert_eq!(matches!(answer, Verdict::Deny { .. }), halted, "{target:?} in {state:?}");
            assert_eq!(world.tdd.is_tool_allowed("some_tool", target, &world.disk).is_err(), halted);
        }
        assert_eq!(matches!(verdict(&world, &agent(), &[]), Verdict::Deny { .. }), halted);
    }
}

#[test]
fn a_halted_tool_stops_what_touches_it_and_a_halted_project_stops_all() {
    let world = World::new(TddMode::Explore);
    let tool = Scope::parse("tools/math/fib.ts").unwrap();
    let read = |file: &str| {
        let target = Target::File { root: Root::Tools, path: path(file), access: Access::Read };
        matches!(verdict(&world, &agent(), &[target]), Verdict::Allow { .. })
    };
    world.tdd.set(&tool, TddState::Halted, &world.disk).unwrap();
    assert!(!read("tools/math/fib.ts") && !read("tools/math/fib.test.ts"));
    assert!(read("tools/math/sum.ts"));
    let write = [Write {
        root: Root::Tools,
        path: path("tools/math/fib.test.ts"),
        kind: WriteKind::Modify,
        after: Contents::Unknown,
    }];
    let answer = world.tdd.judge_writes(&agent(), "write_file", &write, &world.disk);
    assert!(matches!(answer, Verdict::Deny { .. }));
    world.tdd.set(&tool, TddState::Idle, &world.disk).unwrap();
    assert!(read("tools/math/fib.ts"));
    world.tdd.set(&Scope::Project, TddState::Halted, &world.disk).unwrap();
    assert!(!read("tools/math/sum.ts"));
    let permissions = world.tdd.permissions(&agent(), &tool, &world.disk).unwrap();
    assert_eq!(permissions, Permissions::default());
}

#[test]
fn each_tool_has_a_machine_of_its_own() {
    let mut world = World::new(TddMode::Strict);
    world.scope = Scope::parse("tools/math/fib.ts").unwrap();
    assert!(!world.may(WriteKind::Create, "tools/math/fib.ts"));
    world.write("tools/math/fib.test.ts", Some("expects"));
    assert_eq!(world.fails(None).state_after, TddState::Red);
    assert!(world.may(WriteKind::Create, "tools/math/fib.ts"));
    assert!(!world.may(WriteKind::Create, "tools/math/sum.ts"));
    assert!(!world.tdd.permissions(&agent(), &Scope::Project, &world.disk).unwrap().create);
    world.write("tools/math/fib.ts", Some("code"));
    assert_eq!(world.passes().state_after, TddState::Green);
    // The same file by its way through the project.
    let write = Write {
        root: Root::Project,
        path: path(".tgp/tools/math/sum.ts"),
        kind: WriteKind::Create,
        after: Contents::Unknown,
    };
    let answer = world.tdd.judge_writes(&agent(), "shell_exec", &[write], &world.disk);
    assert!(matches!(answer, Verdict::Deny { .. }));
}
