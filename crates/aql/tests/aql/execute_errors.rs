//! What a run does when something fails: retries, timeouts, `on_error`, which error is reported, and how a run is
//! stopped.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_aql::{JournalLine, Kind, QueryType, RunEvent, RunReport};
use tgp_contract::{AgentFailure, Code, ToolError, Usage};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::execute_plans::{
    With, agent, block, empty, field, item, map, merge, object, outer, place, plan, query, read, reference,
    step, tool, value,
};
use crate::execute_world::{Fake, Takes, go, never, options, ports, refuse, reply, watch, watch_until};

fn code(report: &RunReport) -> Option<&str> {
    report.error.as_ref().map(|error| error.code.as_str())
}

#[tokio::test(start_paused = true)]
async fn t4_extra_properties_are_told_by_the_router_and_not_tried_again() {
    let fake = Arc::new(Fake::new(|call| match call.arguments.get("extra") {
        Some(_) => refuse(Code::Validation),
        None => reply(json!(1)),
    }));
    let arguments = object([("path", value(json!("a"))), ("extra", value(json!(1)))]);
    let report = go(&fake, &plan(vec![read("a", arguments, &[]).retry(3).at(7)], reference(0))).await;
    let error = report.error.unwrap();
    assert_eq!((error.code, fake.ids().len(), report.step.as_deref()), (Code::Validation, 1, Some("a")));
    assert_eq!((error.details["step"].as_str(), error.place_of()), (Some("a"), Some(place(7))));
}

