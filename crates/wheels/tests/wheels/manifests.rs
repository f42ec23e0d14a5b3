//! `requirements.txt` and `pyproject.toml`: what they list, what is refused, and that an edit keeps the rest.

use proptest::prelude::*;
use tgp_wheels::{DependencyList, Name, PyProject, Requirement, RequirementsFile};

fn requirement(text: &str) -> Requirement {
    Requirement::parse(text).unwrap()
}

fn texts<'a>(requirements: impl IntoIterator<Item = &'a Requirement>) -> Vec<String> {
    requirements.into_iter().map(ToString::to_string).collect()
}

#[test]
fn a_list_is_read_with_comments_and_continued_lines() {
    let text = "# comment \\\nsix>=1 # why\n\n  attrs \\\n  >=20 ; \\\n  os_name == 'nt'\r\n-r requirements-base.txt\nidna";
    let file = RequirementsFile::parse(text).unwrap();
    assert_eq!(texts(file.requirements()), ["six>=1", "attrs>=20 ; os_name == \"nt\"", "idna"]);
    assert_eq!(file.includes(), ["requirements-base.txt"]);
    assert_eq!(file.text(), text);
}

#[test]
fn bug_options_paths_and_addresses_are_refused_with_their_line() {
    for bad in [
        "-r ../x.txt",
        "-r /etc/passwd",
        "-r sub/x.txt",
        "-r https://example.org/x.txt",
        "-r .hidden.txt",
        "-r x",
        "-c x.txt",
        "--constraint x.txt",
        "-e .",
        "--editable .",
        "--index-url https://example.org",
        "-i https://example.org",
        "--extra-index-url=https://example.org",
        "--find-links .",
        "-f .",
        "--no-binary :all:",
        "--pre",
        "--trusted-host x",
        ".",
        "./x",
        "x.whl",
        "https://example.org/x.whl",
        "git+https://example.org/x",
        "x @ https://example.org/x.whl",
        "six --hash=sha256:0000",
        "six --config-settings x=y",
        "six --global-option=x",
        "${HOME}",
    ] {
        let error = RequirementsFile::parse(&format!("six\n{bad}\n")).unwrap_err().to_string();
        assert!(error.starts_with("line 2: "), "{bad}: {error}");
    }
    // An option that begins on a continued line is found too.
    assert!(RequirementsFile::parse("six \\\n--index-url=x").is_err());
    assert!(RequirementsFile::parse("-\\\nr ../x.txt").is_err());
    for letter in ['\u{0}', '\u{b}', '\u{c}', '\u{1b}', '\u{85}', '\u{2028}', '\u{feff}'] {
        assert!(RequirementsFile::parse(&format!("six{letter}attrs")).is_err(), "{letter:?}");
    }
    assert!(RequirementsFile::parse(&"six\n".repeat(30_000)).is_err());
    assert!(RequirementsFile::parse(&" ".repeat(2 << 20)).is_err());
}

#[test]
fn an_edit_of_a_list_keeps_every_other_line() {
    let mut file = RequirementsFile::parse("# head\nSix>=1  # why\nattrs \\\n  >=20\nidna").unwrap();
    file.set(&requirement("six>=1.17")).unwrap();
    assert_eq!(file.text(), "# head\nsix>=1.17  # why\nattrs \\\n  >=20\nidna");
    file.set(&requirement("attrs>=25")).unwrap();
    file.set(&requirement("click[x]")).unwrap();
    assert_eq!(file.text(), "# head\nsix>=1.17  # why\nattrs>=25\nidna\nclick[x]\n");
    assert!(file.lists(&Name::new("Click").unwrap()) && !file.lists(&Name::new("flask").unwrap()));
    let mut windows = RequirementsFile::parse("six\r\n").unwrap();
    windows.set(&requirement("idna")).unwrap();
    assert_eq!(windows.text(), "six\r\nidna\r\n");
    let mut twice = RequirementsFile::parse("six ; os_name == 'nt'\nsix>=1").unwrap();
    assert!(twice.set(&requirement("six")).unwrap_err().to_string().contains("more than once"));
    let mut empty = RequirementsFile::parse("").unwrap();
    empty.set(&requirement("six")).unwrap();
    assert_eq!(empty.text(), "six\n");
}

