//! Remotes that name more than a machine can hold: refused as a whole, before anything of them is read.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tgp_git::{HydrateOutcome, Strategy, ToolRepo};

use crate::support::{World, child, forge, git, git_command, read, runtime};

/// What refusing may cost beside the test itself.
const MOST_MEMORY_KIB: u64 = 200 << 10;

/// Writes trees that name each other: `width` to the power of `depth` paths from a handful of objects.
fn bomb(repository: &Path, depth: usize, width: usize) -> String {
    let blob = pipe(repository, &["hash-object", "-w", "--stdin"], "x");
    let names = |kind: &str, id: &str| -> String {
        (0..width).map(|number| format!("{kind} {id}\tf{number:06}\n")).collect()
    };
    let mut tree = pipe(repository, &["mktree"], &names("100644 blob", &blob));
    for _ in 1..depth {
        tree = pipe(repository, &["mktree"], &names("040000 tree", &tree));
    }
    tree
}

fn pipe(repository: &Path, arguments: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut command = git_command(repository, arguments);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A blob of zeros: large here, and a few kilobytes on the wire.
fn zeros(world: &World, mebibytes: u64) -> String {
    let file = world.at("zeros");
    std::fs::File::create(&file).unwrap().set_len(mebibytes << 20).unwrap();
    git(&world.remote(), &["hash-object", "-w", "--", file.to_str().unwrap()]).trim().to_owned()
}

/// Packs the remote, so that it sends large objects as they are stored and needs no memory for them.
fn pack(world: &World) {
    git(&world.remote(), &["-c", "core.bigFileThreshold=8m", "repack", "-a", "-d", "--quiet"]);
}

/// Makes `tree` the remote's newest version.
fn publish(world: &World, tree: &str, message: &str) {
    let remote = world.remote();
    let commit = git(&remote, &["commit-tree", "-p", "main", "-m", message, tree]);
    git(&remote, &["update-ref", "refs/heads/main", commit.trim()]);
}

fn tree_with(world: &World, entries: &str) -> String {
    let remote = world.remote();
    let own = git(&remote, &["ls-tree", "main"]);
    pipe(&remote, &["mktree"], &format!("{own}{entries}"))
}

/// Opens and hydrates in its own process, and returns the result and the most memory it took.
fn measured(world: &World, name: &str) -> (String, u64) {
    let output = child("limits::hydrate_in_a_child")
        .env("TGP_GIT_ROOT", world.root(name))
        .env("TGP_GIT_REMOTE", world.remote())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let line = |begin: &str| text.lines().find_map(|line| line.strip_prefix(begin)).unwrap().to_owned();
    (line("outcome "), line("peak ").parse().unwrap())
}

#[test]
fn hydrate_in_a_child() {
    let Some(root) = std::env::var_os("TGP_GIT_ROOT") else { return };
    let remote = PathBuf::from(std::env::var_os("TGP_GIT_REMOTE").unwrap());
    let outcome = runtime().block_on(async {
        let options = crate::support::options(Path::new(&root), Some(&remote));
        let memory = ToolRepo::open(options).await.unwrap();
        let outcome = memory.hydrate().await.unwrap().outcome;
        memory.history(None, 10).await.unwrap();
        outcome
    });
    println!("\noutcome {}", format!("{outcome:?}").replace('\n', " "));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
}

#[track_caller]
fn assert_refused(world: &World, limit: &str, path: &str) {
    let (outcome, peak) = measured(world, "agent");
    assert!(outcome.starts_with("Refused"), "{outcome}");
    for part in [limit, path, "was not taken over", "remove that from the remote's branch"] {
        assert!(outcome.contains(part), "`{part}` is missing: {outcome}");
    }
    assert!(peak < MOST_MEMORY_KIB, "{peak} KiB of memory");
}

#[test]
fn a_tree_of_a_hundred_million_paths_is_refused_before_it_is_walked() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let bomb = bomb(&world.remote(), 8, 10);
    publish(&world, &tree_with(&world, &format!("040000 tree {bomb}\tzz\n")), "Bomb");
    assert_refused(&world, "more than 200000 files and folders", "zz/f00000");
}

#[test]
fn folders_without_any_file_count_too() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let empty = pipe(&world.remote(), &["mktree"], "");
    let mut tree = empty;
    for _ in 0..9 {
        let names: String = (0..10).map(|number| format!("040000 tree {tree}\td{number}\n")).collect();
        tree = pipe(&world.remote(), &["mktree"], &names);
    }
    publish(&world, &tree_with(&world, &format!("040000 tree {tree}\tzz\n")), "Empty folders");
    assert_refused(&world, "more than 200000 files and folders", "zz/d");
}

#[test]
fn a_blob_of_zeros_is_judged_by_its_header() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let blob = zeros(&world, 300);
    publish(&world, &tree_with(&world, &format!("100644 blob {blob}\tzz.bin\n")), "Zeros");
    pack(&world);
    assert_refused(&world, "314572800 bytes, more than the 67108864 of one file", "zz.bin");
}

#[test]
fn one_blob_under_many_names_counts_each_time() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let blob = zeros(&world, 60);
    let names: String = (0..10).map(|number| format!("100644 blob {blob}\tz{number}.bin\n")).collect();
    publish(&world, &tree_with(&world, &names), "Zeros ten times");
    pack(&world);
    assert_refused(&world, "more than 536870912 bytes together", "z8.bin");
}

