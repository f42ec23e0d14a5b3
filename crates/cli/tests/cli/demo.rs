//! `tgp demo`: green whenever it runs, and the same story every time.

use crate::golden::decimal_before;
use crate::project::Project;

#[test]
fn the_demo_tells_the_same_story_twice() {
    let project = Project::empty();
    let told: Vec<String> = (0..2)
        .map(|_| {
            let ran = project.run(&["demo"]).expect_code(0);
            assert_eq!(ran.stderr, "");
            commits_hidden(&decimal_before(&ran.stdout, " ms"))
        })
        .collect();
    assert_eq!(told[0], told[1]);
    for line in [
        "check_tool: valid",
        "exec_tool {\"n\":10}: 55",
        "Global 'process' is forbidden",
        "ERR_ISOLATE_TIMEOUT",
        "fib(20): 6765",
        "tmp/sums.csv now has 10 lines",
        "and pushed",
        "demo agent: Forge: tools/math/sums.ts",
        "a second kernel has hydrated",
        "tools/math/fib.ts (score 0.",
        "exec_tool {\"n\":30}: 832040",
        "air must cost something",
        "rows in orders: 0",
        "rows in orders: 1",
        "ESTATE: `tools/greet.ts` may not be created",
        "test_tool: 1 failed, so the code may be written",
        "test_tool: 1 passed",
        "EPOLICY: rule `builtin/credentials`",
        "the audit is intact",
    ] {
        assert!(told[0].contains(line), "{line} is not in\n{}", told[0]);
    }
    assert!(project.contents().is_empty(), "the demo has left something in the folder");
}

#[test]
fn the_demo_is_one_document_with_json() {
    let project = Project::empty();
    let ran = project.run(&["demo", "--json"]).expect_code(0);
    let document = ran.document();
    let steps: Vec<&str> = document["data"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["step"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["forge", "refuse", "stop", "compose", "find", "rollback", "hold"]);
    assert_eq!(document["data"]["steps"][0]["result"], 55);
    assert_eq!(document["data"]["steps"][2]["code"], "ERR_ISOLATE_TIMEOUT");
    assert_eq!(document["data"]["steps"][4]["best"]["verdict"], "reuse");
    assert_eq!(document["data"]["steps"][5]["rowsAfterFailure"], 0);
    assert_eq!(ran.stderr, "");
}

/// The demo's commits have another time in each run, and so another name.
fn commits_hidden(text: &str) -> String {
    text.split(' ')
        .map(|word| {
            let id = word.trim_end_matches(['\n', ',', '.']);
            let is_commit = (7..=8).contains(&id.len()) && id.chars().all(|digit| digit.is_ascii_hexdigit());
            if is_commit { word.replace(id, "COMMIT") } else { word.to_owned() }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_demo_needs_neither_home_nor_git() {
    let project = Project::empty();
    let mut command = project.command(&["demo"]);
    let output =
        command.env_remove("HOME").env_remove("TGP_CACHE_DIR").env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
