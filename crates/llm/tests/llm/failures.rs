//! How failures are reported: the provider's words made safe, a next step, and no secret.

use std::time::Duration;

use serde_json::json;
use tgp_contract::{Code, StreamEvent};
use tgp_llm::{HttpOptions, ProviderTimeouts, Wire, provider};

use crate::server::{Answer, Server, Step};
use crate::support::{KEY, called, hello, once, options, play};

#[tokio::test]
async fn a_refusal_says_what_to_do_next() {
    let message = |text: &str| format!("{{\"error\":{{\"message\":\"{text}\"}}}}");
    let cases: Vec<(Wire, u16, String, &str, &str)> = vec![
        (Wire::OpenAiChat, 401, message("bad key"), "status 401: bad key", "`OPENAI_API_KEY`"),
        (Wire::Anthropic, 401, message("bad key"), "status 401: bad key", "`ANTHROPIC_API_KEY`"),
        (Wire::Anthropic, 403, message("not yours"), "status 403: not yours", "`ANTHROPIC_API_KEY`"),
        (Wire::OpenAiResponses, 404, message("no model"), "status 404: no model", "`tgp models`"),
        (Wire::OpenAiChat, 429, message("too fast"), "status 429: too fast", "quota"),
        (Wire::OpenAiChat, 413, String::new(), "failed: it answered with status 413", "llm.contextTokens"),
        (Wire::OpenAiChat, 500, "{\"error\":\"crashed\"}".into(), "status 500: crashed", "later"),
        (
            Wire::OpenAiChat,
            400,
            "{\"object\":\"error\",\"message\":\"bad\"}".into(),
            "status 400: bad",
            "model",
        ),
        (
            Wire::OpenAiChat,
            400,
            "[{\"error\":{\"code\":400,\"message\":\"bad list\"}}]".into(),
            "400: bad list",
            "model",
        ),
        (Wire::OpenAiChat, 422, "{\"detail\":\"bad field\"}".into(), "status 422: bad field", "model"),
        (Wire::OpenAiChat, 502, "<h1>Bad Gateway</h1>".into(), "status 502: <h1>Bad Gateway</h1>", "later"),
        (Wire::OpenAiChat, 302, String::new(), "status 302", "base URL"),
    ];
    for (wire, status, body, expected, step) in cases {
        let server = Server::start(vec![Answer::status(status, &[], &body)]).await;
        let error = play(&*once(wire, &server.base), hello()).await.unwrap_err();
        assert_eq!(error.code, Code::Provider);
        assert!(
            error.message.contains(expected) && error.message.contains(&called(wire, &server.base)),
            "{error}"
        );
        assert!(error.help_of().unwrap().contains(step), "{status}: {error:?}");
        assert_eq!(error.details["status"], status);
        assert_eq!(error.details["retryable"], matches!(status, 408 | 429 | 500..), "{status}");
    }
}

#[tokio::test]
async fn a_missing_key_is_named_by_its_variable() {
    let server = Server::start(vec![Answer::status(401, &[], "")]).await;
    let options = HttpOptions {
        key: None,
        key_variable: Some("MY_KEY".to_owned()),
        ..options(Wire::OpenAiChat, &server.base)
    };
    let error = play(&*provider("mine", options).unwrap(), hello()).await.unwrap_err();
    assert_eq!(error.help_of(), Some("no key was sent; set the environment variable `MY_KEY`"));
}

