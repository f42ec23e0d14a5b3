//! What a log holds, where it goes, and what is never in it; and the archive for bug reports.

use std::io::Read;

use serde_json::{Value, json};

use crate::project::Project;

const SECRET: &str = "hunter2-correct-horse-battery";

fn lines(project: &Project, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(project.path(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn nothing_is_logged_unless_somebody_asks() {
    let project = Project::initialised();
    let quiet = project.run(&["call", "list_files", "{}"]).expect_code(0);
    assert_eq!(quiet.stderr, "");
    let logged = project.command(&["call", "list_files", "{}"]).env("TGP_LOG", "debug").output().unwrap();
    assert_eq!(
        String::from_utf8(logged.stdout).unwrap(),
        quiet.stdout,
        "standard output is for the answer alone"
    );
    assert!(String::from_utf8(logged.stderr).unwrap().contains("router: ended"));
}

#[test]
fn every_call_has_one_span_with_the_number_of_its_audit_entry() {
    let project = Project::with_fixtures();
    project.explore();
    let log = project.path("home/log.jsonl").display().to_string();
    let tool = "/** Writes. */\nexport default async () => { await tgp.exec_sql('CREATE TABLE t (a)'); return 1; };\n";
    project.run(&["write", "tools/x.ts", "--content", tool]).expect_code(0);
    project.run(&["--log", &log, "exec", "tools/x.ts"]).expect_code(0);
    let lines = lines(&project, "home/log.jsonl");
    let targets: std::collections::BTreeSet<&str> =
        lines.iter().filter_map(|line| line["target"].as_str()).collect();
    for part in ["kernel", "router", "gates", "audit", "worker", "sql"] {
        assert!(targets.contains(part), "{part}: {targets:?}");
    }
    let audit = project.run(&["audit", "export"]).expect_code(0).stdout;
    let entries: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let recorded: Vec<&Value> = lines.iter().filter(|line| line["target"] == "audit").collect();
    let calls = ["exec_tool", "exec_sql"];
    assert_eq!(recorded.len(), calls.len(), "{recorded:#?}");
    for line in recorded {
        // The innermost span is the call's own; a call that a tool makes is inside the tool's.
        let span = line["spans"].as_array().unwrap().last().unwrap();
        let entry = entries.iter().find(|entry| entry["body"]["sequence"] == span["seq"]);
        assert_eq!(entry.unwrap_or_else(|| panic!("{span}"))["body"]["tool"], span["tool"]);
    }
    for tool in calls {
        let ended = lines.iter().filter(|line| {
            line["message"] == "ended" && line["spans"].as_array().unwrap().last().unwrap()["tool"] == tool
        });
        assert_eq!(ended.count(), 1, "{tool}");
    }
}

#[test]
fn secrets_and_forged_lines_do_not_get_into_a_log() {
    let project = Project::initialised();
    project.write(
        "tgp.config.ts",
        "export default { tdd: { mode: 'explore' }, audit: { redact: { environment: ['DEPLOY_WORD'] } } };\n",
    );
    project.trust();
    let log = project.path("home/log.txt").display().to_string();
    let run = |arguments: &[&str]| {
        let mut command = project.command(&[&["--log", &log], arguments].concat());
        command.env("DEPLOY_WORD", SECRET).env("TGP_LOG", "trace").output().unwrap()
    };
    run(&["sql", &format!("SELECT '{SECRET}' AS a, 'ghp_0123456789abcdefghijklmnopqrstuvwxyz' AS b")]);
    let forged = "nothing\n2026-01-01T00:00:00Z  INFO router: ended verdict=Allowed\u{1b}[2J";
    run(&["call", forged, "{}"]);
    run(&["call", "read_file", &json!({ "path": format!("x\n2026 INFO {SECRET}") }).to_string()]);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("[redacted]"), "{text}");
    for hidden in [SECRET, "ghp_0123456789", "\u{1b}"] {
        assert!(!text.contains(hidden), "{hidden:?} in {text}");
    }
    assert!(
        !text.lines().any(|line| line.starts_with("2026-01-01") || line.starts_with("2026 INFO")),
        "{text}"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&log).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_log_that_cannot_be_kept_is_said_before_anything_runs() {
    let project = Project::initialised();
    for (wanted, says) in [("ruoter=debug", "ruoter"), ("router=loud", "levels are"), ("loud", "levels are")]
    {
        let output = project
            .command(&["write", "tools/a.ts", "--content", "1"])
            .env("TGP_LOG", wanted)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{wanted}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(says), "{wanted}");
    }
    let ran = project.run(&["--log", "missing/folder/log.txt", "write", "tools/a.ts", "--content", "1"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("missing/folder/log.txt"), "{}", ran.stderr);
    assert!(!project.path("here/.tgp/tools/a.ts").exists());
}

#[test]
fn a_bundle_holds_what_a_report_needs_and_no_contents() {
    let project = Project::initialised();
    project.write(
        "tgp.config.ts",
        &format!("// password: '{SECRET}'\nexport default {{ tdd: {{ mode: 'explore' }} }};\n"),
    );
    project.trust();
    let content =
        json!({ "path": "src/private.ts", "content": "export const family = 'ours alone';" }).to_string();
    project.run(&["call", "fs_write", &content, "--yes"]).expect_code(0);
    project.run(&["call", "read_file", r#"{"path": "tools/gone.ts"}"#]);
    project.run(&["call", "no_such_tool", "{}"]);
    let log = project.path("home/log.txt").display().to_string();
    project.run(&["--log", &log, "list"]).expect_code(0);
    let bundle = project.path("home/report.tar.gz").display().to_string();
    let arguments = ["doctor", "--bundle", &bundle, "--with-log", &log];
    let said = project.run(&arguments);
    assert!(said.stdout.contains("README.txt"), "{said:?}");
    let mut found = std::collections::BTreeMap::new();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(&bundle).unwrap()));
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        found.insert(name, text);
    }
    let names: Vec<&str> = found.keys().map(|name| name.strip_prefix("tgp-bundle/").unwrap()).collect();
    assert_eq!(names, ["README.txt", "audit.jsonl", "doctor.json", "log.txt", "system.txt"]);
    let audit = &found["tgp-bundle/audit.jsonl"];
    assert!(
        audit.contains("fs_write") && audit.contains("ENOTFOUND") && audit.contains("verdicts"),
        "{audit}"
    );
    for (name, text) in &found {
        for hidden in [SECRET, "ours alone", "src/private.ts", "tools/gone.ts", "no_such_tool"] {
            assert!(!text.contains(hidden), "{hidden} in {name}: {text}");
        }
    }
    // One that is there is not overwritten.
    let again = project.run(&arguments);
    assert_ne!(again.code, Some(0));
    assert!(again.stderr.contains("ECONFLICT"), "{}", again.stderr);
}

#[test]
fn bug_secrets_that_json_escapes_were_in_json_logs() {
    let project = Project::initialised();
    let secret = "Zq\"w\\9Kp!vN-long";
    project.write(
        "tgp.config.ts",
        "export default { tdd: { mode: 'explore' }, audit: { redact: { environment: ['ODD'] } } };\n",
    );
    project.trust();
    let log = project.path("home/log.jsonl").display().to_string();
    let run = |sql: &str| {
        let mut command = project.command(&["--log", &log, "sql", sql]);
        command.env("ODD", secret).env("MYKEY", "x").env("TGP_LOG", "trace").output().unwrap()
    };
    run(&format!("select '{secret}'"));
    run("select 'password=\"hunter2secret\"'");
    run("select 'a\u{202e}b'");
    // A secret that a cut would halve: the event is left out as a whole.
    run(&format!("select 1 -- {} {secret}", "a".repeat(100_000)));
    let text = std::fs::read_to_string(&log).unwrap();
    for line in lines(&project, "home/log.jsonl") {
        let line = line.to_string();
        for hidden in ["9Kp!vN", "hunter2secret"] {
            assert!(!line.contains(hidden), "{hidden}: {line}");
        }
    }
    assert!(text.contains("[redacted]") && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn secrets_of_addresses_and_of_providers_are_known() {
    let project = Project::initialised();
    project.write(
        "tgp.config.ts",
        "export default { tdd: { mode: 'explore' }, llm: { keyVariable: 'MY_KEY' } };\n",
    );
    project.run(&["trust", "--yes"]).expect_code(0);
    let log = project.path("home/log.txt").display().to_string();
    let mut command = project.command(&["--log", &log, "sql", "select 'plainModelKey77', 'otherModelKey88'"]);
    command
        .env("MY_KEY", "plainModelKey77")
        .env("ANTHROPIC_API_KEY", "otherModelKey88")
        .env("TGP_LOG", "trace");
    command.output().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("[redacted]") && !text.contains("ModelKey"), "{text}");
    let audit = project.run(&["audit", "export"]).expect_code(0).stdout;
    assert!(!audit.contains("ModelKey"), "{audit}");
}

#[test]
fn a_pipe_as_a_log_is_refused_and_an_old_log_becomes_private() {
    let project = Project::initialised();
    let pipe = project.path("home/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let ran = project.run(&["--log", &pipe.display().to_string(), "list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let old = project.path("home/old.log");
    std::fs::write(&old, "before\n").unwrap();
    std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    project.run(&["--log", &old.display().to_string(), "list"]).expect_code(0);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&old).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(std::fs::read_to_string(&old).unwrap().starts_with("before\n"), "it is added to");
}

/// `-C` says where the project is; the log and the archive are files of the caller.
#[test]
fn a_log_and_a_bundle_are_relative_to_the_directory_of_the_caller() {
    let project = Project::initialised();
    let mut command = project.command(&["-C", "../here", "--log", "c.log", "doctor", "--bundle", "c.tar.gz"]);
    let ran = command.current_dir(project.path("home")).output().unwrap();
    assert!(ran.status.code().is_some(), "{ran:?}");
    for name in ["c.log", "c.tar.gz"] {
        assert!(project.path("home").join(name).is_file(), "{name}: {ran:?}");
        assert!(!project.file(name).exists(), "{name}: {ran:?}");
    }
}

#[test]
fn bug_a_password_of_an_address_was_redacted_only_as_it_was_written() {
    let project = Project::initialised();
    project.write(
        "tgp.config.ts",
        "export default { tdd: { mode: 'explore' }, llm: { baseUrl: 'https://ann:s3cr%40t%2Fw0rd@127.0.0.1:1/v1' } };\n",
    );
    project.run(&["trust", "--yes"]).expect_code(0);
    let log = project.path("home/log.txt").display().to_string();
    let forms = ["s3cr%40t%2Fw0rd", "s3cr@t/w0rd", "s3cr%40t%2fw0rd"];
    for form in forms {
        let sql = format!("select '{form}'");
        let mut command = project.command(&["--log", &log, "sql", &sql]);
        assert!(command.env("TGP_LOG", "trace").status().unwrap().success());
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let audit = project.run(&["audit", "export"]).expect_code(0).stdout;
    assert!(text.contains("[redacted]") && audit.contains("[redacted]"), "{text}");
    for form in forms {
        assert!(!text.contains(form) && !audit.contains(form), "{form}: {text}{audit}");
    }
}

#[test]
fn bug_any_file_was_taken_for_a_log_in_a_bundle() {
    let project = Project::initialised();
    let place = |name: &str| project.path(&format!("home/{name}")).display().to_string();
    let (text, lines) = (place("log.txt"), place("log.jsonl"));
    for log in [&text, &lines] {
        let mut command = project.command(&["--log", log, "call", "list_files", "{}"]);
        assert!(command.env("TGP_LOG", "trace").status().unwrap().success());
    }
    let real = std::fs::read_to_string(&text).unwrap();
    let put = |name: &str, content: &[u8]| {
        std::fs::write(place(name), content).unwrap();
        place(name)
    };
    let link = place("link.txt");
    std::os::unix::fs::symlink(&text, &link).unwrap();
    let pipe = place("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let huge = put("huge.txt", real.as_bytes());
    std::fs::File::options().write(true).open(&huge).unwrap().set_len((1 << 30) + 1).unwrap();
    let private_key = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n";
    let refused = [
        (put("key.pem", private_key.as_bytes()), "other lines"),
        (
            put("config.json", b"{\"timestamp\": \"2026-01-01T00:00:00Z\", \"level\": \"info\"}\n"),
            "other lines",
        ),
        (put("service.log", b"2026-01-01T00:00:00.1Z  INFO hyper: connected\n"), "other lines"),
        (put("mixed.txt", format!("{real}{private_key}").as_bytes()), "other lines"),
        (put("mixed-first.txt", format!("{private_key}{real}").as_bytes()), "other lines"),
        (put("one-line", b"no end of a line"), "no line"),
        (put("empty", b""), "no line"),
        (put("bytes", b"\xff\xfe\n"), "UTF-8"),
        (link, "a link"),
        (pipe, "not a plain file"),
        (place(""), "not a plain file"),
        (huge, "bytes"),
    ];
    let bundle = place("report.tar.gz");
    for (file, reason) in &refused {
        let ran = project.run(&["--json", "doctor", "--bundle", &bundle, "--with-log", file]);
        let error = ran.document()["error"].clone();
        assert_eq!(error["code"], "EVALIDATION", "{file}: {ran:?}");
        assert!(error["message"].as_str().unwrap().contains(reason), "{file}: {error}");
        assert!(!std::path::Path::new(&bundle).exists(), "{file}");
    }
    let missing = project.run(&["--json", "doctor", "--bundle", &bundle, "--with-log", &place("missing")]);
    assert_eq!(missing.document()["error"]["code"], "ENOTFOUND");
    // A log whose last line was not finished is one all the same; that line is left out.
    let torn = put("torn.txt", format!("{real}2026-11-16T1").as_bytes());
    for (number, log) in [&text, &lines, &torn].into_iter().enumerate() {
        let bundle = place(&format!("report-{number}.tar.gz"));
        let ran = project.run(&["doctor", "--bundle", &bundle, "--with-log", log]);
        assert!(std::path::Path::new(&bundle).exists(), "{log}: {ran:?}");
    }
}

#[test]
fn bug_a_worker_that_was_killed_left_no_warning() {
    let project = Project::initialised();
    let tools = [
        ("endless", "for (;;) {}", Some("CPU time")),
        ("stuck", "return new Promise(() => {});", Some("worker failed")),
        ("thrown", "throw new Error('on purpose');", None),
    ];
    for (name, body, cause) in tools {
        let path = format!("tools/{name}.ts");
        let source = format!("/** One. */\nexport default () => {{ {body} }};\n");
        project.run(&["write", &path, "--content", &source]).expect_code(0);
        let log = project.path(&format!("home/{name}.jsonl")).display().to_string();
        let mut command = project.command(&["--log", &log, "exec", &path]);
        assert!(!command.env("TGP_LOG", "warn").output().unwrap().status.success(), "{name}");
        let lines = lines(&project, &format!("home/{name}.jsonl"));
        let warned: Vec<&Value> = lines.iter().filter(|line| line["target"] == "worker").collect();
        let Some(cause) = cause else {
            assert!(warned.is_empty(), "an exception is an answer: {warned:#?}");
            continue;
        };
        let [warned] = warned.as_slice() else { panic!("{name}: {lines:#?}") };
        assert_eq!((&warned["level"], &warned["tool"]), (&json!("WARN"), &json!(path)));
        assert!(warned["message"].as_str().unwrap().contains(cause), "{warned}");
    }
}

#[test]
fn the_time_of_each_gate_is_logged_with_its_name() {
    let project = Project::initialised();
    let log = project.path("home/log.jsonl").display().to_string();
    let mut command = project.command(&["--log", &log, "call", "list_files", "{}"]);
    assert!(command.env("TGP_LOG", "gates=debug").status().unwrap().success());
    let lines = lines(&project, "home/log.jsonl");
    let gates: Vec<&Value> = lines.iter().filter(|line| line["target"] == "gates").collect();
    assert!(gates.len() >= 2, "{lines:#?}");
    for gate in &gates {
        assert!(gate["us"].is_u64() && gate["level"] == "DEBUG", "{gate}");
        assert!(gate["gate"].as_str().is_some_and(|name| !name.is_empty()), "{gate}");
    }
    assert!(gates.iter().any(|gate| gate["gate"] == "guardian"), "{gates:#?}");
}

#[test]
fn a_dash_as_a_log_is_standard_error() {
    let project = Project::initialised();
    let quiet = project.run(&["call", "list_files", "{}"]).expect_code(0);
    let logged = project.run(&["--log", "-", "call", "list_files", "{}"]).expect_code(0);
    assert_eq!(logged.stdout, quiet.stdout);
    assert!(logged.stderr.contains("DEBUG") && logged.stderr.contains("router: ended"), "{}", logged.stderr);
    assert!(!project.file("-").exists());
}

#[test]
fn bug_a_log_that_could_not_be_written_any_more_was_lost_silently() {
    let project = Project::initialised();
    let quiet = project.run(&["call", "list_files", "{}"]).expect_code(0);
    let ran = project.run(&["--log", "/dev/full", "call", "list_files", "{}"]).expect_code(0);
    assert_eq!(ran.stdout, quiet.stdout);
    let warnings: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("warning: the log `/dev/full` cannot be written any more"),
        "{warnings:?}"
    );
}

/// The secrets of a configuration are known as soon as it is read: also when the kernel never starts, and also those of
/// fields that the user has not confirmed.
#[test]
fn bug_secrets_were_known_only_after_the_kernel_had_started() {
    let project = Project::initialised();
    project.write(
        "tgp.config.ts",
        "export default { tdd: { mode: 'explore' }, db: { url: 'postgres://127.0.0.1:1/app?user=x&password=Zq9Kp-hidden' } };\n",
    );
    let log = project.path("home/log.txt").display().to_string();
    // The user has not confirmed `db.url`.
    let mut command = project.command(&["--log", &log, "call", "fs_read", r#"{"path": "Zq9Kp-hidden.txt"}"#]);
    command.env("TGP_LOG", "trace").output().unwrap();
    let audit = project.run(&["audit", "export"]).expect_code(0).stdout;
    assert!(!audit.contains("Zq9Kp-hidden"), "{audit}");
    // The kernel does not start.
    std::fs::rename(project.path("here/.tgp"), project.path("here/.away")).unwrap();
    std::fs::write(project.path("here/.tgp"), "Zq9Kp-hidden").unwrap();
    let bundle = project.path("home/bundle").display().to_string();
    let mut command = project.command(&["doctor", "--bundle", &bundle, "--with-log", &log]);
    command.output().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("Zq9Kp-hidden") && text.contains("[redacted]"), "{text}");
    let bundle = std::fs::read(&bundle).unwrap();
    assert!(!bundle.windows(12).any(|window| window == b"Zq9Kp-hidden"));
}
