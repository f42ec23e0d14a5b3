//! Files that cannot be read, are not regular files, or have names that cannot be reported.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tgp_contract::Code;
use tgp_valve::{ScanReport, ValveEvent};

use crate::support::{EVERYTHING, World};

fn problems(report: &ScanReport) -> Vec<(Code, String)> {
    let errors = report.events.iter().filter_map(|event| match event {
        ValveEvent::Problem { error } => Some((error.code, error.message.clone())),
        _ => None,
    });
    errors.collect()
}

#[tokio::test]
async fn links_pipes_sockets_and_odd_names_do_no_harm() {
    let world = World::new(EVERYTHING);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "not ours").unwrap();
    world.write("dir/real", "1");
    world.scan().await;
    symlink("..", world.disk("dir/loop")).unwrap();
    symlink(outside.path(), world.disk("dir/outside")).unwrap();
    symlink("real", world.disk("dir/alias")).unwrap();
    symlink("nowhere", world.disk("dangling")).unwrap();
    nix::unistd::mkfifo(&world.disk("dir/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(world.disk("dir/socket")).unwrap();
    for name in [&b"bad\xff.txt"[..], b"back\\slash", b"new\nline"] {
        std::fs::write(world.disk("dir").join(OsStr::from_bytes(name)), "odd").unwrap();
    }
    std::fs::create_dir(world.disk("dir").join(OsStr::from_bytes(b"f\xf6lder"))).unwrap();
    world.write("dir/real", "2");
    let mut valve = world.open().unwrap();
    let report = valve.scan(crate::support::never()).await.unwrap();
    assert_eq!(world.told().await, ["all: changed dir/real"]);
    let said = problems(&report);
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said.iter().all(|(code, _)| *code == Code::Validation));
    let report = valve.scan(crate::support::never()).await.unwrap();
    assert!(problems(&report).is_empty(), "each is reported once: {report:?}");
    drop(valve);
    // A file that becomes a link is gone; a folder that becomes a link takes its files along.
    std::fs::remove_file(world.disk("dir/real")).unwrap();
    symlink("/etc/hostname", world.disk("dir/real")).unwrap();
    world.scan().await;
    assert_eq!(world.told().await[1..], ["all: deleted dir/real"]);
}

#[tokio::test]
async fn a_long_name_is_told_of_in_the_chronicle_of_the_project() {
    let world = World::new(EVERYTHING);
    world.scan().await;
    let name = "n".repeat(255);
    world.write(&name, "1");
    assert_eq!(world.scan().await.triggered, 1);
    let events = world.events(tgp_valve::PROJECT_CHRONICLE).await;
    assert_eq!(events[0].file_path.as_deref(), Some(name.as_str()));
}

const CHILD: &str = "TGP_VALVE_TEST_UNREADABLE";

/// Nothing is unreadable to the superuser, so this test then runs again as another user.
#[test]
fn what_cannot_be_read_is_not_gone() {
    if nix::unistd::geteuid().is_root() && std::env::var_os(CHILD).is_none() {
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(65534), Some(65534)).unwrap();
        // Other users may not read the program itself, so a copy of it runs.
        let program = folder.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(&program)
            .args(["hostile::what_cannot_be_read_is_not_gone", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}\n{output:?}");
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(unreadable());
}

async fn unreadable() {
    let world = World::new(EVERYTHING);
    let mode = |path: &str, bits: u32| {
        std::fs::set_permissions(world.disk(path), std::fs::Permissions::from_mode(bits)).unwrap();
    };
    for name in ["file", "dir/a", "dir/deep/b"] {
        world.write(name, "1");
    }
    world.scan().await;
    world.write("file", "2");
    mode("file", 0);
    mode("dir", 0);
    world.write("new", "1");
    mode("new", 0);
    let mut valve = world.open().unwrap();
    let report = valve.scan(crate::support::never()).await.unwrap();
    assert_eq!(report.changes, 0, "{report:?}");
    let said = problems(&report);
    assert!(said.len() == 3 && said.iter().all(|(code, _)| *code == Code::Permission), "{said:#?}");
    assert!(problems(&valve.scan(crate::support::never()).await.unwrap()).is_empty());
    drop(valve);
    // What becomes readable while a valve watches is seen at once.
    let mut watch = world.watch();
    watch.started().await;
    mode("file", 0o600);
    watch.told("all: changed file").await;
    mode("dir", 0o700);
    world.write("dir/a", "2");
    watch.told("all: changed dir/a").await;
    mode("new", 0o600);
    watch.told("all: created new").await;
    world.write("dir/deep/b", "2");
    watch.told("all: changed dir/deep/b").await;
    // A name that cannot be reported is named as a problem while watching too.
    std::fs::write(world.disk("dir").join(OsStr::from_bytes(b"back\\slash")), "odd").unwrap();
    watch
        .until(
            "the odd name",
            |event| matches!(event, ValveEvent::Problem { error } if error.message.contains("slash")),
        )
        .await;
    watch.end().await;
    let told: BTreeSet<String> = world.told().await.into_iter().collect();
    assert_eq!(told.len(), 4, "{told:#?}");
    let known = world.events("file.sage").await.len();
    // A chronicle that the system does not let us write for a while gets its events later.
    mode("file.sage", 0o400);
    world.write("file", "3");
    let report = world.scan().await;
    assert_eq!((report.triggered, report.skipped, report.pending), (0, 0, 1), "{report:?}");
    mode("file.sage", 0o600);
    assert_eq!(world.scan().await.triggered, 1);
    assert_eq!(world.events("file.sage").await.len(), known + 1);
}
