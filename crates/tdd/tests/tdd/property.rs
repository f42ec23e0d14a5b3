//! Random work against an oracle that knows nothing of states: it searches everything that has happened.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tgp_contract::{FileEffect, Root, TddMode, TddState};
use tgp_tdd::{FileHasher, Scope, Selection, SourceSnapshot, TestOutcome, TestRun, WriteKind};

use crate::store::open;
use crate::support::{Disk, World, path, store_in_memory};

const TESTS: [&str; 3] = ["tests/a.test.ts", "tests/b.test.ts", "tests/c.test.ts"];
const CODE: [&str; 2] = ["src/a.ts", "src/b.ts"];

type Files = BTreeMap<&'static str, u8>;

#[derive(Clone, Debug)]
enum Step {
    /// An agent asks, and writes when it may. `None` deletes.
    Agent {
        file: &'static str,
        content: Option<u8>,
    },
    /// An editor or git, which is not reported.
    Outside {
        file: &'static str,
        content: Option<u8>,
    },
    Run {
        passes: bool,
        whole: bool,
        stale: bool,
        failing: Option<Vec<&'static str>>,
    },
    Idle,
    Finish,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = prop::sample::select([TESTS.as_slice(), CODE.as_slice()].concat());
    let content = prop::option::weighted(0.85, 0_u8..3);
    let failing = prop::option::of(prop::collection::vec(prop::sample::select(TESTS.to_vec()), 1..3));
    let step = prop_oneof![
        6 => (file.clone(), content.clone()).prop_map(|(file, content)| Step::Agent { file, content }),
        2 => (file, content).prop_map(|(file, content)| Step::Outside { file, content }),
        5 => (prop::bool::weighted(0.4), prop::bool::weighted(0.8), prop::bool::weighted(0.15), failing)
            .prop_map(|(passes, whole, stale, failing)| Step::Run { passes, whole, stale, failing }),
        1 => Just(Step::Finish),
        1 => prop::bool::weighted(0.3).prop_map(|idle| if idle { Step::Idle } else { Step::Finish }),
    ];
    prop::collection::vec(step, 1..40)
}

/// Something that has happened, with the files as they were just after it.
enum Event {
    NotedTest,
    NotedOther,
    Unnoted,
    Passed,
    Failed { known: Option<BTreeSet<&'static str>>, whole: bool },
    Nothing,
    Idle,
}

#[derive(Default)]
struct History {
    events: Vec<(Event, Files)>,
    begun: Files,
}

impl History {
    /// Where the present cycle begins, and the tests as they were then known to be old.
    fn cycle(&self) -> (usize, &Files) {
        let pass = self.events.iter().rposition(|(event, _)| matches!(event, Event::Passed));
        let idle = self.events.iter().rposition(|(event, _)| matches!(event, Event::Idle));
        let old = pass.map_or(&self.begun, |index| &self.events[index].1);
        (pass.max(idle).map_or(0, |index| index + 1), old)
    }

    /// A failing run since the last green one, of tests that are new or changed and are still as they failed.
    fn a_new_test_has_failed(&self, now: &Files) -> bool {
        let (begin, old) = self.cycle();
        let fresh = |files: &Files| -> BTreeSet<&'static str> {
            TESTS
                .into_iter()
                .filter(|test| files.contains_key(test) && files.get(test) != old.get(test))
                .collect()
        };
        let since = &self.events[begin..];
        let failures = since.iter().enumerate().filter_map(|(index, (event, files))| match event {
            Event::Failed { known, whole } => Some((index, known, *whole, files)),
            _ => None,
        });
        let mut has_been_red = false;
        let mut admits = false;
        for (index, known, whole, files) in failures {
            let new = fresh(files);
            let hit: BTreeSet<_> = match known {
                None => new.clone(),
                Some(known) => new.intersection(known).copied().collect(),
            };
            // A run of some tests says nothing of those that are not known to have failed in it.
            if !whole && (known.is_none() || hit.is_empty()) {
                continue;
            }
            has_been_red |= !hit.is_empty();
            let rests_on = if hit.is_empty() { new } else { hit };
            let untouched = !since[index..].iter().any(|(event, _)| matches!(event, Event::NotedTest));
            let unchanged = rests_on.iter().all(|test| now.get(test) == files.get(test));
            admits |= has_been_red && !rests_on.is_empty() && untouched && unchanged;
        }
        admits
    }

