//! Rules without a query, limits of time and trials, on the real graph.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tempfile::TempDir;
use tgp_contract::{Change, Chronicle, Code, Graph, Visibility};
use tgp_fs::DiskFs;
use tgp_graph::{GraphOptions, GraphStore};
use tgp_guardian::{
    Expect, FindingSeverity, Guardian, GuardianParts, InquirySources, Invariants, ReconcileEdit, Violation,
};

use crate::world::{MemoryChronicle, path, plan};

/// A project on the disk with its own graph.
struct Project {
    _folder: TempDir,
    rules: Arc<Mutex<String>>,
    guardian: Guardian,
}

const FILES: [(&str, &str); 9] = [
    ("src/web/page.ts", "import { serve } from '../service/serve';\nexport const page = serve;\n"),
    ("src/service/serve.ts", "import { rows } from '../db/rows';\nexport const serve = rows;\n"),
    ("src/db/rows.ts", "export const rows = 1;\nexport class Table { size() { return 1; } }\n"),
    ("src/db/index.ts", "export const open = 1;\n"),
    ("src/old/a.ts", "import './b';\n"),
    ("src/old/b.ts", "import './a';\n"),
    ("README.md", "one\ntwo\nthree\n"),
    ("shop/__init__.py", "from .cart import Cart, add\nfrom typing import Any\n"),
    (
        "shop/cart.py",
        "class Cart:\n    def total(self):\n        return 0\n\ndef add(item):\n    return item\n",
    ),
];

