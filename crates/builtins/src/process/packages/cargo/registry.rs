//! The user's registry of cargo: what a run in the jail gets of it, and what is put into it when the run was agreed to.
//!
//! Later builds in the jail find packages there, offline. What is put there is complete at every moment: the sources of a package
//! get their name in one step, and its archive, without which cargo takes it for absent, comes last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tgp_contract::{Code, RelativePath, ToolError};
use tgp_fs::{Directory, HardLinks, LockKind, LockWait, open_plain, read_plain, take_lock};

use super::archive::{self, Allowance, COMPLETE_NAME};
use super::index_file;
use super::lock::{LockFile, Published};
use crate::process::ProcessOptions;
use crate::process::packages::tree::unusable;

/// Names that are made in the jail for what the user has: more are downloaded again.
const MAX_LINKS: usize = 200_000;

/// Files and bytes of the user's index that are copied for the jail.
const MAX_INDEX_FILES: usize = 100_000;
const MAX_INDEX_BYTES: u64 = 1 << 30;

/// Largest settings of an index.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// How names of unfinished files begin. They are removed by the next installation.
const UNFINISHED: &str = ".tgp-";

/// The file that cargo itself locks when it changes the registry.
const LOCK: &str = ".package-cache";

/// How long another cargo is waited for.
const PATIENCE: LockWait = LockWait {
    patience: Duration::from_secs(60),
    first_pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(200),
};

/// The home of the user's cargo.
#[derive(Clone, Debug)]
pub(super) struct Registry {
    home: PathBuf,
}

/// Whether a name is one that cargo gives to the directory of an index.
pub(super) fn is_index_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    name.len() <= 128
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.chars().all(is_letter)
        && !name.contains("..")
}

impl Registry {
    /// # Errors
    /// `ECAPABILITY` where packages cannot be kept, or commands would not see them.
    pub(super) fn of(options: &ProcessOptions) -> Result<Self, ToolError> {
        let refused = |message: String, help: &str| {
            Err(ToolError::new(Code::Capability, message).help(help.to_owned()))
        };
        let Some(home) = options.cargo_home.as_deref().filter(|home| home.is_absolute()) else {
            let message = "the home directory of cargo is not known".to_owned();
            return refused(message, "set HOME or CARGO_HOME for the kernel; nothing was installed");
        };
        let real = |path: &Path| tgp_fs::real_place(path);
        let (place, project) = (real(home), real(&options.project));
        if place.starts_with(&project) {
            let message = format!("the home directory of cargo, `{}`, is in the project", home.display());
            return refused(
                message,
                "set CARGO_HOME to a directory outside of the project; nothing was installed",
            );
        }
        let registry = place.join("registry");
        if !options.readable.iter().any(|readable| registry.starts_with(real(readable))) {
            let message = format!("commands do not see the registry of cargo, `{}`", registry.display());
            return refused(
                message,
                "add that directory to `jail.readable` in the configuration; nothing was installed",
            );
        }
        Ok(Self { home: place })
    }

    fn part(&self, part: &str, index: &str) -> PathBuf {
        self.home.join("registry").join(part).join(index)
    }

