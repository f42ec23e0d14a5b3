//! Which names of a tool repository are private to the kernel, and what a message says of a file that cannot be used.

use std::os::unix::fs::PermissionsExt;

use tgp_fs::{explain_permission, is_default_database, is_kernel_private};

#[test]
fn the_state_and_every_file_of_the_default_database_are_private() {
    for name in [
        ".state",
        ".STATE",
        "data.sqlite",
        "DATA.sqlite",
        "data.sqlite-wal",
        "data.sqlite-shm",
        "Data.SQLite-Journal",
        "data.sqlite-mj1234",
    ] {
        assert!(is_kernel_private(name), "{name}");
    }
    for name in
        ["", ".stat", "state", "data", "data.sqlit", "data.sqlite3", "data.sqlité", "my-data.sqlite", "tools"]
    {
        assert!(!is_kernel_private(name), "{name}");
    }
    assert!(!is_default_database(".state"));
}

#[test]
fn a_file_that_cannot_be_used_is_explained_with_owner_and_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    let own = explain_permission(&file);
    assert!(own.contains("0400") && own.contains(file.to_str().unwrap()), "{own}");
    // What cannot be looked at is explained by the nearest directory that can.
    let missing = explain_permission(&file.join("y/z"));
    assert!(missing.contains(file.to_str().unwrap()), "{missing}");
    if nix::unistd::geteuid().is_root() {
        println!("skipped: a file of another user (needs a user who is not root)");
        return;
    }
    let foreign = explain_permission(std::path::Path::new("/"));
    assert!(foreign.contains("belongs to root"), "{foreign}");
}
