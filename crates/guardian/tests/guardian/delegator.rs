//! Plans that are carried out, and plans that are not.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_contract::{Cancellation, Code, ToolError, Visibility};
use tgp_fs::DiskFs;
use tgp_guardian::{Assertion, Delegator, PlanOutcome, PlanReport, StepStatus};

use crate::world::{CountingTools, World, context, path, plan};

fn never() -> Cancellation<'static> {
    Box::pin(std::future::pending())
}

fn project(folder: &std::path::Path) -> World {
    let disk = Arc::new(DiskFs::open(folder).unwrap());
    World::on(
        disk,
        &[
            ("src/a.ts", "import src/b.ts\nfn a\n"),
            ("src/b.ts", "fn b\nfn c\nfn d\nfn e\nfn f"),
            ("src/c.ts", "fn c\n"),
        ],
    )
}

async fn execute(world: &World, tools: CountingTools, steps: Value) -> (PlanReport, Arc<CountingTools>) {
    let tools = Arc::new(tools);
    let delegator = Delegator::new(Arc::clone(&world.guardian), tools.clone());
    (delegator.execute(&plan(steps), context(), &Visibility::everything(), never()).await.unwrap(), tools)
}

fn statuses(report: &PlanReport) -> Vec<StepStatus> {
    report.steps.iter().map(|step| step.status).collect()
}

