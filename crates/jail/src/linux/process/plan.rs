//! From an order to the steps that build its root directory: what is checked and resolved before anything starts.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io};

use super::child::OUR_PROCESSES;
use super::root::{Absent, Access, LOWER, ROOT, Step, UPPER, WORK};
use crate::profile::SYSTEM_PATHS;
use crate::{CACHE_PLACE, CacheAccess, CacheMount, CommandSpec, JailError};

/// The home directory inside: empty, writable, gone afterwards.
pub(crate) const HOME: &str = "/tmp/home";

/// What is mounted over a file that is hidden: one without content, which cannot be written.
const EMPTY_FILE: &str = "/.hidden";

/// Devices without a memory or an owner.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Names that scripts expect beside them.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Places that are created for each process, or that belong to the machine. Nothing of the caller's can lie there
/// or cover them.
const OWN_PLACES: &[&str] = &["/dev", "/proc", "/sys"];

/// Memory to write to.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// Switches of the machine, most of which root may use by its name alone.
const SWITCHES: &[&str] =
    &["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"];

/// What the kernel reports of itself, of its memory and of other processes. Most of it root alone may read, and a
/// program in the jail has no use for it.
const KERNEL_PAGES: &[&str] = &[
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/pagetypeinfo",
    "/proc/sched_debug",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/vmallocinfo",
    "/proc/zoneinfo",
];

/// Files in each of them, so that empty ones cannot eat the memory that their bytes do not.
const MEMORY_FILES: u32 = 100_000;

/// The root itself holds nothing but places to mount on.
const ROOT_OPTIONS: &str = "size=4m,nr_inodes=8k,mode=755";

/// A hidden directory holds nothing at all.
const HIDDEN_OPTIONS: &str = "size=4k,nr_inodes=2,mode=555";

/// How the layer lies over the project. What is written must be whole in the upper directory: no file that is only a
/// note about another (`metacopy`), no directory that is one about another place (`redirect_dir`). The layer lives
/// no longer than the process, so nothing of it needs to be flushed to the disk (`volatile`).
const LAYER_OPTIONS: &str = "redirect_dir=nofollow,metacopy=off,index=off,xino=off,volatile";

/// Numbers that the kernel does not give twice: `RESERVED_PIDS` of `kernel/pid.c`.
const RESERVED_NUMBERS: u64 = 300;

/// The first kernel in which each pid namespace has its own largest number. An older one would change it for the whole
/// machine.
const OWN_LARGEST_NUMBER: (u32, u32) = (6, 14);

/// An order after checking.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) project: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) steps: Vec<Step>,
    /// Where the program starts.
    pub(crate) directory: CString,
    /// What Landlock lets it write, beside the devices.
    pub(crate) writable: Vec<CString>,
    pub(crate) devices: Vec<CString>,
}

/// Whether the layer is made by an ordinary user, in a user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Root,
    User,
}

impl Plan {
    pub(crate) fn prepare(order: &CommandSpec, owner: Owner) -> Result<Self, JailError> {
        let project = canonical_directory(&order.project)?;
        let scratch = canonical_directory(&order.scratch)?;
        check_places(&project, &scratch)?;
        let mut draft = Draft::default();
        draft.memory(Path::new("/"), ROOT_OPTIONS, Access::Write)?;
        draft.empty_file()?;
        for part in system() {
            draft.system(part)?;
        }
        draft.own_places(order, owner)?;
        for path in &order.readable {
            draft.readable(path, &project, &scratch)?;
        }
        for path in &order.secrets {
            draft.secret(path, &project)?;
        }
        if let Some(cache) = &order.cache {
            draft.cache(cache, &project, &scratch)?;
        }
        draft.directories(&project)?;
        let own_marks = match owner {
            Owner::Root => "",
            Owner::User => ",userxattr",
        };
        draft.steps.push(Step::Layer {
            path: inside(&project)?,
            options: text(format!(
                "lowerdir={LOWER},upperdir={UPPER},workdir={WORK},{LAYER_OPTIONS}{own_marks}"
            ))?,
        });
        for path in &order.direct {
            draft.direct(&project, path)?;
        }
        for path in &order.read_only {
            draft.read_only(&project, path)?;
        }
        for path in &order.hidden {
            draft.hidden(&project, path)?;
        }
        let directory = below(&project, &order.directory)?;
        if !directory.is_dir() {
            return Err(refuse(format!("`{}` is not a directory of the project", order.directory.display())));
        }
        Ok(Self {
            directory: text(directory.as_os_str())?,
            writable: std::iter::once(project.as_os_str())
                .chain(TEMPORARY.iter().map(OsStr::new))
                .map(text)
                .collect::<Result<_, _>>()?,
            devices: DEVICES.iter().map(|device| text(*device)).collect::<Result<_, _>>()?,
            steps: draft.steps,
            project,
            scratch,
        })
    }
}

