//! Random changes between two scans, and the expected result computed independently.

use std::collections::{BTreeMap, BTreeSet};

use tgp_contract::ChronicleEvent;
use tgp_valve::TRIGGER_EVENT;

use crate::support::{EVERYTHING, World, hash};

/// A small generator of numbers, so that a failure can be repeated by its seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit.max(1)
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len())) }
    }
}

/// What should be on the disk: each file with a number that represents its inode.
#[derive(Clone, Default)]
struct Model {
    files: BTreeMap<String, (u64, String)>,
    next: u64,
}

/// Kind, path, origin, hash before, hash after.
type Told = (String, String, Option<String>, Option<String>, Option<String>);

const FOLDERS: [&str; 6] = ["", "a/", "b/", "a/deep/", "c/x/y/", "ignored/"];

impl Model {
    fn visible(&self) -> BTreeMap<&str, &(u64, String)> {
        let is_seen = |path: &str| !path.ends_with(".tmp") && !path.starts_with("ignored/");
        self.files
            .iter()
            .map(|(path, file)| (path.as_str(), file))
            .filter(|(path, _)| is_seen(path))
            .collect()
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn is_free(&self, path: &str) -> bool {
        let below = format!("{path}/");
        !self.files.contains_key(path) && !self.files.keys().any(|file| file.starts_with(&below))
    }

    /// One random change, on the disk and in the model.
    fn step(&mut self, world: &World, dice: &mut Dice) {
        let paths: Vec<String> = self.files.keys().cloned().collect();
        let ending = ["", ".txt", ".tmp"][dice.below(3)];
        let name = format!("{}f{}{ending}", FOLDERS[dice.below(FOLDERS.len())], dice.below(30));
        // Few different contents, so that some are alike, and some files empty.
        let content = match dice.below(12) {
            0 => String::new(),
            number if number < 5 => format!("alike {number}"),
            _ => format!("content {}", self.fresh()),
        };
        match dice.below(10) {
            0..=2 => {
                if self.is_free(&name) {
                    world.write(&name, &content);
                    let id = self.fresh();
                    self.files.insert(name, (id, content));
                }
            }
            3 | 4 => {
                if let Some(path) = dice.pick(&paths) {
                    world.write(path, &content);
                    self.files.get_mut(path).unwrap().1 = content;
                }
            }
            5 => {
                if let Some(path) = dice.pick(&paths) {
                    // As editors save.
                    world.write("save.tmp", &content);
                    world.rename("save.tmp", path);
                    let id = self.fresh();
                    self.files.insert(path.clone(), (id, content));
                }
            }
            6 => {
                if let Some(path) = dice.pick(&paths)
                    && self.is_free(&name)
                {
                    world.rename(path, &name);
                    let file = self.files.remove(path).unwrap();
                    self.files.insert(name, file);
                }
            }
            7 => {
                if let Some(path) = dice.pick(&paths) {
                    world.remove(path);
                    self.files.remove(path);
                }
            }
            8 => self.move_folder(world, dice, &paths),
            _ => {
                if let (Some(from), Some(to)) = (dice.pick(&paths), dice.pick(&paths)) {
                    // One over the other.
                    world.rename(from, to);
                    let file = self.files.remove(from).unwrap();
                    self.files.insert(to.clone(), file);
                }
            }
        }
    }

    fn move_folder(&mut self, world: &World, dice: &mut Dice, paths: &[String]) {
        let folders: BTreeSet<&str> =
            paths.iter().filter_map(|path| path.split_once('/').map(|(folder, _)| folder)).collect();
        let folders: Vec<&str> = folders.into_iter().collect();
        let Some(from) = dice.pick(&folders) else { return };
        let to = format!("moved{}", self.fresh());
        world.rename(from, &to);
        let moved: Vec<String> =
            self.files.keys().filter(|path| path.starts_with(&format!("{from}/"))).cloned().collect();
        for path in moved {
            let file = self.files.remove(&path).unwrap();
            self.files.insert(format!("{to}{}", &path[from.len()..]), file);
        }
    }
}

/// How the difference of two states must be reported.
fn expected(before: &Model, after: &Model) -> BTreeSet<Told> {
    let (old, new) = (before.visible(), after.visible());
    let mut told = BTreeSet::new();
    let mut gone: BTreeMap<&str, &(u64, String)> = BTreeMap::new();
    let mut come: BTreeMap<&str, &(u64, String)> = BTreeMap::new();
    for (path, file) in &old {
        match new.get(path) {
            None => {
                gone.insert(path, file);
            }
            Some(now) if now.1 != file.1 => {
                told.insert((
                    "changed".into(),
                    (*path).into(),
                    None,
                    Some(hash(&file.1)),
                    Some(hash(&now.1)),
                ));
            }
            Some(_) => {}
        }
    }
    come.extend(new.iter().filter(|(path, _)| !old.contains_key(*path)));
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for (path, file) in &come {
        if let Some((from, _)) = gone.iter().find(|(_, was)| was.0 == file.0) {
            pairs.push((from, path));
        }
    }
    for (from, to) in &pairs {
        told.insert((
            "renamed".into(),
            (*to).into(),
            Some((*from).into()),
            Some(hash(&old[from].1)),
            Some(hash(&new[to].1)),
        ));
        gone.remove(from);
        come.remove(to);
    }
    let only = |files: &BTreeMap<&str, &(u64, String)>, content: &str| {
        files.values().filter(|file| file.1 == content).count() == 1
    };
    let (left, right) = (gone.clone(), come.clone());
    for (to, file) in &right {
        if !file.1.is_empty() && only(&left, &file.1) && only(&right, &file.1) {
            let from = left.iter().find(|(_, was)| was.1 == file.1).unwrap().0;
            let content = Some(hash(&file.1));
            told.insert(("renamed".into(), (*to).into(), Some((*from).into()), content.clone(), content));
            gone.remove(from);
            come.remove(to);
        }
    }
    for (path, file) in gone {
        told.insert(("deleted".into(), path.into(), None, Some(hash(&file.1)), None));
    }
    for (path, file) in come {
        told.insert(("created".into(), path.into(), None, None, Some(hash(&file.1))));
    }
    told
}

fn told(event: &ChronicleEvent) -> Told {
    let text = |name: &str| event.fields.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    (text("change").unwrap(), event.file_path.clone().unwrap(), text("from"), text("before"), text("after"))
}

#[tokio::test]
async fn random_batches_come_to_exactly_their_net_changes() {
    let mut total = 0;
    for seed in 1..=6 {
        let mut dice = Dice::new(seed);
        // Every event goes to one chronicle that no folder carries along.
        let world = World::scoped(EVERYTHING);
        world.write(".gitignore", "*.tmp\n/ignored/\n");
        let mut model = Model::default();
        for _ in 0..20 {
            model.step(&world, &mut dice);
        }
        world.scan().await;
        let mut seen = 0;
        for round in 0..12 {
            let before = model.clone();
            for _ in 0..=dice.below(25) {
                model.step(&world, &mut dice);
            }
            world.scan().await;
            let events: Vec<ChronicleEvent> = world.all_events().await.split_off(seen);
            seen += events.len();
            total += events.len();
            assert!(events.iter().all(|event| event.kind == TRIGGER_EVENT));
            let list: Vec<Told> = events.iter().map(told).collect();
            let kinds: Vec<bool> = list.iter().map(|told| told.0 != "deleted").collect();
            assert!(kinds.is_sorted(), "seed {seed}, round {round}: deletions come first: {list:#?}");
            let set: BTreeSet<Told> = list.iter().cloned().collect();
            assert_eq!(set.len(), list.len(), "seed {seed}, round {round}: told twice");
            assert_eq!(set, expected(&before, &model), "seed {seed}, round {round}");
        }
    }
    assert!(total > 300, "the dice have done too little: {total}");
}
