//! MCP servers of others, with the built program: a server of our own that behaves as it is told, and real ones.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::{Project, Ran};

/// Names the folder with the servers of others, as `cargo xtask` installs them.
const VARIABLE: &str = "TGP_TEST_MCP_CLIENTS";
/// Longer than anything here takes, on a machine of any speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/servers/upstream.py").canonicalize().unwrap()
}

/// Whether this machine can hold a server.
fn has_jail() -> bool {
    let lock = tgp::sandbox::probe_jail();
    let is_whole =
        lock.seccomp && lock.landlock_abi.is_some() && lock.namespaces.iter().any(|one| one == "pid");
    if !is_whole {
        println!("skipped: this machine lacks {:?}", lock.missing);
    }
    is_whole
}

/// Adds our server as `srv`, with more options and arguments of its own.
fn add(project: &Project, options: &[&str], arguments: &[&str]) -> Ran {
    let script = script();
    let script = script.to_str().unwrap();
    let mut words = vec!["--json", "upstream", "add", "srv", "--yes", "--read", script];
    words.extend(options);
    words.extend(["--", "python3", script]);
    words.extend(arguments);
    project.run(&words)
}

fn with_server(options: &[&str], arguments: &[&str]) -> Project {
    let project = Project::initialised();
    add(&project, options, arguments).expect_code(0);
    project
}

/// Writes a tool that calls the server, and runs it.
fn run(project: &Project, import: &str, call: &str) -> Ran {
    let tool = format!(
        "import {{ {import} }} from 'mcp:srv';\n/** Calls a server. */\nexport default async function probe(): Promise<unknown> \
         {{\n  return await {call};\n}}\n"
    );
    project.write(".tgp/tools/probe.ts", &tool);
    project.run(&["--json", "exec", "tools/probe.ts"])
}

fn answer(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    document["data"]["result"].clone()
}

#[test]
fn a_tool_calls_a_server_through_the_gates() {
    if !has_jail() {
        return;
    }
    let project = with_server(&[], &["plain"]);
    let ran = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0);
    assert_eq!(answer(&ran), "hello Ada");
    // A tool with an output schema gives its structured result.
    let ran = run(&project, "add_numbers", "add_numbers({ a: 1, b: 2 })").expect_code(0);
    assert_eq!(answer(&ran), json!({ "sum": 3 }));
    // The record names server, tool, arguments and the definition that was called.
    let records = project.run(&["--json", "audit", "tail", "-n", "10"]).expect_code(0).stdout;
    let record = records.lines().find(|line| line.contains("call_upstream") && line.contains("Ada"));
    let record = record.unwrap_or_else(|| panic!("{records}"));
    let shown = project.run(&["--json", "upstream", "show", "srv"]).expect_code(0).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let tools = shown["data"]["tools"].as_array().unwrap();
    let greet = tools.iter().find(|tool| tool["tool"]["name"] == "greet").unwrap();
    let pin = greet["pin"].as_str().unwrap();
    assert!(record.contains("\"srv\"") && record.contains("\"greet\"") && record.contains(pin), "{record}");
    assert!(record.contains("upstream_tool"), "{record}");
    // What the server calls an error is one.
    let failed = run(&project, "fail", "fail()").expect_code(1);
    assert!(failed.stdout.contains("EUPSTREAM") && failed.stdout.contains("it cannot be done"), "{failed:?}");
    // A call cannot be undone, so a dry run stops before it.
    let dry = project.run(&["--json", "exec", "tools/probe.ts", "--dry-run"]).expect_code(3);
    assert!(dry.stdout.contains("a dry run changes nothing"), "{dry:?}");
    // A rule names tools as `mcp:SERVER/TOOL`.
    project.write(
        ".tgp/policy/rules.yml",
        "version: 1\nrules:\n  - id: no-greetings\n    effect: deny\n    tools: [\"*\"]\n    where: {target: \"mcp:srv/gr*\"}\n    reason: no greetings\n",
    );
    let denied = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(3);
    assert!(denied.stdout.contains("EPOLICY") && denied.stdout.contains("no-greetings"), "{denied:?}");
    run(&project, "add_numbers", "add_numbers({ a: 1, b: 2 })").expect_code(0);
}

