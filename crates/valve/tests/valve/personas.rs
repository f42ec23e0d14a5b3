//! The file of personas: what it may contain, and the errors for what it may not.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;
use tgp_contract::Code;
use tgp_valve::{Action, AgentAction, FileChangeKind, Personas};

const FILE: &str = ".sage/valve.yml";

#[test]
fn everything_that_can_stand_in_it() {
    let text = r#"
# A comment.
version: 1
personas:
  - name: plain
    filters: [secrets]
  - name: full one.2
    filters:
      - "src/**/*.{ts,tsx}"
      - "!**/*.test.ts"
    contents: ['TODO\b']
    changes: [changed, renamed]
    cooldown: 5m
    timeout: 24h
    action: {tool: ./tools/x.ts, args: {deep: {list: [1, true, null]}}}
  - {name: q, filters: ['*'], cooldown: 500ms, action: {query: q.aql, name: Review, inputs: {a: 1}}}
  - name: a
    filters: ['*']
    action:
      agent: {prompt: "look at it", model: small, tools: [], max_steps: 4}
  - {name: r, filters: ['*'], action: record}
"#;
    let personas = Personas::parse(text, FILE).unwrap();
    let all: Vec<_> = personas.iter().collect();
    assert_eq!(all.len(), 5);
    assert_eq!(
        (all[0].action.clone(), all[0].cooldown, all[0].changes.len()),
        (Action::Record, Duration::ZERO, 4)
    );
    assert_eq!(all[1].changes, [FileChangeKind::Changed, FileChangeKind::Renamed]);
    assert_eq!(all[1].cooldown, Duration::from_secs(300));
    let timeouts = (all[0].timeout, all[1].timeout);
    assert_eq!(timeouts, (Duration::from_secs(600), Duration::from_secs(24 * 3_600)));
    let args = json!({ "deep": { "list": [1, true, null] } });
    assert_eq!(
        all[1].action,
        Action::Tool { path: "tools/x.ts".to_owned(), args: args.as_object().unwrap().clone() }
    );
    assert_eq!(
        all[2].action,
        Action::Query {
            file: "q.aql".to_owned(),
            name: Some("Review".to_owned()),
            inputs: json!({ "a": 1 }).as_object().unwrap().clone()
        }
    );
    let agent = AgentAction {
        prompt: "look at it".to_owned(),
        model: Some("small".to_owned()),
        tools: Some(Vec::new()),
        max_steps: Some(4),
    };
    assert_eq!(all[3].action, Action::Agent(agent));
}

#[test]
fn an_empty_file_is_a_mistake_and_an_empty_list_is_none() {
    for none in ["personas: []", "version: 1\npersonas: []\n", "# none\npersonas:\n  []\n"] {
        assert!(Personas::parse(none, FILE).unwrap().is_empty(), "{none:?}");
    }
    let halves =
        ["", "\n \n", "# nothing yet\n", "---\n", "version: 1", "personas:", "personas: ~", "personas: ''"];
    for half in halves {
        let error = Personas::parse(half, FILE).map(|personas| personas.len()).expect_err(half);
        assert_eq!(error.code, Code::Config, "{half:?}");
        assert!(error.place_of().is_some() && error.help_of().is_some(), "{half:?}: {error:?}");
    }
    for half in ["", "# nothing yet\n", "version: 1", "personas:", "personas: ~"] {
        let error = Personas::parse(half, FILE).unwrap_err();
        assert!(error.help_of().unwrap().contains("`personas: []` for none"), "{half:?}: {error:?}");
    }
}

#[test]
fn filters_that_can_never_fit_are_refused_with_a_suggestion() {
    let parse = |fields: &str| Personas::parse(&format!("personas: [{{name: a, {fields}}}]"), FILE);
    for (filter, suggestion) in [
        ("/src/**", "write `src/**`:"),
        ("./src/**", "write `src/**`:"),
        (".//./src/*.ts", "write `src/*.ts`:"),
        ("!./src/**", "write `!src/**`:"),
        ("!/**/*.ts", "write `!**/*.ts`:"),
        ("./secrets", "write `secrets`:"),
        ("./", "write `**` for every file"),
    ] {
        let error = parse(&format!("filters: ['{filter}']")).unwrap_err();
        assert_eq!(error.message, format!("{FILE}:1:32: `{filter}` fits no file"));
        assert!(error.help_of().unwrap().starts_with(suggestion), "{filter}: {error:?}");
    }
    // A part of a path may begin so.
    for filter in ["/secrets", ".env", "../x", "**/src/*"] {
        parse(&format!("filters: ['{filter}']")).unwrap();
    }
    let error = parse("filters: [x], contents: [KEY], changes: [deleted]").unwrap_err();
    assert!(error.message.ends_with("a file that is deleted has no content for `contents`"), "{error}");
    parse("filters: [x], contents: [KEY], changes: [deleted, changed]").unwrap();
    parse("filters: [x], changes: [deleted]").unwrap();
}

