//! Policy files.

use serde_json::{Value, json};
use tgp_contract::{
    Access, Actor, Effect, RelativePath, Root, Target as CallTarget, TddMode, TddState, ToolError,
};
use tgp_policy::{
    PastCall, PastOutcome, Policy, PolicyDecision, PolicyError, PolicySettings, PolicySource, RuleEffect,
    SessionHistory, SourceTrust,
};
use tgp_text::yaml::{self, YamlLimits};

use super::{ensure, same, text};
use crate::Target;
use crate::mutate::sentence;

pub(super) const TARGET: Target = Target {
    name: "policy",
    about: "rules written again as JSON decide the same, a file that may only tighten never loosens, and problems have places",
    oracle: check,
    dictionary: &[
        "version: 1\n",
        "rules:\n",
        "sequences:\n",
        "  - {id: a, effect: deny, tools: \"*\"}\n",
        "id: b",
        "effect: allow",
        "effect: ask",
        "tools: [fs_read, \"effect:write\"]",
        "where: {path: \"**\"}",
        "where: {path: {glob: \"src/**\", access: write}}",
        "where: {statement: drop}",
        "where: {statement: {regex: \"(?i)x\"}}",
        "where: {host: \"*.example.com\"}",
        "where: {command: {regex: \"^rm\"}}",
        "where: {arguments: {n: {max: 3}}}",
        "when: {state: red}",
        "when: {mode: strict}",
        "actor: \"agent:*\"",
        "reason: because",
        "match: [{tool: fs_read}]",
        "not_match: []",
        "after: fs_read",
        "deny: fetch",
        "at_most: 2",
        "of: {tools: fs_write}",
        "!!str ",
        "&a ",
        "*a",
        "<<: ",
        "---\n",
        "? ",
        "| ",
        "> ",
        "\"",
        "'",
        "#",
        "0x10",
        "1e3",
        ".inf",
        "~",
        "true",
        "no",
        "\u{feff}",
        "\u{85}",
        "\t",
    ],
    generate: Some(|random| sentence(random, GRAMMAR, "file", DEPTH).into_bytes()),
    iterations: 1_400,
};

/// How deep a generated file nests.
const DEPTH: u32 = 6;

