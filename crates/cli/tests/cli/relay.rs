//! The relay through the program: the whole matrix, parts in another language, our own parts served, and a part that lies.

use std::path::PathBuf;

use serde_json::Value;

use crate::project::Project;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn matrix(project: &Project, more: &[&str], code: i32) -> Vec<Value> {
    let mut arguments = vec!["--json", "relay", "run"];
    arguments.extend(more);
    let ran = project.run(&arguments).expect_code(code);
    ran.document()["data"]["rows"].as_array().unwrap().clone()
}

fn of_result<'a>(rows: &'a [Value], result: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["result"] == result).collect()
}

#[test]
fn every_case_holds_for_every_combination_of_our_parts_and_fakes() {
    let project = Project::empty();
    let rows = matrix(&project, &[], 0);
    assert!(of_result(&rows, "failed").is_empty());
    for row in of_result(&rows, "skipped") {
        println!("skipped: {} ({})", row["case"], row["fault"]);
    }
    // Seven suites, the cases and the stretch invariants of each.
    let mut cases: Vec<&str> = rows.iter().map(|row| row["case"].as_str().unwrap()).collect();
    cases.sort_unstable();
    cases.dedup();
    let listed = project.run(&["--json", "relay", "list"]).expect_code(0).document();
    assert_eq!(cases.len(), listed["data"]["cases"].as_array().unwrap().len());
    assert!(cases.len() >= 6 + 18, "{cases:?}");
    // Roles are inverted: what is real in one row is fake in another.
    for role in ["tools", "graph", "chronicle", "valve"] {
        let has = |column: &str| {
            let named = |row: &Value| row[column].as_array().unwrap().iter().any(|part| part == role);
            rows.iter().any(named)
        };
        assert!(has("real") && has("fake"), "{role}");
    }
}

#[test]
fn parts_in_another_language_and_our_own_ones_served_pass() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let project = Project::empty();
    let python = |part: &str| format!("python3 {}/relay/examples/python/{part}.py", repository().display());
    let (llm, tools, chronicle, graph) =
        (python("llm"), python("tools"), python("chronicle"), python("graph"));
    let all = ["--llm", &llm, "--tools", &tools, "--chronicle", &chronicle, "--graph", &graph];
    let rows = matrix(&project, &all, 0);
    assert!(of_result(&rows, "passed").len() >= 30, "{}", rows.len());
    let served = ["--chronicle", "tgp relay serve chronicle", "--suite", "t6", "--suite", "fixtures"];
    let rows = matrix(&project, &served, 0);
    assert_eq!(of_result(&rows, "passed").len(), rows.len());
}

#[test]
fn a_part_that_breaks_its_promise_fails_the_row_that_is_about_it() {
    let project = Project::empty();
    project.write(
        "liar.py",
        "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    if 'id' not in asked:\n        continue\n    \
         known = {'hello': {'name': 'liar', 'version': '1'}, 'append': {'eventId': '0' * 64, 'appended': True}}\n    \
         print(json.dumps({'id': asked['id'], 'result': known.get(asked['method'], [])}), flush=True)\n",
    );
    let rows = matrix(&project, &["--chronicle", "python3 liar.py", "--suite", "fixtures"], 1);
    let failed = of_result(&rows, "failed");
    assert!(failed.iter().any(|row| row["case"] == "fixtures.canonical-json"), "{rows:?}");
    assert!(
        failed.iter().all(|row| !row["fault"]["expected"].as_str().unwrap_or_default().is_empty()),
        "{rows:?}"
    );
    // Bad words of the command line are refused.
    project.run(&["relay", "run", "--suite", "t9"]).expect_code(2);
}