fn check_places(project: &Path, scratch: &Path) -> Result<(), JailError> {
    if scratch.starts_with(project) || project.starts_with(scratch) {
        return Err(refuse(format!(
            "the scratch directory `{}` and the project `{}` must not contain each other",
            scratch.display(),
            project.display()
        )));
    }
    let taken = OWN_PLACES.iter().map(Path::new);
    if let Some(place) = taken.clone().find(|place| project.starts_with(place)) {
        return Err(refuse(format!("a project in `{}` cannot be worked on", place.display())));
    }
    let system = system().iter().map(|part| part.path.as_path());
    let temporary = TEMPORARY.iter().map(Path::new);
    if let Some(place) = taken.chain(system.clone()).chain(temporary).find(|place| place.starts_with(project))
    {
        return Err(refuse(format!(
            "the project `{}` contains `{}`, which the jail needs; choose a directory further down",
            project.display(),
            place.display()
        )));
    }
    if let Some(place) = system.into_iter().find(|place| scratch.starts_with(place)) {
        return Err(refuse(format!(
            "the scratch directory lies in `{}`, which every process can read; choose another",
            place.display()
        )));
    }
    Ok(())
}

/// A part of the system that every process sees.
#[derive(Debug)]
struct SystemPart {
    path: PathBuf,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    /// A link to another part.
    Link(PathBuf),
    Directory(PathBuf),
    File(PathBuf),
}

/// The parts that this machine has. They are looked up once: a start costs milliseconds, and a part that has vanished
/// since is skipped by the child.
fn system() -> &'static [SystemPart] {
    static PARTS: OnceLock<Vec<SystemPart>> = OnceLock::new();
    PARTS.get_or_init(|| {
        let wanted = SYSTEM_PATHS.iter().map(|(path, _)| Path::new(*path));
        // The devices and processes are created again, and what control groups report is not needed.
        let wanted =
            wanted.filter(|path| !["/dev", "/proc", "/sys/fs"].iter().any(|own| path.starts_with(own)));
        let mut parts: Vec<SystemPart> = Vec::new();
        for path in wanted {
            let (Ok(metadata), Ok(source)) = (path.symlink_metadata(), path.canonicalize()) else { continue };
            let leads_inside = parts.iter().any(|part| match &part.shown {
                Shown::Directory(directory) => *directory == part.path && source.starts_with(directory),
                Shown::Link(_) | Shown::File(_) => false,
            });
            let shown = match fs::read_link(path) {
                Ok(target) if metadata.is_symlink() && leads_inside => Shown::Link(target),
                _ if source.is_dir() => Shown::Directory(source),
                _ => Shown::File(source),
            };
            parts.push(SystemPart { path: path.to_owned(), shown });
        }
        parts
    })
}

/// Steps under way, and the directories that exist after them.
#[derive(Debug, Default)]
struct Draft {
    steps: Vec<Step>,
    made: BTreeSet<PathBuf>,
    /// What of the old root is shown, and where.
    shown: Vec<(PathBuf, PathBuf)>,
}

