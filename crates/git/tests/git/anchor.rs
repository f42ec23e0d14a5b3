//! The anchor: kept without a lock, replaced without a trace, pushed with the tools, and never in their way.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tgp_contract::Code;
use tgp_git::ToolRepo;

use crate::support::{
    World, arrived, assert_clean, child, forge, git, git_command, lines, options, time_goes_by,
};

const CHAIN: &str = "0123456789abcdef0123456789abcdef";

fn loose_objects(root: &Path) -> usize {
    let count = git(root, &["count-objects"]);
    count.split_whitespace().next().unwrap().parse().unwrap()
}

fn remote_anchor(world: &World, chain: &str) -> Option<String> {
    let name = format!("refs/tgp/audit/{chain}");
    let output = git_command(&world.remote(), &["log", "-1", "--format=%b", &name]).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

#[tokio::test]
async fn it_is_replaced_and_leaves_nothing_behind() {
    let world = World::new();
    let root = world.root("agent");
    let memory = ToolRepo::open(options(&root, None)).await.unwrap();
    memory.persist(forge("tools/a.ts", "a")).await.unwrap();
    assert_eq!(memory.anchor().load().unwrap(), None);
    memory.anchor().store(CHAIN, "words 0").unwrap();
    let before = loose_objects(&root);
    for number in 1..=30 {
        memory.anchor().store(CHAIN, &format!("words {number}\nof two lines")).unwrap();
        assert_eq!(memory.anchor().load().unwrap().unwrap(), format!("words {number}\nof two lines"));
    }
    assert_eq!(loose_objects(&root), before, "only the newest is kept");
    // Git itself finds nothing wrong, packs it, and it is read and replaced all the same.
    git(&root, &["fsck", "--strict"]);
    git(&root, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(memory.anchor().load().unwrap().unwrap(), "words 30\nof two lines");
    memory.anchor().store(CHAIN, "after the packing").unwrap();
    assert_eq!(memory.anchor().load().unwrap().unwrap(), "after the packing");
    git(&root, &["fsck", "--strict"]);
    assert_clean(&root);
    assert_eq!(lines(&git(&root, &["log", "--format=%s", "main"])), ["Forge: tools/a.ts"]);
    assert_eq!(fs::read_dir(root.join(".state")).unwrap().filter(is_temporary).count(), 0);
}

fn is_temporary(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("git-writing-")
}

#[tokio::test]
async fn what_is_no_anchor_is_neither_taken_for_one_nor_removed() {
    let world = World::new();
    let root = world.root("agent");
    let memory = ToolRepo::open(options(&root, None)).await.unwrap();
    let commit = memory.persist(forge("tools/a.ts", "a")).await.unwrap().commit;
    git(&root, &["update-ref", "refs/tgp/audit/head", &commit]);
    assert_eq!(memory.anchor().load().unwrap_err().code, Code::Integrity);
    memory.anchor().store(CHAIN, "words").unwrap();
    assert_eq!(memory.anchor().load().unwrap().unwrap(), "words");
    git(&root, &["fsck", "--strict"]);
    assert_eq!(git(&root, &["rev-parse", "main"]).trim(), commit);
    for (name, content) in [
        ("", "x"),
        ("../../heads/main", "x"),
        ("head", "x"),
        ("UPPER", "x"),
        (CHAIN, "\0"),
        (CHAIN, &"x".repeat(5000)),
    ] {
        assert_eq!(memory.anchor().store(name, content).unwrap_err().code, Code::Validation, "{name}");
    }
    fs::rename(root.join(".git"), root.join("aside")).unwrap();
    assert_eq!(memory.anchor().store(CHAIN, "x").unwrap_err().code, Code::Git);
    assert_eq!(memory.anchor().load().unwrap_err().code, Code::Git);
}

#[tokio::test]
async fn it_is_pushed_with_the_tools_and_by_a_synchronisation() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let (one, two) = (world.kernel("one").await, world.kernel("two").await);
    let other = "f".repeat(32);
    let log = world.at("pushes");
    world.hook("post-receive", &format!("#!/bin/sh\necho push >> '{}'\n", log.display()));
    one.anchor().store(CHAIN, "one 1").unwrap();
    two.anchor().store(&other, "two 1").unwrap();
    arrived(one.persist(forge("tools/b.ts", "b")).await);
    assert_eq!(fs::read_to_string(&log).unwrap(), "push\n", "both in one push");
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "one 1");
    assert_eq!(remote_anchor(&world, &other), None);
    arrived(two.persist(forge("tools/c.ts", "c")).await);
    one.anchor().store(CHAIN, "one 2").unwrap();
    let synced = one.sync().await.unwrap();
    assert_eq!((synced.pushed, synced.why), (0, None));
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "one 2", "also when there is nothing else to push");
    assert_eq!(remote_anchor(&world, &other).unwrap(), "two 1");
    fs::remove_file(&log).unwrap();
    one.sync().await.unwrap();
    assert!(!log.exists(), "what the remote has is not pushed again");
    // A third machine that clones the tools takes no anchor of another one for its own.
    assert_eq!(world.kernel("three").await.anchor().load().unwrap(), None);
    world.assert_consistent();
}

