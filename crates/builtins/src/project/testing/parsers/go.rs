//! `go test -v`.

use std::collections::HashMap;

use tgp_contract::RelativePath;

use super::super::counts::{Output, Tally};
use super::super::text::{path_of_place, project_path};

pub(in super::super) fn read(output: &Output<'_>, module: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    let broken = read_build(output);
    // Tests come before the line that says whose they are.
    let mut failed: Vec<(&str, Option<String>)> = Vec::new();
    let mut current = "";
    let mut logged: HashMap<&str, String> = HashMap::new();
    for line in output.stdout.lines() {
        if let Some(name) = ["=== RUN   ", "=== CONT  ", "=== NAME  ", "=== PAUSE "]
            .iter()
            .find_map(|prefix| line.strip_prefix(prefix))
        {
            current = top_test(name);
        } else if let Some(name) = line.strip_prefix("--- FAIL: ") {
            let name = name.split(" (").next().unwrap_or_default();
            failed.push((name, None));
            tally.failed(1);
            current = name;
        } else if line.starts_with("--- PASS: ") {
            tally.passed(1);
        } else if line.starts_with("--- SKIP: ") {
            tally.skipped(1);
        } else if let Some((state, package)) = package_line(line) {
            tally.is_understood = true;
            // Without `-v` a package only says that it is well.
            tally.has_uncounted |= line.starts_with("ok") && !line.ends_with("[no tests to run]");
            let folder = module.and_then(|module| folder_of(package, module));
            for (name, _) in failed.drain(..) {
                let file = logged.get(name).and_then(|file| place(output.root, folder.as_deref(), file));
                tally.name(&format!("{package}.{name}"), file);
            }
            logged.clear();
            if state == Package::DidNotBuild {
                let file = broken.get(package).and_then(|file| project_path(output.root, file));
                tally.broken(&format!("{package} does not build"), file);
            }
        } else if let Some(file) = test_file(line) {
            logged.entry(current).or_insert_with(|| file.to_owned());
        }
    }
    tally
}

fn top_test(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Package {
    Ran,
    DidNotBuild,
}

/// `ok  <package> <time>`, `FAIL <package> <time>`, `FAIL <package> [build failed]`, with tabs between.
fn package_line(line: &str) -> Option<(Package, &str)> {
    let mut parts = line.split('\t');
    let state = parts.next()?.trim_end();
    let package = parts.next()?;
    match state {
        "FAIL" if line.ends_with("[build failed]") || line.ends_with("[setup failed]") => {
            Some((Package::DidNotBuild, package.split(" [").next().unwrap_or_default()))
        }
        "ok" | "FAIL" | "?" => Some((Package::Ran, package)),
        _ => None,
    }
}

/// The `x_test.go` of a log line `    x_test.go:5: …` or of a frame `/way/to/x_test.go:5 +0x1d`.
fn test_file(line: &str) -> Option<&str> {
    let end = line.find("_test.go:")?.saturating_add("_test.go".len());
    let file = line.get(..end)?.trim_start();
    (!file.contains(char::is_whitespace)).then_some(file)
}

fn folder_of(package: &str, module: &str) -> Option<String> {
    let below = package.strip_suffix(".test").unwrap_or(package).strip_prefix(module)?;
    if below.is_empty() { Some(String::new()) } else { below.strip_prefix('/').map(str::to_owned) }
}

fn place(root: Option<&str>, folder: Option<&str>, file: &str) -> Option<RelativePath> {
    if file.starts_with('/') {
        return project_path(root, file);
    }
    match folder? {
        "" => project_path(root, file),
        folder => project_path(root, &format!("{folder}/{file}")),
    }
}

/// The first file with an error of each package that did not build: `# package [package.test]`, then the errors.
fn read_build<'a>(output: &Output<'a>) -> HashMap<&'a str, &'a str> {
    let mut broken = HashMap::new();
    let mut package = None;
    for line in output.stderr.lines().chain(output.stdout.lines()) {
        if let Some(header) = line.strip_prefix("# ") {
            package = header.split(" [").next();
        } else if let Some(name) = package {
            let file = line.split(": ").next().map(path_of_place).unwrap_or_default();
            if file.ends_with(".go") {
                broken
                    .entry(name)
                    .or_insert_with(|| file.trim_start_matches("vet: ").trim_start_matches("./"));
            }
        }
    }
    broken
}
