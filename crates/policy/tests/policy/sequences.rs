//! Rules over a session's history: order, counts, calls at the same time, new rules in the middle.

use proptest::prelude::*;
use serde_json::json;
use tgp_contract::{Access, Effect, Root};
use tgp_contract::{Actor, TddMode};
use tgp_policy::{
    HistoryReplay, HistoryReservation, MissingDetails, PastCall, PastOutcome, Policy, RuleEffect,
    SessionHistory,
};

use crate::support::{call, file, said, try_load};

const RULES: &str = r#"
version: 1
rules:
  - {id: let-all, effect: allow, tools: "*"}
sequences:
  - {id: a-no-leak, after: {tool: exec_sql, match: users}, deny: fetch}
  - {id: b-few, at_most: 3, of: {where: {path: {glob: "**", access: delete}}}}
  - {id: c-chain, after: [one, two], ask: three}
  - {id: d-some, at_most: 2, of: four, effect: ask}
  - {id: e-none, at_most: 0, of: never}
"#;

fn policy() -> Policy {
    try_load(RULES).unwrap()
}

fn plain(tool: &str) -> PastCall {
    call(tool, Effect::Read, vec![])
}

fn sql(text: &str) -> PastCall {
    PastCall { arguments: json!({ "sql": text }), ..plain("exec_sql") }
}

fn deleting(count: usize) -> PastCall {
    let files = (0..count).map(|index| file(Root::Project, &format!("f{index}"), Access::Delete));
    call("rm", Effect::Write, files.collect())
}

/// Judges a call, and says what came of it.
fn begin(
    policy: &Policy,
    history: &mut SessionHistory,
    call: &PastCall,
) -> (String, Option<HistoryReservation>) {
    let ruling = policy.judge(&call.as_question(), history);
    assert_eq!(ruling.ticket.is_none(), ruling.decision.effect == RuleEffect::Deny);
    (said(&ruling.decision), ruling.ticket)
}

/// Judges a call and runs it when it may.
fn run(policy: &Policy, history: &mut SessionHistory, call: &PastCall) -> String {
    let (said, ticket) = begin(policy, history, call);
    if let Some(ticket) = ticket {
        history.settle(policy, ticket, &call.as_question(), PastOutcome::Ran);
    }
    said
}

#[test]
fn steps_have_to_happen_in_their_order() {
    let policy = policy();
    let mut history = SessionHistory::new(&policy);
    let mut steps = |calls: &[(PastCall, &str)]| {
        for (call, expected) in calls {
            assert_eq!(run(&policy, &mut history, call), *expected, "{call:?}");
        }
    };
    steps(&[
        (plain("two"), "allow let-all"),
        (plain("three"), "allow let-all"),
        (plain("one"), "allow let-all"),
        (plain("three"), "allow let-all"),
        (plain("two"), "allow let-all"),
        (plain("three"), "ask c-chain"),
        (plain("three"), "ask c-chain"),
        (plain("fetch"), "allow let-all"),
        (sql("SELECT 1"), "allow let-all"),
        (plain("fetch"), "allow let-all"),
        (sql("SELECT * FROM users"), "allow let-all"),
        (plain("fetch"), "deny a-no-leak"),
        (plain("four"), "allow let-all"),
        (plain("four"), "allow let-all"),
        (plain("four"), "ask d-some"),
        (plain("never"), "deny e-none"),
    ]);
}

#[test]
fn calls_at_the_same_time_cannot_overrun_a_count() {
    let policy = policy();
    let mut history = SessionHistory::new(&policy);
    let one = deleting(1);
    let (_, first) = begin(&policy, &mut history, &one);
    assert_eq!(begin(&policy, &mut history, &deleting(3)).0, "deny b-few");
    let (_, second) = begin(&policy, &mut history, &deleting(2));
    assert_eq!(history.in_flight(), 2);
    assert_eq!(begin(&policy, &mut history, &one).0, "deny b-few");
    // The two that did not run have used nothing up.
    history.settle(&policy, second.unwrap(), &deleting(2).as_question(), PastOutcome::DidNotRun);
    assert_eq!(begin(&policy, &mut history, &deleting(3)).0, "deny b-few");
    history.settle(&policy, first.unwrap(), &one.as_question(), PastOutcome::Ran);
    // A ticket counts once, however often it is settled.
    history.settle(&policy, first.unwrap(), &one.as_question(), PastOutcome::Ran);
    assert_eq!(history.in_flight(), 0);
    assert_eq!(run(&policy, &mut history, &deleting(2)), "allow let-all");
    assert_eq!(run(&policy, &mut history, &one), "deny b-few");
}

