//! T3: what graph and chronicle know holds back plans, halts tools, and is put right once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tgp_contract::{
    ChronicleEvent, Code, Decision, EventActor, Plan, PlanStep, RelativePath, ToolCaller, Visibility,
};
use tgp_guardian::{
    Assertion, Delegator, GUARDIAN_CHRONICLE, Guardian, GuardianParts, Invariants, PlanOutcome, ReconcileEdit,
};
use tgp_relay_fakes::Question;
use tokio::task::JoinSet;

use super::{Case, Running};
use crate::conversation::{Counted, context};
use crate::fault::{Expecting, Fault, holds, same};
use crate::real;
use crate::world::World;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "t3.plan-denied",
        title: "a plan that removes what the graph knows to be used is denied",
        run: plan_denied,
    },
    Case {
        id: "t3.bullet-wound",
        title: "a contradiction between chronicle and graph is EHALT, and no tool runs",
        run: bullet_wound,
    },
    Case { id: "t3.reconcile", title: "a reconciliation is an event beside its file", run: reconcile },
    Case {
        id: "t3.reconcile-once",
        title: "the same reconciliation by many at once is one event",
        run: reconcile_once,
    },
    Case { id: "t3.veto", title: "after a veto no tool is called and no byte changes", run: veto },
];

/// Events that are read of a chronicle's end: more than a case writes.
const MOST: usize = 100;
/// A day, from which the clocks of the Guardians count seconds.
const DAY: &str = "2026-01-01";

/// A project of three files that the graph has read.
async fn project(world: &World) -> Result<(), Fault> {
    world.workspace.write("src/important.ts", "export const important = 1;\n")?;
    world
        .workspace
        .write("src/user.ts", "import { important } from './important';\nexport const user = important;\n")?;
    world.workspace.write("src/modified.ts", "export const modified = 1;\n")?;
    let head = world.workspace.commit("project").await?;
    world.graph()?.ingest(&head).await.expecting("an ingest of the head")?;
    Ok(())
}

/// A Guardian whose clock begins at this second of the day.
fn guardian(world: &World, second: u64) -> Result<Arc<Guardian>, Fault> {
    let clock = AtomicU64::new(second);
    let files = real::disk(world.workspace.project()).expecting("a project that can be opened")?;
    Ok(Arc::new(Guardian::new(GuardianParts {
        graph: world.graph()?,
        chronicle: world.chronicle()?,
        invariants: Arc::new(|| Ok(Invariants::default())),
        clock: Arc::new(move || stamp(clock.fetch_add(1, Ordering::SeqCst))),
        files,
    })))
}

fn stamp(second: u64) -> String {
    format!("{DAY}T{:02}:{:02}:{:02}Z", second / 3600 % 24, second / 60 % 60, second % 60)
}

fn path(text: &str) -> Result<RelativePath, Fault> {
    RelativePath::new(text).map_err(|error| Fault::new("a path of the project", error.to_string()))
}

fn plan(steps: Value) -> Result<Plan, Fault> {
    let steps: Vec<PlanStep> =
        serde_json::from_value(steps).map_err(|error| Fault::new("a plan", error.to_string()))?;
    Ok(Plan { id: "plan-123".to_owned(), steps })
}

fn edit(file: &str) -> ReconcileEdit {
    ReconcileEdit { file_path: file.to_owned(), diff_ref: "abc123".to_owned(), invariant: None, reason: None }
}

/// The types of a chronicle's events.
async fn kinds(world: &World, file: &str) -> Result<Vec<String>, Fault> {
    let events =
        world.chronicle()?.tail(&path(file)?, MOST).await.expecting("a chronicle that can be read")?;
    Ok(events.into_iter().map(|event| event.kind).collect())
}

