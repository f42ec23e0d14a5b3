//! Budgets: calls, tokens, time, of the run and of the queries inside it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_aql::{Budget, RunReport};
use tgp_contract::{AgentFailure, Code, ToolError, Usage};

use crate::execute_plans::{With, agent, block, empty, map, plan, query, read, reference, value};
use crate::execute_world::{Fake, go, reply, said};

fn used_up(report: &RunReport) -> (Code, Value, Value, Option<String>) {
    let error = report.error.clone().unwrap();
    let detail = |name: &str| error.details.get(name).cloned().unwrap_or_default();
    (error.code, detail("budget"), detail("limit"), report.step.clone())
}

fn reads(count: usize) -> tgp_aql::Step {
    let body = block(vec![read("x", empty(), &[])], reference(0));
    map("each", value(json!((0..count).collect::<Vec<_>>())), 1, body, &[])
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_and_the_step_that_has_none_left_is_named() {
    let fake = Arc::new(Fake::echo());
    let mut small = plan(vec![reads(5)], reference(0));
    small.budget.calls = Some(3);
    let report = go(&fake, &small).await;
    assert_eq!(used_up(&report), (Code::Budget, json!("calls"), json!(3), Some("each[3].x".to_owned())));
    assert_eq!((report.calls, fake.ids().len()), (3, 3));
    // Nothing excuses that the budget of the run is used up.
    small.body.steps[0] = reads(5).skip();
    assert_eq!(used_up(&go(&fake, &small).await).0, Code::Budget);
    // Without one there are a thousand, and attempts count.
    let report = go(&fake, &plan(vec![reads(1_001)], reference(0))).await;
    assert_eq!(
        used_up(&report),
        (Code::Budget, json!("calls"), json!(1_000), Some("each[1000].x".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn the_calls_and_tokens_of_agents_count_also_when_they_fail() {
    let fake = Arc::new(Fake::echo().with_agent(|_, number| match number {
        1 => Err(AgentFailure {
            usage: Usage { input_tokens: 30, output_tokens: 5, ..Usage::default() },
            calls: 4,
            ..ToolError::new(Code::Runtime, "no").into()
        }),
        _ => Ok(said("ok")),
    }));
    let chain = |budget: Budget| {
        let mut plan = plan(
            vec![
                agent("a", value(json!("x")), &[]).skip(),
                agent("b", value(json!("y")), &[0]),
                agent("c", value(json!("z")), &[1]),
            ],
            reference(2),
        );
        plan.budget = budget;
        plan
    };
    let report = go(&fake, &chain(Budget { tokens: Some(45), ..Budget::default() })).await;
    assert_eq!(used_up(&report), (Code::Budget, json!("tokens"), json!(45), Some("c".to_owned())));
    assert_eq!((report.tokens, report.calls), (45, 6));
    let given: Vec<Option<u64>> = fake.tasks.lock().unwrap().iter().map(|task| task.max_tokens).collect();
    assert_eq!(given, [Some(45), Some(10)]);
}

#[tokio::test(start_paused = true)]
async fn a_correction_is_made_with_what_is_left() {
    let fake = Arc::new(Fake::echo().with_agent(|_, _| Ok(said("no number"))));
    let mut typed =
        plan(vec![agent("a", value(json!("x")), &[]).typed(tgp_aql::QueryType::Int)], reference(0));
    typed.budget.tokens = Some(20);
    let report = go(&fake, &typed).await;
    assert_eq!(report.error.unwrap().code, Code::Budget);
    let given: Vec<Option<u64>> = fake.tasks.lock().unwrap().iter().map(|task| task.max_tokens).collect();
    assert_eq!((given, report.tokens), (vec![Some(20), Some(10)], 20));
}

#[tokio::test(start_paused = true)]
async fn time_ends_a_run_and_an_hour_is_the_default() {
    for (time, expected) in [(Some(Duration::from_secs(5)), 5_000), (None, 3_600_000)] {
        let fake = Arc::new(Fake::new(|_| reply(json!(1)).after(90 * 60 * 1_000)));
        let mut slow = plan(vec![read("a", empty(), &[]).skip()], reference(0));
        slow.budget.time = time;
        let report = go(&fake, &slow).await;
        assert_eq!(used_up(&report), (Code::Budget, json!("time"), json!(expected), None));
        assert_eq!(report.duration_ms, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_query_inside_has_a_budget_of_its_own_besides() {
    let fake = Arc::new(Fake::new(|call| reply(json!(call.id)).after(100)));
    let inner = |budget: Budget| {
        let mut inner = plan(vec![reads(6)], reference(0));
        inner.name = "Inner".to_owned();
        inner.budget = budget;
        inner
    };
    let calls = Budget { calls: Some(2), ..Budget::default() };
    let report = go(&fake, &plan(vec![query("sub", inner(calls), vec![], &[])], reference(0))).await;
    assert_eq!(used_up(&report), (Code::Budget, json!("calls"), json!(2), Some("sub.each[2].x".to_owned())));
    // It is the inner budget alone, so the outer query can do without it.
    let both =
        plan(vec![query("sub", inner(calls), vec![], &[]).skip(), read("next", empty(), &[0])], reference(1));
    assert_eq!(go(&fake, &both).await.outputs, json!("next#1"));
    let time = Budget { time: Some(Duration::from_millis(250)), ..Budget::default() };
    let report = go(
        &fake,
        &plan(vec![query("sub", inner(time), vec![], &[]).or_else(value(json!("late")))], reference(0)),
    )
    .await;
    assert_eq!((report.outputs, report.duration_ms), (json!("late"), 250));
    // The outer budget holds for it too.
    let mut outer = plan(
        vec![query("sub", inner(Budget { calls: Some(50), ..Budget::default() }), vec![], &[]).skip()],
        reference(0),
    );
    outer.budget.calls = Some(4);
    assert_eq!(
        used_up(&go(&fake, &outer).await),
        (Code::Budget, json!("calls"), json!(4), Some("sub.each[4].x".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_query_inside_can_be_narrower_than_the_run() {
    let fake = Arc::new(Fake::new(|_| reply(json!(1)).after(10)));
    let body = block(vec![read("x", empty(), &[]), read("y", empty(), &[])], reference(0));
    let mut inner = plan(vec![map("each", value(json!([1, 2, 3, 4])), 4, body, &[])], reference(0));
    inner.budget.parallel = Some(2);
    let report = go(&fake, &plan(vec![query("sub", inner, vec![], &[])], reference(0))).await;
    assert_eq!((report.error, fake.most_running(), report.calls), (None, 2, 8));
}
