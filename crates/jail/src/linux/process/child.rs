//! The child's way from the fork to the program: namespaces, supervisor, root, doors. System calls only.
#![expect(unsafe_code, reason = "`nice` has no wrapper among our dependencies")]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::sys::stat::{Mode, umask};
use nix::unistd::chdir;

use super::super::caller_text::CallerText;
use super::super::files::{self, KnownRights};
use super::super::filter::{self, Program};
use super::super::limits::RlimitSet;
use super::super::loopback::ListenerSender;
use super::super::privileges::{self, Kept};
use super::super::{Refusal, loopback, namespaces, supervise};
use super::control_socket::ChildControl;
use super::group::{self, Group};
use super::plan::{Owner, Plan};
use super::root::{self, Step};
use crate::{
    CommandSpec, FileAccess, JailError, NamespaceSet, NetworkAccess, PathAccess, Profile, ResourceLimits,
    SyscallFilter,
};

/// When memory runs out, the jail goes before anything that the user cares for.
const FIRST_TO_GO: &[u8] = b"900";

/// How low the jail's scheduling priority is: enough that a thousand busy processes in it leave the machine usable and
/// the watch awake.
const NICENESS: libc::c_int = 5;

/// The supervisor and the first process count among the user's processes, beside the program's own.
pub(crate) const OUR_PROCESSES: u64 = 2;

/// What the jail's own namespace has of System V: segments, messages and semaphores, in the order in which the lists are
/// handed over.
const IPC_LISTS: [&CStr; 3] = [c"/proc/sysvipc/shm", c"/proc/sysvipc/msg", c"/proc/sysvipc/sem"];

/// Descriptors that are handed over to read the memory of the jail from: the lists, and a line that reports on sockets.
pub(crate) const SOURCES: usize = IPC_LISTS.len() + 1;

/// The network of the program, where it has its own.
#[derive(Debug)]
enum Loopback {
    Off,
    On,
    /// With a listener that the caller serves.
    Served(ListenerSender),
}

/// Everything the child needs, allocated ahead.
#[derive(Debug)]
pub(crate) struct ChildSetup {
    line: ChildControl,
    folder: CString,
    steps: Vec<Step>,
    directory: CString,
    rules: OwnedFd,
    allowed: Vec<(CString, KnownRights)>,
    program: Program,
    limits: RlimitSet,
    namespaces: CloneFlags,
    owner: Owner,
    loopback: Loopback,
    /// Where the program joins its control group.
    members: Option<OwnedFd>,
    caller_text: CallerText,
}

impl ChildSetup {
    pub(crate) fn prepare(
        order: &CommandSpec,
        plan: Plan,
        owner: Owner,
        folder: &Path,
        line: ChildControl,
        group: Option<&Group>,
        listener: Option<ListenerSender>,
    ) -> Result<Self, JailError> {
        let profile = profile(order, owner);
        let lacks = |part: &str| JailError::Lacks { missing: vec![format!("This kernel has no {part}.")] };
        let abi = files::abi().ok_or_else(|| lacks("Landlock"))?;
        let mut allowed = vec![(c"/".to_owned(), KnownRights::of_directory(PathAccess::ReadExecute, abi))];
        let writable = KnownRights::of_directory(PathAccess::ReadWrite, abi);
        allowed.extend(plan.writable.into_iter().map(|path| (path, writable)));
        let device = KnownRights::of_device(PathAccess::ReadWrite, abi);
        allowed.extend(plan.devices.into_iter().map(|path| (path, device)));
        let folder = CString::new(folder.as_os_str().as_encoded_bytes())
            .map_err(|error| JailError::Path { path: folder.to_owned(), source: error.into() })?;
        Ok(Self {
            line,
            folder,
            steps: plan.steps,
            directory: plan.directory,
            rules: files::ruleset(&profile)?.ok_or_else(|| lacks("Landlock"))?,
            allowed,
            program: filter::compile(&profile, Some(abi))?.ok_or_else(|| lacks("seccomp filters"))?,
            limits: RlimitSet::new(&profile.limits),
            namespaces: namespaces::flags(profile.namespaces),
            owner,
            loopback: match listener {
                Some(sender) => Loopback::Served(sender),
                None if order.network == NetworkAccess::Loopback => Loopback::On,
                None => Loopback::Off,
            },
            caller_text: CallerText::find()?,
            members: group.and_then(|group| group.members().try_clone_to_owned().ok()),
        })
    }

