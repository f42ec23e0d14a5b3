//! Links, pipes, devices, second names, and a lock that is never released.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tgp_chronicle::{ChronicleOptions, FileChronicle};
use tgp_contract::{Code, RelativePath};

use crate::support::{Project, assert_code, at, beside, event};

#[test]
fn no_path_leaves_the_project() {
    for path in ["../a.sage", "/etc/a.sage", "src/../../a.sage", "src\\..\\a.sage", "src/a\0.sage"] {
        assert!(RelativePath::new(path).is_err(), "{path:?}");
    }
}

#[test]
fn nothing_but_a_plain_file_is_opened_and_no_link_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target.sage");
    fs::write(&target, Project::lines(1).concat()).unwrap();
    let before = fs::read(&target).unwrap();
    let project = Project::new();
    project.write("src/plain.sage", Project::lines(1).concat());

    symlink(&target, project.disk("src/link.sage")).unwrap();
    symlink(outside.path().join("none.sage"), project.disk("src/dangling.sage")).unwrap();
    symlink("plain.sage", project.disk("src/inside.sage")).unwrap();
    symlink(outside.path(), project.disk("src/folder")).unwrap();
    symlink(outside.path(), project.disk(".sage")).unwrap();
    symlink("/dev/full", project.disk("src/device.sage")).unwrap();
    mkfifo(&project.disk("src/pipe.sage"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(project.disk("src/socket.sage")).unwrap();
    fs::hard_link(&target, project.disk("src/second.sage")).unwrap();
    let links = [
        "src/link.sage",
        "src/dangling.sage",
        "src/inside.sage",
        "src/folder/target.sage",
        "src/folder/new.sage",
        ".sage/target.sage",
        ".sage/new.sage",
        "src/device.sage",
        "src/pipe.sage",
        "src/socket.sage",
        "src/second.sage",
    ];
    for path in links {
        assert_code(project.append(path, event(0)), Code::Security);
        assert_code(project.events(path), Code::Security);
        assert_code(project.chronicle.tail_blocking(&at(path), 1), Code::Security);
        assert_code(project.chronicle.verify(&at(path)), Code::Security);
    }
    fs::create_dir(project.disk("src/directory.sage")).unwrap();
    assert_code(project.append("src/directory.sage", event(0)), Code::Validation);
    assert_code(project.append("src/plain.sage/a.sage", event(0)), Code::Validation);
    assert_eq!(fs::read(&target).unwrap(), before);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    // The second name is a plain file of this project too; what it holds is found out when it is opened.
    assert_eq!(project.chronicle.files_blocking().unwrap(), [at("src/plain.sage"), at("src/second.sage")]);
}

#[test]
fn a_link_in_the_way_of_a_torn_line_is_not_written_through() {
    let project = Project::new();
    let torn = b"{\"actor\":";
    project.write("src/a.sage", torn);
    let kept =
        project.chronicle.append_blocking(&at("src/a.sage"), event(0)).unwrap().set_aside.unwrap().kept;
    project.write("src/a.sage", torn);
    project.write("victim", b"untouched");
    fs::remove_file(project.disk(kept.as_str())).unwrap();
    symlink("../victim", project.disk(kept.as_str())).unwrap();
    assert_code(project.append("src/a.sage", event(0)), Code::Security);
    assert_eq!(project.bytes("victim"), b"untouched");
    assert_eq!(project.bytes("src/a.sage"), torn);
}

#[test]
fn a_lock_that_is_not_given_back_is_an_error_and_not_a_wait() {
    let project = Project::new();
    project.append("src/a.sage", event(0)).unwrap();
    let options = ChronicleOptions { lock_wait: Duration::from_millis(20), ..beside(project.folder.path()) };
    let hasty = FileChronicle::open(&options).unwrap();
    let holder = fs::File::open(project.disk("src/a.sage")).unwrap();
    holder.lock_shared().unwrap();
    // Readers do not disturb each other.
    assert_eq!(hasty.tail_blocking(&at("src/a.sage"), 1).unwrap().len(), 1);
    assert_code(hasty.append_blocking(&at("src/a.sage"), event(1)), Code::Conflict);
    holder.unlock().unwrap();
    holder.lock().unwrap();
    assert_code(hasty.tail_blocking(&at("src/a.sage"), 1), Code::Conflict);
    drop(holder);
    assert!(hasty.append_blocking(&at("src/a.sage"), event(1)).unwrap().appended.appended);
}

#[test]
fn an_append_that_finds_no_room_leaves_the_file_as_it_was() {
    const CHILD: &str = "TGP_CHRONICLE_LIMITED";
    if let Some(folder) = std::env::var_os(CHILD) {
        use nix::sys::resource::{Resource, setrlimit};
        use nix::sys::signal::{SigSet, Signal};
        let chronicle = FileChronicle::open(&beside(Path::new(&folder))).unwrap();
        chronicle.append_blocking(&at("src/a.sage"), event(0)).unwrap();
        // Files may not grow beyond this: the second line fits in part, which is how a full disk looks.
        SigSet::from(Signal::SIGXFSZ).thread_block().unwrap();
        setrlimit(Resource::RLIMIT_FSIZE, 500, 500).unwrap();
        assert_code(chronicle.append_blocking(&at("src/a.sage"), event(1)), Code::Internal);
        return;
    }
    let project = Project::new();
    let output = crate::support::child("hostile::an_append_that_finds_no_room_leaves_the_file_as_it_was")
        .env(CHILD, project.folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(project.bytes("src/a.sage"), Project::lines(1).concat());
    assert!(project.chronicle.verify(&at("src/a.sage")).unwrap().torn.is_none());
    assert_eq!(project.append("src/a.sage", event(1)), Ok(true));
}
