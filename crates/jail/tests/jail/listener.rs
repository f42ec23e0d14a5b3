//! Commands with a listener: the caller serves a port of their network, and nothing else is there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tgp_jail::{JailError, NetworkAccess, Profile, jailed_command_with_listener};

use crate::command::profile_for;
use crate::harness::{Who, as_user, everybody, folder_of};

/// Any number will do: the network is new.
const PORT: u16 = 3128;

/// Only a fault takes longer, on a machine of any speed.
const SOON: Duration = Duration::from_secs(30);

/// The users for whom this machine has networks of their own.
fn users() -> Vec<Who> {
    if !tgp_jail::probe().namespaces.contains(&"network".to_owned()) {
        println!("no network namespaces here: skipped");
        return Vec::new();
    }
    if !Path::new("/bin/bash").exists() {
        println!("no bash, which can connect by itself: skipped");
        return Vec::new();
    }
    everybody()
}

fn profile(project: &Path, who: Who) -> Profile {
    Profile { network: NetworkAccess::Loopback, ..profile_for(project, who) }
}

fn bash(script: &str) -> Command {
    let mut command = Command::new("/bin/bash");
    command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(profile: &Profile, project: &Path, who: Who, script: &str) -> (Child, TcpListener) {
    let mut command = bash(script);
    command.current_dir(project);
    as_user(&mut command, who);
    let (mut command, listener) = jailed_command_with_listener(profile, command, PORT).unwrap();
    let child = command.spawn().unwrap();
    (child, listener.receive().unwrap())
}

/// Accepts one connection, or fails instead of waiting for good.
fn accept(listener: &TcpListener) -> std::net::TcpStream {
    listener.set_nonblocking(true).unwrap();
    let deadline = Instant::now() + SOON;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(SOON)).unwrap();
                return stream;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("no connection: {error}"),
        }
    }
}

/// With and without a pid namespace, whose supervisor is one more process that could keep a copy of the listener.
fn profiles(project: &Path, who: Who) -> [Profile; 2] {
    let whole = profile(project, who);
    let mut one_process = whole.clone();
    one_process.namespaces.pid = false;
    [whole, one_process]
}

#[test]
fn the_caller_serves_a_port_of_the_jail() {
    for who in users() {
        let project = folder_of(who);
        for profile in profiles(project.path(), who) {
            let script = format!("exec 3<>/dev/tcp/127.0.0.1/{PORT}; echo hello >&3; cat <&3");
            let (child, listener) = start(&profile, project.path(), who, &script);
            assert_eq!(listener.local_addr().unwrap().to_string(), format!("127.0.0.1:{PORT}"));
            let mut connection = accept(&listener);
            let mut line = String::new();
            BufReader::new(&connection).read_line(&mut line).unwrap();
            assert_eq!(line, "hello\n");
            connection.write_all(b"welcome").unwrap();
            drop(connection);
            let output = child.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "welcome", "{who:?} {output:?}");
            assert!(output.status.success(), "{who:?} {output:?}");
        }
    }
}

/// Neither the caller's loopback, nor any other address, nor a name.
#[test]
fn nothing_else_is_reached() {
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port();
    for who in users() {
        let project = folder_of(who);
        for target in [format!("127.0.0.1/{port}"), format!("127.0.0.2/{PORT}"), "192.0.2.1/443".to_owned()] {
            let script = format!("exec 3<>/dev/tcp/{target}");
            let (child, listener) = start(&profile(project.path(), who), project.path(), who, &script);
            let output = child.wait_with_output().unwrap();
            assert!(!output.status.success(), "{who:?} {target} {output:?}");
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "{who:?} {target}");
        }
        assert!(outside.accept().is_err(), "{who:?}");
    }
}

/// One jail does not see the port of another, and both have the same.
#[test]
fn each_jail_has_its_own_port() {
    for who in users() {
        let project = folder_of(who);
        let script = format!("read; exec 3<>/dev/tcp/127.0.0.1/{PORT}; cat <&3");
        let jails: Vec<_> =
            (0..3).map(|_| start(&profile(project.path(), who), project.path(), who, &script)).collect();
        for (name, (mut child, listener)) in jails.into_iter().enumerate() {
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            accept(&listener).write_all(name.to_string().as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), name.to_string(), "{who:?} {output:?}");
        }
    }
}

#[test]
fn the_program_inherits_neither_listener_nor_line() {
    for who in users() {
        let project = folder_of(who);
        for profile in profiles(project.path(), who) {
            let (child, _listener) = start(&profile, project.path(), who, "ls /proc/self/fd");
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            // The fourth is the folder that `ls` itself has open.
            assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"], "{output:?}");
        }
    }
}