#[test]
fn bug_the_audit_said_that_a_call_that_a_server_failed_was_rolled_back() {
    if !has_jail() {
        return;
    }
    let project = with_server(&[], &["plain"]);
    let failed = run(&project, "fail", "fail()").expect_code(1);
    assert!(failed.stdout.contains("it cannot be done"), "{failed:?}");
    let records = project.run(&["--json", "audit", "tail", "-n", "10"]).expect_code(0).stdout;
    let document: Value = serde_json::from_str(&records).unwrap_or_else(|_| panic!("{records}"));
    let entries = document["data"]["entries"].as_array().unwrap_or_else(|| panic!("{records}"));
    let call = entries.iter().find(|one| one["entry"]["tool"] == "call_upstream");
    assert_eq!(call.map(|one| &one["entry"]["execution"]), Some(&json!("unknown")), "{records}");
}

#[test]
fn imports_are_checked_before_anything_runs() {
    if !has_jail() {
        return;
    }
    let project = with_server(&[], &["plain"]);
    for (import, words) in [
        ("import { gret } from 'mcp:srv'; gret", &["ECOMPILE", "did you mean", "greet"][..]),
        ("import { greet } from 'mcp:srw'; greet", &["ENOTFOUND", "did you mean `mcp:srv`"]),
        ("import { greet } from 'mcp:'; greet", &["is not a module name"]),
        ("import { callUpstream } from 'tgp:foreign'; callUpstream", &["ESECURITY"]),
    ] {
        let tool = format!("{import};\n/** Nothing. */\nexport default (): number => 1;\n");
        project.write(".tgp/tools/probe.ts", &tool);
        let ran = project.run(&["--json", "exec", "tools/probe.ts"]);
        let checked = project.run(&["--json", "check", "tools/probe.ts"]);
        let said = format!("{}{}", ran.stdout, checked.stdout);
        assert!(
            ran.code != Some(0) && words.iter().all(|word| said.contains(word)),
            "{import}: {ran:?} {checked:?}"
        );
    }
    // The types are there for editors and agents, and git does not see them.
    let types = project.run(&["read", "upstream.d.ts"]).expect_code(0).stdout;
    assert!(types.contains("export function greet(args: { name: string }): Promise<unknown>;"), "{types}");
    assert!(
        types.contains(
            "export function add_numbers(args: { a: number; b: number }): Promise<{ sum: number }>;"
        )
    );
    let status = project.shell("git -C .tgp status --short --ignored").expect_code(0).stdout;
    assert!(!status.contains("?? upstream.d.ts"), "{status}");
    project.run(&["upstream", "remove", "srv"]).expect_code(0);
    project.run(&["list"]).expect_code(0);
    assert!(!project.file(".tgp/upstream.d.ts").exists(), "the types of a server that is gone");
}

#[test]
fn a_changed_tool_is_refused_until_a_person_has_seen_it() {
    if !has_jail() {
        return;
    }
    let project = Project::initialised();
    let mark = project.path("changed");
    let folder = project.path("");
    add(&project, &["--read", folder.to_str().unwrap()], &["changing", mark.to_str().unwrap()])
        .expect_code(0);
    run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0);
    std::fs::write(&mark, "").unwrap();
    let refused = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(3);
    assert!(
        refused.stdout.contains("EPIN") && refused.stdout.contains("tgp upstream pin srv"),
        "{refused:?}"
    );
    // Others of the same server are as they were.
    run(&project, "add_numbers", "add_numbers({ a: 1, b: 2 })").expect_code(0);
    let tested = project.run(&["upstream", "test", "srv"]).expect_code(3);
    assert!(tested.stderr.contains("EPIN") && tested.stderr.contains("sends all files to me"), "{tested:?}");
    // Without a terminal it is shown, and nothing is accepted.
    let shown = project.run(&["upstream", "pin", "srv"]).expect_code(3);
    assert!(
        shown.stderr.contains("+  \"description\": \"Greets somebody, and sends all files to me.\""),
        "{shown:?}"
    );
    run(&project, "greet", "greet({ name: 'Ada' })").expect_code(3);
    project.run(&["upstream", "pin", "srv", "--yes"]).expect_code(0);
    run(&project, "greet, extra", "greet({ name: 'Ada' })").expect_code(0);
    // The tool repository can pin, too; that only denies.
    project.run(&["upstream", "pin", "srv", "--share"]).expect_code(0);
    run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0);
    let shared = project.read(".tgp/policy/upstream.json");
    project.write(
        ".tgp/policy/upstream.json",
        &shared.replacen(":", ":  ", 1).replace("\"greet\": \"", "\"greet\": \"0"),
    );
    let refused = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(3);
    assert!(
        refused.stdout.contains("EPIN") && refused.stdout.contains("pins another definition"),
        "{refused:?}"
    );
    run(&project, "add_numbers", "add_numbers({ a: 1, b: 2 })").expect_code(0);
    std::fs::remove_file(project.file(".tgp/policy/upstream.json")).unwrap();
    // A definition or a pin that others could have written does not count.
    let file = project.path("home/state/config/upstream/srv.pin.json");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let refused = run(&project, "greet", "greet({ name: 'Ada' })");
    assert!(refused.stdout.contains("other users may have written it"), "{refused:?}");
}

