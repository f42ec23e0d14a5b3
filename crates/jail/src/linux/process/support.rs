//! Whether this machine can hold a process: everything that cannot be asked is tried once, in a child.
#![expect(unsafe_code, reason = "fork and _exit have no safe form")]

use std::ffi::CStr;
use std::io;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, mkdirat};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, chdir, fork};

use super::super::{Refusal, files, filter, namespaces, privileges};
use super::control_socket::{self, ChildControl, Message};
use super::group::{self, Group};
use super::plan::Owner;
use super::root::{self, Access, Step};
use crate::{NamespaceSet, ProcessSupport, Template};

/// The Landlock version that also governs moving and truncating files. What later ones add, namespaces do as well.
const LANDLOCK_NEEDED: u32 = 3;

/// A directory that every system has; in its own mount namespace a try can cover it.
const PLACE: &CStr = c"/usr";

/// What is missing on this machine for [`start`](crate::start). It costs a few milliseconds, once.
pub fn process_support() -> ProcessSupport {
    static SUPPORT: OnceLock<ProcessSupport> = OnceLock::new();
    SUPPORT.get_or_init(examine).clone()
}

/// Root needs no user namespace, and inside one it could not touch files of other owners. What counts is not the name
/// but the right to mount.
pub(crate) fn owner() -> Owner {
    if privileges::may_administrate() { Owner::Root } else { Owner::User }
}

fn examine() -> ProcessSupport {
    let mut missing = Vec::new();
    if !privileges::no_new_privileges_known() {
        missing.push("This kernel cannot forbid new privileges.".to_owned());
    }
    match files::abi() {
        None => missing.push("This kernel has no Landlock, or it is switched off.".to_owned()),
        Some(abi) if abi < LANDLOCK_NEEDED => {
            missing.push(format!("Landlock here has version {abi}; version {LANDLOCK_NEEDED} is needed."));
        }
        Some(_) => {}
    }
    if !filter::available() {
        missing.push("This kernel or processor has no seccomp filters.".to_owned());
    }
    match attempt() {
        Ok(None) => {}
        Ok(Some(sentence)) => missing.push(sentence),
        Err(error) => missing.push(format!("Whether processes can be held could not be tried: {error}.")),
    }
    ProcessSupport { missing, has_control_group: has_control_group() }
}

/// Whether a command gets a control group here: one is made, and a child joins it.
fn has_control_group() -> bool {
    let Some(group) = Group::create(&Template::Shell.limits()) else { return false };
    // SAFETY: the child makes a system call only before it exits.
    let joined = match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            let code = i32::from(group::join(group.members()).is_err());
            // SAFETY: leaves without running the destructors and exit handlers that belong to the parent.
            unsafe { libc::_exit(code) }
        }
        Ok(ForkResult::Parent { child }) => waitpid(child, None),
        Err(errno) => Err(errno),
    };
    Group::counts_system_memory() && matches!(joined, Ok(WaitStatus::Exited(_, 0)))
}

/// Namespaces, an overlay, a `/proc` and a new root, as a start has them. Says what failed.
fn attempt() -> io::Result<Option<String>> {
    let (line, child_line) = control_socket::pair()?;
    let steps = steps();
    let wanted = namespaces::flags(NamespaceSet {
        user: owner() == Owner::User,
        network: true,
        ipc: true,
        pid: true,
        mount: true,
        uts: true,
    });
    // SAFETY: the child makes system calls only before it exits.
    match unsafe { fork() }? {
        ForkResult::Child => {
            if let Err(refusal) = try_here(&child_line, wanted, &steps) {
                child_line.tell_failure(refusal);
            }
            exit()
        }
        ForkResult::Parent { child } => {
            drop(child_line);
            while waitpid(child, None) == Err(Errno::EINTR) {}
        }
    }
    Ok(match line.receive()? {
        Some(Message::Exited(_)) => None,
        Some(Message::Failed { step, errno }) => {
            let hint = if step.contains("namespace") {
                " Unprivileged user namespaces may be switched off, or this is a container without the right to them."
            } else {
                ""
            };
            Some(format!("This machine does not let us {step}: {}.{hint}", Errno::from_raw(errno).desc()))
        }
        _ => Some("The try to hold a process was ended from outside.".to_owned()),
    })
}

/// A small root with a layer in it, all in memory.
fn steps() -> Vec<Step> {
    let own_marks = match owner() {
        Owner::Root => {
            c"lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=nofollow,volatile".to_owned()
        }
        Owner::User => {
            c"lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=nofollow,volatile,userxattr".to_owned()
        }
    };
    vec![
        Step::Memory { path: c"root".to_owned(), options: c"size=1m".to_owned(), access: Access::Write },
        Step::Directory(c"root/proc".to_owned()),
        Step::Processes { path: c"root/proc".to_owned() },
        Step::Directory(c"root/project".to_owned()),
        Step::Layer { path: c"root/project".to_owned(), options: own_marks },
    ]
}

fn try_here(line: &ChildControl, wanted: nix::sched::CloneFlags, steps: &[Step]) -> Result<(), Refusal> {
    privileges::forbid_new_privileges()?;
    if namespaces::enter(wanted, true)? != wanted {
        return Err(Refusal { step: "enter namespaces", errno: Errno::EPERM });
    }
    let refused = Refusal::of("start in a new pid namespace");
    // SAFETY: as above.
    match unsafe { fork() }.map_err(&refused)? {
        ForkResult::Child => {
            match build(steps) {
                Ok(()) => line.tell_exit(0),
                Err(refusal) => line.tell_failure(refusal),
            }
            exit()
        }
        ForkResult::Parent { child } => {
            while waitpid(child, None) == Err(Errno::EINTR) {}
            Ok(())
        }
    }
}

fn build(steps: &[Step]) -> Result<(), Refusal> {
    let none: Option<&CStr> = None;
    mount(none, c"/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(Refusal::of("separate the mounts"))?;
    let refused = Refusal::of("mount a file system in memory");
    mount(Some(c"tmpfs"), PLACE, Some(c"tmpfs"), MsFlags::MS_NOSUID, Some(c"size=1m")).map_err(&refused)?;
    chdir(PLACE).map_err(&refused)?;
    for name in [c"root", c"lower", c"upper", c"work"] {
        mkdirat(nix::fcntl::AT_FDCWD, name, Mode::from_bits_truncate(0o700)).map_err(&refused)?;
    }
    root::enter(PLACE, steps)
}

fn exit() -> ! {
    // SAFETY: leaves without running the destructors and exit handlers that belong to the parent.
    unsafe { libc::_exit(0) }
}
