//! Ways out of the jail, from a table. After each, every protected file is what it was, and no other process has
//! been reached.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tgp_jail::{Exit, NetworkAccess};

use crate::workshop::{MANY, Picture, Workshop, for_everybody, picture, run, told};

const TABLE: &str = include_str!("escapes.txt");

/// A parser that loses rows would pass every test.
const ROWS_AT_LEAST: usize = 80;

/// What is asked of us, on a machine that lacks many programs.
const TRIED_AT_LEAST: usize = 40;

struct Row {
    name: &'static str,
    needs: Vec<&'static str>,
    /// Whether it succeeds without a jail.
    free: bool,
    network: NetworkAccess,
    script: String,
}

fn rows() -> Vec<Row> {
    let rows: Vec<Row> = TABLE.split("\n## ").skip(1).map(row).collect();
    assert!(rows.len() >= ROWS_AT_LEAST, "{} rows", rows.len());
    rows
}

fn row(text: &'static str) -> Row {
    let (name, text) = text.split_once('\n').unwrap();
    let mut row =
        Row { name, needs: Vec::new(), free: false, network: NetworkAccess::None, script: String::new() };
    for line in text.lines() {
        let Some(attribute) = line.strip_prefix("#: ") else {
            row.script.push_str(line);
            row.script.push('\n');
            continue;
        };
        match attribute.split_once(' ').unwrap_or((attribute, "")) {
            ("needs", programs) => row.needs.extend(programs.split(' ')),
            ("free", "") => row.free = true,
            ("network", "loopback") => row.network = NetworkAccess::Loopback,
            _ => panic!("`{name}` has an attribute that nobody knows: {attribute}"),
        }
    }
    assert!(!row.script.trim().is_empty(), "`{name}` does nothing");
    row
}

impl Row {
    /// The script for one workshop, with a word at its end that shows that it ran to the end. In the jail `/tmp` is its
    /// own; elsewhere it gets another place.
    fn script(&self, scene: &Scene, temporary: &str) -> String {
        let script = self.script.replace("/tmp", temporary);
        let text = [
            ("{project}", scene.shop.project().canonicalize().unwrap().display().to_string()),
            ("{outside}", scene.shop.outside().canonicalize().unwrap().display().to_string()),
            ("{scratch}", scene.shop.scratch().canonicalize().unwrap().display().to_string()),
            ("{kernel_pid}", std::process::id().to_string()),
            ("{descriptor}", scene.descriptor.to_string()),
            ("{abstract}", scene.name.clone()),
        ]
        .iter()
        .fold(script, |text, (name, value)| text.replace(name, value));
        let needs: String = self
            .needs
            .iter()
            .map(|program| format!("command -v {program} > /dev/null || {{ echo LACKS {program}; exit; }}\n"))
            .collect();
        format!("{needs}trap '' TERM\n{text}\necho TRIED\n")
    }
}

/// A workshop with everything that an attacker could want to reach.
struct Scene {
    shop: Workshop,
    descriptor: i32,
    name: String,
    listeners: Vec<UnixListener>,
    _secret: fs::File,
}

