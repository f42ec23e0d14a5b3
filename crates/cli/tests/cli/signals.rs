//! `e2e_4`: after the program is ended nothing of it is left.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use crate::crowd::{Crowd, POSTGRES, finish, start};
use crate::processes::{Process, assert_gone, descendants, send, start_session};
use crate::project::Project;
use crate::proxy::{CommitProxy, server_of};
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

fn code_of(signal: i32) -> i32 {
    if signal == libc::SIGTERM { 143 } else { 130 }
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
        assert_eq!(output.status.code(), Some(code_of(signal)), "{output:?}");
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
        assert_eq!(output.status.code(), Some(code_of(signal)), "{output:?}");
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
        // Before its handlers are installed the default action ends it; after its work is done there is nothing to
        // interrupt.
        assert!(matches!(output.status.code(), Some(0 | 143) | None), "{output:?}");
        assert_gone(&[], id);
        project.assert_clean();
        assert_eq!(project.contents(), before);
    }
}

/// A program whose COMMIT is never answered. The project's next programs reach the database without the proxy.
struct Undecided {
    crowd: Crowd,
    child: Child,
}

impl Undecided {
    /// None where there is no PostgreSQL.
    fn start(words: &[&str]) -> Option<Self> {
        let Ok(url) = std::env::var(POSTGRES) else {
            println!("skipped: {POSTGRES} is not set");
            return None;
        };
        let crowd = Crowd::new(Some(&url));
        crowd.project.write("one.aql", "query One {\n  one: exec(\"tools/both.ts\") { n: 1 }\n}\n");
        let proxy = CommitProxy::start(server_of(&url));
        crowd.configure(Some(&proxy.url(&url)));
        let child = start(crowd.project.command(words));
        proxy.wait_for_commit();
        crowd.configure(Some(&url));
        Some(Self { crowd, child })
    }
}

const UNDECIDED: [&[&str]; 3] = [
    &["exec", "tools/both.ts", "--args", r#"{"n": 1}"#],
    &["call", "exec_tool", r#"{"path": "tools/both.ts", "args": {"n": 1}}"#, "--yes"],
    &["aql", "run", "one.aql", "--yes"],
];

#[test]
fn an_undecided_commit_is_recorded_as_unknown_when_a_signal_ends_the_program() {
    for (words, signal) in UNDECIDED.into_iter().zip([libc::SIGTERM, libc::SIGINT, libc::SIGTERM]) {
        let Some(Undecided { crowd, child }) = Undecided::start(words) else { return };
        let (id, workers) = (child.id(), workers_of(child.id()));
        send(id, signal);
        let output = finish(child);
        assert_eq!(output.status.code(), Some(code_of(signal)), "{words:?} {output:?}");
        assert_gone(&workers, id);
        // Where the machine was too slow to tidy up in time, the next kernel does.
        let next = crowd.project.command(&["list"]).output().unwrap();
        assert!(next.status.success(), "{next:?}");
        let records = crowd.records();
        assert_eq!(records.len(), 1, "{words:?} {records:?}");
        let message = records[&1][0]["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("not known"), "{words:?} {message}");
        // The server has committed, and no caller was informed; the file is kept, so that it can be seen.
        assert!(crowd.rows().contains(&1) && crowd.files().contains(&1), "{words:?}");
        crowd.close();
    }
}

#[test]
fn the_second_signal_ends_a_program_at_once_whatever_it_waits_for() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let Some(Undecided { crowd, child }) = Undecided::start(UNDECIDED[0]) else { return };
        let (id, workers) = (child.id(), workers_of(child.id()));
        send(id, signal);
        // Two signals of a kind that come at once are one.
        std::thread::sleep(std::time::Duration::from_millis(300));
        send(id, signal);
        let output = finish(child);
        assert_eq!(output.status.code(), Some(code_of(signal)), "{output:?}");
        assert!(output.stderr.is_empty(), "it has waited: {output:?}");
        assert_gone(&workers, id);
        // As after `kill -9`, the next kernel tidies up.
        let next = crowd.project.command(&["list"]).output().unwrap();
        assert!(next.status.success(), "{next:?}");
        assert!(crowd.records().is_empty(), "it has waited until the call was recorded");
        crowd.project.run(&["audit", "verify"]).expect_code(0);
        crowd.close();
    }
}

#[test]
fn a_signal_stops_a_statement_and_rolls_its_transaction_back() {
    let Ok(url) = std::env::var(POSTGRES) else {
        println!("skipped: {POSTGRES} is not set");
        return;
    };
    let crowd = Crowd::new(Some(&url));
    crowd.project.run(&["sql", &crowd.text("INSERT INTO {t} (n) VALUES (5)")]).expect_code(0);
    // It holds the row for as long as it runs, and has nothing to say before it is stopped.
    let slow =
        crowd.text("UPDATE {t} SET n = 6 FROM generate_series(1, 2000000000) g WHERE {t}.n = 5 AND g < 0");
    let child = start(crowd.project.command(&["sql", &slow]));
    std::thread::sleep(std::time::Duration::from_secs(2));
    send(child.id(), libc::SIGTERM);
    let output = finish(child);
    assert!(matches!(output.status.code(), Some(143 | 1)), "{output:?}");
    assert_eq!(crowd.rows().into_iter().collect::<Vec<_>>(), [5]);
    crowd.close();
}

#[test]
fn the_second_signal_ends_a_program_whose_main_thread_hangs() {
    let project = Project::initialised();
    project.write(".tgp/notes/long.txt", &"long ".repeat(200_000));
    let mut child = start(project.command(&["read", "notes/long.txt"]));
    let mut output = child.stdout.take().unwrap();
    // It prints without a reader: the pipe is full, and the thread that prints waits forever.
    output.read_exact(&mut [0]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    send(child.id(), libc::SIGTERM);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it does not hang: the test proves nothing");
    send(child.id(), libc::SIGTERM);
    assert_eq!(finish(child).status.code(), Some(143));
    drop(output);
}

#[test]
fn one_signal_ends_a_program_whose_main_thread_hangs_after_a_while() {
    let project = Project::initialised();
    project.write(".tgp/notes/long.txt", &"long ".repeat(200_000));
    let mut child = start(project.command(&["read", "notes/long.txt"]));
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    send(child.id(), libc::SIGINT);
    assert_eq!(finish(child).status.code(), Some(130));
    drop(output);
}

/// The file is written and its event waits for the chronicle: ending the program now still leaves the record of the
/// call.
#[test]
fn bug_a_signal_while_the_chronicle_was_written_left_an_effect_without_a_record() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let project = Project::initialised();
        project.explore();
        let write = |content: &str| serde_json::json!({ "path": "src/a.md", "content": content }).to_string();
        project.run(&["call", "fs_write", &write("one"), "--yes"]).expect_code(0);
        let chronicle = std::fs::File::open(project.file(".sage/files/src/a.md.sage")).unwrap();
        chronicle.lock().unwrap();
        let arguments = write("two");
        let mut command = project.command(&["call", "fs_write", &arguments, "--yes"]);
        let child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while project.read("src/a.md") != "two" && std::time::Instant::now() < patience {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        send(child.id(), signal);
        let output = child.wait_with_output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{output:?}");
        drop(chronicle);
        assert_eq!(project.read("src/a.md"), "two");
        let audit = project.run(&["audit", "export"]).expect_code(0).stdout;
        let last = audit.lines().rfind(|line| line.contains("fs_write")).unwrap();
        assert!(last.contains(r#""content":"two""#), "the change has no record: {last}");
    }
}
