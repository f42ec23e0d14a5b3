//! Resuming a run: what is kept, what is asked about, and what is refused.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_aql::{
    Budget, EarlierOutcome, JournalLine, Kind, QueryPlan, QueryType, RunEvent, RunOptions, RunReport, Step,
    ValueSource,
};
use tgp_contract::{Code, ToolError};
use tokio::sync::mpsc;

use crate::execute_plans::{
    With, agent, block, empty, map, object, plan, query, read, reference, step, tool, value,
};
use crate::execute_world::{Fake, never, options, ports, reply, said, watch};

fn begun(step: &str, attempt: u32) -> JournalLine {
    JournalLine::Begun { step: step.to_owned(), attempt, call: format!("{step}#{attempt}") }
}

fn effecting(step: &str, attempt: u32) -> JournalLine {
    JournalLine::Effecting { step: step.to_owned(), attempt }
}

fn done(step: &str, value: Value) -> JournalLine {
    JournalLine::Done { step: step.to_owned(), value, tokens: 0, calls: 1, cached: false, worked_ms: 0 }
}

async fn go_on(
    fake: &Arc<Fake>,
    plan: &QueryPlan,
    history: Vec<JournalLine>,
    again: &[&str],
) -> (RunReport, Vec<RunEvent>) {
    let again = again.iter().map(|&step| step.to_owned()).collect();
    watch(fake, plan, RunOptions { history, again, ..options() }).await
}

fn exec(name: &str) -> Step {
    step(name, Kind::Exec { path: "t.ts".into(), arguments: empty() }, &[])
}

fn sql(name: &str, text: &str) -> Step {
    step(name, Kind::Sql { sql: text.into(), params: empty() }, &[])
}

