//! `e2e_4`: whoever ends the program finds nothing of it afterwards.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use crate::processes::{Process, assert_gone, descendants, send, start_session};
use crate::project::Project;
use crate::pty::Terminal;

/// A project whose tool `waits` reports to a server of the test.
struct Waiting {
    project: Project,
    server: TcpListener,
}

impl Waiting {
    fn new() -> Self {
        let project = Project::with_fixtures();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", server.local_addr().unwrap());
        project.write(
            "tgp.config.ts",
            &format!("export default {{ allowedFetchUrls: ['{origin}'], sandbox: {{ wallMs: 60000 }} }};"),
        );
        project.trust();
        project.write("tmp/old.txt", "old");
        Self { project, server }
    }

    fn arguments(&self) -> String {
        format!(r#"{{"url": "http://{}/begun", "ms": 60000}}"#, self.server.local_addr().unwrap())
    }

    /// Returns when the tool has written its files and waits.
    fn wait_for_tool(&self) {
        let (mut connection, _) = self.server.accept().unwrap();
        let mut request = BufReader::new(connection.try_clone().unwrap());
        let mut line = String::new();
        while request.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        connection.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        drop(connection);
        // The tool has its answer and sets its timer.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }

    fn start(&self) -> Child {
        let mut command = self.project.command(&["exec", "tools/waits.ts", "--args", &self.arguments()]);
        let child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        self.wait_for_tool();
        child
    }

    fn assert_as_before(&self) {
        self.project.assert_clean();
        assert_eq!(self.project.read("tmp/old.txt"), "old");
        assert!(!self.project.file("tmp/new.txt").exists(), "a run that did not end has left a file");
        assert!(!std::path::Path::new("/tmp/scratch.txt").exists(), "the scratch of a run is on the disk");
        let next = self.project.run(&["exec", "tools/math/fib.ts", "--args", r#"{"n": 10}"#]).expect_code(0);
        assert_eq!(next.stdout, "55\n");
    }
}

/// Those who must be gone, and there are some.
fn workers_of(child: u32) -> Vec<Process> {
    let workers = descendants(child);
    assert!(!workers.is_empty(), "no worker was running: the test proves nothing");
    workers
}

fn end_with(signal: i32) {
    let waiting = Waiting::new();
    let child = waiting.start();
    let (id, workers) = (child.id(), workers_of(child.id()));
    send(id, signal);
    let output = child.wait_with_output().unwrap();
    if signal == libc::SIGKILL {
        assert_eq!(output.status.code(), None);
    } else {
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "interrupted\n");
    }
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_gone(&workers, id);
    waiting.assert_as_before();
}

#[test]
fn e2e_4_sigterm_cleanliness() {
    end_with(libc::SIGTERM);
}

#[test]
fn e2e_4_sigint_cleanliness() {
    end_with(libc::SIGINT);
}

#[test]
fn e2e_4_sigkill_cleanliness() {
    end_with(libc::SIGKILL);
}

#[test]
fn e2e_4_ctrl_c_cleanliness() {
    let waiting = Waiting::new();
    let command = waiting.project.command(&["exec", "tools/waits.ts", "--args", &waiting.arguments()]);
    let mut terminal = Terminal::start(command);
    waiting.wait_for_tool();
    let (id, workers) = (terminal.id(), workers_of(terminal.id()));
    // The terminal sends it to the workers as well.
    terminal.type_keys("\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("interrupted"), "{screen}");
    assert_gone(&workers, id);
    waiting.assert_as_before();
}

#[test]
fn e2e_4_demo_interrupted_midway() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let project = Project::empty();
        let mut command = project.command(&["demo"]);
        let mut child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut story = BufReader::new(child.stdout.take().unwrap());
        let mut told = String::new();
        while !told.contains("I write one.") {
            assert!(story.read_line(&mut told).unwrap() > 0, "{told}");
        }
        let temporary = project.all_files().iter().any(|name| name.starts_with("tmp/tgp-demo-"));
        assert!(temporary, "the demo has no folder: the test proves nothing");
        let (id, workers) = (child.id(), workers_of(child.id()));
        send(id, signal);
        story.read_to_string(&mut told).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert!(!told.contains("temporary folder that is gone"), "{told}");
        assert_gone(&workers, id);
        project.assert_clean();
    }
}

#[test]
fn a_signal_at_any_moment_of_a_short_command_leaves_nothing() {
    let project = Project::with_fixtures();
    // The first start makes the kernel's own state.
    project.run(&["list"]).expect_code(0);
    let before = project.contents();
    for delay in 0..12 {
        let mut command = project.command(&["exec", "tools/math/fib.ts", "--args", r#"{"n": 5}"#]);
        let child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let id = child.id();
        std::thread::sleep(std::time::Duration::from_millis(delay * 4));
        send(id, libc::SIGTERM);
        let output = child.wait_with_output().unwrap();
        // Before its handlers stand the default action ends it; after its work is done there is nothing to interrupt.
        assert!(matches!(output.status.code(), Some(0 | 130) | None), "{output:?}");
        assert_gone(&[], id);
        project.assert_clean();
        assert_eq!(project.contents(), before);
    }
}
