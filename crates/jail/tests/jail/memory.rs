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
    ("secret files", || print_refusal(unsafe { libc::syscall(libc::SYS_memfd_secret, 0) })),
    ("rules of landlock", || print_refusal(ruleset())),
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
    ("empty pipes", || in_children(6, empty_pipes)),
    ("inherited mappings", || inherited_mappings(2_000, 60)),
    ("filters", || in_threads(300, || filters(7))),
    ("programs", || in_children(5, || run_from_memory(20 << 20))),
    ("cut mappings", || (0..12).for_each(|_| cut_mapping(16 << 20))),
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
const HARMLESS: [&str; 4] = ["secret files", "rules of landlock", "few page tables", "a reservation"];

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
    // What cannot be read is believed beyond the directories in memory.
    order.limits.temporary_bytes = 16 << 20;
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
        is_refused("secret files");
    });
}

#[test]
fn bug_rules_of_landlock_are_not_given_out() {
    for_everybody("memory::bug_rules_of_landlock_are_not_given_out", || {
        is_refused("rules of landlock");
    });
}

fn is_refused(way: &str) {
    let finished = attack(way, 64);
    assert!(finished.stdout.to_text().contains("refused"), "{way}: {}", told(&finished));
    assert_eq!(finished.exit, Exit::Code(0), "{way}: {}", told(&finished));
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

#[cfg(target_arch = "x86_64")]
#[test]
fn bug_the_file_of_a_program_is_memory() {
    let ways = [("programs", 64)];
    ends_with_memory_full("memory::bug_the_file_of_a_program_is_memory", &ways);
}

#[test]
fn bug_a_page_keeps_the_whole_of_its_file() {
    let ways = [("cut mappings", 48)];
    ends_with_memory_full("memory::bug_a_page_keeps_the_whole_of_its_file", &ways);
}

#[test]
fn bug_a_pipe_that_was_read_has_memory() {
    let ways = [("empty pipes", 64)];
    ends_with_memory_full("memory::bug_a_pipe_that_was_read_has_memory", &ways);
}

#[test]
fn bug_an_inherited_mapping_costs_more() {
    let ways = [("inherited mappings", 128)];
    ends_with_memory_full("memory::bug_an_inherited_mapping_costs_more", &ways);
}

#[test]
fn bug_filters_of_system_calls_are_memory() {
    let ways = [("filters", 64)];
    ends_with_memory_full("memory::bug_filters_of_system_calls_are_memory", &ways);
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

fn print_refusal(descriptor: libc::c_long) {
    println!("{}", if descriptor < 0 { "refused" } else { "given" });
}

/// A set of rules about ports, of which it could keep 65,536.
fn ruleset() -> libc::c_long {
    let (files, ports) = (0_u64, 3_u64);
    let attribute = [files, ports];
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attribute.as_ptr(), 16, 0) }
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

/// Runs the body in so many threads, which then stay.
fn in_threads(count: usize, body: fn()) {
    for _ in 0..count {
        let stay = move || {
            body();
            std::thread::sleep(Duration::from_secs(60));
        };
        std::thread::Builder::new().stack_size(64 * 1024).spawn(stay).unwrap();
    }
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

/// The system keeps the two pages that were read for the next writer.
fn empty_pipes() {
    let mut pages = [7_u8; 8192];
    loop {
        let mut pair = [0; 2];
        if unsafe { libc::pipe(pair.as_mut_ptr()) } < 0 {
            return;
        }
        let written = unsafe { libc::write(pair[1], pages.as_ptr().cast(), pages.len()) };
        let read = unsafe { libc::read(pair[0], pages.as_mut_ptr().cast(), pages.len()) };
        assert_eq!((written, read), (8192, 8192));
        unsafe { libc::close(pair[1]) };
    }
}

/// Each process is the child of the one before, and each of its mappings is in a list of every ancestor.
fn inherited_mappings(count: usize, depth: usize) {
    let bytes = count * 4096;
    let place = map(bytes, libc::PROT_READ | libc::PROT_WRITE).cast::<u8>();
    for page in 0..count {
        let page = unsafe { place.add(page * 4096) };
        unsafe { page.write_volatile(1) };
    }
    for page in (0..count).step_by(2) {
        let failed = unsafe { libc::mprotect(place.add(page * 4096).cast(), 4096, libc::PROT_READ) };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    }
    unsafe { libc::madvise(place.cast(), bytes, libc::MADV_DONTNEED) };
    let (mut ready, deepest) = UnixStream::pair().unwrap();
    for generation in 0..depth {
        match unsafe { libc::fork() } {
            0 => {}
            _ if generation == 0 => return std::io::Read::read_exact(&mut ready, &mut [0]).unwrap(),
            _ => std::thread::sleep(Duration::from_secs(60)),
        }
    }
    (&deepest).write_all(b"x").unwrap();
    std::thread::sleep(Duration::from_secs(60));
    crate::harness::exit(0);
}

/// Filters of the largest size, which allow everything.
fn filters(count: usize) {
    let step = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0); 4090];
    steps.push(step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    for _ in 0..count {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let failed = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
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

/// A program that begins by letting go of itself: it copies the end of its code into empty memory, goes on there, and unmaps
/// its file.
const PROGRAM: [u8; 52] = [
    0x48, 0x8d, 0x35, 19, 0, 0, 0, // lea rsi, [rip + 19]
    0xbf, 0, 0, 0x50, 0, // mov edi, 0x500000
    0xb9, 26, 0, 0, 0, // mov ecx, 26
    0xf3, 0xa4, // rep movsb
    0xb8, 0, 0, 0x50, 0, // mov eax, 0x500000
    0xff, 0xe0, // jmp rax
    0xbf, 0, 0, 0x40, 0, // mov edi, 0x400000
    0xbe, 0, 0x10, 0, 0, // mov esi, 0x1000
    0xb8, 11, 0, 0, 0, // mov eax, munmap
    0x0f, 0x05, // syscall
    0xb8, 34, 0, 0, 0, // mov eax, pause
    0x0f, 0x05, // syscall
    0xeb, 0xf7, // jmp to the pause
];

/// A file of one page of code, and empty memory that can be executed.
fn program() -> Vec<u8> {
    const HEADER: usize = 64 + 2 * 56;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2_u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    file.extend(1_u32.to_le_bytes());
    file.extend([0x40_0000 + HEADER as u64, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(0_u32.to_le_bytes());
    file.extend([64_u16, 56, 2, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    for (rights, place, bytes) in [(5_u32, 0x40_0000_u64, 4096_u64), (7, 0x50_0000, 0)] {
        file.extend([1, rights].iter().flat_map(|half| half.to_le_bytes()));
        let words = [0, place, place, bytes, 4096, 4096];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    file.extend(PROGRAM);
    file
}

/// The process becomes a program that holds its large file by nothing else than running it.
fn run_from_memory(bytes: usize) {
    if unsafe { libc::fork() } != 0 {
        return std::thread::sleep(Duration::from_millis(200));
    }
    let descriptor = unsafe { libc::memfd_create(c"program".as_ptr(), libc::MFD_CLOEXEC) };
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    file.write_all(&program()).unwrap();
    file.write_all(&vec![7; bytes]).unwrap();
    let (arguments, none) = ([c"program".as_ptr(), std::ptr::null()], [std::ptr::null()]);
    let path = std::ffi::CString::new(format!("/proc/self/fd/{descriptor}")).unwrap();
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), none.as_ptr()) };
    panic!("{}", std::io::Error::last_os_error());
}

/// Writes to shared memory and leaves one page of it mapped: the others stay as long.
fn cut_mapping(bytes: usize) {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
    assert_ne!(place, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    unsafe {
        place.cast::<u8>().write_bytes(7, bytes);
        libc::munmap(place.byte_add(4096), bytes - 4096);
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
