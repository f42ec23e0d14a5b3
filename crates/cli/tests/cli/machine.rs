//! A machine that has neither seccomp nor Landlock: what needs no tool works, and the rest refuses.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "a filter is installed between fork and exec by calls of the operating system"
)]

use std::io;
use std::os::unix::process::CommandExt;

use crate::project::{Project, Ran};

/// Where the number of the system call is in what the filter reads.
const NUMBER: u32 = 0;

const TOOL: &str = "export default (args: { value: number }): number => args.value + 1;\n";

/// Hides both: the kernel answers as one that was built without them.
fn run_without_locks(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    // SAFETY: the closure makes two system calls on memory of its own; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(hide_locks);
    }
    Ran::from(command.output().unwrap())
}

fn hide_locks() -> io::Result<()> {
    let statement = |code: u32, jump_if_true: u8, jump_if_false: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_if_true,
        jf: jump_if_false,
        k: value,
    };
    let is_call = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER),
        statement(is_call, 2, 0, libc::SYS_seccomp as u32),
        statement(is_call, 1, 0, libc::SYS_landlock_create_ruleset as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, and its length is that of the array.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn the_demo_refuses_at_its_start() {
    let project = Project::empty();
    let ran = run_without_locks(&project, &["demo"]).expect_code(3);
    assert_eq!(ran.stdout, "", "nothing is told before the refusal");
    assert!(ran.stderr.contains("ESECURITY"), "{}", ran.stderr);
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
    let ran = run_without_locks(&project, &["exec", "tools/one.ts", r#"{"value":1}"#]).expect_code(3);
    assert!(ran.stderr.contains("ESECURITY"), "{}", ran.stderr);
    let ran = run_without_locks(&project, &["doctor"]);
    assert!(ran.stdout.contains("no seccomp filters"), "{}", ran.stdout);
}
