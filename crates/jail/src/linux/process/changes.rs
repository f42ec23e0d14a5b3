//! What an upper directory says, compared with the project.
//!
//! The process has ended and no other process knows the folder, so paths are as good as descriptors here.
#![expect(unsafe_code, reason = "extended attributes have no wrapper among our dependencies")]

use std::ffi::{CStr, CString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::layer::{OverlayLayer, is_whiteout};
use super::plan::Owner;
use crate::{Before, JailError, LayerChange, LayerChangeKind};

/// Files are compared in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;

/// The attributes by which an upper directory speaks. Those of the other owner are nothing to the kernel, so a process can
/// set them as it likes, and they must not mean anything here either.
#[derive(Debug)]
struct Marks {
    /// A directory that lets nothing show through.
    opaque: &'static CStr,
    /// An empty file that says that something was removed.
    whiteout: &'static CStr,
    /// Content that is elsewhere. The layer is mounted so that these are never made.
    elsewhere: [&'static CStr; 2],
}

const MARKS_OF_ROOT: Marks = Marks {
    opaque: c"trusted.overlay.opaque",
    whiteout: c"trusted.overlay.whiteout",
    elsewhere: [c"trusted.overlay.metacopy", c"trusted.overlay.redirect"],
};

const MARKS_OF_USER: Marks = Marks {
    opaque: c"user.overlay.opaque",
    whiteout: c"user.overlay.whiteout",
    elsewhere: [c"user.overlay.metacopy", c"user.overlay.redirect"],
};

impl OverlayLayer {
    /// What the process has made of the project, sorted by path; an error when there are more than `limit` changes.
    ///
    /// A file that was only touched, or written with what was in it, is not a change. Neither are modes other than the
    /// right to execute, owners and times.
    pub fn changes(&self, limit: usize) -> Result<Vec<LayerChange>, JailError> {
        let marks = match self.owner() {
            Owner::Root => &MARKS_OF_ROOT,
            Owner::User => &MARKS_OF_USER,
        };
        let mut reading =
            Reading { upper: self.upper(), lower: self.project(), marks, limit, found: Vec::new() };
        reading.directory_contents()?;
        let mut found = reading.found;
        found.sort_unstable();
        Ok(found)
    }
}

struct Reading<'a> {
    upper: PathBuf,
    lower: &'a Path,
    marks: &'static Marks,
    limit: usize,
    found: Vec<LayerChange>,
}

/// What lies beneath an upper directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beneath {
    /// The project's directory of the same path, which shows through.
    Shows,
    /// The same, but it does not show: it was removed, and this one made in its place.
    Replaced,
    /// No directory.
    Nothing,
}

