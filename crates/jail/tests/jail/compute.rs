//! The compute worker: everything that leads out fails, everything a worker needs works.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use tgp_jail::{JailError, NamespaceSet, Profile, ResourceLimits, lock_this_process};

use crate::harness::{self, Locked, Verdict, Who, everybody, probe_command, run_probe, verdict};
use crate::probes;

/// Something that a copy of this binary does; it ends with code 0 unless it panics or is killed.
pub struct Work {
    pub name: &'static str,
    pub run: fn(),
}

pub const WORK: &[Work] = &[
    Work { name: "converse", run: converse },
    Work { name: "report", run: report },
    Work { name: "too much memory", run: too_much_memory },
    Work { name: "burn", run: burn },
    Work { name: "abort", run: abort },
    Work { name: "threads", run: threads },
    Work { name: "poor platform", run: poor_platform },
    Work { name: "time the lock", run: time_the_lock },
];

fn lock(profile: &Profile) -> tgp_jail::LockReport {
    lock_this_process(profile).unwrap()
}

#[test]
fn every_way_out_fails() {
    for who in everybody() {
        for probe in probes::ALL {
            let got = verdict(probe.name, &run_probe(probe.name, Locked::Compute, who));
            assert_ne!(got, Verdict::Allowed, "`{}` got through as {who:?}", probe.name);
        }
    }
}

#[test]
fn the_same_probes_succeed_without_a_lock() {
    for who in everybody() {
        for probe in probes::ALL.iter().filter(|probe| probe.free) {
            let got = verdict(probe.name, &run_probe(probe.name, Locked::Not, who));
            assert_eq!(got, Verdict::Allowed, "`{}` proves nothing as {who:?}", probe.name);
        }
    }
}

#[test]
fn hostile_calls_end_the_worker() {
    for name in ["ptrace", "mount", "unshare", "io_uring_setup", "bpf", "process_vm_readv"] {
        let got = verdict(name, &run_probe(name, Locked::Compute, Who::Caller));
        assert_eq!(got, Verdict::Killed, "`{name}`");
    }
}

/// What an engine does: memory, clocks, randomness, a panic that is caught, and a talk over the inherited socket.
fn converse() {
    lock(&Profile::compute_worker());
    let mut kernel = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    let mut request = [0_u8; 4];
    kernel.read_exact(&mut request).unwrap();
    assert_eq!(&request, b"ping");

    let mut blocks: Vec<Vec<u8>> = (0..32).map(|fill| vec![fill; 2 << 20]).collect();
    blocks.iter_mut().for_each(|block| block.reserve(1 << 20));
    let total: u64 = blocks.iter().flatten().map(|byte| u64::from(*byte)).sum();
    drop(blocks);
    let words: HashMap<u64, u64> = (0..10_000).map(|number| (number, number * number)).collect();
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(2));
    assert!(start.elapsed() >= Duration::from_millis(2));
    assert!(SystemTime::now() > SystemTime::UNIX_EPOCH);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
    std::panic::set_hook(hook);
    kernel.set_nonblocking(true).unwrap();
    assert!(kernel.read(&mut request).is_err());
    kernel.set_nonblocking(false).unwrap();
    eprintln!("a worker can still say why it fails");
    kernel.write_all(format!("{total} {}", words.len()).as_bytes()).unwrap();
}

#[test]
fn a_worker_computes_and_talks() {
    for who in everybody() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut command = probe_command("converse", Locked::Not);
        harness::as_user(&mut command, who);
        let child = command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The command still holds its copy of the other end, without which reading would never end.
        drop(command);
        ours.write_all(b"ping").unwrap();
        let mut answer = String::new();
        ours.read_to_string(&mut answer).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(answer, format!("{} 10000", (0..32_u64).sum::<u64>() * (2 << 20)));
    }
}

fn report() {
    println!("{:?}", lock(&Profile::compute_worker()));
}

