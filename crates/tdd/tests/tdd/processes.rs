//! Several processes and one store; and a process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use tgp_contract::{FileEffect, Root, TddState};
use tgp_tdd::{Scope, WriteKind};

use crate::store::open;
use crate::support::{NEW_CODE, NEW_TEST, OLD_CODE, OLD_TEST, World, path};

/// Runs one test of this binary in its own process, with `store` as its task.
fn child(test: &str, store: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env("TGP_TDD_STORE", store).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn task() -> Option<std::path::PathBuf> {
    std::env::var_os("TGP_TDD_STORE").map(Into::into)
}

#[test]
fn what_was_noted_survives_a_kill() {
    const NAME: &str = "processes::what_was_noted_survives_a_kill";
    if let Some(store) = task() {
        let world = World::with(open(&store));
        world.write(NEW_TEST, Some("new test"));
        world.fails(Some(&[NEW_TEST]));
        for round in 0_u64.. {
            world.write(NEW_CODE, Some(&format!("code {round}")));
            std::io::stdout().write_all(format!("wrote {round}\n").as_bytes()).unwrap();
        }
    }
    for lines in [1, 3, 9] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("tdd.db");
        let mut process = child(NAME, &store).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(output.filter(|line| line.starts_with("wrote ")).nth(lines - 1).is_some());
        process.kill().unwrap();
        process.wait().unwrap();

        let world = World::with(open(&store));
        world.outside(NEW_TEST, Some("new test"));
        assert_eq!(world.state(), TddState::CodeAllowed);
        assert!(world.may(WriteKind::Create, "src/more.ts"));
        assert_eq!(world.tdd.last_run(&Scope::Project).unwrap().unwrap().state_after, TddState::Red);
        // The baseline is that of the dead process: its new test is new, and the old one is not.
        assert_eq!(world.fails(Some(&[OLD_TEST, NEW_TEST])).state_after, TddState::CodeAllowed);
        let standing = world.tdd.standing(&Scope::Project, &world.disk).unwrap();
        assert_eq!(standing.failing_tests, [path(NEW_TEST)]);
        assert_eq!(world.passes().state_after, TddState::Green);
        assert!(world.may(WriteKind::Modify, OLD_CODE));
    }
}

const FILES: usize = 40;

#[test]
fn processes_at_once_lose_nothing_of_each_other() {
    const NAME: &str = "processes::processes_at_once_lose_nothing_of_each_other";
    if let Some(store) = task() {
        let tdd = open(&store);
        let number = std::process::id();
        for round in 0..FILES {
            let file = path(&format!("tests/p{number}_{round}.test.ts"));
            let after = Some("0".repeat(64));
            tdd.note_changes(&[FileEffect::new(Root::Project, file, None, after)]).unwrap();
            let world = World { tdd: open(&store), disk: Default::default(), scope: Scope::Project };
            world.outside("src/a.ts", Some("code"));
            world.note(&world.run(0, 0, 0));
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tdd.db");
    let processes: Vec<_> = (0..3).map(|_| child(NAME, &store).spawn().unwrap()).collect();
    let numbers: Vec<u32> = processes.iter().map(std::process::Child::id).collect();
    for process in processes {
        assert!(process.wait_with_output().unwrap().status.success());
    }
    let world = World { tdd: open(&store), disk: Default::default(), scope: Scope::Project };
    for number in &numbers {
        for round in 0..FILES {
            world.outside(&format!("tests/p{number}_{round}.test.ts"), Some("test"));
        }
    }
    // Each note of each process is there: every one of these tests is known to be new.
    assert_eq!(world.fails(None).state_after, TddState::Red);
    let standing = world.tdd.standing(&Scope::Project, &world.disk).unwrap();
    assert_eq!(standing.failing_tests.len(), numbers.len() * FILES);
    assert_eq!(world.tdd.runs(&Scope::Project, 200).unwrap().len(), numbers.len() * FILES + 1);
}
