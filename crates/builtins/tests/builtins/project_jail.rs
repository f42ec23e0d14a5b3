//! Whatever the arguments and the disk look like: nothing outside the project, nothing protected, and no hanging.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_contract::Code;

use crate::project_support::BlockingPool;

const SECRET: &str = "the-secret-word";

/// Every tool with a path, as it would be called with this one.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("fs_read", json!({ "path": path })),
        ("fs_exists", json!({ "path": path })),
        ("fs_list", json!({ "path": path })),
        ("search_grep", json!({ "path": path, "pattern": SECRET })),
        ("search_glob", json!({ "path": path, "pattern": "*" })),
        ("fs_write", json!({ "path": path, "content": "overwritten" })),
        ("fs_edit", json!({ "path": path, "search": SECRET, "replace": "overwritten" })),
        ("fs_delete", json!({ "path": path })),
    ]
}

#[tokio::test]
async fn no_path_leads_out_or_to_what_is_protected() {
    let desk = BlockingPool::new();
    std::fs::write(desk.outside("shared/secret"), SECRET).unwrap();
    std::fs::write(desk.outside("secret"), SECRET).unwrap();
    let protected = [
        ".git/config",
        ".GIT/config",
        "sub/.git/HEAD",
        ".tgp/tools/x.ts",
        ".TGP/tools/x.ts",
        ".env",
        ".env.production",
        "config/.ENV",
        ".ssh/known_hosts",
        "keys/id_rsa",
        "keys/server.pem",
        ".npmrc",
        ".git-credentials",
    ];
    for name in protected {
        desk.put(name, SECRET);
    }
    symlink(desk.outside("shared"), desk.file("to-directory")).unwrap();
    symlink(desk.outside("secret"), desk.file("to-file")).unwrap();
    symlink("/proc/self", desk.file("to-proc")).unwrap();
    let leading_out = [
        "../secret",
        "../shared/secret",
        "a/../../secret",
        "/etc/passwd",
        "to-directory/secret",
        "to-proc/environ",
        "..",
        "a\\b",
        "x\0y",
        ".tgp-tmp-1",
    ];
    for path in protected.iter().chain(&leading_out) {
        for (tool, arguments) in calls(path) {
            assert_eq!(desk.refused(tool, arguments.clone()).await, Code::Security, "{tool} {arguments}");
        }
    }
    // A link itself can be seen, and nothing behind it.
    for (tool, arguments) in calls("to-file").into_iter().filter(|(tool, _)| *tool != "fs_exists") {
        assert_ne!(desk.call(tool, arguments.clone()).await.error().map(|error| error.code), None, "{tool}");
    }
    let everything = desk.done("fs_list", json!({ "depth": 64, "ignored": true })).await.to_string();
    let globbed = desk.done("search_glob", json!({ "pattern": "**" })).await.to_string();
    let found = desk.done("search_grep", json!({ "pattern": SECRET })).await;
    assert_eq!(found["matches"], json!([]), "{found}");
    for name in
        [".git\"", "id_rsa", "server.pem", "/.git/", "x.ts", "known_hosts", ".env", "shared", "environ"]
    {
        assert!(!everything.to_lowercase().contains(name), "{name}: {everything}");
        assert!(!globbed.to_lowercase().contains(name), "{name}: {globbed}");
    }
    assert!(everything.contains("\"to-file\""), "a link is listed as what it is");
    for name in protected {
        assert_eq!(desk.text(name).as_deref(), Some(SECRET), "{name} is untouched");
    }
    assert_eq!(std::fs::read_to_string(desk.outside("shared/secret")).unwrap(), SECRET);
    assert_eq!(std::fs::read_to_string(desk.outside("secret")).unwrap(), SECRET);
}

