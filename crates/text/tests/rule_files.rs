//! Which names are those of rule files, which look like one, and which do not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use tgp_text::{RuleFile, RulePurpose, rule_file};

fn found(path: &str) -> Option<RuleFile> {
    rule_file(&path.split('/').collect::<Vec<_>>())
}

#[test]
fn every_accepted_name_is_read() {
    let in_tools =
        [".tgp/policy/a.yaml", ".tgp/policy/a.yml", ".tgp/policy/deep/er/a.yaml", ".tgp/policy/guard.ts"];
    let named = RulePurpose::ALL
        .into_iter()
        .flat_map(|purpose| purpose.paths().iter().map(move |path| (*path, purpose)));
    for (path, purpose) in named.chain(in_tools.map(|path| (path, RulePurpose::Policy))) {
        assert_eq!(found(path), Some(RuleFile { purpose, is_read: true }), "{path}");
    }
}

#[test]
fn a_name_that_is_nearly_right_is_near() {
    use RulePurpose::{Config, Invariants, Personas, Policy};
    let near = [
        // Case, separators and leading dots.
        ("TGP.policy.yaml", Policy),
        ("tgp.policy.YAML", Policy),
        ("tgp-policy.yaml", Policy),
        ("tgp_policy.yml", Policy),
        ("tgppolicy.yaml", Policy),
        (".tgp.policy.yaml", Policy),
        ("tgp.policy.yaml ", Policy),
        ("Tgp.Config.ts", Config),
        // Plural and other words.
        ("tgp.policies.yaml", Policy),
        ("tgp.rules.yaml", Policy),
        ("tgp.configuration.ts", Config),
        ("tgp.yaml", Config),
        // Extensions.
        ("tgp.policy.json", Policy),
        ("tgp.policy.ymal", Policy),
        ("tgp.policy", Policy),
        ("tgp.policy.yaml.txt", Policy),
        ("tgp.policy.ts", Policy),
        ("tgp.config.mjs", Config),
        ("tgp.config.cjs", Config),
        ("tgp.config.jsonc", Config),
        ("tgp.config.yaml", Config),
        // Slips of the keyboard, and letters of other scripts.
        ("tgp.polcy.yaml", Policy),
        ("tpg.policy.yaml", Policy),
        ("tgp.plcy.yaml", Policy),
        ("tgp.conifg.ts", Config),
        ("tgp.policy.yаml", Policy),
        ("tgр.policy.yaml", Policy),
        ("tgp.po\u{301}licy.yaml", Policy),
        ("ｔgp.config.ts", Config),
        // Parts of a set.
        ("tgp.policy.local.yaml", Policy),
        ("tgp.config.prod.ts", Config),
        // Places.
        (".tgp/tgp.policy.yaml", Policy),
        (".tgp/policy.yaml", Policy),
        (".tgp/config.json", Config),
        (".tgp/invariants.yml", Invariants),
        (".tgp/policies/a.yaml", Policy),
        (".tgp/Policy/a.yaml", Policy),
        (".TGP/policy/a.yaml", Policy),
        (".tgp/policy/x.YAML", Policy),
        (".tgp/policy/sub/x.Yml", Policy),
        (".tgp/policy/x.json", Policy),
        (".tgp/policy/x.js", Policy),
        (".tgp/policy/x.yaml.txt", Policy),
        ("tgp.policy.yaml/x", Policy),
        ("invariants.yml", Invariants),
        ("tgp.invariants.yml", Invariants),
        (".sage/tgp.policy.yaml", Policy),
        (".sage/policy.yaml", Policy),
        (".sage/invariant.yml", Invariants),
        (".sage/invarients.yml", Invariants),
        (".sage/invariants.json", Invariants),
        (".sage/Invariants.yml", Invariants),
        (".sage/invariants", Invariants),
        (".sage/invariants/a.yml", Invariants),
        (".SAGE/invariants.yml", Invariants),
        (".sage/personas.yml", Personas),
        (".sage/valve.YML", Personas),
    ];
    for (path, purpose) in near {
        assert_eq!(found(path), Some(RuleFile { purpose, is_read: false }), "{path}");
    }
}

#[test]
fn other_names_are_not_near() {
    let others = [
        "",
        "a",
        "README.md",
        "tsconfig.json",
        "jsconfig.json",
        "package.json",
        "config.ts",
        "app.config.ts",
        "tap.config.js",
        "vite.config.ts",
        "next.config.mjs",
        "policy.yaml",
        "policies.yml",
        "rules.yaml",
        "policy/a.yaml",
        "policy/deny.rego",
        "src/policy.yaml",
        "src/tgp.policy.yml.ts",
        "src/tgp-config.ts",
        "packages/a/tgp-policy.yaml",
        "tgp.png",
        "tgp.lock",
        "tgp.ts",
        "tgp.json",
        "tgp.test.ts",
        "tgp.code-workspace",
        "tgp.policy.md",
        "tgp.config.png",
        "tgp.config.ts.bak",
        "tgp.policy.yaml~",
        "tgp.policy.yaml.orig",
        ".tgp.policy.yaml.swp",
        ".#tgp.policy.yaml",
        "#tgp.config.ts#",
        "tgp.config.d.ts",
        "tgp.config.test.ts",
        "tgp.policy.example.yaml",
        "tgp-config-loader.ts",
        "tgp.confirm.ts",
        "tgp.client.ts",
        "tgp.roles.json",
        "tgp.value.ts",
        "tgp-config",
        "policy",
        "sage/invariants.yml",
        "valve.yml",
        "personas.yml",
        ".tgp",
        ".tgp/tools/a.ts",
        ".tgp/tools/policy.ts",
        ".tgp/tools/tgp.policy.ts",
        ".tgp/lib/config.ts",
        ".tgp/tsconfig.json",
        ".tgp/tgp.d.ts",
        ".tgp/meta.json",
        ".tgp/.gitignore",
        ".tgp/policy",
        ".tgp/policy/README.md",
        ".tgp/policy/guard.test.ts",
        ".tgp/policy/types.d.ts",
        ".tgp/policy/a.yaml~",
        ".tgp/policy/tsconfig.json",
        ".tgp/policy/upstream.json",
        ".tgp/rules/a.yaml",
        ".tgp/config",
        ".sage",
        ".sage/notes.md",
        ".sage/decisions.sage",
        ".sage/tgp.policy.sage",
        ".sage/invariants.sage",
        ".sage/files/src/config.ts.sage",
        ".sage/project.sage",
        ".sage/plans.yml",
        ".sage/invariants.yml.bak",
        "tgp",
        "gtp.txt",
        "tgpp",
        "тгп.policy",
    ];
    for path in others {
        assert_eq!(found(path), None, "{path}");
    }
}

#[test]
fn names_of_any_length_are_looked_at_quickly() {
    assert_eq!(found(&"tgp.policy".repeat(10_000)), None);
    assert_eq!(found(&format!(".tgp/{}", "policy".repeat(10_000))), None);
    assert_eq!(found(&format!("tgp{}", "é.".repeat(10_000))), None);
}
