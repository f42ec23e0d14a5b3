//! The agent's root does not have git's own files or the kernel's state.

use std::sync::Arc;

use tgp_contract::{Change, Code, FileSystem, RelativePath};
use tgp_fs::MemoryFs;
use tgp_router::files::ProtectedFs;

fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

#[test]
fn hidden_names_are_out_of_reach_at_any_depth_and_in_any_case() {
    let inner = Arc::new(MemoryFs::new());
    for name in [".git/config", ".state/db", "tools/.git/hooks/x", "tools/a.ts"] {
        inner.write(&path(name), b"x").unwrap();
    }
    let root = ProtectedFs::new(inner, Vec::new());
    for name in [".git", ".git/config", ".GIT/config", ".State/db", "tools/.git/hooks/x", "tools/.Git"] {
        let name = path(name);
        assert_eq!(root.read(&name).unwrap_err().code(), Code::Security, "read {name}");
        assert_eq!(root.write(&name, b"").unwrap_err().code(), Code::Security, "write {name}");
        assert_eq!(root.remove(&name).unwrap_err().code(), Code::Security, "remove {name}");
        assert_eq!(root.list(&name).unwrap_err().code(), Code::Security, "list {name}");
        assert_eq!(root.entry(&name).unwrap_err().code(), Code::Security, "entry {name}");
    }
    let batch = [
        Change::Write { path: path("tools/b.ts"), content: [].into() },
        Change::Write { path: path(".git/HEAD"), content: [].into() },
    ];
    assert!(root.apply(&batch).is_err());
    assert!(root.entry(&path("tools/b.ts")).unwrap().is_none(), "a refused batch leaves nothing");
    let listed: Vec<String> =
        root.list(&RelativePath::root()).unwrap().iter().map(|e| e.path.to_string()).collect();
    assert_eq!(listed, ["tools", "tools/a.ts"]);
    assert!(root.read(&path("tools/.gitignore")).is_err_and(|error| error.code() == Code::NotFound));
}

#[test]
fn kept_trees_are_out_of_reach_in_any_case_and_their_neighbours_are_not() {
    let inner = Arc::new(MemoryFs::new());
    inner.write(&path(".tgp/tools/a.ts"), b"x").unwrap();
    let guarded = ProtectedFs::new(inner, vec![path(".tgp"), path("tgp.config.ts")]);
    for name in [".tgp", ".tgp/tools/a.ts", ".TGP/x", "tgp.config.ts", "TGP.config.ts"] {
        assert_eq!(guarded.write(&path(name), b"").unwrap_err().code(), Code::Security, "{name}");
        assert_eq!(guarded.read(&path(name)).unwrap_err().code(), Code::Security, "{name}");
    }
    for name in [".tgp-evil/x", "tgp.config.tsx", "a/.tgp/x"] {
        guarded.write(&path(name), b"x").unwrap();
    }
    assert!(
        guarded
            .list(&RelativePath::root())
            .unwrap()
            .iter()
            .all(|entry| !entry.path.as_str().starts_with(".tgp/"))
    );
}
