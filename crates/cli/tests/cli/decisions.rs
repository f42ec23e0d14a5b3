//! What a person decides leaves a record with the operating system's user, and does not hold without it.

use std::fs;

use nix::unistd::{User, geteuid};
use serde_json::{Value, json};

use crate::gates::audit;
use crate::project::{Project, Ran};

const CONFIG: &str = "export default { tdd: { mode: 'explore', command: 'true' } };\n";
const ASKS: &str =
    "version: 1\nrules:\n  - {id: asks, effect: ask, tools: [exec_sql], reason: rows are precious}\n";
const ALLOWS: &str =
    "version: 1\nrules:\n  - {id: allows, effect: allow, tools: [fs_list], reason: harmless}\n";

/// A project whose configuration, rules and calls wait for a person.
fn project() -> Project {
    let project = Project::initialised();
    project.write("tgp.config.ts", CONFIG);
    project.write("tgp.policy.yaml", ASKS);
    project.write(".tgp/policy/more.yaml", ALLOWS);
    fs::create_dir_all(project.path("home/.cursor")).unwrap();
    fs::write(project.path("home/.cursor/mcp.json"), "{}\n").unwrap();
    project.run(&["list"]).expect_code(0);
    project
}

/// Runs a command in an environment that claims to be of another user.
fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    command.env("USER", "mallory").env("LOGNAME", "mallory").env("SUDO_USER", "alice");
    project.finish(command)
}

fn entries(project: &Project, place: &[&str]) -> Vec<Value> {
    let tail = project.run(&[&["--json", "audit", "tail", "-n", "1000"], place].concat());
    if tail.code != Some(0) {
        return Vec::new();
    }
    let document: Value = serde_json::from_str(&tail.stdout).unwrap();
    document["data"]["entries"].as_array().unwrap().iter().map(|entry| entry["entry"].clone()).collect()
}

/// The name of the user of this process in the system's own list.
fn user() -> String {
    User::from_uid(geteuid()).unwrap().map_or_else(|| format!("uid {}", geteuid()), |user| user.name)
}

