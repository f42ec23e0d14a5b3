//! Results as the model reads them: real lines below the JSON, within the bound, and true about what is left out.

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_agent::{AgentOptions, TranscriptLineKind};

use crate::support::*;

/// What the model reads of an answer, and the JSON of the result, by which `recall` counts.
async fn read(answer: Value, context_tokens: u64) -> (String, String) {
    let mut world = Fixture::said(vec![vec![call("exec_tool", "a", json!({})), end()]]);
    world.answer = answer;
    world.run(AgentOptions { limits: context(context_tokens), ..options() }).await.0.unwrap();
    let lines = world.lines();
    assert_same(&lines).await;
    let TranscriptLineKind::Result { result, .. } = &lines[3].kind else { panic!("the result") };
    let request = &world.requests()[1];
    check_request(request);
    (last_results(request).swap_remove(0).1, serde_json::to_string(result).unwrap())
}

#[tokio::test]
async fn long_texts_stand_below_the_json_with_their_own_lines() {
    let source = "fn main() {\n    println!(\"```\");\n}\n// and some more of it, so that it is worth a block\n// the end";
    let answer = json!({ "content": source, "path": "src/main.rs", "note": "short\none", "stderr": "a\tb\n".repeat(20) });
    let (shown, _) = read(answer, 100_000).await;
    let expected = format!(
        "{}\ncontent (without a line break at its end):\n````\n{source}\n````\nstderr:\n```\n{}```",
        r#"{"ok":true,"data":{"path":"src/main.rs","note":"short\none"}}"#,
        "a\tb\n".repeat(20),
    );
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn what_cannot_be_shown_exactly_stays_json() {
    let lines = "a line of some length\n".repeat(10);
    let cases = [
        json!({ "content": format!("{lines}\u{0}") }),
        json!({ "content": format!("{lines}{}", "`".repeat(5_000)) }),
        json!({ "a\n```\nb": lines }),
        json!([lines]),
        json!(lines),
        json!({ "inner": { "content": lines } }),
    ];
    for answer in cases {
        let (shown, raw) = read(answer, 100_000).await;
        assert_eq!(shown, raw);
    }
}

#[tokio::test]
async fn texts_of_an_error_are_shown_so_too() {
    let log = "a line\n".repeat(30);
    let world = Fixture::said(vec![vec![call("fail", "", json!({ "code": "ESQL", "state": log })), end()]]);
    world.run(options()).await.0.unwrap();
    let (_, shown, is_error) = last_results(&world.requests()[1]).swap_remove(0);
    let expected = format!(
        "{}\nstate:\n```\n{log}```",
        r#"{"ok":false,"error":{"code":"ESQL","message":"it failed: ","details":{"help":"try something else"}}}"#
    );
    assert!(is_error);
    assert_eq!(shown, expected);
    assert_same(&world.lines()).await;
}

/// Where the first text that was cut continues in the JSON, and what preceded it there and here.
fn cut_of(shown: &str) -> Option<(usize, &str)> {
    let at = shown.find("bytes of `")?;
    let offset = shown[at..].split("\"offset\": ").nth(1)?.split('}').next()?.parse().ok()?;
    let before = shown[..at].rsplit_once("\n[")?.0;
    let before = before.strip_suffix(before.rsplit_once('\n')?.1)?;
    Some((offset, before))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_a_cut_says_is_true(
        pieces in prop::collection::vec("[a-z\"\\\\é`\t]{0,60}(\n|\r\n)?", 1..120),
        other in prop::collection::vec("[a-z]{1,30}\n", 0..200),
        before in 0u64..1_000_000,
        context_tokens in 2_048u64..20_000,
    ) {
        let (text, other) = (pieces.concat(), other.concat());
        let answer = json!({ "n": before, "k\"ey": "\u{1}", "content": text, "z": [1, "x"], "stdout": other });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (shown, raw) = runtime.block_on(read(answer, context_tokens));
        // One sixteenth of the context at four bytes a token, and what is said about a cut.
        let room = usize::try_from(context_tokens / 4).unwrap().max(400);
        prop_assert!(shown.len() < room + 250, "{} of {room}", shown.len());
        if let Some((offset, before)) = cut_of(&shown) {
            // The JSON continues there in the middle of the text, after exactly what was shown of it.
            let first = if shown[..shown.find("bytes of `").unwrap()].contains("\nstdout") { &other } else { &text };
            let json = serde_json::to_string(first).unwrap();
            let inside = raw.find(&json).unwrap() + 1;
            let rest = &raw[offset..inside - 1 + json.len()];
            let rest: String = serde_json::from_str(&format!("\"{rest}")).unwrap();
            let start = &first[..first.len() - rest.len()];
            prop_assert!(first.ends_with(&rest));
            prop_assert!(before.ends_with(start) || before.ends_with(&format!("{start}\n")), "{before}");
        } else if !shown.contains("are left out here") {
            for text in [&text, &other] {
                let json = serde_json::to_string(text).unwrap();
                prop_assert!(shown.contains(text.as_str()) || shown.contains(&json), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_short_text_beside_a_long_one_is_whole() {
    let long: String = (0..5_000).map(|number| format!("line {number}\n")).collect();
    let short = "error: no such file\n".repeat(10);
    let (shown, raw) = read(json!({ "exitCode": 1, "stdout": long, "stderr": short }), 40_000).await;
    assert!(shown.len() < 10_000 + 250, "{}", shown.len());
    assert!(shown.ends_with(&format!("line 4999\n```\nstderr:\n```\n{short}```")), "{shown}");
    let (offset, before) = cut_of(&shown).unwrap();
    let last: u64 = before.trim_end().rsplit_once(' ').unwrap().1.parse().unwrap();
    assert!(
        raw[offset..].starts_with(&format!("line {}\\n", last + 1)),
        "whole lines, and the next one follows"
    );
}
