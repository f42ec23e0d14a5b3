//! Screens as they are: each file of `golden/` is a session at a shell, with exit codes, standard output and standard
//! error. `UPDATE_GOLDEN=1 cargo test -p tgp-cli golden` plays them again and rewrites what came out.
//!
//! A command begins with `$ ` and continues with `> `; below it are the lines of standard output after `  | `, those of
//! standard error after `  ! `, and the exit code after `  = `. Everything else is a comment.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::project::{Project, Ran};

macro_rules! screens {
    ($($name:ident),* $(,)?) => {
        const SCREENS: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { play(stringify!($name)); })*
    };
}

screens!(
    agent,
    call,
    check,
    check_findings,
    config,
    directory,
    doctor,
    exec,
    exec_failures,
    files,
    greeting,
    help,
    init,
    knowledge,
    memory,
    tools,
);

#[test]
fn no_golden_file_is_forgotten() {
    let files: BTreeSet<String> = folder()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, SCREENS.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn help_fits_a_terminal_of_80_columns() {
    let text = std::fs::read_to_string(folder().join("help.txt")).unwrap();
    let wide: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  | "))
        .filter(|line| line.chars().count() > 80 && !line.contains("[possible values"))
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden")
}

fn play(name: &str) {
    let file = folder().join(name).with_extension("txt");
    let expected = std::fs::read_to_string(&file).unwrap();
    let actual = session(&expected);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, actual).unwrap();
        return;
    }
    let difference = similar::TextDiff::from_lines(&expected, &actual);
    let difference = difference.unified_diff().header("expected", "actual").to_string();
    assert!(difference.is_empty(), "{name}: look at it, then UPDATE_GOLDEN=1 if it is right\n{difference}");
}

/// Runs the commands of a session and writes down what came out.
fn session(script: &str) -> String {
    let project = Project::empty();
    let mut transcript = String::new();
    let mut lines = script.lines().filter(|line| !line.starts_with("  ")).peekable();
    while let Some(line) = lines.next() {
        transcript += line;
        transcript += "\n";
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let mut command = command.to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with('>')) {
            transcript += more;
            transcript += "\n";
            command += "\n";
            command += more.strip_prefix("> ").unwrap_or_default();
        }
        let Ran { code, stdout, stderr } = project.shell(&command);
        for (mark, text) in [('|', stdout), ('!', stderr)] {
            for line in filtered(&project, &text).split_inclusive('\n') {
                let end = if line.ends_with('\n') { "" } else { "(no line end)\n" };
                write!(transcript, "  {mark} {line}{end}").unwrap();
            }
        }
        writeln!(transcript, "  = {}", code.unwrap()).unwrap();
    }
    // Blanks at the end of a line would be invisible in the golden file.
    transcript.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Leaves out what differs between machines and runs.
fn filtered(project: &Project, text: &str) -> String {
    let text = text
        .replace(project.root().to_str().unwrap(), "[ROOT]")
        .replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let text = ["\"cpu_ms\":", "\"wall_ms\":", "\"heap_peak_bytes\":", "\"expires_ms\":"]
        .iter()
        .fold(text, |text, key| number_after(&text, key));
    let text =
        ["commit ", "\"commit\":\"", "\"head\":\""].iter().fold(text, |text, key| hash_after(&text, key));
    let text = ["tgp approve ", "\"needs_approval\":{\"id\":\"", "\"hash\":\""]
        .iter()
        .fold(text, |text, key| hash_after(&text, key));
    let text = samples(&text);
    [" ms", " MB"].iter().fold(text, |text, unit| decimal_before(&text, unit))
}

/// `commit 1a2b3c4d` becomes `commit [COMMIT]`.
fn hash_after(text: &str, key: &str) -> String {
    let mut pieces = text.split(key);
    let mut kept = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|character: char| character.is_ascii_hexdigit());
        let hidden = piece.len() - rest.len() >= 8;
        kept += key;
        kept += if hidden { "[COMMIT]" } else { "" };
        kept += if hidden { rest } else { piece };
    }
    kept
}

/// `"wall_ms":0.53` becomes `"wall_ms":[N]`.
fn number_after(text: &str, key: &str) -> String {
    let mut pieces = text.split(key);
    let mut kept = pieces.next().unwrap().to_owned();
    for piece in pieces {
        kept += key;
        kept += "[N]";
        kept += piece
            .trim_start_matches(|character: char| character.is_ascii_digit() || ".e-".contains(character));
    }
    kept
}

/// `(97 of 98 samples)` becomes `([N] of [N] samples)`.
fn samples(text: &str) -> String {
    let mut pieces: Vec<String> = text.split(" samples)").map(str::to_owned).collect();
    let last = pieces.len() - 1;
    for piece in &mut pieces[..last] {
        if let Some(start) = piece.rfind('(') {
            piece.replace_range(start.., "([N] of [N]");
        }
    }
    pieces.join(" samples)")
}

/// `0.53 ms` becomes `[N] ms`; whole numbers are settings and stay.
pub fn decimal_before(text: &str, unit: &str) -> String {
    let mut pieces: Vec<String> = text.split(unit).map(str::to_owned).collect();
    let last = pieces.len() - 1;
    for piece in &mut pieces[..last] {
        let start =
            piece.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.').len();
        if piece[start..].contains('.') {
            piece.replace_range(start.., "[N]");
        }
    }
    pieces.join(unit)
}
