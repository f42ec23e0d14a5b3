//! A watch that is killed again and again while files change, and what it has reported in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tgp_chronicle::FileChronicle;
use tgp_contract::{Chronicle, ChronicleEvent};
use tgp_valve::{ScanRequest, Valve, ValveOptions};
use tokio::sync::mpsc;

use crate::model::Dice;
use crate::support::{EVERYTHING, MANY, World, beside, hash, never, wait_until};

const CHILD: &str = "TGP_VALVE_TEST_PROJECT";
/// The file that the child writes its events to.
const EVENTS: &str = "TGP_VALVE_TEST_EVENTS";
const TEST: &str = "torture::a_watch_that_is_killed_tells_everything_once_and_in_order";

/// What the killed process does: it watches, by the real clock.
fn watch_until_killed(project: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = World::scoped(EVERYTHING);
    let options = ValveOptions {
        project: project.to_owned(),
        repository: tgp_fs::RepositoryAccess::default(),
        journal: project.join(".tgp/state/valve.sqlite"),
        chronicle: Arc::new(FileChronicle::open(&beside(project)).unwrap()),
        clock: Arc::new(|| {
            u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
        }),
        look: ScanRequest::WhenTold,
        ..world.options()
    };
    runtime.block_on(async {
        let (sender, mut events) = mpsc::channel(16);
        tokio::spawn(async move {
            let mut log = std::env::var_os(EVENTS).map(|path| std::fs::File::create(path).unwrap());
            while let Some(event) = events.recv().await {
                if let Some(log) = &mut log {
                    writeln!(log, "{}", serde_json::to_string(&event).unwrap()).unwrap();
                }
            }
        });
        Valve::open(&options).unwrap().watch(sender, never()).await.unwrap();
    });
}

fn start(project: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    start_with(command.env(CHILD, project))
}

