//! Attempts to get out, as raw system calls, so that no library is between them and the kernel.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use libc::{c_long, syscall};

/// One attempt. `prepare` runs before the lock, for what the attempt needs; `attempt` reports whether it got
/// through.
pub struct Probe {
    pub name: &'static str,
    /// Whether an unlocked process of any user gets through, which proves that the probe is a probe.
    pub free: bool,
    pub prepare: fn() -> c_long,
    pub attempt: fn(c_long) -> bool,
}

/// An attempt on the process that started the probe.
const fn on_parent(name: &'static str, attempt: fn(c_long) -> bool) -> Probe {
    Probe { name, free: true, prepare: || unsafe { libc::getppid() }.into(), attempt }
}

const fn probe(name: &'static str, free: bool, attempt: fn(c_long) -> bool) -> Probe {
    Probe { name, free, prepare: || 0, attempt }
}

/// Ends the child of a successful fork, and reports to the parent.
fn forked(process: c_long) -> bool {
    if process == 0 {
        crate::harness::exit(0);
    }
    process > 0
}

/// An attempt of a worker on the template that it was forked from.
const fn on_template(name: &'static str, attempt: fn(c_long) -> bool) -> Probe {
    Probe { name, free: false, prepare: || std::process::id().into(), attempt }
}

/// What a worker of a template might try: to reach the template, and to use what only the template may.
#[rustfmt::skip]
pub const ON_TEMPLATE: &[Probe] = &[
    on_template("signal the template", |template| unsafe { syscall(libc::SYS_kill, template, 0) == 0 }),
    on_template("end the template", |template| unsafe { syscall(libc::SYS_kill, template, libc::SIGKILL) == 0 }),
    on_template("abort the template", |template| unsafe { syscall(libc::SYS_tgkill, template, template, libc::SIGABRT) == 0 }),
    on_template("signal the group", |_| unsafe { syscall(libc::SYS_kill, 0, 0) == 0 }),
    on_template("read the template's memory", |template| {
        let mut buffer = [0_u8; 8];
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 8 };
        // Both have the same layout, so the address is good there too.
        unsafe { syscall(libc::SYS_process_vm_readv, template, &raw const local, 1, &raw const local, 1, 0) > 0 }
    }),
    on_template("trace the template", |template| unsafe { syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, template, 0, 0) == 0 }),
    on_template("hold the template", |template| unsafe { syscall(libc::SYS_pidfd_open, template, 0) >= 0 }),
    on_template("read the template's limits", |template| {
        let mut limits = [0_u64; 2];
        unsafe { syscall(libc::SYS_prlimit64, template, libc::RLIMIT_AS, 0, limits.as_mut_ptr()) == 0 }
    }),
    on_template("read the template's clock", |template| {
        let mut time = [0_i64; 2];
        unsafe { syscall(libc::SYS_clock_gettime, (!template << 3) | 2, time.as_mut_ptr()) == 0 }
    }),
    on_template("fork beside", |_| unsafe { forked(syscall(libc::SYS_clone, libc::CLONE_PARENT | libc::SIGCHLD, 0, 0, 0, 0)) }),
    on_template("raise its own limits", |_| {
        let limits = [libc::RLIM_INFINITY; 2];
        unsafe { syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_CPU, limits.as_ptr(), 0) == 0 }
    }),
    on_template("outlive the kernel", |_| unsafe { syscall(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0 }),
    on_template("copy a descriptor", |_| unsafe { syscall(libc::SYS_dup3, 1, 5, 0) >= 0 }),
    on_template("ask for its parent", |_| unsafe { syscall(libc::SYS_getppid) > 0 }),
    on_template("add a filter", |_| unsafe { syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, 0) == 0 || *libc::__errno_location() == libc::EFAULT }),
];

const PASSWD: *const libc::c_char = c"/etc/passwd".as_ptr();

