//! What the model reads: bounded results, a bounded conversation, and what is shortened first.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tgp_agent::{
    AgentEvent, AgentLimits, AgentOptions, Budgets, Ending, Prices, Replayed, ResumeOptions,
    TranscriptLineKind, replay,
};
use tgp_contract::{Block, ChatOptions, Code, StreamEvent};

use crate::hashes::check_hashes;
use crate::support::*;

fn contents(request: &ChatOptions) -> Vec<&str> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks
        .filter_map(|block| match block {
            Block::ToolResult { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect()
}

fn looks(turns: usize, size: u64) -> Vec<Vec<StreamEvent>> {
    (0..turns)
        .map(|one| vec![call("look", "", json!({ "path": format!("src/{one}.rs"), "size": size })), end()])
        .collect()
}

#[tokio::test]
async fn a_long_result_is_cut_in_the_middle_and_says_how_to_read_it() {
    let world = Fixture::said(looks(1, 200_000));
    world.run(AgentOptions { limits: context(1_000_000), ..options() }).await.0.unwrap();
    let request = &world.requests()[1];
    let content = contents(request)[0];
    assert!(content.len() < (32 << 10) + 200, "{}", content.len());
    assert!(content.starts_with(r#"{"ok":true,"#) && content.ends_with("\"}}"));
    // The offset is where the text stops, as `recall` counts.
    let stop = content.find("\n[").unwrap();
    let hint = format!("recall {{\"id\": \"r1.1\", \"offset\": {stop}}} reads them]");
    assert!(content.contains(&hint), "{}", &content[stop..stop + 150]);
}

#[tokio::test]
async fn a_small_context_takes_smaller_results_and_many_calls_share_their_room() {
    for (calls, most) in [(1, 4096_usize), (30, 400)] {
        let events = (0..calls).map(|_| call("look", "", json!({ "size": 50_000 }))).chain([end()]).collect();
        let world = Fixture::said(vec![events]);
        let summary = world.run(AgentOptions { limits: context(16_384), ..options() }).await.0.unwrap();
        assert_eq!(summary.ending, Ending::Done);
        let requests = world.requests();
        let longest = contents(&requests[1]).iter().map(|content| content.len()).max().unwrap();
        assert!(longest < most + 200, "{longest}");
        assert!(request_bytes(&requests[1]) < 16_384 * 3);
    }
}

#[tokio::test]
async fn old_results_give_way_first_then_old_turns_and_never_the_last_ones() {
    const CONTEXT: u64 = 8_192;
    let world = Fixture::said(looks(60, 1_500));
    let (summary, events) = world.run(AgentOptions { limits: context(CONTEXT), ..options() }).await;
    assert_eq!(summary.unwrap().ending, Ending::Done);
    let requests = world.requests();
    let (mut shortened, mut summarised) = (None, None);
    for (number, request) in requests.iter().enumerate() {
        check_request(request);
        assert!(
            request_bytes(request) as u64 <= CONTEXT * 3,
            "request {number} has {}",
            request_bytes(request)
        );
        assert_eq!(request.system, "THE SYSTEM PROMPT");
        assert_eq!(request.turn, number as u64);
        let contents = contents(request);
        // The last four results are whole.
        assert!(
            contents
                .iter()
                .rev()
                .take(4)
                .all(|content| content.len() > 1_500 && !content.contains("[shortened"))
        );
        let Block::Text { text } = &request.messages[0].blocks[0] else { panic!("the task") };
        assert_eq!(text, "THE TASK: do it");
        if contents.iter().any(|content| content.contains("[shortened")) {
            shortened.get_or_insert(number);
        }
        if let Some(Block::Text { text }) = request.messages[0].blocks.get(1) {
            summarised.get_or_insert(number);
            assert!(
                text.contains("- step 1: r1.1 look path=src/0.rs: ok")
                    || text.contains("older lines are left out")
            );
        }
    }
    let (shortened, summarised) = (shortened.unwrap(), summarised.unwrap());
    assert!(shortened < summarised, "{shortened} {summarised}");
    let told = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Notice { message } if message.contains("context")))
        .count();
    // Each time it makes room for several turns, so that what a provider has cached stays good for a while.
    assert!((2..40).contains(&told), "{told}");
    check_hashes(&world);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn what_the_user_added_stays_when_its_turn_is_gone() {
    let mut turns = looks(3, 1_500);
    turns.push(vec![text("done so far"), end()]);
    turns.extend(looks(40, 1_500));
    let world = Fixture::said(turns);
    let small = AgentOptions { limits: context(8_192), ..options() };
    world.run(small).await.0.unwrap();
    let message = "MIND THIS: never touch the tests.".to_owned();
    let more = ResumeOptions { message: Some(message.clone()), limits: context(8_192), ..resumption() };
    world.resume(more).await.0.unwrap();
    for request in world.requests().iter().skip(4) {
        let all = serde_json::to_string(&request.messages).unwrap();
        assert_eq!(all.matches(&message).count(), 1);
    }
    let last = world.requests().pop().unwrap();
    assert!(
        serde_json::to_string(&last.messages[0]).unwrap().contains(&message),
        "its turn is summarised by now"
    );
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn what_a_provider_counts_corrects_the_estimate() {
    let mut most = Vec::new();
    // About as many as estimated, twice as many, and half as many.
    for tokens in [0, 500, 125] {
        let world = Fixture::said(looks(60, 1_500));
        world.tokens_a_thousand_bytes.store(tokens, Ordering::SeqCst);
        let summary = world.run(AgentOptions { limits: context(16_384), ..options() }).await.0.unwrap();
        assert_eq!(summary.ending, Ending::Done);
        assert_same(&world.lines()).await;
        let sizes = world.requests().iter().map(request_bytes).max().unwrap();
        // By the provider's own count no request was more than three quarters of the context, but for the first guess.
        assert!(sizes as u64 * tokens / 1000 <= 16_384 / 100 * 76, "{sizes} bytes at {tokens}");
        most.push(sizes);
    }
    assert!(most[1] < most[0] / 3 * 2 && most[2] > most[0] / 2 * 3, "{most:?}");
}

#[tokio::test]
async fn a_task_that_does_not_fit_stops_with_a_clear_word() {
    let world = Fixture::said(Vec::new());
    let task = format!("THE TASK: {}", "x".repeat(40_000));
    let summary = world.run(AgentOptions { limits: context(8_192), task, ..options() }).await.0.unwrap();
    let Ending::Budget { error } = summary.ending else { panic!("it does not fit") };
    assert_eq!((error.code, error.details["bound"].clone()), (Code::Budget, json!("context")));
    assert!(error.help_of().unwrap().contains("set llm.contextTokens"), "{error:?}");
    assert!(world.requests().is_empty());
    assert_same(&world.lines()).await;
    // It is not a dead end: with a larger one it continues.
    let small = ResumeOptions { limits: context(8_192), ..resumption() };
    assert!(matches!(world.resume(small).await.0.unwrap().ending, Ending::Budget { .. }));
    assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
    assert_same(&world.lines()).await;
}

/// The arguments of each call in a request, oldest first.
fn arguments(request: &ChatOptions) -> Vec<&Value> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks
        .filter_map(|block| match block {
            Block::ToolCall { arguments, .. } => Some(arguments),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn large_writes_give_way_instead_of_ending_the_session() {
    const CONTENT: usize = 96 << 10;
    let content = "fn main() {}\n".repeat(CONTENT / 13);
    let turn = |one: usize| {
        // One of them has two long texts, one of which lies deeper, beside short ones.
        let edits = json!([{ "old": "short", "new": content }]);
        let wanted = json!({ "path": format!("src/{one}.rs"), "content": content, "edits": edits, "n": one });
        let plain = json!({ "path": format!("src/{one}.rs"), "content": content });
        vec![text("I write."), call("write_file", "", if one == 2 { wanted } else { plain }), end()]
    };
    let script: Vec<Vec<StreamEvent>> = (0..12).map(turn).collect();
    let world = Fixture::said(script.clone());
    let (summary, events) = world.run(options()).await;
    let summary = summary.unwrap();
    assert_eq!((summary.ending, summary.calls), (Ending::Done, 12));
    assert!(events.iter().any(|event| matches!(event, AgentEvent::Notice { message } if message.contains("arguments were shortened"))));
    let requests = world.requests();
    for (number, request) in requests.iter().enumerate() {
        check_request(request);
        assert!(request_bytes(request) <= 300_000, "{number}: {}", request_bytes(request));
        // What is being answered is there as it was made.
        let sent = arguments(request);
        assert!(sent.last().is_none_or(|last| last["content"] == json!(content)), "{number}");
        for of_call in &sent {
            let written = of_call["content"].as_str().unwrap();
            assert!(of_call["path"].as_str().unwrap().starts_with("src/"));
            let is_whole = written == content;
            let told = format!(
                "[shortened here from {} bytes; the call had all of them, and a file that it wrote can be read again; recall {{\"id\": \"r",
                content.len()
            );
            assert!(is_whole || (written.starts_with("fn main") && written.contains(&told)), "{number}");
            if let Some(edits) = of_call.get("edits") {
                assert_eq!((edits[0]["old"].as_str(), of_call["n"].as_u64()), (Some("short"), Some(2)));
                let new = edits[0]["new"].as_str().unwrap();
                assert_eq!(new == content, is_whole, "both give way together");
            }
        }
        // The oldest are shortened first.
        let whole: Vec<bool> = sent.iter().map(|of_call| of_call["content"] == json!(content)).collect();
        assert!(whole.is_sorted(), "{whole:?}");
    }
    check_hashes(&world);
    assert_same(&world.lines()).await;
    // The transcript and the tool had all of it.
    assert!(world.made.lock().unwrap().iter().all(|(made, _)| made.arguments["content"] == json!(content)));
    // A session that was killed asks the same.
    let killed = Fixture::said(script);
    killed.kill_after(17);
    assert!(killed.run(options()).await.0.is_err());
    killed.kill_after(usize::MAX);
    killed.resume(resumption()).await.0.unwrap();
    for request in killed.requests() {
        assert_eq!(request, requests[usize::try_from(request.turn).unwrap()]);
    }
}

#[tokio::test]
async fn results_of_the_last_turns_give_way_before_a_session_ends() {
    let turn = |_| (0..8).map(|_| call("look", "", json!({ "size": 600 }))).chain([end()]).collect();
    let world = Fixture::said((0..3).map(turn).collect());
    let (summary, _) = world.run(AgentOptions { limits: context(4_096), ..options() }).await;
    assert_eq!(summary.unwrap().ending, Ending::Done);
    let requests = world.requests();
    let shortened: Vec<Vec<bool>> = requests
        .iter()
        .map(|request| contents(request).iter().map(|content| content.contains("[shortened from")).collect())
        .collect();
    for (number, request) in requests.iter().enumerate() {
        check_request(request);
        assert!(request_bytes(request) <= 4_096 * 3, "{number}: {}", request_bytes(request));
    }
    // The newest stay whole as long as the older ones are enough.
    assert!(shortened[1].iter().all(|short| !short), "{shortened:?}");
    assert!(
        shortened[3][..8].iter().all(|short| *short) && shortened[3][16..].iter().all(|short| !short),
        "{shortened:?}"
    );
    check_hashes(&world);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_session_that_is_gone_on_with_has_the_limits_of_now() {
    let prices = |input: f64| Some(Prices { input, output: 0.0, ..Prices::default() });
    let first = AgentLimits {
        context_tokens: 8_192,
        max_output_tokens: Some(100),
        temperature: Some(0.9),
        prices: prices(1.0),
    };
    let turn = |one: usize| {
        vec![call("look", "", json!({ "path": one.to_string(), "size": 6_000 })), usage(1_000, 0), end()]
    };
    let world = Fixture::said((0..12).map(turn).collect());
    let few = Budgets { max_steps: 3, ..budgets() };
    let summary = world.run(AgentOptions { limits: first, budgets: few, ..options() }).await.0.unwrap();
    assert_eq!(summary.cost, Some(0.003));
    let now = AgentLimits {
        context_tokens: 200_000,
        max_output_tokens: Some(9_000),
        temperature: None,
        prices: prices(2.0),
    };
    let more = Budgets { max_steps: 6, ..budgets() };
    let options = ResumeOptions { limits: now, budgets: more, ..resumption() };
    assert_eq!(world.resume(options).await.0.unwrap().cost, Some(0.012));
    let dear = Budgets { max_cost: Some(0.015), ..budgets() };
    let options = ResumeOptions { limits: now, budgets: dear, ..resumption() };
    let Ending::Budget { error } = world.resume(options).await.0.unwrap().ending else { panic!("the cost") };
    assert!(error.message.contains("cost 0.0160 of 0.0150"), "{error:?}");
    let without = AgentLimits { prices: None, max_output_tokens: None, ..context(8_192) };
    let options = ResumeOptions { limits: without, ..resumption() };
    let summary = world.resume(options).await.0.unwrap();
    assert_eq!((summary.ending, summary.cost), (Ending::Done, None));
    let requests = world.requests();
    requests.iter().for_each(check_request);
    assert_eq!((requests[2].max_output_tokens, requests[2].temperature), (Some(100), Some(0.9)));
    assert_eq!((requests[3].max_output_tokens, requests[3].temperature), (Some(9_000), None));
    assert_eq!((requests[8].max_output_tokens, requests[8].temperature), (None, Some(0.1)));
    // A small context reads little of a result, and a large one all of it.
    assert!(contents(&requests[1])[0].len() < 3_000 && contents(&requests[4])[3].len() > 6_000);
    assert!(contents(&requests[9]).last().unwrap().len() < 4_500);
    assert_same(&world.lines()).await;
    // The limits are in their line, so a change of them is found.
    let lines = world.lines();
    let at = lines.iter().position(|line| matches!(line.kind, TranscriptLineKind::Resumed { .. })).unwrap();
    let mut changed = lines.clone();
    let TranscriptLineKind::Resumed { limits: of_now, .. } = &mut changed[at].kind else {
        panic!("a resumption")
    };
    of_now.temperature = Some(0.3);
    let found = replay(&changed).await.unwrap();
    assert!(matches!(found, Replayed::Differs { line, .. } if line == at as u64 + 1), "{found:?}");
    // What cannot be right is refused before a line is written.
    for wrong in [context(10), AgentLimits { prices: prices(f64::NAN), ..limits() }] {
        let options = ResumeOptions { limits: wrong, message: Some("on".to_owned()), ..resumption() };
        assert_eq!(world.resume(options).await.0.unwrap_err().code, Code::Config);
    }
    assert_eq!(world.lines(), lines);
}

#[tokio::test]
async fn a_thousand_calls_do_not_make_the_conversation_grow() {
    const CONTEXT: u64 = 4_096;
    let turn = |one: u64| {
        let calls = (0..4)
            .map(|number| call("look", "", json!({ "path": format!("src/{one}_{number}.rs"), "size": 300 })));
        calls.chain([end()]).collect()
    };
    let world = Fixture::said((0..250).map(turn).collect());
    let budgets = tgp_agent::Budgets { max_steps: 300, ..budgets() };
    let summary = world.run(AgentOptions { limits: context(CONTEXT), budgets, ..options() }).await.0.unwrap();
    assert_eq!((summary.ending, summary.calls), (Ending::Done, 1_000));
    let sizes: Vec<usize> = world.requests().iter().map(request_bytes).collect();
    assert!(sizes.iter().all(|size| *size as u64 <= CONTEXT * 3));
    // What the loop holds after a thousand calls is what it held after two hundred.
    let most = |sizes: &[usize]| sizes.iter().copied().max().unwrap();
    assert!(most(&sizes[200..]) <= most(&sizes[20..60]) + 1_000);
    assert_same(&world.lines()).await;
}