async fn project(rules: &str) -> Project {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("project");
    for (name, content) in FILES {
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    let graph = GraphStore::open(GraphOptions::new(folder.path().join("graph.sqlite"), &root)).await.unwrap();
    let rules = Arc::new(Mutex::new(format!("version: 1\n{rules}")));
    let read = Arc::clone(&rules);
    let guardian = Guardian::new(GuardianParts {
        graph: Arc::new(graph) as Arc<dyn Graph>,
        chronicle: Arc::new(MemoryChronicle::default()) as Arc<dyn Chronicle>,
        invariants: Arc::new(move || Invariants::parse(".sage/invariants.yml", &read.lock().unwrap())),
        clock: Arc::new(|| "2026-11-18T09:00:00Z".to_owned()),
        files: Arc::new(DiskFs::open(&root).unwrap()),
    });
    Project { _folder: folder, rules, guardian }
}

fn write(file: &str, content: &str) -> Change {
    Change::Write { path: path(file), content: Arc::from(content.as_bytes()) }
}

impl Project {
    async fn judge(&self, changes: &[Change]) -> Vec<Violation> {
        self.guardian.judge_changes(changes, &Visibility::everything()).await.unwrap().violations
    }

    async fn broken_by(&self, file: &str, content: &str) -> Vec<String> {
        self.judge(&[write(file, content)]).await.into_iter().map(|violation| violation.invariant).collect()
    }
}

const RULES: &str = "
invariants:
  - name: layers
    layers: [src/web/, src/service, src/db]
  - name: no-cycles
    cycles: src
  - name: public-api
    publicApi: [src/db/rows.ts]
  - name: db-internals
    ownership: { folder: src/db, users: [src/service], public: [src/db/index.ts] }
  - name: small
    size: { folder: ., lines: 5 }
    severity: warning
";

#[tokio::test]
async fn a_rule_without_a_query_refuses_what_it_says() {
    let project = project(RULES).await;
    let table: [(&str, &str, &[&str]); 14] = [
        (
            "src/db/rows.ts",
            "import '../web/page';\nexport const rows = 1;\nexport class Table { size() {} }\n",
            &["layers", "no-cycles"],
        ),
        ("src/service/up.ts", "import '../web/page';\n", &["layers"]),
        ("src/service/up.ts", "import '../web/not-there-yet';\n", &["layers"]),
        ("src/service/down.ts", "import '../db/rows';\n", &[]),
        ("src/web/skip.ts", "import '../db/index';\n", &[]),
        ("src/web/skip.ts", "import '../db/rows';\n", &["db-internals"]),
        ("src/web/skip.ts", "import '../db/not-there-yet';\n", &["db-internals"]),
        ("src/db/more.ts", "import './rows';\n", &[]),
        ("src/services.ts", "import './db/rows';\n", &["db-internals"]),
        ("src/db/rows.ts", "export const rows = 2;\n", &["public-api"]),
        (
            "src/db/rows.ts",
            "export const rows = 2;\nexport class Table { size() {} }\nexport const more = 1;\n",
            &[],
        ),
        ("src/web/a.ts", "import './b';\n", &[]),
        ("docs/long.md", "1\n2\n3\n4\n5\n6\n", &["small"]),
        // What was wrong before does not count again.
        ("src/old/a.ts", "import './b';\nexport const one = 1;\n", &[]),
    ];
    for (file, content, expected) in table {
        assert_eq!(project.broken_by(file, content).await, expected, "{file}: {content}");
    }
    // An import of types alone is gone when the program runs.
    let types = project
        .judge(&[
            write("src/web/a.ts", "import { b } from './b';\nexport type A = 1;\nexport const a = b;\n"),
            write("src/web/b.ts", "import type { A } from './a';\nexport const b: A = 1;\n"),
        ])
        .await;
    assert!(types.is_empty(), "{types:?}");
    let circle = project
        .judge(&[write("src/web/a.ts", "import './b';\n"), write("src/web/b.ts", "import './a';\n")])
        .await;
    assert_eq!(circle.len(), 1);
    assert_eq!(circle[0].rows, [json!({ "file": "src/web/a.ts" }), json!({ "file": "src/web/b.ts" })]);
    assert!(circle[0].message.contains("circle"), "{circle:?}");
}

/// The names of an index file are those that it passes on, whatever they are called where they are made.
#[tokio::test]
async fn bug_public_names_of_an_index_file_were_not_kept() {
    let rules = "invariants:\n  - name: api\n    publicApi: [src/index.ts, src/lib.py]\n";
    let project = project(rules).await;
    let root = project._folder.path().join("project/src");
    std::fs::write(
        root.join("index.ts"),
        "export * from './db/rows';\nexport { open as start } from './db/index';\n",
    )
    .unwrap();
    std::fs::write(root.join("lib.py"), "def run():\n    pass\n").unwrap();
    let table: [(&str, &str, &[&str]); 9] = [
        ("src/index.ts", "export * from './db/rows';\n", &["src/index.ts start"]),
        ("src/db/index.ts", "const open = 1;\nexport { open };\n", &[]),
        ("src/db/rows.ts", "export const rows = 1;\n", &["src/index.ts Table", "src/index.ts Table.size"]),
        ("src/db/rows.ts", "export const rows = 1;\nexport class Table {}\n", &["src/index.ts Table.size"]),
        (
            "src/db/rows.ts",
            "const inner = 1;\nexport { inner as rows };\nexport class Table { size() {} }\n",
            &[],
        ),
        ("src/db/rows.ts", "export let rows = 2;\nexport class Table { size() {} more() {} }\n", &[]),
        (
            "src/index.ts",
            "export { rows, Table, open as start } from './all';\n",
            &["src/index.ts Table.size"],
        ),
        ("src/lib.py", "def start():\n    pass\n", &["src/lib.py run"]),
        ("src/web/page.ts", "", &[]),
    ];
    for (file, content, gone) in table {
        let broken = project.judge(&[write(file, content)]).await;
        let rows = broken.iter().flat_map(|violation| &violation.rows);
        let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
        let names: Vec<String> =
            rows.map(|row| format!("{} {}", text(row, "file"), text(row, "name"))).collect();
        assert_eq!(names, gone, "{file}: {content}");
    }
}

#[test]
fn a_rule_without_a_query_is_checked_strictly() {
    let rule = |fields: &str| format!("version: 1\ninvariants:\n  - name: a\n    {fields}\n");
    let table = [
        (rule("layers: [src/web]"), 4, "has 1 folders"),
        (rule("layers: [src, src/web]"), 4, "are in each other"),
        (rule("layers: [/src, web]"), 4, "not a path of the project"),
        (rule("layers: [src//, web]"), 4, "not a path of the project"),
        (rule("layers: [src/../lib, web]"), 4, "not a path of the project"),
        (rule("cycles: ''"), 4, "not a path of the project"),
        (rule("publicApi: []"), 4, "has 0 files"),
        (rule("ownership: { folder: src/db, owner: [a] }"), 4, "there is no field `owner`"),
        (rule("ownership: { users: [a] }"), 4, "`folder`"),
        (rule("size: { folder: src, lines: 0 }"), 4, "`lines` is 0"),
        (rule("size: { folder: src, lines: many }"), 4, ""),
        (rule("layer: [a, b]"), 4, "there is no field `layer`"),
        (rule("cycles: src\n    size: { folder: src, lines: 3 }"), 5, "more than one rule"),
        (rule("cycles: src\n    query: RETURN 1"), 4, "more than one rule"),
        (rule("cycles: src\n    expect: none"), 5, "`expect` has no meaning"),
        (rule("cycles: src\n    params: { a: 1 }"), 5, "`params` has no meaning"),
        (rule("cycles: src\n    since: v1"), 5, "`since` has no meaning"),
        (rule("cycles: src\n    timeoutMs: 0"), 5, "`timeoutMs` is 0"),
        (rule("severity: error"), 3, "has no rule"),
        (rule("query: RETURN 1\n    message: m"), 3, "`expect` is missing"),
        (rule("query: RETURN 1\n    expect: none"), 3, "`message` is missing"),
        ("version: 1\ntimeoutMs: 900000\ninvariants: []\n".to_owned(), 2, "`timeoutMs` is 900000"),
    ];
    for (text, line, said) in table {
        let error = Invariants::parse("i.yml", &text).unwrap_err();
        assert_eq!(error.code, Code::Config, "{text}");
        assert!(error.message.contains(said), "{text}: {error}");
        assert_eq!(error.place_of().unwrap().line, line, "{text}: {error}");
        assert!(error.help_of().is_some_and(|help| !help.is_empty()), "{text}");
    }
    let text = "version: 1\ntimeoutMs: 300\ninvariants:\n  - { name: a, cycles: . }\n  - { name: b, publicApi: [a.ts], since: v1, timeoutMs: 20, message: Mine. }\n";
    let invariants = Invariants::parse("i.yml", text).unwrap();
    let (a, b) = (invariants.named("a").unwrap(), invariants.named("b").unwrap());
    assert_eq!((a.timeout_ms, b.timeout_ms), (Some(300), Some(20)));
    assert_eq!((a.expect, b.expect, b.since.as_deref()), (Expect::None, Expect::Kept, Some("v1")));
    assert_eq!((b.message.as_str(), a.query.contains("$folder")), ("Mine.", false));
}

const SLOW: &str = "
invariants:
  - name: quick
    query: |
      MATCH (f:File {path: 'none'}) RETURN f.path
    expect: none
    message: Quick.
  - name: slow
    query: |
      UNWIND range(1, 2000000) AS a
      UNWIND range(1, 2000000) AS b
      RETURN count(*) AS n
    expect: none
    timeoutMs: 30
    message: Slow.
";

#[tokio::test]
async fn an_invariant_that_takes_too_long_is_named_with_its_limit() {
    let project = project(SLOW).await;
    let judged =
        project.guardian.judge_changes(&[write("a.ts", "")], &Visibility::everything()).await.unwrap_err();
    for error in [judged, project.guardian.try_invariant("slow").await.unwrap_err()] {
        assert_eq!(error.code, Code::Budget, "{error:?}");
        assert!(error.message.contains("`slow`") && error.message.contains("30 milliseconds"), "{error}");
        assert_eq!(error.details["invariant"], "slow");
        let help = error.help_of().unwrap();
        for word in ["tgp guardian test slow", "`timeoutMs`", "`graph.timeoutMs`"] {
            assert!(help.contains(word), "{help}");
        }
    }
    assert!(project.guardian.try_invariant("quick").await.unwrap().holds);
    // The limit is not a line of the query: the place of a mistake is that of the file.
    *project.rules.lock().unwrap() = "version: 1\ntimeoutMs: 5000\ninvariants:\n  - name: wrong\n    query: |\n      MATCH (f:File)\n      RETURN fiel\n    expect: none\n    message: m\n".to_owned();
    let error = project.guardian.try_invariant("wrong").await.unwrap_err();
    let place = error.place_of().unwrap();
    assert_eq!((place.file.as_str(), place.line, place.column), (".sage/invariants.yml", 7, 14), "{error}");
}

#[tokio::test]
async fn a_trial_shows_rows_plan_and_what_matches_nothing() {
    let project = project(
        "
invariants:
  - name: no-cycles
    cycles: src
  - name: mistyped
    query: |
      MATCH (a:File)-[:IMPORTS]->(b:File)
      WHERE a.path STARTS WITH 'src/wbe/' AND b.path STARTS WITH 'src/db/' AND a.path <> $own
      RETURN a.path AS importer
    params: { own: x }
    expect: none
    message: m
  - name: changes
    query: MATCH (f:File) WHERE f.path IN $changed RETURN f.path
    expect: none
    message: m
  - name: layers
    layers: [src/web, src/dbb]
  - name: entry
    query: |
      MATCH (f:File {path: 'none.ts'}) RETURN f.path
    expect: rows
    severity: warning
    message: m
",
    )
    .await;
    let trial = project.guardian.try_invariant("no-cycles").await.unwrap();
    assert!(!trial.holds && trial.total == 2 && trial.idle.is_empty(), "{trial:?}");
    assert_eq!(trial.rows[0], json!({ "file": "src/old/a.ts" }));
    let operations: Vec<&str> = trial.plan.iter().map(|step| step["operation"].as_str().unwrap()).collect();
    assert!(operations.contains(&"Cycle"), "{operations:?}");
    assert!(trial.query.contains("IMPORTS*"), "{trial:?}");
    let mistyped = project.guardian.try_invariant("mistyped").await.unwrap();
    assert!(mistyped.holds);
    assert_eq!(mistyped.idle, ["(a:File) WHERE a.path STARTS WITH 'src/wbe/' AND a.path <> $own"]);
    let idle = project.guardian.idle_invariants().await.unwrap();
    let said: Vec<String> = idle.iter().map(tgp_guardian::IdlePattern::sentence).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].contains("`layers`") && said[1].contains("the folder `src/dbb`"), "{said:?}");
    let findings = project.guardian.self_inquiry(&InquirySources::default()).await.unwrap();
    let warned = findings.iter().filter(|finding| finding.message.contains("nothing in the graph matches"));
    assert!(warned.clone().all(|finding| finding.severity == FindingSeverity::Warning));
    assert_eq!(warned.count(), 2, "{findings:?}");
    let error = project.guardian.try_invariant("no-cycle").await.unwrap_err();
    assert_eq!((error.code, error.help_of()), (Code::NotFound, Some("did you mean `no-cycles`?")));
}

