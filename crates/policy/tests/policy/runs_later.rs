//! Files that run later: which they are, what of a manifest counts, and which rule lifts the default.

use tgp_contract::{Access, Effect, Root};
use tgp_policy::{RuleEffect, SessionHistory, always_runs_later, may_run_later, runs_later};

use crate::support::{call, file, path, rules, written};

#[test]
fn hooks_pipelines_task_lists_and_instructions_run_later() {
    for name in [
        ".github/workflows/ci.yml",
        ".github/CODEOWNERS",
        "sub/.github/x",
        ".gitlab-ci.yml",
        ".husky/pre-commit",
        ".githooks/pre-push",
        ".vscode/tasks.json",
        ".cargo/config.toml",
        ".CARGO/config",
        "Makefile",
        "GNUmakefile",
        "deep/er/makefile",
        "MakeFile. ",
        "justfile",
        ".gitattributes",
        ".gitmodules",
        "AGENTS.md",
        "agents.md",
        "CLAUDE.md",
        ".claude/settings.json",
        ".mcp.json",
        ".pre-commit-config.yaml",
        "build.rs",
        "setup.py",
        "x.code-workspace",
        "bare.git/HEAD",
        "lint-staged.config.mjs",
        "Make\u{200b}file",
    ] {
        assert!(always_runs_later(&path(name)), "{name}");
    }
    for name in [
        "src/main.rs",
        "makefile.md",
        "github/x",
        "tests/conftest.py",
        "README.md",
        "HEAD.txt",
        "docs/agents.md.txt",
    ] {
        assert!(!may_run_later(&path(name)), "{name}");
    }
    for name in ["package.json", "web/package.json", "Cargo.toml", "pyproject.toml", "composer.json"] {
        assert!(may_run_later(&path(name)) && !always_runs_later(&path(name)), "{name}");
    }
}