#[test]
fn a_hostile_server_harms_itself_alone() {
    if !has_jail() {
        return;
    }
    for (mode, why) in [
        ("dead", "KEY is missing"),
        ("many", "more than 512 tools"),
        ("pages", "more than 64 pages"),
        ("large", "more than 64 KiB"),
        ("names", "cannot be used"),
        ("deep", "nested too deeply"),
    ] {
        let project = Project::initialised();
        let ran = add(&project, &[], &[mode]).expect_code(1);
        assert!(ran.stdout.contains("EUPSTREAM") && ran.stdout.contains(why), "{mode}: {ran:?}");
        assert!(!project.path("home/state/config/upstream/srv.json").exists(), "{mode} was added");
    }
    for (mode, why) in [
        ("huge", "a message of more than 4 MiB"),
        ("endless", "a message of more than 4 MiB"),
        ("chatty", "more than 32 MiB for one call"),
        ("pinging", "more than 10,000 messages for one call"),
        ("wide", "more than 100,000 values"),
        ("crash", "the disk is full"),
    ] {
        let project = with_server(&[], &[mode]);
        let start = Instant::now();
        let ran = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(1);
        assert!(ran.stdout.contains("EUPSTREAM") && ran.stdout.contains(why), "{mode}: {ran:?}");
        assert!(start.elapsed() < PATIENCE, "{mode} was waited for");
    }
    for mode in ["garbage", "bomb", "injecting"] {
        let project = with_server(&[], &[mode]);
        assert_eq!(
            answer(&run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0)),
            "hello Ada",
            "{mode}"
        );
        let types = project.read(".tgp/upstream.d.ts");
        assert!(types.is_ascii() || mode == "injecting", "{mode}: {types}");
        assert!(types.len() < 20_000 && !types.contains('\u{202e}'), "{mode}: {types}");
        assert!(!types.contains("*/ Ignore"), "{mode}: {types}");
    }
}

/// What was found by attacks on servers and on where they are kept.
#[test]
fn bug_a_server_widened_what_its_entry_lists() {
    if !has_jail() {
        return;
    }
    let project = Project::initialised();
    // A folder inside one that the server changes could be replaced by a link.
    std::fs::create_dir_all(project.path("outer/inner")).unwrap();
    let (outer, inner) = (project.path("outer"), project.path("outer/inner"));
    let (outer, inner) = (outer.to_str().unwrap(), inner.to_str().unwrap());
    let ran = add(&project, &["--write", outer, "--read", inner], &["plain"]).expect_code(1);
    assert!(ran.stdout.contains("inside of"), "{ran:?}");
    // A path that was seen by a person and leads elsewhere later.
    add(&project, &["--read", inner], &["plain"]).expect_code(0);
    run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0);
    std::fs::remove_dir(inner).unwrap();
    std::os::unix::fs::symlink("/", inner).unwrap();
    let ran = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(1);
    assert!(ran.stdout.contains("leads elsewhere"), "{ran:?}");
}

#[test]
fn bug_a_server_that_was_not_added_left_files_for_the_next_one() {
    if !has_jail() {
        return;
    }
    let project = Project::initialised();
    add(&project, &[], &["planting"]).expect_code(1);
    add(&project, &[], &["plain"]).expect_code(0);
    let seen = || -> Value {
        let ran = run(&project, "look", "look()").expect_code(0);
        serde_json::from_str(answer(&ran).as_str().unwrap()).unwrap()
    };
    assert_eq!(seen()["home"], json!([]));
    // What a server keeps goes with it.
    std::fs::write(project.path("home/state/upstream/srv/kept"), "").unwrap();
    assert_eq!(seen()["home"], json!(["kept"]));
    project.run(&["upstream", "remove", "srv"]).expect_code(0);
    assert!(!project.path("home/state/upstream/srv").exists());
}

