//! Whole trees of directories, by handles: no link is followed, also when a process changes them meanwhile.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};

use crate::Directory;

/// Files and directories of one tree.
const MAX_ENTRIES: usize = 1_000_000;

/// Directories nest this deep at most: each level holds handles.
const MAX_DEPTH: usize = 64;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Makes `name` in `to` a copy of a directory of the same file system: directories and links are made again, files get a
/// second name. What `leaves_out` names, by its path in the tree, is an empty directory in the copy.
///
/// # Errors
/// What the system says, for what is neither a file nor a directory nor a link, and beyond a million entries or 64 levels.
/// A part of the copy may be there then.
pub fn link_tree(
    from: &Directory,
    to: &Directory,
    name: &str,
    leaves_out: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    let mut copy = TreeCopy { leaves_out, entries: 0 };
    copy.directory(from.as_fd(), to.as_fd(), OsStr::new(name), Path::new(""), 0)
}

struct TreeCopy<'a> {
    leaves_out: &'a dyn Fn(&Path) -> bool,
    entries: usize,
}

impl TreeCopy<'_> {
    fn directory(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &OsStr,
        inside: &Path,
        depth: usize,
    ) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other(format!("more than {MAX_DEPTH} levels at `{}`", inside.display())));
        }
        let mode = Mode::from_raw_mode(fs::fstat(from)?.st_mode & 0o777 | 0o700);
        fs::mkdirat(to, name, mode)?;
        if depth > 0 && (self.leaves_out)(inside) {
            return Ok(());
        }
        let to = fs::openat(to, name, DIRECTORY, Mode::empty())?;
        let mut rows = Dir::read_from(from)?;
        while let Some(row) = rows.read() {
            let row = row?;
            let name = OsStr::from_bytes(row.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(io::Error::other(format!("more than {MAX_ENTRIES} files and directories")));
            }
            self.entry(from, to.as_fd(), name, &inside.join(name), depth)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &OsStr,
        inside: &Path,
        depth: usize,
    ) -> io::Result<()> {
        match kind(from, name)? {
            FileType::Directory => {
                let inner = fs::openat(from, name, DIRECTORY, Mode::empty())?;
                self.directory(inner.as_fd(), to, name, inside, depth + 1)
            }
            FileType::Symlink => {
                let leads = fs::readlinkat(from, name, Vec::new())?;
                Ok(fs::symlinkat(&leads, to, name)?)
            }
            FileType::RegularFile => {
                fs::linkat(from, name, to, name, AtFlags::empty())?;
                // Something else may have taken the name since it was looked at.
                if kind(to, name)? == FileType::RegularFile { Ok(()) } else { Err(special(inside)) }
            }
            _ => Err(special(inside)),
        }
    }
}

fn kind(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}

fn special(inside: &Path) -> io::Error {
    io::Error::other(format!("`{}` is neither a file nor a directory", inside.display()))
}

impl Directory {
    /// Lets `name` in this directory and `other_name` in another one of the same file system change places, in one step:
    /// a process that opens one of them finds one or the other.
    ///
    /// # Errors
    /// What the system says; both are where they were then.
    pub fn exchange(&self, name: &str, other: &Self, other_name: &str) -> io::Result<()> {
        Ok(fs::renameat_with(self.as_fd(), name, other.as_fd(), other_name, RenameFlags::EXCHANGE)?)
    }

    /// Moves `name` of this directory to a place in another one of the same file system where nothing is.
    ///
    /// # Errors
    /// What the system says; it is where it was then.
    pub fn move_into(&self, name: &str, other: &Self, other_name: &str) -> io::Result<()> {
        Ok(fs::renameat_with(self.as_fd(), name, other.as_fd(), other_name, RenameFlags::NOREPLACE)?)
    }

    /// Whether `name` is the directory that is open as `held`.
    ///
    /// # Errors
    /// What the system says.
    pub fn is_at(&self, name: &str, held: &Self) -> io::Result<bool> {
        let open = fs::fstat(held.as_fd())?;
        match fs::statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) => Ok((now.st_dev, now.st_ino) == (open.st_dev, open.st_ino)),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn a_tree_is_linked_without_what_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("old/a/deep")).unwrap();
        fs::create_dir_all(root.join("old/cache/full")).unwrap();
        fs::write(root.join("old/a/deep/x.js"), "x").unwrap();
        fs::write(root.join("old/cache/full/y"), "y").unwrap();
        symlink("../../outside", root.join("old/a/link")).unwrap();
        let whole = Directory::open(root).unwrap();
        let old = whole.step("old").unwrap().unwrap();
        link_tree(&old, &whole, "new", &|path| path == Path::new("cache")).unwrap();
        assert_eq!(fs::metadata(root.join("new/a/deep/x.js")).unwrap().nlink(), 2);
        assert_eq!(fs::read_link(root.join("new/a/link")).unwrap(), Path::new("../../outside"));
        assert_eq!(fs::read_dir(root.join("new/cache")).unwrap().count(), 0);
        whole.exchange("new", &whole, "old").unwrap();
        assert!(!root.join("old/cache/full").exists() && root.join("new/cache/full").exists());
        assert!(whole.is_at("new", &old).unwrap() && !whole.is_at("old", &old).unwrap());
        assert!(whole.move_into("new", &whole, "old").is_err());
    }

    #[test]
    fn a_pipe_and_too_deep_a_tree_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Directory::open(folder.path()).unwrap();
        let pipe = folder.path().join("one/pipe");
        fs::create_dir(folder.path().join("one")).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let one = root.step("one").unwrap().unwrap();
        assert!(link_tree(&one, &root, "copy", &|_| false).unwrap_err().to_string().contains("pipe"));
        fs::remove_file(pipe).unwrap();
        let deep = (0..80).fold(folder.path().join("one"), |path, _| path.join("d"));
        fs::create_dir_all(deep).unwrap();
        assert!(link_tree(&one, &root, "other", &|_| false).unwrap_err().to_string().contains("64 levels"));
    }
}
