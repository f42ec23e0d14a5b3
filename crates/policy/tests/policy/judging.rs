//! Rules and calls in a table: what matches, which way a doubt goes, and what a decision becomes at the gate.

use serde_json::{Value, json};
use tgp_contract::{Access, Actor, Code, Effect, Root, Target, ToolError, Verdict};
use tgp_policy::{Catalogue, Decision, Known, PastCall, Policy, PolicySettings, RuleEffect, SessionHistory};

use crate::support::{
    call, command, file, host, judged, path, rules, source, statement, try_load, with_arguments, written,
};

#[test]
fn in_doubt_a_rule_restricts() {
    let one = |rule: &str| rules(&format!("  - {{id: r, {rule}}}"));
    let write = |targets: Vec<Target>| call("fs_write", Effect::Write, targets);
    let cases: Vec<(&str, PastCall, &str)> = vec![
        // One of several targets is enough to restrict, and not to allow.
        ("effect: deny, where: {path: \"a/**\"}", write(vec![written("b/x"), written("a/x")]), "deny r"),
        (
            "effect: allow, where: {path: \"a/**\"}",
            write(vec![written("b/x"), written("a/x")]),
            "ask default/write",
        ),
        ("effect: allow, where: {path: \"a/**\"}", write(vec![written("a/y"), written("a/x")]), "allow r"),
        ("effect: allow, where: {path: \"**\"}", write(vec![]), "ask default/write"),
        // Case does not save a path from a deny, and does not help it to an allow.
        ("effect: deny, where: {path: \"migrations/**\"}", write(vec![written("Migrations/x")]), "deny r"),
        ("effect: deny, where: {path: \"MIGRATIONS/**\"}", write(vec![written("migrations/x")]), "deny r"),
        ("effect: deny, where: {path: \"Übung/**\"}", write(vec![written("üBUNG/x")]), "deny r"),
        ("effect: deny, where: {path: \"secret.txt\"}", write(vec![written("secret.txt. .")]), "deny r"),
        ("effect: deny, where: {path: \"secret.txt\"}", write(vec![written("sec\u{200b}ret.txt")]), "deny r"),
        ("effect: allow, where: {path: \"notes/**\"}", write(vec![written("Notes/x")]), "ask default/write"),
        // A directory goes with what is in it.
        (
            "effect: deny, where: {path: \"a/b/**\"}",
            write(vec![file(Root::Project, "a/b", Access::Delete)]),
            "deny r",
        ),
        ("effect: allow, where: {path: \"a/b/**\"}", write(vec![written("a/b")]), "ask default/write"),
        // A star stays within a name.
        (
            "effect: deny, where: {path: \"src/*.rs\"}",
            write(vec![written("src/a/b.rs")]),
            "ask default/write",
        ),
        ("effect: deny, where: {path: \"**/*.rs\"}", write(vec![written("b.rs")]), "deny r"),
        (
            "effect: deny, where: {path: {glob: \"**\", root: tools}}",
            write(vec![written("x")]),
            "ask default/write",
        ),
        ("effect: deny, where: {path: \"[!a]x\"}", write(vec![written("Ax")]), "deny r"),
        (
            "effect: deny, where: {path: {glob: \"**\", root: [tools, host]}}",
            write(vec![file(Root::Tools, "x", Access::Read)]),
            "deny r",
        ),
        // Commands: any part restricts, also on a later line; only the whole allows.
        (
            "effect: deny, where: {command: {regex: \"rm.*-rf\"}}",
            call("sh", Effect::Execute, vec![command("true && rm \\\n -rf /")]),
            "deny r",
        ),
        (
            "effect: deny, where: {command: {regex: \"^rm \"}}",
            call("sh", Effect::Execute, vec![command("true\nrm x")]),
            "deny r",
        ),
        (
            "effect: allow, where: {command: {regex: \"cargo test.*\"}}",
            call("sh", Effect::Execute, vec![command("cargo test --all")]),
            "allow r",
        ),
        (
            "effect: allow, where: {command: {regex: \"cargo (test|build)\"}}",
            call("sh", Effect::Execute, vec![command("cargo test; rm -rf /")]),
            "ask default/execute",
        ),
        (
            "effect: allow, where: {command: {regex: \"cargo test.*\"}}",
            call("sh", Effect::Execute, vec![command("cargo test\nrm -rf /")]),
            "ask default/execute",
        ),
        (
            "effect: allow, where: {command: {regex: \"a|b\"}}",
            call("sh", Effect::Execute, vec![command("a; rm")]),
            "ask default/execute",
        ),
        (
            "effect: allow, where: {command: [\"make\", \"make test\"]}",
            call("sh", Effect::Execute, vec![command("make test")]),
            "allow r",
        ),
        // The whole network is any host for a restriction and none for a permission.
        ("effect: deny, where: {host: a.org}", call("sh", Effect::Execute, vec![Target::Network]), "deny r"),
        (
            "effect: allow, where: {host: \"*\"}",
            call("sh", Effect::Execute, vec![host("a.org"), Target::Network]),
            "ask default/network",
        ),
        (
            "effect: ask, where: {host: \"*.a.org\"}",
            call("f", Effect::Read, vec![host("a.org")]),
            "ask default/network",
        ),
        // A statement that nobody could name.
        (
            "effect: deny, where: {statement: drop}",
            call("q", Effect::Write, vec![statement("?", &[])]),
            "deny r",
        ),
        (
            "effect: allow, where: {statement: \"*\"}",
            call("q", Effect::Write, vec![statement("?", &[])]),
            "allow r",
        ),
        (
            "effect: allow, where: {statement: select}",
            call("q", Effect::Write, vec![statement("?", &[])]),
            "ask default/write",
        ),
        // All conditions have to hold.
        (
            "effect: deny, where: {host: a.org, path: \"a/**\"}",
            call("f", Effect::Network, vec![host("a.org"), written("b")]),
            "ask default/network",
        ),
        (
            "effect: deny, where: {host: a.org, path: \"a/**\"}",
            call("f", Effect::Network, vec![host("a.org"), written("a/b")]),
            "deny r",
        ),
        // Numbers and texts.
        ("effect: deny, where: {arguments: {n: 1}}", with_arguments(json!({"n": 1.0})), "deny r"),
        ("effect: deny, where: {arguments: {n: [1, null]}}", with_arguments(json!({"n": null})), "deny r"),
        ("effect: deny, where: {arguments: {n: null}}", with_arguments(json!({})), "ask default/write"),
        ("effect: deny, where: {arguments: {n: {max: 3}}}", with_arguments(json!({"n": [9]})), "deny r"),
        (
            "effect: allow, where: {arguments: {n: {max: 3}}}",
            with_arguments(json!({"n": [1]})),
            "ask default/write",
        ),
        (
            "effect: deny, where: {arguments: {a.b: {regex: x}}}",
            with_arguments(json!({"a": {"b": ["x"]}})),
            "deny r",
        ),
        (
            "effect: allow, where: {arguments: {a.b: {regex: \".*\"}}}",
            with_arguments(json!({"a": {"b": ["x"]}})),
            "ask default/write",
        ),
        ("effect: deny, where: {arguments: {a.1: y}}", with_arguments(json!({"a": ["x", "y"]})), "deny r"),
        // A tool that calls itself a reader and names a file to write is a writer.
        (
            "effect: deny, tools: other",
            call("fs_read", Effect::Read, vec![written("x")]),
            "ask default/write",
        ),
        ("effect: deny, tools: other", call("fs_read", Effect::Read, vec![]), "allow default/read"),
    ];
    for (rule, call, expected) in cases {
        assert_eq!(judged(&one(rule), &call), expected, "{rule}\n{call:?}");
    }
}

