//! Random plans under random schedules and latencies: outputs and journals are the same, and a run that was killed at any
//! line resumes to the same end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_aql::{
    EarlierOutcome, Expression, ExpressionForm, JournalLine, Kind, PlanBlock, QueryPlan, RunReport, Step,
};
use tgp_contract::{Code, ToolCall, canonical};

use crate::execute_plans::{
    With, agent, block, expr, field, item, list, map, merge, object, outer, plan, query, reference, step,
    tool, value,
};
use crate::execute_world::{Fake, Reply, options, refuse, reply, watch};

/// Numbers from a seed; a plan is drawn from them.
struct Draw(u64);

/// Whether tools that fail have an `on_error` themselves, or leave it to the steps around them.
#[derive(Clone, Copy, PartialEq)]
enum Failures {
    Excused,
    Spreading,
}

impl Draw {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap()
    }
}

/// What a block that is being drawn can see: for each block around it, outermost first, which steps are there and which
/// of them are tools that never fail.
struct Sight {
    failures: Failures,
    blocks: Vec<Vec<bool>>,
    in_map: Vec<bool>,
}

/// A block, and the steps it uses: how far up, and which.
fn draw_block(
    draw: &mut Draw,
    sight: &mut Sight,
    depth: usize,
    in_map: bool,
) -> (PlanBlock, BTreeSet<(usize, usize)>) {
    sight.blocks.push(Vec::new());
    sight.in_map.push(in_map);
    let mut uses_outside = BTreeSet::new();
    let mut steps = Vec::new();
    for index in 0..1 + draw.next(4) {
        let (step, uses, is_solid) = draw_step(draw, sight, depth, &format!("s{index}"));
        for (up, used) in &uses {
            if *up > 0 {
                uses_outside.insert((up - 1, *used));
            }
        }
        let needs: Vec<usize> = uses.iter().filter(|(up, _)| *up == 0).map(|(_, used)| *used).collect();
        steps.push(Step { needs, ..step });
        sight.blocks.last_mut().unwrap().push(is_solid);
    }
    let all = list((0..steps.len()).map(reference).collect());
    sight.blocks.pop();
    sight.in_map.pop();
    (block(steps, all), uses_outside)
}

type FreeNames = BTreeSet<(usize, usize)>;

fn draw_step(draw: &mut Draw, sight: &mut Sight, depth: usize, name: &str) -> (Step, FreeNames, bool) {
    let mut uses = FreeNames::new();
    let kinds = if depth == 0 { 5 } else { 9 };
    let step = match draw.next(kinds) {
        0..=2 => {
            let salt = draw.next(1_000);
            let arguments =
                object([("salt", value(json!(salt))), ("from", draw_parts(draw, sight, &mut uses))]);
            let name_of_tool = if salt.is_multiple_of(3) { "fs_write" } else { "fs_read" };
            let step = tool(name, name_of_tool, arguments, &[]).retry(1);
            match salt % 10 {
                0 | 1 if sight.failures == Failures::Spreading => step,
                0 => step.skip(),
                1 => step.or_else(value(json!("instead"))),
                _ => return (step, uses, true),
            }
        }
        3 => {
            let prompt =
                expr(ExpressionForm::Text(vec![value(json!("do ")), draw_parts(draw, sight, &mut uses)]));
            agent(name, prompt, &[])
        }
        4 => {
            let parts = vec![("a", draw_parts(draw, sight, &mut uses)), ("b", value(json!(draw.next(9))))];
            merge(name, parts, &[])
        }
        5 | 6 => {
            let over = match draw_solid(draw, sight, &mut uses) {
                Some(solid) => field(solid, "list"),
                None => value(json!((0..draw.next(4)).collect::<Vec<_>>())),
            };
            let (body, inner) = draw_block(draw, sight, depth - 1, true);
            uses.extend(inner);
            map(name, over, 1 + draw.next(3), body, &[])
        }
        7 => {
            let condition = match draw_solid(draw, sight, &mut uses) {
                Some(solid) => field(solid, "flag"),
                None => value(json!(true)),
            };
            let (then, inner) = draw_block(draw, sight, depth - 1, false);
            uses.extend(inner);
            let otherwise = (draw.next(2) == 0).then(|| {
                let (otherwise, inner) = draw_block(draw, sight, depth - 1, false);
                uses.extend(inner);
                otherwise
            });
            step(name, Kind::When { condition, then, otherwise }, &[])
        }
        _ => {
            let mut fresh = Sight { failures: sight.failures, blocks: Vec::new(), in_map: Vec::new() };
            let (mut body, _) = draw_block(draw, &mut fresh, depth - 1, false);
            // What a query was given is part of what it answers.
            body.value = list(vec![body.value, expr(ExpressionForm::Input(0))]);
            let mut inner = plan(Vec::new(), value(json!(null)));
            inner.body = body;
            inner.budget.parallel = (draw.next(2) == 0).then_some(1);
            inner.inputs = vec![tgp_aql::Input {
                name: "given".to_owned(),
                ty: tgp_aql::QueryType::Any,
                default: None,
                place: crate::execute_plans::place(1),
            }];
            let given = draw_parts(draw, sight, &mut uses);
            query(name, inner, vec![("given", given)], &[])
        }
    };
    let is_made_of_others = matches!(step.kind, Kind::Map { .. } | Kind::When { .. } | Kind::Query { .. });
    let is_excused = sight.failures == Failures::Spreading && is_made_of_others && draw.next(3) > 0;
    (if is_excused { step.or_else(value(json!("gone"))) } else { step }, uses, false)
}

