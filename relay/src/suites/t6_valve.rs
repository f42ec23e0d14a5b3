//! T6: changes of files become events of the chronicle, none lost and none touched again.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tgp_contract::{ChronicleEvent, Code, EventActor, RelativePath};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Case, Running, t6_rapid};
use crate::fault::{Expecting, Fault, holds, same};
use crate::valves::{PERSONAS, PERSONAS_FILE};
use crate::world::World;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "t6.trigger",
        title: "a change that a persona wants is one event beside its file",
        run: trigger,
    },
    Case {
        id: "t6.downtime-backfill",
        title: "what changed while no valve ran is told when one starts",
        run: downtime_backfill,
    },
    Case {
        id: "t6.append-only",
        title: "changes in a row are events in order, and past ones stay as they were",
        run: append_only,
    },
    Case {
        id: "t6.rapid-changes",
        title: "what changed several times between two scans is told once, as it is now",
        run: t6_rapid::rapid_changes,
    },
    Case {
        id: "t6.watch",
        title: "a watch tells rapid changes by itself, each state at most once and none too late",
        run: t6_rapid::watched_changes,
    },
    Case {
        id: "t6.scope-guard",
        title: "nothing is written outside the chronicle's scope",
        run: scope_guard,
    },
];

/// Events that are read of a chronicle's end: more than a case makes.
const MOST: usize = 1_000;
const SECRETS: &str = "src/core/secrets.txt";

fn path(text: &str) -> Result<RelativePath, Fault> {
    RelativePath::new(text).map_err(|error| Fault::new("a path of the project", error.to_string()))
}

/// A project with personas, which a valve has scanned once.
pub(super) async fn begin(world: &World) -> Result<(), Fault> {
    world.workspace.write(PERSONAS_FILE, PERSONAS)?;
    world.workspace.write("src/main.ts", "export {};\n")?;
    world.workspace.write("src/old_secrets.txt", "OLD=1\n")?;
    scan(world).await?;
    let files = world.chronicle()?.files().await.expecting("a list of chronicles")?;
    same("the chronicles after a first look, which only remembers", &files, &Vec::new())
}

pub(super) async fn scan(world: &World) -> Result<Vec<String>, Fault> {
    world.valve()?.scan().await.expecting("a look of the valve")
}

pub(super) async fn events(world: &World, file: &str) -> Result<Vec<Value>, Fault> {
    let chronicle = path(&format!("{file}.sage"))?;
    let events = world.chronicle()?.tail(&chronicle, MOST).await.expecting("a chronicle that can be read")?;
    Ok(events.iter().map(|event| serde_json::to_value(event).unwrap_or_default()).collect())
}

/// The `change` of each event.
pub(super) fn changes(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event.get("change").and_then(Value::as_str).unwrap_or_default()).collect()
}

pub(super) fn time(event: &Value) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(event.get("timestamp")?.as_str()?, &Rfc3339).ok()
}

fn trigger(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        world.workspace.write(SECRETS, "SUPER_SECRET_KEY=123\n")?;
        world.workspace.write("src/other.ts", "export {};\n")?;
        scan(world).await?;
        let told = events(world, SECRETS).await?;
        let [event] = told.as_slice() else {
            return Err(Fault::new(format!("one event about {SECRETS}"), format!("{told:?}")));
        };
        for (name, value) in [
            ("type", json!("VALVE_PERSONA_TRIGGER")),
            ("persona", json!("TestGuardian")),
            ("filePath", json!(SECRETS)),
            ("trigger", json!({ "type": "filter", "details": "secrets" })),
        ] {
            same(&format!("`{name}` of the event"), event.get(name).unwrap_or(&Value::Null), &value)?;
        }
        let agent = event.get("actor").and_then(|actor| actor.get("agent")).cloned().unwrap_or_default();
        same("the agent of the event", &agent, &json!("valve"))?;
        same("events about a file that nobody wants", &events(world, "src/other.ts").await?, &Vec::new())?;
        // Nothing has changed since, the valve's own writing included.
        scan(world).await?;
        same("events after another look", &events(world, SECRETS).await?, &told)
    })
}

