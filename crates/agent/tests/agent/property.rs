//! Random sessions: whatever happens, the transcript replays, requests are sound, and no effect happens twice.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;
use tgp_agent::{
    AgentOptions, Budgets, Ending, ResumeOptions, StopLevel, TranscriptLine, TranscriptLineKind,
};
use tgp_contract::{Block, ChatOptions, Code, Role, StopReason, StreamEvent, ToolError};

use crate::hashes::check_hashes;
use crate::support::*;

const CONTEXT: u64 = 8_192;
/// Turns that are shortened last.
const KEPT: usize = 4;

fn calls() -> impl Strategy<Value = StreamEvent> {
    let ids = prop_oneof![Just(""), Just("same"), Just("other")];
    let states = prop_oneof![Just("red"), Just("green"), Just("")];
    let codes =
        prop_oneof![8 => Just("ECOMPILE"), 4 => Just("ESTATE"), 1 => Just("ECONFIG"), 1 => Just("EHALT")];
    prop_oneof![
        6 => (ids.clone(), 0u64..3000, 0u64..4, any::<bool>()).prop_map(|(id, size, slow, lines)| call("look", id, json!({ "size": size, "slow": slow, "lines": lines }))),
        4 => (ids.clone(), states).prop_map(|(id, state)| call("change", id, json!({ "state": state }))),
        2 => (ids.clone(), codes, 0u64..2).prop_map(|(id, code, why)| call("fail", id, json!({ "code": code, "why": why.to_string() }))),
        1 => ids.clone().prop_map(|id| call("change", id, json!("{ broken"))),
        1 => ids.clone().prop_map(|id| call("change", id, json!({ "deny": 1 }))),
        1 => ids.prop_map(|id| call("no such", id, json!({ "n": u64::MAX }))),
    ]
}

fn said() -> impl Strategy<Value = StreamEvent> {
    prop_oneof![
        4 => "[a-z ]{0,40}".prop_map(|words| text(&words)),
        1 => Just(StreamEvent::Opaque { provider: "scripted".to_owned(), value: json!({ "s": 0.1 }) }),
        1 => (1u64..5000, 1u64..50).prop_map(|(input, output)| usage(input, output)),
        6 => calls(),
    ]
}

fn plays() -> impl Strategy<Value = Play> {
    let ends = prop_oneof![
        10 => Just(end()),
        2 => Just(StreamEvent::End { reason: Some(StopReason::Length) }),
        1 => Just(StreamEvent::Error { error: ToolError::new(Code::Provider, "overloaded") }),
    ];
    let turn = (prop::collection::vec(said(), 0..8), ends).prop_map(|(mut events, end)| {
        events.push(end);
        Play::Events(events)
    });
    let refused = Just(Play::Refuse(ToolError::new(Code::Provider, "no connection")));
    prop_oneof![20 => turn, 1 => refused]
}

#[derive(Clone, Debug)]
struct Plan {
    plays: Vec<Play>,
    budgets: Budgets,
    wish: Option<(String, StopLevel)>,
    wish_turn: Option<u64>,
    kill: Option<usize>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let limits = (2u64..40, prop::option::of(500u64..20_000), prop::option::of(1u64..3));
    let budgets = limits.prop_map(|(max_steps, max_tokens, max_seconds)| Budgets {
        max_steps,
        max_tokens,
        max_seconds,
        max_cost: None,
    });
    let wishes = prop_oneof![Just(StopLevel::AfterCall), Just(StopLevel::Now)];
    let wish =
        (1u64..8, 1u64..4, wishes).prop_map(|(step, number, wish)| (format!("r{step}.{number}"), wish));
    (
        prop::collection::vec(plays(), 1..14),
        budgets,
        prop::option::of(wish),
        prop::option::weighted(0.2, 0u64..8),
        prop::option::of(1usize..60),
    )
        .prop_map(|(plays, budgets, wish, wish_turn, kill)| Plan {
            plays,
            budgets,
            wish,
            wish_turn,
            kill,
        })
}

/// Whether the results of the last turns are whole, as long as anything older could be shortened.
fn last_results_whole(request: &ChatOptions) -> bool {
    let messages = request.messages.iter().rev().take(2 * KEPT);
    let blocks: Vec<&Block> = messages.flat_map(|message| &message.blocks).collect();
    // A turn without text has no message, so fewer messages are the last turns.
    let silent = |block: &&&Block| matches!(block, Block::Text { text } if text.contains("you said nothing") || text.contains("cut off"));
    let whole = |block: &&Block| match block {
        Block::ToolResult { content, .. } => !content.contains("[shortened from"),
        _ => true,
    };
    let turns = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    turns <= KEPT || blocks.iter().any(|block| silent(&block)) || blocks.iter().all(whole)
}

fn begun(lines: &[TranscriptLine]) -> Vec<String> {
    let call = |line: &TranscriptLine| match &line.kind {
        TranscriptLineKind::Call { id, .. } => Some(id.clone()),
        _ => None,
    };
    lines.iter().filter_map(call).collect()
}

async fn live_through(plan: Plan) {
    let world = Fixture::new(plan.plays);
    *world.wish_at.lock().unwrap() =
        plan.wish.map(|(call, wish)| WishAt { call, wish, hangs: wish == StopLevel::Now });
    *world.wish_at_turn.lock().unwrap() = plan.wish_turn;
    if let Some(lines) = plan.kill {
        world.kill_after(lines);
    }
    let first = AgentOptions { budgets: plan.budgets, limits: context(CONTEXT), ..options() };
    let mut ended = world.run(first).await.0.ok();
    world.kill_after(usize::MAX);
    // It is resumed a few times, whatever has ended it.
    for _ in 0..6 {
        assert_same(&world.lines()).await;
        if ended.as_ref().is_some_and(|summary| summary.ending == Ending::Done) {
            break;
        }
        *world.wish_at_turn.lock().unwrap() = None;
        let again = ResumeOptions { limits: context(CONTEXT), ..resumption() };
        ended = world.resume(again).await.0.ok();
    }
    let lines = world.lines();
    assert_same(&lines).await;
    let effects = world.effects();
    assert_eq!(effects.iter().collect::<BTreeSet<_>>().len(), effects.len(), "no effect happens twice");
    let begun = begun(&lines);
    assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), begun.len(), "no call is begun twice");
    assert!(effects.iter().all(|effect| begun.contains(effect)), "no effect without a line before it");
    for request in world.requests() {
        check_request(&request);
        assert!(last_results_whole(&request));
        // Three quarters of the context at four bytes a token, and twice that where the provider counted few tokens.
        assert!(request_bytes(&request) as u64 <= CONTEXT * 6, "{}", request_bytes(&request));
    }
    check_hashes(&world);
    // A prefix is what a kill leaves, so it replays too.
    for length in (1..lines.len()).step_by(19) {
        assert_same(&lines[..length]).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_sessions_hold(plan in plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(live_through(plan));
    }
}
