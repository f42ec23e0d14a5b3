//! Which files are tests, code, or exempt.

use tgp_contract::{Code, RelativePath, Root, TddMode};
use tgp_tdd::{FileKind, Scope, Store, Tdd, TddOptions};

use crate::support::{path, store_in_memory};

#[rustfmt::skip]
const PROJECT: &[(FileKind, &[&str])] = &[
    (FileKind::Test, &[
        "tests/a.rs", "crates/x/tests/x/main.rs", "crates/x/tests/golden/out.txt", "src/parser_tests.rs",
        "src/parser/tests.rs", "src/a.test.ts", "src/a.spec.tsx", "src/__tests__/a.js", "src/__snapshots__/a.snap",
        "pkg/a_test.go", "pkg/testdata/in.json", "test_a.py", "pkg/a_test.py", "pkg/conftest.py",
        "src/test/java/AThing.java", "src/FooTest.java", "spec/a_spec.rb", "test/a.js",
    ]),
    (FileKind::Code, &[
        "src/a.rs", "a.py", "src/attest.py", "src/testing/a.ts", "src/latest/a.ts", "lib/contest.go", "bin/serve",
        "build.rs", "src/docs/a.rs", "src/target/a.rs", "src/config.ts", "my.tgp/tools/a.ts", "deploy.sh", "src/App.vue",
        ".tgpx/a.ts", "src/protest_a.rs", "src/tmp/a.rs", "src/a.PY", "setup.py",
        // What an attack found to be taken for data.
        "src/version.py", "src/manifest.ts", "src/Dockerfile.py", "src/README.py", "src/evil.pyc", "makefile.js", "NOTICEx.ts", ".eslintrc_x.js", "x.wasm", "x.phtml",
    ]),
    (FileKind::Exempt, &[
        "README.md", "src/README.md", "tests/README.md", "docs/a.ts", "notes.txt", "LICENSE", "LICENSE-MIT",
        ".gitignore", "Cargo.toml", "crates/x/Cargo.toml", "Cargo.lock", "package.json", "web/package-lock.json",
        "yarn.lock", "pyproject.toml", "go.mod", "go.sum", "requirements-dev.txt", ".github/workflows/ci.yml",
        "assets/logo.png", "target/debug/x", "node_modules/a/index.js", "web/node_modules/a/index.js", ".git/HEAD",
        "pkg/__pycache__/a.pyc", "tsconfig.build.json", "vitest.config.ts", "tmp/report.csv", "tmp/deep/a.py", ".tgp/meta.json", ".tgp/policy/a.yaml",
        // What the review of issue 25 was refused as code.
        "src/style.css", "index.html", "migrations/001.sql", "Dockerfile", "Dockerfile.dev", "Makefile", "data/a.json", "src/a.txt",
        "deploy/app.yaml", "exports/report.csv", "vite.config.js", "tailwind.config.js", "tgp.config.ts", "src/env.d.ts", ".env.example",
        "src/.hidden", "certifi-2026.10.18-py3-none-any.whl", "tests/x/Cargo.toml",
    ]),
];

#[test]
fn the_defaults_know_the_usual_languages() {
    let tdd = store_in_memory(TddMode::Strict);
    for (kind, files) in PROJECT {
        for file in *files {
            let classified = tdd.classify(Root::Project, &path(file));
            assert_eq!(classified.kind, *kind, "{file}");
            assert_eq!(classified.scope, (*kind != FileKind::Exempt).then_some(Scope::Project), "{file}");
        }
    }
}

#[test]
fn a_tool_and_its_test_are_one_piece_of_work_by_whichever_way_they_are_named() {
    let tdd = store_in_memory(TddMode::Strict);
    let fib = Some("tools/math/fib.ts");
    for (file, kind, scope) in [
        ("tools/math/fib.ts", FileKind::Code, fib),
        ("tools/math/fib.js", FileKind::Code, fib),
        ("tools/math/fib.test.ts", FileKind::Test, fib),
        ("tools/math/fib.test.js", FileKind::Code, fib),
        ("tools/math/fib.test.test.ts", FileKind::Test, Some("tools/math/fib.test.ts")),
        ("tools/fib.test.ts", FileKind::Test, Some("tools/fib.ts")),
        ("tools/tests/x.ts", FileKind::Code, Some("tools/tests/x.ts")),
        ("tools/node_modules/x.ts", FileKind::Code, Some("tools/node_modules/x.ts")),
        ("tools/.test.ts", FileKind::Code, Some("tools/.test.ts")),
        ("tools/math/README.md", FileKind::Exempt, None),
        ("tools", FileKind::Exempt, None),
        ("tools/math/data.json", FileKind::Code, Some("tools/math/data.ts")),
        ("toolsx/a.txt", FileKind::Exempt, None),
        ("meta.json", FileKind::Exempt, None),
    ] {
        let direct = tdd.classify(Root::Tools, &path(file));
        assert_eq!(direct.kind, kind, "{file}");
        assert_eq!(direct.scope.clone().map(|scope| scope.to_string()).as_deref(), scope, "{file}");
        let through_the_project = tdd.classify(Root::Project, &path(&format!(".tgp/{file}")));
        assert_eq!(through_the_project, direct);
        assert_eq!(tdd.classify(Root::Host, &path(file)).kind, FileKind::Exempt);
    }
    assert_eq!(Scope::parse("tools/math/fib.test.ts"), Scope::parse("tools/math/fib.ts"));
    assert_eq!(Scope::parse("src/a.rs"), None);
    assert_eq!(Scope::parse("../tools/a.ts"), None);
}