#[test]
fn a_tool_is_meant_by_each_of_its_names() {
    let policy = rules("  - {id: r, effect: deny, tools: [Write, \"fs.re*\"]}");
    let named = |tool: &str, aliases: &[&str]| PastCall {
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        ..call(tool, Effect::Read, vec![])
    };
    assert_eq!(judged(&policy, &named("fs_write", &["fs.write", "Write"])), "deny r");
    assert_eq!(judged(&policy, &named("fs_read", &["fs.read"])), "deny r");
    assert_eq!(judged(&policy, &named("fs_list", &["fs.list", "write"])), "allow default/read");
    let idle = policy.idle_patterns(&["fs_write", "fs.read", "write"]);
    assert_eq!(idle.len(), 1, "{idle:?}");
    assert!(idle[0].message.contains("`Write`"), "{idle:?}");
    let text =
        "version: 1\nsequences:\n  - {id: s, after: [a, \"b*\"], deny: {tools: [c, \"effect:read\"]}}\n";
    let idle = try_load(text).unwrap().idle_patterns(&["a"]);
    let words: Vec<&str> = idle.iter().map(|problem| problem.message.split('`').nth(1).unwrap()).collect();
    assert_eq!(words, ["b*", "c"]);
}

#[test]
fn actors_are_told_apart_by_kind_and_id() {
    let policy = rules("  - {id: r, effect: deny, actor: [\"agent:ci-*\", \"tool:tools/web/*\"]}");
    let by = |actor: Actor| PastCall { actor, ..call("x", Effect::Read, vec![]) };
    let tool = |text: &str| Actor::Tool(crate::support::path(text));
    for (actor, expected) in [
        (Actor::Agent("ci-1".to_owned()), "deny r"),
        (Actor::Agent("ci-a/b:c".to_owned()), "deny r"),
        (Actor::Agent("xci-1".to_owned()), "allow default/read"),
        (Actor::Person("ci-1".to_owned()), "allow default/read"),
        (tool("tools/web/a/b.ts"), "deny r"),
        (tool("tools/webby.ts"), "allow default/read"),
    ] {
        assert_eq!(judged(&policy, &by(actor.clone())), expected, "{actor:?}");
    }
}

