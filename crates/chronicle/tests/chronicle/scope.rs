//! Where a chronicle may be.

use tgp_chronicle::{ChronicleOptions, FileChronicle, Start};
use tgp_contract::Code;

use crate::support::{Project, assert_code, at, beside, event};

#[test]
fn outside_the_scope_nothing_is_written_or_read() {
    let project = Project::new();
    let outside = [
        "a.sage",
        "lib/a.ts.sage",
        "src/a.ts",
        ".sage/invariants.yml",
        ".sage/deep/a.sage",
        ".sagex/a.sage",
        "srcx/a.sage",
        "docs/src/a.sage",
        "src/.sage",
        "src/.git/a.sage",
        "src/a.sage/.GIT/b.sage",
        ".sage",
        "",
        "src/a.sage.torn-00000000",
        "SRC/a.sage",
    ];
    for path in outside {
        project.write("seen/a.sage", b"");
        let error = assert_code(project.append(path, event(0)), Code::Permission);
        assert!(error.message.contains("src/**/*.sage"), "{error}");
        assert_code(project.events(path), Code::Permission);
        assert_code(project.chronicle.tail_blocking(&at(path), 1), Code::Permission);
        assert_code(project.chronicle.verify(&at(path)), Code::Permission);
    }
    assert_eq!(
        std::fs::read_dir(project.folder.path()).unwrap().count(),
        1,
        "only what this test wrote is there"
    );
    for path in [".sage/a.sage", "src/a.sage", "src/a.ts.sage", "src/x/y/z/ä b.ts.sage"] {
        assert_eq!(project.append(path, event(0)), Ok(true), "{path}");
    }
    let expected = [".sage/a.sage", "src/a.sage", "src/a.ts.sage", "src/x/y/z/ä b.ts.sage"].map(at);
    assert_eq!(project.chronicle.files_blocking().unwrap(), expected);
}

#[test]
fn the_scope_can_be_widened_and_a_wrong_one_is_refused() {
    let project = Project::new();
    let with = |globs: &[&str]| {
        let scope = globs.iter().map(|glob| (*glob).to_owned()).collect();
        FileChronicle::open(&ChronicleOptions { scope, ..beside(project.folder.path()) })
    };
    let wide = with(&["**/*.sage", "crates/*/src/**/*.sage"]).unwrap();
    for path in ["a.sage", "crates/x/src/lib.rs.sage"] {
        assert!(wide.append_blocking(&at(path), event(0)).unwrap().appended.appended);
    }
    assert_eq!(wide.files_blocking().unwrap(), ["a.sage", "crates/x/src/lib.rs.sage"].map(at));
    let narrow = with(&["crates/*/src/**/*.sage"]).unwrap();
    assert_eq!(narrow.files_blocking().unwrap(), [at("crates/x/src/lib.rs.sage")]);
    assert_code(narrow.read(&at("a.sage"), Start::Beginning).map(|_| ()), Code::Permission);
    let nothing = with(&[]).unwrap();
    assert_code(nothing.append_blocking(&at("src/a.sage"), event(0)), Code::Permission);
    for wrong in ["/etc/*.sage", "../*.sage", "src/../../*.sage", "src/[a.sage", "src/{a.sage"] {
        assert_code(with(&[wrong]).map(|_| ()), Code::Config);
    }
    assert_code(with(&["*.sage"; 65]).map(|_| ()), Code::Config);
    assert_code(FileChronicle::open(&beside(&project.disk("none"))).map(|_| ()), Code::NotFound);
}