const MANIFEST: &str = r#"# head
[project]
name = "My_Shop"
requires-python = ">=3.9"
dependencies = [
    "six>=1",  # why
    "my-shop[web]; python_version > '3'",
]

[project.optional-dependencies]
web = ["flask", "my.shop[async]"]
async = ["anyio; os_name == 'posix'"]

[dependency-groups]
dev = ["pytest", {include-group = "lint"}]
Lint = ["ruff"]
"#;

#[test]
fn extras_of_the_project_itself_and_groups_are_resolved() {
    let manifest = PyProject::parse(MANIFEST).unwrap();
    assert_eq!(manifest.name().unwrap().as_str(), "my-shop");
    assert_eq!(manifest.requires_python().unwrap().to_string(), ">=3.9");
    assert_eq!(
        texts(&manifest.dependencies().unwrap()),
        [
            "six>=1",
            "flask ; python_version > \"3\"",
            "anyio ; ( python_version > \"3\" ) and ( os_name == \"posix\" )"
        ]
    );
    assert_eq!(texts(&manifest.group("DEV").unwrap().unwrap()), ["pytest", "ruff"]);
    assert!(manifest.group("test").unwrap().is_none());
    assert_eq!(
        texts(&manifest.extra(&Name::new("async").unwrap()).unwrap()),
        ["anyio ; os_name == \"posix\""]
    );
    assert!(manifest.extra(&Name::new("other").unwrap()).is_err());
}

#[test]
fn an_edit_of_a_manifest_keeps_its_format_and_its_comments() {
    let mut manifest = PyProject::parse(MANIFEST).unwrap();
    manifest.set(DependencyList::Project, &requirement("six>=1.17")).unwrap();
    manifest.set(DependencyList::Project, &requirement("idna>=3")).unwrap();
    manifest.set(DependencyList::Group("dev"), &requirement("mypy")).unwrap();
    let expected = MANIFEST
        .replace("\"six>=1\",  # why", "\"six>=1.17\",  # why")
        .replace("> '3'\",\n]", "> '3'\",\n    \"idna>=3\",\n]")
        .replace("\"lint\"}]", "\"lint\"}, \"mypy\"]");
    assert_eq!(manifest.text(), expected);

    let mut manifest =
        PyProject::parse("[project]\nname = \"x\"\ndependencies = [\n  \"a\",\n  \"b\" # last\n]\n").unwrap();
    manifest.set(DependencyList::Project, &requirement("c")).unwrap();
    let text = manifest.text();
    assert_eq!(texts(&PyProject::parse(&text).unwrap().dependencies().unwrap()), ["a", "b", "c"]);
    assert!(text.contains("\"b\" # last") || text.contains("\"b\", # last"), "{text}");

    let mut small = PyProject::parse("[project]\nname = \"x\"\n").unwrap();
    small.set(DependencyList::Project, &requirement("c>=1")).unwrap();
    small.set(DependencyList::Group("dev"), &requirement("pytest")).unwrap();
    let expected =
        "[project]\nname = \"x\"\ndependencies = [\"c>=1\"]\n\n[dependency-groups]\ndev = [\"pytest\"]\n";
    assert_eq!(small.text(), expected);
    let marked = "[project]\nname = \"x\"\ndependencies = [\"c; os_name == 'nt'\", \"c>1\"]\n";
    let mut twice = PyProject::parse(marked).unwrap();
    assert!(twice.set(DependencyList::Project, &requirement("c")).is_err());
}

