//! One name in two spellings: `é` as one character (NFC), and as `e` with an accent behind it (NFD).

use tgp_contract::{Access, Effect, RelativePath, Root};
use tgp_policy::{PolicySettings, Protections};

use crate::support::{call, file, judged, path, rules, written};

const COMPOSED: &str = "caf\u{e9}";
const DECOMPOSED: &str = "cafe\u{301}";

#[test]
fn bug_a_deny_for_one_spelling_of_a_path_did_not_fit_the_other() {
    let spelt = [COMPOSED, DECOMPOSED, "CAF\u{c9}", "CAFE\u{301}", "cafe\u{200b}\u{301}"];
    for pattern in [COMPOSED, DECOMPOSED, "CAF\u{c9}", "CAFE\u{301}"] {
        for (effect, decision) in [("deny", "deny r"), ("ask", "ask r")] {
            for glob in [
                format!("{pattern}/**"),
                format!("**/{pattern}/*"),
                format!("{{{pattern},x}}/**"),
                format!("{pattern}*/a.md"),
            ] {
                let policy = rules(&format!("  - {{id: r, effect: {effect}, where: {{path: \"{glob}\"}}}}"));
                for name in spelt {
                    let write = call("fs_write", Effect::Write, vec![written(&format!("{name}/a.md"))]);
                    assert_eq!(judged(&policy, &write), decision, "{glob:?} {name:?}");
                }
            }
            // The directory goes with what is in it.
            let policy =
                rules(&format!("  - {{id: r, effect: {effect}, where: {{path: \"{pattern}/**\"}}}}"));
            for name in spelt {
                let delete = vec![file(Root::Project, name, Access::Delete)];
                assert_eq!(judged(&policy, &call("fs_delete", Effect::Write, delete)), decision, "{name:?}");
            }
        }
    }
}

#[test]
fn an_allow_is_for_the_spelling_that_it_has() {
    for (pattern, name, decision) in [
        (COMPOSED, COMPOSED, "allow r"),
        (DECOMPOSED, DECOMPOSED, "allow r"),
        (COMPOSED, DECOMPOSED, "ask default/write"),
        (DECOMPOSED, COMPOSED, "ask default/write"),
    ] {
        let policy = rules(&format!("  - {{id: r, effect: allow, where: {{path: \"{pattern}/**\"}}}}"));
        let write = call("fs_write", Effect::Write, vec![written(&format!("{name}/a.md"))]);
        assert_eq!(judged(&policy, &write), decision, "{pattern:?} {name:?}");
    }
}

#[test]
fn bug_a_protected_place_was_open_by_the_other_spelling_of_its_name() {
    let place = |name: &str| (Root::Project, path(&format!("{name}/rules.yaml")));
    for configured in [COMPOSED, DECOMPOSED] {
        let settings =
            PolicySettings { protected_files: vec![place(configured)], ..PolicySettings::default() };
        let table = Protections::new(&settings);
        let of = |path: &RelativePath| table.of(Root::Project, path).map(|found| found.rule);
        for name in [COMPOSED, DECOMPOSED, "CAFE\u{301}"] {
            assert_eq!(of(&place(name).1), Some("builtin/policy"), "{configured:?} {name:?}");
        }
        assert_eq!(of(&path("cafe/rules.yaml")), None);
    }
}
