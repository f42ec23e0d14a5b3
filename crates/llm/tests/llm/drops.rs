//! Connections that end too early, on either side.

use futures_util::StreamExt;
use tgp_contract::{Code, StreamEvent};
use tgp_llm::Wire;

use crate::server::{Answer, Server, Step};
use crate::support::{WIRES, hello, once, play, recorded, without_port};

/// The event after which everything was said.
fn finish_marker(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAiChat => "\"finish_reason\":\"tool_calls\"",
        Wire::OpenAiResponses => "\"type\":\"response.completed\"",
        Wire::Anthropic => "\"stop_reason\":\"tool_use\"",
    }
}

/// The length of the stream up to the end of the event that holds `marker`.
fn end_of(stream: &str, marker: &str) -> usize {
    let place = stream.find(marker).unwrap();
    place + stream[place..].find("\n\n").unwrap() + 2
}

fn is_usage(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::Usage(_))
}

/// What was received of a stream that was cut must be a true beginning of it, and its end must be reported.
fn check_cut(heard: &[StreamEvent], whole: &[StreamEvent], is_finished: bool, at: &str) {
    let (last, before) = heard.split_last().unwrap();
    assert_eq!(before, &whole[..before.len()], "{at}");
    if is_finished {
        assert_eq!(Some(last), whole.last(), "{at}");
        let missing = &whole[before.len()..whole.len() - 1];
        assert!(missing.iter().all(is_usage), "{at}: {missing:?}");
        return;
    }
    let StreamEvent::Error { error } = last else { panic!("{at}: {heard:?}") };
    assert_eq!(error.code, Code::Provider, "{at}");
    assert!(error.message.contains("closed before the answer was complete"), "{at}: {error}");
    assert_eq!(error.details["retryable"], true, "{at}");
}

async fn cut_everywhere(name: &str, wire: Wire, step: usize, cut: impl Fn(&[u8]) -> Answer) {
    let stream = recorded(name);
    let whole = {
        let server = Server::start(vec![Answer::events(&stream)]).await;
        without_port(play(&*once(wire, &server.base), hello()).await.unwrap(), &server.base)
    };
    let lengths: Vec<usize> = (0..=stream.len()).step_by(step).collect();
    let answers = lengths.iter().map(|length| cut(&stream.as_bytes()[..*length])).collect();
    let server = Server::start(answers).await;
    let provider = once(wire, &server.base);
    let finish = end_of(&stream, finish_marker(wire));
    for length in lengths {
        let is_finished = length >= finish;
        let at = format!("{name} cut after {length} of {} bytes", stream.len());
        match play(&*provider, hello()).await {
            Ok(heard) => check_cut(&without_port(heard, &server.base), &whole, is_finished, &at),
            Err(error) => {
                assert!(!is_finished && error.message.contains("closed before"), "{at}: {error}");
            }
        }
    }
    assert_eq!(server.requests().len(), stream.len() / step + 1, "nothing was asked twice");
}

#[tokio::test]
async fn a_stream_that_ends_at_any_byte_is_never_an_end() {
    for (name, wire) in WIRES {
        cut_everywhere(name, wire, 1, |bytes| Answer::chunked(&[bytes])).await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_never_an_end() {
    // Without a length the end of the connection looks like the end of the answer; with one it is an error.
    let heads = ["", "content-length: 100000\r\n"];
    for ((name, wire), head) in WIRES.iter().flat_map(|wire| heads.iter().map(move |head| (wire, head))) {
        cut_everywhere(name, *wire, 53, |bytes| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{head}\r\n");
            Answer::raw(head).then(Step::Send(bytes.to_vec()))
        })
        .await;
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    for (name, wire) in WIRES {
        let stream = recorded(name);
        let half = stream[..end_of(&stream, "fs_read")].to_owned();
        let mut server = Server::start(vec![Answer::events(&half).then(Step::Hang)]).await;
        let mut events = once(wire, &server.base).chat(hello()).await.unwrap();
        assert!(events.next().await.is_some(), "{name}");
        drop(events);
        server.departure().await;
    }
}

#[tokio::test]
async fn dropping_the_question_closes_the_connection() {
    // Before the head of the answer, and between the head and the first word.
    for answer in [Answer::default().then(Step::Hang), Answer::events(": wait\n\n").then(Step::Hang)] {
        let mut server = Server::start(vec![answer]).await;
        let provider = once(Wire::Anthropic, &server.base);
        let question = tokio::spawn(async move { provider.chat(hello()).await.map(drop) });
        server.arrival().await;
        question.abort();
        assert!(question.await.unwrap_err().is_cancelled());
        server.departure().await;
    }
}