/// A list of up to two values that can be seen.
fn draw_parts(draw: &mut Draw, sight: &Sight, uses: &mut FreeNames) -> Expression {
    let mut parts = Vec::new();
    for _ in 0..draw.next(3) {
        let up = draw.next(sight.blocks.len());
        let level = sight.blocks.len() - 1 - up;
        if sight.in_map[level] && draw.next(3) == 0 {
            parts.push(item(up));
        } else if !sight.blocks[level].is_empty() {
            let index = draw.next(sight.blocks[level].len());
            uses.insert((up, index));
            parts.push(outer(up, index));
        }
    }
    list(parts)
}

/// A tool's answer that is surely there.
fn draw_solid(draw: &mut Draw, sight: &Sight, uses: &mut FreeNames) -> Option<Expression> {
    let here = sight.blocks.last()?;
    let solid: Vec<usize> = (0..here.len()).filter(|index| here[*index]).collect();
    let index = *solid.get(draw.next(solid.len() + 1))?;
    uses.insert((0, index));
    Some(reference(index))
}

fn draw_plan(seed: u64, failures: Failures) -> QueryPlan {
    let mut sight = Sight { failures, blocks: Vec::new(), in_map: Vec::new() };
    let (body, _) = draw_block(&mut Draw(seed), &mut sight, 3, false);
    let mut plan = plan(Vec::new(), value(json!(null)));
    plan.body = body;
    plan.budget.calls = Some(100_000);
    plan
}

/// What a tool answers follows from its arguments; how long it takes, from the seed as well. Some fail always, and some
/// only the first time.
fn answer(call: &ToolCall, latencies: u64) -> Reply {
    let hash = canonical::hash(&call.arguments).unwrap();
    let number = u64::from_str_radix(&hash[..8], 16).unwrap();
    let salt = call.arguments["salt"].as_u64().unwrap();
    let delay = 1 + Draw(latencies ^ number).next(40) as u64;
    let is_first = call.id.ends_with("#1");
    let came = match salt % 10 {
        0 | 1 => refuse(Code::Policy),
        2 if is_first => refuse(Code::Provider),
        _ => reply(
            json!({ "n": number, "list": (0..number % 4).collect::<Vec<_>>(), "flag": number.is_multiple_of(2) }),
        ),
    };
    came.after(delay)
}

fn fake(latencies: u64) -> Arc<Fake> {
    Arc::new(Fake::new(move |call| answer(call, latencies)))
}

