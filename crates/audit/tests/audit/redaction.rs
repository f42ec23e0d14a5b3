//! Secrets are in no entry, not even as a hash.

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_audit::{Audit, AuditFilter, AuditOptions, ExportFormat, Redaction};
use tgp_contract::{Code, Recorder, Stage, Target, canonical};

use crate::support::{Place, failed, runtime, verdict, with_arguments};

fn redaction() -> Redaction {
    Redaction::new(&["Pin-Code".to_owned()], &["correct horse".to_owned(), "short".to_owned()]).unwrap()
}

#[test]
fn bug_a_statement_that_ends_with_a_secret_name_hid_the_next_one() {
    let redaction = redaction();
    for list in [
        json!(["SELECT token", "SELECT id FROM users"]),
        json!(["SELECT * FROM app_password", "SELECT 1", "DELETE FROM secret", "SELECT 2"]),
    ] {
        assert_eq!(redaction.value(list.clone()), list);
    }
    for (list, kept) in [
        (json!(["--password", "hunter22"]), json!(["--password", "[redacted]"])),
        (json!(["API key", "hunter22"]), json!(["API key", "[redacted]"])),
        (json!(["X-Auth-Token", "hunter22"]), json!(["X-Auth-Token", "[redacted]"])),
    ] {
        assert_eq!(redaction.value(list), kept);
    }
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
        ("export GITHUB_TOKEN=\"two words\" && ls", "export GITHUB_TOKEN=\"[redacted]\" && ls"),
        ("password: 'two words', x", "password: '[redacted]', x"),
        ("\"password\":\"\",\"user\":\"ann\"", "\"password\":\"\",\"user\":\"ann\""),
        ("curl -u ann:S3 http://h", "curl -u ann:[redacted] http://h"),
        ("curl -fsSu 'ann:S 3' http://h", "curl -fsSu 'ann:[redacted]' http://h"),
        (
            "curl 'http://h?a=1&b=2' \\\n  --user=ann:S3",
            "curl 'http://h?a=1&b=2' \\\n  --user=ann:[redacted]",
        ),
        ("curl -u ann http://h:80; sort -u x", "curl -u ann http://h:80; sort -u x"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        ("x --password S3 y", "x --password [redacted] y"),
        ("x --password=S,3 y", "x --password=[redacted] y"),
        ("x --db-passwd 'S 3' --pass \"S 3\" y", "x --db-passwd '[redacted]' --pass \"[redacted]\" y"),
        ("x --token=S3 --secret S3", "x --token=[redacted] --secret [redacted]"),
        ("x --api-key -S3 --apikey S3", "x --api-key [redacted] --apikey [redacted]"),
        ("x --password -h host", "x --password -h host"),
        ("x --password --verbose --password-stdin y", "x --password --verbose --password-stdin y"),
        ("mysql -u root -pS3 db", "mysql -u root -p[redacted] db"),
        ("mysqldump --port=1 -P 33 -p'S 3' db", "mysqldump --port=1 -P 33 -p'[redacted]' db"),
        ("mysql -p db-prod --port 1; mkdir x-py", "mysql -p db-prod --port 1; mkdir x-py"),
        ("psql -h x -pS3 db", "psql -h x -p[redacted] db"),
        ("psql -p5432 -p 5432", "psql -p5432 -p 5432"),
        ("docker login -u ann -p S3 host", "docker login -u ann -p [redacted] host"),
        ("docker --debug login -p=S3", "docker --debug login -p=[redacted]"),
        ("docker run -p 80:80 x", "docker run -p 80:80 x"),
        ("sshpass -p S3 ssh h", "sshpass -p [redacted] ssh h"),
        ("sshpass -p'S 3' ssh h", "sshpass -p'[redacted]' ssh h"),
        ("mongosh -u a -p S3", "mongosh -u a -p [redacted]"),
        ("DB_PASS=S,3} x", "DB_PASS=[redacted] x"),
        (
            "A_PASSWD=S3 B_SECRET='S 3' C_KEY=S3 D_PWD=S3 y",
            "A_PASSWD=[redacted] B_SECRET='[redacted]' C_KEY=[redacted] D_PWD=[redacted] y",
        ),
        ("docker run -e SSH_KEY=S3 x", "docker run -e SSH_KEY=[redacted] x"),
        ("key=1 monkey=2 KEY=='x' KEY=", "key=1 monkey=2 KEY=='x' KEY="),
        ("db_pass: S3, the bypass: on", "db_pass: [redacted] the bypass: on"),
        ("CREATE USER a IDENTIFIED BY 'S''3 x' b", "CREATE USER a IDENTIFIED BY '[redacted]' b"),
        (
            "create user a identified with sha2\n by \"S\\\"3\";",
            "create user a identified with sha2\n by \"[redacted]\";",
        ),
        ("GRANT x IDENTIFIED BY S3;", "GRANT x IDENTIFIED BY [redacted];"),
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
            json!({"pass": "x", "dbPass": "x", "db_pwd": "x", "bypass": "y", "passes": "y"}),
            json!({"pass": hidden, "dbPass": hidden, "db_pwd": hidden, "bypass": "y", "passes": "y"}),
        ),
        (
            json!({"env": {"DBPASS": "x", "SSH_KEY": "x", "PATH": "y"}, "key": "y", "sortKey": "y"}),
            json!({"env": {"DBPASS": hidden, "SSH_KEY": hidden, "PATH": "y"}, "key": "y", "sortKey": "y"}),
        ),
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
        Target::Statement {
            sql: format!("SELECT '{SECRET}'"),
            kinds: vec!["select".to_owned()],
            reads: false,
        },
    ];
    let record = failed(record, Code::Runtime, &format!("{SECRET} was wrong"));
    let audit = Audit::open(options, place.anchor()).unwrap();
    runtime().block_on(async {
        audit.record(record).await.unwrap();
        audit.close().await.unwrap();
    });
    drop(audit);
    place.settle();
    let export =
        String::from_utf8(place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap()).unwrap();
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
        "curl ",
        "curl -u a:b ",
        "curl -u 'a:b ",
        "curl -u \"a:b -u 'a:b ",
        "mysql -p",
        "mysql -pa ",
        "docker login -p a ",
        "docker login docker ",
        "login -p ",
        "sshpass -p'a \"",
        "--",
        "--password ",
        "--password 'a \"",
        "KEY=",
        "KEY='",
        "KEY=a KEY='\n",
        "_pass:",
        "identified by 'a''",
        "identified by '\\",
        "identified by 'a\"",
        "identified with a ",
        "curl\\\n",
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

