//! Secrets stand in no entry, not even as a hash.

use serde_json::{Value, json};
use tgp_audit::{Audit, AuditOptions, Filter, Format, Redaction};
use tgp_contract::{Code, Recorder, Stage, Target, canonical};

use crate::support::{Place, failed, runtime, verdict, with_arguments};

fn redaction() -> Redaction {
    Redaction::new(&["Pin-Code".to_owned()], &["correct horse".to_owned(), "short".to_owned()]).unwrap()
}

#[test]
fn texts() {
    let redaction = redaction();
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----";
    let table = [
        ("plain words, a sku-123 and a task-force", "plain words, a sku-123 and a task-force"),
        ("max_tokens=5; the tokenizer: bpe", "max_tokens=5; the tokenizer: bpe"),
        ("say correct horse battery", "say [redacted] battery"),
        ("short stays", "short stays"),
        ("git clone with ghp_0123456789abcdefABCDEF0123456789abcd ok", "git clone with [redacted] ok"),
        ("gho_0123456789abcdefABCDEF0123456789abcd", "[redacted]"),
        ("github_pat_11ABCDEFG0123456789_abcdefghijklmnop", "[redacted]"),
        ("glpat-0123456789abcdefghij.", "[redacted]."),
        ("key sk-proj-abcdefghijklmnop0123456789", "key [redacted]"),
        ("sk-ant-api03-abcdefghijklmnop", "[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE,x", "[redacted],x"),
        ("xoxb-123456789012-abcdef", "[redacted]"),
        (jwt, "[redacted]"),
        ("curl -H 'X: Bearer abcdef123456'", "curl -H 'X: Bearer [redacted]'"),
        ("Authorization: Basic dXNlcjpwYXNz rest", "authorization: [redacted] rest"),
        (pem, "[redacted]"),
        ("a\n-----BEGIN PRIVATE KEY-----\ncut off", "a\n[redacted]"),
        ("postgres://user:p@ss:w0rd@host/db?x=1", "postgres://user:[redacted]@host/db?x=1"),
        ("redis://:secretpw@host:6379/0", "redis://:[redacted]@host:6379/0"),
        ("https://host:8080/path@x", "https://host:8080/path@x"),
        ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"),
        ("export GITHUB_TOKEN='abc' && ls", "export GITHUB_TOKEN='[redacted]' && ls"),
        ("{\"api-key\": \"abc\", \"a\": 1}", "{\"api-key\": \"[redacted]\", \"a\": 1}"),
        ("ALTER USER u PASSWORD 'abc'", "ALTER USER u PASSWORD '[redacted]'"),
        ("pin_code: 1234", "pin_code: [redacted]"),
        ("?access_token=abc&x=1", "?access_token=[redacted]&x=1"),
    ];
    for (text, expected) in table {
        assert_eq!(redaction.text(text), expected, "{text}");
        // Nothing of the marks is taken for a secret again.
        assert_eq!(redaction.text(expected), expected, "{expected}");
    }
}

#[test]
fn values() {
    let hidden = json!("[redacted]");
    let table = [
        (json!({"password": "x", "user": "ann"}), json!({"password": hidden, "user": "ann"})),
        (
            json!({"API-Key": 12345, "a": {"dbPassword": ["x"]}}),
            json!({"API-Key": hidden, "a": {"dbPassword": hidden}}),
        ),
        (json!({"token": null, "hasToken": true}), json!({"token": null, "hasToken": true})),
        (json!({"PinCode": "1", "pinCodes": "1"}), json!({"PinCode": hidden, "pinCodes": "1"})),
        (json!({"pwd": "x", "cpwd": "/home"}), json!({"pwd": hidden, "cpwd": "/home"})),
        (
            json!([["Authorization", "x"], ["Accept", "y"]]),
            json!([["Authorization", hidden], ["Accept", "y"]]),
        ),
        (json!([{"name": "Cookie", "value": "x"}]), json!([{"name": "Cookie", "value": hidden}])),
        (json!(["curl", "--token", "x", "y"]), json!(["curl", "--token", hidden, "y"])),
        (
            json!({"ghp_0123456789abcdefABCDEF01": 1, "ghp_0123456789abcdefABCDEF02": 2}),
            json!({"[redacted]": 1, "[redacted]+": 2}),
        ),
    ];
    for (value, expected) in table {
        assert_eq!(redaction().value(value.clone()), expected, "{value}");
    }
}

