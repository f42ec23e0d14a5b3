//! A line is read back as it was written, or not at all.

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_agent::{StopSignal, TranscriptLine, TranscriptLineKind, replay, resume, run};
use tgp_contract::{CallVerdict, Code, Execution, StreamEvent, TddState, ToolResult};
use tokio::sync::mpsc;

use crate::support::*;

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_line_is_read_back(value in values(), sequence: u64, at_ms: u64, text: String) {
        let turn = TranscriptLineKind::Turn {
            step: 1,
            request: text.clone(),
            events: vec![
                StreamEvent::Text { value: text.clone() },
                StreamEvent::ToolCall { tool_name: text.clone(), call_id: text.clone(), arguments: value.clone() },
                StreamEvent::Opaque { provider: text.clone(), value: value.clone() },
                usage(at_ms, sequence),
                end(),
            ],
            ending: tgp_agent::TurnEnding::Complete,
        };
        let result = TranscriptLineKind::Result {
            id: text,
            result: ToolResult::Done(value),
            verdict: CallVerdict::Allowed,
            execution: Some(Execution::Done),
            recorded: None,
            duration_us: 1,
            files: Vec::new(),
            files_omitted: sequence,
            unapplied: at_ms.is_multiple_of(2),
            state: TddState::Red,
        };
        for kind in [turn, result] {
            let line = TranscriptLine { sequence, at_ms, kind };
            let text = line.encode();
            prop_assert!(!text.contains('\n'));
            let read = TranscriptLine::parse(&text).unwrap();
            prop_assert_eq!(read.encode(), text);
            prop_assert_eq!(read, line);
        }
    }
}

#[tokio::test]
async fn a_line_that_somebody_touched_is_refused() {
    let world = Fixture::said(vec![vec![text("hello"), end()]]);
    world.run(options()).await.0.unwrap();
    for line in world.lines() {
        let text = line.encode();
        let touched = [
            format!(" {text}"),
            text.replacen("\"sequence\":", "\"sequence\": ", 1),
            text.replacen("{\"sequence\"", "{\"extra\":1,\"sequence\"", 1),
            text[..text.len() - 1].to_owned(),
            format!("{text}{text}"),
        ];
        for touched in touched {
            assert_eq!(TranscriptLine::parse(&touched).unwrap_err().code, Code::Integrity, "{touched}");
        }
    }
}

#[test]
fn a_session_can_be_moved_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let world = Fixture::said(Vec::new());
    let (sender, _receiver) = mpsc::channel(1);
    let (_handle, signal) = StopSignal::new();
    is_send(&run(options(), world.ports(), sender.clone(), signal.clone()));
    is_send(&resume(Vec::new(), resumption(), world.ports(), sender, signal));
    is_send(&replay(&[]));
}