#[test]
fn bug_servers_that_are_kept_in_the_project_were_used() {
    if !has_jail() {
        return;
    }
    let project = with_server(&[], &["plain"]);
    project.shell("cp -r ../home/state .h").expect_code(0);
    run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0);
    for variable in ["TGP_HOME", "XDG_CONFIG_HOME"] {
        let mut command = project.command(&["--json", "exec", "tools/probe.ts"]);
        command.env_remove("TGP_HOME").env(variable, project.file(".h"));
        if variable == "XDG_CONFIG_HOME" {
            project.shell("mkdir -p .h/tgp && cp -r .h/config/upstream .h/tgp/").expect_code(0);
        }
        let ran = Ran::from(command.output().unwrap());
        assert!(ran.code == Some(3) && ran.stdout.contains("where agents write"), "{variable}: {ran:?}");
    }
}

#[test]
fn bug_a_key_of_a_server_was_in_the_types_of_its_tools() {
    if !has_jail() {
        return;
    }
    let key = "sk-very-secret-0123456789";
    for mode in ["telling", "telling-name"] {
        let project = Project::initialised();
        let variable = format!("API_KEY={key}");
        let ran = add(&project, &["--env", &variable], &[mode]).expect_code(1);
        assert!(
            ran.stdout.contains("holds a secret") && !format!("{ran:?}").contains("very"),
            "{mode}: {ran:?}"
        );
    }
}

/// A rule about a host holds for a server that lists it with a port.
#[test]
fn bug_a_port_hid_a_host_from_the_rules() {
    if !has_jail() {
        return;
    }
    let project = with_server(&["--host", "api.example.com:8443"], &["plain"]);
    run(&project, "greet", "greet({ name: 'Ada' })").expect_code(0);
    project.write(
        ".tgp/policy/rules.yml",
        "version: 1\nrules:\n  - id: no-example\n    effect: deny\n    tools: [\"*\"]\n    where: {host: api.example.com}\n    reason: no\n",
    );
    let denied = run(&project, "greet", "greet({ name: 'Ada' })").expect_code(3);
    assert!(denied.stdout.contains("no-example"), "{denied:?}");
}

#[test]
fn a_server_that_fails_is_started_again_after_a_pause() {
    if !has_jail() {
        return;
    }
    let project = with_server(&[], &["crash"]);
    project.write(
        ".tgp/tools/probe.ts",
        "import { greet } from 'mcp:srv';\n/** Calls a server often. */\nexport default async (): Promise<string[]> => {\n  \
         const seen: string[] = [];\n  for (let turn = 0; turn < 5; turn += 1) {\n    try {\n      await greet({ name: 'x' });\n    } \
         catch (error) {\n      seen.push((error as Error).message);\n    }\n  }\n  return seen;\n};\n",
    );
    let ran = project.run(&["--json", "exec", "tools/probe.ts"]).expect_code(0);
    let seen: Vec<String> = serde_json::from_value(answer(&ran)).unwrap();
    assert!(seen[0].contains("the disk is full"), "{seen:?}");
    assert!(seen[1..].iter().any(|message| message.contains("is not started again for")), "{seen:?}");
}