#[test]
fn a_step_under_way_counts_as_done_until_it_is_known_not_to_be() {
    let policy = policy();
    let mut history = SessionHistory::new(&policy);
    let leak = sql("select users");
    let (_, ticket) = begin(&policy, &mut history, &leak);
    assert_eq!(begin(&policy, &mut history, &plain("fetch")).0, "deny a-no-leak");
    history.settle(&policy, ticket.unwrap(), &leak.as_question(), PastOutcome::DidNotRun);
    assert_eq!(run(&policy, &mut history, &plain("fetch")), "allow let-all");
    // Both steps at once may end in either order.
    let (_, two) = begin(&policy, &mut history, &plain("two"));
    let (_, one) = begin(&policy, &mut history, &plain("one"));
    assert_eq!(run(&policy, &mut history, &plain("three")), "ask c-chain");
    history.settle(&policy, two.unwrap(), &plain("two").as_question(), PastOutcome::Ran);
    history.settle(&policy, one.unwrap(), &plain("one").as_question(), PastOutcome::Ran);
    assert_eq!(run(&policy, &mut history, &plain("three")), "allow let-all");
}

#[test]
fn a_preview_and_an_explanation_reserve_nothing() {
    let policy = policy();
    let history = SessionHistory::new(&policy);
    let calls = deleting(3);
    for _ in 0..5 {
        assert_eq!(said(&policy.preview(&calls.as_question(), &history)), "allow let-all");
        assert_eq!(said(&policy.explain(&calls.as_question(), &history).decision), "allow let-all");
    }
    assert_eq!(history.in_flight(), 0);
}

#[test]
fn new_rules_keep_the_past_and_what_is_under_way() {
    let old = try_load("version: 1\nrules:\n  - {id: let-all, effect: allow, tools: \"*\"}\n").unwrap();
    let mut history = SessionHistory::new(&old);
    let past = vec![deleting(1), plain("search")];
    for call in &past {
        run(&old, &mut history, call);
    }
    let (_, under_way) = begin(&old, &mut history, &deleting(1));
    let (_, harmless) = begin(&old, &mut history, &plain("search"));
    let (_, stopped) = begin(&old, &mut history, &deleting(1));

    let new = policy();
    // The old history says nothing about the new rules, so nothing goes by it.
    assert_eq!(begin(&new, &mut history, &plain("search")).0, "deny builtin/history");
    let mut history = history.renewed(&new, past);
    assert_eq!(history.in_flight(), 3);
    // What did not run is nothing to any rules; what ran has to be judged by the new ones.
    history.settle(&old, stopped.unwrap(), &deleting(1).as_question(), PastOutcome::DidNotRun);
    history.settle(&old, harmless.unwrap(), &plain("search").as_question(), PastOutcome::Ran);
    assert_eq!(history.in_flight(), 2);
    // It is not known yet what the two are: with them the count is three, and they may have seen users.
    assert_eq!(begin(&new, &mut history, &deleting(1)).0, "deny b-few");
    assert_eq!(begin(&new, &mut history, &plain("fetch")).0, "deny a-no-leak");
    history.settle(&new, harmless.unwrap(), &plain("search").as_question(), PastOutcome::Ran);
    history.settle(&new, under_way.unwrap(), &deleting(1).as_question(), PastOutcome::Ran);
    assert_eq!(run(&new, &mut history, &plain("fetch")), "allow let-all");
    assert_eq!(run(&new, &mut history, &deleting(2)), "deny b-few");
    assert_eq!(run(&new, &mut history, &deleting(1)), "allow let-all");
    // The same text is the same policy.
    assert_eq!(run(&policy(), &mut history, &plain("search")), "allow let-all");
}

#[test]
fn tickets_that_are_never_settled_end_the_session_and_not_the_memory() {
    let policy = policy();
    let mut history = SessionHistory::new(&policy);
    let search = plain("search");
    for _ in 0..4096 {
        assert_eq!(begin(&policy, &mut history, &search).0, "allow let-all");
    }
    assert_eq!(begin(&policy, &mut history, &search), ("deny builtin/calls".to_owned(), None));
    assert_eq!(history.in_flight(), 4096);
}

/// What may be done to a session.
#[derive(Clone, Debug)]
enum Act {
    Begin(usize),
    Settle(prop::sample::Index, bool),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0_usize..8).prop_map(Act::Begin),
        2 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(index, ran)| Act::Settle(index, ran)),
    ]
}