#[tokio::test]
async fn a_remote_that_refuses_it_still_takes_the_tools() {
    // One refuses each such reference, one the whole push, one replacing anything, and one has a reference in the way.
    let update = "#!/bin/sh\ncase \"$1\" in refs/tgp/*) echo no >&2; exit 1;; esac\n";
    let receive =
        "#!/bin/sh\nwhile read old new name; do case \"$name\" in refs/tgp/*) exit 1;; esac; done\n";
    let refusals: [&dyn Fn(&World); 4] = [
        &|world| world.hook("update", update),
        &|world| world.hook("pre-receive", receive),
        &|world| {
            git(&world.remote(), &["config", "receive.denyNonFastForwards", "true"]);
        },
        &|world| {
            git(&world.remote(), &["update-ref", "refs/tgp/audit", "main"]);
        },
    ];
    for (number, refuse) in refusals.iter().enumerate() {
        let world = World::with(&[("tools/a.ts", "a")]);
        let memory = world.kernel("agent").await;
        refuse(&world);
        for round in 0..3 {
            memory.anchor().store(CHAIN, &format!("words {round}")).unwrap();
            let tool = format!("tools/t{round}.ts");
            arrived(memory.persist(forge(&tool, &tool)).await);
            assert_eq!(world.remote_file(&tool).unwrap(), tool, "refusal {number}");
        }
        let synced = memory.sync().await.unwrap();
        assert_eq!(synced.why, None, "refusal {number}");
    }
}

fn is_dispute(text: &str) -> bool {
    [
        "another head of this machine's audit",
        "rolled back or copied",
        "a person should look",
        "`tgp audit verify`",
    ]
    .iter()
    .all(|part| text.contains(part))
}

/// The remote keeps the newer anchor, the tools are still delivered, and every pusher is informed.
#[tokio::test]
async fn a_record_that_was_rolled_back_does_not_replace_the_evidence() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let (root, copy) = (world.root("agent"), world.at("copy"));
    let memory = world.kernel("agent").await;
    memory.anchor().store(CHAIN, "words 1").unwrap();
    assert_eq!(memory.sync().await.unwrap().warnings, [""; 0]);
    let copied = Command::new("cp").arg("-a").args([&root, &copy]).status().unwrap();
    assert!(copied.success());
    memory.anchor().store(CHAIN, "words 2").unwrap();
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    memory.anchor().store(CHAIN, "words 3").unwrap();
    assert_eq!(memory.sync().await.unwrap().warnings, [""; 0]);
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 3");
    drop(memory);
    fs::remove_dir_all(&root).unwrap();
    fs::rename(&copy, &root).unwrap();

    let memory = world.kernel("agent").await;
    let synced = memory.sync().await.unwrap();
    assert!(synced.warnings.len() == 1 && is_dispute(&synced.warnings[0]), "before any new call: {synced:?}");
    drop(memory);
    let memory = world.kernel("agent").await;
    memory.anchor().store(CHAIN, "words 2, forged").unwrap();
    for tool in ["tools/c.ts", "tools/d.ts"] {
        let persisted = memory.persist(forge(tool, "x")).await.unwrap();
        assert!(persisted.pushed && is_dispute(&persisted.why.unwrap()));
        assert_eq!(world.remote_file(tool).unwrap(), "x");
        assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 3");
    }
    let synced = memory.sync().await.unwrap();
    assert!(synced.warnings.len() == 1 && is_dispute(&synced.warnings[0]) && synced.why.is_none());
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 3");

    // A person has checked it and begun a new chain, which has its own place.
    let other = "e".repeat(32);
    memory.anchor().store(&other, "anew").unwrap();
    arrived(memory.persist(forge("tools/e.ts", "e")).await);
    assert_eq!(memory.sync().await.unwrap().warnings, [""; 0]);
    assert_eq!(remote_anchor(&world, &other).unwrap(), "anew");
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 3");
    world.assert_consistent();
}

