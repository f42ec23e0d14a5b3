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
        for word in ["tgp", "TGP_COMPLETE"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    for (shell, flag) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        if project.shell(&format!("command -v {shell}")).code == Some(0) {
            let read = project.shell(&format!("tgp completions {shell} > script && {shell} {flag} script"));
            assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "{shell}");
        }
    }
}

/// What bash offers after these words.
fn offered(project: &Project, words: &[&str]) -> Vec<String> {
    let line = format!(
        "source <(tgp completions bash); COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; _clap_complete_tgp tgp \"{}\"; \
         printf \"%s\\n\" \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words.last().unwrap(),
    );
    let ran = project.shell(&format!("bash -c '{line}'")).expect_code(0);
    ran.stdout.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_shell_offers_commands_options_tools_and_sessions() {
    let project = Project::with_fixtures();
    if project.shell("command -v bash").code != Some(0) {
        return;
    }
    assert_eq!(offered(&project, &["tgp", "exe"]), ["exec"]);
    assert_eq!(offered(&project, &["tgp", "exec", "tools/math/fib.ts", "--dry"]), ["--dry-run"]);
    assert_eq!(offered(&project, &["tgp", "exec", "tools/math/fi"]), ["tools/math/fib.ts"]);
    // What would be a command for a shell is not offered.
    project.shell("echo 'export default 1' > '.tgp/tools/a$(touch pwned).ts'").expect_code(0);
    let tools = offered(&project, &["tgp", "exec", ""]);
    assert!(tools.iter().any(|tool| tool == "tools/math/fib.ts"), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool.contains("pwned")), "{tools:?}");
    project.shell("mkdir -p .tgp/.state/sessions/20260101T000000-abcd").expect_code(0);
    assert_eq!(offered(&project, &["tgp", "sessions", "show", "2026"]), ["20260101T000000-abcd"]);
    assert_eq!(offered(&project, &["tgp", "replay", "la"]), ["last"]);
}

#[test]
fn the_manual_page_is_a_page() {
    let project = Project::empty();
    let page = project.run(&["man"]).expect_code(0).stdout;
    for word in [".TH tgp 1", ".SH NAME", ".SH SYNOPSIS", "doctor"] {
        assert!(page.contains(word), "the page lacks {word}");
    }
    assert!(project.run(&["man", "exec"]).expect_code(0).stdout.contains("dry"));
    project.run(&["man", "nothing"]).expect_code(2);
    if project.shell("command -v man groff").code == Some(0) {
        let shown = project.shell("tgp man > tgp.1 && man --warnings -l tgp.1 > shown").expect_code(0);
        assert_eq!(shown.stderr, "");
    }
}

#[test]
fn the_verbose_version_names_what_the_program_was_built_from() {
    let project = Project::empty();
    let shown = project.run(&["--version", "--verbose"]).expect_code(0).stdout;
    for row in ["tgp ", "commit ", "machine ", "build ", "features ", "quickjs ", "sqlite ", "libgit2 "] {
        assert!(shown.lines().any(|line| line.starts_with(row)), "{row} is not in {shown}");
    }
    let document = project.run(&["--version", "--verbose", "--json"]).expect_code(0).document();
    assert!(document["data"]["sqlite"].as_str().unwrap().starts_with("3."), "{document}");
    assert_eq!(project.run(&["--version"]).expect_code(0).stdout.lines().count(), 1);
}

/// Bash puts a candidate on the command line as it is, and a repository chooses the names of its files.
#[test]
fn bug_bash_was_offered_names_of_files_that_it_would_execute() {
    let project = Project::empty();
    for name in ["xa.json", "xb$(touch PWNED).json", "xc;id", "xd`id`", "xe f", "xg\nh", "xi\u{1b}[2J"] {
        project.write(name, "{}");
    }
    assert_eq!(offered(&project, &["tgp", "list", "--config", "x"]), ["xa.json"]);
    assert!(!project.file("PWNED").exists());
}