impl Draft {
    /// The directory and those above it.
    fn directories(&mut self, path: &Path) -> Result<(), JailError> {
        let mut missing: Vec<&Path> =
            path.ancestors().take_while(|path| !self.made.contains(*path)).collect();
        missing.reverse();
        for path in missing {
            if path != Path::new("/") {
                self.steps.push(Step::Directory(inside(path)?));
            }
            self.made.insert(path.to_owned());
        }
        Ok(())
    }

    fn above(&mut self, path: &Path) -> Result<(), JailError> {
        path.parent().map_or(Ok(()), |above| self.directories(above))
    }

    fn memory(&mut self, path: &Path, options: &str, access: Access) -> Result<(), JailError> {
        self.directories(path)?;
        self.steps.push(Step::Memory { path: inside(path)?, options: text(options)?, access });
        Ok(())
    }

    fn link(&mut self, path: &Path, target: &Path) -> Result<(), JailError> {
        self.above(path)?;
        self.steps.push(Step::Link { target: text(target.as_os_str())?, path: inside(path)? });
        Ok(())
    }

    fn bind(&mut self, source: &Path, path: &Path, access: Access) -> Result<(), JailError> {
        if source.is_dir() {
            self.directories(path)?;
        } else {
            self.above(path)?;
            self.steps.push(Step::File(inside(path)?));
        }
        self.shown.push((source.to_owned(), path.to_owned()));
        let (source, path) = (text(source.as_os_str())?, inside(path)?);
        self.steps.push(Step::Bind { source, path, access, absent: Absent::Skip });
        Ok(())
    }

    /// Covers a path wherever it is shown. What it leads to is covered there as well, since a link in the jail would lead
    /// to it too.
    fn secret(&mut self, path: &Path, project: &Path) -> Result<(), JailError> {
        let Ok(source) = path.canonicalize() else { return Ok(()) };
        // What is in the project the layer shows, and the order says itself what of it is hidden.
        if source.starts_with(project) || project.starts_with(&source) {
            return Ok(());
        }
        let place = |(shown, place): &(PathBuf, PathBuf)| {
            let rest = source.strip_prefix(shown).ok()?;
            Some(if rest.as_os_str().is_empty() { place.clone() } else { place.join(rest) })
        };
        let places: BTreeSet<PathBuf> = self.shown.iter().filter_map(place).collect();
        for place in places {
            let path = inside(&place)?;
            self.steps.push(if source.is_dir() {
                Step::Memory { path, options: text(HIDDEN_OPTIONS)?, access: Access::Read }
            } else {
                let source = inside(Path::new(EMPTY_FILE))?;
                Step::Bind { source, path, access: Access::Read, absent: Absent::Skip }
            });
        }
        Ok(())
    }

    fn system(&mut self, part: &SystemPart) -> Result<(), JailError> {
        match &part.shown {
            Shown::Link(target) => self.link(&part.path, target),
            Shown::Directory(source) | Shown::File(source) => self.bind(source, &part.path, Access::Read),
        }
    }