#[test]
fn a_decision_becomes_a_verdict() {
    let text = "version: 1\nrules:\n  - {id: never, effect: deny, tools: x, reason: it hurts}\n";
    let policy = try_load(text).unwrap();
    let decision =
        policy.preview(&call("x", Effect::Read, vec![]).as_question(), &SessionHistory::new(&policy));
    assert_eq!(decision.source.as_ref().unwrap().to_string(), "p.yaml:3:5");
    let Verdict::Deny { rule, error } = decision.into_verdict() else { panic!("not denied") };
    assert_eq!(rule, "never");
    assert_eq!(error.code, Code::Policy);
    assert_eq!(error.message, "rule `never` forbids this call: it hurts");
    assert_eq!(error.details["rulePlace"], "p.yaml:3:5");
    let ask =
        Decision { effect: RuleEffect::Ask, rule: "r".to_owned(), reason: "why".to_owned(), source: None };
    assert_eq!(ask.clone().into_verdict(), Verdict::Ask { rule: "r".to_owned(), reason: "why".to_owned() });
    let allow = Decision { effect: RuleEffect::Allow, ..ask.clone() };
    assert_eq!(allow.clone().into_verdict(), Verdict::Allow { rule: "r".to_owned() });
    assert_eq!(allow.clone().stricter(ask.clone()), ask.clone());
    assert_eq!(ask.clone().stricter(allow), ask);
}

/// Knows one tool, which writes where its argument says.
struct OneTool;

impl Catalogue for OneTool {
    fn look_up(&self, tool: &str, arguments: &Value) -> Option<Known> {
        let path = arguments["path"].as_str()?;
        ["fs_write", "Write"].contains(&tool).then(|| Known {
            name: "fs_write".to_owned(),
            aliases: vec!["Write".to_owned()],
            effect: Effect::Write,
            targets: vec![written(path)],
        })
    }
}

#[test]
fn a_catalogue_completes_examples() {
    let text = |example: &str| {
        format!(
            "version: 1\nrules:\n  - {{id: r, effect: deny, tools: [\"effect:write\"], where: {{path: \"a/**\"}}, {example}}}\n"
        )
    };
    let load = |example: &str| {
        Policy::load_with(&[source("p.yaml", &text(example))], &PolicySettings::default(), &OneTool)
    };
    load("match: [{tool: Write, arguments: {path: a/x}}], not_match: [{tool: fs_write, arguments: {path: b/x}}]")
        .unwrap();
    // What the example says itself goes first.
    load("match: [{tool: Write, arguments: {path: b/x}, targets: [{file: a/x, access: read}]}]").unwrap();
    load("match: [{tool: elsewhere, effect: write, targets: [{file: a/x, access: read}]}]").unwrap();
    for (example, wanted) in [
        ("match: [{tool: fs_write, arguments: {path: b/x}}]", "its files are others"),
        (
            "match: [{tool: fs_write, arguments: {}}]",
            "there is no tool `fs_write`, or its arguments do not fit",
        ),
        ("not_match: [{tool: no_such_tool, arguments: {path: a/x}}]", "there is no tool `no_such_tool`"),
    ] {
        let error = ToolError::from(load(example).unwrap_err());
        assert_eq!(error.code, Code::Config);
        assert!(error.message.contains(wanted), "{error}");
    }
}

