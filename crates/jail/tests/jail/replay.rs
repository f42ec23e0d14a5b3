//! The list of changes is the truth: applied to a copy of the project, it gives exactly what the process saw at its end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tgp_jail::{Before, Exit, LayerChange, LayerChangeKind};

use crate::workshop::{MANY, Workshop, for_everybody, told};

/// How many random scripts, and how many steps each.
const SCRIPTS: u64 = 12;
const STEPS: usize = 30;

/// Everything below the current directory, one line each.
const LISTING: &str = r#"
find . -mindepth 1 | LC_ALL=C sort | while read -r f; do
  if [ -L "$f" ]; then echo "link $f $(readlink "$f")"
  elif [ -d "$f" ]; then echo "directory $f"
  elif [ -f "$f" ]; then x=; [ -x "$f" ] && x=' x'; echo "file $f$x $(cat "$f" | tr '\n' ';')"
  else echo "special $f"; fi
done"#;

/// A small generator of numbers, so that a failing script can be found again by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // Knuth's constants for a linear generator; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c"];
        let depth = 1 + self.roll(3);
        (0..depth).map(|_| names[self.roll(names.len())]).collect::<Vec<_>>().join("/")
    }

    /// One step. Many fail, for the path is not there or is something else, and that is as well.
    fn step(&mut self) -> String {
        let (one, two) = (self.path(), self.path());
        match self.roll(13) {
            0 | 1 => format!("echo {} > {one}", self.roll(9)),
            2 => format!("echo more >> {one}"),
            3 => format!("rm -f {one}"),
            4 => format!("rm -rf {one}"),
            5 => format!("rm -rf {one}; mkdir {one}"),
            6 | 7 => format!("mkdir -p {one}"),
            8 => format!("mv {one} {two}"),
            9 => format!("cp -r {one} {two}"),
            10 => format!("ln -sfn {two} {one}"),
            11 => format!("ln -f {one} {two}"),
            // Modes of directories are not changes, but without them an ordinary user could not read them.
            _ => format!("test -f {one} && chmod {}x {one}", ["+", "-"][self.roll(2)]),
        }
    }

    fn script(&mut self) -> String {
        (0..STEPS).map(|_| format!("{{ {}; }} < /dev/null > /dev/null 2>&1\n", self.step())).collect()
    }
}

fn listing(folder: &Path) -> String {
    let output = Command::new("/bin/sh").args(["-c", LISTING]).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// As the documentation of the changes says.
fn apply(changes: &[LayerChange], folder: &Path) {
    for change in changes.iter().rev() {
        let path = folder.join(&change.path);
        match change.kind {
            LayerChangeKind::Remove => fs::remove_file(path).unwrap(),
            LayerChangeKind::RemoveDirectory => fs::remove_dir(path).unwrap(),
            _ => {}
        }
    }
    for change in changes {
        let path = folder.join(&change.path);
        let replaces = matches!(change.before, Before::File | Before::Link | Before::Special);
        match &change.kind {
            LayerChangeKind::Remove | LayerChangeKind::RemoveDirectory => {}
            LayerChangeKind::MakeDirectory => fs::create_dir(path).unwrap(),
            kind => {
                if replaces {
                    fs::remove_file(&path).unwrap();
                }
                match kind {
                    LayerChangeKind::Write { content, executable, .. } => {
                        fs::write(&path, fs::read(content).unwrap()).unwrap();
                        let mode = if *executable { 0o755 } else { 0o644 };
                        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
                    }
                    LayerChangeKind::Link { target } => symlink(target, &path).unwrap(),
                    _ => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                }
            }
        }
    }
}

#[test]
fn the_changes_are_what_the_process_saw() {
    for_everybody("replay::the_changes_are_what_the_process_saw", || {
        let (mut told_of, mut lines) = (0, 0);
        for seed in 0..SCRIPTS {
            let mut dice = Dice(seed);
            let shop = Workshop::new();
            let before = dice.script();
            // The project itself is made by such a script, so that there is something of every kind in it.
            let made =
                Command::new("/bin/sh").args(["-c", &before]).current_dir(shop.project()).status().unwrap();
            // A process that opens a pipe waits for the other side, so it comes last.
            let script = format!("{}mkfifo {} 2>/dev/null\n", dice.script(), dice.path());
            let finished = shop.run(&format!("{script}{LISTING}"));
            let place = format!("seed {seed}, {made}\n{before}\n{script}\n{}", told(&finished));
            assert_eq!(finished.exit, Exit::Code(0), "{place}");
            let changes = finished.layer.changes(MANY).unwrap();
            apply(&changes, &shop.project());
            assert_eq!(listing(&shop.project()), finished.stdout.to_text(), "{place}");
            told_of += changes.len();
            lines += finished.stdout.to_text().lines().count();
        }
        assert!(
            told_of > 50 && lines > 50,
            "{told_of} changes and {lines} paths are too few to mean anything"
        );
    });
}
