//! The tool repository and the chronicle: tools that are written and pushed, another agent at the same remote, events
//! and exchanges.

use std::time::Duration;

use anyhow::{Result, bail};
use fastrand::Rng;
use serde_json::{Value, json};

use super::{Place, Soak, clients};
use crate::ledger::Reported;
use crate::program::documents;
use crate::site::Site;

/// Tools that one writer writes again and again.
const TOOLS: u64 = 6;

/// The tools that clients of the socket write. A person makes them first: a client may not add a tool that resembles
/// another one.
#[must_use]
pub fn socket_tools() -> Vec<String> {
    (0..TOOLS).map(|tool| tool_path("socket", tool)).collect()
}

fn tool_path(writer: &str, tool: u64) -> String {
    format!("tools/{writer}/t{tool}.ts")
}

/// A lock of a push that is older belongs to none that still runs.
const STALE: Duration = Duration::from_secs(5);

/// Files that have events.
const FILES: u64 = 5;

/// The source of a version of a tool: it returns its version.
#[must_use]
pub fn source(path: &str, version: u64) -> String {
    format!(
        "/** Returns the version of {path}. */\n\
         export default (args: {{ version?: number }}): number => args.version ?? {version};\n"
    )
}

/// Clients of the socket that write tools.
pub(super) fn through_the_socket(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, .. } = place;
    while !soak.is_over() {
        let Ok(mut client) = site.server.connect(site) else {
            soak.sleep(Duration::from_millis(50));
            continue;
        };
        let (path, version) = begin(place, "socket", &mut rng);
        let arguments = json!({ "path": path, "content": source(&path, version) });
        let told = clients::call(place, &mut client, "write_file", &arguments).unwrap_or_default();
        end(place, &path, version, &told);
        soak.sleep(Duration::from_millis(rng.u64(50..400)));
    }
    Ok(())
}

/// `tgp write`, a process per version.
pub(super) fn with_processes(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    while !soak.is_over() {
        let (path, version) = begin(place, "process", &mut rng);
        let ran = runner.run(site.tgp(&["--json", "write", &path]), &source(&path, version))?;
        let told = documents(&ran.stdout).pop().unwrap_or_default();
        end(place, &path, version, &told);
        soak.sleep(Duration::from_millis(rng.u64(50..400)));
    }
    Ok(())
}

fn begin(place: &Place<'_>, writer: &str, rng: &mut Rng) -> (String, u64) {
    let path = tool_path(writer, rng.u64(0..TOOLS));
    let version = place.site.ledger.number();
    place.site.ledger.forge(&path, version);
    place.soak.report.count("tools written");
    (path, version)
}

fn end(place: &Place<'_>, path: &str, version: u64, told: &Value) {
    let ledger = &place.site.ledger;
    ledger.forge_settled(path, version, Reported::of(told), told);
    place.soak.look_at(told);
    let is_pushed = told.pointer("/data/pushed") == Some(&Value::Bool(true));
    if let Some(commit) = told.pointer("/data/commit").and_then(Value::as_str)
        && is_pushed
    {
        place.soak.report.count("pushes reported as done");
        ledger.push(commit);
    }
}

/// Another agent, who works with plain git in a clone of the remote.
pub(super) fn other_agent(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    let clone = runner.file("clone").display().to_string();
    let git = |words: &[&str]| runner.run(site.git(words), "");
    let remote = site.remote.display().to_string();
    let cloned = git(&["clone", "--quiet", &remote, &clone])?;
    if cloned.code != Some(0) {
        bail!("the remote cannot be cloned: {}", cloned.said());
    }
    while !soak.is_over() {
        soak.sleep(Duration::from_millis(rng.u64(800..2500)));
        remove_stale_locks(soak, site);
        // The remote may have moved, so the clone starts from where that is.
        git(&["-C", &clone, "fetch", "--quiet"])?;
        git(&["-C", &clone, "reset", "--quiet", "--hard", "origin/main"])?;
        let version = site.ledger.number();
        let path = format!("tools/other/t{version}.ts");
        let file = std::path::Path::new(&clone).join(&path);
        std::fs::create_dir_all(file.parent().unwrap_or(&file))?;
        std::fs::write(&file, source(&path, version))?;
        git(&["-C", &clone, "add", "--all"])?;
        git(&["-C", &clone, "commit", "--quiet", "--message", &format!("Forge: {path}")])?;
        let pushed = git(&["-C", &clone, "push", "--quiet", "origin", "HEAD:main"])?;
        if pushed.code == Some(0) {
            soak.report.count("pushes of another agent");
            site.ledger.forge(&path, version);
            site.ledger.forge_settled(&path, version, Reported::Success, &Value::Null);
        }
    }
    Ok(())
}

/// Removes locks that a killed push has left in the remote, as its administrator does: git itself never takes them
/// away, and as long as one is there no push succeeds.
pub fn remove_stale_locks(soak: &Soak, site: &Site) {
    for folder in [".", "refs/heads", "refs/tgp/audit"] {
        for entry in std::fs::read_dir(site.remote.join(folder)).into_iter().flatten().flatten() {
            let is_lock = entry.path().extension().is_some_and(|extension| extension == "lock");
            let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            let age = modified.and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
            if is_lock && age > STALE && std::fs::remove_file(entry.path()).is_ok() {
                soak.report.count("locks of killed pushes removed from the remote");
            }
        }
    }
}

/// Events of the chronicle, and now and then an exchange with the remote.
pub(super) fn events_and_sync(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    while !soak.is_over() {
        if rng.u8(0..100) < 20 {
            soak.report.count("tgp sync");
            runner.run(site.tgp(&["--json", "sync"]), "")?;
        } else {
            let path = format!("src/noted/f{}.md", rng.u64(0..FILES));
            let event = json!({
                "type": "NOTE",
                "timestamp": "2026-11-16T12:00:00Z",
                "actor": { "agent": "person", "id": "soak" },
                "number": site.ledger.number(),
            });
            soak.report.count("tgp chronicle append");
            let ran =
                runner.run(site.tgp(&["--json", "chronicle", "append", &path, &event.to_string()]), "")?;
            let told = documents(&ran.stdout).pop().unwrap_or_default();
            soak.look_at(&told);
            let id = told.pointer("/data/eventId").and_then(Value::as_str);
            match (Reported::of(&told), id) {
                (Reported::Success, Some(id)) => site.ledger.append(&path, id),
                (Reported::Success, None) => bail!("an append without an event: {told}"),
                _ => {}
            }
        }
        soak.sleep(Duration::from_millis(rng.u64(50..300)));
    }
    Ok(())
}
