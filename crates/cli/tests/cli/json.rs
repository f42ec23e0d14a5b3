//! `--json`: exactly one document on standard output, and nothing else there, whatever happens.

use crate::project::Project;

/// Commands with their exit codes. Each is run with `--json` before its words and again after them.
const COMMANDS: &[(i32, &[&str])] = &[
    (0, &["init"]),
    (0, &["tools"]),
    (0, &["tools", "--format", "openai"]),
    (0, &["list"]),
    (0, &["read", "tools/math/fib.ts"]),
    (0, &["write", "tools/a.ts", "--content", "1", "--dry-run"]),
    (0, &["write", "tools/a.ts", "--content", "1"]),
    (2, &["patch", "tools/a.ts", "--search", "absent", "--replace", "2"]),
    (0, &["patch", "tools/a.ts", "--search", "1", "--replace", "1", "--dry-run"]),
    (0, &["check", "tools/math/fib.ts"]),
    (1, &["check"]),
    (1, &["check", "tools/rules/syntax.ts"]),
    (0, &["exec", "tools/math/fib.ts", "--args", "{\"n\": 3}", "--stats"]),
    (0, &["exec", "tools/escapes.ts"]),
    (1, &["exec", "tools/throws.ts"]),
    (1, &["exec", "tools/rules/syntax.ts"]),
    (1, &["exec", "tools/freeze.ts", "--args", "{\"value\": 1}"]),
    (1, &["exec", "tools/nothing.ts"]),
    (2, &["exec", "tools/math/fib.ts", "--args", "{"]),
    (0, &["call", "list_files", "{}"]),
    (3, &["call", "write_file", "{\"path\": \"tools/b.ts\", \"content\": \"\"}"]),
    (2, &["call", "write_file", "{"]),
    (1, &["call", "nothing"]),
    (0, &["doctor"]),
    (0, &["trust"]),
    (0, &["trust", "--print"]),
    (0, &["trust", "--list"]),
    (0, &["trust", "--revoke"]),
    (0, &["policy", "trust"]),
    (0, &["completions", "bash"]),
    (2, &["exec"]),
    (2, &["nothing"]),
    (2, &["list", "--nothing"]),
    (2, &["-C", "nowhere", "list"]),
    (2, &["-C", "nowhere", "doctor"]),
    (2, &["-C", "nowhere", "init"]),
    (2, &["--config", "nothing.ts", "list"]),
    (3, &["read", "../tgp.config.ts"]),
];

#[test]
fn json_is_one_document_whatever_happens() {
    let project = Project::with_fixtures();
    for (code, words) in COMMANDS {
        let before: Vec<&str> = ["--json"].into_iter().chain(words.iter().copied()).collect();
        let after: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        for arguments in [before, after] {
            let ran = project.run(&arguments);
            assert_eq!(ran.code, Some(*code), "{arguments:?}: {ran:#?}");
            let document = ran.document();
            let fields: Vec<&String> = document.as_object().unwrap().keys().collect();
            if document["ok"] == true {
                assert_eq!(fields, ["ok", "data"], "{arguments:?}");
            } else {
                assert_eq!(fields, ["ok", "error"], "{arguments:?}");
                assert!(document["error"]["code"].as_str().unwrap().starts_with('E'), "{document}");
                assert!(!document["error"]["message"].as_str().unwrap().is_empty(), "{document}");
                assert_ne!(*code, 0, "{arguments:?}");
            }
            assert!(!ran.stderr.contains("error"), "an error is told once: {arguments:?}: {ran:#?}");
        }
    }
}

#[test]
fn the_shape_of_a_check_does_not_depend_on_what_is_there() {
    let project = Project::initialised();
    assert_eq!(
        project.run(&["check", "--json"]).document()["data"],
        serde_json::json!({ "valid": true, "tools": [] })
    );
    project.write(".tgp/tools/a.ts", "/** A. */\nexport default (args: { n: number }): number => args.n;\n");
    let one = project.run(&["check", "--json"]).document();
    assert_eq!(one["data"]["tools"][0]["path"], "tools/a.ts", "{one}");
    let named = project.run(&["check", "tools/a.ts", "--json"]).document();
    assert_eq!(named["data"], one["data"]["tools"][0]);
}

#[test]
fn bug_an_interrupted_command_printed_no_document() {
    let project = Project::initialised();
    project.write(".tgp/tools/a.ts", "await new Promise((done) => setTimeout(done, 60000))");
    let call = r#"{"path": "tools/a.ts"}"#;
    for (signal, name, code, words) in [
        (libc::SIGTERM, "SIGTERM", 143, &["--json", "exec", "tools/a.ts"][..]),
        (libc::SIGINT, "SIGINT", 130, &["--json", "exec", "tools/a.ts"][..]),
        // It answers programs, and so in JSON whatever is asked for.
        (libc::SIGTERM, "SIGTERM", 143, &["call", "exec_tool", call, "--yes"][..]),
    ] {
        let mut command = project.command(words);
        let child = crate::processes::start_session(
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()),
        );
        // A worker is started after signals are listened to.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while crate::processes::descendants(child.id()).is_empty() {
            assert!(std::time::Instant::now() < until, "no worker was started");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        crate::processes::send(child.id(), signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&answer["ok"], &answer["error"]["details"]["signal"]),
            (&false.into(), &name.into()),
            "{text}"
        );
        assert!(answer["error"]["message"].as_str().unwrap().contains(name), "{text}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
