//! What commands leave, through the program: its size decides before it is read, and what runs later is shown first.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::{call, say, script};
use crate::project::Project;
use crate::pty::Terminal;

/// How much larger than for a command that does nothing the kernel may become.
const MAX_GROWTH_KIB: u64 = 300 * 1024;

fn possible() -> bool {
    let complete = tgp::sandbox::process_support().complete();
    if !complete {
        println!("commands cannot run here, skipped");
    }
    complete
}

/// Runs a command, and gives the answer and the most memory that the kernel's process ever had, in KiB.
fn peak(project: &Project, command: &str) -> (Value, u64) {
    let arguments = json!({ "command": command }).to_string();
    let mut kernel = project
        .command(&["call", "shell_exec", &arguments, "--yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", kernel.id());
    let mut stdout = kernel.stdout.take().unwrap();
    let answer = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let mut most = 0;
    while kernel.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(number.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    (serde_json::from_str(&answer.join().unwrap()).unwrap(), most)
}

/// Eight sparse files made the kernel grow to 12 GB.
#[test]
fn bug_sparse_files_do_not_fill_the_kernels_memory() {
    if !possible() {
        return;
    }
    let project = Project::initialised();
    let (_, usual) = peak(&project, "true");
    for (command, code) in [
        ("for i in 0 1 2 3 4 5 6 7; do truncate -s 500M s$i.md; done", None),
        ("truncate -s 500M one.md", Some("EVALIDATION")),
        ("for i in 0 1 2; do truncate -s 60M s$i.md; done", Some("EVALIDATION")),
        ("for i in 0 1; do truncate -s 60M s$i.md; done", None),
        ("rm s0.md", None),
        ("rm s1.md; head -c 60000000 /dev/zero | tr '\\0' '\\n' > lines.md", None),
        ("echo x >> lines.md", None),
    ] {
        let (answer, most) = peak(&project, command);
        if let Some(code) = code {
            assert_eq!(answer["error"]["code"], code, "{command}: {answer}");
        }
        println!("{command}: {} KiB over {usual} KiB", most.saturating_sub(usual));
        assert!(
            most < usual + MAX_GROWTH_KIB,
            "{command}: {most} KiB, and {usual} KiB for nothing: {answer}"
        );
    }
    assert!(!project.file("s3.md").exists() && !project.file("one.md").exists());
}

#[test]
fn yes_on_the_command_line_does_not_change_what_runs_later() {
    let project = Project::initialised();
    let arguments = json!({ "path": ".github/workflows/ci.yml", "content": "on: push\n" }).to_string();
    let refused = project.run(&["call", "fs_write", &arguments, "--yes"]).expect_code(3);
    for text in
        ["EAPPROVAL", "default/runs-later", ".github/workflows/ci.yml", "effect: allow", "no terminal"]
    {
        assert!(refused.stdout.contains(text), "{text}: {refused:?}");
    }
    assert!(!refused.stdout.contains("--yes agrees beforehand"), "{refused:?}");
    // In a session as well; the model learns the way out.
    project.explore();
    let turns =
        [vec![call("fs_write", json!({ "path": "Makefile", "content": "all:\n" }))], vec![say("Then not.")]];
    let provider = script(&project, "model.json", &turns);
    let ran = project.run(&["add a target", "--provider", &provider, "--yes"]);
    assert!(ran.stdout.contains("refused EAPPROVAL"), "{ran:?}");
    assert!(!project.file("Makefile").exists());
    // The rule from the error lifts it.
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: my-rule, effect: allow, tools: [\"fs_*\"], where: {path: \"Makefile\"}}\n",
    );
    project.run(&["add a target", "--provider", &provider, "--yes"]);
    assert_eq!(project.read("Makefile"), "all:\n");
}

#[test]
fn a_person_sees_the_difference_of_what_runs_later_although_yes_was_given() {
    if !possible() {
        return;
    }
    let project = Project::initialised();
    project.explore();
    project.write("run.sh", "#!/bin/sh\n");
    for (key, exists) in [("n", false), ("y", true)] {
        let arguments = json!({ "command": "echo 'all: evil' > Makefile; chmod +x run.sh" }).to_string();
        let mut command = project.command(&["call", "shell_exec", &arguments, "--yes"]);
        command.env("LANG", "C.UTF-8");
        let mut terminal = Terminal::start(command);
        terminal.wait_until(|screen| screen.contains("Allow it? [y/N]"));
        terminal.type_keys(&format!("{key}\r"));
        let (_, screen) = terminal.finish();
        for text in [
            "It has run, and nothing of it counts yet",
            "+all: evil",
            "new mode 100755",
            "`run.sh` can be executed",
        ] {
            assert!(screen.contains(text), "{text} is not in\n{screen}");
        }
        assert_eq!(project.file("Makefile").exists(), exists, "{screen}");
    }
}
