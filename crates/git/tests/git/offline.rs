//! A remote that is away or silent does not hold up other work.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tgp_contract::Code;
use tgp_git::{HydrateOutcome, Remote, Strategy, ToolRepo};

use crate::support::{World, arrived, forge, path, show};

static SECONDS: AtomicU64 = AtomicU64::new(1_700_000_000);

fn moved_by_hand() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(SECONDS.load(Ordering::SeqCst))
}

/// A git that is never done, and a note of each start of it.
fn silent_git(world: &World) -> std::ffi::OsString {
    let bin = world.at("silent");
    fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\necho x >> '{}'\nexec sleep 600\n", world.at("asked").display());
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

#[tokio::test]
async fn bug_a_silent_remote_is_asked_once_and_not_by_every_command() {
    let world = World::with(&[("tools/a.ts", "a")]);
    world.kernel("agent").await;
    let mut silent = world.options("agent");
    silent.clock = moved_by_hand;
    silent.surroundings.path = silent_git(&world);
    silent.timeouts.boot_ask = Duration::from_millis(300);
    // A call that waited for one of these would not return within the time that is left to this test.
    silent.timeouts.ask = Duration::from_secs(600);
    silent.timeouts.transfer = Duration::from_secs(600);
    let start = Instant::now();
    let asked = || fs::read_to_string(world.at("asked")).map_or(0, |text| text.lines().count());
    let mut whys = Vec::new();
    // Each is a separate process as far as the note is concerned.
    for _ in 0..3 {
        let memory = ToolRepo::open(silent.clone()).await.unwrap();
        let HydrateOutcome::Offline { why } = memory.hydrate().await.unwrap().outcome else {
            panic!("offline")
        };
        whys.push(why);
        let persisted = memory.persist(forge("tools/b.ts", "b")).await.unwrap();
        assert!(!persisted.pushed);
        whys.extend(persisted.why);
        let edited = memory.edit(&path("tools/c.ts"), Box::new(|_| Ok(b"c".to_vec()))).await.unwrap();
        assert!(!edited.persisted.pushed);
        whys.extend(edited.persisted.why);
    }
    assert!(start.elapsed() < Duration::from_secs(300));
    assert_eq!(asked(), 1, "the first one found it out for all");
    assert!(
        whys.len() == 9 && whys.iter().all(|why| *why == whys[0] && why.contains("no answer")),
        "{whys:?}"
    );
    // After a while the next call tries again.
    SECONDS.fetch_add(15, Ordering::SeqCst);
    ToolRepo::open(silent.clone()).await.unwrap().hydrate().await.unwrap();
    assert_eq!(asked(), 2);
    // A person who says so tries at once, and what went well ends the silence for every process.
    let mut sound = world.options("agent");
    sound.clock = moved_by_hand;
    let memory = ToolRepo::open(sound).await.unwrap();
    assert!(matches!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Offline { .. }));
    let synced = memory.sync().await.unwrap();
    assert_eq!((synced.pushed, synced.why), (2, None));
    assert_eq!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Unchanged);
    arrived(memory.persist(forge("tools/d.ts", "d")).await);
}

#[tokio::test]
async fn bug_the_error_of_another_remote_was_shown() {
    let world = World::with(&[("tools/a.ts", "a")]);
    world.kernel("agent").await;
    let mut wrong = world.options("agent");
    wrong.remote = Some(Remote::Url(world.at("elsewhere.git").display().to_string()));
    let memory = ToolRepo::open(wrong).await.unwrap();
    let HydrateOutcome::Offline { why } = memory.hydrate().await.unwrap().outcome else { panic!("offline") };
    assert!(why.contains("elsewhere.git"), "{why}");
    // The address was corrected: the right remote is asked at once.
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    assert_eq!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Unchanged);
}

#[tokio::test]
async fn a_request_waits_too_while_the_remote_is_away() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let mut options = world.options("agent");
    options.strategy = Strategy::Request;
    let memory = ToolRepo::open(options).await.unwrap();
    memory.hydrate().await.unwrap();
    fs::rename(world.remote(), world.at("away")).unwrap();
    let why = memory.persist(forge("tools/x.ts", "x")).await.unwrap().why;
    fs::rename(world.at("away"), world.remote()).unwrap();
    let second = memory.persist(forge("tools/y.ts", "y")).await.unwrap();
    assert_eq!((second.pushed, second.why), (false, why), "nobody asked again");
    assert_eq!(memory.sync().await.unwrap().pushed, 2);
    assert_eq!(show(&world.remote(), "feat/y", "tools/y.ts").unwrap(), "y");
}

#[tokio::test]
async fn bug_a_start_does_not_wait_for_a_push_of_another_process() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    world.person("News", &[("tools/b.ts", "b")]);
    // Another process is at it, and stays at it.
    let lane = File::options().write(true).open(world.root("agent").join(".state/git-network.lock")).unwrap();
    lane.lock().unwrap();
    // Far from what it takes, and far from what a delivery may take.
    let limit = Duration::from_secs(60);
    let hydrated = tokio::time::timeout(limit, memory.hydrate()).await.expect("it went on").unwrap();
    assert_eq!((hydrated.outcome, hydrated.repaired), (HydrateOutcome::Unchanged, vec![]));
    drop(lane);
    assert!(matches!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Updated { .. }));
}

#[tokio::test]
async fn a_first_start_without_the_remote_says_how_to_go_on() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let mut gitless = world.options("gitless");
    gitless.surroundings.path = world.at("empty").into_os_string();
    fs::rename(world.remote(), world.at("away")).unwrap();
    for (options, words) in [
        (gitless, ["install git", "`tgp init` starts"]),
        (world.options("other"), ["`git.url`", "`tgp init` starts"]),
    ] {
        let memory = ToolRepo::open(options).await.unwrap();
        let error = memory.hydrate().await.unwrap_err();
        assert_eq!(error.code, Code::Git);
        let help = error.help_of().unwrap();
        assert!(words.iter().all(|word| help.contains(word)), "{help}");
    }
}
