//! Machines that have neither seccomp nor Landlock, or on which no worker can be started: what needs none works, and the
//! rest refuses.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "a filter is installed between fork and exec by calls of the operating system"
)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::project::{Project, Ran};

/// Where the number of the system call and its first argument are in what the filter reads.
const NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

const TOOL: &str = "export default (args: { value: number }): number => args.value + 1;\n";

/// Hides both: the kernel answers as one that was built without them.
fn run_without_locks(project: &Project, arguments: &[&str]) -> Ran {
    run_after(project.command(arguments), hide_locks)
}

/// No process can ask to end with its parent, so no worker gets as far as its lock.
fn run_without_workers(project: &Project, arguments: &[&str]) -> Ran {
    run_after(project.command(arguments), forbid_workers)
}

fn run_after(mut command: Command, change: fn() -> io::Result<()>) -> Ran {
    // SAFETY: the functions make two system calls on memory of their own; they allocate nothing and take no lock.
    unsafe {
        command.pre_exec(change);
    }
    Ran::from(command.output().unwrap())
}

fn statement(code: u32, jump_if_true: u8, jump_if_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_if_true, jf: jump_if_false, k: value }
}

fn forbid_workers() -> io::Result<()> {
    let (load, is) =
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
    install(&mut [
        statement(load, 0, 0, NUMBER),
        statement(is, 0, 3, libc::SYS_prctl as u32),
        statement(load, 0, 0, FIRST_ARGUMENT),
        statement(is, 0, 1, libc::PR_SET_PDEATHSIG as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

fn hide_locks() -> io::Result<()> {
    let is_call = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    install(&mut [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER),
        statement(is_call, 2, 0, libc::SYS_seccomp as u32),
        statement(is_call, 1, 0, libc::SYS_landlock_create_ruleset as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ])
}

fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, and its length is that of the slice.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn the_demo_refuses_at_its_start() {
    let project = Project::empty();
    let ran = run_without_locks(&project, &["demo"]).expect_code(2);
    assert_eq!(ran.stdout, "", "nothing is told before the refusal");
    assert!(ran.stderr.contains("ECAPABILITY"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no seccomp filters"), "{}", ran.stderr);
    assert!(ran.stderr.contains("tgp doctor"), "{}", ran.stderr);
    assert!(!project.all_files().iter().any(|name| name.contains("tgp-demo-")), "no folder is left");
}

#[test]
fn what_needs_no_tool_works_and_a_tool_does_not_run() {
    let project = Project::empty();
    run_without_locks(&project, &["init"]).expect_code(0);
    project.write("one.ts", TOOL);
    run_without_locks(&project, &["write", "tools/one.ts", "--file", "one.ts"]).expect_code(0);
    run_without_locks(&project, &["check", "tools/one.ts"]).expect_code(0);
    let ran = run_without_locks(&project, &["exec", "tools/one.ts", r#"{"value":1}"#]).expect_code(2);
    assert!(ran.stderr.contains("ECAPABILITY"), "{}", ran.stderr);
    let ran = run_without_locks(&project, &["doctor"]);
    assert!(ran.stdout.contains("no seccomp filters"), "{}", ran.stdout);
}

const STEP: &str = "a worker cannot ask to end with its parent: Operation not permitted";

#[test]
fn commands_that_run_no_tool_need_no_worker() {
    let project = Project::initialised();
    project.write("one.ts", TOOL);
    // Compiles the configuration, and describes the tool for searches.
    project.run(&["write", "tools/one.ts", "--file", "one.ts"]).expect_code(0);
    project.run(&["search", "add"]).expect_code(0);
    for (arguments, expected) in [
        (&["list"][..], "one.ts"),
        (&["log"], "one"),
        (&["read", "tools/one.ts"], "args.value"),
        (&["audit", "verify"], "intact"),
        (&["audit", "tail"], "write_file"),
        (&["search", "add one to a value"], "tools/one.ts"),
        (&["state", "show"], "idle"),
        (&["tools"], "exec_tool"),
        (&["call", "read_file", r#"{"path":"tools/one.ts"}"#], "args.value"),
        (&["call", "fs_list", "{}"], "tgp.config.ts"),
    ] {
        // A worker that does not start is in the log.
        let mut command = project.command(arguments);
        command.env("TGP_LOG", "warn");
        let ran = run_after(command, forbid_workers).expect_code(0);
        assert!(ran.stdout.contains(expected), "{arguments:?}: {}", ran.stdout);
        assert!(!ran.stderr.contains("worker"), "{arguments:?} started one: {}", ran.stderr);
    }
}

#[test]
fn what_needs_a_worker_says_why_there_is_none() {
    let project = Project::initialised();
    project.write("one.ts", TOOL);
    project.run(&["write", "tools/one.ts", "--file", "one.ts"]).expect_code(0);
    project.write("two.ts", TOOL);
    for arguments in [
        &["exec", "tools/one.ts", r#"{"value":1}"#][..],
        &["check", "tools/one.ts"],
        &["write", "tools/two.ts", "--file", "two.ts"],
    ] {
        let ran = run_without_workers(&project, arguments).expect_code(2);
        for part in ["error[ECAPABILITY]", STEP, "tgp doctor"] {
            assert!(ran.stderr.contains(part), "{arguments:?} lacks {part}: {}", ran.stderr);
        }
    }
    let call = ["call", "--yes", "exec_tool", r#"{"path":"tools/one.ts","args":{"value":1}}"#];
    let error = run_without_workers(&project, &call).expect_code(2).document()["error"].clone();
    assert_eq!(error["code"], "ECAPABILITY", "{error}");
    assert_eq!(error["details"]["step"], "ask to end with its parent", "{error}");
    assert_eq!(error["details"]["cause"], "Operation not permitted (os error 1)", "{error}");
}

#[test]
fn a_configuration_that_was_never_compiled_needs_a_worker() {
    let project = Project::initialised();
    project.write("tgp.config.ts", "export default { rootDir: '.tgp', registry: {} };\n");
    for arguments in [&["log"][..], &["audit", "verify"]] {
        let ran = run_without_workers(&project, arguments).expect_code(2);
        for part in ["error[ECAPABILITY]", "tgp.config.ts", STEP, "tgp doctor"] {
            assert!(ran.stderr.contains(part), "{arguments:?} lacks {part}: {}", ran.stderr);
        }
    }
    // A file without code in it needs none.
    std::fs::remove_file(project.file("tgp.config.ts")).unwrap();
    project.write("tgp.config.json", "{}");
    run_without_workers(&project, &["log"]).expect_code(0);
}

#[test]
fn the_doctor_does_not_send_to_the_doctor() {
    let compiled = Project::initialised();
    compiled.run(&["list"]).expect_code(0);
    let fresh = Project::initialised();
    fresh.write("tgp.config.ts", "export default { registry: {} };\n");
    for project in [compiled, fresh] {
        for run in [run_without_workers, run_without_locks] {
            let ran = run(&project, &["doctor"]);
            assert!(ran.stdout.contains("in a container, choose a seccomp profile"), "{}", ran.stdout);
            assert!(!ran.stdout.contains("tgp doctor"), "{}", ran.stdout);
        }
    }
}
