//! What a reviewer has found in the executor, each fault as a test that names it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_aql::{
    Budget, ExpressionForm, Input, JournalLine, Kind, QueryPlan, QueryType, RunOptions, RunReport, Step,
};
use tgp_contract::{AgentFailure, AgentResult, AgentTask, Code, Usage};

use crate::execute_plans::{
    With, agent, empty, expr, field, place, plan, query, read, reference, step, tool, value,
};
use crate::execute_world::{Fake, Takes, go, options, ports, reply, said, watch};

fn write(name: &str) -> Step {
    tool(name, "fs_write", empty(), &[])
}

fn insert(name: &str) -> Step {
    step(name, Kind::Sql { sql: "insert into n(w) values (1)".into(), params: empty() }, &[])
}

fn kinds(lines: &[JournalLine]) -> Vec<String> {
    let kind = |line: &JournalLine| serde_json::to_value(line).unwrap()["type"].as_str().unwrap().to_owned();
    lines.iter().map(kind).collect()
}

async fn go_on(fake: &Arc<Fake>, plan: &QueryPlan, history: Vec<JournalLine>, again: &[&str]) -> RunReport {
    let again = again.iter().map(|&path| path.to_owned()).collect();
    watch(fake, plan, RunOptions { history, again, ..options() }).await.0
}

