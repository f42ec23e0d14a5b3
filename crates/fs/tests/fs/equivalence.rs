//! Random operations show the same on disk, in memory and through overlays.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;
use tgp_contract::{Change, EntryKind, FileSystem, FsError, RelativePath};
use tgp_fs::{DiskFs, MemoryFs, OverlayFs};

use crate::support::path;

#[derive(Clone, Debug)]
enum Operation {
    Apply(Vec<Change>),
    Read(RelativePath),
    Entry(RelativePath),
    List(RelativePath),
}

/// Few names, so that the same path is often a file here and a directory there; the last one is reserved.
fn any_path() -> impl Strategy<Value = RelativePath> {
    let name = prop_oneof![8 => "[abc]", 1 => Just("a-b".to_owned()), 1 => Just(".tgp-tmp-x".to_owned())];
    prop::collection::vec(name, 0..4).prop_map(|names| path(&names.join("/")))
}

/// Paths of which none is a directory in one place and a file in another.
fn tidy_path() -> impl Strategy<Value = RelativePath> {
    ("(d[01]/){0,2}", "f[0-3]").prop_map(|(directory, file)| path(&format!("{directory}{file}")))
}

fn change(at: impl Strategy<Value = RelativePath>) -> impl Strategy<Value = Change> {
    (at, any::<bool>(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(path, writes, content)| {
        if writes { Change::Write { path, content: content.into() } } else { Change::Remove { path } }
    })
}

fn batch() -> impl Strategy<Value = Vec<Change>> {
    prop_oneof![
        3 => prop::collection::vec(change(any_path()), 1..2),
        2 => prop::collection::vec(change(any_path()), 0..5),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => batch().prop_map(Operation::Apply),
        1 => any_path().prop_map(Operation::Read),
        1 => any_path().prop_map(Operation::Entry),
        1 => any_path().prop_map(Operation::List),
    ]
}

/// What a caller can observe of the outcome.
fn observe<T: Debug>(result: Result<T, FsError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

fn perform(fs: &dyn FileSystem, operation: &Operation) -> String {
    match operation {
        Operation::Apply(changes) => observe(fs.apply(changes)),
        Operation::Read(path) => observe(fs.read(path)),
        Operation::Entry(path) => observe(fs.entry(path)),
        Operation::List(path) => observe(fs.list(path)),
    }
}

fn everything(fs: &dyn FileSystem) -> String {
    observe(fs.list(&RelativePath::root())) + &format!("{:?}", files(fs))
}

fn files(fs: &dyn FileSystem) -> BTreeMap<RelativePath, Vec<u8>> {
    let entries = fs.list(&RelativePath::root()).unwrap().into_iter();
    let files = entries.filter(|entry| entry.kind == EntryKind::File);
    files.map(|entry| (entry.path.clone(), fs.read(&entry.path).unwrap())).collect()
}

fn disk() -> (TempDir, Arc<DiskFs>) {
    let directory = TempDir::new().unwrap();
    let fs = Arc::new(DiskFs::open(directory.path()).unwrap());
    (directory, fs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_file_systems_behave_alike(
        seed in prop::collection::vec(change(any_path()), 0..8),
        operations in prop::collection::vec(operation(), 1..25),
    ) {
        let (_one, plain) = disk();
        let (_two, below) = disk();
        let memory = MemoryFs::new();
        let under = Arc::new(MemoryFs::new());
        for change in &seed {
            let bases: [&dyn FileSystem; 4] = [&*plain, &*below, &memory, &*under];
            let outcomes = bases.map(|fs| observe(fs.apply(std::slice::from_ref(change))));
            prop_assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
        }
        let over_disk = OverlayFs::new(below.clone());
        let over_memory = Arc::new(OverlayFs::new(under.clone()));
        let nested = OverlayFs::new(over_memory.clone());
        let all: [&dyn FileSystem; 4] = [&memory, &*plain, &over_disk, &nested];
        for operation in &operations {
            let outcomes = all.map(|fs| perform(fs, operation));
            for outcome in &outcomes {
                prop_assert_eq!(outcome, &outcomes[0], "after {:?}", operation);
            }
        }
        for fs in all {
            prop_assert_eq!(everything(fs), everything(&memory));
        }
        over_disk.commit().unwrap();
        nested.commit().unwrap();
        over_memory.commit().unwrap();
        let expected = files(&memory);
        prop_assert_eq!(&files(&*below), &expected);
        prop_assert_eq!(&files(&*under), &expected);
        prop_assert_eq!(&files(&over_disk), &expected);
        // A second kernel that opens the same directories finds the same.
        prop_assert_eq!(&files(&DiskFs::open(_two.path()).unwrap()), &expected);
    }

    #[test]
    fn commits_at_any_moment_lose_nothing(
        steps in prop::collection::vec((prop::collection::vec(change(tidy_path()), 0..4), 0..4_u8), 1..20),
    ) {
        let (_directory, base) = disk();
        let outer = Arc::new(OverlayFs::new(base.clone()));
        let inner = OverlayFs::new(outer.clone());
        let memory = MemoryFs::new();
        for (changes, commit) in &steps {
            memory.apply(changes).unwrap();
            inner.apply(changes).unwrap();
            if commit & 1 == 1 {
                inner.commit().unwrap();
            }
            if commit & 2 == 2 {
                outer.commit().unwrap();
            }
            prop_assert_eq!(files(&inner), files(&memory));
        }
        inner.commit().unwrap();
        outer.commit().unwrap();
        prop_assert_eq!(files(&*base), files(&memory));
    }
}
