//! The scripted model: what it plays, what it refuses, and where it says so.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tgp_contract::{
    Block, ChatOptions, Code, Message, ModelProvider, Role, SourceLocation, StopReason, StreamEvent, Usage,
};
use tgp_llm::Script;

use crate::support::{conversation, hello, play, user};

fn at(turn: u64, messages: Vec<Message>) -> ChatOptions {
    ChatOptions { turn, ..conversation(messages) }
}

fn told(results: &[&str]) -> Message {
    let result = |content: &&str| Block::ToolResult {
        call_id: "a".to_owned(),
        content: (*content).to_owned(),
        is_error: false,
    };
    Message { role: Role::User, blocks: results.iter().map(result).collect() }
}

fn say(value: &str) -> StreamEvent {
    StreamEvent::Text { value: value.to_owned() }
}

const END: StreamEvent = StreamEvent::End { reason: None };

#[tokio::test]
async fn a_turn_is_played_by_its_number() {
    let text = r#"{
        "clock": "2026-01-31T12:00:00.25Z", "seed": 7,
        "turns": [
            [{"type":"text","value":"One"},
             {"type":"tool_call","toolName":"fs_read","callId":"x","arguments":{"path":"a"}},
             {"type":"tool_call","toolName":"now"},
             {"type":"usage","inputTokens":1,"outputTokens":2}],
            {"events": [{"type":"opaque","provider":"script","value":{"a":[1]}}, {"type":"end","reason":"length"}]},
            [{"type":"text","value":"Hm"}, {"type":"error","error":{"code":"EPROVIDER","message":"gone"}}],
            []
        ]
    }"#;
    let script = Script::parse("turns.json", text).unwrap();
    assert_eq!(
        (script.name(), script.clock_ms(), script.seed(), script.turns()),
        ("script", Some(1_769_860_800_250), Some(7), 4)
    );
    assert_eq!(script.models().await.unwrap().len(), 1);
    let call = |id: &str, name: &str, arguments| StreamEvent::ToolCall {
        tool_name: name.to_owned(),
        call_id: id.to_owned(),
        arguments,
    };
    let first = vec![
        say("One"),
        call("x", "fs_read", json!({ "path": "a" })),
        call("call_0_2", "now", json!({})),
        StreamEvent::Usage(Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() }),
        END,
    ];
    // In any order and as often as one likes: only the number counts.
    for _ in 0..2 {
        let turn = async |number| play(&script, at(number, vec![user("Go")])).await;
        assert_eq!(
            turn(1).await.unwrap(),
            [
                StreamEvent::Opaque { provider: "script".to_owned(), value: json!({ "a": [1] }) },
                StreamEvent::End { reason: Some(StopReason::Length) }
            ]
        );
        assert_eq!(turn(0).await.unwrap(), first);
        let broken = turn(2).await.unwrap();
        assert!(
            matches!(&broken[..], [StreamEvent::Text { .. }, StreamEvent::Error { error }] if error.message == "gone")
        );
        assert_eq!(turn(3).await.unwrap(), [END]);
        for beyond in [4, u64::MAX] {
            let error = turn(beyond).await.unwrap_err();
            assert_eq!(error.code, Code::Provider);
            assert!(error.message.starts_with(&format!("the script has no turn {beyond}")), "{error}");
            assert!(error.help_of().is_some());
        }
    }
}

