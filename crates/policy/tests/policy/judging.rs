//! Rules and calls in a table: what matches, which way a doubt goes, and what a decision becomes at the gate.

use serde_json::{Value, json};
use tgp_contract::{
    Access, Actor, ApprovalOrigin, ApprovalReason, Code, Effect, Root, Target, ToolError, Verdict,
};
use tgp_policy::{
    PastCall, Policy, PolicyDecision, PolicySettings, PolicyTool, RuleEffect, SessionHistory, SourceTrust,
    ToolCatalogue,
};

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
        // A statement that could not be classified.
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
        // One of which the kind is not known may be of every kind, whatever else is known of it.
        (
            "effect: deny, where: {statement: drop}",
            call("q", Effect::Write, vec![statement("?", &["unknown"])]),
            "deny r",
        ),
        (
            "effect: deny, where: {statement: drop}",
            call("q", Effect::Write, vec![statement("?", &["select", "unknown"])]),
            "deny r",
        ),
        (
            "effect: ask, where: {statement: [drop, delete]}",
            call("q", Effect::Write, vec![statement("?", &["unknown"])]),
            "ask r",
        ),
        (
            "effect: allow, where: {statement: [select, unknown]}",
            call("q", Effect::Write, vec![statement("?", &["select", "unknown"])]),
            "ask default/write",
        ),
        (
            "effect: deny, where: {statement: {regex: \"zzz\"}}",
            call("q", Effect::Write, vec![statement("?", &["unknown"])]),
            "ask default/write",
        ),
        (
            "effect: allow, where: {statement: \"*\"}",
            call("q", Effect::Write, vec![statement("?", &["unknown"])]),
            "allow r",
        ),
        // A tool that calls itself a reader and runs a statement is none.
        (
            "effect: deny, where: {statement: drop}",
            call("q", Effect::Read, vec![statement("select 1", &["select"])]),
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
fn bug_a_misspelt_kind_of_statement_went_unnoticed() {
    let policy = rules("  - {id: r, effect: deny, where: {statement: [drp, DELETE, unknown]}}");
    let problems = policy.unknown_kinds(&["drop", "delete", "unknown"]);
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["unknown kind of statement `drp` in rule `r`: it matches no statement"]);
}

#[test]
fn bug_a_wildcard_in_the_text_of_a_command_went_unnoticed() {
    let policy = rules(
        "  - {id: r, effect: allow, where: {command: [\"npm install *\", make, \"a.b *\", {regex: \"x .*\"}]}}",
    );
    let helps: Vec<String> = policy.command_wildcards().into_iter().map(|problem| problem.help).collect();
    assert_eq!(helps.len(), 2, "{helps:?}");
    assert!(helps[0].contains("write `command: {regex: \"npm install .*\"}`"), "{helps:?}");
    assert!(helps[1].contains("{regex: 'a\\.b .*'}"), "{helps:?}");
}

