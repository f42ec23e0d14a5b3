//! seccomp: the system calls that a locked process can still make.

use std::io;

use libc::c_long;
use nix::errno::Errno;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{self, Eq, Le, MaskedEq, Ne};
use seccompiler::{BackendError, BpfProgram, SeccompCmpArgLen, SeccompCondition, SeccompRule};

use super::bpf::{self, Action, Decision, Decisions};
use super::{Refusal, files};
use crate::{FileAccess, JailError, NetworkAccess, Profile, SyscallFilter};

/// One more than the newest system call that was reviewed, the same number on both processors. What a newer kernel adds
/// does not exist in the jail until it is reviewed; neither do the x32 calls of x86_64, which are a second name for
/// every other call.
const UNKNOWN: u32 = libc::SYS_mseal as u32 + 1;

/// Libraries try things and live with a refusal; killing them for it would turn a probe into a crash.
const DENY: Action = Action::Fail(libc::EPERM);

/// The personality that `setarch` of 32-bit builds asks for, from `linux/personality.h`.
const PER_LINUX32: u64 = 8;

/// Commands of `ioctl`, which differ in type from one C library to the next but not in value on these processors.
const FIONBIO: u64 = 0x5421;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// `SYS_kexec_file_load`, which not every C library's headers have.
const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// The processor's name in `linux/audit.h`.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};

/// Stands for the process that installs the filter, whose number may not be known when the filter is compiled. No process
/// has such a number, and no other constant of a filter is equal to it.
const OWN_PROCESS: u32 = 0x7F4A_11CE;

/// A compiled filter.
#[derive(Debug)]
pub(crate) struct Program(BpfProgram);

/// Whether this kernel can run filters and this crate can write them for its processor.
pub(crate) fn available() -> bool {
    ARCHITECTURE.is_some() && kernel::knows_filters()
}

/// Compiles the filter of a profile; none when the profile asks for none.
pub(crate) fn compile(profile: &Profile, landlock_abi: Option<u32>) -> Result<Option<Program>, JailError> {
    let Some(architecture) = ARCHITECTURE else { return Ok(None) };
    let (decisions, default) = match profile.syscalls {
        SyscallFilter::Unfiltered => return Ok(None),
        SyscallFilter::Compute => (compute(), DENY),
        SyscallFilter::Template => (template(), DENY),
        SyscallFilter::Process => (process(profile, landlock_abi), Action::Allow),
    };
    let decisions = decisions.map_err(|error| JailError::Filter(Box::new(error)))?;
    Ok(Some(Program(bpf::assemble(architecture, decisions, default, UNKNOWN))))
}

/// Compiles what a worker adds to the filter of the template it was forked from.
pub(crate) fn compile_for_child() -> Result<Option<Program>, JailError> {
    let Some(architecture) = ARCHITECTURE else { return Ok(None) };
    let decisions = beyond_template().map_err(|error| JailError::Filter(Box::new(error)))?;
    Ok(Some(Program(bpf::assemble(architecture, decisions, Action::Allow, UNKNOWN))))
}

impl Program {
    /// Installs the filter on the calling thread. System calls only.
    pub(crate) fn install(&mut self) -> Result<(), Refusal> {
        for step in self.0.iter_mut().filter(|step| step.k == OWN_PROCESS) {
            step.k = std::process::id();
        }
        seccompiler::apply_filter(&self.0).map_err(|error| {
            let errno = match error {
                seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source) => errno_of(&source),
                _ => Errno::EINVAL,
            };
            Refusal { step: "install the system call filter", errno }
        })
    }
}

fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EINVAL, Errno::from_raw)
}

/// Decisions under way, with the calls that C libraries count as signed.
#[derive(Default)]
struct Draft(Decisions);

impl Draft {
    fn always(&mut self, calls: &[c_long], action: Action) {
        self.0.extend(calls.iter().map(|call| (*call as u32, Decision::Always(action))));
    }

    /// The first action when one of the rules fits, else the second.
    fn when(&mut self, call: c_long, rules: Vec<SeccompRule>, fits: Action, otherwise: Action) {
        self.0.insert(call as u32, Decision::When(rules, fits, otherwise));
    }
}

fn condition(
    argument: u8,
    width: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, width, operator, value)
}

/// A rule for each value: together they fit when one of them does.
fn any_of(
    values: &[u64],
    test: impl Fn(u64) -> Result<SeccompCondition, BackendError>,
) -> Result<Vec<SeccompRule>, BackendError> {
    values.iter().map(|value| SeccompRule::new(vec![test(*value)?])).collect()
}

/// A rule that fits when the argument has none of the values.
fn none_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, BackendError> {
    let tests =
        values.iter().map(|value| condition(argument, Dword, Ne, *value)).collect::<Result<_, _>>()?;
    Ok(vec![SeccompRule::new(tests)?])
}

