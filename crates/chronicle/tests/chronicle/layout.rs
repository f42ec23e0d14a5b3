//! Where the files of chronicles are, and what no file can change about that.

use tgp_chronicle::{ChronicleOptions, FileChronicle, is_chronicle_file};
use tgp_contract::{ChronicleLayout, Code, RelativePath, chronicle_of, chronicled, is_chronicle_content};

use crate::support::{Project, assert_code, at, event, number};

/// A project with its chronicles in the tree.
pub fn tree(scope: &[&str]) -> Project {
    let mut project = Project::new();
    let mut options = ChronicleOptions::new(project.folder.path());
    if !scope.is_empty() {
        options.scope = scope.iter().map(|glob| (*glob).to_owned()).collect();
    }
    project.chronicle = FileChronicle::open(&options).unwrap();
    project
}

#[test]
fn a_chronicle_keeps_its_name_and_has_its_file_in_the_tree() {
    let project = tree(&[]);
    assert!(project.append("src/deep/a.ts.sage", event(1)).unwrap());
    assert!(project.append(".sage/project.sage", event(2)).unwrap());
    assert!(project.disk(".sage/files/src/deep/a.ts.sage").is_file());
    assert!(project.disk(".sage/project.sage").is_file());
    assert!(!project.disk("src").exists(), "nothing is made beside the sources");
    let names = project.chronicle.files_blocking().unwrap();
    assert_eq!(names, [at(".sage/project.sage"), at("src/deep/a.ts.sage")]);
    let report = project.chronicle.verify(&at("src/deep/a.ts.sage")).unwrap();
    assert_eq!(
        (report.file.as_str(), report.stored.as_str()),
        ("src/deep/a.ts.sage", ".sage/files/src/deep/a.ts.sage")
    );
    let file = project.chronicle.file_of(&at("src/deep/a.ts.sage")).unwrap();
    assert_eq!(file, report.stored);
}

#[test]
fn every_name_has_a_file_of_its_own_in_the_tree() {
    let names = [
        "a.sage",
        "src/a.sage",
        "src/a.sage.sage",
        "src/a.ts.sage",
        "src/a.ts.sage/b.ts.sage",
        "src/a.ts.sage.d/b.ts.sage",
        "src/a.ts.sage.d.d/b.ts.sage",
        "src/a.ts.d/b.ts.sage",
        "src/a.ts.SAGE/b.ts.sage",
        "files/a.ts.sage",
        "x/.sage/a.ts.sage",
        "x/.sage.d/a.ts.sage",
        "ü/ſ.sage",
        ".sage/project.sage",
    ];
    let mut files = Vec::new();
    for name in names {
        let file = ChronicleLayout::Tree.file_of(&at(name)).unwrap();
        assert!(file.as_str().starts_with(".sage/"), "{name} -> {file}");
        assert_eq!(ChronicleLayout::Tree.name_of(&file), Some(at(name)), "{name} -> {file}");
        files.push(file);
    }
    for (index, file) in files.iter().enumerate() {
        let others = files.iter().enumerate().filter(|(other, _)| *other != index);
        for (_, other) in others {
            assert!(!file.is_inside(other), "{file} needs {other} to be a directory");
        }
    }
    // A file in the tree whose name fits no chronicle has no owner.
    for file in
        [".sage/files/a.ts", ".sage/files/a.ts.sage/b.sage", ".sage/files/.sage/x.sage", ".sage/files"]
    {
        assert_eq!(ChronicleLayout::Tree.name_of(&at(file)), None, "{file}");
    }
    assert_eq!(ChronicleLayout::Tree.name_of(&at("src/a.ts.sage")), None, "a source of SageMath");
    assert_eq!(ChronicleLayout::Beside.name_of(&at(".sage/files/src/a.ts.sage")), None);
}

#[test]
fn a_directory_named_as_a_chronicle_does_not_stand_in_its_way() {
    let project = tree(&[]);
    assert!(project.append("src/a.ts.sage/b.ts.sage", event(1)).unwrap());
    assert!(project.append("src/a.ts.sage", event(2)).unwrap());
    let numbers = |name: &str| project.events(name).unwrap().iter().map(number).collect::<Vec<_>>();
    assert_eq!((numbers("src/a.ts.sage"), numbers("src/a.ts.sage/b.ts.sage")), (vec![2], vec![1]));
    assert_eq!(project.chronicle.files_blocking().unwrap().len(), 2);
}

#[test]
fn the_tree_itself_is_no_name_whatever_the_scope() {
    let project = tree(&["**/*.sage", "*.sage"]);
    for name in [
        ".sage/files/src/a.ts.sage",
        ".SAGE/files/a.sage",
        ".sage/FILES/a.sage",
        ".sage/files.sage/../files/a.sage",
    ] {
        assert_code(project.append(name, event(1)), Code::Permission);
        assert_code(project.events(name), Code::Permission);
    }
    assert!(!project.disk(".sage").exists());
    let beside = Project::new();
    let options = ChronicleOptions {
        scope: vec!["**/*.sage".to_owned()],
        ..crate::support::beside(beside.folder.path())
    };
    let chronicle = FileChronicle::open(&options).unwrap();
    assert_code(chronicle.append_blocking(&at(".sage/files/a.sage"), event(1)), Code::Permission);
}

