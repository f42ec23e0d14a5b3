//! The tool repository and its remote.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, bail};
use serde_json::Value;

use super::Check;
use crate::load::{remove_stale_locks, tool_source};

/// Tools that are run one by one; the others are checked and compared as text.
const RUN_AT_MOST: usize = 24;

/// After a last exchange the repository is sound, and each tool is the version that was reported.
pub(super) fn tools(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    remove_stale_locks(soak, site);
    let synced = &site.data(&["sync"])?;
    if synced["conflicts"].as_array().is_none_or(|conflicts| !conflicts.is_empty()) {
        check.find(format!("the last `tgp sync` reports conflicts: {synced}"));
    }
    let local = site.project.file(".tgp").display().to_string();
    site.must(site.git(&["-C", &local, "fsck", "--strict", "--no-dangling"]))?;
    let status = site.must(site.git(&["-C", &local, "status", "--porcelain"]))?;
    if !status.is_empty() {
        check.find(format!("the tool repository is not clean: {status}"));
    }
    let checked = runner.run(site.tgp(&["--json", "check"]), "")?;
    let checked: Value = serde_json::from_str(&checked.stdout)?;
    let data = site.data(&["list"])?;
    let listed: BTreeSet<&str> = data.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (run, (path, forged)) in site.ledger.forged().into_iter().enumerate() {
        let versions: Vec<u64> = forged.written.into_iter().chain(forged.unknown).collect();
        let is_written = forged.written.is_some();
        let Ok(text) = fs::read_to_string(site.project.file(&format!(".tgp/{path}"))) else {
            if is_written {
                check.find(format!("{path} was reported as written and is not there"));
            }
            continue;
        };
        let Some(version) = versions.into_iter().find(|&version| text == tool_source(&path, version)) else {
            // What was reported of the version that is there, and what was reported last.
            let here = forged.history.iter().find(|(version, ..)| text == tool_source(&path, *version));
            let last = forged.history.last();
            check.find(format!(
                "{path} is not the version that was reported: {text}; it is {here:?}, the last one {last:?}"
            ));
            continue;
        };
        if !listed.contains(path.as_str()) {
            check.find(format!("{path} is not listed"));
        }
        let is_valid = |tool: &Value| tool["path"] == path.as_str() && tool["valid"] == true;
        if !checked
            .pointer("/data/tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| tools.iter().any(is_valid))
        {
            check.find(format!("`tgp check` does not accept {path}"));
        }
        if run < RUN_AT_MOST {
            let ran = runner.run(site.tgp(&["exec", &path, "--args", "{}"]), "")?;
            if ran.stdout.trim() != version.to_string() {
                check.find(format!("{path} returns {} instead of {version}", ran.said()));
            }
        }
        soak.report.count("tools compared");
    }
    Ok(())
}

/// Everything that was reported as pushed is in the remote, and after the last exchange every tool.
pub(super) fn remote(check: &Check<'_>) -> Result<()> {
    let site = check.site;
    let remote = site.remote.display().to_string();
    site.must(site.git(&["-C", &remote, "fsck", "--strict", "--no-dangling"]))?;
    let commits = site.must(site.git(&["-C", &remote, "rev-list", "main"]))?;
    let commits: BTreeSet<&str> = commits.lines().collect();
    if commits.is_empty() {
        bail!("the remote is empty");
    }
    for commit in site.ledger.pushed() {
        if !commits.contains(commit.as_str()) {
            check.find(format!("the commit {commit} was reported as pushed and is not in the remote"));
        }
    }
    let tree =
        |repository: &str| site.must(site.git(&["-C", repository, "rev-parse", "refs/heads/main^{tree}"]));
    let (here, there) = (tree(&site.project.file(".tgp").display().to_string())?, tree(&remote)?);
    if here != there {
        check.find(format!("after `tgp sync` the tools differ from the remote: {here} {there}"));
    }
    Ok(())
}
