//! Files and calls made to hurt: too large, too many, too deep, too long, or plain noise.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_contract::{Code, Effect, ToolError};
use tgp_policy::{PastCall, Policy, PolicyError, PolicySettings, SessionHistory};

use crate::support::{call, command, judged, rules, source, statement, try_load, with_arguments};

fn first(result: Result<Policy, PolicyError>) -> String {
    let error = ToolError::from(result.unwrap_err());
    assert_eq!(error.code, Code::Config);
    assert!(error.help_of().is_some_and(|help| !help.is_empty()));
    format!("{}: {}", error.place_of().unwrap(), error.message)
}

#[test]
fn sizes_and_numbers_have_caps() {
    let padded = |length: usize| format!("version: 1\n#{}\n", "x".repeat(length));
    try_load(&padded(256 * 1024 - 13)).unwrap();
    assert_eq!(
        first(try_load(&padded(256 * 1024 - 12))),
        "p.yaml:1:1: the file has 262145 bytes, at most 262144"
    );

    let many = |count: usize| {
        (0..count).fold("version: 1\nrules:\n".to_owned(), |mut text, index| {
            writeln!(text, "  - {{id: r{index}, effect: deny, tools: x}}").unwrap();
            text
        })
    };
    try_load(&many(1000)).unwrap();
    assert_eq!(first(try_load(&many(1001))), "p.yaml:1003:5: there are more than 1000 rules");

    let files: Vec<_> = (0..65).map(|index| source(&format!("{index}.yaml"), "version: 1\n")).collect();
    Policy::load(&files[..64], &PolicySettings::default()).unwrap();
    let refused = first(Policy::load(&files, &PolicySettings::default()));
    assert_eq!(refused, "64.yaml:1:1: there are 65 policy files, at most 64");

    for (field, wanted) in [
        (format!("tools: [{}]", "a, ".repeat(257)), "`tools` has 257 values, at most 256"),
        (format!("tools: {}", "a".repeat(1025)), "is longer than 1024 bytes"),
        (format!("tools: a, reason: {}", "a".repeat(501)), "the reason is empty, too long or not printable"),
        (format!("tools: a, match: [{}]", "{tool: a}, ".repeat(65)), "`match` has 65 examples, at most 64"),
        (
            format!("tools: a, where: {{arguments: {{{}: 1}}}}", vec!["a"; 17].join(".")),
            "is not a path to an argument",
        ),
        (
            format!("tools: a, match: [{{tool: a, targets: [{}]}}]", "{network: true}, ".repeat(65)),
            "`targets` has 65 items, at most 64",
        ),
    ] {
        let text = format!("version: 1\nrules:\n  - {{id: r, effect: deny, {field}}}\n");
        let refused = first(try_load(&text));
        assert!(refused.contains(wanted), "{refused}");
    }
}

#[test]
fn problems_of_all_files_are_collected_up_to_a_bound() {
    let bad =
        |id: &str| format!("version: 1\nrules:\n  - {{id: {id}, effect: never, tools: x, colour: red}}\n");
    let files =
        [source("b.yaml", &bad("one")), source("a.yaml", "version: ["), source("c.yaml", &bad("one"))];
    let error = Policy::load(&files, &PolicySettings::default()).unwrap_err();
    let places: Vec<String> = error.problems().map(|problem| problem.place.to_string()).collect();
    assert_eq!(
        places,
        ["a.yaml:1:10", "b.yaml:3:23", "b.yaml:3:40", "c.yaml:3:10", "c.yaml:3:23", "c.yaml:3:40"]
    );
    assert_eq!(error.to_string(), "a.yaml:1:10: unclosed bracket '[', and 5 more problems");
    let wire = ToolError::from(error);
    assert_eq!(wire.details["problems"].as_array().unwrap().len(), 6);
    assert_eq!(wire.details["problems"][3]["message"], "the id `one` is taken by b.yaml:3:10");

    let flood = format!("version: 1\nrules: [{}]\n", "5, ".repeat(500));
    let error = try_load(&flood).unwrap_err();
    assert_eq!((error.problems().count(), error.left_out()), (50, 450));
}

