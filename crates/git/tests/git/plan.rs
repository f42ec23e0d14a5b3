//! Section 1 of the integration plan: hydration, fabrication, concurrency.

use tgp_git::HydrateOutcome;

use crate::support::{World, arrived, assert_clean, forge, git, read, refactor, write};

#[tokio::test]
async fn hydration_brings_what_a_person_committed() {
    let world = World::with(&[("tools/hello.ts", "export default () => 'hello';\n")]);
    let memory = tgp_git::ToolRepo::open(world.options("agent")).await.unwrap();
    let hydrated = memory.hydrate().await.unwrap();
    let head = git(&world.remote(), &["rev-parse", "main"]).trim().to_owned();
    assert_eq!(hydrated.outcome, HydrateOutcome::Cloned { to: head });
    assert_eq!(hydrated.conflicts, []);
    assert_eq!(read(&world.root("agent"), "tools/hello.ts").unwrap(), "export default () => 'hello';\n");
    assert_clean(&world.root("agent"));
}

#[tokio::test]
async fn fabrication_commits_and_pushes() {
    let world = World::with(&[("tools/hello.ts", "hello")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    write(&root, "tools/new.ts", "one");
    let persisted = arrived(memory.persist(forge("tools/new.ts", "one")).await);
    assert_eq!(persisted.branch, "main");
    assert_eq!(persisted.commit, git(&world.remote(), &["rev-parse", "main"]).trim());
    write(&root, "tools/new.ts", "two");
    arrived(memory.persist(refactor("tools/new.ts", "two")).await);
    assert_eq!(world.remote_log(), ["Refactor: tools/new.ts", "Forge: tools/new.ts", "Start"]);
    let author = git(&world.remote(), &["log", "-1", "--format=%an <%ae> %cn", "main"]);
    assert_eq!(author.trim(), "Agent <agent@example.org> Agent");
    let changed = git(&world.remote(), &["diff", "--name-only", "main~1", "main"]);
    assert_eq!(changed, "meta.json\ntools/new.ts\n");
    world.assert_consistent();
    assert_clean(&root);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_at_once_both_arrive() {
    let world = World::with(&[("tools/hello.ts", "hello")]);
    let (a, b) = (world.kernel("a").await, world.kernel("b").await);
    let (one, other) =
        tokio::join!(a.persist(forge("tools/toolA.ts", "a")), b.persist(forge("tools/toolB.ts", "b")));
    arrived(one);
    arrived(other);
    assert_eq!(world.remote_tools(), ["tools/hello.ts", "tools/toolA.ts", "tools/toolB.ts"]);
    assert_eq!(world.remote_log().len(), 3, "no merge commits");
    world.assert_consistent();
}