#[tokio::test]
async fn bug_an_accepted_violation_is_no_error_of_an_inquiry() {
    let project = project("\ninvariants:\n  - name: no-cycles\n    cycles: src\n").await;
    let broken = async || {
        let findings = project.guardian.self_inquiry(&InquirySources::default()).await.unwrap();
        findings.iter().filter(|finding| finding.message.contains("`no-cycles` does not hold")).count()
    };
    assert_eq!(broken().await, 1);
    let edit = ReconcileEdit {
        file_path: "src/old/a.ts".to_owned(),
        diff_ref: "worktree".to_owned(),
        invariant: Some("no-cycles".to_owned()),
        reason: Some("it is old".to_owned()),
    };
    project.guardian.reconcile(&edit).await.unwrap();
    assert_eq!(broken().await, 0);
    assert!(project.guardian.try_invariant("no-cycles").await.unwrap().holds);
}

#[tokio::test]
async fn bug_a_review_shows_invariants_also_where_a_step_has_a_finding() {
    let project = project(RULES).await;
    let steps = json!([
        { "type": "DELETE_FILE", "filePath": "src/db/rows.ts" },
        { "type": "CREATE_FILE", "filePath": "src/service/up.ts", "content": "import '../web/page';\n" },
        { "type": "EDIT_FILE", "filePath": "src/none.ts", "oldText": "a", "newText": "b" },
    ]);
    let review = project.guardian.review_plan(&plan(steps), &Visibility::everything()).await.unwrap();
    let said: Vec<String> =
        review.findings.iter().map(|finding| format!("{}: {}", finding.fact, finding.reason)).collect();
    assert!(said.iter().any(|line| line.contains("imported by src/service/serve.ts")), "{said:#?}");
    assert!(said.iter().any(|line| line.contains("src/none.ts is not in graph")), "{said:#?}");
    assert!(said.iter().any(|line| line.contains("breaks `layers`")), "{said:#?}");
    // What is missing is said to be missing.
    let missing = said.iter().find(|line| line.contains("breaks `public-api`")).unwrap();
    assert!(missing.contains("missing {") && !missing.contains("found {"), "{missing}");
}