fn downtime_backfill(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        world.workspace.write("src/new_secrets.txt", "A=1\n")?;
        world.workspace.write("src/kept_secrets.txt", "B=1\n")?;
        scan(world).await?;
        // No valve watches now.
        world.workspace.write("src/kept_secrets.txt", "B=2\n")?;
        world.workspace.remove("src/new_secrets.txt")?;
        world.workspace.write("src/late_secrets.txt", "C=1\n")?;
        scan(world).await?;
        for (file, expected) in [
            ("src/new_secrets.txt", vec!["created", "deleted"]),
            ("src/kept_secrets.txt", vec!["created", "changed"]),
            ("src/late_secrets.txt", vec!["created"]),
            ("src/old_secrets.txt", vec![]),
        ] {
            let told = events(world, file).await?;
            same(&format!("the changes of {file}"), &changes(&told), &expected)?;
        }
        Ok(())
    })
}

fn append_only(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let mut past: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut bytes: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for number in 0..8 {
            for file in [SECRETS, "src/other_secrets.txt"] {
                world.workspace.write(file, &format!("KEY={number}\n"))?;
            }
            scan(world).await?;
            for file in [SECRETS, "src/other_secrets.txt"] {
                let told = events(world, file).await?;
                let before = past.insert(file.to_owned(), told.clone()).unwrap_or_default();
                same(&format!("events about {file} after change {number}"), &told.len(), &(number + 1))?;
                let kept = told.get(..before.len()).unwrap_or_default();
                same("the events that were there before", kept, before.as_slice())?;
            }
            // Where chronicles are files, their bytes only grow.
            let now: BTreeMap<String, Vec<u8>> = world.workspace.picture()?;
            for (name, content) in now.into_iter().filter(|(name, _)| name.ends_with(".sage")) {
                let before = bytes.insert(name.clone(), content.clone()).unwrap_or_default();
                let grown = content.starts_with(&before);
                holds(grown, format!("the past bytes of {name} to stay"), "other bytes")?;
            }
        }
        let told = events(world, SECRETS).await?;
        let expected: Vec<&str> = ["created"].into_iter().chain(std::iter::repeat_n("changed", 7)).collect();
        same("the changes in their order", &changes(&told), &expected)?;
        let times: Vec<OffsetDateTime> = told.iter().filter_map(time).collect();
        same("how many events have a time of RFC 3339", &times.len(), &told.len())?;
        holds(times.is_sorted(), "times that do not run backwards", &times)
    })
}

fn scope_guard(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let before = world.workspace.picture()?;
        world.workspace.write("docs/guide.md", "# Guide\n")?;
        let skipped = scan(world).await?;
        for file in world.chronicle()?.files().await.expecting("a list of chronicles")? {
            let is_inside = file.as_str().starts_with(".sage/") || file.as_str().starts_with("src/");
            holds(is_inside, "chronicles in .sage and src only", &file)?;
        }
        for name in world.workspace.picture()?.keys().filter(|name| !before.contains_key(*name)) {
            let is_expected = name == "docs/guide.md" || name.starts_with(".sage/");
            holds(is_expected, "no file outside of .sage to be made", name)?;
        }
        // The event is in the chronicle of the project, or its skip has a reason; a change is not simply forgotten.
        let project = world.chronicle()?.tail(&path(".sage/project.sage")?, MOST).await;
        let project = project.expecting("a chronicle that can be read")?;
        let is_told = project.iter().any(|event| event.file_path.as_deref() == Some("docs/guide.md"));
        holds(
            is_told || !skipped.is_empty(),
            "an event in .sage/project.sage, or a reason for none",
            &skipped,
        )?;
        // The chronicle itself keeps the scope, whoever the caller is.
        let event = ChronicleEvent {
            event_id: None,
            kind: "VALVE_PERSONA_TRIGGER".to_owned(),
            timestamp: "2026-01-01T00:00:00Z".to_owned(),
            actor: EventActor { agent: "valve".to_owned(), id: "watcher".to_owned() },
            file_path: Some("docs/guide.md".to_owned()),
            fields: serde_json::Map::new(),
        };
        let answer = world.chronicle()?.append(&path("docs/guide.md.sage")?, event).await;
        let is_refused = answer.as_ref().is_err_and(|error| error.code == Code::Permission);
        holds(is_refused, "EPERMISSION for a chronicle in docs", &answer)
    })
}