#[test]
fn a_server_gets_what_its_entry_lists_and_nothing_else() {
    if !has_jail() {
        return;
    }
    let project = Project::initialised();
    project.write("private.txt", "of the project");
    std::fs::write(project.path("given.txt"), "given").unwrap();
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let given = project.path("given.txt");
    let port_variable = format!("PORT={port}");
    add(
        &project,
        &["--env", "MODE=test", "--env", &port_variable, "--read", given.to_str().unwrap()],
        &["plain"],
    )
    .expect_code(0);
    let look = |path: &Path| -> Value {
        let call = format!("look({})", json!({ "path": path }));
        let ran = run(&project, "look", &call).expect_code(0);
        serde_json::from_str(answer(&ran).as_str().unwrap()).unwrap()
    };
    let seen = look(&given);
    assert_eq!(seen["file"], "given", "{seen}");
    let mut variables: Vec<&str> = seen["env"].as_object().unwrap().keys().map(String::as_str).collect();
    variables.retain(|name| *name != "LC_CTYPE");
    variables.sort_unstable();
    assert_eq!(variables, ["HOME", "LANG", "MODE", "PATH", "PORT", "TMPDIR"], "{seen}");
    assert_ne!(seen["direct"], "connected", "the machine's own loopback was reached");
    for path in [project.file("private.txt"), project.file("tgp.config.ts"), "/etc/shadow".into()] {
        let seen = look(&path);
        assert_eq!(seen["file"], "Permission denied", "{}: {seen}", path.display());
    }
    // Programs are not found where agents write.
    project.write("bin/python3", "#!/bin/sh\ntouch started\n");
    project.shell("chmod +x bin/python3").expect_code(0);
    let mut command = project.command(&["upstream", "test", "srv"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", project.file("bin").display()));
    let ran = Ran::from(command.output().unwrap());
    assert!(!project.file("started").exists(), "{ran:?}");
}

#[test]
fn a_server_reaches_listed_hosts_through_the_proxy_alone() {
    if !has_jail() {
        return;
    }
    let project = Project::initialised();
    let server = crate::secrets::TlsServer::start();
    let (port, url) = (format!("PORT={}", server.port), format!("URL=https://localhost:{}/", server.port));
    let root = crate::secrets::fixtures().join("root.pem").canonicalize().unwrap();
    let (root, variable) = (root.to_str().unwrap().to_owned(), format!("SSL_CERT_FILE={}", root.display()));
    let options = |host: &str| -> Vec<String> {
        ["--host", host, "--env", &port, "--env", &url, "--env", &variable, "--read", &root]
            .map(str::to_owned)
            .to_vec()
    };
    for (host, expected) in [(format!("localhost:{}", server.port), "200"), ("localhost:9".to_owned(), "403")]
    {
        let options = options(&host);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        add(&project, &options, &["plain"]).expect_code(0);
        let ran = run(&project, "look", "look()").expect_code(0);
        let seen: Value = serde_json::from_str(answer(&ran).as_str().unwrap()).unwrap();
        assert!(seen["url"].to_string().contains(expected), "{host}: {seen}");
        assert_ne!(seen["direct"], "connected", "{host}: {seen}");
        project.run(&["upstream", "remove", "srv"]).expect_code(0);
    }
}

#[test]
fn a_server_gets_a_secret_and_cannot_give_it_away() {
    if !has_jail() {
        return;
    }
    let value = "s3cr3t-of-the-upstream-test";
    let project = Project::initialised();
    std::fs::remove_file(project.file("tgp.config.ts")).unwrap();
    let secret = json!({ "from": { "env": "THE_KEY" }, "hosts": ["api.example.com"], "as": "bearer" });
    project.write("tgp.config.json", &json!({ "secrets": { "KEY": secret } }).to_string());
    project.trust();
    let with_key = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        Ran::from(command.env("THE_KEY", value).output().unwrap())
    };
    let script = script();
    let script = script.to_str().unwrap();
    let words = [
        "upstream",
        "add",
        "srv",
        "--yes",
        "--read",
        script,
        "--env",
        "TOKEN=secret:KEY",
        "--",
        "python3",
        script,
    ];
    let added = with_key(&words).expect_code(0);
    assert!(added.stderr.contains("TOKEN (the secret KEY)"), "{added:?}");
    project.write(
        ".tgp/tools/probe.ts",
        "import { look } from 'mcp:srv';\n/** Looks. */\nexport default async (): Promise<unknown> => await look();\n",
    );
    let ran = with_key(&["--json", "exec", "tools/probe.ts"]).expect_code(0);
    assert!(ran.stdout.contains("[secret]") && !format!("{ran:?}").contains(value), "{ran:?}");
    // The secret is a target of the call.
    let records = with_key(&["--json", "audit", "tail", "-n", "3"]).expect_code(0).stdout;
    let record = records.lines().find(|line| line.contains("call_upstream")).unwrap();
    assert!(
        record.contains("\"secret\"") && record.contains("\"KEY\"") && !record.contains(value),
        "{record}"
    );
    let found =
        project.shell(&format!("cd .. && grep -rlaF {value} here home || true")).expect_code(0).stdout;
    assert_eq!(found, "", "the value is in a file");
}

/// A secret is for some hosts over https and for one header, also for a server over HTTP.
#[test]
fn bug_a_header_of_a_server_got_a_secret_that_was_for_another_host() {
    let project = Project::initialised();
    std::fs::remove_file(project.file("tgp.config.ts")).unwrap();
    let secret = json!({ "from": { "env": "THE_KEY" }, "hosts": ["api.example.com"], "as": "bearer" });
    project.write("tgp.config.json", &json!({ "secrets": { "KEY": secret } }).to_string());
    project.trust();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let here = format!("http://localhost:{}/mcp", listener.local_addr().unwrap().port());
    for (url, header, why) in [
        (here.as_str(), "Authorization", "it is not for all requests to"),
        ("https://other.example.com/mcp", "Authorization", "it is not for all requests to"),
        ("https://api.example.com/mcp", "X-Key", "it is for the header `authorization`"),
    ] {
        let header = format!("{header}=secret:KEY");
        let mut command =
            project.command(&["--json", "upstream", "add", "srv", url, "--header", &header, "--yes"]);
        let ran = Ran::from(command.env("THE_KEY", "s3cr3t-of-the-header").output().unwrap()).expect_code(3);
        assert!(ran.stdout.contains("ESECURITY") && ran.stdout.contains(why), "{url}: {ran:?}");
    }
    assert!(listener.accept().is_err(), "something was sent");
}

#[test]
fn nothing_of_a_server_outlives_the_kernel() {
    if !has_jail() {
        return;
    }
    let project = with_server(&[], &["hanging"]);
    project.write(
        ".tgp/tools/probe.ts",
        "import { greet } from 'mcp:srv';\n/** Hangs. */\nexport default async (): Promise<unknown> => await greet({ name: 'x' });\n",
    );
    let home = project.path("home/state/upstream/srv");
    let servers = || -> Vec<String> {
        let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let all =
            all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place == home));
        all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok()).collect()
    };
    let mut command = project.command(&["exec", "tools/probe.ts"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !servers().iter().any(|line| line.contains("sleep")) {
        assert!(start.elapsed() < PATIENCE, "the server did not start: {:?}", servers());
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while !servers().is_empty() {
        assert!(start.elapsed() < PATIENCE, "left behind: {:?}", servers());
        std::thread::sleep(Duration::from_millis(20));
    }
    // What a killed run leaves in the folder for temporary files is not what this test is about.
    let _ = std::fs::remove_dir_all(project.path("tmp"));
    std::fs::create_dir(project.path("tmp")).unwrap();
}

#[test]
fn servers_of_hosts_are_imported_and_replaced() {
    if !has_jail() {
        return;
    }
    let project = Project::initialised();
    let script = script();
    let config = json!({ "mcpServers": {
        "Works Well": { "command": "python3", "args": ["-c", std::fs::read_to_string(&script).unwrap()], "env": { "MODE": "x" } },
        "broken": { "command": "python3", "args": ["-c", "raise SystemExit('no key')"] },
        "tgp": { "command": "/usr/bin/tgp", "args": ["mcp"] },
    } });
    project.write(".mcp.json", &serde_json::to_string_pretty(&config).unwrap());
    let asked = project.run(&["upstream", "import"]).expect_code(3);
    assert!(asked.stderr.contains("Works Well") && asked.stderr.contains("--yes"), "{asked:?}");
    let ran = project.run(&["upstream", "import", "--yes", "--replace"]).expect_code(0);
    assert!(ran.stdout.contains("added 1 of 2 servers"), "{ran:?}");
    assert!(ran.stderr.contains("no key") && ran.stderr.contains("tgp upstream add broken"), "{ran:?}");
    let listed = project.run(&["--json", "upstream", "list"]).expect_code(0).stdout;
    assert!(listed.contains("works-well") && !listed.contains("broken"), "{listed}");
    let after: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
    let names: Vec<&String> = after["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["broken", "tgp"], "{after}");
    let backup: Value = serde_json::from_str(&project.read(".mcp.json.tgp-backup")).unwrap();
    assert_eq!(backup, config);
}

/// Servers from npm and PyPI, as their users start them.
#[test]
fn real_servers_are_called() {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from).filter(|_| has_jail()) else {
        println!("skipped: {VARIABLE} is not set, or this machine cannot jail programs");
        return;
    };
    let project = Project::initialised();
    let modules = folder.join("node_modules");
    let notes = project.path("notes");
    std::fs::create_dir(&notes).unwrap();
    let package = |name: &str| modules.join("@modelcontextprotocol").join(name).join("dist/index.js");
    let node_modules = modules.to_str().unwrap();
    let notes_path = notes.to_str().unwrap();
    let memory = format!("MEMORY_FILE_PATH={notes_path}/memory.jsonl");
    for (name, options, command) in [
        ("everything", vec![], vec!["node".to_owned(), package("server-everything").display().to_string()]),
        (
            "files",
            vec!["--write", notes_path],
            vec![
                "node".to_owned(),
                package("server-filesystem").display().to_string(),
                notes_path.to_owned(),
            ],
        ),
        (
            "memory",
            vec!["--write", notes_path, "--env", &memory],
            vec!["node".to_owned(), package("server-memory").display().to_string()],
        ),
    ] {
        let mut words = vec!["upstream", "add", name, "--yes", "--read", node_modules];
        words.extend(options);
        words.push("--");
        words.extend(command.iter().map(String::as_str));
        project.run(&words).expect_code(0);
    }
    let tool = "import { get_sum, get_structured_content } from 'mcp:everything';\n\
                import { write_file, read_text_file } from 'mcp:files';\n\
                import { create_entities, read_graph } from 'mcp:memory';\n\
                /** Uses three servers. */\n\
                export default async function three(args: { path: string }): Promise<unknown> {\n  \
                const sum = await get_sum({ a: 20, b: 22 });\n  \
                const weather = await get_structured_content({ location: 'Chicago' });\n  \
                await write_file({ path: args.path, content: String(sum) });\n  \
                const file = await read_text_file({ path: args.path });\n  \
                await create_entities({ entities: [{ name: 'Ada', entityType: 'person', observations: ['wrote'] }] });\n  \
                return { sum, isWarm: typeof weather.temperature, file, graph: await read_graph() };\n}\n";
    project.write(".tgp/tools/three.ts", tool);
    let path = notes.join("sum.txt");
    let ran =
        project.run(&["--json", "exec", "tools/three.ts", "--args", &json!({ "path": path }).to_string()]);
    let result = answer(&ran.expect_code(0));
    assert_eq!(result["isWarm"], "number", "{result}");
    assert!(result["sum"].as_str().unwrap().contains("42"), "{result}");
    assert!(
        result["file"].to_string().contains("42") && result["graph"].to_string().contains("Ada"),
        "{result}"
    );
    assert!(std::fs::read_to_string(path).unwrap().contains("42"));
}

/// A server that is written with the SDK for Python.
#[test]
fn a_server_in_python_is_called() {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from).filter(|_| has_jail()) else {
        println!("skipped: {VARIABLE} is not set, or this machine cannot jail programs");
        return;
    };
    let project = Project::initialised();
    let script = project.path("server.py");
    let source = "from fastmcp import FastMCP\nmcp = FastMCP('shop')\n\n@mcp.tool\ndef price(item: str, amount: int = 1) -> \
                  dict[str, int]:\n    'What something costs.'\n    return {item: 3 * amount}\n\nmcp.run(show_banner=False)\n";
    std::fs::write(&script, source).unwrap();
    let venv = folder.join("fastmcp");
    if !venv.exists() {
        println!("skipped: FastMCP is not installed");
        return;
    }
    let python = venv.join("bin/python");
    let base = std::fs::canonicalize(&python).unwrap();
    // The interpreter may be one of a version manager, outside the system's folders.
    let prefix = base.parent().and_then(Path::parent).unwrap();
    let paths = [venv.as_path(), &script, prefix].map(|path| path.to_str().unwrap().to_owned());
    let [venv, script, prefix] = &paths;
    project
        .run(&[
            "upstream",
            "add",
            "srv",
            "--yes",
            "--read",
            venv,
            "--read",
            script,
            "--read",
            prefix,
            "--",
            python.to_str().unwrap(),
            script,
        ])
        .expect_code(0);
    let ran = run(&project, "price", "price({ item: 'tea', amount: 2 })").expect_code(0);
    assert_eq!(answer(&ran), json!({ "tea": 6 }));
}
