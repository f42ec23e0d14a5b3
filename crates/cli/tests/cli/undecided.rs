//! Files that cannot be read completely, and names that are not UTF-8, as a person meets them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::knowledge::shop;
use crate::project::Project;

const RULES: &str = "version: 1
invariants:
  - name: price-knows-no-app
    query: |
      MATCH (a:File)-[:IMPORTS]->(b:File)
      WHERE a.path = 'src/price.ts' AND b.path = 'src/app.ts'
      RETURN a.path AS importer
    expect: none
    message: The price does not know the app.
  - name: no-programs
    query: MATCH (f:File) WHERE f.path ENDS WITH '.exe' RETURN f.path
    expect: none
    message: Programs do not belong here.
";
const WRONG: &str = "import { total from './app';\nexport const price = total;\n";

fn assert_document(project: &Project, code: i32) -> Value {
    project.run(&["--json", "guardian", "assert"]).expect_code(code).document()["data"].clone()
}

fn write(project: &Project, path: &str, content: &str, code: i32) -> String {
    let arguments = json!({ "path": path, "content": content }).to_string();
    let ran = project.run(&["call", "fs_write", &arguments, "--yes"]).expect_code(code);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn bug_assert_without_invariants_does_not_say_that_they_hold() {
    let project = shop();
    let ran = project.run(&["guardian", "assert"]).expect_code(0);
    assert!(ran.stdout.starts_with("no invariants are defined"), "{}", ran.stdout);
    let data = assert_document(&project, 0);
    assert_eq!((&data["verdict"], &data["holds"]), (&json!("no_invariants"), &json!(false)));
    project.write(".sage/invariants.yml", "version: 1\ninvariants: []\n");
    assert!(project.run(&["guardian", "assert"]).expect_code(0).stdout.starts_with("no invariants"));
    project.write("plan.json", r#"{"id": "p", "steps": [{"type": "RUN_TESTS"}]}"#);
    let review = project.run(&["guardian", "review", "plan.json"]).expect_code(0).stdout;
    assert!(review.contains("no invariants are defined"), "{review}");
    project.write(".sage/invariants.yml", RULES);
    let ran = project.run(&["guardian", "assert"]).expect_code(0);
    assert!(ran.stdout.starts_with("holds: nothing is broken"), "{}", ran.stdout);
}

#[test]
fn bug_assert_says_undecided_of_a_file_that_cannot_be_read() {
    let project = shop();
    project.write(".sage/invariants.yml", RULES);
    project.write("src/price.ts", WRONG);
    let ran = project.run(&["guardian", "assert"]).expect_code(1);
    assert!(ran.stdout.contains("undecided: `price-knows-no-app`"), "{}", ran.stdout);
    assert!(ran.stdout.contains("src/price.ts"), "{}", ran.stdout);
    assert!(ran.stderr.contains("unread: {ignore:"), "{}", ran.stderr);
    let data = assert_document(&project, 1);
    assert_eq!((&data["verdict"], &data["holds"]), (&json!("undecided"), &json!(false)));
    assert_eq!(data["undecided"].as_array().unwrap().len(), 1, "{data}");
    assert_eq!(data["undecided"][0]["files"][0]["path"], "src/price.ts");
    let tested = project.run(&["guardian", "test", "price-knows-no-app"]).expect_code(0).stdout;
    assert!(tested.contains("price-knows-no-app is undecided"), "{tested}");
    // Nothing is halted: work on other files passes, and the record says what was not decided.
    write(&project, "docs/a.md", "a\n", 0);
    let audit = project.run(&["--json", "audit", "tail"]).expect_code(0).stdout;
    assert!(audit.contains("undecided: price-knows-no-app"), "{audit}");
    let inquiry = project.run(&["guardian", "inquire"]).expect_code(0).stdout;
    assert!(inquiry.contains("`price-knows-no-app` is undecided"), "{inquiry}");
    // Another file that cannot be read is refused, and so is the import once the file can be read.
    let said = write(&project, "src/more.ts", WRONG, 3);
    assert!(said.contains("EPOLICY") && said.contains("would be undecided"), "{said}");
    assert!(said.contains("src/more.ts"), "{said}");
    let said =
        write(&project, "src/price.ts", "import { total } from './app';\nexport const price = total;\n", 3);
    assert!(said.contains("would not hold any more"), "{said}");
    write(&project, "src/price.ts", "export const price = (items: number): number => items * 3;\n", 0);
    project.run(&["guardian", "assert"]).expect_code(0);
}

#[test]
fn known_unreadable_files_are_named_by_a_person_only() {
    let project = shop();
    project.write(".sage/invariants.yml", RULES);
    project.write("vendor/old.ts", WRONG);
    project.run(&["guardian", "assert"]).expect_code(1);
    let ignoring = RULES.replace("version: 1\n", "version: 1\nunread:\n  ignore: ['vendor/**']\n");
    write(&project, ".sage/invariants.yml", &ignoring, 3);
    project.run(&["guardian", "assert"]).expect_code(1);
    project.write(".sage/invariants.yml", &ignoring);
    project.run(&["guardian", "assert"]).expect_code(0);
    project.write(".sage/invariants.yml", &ignoring.replace("vendor/**", "["));
    project.run(&["guardian", "assert"]).expect_code(2);
}

#[test]
fn bug_names_that_are_not_utf8_are_counted() {
    let project = shop();
    project.write(".sage/invariants.yml", RULES);
    project.write("src/list/a.ts", "export const a = 1;\n");
    let call = |tool: &str, arguments: Value| {
        let ran = project.run(&["call", tool, &arguments.to_string()]).expect_code(0);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        document.get("data").cloned().unwrap_or(document)
    };
    let lists = |complete: bool| {
        let lists = [
            call("fs_list", json!({ "path": "src/list" })),
            call("fs_list", json!({ "depth": 5 })),
            call("search_glob", json!({ "pattern": "**/*.ts" })),
            call("search_grep", json!({ "pattern": "export" })),
        ];
        for list in lists {
            assert_eq!(list["complete"], json!(complete), "{list}");
            let unnamed = list.get("unnamed").or(list.pointer("/skipped/unnamed"));
            assert_eq!(unnamed, (!complete).then_some(&json!(1)), "{list}");
        }
        let question = json!({ "query": "MATCH (f:File) RETURN count(f) AS files", "commit": "WORKTREE" });
        let graph = call("graph_query", question);
        assert_eq!(graph.get("left_out"), (!complete).then_some(&json!(1)), "{graph}");
    };
    lists(true);
    project.run(&["guardian", "assert"]).expect_code(0);
    let name = project.file("src/list").join(OsStr::from_bytes(b"caf\xe9.ts"));
    std::fs::write(&name, "import '../app';\n").unwrap();
    lists(false);
    // An invariant about paths cannot know whether the name is one that it forbids.
    let data = assert_document(&project, 1);
    assert_eq!(data["undecided"].as_array().unwrap().len(), 2, "{data}");
    assert_eq!(
        data["undecided"][1]["files"][0],
        json!({ "path": "src/list/caf\u{fffd}.ts", "reason": "name" })
    );
    // It was there before, so it prevents no work.
    write(&project, "src/fine.ts", "export const fine = 1;\n", 0);
    let excluded = project.read(".git/info/exclude");
    project.write(".git/info/exclude", &format!("{excluded}/src/list/caf*\n"));
    project.run(&["guardian", "assert"]).expect_code(0);
    std::fs::remove_file(name).unwrap();
    lists(true);
}
