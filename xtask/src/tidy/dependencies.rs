//! The licence and the source of every dependency, by the rules of deny.toml. cargo-deny checks more, but most machines
//! do not have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use super::{list, text};

const RULES: &str = "deny.toml";

pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let rules = fs::read_to_string(root.join(RULES)).with_context(|| format!("cannot read {RULES}"))?;
    let allowed = allowed_licences(&rules)?;
    licences(&metadata(root)?, &allowed, problems);
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    sources(&lock, problems)
}

/// `licenses.allow` of deny.toml.
fn allowed_licences(rules: &str) -> Result<Vec<Licensee>> {
    let rules: toml::Table = toml::from_str(rules).with_context(|| format!("{RULES} is not TOML"))?;
    let allowed = rules.get("licenses").and_then(|licences| licences.get("allow"));
    let allowed = allowed.and_then(toml::Value::as_array);
    let allowed = allowed.with_context(|| format!("{RULES} has no list `licenses.allow`"))?;
    let parsed = allowed.iter().map(|name| {
        let name = name.as_str().unwrap_or_default();
        Licensee::parse(name).with_context(|| format!("invalid licence `{name}` in {RULES}"))
    });
    parsed.collect()
}

/// Everything that is compiled on this machine. What only other platforms need may not be downloaded.
fn metadata(root: &Path) -> Result<Value> {
    let cargo = || Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &host];
    let run = |further: &[&str]| {
        cargo().args(arguments).args(further).current_dir(root).output().context("cannot run cargo metadata")
    };
    let mut output = run(&["--offline"])?;
    if !output.status.success() {
        // Nothing was built here yet. It downloads what a build would download.
        output = run(&[])?;
    }
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

fn licences(metadata: &Value, allowed: &[Licensee], problems: &mut Vec<String>) {
    for package in list(metadata, "packages") {
        let (name, version, licence) =
            (text(package, "name"), text(package, "version"), text(package, "license"));
        if licence.is_empty() {
            problems.push(format!("{name} {version} names no licence"));
            continue;
        }
        // Older crates write `MIT/Apache-2.0`.
        match Expression::parse_mode(licence, ParseMode::LAX) {
            Ok(expression) => {
                let is_allowed =
                    expression.evaluate(|wanted| allowed.iter().any(|licence| licence.satisfies(wanted)));
                if !is_allowed {
                    problems.push(format!(
                        "{name} {version} has the licence `{licence}`, which {RULES} does not allow"
                    ));
                }
            }
            Err(error) => {
                problems
                    .push(format!("{name} {version} has an invalid licence `{licence}`: {}", error.reason));
            }
        }
    }
}

/// Every package is a folder of this repository or comes from the one registry. The lock file has the packages of all
/// platforms.
fn sources(lock: &str, problems: &mut Vec<String>) -> Result<()> {
    let lock: toml::Table = toml::from_str(lock).context("Cargo.lock is not TOML")?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).context("Cargo.lock has no packages")?;
    let mut registries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str);
        let name = field("name").unwrap_or_default();
        match field("source") {
            None => {}
            Some(source) if source.starts_with("registry+") => {
                registries.entry(source).or_default().insert(name);
            }
            Some(source) => problems.push(format!("{name} comes from `{source}`, not from crates.io")),
        }
    }
    // The most used one is crates.io: nearly everything is from there.
    let most = registries.iter().max_by_key(|(_, names)| names.len()).map(|(source, _)| *source);
    for (source, names) in registries.iter().filter(|(source, _)| Some(**source) != most) {
        let names = names.iter().copied().collect::<Vec<_>>().join(", ");
        problems.push(format!("a second registry, `{source}`, is used by {names}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES_TEXT: &str =
        "[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\", \"Unicode-3.0\"]\n";

    #[track_caller]
    fn check(licence: Option<&str>, expected: &str) {
        let metadata = json!({ "packages": [{ "name": "one", "version": "1.0.0", "license": licence }] });
        let mut problems = Vec::new();
        licences(&metadata, &allowed_licences(RULES_TEXT).unwrap(), &mut problems);
        assert_eq!(problems.join("\n"), expected);
    }

    #[test]
    fn expressions_are_evaluated() {
        check(Some("MIT"), "");
        check(Some("GPL-3.0-only OR MIT"), "");
        check(Some("Apache-2.0/MIT"), "");
        check(Some("Apache-2.0 WITH LLVM-exception"), "");
        check(Some("MIT AND Unicode-3.0"), "");
        check(Some("Apache-2.0"), "one 1.0.0 has the licence `Apache-2.0`, which deny.toml does not allow");
        check(
            Some("MIT AND GPL-3.0-only"),
            "one 1.0.0 has the licence `MIT AND GPL-3.0-only`, which deny.toml does not allow",
        );
        check(Some("my own"), "one 1.0.0 has an invalid licence `my own`: unknown term");
        check(None, "one 1.0.0 names no licence");
    }

    #[test]
    fn only_one_registry_and_folders_are_sources() {
        let package = |name: &str, source: &str| format!("[[package]]\nname = \"{name}\"\n{source}\n");
        let lock = [
            package("own", ""),
            package("a", "source = \"registry+one\""),
            package("b", "source = \"registry+one\""),
            package("c", "source = \"registry+two\""),
            package("d", "source = \"git+somewhere\""),
        ];
        let mut problems = Vec::new();
        sources(&lock.concat(), &mut problems).unwrap();
        assert_eq!(
            problems,
            [
                "d comes from `git+somewhere`, not from crates.io",
                "a second registry, `registry+two`, is used by c"
            ]
        );
    }
}