#[tokio::test]
async fn bug_the_public_api_of_a_python_package_was_empty() {
    let project =
        project("invariants:\n  - name: public-api\n    publicApi: [shop/__init__.py, shop/cart.py]\n").await;
    let table: [(&str, &str, &[&str]); 5] = [
        ("shop/__init__.py", "from .cart import Cart\n", &["public-api"]),
        ("shop/__init__.py", "from .cart import Cart, add\n", &[]),
        ("shop/__init__.py", "from .cart import *\n", &[]),
        ("shop/__init__.py", "from .cart import *\n__all__ = ['Cart']\n", &["public-api"]),
        ("shop/cart.py", "class Cart:\n    pass\n\ndef add(item):\n    return item\n", &["public-api"]),
    ];
    for (file, content, expected) in table {
        assert_eq!(project.broken_by(file, content).await, expected, "{file}: {content}");
    }
}

#[tokio::test]
async fn bug_an_unread_file_leaves_every_rule_undecided_that_it_could_concern() {
    let project = project(RULES).await;
    let large = "x".repeat((2 << 20) + 1);
    let wrong = "import { page from '../web/page';\n";
    let all = ["layers", "no-cycles", "public-api", "db-internals"];
    let table: [(&str, &str, &[&str]); 8] = [
        ("src/db/new.ts", wrong, &all),
        ("src/web/page.ts", wrong, &all),
        ("src/db/new.py", "from web import (\n", &all),
        // In these languages an import means a file by its path, so no layer has one of this file.
        ("vendor/new.ts", wrong, &all[1..]),
        // What a file of these contains decides where the imports of others lead.
        ("vendor/new.rs", "mod (;\n", &all),
        ("package.json", "{\n", &all),
        ("vendor/large.ts", &large, &["no-cycles", "public-api", "db-internals", "small"]),
        ("docs/new.md", "import { from\n", &[]),
    ];
    for (file, content, expected) in table {
        let violations = project.judge(&[write(file, content)]).await;
        assert!(violations.iter().all(|violation| violation.undecided), "{file}: {violations:?}");
        let names: Vec<String> = violations.into_iter().map(|violation| violation.invariant).collect();
        assert_eq!(names, expected, "{file}");
    }
}
