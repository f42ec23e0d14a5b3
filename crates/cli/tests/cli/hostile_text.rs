//! Text from databases, repositories, remotes, tools and files that wants to act on the terminal of who reads it.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::project::{Project, Ran};
use crate::pty::Terminal;

/// Clears the screen, sets the title, hides and colours text, speaks C1, turns text round, and begins its own line.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[8mhidden\u{1b}[31mRED\u{9b}31m\u{202e}txt\u{200b}\r\u{8}\nwarning: forged";

/// Fails where anything but one of our own colours would reach a terminal.
#[track_caller]
fn assert_harmless(what: &str, screen: &str) {
    for part in ["\u{1b}[31mRED", "\u{1b}[8m", "\u{1b}[2J", "\u{1b}]0;"] {
        assert!(!screen.contains(part), "{what} shows {part:?} as it is:\n{screen:?}");
    }
    let mut rest = screen;
    while let Some((_, after)) = rest.split_once('\u{1b}') {
        let end = after.find('m').unwrap_or(after.len());
        let code = after.get(..end).unwrap_or_default();
        let is_colour = code
            .strip_prefix('[')
            .is_some_and(|numbers| numbers.chars().all(|letter| letter.is_ascii_digit() || letter == ';'));
        assert!(is_colour, "{what} sends an escape: {:?} in\n{screen:?}", after.get(..20.min(after.len())));
        rest = after;
    }
    let acts = |letter: char| {
        (letter.is_control() && !matches!(letter, '\n' | '\t' | '\u{1b}'))
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}')
    };
    assert!(!screen.contains(acts), "{what} sends a control character:\n{screen:?}");
}

#[track_caller]
fn git(project: &Project, arguments: &[&str]) {
    let mut command = project.program("git");
    command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]).args(arguments);
    assert!(command.status().unwrap().success(), "git {arguments:?}");
}

/// A project in which everything that can hold text holds hostile text.
fn poisoned() -> Project {
    let project = Project::initialised();
    let quoted = json!(HOSTILE).to_string();
    project.write(".tgp/tools/result.ts", &format!("export default () => {quoted};"));
    project.write(
        ".tgp/tools/logs.ts",
        &format!("export default () => {{ console.log({quoted}); return {{ a: {quoted} }}; }};"),
    );
    project.write(".tgp/tools/fails.ts", &format!("export default () => {{ throw new Error({quoted}); }};"));
    project.write(".tgp/tools/raw.ts", &format!("// {}\n", HOSTILE.replace('\n', " ")));
    project.write(
        ".tgp/tools/bad.test.ts",
        &format!("import {{ test, expect }} from '@tgp/test';\ntest({quoted}, () => expect(1).toBe(2));\n"),
    );
    let sql = format!("CREATE TABLE t AS SELECT '{HOSTILE}' AS \"c{}\"", HOSTILE.replace('\n', ""));
    project.run(&["sql", &sql]).expect_code(0);
    fs::write(project.file("src-\u{1b}[2Jx.ts"), format!("import './{}';\n", "\\x1b[2J")).unwrap();
    git(&project, &["init", "--quiet"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "-m", &format!("S{HOSTILE}")]);
    project.run(&["graph", "ingest"]).expect_code(0);
    project
}

#[test]
fn no_command_lets_text_act_on_the_terminal() {
    let project = poisoned();
    let error_sql = format!("SELECT * FROM \"{}\"", HOSTILE.replace('\n', " "));
    let commands: &[&[&str]] = &[
        &["exec", "tools/result.ts"],
        &["exec", "tools/logs.ts"],
        &["exec", "tools/fails.ts"],
        &["exec", "tools/result.ts", "--json"],
        &["exec", HOSTILE],
        &["read", "tools/raw.ts"],
        &["read", HOSTILE],
        &["list", HOSTILE],
        &["test"],
        &["check"],
        &["sql", "SELECT * FROM t"],
        &["sql", "SELECT * FROM t", "--json"],
        &["sql", &error_sql],
        &["graph", "query", "MATCH (c:Commit) RETURN c.message"],
        &["graph", "query", "MATCH (c:Commit) RETURN c", "--format", "json"],
        &["graph", "query", "MATCH (f:File) RETURN f.path"],
        &["graph", "query", "MATCH (u:Unresolved) RETURN u.specifier"],
        &["graph", "query", "MATCH p = (:File)-[:IMPORTS]->() RETURN p", "--format", "dot"],
        &["graph", "query", "MATCH p = (:File)-[:IMPORTS]->() RETURN p", "--format", "mermaid"],
        &["graph", "query", HOSTILE],
        &["graph", "query", "MATCH (f:File) RETURN f.path", "--commit", HOSTILE],
        &["search", HOSTILE],
        &["log"],
        &["audit", "tail", "-n", "50"],
        &["audit", "export"],
        &["audit", "export", "--format", "csv"],
        &["call", "no_such_tool", &json!({ "a": HOSTILE }).to_string()],
        &["call", "fs_read", &json!({ "path": HOSTILE }).to_string()],
        &["call", "exec_sql", &json!({ "sql": "SELECT * FROM t" }).to_string(), "--yes"],
    ];
    for arguments in commands {
        let (_, screen) = Terminal::start(project.command(arguments)).finish();
        assert_harmless(&format!("tgp {}", arguments.join(" ").escape_debug()), &screen);
    }
}

