//! `tgp mcp install` and `uninstall` in a home directory with the configuration of hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::project::Project;

const CURSOR: &str =
    "{\n  // My servers.\n  \"mcpServers\": {\n    \"other\": { \"command\": \"other\" }\n  }\n}\n";
const CODEX: &str = "# Mine.\nmodel = \"gpt\" # the usual one\n";

fn with_hosts() -> Project {
    let project = Project::initialised();
    for (file, text) in [(".cursor/mcp.json", CURSOR), (".codex/config.toml", CODEX)] {
        let file = project.path("home").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    }
    project
}

#[test]
fn hosts_are_found_and_changed_and_changed_back() {
    let project = with_hosts();
    let home = |name: &str| project.path("home").join(name);
    let read = |name: &str| fs::read_to_string(home(name)).unwrap();
    let ran = project.run(&["mcp", "install", "--yes", "--", "--files"]).expect_code(0);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("+[mcp_servers.tgp]") && ran.stderr.contains("+    \"tgp\": {"),
        "{}",
        ran.stderr
    );
    let cursor = read(".cursor/mcp.json");
    assert!(cursor.contains("// My servers.") && cursor.contains("\"--files\""), "{cursor}");
    let here = project.path("here").canonicalize().unwrap();
    assert!(cursor.contains(here.to_str().unwrap()), "{cursor}");
    assert!(read(".codex/config.toml").starts_with(CODEX));
    assert_eq!(fs::metadata(home(".cursor/mcp.json")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(read(".cursor/mcp.json.tgp-backup"), CURSOR);

    let again = project.run(&["mcp", "install", "--yes", "--json", "--", "--files"]).expect_code(0);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["data"]["hosts"][0]["state"], "unchanged", "{again}");

    project.run(&["mcp", "uninstall", "--yes"]).expect_code(0);
    assert_eq!((read(".cursor/mcp.json"), read(".codex/config.toml")), (CURSOR.to_owned(), CODEX.to_owned()));
    assert!(!home(".cursor/mcp.json.tgp-backup").exists());
}

#[test]
fn what_a_person_changed_since_the_installation_stays() {
    let project = with_hosts();
    let file = project.path("home/.cursor/mcp.json");
    project.run(&["mcp", "install", "--host", "cursor", "--yes"]).expect_code(0);
    let edited = fs::read_to_string(&file).unwrap().replace("\"other\" }", "\"newer\" }");
    fs::write(&file, &edited).unwrap();
    project.run(&["mcp", "uninstall", "--host", "cursor", "--yes"]).expect_code(0);
    let left = fs::read_to_string(&file).unwrap();
    assert!(left.contains("newer") && left.contains("// My servers.") && !left.contains("\"tgp\""), "{left}");
}

#[test]
fn nothing_is_written_without_a_confirmation() {
    let project = with_hosts();
    let ran = project.run(&["mcp", "install", "--host", "cursor"]).expect_code(3);
    assert!(ran.stderr.contains("EAPPROVAL") && ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(project.path("home/.cursor/mcp.json")).unwrap(), CURSOR);
    fs::write(project.path("home/.cursor/mcp.json"), "{ \"mcpServers\": [").unwrap();
    let ran = project.run(&["mcp", "install", "--host", "cursor", "--yes"]).expect_code(2);
    assert!(ran.stderr.contains("ECONFIG"), "{}", ran.stderr);
    let ran = Project::initialised();
    let ran = ran.run(&["mcp", "install", "--yes"]).expect_code(1);
    assert!(ran.stderr.contains("claude, codex, cursor, vscode, zed, gemini"), "{}", ran.stderr);
}

#[test]
fn bug_a_server_was_installed_that_could_not_start() {
    let project = with_hosts();
    let unchanged = || {
        let text = fs::read_to_string(project.path("home/.cursor/mcp.json")).unwrap();
        assert_eq!(text, CURSOR);
    };
    for (options, words) in [
        (&["--file"][..], "--file"),
        (&["--mode", "direct"], "at least one tool"),
        (&["--only", "exec_sql"], "--mode direct"),
        (&["--mode", "direct", "--only", "exec_sqk"], "exec_sql"),
        (&["--http", "7420"], "--http"),
        (&["--patience", "0"], "--patience"),
    ] {
        let all: Vec<&str> =
            ["mcp", "install", "--yes", "--"].into_iter().chain(options.iter().copied()).collect();
        let ran = project.run(&all).expect_code(2);
        assert!(ran.stderr.contains("EVALIDATION") && ran.stderr.contains(words), "{options:?}: {ran:?}");
        unchanged();
    }
    // In a folder outside of any project.
    let folder = project.path("tmp").display().to_string();
    let ran = project.run(&["-C", &folder, "mcp", "install", "--yes"]).expect_code(2);
    assert!(ran.stderr.contains("ECONFIG") && ran.stderr.contains("tgp init"), "{ran:?}");
    unchanged();
}

#[test]
fn the_files_of_a_project_name_no_folder_of_this_machine() {
    let project = Project::initialised();
    for host in ["claude", "codex", "cursor", "vscode", "zed", "gemini"] {
        project.run(&["mcp", "install", "--host", host, "--project", "--yes"]).expect_code(0);
    }
    let here = project.path("here").canonicalize().unwrap();
    for file in
        [".mcp.json", ".codex/config.toml", ".cursor/mcp.json", ".vscode/mcp.json", ".zed/settings.json"]
    {
        let text = project.read(file);
        assert!(text.contains("tgp") && !text.contains(here.to_str().unwrap()), "{file}: {text}");
    }
    let ran = project.run(&["mcp", "uninstall", "--host", "claude", "--project", "--yes"]).expect_code(0);
    assert!(!project.file(".mcp.json").exists(), "{}", ran.stdout);
}
