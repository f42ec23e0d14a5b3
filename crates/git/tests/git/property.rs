//! Two sides that change what they like while they cannot see each other: nothing of either is lost.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{
    World, assert_clean, assert_consistent, forge, git, read, refactor, removal, runtime, show,
};

const NAMES: [&str; 4] = ["tools/a.ts", "tools/b.ts", "tools/deep/c.ts", "tools/d.ts"];

/// A file and its new content; nothing removes it.
type Step = (usize, Option<u8>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((0..NAMES.len(), proptest::option::weighted(0.75, 0_u8..3)), 0..6)
}

fn apply(state: &BTreeMap<usize, u8>, steps: &[Step]) -> BTreeMap<usize, u8> {
    let mut state = state.clone();
    for (name, content) in steps {
        match content {
            Some(content) => state.insert(*name, *content),
            None => state.remove(name),
        };
    }
    state
}

/// The rule for one file, step by step: where the remote has what a step started from, the step is taken; where it has
/// what the step made, there is nothing to do; otherwise the remote's stays, and ours of that step is kept.
fn expected(was: Option<u8>, ours: &[Option<u8>], theirs: Option<u8>) -> (Option<u8>, Option<Option<u8>>) {
    let (mut old, mut stands, mut kept) = (was, theirs, None);
    for new in ours.iter().copied() {
        if new != old && new != stands {
            if stands == old && kept.is_none() {
                stands = new;
            } else {
                kept = Some(new);
            }
        }
        old = new;
    }
    (stands, kept)
}

fn check(start: &[Step], ours: &[Step], theirs: &[Step]) {
    let world = World::with(&[("README.md", "start")]);
    let base = apply(&BTreeMap::new(), start);
    runtime().block_on(async {
        let a = world.kernel("a").await;
        // Of another author: two commits with the same change in the same second would otherwise be one and the same.
        let mut options = world.options("b");
        options.author.name = "Other".to_owned();
        let b = tgp_git::ToolRepo::open(options).await.unwrap();
        b.hydrate().await.unwrap();
        let persist = async |memory: &tgp_git::ToolRepo, steps: &[Step]| {
            for (name, content) in steps {
                let work = match content {
                    None => removal(NAMES[*name]),
                    Some(content) if *content == 0 => forge(NAMES[*name], "0"),
                    Some(content) => refactor(NAMES[*name], &content.to_string()),
                };
                memory.persist(work).await.unwrap();
            }
        };
        persist(&b, start).await;
        a.hydrate().await.unwrap();
        persist(&b, theirs).await;
        fs::rename(world.remote(), world.at("away")).unwrap();
        persist(&a, ours).await;
        fs::rename(world.at("away"), world.remote()).unwrap();
        let synced = a.sync().await.unwrap();
        assert_eq!(synced.why, None);
        let right = apply(&base, theirs);
        let root = world.root("a");
        for (number, name) in NAMES.iter().enumerate() {
            let of_ours: Vec<Option<u8>> =
                ours.iter().filter(|(name, _)| *name == number).map(|(_, content)| *content).collect();
            let [was, theirs] = [&base, &right].map(|state| state.get(&number).copied());
            let (stands, kept) = expected(was, &of_ours, theirs);
            assert_eq!(world.remote_file(name).map(|text| text.parse().unwrap()), stands, "{name} stands");
            let told = synced.conflicts.iter().find(|conflict| conflict.path.as_str() == *name);
            let of_branch =
                told.map(|told| show(&root, &told.branch, name).map(|text| text.parse().unwrap()));
            assert_eq!(of_branch, kept, "{name} is kept");
            assert_eq!(read(&root, name), world.remote_file(name));
        }
        b.hydrate().await.unwrap();
        assert_eq!(git(&world.root("b"), &["rev-parse", "main"]), git(&root, &["rev-parse", "main"]));
        for root in [root, world.root("b")] {
            assert_clean(&root);
        }
        if world.remote_log().len() > 1 {
            assert_consistent(&world.remote(), "main");
        }
    });
}

#[test]
fn whatever_two_sides_do_nothing_is_lost() {
    // Each case is a world with dozens of processes in it, so there are few.
    let config = Config { cases: 6, max_shrink_iters: 20, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&(steps(), steps(), steps()), |(start, ours, theirs)| {
            check(&start, &ours, &theirs);
            Ok(())
        })
        .unwrap();
}