#[rustfmt::skip]
pub const ALL: &[Probe] = &[
    #[cfg(target_arch = "x86_64")]
    probe("open", true, |_| unsafe { syscall(libc::SYS_open, PASSWD, libc::O_RDONLY) >= 0 }),
    #[cfg(target_arch = "x86_64")]
    probe("creat", true, |_| unsafe {
        syscall(libc::SYS_creat, c"/tmp/tgp-jail-created".as_ptr(), 0o600) >= 0 && libc::unlink(c"/tmp/tgp-jail-created".as_ptr()) == 0
    }),
    probe("openat", true, |_| unsafe { syscall(libc::SYS_openat, libc::AT_FDCWD, PASSWD, libc::O_RDONLY) >= 0 }),
    probe("open for reading a directory", true, |_| unsafe { syscall(libc::SYS_openat, libc::AT_FDCWD, c"/".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY) >= 0 }),
    probe("open its own memory", true, |_| unsafe { syscall(libc::SYS_openat, libc::AT_FDCWD, c"/proc/self/mem".as_ptr(), libc::O_RDWR) >= 0 }),
    probe("openat2", true, |_| {
        let how = [0_u64; 3];
        unsafe { syscall(libc::SYS_openat2, libc::AT_FDCWD, PASSWD, how.as_ptr(), size_of_val(&how)) >= 0 }
    }),
    probe("stat", true, |_| {
        let mut buffer = [0_u8; 512];
        unsafe { syscall(libc::SYS_newfstatat, libc::AT_FDCWD, PASSWD, buffer.as_mut_ptr(), 0) == 0 }
    }),
    probe("fstat with a path", true, |_| {
        let mut buffer = [0_u8; 512];
        unsafe { syscall(libc::SYS_newfstatat, 1, PASSWD, buffer.as_mut_ptr(), libc::AT_EMPTY_PATH) == 0 }
    }),
    probe("readlink", true, |_| {
        let mut buffer = [0_u8; 512];
        unsafe { syscall(libc::SYS_readlinkat, libc::AT_FDCWD, c"/proc/self/exe".as_ptr(), buffer.as_mut_ptr(), buffer.len()) > 0 }
    }),
    probe("chdir", true, |_| unsafe { syscall(libc::SYS_chdir, c"/".as_ptr()) == 0 }),
    probe("socket inet", true, |_| unsafe { syscall(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0) >= 0 }),
    probe("socket inet6", false, |_| unsafe { syscall(libc::SYS_socket, libc::AF_INET6, libc::SOCK_DGRAM, 0) >= 0 }),
    probe("socket unix", true, |_| unsafe { syscall(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0) >= 0 }),
    probe("socket netlink", true, |_| unsafe { syscall(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, 0) >= 0 }),
    probe("socketpair", true, |_| {
        let mut pair = [0_i32; 2];
        unsafe { syscall(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()) == 0 }
    }),
    Probe {
        name: "connect an inherited socket",
        free: true,
        prepare: || unsafe {
            let listener = Box::leak(Box::new(std::net::TcpListener::bind("127.0.0.1:0").unwrap()));
            let port = listener.local_addr().unwrap().port();
            c_long::from(port) << 32 | c_long::from(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))
        },
        attempt: |prepared| {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: ((prepared >> 32) as u16).to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
                sin_zero: [0; 8],
            };
            unsafe { syscall(libc::SYS_connect, prepared as i32, &raw const address, size_of_val(&address)) == 0 }
        },
    },
    Probe {
        name: "send to another receiver",
        free: true,
        prepare: || unsafe {
            let receiver = Box::leak(Box::new(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()));
            let port = receiver.local_addr().unwrap().port();
            c_long::from(port) << 32 | c_long::from(libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0))
        },
        attempt: |prepared| {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: ((prepared >> 32) as u16).to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
                sin_zero: [0; 8],
            };
            unsafe {
                syscall(libc::SYS_sendto, prepared as i32, b"x".as_ptr(), 1_usize, 0, &raw const address, size_of_val(&address)) == 1
            }
        },
    },
    probe("execve", true, |_| {
        // It must not return: the shell ends with the code that says so.
        let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), c"exit 71".as_ptr(), null()];
        unsafe { syscall(libc::SYS_execve, c"/bin/sh".as_ptr(), arguments.as_ptr(), null::<c_void>()) == 0 }
    }),
    probe("execveat", true, |_| {
        let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), c"exit 71".as_ptr(), null()];
        unsafe { syscall(libc::SYS_execveat, libc::AT_FDCWD, c"/bin/sh".as_ptr(), arguments.as_ptr(), null::<c_void>(), 0) == 0 }
    }),
    #[cfg(target_arch = "x86_64")]
    probe("fork", true, |_| forked(unsafe { syscall(libc::SYS_fork) })),
    // A vfork from here would return twice on one stack, so what is probed is the call that it makes.
    #[cfg(target_arch = "x86_64")]
    probe("vfork", true, |_| {
        let process: c_long;
        unsafe {
            std::arch::asm!(
                "syscall", "test rax, rax", "jnz 2f",
                // The child: exit(0) at once, touching no memory.
                "mov eax, 60", "xor edi, edi", "syscall", "2:",
                inlateout("rax") libc::SYS_vfork => process, out("rcx") _, out("r11") _, out("rdi") _,
            );
        }
        process > 0
    }),
    probe("clone", true, |_| forked(unsafe { syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })),
    probe("clone3", true, |_| {
        let mut arguments = [0_u64; 11];
        arguments[4] = libc::SIGCHLD as u64;
        forked(unsafe { syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) })
    }),
    probe("ptrace", true, |_| unsafe { syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0) == 0 }),
    on_parent("kill the parent", |parent| unsafe { syscall(libc::SYS_kill, parent, 0) == 0 }),
    on_parent("tgkill the parent", |parent| unsafe { syscall(libc::SYS_tgkill, parent, parent, 0) == 0 }),
    probe("kill itself with another signal", true, |_| unsafe { syscall(libc::SYS_tgkill, libc::getpid(), libc::getpid(), libc::SIGWINCH) == 0 }),
    on_parent("pidfd_open", |parent| unsafe { syscall(libc::SYS_pidfd_open, parent, 0) >= 0 }),
    probe("process_vm_readv", false, |_| {
        let byte = 7_u8;
        let mut copy = 0_u8;
        let local = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: 1 };
        let remote = libc::iovec { iov_base: (&raw const byte).cast_mut().cast(), iov_len: 1 };
        unsafe { syscall(libc::SYS_process_vm_readv, libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) == 1 }
    }),
    probe("map executable memory", true, |_| map(libc::PROT_READ | libc::PROT_EXEC) > 0),
    probe("make memory executable", true, |_| {
        let page = map(libc::PROT_READ | libc::PROT_WRITE);
        page > 0 && unsafe { syscall(libc::SYS_mprotect, page, 4096, libc::PROT_READ | libc::PROT_EXEC) == 0 }
    }),
    probe("pkey_mprotect", true, |_| {
        let page = map(libc::PROT_READ | libc::PROT_WRITE);
        page > 0 && unsafe { syscall(libc::SYS_pkey_mprotect, page, 4096, libc::PROT_READ | libc::PROT_EXEC, -1) == 0 }
    }),
    probe("mount", false, |_| unsafe { syscall(libc::SYS_mount, c"none".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, null::<c_void>()) == 0 }),
    probe("chroot", false, |_| unsafe { syscall(libc::SYS_chroot, c"/tmp".as_ptr()) == 0 }),
    probe("unshare", false, |_| unsafe { syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) == 0 }),
    probe("setns", false, |_| unsafe { syscall(libc::SYS_setns, 1, 0) == 0 }),
    probe("io_uring_setup", false, |_| {
        let mut parameters = [0_u8; 120];
        unsafe { syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) >= 0 }
    }),
    probe("bpf", false, |_| unsafe { syscall(libc::SYS_bpf, 0, null::<c_void>(), 0) >= 0 }),
    probe("perf_event_open", false, |_| unsafe { syscall(libc::SYS_perf_event_open, null::<c_void>(), 0, -1, -1, 0) >= 0 }),
    probe("userfaultfd", false, |_| unsafe { syscall(libc::SYS_userfaultfd, 1) >= 0 }),
    probe("add_key", false, |_| unsafe { syscall(libc::SYS_add_key, c"user".as_ptr(), c"x".as_ptr(), c"y".as_ptr(), 1_usize, -2) >= 0 }),
    probe("memfd_create", true, |_| unsafe { syscall(libc::SYS_memfd_create, c"x".as_ptr(), 0) >= 0 }),
    probe("memfd_secret", false, |_| unsafe { syscall(libc::SYS_memfd_secret, 0) >= 0 }),
    // Whether the machine has huge pages is asked after the filter.
    probe("memfd_create with huge pages", false, |_| unsafe {
        syscall(libc::SYS_memfd_create, c"x".as_ptr(), libc::MFD_HUGETLB) >= 0 || *libc::__errno_location() != libc::EPERM
    }),
    probe("vmsplice", true, |_| {
        let mut pair = [0_i32; 2];
        let byte = 7_u8;
        let piece = libc::iovec { iov_base: (&raw const byte).cast_mut().cast(), iov_len: 1 };
        unsafe { syscall(libc::SYS_pipe2, pair.as_mut_ptr(), 0) == 0 && syscall(libc::SYS_vmsplice, pair[1], &raw const piece, 1, 0) == 1 }
    }),
    probe("unshare the descriptors", true, |_| unsafe {
        syscall(libc::SYS_close_range, libc::c_uint::MAX, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) == 0
    }),
    // The kernel refuses a thread without a shared table of signals with another number.
    probe("a thread with its own descriptors", true, |_| unsafe {
        syscall(libc::SYS_clone, libc::CLONE_THREAD, 0, 0, 0, 0) < 0 && *libc::__errno_location() == libc::EINVAL
    }),
    probe("pipe", true, |_| {
        let mut pair = [0_i32; 2];
        unsafe { syscall(libc::SYS_pipe2, pair.as_mut_ptr(), 0) == 0 }
    }),
    probe("dup", true, |_| unsafe { syscall(libc::SYS_dup, 1) >= 0 }),
    probe("become traceable again", true, |_| unsafe { syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 }),
    probe("another seccomp mode", true, |_| unsafe { syscall(libc::SYS_prctl, libc::PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 }),
    probe("change a limit", true, |_| {
        let limit = [16_u64, 16];
        unsafe { syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, limit.as_ptr(), null::<c_void>()) == 0 }
    }),
    probe("setuid", true, |_| unsafe { syscall(libc::SYS_setuid, libc::getuid()) == 0 }),
    probe("timer_create", true, |_| {
        let mut timer = 0_i32;
        unsafe { syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, null::<c_void>(), &raw mut timer) == 0 }
    }),
    on_parent("CPU clock of the parent", |parent| {
        let mut time = [0_i64; 2];
        unsafe { syscall(libc::SYS_clock_gettime, (!parent << 3) | 2, time.as_mut_ptr()) == 0 }
    }),
    probe("futex with priorities", true, |_| {
        let word = 0_u32;
        unsafe { syscall(libc::SYS_futex, &raw const word, libc::FUTEX_LOCK_PI, 0, null::<c_void>(), null_mut::<c_void>(), 0) == 0 }
    }),
    probe("isatty", false, |_| {
        let mut buffer = [0_u8; 64];
        unsafe { syscall(libc::SYS_ioctl, 0, libc::TCGETS, buffer.as_mut_ptr()) == 0 }
    }),
    #[cfg(target_arch = "x86_64")]
    probe("open in the x32 numbers", false, |_| unsafe { syscall(libc::SYS_open | 0x4000_0000, PASSWD, libc::O_RDONLY) >= 0 }),
    // 32-bit numbers through the old gate: open is 5 there. The path must lie in the low 4 GiB to be read at all.
    #[cfg(target_arch = "x86_64")]
    Probe {
        name: "open through the 32-bit gate",
        free: false,
        prepare: || unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
            let page = libc::mmap(null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            std::ptr::copy_nonoverlapping(PASSWD.cast(), page, 12);
            page as c_long
        },
        attempt: |page| {
            let answer: i32;
            unsafe {
                std::arch::asm!(
                    "push rbx", "mov ebx, {page:e}", "int 0x80", "pop rbx",
                    page = in(reg) page, inlateout("eax") 5 => answer, in("ecx") 0, in("edx") 0,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                );
            }
            answer >= 0
        },
    },
];

fn map(protection: i32) -> c_long {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    unsafe { syscall(libc::SYS_mmap, 0, 4096, protection, flags, -1, 0) }
}