#[tokio::test]
async fn no_secret_and_no_trick_gets_into_an_error() {
    let other = "gateway-secret-42";
    let words = format!("key {KEY} and {other} \u{1b}[2J\u{202e}evil\u{0}\u{200b} {}", "x".repeat(20_000));
    let body = serde_json::json!({ "error": { "message": words, "type": "server_error" } }).to_string();
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let answers = vec![
        Answer::status(400, &[], &body),
        Answer::status(400, &[], &words),
        Answer::events(&format!("data: {body}\n\n")),
        Answer::events(&format!("{word}data: {body}\n\n")),
        Answer::events(&format!("{word}data: {words}\n\n")),
        Answer::status(200, &[("content-type", "application/json; charset=utf-8")], &body),
        Answer::status(200, &[("content-type", "text/html")], &words),
    ];
    let count = answers.len();
    let server = Server::start(answers).await;
    let mut options = options(Wire::OpenAiChat, &server.base);
    options.headers = vec![("x-gateway".to_owned(), other.to_owned())];
    assert!(!format!("{options:?}").contains(KEY) && !format!("{options:?}").contains(other));
    let provider = provider("mine", options).unwrap();
    for number in 0..count {
        let error = match play(&*provider, hello()).await {
            Err(error) => error,
            Ok(events) => match events.last() {
                Some(StreamEvent::Error { error }) => error.clone(),
                _ => panic!("{number}: {events:?}"),
            },
        };
        let shown = serde_json::to_string(&error).unwrap();
        assert!(!shown.contains(KEY) && !shown.contains(other), "{number}: {shown}");
        assert!(error.message.contains("[secret]"), "{number}: {shown}");
        assert!(
            error.message.contains("\\u{1b}[2J\\u{202e}evil\\u{0}\\u{200b}"),
            "{number}: {}",
            error.message
        );
        assert!(
            error.message.chars().all(|character| character.is_ascii_graphic() || character == ' '),
            "{number}"
        );
        assert!(shown.len() < 2_000, "{number}: {}", shown.len());
    }
}