    /// Returns in the process that will be the program. A failure has been reported on the control socket.
    pub(crate) fn depart(&mut self) -> Result<(), Refusal> {
        let outcome = self.go();
        if let Err(refusal) = outcome {
            self.line.tell_failure(refusal);
        }
        outcome
    }

    fn go(&mut self) -> Result<(), Refusal> {
        privileges::drop_descriptors()?;
        privileges::leave_session()?;
        umask(Mode::from_bits_truncate(0o022));
        privileges::forbid_new_privileges()?;
        if namespaces::enter(self.namespaces, true)? != self.namespaces {
            return Err(Refusal { step: "enter namespaces", errno: Errno::EPERM });
        }
        match &self.loopback {
            Loopback::Off => {}
            Loopback::On => loopback::switch_on()?,
            Loopback::Served(sender) => sender.open_and_send()?,
        }
        supervise::move_to_new_pid_namespace(&self.caller_text, Some(&self.line), None)?;
        if let Some(members) = &self.members {
            // The watch counts too, so a group that cannot be joined is not a reason to refuse.
            let _ = group::join(members.as_fd());
        }
        root::enter(&self.folder, &self.steps)?;
        stand_back();
        be_first_to_go().map_err(Refusal::of("be the first to go when memory runs out"))?;
        let processes =
            open(c"/proc", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
                .map_err(Refusal::of("open the jail's /proc"))?;
        self.line.hand_over_processes(&processes)?;
        for list in IPC_LISTS {
            self.line.hand_over_source(&open_list(list)?)?;
        }
        self.line.hand_over_source(&open_socket_reports()?)?;
        self.allow_paths().map_err(Refusal::of("allow the paths of the jail"))?;
        chdir(self.directory.as_c_str()).map_err(Refusal::of("enter the directory of the order"))?;
        privileges::drop_capabilities(match self.owner {
            Owner::Root => Kept::FileOwnership,
            Owner::User => Kept::None,
        })?;
        self.limits.apply()?;
        privileges::forbid_tracing()?;
        files::restrict(&self.rules)?;
        self.program.install()
    }

    fn allow_paths(&self) -> Result<(), Errno> {
        for (path, rights) in &self.allowed {
            match open(path.as_c_str(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) {
                Ok(path) => files::allow(&self.rules, path.as_fd(), *rights)?,
                // A device that this machine does not have.
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

/// The parts of the jail that are the same for every process.
fn profile(order: &CommandSpec, owner: Owner) -> Profile {
    let limits = &order.limits;
    Profile {
        // The paths are added inside, where they are.
        files: FileAccess::Paths(Vec::new()),
        syscalls: SyscallFilter::Process,
        limits: ResourceLimits {
            data: Some(limits.memory_bytes),
            cpu_seconds: Some(limits.cpu_seconds),
            open_files: Some(limits.open_files),
            file_size: Some(limits.file_bytes),
            processes: Some(limits.processes.saturating_add(OUR_PROCESSES)),
            ..ResourceLimits::default()
        },
        namespaces: NamespaceSet {
            user: owner == Owner::User,
            network: order.network != NetworkAccess::Unrestricted,
            ipc: true,
            pid: true,
            mount: true,
            uts: true,
        },
        network: order.network,
    }
}

/// The process that opens a list decides whose entries it shows, so it is opened in the jail.
fn open_list(path: &CStr) -> Result<OwnedFd, Refusal> {
    match open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        // A kernel without System V has no list of it, and any directory is an empty one.
        Err(Errno::ENOENT) => open_nothing(),
        opened => opened,
    }
    .map_err(Refusal::of("open the lists of the jail's shared memory, messages and semaphores"))
}

/// A line on which the system reports on the sockets of the jail's network.
fn open_socket_reports() -> Result<OwnedFd, Refusal> {
    let flags = SockFlag::SOCK_CLOEXEC;
    match socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag) {
        // A kernel without reports: what sockets hold is estimated.
        Err(Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT) => open_nothing(),
        opened => opened,
    }
    .map_err(Refusal::of("open the reports on the jail's sockets"))
}

fn open_nothing() -> Result<OwnedFd, Errno> {
    open(c"/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
}

fn stand_back() {
    // SAFETY: takes a number only. Every process may lower its own priority.
    let _ = unsafe { libc::nice(NICENESS) };
}

/// A process that may not be traced cannot write this either, so it may for the moment. No other process is in its
/// namespace.
fn be_first_to_go() -> Result<(), Errno> {
    prctl::set_dumpable(true)?;
    let outcome = root::write_once(c"/proc/self/oom_score_adj", FIRST_TO_GO);
    prctl::set_dumpable(false)?;
    outcome
}
