//! Time: what is waited for, for how long, and what is not held back.

use std::time::Duration;

use futures_util::StreamExt;
use tgp_contract::StreamEvent;
use tgp_llm::{HttpOptions, ProviderTimeouts, Wire, provider};

use crate::server::{Answer, Server, Step};
use crate::support::{hello, options, play};

const WORD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

fn with(base: &str, idle: Duration, total: Duration) -> HttpOptions {
    let mut options = options(Wire::OpenAiChat, base);
    options.patience = ProviderTimeouts { connect: LONG, idle, total };
    options.retries.attempts = 3;
    options
}

#[tokio::test]
async fn silence_and_length_have_an_end() {
    let silent = Answer::default().then(Step::Hang);
    let head_only = Answer::stream().then(Step::Hang);
    let one_word = Answer::events(WORD).then(Step::Hang);
    let endless = Answer::events(WORD).then(Step::Flood(b": still thinking\n\n".to_vec()));
    let slow_refusal = Answer::raw("HTTP/1.1 503 Busy\r\ncontent-length: 10\r\n\r\nno").then(Step::Hang);
    // Neither silence is asked about again: who has waited long enough decides.
    let cases = [
        (silent.clone(), SHORT, LONG, 0, "sent nothing for 0.1 s"),
        (head_only.clone(), SHORT, LONG, 0, "sent nothing for 0.1 s"),
        (one_word.clone(), SHORT, LONG, 1, "sent nothing for 0.1 s"),
        (silent, LONG, SHORT, 0, "took longer than 0.1 s"),
        (head_only, LONG, SHORT, 0, "took longer than 0.1 s"),
        (one_word, LONG, SHORT, 1, "took longer than 0.1 s"),
        (endless, LONG, SHORT, 1, "took longer than 0.1 s"),
        (slow_refusal, LONG, SHORT, 0, "status 503"),
    ];
    for (answer, idle, total, words, expected) in cases {
        let mut server = Server::start(vec![answer]).await;
        let provider = provider("mine", with(&server.base, idle, total)).unwrap();
        let (heard, error) = match play(&*provider, hello()).await {
            Err(error) => (0, error),
            Ok(events) => match events.split_last().unwrap() {
                (StreamEvent::Error { error }, words) => (words.len(), error.clone()),
                other => panic!("{expected}: {other:?}"),
            },
        };
        assert_eq!(heard, words, "{expected}");
        assert!(error.message.contains(expected), "{error}");
        assert_eq!(error.details["retryable"], true, "{expected}");
        server.departure().await;
        assert_eq!(server.requests().len(), 1, "{expected}");
    }
}

#[tokio::test]
async fn whoever_sends_comments_is_not_silent() {
    let mut answer = Answer::stream();
    for _ in 0..5 {
        answer = answer.then(Step::Sleep(Duration::from_millis(400))).then(Step::Send(b":\n\n".to_vec()));
    }
    let answer = answer.then(Step::Send(format!("{WORD}{FINISH}").into_bytes()));
    let server = Server::start(vec![answer]).await;
    let provider = provider("mine", with(&server.base, Duration::from_millis(1900), LONG)).unwrap();
    let events = play(&*provider, hello()).await.unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
}

#[tokio::test]
async fn a_word_is_heard_before_the_next_byte_is_sent() {
    // The server continues only when the client has gone, so whatever is received was not held back.
    for (wire, word) in [
        (Wire::OpenAiChat, WORD),
        (Wire::OpenAiResponses, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n"),
        (
            Wire::Anthropic,
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
        ),
    ] {
        let server = Server::start(vec![Answer::events(word).then(Step::Hang)]).await;
        let provider = provider("mine", options(wire, &server.base)).unwrap();
        let mut events = tokio::time::timeout(LONG, provider.chat(hello())).await.unwrap().unwrap();
        let first = tokio::time::timeout(LONG, events.next()).await.unwrap();
        assert_eq!(first, Some(StreamEvent::Text { value: "Hi".to_owned() }));
    }
}

#[tokio::test]
async fn a_finished_answer_does_not_wait_for_its_connection() {
    // No `[DONE]`, no end of the connection: the answer was complete all the same.
    let server = Server::start(vec![Answer::events(&format!("{WORD}{FINISH}")).then(Step::Hang)]).await;
    let provider = provider("mine", with(&server.base, SHORT, LONG)).unwrap();
    let events = play(&*provider, hello()).await.unwrap();
    assert_eq!(events.last(), Some(&StreamEvent::End { reason: None }));
}

#[tokio::test]
async fn a_slow_listener_is_not_the_servers_silence() {
    let server = Server::start(vec![Answer::events(&format!("{WORD}{WORD}{FINISH}"))]).await;
    let provider = provider("mine", with(&server.base, Duration::from_secs(2), LONG)).unwrap();
    let mut events = provider.chat(hello()).await.unwrap();
    assert!(events.next().await.is_some());
    tokio::time::sleep(Duration::from_millis(2200)).await;
    let rest: Vec<StreamEvent> = events.collect().await;
    assert_eq!(rest.last(), Some(&StreamEvent::End { reason: None }), "{rest:?}");
}

#[test]
fn no_patience_at_all_is_a_mistake() {
    let mut options = options(Wire::OpenAiChat, "http://127.0.0.1:1");
    options.patience.idle = Duration::ZERO;
    let error = provider("mine", options).err().unwrap();
    assert_eq!(error.code, tgp_contract::Code::Config);
}