/// Files of rules about the calls of [`calls`].
const GRAMMAR: &[(&str, &[&str])] = &[
    (
        "file",
        &[
            "version: 1\nrules:\n  - {id: a, <rule>}\n",
            "version: 1\nrules:\n  - {id: a, <rule>}\n  - {id: b, <rule>}\n  - {id: c, <rule>}\n",
            "version: 1\nrules:\n  - {id: a, <rule>}\nsequences:\n  - {id: d, <sequence>}\n  - {id: e, <sequence>}\n",
            "# <word>\n---\nversion: 1\nrules: [{id: a, <rule>}]\n",
        ],
    ),
    (
        "rule",
        &[
            "effect: deny, tools: \"*\"",
            "effect: <effect>, <selector>",
            "effect: <effect>, <selector>, reason: <word>",
            "effect: <effect>, <selector>, when: {state: <state>}",
            "effect: <effect>, <selector>, actor: <actor>",
        ],
    ),
    ("effect", &["deny", "ask", "allow", "\"allow\"", "'deny'"]),
    ("state", &["red", "[red, green]", "idle"]),
    ("actor", &["\"agent:*\"", "\"agent:coder\"", "[\"person:*\", \"agent:c*\"]"]),
    (
        "selector",
        &[
            "tools: \"*\"",
            "tools: <tools>",
            "tools: <tools>, where: {<where>}",
            "where: {<where>}",
            "where: {<where>, <where>}",
        ],
    ),
    (
        "tools",
        &[
            "fs_read",
            "fs_write",
            "[fs_write, exec_sql]",
            "\"effect:write\"",
            "\"fs_*\"",
            "[\"effect:read\", shell_exec]",
            "fs.read",
            "fetch",
        ],
    ),
    (
        "where",
        &[
            "path: \"src/**\"",
            "path: [\"**/*.ts\", {glob: \"migrations/*\", access: delete}]",
            "path: {glob: \"**\", access: [read, write]}",
            "path: {glob: \"SRC/{a,b}.ts\", root: project}",
            "statement: drop",
            "statement: [select, unknown]",
            "statement: {regex: <regex>}",
            "host: \"*.example.com\"",
            "host: [api.example.com, \"10.0.0.1\"]",
            "command: {regex: <regex>}",
            "command: \"rm -rf src\"",
            "arguments: {n: <number>}",
            "arguments: {n: {max: <number>}}",
            "arguments: {path: {glob: \"src/*\"}}",
            "arguments: {\"a.*.b\": {one_of: [1, x]}}",
            "match: <regex>",
        ],
    ),
    ("regex", &["\"(?i)drop\"", "'^rm\\b'", "\"[\"", "src", "\"a{1,9}\""]),
    ("number", &["3", "3.0", "-1", "1e3", "0x10", "9007199254740993", "\"3\"", "~", "true", ".5"]),
    (
        "sequence",
        &[
            "after: fs_read, deny: fetch",
            "after: [<tools>, {<selector>}], ask: {<selector>}",
            "at_most: 2, of: {<selector>}",
            "at_most: <number>, of: {tools: <tools>}, effect: ask",
            "after: {<selector>}, deny: <tools>, reason: <word>",
        ],
    ),
    (
        "word",
        &["because", "\"é \\u00e9 \\x41\"", "'it''s'", "a b  c", "\"\\n\"", "\"\\u0007\"", "\u{85}", "no"],
    ),
];

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let policy = match load(&text, SourceTrust::Full) {
        Ok(policy) => policy,
        Err(error) => return problems(&text, error),
    };
    let decisions = decide(&policy)?;
    let again =
        load(&text, SourceTrust::Full).map_err(|error| format!("the second time it is refused: {error}"))?;
    same("the fingerprint changes", &again.fingerprint(), &policy.fingerprint())?;
    same("the decisions change", &decide(&again)?, &decisions)?;
    // YAML is a superset of JSON, so the same values in another notation are the same rules.
    let limits = YamlLimits { depth: 64, nodes: 100_000 };
    let value: Value =
        yaml::read(&text, limits).map_err(|error| format!("a policy is not YAML: {}", error.message))?;
    let json = ascii(&value);
    let other =
        load(&json, SourceTrust::Full).map_err(|error| format!("as JSON it is refused: {error}\n{json}"))?;
    same("the rules differ as JSON", &rules(&other), &rules(&policy))?;
    same("the decisions differ as JSON", &decide(&other)?, &decisions)?;
    let tight = load(&text, SourceTrust::TightenOnly)
        .map_err(|error| format!("it is refused where it may only tighten: {error}"))?;
    let pairs = decide(&tight)?.into_iter().zip(&decisions);
    for (tight, full) in pairs {
        ensure!(tight.0 >= full.0, "a file that may only tighten allows more: {tight:?} and {full:?}");
    }
    Ok(())
}

fn load(text: &str, trust: SourceTrust) -> Result<Policy, PolicyError> {
    let source = PolicySource { file: "p.yaml".to_owned(), text: text.to_owned(), trust };
    Policy::load(&[source], &PolicySettings::default())
}

/// What is wrong is said at a place that exists, in words that a terminal can show.
fn problems(text: &str, error: PolicyError) -> Result<(), String> {
    // YAML takes a carriage return alone for a line end too.
    let lines = text.split(['\n', '\r']).count();
    for problem in error.problems() {
        let place = &problem.place;
        ensure!(place.line >= 1 && place.column >= 1, "a place counts from 1: {place}");
        ensure!(
            place.line as usize <= lines,
            "the place {place} is behind the {lines} lines: {}",
            problem.message
        );
        ensure!(!problem.message.is_empty() && !problem.help.is_empty(), "a problem at {place} says nothing");
        ensure!(
            !problem.message.chars().any(char::is_control),
            "a message has a control character: {:?}",
            problem.message
        );
    }
    let error = ToolError::from(error);
    same("the code of the error", &error.code, &tgp_contract::Code::Config)
}