/// The allow-list of a worker.
fn compute() -> Result<Decisions, BackendError> {
    let mut draft = Draft::default();
    draft.always(HOSTILE, Action::Kill);
    draft.always(COMPUTE, Action::Allow);
    #[cfg(target_arch = "x86_64")]
    draft.always(&[libc::SYS_poll, libc::SYS_time], Action::Allow);

    // Memory, but never code: what the engine interprets cannot become instructions.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let data_only = any_of(&[0], |none| condition(2, Dword, MaskedEq(libc::PROT_EXEC as u64), none))?;
        draft.when(call, data_only, Action::Allow, DENY);
    }
    // Waiting and waking only; the other futex operations have been a way into the kernel more than once.
    let operations = [libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAKE_BITSET];
    let operation = u64::from(!(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32);
    let plain = any_of(&operations.map(|value| value as u64), |value| {
        condition(1, Dword, MaskedEq(operation), value)
    })?;
    draft.when(libc::SYS_futex, plain, Action::Allow, DENY);
    // Fixed clocks only: a negative number names the CPU clock of another process, or a descriptor.
    for call in [libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep] {
        let fixed = any_of(&[libc::CLOCK_TAI as u64], |last| condition(0, Dword, Le, last))?;
        draft.when(call, fixed, Action::Allow, DENY);
    }
    // Descriptor flags, and switching a socket between blocking and not.
    let flags = [libc::F_GETFD, libc::F_GETFL, libc::F_SETFL].map(|command| command as u64);
    draft.when(libc::SYS_fcntl, any_of(&flags, |value| condition(1, Dword, Eq, value))?, Action::Allow, DENY);
    let blocking = any_of(&[FIONBIO], |value| condition(1, Dword, Eq, value))?;
    draft.when(libc::SYS_ioctl, blocking, Action::Allow, DENY);
    // To the peer only: a datagram socket could otherwise name another receiver.
    let to_peer = any_of(&[0], |null| condition(4, Qword, Eq, null))?;
    draft.when(libc::SYS_sendto, to_peer, Action::Allow, DENY);
    // abort() ends in a signal to oneself, and the parent should see that very signal.
    let own = condition(0, Dword, Eq, OWN_PROCESS.into())?;
    draft.when(libc::SYS_tgkill, vec![SeccompRule::new(vec![own, abort()?])?], Action::Allow, DENY);
    Ok(draft.0)
}

fn abort() -> Result<SeccompCondition, BackendError> {
    condition(2, Dword, Eq, libc::SIGABRT as u64)
}

/// The allow-list of a template: that of its workers, and what each of them does between its birth and its own filter.
fn template() -> Result<Decisions, BackendError> {
    let mut draft = Draft(compute()?);
    draft.always(&[libc::SYS_dup3, libc::SYS_getppid], Action::Allow);
    // A process beside it, and neither a thread nor a namespace.
    let beside =
        any_of(&[(libc::CLONE_PARENT | libc::SIGCHLD) as u64], |flags| condition(0, Qword, Eq, flags))?;
    draft.when(libc::SYS_clone, beside, Action::Allow, DENY);
    let options = [libc::PR_SET_PDEATHSIG, libc::PR_SET_NO_NEW_PRIVS].map(|option| option as u64);
    let harmless = any_of(&options, |option| condition(0, Dword, Eq, option))?;
    draft.when(libc::SYS_prctl, harmless, Action::Allow, DENY);
    let add = any_of(&[libc::SECCOMP_SET_MODE_FILTER.into()], |mode| condition(0, Dword, Eq, mode))?;
    draft.when(libc::SYS_seccomp, add, Action::Allow, DENY);
    let own_limits = any_of(&[0], |own| condition(0, Dword, Eq, own))?;
    draft.when(libc::SYS_prlimit64, own_limits, Action::Allow, DENY);
    // Which number its workers have is known only to their own filters.
    draft.when(libc::SYS_tgkill, vec![SeccompRule::new(vec![abort()?])?], Action::Allow, DENY);
    Ok(draft.0)
}

/// What a worker may do less than its template. The kernel asks all filters of a process and takes the strictest answer,
/// so that the other calls need not be decided again: each instruction of a filter is translated for each worker anew.
fn beyond_template() -> Result<Decisions, BackendError> {
    let mut compute = compute()?;
    let differs = |(call, decision): (u32, Decision)| match compute.remove(&call) {
        Some(own) if own == decision => None,
        Some(own) => Some((call, own)),
        None => Some((call, Decision::Always(DENY))),
    };
    Ok(template()?.into_iter().filter_map(differs).collect())
}

/// Calls of a worker that take no argument worth checking.
const COMPUTE: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that only a program that looks for a way out makes. In a worker they end the process at once, so that it
/// cannot try one after the other; in an ordinary program they fail.
const HOSTILE: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
];

/// More that no build, test or shell needs: the machine's clock, name, quota, log, and pages of other processes.
const ADMINISTRATIVE: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_name_to_handle_at,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_process_mrelease,
];

/// Memory that belongs to no mapping, descriptor or list that the watch can read.
const UNCOUNTED: &[c_long] = &[libc::SYS_memfd_secret];