#[test]
fn bug_a_statement_with_a_mistake_was_refused_without_saying_so() {
    let policy = rules("  - {id: no-drop, effect: deny, where: {statement: drop}, reason: tables stay}");
    let statement = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let target = Target::Statement { sql: "SELEC 1".to_owned(), kinds, reads: false };
        call("exec_sql", Effect::Write, vec![target])
    };
    let reason = |kinds: &[&str]| {
        let past = statement(kinds);
        policy.preview(&past.as_question(), &SessionHistory::new(&policy)).reason
    };
    assert_eq!(reason(&["drop"]), "tables stay");
    assert!(reason(&["unknown"]).contains("cannot compile this statement"), "{}", reason(&["unknown"]));
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
fn a_name_that_a_client_has_chosen_makes_no_allow_rule_fit() {
    let allow =
        |pattern: &str| rules(&format!("  - {{id: r, effect: allow, tools: x, actor: \"{pattern}\"}}"));
    let deny = |pattern: &str| rules(&format!("  - {{id: r, effect: deny, tools: x, actor: \"{pattern}\"}}"));
    let by = |id: &str| PastCall { actor: Actor::Agent(id.to_owned()), ..call("x", Effect::Write, vec![]) };
    // What the client cannot choose fits, and what it can choose does not, however the pattern is written.
    for (pattern, id, fits) in [
        ("agent:socket/0123456789ab", "socket/0123456789ab/ci", true),
        ("agent:socket/*", "socket/0123456789ab/ci", true),
        ("agent:cli", "cli/ci", true),
        ("agent:*", "cli/ci", true),
        ("agent:ci", "ci", true),
        ("agent:ci", "cli/ci", false),
        ("agent:*ci", "cli/ci", false),
        ("agent:*/ci", "socket/0123456789ab/ci", false),
        ("agent:socket/*/ci", "socket/0123456789ab/ci", false),
        ("agent:token/*ci", "token/0123456789ab/ci", false),
        ("agent:cli/ci", "cli/ci", false),
        ("person:*", "cli/person:ann", false),
    ] {
        let expected = if fits { "allow r" } else { "ask default/write" };
        assert_eq!(judged(&allow(pattern), &by(id)), expected, "allow {pattern} for {id}");
    }
    for (pattern, id, fits) in [
        ("agent:evil*", "socket/0123456789ab/evil-1", true),
        ("agent:socket/0123456789ab*", "socket/0123456789ab/good", true),
        ("agent:socket/*/evil", "socket/0123456789ab/evil", true),
        ("agent:evil*", "cli/evil", true),
        ("agent:cli/evil", "cli/evil", true),
        ("agent:evil*", "socket/0123456789ab/good", false),
        ("person:evil", "cli/evil", false),
    ] {
        let expected = if fits { "deny r" } else { "ask default/write" };
        assert_eq!(judged(&deny(pattern), &by(id)), expected, "deny {pattern} for {id}");
    }
}

#[test]
fn sql_in_capitals_does_not_evade_a_statement_rule() {
    let policy = rules("  - {id: r, effect: deny, where: {statement: {regex: \"from users\\\\b\"}}}");
    for sql in ["SELECT * FROM users", "SELECT * FROM USERS", "select * From Users"] {
        let asked = call("exec_sql", Effect::Execute, vec![crate::support::statement(sql, &["select"])]);
        assert_eq!(judged(&policy, &asked), "deny r", "{sql}");
    }
    // A class without a letter means less without case, so the expression as it is written counts too.
    let policy = rules("  - {id: r, effect: deny, where: {statement: {regex: \"x[^a]\"}}}");
    for (sql, expected) in [("xA", "deny r"), ("xb", "deny r"), ("xa", "ask default/execute")] {
        let asked = call("exec_sql", Effect::Execute, vec![crate::support::statement(sql, &["select"])]);
        assert_eq!(judged(&policy, &asked), expected, "{sql}");
    }
    // What allows is taken as it is written.
    let policy = rules("  - {id: r, effect: allow, where: {statement: {regex: \"select 1\"}}}");
    for (sql, expected) in [("select 1", "allow r"), ("SELECT 1", "ask default/execute")] {
        let asked = call("exec_sql", Effect::Execute, vec![crate::support::statement(sql, &["select"])]);
        assert_eq!(judged(&policy, &asked), expected, "{sql}");
    }
    // An expression that ends in a comment is still one.
    let policy = rules("  - {id: r, effect: deny, where: {statement: {regex: \"(?x) users # these\"}}}");
    let asked = call("exec_sql", Effect::Execute, vec![crate::support::statement("USERS", &["select"])]);
    assert_eq!(judged(&policy, &asked), "deny r");
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
    let ask = PolicyDecision {
        effect: RuleEffect::Ask,
        rule: "r".to_owned(),
        reason: "why".to_owned(),
        source: None,
        is_default: false,
    };
    assert_eq!(
        ask.clone().into_verdict(),
        Verdict::Ask(ApprovalReason {
            origin: ApprovalOrigin::Rule("r".to_owned()),
            reason: "why".to_owned()
        })
    );
    let allow = PolicyDecision { effect: RuleEffect::Allow, ..ask.clone() };
    assert_eq!(allow.clone().into_verdict(), Verdict::Allow { rule: "r".to_owned() });
    assert_eq!(allow.clone().stricter(ask.clone()), ask.clone());
    assert_eq!(ask.clone().stricter(allow), ask);
}

/// Knows one tool, which writes where its argument says.
struct OneTool;