#[test]
fn bug_dependencies_that_lead_elsewhere_are_refused() {
    let listed = |entry: &str| format!("[project]\nname = \"x\"\ndependencies = [{entry}]\n");
    for bad in
        ["\"a @ https://example.org/a.whl\"", "\"-r x\"", "\"../a\"", "\"a\\n-r x\"", "1", "[\"a\"]", "{}"]
    {
        let manifest = PyProject::parse(&listed(bad)).unwrap();
        assert!(manifest.dependencies().is_err(), "{bad}");
    }
    for bad in [
        "[project]\nname = \"x y\"",
        "[project]\nname = 1",
        "[project]\nrequires-python = \"three\"",
        "project = 1",
        "[project]\ndynamic = [\"dependencies\"]",
        "[tool.poetry.dependencies]\nsix = \"1\"",
        "[tool.poetry.group.dev.dependencies]\nsix = \"1\"",
        "[tool.uv.sources]\nsix = { path = \"../six\" }",
        "[tool.uv.workspace]\nmembers = [\"a\"]",
        "[project",
    ] {
        assert!(PyProject::parse(bad).is_err(), "{bad}");
    }
    assert!(PyProject::parse(&"#".repeat(2 << 20)).is_err());
}

#[test]
fn bug_extras_and_groups_that_take_in_each_other_end() {
    let around = "[project]\nname = \"x\"\ndependencies = [\"x[a]\"]\n[project.optional-dependencies]\na = [\"x[b]\"]\nb = [\"x[a]\"]\n\
                  [dependency-groups]\ndev = [{include-group = \"dev\"}]\n";
    let manifest = PyProject::parse(around).unwrap();
    assert!(manifest.dependencies().is_err() && manifest.group("dev").is_err());
    // Ten lists, each of which takes in the next one ten times.
    let mut text =
        "[project]\nname = \"x\"\ndependencies = [\"x[e0]\"]\n[project.optional-dependencies]\n".to_owned();
    for at in 0..10 {
        text.push_str(&format!("e{at} = [{}]\n", vec![format!("\"x[e{}]\"", at + 1); 10].join(", ")));
    }
    text.push_str("e10 = [\"six\"]\n[dependency-groups]\n");
    for at in 0..10 {
        let entry = format!("{{include-group = \"g{}\"}}", at + 1);
        text.push_str(&format!("g{at} = [{}]\n", vec![entry; 10].join(", ")));
    }
    text.push_str("g10 = []\n");
    let manifest = PyProject::parse(&text).unwrap();
    assert!(manifest.dependencies().is_err() && manifest.group("g0").is_err());
}

#[test]
fn bug_a_requirement_behind_a_comment_with_a_backslash_was_part_of_the_comment() {
    for text in ["six\nsix-two #c\\", "six-two #c\\\n", "#c\\", "zope #c\\\n\nattrs\n"] {
        let mut file = RequirementsFile::parse(text).unwrap();
        let before: Vec<_> =
            ["six-two", "attrs"].iter().filter(|name| file.lists(&Name::new(name).unwrap())).collect();
        file.set(&requirement("zope>=1")).unwrap();
        assert!(file.lists(&Name::new("zope").unwrap()), "{text:?} became {:?}", file.text());
        assert!(
            before.iter().all(|name| file.lists(&Name::new(name).unwrap())),
            "{text:?} became {:?}",
            file.text()
        );
    }
}

proptest! {
    #[test]
    fn lists_are_read_without_a_panic_and_kept(text in "(six|attrs>=1|#c|-r a.txt|\\\\|\n|\r\n| |;|'|-e){0,20}") {
        if let Ok(mut file) = RequirementsFile::parse(&text) {
            prop_assert_eq!(file.text(), text);
            if file.set(&requirement("zope>=1")).is_ok() {
                prop_assert!(file.lists(&Name::new("zope").unwrap()));
            }
        }
    }

    #[test]
    fn manifests_are_read_without_a_panic(text in "\\PC{0,80}") {
        let _ = PyProject::parse(&text);
    }
}
