//! What a locked process may still do: plain data, the same on every platform.

use std::path::{Path, PathBuf};

/// What a locked process may still do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Which files can be opened. Descriptors that are already open stay usable.
    pub files: FileAccess,
    /// Which system calls the kernel still answers.
    pub syscalls: SyscallFilter,
    /// Resource limits, each both soft and hard.
    pub limits: ResourceLimits,
    /// Which namespaces are left behind, where the kernel allows it.
    pub namespaces: NamespaceSet,
    /// Whether sockets can be made.
    pub network: NetworkAccess,
}

/// Which files can be opened, created, removed or executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// No file at all.
    None,
    /// These files, and everything beneath these directories.
    Paths(Vec<PathRule>),
    /// Whatever the user may.
    Unrestricted,
}

/// One file or one directory with everything beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// It must exist when the jail is built; a symbolic link is replaced by its target.
    pub path: PathBuf,
    /// What may be done there.
    pub access: PathAccess,
}

/// What may be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// Read files, list directories.
    Read,
    /// The same, and run programs.
    ReadExecute,
    /// Everything but making device nodes. Running programs is part of it: a process that can write a file can also
    /// hand it to an interpreter, and test runs execute what they have just built.
    ReadWrite,
}

/// Which system calls the kernel still answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallFilter {
    /// Compute, memory without executable pages, clocks, reading and writing open descriptors, exit. Nothing else, not
    /// even opening a file or a thread. Such a process can only lock itself: the filter forbids the `exec` that
    /// [`jailed_command`](crate::jailed_command) would need.
    Compute,
    /// The same, and what a process needs to fork workers that lock themselves further with a
    /// [`ChildLock`](crate::ChildLock): to clone itself, to hand a connection over, and to add limits and a filter.
    Template,
    /// An ordinary program: everything except what no build, test or shell needs and what has served as a way out
    /// (ptrace, mount, bpf, kexec, keys, modules, namespaces, io_uring, userfaultfd, perf, TIOCSTI ...).
    Process,
    /// Everything.
    Unfiltered,
}

/// Resource limits. `None` leaves what was inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of address space (`RLIMIT_AS`).
    pub address_space: Option<u64>,
    /// Bytes of private memory that can be written (`RLIMIT_DATA`). Unlike address space it does not count what engines
    /// with a garbage collector reserve and never touch.
    pub data: Option<u64>,
    /// Seconds of CPU time; the kernel kills the process when they are used up (`RLIMIT_CPU`).
    pub cpu_seconds: Option<u64>,
    /// One more than the largest descriptor number (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Bytes of the largest file it can write (`RLIMIT_FSIZE`).
    pub file_size: Option<u64>,
    /// Processes and threads of this user (`RLIMIT_NPROC`); without a user namespace the kernel counts those outside
    /// the jail too, and it never counts for root.
    pub processes: Option<u64>,
    /// Whether a crash may write a core file. It would hold whatever the process had read.
    pub core_dump: bool,
}

/// Namespaces to leave. Each is taken only where the kernel and the user's rights allow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSet {
    /// User ids. It is what lets an ordinary user have the others; root gets them without.
    pub user: bool,
    /// Network interfaces and abstract sockets.
    pub network: bool,
    /// System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Process ids. A jailed command sees only its own descendants, and they all die with it. A process that locks
    /// itself stays where it is; only its children would be elsewhere.
    pub pid: bool,
    /// Mounts. With [`FileAccess::Paths`] everything outside the writable paths becomes read-only, which also stops
    /// `chmod`, `chown` and `utimes` there: Landlock does not govern those.
    pub mount: bool,
    /// Host name.
    pub uts: bool,
}

/// Whether sockets can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkAccess {
    /// No socket of any family, so that neither a server nor a local daemon (`docker.sock`, the session bus) can be
    /// reached. Pairs of connected sockets are still there, since they lead nowhere else.
    None,
    /// Internet sockets in its own network that has nothing but a loopback: servers and clients of one test run find
    /// only each other. Only [`start`](crate::start) and
    /// [`jailed_command_with_listener`](crate::jailed_command_with_listener) switch the loopback on. Local sockets are as
    /// below.
    Loopback,
    /// Internet sockets. Local sockets follow the file rules: with restricted files they are refused on kernels whose
    /// Landlock cannot check them (before ABI 9).
    Unrestricted,
}

impl Profile {
    /// The worker that runs tool code: it computes and speaks through descriptors it already holds.
    #[must_use]
    pub fn compute_worker() -> Self {
        Self {
            files: FileAccess::None,
            syscalls: SyscallFilter::Compute,
            limits: ResourceLimits {
                // Room for the standard descriptors and the kernel's socket; none for a collection.
                open_files: Some(16),
                processes: Some(0),
                ..ResourceLimits::default()
            },
            // No namespace of process ids: that one is for children, and a worker has none.
            namespaces: NamespaceSet { user: true, network: true, ipc: true, ..NamespaceSet::default() },
            network: NetworkAccess::None,
        }
    }

    /// The process that workers are forked from. They inherit all of this, and lock the rest with a
    /// [`ChildLock`](crate::ChildLock) and the limits of [`Profile::compute_worker`].
    #[must_use]
    pub fn worker_template() -> Self {
        let worker = Self::compute_worker();
        Self {
            syscalls: SyscallFilter::Template,
            limits: ResourceLimits { processes: None, ..worker.limits },
            ..worker
        }
    }