#[tokio::test]
async fn what_is_no_stream_is_told_and_not_repeated() {
    let cases = [
        ("application/json", "{\"id\":\"chatcmpl-1\",\"choices\":[]}", "answered with `application/json`"),
        ("text/html; charset=utf-8", "<title>Sign in</title>", "<title>Sign in</title>"),
    ];
    for (content_type, body, expected) in cases {
        let server = Server::start(vec![Answer::status(200, &[("content-type", content_type)], body)]).await;
        let error =
            play(&*crate::support::patient(Wire::OpenAiChat, &server.base, 3), hello()).await.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
        assert_eq!(error.details["retryable"], false);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_complaint_is_answered_with_the_setting_that_mends_it() {
    let (chat, responses, messages) = (Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic);
    let context = "set llm.contextTokens lower or begin another session";
    let credit = "the account has no credit or quota left; look at its plan and its billing";
    let tools = "choose a model that can use tools; `tgp models` lists what there is";
    let openai = "use --provider openai, which speaks the Responses API";
    let schema = "the schema of a tool was not accepted; fix or remove the tool that the message names";
    // The wire, the status, the fields of the error, and the next step. The messages are those of real servers.
    let cases = [
        (
            chat,
            400,
            json!({ "message": "too big", "code": "context_length_exceeded", "param": "messages" }),
            context,
        ),
        (chat, 400, json!({ "message": "This model's maximum context length is 8192 tokens." }), context),
        (chat, 400, json!({ "message": "the request exceeds the available context size" }), context),
        (messages, 400, json!({ "message": "prompt is too long: 210000 tokens > 200000 maximum" }), context),
        (responses, 413, json!({ "message": "large" }), context),
        (messages, 400, json!({ "message": "Your credit balance is too low to access the API." }), credit),
        (chat, 402, json!({ "message": "Payment required" }), credit),
        (chat, 429, json!({ "message": "no", "code": "insufficient_quota" }), credit),
        (
            chat,
            400,
            json!({ "message": "Unsupported value", "param": "temperature" }),
            "remove llm.temperature",
        ),
        (messages, 400, json!({ "message": "`temperature` may only be set to 1" }), "remove llm.temperature"),
        (chat, 400, json!({ "message": "library/gemma does not support tools" }), tools),
        (chat, 404, json!({ "message": "No endpoints found that support tool use." }), tools),
        (chat, 404, json!({ "message": "This model is only supported in v1/responses" }), openai),
        (chat, 400, json!({ "message": "Invalid schema for function 'f'" }), schema),
        (
            messages,
            400,
            json!({ "message": "tools.5.custom.input_schema: no oneOf at the top level" }),
            schema,
        ),
        (
            chat,
            400,
            json!({ "message": "too many", "param": "max_tokens" }),
            "set llm.maxOutputTokens to what this model can write",
        ),
    ];
    for (wire, status, error, step) in cases {
        let body = json!({ "error": error }).to_string();
        let server = Server::start(vec![Answer::status(status, &[], &body)]).await;
        let error = play(&*once(wire, &server.base), hello()).await.unwrap_err();
        assert_eq!(error.help_of(), Some(step), "{body}");
    }
    // The same words in the stream.
    let event = "data: {\"error\":{\"message\":\"context length\",\"code\":\"context_length_exceeded\"}}\n\n";
    let server = Server::start(vec![Answer::events(event)]).await;
    assert_eq!(play(&*once(chat, &server.base), hello()).await.unwrap_err().help_of(), Some(context));
    // A path that is missing is not a model that is; and it is not this API's own word for another one.
    let missing = Answer::status(404, &[], "no route for /v1/responses");
    let server = Server::start(vec![missing]).await;
    let error = play(&*once(responses, &server.base), hello()).await.unwrap_err();
    let help = error.help_of().unwrap();
    assert!(help.contains("`tgp models`") && help.ends_with("or use --provider openai-chat"), "{help}");
}

#[tokio::test]
async fn a_list_of_models_that_fails_names_its_own_address() {
    for (wire, path) in [(Wire::OpenAiChat, "/v1/models"), (Wire::Anthropic, "/v1/models")] {
        for status in [404, 500, 302, 418] {
            let server = Server::start(vec![Answer::status(status, &[], "")]).await;
            let error = once(wire, &server.base).models().await.unwrap_err();
            let help = error.help_of().unwrap();
            assert!(help.contains(&format!("`{}{path}`", server.base)), "{status}: {help}");
            assert!(!help.contains("tgp models"), "{status}: {help}");
        }
    }
}

#[tokio::test]
async fn a_time_out_names_its_setting_and_a_dropped_stream_no_second_question() {
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let short = Duration::from_millis(100);
    let long = Duration::from_secs(60);
    let hang = || Answer::events(word).then(Step::Hang);
    let cases = [
        (
            hang(),
            "http",
            ProviderTimeouts { connect: long, idle: short, total: long },
            "llm.timeouts.idleSeconds",
        ),
        (
            hang(),
            "http",
            ProviderTimeouts { connect: long, idle: long, total: short },
            "llm.timeouts.totalSeconds",
        ),
        // The server waits for a request, and the client for a greeting.
        (
            hang(),
            "https",
            ProviderTimeouts { connect: short, idle: long, total: long },
            "llm.timeouts.connectSeconds",
        ),
        (
            Answer::events(word),
            "http",
            ProviderTimeouts { connect: long, idle: long, total: long },
            "check the network",
        ),
    ];
    for (answer, scheme, patience, step) in cases {
        let server = Server::start(vec![answer]).await;
        let base = server.base.replace("http:", &format!("{scheme}:"));
        let options = HttpOptions { patience, ..options(Wire::OpenAiChat, &base) };
        let error = match play(&*provider("mine", options).unwrap(), hello()).await {
            Err(error) => error,
            Ok(events) => match events.last() {
                Some(StreamEvent::Error { error }) => error.clone(),
                _ => panic!("{step}: {events:?}"),
            },
        };
        let help = error.help_of().unwrap();
        assert!(help.contains(step) && !help.contains("again"), "{error:?}");
        assert_eq!(error.details["retryable"], true, "{error:?}");
    }
}

#[tokio::test]
async fn a_server_is_named_by_its_url_without_its_query() {
    let server = Server::start(vec![Answer::status(500, &[], "")]).await;
    let base_url = Some(format!("{}/v1/?api-key=in-the-query", server.base));
    let options = HttpOptions { base_url, ..options(Wire::OpenAiChat, &server.base) };
    let error = play(&*provider("compatible", options).unwrap(), hello()).await.unwrap_err();
    assert!(error.message.starts_with(&format!("the provider `{}/v1` failed: ", server.base)), "{error}");
    assert!(!serde_json::to_string(&error).unwrap().contains("in-the-query"), "{error:?}");
    assert_eq!(error.details["provider"], "compatible");
}