#[test]
fn of_a_manifest_only_what_is_executed_counts() {
    let counts = |name: &str, before: &str, after: &str| {
        let content = |text: &'static str| (text != "-").then_some(text.as_bytes());
        let (before, after) = (before.to_owned().leak(), after.to_owned().leak());
        runs_later(&path(name), content(before), content(after))
    };
    for (name, before, after, expected) in [
        ("package.json", "-", r#"{"name":"a","dependencies":{"x":"1"}}"#, false),
        ("package.json", r#"{"version":"1"}"#, r#"{"version":"2"}"#, false),
        ("package.json", r#"{"scripts":{"a":"x"}}"#, r#"{"name":"n", "scripts": {"a": "x"}}"#, false),
        ("package.json", "-", r#"{"scripts":{"postinstall":"x"}}"#, true),
        ("package.json", r#"{"scripts":{"a":"x"}}"#, "-", true),
        ("package.json", r#"{}"#, r#"{"\u0073cripts":{"postinstall":"x"}}"#, true),
        ("package.json", r#"{}"#, r#"{"scripts":{},"scripts":{"postinstall":"x"}}"#, true),
        ("package.json", r#"{}"#, r#"{"bin":"./x.js"}"#, true),
        ("package.json", r#"{}"#, r#"{"lint-staged":{"*":"x"}}"#, true),
        ("package.json", r#"{}"#, "\u{feff}{\"name\":\"a\"}", true),
        ("package.json", r#"{}"#, "not json", true),
        ("package.json", "not json", r#"{}"#, true),
        ("package.json", r#"[]"#, r#"{}"#, true),
        ("Cargo.toml", "[package]\nname = 'a'\n", "[package]\nname = 'a'\n[dependencies]\nx = '1'\n", false),
        ("Cargo.toml", "[package]\nname = 'a'\n", "[package]\nname = 'a'\nbuild = 'src/evil.rs'\n", true),
        ("Cargo.toml", "[package]\n", "[package\n", true),
        ("pyproject.toml", "[project]\n", "[project]\nversion = '2'\n", false),
        (
            "pyproject.toml",
            "[project]\n",
            "[build-system]\nbuild-backend = 'evil'\nbackend-path = ['.']\n",
            true,
        ),
        ("Makefile", "a:", "a:", true),
        ("src/a.ts", "1", "2", false),
    ] {
        assert_eq!(counts(name, before, after), expected, "{name}: {before} -> {after}");
    }
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(2 << 20));
    assert!(runs_later(&path("package.json"), Some(b"{}"), Some(large.as_bytes())), "it is not looked into");
}

#[test]
fn only_a_rule_that_names_the_file_lifts_it() {
    for (rule, name, lifted) in [
        ("where: {path: \"Makefile\"}", "Makefile", true),
        ("where: {path: \"**/Makefile\"}", "sub/Makefile", true),
        ("where: {path: \".github/**\"}", ".github/workflows/ci.yml", true),
        ("where: {path: \".github/workflows/*.yml\"}", ".github/workflows/ci.yml", true),
        ("tools: [\"fs_*\"], where: {path: \"package.json\"}", "package.json", true),
        ("tools: fs_write, where: {path: [\"docs/**\", \"AGENTS.md\"]}", "AGENTS.md", true),
        // The author of these did not think of it.
        ("tools: \"*\"", "Makefile", false),
        ("tools: fs_write", "Makefile", false),
        ("where: {path: \"**\"}", "Makefile", false),
        ("where: {path: \"*\"}", "Makefile", false),
        ("where: {path: \"Make*\"}", "Makefile", false),
        ("where: {path: \"{Makefile,x}\"}", "Makefile", false),
        ("where: {path: \"[M]akefile\"}", "Makefile", false),
        ("where: {path: \"sub/**\"}", "sub/Makefile", false),
        ("where: {path: \"**/*.json\"}", "package.json", false),
        ("where: {path: \".g*/**\"}", ".github/x", false),
        ("where: {path: \"**/Makefile\"}", ".github/Makefile", false),
        ("where: {path: [\"**\", \"AGENTS.md\"]}", "Makefile", false),
        // Another file, another tool, another access.
        ("where: {path: \"Makefile\"}", "justfile", false),
        ("where: {path: \"makefile\"}", "Makefile", false),
        ("tools: fs_read, where: {path: \"Makefile\"}", "Makefile", false),
        ("where: {path: {glob: \"Makefile\", access: delete}}", "Makefile", false),
        ("where: {path: {glob: \"Makefile\", root: tools}}", "Makefile", false),
    ] {
        let policy = rules(&format!("  - {{id: r, effect: allow, {rule}}}"));
        let asked = call("fs_write", Effect::Write, vec![written(name)]);
        let decision = policy.judge_runs_later(&asked.as_question());
        let expected =
            if lifted { (RuleEffect::Allow, "r") } else { (RuleEffect::Ask, "default/runs-later") };
        assert_eq!((decision.effect, decision.rule.as_str()), expected, "{rule} for {name}");
    }
    // One file that is named does not lift it for the other.
    let policy = rules("  - {id: r, effect: allow, where: {path: \"Makefile\"}}");
    let both = call("fs_write", Effect::Write, vec![written("Makefile"), written("justfile")]);
    assert_eq!(policy.judge_runs_later(&both.as_question()).effect, RuleEffect::Ask);
    // A rule that asks or denies lifts nothing.
    let policy = rules("  - {id: r, effect: ask, where: {path: \"Makefile\"}}");
    let one = call("fs_write", Effect::Write, vec![written("Makefile")]);
    assert_eq!(policy.judge_runs_later(&one.as_question()).rule, "default/runs-later");
}

/// What a manager of packages installs from runs later by the call, and not by a name that a table lists: the rule that the
/// message advises did not lift the question.
#[test]
fn bug_a_rule_could_not_name_a_manifest_that_no_table_lists() {
    for (rule, name, lifted) in [
        ("where: {path: \"**/requirements.txt\"}", "requirements.txt", true),
        ("where: {path: \"**/requirements.txt\"}", "api/requirements.txt", true),
        ("where: {path: \"api/requirements-dev.txt\"}", "api/requirements-dev.txt", true),
        ("where: {path: \"**/Cargo.toml\"}", "Cargo.toml", true),
        ("where: {path: \"**/pyproject.toml\"}", "api/pyproject.toml", true),
        ("where: {path: \"**\"}", "requirements.txt", false),
        ("where: {path: \"**/*.txt\"}", "requirements.txt", false),
        ("where: {path: \"api/**\"}", "api/requirements.txt", false),
        ("where: {path: \"**/Cargo.toml\"}", "requirements.txt", false),
    ] {
        let policy = rules(&format!("  - {{id: r, effect: allow, tools: [package_install], {rule}}}"));
        let asked = call("package_install", Effect::Execute, vec![written(name)]);
        let decision = policy.judge_runs_later(&asked.as_question());
        let expected = if lifted { RuleEffect::Allow } else { RuleEffect::Ask };
        assert_eq!(decision.effect, expected, "{rule} for {name}");
    }
    // A file that runs later by nothing but a call is no such file when a tool writes it.
    assert!(!may_run_later(&path("requirements.txt")));
}

#[test]
fn an_explanation_names_the_default() {
    let policy = rules("  - {id: all, effect: allow, tools: \"*\"}");
    let explain = |name: &str, access| {
        let asked = call("fs_write", Effect::Write, vec![file(Root::Project, name, access)]);
        policy.explain(&asked.as_question(), &SessionHistory::new(&policy))
    };
    let explanation = explain("Makefile", Access::Write);
    assert_eq!(explanation.decision.rule, "default/runs-later");
    assert_eq!(explanation.decision.effect, RuleEffect::Ask);
    assert_eq!(explain("Makefile", Access::Read).decision.rule, "all");
    let manifest = explain("package.json", Access::Write);
    assert_eq!(manifest.decision.rule, "all");
    let said = manifest.rules.iter().find(|report| report.rule == "default/runs-later").unwrap();
    assert!(said.why.contains("says what is executed"), "{said:?}");
}

/// The table of the manual is the list of the code.
#[test]
fn the_manual_lists_what_runs_later() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("\n## Files that run later\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert_eq!(rows.len(), 8, "{rows:?}");
    for row in rows.iter().take(7) {
        let names = row.split('`').skip(1).step_by(2).filter(|name| *name != ".envrc");
        for name in names {
            let example = name.replace('*', "x") + if name.ends_with('/') { "x" } else { "" };
            assert!(always_runs_later(&path(&example)), "{name}");
        }
    }
}