/// Everywhere a secret can be in a record.
#[test]
fn no_entry_holds_a_secret_or_its_hash() {
    const SECRET: &str = "the-value-of-a-variable";
    let place = Place::new();
    let options = AuditOptions { secret_values: vec![SECRET.to_owned()], ..place.options() };
    let long = format!("{}{SECRET}", "x".repeat(5000));
    let mut record = with_arguments(json!({
        "nested": [{SECRET: SECRET}], "password": "another-secret", "long": long.clone(), "content": "text",
    }));
    record.call.id = SECRET.to_owned();
    record.call.tool = SECRET.to_owned();
    record.context.actor = tgp_contract::Actor::Person(SECRET.to_owned());
    record.verdicts = vec![verdict(Stage::Policy, "policy", "allow", SECRET)];
    record.targets = vec![
        Target::Command { command: format!("login {SECRET}") },
        Target::Statement { sql: format!("SELECT '{SECRET}'"), kinds: vec!["select".to_owned()] },
    ];
    let record = failed(record, Code::Runtime, &format!("{SECRET} was wrong"));
    let audit = Audit::open(options, place.anchor()).unwrap();
    runtime().block_on(async {
        audit.record(record).await.unwrap();
        audit.close().await.unwrap();
    });
    drop(audit);
    place.settle();
    let export = String::from_utf8(place.export(&Filter::default(), Format::Jsonl).unwrap()).unwrap();
    let file = String::from_utf8_lossy(&std::fs::read(place.path()).unwrap()).into_owned();
    for text in [&export, &file] {
        assert!(text.contains("[redacted]") && text.contains("\"content\":\"text\""));
        for secret in [SECRET, "another-secret"] {
            assert!(!text.contains(secret));
            assert!(!text.contains(&canonical::sha256_hex(secret.as_bytes())));
        }
        assert!(!text.contains(&canonical::sha256_hex(long.as_bytes())));
    }
    let clean = long.replace(SECRET, "[redacted]");
    assert!(export.contains(&canonical::sha256_hex(clean.as_bytes())));
}

/// Texts that would take hours if any search went back and forth over them.
#[test]
fn hostile_texts_take_one_pass() {
    let redaction = redaction();
    let units = [
        "-----BEGIN PRIVATE KEY----- AKIAIOSFODNN7EXAMPLE ",
        "eyJaaaaaaaaaa-AKIAIOSFODNN7EXAMPLE-",
        "://a:b",
        "://a:b@",
        "bearer ",
        "authorization:",
        "password=",
        "p-a-s-s-w-o-r-d",
        "token ' ",
        "sk-",
        "eyJaaaaaaaa.eyJaaaaaaaa.",
        "correct hors",
        "a@",
    ];
    for unit in units {
        let text = unit.repeat((1 << 20) / unit.len());
        let clean = redaction.text(&text);
        assert!(clean.len() <= text.len() * 3, "{unit}");
        let value = redaction.value(Value::from(text));
        assert!(value.is_string());
    }
}

#[test]
fn too_many_secrets_are_refused_and_none_forgotten() {
    let values: Vec<String> = (0..1000).map(|number| format!("secret-number-{number}-")).collect();
    let redaction = Redaction::new(&[], &values).unwrap();
    assert_eq!(redaction.text("x secret-number-999- y"), "x [redacted] y");
    assert_eq!(redaction.text("x secret-number-1- y"), "x [redacted] y");
    let huge: Vec<String> = (0..10_u32).map(|number| number.to_string().repeat(10_000)).collect();
    let error = Redaction::new(&[], &huge).unwrap_err();
    assert!(error.code == Code::Config && error.message.len() < 200, "no secret is in the error");
}