#[test]
fn a_tree_deeper_than_any_library_is_refused() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let deep = bomb(&world.remote(), 80, 1);
    publish(&world, &tree_with(&world, &format!("040000 tree {deep}\tzz\n")), "Deep");
    assert_refused(&world, "more than 64 folders deep", "zz/f000000");
}

#[test]
fn a_commit_of_megabytes_is_refused() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let remote = world.remote();
    let tree = git(&remote, &["rev-parse", "main^{tree}"]);
    let parent = git(&remote, &["rev-parse", "main"]);
    let message = "x".repeat(2 << 20);
    let commit = pipe(&remote, &["commit-tree", "-p", parent.trim(), tree.trim()], &message);
    git(&remote, &["update-ref", "refs/heads/main", &commit]);
    assert_refused(&world, "more than 1048576", &commit);
}

#[test]
fn a_bomb_in_the_history_of_a_harmless_version_costs_nothing() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let (outcome, _) = measured(&world, "agent");
    assert!(outcome.starts_with("Cloned"), "{outcome}");
    let own = git(&world.remote(), &["rev-parse", "main^{tree}"]);
    let bomb = bomb(&world.remote(), 8, 10);
    publish(&world, &tree_with(&world, &format!("040000 tree {bomb}\tzz\n")), "Bomb");
    publish(&world, own.trim(), "Harmless again");
    let (outcome, peak) = measured(&world, "agent");
    assert!(outcome.starts_with("Updated"), "{outcome}");
    assert!(peak < MOST_MEMORY_KIB, "{peak} KiB of memory");
}

#[tokio::test]
async fn what_is_here_stays_usable_beside_a_refused_remote() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    let before = git(&root, &["rev-parse", "main"]);
    let bomb = bomb(&world.remote(), 8, 10);
    publish(&world, &tree_with(&world, &format!("040000 tree {bomb}\tzz\n")), "Bomb");
    let HydrateOutcome::Refused { why } = memory.hydrate().await.unwrap().outcome else { panic!("refused") };
    assert!(why.contains("the tools here stay as they are"), "{why}");
    assert_eq!(git(&root, &["rev-parse", "main"]), before);
    assert_eq!(read(&root, "tools/a.ts").unwrap(), "a");
    // Work continues and is kept; only its delivery waits.
    let persisted = memory.persist(forge("tools/b.ts", "b")).await.unwrap();
    assert!(!persisted.pushed && persisted.why.unwrap().contains("more than 200000"));
    let synced = memory.sync().await.unwrap();
    assert!(synced.why.unwrap().contains("more than 200000"));
    assert_eq!(memory.history(None, 10).await.unwrap().versions.len(), 2);
    let again = ToolRepo::open(world.options("agent")).await.unwrap();
    assert!(matches!(again.hydrate().await.unwrap().outcome, HydrateOutcome::Refused { .. }));
    // When the remote is repaired, everything arrives.
    git(&world.remote(), &["update-ref", "refs/heads/main", before.trim()]);
    let synced = again.sync().await.unwrap();
    assert_eq!((synced.why, synced.pushed), (None, 1));
}

#[tokio::test]
async fn a_refused_remote_at_the_first_start_leaves_an_empty_library_to_work_with() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let bomb = bomb(&world.remote(), 8, 10);
    publish(&world, &tree_with(&world, &format!("040000 tree {bomb}\tzz\n")), "Bomb");
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    assert!(matches!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Refused { .. }));
    let persisted = memory.persist(forge("tools/b.ts", "b")).await.unwrap();
    assert!(
        !persisted.pushed && persisted.why.clone().unwrap().contains("more than 200000"),
        "{persisted:?}"
    );
    assert_eq!(git(&world.root("agent"), &["log", "--format=%s", "main"]), "Forge: tools/b.ts\n");
}

#[tokio::test]
async fn a_request_is_not_delivered_onto_a_version_beyond_the_limits() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let mut options = world.options("agent");
    options.strategy = Strategy::Request;
    let memory = ToolRepo::open(options).await.unwrap();
    memory.hydrate().await.unwrap();
    let bomb = bomb(&world.remote(), 8, 10);
    publish(&world, &tree_with(&world, &format!("040000 tree {bomb}\tzz\n")), "Bomb");
    let persisted = memory.persist(forge("tools/b.ts", "b")).await.unwrap();
    assert!(persisted.why.unwrap().contains("more than 200000"));
}

#[tokio::test]
async fn a_remote_that_sends_too_much_is_cut_off_and_leaves_nothing_behind() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    drop(memory);
    // Text that does not shrink, in files small enough that only their sum is too much.
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", state ^ (state >> 29))
    };
    let files: Vec<(String, String)> = (0..110)
        .map(|number| (format!("data/{number}.txt"), (0..8 << 10).map(|_| random()).collect::<String>()))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    world.person("Much", &files);
    let mut options = world.options("agent");
    options.limits.received_bytes = 2 << 20;
    let memory = ToolRepo::open(options).await.unwrap();
    let outcome = memory.hydrate().await.unwrap().outcome;
    let HydrateOutcome::Refused { why } = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("more than 2 MiB of objects at once"), "{why}");
    let pack = world.root("agent").join(".git/objects/pack");
    let left: Vec<_> = std::fs::read_dir(pack).unwrap().map(|row| row.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("tmp_")), "{left:?}");
    assert_eq!(read(&world.root("agent"), "tools/a.ts").unwrap(), "a");
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    assert!(matches!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Updated { .. }));
}
