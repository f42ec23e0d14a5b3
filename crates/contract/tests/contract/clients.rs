//! Names of clients, sizes of documents, and errors that repeat no long value.

use serde_json::{Value, json};
use tgp_contract::{
    ClientEntry, ClientId, Code, JsonLimits, JsonTooLarge, ToolError, client_actor, client_session,
    counted_session, has_no_token, measure,
};

#[test]
fn a_client_is_counted_by_its_identity_whatever_it_calls_itself() {
    let family = Some("0123456789ab");
    assert_eq!(client_actor(ClientEntry::Socket, family, Some("bot")), "socket/0123456789ab/bot");
    assert_eq!(client_actor(ClientEntry::Mcp, family, Some("bot")), "mcp/0123456789ab/bot");
    assert_eq!(client_actor(ClientEntry::Command, family, None), "token/0123456789ab");
    assert_eq!(client_actor(ClientEntry::Command, None, Some("bot")), "cli/bot");
    assert_eq!(client_session(ClientEntry::Socket, family, Some("a/b")), "token/0123456789ab/a/b");
    assert_eq!(client_session(ClientEntry::Command, None, None), "cli");
    for name in [None, Some("x"), Some("a/b"), Some("20261115-220915-dfc9"), Some("/"), Some("cli")] {
        assert_eq!(
            counted_session(&client_session(ClientEntry::Socket, family, name)),
            "token/0123456789ab",
            "{name:?}"
        );
        assert_eq!(counted_session(&client_session(ClientEntry::Command, None, name)), "cli", "{name:?}");
        assert!(
            has_no_token(&client_session(ClientEntry::Command, None, name))
                && !has_no_token(&client_session(ClientEntry::Socket, family, name))
        );
    }
    // Everything else is counted by itself.
    for session in ["20261115-220915-dfc9", "valve-x", "embedded", "clients", "token", "socket", "token/", ""]
    {
        assert_eq!(counted_session(session), session);
        assert_eq!(ClientId::parse(session), None, "{session}");
    }
}

#[test]
fn a_document_is_measured_before_it_is_parsed() {
    let limits = JsonLimits { values: 10, depth: 3 };
    let size = measure(br#"{"a,b:[": [1, "\"[[[[", {}]}"#, limits).unwrap();
    assert_eq!((size.values, size.depth), (6, 3));
    assert_eq!(measure(b"[[[[]]]]", limits), Err(JsonTooLarge::Depth(3)));
    assert_eq!(measure(b"[1,2,3,4,5,6,7,8,9,10,11]", limits), Err(JsonTooLarge::Values(10)));
    // What is not closed or not JSON at all still has an end.
    for text in [&b"\"abc"[..], b"\"\\", b"]]]]", b"", b"\xff\xfe"] {
        measure(text, limits).unwrap();
    }
}

#[test]
fn as_many_values_are_counted_as_a_parser_makes() {
    fn values(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(values).sum(),
            Value::Object(fields) => fields.values().map(|value| 1 + values(value)).sum(),
            _ => 0,
        }
    }
    for text in
        ["1", "[]", "{}", "[[],{}]", r#"{"a":1}"#, r#"{"a":[1,{"b":null}],"c":"x,y"}"#, r#"[{},{},{}]"#]
    {
        let made = values(&serde_json::from_str(text).unwrap());
        let counted = measure(text.as_bytes(), JsonLimits::ARGUMENTS).unwrap().values;
        assert_eq!(counted, made, "{text}");
    }
}

#[test]
fn an_error_about_arguments_repeats_no_long_value() {
    let long = "ä".repeat(1 << 20);
    let error = ToolError::new(Code::Validation, format!("`{long}` does not fit"))
        .detail("field", long.clone())
        .detail("problems", json!([{ "message": long }]))
        .bounded();
    assert!(serde_json::to_string(&error).unwrap().len() < 8 << 10);
    assert!(error.message.contains("bytes in all"), "{}", error.message);
    // The output of a command that failed is not an argument.
    let output = ToolError::new(Code::Runtime, "it failed").detail("stdout", "x".repeat(1 << 20)).bounded();
    assert_eq!(output.details["stdout"].as_str().unwrap().len(), 1 << 20);
    let short = ToolError::new(Code::Validation, "short").help("do it");
    assert_eq!(short.clone().bounded(), short);
}
