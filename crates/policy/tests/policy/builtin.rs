//! What no file can loosen.

use tgp_contract::{Access, ChronicleLayout, Effect, PathProbe, Root};
use tgp_policy::{Policy, PolicySettings, Protections, protected};

use crate::support::{call, file, judged, path, source};

/// Rules that allow everything there is.
const EVERYTHING: &str = "version: 1\nrules:\n  - {id: all, effect: allow, tools: \"*\"}\n  - {id: every-path, effect: allow, where: {path: \"**\"}}\n";

const FULL: &[(&str, Root, &str)] = &[
    ("builtin/git", Root::Project, ".git/config"),
    ("builtin/git", Root::Project, ".git"),
    ("builtin/git", Root::Project, "sub/.git/hooks/pre-commit"),
    ("builtin/git", Root::Tools, ".git/HEAD"),
    ("builtin/git", Root::Project, ".GIT/config"),
    ("builtin/git", Root::Project, ".g\u{200c}it/config"),
    ("builtin/git", Root::Project, "git~1/config"),
    ("builtin/git", Root::Project, "GIT~1/config"),
    ("builtin/git", Root::Project, ".git ./config"),
    ("builtin/git", Root::Project, ".git::$INDEX_ALLOCATION/config"),
    ("builtin/state", Root::Tools, ".state/audit.db"),
    ("builtin/state", Root::Tools, ".STATE"),
    ("builtin/state", Root::Tools, ".\u{17f}tate/audit.db"),
    ("builtin/state", Root::Tools, ".\u{fb06}ate/../.state/x"),
    ("builtin/state", Root::Project, ".tgp/.state/audit.db-wal"),
    ("builtin/state", Root::Project, "nested/.TGP/.state/key"),
    ("builtin/credentials", Root::Project, ".env"),
    ("builtin/credentials", Root::Project, ".env:stream"),
    ("builtin/credentials", Root::Project, "backup:server.key"),
    ("builtin/credentials", Root::Project, "app/.env.production"),
    ("builtin/credentials", Root::Project, ".env.example.local"),
    ("builtin/credentials", Root::Project, ".ENV"),
    ("builtin/credentials", Root::Project, "certs/server.PEM"),
    ("builtin/credentials", Root::Project, "certs/server.\u{212a}ey"),
    ("builtin/credentials", Root::Project, "id_rsa"),
    ("builtin/credentials", Root::Project, "id_ed25519.pub"),
    ("builtin/credentials", Root::Project, ".npmrc"),
    ("builtin/credentials", Root::Project, "home/.netrc"),
    ("builtin/credentials", Root::Project, ".pypirc"),
    ("builtin/credentials", Root::Project, "credentials.json"),
    ("builtin/credentials", Root::Project, ".aws/config"),
    ("builtin/credentials", Root::Project, ".ssh"),
    ("builtin/credentials", Root::Project, "x/.gnupg/ring"),
    ("builtin/credentials", Root::Project, ".docker/config.json"),
    ("builtin/credentials", Root::Project, ".kube/config"),
    ("builtin/credentials", Root::Project, "vault.kdbx"),
    ("builtin/credentials", Root::Tools, "tools/key.p12"),
    ("builtin/credentials", Root::Project, "a.pfx"),
    ("builtin/credentials", Root::Project, ".git-credentials"),
    ("builtin/roots", Root::Host, "home/ann/x"),
    ("builtin/roots", Root::Host, ""),
];

const UNCHANGEABLE: &[(&str, Root, &str)] = &[
    ("builtin/state", Root::Project, ".tgp"),
    ("builtin/state", Root::Project, ".TGP"),
    ("builtin/policy", Root::Tools, "policy/a.yaml"),
    ("builtin/policy", Root::Tools, "Policy"),
    ("builtin/policy", Root::Project, ".tgp/policy/new.yaml"),
    ("builtin/policy", Root::Project, "tgp.policy.yaml"),
    ("builtin/policy", Root::Project, "TGP.Policy.yml"),
    ("builtin/config", Root::Project, "tgp.config.ts"),
    ("builtin/config", Root::Project, "sub/tgp.config.json"),
    ("builtin/config", Root::Project, "tgp.con\u{fb01}g.js"),
    ("builtin/chronicle", Root::Project, "src/a.ts.sage"),
    ("builtin/chronicle", Root::Project, ".sage/invariants.yml"),
    ("builtin/chronicle", Root::Project, "SRC/A.ts.SAGE"),
];

const FREE: &[(Root, &str)] = &[
    (Root::Project, "src/main.rs"),
    (Root::Project, ".gitignore"),
    (Root::Project, ".github/workflows/ci.yml"),
    (Root::Project, "git/config"),
    (Root::Project, ".env.example"),
    (Root::Project, ".env.sample"),
    (Root::Project, "a/.env.template"),
    (Root::Project, "environment"),
    (Root::Project, "keys.rs"),
    (Root::Project, "docs/policy/a.yaml"),
    (Root::Project, "config.json"),
    (Root::Project, "state/.statement"),
    (Root::Tools, "tools/policy/a.ts"),
    (Root::Tools, "tools/.state.ts"),
    (Root::Project, ".docker/Dockerfile"),
];