const LANDLOCK: &[c_long] =
    &[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

/// The deny-list of an ordinary program.
fn process(profile: &Profile, landlock_abi: Option<u32>) -> Result<Decisions, BackendError> {
    let mut draft = Draft::default();
    draft.always(HOSTILE, DENY);
    draft.always(ADMINISTRATIVE, DENY);
    draft.always(UNCOUNTED, DENY);
    // Pages that a pipe keeps after their mapping is gone. Programs that know the call fall back to writing.
    draft.always(&[libc::SYS_vmsplice], Action::Fail(libc::ENOSYS));
    // Rules that a descriptor keeps, in any number. Programs that would lock themselves further go on without, as on a system
    // that has no Landlock.
    draft.always(LANDLOCK, Action::Fail(libc::ENOSYS));
    // Its files are on file systems of their own, which the watch does not look for.
    let huge = any_of(&[libc::MFD_HUGETLB.into()], |flag| condition(1, Dword, MaskedEq(flag), flag))?;
    draft.when(libc::SYS_memfd_create, huge, DENY, Action::Allow);
    // `/proc/PID/fd` shows the descriptors of a process, so no thread has others.
    let unshare = u64::from(libc::CLOSE_RANGE_UNSHARE);
    let own_descriptors = any_of(&[unshare], |flag| condition(2, Dword, MaskedEq(flag), flag))?;
    draft.when(libc::SYS_close_range, own_descriptors, DENY, Action::Allow);
    #[cfg(target_arch = "x86_64")]
    draft.always(&[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt], DENY);

    // Namespaces hand out capabilities; an ordinary clone is fine.
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let mut refused = any_of(&namespaces.map(|flag| u64::from(flag as u32)), |flag| {
        condition(0, Dword, MaskedEq(flag), flag)
    })?;
    let (thread, descriptors) = (libc::CLONE_THREAD as u64, libc::CLONE_FILES as u64);
    refused.push(SeccompRule::new(vec![condition(0, Dword, MaskedEq(thread | descriptors), thread)?])?);
    draft.when(libc::SYS_clone, refused, DENY, Action::Allow);
    // clone3 keeps its flags in memory, where no filter can look; libraries fall back to clone when it is not there.
    draft.always(&[libc::SYS_clone3], Action::Fail(libc::ENOSYS));
    // Typing into the terminal of the process that started the jail. The kernel reads 32 bits of the command, and
    // so do we.
    let typing = any_of(&[TIOCSTI, TIOCLINUX], |command| condition(1, Dword, Eq, command))?;
    draft.when(libc::SYS_ioctl, typing, DENY, Action::Allow);
    // The limits of other processes of the same user.
    let foreign = vec![condition(0, Dword, Ne, 0)?, condition(2, Qword, Ne, 0)?];
    draft.when(libc::SYS_prlimit64, vec![SeccompRule::new(foreign)?], DENY, Action::Allow);
    // Only Linux itself, or asking: other personalities switch protections of memory off.
    let exotic = none_of(0, &[0, PER_LINUX32, u64::from(u32::MAX)])?;
    draft.when(libc::SYS_personality, exotic, DENY, Action::Allow);

    match profile.network {
        NetworkAccess::None => draft.always(&[libc::SYS_socket], DENY),
        NetworkAccess::Loopback | NetworkAccess::Unrestricted => {
            let mut families = vec![libc::AF_INET as u64, libc::AF_INET6 as u64, libc::AF_NETLINK as u64];
            if profile.files == FileAccess::Unrestricted || landlock_abi >= Some(files::CHECKS_PATH_SOCKETS) {
                families.push(libc::AF_UNIX as u64);
            }
            draft.when(libc::SYS_socket, none_of(0, &families)?, DENY, Action::Allow);
        }
    }
    draft.when(libc::SYS_socketpair, none_of(0, &[libc::AF_UNIX as u64])?, DENY, Action::Allow);
    Ok(draft.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_loses_exactly_what_only_its_template_needs() {
        let mut decisions = beyond_template().unwrap();
        let abort_itself = decisions.remove(&(libc::SYS_tgkill as u32));
        assert_eq!(abort_itself, compute().unwrap().remove(&(libc::SYS_tgkill as u32)));
        let mut expected = [
            libc::SYS_clone,
            libc::SYS_dup3,
            libc::SYS_getppid,
            libc::SYS_prctl,
            libc::SYS_prlimit64,
            libc::SYS_seccomp,
        ]
        .map(|call| call as u32);
        expected.sort_unstable();
        assert!(decisions.keys().copied().eq(expected));
        assert!(decisions.values().all(|decision| *decision == Decision::Always(DENY)));
    }

    #[test]
    fn a_template_decides_every_call_that_its_workers_decide() {
        let template = template().unwrap();
        assert!(compute().unwrap().keys().all(|call| template.contains_key(call)));
    }
}

/// Asking the kernel.
mod kernel {
    #![expect(unsafe_code, reason = "there is no wrapper that asks for an action")]

    pub(super) fn knows_filters() -> bool {
        /// `SECCOMP_GET_ACTION_AVAIL`.
        const ASK: libc::c_uint = 2;
        let action: u32 = libc::SECCOMP_RET_KILL_PROCESS;
        // SAFETY: the kernel reads one word and answers; nothing is installed.
        unsafe { libc::syscall(libc::SYS_seccomp, ASK, 0, &raw const action) == 0 }
    }
}