#[test]
fn a_link_in_place_of_the_tree_is_not_followed() {
    for link in [".sage", ".sage/files", ".sage/files/src"] {
        let project = tree(&[]);
        let elsewhere = tempfile::tempdir().unwrap();
        project.write("elsewhere/.keep", "");
        std::fs::create_dir_all(project.disk(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), project.disk(link)).unwrap();
        assert_code(project.append("src/a.ts.sage", event(1)), Code::Security);
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{link}");
        assert!(project.chronicle.files_blocking().unwrap().is_empty());
    }
}

#[test]
fn a_name_that_is_too_long_for_a_file_is_out_of_scope() {
    let project = tree(&[]);
    let long = format!("src/{}.sage/a.ts.sage", "x".repeat(250));
    assert_code(project.append(&long, event(1)), Code::Permission);
    // 4096 bytes are a path; the tree makes it longer.
    let deep = format!("src/{}a.ts.sage", "d/".repeat(2039));
    assert!(deep.len() <= 4096);
    assert_code(project.append(&deep, event(1)), Code::Permission);
    assert!(chronicle_of(&at(&format!("src/{}", "x".repeat(251)))).is_err());
}

#[test]
fn what_is_beside_the_sources_is_not_read_in_the_tree() {
    let project = tree(&[]);
    project.write("src/a.ts.sage", Project::lines(2).concat());
    assert!(project.events("src/a.ts.sage").unwrap().is_empty());
    assert!(project.chronicle.files_blocking().unwrap().is_empty());
    assert_eq!(project.chronicle.unmigrated().unwrap(), [at("src/a.ts.sage")]);
    assert_eq!(project.chronicle.unmigrated_file_of(&at("src/a.ts.sage")), Some(at("src/a.ts.sage")));
    let before = project.bytes("src/a.ts.sage");
    assert!(project.append("src/a.ts.sage", event(1)).unwrap(), "its events are not known");
    assert_eq!(project.bytes("src/a.ts.sage"), before);
}

#[test]
fn a_file_is_a_chronicle_by_its_first_line_alone() {
    let project = Project::new();
    let lines = Project::lines(2);
    let is = |content: &[u8]| {
        project.write("src/a.sage", content);
        let found = is_chronicle_file(project.folder.path(), &at("src/a.sage"));
        assert_eq!(found, is_chronicle_content(content));
        found
    };
    assert!(is(&lines.concat()));
    assert!(is(&lines[0]));
    assert!(is(lines[0].strip_suffix(b"\n").unwrap()), "the end of the line was lost");
    assert!(is(&[lines[0].as_slice(), b"print(factor(2^64+1))\n"].concat()));
    assert!(!is(b""));
    assert!(!is(b"R.<x> = QQ[]\n"));
    assert!(!is(b"{\"a\": 1}\n"));
    assert!(!is(&[b"\n".as_slice(), &lines[0]].concat()));
    assert!(!is(&[b"\xef\xbb\xbf".as_slice(), &lines[0]].concat()));
    assert!(!is(&lines[0][1..]));
    let forged = String::from_utf8(lines[0].clone()).unwrap().replace("tester", "Tester");
    assert!(!is(forged.as_bytes()), "an id that is not the event's own");
    // A second name does not hide it, a link and a directory are none.
    project.write("src/a.sage", &lines[0]);
    std::fs::hard_link(project.disk("src/a.sage"), project.disk("src/b.sage")).unwrap();
    std::os::unix::fs::symlink("a.sage", project.disk("src/c.sage")).unwrap();
    std::fs::create_dir(project.disk("src/d.sage")).unwrap();
    let found = ["a", "b", "c", "d", "e"]
        .map(|name| is_chronicle_file(project.folder.path(), &at(&format!("src/{name}.sage"))));
    assert_eq!(found, [true, true, false, false, false]);
}

#[test]
fn the_file_that_a_chronicle_is_about_follows_from_its_name_and_from_its_file() {
    let about = |path: &str| chronicled(&at(path)).map(|file: RelativePath| file.to_string());
    for path in ["src/key.pem.sage", ".sage/files/src/key.pem.sage", ".SAGE/Files/src/key.pem.SAGE"] {
        assert_eq!(about(path).as_deref(), Some("src/key.pem"), "{path}");
    }
    assert_eq!(about(".sage/files/a.sage.d/key.pem.sage").as_deref(), Some("a.sage/key.pem"));
    for path in
        [".sage/project.sage", ".sage/files/.sage/project.sage", "src/a.ts", ".sage", "src/.sage/x.sage"]
    {
        assert_eq!(about(path), None, "{path}");
    }
}

#[test]
fn what_the_kernel_reserves_depends_on_the_layout() {
    let reserved = |layout: ChronicleLayout, path: &str| layout.reserves(&at(path));
    for path in [".sage/x", ".SAGE/x", ".sage/files/src/a.ts.sage", "sub/.sage/invariants.yml"] {
        assert!(reserved(ChronicleLayout::Tree, path) && reserved(ChronicleLayout::Beside, path), "{path}");
    }
    for path in ["src/a.ts.sage", "src/a.SAGE", "src/a.sage/x", "src/a.ts.sage.torn-0123abcd"] {
        assert!(!reserved(ChronicleLayout::Tree, path) && reserved(ChronicleLayout::Beside, path), "{path}");
    }
    for path in ["src/a.ts", "sage", "src/sage.ts", "x.sage.bak"] {
        assert!(!reserved(ChronicleLayout::Tree, path) && !reserved(ChronicleLayout::Beside, path), "{path}");
    }
}