/// Each is one persona's fields, or a whole file where it begins with `personas` or `version`.
const WRONG: &[&str] = &[
    "version: 2\npersonas: []",
    "personas: [{name: a, filters: [x]}, {name: b, filters: [x]}, {name: a, filters: [y]}]",
    "personas: {name: a}",
    "personas:\n  - name: a\n    filters: [x\n",
    "personas:\n  - name: &anchor a\n    filters: [x]\n",
    "personae: []",
    "filters: [x]",
    "name: a",
    "name: a\nname: b\nfilters: [x]",
    "name: ''\nfilters: [x]",
    "name: a/b\nfilters: [x]",
    "name: a\nfilters: []",
    "name: a\nfilters: x",
    "name: a\nfilters: [\"!\"]",
    "name: a\nfilters: [\"a[\"]",
    "name: a\nfilters: [ok, '']",
    "name: a\nfilters: [*.ts]",
    "name: a\nfiltres: [x]",
    "name: a\nfilters: [x]\nwhatever: 1",
    "name: a\nfilters: [x]\ncontents: ['(']",
    "name: a\nfilters: [x]\ncontents: ['(a{1000}){1000}']",
    "name: a\nfilters: [x]\ncontents: []",
    "name: a\nfilters: [x]\nchanges: [modified]",
    "name: a\nfilters: [x]\nchanges: [change]",
    "name: a\nfilters: [x]\ncooldown: 30",
    "name: a\nfilters: [x]\ncooldown: soon",
    "name: a\nfilters: [x]\ncooldown: 25h",
    "name: a\nfilters: [x]\nchanges: created",
    "name: a\nfilters: [x]\ncontents: KEY",
    "name: a\nfilters: [x]\ncontents: [KEY]\nchanges: [deleted]",
    "name: a\nfilters: [./src/**]",
    "name: a\nfilters: [x]\ntimeout: 0s",
    "name: a\nfilters: [x]\ntimeout: 25h",
    "personas: []\n---\npersonas: []",
    "personas:",
    "version: 1",
    "name: a\nfilters: [x]\naction: recrod",
    "name: a\nfilters: [x]\naction: {}",
    "name: a\nfilters: [x]\naction: {tool: t.ts, query: q.aql}",
    "name: a\nfilters: [x]\naction: {tool: ../t.ts}",
    "name: a\nfilters: [x]\naction: {tool: t.ts, inputs: {}}",
    "name: a\nfilters: [x]\naction: {args: {}}",
    "name: a\nfilters: [x]\naction: {toll: t.ts}",
    "name: a\nfilters: [x]\naction: {agent: {}}",
    "name: a\nfilters: [x]\naction: {agent: {prompt: p, max_steps: 0}}",
    "name: a\nfilters: [x]\naction: {agent: {promt: p}}",
    "name: a\nfilters: [x]\naction: [tool]",
];

#[test]
fn every_fault_has_a_place_and_a_next_step() {
    let mut said = String::new();
    for wrong in WRONG {
        let is_file = wrong.starts_with("persona") || wrong.starts_with("version");
        let text = if is_file {
            (*wrong).to_owned()
        } else {
            format!("personas:\n  - {}\n", wrong.replace('\n', "\n    "))
        };
        let error = Personas::parse(&text, FILE).map(|personas| personas.len()).expect_err(&text);
        assert_eq!(error.code, Code::Config);
        let place = error.place_of().unwrap();
        assert!(error.message.starts_with(&format!("{place}: ")), "{error}");
        let field = error.details.get("field").and_then(|field| field.as_str()).unwrap_or("-");
        write!(said, "{text}\n{}\n  field: {field}\n  help: {}\n\n", error.message, error.help_of().unwrap())
            .unwrap();
    }
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/valve/golden/personas.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &said).unwrap();
    }
    assert_eq!(
        said,
        std::fs::read_to_string(&golden).unwrap(),
        "run again with UPDATE_GOLDEN=1 if this is right"
    );
}

#[test]
fn everything_has_a_bound() {
    let personas = |count: usize| {
        let entries: Vec<String> =
            (0..count).map(|number| format!("{{name: p{number}, filters: [x]}}")).collect();
        format!("personas: [{}]", entries.join(", "))
    };
    let list = |field: &str, count: usize| {
        let entries = vec!["'x'"; count].join(", ");
        let rest = if field == "filters" { "" } else { ", filters: [x]" };
        format!("personas: [{{name: a{rest}, {field}: [{entries}]}}]")
    };
    let long = |length: usize| format!("personas: [{{name: a, filters: ['{}']}}]", "x".repeat(length));
    for (good, bad) in [
        (personas(64), personas(65)),
        (list("filters", 64), list("filters", 65)),
        (list("contents", 16), list("contents", 17)),
        (long(1_000), long(1_001)),
    ] {
        Personas::parse(&good, FILE).unwrap();
        assert_eq!(Personas::parse(&bad, FILE).unwrap_err().code, Code::Config);
    }
    for bomb in [
        "[".repeat(100_000),
        "personas: ".to_owned() + &"{a: ".repeat(5_000),
        "#".repeat(300_000),
        "a: &a [x]\nb: [*a, *a]".to_owned(),
    ] {
        assert_eq!(Personas::parse(&bomb, FILE).unwrap_err().code, Code::Config);
    }
}
