//! Workers that cannot start or cannot lock themselves: the caller learns which step failed and why, in a text that is
//! safe to show whatever wrote it.
//!
//! This binary is the worker. With one of the arguments below before those of a worker it first becomes a process that a
//! system treats worse, or one that is no worker at all.
#![expect(unsafe_code, reason = "a filter is installed by calls of the operating system")]

use std::fs;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use tgp_contract::Code;
use tgp_sandbox::{CompileFailure, SandboxError, WorkerCommand};

use crate::worker::{Tested, Workers};

type Test = (&'static str, fn(&Workers) -> Tested);

pub const TESTS: &[Test] = &[
    ("refused_lock_names_the_step_of_a_compile_worker", compile_worker),
    ("refused_lock_names_the_step_of_a_template", template),
    ("refused_lock_text_of_a_hostile_process_is_short_and_visible", hostile_text),
    ("refused_lock_is_said_before_the_lock_or_not_at_all", too_late),
    ("program_that_does_not_start_is_not_a_fault_of_the_kernel", programs),
];

/// `DENY CASE KIND`: a worker of this kind meets a system that refuses what the case names.
const DENY: &str = "__deny";
/// `SAY HEX KIND`: in the place of a worker of this kind, writes these bytes to the connection.
const SAY: &str = "__say";

/// A system call that is refused when one of its arguments has a value.
struct Refused {
    name: &'static str,
    call: libc::c_long,
    argument: u32,
    value: u32,
    action: u32,
    /// What the error says.
    expected: [&'static str; 2],
}

const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

const CASES: [Refused; 5] = [
    Refused {
        name: "parent",
        call: libc::SYS_prctl,
        argument: 0,
        value: libc::PR_SET_PDEATHSIG as u32,
        action: EPERM,
        expected: ["a worker cannot ask to end with its parent", "Operation not permitted"],
    },
    Refused {
        name: "stack",
        call: libc::SYS_prlimit64,
        argument: 1,
        value: libc::RLIMIT_STACK,
        action: EPERM,
        expected: ["a worker cannot set the limit of its stack", "Operation not permitted"],
    },
    Refused {
        name: "landlock",
        call: libc::SYS_landlock_restrict_self,
        argument: 1,
        value: 0,
        action: EPERM,
        expected: ["Landlock", "Operation not permitted"],
    },
    Refused {
        name: "seccomp",
        call: libc::SYS_seccomp,
        argument: 0,
        value: libc::SECCOMP_SET_MODE_FILTER,
        action: EPERM,
        expected: ["a worker cannot install the system call filter", "Operation not permitted"],
    },
    Refused {
        name: "killed",
        call: libc::SYS_seccomp,
        argument: 0,
        value: libc::SECCOMP_SET_MODE_FILTER,
        action: libc::SECCOMP_RET_KILL_PROCESS,
        expected: ["a worker cannot lock itself", "SIGSYS"],
    },
];

/// What this process is when its arguments say that it is something else than a test or a worker.
pub fn launched() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().filter(|mode| mode == DENY || mode == SAY)?;
    let (what, kind) = (arguments.next()?, arguments.next()?);
    let worker: Vec<String> = arguments.collect();
    if worker.get(1) == Some(&kind) {
        if mode == SAY {
            return Some(say(&what));
        }
        CASES.iter().filter(|refused| refused.name == what).for_each(install);
    }
    // It returns only when it has failed.
    let _ = Command::new("/proc/self/exe").args(worker).exec();
    Some(ExitCode::FAILURE)
}

fn say(hex: &str) -> ExitCode {
    let digits = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).filter_map(digits).collect();
    // SAFETY: descriptor 0 is the connection that the test has made, and nothing else here uses it.
    let mut connection = unsafe { std::os::unix::net::UnixStream::from_raw_fd(0) };
    let _ = connection.write_all(&bytes);
    // Ends when the other side closes.
    let _ = std::io::Read::read_to_end(&mut connection, &mut Vec::new());
    ExitCode::SUCCESS
}

