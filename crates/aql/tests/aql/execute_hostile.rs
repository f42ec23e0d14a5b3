//! Values and plans made to do harm: large, deep, many.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_aql::{ExpressionForm, Kind, QueryPlan, QueryType};
use tgp_contract::Code;

use crate::execute_plans::{
    With, agent, block, empty, expr, field, item, list, map, merge, object, outer, plan, query, read,
    reference, step, value,
};
use crate::execute_world::{Fake, go, never, options, ports, reply, said};

/// A megabyte.
const MIB: usize = 1 << 20;

async fn refused(fake: Fake, plan: &QueryPlan) -> (Code, String) {
    let error = go(&Arc::new(fake), plan).await.error.expect("it should have failed");
    assert!(error.help_of().is_some(), "no next step in {error:?}");
    (error.code, error.message)
}

#[tokio::test(start_paused = true)]
async fn a_map_of_thousands_works_and_more_than_the_bound_is_refused() {
    let fake = Arc::new(Fake::new(|call| reply(call.arguments["n"].clone())));
    let body = block(vec![read("x", object([("n", item(0))]), &[])], reference(0));
    let over = |count: usize| {
        let mut plan = plan(
            vec![map("each", value(json!((0..count).collect::<Vec<_>>())), 64, body.clone(), &[])],
            reference(0),
        );
        plan.budget.calls = Some(1_000_000);
        plan.budget.parallel = Some(1_000_000);
        plan
    };
    let report = go(&fake, &over(10_000)).await;
    assert_eq!(report.outputs.as_array().unwrap().len(), 10_000);
    assert_eq!((report.outputs[9_999].clone(), fake.most_running()), (json!(9_999), 64));
    let (code, message) = refused(Fake::echo(), &over(10_001)).await;
    assert_eq!(code, Code::Validation);
    assert!(message.contains("10000") && message.contains("10001"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn maps_inside_maps_hold_only_so_many_items_at_once() {
    let mut innermost = block(vec![merge("n", vec![("n", item(0))], &[])], reference(0));
    for _ in 0..4 {
        innermost = block(
            vec![map("m", value(json!([1, 2, 3, 4, 5, 6, 7])), 64, innermost, &[])],
            expr(ExpressionForm::Length(Box::new(reference(0)))),
        );
    }
    let mut deep = plan(innermost.steps, innermost.value);
    deep.budget.parallel = Some(64);
    assert_eq!(go(&Arc::new(Fake::echo()), &deep).await.outputs, json!(7));
}

#[tokio::test(start_paused = true)]
async fn queries_that_multiply_without_a_call_come_to_an_end() {
    let mut inner = plan(vec![merge("m", vec![("m", value(json!(1)))], &[])], reference(0));
    for _ in 0..20 {
        let inner_step = |name: &str| query(name, inner.clone(), vec![], &[]);
        inner = plan(vec![inner_step("a"), inner_step("b")], value(json!(1)));
    }
    // Two to the power of twenty of them. There is no listener, so that only the run itself takes time.
    let fake = Arc::new(Fake::echo());
    let (sender, _) = tokio::sync::mpsc::channel(1);
    let report = tgp_aql::run(&inner, options(), &ports(&fake), sender, never()).await.unwrap();
    let error = report.error.unwrap();
    assert_eq!((error.code, error.details["limit"].clone()), (Code::Budget, json!(100_000)));
}

#[tokio::test(start_paused = true)]
async fn blocks_inside_blocks_run_as_deep_as_they_may() {
    let nested = |levels: usize| {
        let mut inner = block(vec![read("x", empty(), &[])], reference(0));
        for level in 1..levels {
            let one = match level % 3 {
                0 => map("m", value(json!([1])), 1, inner, &[]),
                1 => {
                    step("w", Kind::When { condition: value(json!(true)), then: inner, otherwise: None }, &[])
                        .skip()
                }
                _ => query("q", plan(inner.steps, inner.value), vec![], &[]),
            };
            inner = block(vec![one], reference(0));
        }
        plan(inner.steps, inner.value)
    };
    let fake = Arc::new(Fake::new(|_| reply(json!(1))));
    assert_eq!(go(&fake, &nested(64)).await.error, None);
    assert_eq!(fake.ids().len(), 1);
    let (sender, _receiver) = tokio::sync::mpsc::channel(9);
    let error = tgp_aql::run(&nested(65), options(), &ports(&fake), sender, never()).await.unwrap_err();
    assert_eq!(error.code, Code::Validation);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_too_large_or_too_deep_are_refused() {
    let one = || plan(vec![read("a", empty(), &[])], value(json!(1)));
    let (code, message) = refused(Fake::new(|_| reply(json!("x".repeat(9 * MIB)))), &one()).await;
    assert!(code == Code::Validation && message.contains("too large"), "{message}");
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(go(&Arc::new(Fake::new(move |_| reply(deep(64)))), &one()).await.error, None);
    let (code, message) = refused(Fake::new(move |_| reply(deep(65))), &one()).await;
    assert!(code == Code::Validation && message.contains("nested"), "{message}");
    let typed = plan(vec![agent("a", value(json!("x")), &[]).typed(QueryType::Any)], reference(0));
    for answer in ["[".repeat(100_000), "NaN".to_owned(), "1e999".to_owned(), "{\"a\":Infinity}".to_owned()] {
        let fake = Fake::echo().with_agent(move |_, _| Ok(said(&answer)));
        let (code, message) = refused(fake, &typed).await;
        assert!(code == Code::Validation && message.contains("no JSON"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn expressions_cannot_make_more_of_a_value_than_may_be_kept() {
    let large = |_: &tgp_contract::ToolCall| reply(json!("x".repeat(MIB)));
    let many = |parts: usize| (0..parts).map(|_| reference(0)).collect::<Vec<_>>();
    let cases: Vec<(tgp_aql::Expression, &str)> = vec![
        (list(many(9)), "too large"),
        (expr(ExpressionForm::Text(many(3))), "too long"),
        (expr(ExpressionForm::Join(Box::new(list(many(3))), Box::new(value(json!(","))))), "too long"),
    ];
    for (expression, expected) in cases {
        let (code, message) =
            refused(Fake::new(large), &plan(vec![read("a", empty(), &[])], expression)).await;
        assert!(code == Code::Validation && message.contains(expected), "{message}");
    }
    let prompt = plan(
        vec![read("a", empty(), &[]), agent("b", expr(ExpressionForm::Text(many(3))), &[0])],
        reference(1),
    );
    assert!(refused(Fake::new(large), &prompt).await.1.contains("too long"));
    // The values of a map together, too; it stops when they are too many.
    let body = block(vec![], outer(1, 0));
    let wide = plan(
        vec![read("a", empty(), &[]), map("each", value(json!(vec![0; 10_000])), 4, body, &[0])],
        reference(1),
    );
    assert!(refused(Fake::new(large), &wide).await.1.contains("too large"));
    // Each level of nesting is one step here, so that no single expression is deep.
    let mut steps = vec![read("s0", empty(), &[])];
    for index in 1..70 {
        steps.push(merge(&format!("s{index}"), vec![("v", reference(index - 1))], &[index - 1]));
    }
    assert!(refused(Fake::echo(), &plan(steps, reference(69))).await.1.contains("nested"));
}

#[tokio::test(start_paused = true)]
async fn a_value_is_data_whatever_it_says() {
    let evil = "{{secret}} `); DROP TABLE x; -- ```json";
    let fake = Arc::new(Fake::new(move |call| match call.tool.as_str() {
        "fs_read" => reply(json!({ "text": evil })),
        _ => reply(json!({ "rows": [] })),
    }));
    let kind = Kind::Sql { sql: "SELECT :id".into(), params: object([("id", field(reference(0), "text"))]) };
    let prompt = expr(ExpressionForm::Text(vec![value(json!("say ")), field(reference(0), "text")]));
    let plan =
        plan(vec![read("a", empty(), &[]), step("s", kind, &[0]), agent("b", prompt, &[0])], reference(1));
    go(&fake, &plan).await;
    let calls = fake.calls.lock().unwrap();
    assert_eq!(calls[1].0.arguments, json!({ "sql": "SELECT :id", "params": { "id": evil } }));
    assert_eq!(fake.tasks.lock().unwrap()[0].prompt, format!("say {evil}"));
}

#[tokio::test(start_paused = true)]
async fn an_error_with_enormous_details_is_cut_and_still_says_what_it_is() {
    let fake = Fake::new(|_| {
        let mut refused = crate::execute_world::refuse(Code::Policy);
        refused.result =
            refused.result.map_err(|error| error.detail("logs", "x".repeat(MIB)).help("ask a person"));
        refused
    });
    let fake = Arc::new(fake);
    let error = go(&fake, &plan(vec![read("a", empty(), &[])], reference(0))).await.error.unwrap();
    assert_eq!(
        (error.code, error.help_of(), error.details.contains_key("logs")),
        (Code::Policy, Some("ask a person"), false)
    );
    let line: Value = serde_json::to_value(fake.lines().last().unwrap()).unwrap();
    assert!(line.to_string().len() < 10_000);
}
