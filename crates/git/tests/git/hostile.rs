//! Remotes, trees and configurations that want to run something or to write where they should not.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use tgp_contract::Code;
use tgp_git::{Remote, ToolRepo};

use crate::support::{World, arrived, forge, git, git_command, options, read, refactor, write};

#[tokio::test]
async fn addresses_that_are_commands_are_refused() {
    let world = World::new();
    let marker = world.at("marker");
    for url in [
        format!("--upload-pack=touch {}", marker.display()),
        format!("ext::sh -c 'touch {}'", marker.display()),
        format!("ssh://-oProxyCommand=touch {}/x", marker.display()),
        format!("-oProxyCommand=touch {}:x", marker.display()),
    ] {
        let mut options = options(&world.root("agent"), None);
        options.remote = Some(Remote::Url(url.clone()));
        let error = ToolRepo::open(options).await.unwrap_err();
        assert_eq!(error.code, Code::Config, "{url}");
    }
    assert!(!marker.exists());
}

#[tokio::test]
async fn bug_the_tool_repository_took_branch_names_that_git_refuses() {
    let world = World::new();
    let id = "a".repeat(40);
    for branch in
        ["@", "HEAD", "-x", "refs/heads/main", "a..b", "a.lock", "FETCH_HEAD", "stash", "a b", "", &id]
    {
        let mut options = options(&world.root("agent"), None);
        branch.clone_into(&mut options.branch);
        let error = ToolRepo::open(options).await.unwrap_err();
        assert_eq!(error.code, Code::Config, "{branch}");
        assert!(error.help_of().is_some_and(|help| help.contains("git.branch")), "{branch}");
    }
}

