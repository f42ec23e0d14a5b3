//! A small disk: a file system in memory with a fixed size, in a mount namespace of this program.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::load::Soak;
use crate::plan::Plan;

/// The argument with which this program only tries whether it may mount.
pub const PROBE: &str = "--probe-disk";

/// Bytes that are written at a time while the disk fills, first and at its end.
const LARGE: usize = 1 << 20;
const SMALL: usize = 4 << 10;

/// A mounted file system.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts it at `folder`. The program must have no other thread yet.
    ///
    /// # Errors
    /// Why this machine does not allow it. Then nothing of this program is changed.
    pub fn mount(folder: &Path, bytes: u64) -> Result<Self> {
        let program = std::env::current_exe()?;
        let tried = Command::new(program).arg(PROBE).arg(folder).output()?;
        if !tried.status.success() {
            bail!("{}", String::from_utf8_lossy(&tried.stderr).trim());
        }
        enter(folder, bytes)?;
        Ok(Self { folder: folder.to_owned() })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It ends with the namespace at the latest.
        let _ = umount2(&self.folder, MntFlags::MNT_DETACH);
    }
}

/// What a process that was started with [`PROBE`] does.
///
/// # Errors
/// When this machine allows no mount.
pub fn probe(folder: &Path) -> Result<()> {
    enter(folder, 1 << 20)?;
    fs::write(folder.join("probe"), "probe").context("cannot write to the mounted file system")
}

fn enter(folder: &Path, bytes: u64) -> Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS).context("no mount namespace")?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).context("no user namespace")?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).context("mounts stay shared")?;
    let size = format!("size={bytes},mode=0755");
    mount(Some("tgp-soak"), folder, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
        .context("no file system in memory")
}

/// Fills the disk and frees it again, several times.
pub fn fill_and_free(soak: &Soak, plan: &Plan, folder: &Path, mut rng: Rng) {
    let path = folder.join("filler");
    while !soak.is_over() {
        soak.sleep(Duration::from_millis(rng.u64(plan.disk_pause.clone())));
        if soak.is_over() {
            break;
        }
        let hold = Duration::from_millis(rng.u64(plan.disk_hold.clone()));
        match full_phase(soak, &path, hold, &mut rng) {
            Ok(()) => soak.report.count("disk-full phases"),
            Err(error) => soak.report.find(format!("the disk cannot be filled: {error:#}")),
        }
        let _ = fs::remove_file(&path);
        soak.set_disk_full(false);
    }
}

/// Takes all room, and what others free, for a while.
fn full_phase(soak: &Soak, path: &Path, hold: Duration, rng: &mut Rng) -> Result<()> {
    let mut filler = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    take(&mut filler, LARGE)?;
    take(&mut filler, SMALL)?;
    soak.set_disk_full(true);
    let started = std::time::Instant::now();
    while started.elapsed() < hold && !soak.is_over() {
        soak.sleep(Duration::from_millis(rng.u64(5..60)));
        // Now and then a little room comes back, so that something begins and cannot be finished.
        if rng.u8(..) < 40 {
            let length = filler.metadata()?.len();
            filler.set_len(length.saturating_sub(rng.u64(4..128) << 10))?;
            soak.sleep(Duration::from_millis(rng.u64(1..30)));
        }
        take(&mut filler, SMALL)?;
    }
    Ok(())
}

/// Appends until there is no room.
fn take(filler: &mut File, piece: usize) -> Result<()> {
    use std::io::{Seek, SeekFrom};
    filler.seek(SeekFrom::End(0))?;
    let zeros = vec![0; piece];
    loop {
        match filler.write_all(&zeros) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENOSPC as i32) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