fn plan_denied(world: &World) -> Running<'_> {
    Box::pin(async move {
        project(world).await?;
        let guardian = guardian(world, 0)?;
        let delete = plan(json!([{ "type": "DELETE_FILE", "filePath": "src/important.ts" }]))?;
        let review = guardian
            .review_plan(&delete, &Visibility::everything())
            .await
            .expecting("a review of the plan")?;
        let Decision::Deny { reason } = &review.decision else {
            return Err(Fault::new(
                "a plan that deletes an imported file to be denied",
                format!("{review:?}"),
            ));
        };
        holds(reason.contains("exists in graph"), "a reason that says that it exists in graph", reason)?;
        holds(reason.contains("src/user.ts"), "a reason that names src/user.ts, which imports it", reason)?;
        // What nothing objects to is approved.
        let create =
            plan(json!([{ "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "export {};\n" }]))?;
        let review = guardian
            .review_plan(&create, &Visibility::everything())
            .await
            .expecting("a review of the plan")?;
        holds(review.is_approved(), "a plan that only adds a file to be approved", &review)
    })
}

fn bullet_wound(world: &World) -> Running<'_> {
    Box::pin(async move {
        project(world).await?;
        let chronicle = world.chronicle()?;
        let ghost = ChronicleEvent {
            event_id: None,
            kind: "FILE_CREATED".to_owned(),
            timestamp: stamp(0),
            actor: EventActor { agent: "relay".to_owned(), id: "t3".to_owned() },
            file_path: Some("src/ghost.ts".to_owned()),
            fields: serde_json::Map::new(),
        };
        chronicle.append(&path("src/ghost.ts.sage")?, ghost).await.expecting("an event to be kept")?;
        let guardian = guardian(world, 10)?;
        let before = world.workspace.picture()?;
        // The chronicle says that a file was made, and the graph has none: nothing is carried out.
        let create =
            plan(json!([{ "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "export {};\n" }]))?;
        let tools = Arc::new(Counted::new(world.tools()?));
        let delegator = Delegator::new(Arc::clone(&guardian), tools.clone());
        let report = delegator
            .execute(&create, context(), &Visibility::everything(), Box::pin(std::future::pending()))
            .await
            .expecting("a report about the plan")?;
        same("the outcome of a plan on a contradiction", &report.outcome, &PlanOutcome::Halted)?;
        let code = report.error.as_ref().map(|error| error.code);
        same("its code", &code, &Some(Code::Halt))?;
        same("the calls that were made", &tools.made(), &Vec::new())?;
        let mut after = world.workspace.picture()?;
        // The halt itself is written down, where chronicles are files.
        after.remove(GUARDIAN_CHRONICLE);
        same("the files afterwards", &after.keys().collect::<Vec<_>>(), &before.keys().collect::<Vec<_>>())?;
        same(
            "the Guardian's own events",
            &kinds(world, GUARDIAN_CHRONICLE).await?,
            &vec!["HALT".to_owned()],
        )?;
        // What is there is accepted, and work continues.
        let done = guardian.reconcile(&edit("src/ghost.ts")).await.expecting("a reconciliation")?;
        holds(done.appended && done.lifted, "the halt to be lifted by a reconciliation", &done)?;
        guardian.bullet_wound_check(&[]).await.expecting("no contradiction after it was reconciled")?;
        // An assertion that does not hold halts as well, and is named.
        let mut missing = Assertion::new(Question::FileByName.text(), true);
        missing.params.insert("name".to_owned(), json!("critical.ts"));
        let checked = guardian.bullet_wound_check(std::slice::from_ref(&missing)).await;
        let Err(error) = checked else {
            return Err(Fault::new("EHALT for an assertion that does not hold", "that it holds"));
        };
        same("its code", &error.code, &Code::Halt)?;
        let invariant = error.details.get("invariant").and_then(Value::as_str).unwrap_or_default();
        same("the invariant that is named", invariant, missing.cypher.as_str())
    })
}

fn reconcile(world: &World) -> Running<'_> {
    Box::pin(async move {
        project(world).await?;
        let guardian = guardian(world, 0)?;
        let done = guardian.reconcile(&edit("src/modified.ts")).await.expecting("a reconciliation")?;
        holds(done.ok && done.appended, "an event that was appended", &done)?;
        let file = path("src/modified.ts.sage")?;
        let events = world.chronicle()?.tail(&file, MOST).await.expecting("a chronicle that can be read")?;
        let [event] = events.as_slice() else {
            return Err(Fault::new("one event beside src/modified.ts", format!("{events:?}")));
        };
        let event = serde_json::to_value(event).unwrap_or_default();
        for (name, value) in [
            ("type", json!("RECONCILIATION")),
            ("filePath", json!("src/modified.ts")),
            ("diffRef", json!("abc123")),
            ("actor", json!({ "agent": "guardian", "id": "reconciler" })),
            ("eventId", json!(done.event_id)),
        ] {
            same(&format!("`{name}` of the event"), event.get(name).unwrap_or(&Value::Null), &value)?;
        }
        let files = world.chronicle()?.files().await.expecting("a list of chronicles")?;
        holds(files.contains(&file), "the chronicle to be listed", &files)
    })
}

fn reconcile_once(world: &World) -> Running<'_> {
    Box::pin(async move {
        project(world).await?;
        let mut tasks = JoinSet::new();
        for second in [0, 3_600, 7_200, 10_800] {
            let guardian = guardian(world, second)?;
            for spelling in ["src/modified.ts", "./src/modified.ts", "src/modified.ts"] {
                let guardian = Arc::clone(&guardian);
                tasks.spawn(async move { guardian.reconcile(&edit(spelling)).await });
            }
        }
        let (mut appended, mut ids) = (0, std::collections::BTreeSet::new());
        while let Some(done) = tasks.join_next().await {
            let done = done.map_err(|error| Fault::new("a reconciliation that ends", error.to_string()))?;
            let done = done.expecting("a reconciliation")?;
            appended += usize::from(done.appended);
            ids.insert(done.event_id);
        }
        same("how many of twelve say that they have appended", &appended, &1)?;
        same("how many ids the event has", &ids.len(), &1)?;
        let expected = vec!["RECONCILIATION".to_owned()];
        same("the events beside the file", &kinds(world, "src/modified.ts.sage").await?, &expected)?;
        let again = guardian(world, 20_000)?
            .reconcile(&edit("src/modified.ts"))
            .await
            .expecting("a reconciliation")?;
        holds(!again.appended, "nothing to be appended once more", &again)?;
        same("the events beside the file", &kinds(world, "src/modified.ts.sage").await?, &expected)
    })
}

fn veto(world: &World) -> Running<'_> {
    Box::pin(async move {
        project(world).await?;
        let guardian = guardian(world, 0)?;
        let tools = Arc::new(Counted::new(world.tools()?));
        let delegator = Delegator::new(guardian, tools.clone() as Arc<dyn ToolCaller>);
        let never = || Box::pin(std::future::pending());
        let before = world.workspace.picture()?;
        for last in [
            json!({ "type": "DELETE_FILE", "filePath": "src/important.ts" }),
            json!({ "type": "LAUNCH" }),
            json!({ "type": "WRITE_FILE", "filePath": "../outside", "content": "" }),
        ] {
            let steps = json!([
                { "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "export {};\n" },
                { "type": "RUN_COMMAND", "command": "touch x" },
                last,
            ]);
            let report =
                delegator.execute(&plan(steps)?, context(), &Visibility::everything(), never()).await;
            let report = report.expecting("a report about the plan")?;
            same("the outcome of a plan that is denied", &report.outcome, &PlanOutcome::Denied)?;
            same("the calls that were made", &tools.made(), &Vec::new())?;
            holds(world.workspace.picture()? == before, "not one byte to change", "a file that has changed")?;
        }
        // The same hands do carry out what was approved, so that the silence above means something.
        let steps = json!([{ "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "export {};\n" }]);
        let report = delegator.execute(&plan(steps)?, context(), &Visibility::everything(), never()).await;
        let report = report.expecting("a report about the plan")?;
        holds(report.outcome == PlanOutcome::Completed, "an approved plan to be completed", &report)?;
        same("the calls that were made", &tools.made(), &vec!["fs_write".to_owned()])?;
        same("the new file", &world.workspace.read("src/new.ts"), &Some("export {};\n".to_owned()))
    })
}
