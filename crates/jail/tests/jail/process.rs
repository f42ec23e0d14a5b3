//! The process filter from inside, with native probes: an ordinary program loses the ways out and nothing else.

use tgp_jail::{NamespaceSet, PathAccess, Profile, jailed_command};

use crate::command::profile_for;
use crate::harness::{
    EXECUTABLE, Locked, Verdict, Who, as_user, everybody, folder_of, probe_command, verdict,
};

/// Attempts that must fail in every process jail, with namespaces or without.
const FORBIDDEN: &[&str] = &[
    "socket inet",
    "socket inet6",
    "socket unix",
    "socket netlink",
    "clone3",
    "ptrace",
    "process_vm_readv",
    "mount",
    "chroot",
    "unshare",
    "setns",
    "io_uring_setup",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "add_key",
    "memfd_secret",
    "memfd_create with huge pages",
    "vmsplice",
    "unshare the descriptors",
    "a thread with its own descriptors",
    "open in the x32 numbers",
    "open through the 32-bit gate",
];

/// What builds and tests do all day.
const ORDINARY: &[&str] = &[
    "openat",
    "openat2",
    "stat",
    "chdir",
    "socketpair",
    "execve",
    "clone",
    "map executable memory",
    "make memory executable",
    "memfd_create",
    "pipe",
    "dup",
    "timer_create",
    "futex with priorities",
];

fn probe(profile: &Profile, name: &str, who: Who) -> Verdict {
    let mut command = probe_command(name, Locked::Not);
    as_user(&mut command, who);
    let profile = profile.clone().allow(EXECUTABLE.parent().unwrap(), PathAccess::ReadExecute);
    let output = jailed_command(&profile, command).unwrap().output().unwrap();
    verdict(name, &output)
}

#[test]
fn the_ways_out_are_shut_and_the_rest_works() {
    for who in everybody() {
        let project = folder_of(who);
        let full = profile_for(project.path(), who);
        let bare = Profile { namespaces: NamespaceSet::default(), ..full.clone() };
        for profile in [full, bare] {
            for name in FORBIDDEN {
                let got = probe(&profile, name, who);
                assert_ne!(got, Verdict::Allowed, "`{name}` got through as {who:?} {:?}", profile.namespaces);
            }
            for name in ORDINARY {
                let got = probe(&profile, name, who);
                assert_eq!(got, Verdict::Allowed, "`{name}` failed as {who:?} {:?}", profile.namespaces);
            }
        }
    }
}
