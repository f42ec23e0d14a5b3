//! Kill -9 at any moment: the next process repairs by itself, and what was reported is there.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tgp_git::ToolRepo;

use crate::support::{World, child, forge, git, lines, options, read, runtime};

/// Together two hundred: enough to hit every step of a commit, a push and a rebase many times.
const LOCAL_KILLS: usize = 140;
const REMOTE_KILLS: usize = 60;

/// Persists one tool after the other until it is killed, and reports each that is safe.
fn persist_until_killed(root: &Path) -> ! {
    let remote = std::env::var("TGP_GIT_REMOTE").ok().map(PathBuf::from);
    let round = std::env::var("TGP_GIT_ROUND").unwrap();
    runtime().block_on(async {
        let say = |line: &str| std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
        say("starting");
        let memory = ToolRepo::open(options(root, remote.as_deref())).await.expect("it opens by itself");
        memory.hydrate().await.expect("it hydrates by itself");
        for number in 0.. {
            let tool = format!("tools/r{round}/t{number}.ts");
            let persisted = memory.persist(forge(&tool, &tool)).await.expect("it persists");
            say(&format!("persisted {tool} {}", persisted.pushed));
        }
    });
    std::process::abort();
}

fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}

/// Kills `kills` processes, one after the other, in `root`; answers the tools that were reported, and whether as pushed.
fn kill_many(test: &str, root: &Path, remote: Option<&Path>, kills: usize) -> BTreeMap<String, bool> {
    let mut reported = BTreeMap::new();
    for round in 0..kills {
        let mut command = child(test);
        command.env("TGP_GIT_ROOT", root).env("TGP_GIT_ROUND", round.to_string());
        if let Some(remote) = remote {
            command.env("TGP_GIT_REMOTE", remote);
        }
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Some are killed while they start and repair, the others after a few tools; always at an odd moment.
        let mut wanted = random(4);
        let mut seen = Vec::new();
        while wanted > 0 {
            let Some(line) = output.next() else { break };
            wanted -= u64::from(line.starts_with("persisted "));
            seen.push(line);
        }
        std::thread::sleep(Duration::from_micros(random(60_000)));
        let ended = process.try_wait().unwrap();
        process.kill().unwrap();
        seen.extend(output);
        let stderr = process.wait_with_output().unwrap().stderr;
        assert!(ended.is_none(), "round {round} failed: {}", String::from_utf8_lossy(&stderr));
        for line in seen {
            if let Some((tool, pushed)) =
                line.strip_prefix("persisted ").and_then(|rest| rest.split_once(' '))
            {
                reported.insert(tool.to_owned(), pushed == "true");
            }
        }
    }
    reported
}

#[test]
fn many_kills_while_persisting_locally() {
    if let Ok(root) = std::env::var("TGP_GIT_ROOT") {
        persist_until_killed(Path::new(&root));
    }
    let world = World::new();
    let root = world.root("agent");
    let reported = kill_many("kills::many_kills_while_persisting_locally", &root, None, LOCAL_KILLS);
    assert!(!reported.is_empty());
    let memory = runtime().block_on(ToolRepo::open(options(&root, None))).unwrap();
    let committed = lines(&git(&root, &["ls-tree", "-r", "--name-only", "main", "tools"]));
    for tool in reported.keys() {
        assert!(committed.contains(tool), "{tool} is lost");
        assert_eq!(read(&root, tool).as_ref(), Some(tool), "the working tree follows");
    }
    git(&root, &["fsck", "--strict"]);
    // One that was committed and not reported may be there too, but nothing lies about.
    assert_eq!(runtime().block_on(memory.sync()).unwrap().committed, []);
    assert_eq!(git(&root, &["status", "--porcelain"]), "");
    crate::support::assert_consistent(&root, "main");
}

#[test]
fn many_kills_while_pushing_against_a_rival() {
    if let Ok(root) = std::env::var("TGP_GIT_ROOT") {
        persist_until_killed(Path::new(&root));
    }
    let world = World::with(&[("tools/start.ts", "start")]);
    let root = world.root("agent");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (reported, rivals) = std::thread::scope(|scope| {
        // Another writer that pushes now and then, so that rebases are killed too.
        let rival = scope.spawn(|| {
            runtime().block_on(async {
                let memory = world.kernel("rival").await;
                let mut count = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let persisted =
                        memory.persist(forge(&format!("tools/rival/t{count}.ts"), "r")).await.unwrap();
                    assert!(persisted.pushed, "{persisted:?}");
                    count += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                count
            })
        });
        let test = "kills::many_kills_while_pushing_against_a_rival";
        let reported = kill_many(test, &root, Some(&world.remote()), REMOTE_KILLS);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        (reported, rival.join().unwrap())
    });
    assert!(!reported.is_empty());
    let memory = runtime().block_on(world.kernel("agent"));
    let clone = world.at("clone");
    git(world.temporary.path(), &["clone", "--quiet", "--", "remote.git", "clone"]);
    for (tool, is_pushed) in &reported {
        let place = if *is_pushed { &clone } else { &root };
        assert_eq!(read(place, tool).as_ref(), Some(tool), "{tool} is lost (pushed: {is_pushed})");
    }
    let synced = runtime().block_on(memory.sync()).unwrap();
    assert_eq!((synced.committed, synced.conflicts, synced.why), (vec![], vec![], None));
    let delivered = world.remote_tools();
    for tool in reported.keys() {
        assert!(delivered.contains(tool), "{tool} is not delivered");
    }
    assert!(delivered.iter().filter(|tool| tool.starts_with("tools/rival/")).count() >= rivals);
    world.assert_consistent();
    git(&root, &["fsck", "--strict"]);
    git(&world.remote(), &["fsck", "--strict"]);
    assert_eq!(git(&root, &["status", "--porcelain"]), "");
}
