//! The root directory of a jailed process: built from nothing, so that what is not put there is not there.
//!
//! The steps are prepared in the kernel, where paths can be read and memory allocated; the child walks through them
//! with system calls only, in its own mount namespace, and then leaves the old root for good. Every source and
//! every target is opened without following a link, so that nothing moved in between leads elsewhere.
#![expect(unsafe_code, reason = "the newer mount calls have no wrapper among our dependencies")]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, mkdirat, mknodat};
use nix::unistd::{chdir, fchdir, pivot_root, symlinkat};

use super::super::Refusal;

/// The names inside the folder of a layer; the steps are relative to it.
pub(crate) const ROOT: &str = "root";
pub(crate) const LOWER: &str = "lower";
pub(crate) const UPPER: &str = "upper";
pub(crate) const WORK: &str = "work";

/// One step. Paths to make or to mount on begin with [`ROOT`].
#[derive(Debug)]
pub(crate) enum Step {
    /// A directory, unless it is there.
    Directory(CString),
    /// An empty file to mount on, unless it is there.
    File(CString),
    /// A symbolic link, unless it is there.
    Link { target: CString, path: CString },
    /// An empty file system in memory.
    Memory { path: CString, options: CString, access: Access },
    /// Something of the old root, or of what was built so far.
    Bind { source: CString, path: CString, access: Access, absent: Absent },
    /// The project with its layer.
    Layer { path: CString, options: CString },
    /// The processes of the jail.
    Processes { path: CString },
    /// A setting of the jail's own namespaces.
    Setting { path: CString, value: CString },
}

/// What can be done with a mount, whatever its files allow. Set-user-id programs have no effect in any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading and executing.
    Read,
    /// Writing as well, but no devices.
    Write,
    /// A device and nothing else.
    Device,
}

/// What a source or a target that is not there means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    Skip,
    Fail,
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const NONE: Option<&CStr> = None;

/// Builds the root in `folder` and makes it the root of every process of this mount namespace.
pub(crate) fn enter(folder: &CStr, steps: &[Step]) -> Result<(), Refusal> {
    // Nothing of this may travel back to the namespace it was copied from.
    mount(NONE, c"/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .map_err(Refusal::of("separate the mounts"))?;
    let entered = Refusal::of("enter the folder of the layer");
    chdir(folder).map_err(&entered)?;
    let folder = open(c".", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(&entered)?;
    for step in steps {
        take(&folder, step)?;
    }
    let refused = Refusal::of("leave the old root");
    chdir(c"root").map_err(&refused)?;
    // The old root comes to lie on the new one, from where it is taken away.
    pivot_root(c".", c".").map_err(&refused)?;
    umount2(c".", MntFlags::MNT_DETACH).map_err(&refused)?;
    chdir(c"/").map_err(&refused)?;
    let root = open(c"/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(&refused)?;
    set_attributes(&root, libc::MOUNT_ATTR_RDONLY, 0).map_err(Refusal::of("make the new root read-only"))
}

fn take(folder: &OwnedFd, step: &Step) -> Result<(), Refusal> {
    let here = nix::fcntl::AT_FDCWD;
    match step {
        Step::Directory(path) => there(mkdirat(here, path.as_c_str(), Mode::from_bits_truncate(0o755)))
            .map_err(Refusal::of("make a directory in the new root")),
        Step::File(path) => {
            there(mknodat(here, path.as_c_str(), SFlag::S_IFREG, Mode::from_bits_truncate(0o444), 0))
                .map_err(Refusal::of("make a file in the new root"))
        }
        Step::Link { target, path } => there(symlinkat(target.as_c_str(), here, path.as_c_str()))
            .map_err(Refusal::of("make a link in the new root")),
        Step::Memory { path, options, access } => {
            let flags = MsFlags::MS_NOSUID
                | match access {
                    Access::Read => MsFlags::MS_NODEV | MsFlags::MS_RDONLY,
                    Access::Write => MsFlags::MS_NODEV,
                    Access::Device => MsFlags::empty(),
                };
            mount_at(folder, path, c"tmpfs", flags, Some(options))
                .map_err(Refusal::of("mount a file system in memory"))
        }
        Step::Bind { source, path, access, absent } => match bind(source, path, *access) {
            Err(Errno::ENOENT) if *absent == Absent::Skip => Ok(()),
            outcome => outcome.map_err(Refusal::of("mount a part of the system")),
        },
        Step::Layer { path, options } => {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some(c"overlay"), path.as_c_str(), Some(c"overlay"), flags, Some(options.as_c_str()))
                .map_err(Refusal::of("mount the layer over the project"))
        }
        Step::Processes { path } => {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount_at(folder, path, c"proc", flags, None).map_err(Refusal::of("mount a /proc of its own"))
        }
        Step::Setting { path, value } => {
            write_once(path, value.to_bytes()).map_err(Refusal::of("bound the number of processes"))
        }
    }
}

/// Mounts a new file system on a place that is reached without a link. The older call knows names only, so the place is
/// made the current directory for a moment.
fn mount_at(
    folder: &OwnedFd,
    path: &CStr,
    kind: &CStr,
    flags: MsFlags,
    options: Option<&CString>,
) -> Result<(), Errno> {
    fchdir(open_without_links(path)?)?;
    let outcome = mount(Some(kind), c".", Some(kind), flags, options.map(CString::as_c_str));
    fchdir(folder)?;
    outcome
}

/// What is there already is as good.
fn there(outcome: Result<(), Errno>) -> Result<(), Errno> {
    match outcome {
        Err(Errno::EEXIST) => Ok(()),
        outcome => outcome,
    }
}

/// Writes a small file of the system in one go.
pub(crate) fn write_once(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    nix::unistd::write(&file, bytes).map(drop)
}

fn bind(source: &CStr, path: &CStr, access: Access) -> Result<(), Errno> {
    let source = open_without_links(source)?;
    let target = open_without_links(path)?;
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | libc::AT_RECURSIVE as libc::c_uint
        | libc::AT_EMPTY_PATH as libc::c_uint;
    // SAFETY: takes an open descriptor and an empty C string.
    let tree = Errno::result(unsafe {
        libc::syscall(libc::SYS_open_tree, source.as_raw_fd(), c"".as_ptr(), flags)
    })?;
    // SAFETY: the kernel has just opened it for this process only; descriptors fit an int.
    let tree = unsafe { OwnedFd::from_raw_fd(tree as libc::c_int) };
    let attributes = libc::MOUNT_ATTR_NOSUID
        | match access {
            Access::Read => libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
            Access::Write => libc::MOUNT_ATTR_NODEV,
            Access::Device => libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOEXEC,
        };
    set_attributes(&tree, attributes, libc::AT_RECURSIVE)?;
    // SAFETY: takes open descriptors and empty C strings.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH,
        )
    })
    .map(drop)
}

fn open_without_links(path: &CStr) -> Result<OwnedFd, Errno> {
    let how =
        OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(nix::fcntl::AT_FDCWD, path, how)
}

fn set_attributes(mount: &OwnedFd, set: u64, flags: libc::c_int) -> Result<(), Errno> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the attributes have the layout and size that is passed along.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags | libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}
