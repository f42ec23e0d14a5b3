//! Golden folder: `golden/NAME.ts` beside `golden/NAME.out`. `UPDATE_GOLDEN=1` writes the outputs anew.
//!
//! The first comment of an input may name its role and id: `// role: library, id: npm:x/index.js`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tgp_compiler::{SourceRole, Unit, compile};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transpile/golden")
}

fn unit(path: &Path) -> Unit {
    let source = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut unit = Unit { id: format!("tools/{name}"), source, role: SourceRole::Tool };
    let first = unit.source.lines().next().unwrap_or_default().to_owned();
    for setting in first.trim_start_matches("//").split(',') {
        match setting.trim().split_once(": ") {
            Some(("role", "library")) => unit.role = SourceRole::Library,
            Some(("role", "config")) => unit.role = SourceRole::Config,
            Some(("id", id)) => unit.id = id.to_owned(),
            _ => {}
        }
    }
    unit
}

fn render(unit: &Unit) -> String {
    let mut out = String::new();
    match compile(unit) {
        Ok(compiled) => {
            writeln!(out, "format: {:?}\nshape: {:?}", compiled.format, compiled.shape).unwrap();
            for request in &compiled.requests {
                let optional = if request.optional { ", optional" } else { "" };
                let (specifier, place) = (&request.specifier, &request.place);
                let (line, column) = (place.line, place.column);
                let names = [request.names.as_slice(), request.members.as_slice()].concat().join(" ");
                writeln!(
                    out,
                    "request: {specifier} ({:?} at {line}:{column}{optional}) [{names}]",
                    request.kind
                )
                .unwrap();
            }
            for (what, list) in [
                ("exports", &compiled.exports),
                ("reexports", &compiled.reexports),
                ("environment", &compiled.environment),
            ] {
                if !list.is_empty() {
                    writeln!(out, "{what}: {}", list.join(" ")).unwrap();
                }
            }
            write!(out, "----\n{}", compiled.code).unwrap();
        }
        Err(error) => {
            for finding in error.findings {
                let (place, end) = (finding.place, finding.end);
                writeln!(
                    out,
                    "{place}-{}:{} [{}] {}\n  reason: {}\n  fix: {}",
                    end.line, end.column, finding.rule, finding.message, finding.reason, finding.fix
                )
                .unwrap();
            }
        }
    }
    out
}

#[test]
fn every_golden_source_compiles_to_its_output() {
    let mut inputs: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "out"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 30, "only {} inputs", inputs.len());
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for input in inputs {
        let mut output = input.clone().into_os_string();
        output.push(".out");
        let rendered = render(&unit(&input));
        if update {
            fs::write(&output, &rendered).unwrap();
        } else if fs::read_to_string(&output).unwrap_or_default() != rendered {
            wrong.push(format!("{}\n{rendered}", input.display()));
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_GOLDEN=1 and read the difference:\n{}", wrong.join("\n"));
}
