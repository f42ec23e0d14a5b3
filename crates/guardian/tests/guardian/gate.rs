//! The Guardian as a gate.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tgp_contract::{
    Access, Actor, ApprovalOrigin, ApprovalReason, CallContext, Change, Code, Effect, ExecutionPath, Gate,
    GateRequest, Root, Stage, Target, ToolCall, ToolDefinition, ToolError, ToolName, Verdict,
};
use tgp_guardian::{Assertion, ChronicleCheck, EXEMPT_TOOLS, GuardianGate};

use crate::world::{World, context, path};

const RULES: &str = "
version: 1
invariants:
  - name: no-web
    query: MATCH (a:File)-[:IMPORTS]->(b:File) WHERE b.path = 'src/web.ts' RETURN a.path AS importer
    expect: none
    message: Nobody imports the web.
  - name: soft
    query: UNWIND $changed AS path WITH path RETURN path
    expect: none
    severity: warning
    message: Only a warning.
";

/// What a call is about to do.
struct Asked<'a> {
    tool: &'a str,
    effect: Effect,
    targets: Vec<Target>,
    proposed: Option<Vec<Change>>,
}

fn target(file: &str, access: Access) -> Target {
    Target::File { root: Root::Project, path: path(file), access }
}

fn write(file: &str) -> Asked<'static> {
    Asked {
        tool: "fs_write",
        effect: Effect::Write,
        targets: vec![target(file, Access::Write)],
        proposed: None,
    }
}

fn content(file: &str, text: &str) -> Asked<'static> {
    let change = Change::Write { path: path(file), content: text.as_bytes().into() };
    Asked { proposed: Some(vec![change]), ..write(file) }
}

async fn with<T>(asked: &Asked<'_>, act: impl AsyncFnOnce(GateRequest<'_>) -> T) -> T {
    let definition = ToolDefinition {
        name: ToolName::new(asked.tool).unwrap(),
        aliases: Vec::new(),
        description: String::new(),
        input_schema: json!({}),
        effect: asked.effect,
        path: ExecutionPath::Fast,
        dry_run: true,
    };
    let call = ToolCall { id: "1".to_owned(), tool: asked.tool.to_owned(), arguments: json!({}) };
    let context = context();
    let request = GateRequest {
        serial: 1,
        call: &call,
        definition: &definition,
        context: &context,
        targets: &asked.targets,
        proposed: asked.proposed.as_deref(),
    };
    act(request).await
}

async fn judge(world: &World, asked: &Asked<'_>) -> Result<String, ToolError> {
    let gate = GuardianGate::new(Arc::clone(&world.guardian), ChronicleCheck::Touched);
    let verdict = with(asked, async |request| match request.proposed {
        None => gate.judge(request).await,
        Some(_) => gate.judge_changes(request).await,
    });
    match verdict.await {
        Verdict::Allow { rule } => Ok(rule),
        Verdict::Ask(_) => panic!("the Guardian asks nobody"),
        Verdict::Deny { error, .. } => Err(error),
    }
}

fn project() -> World {
    World::new(&[("src/a.ts", ""), ("src/web.ts", ""), ("tests/a.ts", "import src/a.ts\n")])
}

