//! Reading the case files, and refusing those that say something which cannot be run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::case::{Act, Case, CaseFile, Step};

/// The folder of the TypeScript corpus, which has its own format.
pub const SANDBOX: &str = "sandbox";

/// Seconds that a step of a case may ask for at most.
const MAX_SECONDS: u64 = 600;

/// Where the cases of this crate are.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Every case below `folder`, sorted by family and name.
///
/// # Errors
/// With all files that are wrong, not only the first.
pub fn all(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut wrong = Vec::new();
    for family in names(folder)? {
        if family == SANDBOX {
            continue;
        }
        for file in names(&folder.join(&family))? {
            let path = folder.join(&family).join(&file);
            let Some(name) = file.strip_suffix(".yaml") else {
                wrong.push(format!("{}: a case is a file that ends in .yaml", path.display()));
                continue;
            };
            match read(&path) {
                Ok((text, file)) => {
                    cases.push(Case { family: family.clone(), name: name.to_owned(), text, file });
                }
                Err(error) => wrong.push(format!("{}: {error:#}", path.display())),
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{} case files cannot be used:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(cases)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<(String, CaseFile)> {
    let text = fs::read_to_string(path)?;
    let file = parse(&text)?;
    Ok((text, file))
}

/// One case from the text of its file.
///
/// # Errors
/// When the YAML is wrong, a field is unknown, or an entry point cannot express a step.
pub fn parse(text: &str) -> Result<CaseFile> {
    let case: CaseFile = serde_saphyr::from_str(text)?;
    check(&case)?;
    Ok(case)
}

fn check(case: &CaseFile) -> Result<()> {
    if case.about.trim().is_empty() {
        bail!("`about` says in one sentence what is tried");
    }
    if case.entries.is_empty() || case.steps.is_empty() {
        bail!("a case has at least one entry point and one step");
    }
    let mut entries = case.entries.clone();
    entries.sort();
    entries.dedup();
    if entries.len() != case.entries.len() {
        bail!("an entry point is named twice");
    }
    if case.seconds.is_some_and(|seconds| seconds == 0 || seconds > MAX_SECONDS) {
        bail!("`seconds` is a number from 1 to {MAX_SECONDS}");
    }
    for (number, step) in case.steps.iter().enumerate() {
        check_step(case, step).with_context(|| format!("step {}", number + 1))?;
    }
    Ok(())
}

fn check_step(case: &CaseFile, step: &Step) -> Result<()> {
    let Some(act) = step.act() else {
        bail!("a step is exactly one of `call`, `script`, `hello` and `frame`");
    };
    if step.arguments.is_some() && step.call.is_none() {
        bail!("`arguments` belong to a `call`");
    }
    if step.exit.is_some() && step.script.is_none() {
        bail!("`exit` belongs to a `script`; a call has `expect`");
    }
    for &entry in &case.entries {
        if let Some(why) = entry.cannot_express(case, step) {
            bail!("the entry point `{entry}` cannot express it: {why}");
        }
        let expected = step.expect.as_ref().map(|expected| expected.at(entry)).unwrap_or_default();
        match act {
            Act::Script { .. } if step.expect.is_some() => {
                bail!("a `script` has `exit` and `contains` instead of `expect`")
            }
            Act::Script { .. } => {}
            _ if expected.is_empty() => bail!("`expect` says nothing about the entry point `{entry}`"),
            _ => {}
        }
    }
    Ok(())
}