#[tokio::test]
async fn a_turn_that_begins_with_an_error_was_never_heard() {
    let script =
        Script::parse("s", r#"[[{"type":"error","error":{"code":"EPROVIDER","message":"no"}}]]"#).unwrap();
    assert_eq!(play(&script, at(0, vec![])).await.unwrap_err().message, "no");
}

#[tokio::test]
async fn a_turn_can_check_what_it_was_told() {
    let text =
        r#"[{"events": [{"type":"text","value":"Fine"}], "expect": {"lastResultContains": "2 passed"}}]"#;
    let script = Script::parse("s", text).unwrap();
    let assistant =
        Message { role: Role::Assistant, blocks: vec![Block::Text { text: "2 passed".to_owned() }] };
    let good = [
        vec![user("Go"), told(&["1 failed", "2 passed, 0 failed"])],
        vec![user("It says: 2 passed")],
        vec![told(&["2 passed"]), user("Well?")],
        vec![user("2 passed"), assistant.clone()],
    ];
    for messages in good {
        assert_eq!(play(&script, at(0, messages)).await.unwrap(), [say("Fine"), END]);
    }
    let bad = [
        vec![],
        vec![user("2 passed"), assistant.clone(), told(&["1 passed"])],
        vec![assistant],
        vec![told(&[])],
    ];
    for messages in bad {
        let error = play(&script, at(0, messages.clone())).await.unwrap_err();
        assert_eq!(error.code, Code::Provider);
        assert!(error.message.contains("`2 passed`"), "{error}");
        let heard = if messages.len() == 3 { json!(["1 passed"]) } else { json!([]) };
        assert_eq!(error.details["heard"], heard);
    }
}

#[tokio::test]
async fn a_slow_turn_can_be_left() {
    let text =
        r#"[{"events": [{"type":"text","value":"a"}, {"type":"text","value":"b"}], "delayMs": 60000}]"#;
    let script = Script::parse("s", text).unwrap();
    let mut events = script.chat(at(0, vec![])).await.unwrap();
    assert_eq!(events.next().await, Some(say("a")));
    assert!(tokio::time::timeout(Duration::from_millis(20), events.next()).await.is_err());

    let script = Script::parse("s", &text.replace("60000", "1")).unwrap();
    assert_eq!(play(&script, ChatOptions { turn: 0, ..hello() }).await.unwrap(), [say("a"), say("b"), END]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("", 1, "EOF while parsing"),
        ("7", 1, "expected a list of turns, or an object with `turns`"),
        ("{}", 1, "missing field `turns`"),
        (
            "{\"turns\": [],\n \"speed\": 1}",
            2,
            "unknown field `speed`, expected one of `turns`, `clock`, `seed`",
        ),
        ("{\"turns\": [],\n \"seed\": -1}", 2, "expected u64"),
        ("{\"turns\": [],\n \"clock\": \"noon\"}", 2, "`noon` is not a time"),
        ("{\"turns\": [],\n \"clock\": \"1960-01-01T00:00:00Z\"}", 2, "is not a time since 1970"),
        ("[\n \"text\"]", 2, "expected a turn: a list of events"),
        ("[\n [1]]", 2, "expected struct"),
        ("[[\n {\"type\":\"speak\"}]]", 2, "unknown variant `speak`, expected one of `text`, `tool_call`"),
        (
            "[[\n {\"type\":\"tool_result\",\"callId\":\"a\",\"result\":1}]]",
            2,
            "unknown variant `tool_result`",
        ),
        ("[[\n {\"value\":\"x\"}]]", 2, "missing field `type`"),
        ("[[\n {\"type\":\"text\"}]]", 2, "a `text` event needs `value`"),
        ("[[\n {\"type\":\"text\",\"value\":1}]]", 2, "the `value` of a `text` event is a string"),
        ("[[\n {\"type\":\"text\",\"value\":\"x\",\"words\":1}]]", 2, "unknown field `words`"),
        (
            "[[\n {\"type\":\"text\",\"value\":\"x\",\"callId\":\"a\"}]]",
            2,
            "`callId` is not a field of a `text` event",
        ),
        ("[[\n {\"type\":\"tool_call\",\"arguments\":{}}]]", 2, "needs `toolName`"),
        ("[[\n {\"type\":\"usage\",\"inputTokens\":1}]]", 2, "needs `outputTokens`"),
        ("[[\n {\"type\":\"end\",\"reason\":\"bored\"}]]", 2, "unknown variant `bored`"),
        (
            "[[\n {\"type\":\"error\",\"error\":{\"code\":\"EWHAT\",\"message\":\"\"}}]]",
            2,
            "unknown variant `EWHAT`",
        ),
        ("[[{\"type\":\"end\"},\n {\"type\":\"end\"}]]", 2, "nothing follows an `end`"),
        ("[{\"events\":[],\n \"delayMs\": 60001}]", 2, "`delayMs` is more than 60000"),
        ("[{\"events\":[],\n \"expect\": {\"contains\": \"x\"}}]", 2, "unknown field `contains`"),
        (
            "[{\"events\":[],\n \"when\": 1}]",
            2,
            "unknown field `when`, expected one of `events`, `delayMs`, `expect`",
        ),
        ("[]\n]", 2, "trailing characters"),
    ];
    for (text, line, expected) in cases {
        let error = Script::parse("turns.json", text).unwrap_err();
        assert_eq!(error.code, Code::Config, "{text}");
        assert!(error.message.contains(expected), "{text}: {error}");
        let SourceLocation { file, line: told, column } = error.place_of().unwrap();
        assert_eq!((file.as_str(), told), ("turns.json", line), "{text}: {error}");
        assert!(error.message.contains(&format!("turns.json:{line}:{column}")), "{text}: {error}");
        assert!(error.help_of().is_some(), "{text}");
    }
    // A column counts characters, not bytes.
    let error = Script::parse("s", "[[{\"type\":\"text\",\"value\":\"äöü\",\"x\":1}]]").unwrap_err();
    assert_eq!(error.place_of().unwrap().column, 34, "{error}");
}

#[test]
fn a_file_is_read_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turns.json");
    assert_eq!(Script::read(&path).unwrap_err().code, Code::NotFound);
    assert_eq!(Script::read(folder.path()).unwrap_err().code, Code::Config);
    std::fs::write(&path, "[[{\"type\":\"text\",\"value\":\"x\"}],\n[7]]").unwrap();
    let error = Script::read(&path).unwrap_err();
    assert_eq!(error.place_of().unwrap().file, path.display().to_string());
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_eq!(Script::read(&path).unwrap_err().code, Code::Config);
    std::fs::write(&path, " ".repeat(16 * 1024 * 1024 + 1)).unwrap();
    assert!(Script::read(&path).unwrap_err().message.contains("larger than"));
    std::fs::write(&path, "[[]]").unwrap();
    assert_eq!(Script::read(&path).unwrap().turns(), 1);
}
