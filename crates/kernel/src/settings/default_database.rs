//! Where the default database is, and the move of the one that earlier versions kept in `.state`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use tgp_contract::{Code, ToolError};
use tgp_fs::append_log::at;
use tgp_fs::{DATABASE_ENDINGS, DATABASE_FILE, LockKind, LockWait, STATE_DIRECTORY, take_lock};

/// Taken by the process that moves the database, in the kernel's state.
const LOCK_FILE: &str = "database.lock";
const LOCK_WAIT: LockWait = LockWait {
    patience: Duration::from_secs(10),
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(25),
};

/// The bytes of a database that SQLite locks while a connection is open.
const SHARED_LOCKS: (libc::off_t, libc::off_t) = (0x4000_0002, 510);

/// The place of the default database, and what a person should know.
#[derive(Debug)]
pub(super) struct DatabasePlace {
    pub(super) file: PathBuf,
    pub(super) notice: Option<String>,
}

/// Finds the default database of a tool repository. One in the place of earlier versions is moved: the database first, then
/// what SQLite keeps beside it. A move that was interrupted is completed by the next start, before the database is opened.
///
/// # Errors
/// `ECONFIG` when there is a database in both places, `ESECURITY` when a link or a device has the name of one.
pub(super) fn find_default_database(root: &Path) -> Result<DatabasePlace, ToolError> {
    let (old, new) = (root.join(STATE_DIRECTORY).join(DATABASE_FILE), root.join(DATABASE_FILE));
    check_plain(&new)?;
    let there = |notice| Ok(DatabasePlace { file: new.clone(), notice });
    if !has_any(&old)? {
        return there(None);
    }
    let lock = root.join(STATE_DIRECTORY).join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&lock)
        .map_err(at(&lock))?;
    if !take_lock(&file, LockKind::Exclusive, LOCK_WAIT).map_err(at(&lock))? {
        let message = format!("another process is moving the database `{}`", old.display());
        return Err(ToolError::new(Code::Conflict, message).help("try again when it has ended"));
    }
    match (exists(&old)?, exists(&new)?) {
        (true, false) if has_any(&new)? => Err(both(&old, &new)),
        (true, false) => {
            if let Some(process) = open_elsewhere(&old) {
                let notice = format!(
                    "process {process} has the database `{}` open; a later start moves it to `{}`",
                    old.display(),
                    new.display()
                );
                return Ok(DatabasePlace { file: old, notice: Some(notice) });
            }
            move_files(&old, &new)?;
            there(Some(format!(
                "the default database is now `{}`; it was `{}`",
                new.display(),
                old.display()
            )))
        }
        // The database was moved, and the process ended before the rest.
        (false, true) => {
            move_files(&old, &new)?;
            there(None)
        }
        (true, true) => Err(both(&old, &new)),
        // What is left of a database that a person has taken away belongs to no database.
        (false, false) => there(None),
    }
}

/// One of the files of a database.
fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn files(database: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    DATABASE_ENDINGS.iter().map(|ending| beside(database, ending))
}

fn exists(path: &Path) -> Result<bool, ToolError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(path)(error)),
    }
}

fn has_any(database: &Path) -> Result<bool, ToolError> {
    files(database).try_fold(false, |found, file| Ok(found || exists(&file)?))
}

/// Moves what is there of a database; the order makes an interrupted move visible by what is left.
fn move_files(old: &Path, new: &Path) -> Result<(), ToolError> {
    for (from, to) in files(old).zip(files(new)) {
        if !exists(&from)? {
            continue;
        }
        if exists(&to)? {
            return Err(both(&from, &to));
        }
        fs::rename(&from, &to).map_err(at(&from))?;
    }
    for directory in [new.parent(), old.parent()].into_iter().flatten() {
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(at(directory))?;
    }
    Ok(())
}

/// Refuses what would be written through: the kernel makes plain files only.
fn check_plain(database: &Path) -> Result<(), ToolError> {
    for file in files(database) {
        if fs::symlink_metadata(&file).is_ok_and(|found| !found.is_file()) {
            let message = format!("`{}` is a link, a directory or a device", file.display());
            return Err(ToolError::new(Code::Security, message)
                .detail("path", file.display().to_string())
                .help("find out where it comes from and rename it; the default database is a plain file of that name"));
        }
    }
    Ok(())
}

/// The process that has the database open. A program of an earlier version would look for it in its old place again.
fn open_elsewhere(database: &Path) -> Option<libc::pid_t> {
    let file = File::open(database).ok()?;
    let kind = |kind: libc::c_int| libc::c_short::try_from(kind).unwrap_or_default();
    let mut lock = libc::flock {
        l_type: kind(libc::F_WRLCK),
        l_whence: kind(libc::SEEK_SET),
        l_start: SHARED_LOCKS.0,
        l_len: SHARED_LOCKS.1,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut lock)).ok()?;
    (lock.l_type != kind(libc::F_UNLCK)).then_some(lock.l_pid)
}

fn both(old: &Path, new: &Path) -> ToolError {
    let message = format!("there are two default databases: `{}` and `{}`", old.display(), new.display());
    ToolError::new(Code::Config, message)
        .detail("paths", vec![old.display().to_string(), new.display().to_string()])
        .help(format!(
            "this version reads `{}`, earlier ones read `{}`: look into both, and move the one that the project does not \
             use, with the files beside it, to a directory outside of `.tgp`",
            new.display(),
            old.display()
        ))
}