/// The rules without their places.
fn rules(policy: &Policy) -> Vec<String> {
    let show = |rule: tgp_policy::RuleSummary<'_>| {
        format!(
            "{} {} {:?} {} {} {} {}",
            rule.id,
            rule.effect,
            rule.reason,
            rule.is_sequence,
            rule.has_effect,
            rule.matching,
            rule.not_matching
        )
    };
    policy.rules().map(show).collect()
}

/// What the rules say of some calls, one after the other in one session.
fn decide(policy: &Policy) -> Result<Vec<(RuleEffect, String, String)>, String> {
    let mut history = SessionHistory::new(policy);
    let mut decisions = Vec::new();
    for call in calls() {
        let question = call.as_question();
        let preview = policy.preview(&question, &history);
        let judgement = policy.judge(&question, &mut history);
        same("a preview differs from the judgement", &preview, &judgement.decision)?;
        let PolicyDecision { effect, rule, reason, .. } = judgement.decision;
        ensure!(
            (effect == RuleEffect::Deny) == judgement.ticket.is_none(),
            "{effect} by {rule} reserves wrongly"
        );
        if let Some(ticket) = judgement.ticket {
            history.settle(policy, ticket, &question, PastOutcome::Ran);
        }
        decisions.push((effect, rule, reason));
    }
    Ok(decisions)
}

fn calls() -> Vec<PastCall> {
    let file = |path: &str, access| {
        let path = RelativePath::new(path).unwrap_or_default();
        CallTarget::File { root: Root::Project, path, access }
    };
    let statement = |sql: &str, kind: &str| CallTarget::Statement {
        sql: sql.to_owned(),
        kinds: vec![kind.to_owned()],
        reads: kind == "select",
    };
    let call = |tool: &str, effect, arguments, target| PastCall {
        tool: tool.to_owned(),
        aliases: vec![tool.replace('_', ".")],
        effect,
        arguments,
        targets: vec![target],
        actor: Actor::Agent("coder".to_owned()),
        session: "one".to_owned(),
        mode: TddMode::Strict,
        state: TddState::Red,
    };
    let command = CallTarget::Command { command: "rm -rf src".to_owned() };
    let host = CallTarget::Host { host: "api.example.com".to_owned() };
    vec![
        call("fs_read", Effect::Read, json!({"path": "src/a.ts"}), file("src/a.ts", Access::Read)),
        call("fs_write", Effect::Write, json!({"path": "src/a.ts", "n": 3}), file("src/a.ts", Access::Write)),
        call("fs_delete", Effect::Write, json!({}), file("migrations/1.sql", Access::Delete)),
        call("exec_sql", Effect::Write, json!({"sql": "DROP TABLE t"}), statement("DROP TABLE t", "drop")),
        call("exec_sql", Effect::Write, json!({"sql": "SELECT 1"}), statement("SELECT 1", "select")),
        call("shell_exec", Effect::Execute, json!({"command": "rm -rf src"}), command),
        call("fetch", Effect::Network, json!({"url": "https://api.example.com/v1"}), host),
        call("fs_write", Effect::Write, json!({"path": "src/b.ts"}), file("src/b.ts", Access::Write)),
    ]
}

/// JSON in ASCII: readers of YAML refuse some characters unless they are escaped.
fn ascii(value: &Value) -> String {
    use std::fmt::Write as _;
    let mut escaped = String::new();
    for letter in value.to_string().chars() {
        if letter.is_ascii() && letter != '\u{7f}' {
            escaped.push(letter);
        } else {
            let mut units = [0_u16; 2];
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}
