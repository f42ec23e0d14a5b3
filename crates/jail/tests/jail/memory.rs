//! Memory that a tree holds where no page of a process shows it: the tree ends with `memory_full` all the same. Each way is
//! a function of this binary that runs in the jail.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tgp_jail::{CommandExit, Exit, NetworkAccess, Template};

use crate::harness::EXECUTABLE;
use crate::workshop::{Workshop, for_everybody, run, told};

const WAY: &str = "TGP_JAIL_MEMORY";

/// One more page table for each.
const STRIDE: usize = 2 << 20;

/// What an attacker does, and the name by which it is asked for. Each returns when it holds what it wants.
const WAYS: &[(&str, fn())] = &[
    ("secret files", secret_files),
    ("page tables", || page_tables(100 << 20)),
    ("few page tables", || page_tables(16 << 20)),
    ("page tables of many", || in_children(10, || page_tables(10 << 20))),
    ("threads without the first", || in_children(4, hold_without_the_first_thread)),
    ("threads", || in_children(5, threads)),
    ("mappings", || in_children(6, mappings)),
    ("descriptors", || in_children(20, descriptors)),
    ("pipes", || in_children(3, pipes)),
    ("sockets", sockets),
    ("messages", messages),
    ("semaphores", semaphores),
    ("a reservation", reservation),
    ("a part in each", || {
        in_children(6, || {
            page_tables(6 << 20);
            mappings();
            descriptors();
        });
    }),
];

/// Ways that end by themselves.
const HARMLESS: [&str; 3] = ["secret files", "few page tables", "a reservation"];

/// Does nothing in an ordinary run.
#[test]
fn attack_child() {
    let Ok(wanted) = std::env::var(WAY) else { return };
    let (_, act) = WAYS.iter().find(|(name, _)| *name == wanted).expect("no such way");
    act();
    println!("held");
    std::io::stdout().flush().unwrap();
    // Some looks of the watch, or until one of them ends the tree.
    let looks = if HARMLESS.contains(&wanted.as_str()) { 15 } else { 300 };
    std::thread::sleep(Duration::from_millis(looks * 100));
}

/// One way in a tree with so many megabytes.
fn attack(way: &str, megabytes: u64) -> CommandExit {
    let shop = Workshop::new();
    let mut order = Template::Shell.order(&*EXECUTABLE, shop.project(), shop.scratch());
    order.arguments = ["--exact", "memory::attack_child", "--nocapture", "--quiet"].map(Into::into).to_vec();
    order.readable = vec![EXECUTABLE.parent().unwrap().to_owned()];
    order.environment = vec![(WAY.into(), way.into())];
    order.network = NetworkAccess::None;
    order.limits.memory_bytes = megabytes << 20;
    order.limits.processes = 2500;
    run(&order)
}

fn ends_with_memory_full(test: &str, ways: &[(&str, u64)]) {
    for_everybody(test, || {
        for (way, megabytes) in ways {
            let finished = attack(way, *megabytes);
            assert_eq!(finished.exit, Exit::MemoryFull, "{way}: {}", told(&finished));
        }
    });
}

#[test]
fn bug_secret_memory_is_not_given_out() {
    for_everybody("memory::bug_secret_memory_is_not_given_out", || {
        let finished = attack("secret files", 64);
        assert!(finished.stdout.to_text().contains("refused"), "{}", told(&finished));
        assert_eq!(finished.exit, Exit::Code(0), "{}", told(&finished));
    });
}

#[test]
fn bug_page_tables_are_memory() {
    let ways = [("page tables", 64), ("page tables of many", 64)];
    ends_with_memory_full("memory::bug_page_tables_are_memory", &ways);
}

#[test]
fn bug_a_process_without_its_first_thread_has_memory() {
    let ways = [("threads without the first", 64)];
    ends_with_memory_full("memory::bug_a_process_without_its_first_thread_has_memory", &ways);
}

#[test]
fn what_the_system_keeps_for_a_tree_is_memory() {
    let ways = [("threads", 64), ("mappings", 64), ("descriptors", 64), ("a part in each", 64)];
    ends_with_memory_full("memory::what_the_system_keeps_for_a_tree_is_memory", &ways);
}

#[test]
fn messages_and_semaphores_are_memory() {
    let ways = [("messages", 64), ("semaphores", 64)];
    ends_with_memory_full("memory::messages_and_semaphores_are_memory", &ways);
}

/// How full they are is seen by the machine alone, so the limit is far below what is held.
#[test]
fn pipes_and_sockets_are_memory() {
    let ways = [("pipes", 24), ("sockets", 64)];
    ends_with_memory_full("memory::pipes_and_sockets_are_memory", &ways);
}