    /// Devices, processes, and memory to write to.
    fn own_places(&mut self, order: &CommandSpec, owner: Owner) -> Result<(), JailError> {
        let memory =
            format!("size={},nr_inodes={MEMORY_FILES},mode=1777", order.limits.temporary_bytes.max(1));
        for device in DEVICES {
            self.bind(Path::new(device), Path::new(device), Access::Device)?;
        }
        for (path, target) in DEVICE_LINKS {
            self.link(Path::new(path), Path::new(target))?;
        }
        for path in TEMPORARY {
            self.memory(Path::new(path), &memory, Access::Write)?;
        }
        self.directories(Path::new(HOME))?;
        self.directories(Path::new("/proc"))?;
        self.steps.push(Step::Processes { path: inside(Path::new("/proc"))? });
        // The only bound on processes that holds for root.
        if owner == Owner::Root && kernel_version() >= Some(OWN_LARGEST_NUMBER) {
            let largest = RESERVED_NUMBERS + OUR_PROCESSES + order.limits.processes.clamp(1, 1 << 20);
            let path = inside(Path::new("/proc/sys/kernel/pid_max"))?;
            self.steps.push(Step::Setting { path, value: text(largest.to_string())? });
        }
        for path in SWITCHES {
            let path = inside(Path::new(path))?;
            self.steps.push(Step::Bind {
                source: path.clone(),
                path,
                access: Access::Read,
                absent: Absent::Skip,
            });
        }
        for path in KERNEL_PAGES.iter().map(Path::new).filter(|path| path.exists()) {
            let (source, path) = (text("/dev/null")?, inside(path)?);
            self.steps.push(Step::Bind { source, path, access: Access::Device, absent: Absent::Skip });
        }
        Ok(())
    }

    fn readable(&mut self, path: &Path, project: &Path, scratch: &Path) -> Result<(), JailError> {
        if !is_plain(path) || !path.is_absolute() || covers_our_own(path) {
            return Err(refuse(format!("`{}` cannot be made readable as a whole", path.display())));
        }
        let Ok(source) = path.canonicalize() else { return Ok(()) };
        if source.starts_with(project) {
            // It is seen through the layer, without what is hidden there.
            return Ok(());
        }
        // Where it really is, and where the caller thinks it is: toolchains know themselves by either. What contains
        // the project has one place only, since in the other the project would lie open.
        let mut places = vec![source.as_path()];
        if path != source && !project.starts_with(&source) {
            places.push(path);
        }
        for place in places {
            if OWN_PLACES.iter().any(|own| place.starts_with(own)) || covers_our_own(place) {
                return Err(refuse(format!("`{}` cannot be made readable", path.display())));
            }
            if scratch.starts_with(place) || scratch.starts_with(&source) {
                return Err(refuse(format!(
                    "`{}` contains the scratch directory; choose another scratch directory",
                    path.display()
                )));
            }
            let seen = system().iter().any(|part| {
                matches!(part.shown, Shown::Directory(_) | Shown::Link(_)) && place.starts_with(&part.path)
            });
            if !seen && !place.starts_with(project) {
                self.bind(&source, place, Access::Read)?;
            }
        }
        Ok(())
    }

    /// What a command writes here outlives it, so it must be nothing that any other program relies on.
    fn cache(&mut self, cache: &CacheMount, project: &Path, scratch: &Path) -> Result<(), JailError> {
        let source = canonical_directory(&cache.source)?;
        let overlaps = |other: &Path| source.starts_with(other) || other.starts_with(&source);
        if overlaps(project) || overlaps(scratch) || system().iter().any(|part| overlaps(&part.path)) {
            return Err(refuse(format!(
                "the cache directory `{}` overlaps the project, the scratch directory or the system",
                source.display()
            )));
        }
        let place = Path::new(CACHE_PLACE);
        if project.starts_with(place) {
            return Err(refuse(format!("a project in `{CACHE_PLACE}` cannot have a cache")));
        }
        self.directories(place)?;
        let access = match cache.access {
            CacheAccess::Read => Access::Read,
            CacheAccess::Write => Access::Write,
        };
        self.cover(text(source.as_os_str())?, place, access)
    }

    fn direct(&mut self, project: &Path, path: &Path) -> Result<(), JailError> {
        let place = below(project, path)?;
        let Some(source) = existing(&place)? else { return Ok(()) };
        if source != place || !source.is_dir() || path.as_os_str().is_empty() {
            return Err(refuse(format!(
                "`{}` cannot be written directly: it must be a directory below the project and no link",
                path.display()
            )));
        }
        self.cover(text(source.as_os_str())?, &place, Access::Write)
    }