#[tokio::test]
async fn where_nothing_is_claimed_and_nothing_must_hold_nothing_is_asked() {
    let world = project();
    let gate = GuardianGate::new(Arc::clone(&world.guardian), ChronicleCheck::Touched);
    assert_eq!((gate.stage(), gate.name()), (Stage::Guardian, "guardian"));
    assert!(judge(&world, &write("src/a.ts")).await.is_ok());
    assert!(judge(&world, &content("src/a.ts", "import src/web.ts\n")).await.is_ok());
    assert!(!with(&write("src/a.ts"), async |request| gate.needs_proposed_files(request).await).await);
    assert_eq!(world.graph.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn t3_stretch_a_halt_in_force_prevents_every_call_but_reads_and_its_remedy() {
    let world = project();
    world.event("src/a.ts.sage", "FILE_DELETED", None, json!({})).await;
    world.guardian.bullet_wound_check(&[]).await.unwrap_err();
    for effect in [Effect::Write, Effect::Execute, Effect::Network] {
        let error = judge(&world, &Asked { tool: "any", effect, targets: Vec::new(), proposed: None }).await;
        let error = error.unwrap_err();
        assert_eq!(error.code, Code::Halt);
        assert_eq!(error.details["invariant"], "chronicle-agrees-with-graph");
        assert_eq!(error.details["file"], "src/a.ts");
        assert!(error.help_of().unwrap().contains("tgp guardian reconcile src/a.ts"), "{error:?}");
    }
    // Nor does it count what a call that is under way would write.
    assert_eq!(judge(&world, &content("src/web.ts", "")).await.unwrap_err().code, Code::Halt);
    let read = Asked { tool: "fs_read", effect: Effect::Read, targets: Vec::new(), proposed: None };
    assert!(judge(&world, &read).await.is_ok());
    assert_eq!(EXEMPT_TOOLS, ["reconcile"]);
}

#[tokio::test]
async fn no_allow_rule_lets_an_agent_end_its_own_halt() {
    let world = project();
    let assertion = Assertion::new("MATCH (f:Symbol) RETURN f.name AS name", true);
    world.guardian.bullet_wound_check(&[assertion]).await.unwrap_err();
    let gate = GuardianGate::new(Arc::clone(&world.guardian), ChronicleCheck::Touched);
    let asked = Asked { tool: "reconcile", effect: Effect::Write, targets: Vec::new(), proposed: None };
    let verdict = async |actor: Actor| {
        with(&asked, async |request| {
            let context = CallContext { actor, ..request.context.clone() };
            gate.judge(GateRequest { context: &context, ..request }).await
        })
        .await
    };
    // It is not a default, so a rule that allows does not override it.
    let Verdict::Ask(ApprovalReason { origin, reason }) = verdict(Actor::Agent("a".to_owned())).await else {
        panic!("not asked")
    };
    assert_eq!(origin, ApprovalOrigin::Rule("guardian/reconcile".to_owned()));
    assert!(reason.contains("end a halt"), "{reason}");
    // What a forged tool calls counts as agreed to, so the user would not be asked.
    let Verdict::Deny { error, .. } = verdict(Actor::Tool(path("tools/x.ts"))).await else {
        panic!("let pass")
    };
    assert_eq!(error.code, Code::Permission);
    assert!(matches!(verdict(Actor::Person("ann".to_owned())).await, Verdict::Allow { .. }));
}

#[tokio::test]
async fn a_contradiction_on_a_target_is_a_halt_for_this_call() {
    let world = project();
    world.event("src/a.ts.sage", "FILE_DELETED", None, json!({})).await;
    world.event(".sage/project.sage", "FILE_CREATED", Some("src/ghost.ts"), json!({})).await;
    for (file, access) in
        [("src/a.ts", Access::Write), ("src/a.ts", Access::Delete), ("src/ghost.ts", Access::Write)]
    {
        let asked = Asked { targets: vec![target(file, access)], ..write(file) };
        let error = judge(&world, &asked).await.unwrap_err();
        assert_eq!((error.code, &error.details["file"]), (Code::Halt, &json!(file)));
    }
    assert!(judge(&world, &write("src/web.ts")).await.is_ok());
    let elsewhere = Target::File { root: Root::Tools, path: path("src/a.ts"), access: Access::Write };
    assert!(judge(&world, &Asked { targets: vec![elsewhere], ..write("src/a.ts") }).await.is_ok());
}

#[tokio::test]
async fn contents_that_break_an_invariant_anew_are_denied_by_name() {
    let world = project();
    world.rules(RULES);
    let gate = GuardianGate::new(Arc::clone(&world.guardian), ChronicleCheck::Touched);
    assert!(with(&write("src/a.ts"), async |request| gate.needs_proposed_files(request).await).await);
    let error = judge(&world, &content("src/a.ts", "import src/web.ts\n")).await.unwrap_err();
    assert_eq!(error.code, Code::Policy);
    assert_eq!(error.details["invariant"], "no-web");
    assert_eq!(error.details["rows"], json!([{ "importer": "src/a.ts" }]));
    assert!(error.message.contains("Nobody imports the web."), "{error}");
    // Warnings allow, and the record says so.
    assert_eq!(
        judge(&world, &content("src/a.ts", "fn a\n")).await.unwrap(),
        "guardian/invariants: warning: soft"
    );
    assert_eq!(judge(&world, &content("src/new.ts", "fn a\n")).await.unwrap(), "guardian/invariants");
    // No more than ten rows of many.
    let changes = (0..30).map(|at| Change::Write {
        path: path(&format!("src/{at}.ts")),
        content: (*b"import src/web.ts").into(),
    });
    let error =
        judge(&world, &Asked { proposed: Some(changes.collect()), ..write("src/0.ts") }).await.unwrap_err();
    assert_eq!(error.details["rows"].as_array().unwrap().len(), 10);
    assert_eq!(error.details["actual"], "30 rows");
}

#[tokio::test]
async fn a_gate_that_fails_denies() {
    let world = project();
    world.rules(RULES);
    *world.graph.failure.lock().unwrap() = Some(ToolError::new(Code::Git, "no repository"));
    assert_eq!(judge(&world, &content("src/a.ts", "")).await.unwrap_err().message, "no repository");
    world.rules("version: 7");
    let gate = GuardianGate::new(Arc::clone(&world.guardian), ChronicleCheck::Touched);
    assert!(with(&write("src/a.ts"), async |request| gate.needs_proposed_files(request).await).await);
    assert_eq!(judge(&world, &content("src/a.ts", "")).await.unwrap_err().code, Code::Config);
    world.chronicle.torn.lock().unwrap().insert(".sage/guardian.sage".to_owned());
    assert_eq!(judge(&world, &write("src/a.ts")).await.unwrap_err().code, Code::Integrity);
}

#[tokio::test]
async fn nobody_else_writes_to_the_guardians_chronicle() {
    let world = project();
    world
        .guardian
        .bullet_wound_check(&[Assertion::new("MATCH (f:File) RETURN f.path AS path", true)])
        .await
        .unwrap();
    for access in [Access::Append, Access::Write, Access::Delete] {
        let asked = Asked { targets: vec![target(".sage/guardian.sage", access)], ..write("x") };
        assert_eq!(judge(&world, &asked).await.unwrap_err().code, Code::Permission);
    }
    let other = Asked { targets: vec![target(".sage/project.sage", Access::Append)], ..write("x") };
    assert!(judge(&world, &other).await.is_ok());
}

#[tokio::test]
async fn whoever_is_asked_sees_who_would_notice() {
    let world = project();
    let gate = GuardianGate::new(Arc::clone(&world.guardian), ChronicleCheck::Touched);
    let reach = async |file: &str| -> Option<Value> {
        with(&write(file), async |request| {
            gate.blast_radius(request, &tgp_contract::Visibility::everything()).await
        })
        .await
    };
    assert_eq!(reach("src/a.ts").await.unwrap()["tests"]["first"], json!(["tests/a.ts"]));
    assert_eq!(reach("src/web.ts").await, None);
    *world.graph.failure.lock().unwrap() = Some(ToolError::new(Code::Git, "no repository"));
    assert_eq!(reach("src/a.ts").await, None);
}