fn install(refused: &Refused) {
    // Where the number of the call and its first argument are in what a filter reads.
    const NUMBER: u32 = 0;
    const ARGUMENTS: u32 = 16;
    let statement = |code: u32, jump_if_true: u8, jump_if_false: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_if_true,
        jf: jump_if_false,
        k: value,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let mut program = [
        statement(load, 0, 0, NUMBER),
        statement(is, 0, 3, refused.call as u32),
        statement(load, 0, 0, ARGUMENTS + 8 * refused.argument),
        statement(is, 0, 1, refused.value),
        statement(end, 0, 0, refused.action),
        statement(end, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, and its length is that of the array.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
    }
}

fn command(arguments: &[&str]) -> WorkerCommand {
    WorkerCommand {
        program: "/proc/self/exe".into(),
        arguments: arguments.iter().map(|argument| (*argument).into()).collect(),
    }
}

/// The error of the first thing that needs a worker.
fn refusal(worker: WorkerCommand) -> Result<SandboxError, Box<dyn std::error::Error>> {
    let workers = Workers::start_with(worker)?;
    match workers.compile() {
        Ok(()) => workers.lock_report().err().ok_or_else(|| "it works".into()),
        Err(CompileFailure::Sandbox(error)) => Ok(error),
        Err(other) => Err(other.into()),
    }
}

fn check(error: &SandboxError, code: Code, expected: &[&str]) -> Tested {
    let text = error.to_string();
    let is_as_expected = error.code() == code && expected.iter().all(|part| text.contains(part));
    if is_as_expected {
        Ok(())
    } else {
        Err(format!("{}: {text}; expected {expected:?}", error.code()).into())
    }
}

fn compile_worker(_: &Workers) -> Tested {
    CASES.iter().try_for_each(|case| {
        check(&refusal(command(&[DENY, case.name, "compile"]))?, Code::Capability, &case.expected)
    })
}

fn template(_: &Workers) -> Tested {
    CASES.iter().try_for_each(|case| {
        check(&refusal(command(&[DENY, case.name, "template"]))?, Code::Capability, &case.expected)
    })
}

/// A frame of postcard: its length, the number of the variant, and the rest.
fn frame(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes(), body].concat()
}

/// The message of a process that could not lock itself.
fn start_failed(step: &str, cause: &str) -> Vec<u8> {
    const VARIANT: u8 = 6;
    let mut body = vec![VARIANT];
    for text in [step, cause] {
        let mut length = text.len();
        while length >= 0x80 {
            body.push((length & 0x7F) as u8 | 0x80);
            length >>= 7;
        }
        body.push(length as u8);
        body.extend(text.as_bytes());
    }
    frame(&body)
}

fn saying(bytes: &[u8], kind: &str) -> WorkerCommand {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    command(&[SAY, &hex, kind])
}

fn hostile_text(_: &Workers) -> Tested {
    let long = "x".repeat(20_000);
    for (step, cause) in [
        ("clear\u{1b}[2J the\r\nscreen", "\u{202e}txet\u{0}"),
        (long.as_str(), long.as_str()),
        ("\u{1b}".repeat(400).as_str(), "é".repeat(399).as_str()),
        ("", ""),
    ] {
        let error = refusal(saying(&start_failed(step, cause), "compile"))?;
        check(&error, Code::Capability, &["because a worker cannot"])?;
        let text = error.to_string();
        if text.len() > 1000 || text.chars().any(tgp_text::is_unseen) {
            return Err(format!("{} bytes: {text}", text.len()).into());
        }
    }
    // What is no such message is not read as one.
    for bytes in [frame(&[6]), frame(&[6, 200, 1]), frame(&[6, 1, 0xFF, 0]), frame(&[7, 0, 0])] {
        check(&refusal(saying(&bytes, "compile"))?, Code::Internal, &["a worker did not get ready"])?;
    }
    Ok(())
}

/// After its lock a process has read requests: what it says then is not taken for a fault of the machine.
fn too_late(_: &Workers) -> Tested {
    let locked = frame(&[0, 1, 0, 1, 0, 0]);
    let said = [locked, start_failed("lie", "because")].concat();
    check(
        &refusal(saying(&said, "template"))?,
        Code::Internal,
        &["it answered its warm-up with something else"],
    )
}

fn programs(_: &Workers) -> Tested {
    let folder = tempfile::tempdir()?;
    let file = |name: &str, mode: u32| -> std::io::Result<_> {
        let path = folder.path().join(name);
        fs::write(&path, "\u{7f}ELF of another processor")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        Ok(path)
    };
    for (program, cause) in [
        (file("foreign", 0o755)?, "Exec format error"),
        (file("forbidden", 0o644)?, "Permission denied"),
        (folder.path().join("missing"), "No such file"),
    ] {
        let worker = WorkerCommand { program, arguments: Vec::new() };
        check(&refusal(worker)?, Code::Capability, &["a worker cannot be started", cause])?;
    }
    Ok(())
}
