//! What a run does when all goes well: order, values, calls, tokens, agents, cache and events.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_aql::{
    Comparison, Expression, ExpressionForm, JournalLine, Kind, Merge, Part, QueryType, RunEvent, ValueSource,
};
use tgp_contract::{Actor, Consent};
use tokio::sync::mpsc;

use crate::execute_plans::{
    With, agent, block, empty, expr, field, item, list, map, merge, object, outer, plan, query, read,
    reference, step, tool, value,
};
use crate::execute_world::{Fake, Takes, go, never, options, ports, reply, said, watch};

#[tokio::test(start_paused = true)]
async fn t4_two_delayed_steps_overlap_and_take_less_than_their_sum() {
    let fake = Arc::new(Fake::new(|call| reply(json!(call.id)).after(1_000)));
    let plan = plan(
        vec![
            read("a", empty(), &[]),
            read("b", empty(), &[]),
            merge("both", vec![("a", reference(0)), ("b", reference(1))], &[0, 1]),
        ],
        reference(2),
    );
    let began = tokio::time::Instant::now();
    let report = go(&fake, &plan).await;
    assert_eq!(report.outputs, json!({ "a": "a#1", "b": "b#1" }));
    assert_eq!(fake.most_running(), 2);
    assert!(began.elapsed() < Duration::from_millis(2_000));
    assert_eq!((report.duration_ms, report.ran, report.calls), (1_000, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn calls_carry_session_actor_arguments_and_a_token_for_their_step_alone() {
    let fake = Arc::new(Fake::new(|call| {
        reply(match call.tool.as_str() {
            "exec_tool" => json!({ "result": 55, "logs": [], "stats": {} }),
            "graph_query" => json!({ "results": [{ "f.path": "a.ts" }], "columns": ["f.path"] }),
            "exec_sql" => json!({ "rows": [], "columns": [], "changed": 0, "truncated": false }),
            _ => call.arguments.clone(),
        })
    }));
    let arguments = |name: &str| object([(name, value(json!(10)))]);
    let steps = vec![
        step("x", Kind::Exec { path: "tools/fib.ts".into(), arguments: arguments("n") }, &[]),
        step(
            "g",
            Kind::Graph {
                cypher: "MATCH (f) RETURN f.path".into(),
                commit: Some(value(json!("HEAD"))),
                params: arguments("p"),
            },
            &[],
        ),
        step("s", Kind::Sql { sql: "SELECT :id".into(), params: arguments("id") }, &[]),
        tool("w", "fs_write", object([("path", value(json!("a")))]), &[]),
    ];
    let plan = plan(steps, list((0..4).map(reference).collect()));
    let report = go(&fake, &plan).await;
    assert_eq!(
        report.outputs,
        json!([55, [{ "f.path": "a.ts" }], { "rows": [], "columns": [], "changed": 0, "truncated": false }, { "path": "a" }])
    );
    let calls = fake.calls.lock().unwrap();
    let made: Vec<Value> =
        calls.iter().map(|(call, _)| json!([call.id, call.tool, call.arguments])).collect();
    assert_eq!(
        made,
        [
            json!(["x#1", "exec_tool", { "path": "tools/fib.ts", "args": { "n": 10 } }]),
            json!(["g#1", "graph_query", { "query": "MATCH (f) RETURN f.path", "params": { "p": 10 }, "commit": "HEAD" }]),
            json!(["s#1", "exec_sql", { "sql": "SELECT :id", "params": { "id": 10 } }]),
            json!(["w#1", "fs_write", { "path": "a" }]),
        ]
    );
    for ((call, context), scope) in calls.iter().zip(fake.scopes.lock().unwrap().iter()) {
        assert_eq!((context.session.as_str(), context.depth, context.dry_run), ("r1", 0, false));
        assert_eq!((&context.actor, context.consent), (&Actor::Person("ada".into()), Consent::Given));
        assert_eq!(scope.session, "r1");
        assert_eq!(context.token.as_ref().unwrap().reveal(), format!("{}:{}", scope.step, call.tool));
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_taken_in_the_order_of_the_query_when_there_is_not_room_for_all() {
    let fake = Arc::new(Fake::new(|call| reply(json!(call.id)).after(10)));
    let late = read("late", empty(), &[3]);
    let others = ["b", "c", "d", "e", "f"].map(|name| read(name, empty(), &[]));
    let mut plan = plan([late].into_iter().chain(others).collect(), reference(0));
    plan.budget.parallel = Some(1);
    go(&fake, &plan).await;
    // When `d` ends, `e` waits already and `late` can only begin to wait; then it comes before `f`.
    assert_eq!(fake.ids(), ["b#1", "c#1", "d#1", "e#1", "late#1", "f#1"]);
    assert_eq!(fake.most_running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_map_keeps_its_order_and_both_bounds() {
    let fake = Arc::new(Fake::new(|call| {
        let number = call.arguments["n"].as_u64().unwrap();
        reply(json!(number * 2)).after(100 - number)
    }));
    let body = block(vec![read("double", object([("n", item(0))]), &[])], reference(0));
    let numbers: Vec<u64> = (0..50).collect();
    let doubled: Vec<u64> = (0..50).map(|number| number * 2).collect();
    for (parallel, concurrency, most) in [(8, 3, 3), (2, 10, 2), (64, 64, 50)] {
        let fake_plan = {
            let mut plan =
                plan(vec![map("each", value(json!(numbers)), concurrency, body.clone(), &[])], reference(0));
            plan.budget.parallel = Some(parallel);
            plan
        };
        let before = fake.most_running();
        let report = go(&fake, &fake_plan).await;
        assert_eq!(report.outputs, json!(doubled));
        assert_eq!(fake.most_running(), most.max(before));
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_see_what_is_around_them() {
    let fake = Arc::new(Fake::echo());
    // Inside: the item of the outer map is two blocks up, the first step of the query three.
    let innermost = block(
        vec![read("deep", object([("top", outer(3, 0)), ("outer", item(2)), ("inner", item(0))]), &[])],
        reference(0),
    );
    let chosen = block(vec![map("in", value(json!(["x"])), 1, innermost, &[])], reference(0));
    let other = block(vec![read("no", empty(), &[])], value(json!("other")));
    let condition =
        expr(ExpressionForm::Compare(Comparison::Greater, Box::new(item(0)), Box::new(value(json!(1)))));
    let choice = step("choice", Kind::When { condition, then: chosen, otherwise: Some(other) }, &[]);
    let plan = plan(
        vec![
            read("top", object([("t", value(json!(1)))]), &[]),
            map("out", value(json!([1, 2])), 2, block(vec![choice], reference(0)), &[0]),
        ],
        reference(1),
    );
    let report = go(&fake, &plan).await;
    assert_eq!(report.outputs, json!(["other", [{ "top": { "t": 1 }, "outer": 2, "inner": "x" }]]));
    let mut ids = fake.ids();
    ids.sort();
    assert_eq!(ids, ["out[0].choice[else].no#1", "out[1].choice.in[0].deep#1", "top#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_query_inside_has_inputs_defaults_and_no_sight_of_its_caller() {
    let fake = Arc::new(Fake::echo());
    let mut inner = plan(
        vec![read(
            "final",
            object([("a", expr(ExpressionForm::Input(0))), ("b", expr(ExpressionForm::Input(1)))]),
            &[],
        )],
        reference(0),
    );
    let input = |name: &str, default| tgp_aql::Input {
        name: name.into(),
        ty: QueryType::Int,
        default,
        place: crate::execute_plans::place(3),
    };
    inner.inputs = vec![input("a", None), input("b", Some(json!(7)))];
    let outer_plan = plan(vec![query("sub", inner.clone(), vec![("a", value(json!(1)))], &[])], reference(0));
    assert_eq!(go(&fake, &outer_plan).await.outputs, json!({ "a": 1, "b": 7 }));
    assert_eq!(fake.ids(), ["sub.final#1"]);
    let wrong = plan(vec![query("sub", inner, vec![("a", value(json!("one")))], &[])], reference(0));
    let error = go(&fake, &wrong).await.error.unwrap();
    assert_eq!(error.code.as_str(), "EVALIDATION");
    assert_eq!(error.details["field"], "a");
}

#[tokio::test(start_paused = true)]
async fn merges_put_values_together() {
    let fake = Arc::new(Fake::echo());
    let cases: [(Merge, Value, Result<Value, &str>); 8] = [
        (Merge::Same, json!([{ "a": 1 }]), Ok(json!({ "a": 1 }))),
        (Merge::Record, json!([1, null]), Ok(json!({ "p0": 1, "p1": null }))),
        (Merge::Text, json!(["a", null, "b"]), Ok(json!("a\n\nb"))),
        (Merge::List, json!([[1], null, [2, 3]]), Ok(json!([1, 2, 3]))),
        (Merge::Object, json!([{ "a": 1, "b": 1 }, { "b": 2 }]), Ok(json!({ "a": 1, "b": 2 }))),
        (Merge::Text, json!(["a", 1]), Err("expected a text, found the number 1")),
        (Merge::List, json!([[1], {}]), Err("expected a list, found an object without fields")),
        (Merge::Object, json!([[1]]), Err("expected an object, found a list of 1 value")),
    ];
    for (how, values, expected) in cases {
        let parts = values.as_array().unwrap().iter().enumerate();
        let parts =
            parts.map(|(index, one)| Part { name: format!("p{index}"), value: value(one.clone()) }).collect();
        let plan = plan(vec![step("m", Kind::Merge { how, parts }, &[])], reference(0));
        let report = go(&fake, &plan).await;
        match expected {
            Ok(value) => assert_eq!((report.outputs, report.error), (value, None)),
            Err(message) => assert_eq!(report.error.unwrap().message, message),
        }
    }
}

/// The value of an expression over one step whose answer is `data`.
async fn evaluated(data: Value, expression: Expression) -> Result<Value, String> {
    let fake = Arc::new(Fake::new(move |_| reply(data.clone())));
    let report = go(&fake, &plan(vec![read("s", empty(), &[])], expression)).await;
    match report.error {
        None => Ok(report.outputs),
        Some(error) => {
            assert_eq!(error.code.as_str(), "EVALIDATION");
            assert_eq!(error.place_of(), Some(crate::execute_plans::place(99)));
            Err(error.message)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn expressions_give_a_value_or_say_what_was_found() {
    let data = json!({ "text": "añb", "n": 3, "f": 3.0, "big": u64::MAX, "list": [1, "x", null], "no": null, "yes": true });
    let of = |name: &str| field(reference(0), name);
    let constant = value;
    let two = |form: fn(Box<Expression>, Box<Expression>) -> ExpressionForm, left, right| {
        expr(form(Box::new(left), Box::new(right)))
    };
    let compare = |how, left, right| expr(ExpressionForm::Compare(how, Box::new(left), Box::new(right)));
    let element = |index: Value| two(ExpressionForm::Element, of("list"), constant(index));
    let text = expr(ExpressionForm::Text(vec![
        constant(json!("<")),
        of("text"),
        of("list"),
        of("n"),
        of("no"),
        constant(json!(">")),
    ]));
    let cases: Vec<(Expression, Result<Value, &str>)> = vec![
        (text, Ok(json!("<añb[1,\"x\",null]3null>"))),
        (of("missing"), Ok(json!(null))),
        (two(ExpressionForm::Or, field(of("missing"), "deeper"), constant(json!("none"))), Ok(json!("none"))),
        (field(of("n"), "x"), Err("expected an object with the field `x`, found the number 3")),
        (field(of("text"), "x"), Err("expected an object with the field `x`, found the text \"añb\"")),
        (field(of("no"), "x"), Ok(json!(null))),
        (two(ExpressionForm::Element, of("no"), constant(json!(0))), Ok(json!(null))),
        (
            two(ExpressionForm::Element, of("n"), constant(json!(0))),
            Err("expected a list, found the number 3"),
        ),
        (element(json!(1)), Ok(json!("x"))),
        (element(json!(3)), Err("there is no element 3: the list has 3, counted from 0")),
        (element(json!(-1)), Err("there is no element -1: the list has 3, counted from 0")),
        (element(json!(1.5)), Err("there is no element 1.5: the list has 3, counted from 0")),
        (two(ExpressionForm::Element, reference(0), constant(json!("n"))), Ok(json!(3))),
        (two(ExpressionForm::Or, of("no"), of("n")), Ok(json!(3))),
        (two(ExpressionForm::Or, of("yes"), of("missing")), Ok(json!(true))),
        (compare(Comparison::Equal, of("n"), of("f")), Ok(json!(true))),
        (
            compare(Comparison::Less, of("big"), constant(json!(18_446_744_073_709_551_615.0))),
            Ok(json!(true)),
        ),
        (compare(Comparison::Greater, constant(json!(-2.5)), constant(json!(-3))), Ok(json!(true))),
        (compare(Comparison::LessOrEqual, constant(json!("a")), of("text")), Ok(json!(true))),
        (
            compare(Comparison::Less, of("n"), of("text")),
            Err("the number 3 and the text \"añb\" have no order"),
        ),
        (compare(Comparison::In, constant(json!("x")), of("list")), Ok(json!(true))),
        (compare(Comparison::In, constant(json!("x")), of("n")), Err("expected a list, found the number 3")),
        (expr(ExpressionForm::All(vec![constant(json!(false)), of("n")])), Ok(json!(false))),
        (expr(ExpressionForm::Some(vec![of("yes"), of("n")])), Ok(json!(true))),
        (expr(ExpressionForm::Not(Box::new(of("n")))), Err("expected true or false, found the number 3")),
        (expr(ExpressionForm::Length(Box::new(of("text")))), Ok(json!(3))),
        (
            expr(ExpressionForm::Length(Box::new(of("no")))),
            Err("expected a text, a list or an object, found null"),
        ),
        (two(ExpressionForm::Join, of("list"), constant(json!(", "))), Ok(json!("1, x, null"))),
        (two(ExpressionForm::Contains, of("text"), constant(json!("ñ"))), Ok(json!(true))),
        (two(ExpressionForm::Contains, of("list"), constant(json!(1.0))), Ok(json!(true))),
        (two(ExpressionForm::Contains, of("text"), of("n")), Err("expected a text, found the number 3")),
    ];
    for (expression, expected) in cases {
        assert_eq!(
            evaluated(data.clone(), expression.clone()).await,
            expected.map_err(str::to_owned),
            "{expression:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_may_be_missing_is_null_and_any_other_an_error() {
    let note =
        tgp_aql::Field { ty: QueryType::OneOf(vec![QueryType::String, QueryType::Null]), optional: true };
    let record = tgp_aql::Record { fields: [("note".to_owned(), note)].into(), open: true };
    let findings = QueryType::List(Box::new(QueryType::Record(record)));
    let body = block(vec![], field(item(0), "note"));
    let of = |name: &str| {
        let answer = read("s", empty(), &[]).typed(findings.clone());
        let mut body = body.clone();
        body.value = field(item(0), name);
        plan(vec![answer, map("each", reference(0), 1, body, &[0])], reference(1))
    };
    let fake = Arc::new(Fake::new(|_| reply(json!([{ "note": "n" }, {}]))));
    assert_eq!(go(&fake, &of("note")).await.outputs, json!(["n", null]));
    let error = go(&fake, &of("other")).await.error.unwrap();
    assert_eq!((error.code.as_str(), error.details["step"].as_str()), ("EVALIDATION", Some("each[0]")));
}

#[tokio::test(start_paused = true)]
async fn agents_work_in_sessions_of_their_own_with_what_is_left() {
    let fake = Arc::new(Fake::echo());
    let prompt = expr(ExpressionForm::Text(vec![value(json!("look at ")), reference(0)]));
    let mut plan = plan(
        vec![
            read("s", object([("path", value(json!("a")))]), &[]),
            agent("a", prompt, &[0]),
            agent("b", reference(1), &[1]),
        ],
        reference(2),
    );
    plan.budget.tokens = Some(100);
    let report = go(&fake, &plan).await;
    assert_eq!(report.outputs, json!("done: done: look at {\"path\":\"a\"}"));
    assert_eq!((report.tokens, report.calls, report.ran), (20, 5, 3));
    let tasks = fake.tasks.lock().unwrap();
    assert!(tasks.iter().all(|task| task.session.starts_with("r1-") && task.correction.is_none()));
    assert_ne!(tasks[0].session, tasks[1].session);
    assert_eq!((tasks[0].max_tokens, tasks[1].max_tokens), (Some(100), Some(90)));
    assert_eq!(
        (tasks[0].actor.as_str(), tasks[0].tools.as_slice()),
        ("Test.a", ["fs_read".to_owned()].as_slice())
    );
    let scopes = fake.scopes.lock().unwrap();
    assert_eq!(scopes[1].session, tasks[0].session);
    assert_eq!(scopes[2].session, tasks[1].session);
    // All agents of a run work with parts of one allowance.
    let left = |task: &tgp_contract::AgentTask| task.allowance.as_ref().unwrap().tokens_left();
    assert_eq!((left(&tasks[0]), left(&tasks[1])), (Some(80), Some(80)));
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_type_is_told_it_and_corrected() {
    let severity = QueryType::Choice(vec!["high".into(), "low".into()]);
    let record = tgp_aql::Record {
        fields: [("severity".to_owned(), tgp_aql::Field { ty: severity.clone(), optional: false })].into(),
        open: false,
    };
    let cases: [(QueryType, &[&str], Result<Value, &str>); 7] = [
        (
            QueryType::Record(record.clone()),
            &[" \n{\"severity\": \"low\"}\n"],
            Ok(json!({ "severity": "low" })),
        ),
        (
            QueryType::Record(record.clone()),
            &["```json\n{\"severity\": \"low\"}\n```"],
            Ok(json!({ "severity": "low" })),
        ),
        (
            QueryType::Record(record.clone()),
            &["Sure!", "{\"severity\": \"worst\"}", "{\"severity\": \"low\"}"],
            Ok(json!({ "severity": "low" })),
        ),
        (
            QueryType::Record(record),
            &["no", "{}", "{\"severity\":\"low\",\"x\":1}"],
            Err("the value does not fit its type: expected only `severity`, found the field `x`"),
        ),
        (severity, &["high"], Ok(json!("high"))),
        (QueryType::List(Box::new(QueryType::Int)), &["[1, 2.5]", "[1, 2]"], Ok(json!([1, 2]))),
        (QueryType::String, &["```json\n{}\n```"], Ok(json!("```json\n{}\n```"))),
    ];
    for (ty, answers, expected) in cases {
        let (owned, is_text): (Vec<String>, bool) =
            (answers.iter().map(|&text| text.to_owned()).collect(), ty == QueryType::String);
        let fake = Arc::new(Fake::echo().with_agent(move |_, number| Ok(said(&owned[number - 1]))));
        let report =
            go(&fake, &plan(vec![agent("a", value(json!("go")), &[]).typed(ty.clone())], reference(0))).await;
        match expected {
            Ok(value) => assert_eq!((report.outputs, report.error), (value, None)),
            Err(message) => {
                let error = report.error.unwrap();
                assert_eq!((error.code.as_str(), error.message.as_str()), ("EVALIDATION", message));
            }
        }
        let tasks = fake.tasks.lock().unwrap();
        assert_eq!(tasks.len(), answers.len());
        assert_eq!(report.tokens, 10 * answers.len() as u64);
        let has_schema = |task: &tgp_contract::AgentTask| {
            task.system.as_ref().is_some_and(|system| system.contains(&ty.to_schema().to_string()))
        };
        assert!(tasks.iter().all(|task| task.session == tasks[0].session && has_schema(task) != is_text));
        assert!(tasks.iter().skip(1).all(|task| task.correction.as_ref().unwrap().contains("does not fit")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cached_value_is_taken_when_everything_is_the_same() {
    let fake = Arc::new(Fake::new(|call| reply(json!({ "result": call.arguments })).taking(Takes::Never)));
    let exec = |n: Value| {
        let kind = Kind::Exec { path: "t.ts".into(), arguments: object([("n", value(n))]) };
        plan(vec![step("x", kind, &[]).cached()], reference(0))
    };
    let counts = |report: tgp_aql::RunReport| (report.ran, report.cached, report.calls);
    assert_eq!(counts(go(&fake, &exec(json!(1))).await), (1, 0, 1));
    assert_eq!(counts(go(&fake, &exec(json!(1))).await), (0, 1, 0));
    assert!(matches!(fake.lines().last(), Some(JournalLine::Done { cached: true, calls: 0, .. })));
    assert_eq!(counts(go(&fake, &exec(json!(2))).await), (1, 0, 1));
    *fake.version.lock().unwrap() = Some("v2".to_owned());
    assert_eq!(counts(go(&fake, &exec(json!(1))).await), (1, 0, 1));
    *fake.version.lock().unwrap() = None;
    assert_eq!(counts(go(&fake, &exec(json!(1))).await), (1, 0, 1));
    assert_eq!(counts(go(&fake, &exec(json!(1))).await), (1, 0, 1));
    // A number that has no canonical form has no key.
    assert_eq!(counts(go(&fake, &exec(json!(u64::MAX))).await), (1, 0, 1));
    // A value in the cache that does not fit is not taken.
    *fake.version.lock().unwrap() = Some("v3".to_owned());
    let mut typed = exec(json!(1));
    typed.body.steps[0].checked =
        Some(QueryType::Record(tgp_aql::Record { open: true, ..Default::default() }));
    assert_eq!(counts(go(&fake, &typed).await), (1, 0, 1));
    for value in fake.cache.lock().unwrap().values_mut() {
        *value = json!("spoilt");
    }
    assert_eq!(counts(go(&fake, &typed).await), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_cached_step_is_done_once_though_both_begin_together() {
    let fake = Arc::new(Fake::echo().with_agent(|_, number| Ok(said(&format!("answer {number}")))));
    let body = block(vec![agent("a", value(json!("same")), &[]).cached()], reference(0));
    let plan = plan(vec![map("each", value(json!([1, 2, 3, 4])), 4, body, &[])], reference(0));
    let report = go(&fake, &plan).await;
    assert_eq!(report.outputs, json!(["answer 1", "answer 1", "answer 1", "answer 1"]));
    assert_eq!((report.ran, report.cached), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn events_tell_the_whole_story_in_order() {
    let fake = Arc::new(Fake::echo());
    let body = block(vec![read("x", empty(), &[])], reference(0));
    let plan = plan(
        vec![map("m", value(json!([1])), 1, body, &[]), merge("all", vec![("m", reference(0))], &[0])],
        reference(1),
    );
    let (_, events) = watch(&fake, &plan, options()).await;
    let story: Vec<String> = events
        .iter()
        .map(|event| match event {
            RunEvent::Run { steps, resumed, .. } => format!("run {steps} {resumed}"),
            RunEvent::Begun { step, kind, attempt } => format!("begun {step} {kind} {attempt}"),
            RunEvent::Done { step, how: ValueSource::Ran, calls, .. } => format!("done {step} {calls}"),
            RunEvent::End { report } => format!("end {}", report.outputs),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        story,
        [
            "run 3 false",
            "begun m map 1",
            "begun m[0].x tool 1",
            "done m[0].x 1",
            "done m 0",
            "begun all merge 1",
            "done all 0",
            "end {\"m\":[{}]}"
        ]
    );
    let text = serde_json::to_string(&events).unwrap();
    assert_eq!(serde_json::from_str::<Vec<RunEvent>>(&text).unwrap(), events);
}

#[tokio::test(start_paused = true)]
async fn nobody_needs_to_listen_and_the_future_can_move_between_threads() {
    fn must_be_send<T: Send>(future: T) -> T {
        future
    }
    let fake = Arc::new(Fake::echo());
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let (plan, ports) = (plan(vec![read("a", empty(), &[])], reference(0)), ports(&fake));
    let report = must_be_send(tgp_aql::run(&plan, options(), &ports, sender, never())).await.unwrap();
    assert_eq!(report.outputs, json!({}));
}
