//! The project as a run sees it: what it has written and not committed is visible to it alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;

use tgp_contract::{Entry, EntryKind, FsError, RelativePath};

use super::ProjectFiles;
use crate::files::{Flow, IgnorePolicy, ToolDirectories, UpwardTraversal, Walk, Workspace};

fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

fn workspace(folder: &Path) -> Workspace {
    let project = folder.canonicalize().unwrap().join("project");
    std::fs::create_dir_all(project.join(".tgp")).unwrap();
    std::fs::create_dir_all(project.join("a/b")).unwrap();
    std::fs::create_dir_all(folder.join("beside")).unwrap();
    std::fs::write(project.join("a/old.txt"), "old").unwrap();
    std::fs::write(project.join("a/b/deep.txt"), "deep").unwrap();
    let writable = ["../beside".to_owned()];
    let directories = ToolDirectories {
        writable: &writable,
        readable: &[],
        upward: UpwardTraversal::Allowed,
        ..ToolDirectories::default()
    };
    Workspace::open(&project, &project.join(".tgp"), directories, &[]).unwrap()
}

fn walked(files: &ProjectFiles) -> Vec<String> {
    let mut seen = Vec::new();
    let walk = Walk { files, ignored: IgnorePolicy::Skipped, depth: usize::MAX, is_due: &|| false };
    let complete = walk
        .each(&RelativePath::root(), &mut |entry: &Entry| {
            let mark = if entry.kind == EntryKind::Directory { "/" } else { "" };
            seen.push(format!("{}{mark} {}", entry.path, entry.size));
            Flow::On
        })
        .unwrap();
    assert!(complete.is_whole());
    seen
}

#[test]
fn a_run_sees_its_own_writes_and_others_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = workspace(folder.path());
    let (outer, outer_overlay) = workspace.overlay();
    outer.host.write(&path("project/a/new.txt"), b"1234").unwrap();
    outer.host.write(&path("project/made/below/x.txt"), b"x").unwrap();
    outer.host.write(&path("beside/y.txt"), b"y").unwrap();
    outer.host.remove(&path("project/a/old.txt")).unwrap();
    let (inner, _) = outer.overlay();
    inner.host.write(&path("project/.ignore"), b"made\n").unwrap();
    inner.host.write(&path("project/a/old.txt"), b"again").unwrap();
    inner.host.remove(&path("project/a/b/deep.txt")).unwrap();

    let plain = ["a/ 0", "a/b/ 0", "a/b/deep.txt 4", "a/old.txt 3"];
    assert_eq!(walked(&workspace.project_files()), plain);
    let of_outer =
        ["a/ 0", "a/b/ 0", "a/b/deep.txt 4", "a/new.txt 4", "made/ 0", "made/below/ 0", "made/below/x.txt 1"];
    assert_eq!(walked(&outer.project_files()), of_outer);
    assert_eq!(walked(&inner.project_files()), [".ignore 5", "a/ 0", "a/b/ 0", "a/new.txt 4", "a/old.txt 5"]);

    let files = inner.project_files();
    assert_eq!(files.read(&path("a/old.txt")).unwrap(), b"again");
    assert!(matches!(files.read(&path("a/b/deep.txt")), Err(FsError::NotFound(_))));
    let changed =
        files.change::<FsError>(&path("a/new.txt"), |before| Ok(before.map(<[u8]>::to_vec))).unwrap();
    assert_eq!(changed.after.as_deref(), Some(b"1234".as_slice()));
    assert!(files.remove_empty_directory(&path("a/b")).is_err(), "a run removes no directory");

    outer_overlay.commit().unwrap();
    assert_eq!(walked(&workspace.project_files()), of_outer);
}