    /// A green run since a person last cleared the table, after which every difference was reported.
    fn is_known_since_green(&self, now: &Files) -> bool {
        let idle = self.events.iter().rposition(|(event, _)| matches!(event, Event::Idle)).unwrap_or(0);
        if !self.events[idle..].iter().any(|(event, _)| matches!(event, Event::Passed)) {
            return false;
        }
        self.is_known_since_run(now)
    }

    /// A failing run since a person last cleared the table, with a test among the failing that is neither new nor changed,
    /// after which every difference was reported.
    fn an_old_test_has_failed(&self, now: &Files) -> bool {
        let idle = self.events.iter().rposition(|(event, _)| matches!(event, Event::Idle)).unwrap_or(0);
        let mut old = &self.begun;
        let mut has_failed = false;
        for (index, (event, files)) in self.events.iter().enumerate() {
            if let Event::Passed = event {
                old = files;
            }
            if let Event::Failed { known, .. } = event {
                let is_old =
                    |test: &&'static str| files.contains_key(test) && files.get(test) == old.get(test);
                let changed = TESTS.iter().any(|test| files.contains_key(test) && !is_old(test));
                let failed = known.as_ref().map_or(!changed, |known| known.iter().any(is_old));
                has_failed |= failed && index >= idle;
            }
        }
        has_failed && self.is_known_since_run(now)
    }

    fn is_known_since_run(&self, now: &Files) -> bool {
        let is_run = |event: &Event| matches!(event, Event::Passed | Event::Failed { .. });
        let Some(run) = self.events.iter().rposition(|(event, _)| is_run(event)) else { return false };
        // Every file of that run must be reachable from it by reported steps alone.
        self.events[run].1.keys().all(|file| {
            let mut told = self.events[run].1.get(file).copied();
            let mut before = told;
            for (event, files) in &self.events[run + 1..] {
                let after = files.get(file).copied();
                if matches!(event, Event::NotedTest | Event::NotedOther) && after != before && told == before
                {
                    told = after;
                }
                before = after;
            }
            told == now.get(file).copied()
        })
    }
}

fn content_of(content: Option<u8>) -> Option<String> {
    content.map(|number| format!("content {number}"))
}

fn hashes(files: &Files) -> SourceSnapshot {
    let mut snapshot = SourceSnapshot::new();
    for (file, content) in files {
        snapshot.insert_content(path(file), content_of(Some(*content)).unwrap().as_bytes()).unwrap();
    }
    snapshot
}

fn run(
    snapshot: SourceSnapshot,
    passes: bool,
    whole: bool,
    stale: bool,
    failing: Option<&[&str]>,
) -> TestRun {
    TestRun {
        scope: Scope::Project,
        command: "tests".to_owned(),
        selection: if whole { Selection::Whole } else { Selection::Part },
        exit_code: Some(i32::from(!passes)),
        passed: Some(1),
        failed: Some(u64::from(!passes)),
        failing_files: failing.map(|files| files.iter().map(|file| path(file)).collect()),
        after: if stale { SourceSnapshot::new() } else { snapshot.clone() },
        before: snapshot,
        started_ms: 0,
        duration_ms: 0,
    }
}

fn lay_out(handles: &[World], files: &Files) {
    for world in handles {
        for file in [TESTS.as_slice(), CODE.as_slice()].concat() {
            world.disk.put(Root::Project, file, content_of(files.get(file).copied()).as_deref());
        }
    }
}

