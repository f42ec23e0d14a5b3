//! Counts that may not grow unnoticed: `cargo xtask ratchet` compares system calls and instructions of a call with
//! `bench/ratchet.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{fixtures, run};

/// The record, relative to the workspace.
const RECORD: &str = "bench/ratchet.toml";
/// A count that differs from the record by more than this share is reported.
const TOLERANCE: f64 = 0.1;
/// The only kind of machine whose counts are recorded.
const ARCHITECTURE: &str = "x86_64";
/// The argument with which `tgp-bench` counts.
const COUNT_ARGUMENT: &str = "__counts";

const HEADER: &str = "\
# What a call costs, in counts that do not depend on the load of the machine. `cargo xtask ratchet`, a part of
# `cargo xtask test`, fails when a count is more than 10 % above its record. A change that is worth its price updates the
# record: `cargo xtask ratchet --update --reason TEXT`.
#
# Per call, debug build, x86_64 Linux. `system_calls` has those of the kernel and all its children, without the ones that
# threads wait for and wake each other with (NOISE in bench/src/counts/system_calls.rs), whose number differs from run to
# run. `instructions` has those of the kernel process alone. Boot and shutdown do not count, except in `tgp_exec_cold`,
# which is a process with full caches.
";

/// Counts by name, such as `system_calls.exec_tool_warm`.
type Counts = BTreeMap<String, u64>;

/// What counting gave.
#[derive(Debug, Default)]
struct Measurement {
    counts: Counts,
    /// What a count consists of, for a count that has grown.
    parts: BTreeMap<String, String>,
    skipped: Vec<String>,
}

/// `cargo xtask ratchet [--update --reason TEXT]`.
pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    let reason = match arguments {
        [] => None,
        [update, flag, words @ ..] if update == "--update" && flag == "--reason" && !words.is_empty() => {
            Some(words.join(" "))
        }
        _ => bail!("expected `cargo xtask ratchet` or `cargo xtask ratchet --update --reason TEXT`"),
    };
    // Builds both programs as the tests have them: a test of a package needs its program.
    run::cargo(
        root,
        &["test", "--workspace", "--no-run", "--quiet", "--test", "program", "--test", "docs"],
        &[],
    )?;
    check(root, reason.as_deref())
}

/// Counts with the debug build, and compares with the record or replaces it.
pub fn check(root: &Path, reason: Option<&str>) -> Result<()> {
    if !cfg!(target_os = "linux") || std::env::consts::ARCH != ARCHITECTURE {
        println!("xtask: skipped: ratchet (its counts are those of Linux on {ARCHITECTURE})");
        return Ok(());
    }
    let measured = measure(root)?;
    for reason in &measured.skipped {
        println!("xtask: skipped: ratchet: {reason}");
    }
    let file = root.join(RECORD);
    if let Some(reason) = reason {
        ensure!(measured.skipped.is_empty(), "the record is not updated with only a part of the counts");
        fs::write(&file, record(&measured.counts, reason))
            .with_context(|| format!("cannot write {RECORD}"))?;
        measured.counts.iter().for_each(|(name, count)| println!("ratchet: {name} = {count}"));
        return Ok(());
    }
    let recorded = fs::read_to_string(&file).with_context(|| format!("cannot read {RECORD}"))?;
    let lines = compare(&parse(&recorded)?, &measured);
    let mut grown = 0;
    for line in &lines {
        println!("ratchet: {}", line.text);
        grown += usize::from(line.fails);
    }
    if grown > 0 {
        bail!(
            "{grown} counts have grown by more than 10 %; reduce them, or record them with \
             `cargo xtask ratchet --update --reason TEXT`"
        );
    }
    Ok(())
}