fn open(options: &TddOptions) -> Result<Tdd, tgp_contract::ToolError> {
    Tdd::open(Store::open_in_memory().unwrap(), options)
}

#[test]
fn own_patterns_go_code_before_exempt_before_test() {
    let options = TddOptions {
        test_patterns: vec!["checks/**".to_owned()],
        exempt_patterns: vec!["checks/notes/*".to_owned(), "*.json".to_owned()],
        code_patterns: vec!["rules.json".to_owned()],
        tool_root: RelativePath::new("agent/.tools").unwrap(),
        ..TddOptions::default()
    };
    let tdd = open(&options).unwrap();
    for (file, kind) in [
        ("checks/a.sh", FileKind::Test),
        ("checks/notes/a", FileKind::Exempt),
        ("checks/notes/deep/a", FileKind::Test),
        ("a.json", FileKind::Exempt),
        ("rules.json", FileKind::Code),
        ("tests/a.rs", FileKind::Code),
        ("agent/.tools/tools/a.test.ts", FileKind::Test),
        (".tgp/tools/a.test.ts", FileKind::Code),
        ("notes.yaml", FileKind::Exempt),
    ] {
        assert_eq!(tdd.classify(Root::Project, &path(file)).kind, kind, "{file}");
    }
}

#[test]
fn a_bad_pattern_is_a_fault_of_the_configuration_with_its_field() {
    let with_tests = |patterns: Vec<String>| TddOptions { test_patterns: patterns, ..TddOptions::default() };
    for patterns in [
        vec!["tests/[".to_owned()],
        vec!["{a,{b".to_owned()],
        vec!["a".repeat(513)],
        vec!["a".to_owned(); 257],
    ] {
        let error = open(&with_tests(patterns)).unwrap_err();
        assert_eq!(error.code, Code::Config);
        assert_eq!(error.details["field"], "tdd.tests");
    }
}

#[test]
fn bug_code_outside_of_tools_is_held_to_its_test_too() {
    let world = crate::support::World {
        tdd: store_in_memory(TddMode::Strict),
        disk: crate::support::Disk::default(),
        scope: Scope::parse("bin/a.ts").unwrap(),
    };
    for (file, kind, scope) in [
        ("a.ts", FileKind::Code, Some("a.ts")),
        ("a.test.ts", FileKind::Test, Some("a.ts")),
        ("bin/a.ts", FileKind::Code, Some("bin/a.ts")),
        ("bin/a.js", FileKind::Code, Some("bin/a.ts")),
        ("bin/a.test.ts", FileKind::Test, Some("bin/a.ts")),
        ("bin/a.test.js", FileKind::Code, Some("bin/a.ts")),
        ("lib/deep/a.mts", FileKind::Code, Some("lib/deep/a.ts")),
        ("lib/a.cts", FileKind::Code, Some("lib/a.ts")),
        ("tmp/a.mjs", FileKind::Code, Some("tmp/a.ts")),
        ("tmp/a.cjs", FileKind::Code, Some("tmp/a.ts")),
        ("docs/x.tsx", FileKind::Code, Some("docs/x.ts")),
        ("docs/x.jsx", FileKind::Code, Some("docs/x.ts")),
        ("bin/.ts", FileKind::Code, Some("bin/.ts.ts")),
        ("tools.ts", FileKind::Code, Some("tools.ts")),
        ("types/a.d.ts", FileKind::Exempt, None),
        ("types/a.d.mts", FileKind::Exempt, None),
        ("docs/x.md", FileKind::Exempt, None),
        ("tmp/data.json", FileKind::Exempt, None),
        ("bin/ts", FileKind::Exempt, None),
    ] {
        let found = world.tdd.classify(Root::Tools, &path(file));
        assert_eq!(found.kind, kind, "{file}");
        assert_eq!(found.scope.as_ref().map(ToString::to_string).as_deref(), scope, "{file}");
        // The store writes a scope down as text.
        assert!(found.scope.is_none_or(|scope| Scope::parse(&scope.to_string()) == Some(scope)), "{file}");
        assert_eq!(world.may(tgp_tdd::WriteKind::Create, file), kind != FileKind::Code, "{file}");
    }
    world.write("bin/a.test.ts", Some("a test"));
    world.fails(Some(&["bin/a.test.ts"]));
    assert!(world.may(tgp_tdd::WriteKind::Create, "bin/a.js"));
    assert!(!world.may(tgp_tdd::WriteKind::Create, "bin/b.js"), "red is red for its own tool");
}
