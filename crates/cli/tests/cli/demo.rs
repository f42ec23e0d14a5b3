//! `tgp demo`: green whenever it runs, and the same story every time.

use crate::project::Project;

#[test]
fn the_demo_tells_the_same_story_twice() {
    let project = Project::empty();
    let told: Vec<String> = (0..2)
        .map(|_| {
            let ran = project.run(&["demo"]).expect_code(0);
            assert_eq!(ran.stderr, "");
            timeless(&ran.stdout)
        })
        .collect();
    let difference = similar::TextDiff::from_lines(&told[0], &told[1]);
    let difference = difference.unified_diff().header("first", "second").to_string();
    assert!(difference.is_empty(), "{difference}");
    for line in [
        "denied ESTATE: `tools/shipping/billable_weight.ts` may not be created",
        "test_tool tools/shipping/billable_weight.test.ts  approved, 0 passed, 1 failed",
        "patch_file tools/shipping/billable_weight.ts  approved",
        "test_tool tools/shipping/billable_weight.test.ts  approved, 1 passed, 0 failed",
        "refused EAPPROVAL: `shell_exec` was not approved: the person says no",
        "forged    tools/shipping/billable_weight.ts",
        "demo agent: Forge: tools/shipping/billable_weight.ts",
        "a fresh machine has fetched it",
        "reused    tools/shipping/billable_weight.ts",
        "14.4 kg",
        "it sees 7 tools, now and later",
        "search: shipping/billable_weight",
        "Global 'process' is forbidden",
        "ERR_ISOLATE_TIMEOUT",
        "air must cost something",
        "rows in orders: 0",
        "rows in orders: 1",
        "EPOLICY: rule `builtin/credentials`",
        "HEAD~1   src/app.ts imports src/price.ts",
        "HEAD     src/app.ts imports src/cost.ts",
        "exists in graph",
        "no call was made",
        "exec_tool tools/shipping/quote.ts: 19.78 euros",
        "through `tgp mcp`: 19.78",
        "EPOLICY",
        "EPIN",
        "tgp audit verify: intact",
        "is the same byte for byte",
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
    assert_eq!(
        steps,
        [
            "forge", "reuse", "host", "refuse", "stop", "rollback", "secrets", "graph", "veto", "query",
            "upstream", "record"
        ]
    );
    let step = |number: usize| &document["data"]["steps"][number];
    assert_eq!(step(0)["summary"]["forged"], serde_json::json!(["tools/shipping/billable_weight.ts"]));
    assert_eq!(step(1)["summary"]["reused"], serde_json::json!(["tools/shipping/billable_weight.ts"]));
    assert_eq!(step(2)["result"], serde_json::json!([14.4, 28.8, 43.2]));
    assert_eq!(step(4)["code"], "ERR_ISOLATE_TIMEOUT");
    assert_eq!(step(5)["rowsAfterFailure"], 0);
    assert_eq!(ran.stderr, "");
}

/// Leaves out what differs from run to run: times, what they are counted as, and names that hold a time.
fn timeless(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("  tokens ") && !line.starts_with("  time "));
    lines.map(|line| format!("{}\n", timeless_line(line))).collect()
}

fn timeless_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_time = |index: usize| {
        let is_unit = words
            .get(index + 1)
            .is_some_and(|unit| ["ms", "s"].contains(&unit.trim_end_matches(['.', ',', ':'])));
        is_unit && words[index].parse::<f64>().is_ok()
    };
    let is_name = |word: &str| {
        let id = word.trim_end_matches([',', '.']);
        let is_part = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
        let is_session = id.len() == 20 && id.chars().all(is_part);
        is_session || ((7..=8).contains(&id.len()) && id.chars().all(|digit| digit.is_ascii_hexdigit()))
    };
    let hidden = |(index, word): (usize, &&str)| match *word {
        _ if is_time(index) => "TIME".to_owned(),
        // A loaded machine needs seconds where others need milliseconds.
        word if index > 0 && is_time(index - 1) => word.replace("ms", "s"),
        word if is_name(word) => "NAME".to_owned(),
        // Sessions that run at the same time leave one record more or less of themselves; the calls are compared by name.
        word if words.get(index + 1) == Some(&"entries") => {
            word.replace(|one: char| one.is_ascii_digit(), "N")
        }
        // How much there is room for depends on the width of the time behind it.
        word if word.starts_with('{') => "ARGUMENTS".to_owned(),
        word => word.to_owned(),
    };
    words.iter().enumerate().map(hidden).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_demo_needs_neither_home_nor_git() {
    let project = Project::empty();
    let mut command = project.command(&["demo"]);
    let output =
        command.env_remove("HOME").env_remove("TGP_CACHE_DIR").env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
