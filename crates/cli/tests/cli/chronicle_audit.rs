//! Chronicles that somebody has changed, as `tgp chronicle verify` finds them with the audit.

use serde_json::{Value, json};

use crate::knowledge::{commit, git};
use crate::project::Project;

const FILE: &str = ".sage/files/src/a.md.sage";
const OTHER: &str = ".sage/files/src/b.md.sage";

/// Three edits of one file with a decision between them, and one of another.
fn chronicled() -> Project {
    let project = Project::initialised();
    project.explore();
    let edit = |path: &str, content: &str| {
        let arguments = json!({ "path": path, "content": content }).to_string();
        project.run(&["call", "fs_write", &arguments, "--yes"]).expect_code(0);
    };
    edit("src/a.md", "one\n");
    project.run(&["chronicle", "append", "src/a.md", &decision("prices are whole cents")]).expect_code(0);
    edit("src/a.md", "two\n");
    edit("src/a.md", "three\n");
    edit("src/b.md", "one\n");
    project.run(&["chronicle", "verify"]).expect_code(0);
    project
}

fn decision(why: &str) -> String {
    json!({
        "type": "DECISION", "timestamp": "2026-11-15T12:00:00Z", "actor": { "agent": "person", "id": "ann" }, "why": why,
    })
    .to_string()
}

/// A line with a right id, as an append would write it.
fn forged(event: &Value) -> String {
    let event: tgp::contract::ChronicleEvent = serde_json::from_value(event.clone()).unwrap();
    let id = event.compute_id().unwrap();
    let whole = tgp::contract::ChronicleEvent { event_id: Some(id), ..event };
    tgp::contract::canonical::to_string(&serde_json::to_value(whole).unwrap()).unwrap()
}

/// The kinds of what contradicts the audit.
fn kinds(project: &Project, arguments: &[&str], code: i32) -> Vec<String> {
    let all: Vec<&str> = ["--json", "chronicle", "verify"].iter().chain(arguments).copied().collect();
    let document = project.run(&all).expect_code(code).document();
    let problems = document["data"]["audit"]["problems"].as_array().unwrap().clone();
    problems.iter().map(|problem| problem["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn bug_every_change_of_a_chronicle_that_the_audit_contradicts_is_found() {
    let project = chronicled();
    let (whole, other) = (project.read(FILE), project.read(OTHER));
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 4, "{whole}");
    let text = |order: &[usize]| order.iter().map(|at| format!("{}\n", lines[*at])).collect::<String>();
    let mut edit: Value = serde_json::from_str(lines[2]).unwrap();
    edit.as_object_mut().unwrap().remove("eventId");
    edit["after"] = json!("0".repeat(64));
    let forged_edit = forged(&edit);
    edit["audit"]["session"] = json!("another");
    let forged_elsewhere = forged(&edit);
    let forged_decision = forged(&serde_json::from_str(&decision("prices are floats")).unwrap());
    let mut late: Value = serde_json::from_str(&decision("from the future")).unwrap();
    late["timestamp"] = json!("2099-01-01T00:00:00Z");
    let forged_alone = forged(&late);
    // Lines that say themselves that they are older than the audit.
    late["audit"] = json!({});
    let forged_without_time = forged(&late);
    late["audit"] = json!({ "time": 1 });
    let forged_with_time = forged(&late);
    // What the chronicle is then, that of the other file, and the kinds that are found.
    let cases: [(&str, String, String, &[&str]); 16] = [
        ("a line in the middle is deleted", text(&[0, 1, 3]), other.clone(), &["deleted"]),
        ("the first line is deleted", text(&[1, 2, 3]), other.clone(), &["deleted"]),
        ("the last line is deleted", text(&[0, 1, 2]), other.clone(), &["deleted"]),
        ("the decision is deleted", text(&[0, 2, 3]), other.clone(), &["deleted"]),
        ("two edits are swapped", text(&[0, 1, 3, 2]), other.clone(), &["order"]),
        ("the decision comes first", text(&[1, 0, 2, 3]), other.clone(), &["order"]),
        ("it is cut off at its beginning", String::new(), other.clone(), &["deleted"; 4]),
        ("an edit is forged", format!("{whole}{forged_edit}\n"), other.clone(), &["added"]),
        (
            "an edit of another session is forged",
            format!("{whole}{forged_elsewhere}\n"),
            other.clone(),
            &["added"],
        ),
        ("a decision is forged", format!("{whole}{forged_decision}\n"), other.clone(), &["added"]),
        (
            "a decision is replaced",
            format!("{}{forged_decision}\n{}", text(&[0]), text(&[2, 3])),
            other.clone(),
            &["added", "deleted"],
        ),
        (
            "a line is moved to another file",
            text(&[0, 1, 2]),
            format!("{other}{}\n", lines[3]),
            &["added", "deleted"],
        ),
        ("a file with one forged line", whole.clone(), format!("{forged_alone}\n{other}"), &["added"]),
        (
            "a forged line without a time",
            whole.clone(),
            format!("{forged_without_time}\n{other}"),
            &["added"],
        ),
        (
            "a forged line with a time before the audit",
            whole.clone(),
            format!("{forged_with_time}\n{other}"),
            &["added"],
        ),
        ("a line is there twice, as merges leave it", text(&[0, 1, 2, 3, 1]), other.clone(), &[]),
    ];
    for (case, text, other_text, expected) in cases {
        project.write(FILE, &text);
        project.write(OTHER, &other_text);
        let code = if expected.is_empty() { 0 } else { 4 };
        let mut found = kinds(&project, &[], code);
        found.sort();
        assert_eq!(found, expected, "{case}");
    }
    project.write(OTHER, &other);
    // The same of one chronicle, also where its file is gone.
    std::fs::remove_file(project.file(FILE)).unwrap();
    assert_eq!(kinds(&project, &["src/a.md"], 4), ["deleted"; 4]);
    assert_eq!(kinds(&project, &[], 4), ["deleted"; 4]);
    assert!(kinds(&project, &["src/b.md"], 0).is_empty());
    let shown = project.run(&["chronicle", "verify"]).expect_code(4).stdout;
    assert!(shown.contains("src/a.md.sage: the event ") && shown.contains("broken: 1 event"), "{shown}");
    project.write(FILE, &whole);
    assert!(kinds(&project, &[], 0).is_empty());
}

#[test]
fn what_the_audit_cannot_know_is_said() {
    let project = chronicled();
    git(&project, &["init", "--quiet"]);
    let whole = project.read(FILE);
    let forged_decision = forged(&serde_json::from_str(&decision("from a colleague")).unwrap());
    project.write(FILE, &format!("{whole}{forged_decision}\n"));
    assert_eq!(kinds(&project, &["src/a.md"], 4), ["added"]);
    // A line that came with git is from another machine, or from whoever may commit.
    git(&project, &["add", "--force", ".sage"]);
    commit(&project, "A colleague's decision");
    let shown = project.run(&["chronicle", "verify", "src/a.md"]).expect_code(0);
    assert!(shown.stderr.contains("1 event is in the last commit and not in this audit"), "{}", shown.stderr);
    // A clone has the chronicle and its own audit, which knows nothing of the events.
    let clone = Project::initialised();
    clone.write(FILE, &whole);
    let shown = clone.run(&["--json", "chronicle", "verify"]);
    let document = shown.document();
    assert_eq!(document["data"]["audit"]["problems"], json!([]), "{document}");
    assert_ne!(document["data"]["audit"]["unknown"], json!([]), "{document}");
}