/// What is lost on the way is not a reason for an alarm: the note, the remote's answer, or the remote's
/// reference.
#[tokio::test]
async fn an_anchor_of_ours_is_known_again() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let root = world.root("agent");
    let reference = format!("refs/tgp/audit/{CHAIN}");
    let memory = world.kernel("agent").await;
    memory.anchor().store(CHAIN, "words 1").unwrap();
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    for round in 0..2 {
        fs::remove_file(root.join(".state/git-anchor-pushed")).unwrap();
        if round == 0 {
            arrived(memory.persist(forge("tools/c.ts", "c")).await);
        }
        assert_eq!(memory.sync().await.unwrap().warnings, [""; 0]);
    }
    memory.anchor().store(CHAIN, "words 2").unwrap();
    arrived(memory.persist(forge("tools/d.ts", "d")).await);
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 2");

    git(&world.remote(), &["update-ref", "-d", &reference]);
    arrived(memory.persist(forge("tools/e.ts", "e")).await);
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 2", "it is put there again");

    // Pushes arrive, and git is gone before it can say so.
    let mut deaf = world.options("agent");
    deaf.surroundings.path = world.logged_git(&world.at("log"));
    let script = "#!/bin/sh\nPATH=\"${PATH#*:}\"\n\
        case \"$*\" in *' push '*) git \"$@\" > /dev/null 2>&1; exit 1;; esac\nexec git \"$@\"\n";
    fs::write(world.at("bin/git"), script).unwrap();
    let deaf = ToolRepo::open(deaf).await.unwrap();
    for round in 3..6 {
        deaf.anchor().store(CHAIN, &format!("words {round}")).unwrap();
        let persisted = deaf.persist(forge(&format!("tools/t{round}.ts"), "t")).await.unwrap();
        assert!(!persisted.pushed && !is_dispute(&persisted.why.unwrap()));
        time_goes_by(&root);
    }
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 3", "later ones had to expect the second");
    memory.anchor().store(CHAIN, "words 6").unwrap();
    arrived(memory.persist(forge("tools/f.ts", "f")).await);
    assert_eq!(memory.sync().await.unwrap().warnings, [""; 0]);
    assert_eq!(remote_anchor(&world, CHAIN).unwrap(), "words 6");
    world.assert_consistent();
}

/// Processes that replace the anchor at once, are killed, and a writer beside them that persists tools.
#[tokio::test]
async fn many_processes_and_a_writer() {
    if let Ok(root) = std::env::var("TGP_GIT_ANCHOR_ROOT") {
        let memory = ToolRepo::open(options(Path::new(&root), None)).await.unwrap();
        for number in 0.. {
            let words = format!("{} {number}", std::process::id());
            memory.anchor().store(CHAIN, &words).expect("it is stored");
            assert!(memory.anchor().load().expect("it is loaded").is_some());
        }
    }
    let world = World::new();
    let root = world.root("agent");
    let memory = ToolRepo::open(options(&root, Some(&world.remote()))).await.unwrap();
    memory.anchor().store(CHAIN, "first").unwrap();
    let start = || {
        let mut command = child("anchor::many_processes_and_a_writer");
        command.env("TGP_GIT_ANCHOR_ROOT", &root).stderr(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    for round in 0..6 {
        let mut processes = [start(), start()];
        for number in 0..4 {
            let tool = format!("tools/r{round}n{number}.ts");
            arrived(memory.persist(forge(&tool, &tool)).await);
        }
        for process in &mut processes {
            let ended = process.try_wait().unwrap();
            process.kill().unwrap();
            assert!(ended.is_none(), "a process failed");
            process.wait().unwrap();
        }
        assert!(memory.anchor().load().unwrap().is_some());
        let again = memory.persist(forge("tools/again.ts", &round.to_string()));
        let limit = Duration::from_secs(8);
        arrived(tokio::time::timeout(limit, again).await.expect("a killed one left no lock to wait for"));
    }
    git(&root, &["fsck", "--strict"]);
    assert!(remote_anchor(&world, CHAIN).is_some());
    world.assert_consistent();
}
