//! Many processes at once: on one remote, and on one local repository.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tgp_git::ToolRepo;

use crate::support::{World, arrived, assert_clean, child, forge, git, options, read, runtime};

const TOOLS: usize = 25;

/// What a child process does: opens its repository, and forges its tools, a few at a time as an agent's calls come.
fn forge_all(root: &Path, remote: &Path, name: &str) {
    let at_once: usize = std::env::var("TGP_GIT_AT_ONCE").unwrap().parse().unwrap();
    runtime().block_on(async {
        let memory = ToolRepo::open(options(root, Some(remote))).await.unwrap();
        memory.hydrate().await.unwrap();
        let numbers: Vec<usize> = (0..TOOLS).collect();
        for group in numbers.chunks(at_once) {
            let tasks: Vec<_> = group
                .iter()
                .map(|number| {
                    let (memory, tool) = (memory.clone(), format!("tools/{name}/t{number}.ts"));
                    tokio::spawn(
                        async move { memory.persist(forge(&tool, &format!("{tool} content"))).await },
                    )
                })
                .collect();
            for task in tasks {
                arrived(task.await.unwrap());
            }
        }
    });
}

/// Runs `test` in one process for each of `roots`, all at once, and waits for them.
fn crowd(test: &str, world: &World, roots: &[PathBuf], at_once: usize) {
    let children: Vec<_> = roots
        .iter()
        .enumerate()
        .map(|(number, root)| {
            child(test)
                .env("TGP_GIT_ROOT", root)
                .env("TGP_GIT_REMOTE", world.remote())
                .env("TGP_GIT_NAME", format!("k{number}"))
                .env("TGP_GIT_AT_ONCE", at_once.to_string())
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
    assert_eq!(world.remote_tools().len(), roots.len() * TOOLS);
    let clone = world.at("clone");
    git(world.temporary.path(), &["clone", "--quiet", "--", "remote.git", "clone"]);
    for tool in world.remote_tools() {
        assert_eq!(read(&clone, &tool).unwrap(), format!("{tool} content"));
    }
    world.assert_consistent();
    assert_eq!(world.remote_log().len(), roots.len() * TOOLS, "one commit a tool and no merges");
    git(&world.remote(), &["fsck", "--strict"]);
}

fn is_child() -> bool {
    let Ok(root) = std::env::var("TGP_GIT_ROOT") else { return false };
    let remote = std::env::var("TGP_GIT_REMOTE").unwrap();
    forge_all(Path::new(&root), Path::new(&remote), &std::env::var("TGP_GIT_NAME").unwrap());
    true
}

#[test]
fn eight_kernels_with_repositories_of_their_own() {
    if is_child() {
        return;
    }
    let world = World::new();
    let roots: Vec<PathBuf> = (0..8).map(|number| world.root(&format!("kernel{number}"))).collect();
    crowd("crowd::eight_kernels_with_repositories_of_their_own", &world, &roots, 5);
    for root in &roots {
        assert_clean(root);
    }
}

#[test]
fn four_kernels_in_one_repository() {
    if is_child() {
        return;
    }
    let world = World::new();
    let roots = vec![world.root("shared"); 4];
    crowd("crowd::four_kernels_in_one_repository", &world, &roots, 5);
    assert_clean(&roots[0]);
    git(&roots[0], &["fsck", "--strict"]);
}