proptest! {
    /// However calls overlap, no count is overrun, and a history rebuilt from what ran says the same as the live one.
    #[test]
    fn overlapping_calls_never_overrun_and_replay_is_exact(acts in prop::collection::vec(any_act(), 0..60)) {
        let world =
            [deleting(1), deleting(2), sql("users"), plain("fetch"), plain("one"), plain("two"), plain("three"), plain("four")];
        let policy = policy();
        let mut history = SessionHistory::new(&policy);
        let mut open: Vec<(HistoryReservation, usize)> = Vec::new();
        let mut ran: Vec<usize> = Vec::new();
        let mut end = |history: &mut SessionHistory, (ticket, index): (HistoryReservation, usize), outcome| {
            history.settle(&policy, ticket, &world[index].as_question(), outcome);
            if outcome == PastOutcome::Ran {
                ran.push(index);
            }
        };
        for act in acts {
            match act {
                Act::Begin(index) => {
                    if let (_, Some(ticket)) = begin(&policy, &mut history, &world[index]) {
                        open.push((ticket, index));
                    }
                }
                Act::Settle(place, did_run) if !open.is_empty() => {
                    let flight = open.remove(place.index(open.len()));
                    end(&mut history, flight, if did_run { PastOutcome::Ran } else { PastOutcome::DidNotRun });
                }
                Act::Settle(..) => {}
            }
        }
        for flight in open {
            end(&mut history, flight, PastOutcome::Ran);
        }
        let deleted: usize = ran.iter().map(|index| world[*index].targets.len()).sum();
        prop_assert!(deleted <= 3, "{} files were deleted", deleted);
        let rebuilt = SessionHistory::replay(&policy, ran.iter().map(|index| world[*index].clone()));
        for call in &world {
            let question = call.as_question();
            prop_assert_eq!(policy.preview(&question, &history), policy.preview(&question, &rebuilt));
        }
    }
}

#[test]
fn a_table_in_capitals_does_not_evade_a_sequence_rule() {
    let policy = policy();
    for text in ["SELECT * FROM USERS", "select * from Users", "SELECT * FROM users"] {
        let mut history = SessionHistory::new(&policy);
        assert_eq!(run(&policy, &mut history, &sql(text)), "allow let-all");
        assert_eq!(run(&policy, &mut history, &plain("fetch")), "deny a-no-leak", "{text}");
    }
}

/// The history of a session that a record describes, and what it says of a call then.
fn replayed(policy: &Policy, past: &[(PastCall, MissingDetails)], call: &PastCall) -> String {
    let mut replay = HistoryReplay::new(policy);
    for (call, missing) in past {
        replay.add(call, *missing);
    }
    run(policy, &mut replay.finish(), call)
}

#[test]
fn what_a_record_does_not_know_any_more_counts_as_if_it_fitted() {
    let policy = policy();
    let whole = MissingDetails::default();
    let cut = MissingDetails { arguments: true, ..whole };
    let lost = MissingDetails { targets: true, ..whole };
    let long = sql("SELECT 1 /* the rest was cut */");
    assert_eq!(replayed(&policy, &[(long.clone(), whole)], &plain("fetch")), "allow let-all");
    assert_eq!(replayed(&policy, &[(long.clone(), cut)], &plain("fetch")), "deny a-no-leak");
    let other = call("fs_read", Effect::Read, vec![]);
    assert_eq!(
        replayed(&policy, &[(other, cut)], &plain("fetch")),
        "allow let-all",
        "another tool is another"
    );
    // Files that are not named count one each.
    let unnamed = call("rm", Effect::Write, vec![]);
    let past = vec![(unnamed.clone(), lost); 3];
    assert_eq!(replayed(&policy, &past, &deleting(1)), "deny b-few");
    let past = vec![(unnamed, whole); 3];
    assert_eq!(replayed(&policy, &past, &deleting(1)), "allow let-all");
}

#[test]
fn a_restart_forgets_neither_actor_nor_state_of_a_step() {
    let text = r#"
version: 1
sequences:
  - {id: by-actor, after: {tool: one, actor: "agent:ann*"}, deny: two}
  - {id: by-mode, after: {tool: three, when: {mode: explore, state: red}}, deny: four}
"#;
    let policy = try_load(text).unwrap();
    let by = |id: &str| PastCall { actor: Actor::Agent(id.to_owned()), ..plain("one") };
    let whole = MissingDetails::default();
    let nobody = MissingDetails { actor: true, ..whole };
    assert_eq!(replayed(&policy, &[(by("ann"), whole)], &plain("two")), "deny by-actor");
    assert_eq!(replayed(&policy, &[(by("ben"), whole)], &plain("two")), "allow default/read");
    assert_eq!(replayed(&policy, &[(by("ben"), nobody)], &plain("two")), "deny by-actor");
    // No record says in which mode and state a call was made.
    let strict = PastCall { mode: TddMode::Strict, ..plain("three") };
    assert_eq!(replayed(&policy, &[(strict, whole)], &plain("four")), "deny by-mode");
}

#[test]
fn the_documented_example_holds_whatever_the_case() {
    let text = r#"
version: 1
sequences:
  - id: no-leak
    after: {tool: exec_sql, match: users}
    deny: fetch
    match:
      - [{tool: exec_sql, arguments: {sql: "SELECT * FROM USERS"}}, {tool: fetch, arguments: {url: "https://example.com"}}]
    not_match:
      - [{tool: fetch, arguments: {url: "https://example.com"}}]
"#;
    try_load(text).unwrap();
}
