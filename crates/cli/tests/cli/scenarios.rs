//! The end-to-end scenarios of the test plan, and what must hold from an empty folder to a result.

use std::time::{Duration, Instant};

use crate::processes::{assert_gone, start_session};
use crate::project::{Project, fixtures};

#[test]
fn fibonacci_from_init_to_55() {
    let project = Project::empty();
    project.run(&["init"]).expect_code(0);
    let source = std::fs::read_to_string(fixtures().join("math/fib.ts")).unwrap();
    let written = project.run_with_input(&["write", "tools/math/fib.ts"], &source).expect_code(0);
    assert_eq!(written.stdout, "");
    let checked = project.run(&["check"]).expect_code(0);
    assert_eq!(checked.stdout, "tools/math/fib.ts: valid (0 errors, 0 warnings; types: skipped)\n");
    let ran = project.run(&["exec", "tools/math/fib.ts", "--args", r#"{"n":10}"#]).expect_code(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("55\n", ""));
    // A new process finds what the first one wrote, byte for byte.
    assert_eq!(project.run(&["read", "tools/math/fib.ts"]).stdout, source);
}

#[test]
fn the_next_steps_of_init_work_as_printed() {
    let project = Project::empty();
    let screen = project.run(&["init"]).expect_code(0).stderr;
    let steps: Vec<&str> = screen.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(steps.len(), 5, "{screen}");
    // Without a key it says what is missing.
    let task = project.shell(steps[0]).expect_code(2);
    assert!(task.stderr.contains("no key was found") && task.stderr.contains("--provider"), "{task:?}");
    let outputs: Vec<String> =
        steps[1..4].iter().map(|step| project.shell(step).expect_code(0).stdout).collect();
    assert_eq!(outputs[2], "42\n", "{outputs:?}");
    // Without a host it says which ones it looks for; with one it shows the change and asks.
    let none = project.shell(steps[4]);
    assert!(none.code != Some(0) && none.stderr.contains("--host"), "{none:?}");
    std::fs::create_dir(project.path("home/.cursor")).unwrap();
    assert!(
        project.shell(&format!("{} --yes", steps[4])).expect_code(0).stdout.contains("Cursor: installed")
    );
}

#[test]
fn e2e_2_refactor_scenario() {
    let project = Project::initialised();
    project.run(&["write", "tools/legacy.ts", "--content", "console.log(\"old\")"]).expect_code(0);
    let before = project.run(&["exec", "tools/legacy.ts"]).expect_code(0);
    assert_eq!(before.stdout, "null\n");
    assert!(before.stderr.starts_with("[info] old\nwarning: the checker finds an error"), "{before:?}");
    assert!(before.stderr.contains("[must-return]"), "{before:?}");
    assert_eq!(project.run(&["read", "tools/legacy.ts"]).stdout, "console.log(\"old\")");
    project
        .run(&["patch", "tools/legacy.ts", "--search", "console.log(\"old\")", "--replace", "return \"old\""])
        .expect_code(0);
    assert_eq!(project.run(&["exec", "tools/legacy.ts"]).expect_code(0).stdout, "old\n");
    assert_eq!(project.read(".tgp/tools/legacy.ts"), "return \"old\"");
}

#[test]
fn e2e_3_infinite_loop_self_defense() {
    let project = Project::initialised();
    project.write("tgp.config.ts", "export default { sandbox: { cpuMs: 50 } };\n");
    project.trust();
    project.run(&["write", "tools/freeze.ts", "--content", "while(true){}"]).expect_code(0);
    project.run(&["write", "tools/fine.ts", "--content", "args.n + 1"]).expect_code(0);
    let started = Instant::now();
    let mut command = project.command(&["--json", "exec", "tools/freeze.ts"]);
    let child = start_session(command.stdout(std::process::Stdio::piped()));
    let id = child.id();
    let frozen = child.wait_with_output().unwrap();
    // The limit is 50 ms of CPU time; the rest is patience with a loaded machine.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(frozen.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&frozen.stdout).unwrap();
    assert_eq!(document["error"]["code"], "ERR_ISOLATE_TIMEOUT", "{document}");
    assert_gone(&[], id);
    let next = project.run(&["exec", "tools/fine.ts", "--args", r#"{"n": 1}"#]).expect_code(0);
    assert_eq!(next.stdout, "2\n");
}

/// A person who asks for more at the command line gets it, up to the ceiling.
#[test]
fn a_run_has_the_limits_of_its_options() {
    let project = Project::initialised();
    let source = "new Uint8Array(200 * 1024 * 1024).length";
    project.run(&["write", "tools/hungry.ts", "--content", source]).expect_code(0);
    let run = |options: &[&str]| project.run(&[&["exec", "tools/hungry.ts"], options].concat());
    assert!(run(&[]).expect_code(1).stderr.contains("64 MB of memory"));
    let roomy = run(&["--memory-mb", "512", "--cpu-ms", "10000", "--wall-ms", "60000"]).expect_code(0);
    assert_eq!(roomy.stdout, "209715200\n");
    let above = run(&["--memory-mb", "513", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&above.stdout).unwrap();
    assert_eq!(document["error"]["code"], "EVALIDATION", "{document}");
    assert!(document["error"]["details"]["help"].as_str().unwrap().contains("sandbox.ceiling.memoryMb"));
    for wrong in ["-1", "0.5", "much", "99999999999999999999"] {
        run(&[&format!("--cpu-ms={wrong}")]).expect_code(2);
    }
    // A program needs the approval of a person.
    let arguments = r#"{"path": "tools/hungry.ts", "limits": {"memoryMb": 512, "cpuMs": 10000}}"#;
    project.run(&["call", "exec_tool", arguments]).expect_code(3);
    project.run(&["call", "exec_tool", arguments, "--yes"]).expect_code(0);
}

#[test]
fn exit_codes_say_who_refused() {
    let project = Project::with_fixtures();
    for (code, arguments) in [
        (0, &["list"][..]),
        (1, &["exec", "tools/throws.ts"]),
        (1, &["exec", "tools/nothing.ts"]),
        (1, &["check", "tools/rules/no-any.ts"]),
        (2, &["exec"]),
        (2, &["exec", "tools/math/fib.ts", "--args", "{"]),
        (2, &["-C", "nowhere", "list"]),
        (3, &["call", "write_file", r#"{"path": "tools/x.ts", "content": ""}"#]),
        (3, &["read", "../tgp.config.ts"]),
        (3, &["write", "../../outside.txt", "--content", "x"]),
    ] {
        let ran = project.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:#?}");
    }
    assert!(!project.path("outside.txt").exists());
}

#[test]
fn arguments_that_do_not_fit_are_shown_with_their_places() {
    let project = Project::initialised();
    let source = "/** Adds. */\nexport default (args: { items: { price: number }[]; note?: string }): number =>\n  args.items.reduce((sum, item) => sum + item.price, 0);\n";
    project.run_with_input(&["write", "tools/sum.ts"], source).expect_code(0);
    let exec = |args: &str| project.run(&["exec", "tools/sum.ts", "--args", args]);
    let wrong = exec(r#"{"items": [{"price": 1}, {"price": "2"}], "note": 5}"#).expect_code(2);
    for part in [
        "error[EVALIDATION]: the arguments of `tools/sum.ts` do not fit",
        "note: .items[1].price is a string, the tool declares number",
        "note: .note is a number, the tool declares string",
        "help: nothing ran; pass what the tool declares: { items: { price: number }[]; note?: string }",
    ] {
        assert!(wrong.stderr.contains(part), "{part}: {}", wrong.stderr);
    }
    assert_eq!(wrong.stdout, "");
    let unknown = exec(r#"{"items": [], "nota": "x"}"#).expect_code(0);
    assert_eq!(unknown.stdout, "0\n");
    assert!(
        unknown.stderr.contains(".nota is a field that the tool does not declare; did you mean `note`?"),
        "{}",
        unknown.stderr
    );
    let call = r#"{"path": "tools/sum.ts", "args": {"items": 1}}"#;
    let called = project.run(&["call", "exec_tool", call, "--yes"]).expect_code(2);
    assert!(called.stdout.contains("\"code\":\"EVALIDATION\""), "{}", called.stdout);
}

#[test]
fn a_tool_that_does_not_parse_is_shown_and_not_written() {
    let project = Project::initialised();
    let broken = "/** Doubles. */\nexport default function double(args: { n: number }): number {\n  return args.n * ;\n}\n";
    let refused = project.run_with_input(&["write", "tools/double.ts"], broken).expect_code(1);
    for part in [
        "error[syntax]:",
        "--> tools/double.ts:3:19",
        "3 |   return args.n * ;",
        "error[ECOMPILE]: the tool does not parse, so nothing was written",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(!project.file(".tgp/tools/double.ts").exists());
    let good = broken.replace("* ;", "* 2;");
    project.run_with_input(&["write", "tools/double.ts"], &good).expect_code(0);
    let patch = |search: &str, replace: &str| {
        project.run(&["patch", "tools/double.ts", "--search", search, "--replace", replace])
    };
    let refused = patch("* 2;", "* ;").expect_code(1);
    assert!(refused.stderr.contains("3 |   return args.n * ;"), "{}", refused.stderr);
    assert_eq!(project.run(&["read", "tools/double.ts"]).stdout, good);
    // What only the rules are against is written, and said.
    let warned = patch("{ n: number }", "any").expect_code(0);
    assert!(warned.stderr.contains("the checker finds an error: tools/double.ts:2:"), "{}", warned.stderr);
    assert!(warned.stderr.contains("[no-any]"), "{}", warned.stderr);
}