/// When the caller closes its listener the port is closed, so no process of the jail has kept a copy.
#[test]
fn the_listener_is_the_callers_alone() {
    for who in users() {
        let project = folder_of(who);
        for profile in profiles(project.path(), who) {
            let script = format!("read; exec 3<>/dev/tcp/127.0.0.1/{PORT}");
            let (mut child, listener) = start(&profile, project.path(), who, &script);
            drop(listener);
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(!output.status.success(), "{who:?} {output:?}");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains("refused"), "{who:?} {output:?}");
        }
    }
}

/// The program may serve its own network, but not the caller's port.
#[test]
fn the_port_is_taken() {
    if !Path::new("/usr/bin/python3").exists() {
        println!("no python: skipped");
        return;
    }
    for who in users() {
        let project = folder_of(who);
        let bind = |port: u16| {
            let script = format!(
                "import socket
s = socket.socket()
for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, option, 1)
s.bind((\"127.0.0.1\", {port}))"
            );
            format!("exec /usr/bin/python3 -c '{script}'")
        };
        for (port, is_free) in [(PORT, false), (PORT + 1, true)] {
            let (child, _listener) = start(&profile(project.path(), who), project.path(), who, &bind(port));
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.success(), is_free, "{who:?} {port} {output:?}");
        }
    }
}

#[test]
fn what_cannot_have_a_listener_is_refused() {
    let project = folder_of(Who::Caller);
    let fits = profile(project.path(), Who::Caller);
    let mut no_namespace = fits.clone();
    no_namespace.namespaces.network = false;
    let no_network = Profile { network: NetworkAccess::None, ..fits.clone() };
    let whole_network = Profile { network: NetworkAccess::Unrestricted, ..fits.clone() };
    for (profile, port) in [(&no_namespace, PORT), (&no_network, PORT), (&whole_network, PORT), (&fits, 0)] {
        let error = jailed_command_with_listener(profile, bash("true"), port).unwrap_err();
        assert!(matches!(error, JailError::Order { .. }), "{error}");
    }
    let error = jailed_command_with_listener(&Profile::compute_worker(), bash("true"), PORT).unwrap_err();
    assert!(matches!(error, JailError::ComputeCommand), "{error}");
}

/// Without a network of its own the program does not start, although other parts of a jail may be missing.
#[test]
fn without_a_namespace_nothing_starts() {
    if !everybody().contains(&Who::Nobody) || users().is_empty() {
        return;
    }
    let project = folder_of(Who::Nobody);
    let mut profile = profile(project.path(), Who::Nobody);
    // An ordinary user has no namespace without this one.
    profile.namespaces.user = false;
    let mut command = bash("echo started > here");
    command.current_dir(project.path());
    as_user(&mut command, Who::Nobody);
    let (mut command, listener) = jailed_command_with_listener(&profile, command, PORT).unwrap();
    let error = command.spawn().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(matches!(listener.receive(), Err(JailError::Refused { .. })));
    assert!(!project.path().join("here").exists());
}

#[test]
fn a_listener_that_was_never_sent_is_an_error() {
    if users().is_empty() {
        return;
    }
    let project = folder_of(Who::Caller);
    let profile = profile(project.path(), Who::Caller);
    let (command, listener) = jailed_command_with_listener(&profile, bash("true"), PORT).unwrap();
    assert!(matches!(listener.receive(), Err(JailError::Refused { .. })));
    drop(command);
    let (command, listener) = jailed_command_with_listener(&profile, bash("true"), PORT).unwrap();
    drop(command);
    assert!(matches!(listener.receive(), Err(JailError::Refused { .. })));
}

/// The first spawn has sent a listener too: of a network whose program never started.
#[test]
fn the_listener_of_the_last_spawn_counts() {
    for who in users() {
        let project = folder_of(who);
        let place = project.path().join("tool");
        let mut command = Command::new(&place);
        command.current_dir(project.path()).env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
        as_user(&mut command, who);
        let (mut command, listener) =
            jailed_command_with_listener(&profile(project.path(), who), command, PORT).unwrap();
        assert_eq!(command.spawn().unwrap_err().kind(), std::io::ErrorKind::NotFound);
        std::os::unix::fs::symlink("/bin/bash", &place).unwrap();
        command.args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{PORT}; read line <&3; echo $line")]);
        let mut child = command.spawn().unwrap();
        accept(&listener.receive().unwrap()).write_all(b"welcome\n").unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "welcome\n");
        assert!(child.wait().unwrap().success());
    }
}
