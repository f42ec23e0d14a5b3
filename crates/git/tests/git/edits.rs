//! Edits: made from the current content, under one lock, with no work lost.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use tgp_contract::{Code, ToolError};
use tgp_git::{Edited, Provider, Strategy, ToolEdit, ToolRepo};

use crate::api::{Server, gatekeeper};
use crate::support::{
    World, assert_clean, child, forge, git, lines, options, path, read, runtime, show, write,
};

/// Replaces one word, and fails when it is not there.
fn replace(old: &str, new: &str) -> ToolEdit {
    let (old, new) = (old.to_owned(), new.to_owned());
    Box::new(move |content| {
        let text = String::from_utf8(content.unwrap_or_default().to_vec()).unwrap();
        if !text.contains(&old) {
            return Err(ToolError::new(Code::Validation, format!("`{old}` is not in `{text}`")));
        }
        Ok(text.replace(&old, &new).into_bytes())
    })
}

fn content(text: &str) -> ToolEdit {
    let text = text.to_owned();
    Box::new(move |_| Ok(text.into_bytes()))
}

#[track_caller]
fn delivered(edited: Result<Edited, ToolError>) -> Edited {
    let edited = edited.unwrap();
    assert!(edited.persisted.pushed && edited.persisted.why.is_none(), "{edited:?}");
    edited
}

const WRITERS: usize = 8;
const SHARED: &str = "tools/shared.ts";

#[test]
fn bug_eight_processes_patch_one_file_and_no_line_is_lost() {
    if let Ok(root) = std::env::var("TGP_GIT_ROOT") {
        let remote = std::env::var("TGP_GIT_REMOTE").unwrap();
        let name = std::env::var("TGP_GIT_NAME").unwrap();
        runtime().block_on(async {
            let memory = ToolRepo::open(options(Path::new(&root), Some(Path::new(&remote)))).await.unwrap();
            memory.hydrate().await.unwrap();
            let edit = replace(&format!("line {name}: open\n"), &format!("line {name}: done\n"));
            delivered(memory.edit(&path(SHARED), edit).await);
        });
        return;
    }
    let whole =
        |state: &str| (0..WRITERS).map(|number| format!("line {number}: {state}\n")).collect::<String>();
    let world = World::with(&[(SHARED, &whole("open"))]);
    let root = world.root("shared");
    runtime().block_on(async { world.kernel("shared").await });
    let children: Vec<_> = (0..WRITERS)
        .map(|number| {
            child("edits::bug_eight_processes_patch_one_file_and_no_line_is_lost")
                .env("TGP_GIT_ROOT", &root)
                .env("TGP_GIT_REMOTE", world.remote())
                .env("TGP_GIT_NAME", number.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    }
    assert_eq!(world.remote_file(SHARED).unwrap(), whole("done"));
    assert_eq!(read(&root, SHARED).unwrap(), whole("done"));
    assert_eq!(world.remote_log().len(), 1 + WRITERS, "one commit an edit");
    world.assert_consistent();
    assert_clean(&root);
}

#[tokio::test]
async fn what_a_person_left_there_is_in_the_history() {
    let world = World::with(&[("tools/a.ts", "one two")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    write(&root, "tools/a.ts", "ONE two");
    let edited = delivered(memory.edit(&path("tools/a.ts"), replace("two", "TWO")).await);
    assert_eq!((edited.before.unwrap(), edited.after), (b"ONE two".to_vec(), b"ONE TWO".to_vec()));
    assert_eq!(world.remote_log(), ["Refactor: tools/a.ts", "Refactor: tools/a.ts", "Start"]);
    assert_eq!(show(&world.remote(), "main~1", "tools/a.ts").unwrap(), "ONE two");
    // A file that was never committed at all.
    write(&root, "tools/b.ts", "draft");
    delivered(memory.edit(&path("tools/b.ts"), replace("draft", "final")).await);
    assert_eq!(world.remote_log()[..2], ["Refactor: tools/b.ts", "Forge: tools/b.ts"]);
    assert_eq!(show(&world.remote(), "main~1", "tools/b.ts").unwrap(), "draft");
    // One that is new, and then the same bytes again.
    let new = delivered(memory.edit(&path("tools/c.ts"), content("c")).await);
    assert_eq!(new.before, None);
    assert_eq!(world.remote_log()[0], "Forge: tools/c.ts");
    let again = delivered(memory.edit(&path("tools/c.ts"), content("c")).await);
    assert_eq!(again.persisted.commit, new.persisted.commit, "nothing changed, so nothing is committed");
    // One that a person removed from the working tree only: it comes back.
    fs::remove_file(root.join("tools/c.ts")).unwrap();
    delivered(memory.edit(&path("tools/c.ts"), content("c")).await);
    assert_eq!(read(&root, "tools/c.ts").unwrap(), "c");
    world.assert_consistent();
    assert_clean(&root);
}

#[tokio::test]
async fn an_edit_that_fails_leaves_no_trace() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    write(&root, "tools/a.ts", "by hand");
    let before = (git(&root, &["for-each-ref"]), git(&root, &["status", "--porcelain"]));
    let error = memory.edit(&path("tools/a.ts"), replace("missing", "x")).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::Validation, "`missing` is not in `by hand`"));
    assert!(memory.edit(&path("tools/deep/new.ts"), replace("missing", "x")).await.is_err());
    fs::create_dir(root.join("tools/folder.ts")).unwrap();
    fs::write(world.at("outside"), "secret").unwrap();
    std::os::unix::fs::symlink(world.at("outside"), root.join("tools/link.ts")).unwrap();
    for (name, code) in [
        ("tools/link.ts", Code::Security),
        ("tools/folder.ts", Code::Security),
        ("tools/link.ts/below.ts", Code::Security),
        (".git/config", Code::Security),
        (".state/x", Code::Security),
        ("meta.json", Code::Validation),
    ] {
        // The edit must not even be asked where nothing can be written.
        let edit: ToolEdit = Box::new(|_| panic!("it was called"));
        let error = memory.edit(&path(name), edit).await.unwrap_err();
        assert_eq!(error.code, code, "{name}");
    }
    fs::remove_file(root.join("tools/link.ts")).unwrap();
    assert_eq!((git(&root, &["for-each-ref"]), git(&root, &["status", "--porcelain"])), before);
    assert!(!root.join("tools/deep").exists());
    assert_eq!(fs::read_to_string(world.at("outside")).unwrap(), "secret");
}

#[tokio::test]
async fn the_remotes_change_of_the_same_file_is_a_conflict_and_ours_is_kept() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    world.person("Theirs", &[("tools/a.ts", "theirs")]);
    let error = memory.edit(&path("tools/a.ts"), replace("a", "ours")).await.unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert_eq!(show(&root, error.details["branch"].as_str().unwrap(), "tools/a.ts").unwrap(), "ours");
    // Once more, from what is there now.
    delivered(memory.edit(&path("tools/a.ts"), replace("theirs", "both")).await);
    assert_eq!(world.remote_file("tools/a.ts").unwrap(), "both");
    assert_clean(&root);
}