#[test]
fn a_program_gets_the_exact_bytes_and_clean_messages() {
    let project = poisoned();
    let Ran { stdout, stderr, .. } = project.run(&["exec", "tools/result.ts"]);
    assert_eq!(stdout, format!("{HOSTILE}\n"));
    assert_harmless("standard error", &stderr);
    let Ran { stdout, .. } = project.run(&["sql", "SELECT * FROM t", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert!(document.to_string().contains(json!(HOSTILE).as_str().map(|_| "owned").unwrap()));
    for arguments in [&["exec", "tools/fails.ts"][..], &["read", HOSTILE], &["exec", "tools/logs.ts"]] {
        assert_harmless(&format!("{arguments:?} on standard error"), &project.run(arguments).stderr);
    }
}

/// A bare repository beside the project, with `files` on its branch `main`.
fn remote(project: &Project, files: &[(&str, &str)]) {
    let run = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(project.path("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status();
        assert!(status.unwrap().success(), "git {arguments:?}");
    };
    run(&["init", "--quiet", "--initial-branch=main", "seed"]);
    for (name, content) in files {
        let file = project.path("tmp/seed").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    run(&["-C", "seed", "add", "--all"]);
    run(&[
        "-C",
        "seed",
        "-c",
        "user.name=Eve",
        "-c",
        "user.email=eve@example.org",
        "commit",
        "--quiet",
        "-m",
        HOSTILE,
    ]);
    let bare = project.path("remote.git");
    run(&["clone", "--quiet", "--bare", "seed", bare.to_str().unwrap()]);
    fs::remove_dir_all(project.path("tmp/seed")).unwrap();
    let config =
        json!({ "git": { "url": bare.to_str().unwrap(), "auth": { "user": "a", "email": "a@b.c" } } });
    project.write("tgp.config.json", &config.to_string());
}

#[test]
fn names_from_a_remote_are_shown_escaped_on_one_line() {
    let project = Project::empty();
    remote(
        &project,
        &[("tools/a.ts", "export default () => 1;"), ("tools/a\tb\u{1b}[2J\nwarning: forged.ts", "x")],
    );
    project.trust();
    let (_, screen) = Terminal::start(project.command(&["list"])).finish();
    assert_harmless("tgp list", &screen);
    assert!(screen.contains("\\u{1b}[2J\\nwarning: forged.ts"), "{screen}");
    assert!(!screen.lines().any(|line| line.starts_with("warning: forged")), "{screen}");
    for arguments in [&["log"][..], &["sync"], &["search", "a"]] {
        let (_, screen) = Terminal::start(project.command(arguments)).finish();
        assert_harmless(&format!("tgp {arguments:?}"), &screen);
        assert_harmless("standard error", &project.run(arguments).stderr);
    }
}

#[test]
fn a_remote_of_a_hundred_million_paths_is_refused_with_one_warning() {
    let project = Project::empty();
    remote(&project, &[("tools/a.ts", "export default () => 1;")]);
    let bare = project.path("remote.git");
    let pipe = |arguments: &[&str], input: &str| -> String {
        use std::io::Write;
        let mut command = Command::new("git");
        command.args(arguments).current_dir(&bare).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.envs([("GIT_AUTHOR_NAME", "Eve"), ("GIT_AUTHOR_EMAIL", "e@e.e")]);
        command.envs([("GIT_COMMITTER_NAME", "Eve"), ("GIT_COMMITTER_EMAIL", "e@e.e")]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut process = command.spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let blob = pipe(&["hash-object", "-w", "--stdin"], "x");
    let names = |kind: &str, id: &str| (0..10).map(|at| format!("{kind} {id}\tn{at}\n")).collect::<String>();
    let mut tree = pipe(&["mktree"], &names("100644 blob", &blob));
    for _ in 1..8 {
        tree = pipe(&["mktree"], &names("040000 tree", &tree));
    }
    let commit = pipe(&["commit-tree", &tree, "-p", "main", "-m", "bomb"], "");
    pipe(&["update-ref", "refs/heads/main", &commit], "");
    project.trust();
    let shell = "ulimit -v 4000000; exec tgp list";
    let mut command = project.program("sh");
    let ran: Ran = command.args(["-c", shell]).output().unwrap().into();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warnings: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("warning:")).collect();
    assert_eq!(warnings.len(), 1, "{ran:?}");
    for part in ["more than 200000 files and folders", "`n9/n9", "remove that from the remote's branch"] {
        assert!(warnings[0].contains(part), "{}", warnings[0]);
    }
}