    /// Gives a home of cargo in the jail what the user has: links to archives, sources and repositories, which the jail can only
    /// read, and copies of the index, which cargo writes again.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn share(&self, jail_home: &Path) -> io::Result<()> {
        let mut links = 0;
        for part in ["registry/cache", "registry/src"] {
            for index in names(&self.home.join(part), is_index_name) {
                link_all(&self.home.join(part).join(&index), &jail_home.join(part).join(&index), &mut links)?;
            }
        }
        for part in ["git/db", "git/checkouts"] {
            link_all(&self.home.join(part), &jail_home.join(part), &mut links)?;
        }
        let mut copied = (0, 0);
        for index in names(&self.home.join("registry/index"), is_index_name) {
            copy_index(
                &self.part("index", &index),
                &jail_home.join("registry/index").join(&index),
                &mut copied,
            )?;
        }
        Ok(())
    }

    /// Whether the user has the archive of a package.
    pub(super) fn has_archive(&self, index: &str, package: Published<'_>) -> bool {
        let archive = self.part("cache", index).join(format!("{}.crate", package.file_stem()));
        archive.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > 0)
    }

    fn has_sources(&self, index: &str, package: Published<'_>) -> bool {
        let complete = self.part("src", index).join(package.file_stem()).join(COMPLETE_NAME);
        complete.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > 0)
    }

    /// Makes ready in `workshop` what the user does not have of a lock file's packages. `jail` is the home of cargo that the run
    /// has filled; nothing in it is believed without the checksum of the lock file.
    ///
    /// # Errors
    /// `ESECURITY` for what is not the package that the lock file names.
    pub(super) fn prepare(
        &self,
        jail: &Directory,
        index: &str,
        lock: &LockFile,
        workshop: &Path,
    ) -> Result<RegistryUpdate, ToolError> {
        let failed = |error: io::Error| {
            ToolError::new(Code::Internal, format!("the packages cannot be made ready: {error}"))
                .help("nothing was installed")
        };
        for name in ["archives", "sources", "index"] {
            fs::create_dir(workshop.join(name)).map_err(failed)?;
        }
        let mut update = RegistryUpdate {
            registry: self.clone(),
            index: index.to_owned(),
            packages: Vec::new(),
            index_files: Vec::new(),
            bytes: 0,
        };
        let mut allowance = Allowance::default();
        let mut by_name: BTreeMap<&str, Vec<Published<'_>>> = BTreeMap::new();
        for package in lock.published() {
            if self.prepare_package(jail, package, workshop, &mut allowance, &mut update)? {
                by_name.entry(package.name).or_default().push(package);
            }
        }
        for (number, (name, packages)) in by_name.iter().enumerate() {
            let target = workshop.join("index").join(number.to_string());
            self.prepare_index(jail, name, packages, &target, &mut update)?;
        }
        self.prepare_settings(jail, &workshop.join("config.json"), &mut update)?;
        Ok(update)
    }

    /// Returns whether the package is there now, or will be.
    fn prepare_package(
        &self,
        jail: &Directory,
        package: Published<'_>,
        workshop: &Path,
        allowance: &mut Allowance,
        update: &mut RegistryUpdate,
    ) -> Result<bool, ToolError> {
        let index = update.index.clone();
        let (has_archive, has_sources) =
            (self.has_archive(&index, package), self.has_sources(&index, package));
        if has_archive && has_sources {
            return Ok(true);
        }
        let stem = package.file_stem();
        let name = format!("{stem}.crate");
        let refused = |error: io::Error| {
            unusable(Path::new(&name), &format!("is not an archive of the index: {error}"))
        };
        let opened = if has_archive {
            open_plain(&self.part("cache", &index).join(&name)).ok()
        } else {
            open_in(jail, &format!("registry/cache/{index}"), &name)
        };
        // A package that no target of this project uses is in the lock file and not downloaded.
        let Some(mut file) = opened else { return Ok(false) };
        let archive = workshop.join("archives").join(&name);
        let bytes = archive::copy_checked(&mut file, &archive, package.checksum).map_err(refused)?;
        let mut sources = None;
        if !has_sources {
            let into = workshop.join("sources").join(&stem);
            update.bytes += archive::unpack(&archive, &stem, &into, allowance).map_err(refused)?;
            sources = Some(into);
        }
        let archive = (!has_archive).then_some(archive);
        if archive.is_some() {
            update.bytes += bytes;
        }
        update.packages.push(NewPackage { stem, archive, sources });
        Ok(true)
    }

    /// The file of the index that lists the versions of a package, where the user's does not list those of the lock file.
    fn prepare_index(
        &self,
        jail: &Directory,
        name: &str,
        packages: &[Published<'_>],
        target: &Path,
        update: &mut RegistryUpdate,
    ) -> Result<(), ToolError> {
        let place = index_file::place(name);
        let own = self.part("index", &update.index).join(&place);
        if read_plain(&own, index_file::MAX_BYTES).is_some_and(|text| index_file::lists(&text, packages)) {
            return Ok(());
        }
        let folder =
            format!("registry/index/{}/{}", update.index, place.parent().unwrap_or(&place).display());
        let file_name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let text =
            open_in(jail, &folder, file_name).and_then(|file| read_within(file, index_file::MAX_BYTES));
        let text = text.filter(|text| index_file::lists(text, packages)).ok_or_else(|| {
            unusable(
                Path::new(name),
                "is not in the index with the version and the checksum of the lock file",
            )
        })?;
        fs::write(target, text).map_err(|error| {
            ToolError::new(Code::Internal, format!("the packages cannot be made ready: {error}"))
        })?;
        update.index_files.push((place, target.to_owned()));
        Ok(())
    }

    /// The settings of the index, where the user's cargo has never used it.
    fn prepare_settings(
        &self,
        jail: &Directory,
        target: &Path,
        update: &mut RegistryUpdate,
    ) -> Result<(), ToolError> {
        let place = PathBuf::from("config.json");
        if update.is_empty() || self.part("index", &update.index).join(&place).exists() {
            return Ok(());
        }
        let folder = format!("registry/index/{}", update.index);
        let text =
            open_in(jail, &folder, "config.json").and_then(|file| read_within(file, MAX_SETTINGS_BYTES));
        let Some(text) = text.filter(|text| index_file::is_settings(text)) else { return Ok(()) };
        fs::write(target, text).map_err(|error| {
            ToolError::new(Code::Internal, format!("the packages cannot be made ready: {error}"))
        })?;
        update.index_files.push((place, target.to_owned()));
        Ok(())
    }
}