/// Whoever writes below a directory without being judged has asked this first, so it must never miss a rule.
#[test]
fn a_rule_that_matches_below_a_directory_is_never_missed() {
    let globs = [
        "**",
        "*",
        "*/*",
        "target",
        "target/**",
        "target/*",
        "target/a",
        "TARGET/A",
        "t*/**",
        "**/a",
        "**/*.exe",
        "*/a/b",
        "?arget/a",
        "{target,src}/a",
        "{target/a,src/b}",
        "tar{get,}/**/x",
        "target[/]a",
        "target[!x]a",
        "[t]arget/a",
        "target\\/a",
        "src/**",
        "*.exe",
        "targets/**",
        "{src,lib}/**",
        "**/target/a/**",
        "a/**/b",
        "target/**/b",
        "{a,b}{c,d}/**",
        "**/[ab]",
        "target/?",
        "target/{a,b}/c",
        "Target/{**/b,a}",
    ];
    let below = [
        "target/a",
        "target/b",
        "target/a.exe",
        "target/a/b",
        "target/a/b/c",
        "target/x",
        "target/deep/er/x",
        "target/target/a",
        "target/A",
        "target/a/c",
        "target/b/a",
        "target/src/b",
        "target/d.exe",
    ];
    for glob in globs {
        for (tool, access) in [("fs_write", Access::Write), ("fs_delete", Access::Delete)] {
            let rule = format!("  - {{id: r, effect: deny, where: {{path: '{glob}'}}}}");
            let policy = rules(&rule);
            let asked = call(tool, Effect::Write, vec![file(Root::Project, "target", access)]);
            let may = policy.may_restrict_below(&asked.as_question(), Root::Project, &path("target"));
            for name in below {
                let one = call(tool, Effect::Write, vec![file(Root::Project, name, access)]);
                assert!(may || judged(&policy, &one) != "deny r", "{glob} matches {name}");
            }
        }
    }
}

#[test]
fn a_rule_that_cannot_match_below_a_directory_does_not_restrict_it() {
    let may = |text: &str, tool: &str, access: Access| {
        let policy = try_load(&format!("version: 1\n{text}\n")).unwrap();
        let asked = call(tool, Effect::Write, vec![file(Root::Project, "target", access)]);
        policy.may_restrict_below(&asked.as_question(), Root::Project, &path("target"))
    };
    let rule = |fields: &str| format!("rules:\n  - {{id: r, {fields}}}");
    for fields in [
        "effect: deny, where: {path: 'src/**'}",
        "effect: allow, where: {path: '**'}",
        "effect: deny, where: {path: {glob: '**', root: tools}}",
        "effect: deny, where: {path: {glob: '**', access: read}}",
        "effect: deny, tools: fetch",
        "effect: deny, where: {host: '*'}",
        "effect: deny, actor: 'person:*', where: {path: '**'}",
        "effect: deny, when: {state: red}, where: {path: '**'}",
        "effect: deny, tools: fs_delete, where: {path: '**'}",
    ] {
        assert!(!may(&rule(fields), "fs_write", Access::Write), "{fields}");
    }
    for text in [
        rule("effect: ask, where: {path: '**/*.exe'}"),
        rule("effect: deny, tools: ['effect:write']"),
        rule("effect: deny, tools: fs_write, where: {arguments: {path: {glob: 'target/*'}}}"),
        "sequences:\n  - {id: s, at_most: 2, of: {tools: '*', where: {path: {glob: '**', access: write}}}}"
            .to_owned(),
        "sequences:\n  - {id: s, after: fetch, deny: fs_write}".to_owned(),
    ] {
        assert!(may(&text, "fs_write", Access::Write), "{text}");
    }
}

#[test]
fn an_extension_that_asks_is_named_in_place_of_a_default() {
    let policy = try_load("version: 1\n").unwrap();
    let asked = call("fs_write", Effect::Write, vec![written("a")]);
    let decision = policy.preview(&asked.as_question(), &SessionHistory::new(&policy));
    assert_eq!(decision.rule, "default/write");
    let ask = || tgp_policy::ExtensionVerdict::Ask { reason: "sure?".to_owned() };
    assert_eq!(decision.clone().with_extension("guard", ask()).rule, "extension/guard");
    assert_eq!(decision.with_extension("guard", tgp_policy::ExtensionVerdict::Pass).rule, "default/write");
    let policy = rules("  - {id: r, effect: ask, tools: fs_write}");
    let decision = policy.preview(&asked.as_question(), &SessionHistory::new(&policy));
    assert_eq!(decision.with_extension("guard", ask()).rule, "r", "of two equals the first");
}
