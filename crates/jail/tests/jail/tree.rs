//! The tree of processes: it ends as a whole, at its limits, at its deadline, on request, and with its
//! kernel.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tgp_jail::{CommandExit, CommandSpec, Exit, NetworkAccess, Template, start};

use crate::harness::EXECUTABLE;
use crate::workshop::{Workshop, for_everybody, run, told};

/// Longer than any of these tests takes, and shorter than what a test that fails would.
const LONG: Duration = Duration::from_secs(60);

/// Processes of the whole machine whose command line has this word. Those of other users show theirs as well.
fn living(mark: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
        .count()
}

/// A word that no other test has, to find processes by: `sleep` takes it as a part of its duration.
fn mark() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("300.{}{}", std::process::id(), now.as_nanos())
}

#[test]
fn it_ends_as_the_program_does() {
    for_everybody("tree::it_ends_as_the_program_does", || {
        let shop = Workshop::new();
        let exit = |script| shop.run(script).exit;
        assert_eq!(exit("exit 0"), Exit::Code(0));
        assert_eq!(exit("exit 77"), Exit::Code(77));
        assert_eq!(exit("kill -TERM $$"), Exit::Signal(libc::SIGTERM));
        assert_eq!(exit("kill -KILL $$"), Exit::Signal(libc::SIGKILL));
        assert_eq!(exit("kill -SEGV $$"), Exit::Signal(libc::SIGSEGV));
    });
}

#[test]
fn output_of_any_length_is_kept_in_bounds() {
    for_everybody("tree::output_of_any_length_is_kept_in_bounds", || {
        let shop = Workshop::new();
        let mut order = shop.order("echo first; yes | head -c 100000000; echo last; echo wrong >&2");
        order.output_bytes = 1000;
        let finished = run(&order);
        assert_eq!(finished.exit, Exit::Code(0));
        let out = &finished.stdout;
        assert_eq!((out.head.len(), out.tail.len(), out.total_bytes), (500, 500, 100_000_011));
        assert!(out.head.starts_with(b"first\ny\n") && out.tail.ends_with(b"y\nlast\n"));
        assert_eq!(out.omitted_bytes(), 99_999_011);
        assert!(out.to_text().contains("99999011 bytes left out"));
        assert_eq!(finished.stderr.to_text(), "wrong\n");
        // Both at once, more than a pipe holds, and in pieces that fall on the border between head and tail.
        let script = "i=0; while [ $i -lt 3000 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done";
        for bytes in [0, 1, 7, 20_000, 1 << 20] {
            let mut order = shop.order(script);
            order.output_bytes = bytes;
            let finished = run(&order);
            let whole: String = (0..3000).map(|number| format!("out{number}\n")).collect();
            let (out, half) = (&finished.stdout, bytes / 2);
            assert_eq!(out.total_bytes, whole.len() as u64);
            assert_eq!(finished.stderr.total_bytes, whole.len() as u64);
            if bytes < whole.len() {
                assert_eq!(out.head, &whole.as_bytes()[..bytes - half]);
                assert_eq!(out.tail, &whole.as_bytes()[whole.len() - half..]);
            } else {
                assert_eq!(out.to_text(), whole);
            }
        }
    });
}

/// Children that ignore signals, leave the session, lose their parent, and hold the output open.
const STUBBORN: &str = "trap '' TERM HUP INT
    (trap '' TERM HUP; setsid sh -c \"(trap '' TERM; sleep MARK) & sleep MARK\" &)
    perl -e 'exit if fork; setpgrp; exit if fork; exec \"sleep\", \"MARK\"' &
    sleep MARK & ";

fn check_stubborn(ending: &str, expected: Exit, order: impl Fn(&Workshop, String) -> CommandSpec) {
    let (shop, mark) = (Workshop::new(), mark());
    let order = order(&shop, STUBBORN.replace("MARK", &mark) + &ending.replace("MARK", &mark));
    let begun = Instant::now();
    let process = start(&order).unwrap();
    let killer = process.killer();
    let thread = (expected == Exit::Killed).then(|| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            killer.clone().kill();
            killer.kill();
        })
    });
    let finished = process.wait().unwrap();
    assert_eq!(finished.exit, expected, "{}", told(&finished));
    assert!(begun.elapsed() < LONG);
    assert_eq!(living(&mark), 0, "somebody is left");
    if let Some(thread) = thread {
        thread.join().unwrap();
    }
}

