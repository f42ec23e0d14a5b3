//! `cargo xtask messages`: every message that a user can read, in one place, for review and for the checks in `tidy`.

mod collect;
mod functions;
mod resolve;

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;

use crate::sources::{self, SourceFile};

/// A message where the source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Relative to the workspace.
    pub file: String,
    pub line: usize,
    /// The code or kind by which a program can recognise it.
    pub code: Option<String>,
    /// The template, with `{name}` where a value is inserted; `<expression>` where no template was found.
    pub message: Option<String>,
    /// The next steps, one for each branch that chooses one.
    pub helps: Vec<String>,
}

impl Message {
    /// The texts in it that are in the source as they are read.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let is_expression = |text: &&str| text.starts_with('<') && text.ends_with('>');
        self.message.iter().chain(&self.helps).map(String::as_str).filter(move |text| !is_expression(text))
    }

    fn help(&self) -> Option<String> {
        Some(self.helps.join(" | ")).filter(|help| !help.is_empty())
    }
}

/// Prints the messages, one per line or as one JSON array. An argument that is not an option selects the files whose
/// path contains it.
pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    let (mut as_json, mut filter) = (false, None);
    for argument in arguments {
        match argument.as_str() {
            "--json" => as_json = true,
            option if option.starts_with('-') => bail!("unknown option `{option}`: expected `--json`"),
            path if filter.is_none() => filter = Some(path),
            path => bail!("unexpected argument `{path}`: one path filter is accepted"),
        }
    }
    let messages = of_files(&sources::parsed(root)?);
    let messages = messages.iter().filter(|message| filter.is_none_or(|part| message.file.contains(part)));
    if as_json {
        let rows: Vec<_> = messages
            .map(|found| {
                let Message { file, line, code, message, .. } = found;
                json!({ "file": file, "line": line, "code": code, "message": message, "help": found.help() })
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    for found in messages {
        let Message { file, line, code, message, .. } = found;
        let [code, message] = [code, message].map(|part| part.as_deref().unwrap_or("-"));
        let help = found.help().map(|help| format!("  help: {}", one_line(&help))).unwrap_or_default();
        println!("{file}:{line}  {code}  {}{help}", one_line(message));
    }
    Ok(())
}

/// A text as it is in one line of a list.
pub fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// The messages of some files without those of unit tests, sorted by file and line.
pub fn of_files(files: &[SourceFile]) -> Vec<Message> {
    let files: Vec<&SourceFile> = files.iter().filter(|file| !is_test(&file.path)).collect();
    let functions = functions::MessageFunctions::of(&files);
    let mut messages: Vec<Message> =
        files.iter().flat_map(|file| collect::messages(file, &functions)).collect();
    messages.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    messages
}

/// Whether a file holds unit tests only.
fn is_test(path: &str) -> bool {
    path.ends_with("_tests.rs") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Whether an item is compiled for tests only.
fn is_test_item(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test");
        is_cfg_test || attribute.path().is_ident("test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(source: &str) -> Vec<(usize, String, String, String)> {
        let file = SourceFile {
            crate_folder: "one".to_owned(),
            path: "crates/one/src/lib.rs".to_owned(),
            syntax: syn::parse_file(source).unwrap(),
        };
        let shown = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        of_files(&[file])
            .into_iter()
            .map(|found| {
                let help = shown(found.help());
                (found.line, shown(found.code), shown(found.message), help)
            })
            .collect()
    }

    #[track_caller]
    fn check(source: &str, expected: &[(usize, &str, &str, &str)]) {
        let found = collected(source);
        let found: Vec<_> =
            found.iter().map(|(line, a, b, c)| (*line, a.as_str(), b.as_str(), c.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn constructors_have_code_message_and_help() {
        check(
            r#"
fn read(path: &str) -> Result<(), ToolError> {
    Err(ToolError::new(Code::Config, format!("cannot read `{path}`")).detail("path", path).help("check it"))
}
fn plain() -> ToolError { ToolError::new(Code::NotFound, "no tool") }
fn other(error: &E) -> ToolError { ToolError::new(Code::Internal, error.to_string()) }
"#,
            &[
                (3, "Config", "cannot read `{path}`", "check it"),
                (5, "NotFound", "no tool", "-"),
                (6, "Internal", "<error.to_string()>", "-"),
            ],
        );
    }

    #[test]
    fn variables_branches_and_constants_are_resolved() {
        check(
            r#"
const HELP: &str = "see the manual";
fn read(is_new: bool) -> ToolError {
    let message = match is_new {
        true => "it is new".to_owned(),
        false => format!("it is {}", "old"),
    };
    ToolError::new(Code::Config, message).help(HELP)
}
"#,
            &[(5, "Config", "it is new", "see the manual"), (6, "Config", "it is {}", "see the manual")],
        );
    }

    #[test]
    fn helpers_with_a_parameter_named_message_are_constructors() {
        check(
            r#"
fn wrong(at: usize, message: impl Into<String>) -> ToolError { ToolError::new(Code::Config, message) }
impl Parser {
    fn problem(&self, kind: &'static str, message: String, help: &str) -> Problem {
        Problem { kind, message, help: help.to_owned() }
    }
    fn go(&self) {
        wrong(1, "one").help("do it");
        self.problem("two-things", format!("two"), "again");
    }
}
"#,
            &[(8, "-", "one", "do it"), (9, "two-things", "two", "again")],
        );
    }

    #[test]
    fn attributes_struct_literals_macros_and_lone_helps() {
        check(
            r#"
#[derive(thiserror::Error)]
enum Fault {
    #[error("cannot open {0}")]
    Open(String),
    #[error(transparent)]
    Other(Inner),
}
fn go() {
    let fault = Place { line: 1, message: "bad".to_owned() };
    tokio::select! {
        _ = one => { return Err(ToolError::new(Code::Timeout, "too slow")); }
        () = two => {}
    }
    error.help("retry");
}
"#,
            &[
                (4, "-", "cannot open {0}", "-"),
                (10, "-", "bad", "-"),
                (12, "Timeout", "too slow", "-"),
                (15, "-", "-", "retry"),
            ],
        );
    }

    #[test]
    fn unit_tests_are_left_out() {
        check(
            r#"
#[cfg(test)]
mod tests {
    fn make() -> ToolError { ToolError::new(Code::Config, "only a test") }
}
#[test]
fn one() { ToolError::new(Code::Config, "only a test"); }
"#,
            &[],
        );
        assert!(is_test("crates/cli/src/conversation/tests/screens.rs"));
        assert!(!is_test("crates/cli/src/commands/test.rs"));
    }
}