fn start_with(command: &mut Command) -> Child {
    command
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// `src` has a chronicle for each file, so its files stay in their folder; `work` is reported in the project's, and
/// all of it moves about.
struct Mess {
    dice: Dice,
    count: u64,
}

impl Mess {
    fn files(world: &World) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![world.disk("src"), world.disk("work")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if !entry.file_name().to_string_lossy().contains(".sage") {
                    let path = entry.path();
                    files.push(path.strip_prefix(world.folder.path()).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }

    fn name(&mut self) -> String {
        self.count += 1;
        let folder = ["src", "src/deep", "work/a", "work/b", "work/a/c"][self.dice.below(5)];
        let ending = if self.dice.below(6) == 0 { "log" } else { "txt" };
        format!("{folder}/f{}.{ending}", self.dice.below(40))
    }

    fn content(&mut self) -> String {
        self.count += 1;
        if self.dice.below(8) == 0 { "the same".to_owned() } else { format!("content {}", self.count) }
    }

    fn step(&mut self, world: &World) {
        let files = Self::files(world);
        let content = self.content();
        let name = self.name();
        match self.dice.below(12) {
            0..=3 => world.write(&name, content),
            4 | 5 => {
                if let Some(path) = self.dice.pick(&files) {
                    world.write(path, content);
                }
            }
            6 => {
                if let Some(path) = self.dice.pick(&files) {
                    world.write("work/save.log", content);
                    world.rename("work/save.log", path);
                }
            }
            7 => {
                if let Some(path) = self.dice.pick(&files) {
                    world.remove(path);
                }
            }
            8 | 9 => {
                if let Some(path) = self.dice.pick(&files)
                    && !world.disk(&name).exists()
                {
                    world.rename(path, &name);
                }
            }
            10 => {
                let from = ["work/a", "work/b"][self.dice.below(2)];
                if world.disk(from).is_dir() {
                    world.rename(from, &format!("work/moved{}", self.count));
                }
            }
            _ => {
                let folders: Vec<PathBuf> = std::fs::read_dir(world.disk("work"))
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .filter(|path| path.is_dir())
                    .collect();
                if folders.len() > 3
                    && let Some(folder) = self.dice.pick(&folders)
                {
                    std::fs::remove_dir_all(folder).unwrap();
                }
            }
        }
    }
}

/// All files that are not ignored, with their hashes.
fn truth(world: &World) -> BTreeMap<String, String> {
    let files = Mess::files(world).into_iter().filter(|path| !path.ends_with(".log"));
    files.map(|path| (path.clone(), hash(std::fs::read(world.disk(&path)).unwrap()))).collect()
}

async fn events(chronicle: &FileChronicle) -> Vec<ChronicleEvent> {
    let mut all = Vec::new();
    for file in chronicle.files().await.unwrap() {
        let events = chronicle.tail(&file, MANY).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(sequence).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{file} is out of order: {numbers:?}");
        all.extend(events);
    }
    all.sort_by_key(sequence);
    all
}

fn sequence(event: &ChronicleEvent) -> u64 {
    event.fields["sequence"].as_u64().unwrap()
}

/// What the events say is on the disk, each following from those before it. Chronicles are written side by side, so this
/// holds when all are.
fn told(
    baseline: &BTreeMap<String, String>,
    events: &[ChronicleEvent],
) -> Result<BTreeMap<String, String>, String> {
    let mut files = baseline.clone();
    for event in events {
        let text = |name: &str| event.fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let path = event.file_path.clone().unwrap();
        assert!(!path.ends_with(".log"), "an ignored file was told of: {event:?}");
        let before = match text("from") {
            Some(from) => files.remove(&from),
            None => files.get(&path).cloned(),
        };
        if before != text("before") {
            return Err(format!("the chain is broken: {before:?} before {event:?}"));
        }
        match text("after") {
            Some(after) => files.insert(path, after),
            None => files.remove(&path),
        };
    }
    Ok(files)
}

fn chronicles(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![world.disk("src"), world.disk(".sage")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().ends_with(".sage") {
                found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_watch_that_is_killed_tells_everything_once_and_in_order() {
    if let Some(project) = std::env::var_os(CHILD) {
        return watch_until_killed(Path::new(&project));
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for seed in [7, 42] {
        let world = World::scoped(EVERYTHING);
        let chronicle = FileChronicle::open(&beside(world.folder.path())).unwrap();
        let mut mess = Mess { dice: Dice::new(seed), count: 0 };
        world.write(".gitignore", "*.log\n");
        for name in ["src/first.txt", "src/deep/second.txt", "work/a/third.txt", "work/b/fourth.txt"] {
            world.write(name, name);
        }
        runtime.block_on(world.scan());
        let baseline = truth(&world);
        let mut past: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        let mut kills = 0;
        for _ in 0..12 {
            let mut child = start(world.folder.path());
            let steps = 5 + mess.dice.below(25);
            // It is killed at any time: while it starts, while it reads, while it writes.
            let killed_at = mess.dice.below(steps + 5);
            for step in 0..steps {
                if step == killed_at {
                    child.kill().unwrap();
                    kills += 1;
                }
                mess.step(&world);
                std::thread::sleep(Duration::from_millis(u64::try_from(mess.dice.below(15)).unwrap()));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            let now = chronicles(&world);
            for (path, bytes) in &past {
                // A line that a kill has torn is set aside by the next who appends; all whole lines stay.
                let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                assert!(now[path].starts_with(&bytes[..whole]), "the past of {} was touched", path.display());
            }
            past = now;
        }
        let mut child = start(world.folder.path());
        mess.step(&world);
        let last = truth(&world);
        wait_until("that all was told", || {
            runtime.block_on(async { told(&baseline, &events(&chronicle).await).as_ref() == Ok(&last) })
        });
        child.kill().unwrap();
        child.wait().unwrap();

        let report = runtime.block_on(world.scan());
        assert_eq!((report.changes, report.pending), (0, 0), "seed {seed}: something was missed");
        let all = runtime.block_on(events(&chronicle));
        assert_eq!(told(&baseline, &all), Ok(truth(&world)), "seed {seed}");
        let ids: BTreeSet<&str> = all.iter().map(|event| event.event_id.as_deref().unwrap()).collect();
        let numbers: BTreeSet<u64> = all.iter().map(sequence).collect();
        assert!(ids.len() == all.len() && numbers.len() == all.len(), "seed {seed}: an event was told twice");
        assert!(all.len() > 60 && kills > 3, "seed {seed}: {} events, {kills} kills", all.len());
    }
}

/// A process that is stopped cannot read its queue, so the system drops what comes after it is full: here everything
/// that matters.
#[test]
fn what_the_system_did_not_tell_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = World::scoped(EVERYTHING);
    let log = tempfile::NamedTempFile::new().unwrap();
    world.write(".gitignore", "*.log\n");
    for number in 0..10 {
        world.write(&format!("work/a/{number}"), format!("{number}"));
    }
    runtime.block_on(world.scan());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = start_with(command.env(CHILD, world.folder.path()).env(EVENTS, log.path()));
    let said = |word: &str| std::fs::read_to_string(log.path()).unwrap().contains(word);
    wait_until("the start", || said("\"started\""));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let room: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Each is reported as an opening, a writing and a closing.
    world.write("work/a/noise.log", "");
    for _ in 0..room {
        let mut noise = std::fs::File::options().append(true).open(world.disk("work/a/noise.log")).unwrap();
        noise.write_all(b".").unwrap();
    }
    world.write("work/a/3", "changed");
    world.rename("work/a", "work/b");
    world.write("work/c/new", "new");
    world.remove("work/b/7");
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    wait_until("a whole look", || said("the queue of the system was full"));
    wait_until("that all was told", || world.status().files == 11 && world.status().pending_events == 0);
    // It has new watches, and continues.
    world.write("work/c/later", "later");
    wait_until("a later change", || said("work/c/later"));
    child.kill().unwrap();
    child.wait().unwrap();
    let told: BTreeSet<String> = runtime.block_on(world.told()).into_iter().collect();
    assert_eq!(told.len(), 12, "{told:#?}");
    for wanted in ["all: renamed work/b/3 < work/a/3", "all: deleted work/a/7", "all: created work/c/new"] {
        assert!(told.contains(wanted), "{wanted} is not in {told:#?}");
    }
}