#[tokio::test(start_paused = true)]
async fn another_attempt_is_made_only_where_it_can_help() {
    for &code in Code::ALL {
        let helps = matches!(
            code,
            Code::IsolateMemory
                | Code::IsolateTimeout
                | Code::Runtime
                | Code::Conflict
                | Code::Git
                | Code::Sql
                | Code::Fetch
                | Code::Upstream
                | Code::Provider
                | Code::Internal
        );
        let fake = Arc::new(Fake::new(move |_| refuse(code)));
        let began = tokio::time::Instant::now();
        let report = go(&fake, &plan(vec![read("a", empty(), &[]).retry(2)], reference(0))).await;
        assert_eq!(report.error.unwrap().code, code);
        let expected: &[&str] = if helps { &["a#1", "a#2", "a#3"] } else { &["a#1"] };
        assert_eq!(
            (fake.ids(), report.calls),
            (expected.iter().map(|&id| id.to_owned()).collect(), expected.len() as u64),
            "{code}"
        );
        // Half a second, then a whole one.
        assert_eq!(began.elapsed() >= Duration::from_millis(1_500), helps);
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_does_not_fit_is_asked_for_again() {
    let fake = Arc::new(Fake::new(|call| reply(if call.id == "a#3" { json!(3) } else { json!("three") })));
    let report =
        go(&fake, &plan(vec![read("a", empty(), &[]).retry(2).typed(QueryType::Int)], reference(0))).await;
    assert_eq!((report.outputs, report.error, report.calls), (json!(3), None, 3));
    // An agent that could not be corrected starts again, in another session.
    let fake = Arc::new(
        Fake::echo()
            .with_agent(|_, number| Ok(crate::execute_world::said(if number < 4 { "many" } else { "4" }))),
    );
    let report = go(
        &fake,
        &plan(vec![agent("a", value(json!("x")), &[]).retry(1).typed(QueryType::Int)], reference(0)),
    )
    .await;
    assert_eq!((report.outputs, report.error), (json!(4), None));
    let sessions: Vec<String> = fake.tasks.lock().unwrap().iter().map(|task| task.session.clone()).collect();
    assert_eq!((&sessions[0], &sessions[1]), (&sessions[1], &sessions[2]));
    assert_eq!(sessions[3], format!("{}-2", sessions[0]));
    // One that failed otherwise continues where it was.
    let fake = Arc::new(Fake::echo().with_agent(|_, number| match number {
        1 => Err(AgentFailure {
            usage: Usage { input_tokens: 4, output_tokens: 1, ..Usage::default() },
            calls: 3,
            ..ToolError::new(Code::Provider, "busy").into()
        }),
        _ => Ok(crate::execute_world::said("ok")),
    }));
    let report = go(&fake, &plan(vec![agent("a", value(json!("x")), &[]).retry(1)], reference(0))).await;
    let tasks = fake.tasks.lock().unwrap();
    assert_eq!((tasks[0].session.clone(), report.tokens, report.calls), (tasks[1].session.clone(), 15, 5));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_takes_the_call_back_and_another_attempt_may_follow() {
    let fake =
        Arc::new(Fake::new(|call| reply(json!(call.id)).after(if call.id == "a#1" { 60_000 } else { 10 })));
    let (report, events) =
        watch(&fake, &plan(vec![read("a", empty(), &[]).timeout(100).retry(1)], reference(0)), options())
            .await;
    assert_eq!((report.outputs, report.duration_ms), (json!("a#2"), 610));
    assert!(events.iter().any(|event| matches!(event, RunEvent::Failed { error, again: true, .. } if error.details["timeoutMs"] == 100)));
    // What cannot be rolled back any more has happened, so its value counts.
    let fake = Arc::new(Fake::new(|call| reply(json!(call.id)).after(5_000).stubborn()));
    let report = go(&fake, &plan(vec![tool("w", "fs_write", empty(), &[]).timeout(100)], reference(0))).await;
    assert_eq!((report.outputs, report.error), (json!("w#1"), None));
    // What does not end at all is given up; its effect is unknown, so it is not tried again and not called failed.
    let fake = Arc::new(Fake::new(|_| reply(json!(1)).after(3_000_000).stubborn().taking(Takes::AtOnce)));
    let report =
        go(&fake, &plan(vec![tool("w", "fs_write", empty(), &[]).timeout(100).retry(3)], reference(0))).await;
    assert_eq!(report.error.unwrap().details["outcome"], "unknown");
    let lines = fake.lines();
    assert!(
        matches!(
            &lines[..],
            [JournalLine::Begun { .. }, JournalLine::Effecting { .. }, JournalLine::Worked { .. }]
        ),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn on_error_stands_in_for_a_step_and_for_everything_inside_one() {
    let fake = Arc::new(Fake::new(|call| match call.id.contains("bad") {
        true => refuse(Code::Policy),
        false => reply(json!(call.id)),
    }));
    let bad = || read("bad", empty(), &[]);
    let failing = || block(vec![bad(), read("after", empty(), &[0])], reference(1));
    let nested = || plan(vec![bad()], reference(0));
    let when =
        |condition: bool| Kind::When { condition: value(json!(condition)), then: failing(), otherwise: None };
    let missing = field(value(json!(1)), "none");
    let cases: Vec<(tgp_aql::Step, Value)> = vec![
        (bad().skip(), json!(null)),
        (bad().or_else(value(json!({ "x": [] }))), json!({ "x": [] })),
        (bad().or_else(outer(0, 0)), json!("first#1")),
        (read("a", missing.clone(), &[]).skip(), json!(null)),
        (map("each", value(json!([1, 2])), 2, failing(), &[]).skip(), json!(null)),
        (map("each", missing.clone(), 2, failing(), &[]).or_else(value(json!([]))), json!([])),
        (step("w", when(true), &[]).or_else(value(json!(5))), json!(5)),
        (step("w", when(false), &[]), json!(null)),
        (query("q", nested(), vec![], &[]).skip(), json!(null)),
    ];
    for (one, expected) in cases {
        let one = tgp_aql::Step { needs: vec![0], ..one };
        let plan = plan(vec![read("first", empty(), &[]), one, read("last", empty(), &[1])], reference(1));
        let (report, events) = watch(&fake, &plan, options()).await;
        assert_eq!((report.outputs, report.error), (expected.clone(), None));
        let excused = events.iter().filter(|event| matches!(event, RunEvent::Excused { .. })).count();
        let kept = fake
            .lines()
            .iter()
            .filter(|line| matches!(line, JournalLine::Excused { value, .. } if *value == expected))
            .count();
        fake.lines.lock().unwrap().clear();
        let is_excused = plan.body.steps[1].options.on_error != tgp_aql::OnError::Fail;
        assert_eq!((excused, kept), (usize::from(is_excused), usize::from(is_excused)));
    }
    // A default that has no value fails like any other expression.
    let report = go(&fake, &plan(vec![bad().or_else(missing)], reference(0))).await;
    assert_eq!(code(&report), Some("EVALIDATION"));
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_of_the_query_is_told_and_nothing_else_begins() {
    // `b` fails first by the clock; `a` fails while it is rolled back, and comes first in the query.
    let fake = Arc::new(Fake::new(|call| match call.id.as_str() {
        "a#1" => refuse(Code::Policy).after(20).stubborn(),
        "b#1" => refuse(Code::Sql).after(10),
        _ => reply(json!(call.id)).after(15),
    }));
    let steps = vec![
        read("a", empty(), &[]),
        read("b", empty(), &[]),
        read("c", empty(), &[]),
        read("d", empty(), &[2]),
    ];
    let (report, events) = watch(&fake, &plan(steps, reference(3)), options()).await;
    assert_eq!((code(&report), report.step.as_deref()), (Some("EPOLICY"), Some("a")));
    assert_eq!(fake.ids(), ["a#1", "b#1", "c#1"]);
    let failed: Vec<(&str, bool)> = events
        .iter()
        .filter_map(|event| match event {
            RunEvent::Failed { step, error, .. } => {
                Some((step.as_str(), error.details.contains_key("cancelled")))
            }
            _ => None,
        })
        .collect();
    assert_eq!(failed, [("b", false), ("c", true), ("a", false)]);
    // What was rolled back can be made again without a question.
    assert!(matches!(&fake.lines()[4], JournalLine::Failed { step, .. } if step == "c"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_deep_inside_names_its_step_and_ends_everything_around_it() {
    let fake = Arc::new(Fake::new(|call| match call.arguments["n"].as_u64() {
        Some(3) => refuse(Code::Runtime).after(5),
        _ => reply(json!(1)).after(50),
    }));
    let inner = plan(vec![read("final", object([("n", value(json!(3)))]), &[])], reference(0));
    let body = block(
        vec![read("note", object([("n", item(0))]), &[]), query("sub", inner, vec![], &[])],
        merge_of_two(),
    );
    let steps = vec![
        map("each", value(json!([1, 2])), 2, body, &[]),
        read("other", empty(), &[]),
        read("later", empty(), &[1]),
    ];
    let report = go(&fake, &plan(steps, reference(0))).await;
    assert_eq!(report.step.as_deref(), Some("each[0].sub.final"));
    assert!(!fake.ids().contains(&"later#1".to_owned()));
    assert!(report.duration_ms < 50);

    fn merge_of_two() -> tgp_aql::Expression {
        crate::execute_plans::list(vec![reference(0), reference(1)])
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_a_whole_map_ends_what_is_inside_and_nothing_else() {
    let fake = Arc::new(Fake::new(|call| {
        reply(json!(call.id)).after(if call.id.starts_with("each") { 400 } else { 2_000 })
    }));
    let body = block(vec![read("slow", empty(), &[])], reference(0));
    let steps = vec![
        map("each", value(json!([1, 2, 3, 4])), 1, body, &[]).timeout(1_000).or_else(value(json!("late"))),
        read("other", empty(), &[]),
        merge("all", vec![("each", reference(0)), ("other", reference(1))], &[0, 1]),
    ];
    let report = go(&fake, &plan(steps, reference(2))).await;
    assert_eq!(report.outputs, json!({ "each": "late", "other": "other#1" }));
    assert_eq!(fake.ids().iter().filter(|id| id.starts_with("each")).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_leaves_nothing_running_and_can_go_on() {
    let body = || block(vec![read("x", empty(), &[]), agent("a", value(json!("go")), &[0])], reference(1));
    let wide = plan(
        vec![
            map("each", value(json!([1, 2, 3, 4, 5, 6])), 4, body(), &[]),
            read("last", empty(), &[0]).skip(),
        ],
        reference(0),
    );
    let fake = || Fake::new(|_| reply(json!(1)).after(7));
    let whole = go(&Arc::new(fake()), &wide).await;
    for milliseconds in 0..30 {
        let fake = Arc::new(fake());
        let wish = Box::pin(tokio::time::sleep(Duration::from_millis(milliseconds)));
        let (report, _) = watch_until(&fake, &wide, options(), wish).await;
        let error = report.error.unwrap();
        assert_eq!(
            (error.code, error.details["cancelled"].clone(), report.step),
            (Code::Runtime, json!(true), None)
        );
        let history = fake.lines();
        let again = go_on(&fake, &wide, history).await;
        assert_eq!((again.outputs, again.error), (whole.outputs.clone(), None));
        assert_eq!(again.ran + again.kept, whole.ran);
    }

    async fn go_on(fake: &Arc<Fake>, plan: &tgp_aql::QueryPlan, history: Vec<JournalLine>) -> RunReport {
        watch(fake, plan, tgp_aql::RunOptions { history, ..options() }).await.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_future_is_dropped_at_any_moment_leaves_nothing_behind() {
    let body = block(vec![read("x", empty(), &[]), agent("a", value(json!("go")), &[0])], reference(1));
    let inner = plan(vec![map("each", value(json!([1, 2, 3])), 3, body, &[])], reference(0));
    let body = block(vec![query("sub", inner, vec![], &[]), read("y", empty(), &[])], reference(0));
    let plan = plan(vec![map("all", value(json!([1, 2])), 2, body, &[])], reference(0));
    let mut has_ended = false;
    for polls in 0..200 {
        let fake = Arc::new(Fake::new(|_| reply(json!(1)).after(3)));
        let (sender, mut receiver) = mpsc::channel(100);
        {
            let ports = ports(&fake);
            let mut run = std::pin::pin!(tgp_aql::run(&plan, options(), &ports, sender, never()));
            for _ in 0..polls {
                let polled = std::future::poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await;
                has_ended = polled.is_ready();
                if has_ended {
                    break;
                }
                // Time advances only when the test lets it.
                tokio::time::advance(Duration::from_millis(1)).await;
            }
        }
        assert_eq!((fake.running(), Arc::strong_count(&fake)), (0, 1), "after {polls} polls");
        while receiver.try_recv().is_ok() {}
        assert!(matches!(receiver.try_recv(), Err(TryRecvError::Disconnected)));
    }
    assert!(has_ended, "there are not enough polls to come to the end");
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_reading_events_cannot_hold_a_run_that_was_cancelled() {
    let fake = Arc::new(Fake::echo());
    let (sender, _receiver) = mpsc::channel(1);
    let (plan, ports) = (plan(vec![read("a", empty(), &[])], reference(0)), ports(&fake));
    let wish = Box::pin(tokio::time::sleep(Duration::from_millis(50)));
    let report = tgp_aql::run(&plan, options(), &ports, sender, wish).await.unwrap();
    assert_eq!(report.error.unwrap().details["cancelled"], true);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_takes_no_more_ends_the_run_whatever_on_error_says() {
    let plan = plan(vec![read("a", empty(), &[]).skip(), read("b", empty(), &[0]).skip()], reference(1));
    for room in 0..4 {
        let fake = Arc::new(Fake::echo());
        *fake.journal_room.lock().unwrap() = room;
        let error = if room == 0 {
            // Nothing has happened yet, so the run has not begun.
            let (sender, _receiver) = mpsc::channel(9);
            tgp_aql::run(&plan, options(), &ports(&fake), sender, never()).await.unwrap_err()
        } else {
            go(&fake, &plan).await.error.unwrap()
        };
        assert_eq!(error.message, "the disk is full");
        // A call is made only after its line is kept.
        assert_eq!(fake.ids().len(), room.div_ceil(2));
    }
}
