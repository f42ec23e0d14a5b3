//! The mount namespace: everything outside the writable paths read-only, and a `/proc` that shows the jail's processes.
//!
//! Landlock decides what can be opened, but not who may `chmod`, `chown` or touch a file; a read-only mount does.
#![expect(unsafe_code, reason = "the newer mount calls have no wrapper among our dependencies")]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;

use super::{Refusal, files};
use crate::{FileAccess, JailError, PathAccess, Profile};

/// What to do after entering the namespace, with room for everything it needs.
#[derive(Debug)]
pub(crate) struct MountView {
    restricted: bool,
    writable: Vec<CString>,
    /// Detached copies of the writable mounts while the rest becomes read-only. Its capacity is that of `writable`.
    copies: Vec<OwnedFd>,
    shows_proc: bool,
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

impl MountView {
    pub(crate) fn prepare(profile: &Profile) -> Result<Self, JailError> {
        let mut view =
            Self { restricted: false, writable: Vec::new(), copies: Vec::new(), shows_proc: false };
        let FileAccess::Paths(rules) = &profile.files else { return Ok(view) };
        if !profile.namespaces.mount {
            return Ok(view);
        }
        view.restricted = true;
        view.shows_proc = rules.iter().any(|rule| rule.path == Path::new("/proc"));
        for rule in rules.iter().filter(|rule| rule.access == PathAccess::ReadWrite) {
            let refused = |source| JailError::Path { path: rule.path.clone(), source };
            let path = rule.path.canonicalize().map_err(refused)?;
            let metadata = path.metadata().map_err(refused)?;
            // Devices can be written on a read-only mount.
            if metadata.is_dir() || metadata.is_file() {
                let path = CString::new(path.as_os_str().as_bytes());
                view.writable.push(path.map_err(|error| refused(error.into()))?);
            }
        }
        // Outer paths first: the copy of a path brings its own inner mounts along, and must not cover an inner one.
        view.writable.sort();
        view.copies.reserve_exact(view.writable.len());
        Ok(view)
    }

    /// Makes everything but the writable paths read-only. Where the kernel is too old or refuses mounting, nothing
    /// changes: Landlock still decides what can be opened.
    pub(crate) fn apply(&mut self) -> Result<(), Refusal> {
        if !self.restricted {
            return Ok(());
        }
        self.copies.clear();
        let refused = Refusal::of("make the outside read-only");
        let none: Option<&CStr> = None;
        // Nothing of this may travel back to the namespace it was copied from.
        match mount(none, c"/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none) {
            Ok(()) => {}
            Err(errno) if lacking(errno) => return Ok(()),
            Err(errno) => return Err(refused(errno)),
        }
        for path in &self.writable {
            match open_tree(path) {
                Ok(copy) => self.copies.push(copy),
                Err(errno) if lacking(errno) => return Ok(()),
                Err(errno) => return Err(refused(errno)),
            }
        }
        match set_read_only(c"/") {
            Ok(()) => {}
            Err(errno) if lacking(errno) => return Ok(()),
            Err(errno) => return Err(refused(errno)),
        }
        for (path, copy) in self.writable.iter().zip(&self.copies) {
            move_mount(copy, path).map_err(&refused)?;
        }
        self.copies.clear();
        reenter_current_directory();
        Ok(())
    }

    /// Shows only the jail's own processes. A container that hides parts of `/proc` does not allow it; then the old view
    /// stays, in which Landlock keeps foreign processes shut.
    pub(crate) fn fresh_proc(&self, rules: Option<&OwnedFd>) -> Result<(), Refusal> {
        if !self.shows_proc {
            return Ok(());
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let none: Option<&CStr> = None;
        if mount(Some(c"proc"), c"/proc", Some(c"proc"), flags, none).is_err() {
            return Ok(());
        }
        let Some(rules) = rules else { return Ok(()) };
        let refused = Refusal::of("allow the new /proc");
        let root = open(c"/proc", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(&refused)?;
        files::allow(rules, root.as_fd(), files::KnownRights::reading()).map_err(&refused)
    }
}

/// A kernel that is too old, a container that forbids mounting, or a root directory that is not a mount.
fn lacking(errno: Errno) -> bool {
    matches!(errno, Errno::ENOSYS | Errno::EPERM | Errno::EACCES | Errno::EINVAL)
}

fn open_tree(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path is a valid C string.
    let descriptor = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    let descriptor = Errno::result(descriptor)?;
    // SAFETY: the kernel has just opened it for this process only; descriptors fit an int.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}

fn move_mount(tree: &OwnedFd, path: &CStr) -> Result<(), Errno> {
    // SAFETY: both paths are valid C strings; the empty one means the tree itself.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
    .map(drop)
}

fn set_read_only(path: &CStr) -> Result<(), Errno> {
    let attributes =
        MountAttributes { set: libc::MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the path is a valid C string and the attributes have the layout and size that is passed along.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// The current directory still is the one beneath the new mounts; the same name leads to the one above.
fn reenter_current_directory() {
    let mut buffer = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer is writable for its whole length, and on success holds a C string.
    let found = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    if found > 0
        && let Ok(path) = CStr::from_bytes_until_nul(&buffer)
    {
        // A directory that cannot be reached by name stays as it is, and then it is read-only.
        let _ = nix::unistd::chdir(path);
    }
}
