//! Every `console` block of the README, of `docs/` and of `examples/` is run, and says what really happens.
//!
//! A page is one session in an empty folder. `$ ` begins a command, `> ` continues it; the lines below are its output,
//! standard error included. `...` matches any number of lines, or for a piece of one; `[exit N]` for a status other
//! than 0.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "skipped pages are told")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The page that asks about this repository's own past.
const HISTORY_PAGE: &str = "questions.md";
const OLDEST_COMMIT: &str = "6066e74";

/// Whether this is a clone with the commits that the page names; an archive and a shallow clone have none.
fn has_history() -> bool {
    let git = Command::new("git").args(["cat-file", "-e", OLDEST_COMMIT]).current_dir(root()).output();
    git.is_ok_and(|output| output.status.success())
}

struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<PathBuf> = entries.filter(is_page).collect();
    pages.push(root().join("README.md"));
    let examples = std::fs::read_dir(root().join("examples")).unwrap();
    pages.extend(examples.map(|example| example.unwrap().path().join("README.md")));
    pages.sort();
    pages
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (index, text) in page.lines().enumerate() {
        if text.starts_with("```") {
            inside = !inside && text == "```console";
        } else if inside {
            if let Some(command) = text.strip_prefix("$ ") {
                steps.push(Step { line: index + 1, command: command.to_owned(), expected: Vec::new() });
            } else if let Some(step) = steps.last_mut() {
                match text.strip_prefix('>') {
                    Some(more) if step.expected.is_empty() => {
                        step.command.push('\n');
                        step.command.push_str(more.strip_prefix(' ').unwrap_or(more));
                    }
                    _ => step.expected.push(text.to_owned()),
                }
            }
        }
    }
    steps
}

fn run(step: &Step, folder: &Path, home: &Path) -> Vec<String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_tgp")).parent().unwrap();
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("exec 2>&1\n{}\n", step.command))
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", binary.display()))
        .env("HOME", home)
        .env("TGP_REPOSITORY", root())
        .output()
        .unwrap();
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        lines.push(format!("[exit {code}]"));
    }
    lines
}

/// Whether `actual` is what `expected` allows.
fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=actual.len()).any(|skip| matches(rest, &actual[skip..]))
        }
        Some((first, rest)) => actual.split_first().is_some_and(|(line, others)| {
            same_line(first.trim_end(), line.trim_end()) && matches(rest, others)
        }),
    }
}

/// Whether `line` is `expected`, where `...` matches anything.
fn same_line(expected: &str, line: &str) -> bool {
    match expected.split_once("...") {
        None => line == expected,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|left| {
            let ends = left.char_indices().map(|(at, _)| at).chain([left.len()]);
            ends.into_iter().any(|at| same_line(rest, &left[at..]))
        }),
    }
}

#[test]
fn every_page_does_what_it_says() {
    let mut ran = 0;
    for page in pages() {
        if page.ends_with(HISTORY_PAGE) && !has_history() {
            println!("skipped: docs/{HISTORY_PAGE} asks this repository's history, which is not here");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let home = tempfile::tempdir().unwrap();
        for step in steps(&std::fs::read_to_string(&page).unwrap()) {
            let actual = run(&step, folder.path(), home.path());
            assert!(
                matches(&step.expected, &actual),
                "{}:{}\n$ {}\nthe page says:\n{}\nit printed:\n{}",
                page.display(),
                step.line,
                step.command,
                step.expected.join("\n"),
                actual.join("\n")
            );
            ran += 1;
        }
    }
    assert!(ran > 30, "only {ran} commands were found in the pages");
}

#[test]
fn every_link_leads_somewhere() {
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/README.md"];
    let others = others.map(|page| root().join(page));
    for page in pages().into_iter().chain(others) {
        let text = std::fs::read_to_string(&page).unwrap();
        for piece in text.split("](").skip(1) {
            let target = piece.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{} links to {target}, which is not there", page.display());
        }
    }
}