impl Scene {
    fn new() -> Self {
        let shop = Workshop::new();
        shop.file("src/real", "original\n");
        shop.file(".env", "treasure\n");
        shop.file("secrets/key", "treasure\n");
        shop.file(".tgp/policy.yaml", "original\n");
        shop.file("target/built", "original\n");
        let git = Command::new("git")
            .args(["-c", "init.defaultBranch=main", "init", "-q"])
            .current_dir(shop.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .status();
        if !git.is_ok_and(|status| status.success()) {
            shop.file(".git/config", "[core]\n");
        }
        let secret = shop.outside().join("secret");
        fs::write(&secret, "treasure\n").unwrap();
        let file = fs::File::options().append(true).open(&secret).unwrap();
        // As if the close-on-exec mark had been forgotten.
        let descriptor = unsafe { libc::dup(file.as_raw_fd()) };
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name = format!("tgp-jail-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let listeners = vec![
            UnixListener::bind_addr(&address).unwrap(),
            UnixListener::bind(shop.outside().join("daemon.sock")).unwrap(),
            UnixListener::bind(shop.project().join("target/daemon.sock")).unwrap(),
        ];
        for listener in &listeners {
            listener.set_nonblocking(true).unwrap();
        }
        Self { shop, descriptor, name, listeners, _secret: file }
    }

    /// Everything that must stay as it is: not the build output.
    fn picture(&self) -> std::io::Result<Picture> {
        let mut all = picture(&self.shop.project())?;
        let target = self.shop.project().join("target");
        all.retain(|(path, ..)| !path.starts_with(&target));
        all.extend(picture(&self.shop.outside())?);
        Ok(all)
    }

    fn nobody_was_reached(&self) -> bool {
        self.listeners
            .iter()
            .all(|listener| matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        unsafe { libc::close(self.descriptor) };
    }
}

/// Tries one row; returns the program that it needs and does not find.
fn try_row(row: &Row, scene: &Scene, before: &Picture) -> Option<String> {
    let mut order = scene.shop.order(&row.script(scene, "/tmp"));
    order.hidden = vec![".env".into(), "secrets".into()];
    order.read_only = vec![".git".into(), ".tgp".into()];
    order.direct = vec!["target".into()];
    order.network = row.network;
    let finished = run(&order);
    let text = format!("`{}` {}", row.name, told(&finished));
    let said = finished.stdout.to_text();
    if let Some(program) = said.lines().find_map(|line| line.strip_prefix("LACKS ")) {
        return Some(format!("{} ({program})", row.name));
    }
    assert_eq!(finished.exit, Exit::Code(0), "{text}");
    assert!(said.contains("TRIED"), "{text}");
    assert!(!said.contains("ESCAPED"), "{text}");
    assert!(!said.contains("treasure") && !finished.stderr.to_text().contains("treasure"), "{text}");
    assert!(scene.picture().unwrap() == *before, "something was changed by {text}");
    assert!(scene.nobody_was_reached(), "somebody was reached by {text}");
    // What it would have the kernel change is known to the last file, and none of it is protected.
    for change in finished.layer.changes(MANY).unwrap() {
        let protected = [".git", ".tgp", ".env", "secrets"];
        assert!(!protected.iter().any(|path| change.path.starts_with(path)), "{change:?} {text}");
    }
    None
}

#[test]
fn no_way_out_leads_out() {
    for_everybody("escape::no_way_out_leads_out", || {
        let shared = tempfile::Builder::new().prefix("tgp-jail-").tempfile_in("/dev/shm").unwrap();
        fs::write(shared.path(), "treasure\n").unwrap();
        let rows = rows();
        let lacking = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for half in 0..2 {
                let (rows, lacking) = (&rows, &lacking);
                scope.spawn(move || {
                    let scene = Scene::new();
                    let before = scene.picture().unwrap();
                    for row in rows.iter().skip(half).step_by(2) {
                        if let Some(reason) = try_row(row, &scene, &before) {
                            lacking.lock().unwrap().push(reason);
                        }
                    }
                    // Late writers have had enough time.
                    std::thread::sleep(Duration::from_millis(1200));
                    assert!(scene.picture().unwrap() == before, "something was changed later");
                    assert!(!scene.shop.project().join("target/late").exists());
                });
            }
        });
        let lacking = lacking.into_inner().unwrap();
        let tried = rows.len() - lacking.len();
        println!("{tried} ways out were tried");
        if !lacking.is_empty() {
            println!("skipped for want of a program: {}", lacking.join(", "));
        }
        assert!(tried >= TRIED_AT_LEAST, "only {tried} were tried");
    });
}

/// The same scripts do their work where nothing holds them, so it is the jail that does. Only those that harm nothing but
/// the workshop are marked so.
#[test]
fn the_ways_lead_somewhere_without_a_jail() {
    let mut free = 0;
    for row in rows().iter().filter(|row| row.free) {
        let scene = Scene::new();
        let before = scene.picture().unwrap();
        let output = Command::new("/bin/sh")
            .args(["-c", &row.script(&scene, "{scratch}")])
            .current_dir(scene.shop.project())
            .env("HOME", scene.shop.scratch())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if said.contains("LACKS") {
            println!("`{}` skipped: {said}", row.name);
            continue;
        }
        let begun = Instant::now();
        // Some of them write later.
        while scene.picture().is_ok_and(|now| now == before) {
            assert!(begun.elapsed() < Duration::from_secs(30), "`{}` does nothing: {output:?}", row.name);
            std::thread::sleep(Duration::from_millis(20));
        }
        free += 1;
    }
    assert!(free >= 15, "only {free} were tried");
}