impl Reading<'_> {
    /// Walks with its own list, since a process can nest directories deeper than a stack is.
    fn directory_contents(&mut self) -> Result<(), JailError> {
        let mut waiting = vec![(PathBuf::new(), Beneath::Shows)];
        while let Some((directory, beneath)) = waiting.pop() {
            let folder = self.upper.join(&directory);
            for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
                let path = directory.join(entry.map_err(failed(&folder))?.file_name());
                self.entry(path, beneath, &mut waiting)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        path: PathBuf,
        beneath: Beneath,
        waiting: &mut Vec<(PathBuf, Beneath)>,
    ) -> Result<(), JailError> {
        let upper = self.upper.join(&path);
        let lower = self.lower.join(&path);
        let now = upper.symlink_metadata().map_err(failed(&upper))?;
        let old = match beneath {
            Beneath::Shows | Beneath::Replaced => metadata_of(&lower)?,
            Beneath::Nothing => None,
        };
        let before = old.as_ref().map_or(Before::Nothing, kind_of);
        if now.is_dir() {
            make_readable(&upper, now.mode(), 0o500)?;
        } else if now.is_file() {
            make_readable(&upper, now.mode(), 0o400)?;
        }
        if is_whiteout(&now) || self.is_marked_whiteout(&upper, &now)? {
            return self.remove(&path, before);
        }
        for mark in self.marks.elsewhere {
            if attribute(&upper, mark)?.is_some() {
                return Err(failed(&upper)(io::Error::other("its content is elsewhere")));
            }
        }
        if now.is_dir() {
            let beneath = self.directory(&path, &upper, before, beneath)?;
            waiting.push((path, beneath));
            return Ok(());
        }
        if before == Before::Directory {
            self.remove(&path, before)?;
        }
        let kind = if now.is_symlink() {
            let target = fs::read_link(&upper).map_err(failed(&upper))?;
            if before == Before::Link && fs::read_link(&lower).is_ok_and(|old| old == target) {
                return Ok(());
            }
            LayerChangeKind::Link { target }
        } else if now.is_file() {
            if let Some(old) = old.filter(|_| before == Before::File)
                && executable(&old) == executable(&now)
                && old.len() == now.len()
                && same_content(&upper, &lower)?
            {
                return Ok(());
            }
            LayerChangeKind::Write { content: upper, bytes: now.len(), executable: executable(&now) }
        } else {
            LayerChangeKind::Special
        };
        self.push(path, kind, before)
    }

    /// The other form of a whiteout: an empty file with a mark.
    fn is_marked_whiteout(&self, path: &Path, metadata: &Metadata) -> Result<bool, JailError> {
        Ok(metadata.is_file() && metadata.len() == 0 && attribute(path, self.marks.whiteout)?.is_some())
    }

    /// Reports what lies beneath this directory.
    fn directory(
        &mut self,
        path: &Path,
        upper: &Path,
        before: Before,
        beneath: Beneath,
    ) -> Result<Beneath, JailError> {
        if before != Before::Directory {
            self.remove(path, before)?;
            self.push(path.to_owned(), LayerChangeKind::MakeDirectory, before)?;
            return Ok(Beneath::Nothing);
        }
        if beneath == Beneath::Shows && attribute(upper, self.marks.opaque)? != Some(b'y') {
            return Ok(Beneath::Shows);
        }
        // What is not in it is gone. What is in it is compared as everywhere.
        self.remove_all_but_upper(path)?;
        Ok(Beneath::Replaced)
    }

    /// Reports what the project has in a directory that was created again, where the new one has nothing of that
    /// name.
    fn remove_all_but_upper(&mut self, directory: &Path) -> Result<(), JailError> {
        let folder = self.lower.join(directory);
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            let path = directory.join(entry.map_err(failed(&folder))?.file_name());
            if metadata_of(&self.upper.join(&path))?.is_some() {
                continue;
            }
            if let Some(metadata) = metadata_of(&self.lower.join(&path))? {
                self.remove(&path, kind_of(&metadata))?;
            }
        }
        Ok(())
    }

    /// Reports that a path of the project is gone, with everything beneath it.
    fn remove(&mut self, path: &Path, before: Before) -> Result<(), JailError> {
        let mut waiting = vec![(path.to_owned(), before)];
        while let Some((path, before)) = waiting.pop() {
            let kind = match before {
                // Another process has removed it in the meantime.
                Before::Nothing => continue,
                Before::Directory => LayerChangeKind::RemoveDirectory,
                Before::File | Before::Link | Before::Special => LayerChangeKind::Remove,
            };
            if before == Before::Directory {
                let folder = self.lower.join(&path);
                for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
                    let entry = entry.map_err(failed(&folder))?;
                    let metadata = entry.metadata().map_err(failed(&folder))?;
                    waiting.push((path.join(entry.file_name()), kind_of(&metadata)));
                    self.check_limit(waiting.len())?;
                }
            }
            self.push(path, kind, before)?;
        }
        Ok(())
    }

    fn push(&mut self, path: PathBuf, kind: LayerChangeKind, before: Before) -> Result<(), JailError> {
        self.check_limit(1)?;
        self.found.push(LayerChange { path, kind, before });
        Ok(())
    }

    fn check_limit(&self, more: usize) -> Result<(), JailError> {
        if self.found.len() + more > self.limit {
            return Err(JailError::TooManyChanges { limit: self.limit });
        }
        Ok(())
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> JailError {
    move |source| JailError::Layer { step: "read the layer at", path: path.to_owned(), source }
}

fn kind_of(metadata: &Metadata) -> Before {
    let kind = metadata.file_type();
    if kind.is_dir() {
        Before::Directory
    } else if kind.is_symlink() {
        Before::Link
    } else if kind.is_file() {
        Before::File
    } else {
        Before::Special
    }
}

fn metadata_of(path: &Path) -> Result<Option<Metadata>, JailError> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(failed(path)(error)),
    }
}

fn executable(metadata: &Metadata) -> bool {
    metadata.mode() & 0o100 != 0
}

/// A process may have taken the right to read from its own files. They are ours as well, so it is put back.
fn make_readable(path: &Path, mode: u32, needed: u32) -> Result<(), JailError> {
    if mode & needed == needed {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & 0o777 | needed)).map_err(failed(path))
}

fn same_content(left: &Path, right: &Path) -> Result<bool, JailError> {
    let mut left_file = File::open(left).map_err(failed(left))?;
    let Ok(mut right_file) = File::open(right) else {
        // What we cannot read we cannot call unchanged.
        return Ok(false);
    };
    let (mut left_piece, mut right_piece) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let length = read_piece(&mut left_file, &mut left_piece).map_err(failed(left))?;
        let other = read_piece(&mut right_file, &mut right_piece).map_err(failed(right))?;
        if left_piece.get(..length) != right_piece.get(..other) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

/// Fills the piece unless the file ends before.
fn read_piece(file: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = piece.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// The first byte of an attribute, zero for an empty one.
pub(super) fn attribute(path: &Path, name: &CStr) -> Result<Option<u8>, JailError> {
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(path)(error.into()))?;
    // Values of overlay marks are one letter, or a path of which the first byte is enough.
    let mut value = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: both strings end with a zero byte and the buffer is as long as given.
    let length =
        unsafe { libc::lgetxattr(text.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    match Errno::result(length) {
        Ok(_) => Ok(value.first().copied()),
        Err(Errno::ENODATA | Errno::ENOTSUP) => Ok(None),
        // It is there, and longer than any that means something.
        Err(Errno::ERANGE) => Ok(Some(0)),
        Err(errno) => Err(failed(path)(errno.into())),
    }
}
