//! Landlock: which files can be opened, and no TCP, foreign abstract socket or foreign signal.
#![expect(unsafe_code, reason = "restricting through a prepared descriptor needs the raw system calls")]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, make_bitflags,
};
use nix::errno::Errno;

use super::Refusal;
use crate::{FileAccess, JailError, NetworkAccess, PathAccess, PathRule, Profile};

/// The newest version whose rights are known here. An older kernel takes what it knows of them.
const NEWEST: ABI = ABI::V9;

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const ASK_VERSION: libc::c_uint = 1;

/// The version that can check local sockets by their path.
pub(crate) const CHECKS_PATH_SOCKETS: u32 = 9;

/// The version that keeps signals inside the jail.
pub(crate) const KEEPS_SIGNALS: u32 = 6;

/// The kernel's Landlock version.
pub(crate) fn abi() -> Option<u32> {
    // SAFETY: with this flag the call takes no ruleset and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            ASK_VERSION,
        )
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// What this version does not restrict, in the words of a report.
pub(crate) fn lacks(abi: Option<u32>) -> impl Iterator<Item = &'static str> {
    let whole = "This kernel has no Landlock, or it is switched off: files are not restricted.";
    let parts = [
        (2, "Landlock here is too old to allow moving files between directories inside the jail."),
        (3, "Landlock here is too old to restrict truncating files."),
        (4, "Landlock here is too old to restrict TCP."),
        (5, "Landlock here is too old to restrict device commands."),
        (KEEPS_SIGNALS, "Landlock here is too old to restrict signals and abstract sockets."),
    ];
    let version = abi.unwrap_or(0);
    abi.is_none().then_some(whole).into_iter().chain(
        parts.into_iter().filter(move |(since, _)| version != 0 && version < *since).map(|(_, text)| text),
    )
}

/// Builds the ruleset of a profile; none when there is nothing to restrict.
pub(crate) fn ruleset(profile: &Profile) -> Result<Option<OwnedFd>, JailError> {
    let no_files = profile.files != FileAccess::Unrestricted;
    // Its own network namespace confines a process better than rules about TCP would.
    let no_network = profile.network == NetworkAccess::None;
    if !no_files && !no_network {
        return Ok(None);
    }
    let mut ruleset = Ruleset::default().scope(Scope::from_all(NEWEST)).map_err(rules_error)?;
    if no_files {
        ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST)).map_err(rules_error)?;
    }
    if no_network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(rules_error)?;
    }
    let mut created = ruleset.create().map_err(rules_error)?;
    if let FileAccess::Paths(rules) = &profile.files {
        for rule in rules {
            let file = open_path(rule)?;
            let rights = rights(rule.access, kind(rule, &file)?);
            created = created.add_rule(PathBeneath::new(file.as_fd(), rights)).map_err(rules_error)?;
        }
    }
    Ok(created.into())
}

fn rules_error(error: RulesetError) -> JailError {
    JailError::Rules(Box::new(error))
}

fn open_path(rule: &PathRule) -> Result<File, JailError> {
    File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(&rule.path)
        .map_err(|source| JailError::Path { path: rule.path.clone(), source })
}

#[derive(Clone, Copy)]
enum Kind {
    Directory,
    Device,
    File,
}

fn kind(rule: &PathRule, file: &File) -> Result<Kind, JailError> {
    let metadata = file.metadata().map_err(|source| JailError::Path { path: rule.path.clone(), source })?;
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Kind::Directory
    } else if kind.is_char_device() || kind.is_block_device() {
        Kind::Device
    } else {
        Kind::File
    })
}

/// The kernel refuses rights of directories on a file, and a device named in a rule needs its commands too.
fn rights(access: PathAccess, kind: Kind) -> BitFlags<AccessFs> {
    let rights = match access {
        PathAccess::Read => make_bitflags!(AccessFs::{ReadFile | ReadDir}),
        PathAccess::ReadExecute => make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute}),
        PathAccess::ReadWrite => {
            AccessFs::from_all(NEWEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
        }
    };
    match kind {
        Kind::Directory => rights,
        Kind::File => rights & AccessFs::from_file(NEWEST),
        Kind::Device => (rights & AccessFs::from_file(NEWEST) & !AccessFs::Execute) | AccessFs::IoctlDev,
    }
}

/// Rights that this kernel knows, worked out ahead for [`allow`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownRights(u64);

impl KnownRights {
    pub(crate) fn of_directory(access: PathAccess, abi: u32) -> Self {
        Self::known(rights(access, Kind::Directory), abi)
    }

    pub(crate) fn of_device(access: PathAccess, abi: u32) -> Self {
        Self::known(rights(access, Kind::Device), abi)
    }

    fn known(rights: BitFlags<AccessFs>, abi: u32) -> Self {
        let abi = ABI::from(i32::try_from(abi).unwrap_or(i32::MAX));
        Self((rights & AccessFs::from_all(abi)).bits())
    }

    /// To read files and list directories, which every version knows.
    pub(crate) fn reading() -> Self {
        Self(make_bitflags!(AccessFs::{ReadFile | ReadDir}).bits())
    }
}

/// Adds a path. For mounts that exist only inside the child, and so with system calls only.
pub(crate) fn allow(rules: &OwnedFd, path: BorrowedFd<'_>, rights: KnownRights) -> Result<(), Errno> {
    #[repr(C, packed)]
    struct PathBeneathAttribute {
        allowed_access: u64,
        parent: libc::c_int,
    }
    /// `LANDLOCK_RULE_PATH_BENEATH`.
    const PATH_BENEATH: libc::c_int = 1;
    let attribute = PathBeneathAttribute { allowed_access: rights.0, parent: path.as_raw_fd() };
    // SAFETY: both descriptors are open and the attribute has the layout the kernel documents, packed.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), PATH_BENEATH, &raw const attribute, 0)
    })
    .map(drop)
}

/// Puts the ruleset on the calling thread and all it will start.
pub(crate) fn restrict(rules: &OwnedFd) -> Result<(), Refusal> {
    // SAFETY: takes an open descriptor and no memory.
    Errno::result(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) })
        .map(drop)
        .map_err(Refusal::of("apply the Landlock rules"))
}