#[test]
fn no_file_loosens_a_built_in_rule() {
    let policy = Policy::load(&[source("p.yaml", EVERYTHING)], &PolicySettings::default()).unwrap();
    let touched = |root, name: &str, access| {
        let (tool, effect) =
            if access == Access::Read { ("fs_read", Effect::Read) } else { ("fs_write", Effect::Write) };
        // A harmless file beside it changes nothing.
        judged(
            &policy,
            &call(tool, effect, vec![file(Root::Project, "ok", Access::Read), file(root, name, access)]),
        )
    };
    for (rule, root, name) in FULL {
        let protection = protected(*root, &path(name)).unwrap_or_else(|| panic!("{name} is free"));
        assert_eq!((protection.rule, protection.reads), (*rule, true), "{name}");
        for access in [Access::Read, Access::Write, Access::Delete] {
            assert_eq!(touched(*root, name, access), format!("deny {rule}"), "{access:?} {name}");
        }
    }
    for (rule, root, name) in UNCHANGEABLE {
        let protection = protected(*root, &path(name)).unwrap_or_else(|| panic!("{name} is free"));
        assert_eq!((protection.rule, protection.reads), (*rule, false), "{name}");
        for access in [Access::Write, Access::Delete] {
            assert_eq!(touched(*root, name, access), format!("deny {rule}"), "{access:?} {name}");
        }
        assert_eq!(touched(*root, name, Access::Read), "allow all", "{name}");
    }
    for (root, name) in FREE {
        assert_eq!(protected(*root, &path(name)), None, "{name}");
        assert_eq!(touched(*root, name, Access::Write), "allow all", "{name}");
    }
}

#[test]
fn the_settings_of_an_installation_count() {
    let settings = PolicySettings {
        tool_roots: vec![(Root::Project, path("agent/Tools")), (Root::Host, path("shared/agent"))],
        allowed_host_directories: vec![path("shared"), path("data/out")],
        read_only_host_directories: vec![path("data"), path("shared/raw")],
        protected_files: vec![(Root::Project, path("rules/Mine.yaml"))],
        ..PolicySettings::default()
    };
    let table = Protections::new(&settings);
    let of = |root, name: &str| table.of(root, &path(name)).map(|protection| protection.rule);
    for (root, name, expected) in [
        (Root::Project, "agent/tools/.state/x", Some("builtin/state")),
        (Root::Project, "agent/tools/policy/x", Some("builtin/policy")),
        (Root::Project, "agent/tools/tools/x", None),
        (Root::Project, "agent/toolsy/.state/x", None),
        (Root::Project, "agent/toolsy", None),
        (Root::Project, "agent/tools", Some("builtin/state")),
        (Root::Project, "agent", None),
        (Root::Project, "", None),
        (Root::Host, "shared/x", None),
        (Root::Host, "shared/agent/.state/x", Some("builtin/state")),
        (Root::Host, "shared/.env", Some("builtin/credentials")),
        (Root::Host, "shared-evil/x", Some("builtin/roots")),
        (Root::Host, "Shared/x", Some("builtin/roots")),
        (Root::Host, "shared/raw/x", Some("builtin/roots")),
        (Root::Host, "data/x", Some("builtin/roots")),
        (Root::Host, "data/out/x", None),
        (Root::Host, "data/.env", Some("builtin/credentials")),
        (Root::Project, "rules/mine.yaml", Some("builtin/policy")),
        (Root::Project, "rules/other.yaml", None),
        (Root::Tools, "rules/mine.yaml", None),
    ] {
        assert_eq!(of(root, name), expected, "{root:?} {name}");
    }
}

#[test]
fn the_strictest_protection_speaks_whatever_the_order_of_files() {
    let policy = Policy::load(&[], &PolicySettings::default()).unwrap();
    let mut targets = vec![
        file(Root::Project, "tgp.config.ts", Access::Write),
        file(Root::Project, ".git/x", Access::Read),
    ];
    assert_eq!(judged(&policy, &call("x", Effect::Write, targets.clone())), "deny builtin/git");
    targets.reverse();
    assert_eq!(judged(&policy, &call("x", Effect::Write, targets)), "deny builtin/git");
}

#[test]
fn a_file_that_is_only_named_as_a_chronicle_is_told_by_its_content() {
    let probe = || Some(PathProbe::new(|_, file| file.as_str().contains("old")));
    let of = |layout, probe, name: &str| {
        let table = Protections::new(&PolicySettings { layout, probe, ..PolicySettings::default() });
        table.of(Root::Project, &path(name)).map(|protection| protection.rule)
    };
    let chronicle = Some("builtin/chronicle");
    for (name, in_tree, beside) in [
        ("src/old.ts.sage", chronicle, chronicle),
        ("src/curve.sage", None, chronicle),
        ("src/curve.SAGE", None, chronicle),
        ("src/a.sage/b.ts", None, chronicle),
        ("src/old.txt", None, None),
        (".sage/files/src/curve.sage", chronicle, chronicle),
        (".Sage/Files/x", chronicle, chronicle),
        (".\u{17f}age/files/x", chronicle, chronicle),
        (".sage", chronicle, chronicle),
        ("sub/.sage/valve.yml", chronicle, chronicle),
        ("src/server.key.sage/../../.env", Some("builtin/credentials"), Some("builtin/credentials")),
    ] {
        assert_eq!(of(ChronicleLayout::Tree, probe(), name), in_tree, "{name}");
        assert_eq!(of(ChronicleLayout::Beside, probe(), name), beside, "{name}");
    }
    // Where the content cannot be read, the name decides.
    assert_eq!(of(ChronicleLayout::Tree, None, "src/curve.sage"), chronicle);
}

/// An event is the one thing that is added to a chronicle, and to nothing else that is protected.
#[test]
fn only_chronicles_are_appended_to() {
    let appends =
        |name: &str| protected(Root::Project, &path(name)).is_none_or(|found| !found.forbids(Access::Append));
    for name in ["src/a.ts.sage", ".sage/project.sage"] {
        assert!(appends(name), "{name}");
    }
    for name in
        [".git/a.sage", ".tgp/.state/a.sage", ".ssh/a.sage", "tgp.config.ts", "tgp.policy.yaml", ".env"]
    {
        assert!(!appends(name), "{name}");
    }
}