    /// A shell or a test run: system directories to read and run, the project to change, no network.
    ///
    /// The home directory and `/tmp` are not in it. Add what a toolchain needs with [`Profile::allow`], and give the
    /// command a `TMPDIR` inside an allowed path. The environment is the caller's business as well: start from
    /// `env_clear` so that no token leaks in.
    #[must_use]
    pub fn process(project: &Path) -> Self {
        let mut rules = system_rules();
        rules.push(PathRule { path: project.to_path_buf(), access: PathAccess::ReadWrite });
        Self {
            files: FileAccess::Paths(rules),
            syscalls: SyscallFilter::Process,
            limits: ResourceLimits {
                // Enough for a parallel build, small enough that a fork bomb leaves the machine usable.
                processes: Some(4096),
                ..ResourceLimits::default()
            },
            namespaces: NamespaceSet {
                // Root needs no user namespace for the others, and inside one it could not touch files of other
                // owners, such as a project mounted into a container.
                user: !crate::platform::is_root(),
                network: true,
                ipc: true,
                pid: true,
                mount: true,
                uts: true,
            },
            network: NetworkAccess::None,
        }
    }

    /// Adds a path. With [`FileAccess::Unrestricted`] there is nothing to add.
    #[must_use]
    pub fn allow(mut self, path: impl Into<PathBuf>, access: PathAccess) -> Self {
        let rule = PathRule { path: path.into(), access };
        match &mut self.files {
            FileAccess::None => self.files = FileAccess::Paths(vec![rule]),
            FileAccess::Paths(rules) => rules.push(rule),
            FileAccess::Unrestricted => {}
        }
        self
    }
}

/// What ordinary programs read to start at all. Chosen by name rather than as `/etc` and `/dev`, since those also hold
/// keys, password hashes and other people's terminals, and root may read them all.
pub(crate) const SYSTEM_PATHS: &[(&str, PathAccess)] = &[
    ("/usr", PathAccess::ReadExecute),
    ("/bin", PathAccess::ReadExecute),
    ("/sbin", PathAccess::ReadExecute),
    ("/lib", PathAccess::ReadExecute),
    ("/lib32", PathAccess::ReadExecute),
    ("/lib64", PathAccess::ReadExecute),
    ("/libx32", PathAccess::ReadExecute),
    ("/opt", PathAccess::ReadExecute),
    ("/nix/store", PathAccess::ReadExecute),
    ("/run/current-system", PathAccess::ReadExecute),
    ("/etc/alternatives", PathAccess::ReadExecute),
    ("/etc/ld.so.cache", PathAccess::Read),
    ("/etc/ld.so.conf", PathAccess::Read),
    ("/etc/ld.so.conf.d", PathAccess::Read),
    ("/etc/ld.so.preload", PathAccess::Read),
    ("/etc/passwd", PathAccess::Read),
    ("/etc/group", PathAccess::Read),
    ("/etc/nsswitch.conf", PathAccess::Read),
    ("/etc/hosts", PathAccess::Read),
    ("/etc/host.conf", PathAccess::Read),
    ("/etc/resolv.conf", PathAccess::Read),
    ("/etc/gai.conf", PathAccess::Read),
    ("/etc/protocols", PathAccess::Read),
    ("/etc/services", PathAccess::Read),
    ("/etc/localtime", PathAccess::Read),
    ("/etc/timezone", PathAccess::Read),
    ("/etc/os-release", PathAccess::Read),
    ("/etc/lsb-release", PathAccess::Read),
    ("/etc/debian_version", PathAccess::Read),
    ("/etc/locale.alias", PathAccess::Read),
    ("/etc/locale.conf", PathAccess::Read),
    ("/etc/mime.types", PathAccess::Read),
    ("/etc/magic", PathAccess::Read),
    ("/etc/inputrc", PathAccess::Read),
    ("/etc/profile", PathAccess::Read),
    ("/etc/profile.d", PathAccess::Read),
    ("/etc/bash.bashrc", PathAccess::Read),
    ("/etc/terminfo", PathAccess::Read),
    ("/etc/fonts", PathAccess::Read),
    ("/etc/gitconfig", PathAccess::Read),
    ("/etc/ca-certificates", PathAccess::Read),
    ("/etc/ssl/certs", PathAccess::Read),
    ("/etc/ssl/openssl.cnf", PathAccess::Read),
    ("/etc/pki/tls/certs", PathAccess::Read),
    ("/etc/pki/ca-trust/extracted", PathAccess::Read),
    ("/etc/java", PathAccess::Read),
    ("/etc/perl", PathAccess::Read),
    ("/etc/python3", PathAccess::Read),
    ("/proc", PathAccess::Read),
    ("/sys/devices/system/cpu", PathAccess::Read),
    ("/sys/devices/system/node", PathAccess::Read),
    ("/sys/fs/cgroup", PathAccess::Read),
    ("/sys/kernel/mm/transparent_hugepage", PathAccess::Read),
    ("/dev/null", PathAccess::ReadWrite),
    ("/dev/zero", PathAccess::ReadWrite),
    ("/dev/full", PathAccess::ReadWrite),
    ("/dev/random", PathAccess::Read),
    ("/dev/urandom", PathAccess::Read),
];

fn system_rules() -> Vec<PathRule> {
    SYSTEM_PATHS
        .iter()
        .map(|(path, access)| PathRule { path: PathBuf::from(path), access: *access })
        .filter(|rule| rule.path.exists())
        .collect()
}