#[test]
fn what_is_too_long_to_be_looked_at_is_denied() {
    let long = "x".repeat(1024 * 1024 + 1);
    let fits = "x".repeat(1024 * 1024);
    let asks = rules("  - {id: r, effect: ask, where: {arguments: {text: {regex: \"zzz\"}}}}");
    assert_eq!(judged(&asks, &with_arguments(json!({ "text": fits }))), "ask default/write");
    assert_eq!(judged(&asks, &with_arguments(json!({ "text": long }))), "deny r");
    let allows = rules("  - {id: r, effect: allow, where: {arguments: {text: {regex: \".*\"}}}}");
    assert_eq!(judged(&allows, &with_arguments(json!({ "text": fits }))), "allow r");
    assert_eq!(judged(&allows, &with_arguments(json!({ "text": long }))), "ask default/write");
    let commands = rules("  - {id: r, effect: ask, where: {command: {regex: \"zzz\"}}}");
    assert_eq!(judged(&commands, &call("sh", Effect::Execute, vec![command(&long)])), "deny r");
    let statements = rules("  - {id: r, effect: ask, where: {statement: {regex: \"zzz\"}}}");
    assert_eq!(judged(&statements, &call("q", Effect::Write, vec![statement(&long, &["select"])])), "deny r");

    // A call that could not be read has done what the sequence waits for.
    let text = "version: 1\nsequences:\n  - {id: s, after: {tool: query, match: zzz}, deny: fetch}\n  - {id: t, after: a, deny: {tool: query, match: zzz}}\n";
    let policy = try_load(text).unwrap();
    let unseen = with_arguments(json!({ "text": long }));
    let history = SessionHistory::replay(&policy, [unseen.clone()]);
    let decision = policy.preview(&call("fetch", Effect::Network, vec![]).as_question(), &history);
    assert_eq!(decision.rule, "s");
    let decision = policy.preview(&unseen.as_question(), &SessionHistory::new(&policy));
    assert_eq!(decision.rule, "t");
    assert!(decision.reason.contains("too long or too large"), "{}", decision.reason);
    // Neither is one that has no canonical text.
    let inexact = with_arguments(json!({ "n": 9_007_199_254_740_993_u64 }));
    assert_eq!(policy.preview(&inexact.as_question(), &SessionHistory::new(&policy)).rule, "t");
}

/// The texts of the golden folder that load, to be damaged.
const GOOD: &[&str] = &[
    include_str!("golden/ok/migrations.yaml"),
    include_str!("golden/ok/arguments.yaml"),
    include_str!("golden/ok/hosts.yaml"),
    include_str!("golden/ok/sequences.yaml"),
    include_str!("golden/ok/sql.yaml"),
    include_str!("golden/ok/when.yaml"),
];

/// Loads, and judges when it did; the point is that it comes back.
fn survive(text: &str) {
    match try_load(text) {
        Ok(policy) => {
            let call = PastCall {
                arguments: json!({"limit": 3, "filters": [{"name": "x"}]}),
                ..call("query", Effect::Write, vec![command("x"), statement("drop", &["drop"])])
            };
            let explanation = policy.explain(&call.as_question(), &SessionHistory::new(&policy));
            assert!(!explanation.to_string().is_empty());
        }
        Err(error) => {
            for problem in error.problems() {
                assert!(problem.place.line >= 1 && problem.place.column >= 1, "{problem}");
                assert!(!problem.message.chars().any(char::is_control), "{problem:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn noise_is_refused_and_never_worse(text in "\\PC{0,200}|[-\\[\\]{}:,\"'&*!|>#? \n\ta-z0-9]{0,200}") {
        survive(&text);
        survive(&format!("version: 1\nrules:\n  - {text}"));
    }

    #[test]
    fn damaged_files_are_refused_or_read(
        which in 0..GOOD.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..3), 1..6),
    ) {
        let mut letters: Vec<char> = GOOD[which].chars().collect();
        for (from, to, kind) in damage {
            let (from, to) = (from.index(letters.len()), to.index(letters.len()));
            match kind {
                0 => letters.swap(from, to),
                1 => { letters.remove(from); }
                _ => { let letter = letters[from]; letters.insert(to, letter); }
            }
        }
        survive(&letters.into_iter().collect::<String>());
    }

    /// Whatever is in the arguments, matchers return an answer, and a deny-all denies it.
    #[test]
    fn any_arguments_are_judged(arguments in any_json()) {
        let policy = rules(
            "  - {id: a, effect: ask, where: {arguments: {a: {regex: x}, \"*.b\": {min: 1}, a.0: {glob: \"*\"}}}}\n  - {id: z, effect: deny, tools: \"*\"}",
        );
        let said = judged(&policy, &with_arguments(arguments));
        prop_assert!(said.starts_with("deny "), "{}", said);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[ab0]", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
