//! Looking back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tgp_git::{History, ToolRepo};

use crate::support::{World, arrived, forge, git, options, path, refactor, removal, write};

fn fixed_clock() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

#[tokio::test]
async fn versions_of_a_tool_and_of_everything() {
    let world = World::new();
    let mut options = world.options("agent");
    options.clock = fixed_clock;
    let memory = ToolRepo::open(options).await.unwrap();
    assert_eq!(memory.history(None, 10).await.unwrap(), History { versions: vec![], complete: true });
    for work in [
        forge("tools/a.ts", "1"),
        forge("tools/b.ts", "1"),
        refactor("tools/a.ts", "2"),
        refactor("tools/b.ts", "2"),
        removal("tools/a.ts"),
    ] {
        arrived(memory.persist(work).await);
    }
    std::fs::rename(world.remote(), world.at("away")).unwrap();
    memory.persist(forge("tools/a.ts", "3")).await.unwrap();

    let of_a = memory.history(Some(&path("tools/a.ts")), 10).await.unwrap();
    let subjects: Vec<&str> = of_a.versions.iter().map(|version| version.subject.as_str()).collect();
    assert_eq!(
        subjects,
        ["Forge: tools/a.ts", "Remove: tools/a.ts", "Refactor: tools/a.ts", "Forge: tools/a.ts"]
    );
    assert!(of_a.complete);
    let newest = &of_a.versions[0];
    assert_eq!((newest.author.as_str(), newest.email.as_str()), ("Agent", "agent@example.org"));
    assert_eq!(newest.time_ms, 1_700_000_000_000);
    assert_eq!(newest.paths, ["meta.json", "tools/a.ts"]);
    let pushed: Vec<Option<bool>> = of_a.versions.iter().map(|version| version.pushed).collect();
    assert_eq!(pushed, [Some(false), Some(true), Some(true), Some(true)]);
    let all = memory.history(None, 3).await.unwrap();
    assert_eq!((all.versions.len(), all.complete), (3, false), "there are more");
    assert_eq!(memory.history(None, 100).await.unwrap().versions.len(), 6);
    assert_eq!(memory.history(Some(&path("tools/none.ts")), 10).await.unwrap().versions, []);
}

#[tokio::test]
async fn a_shallow_history_says_that_there_is_more() {
    let world = World::with(&[("tools/a.ts", "1")]);
    world.person("Second", &[("tools/a.ts", "2")]);
    let memory = world.kernel("agent").await;
    let history = memory.history(Some(&path("tools/a.ts")), 10).await.unwrap();
    assert_eq!((history.versions.len(), history.complete), (1, false));
    // A person can bring the rest.
    let root = world.root("agent");
    git(&root, &["fetch", "--quiet", "--unshallow", "--", world.remote().to_str().unwrap(), "main"]);
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    let history = memory.history(Some(&path("tools/a.ts")), 10).await.unwrap();
    assert_eq!((history.versions.len(), history.complete), (2, true));
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    assert!(!memory.status().await.unwrap().shallow, "a push does not make it shallow again");
}

#[tokio::test]
async fn status_says_where_it_stands_without_credentials() {
    let world = World::new();
    let mut options = options(&world.root("agent"), None);
    options.remote = Some(tgp_git::Remote::Url("https://me:hunter22@host.invalid/x.git".to_owned()));
    let memory = ToolRepo::open(options).await.unwrap();
    let status = memory.status().await.unwrap();
    assert_eq!(status.remote.as_deref(), Some("https://host.invalid/x.git"));
    assert_eq!((status.head, status.unpushed, status.branch.as_str()), (None, 0, "main"));
}

#[tokio::test]
async fn the_first_commit_has_what_stands_around_the_tools_and_no_draft() {
    let world = World::new();
    let root = world.root("agent");
    for (name, content) in [
        (".gitignore", "/.state/\n"),
        ("tsconfig.json", "{}"),
        ("tools/.gitkeep", ""),
        ("tools/draft.ts", "draft"),
    ] {
        write(&root, name, content);
    }
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    memory.hydrate().await.unwrap();
    arrived(memory.persist(forge("tools/a.ts", "1")).await);
    assert_eq!(world.remote_log(), ["Forge: tools/a.ts", "Start the tool repository"]);
    assert_eq!(world.remote_file("tsconfig.json").as_deref(), Some("{}"));
    assert_eq!(world.remote_file("tools/draft.ts"), None);
    // Another folder with the same files around its tools has nothing to add to them.
    for (name, content) in [(".gitignore", "/.state/\n"), ("tsconfig.json", "{}")] {
        write(&world.root("other"), name, content);
    }
    let other = world.kernel("other").await;
    arrived(other.persist(forge("tools/b.ts", "1")).await);
    assert_eq!(world.remote_log(), ["Forge: tools/b.ts", "Forge: tools/a.ts", "Start the tool repository"]);
}

#[tokio::test]
async fn without_a_remote_nothing_is_called_pushed_or_not() {
    let world = World::new();
    let memory = ToolRepo::open(options(&world.root("agent"), None)).await.unwrap();
    memory.persist(forge("tools/a.ts", "1")).await.unwrap();
    let history = memory.history(None, 10).await.unwrap();
    assert_eq!(history.versions.iter().map(|version| version.pushed).collect::<Vec<_>>(), [None]);
}