impl ToolCatalogue for OneTool {
    fn look_up(&self, tool: &str, arguments: &Value) -> Option<PolicyTool> {
        let path = arguments["path"].as_str()?;
        ["fs_write", "Write"].contains(&tool).then(|| PolicyTool {
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

/// `db.freeReads` lifts the default, and no rule.
#[test]
fn free_reads_are_allowed_only_where_no_rule_says_otherwise() {
    let settings = PolicySettings { free_reads: true, ..PolicySettings::default() };
    let query = |reads| Target::Statement { sql: "q".to_owned(), kinds: vec!["select".to_owned()], reads };
    let decide = |rule: &str, settings: &PolicySettings, effect, targets: Vec<Target>| {
        let text = format!("version: 1\nrules:\n{rule}\n");
        judged(
            &Policy::load(&[source("p.yaml", &text)], settings).unwrap(),
            &call("exec_sql", effect, targets),
        )
    };
    let other = "  - {id: r, effect: deny, tools: fetch}";
    let free = "allow default/free-reads";
    assert_eq!(decide(other, &settings, Effect::Write, vec![query(true)]), free);
    assert_eq!(decide(other, &settings, Effect::Write, vec![query(true), query(true)]), free);
    assert_eq!(decide(other, &settings, Effect::Write, vec![query(false)]), "ask default/write");
    assert_eq!(decide(other, &settings, Effect::Write, vec![query(true), query(false)]), "ask default/write");
    assert_eq!(decide(other, &settings, Effect::Write, vec![query(true), written("a")]), "ask default/write");
    assert_eq!(decide(other, &settings, Effect::Write, Vec::new()), "ask default/write");
    assert_eq!(decide(other, &settings, Effect::Execute, vec![query(true)]), "ask default/execute");
    assert_eq!(
        decide(other, &PolicySettings::default(), Effect::Write, vec![query(true)]),
        "ask default/write",
        "not without the setting"
    );
    for (rule, decision) in [("ask", "ask r"), ("deny", "deny r")] {
        let rule = format!("  - {{id: r, effect: {rule}, where: {{statement: select}}}}");
        assert_eq!(decide(&rule, &settings, Effect::Write, vec![query(true)]), decision);
    }
}

#[test]
fn allow_rules_of_a_file_that_may_only_tighten_decide_nothing() {
    let own =
        source("own.yaml", "version: 1\nrules: [{id: own, effect: allow, where: {path: \"own/**\"}}]\n");
    let mut foreign = source(
        "foreign.yaml",
        "version: 1\nrules: [{id: all, effect: allow, tools: \"*\"}, {id: no, effect: deny, where: {path: \"no/**\"}}]\n",
    );
    foreign.trust = SourceTrust::TightenOnly;
    let policy = Policy::load(&[own, foreign], &PolicySettings::default()).unwrap();
    let history = SessionHistory::new(&policy);
    for (path, expected) in [("a", "default/write"), ("own/a", "own"), ("no/a", "no")] {
        let call = call("fs_write", Effect::Write, vec![written(path)]);
        assert_eq!(policy.preview(&call.as_question(), &history).rule, expected, "{path}");
        let explained = policy.explain(&call.as_question(), &history);
        let report = explained.rules.iter().find(|report| report.rule == "all").unwrap();
        assert!(report.why.contains("tgp policy trust"), "{report:?}");
    }
    let without_effect: Vec<&str> =
        policy.rules().filter(|rule| !rule.has_effect).map(|rule| rule.id).collect();
    assert_eq!(without_effect, ["all"]);
}

/// A write below a directory without a judgement relies on this answer, so it must never miss a rule.
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

#[test]
fn only_rules_with_a_path_restrict_a_file_of_a_running_call() {
    let policy = rules(
        "  - {id: all, effect: ask, tools: shell_exec}\n  - {id: notes, effect: ask, tools: shell_exec, where: {path: 'notes/**'}}\n  - {id: logs, effect: deny, tools: 'effect:execute', where: {path: 'logs/**'}}\n  - {id: free, effect: allow, tools: shell_exec, where: {path: 'tmp/**'}}",
    );
    let restricted = |tool: &str, name: &str| {
        let call = call(tool, Effect::Execute, vec![written(name)]);
        let found = policy.restriction_by_path(&call.as_question(), &SessionHistory::new(&policy));
        found.map(|decision| crate::support::said(&decision))
    };
    assert_eq!(restricted("shell_exec", "src/a"), None, "the call itself was asked about");
    assert_eq!(restricted("shell_exec", "tmp/a"), None, "nothing is lifted by it");
    assert_eq!(restricted("shell_exec", "notes/a").as_deref(), Some("ask notes"));
    assert_eq!(restricted("other", "notes/a"), None);
    assert_eq!(restricted("other", "logs/a").as_deref(), Some("deny logs"));
    let below = |name: &str| {
        let call = call("shell_exec", Effect::Execute, vec![written(name)]);
        policy.may_restrict_by_path_below(&call.as_question(), Root::Project, &crate::support::path(name))
    };
    assert!(below("notes") && below("logs/old") && !below("target"));
}

#[test]
fn named_targets_are_matched_and_a_secret_has_to_be_named() {
    let secret = |name: &str| Target::Secret { name: name.to_owned() };
    let upstream =
        |server: &str, tool: &str| Target::UpstreamTool { server: server.to_owned(), tool: tool.to_owned() };
    let of_host = |name: &str| Target::HostTool { name: name.to_owned() };
    let fetch = |targets: Vec<Target>| call("fetch", Effect::Network, targets);
    let api = || host("api.example");
    let cases: Vec<(&str, PastCall, &str)> = vec![
        ("effect: allow, tools: [fetch]", fetch(vec![api()]), "allow r"),
        ("effect: allow, tools: [fetch]", fetch(vec![api(), secret("KEY")]), "ask default/secret"),
        (
            "effect: allow, where: {host: api.example}",
            fetch(vec![api(), secret("KEY")]),
            "ask default/secret",
        ),
        ("effect: allow, where: {target: secret:KEY}", fetch(vec![api(), secret("KEY")]), "allow r"),
        ("effect: allow, where: {target: \"*\"}", fetch(vec![api(), secret("KEY")]), "allow r"),
        (
            "effect: allow, where: {target: \"secret:K*\"}",
            fetch(vec![secret("KEY"), secret("OTHER")]),
            "ask default/secret",
        ),
        (
            "effect: deny, where: {target: secret:OTHER}",
            fetch(vec![secret("KEY"), secret("OTHER")]),
            "deny r",
        ),
        ("effect: deny, where: {target: secret:key}", fetch(vec![secret("KEY")]), "ask default/secret"),
        ("effect: deny, where: {target: secret:KEY}", fetch(vec![api()]), "ask default/network"),
        (
            "effect: deny, where: {target: \"mcp:linear/*\"}",
            fetch(vec![upstream("linear", "create_issue")]),
            "deny r",
        ),
        (
            "effect: deny, where: {target: mcp:linear/get}",
            fetch(vec![upstream("linear", "create")]),
            "ask default/network",
        ),
        ("effect: allow, where: {target: host:mail}", fetch(vec![of_host("mail")]), "allow r"),
        ("effect: deny, where: {target: \"host:*\"}", fetch(vec![secret("host:mail")]), "ask default/secret"),
    ];
    for (rule, call, expected) in cases {
        assert_eq!(judged(&rules(&format!("  - {{id: r, {rule}}}")), &call), expected, "{rule}");
    }
    let both = "  - {id: limits, effect: allow, tools: [fetch], where: {limits: \"*\"}}\n  - {id: key, effect: allow, where: \
                {target: secret:KEY}}";
    let asked = tgp_contract::LimitRequest { cpu_ms: Some(5_000), ..Default::default() };
    let limited = fetch(vec![secret("KEY"), Target::Limits(asked)]);
    assert_eq!(judged(&rules(both), &limited), "allow limits");
    assert_eq!(judged(&rules(both.lines().next().unwrap()), &limited), "ask default/secret");
    for wrong in ["KEY", "secrets:KEY", "\"\""] {
        let text = format!("version: 1\nrules:\n  - {{id: r, effect: deny, where: {{target: {wrong}}}}}\n");
        assert!(try_load(&text).is_err(), "{wrong}");
    }
}
