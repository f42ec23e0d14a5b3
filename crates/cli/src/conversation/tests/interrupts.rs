//! Signals, sent to a real process: this very program, started again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tgp::agent::{StopLevel, StopSignal};

use crate::conversation::Interrupts;

/// Set in the process that is sent signals, to what it does at the end.
const CHILD: &str = "TGP_TEST_SIGNALS";
/// Longer than any test may take: a test that waits for its end without a signal hangs.
const FOR_EVER: Duration = Duration::from_secs(600);

/// A session that prints the stop requests it gets.
fn child(last: &str) {
    let interrupts = Interrupts::listen();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if last == "command" {
        println!("listening");
        runtime.block_on(interrupts.ended());
        println!("ended");
        // Nothing of the runtime is polled any more.
        std::thread::sleep(FOR_EVER);
    }
    runtime.block_on(async {
        let (handle, mut stop) = StopSignal::new();
        let heard = interrupts.heard();
        let session = async {
            println!("listening");
            stop.reached(StopLevel::AfterCall).await;
            println!("{:?}", *heard.borrow());
            stop.reached(StopLevel::Now).await;
            println!("{:?}", *heard.borrow());
            if last == "hang" {
                // Nothing of the runtime is polled any more.
                std::thread::sleep(FOR_EVER);
            }
        };
        tokio::select! {
            biased;
            () = interrupts.ended() => println!("dropped"),
            () = interrupts.during(handle, session) => println!("ended"),
        }
        if last == "ordinary" {
            println!("alone");
            std::thread::sleep(FOR_EVER);
        }
    });
}

struct Started {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Started {
    fn new(test: &str, last: &str) -> Self {
        // The parent of the tests may make them ignore signals, as `nohup` does.
        Self::by("exec env --default-signal=HUP,INT,TERM \"$0\" \"$@\"", test, last)
    }

    /// Started by these words of a shell.
    fn by(shell: &str, test: &str, last: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", shell])
            .arg(std::env::current_exe().unwrap())
            .args([&format!("conversation::tests::interrupts::{test}"), "--exact", "--nocapture"])
            .env(CHILD, last)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn wait_for(&mut self, line: &str) {
        let mut seen = Vec::new();
        for next in self.lines.by_ref() {
            let next = next.unwrap();
            // The test harness may have begun the line.
            if next.ends_with(line) {
                return;
            }
            seen.push(next);
        }
        panic!("`{line}` never came: {seen:?}");
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

#[test]
fn three_interrupts_end_even_a_process_that_hangs() {
    if let Ok(last) = std::env::var(CHILD) {
        return child(&last);
    }
    let mut started = Started::new("three_interrupts_end_even_a_process_that_hangs", "hang");
    started.wait_for("listening");
    started.send(Signal::SIGINT);
    started.wait_for("AfterCall");
    started.send(Signal::SIGINT);
    started.wait_for("Now");
    started.send(Signal::SIGINT);
    assert_eq!(started.end().code(), Some(130));
}

#[test]
fn sighup_is_heard_as_sigterm_is() {
    if let Ok(last) = std::env::var(CHILD) {
        return child(&last);
    }
    let mut started = Started::new("sighup_is_heard_as_sigterm_is", "ordinary");
    started.wait_for("listening");
    started.send(Signal::SIGHUP);
    started.wait_for("HungUp");
    started.wait_for("HungUp");
    started.wait_for("ended");
    started.wait_for("alone");
    started.send(Signal::SIGHUP);
    assert_eq!(started.end().code(), Some(130));
}

#[test]
fn a_process_that_shall_outlive_its_terminal_does() {
    if let Ok(last) = std::env::var(CHILD) {
        return child(&last);
    }
    let test = "a_process_that_shall_outlive_its_terminal_does";
    let mut started = Started::by("trap '' HUP; exec \"$0\" \"$@\"", test, "ordinary");
    started.wait_for("listening");
    started.send(Signal::SIGHUP);
    started.send(Signal::SIGTERM);
    // The first of both would have been handled as such.
    started.wait_for("Terminated");
    started.wait_for("ended");
    started.wait_for("alone");
    started.send(Signal::SIGHUP);
    started.send(Signal::SIGTERM);
    assert_eq!(started.end().code(), Some(143));
}

#[test]
fn an_ordinary_command_ends_with_the_first_signal_and_a_hanging_one_with_the_second() {
    if let Ok(last) = std::env::var(CHILD) {
        return child(&last);
    }
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let test = "an_ordinary_command_ends_with_the_first_signal_and_a_hanging_one_with_the_second";
        let mut started = Started::new(test, "command");
        started.wait_for("listening");
        started.send(signal);
        started.wait_for("ended");
        started.send(signal);
        assert_eq!(started.end().code(), Some(code));
    }
}

#[test]
fn a_process_that_hangs_after_one_signal_is_ended_after_a_while() {
    if let Ok(last) = std::env::var(CHILD) {
        return child(&last);
    }
    let mut started = Started::new("a_process_that_hangs_after_one_signal_is_ended_after_a_while", "command");
    started.wait_for("listening");
    started.send(Signal::SIGTERM);
    assert_eq!(started.end().code(), Some(143));
}

#[test]
fn sigterm_stops_a_session_now_and_a_second_signal_ends_the_process() {
    if let Ok(last) = std::env::var(CHILD) {
        return child(&last);
    }
    let test = "sigterm_stops_a_session_now_and_a_second_signal_ends_the_process";
    let mut started = Started::new(test, "ordinary");
    started.wait_for("listening");
    started.send(Signal::SIGTERM);
    // Both requests are the strongest one.
    started.wait_for("Terminated");
    started.wait_for("Terminated");
    started.wait_for("ended");
    started.wait_for("alone");
    started.send(Signal::SIGINT);
    assert_eq!(started.end().code(), Some(130));
}