    fn read_only(&mut self, project: &Path, path: &Path) -> Result<(), JailError> {
        let place = below(project, path)?;
        match existing(&place)? {
            // What a link leads to may be outside, where nothing is; what is inside is covered where it is.
            Some(source) if source.starts_with(project) => {
                self.cover(inside(&source)?, &source, Access::Read)
            }
            _ => Ok(()),
        }
    }

    /// Makes the file that hides others. No command can write to it, so what it writes to a hidden file fails instead of
    /// being lost.
    fn empty_file(&mut self) -> Result<(), JailError> {
        let path = inside(Path::new(EMPTY_FILE))?;
        self.steps.push(Step::File(path.clone()));
        self.steps.push(Step::Bind {
            source: path.clone(),
            path,
            access: Access::Read,
            absent: Absent::Fail,
        });
        Ok(())
    }

    fn hidden(&mut self, project: &Path, path: &Path) -> Result<(), JailError> {
        let place = below(project, path)?;
        let Some(source) = existing(&place)? else { return Ok(()) };
        if !source.starts_with(project) {
            return Ok(());
        }
        if source == project {
            return Err(refuse("the project itself cannot be hidden".to_owned()));
        }
        if source.is_dir() {
            let (path, options) = (inside(&source)?, text(HIDDEN_OPTIONS)?);
            self.steps.push(Step::Memory { path, options, access: Access::Read });
            return Ok(());
        }
        self.cover(inside(Path::new(EMPTY_FILE))?, &source, Access::Read)
    }

    /// Mounts on a path that exists.
    fn cover(&mut self, source: CString, place: &Path, access: Access) -> Result<(), JailError> {
        self.steps.push(Step::Bind { source, path: inside(place)?, access, absent: Absent::Fail });
        Ok(())
    }
}

/// The kernel's version. What cannot be read is not a version, and then nothing new is tried.
fn kernel_version() -> Option<(u32, u32)> {
    let release = nix::sys::utsname::uname().ok()?.release().to_str()?.to_owned();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn refuse(problem: String) -> JailError {
    JailError::Order { problem }
}

fn text(value: impl AsRef<OsStr>) -> Result<CString, JailError> {
    let value = value.as_ref();
    CString::new(value.as_bytes())
        .map_err(|_| refuse(format!("`{}` contains a zero byte", value.to_string_lossy())))
}

/// Where an absolute path of the jail is while its root is being built.
fn inside(path: &Path) -> Result<CString, JailError> {
    text(Path::new(ROOT).join(path.strip_prefix("/").unwrap_or(path)).as_os_str())
}

/// Whether mounting something there would cover what is created for each process.
fn covers_our_own(path: &Path) -> bool {
    OWN_PLACES.iter().chain(TEMPORARY).any(|own| Path::new(own).starts_with(path))
}

/// Without `..` and similar components.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::RootDir))
}

/// A path of the project, given relative to it.
fn below(project: &Path, path: &Path) -> Result<PathBuf, JailError> {
    let path = path.strip_prefix(".").unwrap_or(path);
    if path.is_absolute() || !is_plain(path) {
        return Err(refuse(format!(
            "`{}` must be a path relative to the project, without `..`",
            path.display()
        )));
    }
    // Joining an empty path would add a slash.
    Ok(if path.as_os_str().is_empty() { project.to_owned() } else { project.join(path) })
}

/// What a path resolves to, when it exists.
fn existing(place: &Path) -> Result<Option<PathBuf>, JailError> {
    match place.canonicalize() {
        Ok(source) => Ok(Some(source)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(JailError::Path { path: place.to_owned(), source }),
    }
}

fn canonical_directory(path: &Path) -> Result<PathBuf, JailError> {
    let refused = |source| JailError::Path { path: path.to_owned(), source };
    let found = path.canonicalize().map_err(refused)?;
    if found.is_dir() { Ok(found) } else { Err(refused(io::ErrorKind::NotADirectory.into())) }
}
