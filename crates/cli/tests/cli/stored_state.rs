//! State that earlier versions stored is opened, verified, resumed and listed by this one.
//!
//! `tests/stored_state/VERSION.tar.gz` holds a project as that version left it, made once by `make.sh` beside it: audit,
//! sessions, AQL runs, tokens, chronicles, graph, valve journal, rules and configuration. An archive is never made again.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::project::Project;

const FINISHED: &str = "20261115-234811-457f";
const LIMITED: &str = "20261115-234811-f17e";

/// Every archive; a version that is released adds one.
fn archives() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored_state");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let archives: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
    assert!(!archives.is_empty(), "there is no stored state to open");
    archives
}

/// A project with the state of an archive.
fn unpack(archive: &Path) -> Project {
    let project = Project::empty();
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .args(["--strip-components=1", "-C"])
        .arg(project.path("here"))
        .status()
        .unwrap();
    assert!(status.success(), "{} cannot be unpacked", archive.display());
    project
}

fn each(check: impl Fn(&Project)) {
    for archive in archives() {
        check(&unpack(&archive));
    }
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_stored_audit_is_verified_listed_and_continued() {
    each(|project| {
        let ran = project.run(&["audit", "verify"]).expect_code(0);
        assert!(ran.stdout.contains("21 entries"), "{}", ran.stdout);
        let listed = project.run(&["audit", "tail", "-n", "100", "--json"]).expect_code(0);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(listed["data"]["entries"].as_array().unwrap().len(), 21);
        project.run(&["call", "fs_read", r#"{"path": "notes.md"}"#]).expect_code(0);
        let ran = project.run(&["audit", "verify"]).expect_code(0);
        assert!(ran.stdout.contains("22 entries"), "{}", ran.stdout);
        // The chain continues in the present format, after entries of the first one.
        let listed = project.run(&["audit", "tail", "-n", "100", "--json"]).expect_code(0);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let entries = listed["data"]["entries"].as_array().unwrap();
        let formats: Vec<u64> =
            entries.iter().map(|entry| entry["entry"]["version"].as_u64().unwrap()).collect();
        assert_eq!((&formats[..21], formats[21]), (&[1; 21][..], 2));
        assert_eq!(entries[21]["entry"]["execution"], "done");
    });
}

#[test]
fn stored_sessions_are_listed_verified_and_resumed() {
    each(|project| {
        let list = project.run(&["sessions", "list"]).expect_code(0).stdout;
        for id in [FINISHED, LIMITED] {
            assert!(list.contains(id), "{list}");
        }
        let exported = project.run(&["sessions", "export", FINISHED]).expect_code(0).stdout;
        assert!(exported.contains("It says stored."), "{exported}");
        // A later version asks the model in other words, which is said and is not a failure.
        let replayed = project.run(&["replay", FINISHED]).expect_code(0);
        assert!(
            replayed.stdout.contains("it is the transcript whose hash the audit has kept"),
            "{replayed:?}"
        );
        assert!(replayed.stderr.contains("recorded with prompt version 1"), "{replayed:?}");
        let document = project.run(&["replay", FINISHED, "--json"]).expect_code(0).stdout;
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["data"]["promptVersion"]["recorded"], 1, "{document}");
        let resumed = project.run(&["run", "--resume", LIMITED, "--max-steps", "5"]).expect_code(0);
        assert!(resumed.stdout.contains("Resumed to the end."), "{}", resumed.stdout);
    });
}

#[test]
fn stored_aql_runs_are_listed_and_a_killed_one_is_resumed() {
    each(|project| {
        let list = project.run(&["aql", "runs"]).expect_code(0).stdout;
        assert!(list.contains("killed") && list.contains("done"), "{list}");
        project.write("slow.json", r#"[[{"type": "text", "value": "a note"}]]"#);
        let resumed = project.run(&["aql", "run", "--resume", "last"]).expect_code(0);
        assert_eq!(resumed.stdout.trim(), "a note");
        assert!(resumed.stderr.contains("file tool (done before)"), "{}", resumed.stderr);
    });
}

#[test]
fn stored_tokens_still_open_what_they_did_and_nothing_more() {
    each(|project| {
        let (token, narrow) = (project.read("token.txt"), project.read("narrow.txt"));
        for token in [token.trim(), narrow.trim()] {
            project.run(&["token", "check", token]).expect_code(0);
            project.run(&["call", "fs_read", r#"{"path": "notes.md"}"#, "--token", token]).expect_code(0);
        }
        let denied = project.run(&["call", "fs_list", "{}", "--token", narrow.trim()]).expect_code(3);
        assert!(denied.stdout.contains("EPOLICY"), "{}", denied.stdout);
    });
}

#[test]
fn stored_tools_rows_rules_and_configuration_still_work() {
    each(|project| {
        let ran = project.run(&["exec", "tools/math/double.ts", "--args", r#"{"n": 21}"#]).expect_code(0);
        assert_eq!(ran.stdout.trim(), "42");
        assert!(project.run(&["list"]).expect_code(0).stdout.contains("tools/math/double.ts"));
        let rows = project.run(&["sql", "SELECT page FROM visits"]).expect_code(0);
        assert!(rows.stdout.contains("/start"), "{}", rows.stdout);
        let denied = project.run(&["sql", "DROP TABLE visits"]).expect_code(3);
        assert!(denied.stderr.contains("no-drop"), "{}", denied.stderr);
        project.run(&["policy", "test"]).expect_code(0);
        project.run(&["state", "show"]).expect_code(0);
    });
}

/// The chronicles of version 0.1.0 are beside the sources: this version says what to do, and works on them afterwards.
#[test]
fn a_stored_chronicle_is_migrated_by_a_person_and_then_read_and_continued() {
    each(|project| {
        let before = project.run(&["chronicle", "verify", "--json"]).expect_code(0).document();
        assert_eq!(before["data"]["unmigrated"], serde_json::json!(["src/price.ts.sage"]), "{before}");
        let told = project.run(&["chronicle", "verify"]).expect_code(0);
        assert!(told.stderr.contains("tgp chronicle migrate"), "{}", told.stderr);
        for arguments in [["chronicle", "read", "src/price.ts"], ["chronicle", "verify", "src/price.ts"]] {
            let refused = project.run(&arguments).expect_code(1);
            assert!(refused.stderr.contains("tgp chronicle migrate"), "{}", refused.stderr);
        }
        let old = project.read("src/price.ts.sage");
        let denied =
            project.run(&["call", "fs_delete", r#"{"path": "src/price.ts.sage"}"#, "--yes"]).expect_code(3);
        assert!(denied.stdout.contains("builtin/chronicle"), "{}", denied.stdout);
        let tried = project.run(&["chronicle", "migrate", "--dry-run", "--json"]).expect_code(0).document();
        assert_eq!(project.read("src/price.ts.sage"), old);
        let moved = project.run(&["chronicle", "migrate", "--json"]).expect_code(0).document();
        assert_eq!(moved["data"]["moved"], tried["data"]["moved"]);
        assert_eq!(project.read(".sage/files/src/price.ts.sage"), old);
        let again = project.run(&["chronicle", "migrate", "--json"]).expect_code(0).document();
        assert_eq!(again["data"]["moved"], serde_json::json!([]));
        let events = json_lines(&project.run(&["chronicle", "read", "src/price.ts"]).expect_code(0).stdout);
        let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["DECISION", "VALVE_PERSONA_TRIGGER"]);
        let ran = project.run(&["chronicle", "verify"]).expect_code(0);
        assert!(ran.stdout.contains("3 events in 2 chronicles"), "{}", ran.stdout);
        // The valve that had reported it continues, and does not report the move.
        project.write("src/price.ts", "export const price = 5;\n");
        let scanned = project.run(&["valve", "scan"]).expect_code(0);
        let printed = format!("{}{}", scanned.stdout, scanned.stderr);
        assert!(printed.contains("guard changed src/price.ts") && !printed.contains(".sage"), "{printed}");
        let ran = project.run(&["chronicle", "verify"]).expect_code(0);
        assert!(ran.stdout.contains("4 events in 2 chronicles"), "{}", ran.stdout);
    });
}

/// A line of an old chronicle was changed by hand: `verify` still names the file, `migrate` says which line is wrong and
/// leaves the file as it is, and no tool may remove the evidence.
#[test]
fn a_damaged_old_chronicle_is_reported_and_stays_where_it_is() {
    each(|project| {
        let old = project.read("src/price.ts.sage");
        let damaged = {
            let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
            let last = lines.last_mut().unwrap();
            *last = last.replacen("price", "prize", 1);
            lines.join("\n") + "\n"
        };
        assert_ne!(damaged, old);
        project.write("src/price.ts.sage", &damaged);
        let seen = project.run(&["chronicle", "verify", "--json"]).expect_code(0).document();
        assert_eq!(seen["data"]["unmigrated"], serde_json::json!(["src/price.ts.sage"]), "{seen}");
        let refused = project.run(&["chronicle", "migrate", "--json"]).expect_code(4).document();
        let one = &refused["data"]["refused"][0];
        assert_eq!(one["path"], "src/price.ts.sage", "{refused}");
        assert!(one["reason"].as_str().unwrap().contains("line 2"), "{refused}");
        assert_eq!(project.read("src/price.ts.sage"), damaged);
        assert!(!project.file(".sage/files/src/price.ts.sage").exists());
        project.run(&["call", "fs_delete", r#"{"path": "src/price.ts.sage"}"#, "--yes"]).expect_code(3);
        // A user who repairs it can migrate it.
        project.write("src/price.ts.sage", &old);
        project.run(&["chronicle", "migrate"]).expect_code(0);
        assert_eq!(project.read(".sage/files/src/price.ts.sage"), old);
    });
}

#[test]
fn a_stored_chronicle_beside_its_source_is_read_where_the_configuration_says_so() {
    each(|project| {
        let config = project.read("tgp.config.ts");
        let changed =
            config.replacen("defineTGPConfig({", "defineTGPConfig({\n  chronicle: { layout: 'beside' },", 1);
        assert_ne!(changed, config, "{config}");
        project.write("tgp.config.ts", &changed);
        let ran = project.run(&["chronicle", "verify"]).expect_code(0);
        assert!(ran.stdout.contains("3 events in 2 chronicles"), "{}", ran.stdout);
        assert_eq!(
            json_lines(&project.run(&["chronicle", "read", "src/price.ts"]).expect_code(0).stdout).len(),
            2
        );
    });
}

#[test]
fn a_stored_graph_and_valve_journal_are_read_and_continued() {
    each(|project| {
        project.run(&["graph", "ingest"]).expect_code(0);
        let query = "MATCH (f:File)-[:IMPORTS]->(:File {path: 'src/price.ts'}) RETURN f.path";
        let ran = project.run(&["graph", "query", query]).expect_code(0);
        assert!(ran.stdout.contains("src/app.ts"), "{}", ran.stdout);
        let status = project.run(&["valve", "status"]).expect_code(0).stdout;
        assert!(status.contains("guard"), "{status}");
        project.write("src/price.ts", "export const price = 5;\n");
        let scanned = project.run(&["valve", "scan"]).expect_code(0);
        let printed = format!("{}{}", scanned.stdout, scanned.stderr);
        assert!(printed.contains("guard changed src/price.ts"), "{printed}");
    });
}
