//! When a turn is asked for again, and when not.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tgp_contract::{Code, StreamEvent, Usage};
use tgp_llm::{Jitter, Retries, RetryNotice, Wire, provider};

use crate::server::{Answer, Server, Step};
use crate::support::{KEY, hello, options, patient, play};

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
                     data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn quota() -> Answer {
    Answer::status(
        429,
        &[],
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
    )
}

#[tokio::test]
async fn the_table_of_attempts() {
    let refused = |status: u16| Answer::status(status, &[], "{\"error\":{\"message\":\"no\"}}");
    let good = || Answer::events(HELLO);
    // A name, the answers, and how many requests are made; the last answer decides whether the turn is
    // received.
    let cases: Vec<(&str, Vec<Answer>, usize)> = vec![
        ("at once", vec![good()], 1),
        ("429", vec![refused(429), good()], 2),
        ("408", vec![refused(408), good()], 2),
        ("500", vec![refused(500), good()], 2),
        ("503 twice", vec![refused(503), refused(503), good()], 3),
        ("529", vec![refused(529), good()], 2),
        ("all attempts", vec![refused(500), refused(502), refused(503)], 3),
        ("400", vec![refused(400)], 1),
        ("401", vec![refused(401)], 1),
        ("403", vec![refused(403)], 1),
        ("404", vec![refused(404)], 1),
        ("422", vec![refused(422)], 1),
        ("redirect", vec![Answer::status(302, &[("location", "http://127.0.0.1:1/")], "")], 1),
        ("quota", vec![quota()], 1),
        ("said to be final", vec![Answer::status(503, &[("x-should-retry", "false")], "")], 1),
        ("said to be worth it", vec![Answer::status(400, &[("x-should-retry", "true")], "")], 1),
        ("closed without a word", vec![Answer::default(), good()], 2),
        ("closed after the head", vec![Answer::stream(), good()], 2),
        ("closed after a comment", vec![Answer::events(": hm\n\n"), good()], 2),
        (
            "closed after an empty delta",
            vec![
                Answer::events(
                    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
                ),
                good(),
            ],
            2,
        ),
        (
            "an overload instead of the first word",
            vec![
                Answer::events("data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\"}}\n\n"),
                good(),
            ],
            2,
        ),
        (
            "a gateway's number instead of the first word",
            vec![Answer::events("data: {\"error\":{\"message\":\"busy\",\"code\":502}}\n\n"), good()],
            2,
        ),
        (
            "a refusal instead of the first word",
            vec![Answer::events(
                "data: {\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\"}}\n\n",
            )],
            1,
        ),
        (
            "wait in the past",
            vec![Answer::status(429, &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], ""), good()],
            2,
        ),
        ("wait too long", vec![Answer::status(429, &[("retry-after", "3600")], "")], 1),
        (
            "wait longer than any number",
            vec![Answer::status(429, &[("retry-after", "999999999999999999999999")], "")],
            1,
        ),
        ("wait for ever", vec![Answer::status(503, &[("retry-after", "inf")], "")], 1),
        (
            "wait too long, in the other header",
            vec![Answer::status(429, &[("retry-after-ms", "1e300"), ("retry-after", "0")], "")],
            1,
        ),
        ("wait no number", vec![Answer::status(429, &[("retry-after", "NaN")], ""), good()], 2),
        (
            "an overload with status 200",
            vec![
                Answer::status(
                    200,
                    &[("content-type", "application/json")],
                    r#"{"error":{"message":"model overloaded","type":"server_error"}}"#,
                ),
                good(),
            ],
            2,
        ),
        (
            "a refusal with status 200",
            vec![Answer::status(
                200,
                &[("content-type", "application/json")],
                r#"{"error":{"message":"no","type":"invalid_request_error"}}"#,
            )],
            1,
        ),
        (
            "wait nonsense",
            vec![Answer::status(429, &[("retry-after", "-1"), ("retry-after-ms", "x")], ""), good()],
            2,
        ),
    ];
    for (name, answers, count) in cases {
        let is_heard = answers.last().is_some_and(|answer| {
            answer.0.iter().any(|step| matches!(step, Step::Send(bytes) if bytes == HELLO.as_bytes()))
        });
        let server = Server::start(answers).await;
        let result = play(&*patient(Wire::OpenAiChat, &server.base, 3), hello()).await;
        assert_eq!(server.requests().len(), count, "{name}: {result:?}");
        let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "{name}: every attempt asks the same");
        match result {
            Ok(events) => {
                assert!(is_heard, "{name}");
                assert_eq!(
                    events,
                    [StreamEvent::Text { value: "Hi".to_owned() }, StreamEvent::End { reason: None }],
                    "{name}"
                );
            }
            Err(error) => {
                assert!(!is_heard, "{name}: {error}");
                assert_eq!(error.code, Code::Provider, "{name}");
                assert_eq!(error.details["attempts"], count, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn what_a_turn_costs_is_no_word_of_it() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n";
    let busy =
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let stop = "data: {\"type\":\"message_stop\"}\n\n";
    let answers = vec![Answer::events(&format!("{start}{busy}")), Answer::events(&format!("{start}{stop}"))];
    let server = Server::start(answers).await;
    let events = play(&*patient(Wire::Anthropic, &server.base, 2), hello()).await.unwrap();
    let usage = StreamEvent::Usage(Usage { input_tokens: 5, output_tokens: 1, ..Usage::default() });
    assert_eq!(events, [usage, StreamEvent::End { reason: None }]);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn after_the_first_word_nothing_is_asked_again() {
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let busy = format!("{word}data: {{\"error\":{{\"message\":\"busy\",\"type\":\"server_error\"}}}}\n\n");
    for body in [word, &busy] {
        let server = Server::start(vec![Answer::events(body), Answer::events(HELLO)]).await;
        let events = play(&*patient(Wire::OpenAiChat, &server.base, 3), hello()).await.unwrap();
        assert_eq!(server.requests().len(), 1);
        assert_eq!(events.len(), 2, "{events:?}");
        let StreamEvent::Error { error } = &events[1] else { panic!("{events:?}") };
        assert_eq!((&error.details["retryable"], &error.details["attempts"]), (&true.into(), &1.into()));
    }
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_tried_and_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let provider = patient(Wire::Anthropic, &base, 3);
    for error in [play(&*provider, hello()).await.unwrap_err(), provider.models().await.unwrap_err()] {
        assert!(error.message.contains("cannot be reached"), "{error}");
        assert_eq!(error.details["attempts"], 3);
        assert_eq!(error.details["retryable"], true);
        assert!(error.help_of().unwrap().contains(&base), "{error:?}");
    }
}

#[tokio::test]
async fn pauses_are_kept() {
    let busy = |headers: &[(&str, &str)]| Answer::status(503, headers, "");
    // What is waited at least: the doubling pauses, and what the server asks for.
    let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
    let later = ("retry-after", "Wed, 21 Oct 2015 07:28:01 GMT");
    let cases: Vec<(Vec<Answer>, u64)> = vec![
        (vec![busy(&[]), busy(&[]), busy(&[])], 20 + 40 + 50),
        (vec![busy(&[("retry-after-ms", "150")])], 150),
        (vec![busy(&[("retry-after", "0.2")])], 200),
        (vec![busy(&[date, later])], 1000),
    ];
    for (mut answers, milliseconds) in cases {
        answers.push(Answer::events(HELLO));
        let count = answers.len();
        let server = Server::start(answers).await;
        let mut options = options(Wire::OpenAiChat, &server.base);
        options.retries = Retries {
            attempts: 5,
            first_delay: Duration::from_millis(20),
            longest_delay: Duration::from_millis(50),
            rate_limit_delay: Duration::from_millis(30),
            jitter: Jitter::Fixed(1.0),
        };
        let begin = Instant::now();
        play(&*provider("mine", options).unwrap(), hello()).await.unwrap();
        assert!(
            begin.elapsed() >= Duration::from_millis(milliseconds),
            "{milliseconds}: {:?}",
            begin.elapsed()
        );
        assert_eq!(server.requests().len(), count);
    }
}

/// Who watches sees why nothing happens, and for how long.
#[tokio::test]
async fn every_pause_is_told_before_it_begins() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let answers = vec![
        Answer::status(429, &[("retry-after-ms", "1")], &format!("{{\"error\":\"{KEY}\"}}")),
        Answer::status(529, &[], ""),
        Answer::default(),
        Answer::events(&format!(
            "data: {{\"error\":{{\"message\":\"{KEY} is busy\\u001b\",\"code\":502}}}}\n\n"
        )),
        Answer::status(500, &[], ""),
        Answer::status(500, &[], ""),
    ];
    let server = Server::start(answers).await;
    let mut options = options(Wire::OpenAiChat, &server.base);
    options.retries.attempts = 6;
    options.on_wait = Some({
        let told = Arc::clone(&told);
        Arc::new(move |waiting: &RetryNotice| told.lock().unwrap().push(waiting.clone()))
    });
    let error = play(&*provider("mine", options).unwrap(), hello()).await.unwrap_err();
    assert_eq!(error.details["attempts"], 6);
    let told = told.lock().unwrap();
    let shown: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "429 rate limited; attempt 2 of 6 in 0 s",
            "529 overloaded; attempt 3 of 6 in 0 s",
            "the connection was closed; attempt 4 of 6 in 0 s",
            "the provider reports: [secret] is busy\\u{1b}; attempt 5 of 6 in 0 s",
            "500 server error; attempt 6 of 6 in 0 s",
        ]
    );
    assert_eq!(told[0].pause, Duration::from_millis(1));
    let waiting =
        |milliseconds| RetryNotice { pause: Duration::from_millis(milliseconds), ..told[0].clone() };
    let pauses = [(400, "0.4 s"), (1_540, "1.5 s"), (8_000, "8 s"), (59_900, "59 s"), (61_000, "2 min")];
    for (milliseconds, expected) in pauses {
        assert_eq!(
            waiting(milliseconds).to_string(),
            format!("429 rate limited; attempt 2 of 6 in {expected}")
        );
    }
}

#[tokio::test]
async fn a_long_wish_is_told_instead_of_waited_for() {
    let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
    let later = ("retry-after", "Wed, 21 Oct 2015 07:30:00 GMT");
    let server = Server::start(vec![Answer::status(429, &[date, later], "slow down")]).await;
    let error = play(&*patient(Wire::OpenAiChat, &server.base, 3), hello()).await.unwrap_err();
    assert_eq!(error.details["retryAfterMs"], 120_000);
    assert_eq!(error.details["attempts"], 1);
    assert_eq!(error.details["retryable"], true);
    assert!(error.help_of().unwrap().contains("a pause of 2 min"), "{error:?}");
    let server = Server::start(vec![Answer::status(429, &[("retry-after", "1e99")], "")]).await;
    let error = play(&*patient(Wire::OpenAiChat, &server.base, 3), hello()).await.unwrap_err();
    assert!(error.help_of().unwrap().contains("a pause of more than a year"), "{error:?}");
}