#[test]
fn address_space_is_not_memory() {
    for_everybody("memory::address_space_is_not_memory", || {
        for way in ["a reservation", "few page tables"] {
            let finished = attack(way, 64);
            assert_eq!(finished.exit, Exit::Code(0), "{way}: {}", told(&finished));
            assert!(finished.stdout.to_text().contains("held"), "{way}: {}", told(&finished));
        }
        let shop = Workshop::new();
        if !std::path::Path::new("/usr/bin/node").exists() {
            println!("skipped: no /usr/bin/node");
            return;
        }
        let finished =
            shop.run("node -e 'console.log(new WebAssembly.Memory({initial: 1}).buffer.byteLength)'");
        assert_eq!(finished.stdout.to_text(), "65536\n", "{}", told(&finished));
    });
}

fn secret_files() {
    let descriptor = unsafe { libc::syscall(libc::SYS_memfd_secret, 0) };
    println!("{}", if descriptor < 0 { "refused" } else { "given" });
}

fn map(bytes: usize, protection: i32) -> *mut libc::c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(place, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    place
}

/// Reads one byte of each table's part: the page of zeros backs it, and belongs to no process.
fn page_tables(bytes: usize) {
    let tables = bytes / 4096;
    let place = map(tables * STRIDE, libc::PROT_READ).cast::<u8>();
    unsafe { libc::madvise(place.cast(), tables * STRIDE, libc::MADV_NOHUGEPAGE) };
    for table in 0..tables {
        let byte = unsafe { std::ptr::read_volatile(place.add(table * STRIDE)) };
        assert_eq!(byte, 0);
    }
}

/// Runs the body in so many children, which then stay until the tree ends.
fn in_children(count: usize, body: impl Fn()) {
    let (ready, child_ready) = UnixStream::pair().unwrap();
    for _ in 0..count {
        if unsafe { libc::fork() } == 0 {
            body();
            (&child_ready).write_all(b"x").unwrap();
            std::thread::sleep(Duration::from_secs(60));
            crate::harness::exit(0);
        }
    }
    drop(child_ready);
    for _ in 0..count {
        std::io::Read::read_exact(&mut (&ready), &mut [0]).unwrap();
    }
}

/// The thread that the process began with ends, and another one has the memory.
fn hold_without_the_first_thread() {
    let (mut ready, other) = UnixStream::pair().unwrap();
    match unsafe { libc::fork() } {
        0 => {
            std::thread::spawn(move || {
                let room = vec![1_u8; 30 << 20];
                (&other).write_all(b"x").unwrap();
                std::thread::sleep(Duration::from_secs(60));
                drop(room);
            });
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        child => assert!(child > 0),
    }
    std::io::Read::read_exact(&mut ready, &mut [0]).unwrap();
}

fn threads() {
    for _ in 0..450 {
        let sleeper = || std::thread::sleep(Duration::from_secs(60));
        if std::thread::Builder::new().stack_size(16 * 1024).spawn(sleeper).is_err() {
            break;
        }
    }
}

/// Neighbours with other rights cannot be one mapping.
fn mappings() {
    let pages = 60_000;
    let place = map(pages * 4096, libc::PROT_NONE).cast::<u8>();
    for page in (0..pages).step_by(2) {
        let failed = unsafe { libc::mprotect(place.add(page * 4096).cast(), 4096, libc::PROT_READ) };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    }
}

fn descriptors() {
    while unsafe { libc::eventfd(0, 0) } >= 0 {}
}

fn fill(descriptor: i32) {
    unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
    let piece = [7_u8; 4096];
    while unsafe { libc::write(descriptor, piece.as_ptr().cast(), piece.len()) } > 0 {}
}

fn pipes() {
    loop {
        let mut pair = [0; 2];
        if unsafe { libc::pipe(pair.as_mut_ptr()) } < 0 {
            return;
        }
        fill(pair[1]);
    }
}

fn sockets() {
    let mut kept = Vec::new();
    for _ in 0..400 {
        let mut pair = [0; 2];
        let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()) };
        assert_eq!(made, 0);
        for end in pair.map(|end| unsafe { OwnedFd::from_raw_fd(end) }) {
            fill(end.as_raw_fd());
            kept.push(end);
        }
    }
    std::mem::forget(kept);
}

fn messages() {
    #[repr(C)]
    struct Message {
        kind: libc::c_long,
        text: [u8; 1],
    }
    let message = Message { kind: 1, text: [1] };
    for _ in 0..100 {
        let queue = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
        assert!(queue >= 0, "{}", std::io::Error::last_os_error());
        while unsafe { libc::msgsnd(queue, (&raw const message).cast(), 1, libc::IPC_NOWAIT) } == 0 {}
    }
}

fn semaphores() {
    for _ in 0..60 {
        let set = unsafe { libc::semget(libc::IPC_PRIVATE, 32_000, 0o600) };
        assert!(set >= 0, "{}", std::io::Error::last_os_error());
    }
}

/// As engines reserve it, and never touch it.
fn reservation() {
    map(1 << 40, libc::PROT_NONE);
}
