//! A user at the terminal answers an agent's questions.

use serde_json::{Value, json};

use crate::agent::{call, say, script};
use crate::project::Project;
use crate::pty::Terminal;

fn start(project: &Project, turns: &[Vec<Value>]) -> Terminal {
    let provider = script(project, "model.json", turns);
    let mut command = project.command(&["work on the notes", "--provider", &provider]);
    command.env("LANG", "C.UTF-8");
    Terminal::start(command)
}

fn write(path: &str, content: &str) -> Value {
    call("fs_write", json!({ "path": path, "content": content }))
}

/// Answers the next question once it has been asked `times` times.
fn answer(terminal: &mut Terminal, times: usize, key: &str) {
    terminal.wait_until(|screen| screen.matches("Allow it? [y/N]").count() >= times);
    terminal.type_keys(&format!("{key}\r"));
}

#[test]
fn t5_a_no_at_the_terminal_prevents_the_mutation_and_a_yes_makes_it() {
    let project = Project::initialised();
    project.write("notes.md", "one\ntwo\n");
    let mut terminal = start(
        &project,
        &[
            vec![say("First."), write("notes.md", "one\n2\n")],
            vec![say("Then something else."), write("other.md", "new\n")],
            vec![say("So be it.")],
        ],
    );
    answer(&mut terminal, 1, "n");
    answer(&mut terminal, 2, "y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(project.read("notes.md"), "one\ntwo\n", "{screen}");
    assert_eq!(project.read("other.md"), "new\n", "{screen}");
    for text in ["-two", "+2", "refused", "approved", "So be it.", "other.md (created)"] {
        assert!(screen.contains(text), "{text} is not in\n{screen}");
    }
    let tail = project.run(&["audit", "tail", "-n", "5"]).expect_code(0).stdout;
    assert!(tail.contains("refused fs_write") && tail.contains("approved fs_write"), "{tail}");
}

#[test]
fn always_holds_for_its_pattern_in_its_session_and_for_nothing_else() {
    let project = Project::initialised();
    let mut terminal = start(
        &project,
        &[
            vec![write("docs/a.md", "a"), write("docs/b.md", "b"), write("docs/deep/c.md", "c")],
            vec![call("fs_delete", json!({ "path": "docs/a.md" }))],
            vec![say("Finished.")],
        ],
    );
    answer(&mut terminal, 1, "a");
    // Another folder, then another tool.
    answer(&mut terminal, 2, "y");
    answer(&mut terminal, 3, "n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("Allow it? [y/N]").count(), 3, "{screen}");
    assert!(screen.contains("fs_write on files directly in `docs/`"), "the pattern is shown: {screen}");
    assert!(project.file("docs/a.md").exists() && project.file("docs/b.md").exists(), "{screen}");
    // What was agreed to for one session is not an agreement for the next.
    let mut again = start(&project, &[vec![write("docs/d.md", "d")], vec![say("Finished.")]]);
    answer(&mut again, 1, "n");
    let (_, screen) = again.finish();
    assert!(!project.file("docs/d.md").exists(), "{screen}");
}

#[test]
fn what_has_changed_since_it_was_shown_is_asked_for_again() {
    let project = Project::initialised();
    project.write("notes.md", "one\n");
    let edit = call("fs_edit", json!({ "path": "notes.md", "search": "one", "replace": "1" }));
    let mut terminal = start(&project, &[vec![edit], vec![say("Finished.")]]);
    terminal.wait_for("Allow it? [y/N]");
    project.write("notes.md", "one\nand something that nobody has seen\n");
    answer(&mut terminal, 1, "y");
    terminal.wait_until(|screen| screen.matches("Allow it? [y/N]").count() >= 2);
    assert_eq!(project.read("notes.md"), "one\nand something that nobody has seen\n");
    answer(&mut terminal, 2, "y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("and something that nobody has seen"), "the new text is shown: {screen}");
    assert_eq!(project.read("notes.md"), "1\nand something that nobody has seen\n");
}

#[test]
fn nothing_that_is_shown_can_act_on_the_terminal() {
    let project = Project::initialised();
    // Not `[1A`: that is what the status line itself writes.
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[7A harmless \u{202e}txt.exe\u{200b}\r\u{9b}31m";
    let mut terminal = start(
        &project,
        &[
            vec![say(hostile), write("a.md", hostile), call("shell_exec", json!({ "command": hostile }))],
            vec![call("exec_sql", json!({ "sql": format!("SELECT '{hostile}'") }))],
            vec![say("\u{1b}[31"), say("mred?\n")],
        ],
    );
    for times in 1..=3 {
        answer(&mut terminal, times, "n");
    }
    let (_, screen) = terminal.finish();
    for forbidden in
        ["\u{1b}]0;owned", "\u{1b}[2J", "\u{1b}[7A", "\u{202e}", "\u{200b}", "\u{9b}", "\u{1b}[31mred"]
    {
        assert!(!screen.contains(forbidden), "{forbidden:?} reached the terminal:\n{screen:?}");
    }
    assert!(screen.contains("\\u{1b}]0;owned"), "it is shown as it is:\n{screen}");
}

#[test]
fn ctrl_c_at_a_question_refuses_and_stops() {
    let project = Project::initialised();
    let mut terminal =
        start(&project, &[vec![write("a.md", "a"), write("b.md", "b")], vec![say("never said")]]);
    terminal.wait_for("Allow it? [y/N]");
    terminal.type_keys("\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!project.file("a.md").exists() && !project.file("b.md").exists(), "{screen}");
    assert!(screen.contains("tgp run --resume") && !screen.contains("never said"), "{screen}");
    project.assert_clean();
}