fn stand_still() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Lines without the time at which they were written.
fn sorted(lines: &[JournalLine]) -> Vec<String> {
    let timeless = |line: &JournalLine| match line.clone() {
        JournalLine::Done { step, value, tokens, calls, cached, .. } => {
            JournalLine::Done { step, value, tokens, calls, cached, worked_ms: 0 }
        }
        other => other,
    };
    let mut texts: Vec<String> =
        lines.iter().map(|line| serde_json::to_string(&timeless(line)).unwrap()).collect();
    texts.sort();
    texts
}

/// Everything of a report that must not depend on the schedule.
fn essence(report: &RunReport) -> (Value, Option<String>, u64, u64, u64) {
    let error = report.error.as_ref().map(ToString::to_string);
    (report.outputs.clone(), error, report.ran, report.tokens, report.calls)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t4_outputs_and_journal_do_not_depend_on_the_schedule(seed: u64, schedules in prop::collection::vec(any::<(u64, u64)>(), 3)) {
        let plan = draw_plan(seed, Failures::Excused);
        let runtime = stand_still();
        let (expected, lines) = runtime.block_on(async {
            let fake = fake(0);
            let (report, _) = watch(&fake, &plan, options()).await;
            (essence(&report), sorted(&fake.lines()))
        });
        prop_assert_eq!(&expected.1, &None);
        for (shuffle, latencies) in schedules {
            let mut plan = plan.clone();
            plan.budget.parallel = Some(1 + Draw(shuffle).next(7));
            let (found, found_lines) = runtime.block_on(async {
                let fake = fake(latencies);
                let options = tgp_aql::RunOptions { shuffle: Some(shuffle), ..options() };
                let (report, _) = watch(&fake, &plan, options).await;
                (essence(&report), sorted(&fake.lines()))
            });
            prop_assert_eq!(&expected, &found);
            prop_assert_eq!(&lines, &found_lines);
        }
    }
}

/// Places at which one plan is killed.
const MAX_KILLS: usize = 60;

fn done_steps(lines: &[JournalLine]) -> BTreeMap<String, usize> {
    let mut done = BTreeMap::new();
    for line in lines {
        if let JournalLine::Done { step, .. } | JournalLine::Excused { step, .. } = line {
            *done.entry(step.clone()).or_insert(0) += 1;
        }
    }
    done
}

/// Steps that were given up count as kept when a run resumes, and as nothing in the run that gave them up.
fn excused(history: &[JournalLine]) -> u64 {
    history.iter().filter(|line| matches!(line, JournalLine::Excused { .. })).count() as u64
}

/// Steps that have begun to take effect and have no end, as a reader of the journal would say.
fn in_doubt(lines: &[JournalLine]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for line in lines {
        match line {
            JournalLine::Effecting { step, .. } => drop(open.insert(step.clone())),
            JournalLine::Begun { step, .. }
            | JournalLine::Done { step, .. }
            | JournalLine::Failed { step, .. }
            | JournalLine::Excused { step, .. } => drop(open.remove(step)),
            JournalLine::Worked { .. } => {}
        }
    }
    open
}

