//! Readers that go away, full disks, and scripts for shells.

use std::process::Stdio;

use crate::project::Project;

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let project = Project::with_fixtures();
    for arguments in [
        &["list"][..],
        &["read", "tools/math/fib.ts"],
        &["tools", "--format", "json"],
        &["check", "tools/math/fib.ts"],
        &["exec", "tools/shapes.ts", "--args", r#"{"kind": "text"}"#],
        &["doctor"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let mut child =
            project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It will never be read.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let notes = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {notes}");
        assert!(notes.is_empty(), "{arguments:?}: {notes}");
    }
    let piped = project.shell("tgp list | head -n 1").expect_code(0);
    assert_eq!((piped.stdout.lines().count(), piped.stderr.as_str()), (1, ""));
}

#[test]
fn standard_error_that_is_closed_changes_nothing() {
    let project = Project::with_fixtures();
    assert_eq!(project.shell("tgp exec tools/throws.ts 2>&-").code, Some(1));
    assert_eq!(project.shell("tgp exec tools/escapes.ts 2>&-").expect_code(0).stdout, "plain\n");
    project.shell("tgp list >&-").expect_code(0);
}

#[test]
fn data_that_cannot_be_written_is_a_failure() {
    let project = Project::with_fixtures();
    let full = project.shell("tgp read tools/math/fib.ts > /dev/full").expect_code(1);
    assert!(full.stderr.starts_with("warning: standard output could not be written"), "{full:#?}");
}

#[test]
fn completions_are_scripts() {
    let project = Project::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = project.run(&["completions", shell]).expect_code(0).stdout;
        for word in ["tgp", "exec", "dry-run", "completions"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    for (shell, flag) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        if project.shell(&format!("command -v {shell}")).code == Some(0) {
            let read = project.shell(&format!("tgp completions {shell} > script && {shell} {flag} script"));
            assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "{shell}");
        }
    }
    if project.shell("command -v bash").code == Some(0) {
        let line =
            "source ./script; COMP_WORDS=(tgp ex); COMP_CWORD=1; _tgp tgp ex tgp; echo \"${COMPREPLY[@]}\"";
        let offered =
            project.shell(&format!("tgp completions bash > script && bash -c '{line}'")).expect_code(0);
        assert_eq!(offered.stdout, "exec\n");
    }
}