/// What is put into the user's registry.
#[derive(Debug)]
pub(in crate::process::packages) struct RegistryUpdate {
    registry: Registry,
    index: String,
    packages: Vec<NewPackage>,
    /// Where each goes below the directory of the index, and where it is now.
    index_files: Vec<(PathBuf, PathBuf)>,
    bytes: u64,
}

/// A package of which the user lacks something.
#[derive(Debug)]
struct NewPackage {
    stem: String,
    archive: Option<PathBuf>,
    sources: Option<PathBuf>,
}

/// One thing that is put into the registry, in one step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Index(&'a Path, &'a Path),
    Sources(&'a str, &'a Path),
    Archive(&'a str, &'a Path),
}

impl RegistryUpdate {
    pub(in crate::process::packages) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packages.is_empty() && self.index_files.is_empty()
    }

    /// The packages of which something is put there, by how their files begin.
    pub(super) fn stems(&self) -> BTreeSet<&str> {
        self.packages.iter().map(|package| package.stem.as_str()).collect()
    }

    /// Puts everything in its place. A process that is killed meanwhile leaves a registry that cargo can use, and what is left
    /// out then is put there by the next installation.
    ///
    /// # Errors
    /// What the system says, and when another cargo uses the registry all the time.
    pub(in crate::process::packages) fn put(self) -> io::Result<()> {
        let _lock = self.lock()?;
        self.sweep()?;
        self.steps().into_iter().try_for_each(|step| self.take(step))
    }

    fn lock(&self) -> io::Result<File> {
        fs::create_dir_all(&self.registry.home)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o644)
            .open(self.registry.home.join(LOCK))?;
        if take_lock(&lock, LockKind::Exclusive, PATIENCE)? {
            return Ok(lock);
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another cargo uses the registry"))
    }

    /// Removes what an installation has left that was killed.
    fn sweep(&self) -> io::Result<()> {
        for part in ["cache", "src", "index"] {
            let folder = self.registry.part(part, &self.index);
            fs::create_dir_all(&folder)?;
            for name in names(&folder, |name| name.starts_with(UNFINISHED)) {
                let left = folder.join(name);
                if left.symlink_metadata()?.is_dir() {
                    tgp_jail::remove_tree(&left)?;
                } else {
                    fs::remove_file(&left)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let index = self.index_files.iter().map(|(place, from)| Step::Index(place, from));
        let packages = self.packages.iter().flat_map(|package| {
            let sources = package.sources.as_deref().map(|from| Step::Sources(&package.stem, from));
            let archive = package.archive.as_deref().map(|from| Step::Archive(&package.stem, from));
            sources.into_iter().chain(archive)
        });
        index.chain(packages).collect()
    }

    pub(super) fn take(&self, step: Step<'_>) -> io::Result<()> {
        match step {
            Step::Index(place, from) => {
                let folder = self.registry.part("index", &self.index);
                let target = folder.join(place);
                fs::create_dir_all(target.parent().unwrap_or(&folder))?;
                put_file(from, &folder, &target)
            }
            Step::Sources(stem, from) => {
                let folder = self.registry.part("src", &self.index);
                let target = folder.join(stem);
                if target.join(COMPLETE_NAME).exists() {
                    return Ok(());
                }
                let fresh = folder.join(format!("{UNFINISHED}sources"));
                copy_tree(from, &fresh)?;
                if target.symlink_metadata().is_ok() {
                    // Without the file that says that they are complete: cargo would unpack them again.
                    tgp_jail::remove_tree(&target)?;
                }
                fs::rename(fresh, target)
            }
            Step::Archive(stem, from) => {
                let folder = self.registry.part("cache", &self.index);
                put_file(from, &folder, &folder.join(format!("{stem}.crate")))
            }
        }
    }
}

/// Puts a file in the place of another one, in one step.
fn put_file(from: &Path, folder: &Path, target: &Path) -> io::Result<()> {
    let fresh = folder.join(format!("{UNFINISHED}file"));
    fs::copy(from, &fresh)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o644))?;
    fs::rename(fresh, target)
}