/// Messages that were unread when the tree ended hid how it ended.
#[test]
fn bug_a_process_that_is_killed_often_is_killed_all_the_same() {
    for_everybody("tree::bug_a_process_that_is_killed_often_is_killed_all_the_same", || {
        for _ in 0..10 {
            let shop = Workshop::new();
            let process = start(&shop.order("sleep 60")).unwrap();
            let killer = process.killer();
            (0..20).for_each(|_| killer.kill());
            assert_eq!(process.wait().unwrap().exit, Exit::Killed);
        }
    });
}

#[test]
fn nobody_outlives_the_deadline_the_killer_or_the_program() {
    for_everybody("tree::nobody_outlives_the_deadline_the_killer_or_the_program", || {
        let plain = |shop: &Workshop, script: String| shop.order(&script);
        let short = |shop: &Workshop, script: String| {
            let mut order = shop.order(&script);
            order.deadline = Duration::from_millis(300);
            order
        };
        check_stubborn("sleep MARK", Exit::Deadline, short);
        check_stubborn("while :; do :; done", Exit::Deadline, short);
        check_stubborn("kill -STOP $$", Exit::Deadline, short);
        check_stubborn("sleep MARK", Exit::Killed, plain);
        check_stubborn("exit 5", Exit::Code(5), plain);
    });
}

#[test]
fn dropping_a_process_ends_it_and_removes_its_layer() {
    for_everybody("tree::dropping_a_process_ends_it_and_removes_its_layer", || {
        let (shop, mark) = (Workshop::new(), mark());
        let process = start(&shop.order(&format!("setsid sleep {mark} & echo x > x; sleep {mark}"))).unwrap();
        let killer = process.killer();
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 2);
        drop(process);
        assert_eq!(living(&mark), 0);
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0);
        killer.kill();
    });
}

/// Environment of the test below, when it plays the kernel that is killed.
const DOOMED: &str = "TGP_JAIL_DOOMED";

