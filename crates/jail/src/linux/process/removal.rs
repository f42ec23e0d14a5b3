//! Removal of what a hostile process has filled, and may still write into through a directory that it was given: by
//! handles, so that no link is followed whatever changes places meanwhile.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Where directories wait for their removal, in the folder itself.
const PLACE: &str = "removed";

/// How often a directory is emptied that a process keeps filling.
const PASSES: usize = 16;

const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);

/// Removes a folder of any depth, with any modes. Every directory is moved up into one place first, so that no path grows
/// and nothing is called in a nest. Nothing outside is touched, also when a process changes the folder meanwhile.
///
/// # Errors
/// When something in it cannot be removed, or a process keeps filling it; what was removed until then stays so.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = open(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let root = enter(parent.as_fd(), name)?;
    let mut removal = Removal { place: make_place(&root)?, waiting: VecDeque::new(), number: 0 };
    // First whatever an interrupted removal has left in that place.
    removal.resume()?;
    for _ in 0..PASSES {
        removal.empty(root.as_fd(), Some(OsStr::new(PLACE)))?;
        removal.finish()?;
        unlinkat(&root, PLACE, UnlinkatFlags::RemoveDir)?;
        match unlinkat(&parent, name, UnlinkatFlags::RemoveDir) {
            Ok(()) => return Ok(()),
            // Something has been added since.
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => removal.place = make_place(&root)?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(still_written(name))
}

/// The place, which an interrupted removal may have left. Whatever else has its name goes.
fn make_place(root: &OwnedFd) -> io::Result<OwnedFd> {
    for _ in 0..PASSES {
        match mkdirat(root, PLACE, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        match enter(root.as_fd(), OsStr::new(PLACE)) {
            Err(error) if is_changed(&error) => unlinkat(root, PLACE, UnlinkatFlags::NoRemoveDir)?,
            place => return place,
        }
    }
    Err(still_written(OsStr::new(PLACE)))
}

struct Removal {
    place: OwnedFd,
    /// Names in that place.
    waiting: VecDeque<CString>,
    number: u64,
}

impl Removal {
    fn resume(&mut self) -> io::Result<()> {
        let mut rows = Dir::openat(&self.place, ".", OFlag::O_RDONLY | DIRECTORY, Mode::empty())?;
        for row in rows.iter() {
            let row = row?;
            let name = row.file_name();
            if is_own(name.to_bytes()) {
                continue;
            }
            // Ours are small; a larger number is never reached.
            let number = name.to_str().ok().and_then(|name| name.parse::<u32>().ok()).unwrap_or(0);
            self.number = self.number.max(u64::from(number));
            self.waiting.push_back(name.to_owned());
        }
        Ok(())
    }

    /// Removes what is in a directory, and moves the directories in it to the place. What appears meanwhile may stay.
    fn empty(&mut self, directory: BorrowedFd<'_>, but: Option<&OsStr>) -> io::Result<()> {
        let mut rows = Dir::openat(directory, ".", OFlag::O_RDONLY | DIRECTORY, Mode::empty())?;
        for row in rows.iter() {
            let row = row?;
            let name = OsStr::from_bytes(row.file_name().to_bytes());
            if is_own(name.as_bytes()) || but == Some(name) {
                continue;
            }
            match unlinkat(directory, name, UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                // What other systems say instead of it.
                Err(Errno::EISDIR | Errno::EPERM) => self.take(directory, name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take(&mut self, directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        // Moving a directory changes its own entry for the one above, which wants the right to write it.
        match enter(directory, name) {
            Ok(_) => {}
            Err(error) if is_changed(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.number += 1;
        let moved = CString::new(self.number.to_string()).map_err(io::Error::other)?;
        match renameat(directory, name, &self.place, moved.as_c_str()) {
            Ok(()) => self.waiting.push_back(moved),
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Empties and removes what waits, and what comes to wait by that.
    fn finish(&mut self) -> io::Result<()> {
        while let Some(name) = self.waiting.pop_front() {
            self.remove(&name)?;
        }
        Ok(())
    }

    fn remove(&mut self, name: &CString) -> io::Result<()> {
        let os_name = OsStr::from_bytes(name.as_bytes());
        for _ in 0..PASSES {
            let directory = match enter(self.place.as_fd(), os_name) {
                Ok(directory) => directory,
                // It was another thing by the time it was moved.
                Err(error) if is_changed(&error) => {
                    return match unlinkat(&self.place, name.as_c_str(), UnlinkatFlags::NoRemoveDir) {
                        Ok(()) | Err(Errno::ENOENT) => Ok(()),
                        Err(error) => Err(error.into()),
                    };
                }
                Err(error) => return Err(error),
            };
            self.empty(directory.as_fd(), None)?;
            match unlinkat(&self.place, name.as_c_str(), UnlinkatFlags::RemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => return Ok(()),
                Err(Errno::ENOTEMPTY | Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(still_written(os_name))
    }
}

/// Opens a directory, which may have any mode.
fn enter(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let found = openat(directory, name, OFlag::O_PATH | DIRECTORY, Mode::empty())?;
    if fstat(&found)?.st_mode & 0o700 != 0o700 {
        // Through the handle: the name may lead elsewhere by now.
        let handle = format!("/proc/self/fd/{}", found.as_raw_fd());
        fs::set_permissions(handle, Permissions::from_mode(0o700))?;
    }
    Ok(openat(&found, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// Whether the directory that was there is gone.
fn is_changed(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP))
}

fn is_own(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

fn still_written(name: &OsStr) -> io::Error {
    io::Error::other(format!("a process keeps writing into `{}`", name.display()))
}
