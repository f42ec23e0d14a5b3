//! Expressions with the results of Node: `platform.json` holds both. `UPDATE_GOLDEN=1` runs Node and writes them anew.
//!
//! An entry is `{"code", "value"}`, `{"code", "throws"}` with the name of the error, and `"logs"` where it logs.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::Test;
use crate::worker::{Tested, Workers};

pub const TESTS: &[Test] = &[("golden_platform_agrees_with_node", agrees_with_node)];

/// Runs the expressions of standard input in Node and prints what they give.
const RUN_IN_NODE: &str = r#"
const codes = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const real = process.stdout.write.bind(process.stdout);
const results = [];
(async () => {
  for (const code of codes) {
    const logs = [];
    const take = (text) => { logs.push(String(text).replace(/\n$/, '')); return true; };
    process.stdout.write = take;
    process.stderr.write = take;
    const entry = { code };
    try {
      const value = await (0, eval)(`(async () => (\n${code}\n))()`);
      entry.value = value === undefined ? null : JSON.parse(JSON.stringify(value));
    } catch (error) {
      entry.throws = error.name;
    }
    if (logs.length > 0) entry.logs = logs;
    results.push(entry);
  }
  process.stdout.write = real;
  real(JSON.stringify(results));
  process.exit(0);
})();
"#;

fn golden_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox/platform.json")
}

fn agrees_with_node(workers: &Workers) -> Tested {
    let mut groups: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(golden_file())?)?;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        update(&mut groups)?;
    }
    let mut report = String::new();
    let mut count = 0;
    for (group, entries) in &groups {
        for entry in entries.as_array().into_iter().flatten() {
            count += 1;
            let code = entry.get("code").and_then(Value::as_str).unwrap_or_default();
            let found = found_here(workers, code);
            if found != *entry {
                writeln!(report, "{group}: {code}\n  node: {}\n  here: {}", brief(entry), brief(&found))?;
            }
        }
    }
    if count < 160 {
        return Err(format!("the list has {count} expressions, fewer than 160").into());
    }
    if report.is_empty() { Ok(()) } else { Err(report.into()) }
}

/// An entry without its code.
fn brief(entry: &Value) -> String {
    let mut entry = entry.clone();
    if let Some(entry) = entry.as_object_mut() {
        entry.remove("code");
    }
    entry.to_string()
}

fn found_here(workers: &Workers, code: &str) -> Value {
    let report = workers.evaluate(code);
    let mut entry = json!({ "code": code });
    match report.result {
        Ok(value) => entry["value"] = value,
        Err(error) if error.kind == tgp_sandbox::RunErrorKind::Thrown => entry["throws"] = json!(error.name),
        Err(error) => entry["failed"] = json!(format!("{error:?}")),
    }
    if !report.logs.is_empty() {
        entry["logs"] = report.logs.into_iter().map(|line| Value::from(line.text)).collect();
    }
    entry
}

fn update(groups: &mut Map<String, Value>) -> Tested {
    let codes: Vec<Value> = groups
        .values()
        .flat_map(|entries| entries.as_array().into_iter().flatten())
        .filter_map(|entry| entry.get("code").cloned())
        .collect();
    let mut node = Command::new("node")
        .args(["--no-warnings", "-e", RUN_IN_NODE])
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = node.stdin.take().ok_or("node has no standard input")?;
    serde_json::to_writer(input, &codes)?;
    let output = node.wait_with_output()?;
    let mut results: std::vec::IntoIter<Value> =
        serde_json::from_slice::<Vec<Value>>(&output.stdout)?.into_iter();
    let mut text = String::from("{\n");
    let last = groups.len();
    for (at, (group, entries)) in groups.iter_mut().enumerate() {
        let count = entries.as_array().map_or(0, Vec::len);
        let fresh: Vec<Value> = results.by_ref().take(count).collect();
        let lines: Vec<String> = fresh.iter().map(|entry| format!("    {entry}")).collect();
        let comma = if at + 1 == last { "" } else { "," };
        writeln!(text, "  {}: [\n{}\n  ]{comma}", json!(group), lines.join(",\n"))?;
        *entries = Value::Array(fresh);
    }
    text.push_str("}\n");
    std::fs::write(golden_file(), text)?;
    Ok(())
}