#[test]
fn a_killed_kernel_takes_its_processes_along() {
    if let Ok(request) = std::env::var(DOOMED) {
        let (folder, mark) = request.split_once(' ').unwrap();
        let project = format!("{folder}/project");
        let mut order = Template::Shell.order("/bin/sh", project, format!("{folder}/scratch"));
        order.arguments = vec!["-c".into(), format!("setsid sleep {mark} & sleep {mark}").into()];
        let _process = start(&order).unwrap();
        println!("\nstarted");
        std::thread::sleep(LONG);
        return;
    }
    for_everybody("tree::a_killed_kernel_takes_its_processes_along", || {
        let (shop, mark) = (Workshop::new(), mark());
        let folder = shop.project().parent().unwrap().to_owned();
        let mut kernel = Command::new(&*EXECUTABLE)
            .args(["--exact", "tree::a_killed_kernel_takes_its_processes_along", "--nocapture"])
            .env(DOOMED, format!("{} {mark}", folder.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(kernel.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "started"));
        let begun = Instant::now();
        while living(&mark) < 2 {
            assert!(begun.elapsed() < LONG, "the processes do not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        kernel.kill().unwrap();
        kernel.wait().unwrap();
        let begun = Instant::now();
        while living(&mark) > 0 {
            assert!(begun.elapsed() < LONG, "the processes outlive their kernel");
            std::thread::sleep(Duration::from_millis(10));
        }
        // And the next kernel removes what it has left.
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 2);
        drop(shop.run("true"));
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0);
    });
}

fn limited(script: &str, change: impl Fn(&mut CommandSpec)) -> (Workshop, CommandExit) {
    let shop = Workshop::new();
    let mut order = shop.order(script);
    change(&mut order);
    let finished = run(&order);
    (shop, finished)
}

#[test]
fn a_fork_bomb_is_bounded() {
    for_everybody("tree::a_fork_bomb_is_bounded", || {
        let (_shop, finished) = limited("b() { b | b & b; }; b", |order| {
            order.limits.processes = 100;
            order.deadline = Duration::from_secs(5);
        });
        // Root is ended by the watch; for others the system refuses to fork, and the shell gives up or keeps trying.
        assert_ne!(finished.exit, Exit::Code(0), "{}", told(&finished));
        let (_shop, finished) =
            limited("i=0; while [ $i -lt 60 ]; do sleep 0.3 & i=$((i+1)); done; wait; echo done", |order| {
                order.limits.processes = 100
            });
        assert_eq!(finished.stdout.to_text(), "done\n", "{}", told(&finished));
    });
}

#[test]
fn memory_is_bounded_for_one_and_for_all() {
    for_everybody("tree::memory_is_bounded_for_one_and_for_all", || {
        let hog = "perl -e '$x = \"a\" x (300 * 1024 * 1024); print \"got it\\n\"; sleep 30'";
        let (_shop, finished) = limited(hog, |order| order.limits.memory_bytes = 200 << 20);
        assert!(!told(&finished).contains("got it"), "{}", told(&finished));
        assert_ne!(finished.exit, Exit::Code(0));
        // None of them is too large, but all together are.
        let hogs = "for n in 1 2 3 4; do perl -e '$x = \"a\" x (60 * 1024 * 1024); sleep 30' & done; wait; echo done";
        let (_shop, finished) = limited(hogs, |order| order.limits.memory_bytes = 200 << 20);
        assert_eq!(finished.exit, Exit::MemoryFull, "{}", told(&finished));
        // Memory that all of them share counts once.
        let family = "perl -e '$x = \"a\" x (60 * 1024 * 1024); for (1..4) { if (!fork) { select undef, undef, undef, 0.5; exit } } \
                      1 while wait != -1; print \"done\\n\"'";
        let (_shop, finished) = limited(family, |order| order.limits.memory_bytes = 200 << 20);
        assert_eq!(finished.stdout.to_text(), "done\n", "{}", told(&finished));
        // Memory in /tmp has its own bound.
        let (_shop, finished) =
            limited("head -c 3000000 /dev/zero > /tmp/x; echo $?; stat -c %s /tmp/x", |order| {
                order.limits.temporary_bytes = 1 << 20;
            });
        assert_eq!(finished.stdout.to_text(), "1\n1048576\n", "{}", told(&finished));
    });
}

/// Files in memory and segments that no process maps are memory all the same. Some programs, each with its own way.
#[test]
fn memory_that_nobody_maps_is_bounded() {
    for_everybody("tree::memory_that_nobody_maps_is_bounded", || {
        // memfd_create(2) has the number 319; 40 files of 8 MB each, written and never mapped.
        let files = "perl -e '$x = \"a\" x (8 << 20); for (1..40) { my $n = \"m\"; my $f = syscall(319, $n, 0); \
                     open(my $h, \">&=\", $f) or die; syswrite($h, $x); push @h, $h } print \"got it\\n\"; sleep 30'";
        let (_shop, finished) = limited(files, |order| order.limits.memory_bytes = 200 << 20);
        assert_eq!(finished.exit, Exit::MemoryFull, "{}", told(&finished));
        // Segments that are filled, detached and left: perl attaches one for each write.
        let segments = "perl -e '$x = \"a\" x (8 << 20); for (1..40) { my $s = shmget(0, 8 << 20, 0600) // die $!; \
                        shmwrite($s, $x, 0, 8 << 20) or die $! } print \"got it\\n\"; sleep 30'";
        let (_shop, finished) = limited(segments, |order| order.limits.memory_bytes = 200 << 20);
        assert_eq!(finished.exit, Exit::MemoryFull, "{}", told(&finished));
        // The one who made them has ended, and they are still there.
        let left = "perl -e '$x = \"a\" x (8 << 20); for (1..40) { my $s = shmget(0, 8 << 20, 0600); shmwrite($s, $x, 0, 8 << 20) }'; sleep 30";
        let (_shop, finished) = limited(left, |order| order.limits.memory_bytes = 200 << 20);
        assert_eq!(finished.exit, Exit::MemoryFull, "{}", told(&finished));
        // What is mapped and open, and what several have open, counts once.
        let once = "perl -e '$x = \"a\" x (8 << 20); for (1..10) { my $n = \"m\"; my $f = syscall(319, $n, 0); \
                    open(my $h, \">&=\", $f) or die; syswrite($h, $x); push @h, $h } \
                    for (1..4) { if (!fork) { select undef, undef, undef, 0.6; exit } } 1 while wait != -1; print \"done\\n\"'";
        let (_shop, finished) = limited(once, |order| order.limits.memory_bytes = 200 << 20);
        assert_eq!(finished.stdout.to_text(), "done\n", "{}", told(&finished));
    });
}

#[test]
fn credentials_in_what_is_readable_are_hidden() {
    for_everybody("tree::credentials_in_what_is_readable_are_hidden", || {
        let shop = Workshop::new();
        let home = shop.outside();
        for (name, content) in [
            (".cargo/config.toml", "token=canary"),
            (".cargo/bin/tool", "echo tool"),
            (".ssh/id", "canary"),
            ("dotfiles/npmrc", "canary"),
        ] {
            fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            fs::write(home.join(name), content).unwrap();
        }
        std::os::unix::fs::symlink("dotfiles/npmrc", home.join(".npmrc")).unwrap();
        let mut order = shop.order(&format!(
            "cd {}; cat .cargo/config.toml .npmrc dotfiles/npmrc; ls -A .ssh; sh .cargo/bin/tool; cat .cargo/bin/tool >/dev/null && echo seen",
            home.display()
        ));
        order.readable = vec![home.clone()];
        order.secrets =
            [".cargo/config.toml", ".ssh", ".npmrc", "missing"].map(|name| home.join(name)).to_vec();
        let finished = run(&order);
        assert_eq!(finished.stdout.to_text(), "tool\nseen\n", "{}", told(&finished));
        assert!(!told(&finished).contains("canary"));
    });
}

#[test]
fn the_caller_and_the_kernel_tell_nothing_of_themselves() {
    for_everybody("tree::the_caller_and_the_kernel_tell_nothing_of_themselves", || {
        let shop = Workshop::new();
        let finished = run(&shop.order(
            "tr -d '\\0' < /proc/1/cmdline; for page in kallsyms kcore kpageflags slabinfo timer_list modules; do \
             if [ -e /proc/$page ]; then head -c 100 /proc/$page; fi; done; echo done",
        ));
        assert_eq!(finished.stdout.to_text(), "done\n", "{}", told(&finished));
    });
}

#[test]
fn the_layer_and_its_files_are_bounded() {
    for_everybody("tree::the_layer_and_its_files_are_bounded", || {
        let many = "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done";
        let (shop, finished) = limited(many, |order| order.limits.layer_bytes = 20 << 20);
        assert_eq!(finished.exit, Exit::LayerFull, "{}", told(&finished));
        assert_eq!(fs::read_dir(shop.project()).unwrap().count(), 0);
        // Faster than any look.
        let (_shop, finished) = limited("head -c 30000000 /dev/zero > big", |order| {
            order.limits.layer_bytes = 20 << 20;
        });
        assert_eq!(finished.exit, Exit::LayerFull, "{}", told(&finished));
        // Holes take no room on the disk, and all of their length in whatever reads the layer.
        let (_shop, finished) =
            limited("truncate -s 400M holes", |order| order.limits.layer_bytes = 20 << 20);
        assert_eq!(finished.exit, Exit::LayerFull, "{}", told(&finished));
        let (_shop, finished) = limited("truncate -s 19M holes", |order| order.limits.layer_bytes = 20 << 20);
        assert_eq!(finished.exit, Exit::Code(0));
        assert_eq!(finished.layer.changes(1).unwrap().len(), 1);
        let (_shop, finished) =
            limited("exec head -c 3000 /dev/zero > big", |order| order.limits.file_bytes = 1000);
        assert_eq!(finished.exit, Exit::Signal(libc::SIGXFSZ), "{}", told(&finished));
        let (_shop, finished) = limited("while :; do :; done", |order| order.limits.cpu_seconds = 1);
        assert_eq!(finished.exit, Exit::Signal(libc::SIGKILL), "{}", told(&finished));
        let (_shop, finished) = limited("ulimit -n; ulimit -c; cat /proc/self/oom_score_adj", |order| {
            order.limits.open_files = 77;
        });
        assert_eq!(finished.stdout.to_text(), "77\n0\n900\n");
    });
}

/// With the loopback a test run finds its own server; no run reaches anything outside.
#[test]
fn the_network_is_what_was_granted() {
    const TALK: &str = "perl -MIO::Socket::INET -e '
        $s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die \"no server: $!\";
        if (!fork) { $c = IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport) or die; print $c \"hi\"; exit }
        print $s->accept->getline, \"\\n\"'";
    for_everybody("tree::the_network_is_what_was_granted", || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let reach = format!(
            "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"127.0.0.1:{port}\") or die; print \"reached\\n\"'"
        );
        let say = |script: &str, network| limited(script, |order| order.network = network).1.stdout.to_text();
        assert_eq!(say(TALK, NetworkAccess::None), "");
        assert_eq!(say(TALK, NetworkAccess::Loopback), "hi\n");
        assert_eq!(say(TALK, NetworkAccess::Unrestricted), "hi\n");
        assert_eq!(say(&reach, NetworkAccess::None), "");
        assert_eq!(say(&reach, NetworkAccess::Loopback), "");
        assert_eq!(say(&reach, NetworkAccess::Unrestricted), "reached\n");
        // Local sockets lead to daemons: neither by name nor, with the network, by path.
        let shop = Workshop::new();
        let path = shop.outside().join("daemon.sock");
        let _daemon = UnixListener::bind(&path).unwrap();
        let connect = format!(
            "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"{}\") or die; print \"reached\\n\"'",
            path.display()
        );
        for network in [NetworkAccess::None, NetworkAccess::Loopback, NetworkAccess::Unrestricted] {
            let mut order = shop.order(&connect);
            order.network = network;
            order.readable = vec![shop.outside()];
            assert_eq!(run(&order).stdout.to_text(), "");
        }
    });
}