fn step_of(call: &str) -> &str {
    call.split_once('#').unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_that_was_killed_after_any_line_goes_on_to_the_same_end(seed: u64, latencies: u64, second_kill: u64) {
        let plan = draw_plan(seed, Failures::Excused);
        let runtime = stand_still();
        let (whole, lines) = runtime.block_on(async {
            let fake = fake(latencies);
            let (report, _) = watch(&fake, &plan, options()).await;
            (report, fake.lines())
        });
        prop_assert_eq!(&whole.error, &None);
        let all_done = done_steps(&lines);
        // Every line of most plans; a plan with hundreds of lines would take all the time for itself.
        for kept in (0..=lines.len()).step_by(1 + lines.len() / MAX_KILLS) {
            let mut history = lines[..kept].to_vec();
            // It is killed once more on its way, under another schedule, and then resumes to the end.
            for kill in [Some(Draw(second_kill ^ kept as u64).next(lines.len() + 1)), None] {
                let before = done_steps(&history);
                // What may have happened is not repeated while its result is unknown and the repetition is not allowed,
                // and neither is anything else.
                let doubtful = in_doubt(&history);
                if !doubtful.is_empty() {
                    let (error, calls) = runtime.block_on(async {
                        let fake = fake(latencies);
                        let options = tgp_aql::RunOptions { history: history.clone(), ..options() };
                        (watch(&fake, &plan, options).await.0.error, fake.ids().len())
                    });
                    let error = error.unwrap();
                    prop_assert_eq!((error.code, calls), (Code::Integrity, 0));
                    prop_assert!(doubtful.contains(error.details["step"].as_str().unwrap()));
                }
                let is_allowed = Draw(second_kill ^ kept as u64).next(2) == 0;
                let (report, new_lines, calls, tasks) = runtime.block_on(async {
                    let fake = fake(latencies.rotate_left(7) ^ kept as u64);
                    if !is_allowed {
                        *fake.usual_fate.lock().unwrap() = EarlierOutcome::NotCarriedOut;
                    }
                    let options = tgp_aql::RunOptions {
                        history: history.clone(),
                        again: doubtful.iter().filter(|_| is_allowed).cloned().collect(),
                        shuffle: Some(second_kill ^ kept as u64),
                        ..options()
                    };
                    let (report, _) = watch(&fake, &plan, options).await;
                    let tasks = fake.tasks.lock().unwrap().len();
                    (report, fake.lines(), fake.ids(), tasks)
                });
                prop_assert_eq!(&report.outputs, &whole.outputs);
                prop_assert_eq!(&report.error, &None);
                prop_assert_eq!(report.ran + report.kept, whole.ran + excused(&history));
                for call in &calls {
                    prop_assert!(!before.contains_key(step_of(call)), "{} was done and is repeated", call);
                }
                let begun = history.iter().chain(&new_lines).filter_map(|line| match line {
                    JournalLine::Begun { call, .. } if call.contains('#') => Some(call),
                    _ => None,
                });
                let begun: Vec<&String> = begun.collect();
                prop_assert_eq!(begun.len(), begun.iter().collect::<BTreeSet<_>>().len(), "an id was used twice");
                let mut after = before.clone();
                for (step, times) in done_steps(&new_lines) {
                    *after.entry(step).or_insert(0) += times;
                }
                prop_assert_eq!(&after, &all_done);
                let agents = |lines: &[JournalLine]| lines.iter().filter(|line| matches!(line, JournalLine::Begun { call, .. } if !call.contains('#'))).count();
                prop_assert_eq!(agents(&new_lines), tasks);
                if let Some(kill) = kill {
                    history.extend(new_lines.into_iter().take(kill));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a failure takes with it depends on the clock, and so do the lines about it; what is given instead does not.
    #[test]
    fn what_stands_in_for_a_failure_does_not_depend_on_the_schedule_or_on_kills(seed: u64, schedules in prop::collection::vec(any::<(u64, u64)>(), 4)) {
        let plan = draw_plan(seed, Failures::Spreading);
        let runtime = stand_still();
        let run = |latencies: u64, shuffle: Option<u64>, history: Vec<JournalLine>| runtime.block_on(async {
            let fake = fake(latencies);
            *fake.usual_fate.lock().unwrap() = EarlierOutcome::NotCarriedOut;
            let (report, _) = watch(&fake, &plan, tgp_aql::RunOptions { shuffle, history, ..options() }).await;
            ((report.outputs, report.error.is_some()), fake.lines())
        });
        let (expected, mut lines) = run(0, None, Vec::new());
        for (shuffle, latencies) in schedules {
            prop_assert_eq!(&run(latencies, Some(shuffle), Vec::new()).0, &expected);
            lines.truncate(Draw(shuffle).next(lines.len() + 1));
            let (found, more) = run(latencies, Some(shuffle), lines.clone());
            prop_assert_eq!(&found, &expected);
            lines.extend(more);
        }
    }
}