/// Copies a directory that the kernel has made: it has plain files and directories only. What says that it is complete is copied
/// last.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let mut waiting = vec![PathBuf::new()];
    while let Some(inside) = waiting.pop() {
        fs::create_dir(to.join(&inside))?;
        for entry in fs::read_dir(from.join(&inside))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                waiting.push(path);
            } else if path != Path::new(COMPLETE_NAME) {
                fs::copy(from.join(&path), to.join(&path))?;
            }
        }
    }
    fs::copy(from.join(COMPLETE_NAME), to.join(COMPLETE_NAME)).map(drop)
}

/// The names in a directory; none where it cannot be read.
fn names(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_wanted(name)).collect()
}

/// Makes links to everything in a directory.
fn link_all(from: &Path, to: &Path, links: &mut usize) -> io::Result<()> {
    let names = names(from, |name| !name.starts_with('.'));
    if names.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for name in names {
        if *links == MAX_LINKS {
            return Ok(());
        }
        *links += 1;
        symlink(from.join(&name), to.join(&name))?;
    }
    Ok(())
}

/// Copies the files of an index. `copied` counts files and bytes; what is beyond the limits is downloaded again.
fn copy_index(from: &Path, to: &Path, copied: &mut (usize, u64)) -> io::Result<()> {
    let mut waiting = vec![(PathBuf::new(), 0)];
    while let Some((inside, depth)) = waiting.pop() {
        for name in names(&from.join(&inside), |name| !name.starts_with(UNFINISHED)) {
            let path = inside.join(name);
            let Ok(found) = from.join(&path).symlink_metadata() else { continue };
            if found.is_dir() && depth < 4 {
                waiting.push((path, depth + 1));
            } else if found.is_file() {
                if copied.0 == MAX_INDEX_FILES || copied.1.saturating_add(found.len()) > MAX_INDEX_BYTES {
                    return Ok(());
                }
                *copied = (copied.0 + 1, copied.1 + found.len());
                let target = to.join(&path);
                fs::create_dir_all(target.parent().unwrap_or(to))?;
                fs::copy(from.join(&path), target)?;
            }
        }
    }
    Ok(())
}

/// A plain file below a directory that a process of the jail has filled: no link is followed.
fn open_in(directory: &Directory, folder: &str, name: &str) -> Option<File> {
    let folder = RelativePath::new(folder).ok()?;
    directory.descend(&folder).ok()?.open_file(name, HardLinks::Read).ok()
}

fn read_within(file: File, most: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= most).then_some(text)
}