/// A program that leaves a mark when it is run, whatever for.
fn trap(world: &World) -> String {
    let script = world.at("trap");
    fs::write(&script, format!("#!/bin/sh\ntouch '{}'\nexit 0\n", world.at("marker").display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_repositorys_own_configuration_and_hooks_run_nothing() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    let trap = trap(&world);
    let remote = world.remote();
    let remote = remote.to_str().unwrap();
    let evil = format!(
        "[core]\n\tfsmonitor = {trap}\n\thooksPath = {hooks}\n\tsshCommand = {trap}\n\taskPass = {trap}\n\
         \tgitProxy = {trap}\n\tpager = {trap}\n\teditor = {trap}\n\talternateRefsCommand = {trap}\n\
         \tworktree = {outside}\n\
         [credential]\n\thelper = {trap}\n[push]\n\tgpgSign = true\n[gpg]\n\tprogram = {trap}\n\
         [remote \"{remote}\"]\n\turl = ext::{trap}\n\tuploadpack = {trap}\n\treceivepack = {trap}\n\tvcs = evil\n\
         [url \"ext::{trap} \"]\n\tinsteadOf = /\n[protocol]\n\tallow = always\n\
         [filter \"x\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n\
         [uploadpack]\n\tpackObjectsHook = {trap}\n[gc]\n\tauto = 1\n[alias]\n\tpush = !{trap}\n\tfetch = !{trap}\n",
        hooks = world.at("hooks").display(),
        outside = world.at("outside").display(),
    );
    fs::create_dir(world.at("outside")).unwrap();
    let config = root.join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}{evil}")).unwrap();
    for folder in [world.at("hooks"), root.join(".git/hooks")] {
        fs::create_dir_all(&folder).unwrap();
        for hook in [
            "pre-push",
            "post-checkout",
            "reference-transaction",
            "pre-commit",
            "post-commit",
            "post-index-change",
        ] {
            fs::copy(&trap, folder.join(hook)).unwrap();
        }
    }
    write(&root, ".gitattributes", "* filter=x\n");
    world.person("Theirs", &[("tools/b.ts", "b"), (".gitattributes", "* filter=x diff=x merge=x\n")]);
    memory.hydrate().await.unwrap();
    arrived(memory.persist(forge("tools/c.ts", "c")).await);
    let again = ToolRepo::open(world.options("agent")).await.unwrap();
    again.sync().await.unwrap();
    again.history(None, 10).await.unwrap();
    assert!(!world.at("marker").exists(), "something of the configuration was run");
    assert_eq!(fs::read_dir(world.at("outside")).unwrap().count(), 0);
    assert_eq!(read(&root, "tools/b.ts").unwrap(), "b");
    world.assert_consistent();
    // The trap is a real one: a git that believes the repository falls into it.
    git_command(&root, &["status"]).output().unwrap();
    assert!(world.at("marker").exists());
}

/// Writes a tree as it is given, without the checks that git has against such names.
fn raw_tree(repository: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        let digits: Vec<u8> =
            (0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect();
        bytes.extend_from_slice(&digits);
    }
    object(repository, "tree", &bytes)
}

fn object(repository: &Path, kind: &str, bytes: &[u8]) -> String {
    let mut command = git_command(repository, &["hash-object", "-t", kind, "-w", "--stdin", "--literally"]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn hostile_trees_are_not_checked_out() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let (remote, outside) = (world.remote(), world.at("outside"));
    fs::create_dir(&outside).unwrap();
    let evil = object(&remote, "blob", b"evil");
    let link = object(&remote, "blob", outside.to_str().unwrap().as_bytes());
    let good = object(&remote, "blob", b"good");
    let below = raw_tree(&remote, &[("100644", "config", &evil), ("100644", "evil.ts", &evil)]);
    let tools = raw_tree(
        &remote,
        &[("120000", "escape", &link), ("100644", "good.ts", &good), ("120000", "link.ts", &link)],
    );
    let tree = raw_tree(
        &remote,
        &[
            ("40000", "..", &below),
            ("40000", ".GIT", &below),
            ("40000", ".git", &below),
            ("40000", ".state", &below),
            ("100644", ".tgp-tmp-1", &evil),
            ("100644", "a\\..\\b", &evil),
            ("100644", "new\nline", &evil),
            ("40000", "tools", &tools),
        ],
    );
    let commit = git(&remote, &["commit-tree", "-p", "main", "-m", "Hostile", &tree]);
    git(&remote, &["update-ref", "refs/heads/main", commit.trim()]);

    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    let root = world.root("agent");
    let hydrated = memory.hydrate().await.unwrap();
    assert_eq!(read(&root, "tools/good.ts").unwrap(), "good");
    assert!(hydrated.repaired.iter().any(|note| note.contains("tools/escape")), "{hydrated:?}");
    for name in
        ["tools/escape", "tools/link.ts", ".GIT", ".state/evil.ts", ".tgp-tmp-1", "a\\..\\b", "new\nline"]
    {
        assert!(fs::symlink_metadata(root.join(name)).is_err(), "{name} was written");
    }
    assert!(!root.parent().unwrap().join("evil.ts").exists());
    assert_ne!(read(&root, ".git/config").unwrap(), "evil");
    // Later work continues, and does not go through the link.
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    let error = memory.persist(forge("tools/escape/x.ts", "x")).await.unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    // What was not checked out was not removed either.
    assert_eq!(memory.sync().await.unwrap().committed, []);
    assert!(git(&remote, &["ls-tree", "-r", "--name-only", "main", "tools"]).contains("tools/escape"));
}

#[tokio::test]
async fn links_in_the_working_tree_are_not_followed() {
    let world = World::with(&[("tools/deep/a.ts", "a"), ("tools/b.ts", "b")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    let outside = world.at("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.ts"), "secret").unwrap();
    fs::remove_dir_all(root.join("tools/deep")).unwrap();
    symlink(&outside, root.join("tools/deep")).unwrap();
    fs::remove_file(root.join("tools/b.ts")).unwrap();
    symlink(outside.join("a.ts"), root.join("tools/b.ts")).unwrap();
    world.person(
        "Theirs",
        &[("tools/deep/a.ts", "changed"), ("tools/b.ts", "changed"), ("tools/deep/new.ts", "new")],
    );
    let hydrated = memory.hydrate().await.unwrap();
    assert!(hydrated.repaired.iter().any(|note| note.contains("in the way")), "{hydrated:?}");
    arrived(memory.persist(refactor("tools/b.ts", "ours")).await);
    let synced = memory.sync().await.unwrap();
    assert_eq!(synced.committed, [], "what is behind a link is neither committed nor taken for removed");
    assert_eq!(fs::read_to_string(outside.join("a.ts")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(!git(&world.remote(), &["log", "-p", "main"]).contains("secret"));
}