#[tokio::test]
async fn in_gatekeeper_mode_the_working_tree_has_the_edit_and_main_has_not() {
    let world = World::with(&[("tools/a.ts", "one two")]);
    let server = Server::start(Provider::GitHub).await;
    let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
    memory.hydrate().await.unwrap();
    let root = world.root("agent");
    write(&root, "tools/a.ts", "ONE two");
    delivered(memory.edit(&path("tools/a.ts"), replace("two", "TWO")).await);
    delivered(memory.edit(&path("tools/a.ts"), replace("TWO", "2")).await);
    assert_eq!(read(&root, "tools/a.ts").unwrap(), "ONE 2");
    assert_eq!(world.remote_file("tools/a.ts").unwrap(), "one two");
    let contents: Vec<String> =
        (0..3).map(|back| show(&world.remote(), &format!("feat/a~{back}"), "tools/a.ts").unwrap()).collect();
    assert_eq!(contents, ["ONE 2", "ONE TWO", "ONE two"]);
    // What cannot be committed does not stay in the working tree either.
    fs::remove_file(root.join("tools/a.ts")).unwrap();
    let error = memory.edit(&path("tools/a.ts/below.ts"), content("x")).await.unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(!root.join("tools/a.ts").exists());
    delivered(memory.edit(&path("tools/new.ts"), content("new")).await);
    assert_eq!(read(&root, "tools/new.ts").unwrap(), "new");
    assert_eq!(
        lines(&git(&world.remote(), &["log", "--format=%s", "main..feat/new"])),
        ["Forge: tools/new.ts"]
    );
}

/// The version that a reviewer made of a request arrived, and the edit is made from it: no old version is in its way.
#[tokio::test]
async fn an_edit_of_what_the_reviewer_changed_is_no_conflict() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let mut options = world.options("agent");
    options.strategy = Strategy::Request;
    let memory = ToolRepo::open(options).await.unwrap();
    memory.hydrate().await.unwrap();
    memory.persist(forge("tools/x.ts", "ours")).await.unwrap();
    world.person("Reviewed", &[("tools/x.ts", "reviewed")]);
    git(&world.remote(), &["update-ref", "-d", "refs/heads/feat/x"]);
    memory.hydrate().await.unwrap();
    let edited = memory.edit(&path("tools/x.ts"), replace("reviewed", "reviewed, further")).await.unwrap();
    assert!(edited.persisted.pushed, "{edited:?}");
    assert_eq!(show(&world.remote(), "feat/x", "tools/x.ts").unwrap(), "reviewed, further");
    assert_eq!(git(&world.remote(), &["rev-list", "--count", "main..feat/x"]).trim(), "1");
}