#[tokio::test(start_paused = true)]
async fn what_became_of_a_step_decides_whether_it_is_made_again() {
    let graph =
        || step("s", Kind::Graph { cypher: "MATCH (f) RETURN f".into(), commit: None, params: empty() }, &[]);
    let carried_out = EarlierOutcome::CarriedOut { entry: 7 };
    // Whether it is made again when it has begun to take effect and its fate is: carried out, not carried out, unknown.
    let cases: Vec<(Step, [bool; 3])> = vec![
        (read("s", empty(), &[]), [true, true, true]),
        (graph(), [true, true, true]),
        (exec("s"), [false, true, false]),
        (sql("s", " select 1;"), [true, true, true]),
        (tool("s", "fs_write", empty(), &[]), [false, true, false]),
        (sql("s", "UPDATE t SET a = 1"), [false, true, false]),
        (sql("s", "select 1 into t"), [false, true, false]),
        (sql("s", "select 1; delete from t"), [false, true, false]),
    ];
    for (step, expected) in cases {
        for (fate, is_made) in [carried_out.clone(), EarlierOutcome::NotCarriedOut, EarlierOutcome::Unknown]
            .into_iter()
            .zip(expected)
        {
            let fake = Arc::new(Fake::new(|_| reply(json!({ "result": 1, "results": [] }))));
            fake.fates.lock().unwrap().insert("s#1".to_owned(), fate.clone());
            let plan = plan(vec![read("first", empty(), &[]), step.clone().at(4)], reference(1));
            // Without a line about its effect it has had none, whatever the caller claims.
            let (report, _) = go_on(&fake, &plan, vec![begun("s", 1)], &[]).await;
            assert_eq!((report.error, fake.ids().len()), (None, 2), "{step:?} {fate:?}");
            fake.calls.lock().unwrap().clear();
            let history = vec![begun("s", 1), effecting("s", 1)];
            let (report, _) = go_on(&fake, &plan, history.clone(), &[]).await;
            if is_made {
                assert_eq!(
                    (report.error, fake.ids()),
                    (None, vec!["first#1".to_owned(), "s#2".to_owned()]),
                    "{step:?} {fate:?}"
                );
                continue;
            }
            let error = report.error.unwrap();
            assert_eq!(
                (error.code, report.step.as_deref(), fake.ids().len()),
                (Code::Integrity, Some("s"), 0),
                "{step:?}"
            );
            assert!(error.help_of().unwrap().contains("--again s"));
            assert_eq!(error.details.get("entry"), (fate == carried_out).then_some(&json!(7)));
            // A run that allows the repetition gets it, under an id that was not used before.
            let (report, _) = go_on(&fake, &plan, history, &["s"]).await;
            assert_eq!((report.error, fake.ids().contains(&"s#2".to_owned())), (None, true));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn values_inside_maps_choices_and_queries_are_kept() {
    let fake = Arc::new(Fake::echo());
    let inner = plan(vec![read("final", empty(), &[])], reference(0));
    let otherwise = Some(block(vec![read("x", empty(), &[])], reference(0)));
    let then = block(vec![read("x", empty(), &[])], reference(0));
    let steps = vec![
        map("each", value(json!([0, 1, 2])), 3, block(vec![read("note", empty(), &[])], reference(0)), &[]),
        query("sub", inner, vec![], &[]),
        step("w", Kind::When { condition: value(json!(false)), then, otherwise }, &[]),
    ];
    let plan = plan(steps, crate::execute_plans::list((0..3).map(reference).collect()));
    let history = vec![
        begun("each[1].note", 1),
        done("each[1].note", json!("kept")),
        done("sub.final", json!("inside")),
        done("w[else].x", json!("else")),
        // The other block of the choice is another step, and its value is not taken.
        done("w.x", json!("then")),
    ];
    let (report, events) = go_on(&fake, &plan, history, &[]).await;
    assert_eq!(report.outputs, json!([[{}, "kept", {}], "inside", "else"]));
    assert_eq!((report.ran, report.kept, report.calls), (2, 3, 6));
    assert_eq!(fake.ids(), ["each[0].note#1", "each[2].note#1"]);
    let kept =
        events.iter().filter(|event| matches!(event, RunEvent::Done { how: ValueSource::Kept, .. })).count();
    assert_eq!(kept, 3);
    assert!(matches!(events[0], RunEvent::Run { resumed: true, steps: 7, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_fits_no_more_is_asked_for_again() {
    let fake = Arc::new(Fake::new(|_| reply(json!(2))));
    let plan = plan(vec![read("a", empty(), &[]).typed(QueryType::Int)], reference(0));
    let (report, _) = go_on(&fake, &plan, vec![begun("a", 1), done("a", json!("one"))], &[]).await;
    assert_eq!((report.outputs, fake.ids()), (json!(2), vec!["a#2".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_agent_goes_on_in_its_session_unless_it_could_not_be_corrected() {
    let plan = plan(vec![agent("a", value(json!("x")), &[]).typed(QueryType::Int)], reference(0));
    let line = |session: &str| JournalLine::Begun { step: "a".into(), attempt: 1, call: session.into() };
    let failed = |error: ToolError| JournalLine::Failed {
        step: "a".into(),
        attempt: 1,
        error,
        tokens: 11,
        calls: 3,
        happened: false,
    };
    let misfit = ToolError::new(Code::Validation, "no").detail("mismatch", json!({}));
    let cases = [
        (vec![line("r1-xyz")], "r1-xyz", (10, 2)),
        (vec![line("r1-xyz"), failed(ToolError::new(Code::Provider, "busy"))], "r1-xyz", (21, 5)),
        (vec![line("r1-xyz"), failed(misfit)], "-2", (21, 5)),
    ];
    for (history, session, used) in cases {
        let fake = Arc::new(Fake::echo().with_agent(|_, _| Ok(said("5"))));
        let (report, _) = go_on(&fake, &plan, history, &[]).await;
        assert_eq!((report.outputs, (report.tokens, report.calls)), (json!(5), used));
        assert!(fake.tasks.lock().unwrap()[0].session.ends_with(session));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_was_given_up_stays_so_and_nobody_asks_about_what_was_in_it() {
    let fake = Arc::new(Fake::echo());
    let body = block(vec![tool("w", "fs_write", empty(), &[])], reference(0));
    let plan = plan(
        vec![
            map("each", value(json!([1, 2])), 2, body, &[]).skip(),
            read("b", object([("v", reference(0))]), &[0]),
        ],
        reference(1),
    );
    let error = ToolError::new(Code::Runtime, "it was so");
    let history = vec![
        begun("each[0].w", 1),
        effecting("each[0].w", 1),
        begun("each[1].w", 1),
        JournalLine::Excused { step: "each".into(), value: json!(null), error },
    ];
    let (report, _) = go_on(&fake, &plan, history, &[]).await;
    assert_eq!(
        (report.outputs, report.error, fake.ids()),
        (json!({ "v": null }), None, vec!["b#1".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn budgets_count_what_was_used_before() {
    let fake = Arc::new(Fake::echo());
    let mut inner = plan(vec![read("x", empty(), &[]), read("y", empty(), &[0])], reference(1));
    inner.budget = Budget { calls: Some(2), ..Budget::default() };
    let mut outer = plan(vec![read("a", empty(), &[]), query("sub", inner, vec![], &[0])], reference(1));
    outer.budget.calls = Some(4);
    let spent = JournalLine::Failed {
        step: "sub.x".into(),
        attempt: 1,
        error: ToolError::new(Code::Runtime, "no"),
        tokens: 0,
        calls: 1,
        happened: false,
    };
    let history = vec![begun("a", 1), done("a", json!(1)), begun("sub.x", 1), spent.clone()];
    let (report, _) = go_on(&fake, &outer, history.clone(), &[]).await;
    assert_eq!(
        (report.error.unwrap().details["limit"].clone(), report.step.as_deref()),
        (json!(2), Some("sub.y"))
    );
    assert_eq!(report.calls, 3);
    outer.budget.calls = Some(2);
    let (report, _) = go_on(&fake, &outer, history, &[]).await;
    assert_eq!(
        (report.error.unwrap().details["limit"].clone(), report.step.as_deref()),
        (json!(2), Some("sub.x"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_begin_says_why_and_calls_nothing() {
    let fake = Arc::new(Fake::echo());
    let inner = plan(vec![read("x", empty(), &[])], reference(0));
    let mut whole = plan(
        vec![
            map("each", value(json!([1])), 1, block(vec![read("x", empty(), &[])], reference(0)), &[]),
            query("sub", inner, vec![], &[]),
        ],
        reference(0),
    );
    let input = |name: &str, ty| tgp_aql::Input {
        name: name.into(),
        ty,
        default: None,
        place: crate::execute_plans::place(1),
    };
    whole.inputs = vec![
        input("n", QueryType::Int),
        input("l", QueryType::OneOf(vec![QueryType::List(Box::new(QueryType::Bool)), QueryType::Null])),
    ];
    let good = json!({ "n": 1 });
    type Case = (Value, Vec<JournalLine>, &'static [&'static str], Code, &'static str);
    let refused: Vec<Case> = vec![
        (json!({}), vec![], &[], Code::Validation, "n"),
        (json!({ "n": "x" }), vec![], &[], Code::Validation, "n"),
        (json!({ "n": 1, "l": [true, 2] }), vec![], &[], Code::Validation, "l[1]"),
        (json!({ "n": 1, "m": 2 }), vec![], &[], Code::Validation, "m"),
        (good.clone(), vec![], &["nothing"], Code::Validation, "again"),
        (good.clone(), vec![begun("nothing", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("each", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("each.x", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("each[01].x", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("each[99999999999999999999].x", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("sub.y", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("sub.x.x", 1)], &[], Code::Integrity, ""),
        (good.clone(), vec![begun("", 1)], &[], Code::Integrity, ""),
    ];
    for (inputs, history, again, code, field) in refused {
        let inputs = inputs.as_object().unwrap().clone();
        let again = again.iter().map(|&step| step.to_owned()).collect();
        let (sender, mut receiver) = mpsc::channel(9);
        let options = RunOptions { inputs, history: history.clone(), again, ..options() };
        let error = tgp_aql::run(&whole, options, &ports(&fake), sender, never()).await.unwrap_err();
        assert_eq!(
            (error.code, error.details.get("field").and_then(Value::as_str).unwrap_or("")),
            (code, field),
            "{history:?}"
        );
        assert!(error.help_of().is_some() && receiver.recv().await.is_none());
    }
    assert!(fake.ids().is_empty() && fake.lines().is_empty());
}
