//! At a real terminal: questions, colours, and text that could deceive.

use crate::processes::{assert_gone, descendants};
use crate::project::Project;
use crate::pty::Terminal;

const CALL: &[&str] = &["call", "write_file", r#"{"path": "docs/asked.txt", "content": "1"}"#];

fn at_terminal(project: &Project, arguments: &[&str]) -> Terminal {
    Terminal::start(project.command(arguments))
}

#[test]
fn a_call_that_is_allowed_happens() {
    let project = Project::initialised();
    for (number, answer) in ["y", "YES"].into_iter().enumerate() {
        let name = format!("docs/asked{number}.txt");
        let arguments = format!(r#"{{"path": "{name}", "content": "1"}}"#);
        let mut terminal = at_terminal(&project, &["call", "write_file", &arguments]);
        terminal.wait_for("Allow it? [y/N] ");
        assert!(
            terminal.screen().contains("`cli` wants to call `write_file`, which changes files:\n"),
            "{}",
            terminal.screen()
        );
        assert!(!project.file(&format!(".tgp/{name}")).exists(), "it was asked after the fact");
        terminal.type_keys(&format!("{answer}\n"));
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        assert_eq!(project.read(&format!(".tgp/{name}")), "1");
    }
}

#[test]
fn a_call_that_is_denied_leaves_no_trace() {
    let project = Project::initialised();
    // The first start makes the kernel's own state.
    project.run(&["list"]).expect_code(0);
    let before = project.contents();
    // No, no with words, nothing, and the end of the input.
    for answer in ["n\n", "no, not that\n", "\n", "\u{4}"] {
        let mut terminal = at_terminal(&project, CALL);
        terminal.wait_for("Allow it? [y/N] ");
        terminal.type_keys(answer);
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(3), "{screen}");
        assert!(screen.contains("EAPPROVAL"), "{screen}");
        assert_eq!(project.contents(), before);
    }
}

#[test]
fn ctrl_c_at_the_question_ends_the_call() {
    let project = Project::initialised();
    let mut terminal = at_terminal(&project, CALL);
    terminal.wait_for("Allow it? [y/N] ");
    let (session, known) = (terminal.id(), descendants(terminal.id()));
    terminal.type_keys("\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert_gone(&known, session);
    assert!(!project.file(".tgp/docs/asked.txt").exists());
}

#[test]
fn a_question_shows_what_is_there() {
    let project = Project::initialised();
    // Escape sequence as JSON escape, C1 control, bidirectional override and zero width space as themselves.
    let arguments = "{\"path\": \"docs/a.txt\", \"content\": \"\\u001b[2K\\r\u{9b}2J\u{202e}txt\u{200b}\"}";
    // Without colours there is no escape sequence from us either.
    let mut command = project.program("env");
    command.args(["NO_COLOR=1", "tgp", "call", "write_file", arguments, "--actor", "evil\u{202e}"]);
    let mut terminal = Terminal::start(command);
    terminal.wait_for("Allow it? [y/N] ");
    terminal.type_keys("n\n");
    let (_, screen) = terminal.finish();
    let asked = screen.split("Allow it?").next().unwrap();
    // A lone carriage return ends no line of a difference.
    assert!(asked.contains(r"+\u{1b}[2K\u{d}\u{9b}2J\u{202e}txt\u{200b}"), "{asked}");
    assert!(asked.contains(r"evil\u{202e}` wants to call"), "{asked}");
    assert!(!asked.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{7}', '\r']), "{asked:?}");
}

#[test]
fn nothing_that_a_tool_or_file_holds_acts_on_the_terminal() {
    let project = Project::initialised();
    project.write(".tgp/tools/result.ts", "export default () => '\\u001b[2Jgone';");
    project.write(".tgp/tools/raw.ts", "// \u{1b}[2J\n");
    for (arguments, expected) in
        [(&["exec", "tools/result.ts"], "\\u{1b}[2Jgone\n"), (&["read", "tools/raw.ts"], "// \\u{1b}[2J\n")]
    {
        let (code, screen) = at_terminal(&project, arguments).finish();
        assert_eq!((code, screen.as_str()), (Some(0), expected));
    }
    // A program gets the exact bytes.
    assert_eq!(project.run(&["exec", "tools/result.ts"]).stdout, "\u{1b}[2Jgone\n");
}

#[test]
fn colour_only_at_a_terminal_that_wants_it() {
    let project = Project::with_fixtures();
    let arguments = ["check", "tools/rules/no-any.ts"];
    let (code, screen) = at_terminal(&project, &arguments).finish();
    assert_eq!(code, Some(1));
    assert!(screen.contains("\u{1b}["), "{screen:?}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = project.program("env");
        command.arg(format!("{name}={value}")).arg("tgp").args(arguments);
        let (_, screen) = Terminal::start(command).finish();
        assert!(!screen.contains('\u{1b}'), "{name}: {screen:?}");
        assert!(screen.contains("error[no-any]"), "{name}: {screen:?}");
    }
}

#[test]
fn text_is_broken_between_words_at_80_columns() {
    let project = Project::with_fixtures();
    let mut command = project.program("env");
    command.args(["NO_COLOR=1", "tgp", "check", "tools/rules/forbidden-global.ts"]);
    let (_, screen) = Terminal::start(command).finish();
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(screen.lines().count() > 10, "{screen}");
}

#[test]
fn ctrl_c_ends_a_write_that_waits_for_its_content() {
    let project = Project::initialised();
    let mut terminal = at_terminal(&project, &["write", "tools/a.ts"]);
    terminal.wait_for("Ctrl-D");
    terminal.type_keys("half of it\n\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!project.file(".tgp/tools/a.ts").exists());

    let mut terminal = at_terminal(&project, &["write", "tools/a.ts"]);
    terminal.wait_for("Ctrl-D");
    terminal.type_keys("'all of it'\n\u{4}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(project.read(".tgp/tools/a.ts"), "'all of it'\n");
}