/// A call that waits for an approval, and the id of its question.
fn pending(project: &Project, sql: &str) -> String {
    let asked = project.run(&["--json", "call", "exec_sql", &json!({ "sql": sql }).to_string()]);
    let answer: Value = serde_json::from_str(&asked.stdout).unwrap_or_else(|_| panic!("{asked:?}"));
    let id = answer["error"]["details"]["needs_approval"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn bug_decisions_that_loosen_left_no_record_or_one_of_the_kernel() {
    let project = project();
    let id = pending(&project, "SELECT 1");
    pending(&project, "SELECT 2");
    let token = run(&project, &["token", "mint", "--all"]).expect_code(0).stdout.trim().to_owned();
    let table: [(&[&str], &str); 13] = [
        (&["trust", "--yes"], "trust_confirm"),
        (&["trust", "--revoke"], "trust_revoke"),
        (&["policy", "trust", "--yes"], "policy_trust"),
        (&["token", "mint", "--tools", "fs_read"], "token_mint"),
        (&["token", "revoke", &token], "token_revoke"),
        (&["state", "set", "halted"], "state_set"),
        (&["state", "set", "idle"], "state_set"),
        (&["approve", &id, "--deny", "--reason", "not today"], "approval_deny"),
        (&["approve", "--clear"], "approvals_clear"),
        (&["mcp", "install", "--host", "cursor", "--yes", "--", "--files"], "mcp_install"),
        (&["mcp", "uninstall", "--host", "cursor", "--yes"], "mcp_uninstall"),
        (&["guardian", "assert"], "guardian_assert"),
        (&["audit", "restart", "--reason", "a test", "--yes"], "audit_restart"),
    ];
    for (arguments, name) in table {
        let before = entries(&project, &[]).len();
        let ran = run(&project, arguments).expect_code(0);
        let now = entries(&project, &[]);
        let entry = now.iter().rev().find(|entry| entry["tool"] == *name);
        let entry = entry.unwrap_or_else(|| panic!("{arguments:?}: {ran:?}\n{now:#?}"));
        assert!(now.len() > before || name == "audit_restart", "{arguments:?}: {before} entries");
        assert_eq!(entry["actor"], json!({ "id": user(), "kind": "person" }), "{arguments:?}");
        let by = entry["arguments"].get("user").or_else(|| entry.get("user")).unwrap();
        assert_eq!(*by, json!({ "name": user(), "uid": geteuid().as_raw(), "sudoUser": "alice" }), "{entry}");
        let text = entry.to_string();
        assert!(!text.contains(&token) && !text.contains("mallory"), "{arguments:?}: {text}");
    }
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn what_was_confirmed_is_in_the_record_by_its_hash() {
    let project = project();
    let hash: Value = serde_json::from_str(&project.run(&["--json", "trust", "--print"]).stdout).unwrap();
    project.run(&["trust", "--yes"]).expect_code(0);
    let entry = entries(&project, &[]).pop().unwrap();
    assert_eq!(entry["arguments"]["hash"], hash["data"]["hash"], "{entry}");
    assert!(entry["arguments"]["fields"]["tdd.command"].is_string(), "{entry}");
    assert_eq!(entry["verdict"], "approved");
    // Without anything to confirm there is no decision to record.
    let before = entries(&project, &[]).len();
    project.run(&["trust", "--yes"]).expect_code(0);
    assert_eq!(entries(&project, &[]).len(), before);
}

/// Makes the audit of a project one that nothing can be added to.
fn break_audit(project: &Project) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(project.file(&format!(".tgp/.state/audit.sqlite{suffix}")));
    }
}

#[test]
fn bug_a_decision_held_although_it_could_not_be_recorded() {
    let project = project();
    let id = pending(&project, "SELECT 1");
    project.run(&["token", "mint", "--all"]).expect_code(0);
    break_audit(&project);
    let host = fs::read_to_string(project.path("home/.cursor/mcp.json")).unwrap();
    let loosening: [&[&str]; 5] = [
        &["trust", "--yes"],
        &["policy", "trust", "--yes"],
        &["token", "mint", "--all"],
        &["state", "set", "idle"],
        &["approve", "--clear"],
    ];
    for arguments in loosening {
        let ran = run(&project, arguments);
        assert_eq!(ran.code, Some(4), "{arguments:?}: {ran:?}");
        assert!(!ran.stdout.contains("tgp1."), "{ran:?}");
    }
    let listed = project.run(&["trust", "--list"]).expect_code(0);
    assert!(listed.stdout.is_empty(), "{listed:?}");
    assert!(project.run(&["approve"]).expect_code(0).stdout.contains(&id));
    assert_eq!(fs::read_to_string(project.path("home/.cursor/mcp.json")).unwrap(), host);
    // What tightens holds, with a warning.
    let denied = run(&project, &["approve", &id, "--deny"]).expect_code(0);
    assert!(denied.stderr.contains("not in the audit"), "{denied:?}");
    assert!(project.run(&["approve"]).expect_code(0).stdout.contains("denied"));
}

#[test]
fn bug_a_revocation_needed_an_intact_audit() {
    let project = project();
    project.run(&["trust", "--yes"]).expect_code(0);
    break_audit(&project);
    let revoked = run(&project, &["trust", "--revoke"]).expect_code(0);
    assert!(revoked.stdout.contains("revoked") && revoked.stderr.contains("not in the audit"), "{revoked:?}");
    assert!(project.run(&["trust", "--list"]).expect_code(0).stdout.is_empty());
}

#[test]
fn bug_an_intact_audit_was_restarted_without_a_question_or_a_name() {
    let project = project();
    project.run(&["state", "set", "idle"]).expect_code(0);
    let head: Value = serde_json::from_str(&project.run(&["--json", "audit", "verify"]).stdout).unwrap();
    let asked = project.run(&["audit", "restart", "--reason", "copied machine"]).expect_code(3);
    assert!(asked.stderr.contains("intact") && asked.stderr.contains("--yes"), "{asked:?}");
    assert_eq!(entries(&project, &["--verdict", "restarted"]).len(), 0);
    project.run(&["audit", "restart", "--reason", "", "--yes"]).expect_code(2);
    project.run(&["audit", "restart", "--reason", "copied machine", "--yes"]).expect_code(0);
    let first = entries(&project, &[]).swap_remove(0);
    assert_eq!(first["reason"], "copied machine");
    assert_eq!(first["previousChain"]["stored"]["hash"], head["data"]["hash"], "{first}");
    let line = project.run(&["audit", "tail", "-n", "1"]).expect_code(0).stdout;
    let short = &head["data"]["hash"].as_str().unwrap()[..16];
    for word in ["copied machine", short, &format!("by {}", user())] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(project.all_files().iter().any(|name| name.contains("audit.sqlite.ended-")));
}

#[test]
fn bug_lines_of_the_audit_named_no_target_and_called_a_failure_approved() {
    let project = project();
    project.write(
        ".tgp/tools/fails.ts",
        "/** Fails. */\nexport default (): number => { throw new Error('x'); };\n",
    );
    project.run(&["exec", "tools/fails.ts"]).expect_code(1);
    let line = project.run(&["audit", "tail", "-n", "1"]).expect_code(0).stdout;
    assert!(line.contains("failed exec_tool tools/fails.ts") && line.contains("ERUNTIME"), "{line}");
    project.run(&["sql", "SELECT 1"]);
    let line = project.run(&["audit", "tail", "-n", "1"]).expect_code(0).stdout;
    assert!(line.contains("exec_sql select"), "{line}");
}

#[test]
fn bug_tokens_had_no_scope_no_end_and_tools_that_are_not_there() {
    let project = project();
    let bare = project.run(&["token", "mint"]).expect_code(2);
    assert!(bare.stderr.contains("--all") && bare.stdout.is_empty(), "{bare:?}");
    project.run(&["token", "mint", "--note", "x"]).expect_code(2);
    project.run(&["token", "mint", "--all", "--tools", "fs_read"]).expect_code(2);
    let typo = project.run(&["token", "mint", "--tools", "fs_raed"]).expect_code(2);
    assert!(typo.stderr.contains("fs_read") && typo.stdout.is_empty(), "{typo:?}");
    for scope in ["fs_read", "Read", "fs_*", "effect:read", "!exec_sql,fs_*"] {
        let minted = project.run(&["token", "mint", "--tools", scope]);
        if minted.code == Some(0) {
            assert!(minted.stderr.contains("it ends at"), "{scope}: {minted:?}");
        } else {
            assert!(scope.contains('!'), "{scope}: {minted:?}");
        }
    }
    let forever = project.run(&["token", "mint", "--all", "--no-expiry"]).expect_code(0);
    assert!(forever.stderr.contains("no end"), "{forever:?}");
    let token = project.run(&["token", "mint", "--all"]).expect_code(0).stdout.trim().to_owned();
    let child = project.run(&["token", "attenuate", &token, "--calls", "3"]).expect_code(0).stdout;
    let checked = project.run(&["token", "check", &token]).expect_code(0);
    assert!(checked.stdout.contains("it ends at"), "{checked:?}");
    project.run(&["token", "revoke", &token]).expect_code(0);
    for ended in [token.as_str(), child.trim(), forever.stdout.trim()] {
        let is_other = ended == forever.stdout.trim();
        let checked = project.run(&["token", "check", ended]);
        assert_eq!(checked.code == Some(0), is_other, "{checked:?}");
        let call = project.run(&["call", "fs_exists", r#"{"path": "x"}"#, "--token", ended]);
        assert_eq!(call.code == Some(0), is_other, "{call:?}");
    }
}

#[test]
fn bug_doctor_called_a_changed_audit_verified() {
    let project = project();
    for _ in 0..3 {
        project.run(&["list"]).expect_code(0);
    }
    let sound = project.run(&["doctor"]);
    let row = sound.stdout.lines().find(|line| line.contains("audit")).unwrap_or_default().to_owned();
    assert!(row.contains("ok") && row.contains("from the first"), "{sound:?}");
    let sql = "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'list_files', 'list_filed') AS BLOB) WHERE sequence = 1";
    assert_eq!(audit(&project).execute(sql, []).unwrap(), 1);
    project.run(&["audit", "verify"]).expect_code(4);
    let doctor = project.run(&["doctor"]);
    assert_ne!(doctor.code, Some(0), "{doctor:?}");
    assert!(doctor.stdout.contains("entry 1"), "{doctor:?}");
}

#[test]
fn decisions_outside_of_a_project_are_in_the_users_own_chain() {
    let project = Project::empty();
    let nothing = project.run(&["audit", "verify", "--user"]);
    assert_ne!(nothing.code, Some(0), "{nothing:?}");
    project.run(&["approve", "--clear"]).expect_code(0);
    let entry = entries(&project, &["--user"]).pop().unwrap();
    assert_eq!((&entry["tool"], &entry["actor"]["id"]), (&json!("approvals_clear"), &json!(user())));
    let verified = project.run(&["audit", "verify", "--user"]).expect_code(0);
    assert!(verified.stdout.contains("intact: 1 entry"), "{verified:?}");
    assert!(!project.file(".tgp").exists());
    // A chain that was cut refuses what comes next.
    fs::remove_file(project.path("home/state/audit.sqlite")).unwrap();
    let refused = project.run(&["approve", "--clear"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    project.run(&["audit", "restart", "--user", "--reason", "a test has removed it"]).expect_code(0);
    project.run(&["approve", "--clear"]).expect_code(0);
}
