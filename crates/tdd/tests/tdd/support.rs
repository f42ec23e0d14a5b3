//! A project that exists in memory, and a machine that watches it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tgp_contract::canonical::sha256_hex;
use tgp_contract::{Actor, FileEffect, RelativePath, Root, TddMode, TddState, Verdict};
use tgp_tdd::{
    Contents, FileHasher, FileKind, Scope, Selection, SourceSnapshot, Store, Tdd, TddOptions, TestRun,
    Transition, Write, WriteKind,
};

pub const OLD_TEST: &str = "tests/a.test.ts";
pub const NEW_TEST: &str = "tests/b.test.ts";
pub const OLD_CODE: &str = "src/a.ts";
pub const NEW_CODE: &str = "src/b.ts";

pub fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub fn agent() -> Actor {
    Actor::Agent("agent".to_owned())
}

/// Files by root and path.
#[derive(Debug, Default)]
pub struct Disk(RefCell<BTreeMap<(Root, RelativePath), String>>);

impl FileHasher for Disk {
    fn hash(&self, root: Root, path: &RelativePath) -> Option<String> {
        self.0.borrow().get(&(root, path.clone())).map(|content| sha256_hex(content.as_bytes()))
    }

    fn read(&self, root: Root, path: &RelativePath) -> Option<Vec<u8>> {
        self.0.borrow().get(&(root, path.clone())).map(|content| content.clone().into_bytes())
    }
}

impl Disk {
    pub fn put(&self, root: Root, file: &str, content: Option<&str>) {
        let key = (root, path(file));
        match content {
            Some(content) => self.0.borrow_mut().insert(key, content.to_owned()),
            None => self.0.borrow_mut().remove(&key),
        };
    }

    pub fn snapshot(&self, root: Root) -> SourceSnapshot {
        let mut snapshot = SourceSnapshot::new();
        for ((_, path), content) in self.0.borrow().iter().filter(|((one, _), _)| *one == root) {
            snapshot.insert_content(path.clone(), content.as_bytes()).unwrap();
        }
        snapshot
    }
}

pub fn store_in_memory(mode: TddMode) -> Tdd {
    let options = TddOptions { mode, ..TddOptions::default() };
    Tdd::open(Store::open_in_memory().unwrap(), &options).unwrap()
}

pub struct World {
    pub tdd: Tdd,
    pub disk: Disk,
    pub scope: Scope,
}

impl World {
    /// A project with one test and one file of code, before any work.
    pub fn new(mode: TddMode) -> Self {
        Self::with(store_in_memory(mode))
    }

    pub fn with(tdd: Tdd) -> Self {
        let world = Self { tdd, disk: Disk::default(), scope: Scope::Project };
        world.outside(OLD_TEST, Some("old test"));
        world.outside(OLD_CODE, Some("old code"));
        world.tdd.begin(&world.scope, &world.disk.snapshot(Root::Project)).unwrap();
        world
    }

    /// The same project, brought to `state` the way an agent would.
    pub fn at(mode: TddMode, state: TddState) -> Self {
        let world = Self::new(mode);
        let steps: &[&dyn Fn()] = &[
            &|| world.write(NEW_TEST, Some("new test")),
            &|| drop(world.fails(Some(&[NEW_TEST]))),
            &|| world.write(NEW_CODE, Some("new code")),
            &|| drop(world.passes()),
            &|| world.write(OLD_CODE, Some("tidied code")),
        ];
        let taken = match state {
            TddState::Idle | TddState::Halted => 0,
            TddState::TestWritten => 1,
            TddState::Red => 2,
            TddState::CodeAllowed => 3,
            TddState::Green | TddState::Done => 4,
            TddState::Refactor => 5,
        };
        steps[..taken].iter().for_each(|step| step());
        if matches!(state, TddState::Done | TddState::Halted) {
            world.tdd.set(&world.scope, state, &world.disk).unwrap();
        }
        assert_eq!(world.state(), state);
        world
    }

    pub fn state(&self) -> TddState {
        self.tdd.state(&self.scope).unwrap()
    }

    /// A change that is not reported.
    pub fn outside(&self, file: &str, content: Option<&str>) {
        self.disk.put(self.scope.root(), file, content);
    }

    /// A change that a tool made, without asking whether it may.
    pub fn write(&self, file: &str, content: Option<&str>) {
        let root = self.scope.root();
        let before = self.disk.hash(root, &path(file));
        self.disk.put(root, file, content);
        let after = self.disk.hash(root, &path(file));
        self.tdd.note_changes(&[FileEffect::new(root, path(file), before, after)]).unwrap();
    }

    /// A run as it would be if nothing disturbed it.
    pub fn run(&self, exit_code: i32, passed: u64, failed: u64) -> TestRun {
        let snapshot = self.disk.snapshot(self.scope.root());
        TestRun {
            scope: self.scope.clone(),
            command: "npm test".to_owned(),
            selection: Selection::Whole,
            exit_code: Some(exit_code),
            passed: Some(passed),
            failed: Some(failed),
            failing_files: None,
            before: snapshot.clone(),
            after: snapshot,
            started_ms: 1_700_000_000_000,
            duration_ms: 12,
        }
    }

    pub fn note(&self, run: &TestRun) -> Transition {
        self.tdd.note_run(run).unwrap()
    }

    pub fn passes(&self) -> Transition {
        self.note(&self.run(0, 2, 0))
    }

    /// A failing run; `files` are those in which something failed, where they are known.
    pub fn fails(&self, files: Option<&[&str]>) -> Transition {
        let failing_files = files.map(|files| files.iter().map(|file| path(file)).collect());
        self.note(&TestRun { failing_files, ..self.run(1, 1, 1) })
    }

    pub fn judge(&self, kind: WriteKind, file: &str) -> Verdict {
        self.judge_all(&[self.write_of(kind, file, None)])
    }

    /// A change that a call wants to make, with the file as it would leave it, where that is known.
    pub fn write_of(&self, kind: WriteKind, file: &str, after: Option<&str>) -> Write {
        let after = after.map_or(Contents::Unknown, |text| Contents::Known(text.as_bytes().into()));
        Write { root: self.scope.root(), path: path(file), kind, after }
    }

    pub fn judge_all(&self, writes: &[Write]) -> Verdict {
        self.tdd.judge_writes(&agent(), "fs_write", writes, &self.disk)
    }

    pub fn may(&self, kind: WriteKind, file: &str) -> bool {
        matches!(self.judge(kind, file), Verdict::Allow { .. })
    }

    pub fn kind(&self, file: &str) -> FileKind {
        self.tdd.classify(self.scope.root(), &path(file)).kind
    }
}