#[tokio::test(start_paused = true)]
async fn a1_the_journal_knows_of_an_effect_before_it_happens() {
    let fake = Arc::new(Fake::echo());
    let both = plan(vec![read("r", empty(), &[]), Step { needs: vec![0], ..write("w") }], reference(1));
    go(&fake, &both).await;
    assert_eq!(kinds(&fake.lines()), ["begun", "done", "begun", "effecting", "done"]);
    // When that line cannot be kept, nothing happens.
    let fake = Arc::new(Fake::echo());
    *fake.journal_room.lock().unwrap() = 3;
    let error = go(&fake, &both).await.error.unwrap();
    assert_eq!((error.message.as_str(), error.details["step"].as_str()), ("the disk is full", Some("w")));
    assert_eq!((fake.ids().len(), fake.effects.lock().unwrap().len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a1_a_call_that_was_given_up_takes_no_effect_later() {
    let slow = |effect| {
        Arc::new(Fake::new(move |call| match call.id.as_str() {
            "w#1" => reply(json!(1)).after(3_000_000).stubborn().taking(effect),
            _ => reply(json!(2)),
        }))
    };
    let patient = plan(vec![write("w").timeout(100).retry(1)], reference(0));
    let fake = slow(Takes::AtTheEnd);
    let report = go(&fake, &patient).await;
    assert_eq!((report.outputs, report.error), (json!(2), None));
    assert_eq!(*fake.effects.lock().unwrap(), ["w#2"]);
    let before = fake.lines();
    let witnesses = fake.witnesses.lock().unwrap().clone();
    assert_eq!((witnesses[0]().is_err(), witnesses[1]().is_ok()), (true, true));
    assert_eq!(fake.lines(), before);
    // One that had begun to take effect is not made twice, now or later.
    let fake = slow(Takes::AtOnce);
    let report = go(&fake, &patient).await;
    assert_eq!(report.error.unwrap().details["outcome"], "unknown");
    let report = go_on(&fake, &patient, fake.lines(), &[]).await;
    assert_eq!((report.error.unwrap().code, fake.ids().len()), (Code::Integrity, 1));
}

/// An agent that wants so many calls and turns of so many tokens, and says that all is well whatever comes.
fn hungry(task: &AgentTask, calls: u64, tokens: u64) -> Result<AgentResult, AgentFailure> {
    let allowance = task.allowance.as_ref().unwrap();
    let turned = allowance.begin_turn().map(|()| allowance.add_tokens(tokens));
    let made = (0..calls).filter(|_| allowance.take_call().is_ok()).count() as u64;
    let usage =
        Usage { input_tokens: if turned.is_ok() { tokens } else { 0 }, output_tokens: 0, ..Usage::default() };
    Ok(AgentResult { answer: "all is well".to_owned(), steps: 1, calls: made, usage, files: Vec::new() })
}

fn crowd(budget: Budget) -> QueryPlan {
    let agents = ["a", "b", "c", "d"].map(|name| agent(name, value(json!(name)), &[]).skip());
    let mut crowd = plan(agents.into(), reference(0));
    crowd.name = "Crowd".to_owned();
    crowd.budget = budget;
    crowd
}

#[tokio::test(start_paused = true)]
async fn a4_agents_beside_each_other_share_one_budget() {
    let fake = Arc::new(Fake::echo().with_agent(|task, _| hungry(task, 3, 10)));
    let report = go(&fake, &crowd(Budget { calls: Some(3), ..Budget::default() })).await;
    let error = report.error.unwrap();
    assert_eq!((error.code, error.details["limit"].clone(), report.calls), (Code::Budget, json!(3), 3));
    assert!(error.message.contains("`Crowd`"), "{error}");
    assert!(error.help_of().unwrap().starts_with("begin a new run with a larger `budget(calls: …)`"));
    // No turn begins without tokens; only those that run already may go over the bound.
    let fake = Arc::new(Fake::echo().with_agent(|task, _| hungry(task, 0, 100)));
    let report = go(&fake, &crowd(Budget { tokens: Some(150), ..Budget::default() })).await;
    assert_eq!((report.error.unwrap().details["budget"].clone(), report.tokens), (json!("tokens"), 200));
    // What is enough is enough.
    let report = go(&fake, &crowd(Budget { tokens: Some(400), ..Budget::default() })).await;
    assert_eq!((report.error, report.tokens), (None, 400));
}

#[tokio::test(start_paused = true)]
async fn a5_a_refused_call_ends_the_run_whatever_the_agent_says() {
    let fake = Arc::new(Fake::echo().with_agent(|task, _| hungry(task, 1, 10)));
    let inside = |name: &str| {
        let steps = vec![read("f", empty(), &[]), agent("a", value(json!("x")), &[0]).skip()];
        let mut inside = plan(steps, reference(1));
        (inside.name, inside.budget.calls) = (name.to_owned(), Some(1));
        inside
    };
    let report = go(&fake, &inside("B")).await;
    let error = report.error.unwrap();
    assert_eq!((error.code, report.step.as_deref(), report.calls), (Code::Budget, Some("a"), 1));
    assert!(error.message.starts_with("the budget of `B` is used up: 1 of 1 calls"), "{error}");
    // It is counted as it was, and stays used up.
    assert!(
        fake.lines().iter().any(
            |line| matches!(line, JournalLine::Failed { step, tokens: 10, calls: 0, .. } if step == "a")
        )
    );
    let report = go_on(&fake, &inside("B"), fake.lines(), &[]).await;
    assert_eq!((report.error.unwrap().code, report.calls), (Code::Budget, 1));
    // A budget of a query inside ends that one alone.
    let outer = plan(vec![query("q", inside("Inner"), vec![], &[]).skip()], reference(0));
    let report = go(&fake, &outer).await;
    assert_eq!((report.outputs, report.error, report.calls), (json!(null), None, 1));
}

#[tokio::test(start_paused = true)]
async fn a6_a_step_that_was_carried_out_is_not_made_again_for_a_better_answer() {
    let large = json!("x".repeat(9 << 20));
    for (answer, is_misfit) in [(json!({ "rows": [] }), true), (large, false)] {
        let fake = Arc::new(Fake::new(move |_| reply(answer.clone())));
        let typed = insert("a").retry(2).typed(QueryType::Int);
        let plan = plan(vec![typed.clone()], reference(0));
        let report = go(&fake, &plan).await;
        let error = report.error.unwrap();
        assert_eq!((error.code, error.details.contains_key("mismatch")), (Code::Validation, is_misfit));
        assert!(error.help_of().unwrap().contains("--again a"), "{error}");
        let history = fake.lines();
        let again = go_on(&fake, &plan, history.clone(), &[]).await;
        assert_eq!((again.error, again.step.as_deref()), (Some(error), Some("a")));
        assert_eq!(*fake.effects.lock().unwrap(), ["a#1"]);
        // Its `on_error` applies then as well, and a run that allows the repetition gets it.
        let excused = crate::execute_plans::plan(vec![typed.skip()], reference(0));
        assert_eq!(go_on(&fake, &excused, history.clone(), &[]).await.error, None);
        go_on(&fake, &plan, history, &["a"]).await;
        assert_eq!(*fake.effects.lock().unwrap(), ["a#1", "a#2"]);
    }
    // The same of an agent that has changed something; one that has only read starts again.
    for (tool, tasks) in [("fs_write", 3), ("fs_read", 6)] {
        let fake = Arc::new(Fake::echo().with_agent(|_, _| Ok(said("no number"))));
        let mut typed = agent("a", value(json!("x")), &[]).retry(1).typed(QueryType::Int);
        if let Kind::Agent(agent) = &mut typed.kind {
            agent.tools = vec![tool.to_owned()];
        }
        go(&fake, &plan(vec![typed], reference(0))).await;
        assert_eq!(fake.tasks.lock().unwrap().len(), tasks, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a9_another_model_has_other_words() {
    let fake = Arc::new(Fake::echo());
    let cached = plan(vec![agent("a", value(json!("x")), &[]).cached()], reference(0));
    for (model, expected) in [("m1", 0), ("m1", 1), ("m2", 0), ("m1", 1)] {
        *fake.model.lock().unwrap() = Some(model.to_owned());
        assert_eq!(go(&fake, &cached).await.cached, expected, "{model}");
    }
    *fake.model.lock().unwrap() = None;
    assert_eq!((go(&fake, &cached).await.cached, fake.tasks.lock().unwrap().len()), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn a10_what_has_changed_something_is_not_cached() {
    let exec = || step("x", Kind::Exec { path: "t.ts".into(), arguments: empty() }, &[]).cached();
    for (effect, cached) in [(Takes::AtTheEnd, 0), (Takes::Never, 1)] {
        let fake = Arc::new(Fake::new(move |_| reply(json!({ "result": 1 })).taking(effect)));
        go(&fake, &plan(vec![exec()], reference(0))).await;
        assert_eq!(go(&fake, &plan(vec![exec()], reference(0))).await.cached, cached);
    }
    let changing = Arc::new(Fake::echo().with_agent(|_, _| {
        let path = tgp_contract::RelativePath::new("a.txt").unwrap();
        let file = tgp_contract::FileEffect::new(tgp_contract::Root::Project, path, None, None);
        Ok(AgentResult { files: vec![file], ..said("done") })
    }));
    let cached = plan(vec![agent("a", value(json!("x")), &[]).cached()], reference(0));
    go(&changing, &cached).await;
    assert_eq!(go(&changing, &cached).await.cached, 0);
}

#[tokio::test(start_paused = true)]
async fn b5_time_that_was_used_before_counts() {
    let fake = Arc::new(Fake::new(|_| reply(json!(1)).after(1_200)));
    let steps = vec![read("a", empty(), &[]), read("b", empty(), &[0]), read("c", empty(), &[1])];
    let mut slow = plan(steps, reference(2));
    slow.budget.time = Some(Duration::from_secs(2));
    let report = go(&fake, &slow).await;
    assert_eq!((report.error.unwrap().details["budget"].clone(), report.duration_ms), (json!("time"), 2_000));
    let history = fake.lines();
    assert_eq!(history.last(), Some(&JournalLine::Worked { ms: 2_000 }));
    let report = go_on(&fake, &slow, history.clone(), &[]).await;
    assert_eq!(report.duration_ms, 0);
    assert!(
        report.error.unwrap().help_of().unwrap().starts_with("begin a new run with a larger `budget(time")
    );
    // For a killed run, the line of the last finished step has it.
    let killed: Vec<JournalLine> = history.into_iter().take(2).collect();
    assert!(matches!(killed[1], JournalLine::Done { worked_ms: 1_200, .. }));
    assert_eq!(go_on(&fake, &slow, killed, &[]).await.duration_ms, 800);
}

fn given(ty: QueryType, default: Option<Value>) -> Input {
    Input { name: "i".to_owned(), ty, default, place: place(1) }
}

async fn with_input(
    input: Input,
    value: Option<Value>,
    expression: tgp_aql::Expression,
) -> Result<Value, String> {
    let mut asked = plan(Vec::new(), expression);
    asked.inputs = vec![input];
    let inputs = value.map(|value| ("i".to_owned(), value)).into_iter().collect();
    let (sender, _) = tokio::sync::mpsc::channel(1);
    let options = RunOptions { inputs, ..options() };
    let fake = Arc::new(Fake::echo());
    let ran = tgp_aql::run(&asked, options, &ports(&fake), sender, crate::execute_world::never()).await;
    match ran {
        Ok(RunReport { error: None, outputs, .. }) => Ok(outputs),
        Ok(RunReport { error: Some(error), .. }) | Err(error) => Err(error.message),
    }
}

#[tokio::test(start_paused = true)]
async fn b11_what_is_missing_in_any_is_null() {
    let or_none = || {
        let field = field(expr(ExpressionForm::Input(0)), "x");
        expr(ExpressionForm::Or(Box::new(field), Box::new(value(json!("none")))))
    };
    for (object, expected) in [
        (json!({}), Ok(json!("none"))),
        (json!(null), Ok(json!("none"))),
        (json!({ "x": 1 }), Ok(json!(1))),
        (json!(7), Err("expected an object with the field `x`, found the number 7".to_owned())),
    ] {
        assert_eq!(with_input(given(QueryType::Any, None), Some(object), or_none()).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn b12_an_int_is_an_integer_wherever_it_comes_from() {
    let text = || expr(ExpressionForm::Text(vec![expr(ExpressionForm::Input(0))]));
    let big: Value = serde_json::from_str("9223372036854775808").unwrap();
    let cases = [
        (json!(1.0), Ok("1")),
        (json!(1e3), Ok("1000")),
        (json!(-9.223_372_036_854_776e18), Ok("-9223372036854775808")),
        (json!(i64::MAX), Ok("9223372036854775807")),
        (json!(1.5), Err(())),
        (big, Err(())),
        (json!(9.223_372_036_854_776e18), Err(())),
        (json!(1e300), Err(())),
    ];
    for (value, expected) in cases {
        let found = with_input(given(QueryType::Int, None), Some(value.clone()), text()).await;
        assert_eq!(found.map_err(drop), expected.map(Value::from), "{value}");
    }
    assert_eq!(with_input(given(QueryType::Int, Some(json!(2.0))), None, text()).await, Ok(json!("2")));
    let maybe = QueryType::OneOf(vec![QueryType::List(Box::new(QueryType::Int)), QueryType::Null]);
    assert_eq!(maybe.admit(json!([1.0, 2])).unwrap().to_string(), "[1,2]");
    assert_eq!(QueryType::Float.admit(json!(1.0)).unwrap().to_string(), "1.0");
    // Answers of tools and agents enter as well.
    let fake = Arc::new(Fake::new(|_| reply(json!(3.0))).with_agent(|_, _| Ok(said("4.0"))));
    let steps = vec![
        read("t", empty(), &[]).typed(QueryType::Int),
        agent("a", value(json!("x")), &[]).typed(QueryType::Int),
    ];
    let all = crate::execute_plans::list(vec![reference(0), reference(1)]);
    assert_eq!(go(&fake, &plan(steps, all)).await.outputs.to_string(), "[3,4]");
}