proptest! {
    /// Texts of which the patterns are never asked must be such as they would leave alone. With a value to look for,
    /// they are always asked.
    #[test]
    fn a_text_that_is_passed_over_has_nothing_to_hide(text in "[a-z0-9/.]{0,60}") {
        let quick = Redaction::new(&[], &[]).unwrap();
        let thorough = THOROUGH.get_or_init(|| Redaction::new(&[], &["a value with blanks".to_owned()]).unwrap());
        prop_assert_eq!(quick.text(&text), thorough.text(&text));
    }
}

static THOROUGH: std::sync::OnceLock<Redaction> = std::sync::OnceLock::new();

/// A text of one word is passed over without a pattern, unless a token could begin in it.
#[test]
fn a_token_that_is_a_whole_text_is_found() {
    let redaction = Redaction::new(&[], &[]).unwrap();
    for token in [
        "ghp_0123456789abcdefABCD",
        "gho_0123456789abcdefABCD",
        "ghu_0123456789abcdefABCD",
        "ghs_0123456789abcdefABCD",
        "ghr_0123456789abcdefABCD",
        "github_pat_0123456789abcdef",
        "glpat-0123456789abcdef",
        "sk-0123456789abcdef0",
        "sk_live_0123456789",
        "rk_test_0123456789",
        "AKIA0123456789ABCDEF",
        "ASIA0123456789ABCDEF",
        "AIza0123456789012345678901234567890123456",
        "xoxb-12345678",
        "npm_01234567890123456789",
        "eyJhbGciOiJI.eyJzdWIiOiIx.abc",
        "tools/glpat-0123456789abcdef",
    ] {
        let kept = redaction.text(token);
        assert!(kept.contains("[redacted]"), "{token} became {kept}");
    }
    for word in ["exec_tool", "consent-given", "tools/math/fib.ts", "task-list", "default/execute"] {
        assert_eq!(redaction.text(word), word);
    }
}