/// Many at a time, as a kernel with several agents has them.
#[test]
fn processes_run_side_by_side() {
    for_everybody("tree::processes_run_side_by_side", || {
        let shop = Workshop::new();
        shop.file("shared", "0");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let shop = &shop;
                scope.spawn(move || {
                    for round in 0..4 {
                        let changes = shop.changes(&format!("echo {number}.{round} > shared; cat shared"));
                        assert_eq!(changes, [format!("write shared = {number}.{round}\\n (was File)")]);
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(shop.project().join("shared")).unwrap(), "0");
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0);
    });
}

/// Compilers, linkers and interpreters find what they need.
#[test]
fn real_toolchains_work() {
    for_everybody("tree::real_toolchains_work", || {
        let shop = Workshop::new();
        shop.file(
            "Cargo.toml",
            "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        );
        shop.file("src/lib.rs", "#[test]\nfn adds() { assert_eq!(1 + 1, 2); }\n");
        shop.file(
            "t.test.mjs",
            "import test from 'node:test';\ntest('adds', () => { if (1 + 1 !== 2) throw 0 });\n",
        );
        shop.file("t.py", "import unittest, subprocess, tempfile, multiprocessing\nclass T(unittest.TestCase):\n    def test_it(self):\n        tempfile.mkdtemp(); multiprocessing.Lock()\n        self.assertEqual(subprocess.check_output(['echo', 'x']), b'x\\n')\nunittest.main()\n");
        fs::create_dir(shop.project().join("target")).unwrap();
        // Cargo passes its path to the tests; an ordinary user may not be able to reach it.
        let cargo = std::env::var_os("CARGO").map(std::path::PathBuf::from).filter(|path| path.is_file());
        let bin = cargo.as_deref().and_then(|path| path.parent()).map(std::path::Path::to_owned);
        let run = |program: &str, arguments: &[&str]| {
            let mut order = Template::Test.order(program, shop.project(), shop.scratch());
            order.arguments = arguments.iter().map(Into::into).collect();
            order.direct = vec!["target".into()];
            let mut path = "/usr/local/bin:/usr/bin:/bin".to_owned();
            if let Some(bin) = &bin {
                order.readable = vec![bin.parent().unwrap().to_owned()];
                path = format!("{}:{path}", bin.display());
            }
            order.environment = vec![("PATH".into(), path), ("CARGO_HOME".into(), "/tmp/cargo".into())];
            let finished = run(&order);
            assert_eq!(finished.exit, Exit::Code(0), "{program}: {}", told(&finished));
            told(&finished)
        };
        if cargo.is_some() {
            let text = run("cargo", &["test", "--offline", "--quiet", "--lib"]);
            assert!(text.contains("1 passed"), "{text}");
            assert!(shop.project().join("target/debug").is_dir());
        } else {
            println!("skipped: no cargo that this user can run");
        }
        for (program, arguments, sign) in [
            ("/usr/bin/node", &["--test", "t.test.mjs"][..], "pass 1"),
            ("/usr/bin/python3", &["t.py"], "OK"),
        ] {
            if std::path::Path::new(program).exists() {
                let text = run(program, arguments);
                assert!(text.contains(sign), "{text}");
            } else {
                println!("skipped: no {program}");
            }
        }
    });
}

/// Printed, not asserted; the goal is 15 ms.
#[test]
fn the_cost_of_a_start() {
    for_everybody("tree::the_cost_of_a_start", || {
        let shop = Workshop::new();
        let measure = |title: &str, run: &dyn Fn() -> Duration| {
            let mut times: Vec<Duration> = (0..20).map(|_| run()).collect();
            times.sort_unstable();
            println!("{title}: median {:?}, fastest {:?}", times[10], times[0]);
        };
        let order = Template::Shell.order("true", shop.project(), shop.scratch());
        measure("start of a jailed `true`", &|| {
            let begun = Instant::now();
            let process = start(&order).unwrap();
            let time = begun.elapsed();
            assert_eq!(process.wait().unwrap().exit, Exit::Code(0));
            time
        });
        let hello = shop.order("echo hello");
        measure("jailed `echo hello`, from the order to the end of the layer", &|| {
            let begun = Instant::now();
            assert_eq!(run(&hello).stdout.to_text(), "hello\n");
            begun.elapsed()
        });
    });
}