#[test]
fn the_report_says_what_was_locked() {
    for who in everybody() {
        let output = run_probe("report", Locked::Not, who);
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = tgp_jail::probe();
        assert!(text.contains("no_new_privileges: true"), "{text}");
        assert!(text.contains(&format!("landlock_abi: {:?}", expected.landlock_abi)), "{text}");
        assert!(text.contains(&format!("seccomp: {:?}", expected.seccomp)), "{text}");
        if who == Who::Caller && expected.namespaces.len() == 6 {
            assert!(text.contains(r#"namespaces: ["user", "network", "ipc"], missing: []"#), "{text}");
        }
    }
}

#[test]
fn a_probe_locks_nothing() {
    let before = tgp_jail::probe();
    assert_eq!(before, tgp_jail::probe());
    assert!(std::fs::read("/proc/self/status").is_ok());
    println!("{before:?}");
}

fn too_much_memory() {
    let limits = ResourceLimits { address_space: Some(256 << 20), ..Profile::compute_worker().limits };
    lock(&Profile { limits, ..Profile::compute_worker() });
    let mut block: Vec<u8> = Vec::new();
    block.try_reserve_exact(64 << 20).unwrap();
    assert!(block.try_reserve_exact(512 << 20).is_err());
}

#[test]
fn memory_is_limited() {
    let output = run_probe("too much memory", Locked::Not, Who::Caller);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn burn() {
    let limits = ResourceLimits { cpu_seconds: Some(1), ..Profile::compute_worker().limits };
    lock(&Profile { limits, ..Profile::compute_worker() });
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        std::hint::spin_loop();
    }
}

#[test]
fn cpu_time_is_limited() {
    let output = run_probe("burn", Locked::Not, Who::Caller);
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
}

fn abort() {
    lock(&Profile::compute_worker());
    std::process::abort();
}

#[test]
fn an_abort_is_seen_as_one() {
    assert_eq!(run_probe("abort", Locked::Not, Who::Caller).status.signal(), Some(libc::SIGABRT));
}

fn threads() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let waiting = std::thread::spawn(move || receiver.recv());
    assert!(matches!(lock_this_process(&Profile::compute_worker()), Err(JailError::SeveralThreads)));
    drop(sender);
    waiting.join().unwrap().unwrap_err();
}

#[test]
fn a_process_with_threads_is_not_locked_halfway() {
    let output = run_probe("threads", Locked::Not, Who::Caller);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A kernel without Landlock, in a container that forbids namespaces.
fn poor_platform() {
    let refuse = |calls: &[i64], errno: i32| {
        let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
        let action = SeccompAction::Errno(errno as u32);
        let target = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, target).unwrap();
        seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    };
    refuse(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS);
    refuse(&[libc::SYS_unshare], libc::EPERM);
    let report = lock(&Profile::compute_worker());
    assert_eq!(report.landlock_abi, None);
    assert!(report.namespaces.is_empty() && report.seccomp && report.no_new_privileges);
    assert_eq!(report.missing.len(), 2, "{:?}", report.missing);
    assert!(report.missing.iter().all(|line| line.ends_with('.')), "{:?}", report.missing);
    assert!(std::fs::File::open("/etc/passwd").is_err());
    println!("{}", report.missing.join("\n"));
}

#[test]
fn what_a_platform_lacks_is_reported_and_no_error() {
    for who in everybody() {
        let output = run_probe("poor platform", Locked::Not, who);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("no Landlock"));
    }
}

fn time_the_lock() {
    let mut profile = Profile::compute_worker();
    if std::env::var_os("TGP_JAIL_NO_NAMESPACES").is_some() {
        profile.namespaces = NamespaceSet::default();
    }
    let start = Instant::now();
    lock(&profile);
    println!("{}", start.elapsed().as_micros());
}

/// Printed, not asserted: machines differ, and a busy one differs from itself.
#[test]
fn the_cost_of_a_lock() {
    for (title, bare) in [("with namespaces", false), ("without namespaces", true)] {
        let mut times: Vec<u64> = (0..20)
            .map(|_| {
                let mut command = probe_command("time the lock", Locked::Not);
                if bare {
                    command.env("TGP_JAIL_NO_NAMESPACES", "1");
                }
                let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
                text.lines().find_map(|line| line.trim().parse().ok()).unwrap()
            })
            .collect();
        times.sort_unstable();
        println!("lock {title}: median {} µs, fastest {} µs", times[10], times[0]);
    }
}