/// Has `tgp-bench` count.
fn measure(root: &Path) -> Result<Measurement> {
    let program = fixtures::target(root).join("debug/tgp-bench");
    let output = Command::new(&program)
        .arg(COUNT_ARGUMENT)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(output.status.success(), "counting failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let counted: Value = serde_json::from_slice(&output.stdout).context("the counts are not JSON")?;
    let entries = |name: &str| counted.get(name).and_then(Value::as_object).into_iter().flatten();
    let skipped = counted.get("skipped").and_then(Value::as_array).into_iter().flatten();
    Ok(Measurement {
        counts: entries("counts").filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect(),
        parts: entries("parts")
            .filter_map(|(name, parts)| Some((name.clone(), parts.as_str()?.to_owned())))
            .collect(),
        skipped: skipped.filter_map(|reason| Some(reason.as_str()?.to_owned())).collect(),
    })
}

/// A line about one count.
#[derive(Debug, PartialEq, Eq)]
struct Comparison {
    text: String,
    fails: bool,
}

fn compare(recorded: &Counts, measured: &Measurement) -> Vec<Comparison> {
    let mut lines = Vec::new();
    for (name, &count) in &measured.counts {
        let Some(&before) = recorded.get(name) else {
            lines
                .push(Comparison { text: format!("{name}: {count}, which is not in {RECORD}"), fails: true });
            continue;
        };
        let change = (count as f64 - before as f64) / before.max(1) as f64;
        let percent = change * 100.0;
        let text = format!("{name}: {count}, recorded {before} ({percent:+.1} %)");
        let comparison = if change > TOLERANCE {
            let parts = measured.parts.get(name).map(|parts| format!("; {parts}")).unwrap_or_default();
            Comparison { text: format!("{text}: GROWN{parts}"), fails: true }
        } else if change < -TOLERANCE {
            let text = format!("{text}: fallen; lower the record with --update");
            Comparison { text, fails: false }
        } else {
            Comparison { text, fails: false }
        };
        lines.push(comparison);
    }
    // What was counted in part only has said so.
    if measured.skipped.is_empty() {
        for name in recorded.keys().filter(|name| !measured.counts.contains_key(*name)) {
            lines.push(Comparison { text: format!("{name}: recorded, but not counted"), fails: true });
        }
    }
    lines
}

/// The counts of a record, by `table.name`.
fn parse(text: &str) -> Result<Counts> {
    let record: toml::Table = text.parse().with_context(|| format!("{RECORD} is not TOML"))?;
    let tables = record.iter().filter_map(|(table, counts)| Some((table, counts.as_table()?)));
    let counts = tables.flat_map(|(table, counts)| {
        counts.iter().map(move |(name, count)| {
            let count = count.as_integer().and_then(|count| u64::try_from(count).ok());
            let name = format!("{table}.{name}");
            Ok((name.clone(), count.with_context(|| format!("{name} in {RECORD} is not a count"))?))
        })
    });
    counts.collect()
}

/// The text of a record.
fn record(counts: &Counts, reason: &str) -> String {
    let mut text = format!("{HEADER}\n# Why the counts are what they are.\nreason = {}\n", quoted(reason));
    let mut current = "";
    for (name, count) in counts {
        let (table, name) = name.split_once('.').unwrap_or(("counts", name));
        if table != current {
            text.push_str(&format!("\n[{table}]\n"));
            current = table;
        }
        text.push_str(&format!("{name} = {count}\n"));
    }
    text
}

/// A TOML string; the escapes of JSON are valid in it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> Counts {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn measured(pairs: &[(&str, u64)]) -> Measurement {
        Measurement { counts: counts(pairs), ..Measurement::default() }
    }

    fn compared(recorded: u64, now: u64) -> Comparison {
        let measured = measured(&[("system_calls.read", now)]);
        compare(&counts(&[("system_calls.read", recorded)]), &measured).remove(0)
    }

    #[test]
    fn a_count_may_grow_by_ten_percent() {
        assert!(!compared(100, 110).fails);
        let grown = compared(100, 111);
        assert!(grown.fails);
        assert_eq!(grown.text, "system_calls.read: 111, recorded 100 (+11.0 %): GROWN");
    }

    #[test]
    fn a_count_that_has_grown_is_shown_with_its_parts() {
        let mut measured = measured(&[("a.b", 20)]);
        measured.parts.insert("a.b".to_owned(), "read 12, write 8".to_owned());
        let lines = compare(&counts(&[("a.b", 10)]), &measured);
        assert_eq!(lines[0].text, "a.b: 20, recorded 10 (+100.0 %): GROWN; read 12, write 8");
    }

    #[test]
    fn a_count_that_has_fallen_asks_for_a_lower_record() {
        assert_eq!(compared(100, 90).text, "system_calls.read: 90, recorded 100 (-10.0 %)");
        let fallen = compared(100, 89);
        assert!(!fallen.fails);
        assert!(fallen.text.ends_with("fallen; lower the record with --update"), "{}", fallen.text);
    }

    #[test]
    fn counts_without_a_record_and_records_without_a_count_fail() {
        let lines = compare(&counts(&[("a.old", 1)]), &measured(&[("a.new", 1)]));
        assert_eq!(lines.iter().filter(|line| line.fails).count(), 2);
        let partial = Measurement { skipped: vec!["a (not installed)".to_owned()], ..measured(&[]) };
        assert!(compare(&counts(&[("a.old", 1)]), &partial).is_empty());
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let counts = counts(&[("instructions.exec_tool_warm", 12), ("system_calls.fs_read_gated", 3)]);
        let text = record(&counts, "because of \"that\"");
        assert_eq!(parse(&text).unwrap(), counts);
        assert!(text.contains("reason = \"because of \\\"that\\\"\"\n"), "{text}");
        assert!(parse("[a]\nb = 'text'\n").is_err());
    }
}
