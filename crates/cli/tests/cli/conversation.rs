//! Questions at a real terminal: what is shown, what each key does, and what was typed before the question.

use serde_json::json;

use crate::agent::{call, say, script};
use crate::project::Project;
use crate::pty::Terminal;

const PROMPT: &str = "Allow it? [y/N] ";

/// A project in a locale with all signs.
fn asked(project: &Project, arguments: &[&str]) -> Terminal {
    let mut command = project.program("env");
    command.args(["LANG=C.UTF-8", "NO_COLOR=1", "tgp"]).args(arguments);
    Terminal::start(command)
}

#[test]
fn a_write_is_asked_for_with_its_difference() {
    let project = Project::initialised();
    project.write("notes.md", "one\ntwo\n");
    let mut terminal =
        asked(&project, &["call", "fs_write", r#"{"path": "notes.md", "content": "one\nthree\n"}"#]);
    terminal.wait_for(PROMPT);
    let screen = terminal.screen();
    for row in
        ["  │ --- a/notes.md\n", "  │  one\n", "  │ -two\n", "  │ +three\n", "write notes.md (project)\n"]
    {
        assert!(screen.contains(row), "{row:?} in {screen}");
    }
    assert!(!screen.contains("always"), "there is no session to which it could hold: {screen}");
    assert_eq!(project.read("notes.md"), "one\ntwo\n");
    terminal.type_keys("?\n");
    terminal.wait_for("Enter and Ctrl-D mean the same");
    terminal.type_keys("y\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(project.read("notes.md"), "one\nthree\n");
}

#[test]
fn more_shows_the_rest() {
    let project = Project::initialised();
    let content: String = (1..=60).map(|number| format!("row {number}\\n")).collect();
    let arguments = format!(r#"{{"path": "long.md", "content": "{content}"}}"#);
    let mut terminal = asked(&project, &["call", "fs_write", &arguments]);
    terminal.wait_for(PROMPT);
    let screen = terminal.screen();
    assert!(screen.contains("more rows: m shows them") && !screen.contains("+row 60\n"), "{screen}");
    terminal.type_keys("m\n");
    terminal.wait_for("+row 50\r\n");
    terminal.wait_for("Allow it? [y/N] m");
    terminal.type_keys("m\n");
    terminal.wait_for("+row 60\r\n");
    terminal.type_keys("n\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(3), "{screen}");
    for number in 1..=60 {
        assert!(screen.contains(&format!("+row {number}\n")), "row {number} in {screen}");
    }
    assert!(!project.file("long.md").exists());
}

#[test]
fn what_was_typed_before_the_question_answers_nothing() {
    let project = Project::initialised();
    let mut shell = project.program("sh");
    let call = r#"echo begun; read first; exec tgp call fs_write '{"path": "a.md", "content": "1"}'"#;
    shell.args(["-c", call]);
    let mut terminal = Terminal::start(shell);
    terminal.wait_for("begun");
    // The shell takes the first line, and both others wait in the terminal before the program is even started.
    terminal.type_keys("go\ny\nhalf an ans");
    terminal.wait_for(PROMPT);
    assert!(!project.file("a.md").exists());
    terminal.type_keys("n\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(3), "{screen}");
    assert!(screen.contains("was not approved: the answer at the terminal was no"), "{screen}");
    assert!(!screen.contains("is none of the answers"), "the half line was part of the answer: {screen}");
    assert!(!project.file("a.md").exists());
}

#[test]
fn a_no_with_words_is_told_with_them_and_without_how_to_be_asked() {
    let project = Project::initialised();
    let write = call("fs_write", json!({ "path": "a.md", "content": "1" }));
    let provider = script(&project, "model.json", &[vec![write], vec![say("So be it.")]]);
    let mut terminal = asked(&project, &["write a note", "--provider", &provider]);
    terminal.wait_for(PROMPT);
    terminal.type_keys("n use b.md instead\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    // The terminal breaks the line between words.
    let words: Vec<&str> = screen.split_whitespace().collect();
    let words = words.join(" ");
    assert!(
        words.contains("was not approved: the answer at the terminal was no: use b.md instead"),
        "{screen}"
    );
    assert!(!screen.contains("--yes"), "{screen}");
    assert!(!project.file("a.md").exists());
}

#[test]
fn a_command_and_a_tool_are_shown_as_they_run() {
    let project = Project::with_fixtures();
    let command = r#"{"command": "echo 'Allow it? [y/N] y' &&\n  touch made", "keep_on_failure": true}"#;
    let mut terminal = asked(&project, &["call", "shell_exec", command]);
    terminal.wait_for("? explain");
    let screen = terminal.screen();
    assert!(
        screen.contains("  │ echo 'Allow it? [y/N] y' &&\n  │   touch made\n  keep_on_failure:\n  │ true\n"),
        "{screen}"
    );
    assert!(screen.contains("  network   not asked for\n"), "{screen}");
    terminal.type_keys("n\n");
    assert_eq!(terminal.finish().0, Some(3));

    let tool = r#"{"path": "tools/math/fib.ts", "args": {"n": 10}}"#;
    let mut terminal = asked(&project, &["call", "exec_tool", tool]);
    terminal.wait_for(PROMPT);
    let screen = terminal.screen();
    assert!(screen.contains("  │ tools/math/fib.ts\n  args:\n  │ {\"n\":10}\n"), "{screen}");
    terminal.type_keys("m\n");
    terminal.wait_for("The source of tools/math/fib.ts");
    terminal.wait_for("export default");
    terminal.type_keys("y\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\"result\":55"), "{screen}");
}