#[tokio::test]
async fn the_configuration_and_the_packages_can_be_read_and_not_written() {
    let desk = BlockingPool::new();
    for name in ["tgp.config.ts", "node_modules/left/index.js", ".env.example"] {
        desk.put(name, SECRET);
        assert_eq!(desk.done("fs_read", json!({ "path": name })).await["content"], SECRET, "{name}");
        assert_eq!(desk.done("fs_exists", json!({ "path": name })).await["kind"], "file", "{name}");
    }
    for name in ["tgp.config.ts", "TGP.config.ts", "node_modules/left/index.js", "node_modules/new"] {
        for (tool, arguments) in calls(name).split_off(5) {
            assert_eq!(desk.refused(tool, arguments).await, Code::Security, "{tool} {name}");
        }
    }
    assert_eq!(desk.refused("fs_delete", json!({ "path": "node_modules" })).await, Code::Security);
    assert_eq!(desk.text("tgp.config.ts").as_deref(), Some(SECRET));
    let listed = desk.done("fs_list", json!({})).await.to_string();
    assert!(listed.contains("tgp.config.ts") && !listed.contains(".tgp\""), "{listed}");
    assert_eq!(desk.done("search_grep", json!({ "pattern": SECRET })).await["files"], 3);
}

#[tokio::test]
async fn pipes_sockets_and_devices_hang_nobody() {
    let desk = BlockingPool::new();
    desk.put("plain", "needle\n");
    for name in ["pipe", ".gitignore", "deep/.ignore"] {
        std::fs::create_dir_all(desk.file(name).parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(desk.file(name)).status().unwrap();
        assert!(made.success());
    }
    desk.put("deep/file", "needle\n");
    let _socket = UnixListener::bind(desk.file("socket")).unwrap();
    symlink("/dev/zero", desk.file("zero")).unwrap();
    let work = async {
        for name in ["pipe", "socket", "zero", ".gitignore"] {
            assert_eq!(desk.refused("fs_read", json!({ "path": name })).await, Code::Security, "{name}");
            assert_eq!(desk.done("fs_exists", json!({ "path": name })).await["kind"], "other", "{name}");
            let write = json!({ "path": name, "content": "" });
            assert_eq!(desk.refused("fs_write", write).await, Code::Security, "{name}");
            let grep = json!({ "path": name, "pattern": "x" });
            assert_eq!(desk.refused("search_grep", grep).await, Code::Security, "{name}");
        }
        let found = desk.done("search_grep", json!({ "pattern": "needle" })).await;
        assert_eq!(found["files"], 2, "{found}");
        assert_eq!(desk.done("fs_list", json!({ "depth": 3 })).await["total"], 8);
    };
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("a special file made a call hang");
}

#[tokio::test]
async fn a_file_with_a_second_name_is_not_read() {
    let desk = BlockingPool::new();
    std::fs::write(desk.outside("secret"), SECRET).unwrap();
    std::fs::hard_link(desk.outside("secret"), desk.file("innocent.txt")).unwrap();
    assert_eq!(desk.refused("fs_read", json!({ "path": "innocent.txt" })).await, Code::Security);
    let found = desk.done("search_grep", json!({ "pattern": SECRET })).await;
    assert_eq!((found["files"].clone(), found["skipped"]["unreadable"].clone()), (json!(0), json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_swapped_for_links_during_a_walk_show_nothing_outside() {
    let desk = BlockingPool::new();
    std::fs::create_dir(desk.outside("vault")).unwrap();
    std::fs::write(desk.outside("vault/treasure.txt"), SECRET).unwrap();
    desk.put("inner/plain.txt", "plain");
    let (inner, aside, vault) = (desk.file("inner"), desk.file("aside"), desk.outside("vault"));
    let swapping = std::thread::spawn(move || {
        for _ in 0..2_000 {
            std::fs::rename(&inner, &aside).unwrap();
            symlink(&vault, &inner).unwrap();
            std::fs::remove_file(&inner).unwrap();
            std::fs::rename(&aside, &inner).unwrap();
        }
    });
    let mut rounds = 0;
    while !swapping.is_finished() || rounds == 0 {
        rounds += 1;
        let listed = desk.done("fs_list", json!({ "depth": 9 })).await.to_string();
        assert!(!listed.contains("treasure"), "{listed}");
        let found = desk.done("search_grep", json!({ "pattern": SECRET })).await;
        assert_eq!(found["matches"], json!([]));
    }
    swapping.join().unwrap();
}
