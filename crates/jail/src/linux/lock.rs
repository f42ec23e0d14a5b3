//! One lock: what is prepared before a fork, and the order in which it is applied.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::CloneFlags;

use super::caller_text::CallerText;
use super::filter::Program;
use super::limits::RlimitSet;
use super::loopback::ListenerSender;
use super::mounts::MountView;
use super::{Refusal, files, filter, namespaces, privileges, supervise};
use crate::{FileAccess, JailError, Profile, ResourceLimits, SyscallFilter};

/// Everything a process needs to lock itself, allocated ahead.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The process that prepares the lock, and starts the child.
    caller: u32,
    landlock_abi: Option<u32>,
    seccomp_available: bool,
    rules: Option<OwnedFd>,
    program: Option<Program>,
    limits: RlimitSet,
    namespaces: CloneFlags,
    map_ids: bool,
    mounts: MountView,
    keep_capabilities: privileges::Kept,
    /// For commands only.
    listener: Option<ListenerSender>,
}

impl Lock {
    pub(crate) fn prepare(profile: &Profile) -> Result<Self, JailError> {
        let landlock_abi = files::abi();
        let rules = if landlock_abi.is_some() { files::ruleset(profile)? } else { None };
        let seccomp_available = filter::available();
        let program = if seccomp_available { filter::compile(profile, landlock_abi)? } else { None };
        Ok(Self {
            caller: std::process::id(),
            landlock_abi,
            seccomp_available,
            rules,
            program,
            limits: RlimitSet::new(&profile.limits),
            namespaces: namespaces::flags(profile.namespaces),
            // Without files there is nothing whose owner could matter, and an unmapped user is `nobody`.
            map_ids: profile.files != FileAccess::None,
            mounts: MountView::prepare(profile)?,
            keep_capabilities: match profile.syscalls {
                SyscallFilter::Compute | SyscallFilter::Template => privileges::Kept::None,
                SyscallFilter::Process | SyscallFilter::Unfiltered => privileges::Kept::FileOwnership,
            },
            listener: None,
        })
    }

    /// A child that is locked with this opens the listener in its network, or ends.
    pub(crate) fn with_listener(mut self, listener: ListenerSender) -> Self {
        self.listener = Some(listener);
        self
    }

    pub(crate) fn landlock_abi(&self) -> Option<u32> {
        self.landlock_abi
    }

    /// Whether system calls can be filtered here; the profile may still ask for no filter.
    pub(crate) fn seccomp_available(&self) -> bool {
        self.seccomp_available
    }

    pub(crate) fn wanted_namespaces(&self) -> CloneFlags {
        self.namespaces
    }

    /// Locks the calling process. Returns the namespaces it has left.
    pub(crate) fn apply_to_self(&mut self) -> Result<CloneFlags, Refusal> {
        let entered = self.enter()?;
        self.close_doors()?;
        Ok(entered)
    }

    /// Locks a child between fork and exec: system calls only.
    pub(crate) fn apply_to_child(&mut self, text: &CallerText) -> Result<(), Refusal> {
        privileges::drop_descriptors()?;
        // A signal to its process group would reach the caller too, unless Landlock keeps signals inside.
        if self.landlock_abi < Some(files::KEEPS_SIGNALS) {
            privileges::leave_session()?;
        }
        // Outside the namespaces, where its number means something.
        let caller = supervise::watch_caller(self.caller)?;
        let entered = self.enter()?;
        if let Some(listener) = &self.listener {
            // In the caller's network it would be a listener for every program of the machine.
            if !entered.contains(CloneFlags::CLONE_NEWNET) {
                return Err(Refusal { step: "enter a network namespace", errno: Errno::EPERM });
            }
            // Before the forks: the supervisor and the first process close every copy that they inherit.
            listener.open_and_send()?;
        }
        if entered.contains(CloneFlags::CLONE_NEWPID) {
            supervise::move_to_new_pid_namespace(text, None, caller.as_ref())?;
            if entered.contains(CloneFlags::CLONE_NEWNS) {
                self.mounts.fresh_proc(self.rules.as_ref())?;
            }
        }
        self.close_doors()
    }

    fn enter(&mut self) -> Result<CloneFlags, Refusal> {
        privileges::forbid_new_privileges()?;
        let entered = namespaces::enter(self.namespaces, self.map_ids)?;
        if entered.contains(CloneFlags::CLONE_NEWNS) {
            self.mounts.apply()?;
        }
        Ok(entered)
    }

    fn close_doors(&mut self) -> Result<(), Refusal> {
        privileges::drop_capabilities(self.keep_capabilities)?;
        self.limits.apply()?;
        privileges::forbid_tracing()?;
        if let Some(rules) = &self.rules {
            files::restrict(rules)?;
        }
        if let Some(program) = &mut self.program {
            program.install()?;
        }
        Ok(())
    }
}

/// What a worker adds to the lock that it has inherited from the template it was forked from: its limits, and a filter that
/// takes from it what only a template needs.
///
/// It is prepared by the template before it locks itself, since a lock forbids the questions that take.
#[derive(Debug)]
pub struct ChildLock {
    program: Option<Program>,
    limits: RlimitSet,
}

impl ChildLock {
    /// # Errors
    /// When the filter cannot be compiled.
    pub fn prepare(limits: &ResourceLimits) -> Result<Self, JailError> {
        let program = if filter::available() { filter::compile_for_child()? } else { None };
        Ok(Self { program, limits: RlimitSet::new(limits) })
    }

    /// Locks the calling process, which must be a child of the one that prepared this.
    ///
    /// # Errors
    /// When the kernel refuses a step; the process must end then.
    pub fn apply(&mut self) -> Result<(), JailError> {
        self.limits.apply()?;
        if let Some(program) = &mut self.program {
            program.install()?;
        }
        Ok(())
    }
}