/// Takes the steps with several handles on one store, which take turns, and checks every answer.
fn check(steps: &[Step], mut handles: Vec<World>) -> Result<Vec<TddState>, TestCaseError> {
    let mut files: Files = Files::from([(TESTS[0], 0), (CODE[0], 0)]);
    let mut history = History { begun: files.clone(), ..History::default() };
    let mut states = Vec::new();
    lay_out(&handles, &files);
    handles[0].tdd.begin(&Scope::Project, &hashes(&files)).unwrap();
    for (number, step) in steps.iter().enumerate() {
        let turn = number % handles.len();
        let world = &mut handles[turn];
        let event = match step {
            Step::Agent { file, content } => {
                let kind = match (files.get(file), content) {
                    (_, None) => WriteKind::Delete,
                    (None, Some(_)) => WriteKind::Create,
                    (Some(_), Some(_)) => WriteKind::Modify,
                };
                let is_test = TESTS.contains(file);
                let before = world.disk.hash(Root::Project, &path(file));
                if !world.may(kind, file) || before.is_none() && content.is_none() {
                    prop_assert!(!is_test || content.is_none(), "a test was refused");
                    Event::Nothing
                } else {
                    let unchanged = files.get(file) == content.as_ref();
                    match content {
                        Some(content) => files.insert(file, *content),
                        None => files.remove(file),
                    };
                    world.disk.put(Root::Project, file, content_of(*content).as_deref());
                    let after = world.disk.hash(Root::Project, &path(file));
                    let effect = FileEffect::new(Root::Project, path(file), before, after);
                    world.tdd.note_changes(&[effect]).unwrap();
                    match (unchanged, is_test) {
                        (true, _) => Event::Nothing,
                        (false, true) => Event::NotedTest,
                        (false, false) => Event::NotedOther,
                    }
                }
            }
            Step::Outside { file, content } => {
                match content {
                    Some(content) => files.insert(file, *content),
                    None => files.remove(file),
                };
                Event::Unnoted
            }
            Step::Run { passes, whole, stale, failing } => {
                let run = run(hashes(&files), *passes, *whole, *stale, failing.as_deref());
                let noted = world.tdd.note_run(&run).unwrap();
                match noted.outcome {
                    TestOutcome::Passed if *whole => Event::Passed,
                    TestOutcome::Failed => Event::Failed {
                        known: failing.as_ref().map(|files| files.iter().copied().collect()),
                        whole: *whole,
                    },
                    _ => Event::Nothing,
                }
            }
            Step::Idle => {
                world.tdd.set(&Scope::Project, TddState::Idle, &world.disk).unwrap();
                Event::Idle
            }
            Step::Finish => {
                let was_done = world.state() == TddState::Done;
                let finished = world.tdd.finish(&Scope::Project, &world.disk).is_ok();
                prop_assert!(
                    was_done || !finished || history.is_known_since_green(&files),
                    "done, but not green"
                );
                Event::Nothing
            }
        };
        history.events.push((event, files.clone()));
        let next = (number + 1) % handles.len();
        lay_out(&handles, &files);
        let world = &handles[next];
        states.push(world.state());
        let red = history.a_new_test_has_failed(&files);
        let green = history.is_known_since_green(&files);
        prop_assert!(!world.may(WriteKind::Create, "src/new.ts") || red, "new code without a failing test");
        prop_assert!(
            !world.may(WriteKind::Modify, "src/old.ts")
                || red
                || green
                || history.an_old_test_has_failed(&files),
            "code changed without a run"
        );
    }
    Ok(states)
}

fn world_in_memory() -> World {
    World { tdd: store_in_memory(TddMode::Strict), disk: Disk::default(), scope: Scope::Project }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn code_is_never_admitted_without_a_failing_new_test(steps in steps()) {
        let world = world_in_memory();
        check(&steps, vec![world])?;
    }

    #[test]
    fn work_is_never_stuck(steps in steps()) {
        // Wherever random work has led: a new test that fails admits code, and a pass makes it green.
        let world = world_in_memory();
        for file in ["tests/a.test.ts", "src/a.ts"] {
            world.outside(file, Some("content 0"));
        }
        for step in &steps {
            match step {
                Step::Agent { file, content } => world.write(file, content_of(*content).as_deref()),
                Step::Outside { file, content } => world.outside(file, content_of(*content).as_deref()),
                Step::Run { passes, whole, stale, failing } => {
                    let snapshot = world.disk.snapshot(Root::Project);
                    world.note(&run(snapshot, *passes, *whole, *stale, failing.as_deref()));
                }
                Step::Idle => world.tdd.set(&world.scope, TddState::Idle, &world.disk).unwrap(),
                Step::Finish => drop(world.tdd.finish(&world.scope, &world.disk)),
            }
        }
        world.write("tests/last.test.ts", Some("the last word"));
        prop_assert!(!world.may(WriteKind::Create, "src/last.ts"));
        world.fails(Some(&["tests/last.test.ts"]));
        prop_assert!(world.may(WriteKind::Create, "src/last.ts"));
        world.write("src/last.ts", Some("code"));
        prop_assert_eq!(world.state(), TddState::CodeAllowed);
        world.passes();
        prop_assert!(world.may(WriteKind::Modify, "src/last.ts") && !world.may(WriteKind::Create, "src/more.ts"));
        prop_assert!(world.tdd.finish(&world.scope, &world.disk).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn handles_that_take_turns_are_one_machine(steps in steps()) {
        let alone = check(&steps, vec![world_in_memory()])?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tdd.db");
        let world = || World { tdd: open(&file), disk: Disk::default(), scope: Scope::Project };
        let together = check(&steps, vec![world(), world(), world()])?;
        prop_assert_eq!(alone, together);
    }
}