/// Every file of a folder with its bytes and the time it was last written.
fn picture(folder: &std::path::Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let written = entry.metadata().unwrap().modified().unwrap();
                files.push((
                    entry.path().display().to_string(),
                    std::fs::read(entry.path()).unwrap(),
                    written,
                ));
            }
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn t3_stretch_after_a_veto_not_one_call_is_made_and_not_one_byte_changes() {
    let folder = tempfile::tempdir().unwrap();
    let world = project(folder.path());
    let before = picture(folder.path());
    for last in [
        json!({ "type": "DELETE_FILE", "filePath": "src/b.ts" }),
        json!({ "type": "LAUNCH" }),
        json!({ "type": "WRITE_FILE", "filePath": "../outside", "content": "" }),
    ] {
        let steps = json!([
            { "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "fn new\n" },
            { "type": "RUN_COMMAND", "command": "touch x" },
            last,
        ]);
        let (report, tools) = execute(&world, CountingTools::new(&world), steps).await;
        assert_eq!(report.outcome, PlanOutcome::Denied);
        assert_eq!(report.error.unwrap().code, Code::Policy);
        assert_eq!(tools.names(), Vec::<String>::new());
        assert_eq!(picture(folder.path()), before);
    }
    assert!(world.chronicle.files.lock().unwrap().is_empty());
}

#[tokio::test]
async fn t3_stretch_a_bullet_wound_prevents_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let world = project(folder.path());
    let before = picture(folder.path());
    world.event("src/gone.ts.sage", "FILE_CREATED", None, json!({})).await;
    let steps = json!([{ "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "" }]);
    let (report, tools) = execute(&world, CountingTools::new(&world), steps.clone()).await;
    assert_eq!((report.outcome, report.error.unwrap().code), (PlanOutcome::Halted, Code::Halt));
    assert_eq!((tools.names().len(), picture(folder.path())), (0, before));
    assert!(world.guardian.halted().await.unwrap().is_some());
    // A halt whose assertion is not repeated is still one.
    world.chronicle.files.lock().unwrap().clear();
    world
        .guardian
        .bullet_wound_check(&[Assertion::new("MATCH (s:Tool) RETURN s.name AS name", true)])
        .await
        .unwrap_err();
    let (report, tools) = execute(&world, CountingTools::new(&world), steps).await;
    assert_eq!((report.outcome, tools.names().len()), (PlanOutcome::Halted, 0));
}

#[tokio::test]
async fn an_approved_plan_is_carried_out_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let world = project(folder.path());
    let steps = json!([
        { "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "fn new\n" },
        { "type": "EDIT_FILE", "filePath": "src/new.ts", "oldText": "new", "newText": "newer" },
        { "type": "RENAME_FILE", "filePath": "src/b.ts", "to": "src/lib/b.ts" },
        { "type": "EDIT_FILE", "filePath": "src/a.ts", "search": "src/b.ts", "replace": "src/lib/b.ts" },
        { "type": "DELETE_FILE", "filePath": "src/c.ts", "acknowledged": true },
        { "type": "WRITE_FILE", "filePath": "src/a.ts", "content": "import src/lib/b.ts\n" },
        { "type": "RUN_COMMAND", "command": "make", "timeout_ms": 5 },
        { "type": "RUN_TESTS", "only": "b" },
        { "type": "CALL_TOOL", "tool": "search", "arguments": { "query": "x" } },
    ]);
    let (report, tools) = execute(&world, CountingTools::new(&world), steps).await;
    assert_eq!(report.outcome, PlanOutcome::Completed, "{report:?}");
    assert_eq!(statuses(&report), [StepStatus::Done; 9]);
    let text = |file: &str| world.files.read_text(&path(file)).unwrap();
    assert_eq!(text("src/new.ts"), "fn newer\n");
    assert_eq!(text("src/lib/b.ts"), "fn b\nfn c\nfn d\nfn e\nfn f");
    assert_eq!(text("src/a.ts"), "import src/lib/b.ts\n");
    assert_eq!(picture(folder.path()).len(), 3);
    let rename = ["fs_read", "fs_read", "fs_read", "fs_write", "fs_delete"];
    let mut wanted = vec!["fs_write", "fs_edit"];
    wanted.extend(rename);
    wanted.extend(["fs_edit", "fs_delete", "fs_write", "shell_exec", "test_run", "search"]);
    assert_eq!(tools.names(), wanted);
    let made = tools.made.lock().unwrap();
    let arguments = |tool: &str| &made.iter().find(|call| call.tool == tool).unwrap().arguments;
    assert_eq!(arguments("shell_exec"), &json!({ "command": "make", "timeout_ms": 5 }));
    assert_eq!(arguments("test_run"), &json!({ "only": "b" }));
    assert_eq!(made[2].id, "plan-123-3-1");
    assert_eq!(report.steps[2].calls.len(), 5);
}

#[tokio::test]
async fn the_first_failure_ends_a_plan() {
    for (tool, code, outcome) in [
        ("shell_exec", Code::Runtime, PlanOutcome::Failed),
        ("shell_exec", Code::Halt, PlanOutcome::Halted),
        ("shell_exec", Code::Integrity, PlanOutcome::Halted),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let world = project(folder.path());
        let mut tools = CountingTools::new(&world);
        tools.failures.insert(tool.to_owned(), ToolError::new(code, "no"));
        let steps = json!([
            { "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "" },
            { "type": "RUN_COMMAND", "command": "make" },
            { "type": "CREATE_FILE", "filePath": "src/newer.ts", "content": "" },
        ]);
        let (report, tools) = execute(&world, tools, steps).await;
        assert_eq!(report.outcome, outcome);
        assert_eq!(statuses(&report), [StepStatus::Done, StepStatus::Failed, StepStatus::NotRun]);
        assert_eq!(report.steps[1].error.as_ref().unwrap().code, code);
        assert_eq!(tools.names(), ["fs_write", "shell_exec"]);
        assert!(!folder.path().join("src/newer.ts").exists());
    }
}

/// Changes a file behind the Delegator's back when a command runs.
#[tokio::test]
async fn a_file_that_is_not_what_was_reviewed_is_left_alone() {
    for last in [
        json!({ "type": "WRITE_FILE", "filePath": "src/c.ts", "content": "mine" }),
        json!({ "type": "EDIT_FILE", "filePath": "src/c.ts", "oldText": "fn c", "newText": "fn x" }),
        json!({ "type": "DELETE_FILE", "filePath": "src/c.ts", "acknowledged": true }),
        json!({ "type": "RENAME_FILE", "filePath": "src/c.ts", "to": "src/x.ts" }),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let world = project(folder.path());
        let tools = Arc::new(CountingTools::new(&world));
        let meddler = Arc::new(Meddler { tools: Arc::clone(&tools), file: folder.path().join("src/c.ts") });
        let delegator = Delegator::new(Arc::clone(&world.guardian), meddler);
        let steps = plan(json!([{ "type": "RUN_COMMAND", "command": "meddle" }, last]));
        let report = delegator.execute(&steps, context(), &Visibility::everything(), never()).await.unwrap();
        assert_eq!(report.outcome, PlanOutcome::Failed, "{report:?}");
        assert_eq!(report.error.unwrap().code, Code::Conflict);
        assert_eq!(std::fs::read_to_string(folder.path().join("src/c.ts")).unwrap(), "theirs fn c");
        assert!(!folder.path().join("src/x.ts").exists());
    }
}

struct Meddler {
    tools: Arc<CountingTools>,
    file: std::path::PathBuf,
}

#[async_trait::async_trait]
impl tgp_contract::ToolCaller for Meddler {
    fn definitions(&self) -> Vec<tgp_contract::ToolDefinition> {
        Vec::new()
    }

    async fn call(
        &self,
        call: tgp_contract::ToolCall,
        context: tgp_contract::CallContext,
        cancelled: Cancellation<'_>,
    ) -> tgp_contract::CallRecord {
        if call.tool == "shell_exec" {
            std::fs::write(&self.file, "theirs fn c").unwrap();
        }
        self.tools.call(call, context, cancelled).await
    }
}

#[tokio::test]
async fn a_cancelled_plan_stops_before_its_next_step_and_a_dry_run_calls_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let world = project(folder.path());
    let tools = Arc::new(CountingTools::new(&world));
    let delegator = Delegator::new(Arc::clone(&world.guardian), tools.clone());
    let steps = plan(json!([{ "type": "RUN_TESTS" }, { "type": "RUN_TESTS" }]));
    let report = delegator
        .execute(&steps, context(), &Visibility::everything(), Box::pin(std::future::ready(())))
        .await
        .unwrap();
    assert_eq!((report.outcome, tools.names().len()), (PlanOutcome::Cancelled, 0));
    let mut dry = context();
    dry.dry_run = true;
    let report = delegator.execute(&steps, dry.clone(), &Visibility::everything(), never()).await.unwrap();
    assert_eq!((report.outcome, tools.names().len()), (PlanOutcome::Approved, 0));
    world.event("src/gone.ts.sage", "FILE_CREATED", None, json!({})).await;
    let report = delegator.execute(&steps, dry, &Visibility::everything(), never()).await.unwrap();
    assert_eq!((report.outcome, tools.names().len()), (PlanOutcome::Halted, 0));
    assert!(world.chronicle.of(".sage/guardian.sage").is_empty());
}
