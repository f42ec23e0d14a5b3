//! What a kill leaves behind, and who cleans it up.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tgp_contract::FileSystem;
use tgp_fs::DiskFs;

use crate::support::{World, child, leftovers, listed, path, write};

const NOTHING: Vec<PathBuf> = Vec::new();

#[test]
fn leftovers_of_a_dead_process_are_swept_on_open() {
    let world = World::new();
    world.fs.apply(&[write("deep/dir/kept", "x"), write("other/kept", "x")]).unwrap();
    let dead = ".tgp-tmp-4194999-00000000deadbeef";
    let stray = [
        format!("{dead}-1"),
        format!("deep/dir/{dead}-2"),
        format!("deep/dir/{dead}-3"),
        ".tgp-tmp-1-0000000000000001-1".to_owned(),
    ];
    for file in &stray {
        fs::write(world.root().join(file), "half").unwrap();
    }
    // A dead batch may name anything, also what is gone, no directory, or outside.
    let intent = "deep/dir\ngone\nother/kept\n../outside\n/etc\n";
    fs::write(world.root().join(format!("{dead}-batch")), intent).unwrap();
    assert_eq!(listed(&world.fs), ["deep", "deep/dir", "deep/dir/kept", "other", "other/kept"]);
    assert_eq!(leftovers(&world.root()).len(), 5);
    DiskFs::open(&world.root()).unwrap();
    assert_eq!(leftovers(&world.root()), NOTHING);
    assert_eq!(listed(&world.fs).len(), 5);
    world.assert_outside_untouched();
}

#[test]
fn the_temporary_files_of_a_live_batch_are_left_alone_and_hidden() {
    let world = World::new();
    fs::create_dir(world.root().join("d")).unwrap();
    let live = ".tgp-tmp-1-00000000cafecafe";
    let intent = File::create(world.root().join(format!("{live}-batch"))).unwrap();
    (&intent).write_all(b"d\n").unwrap();
    intent.lock().unwrap();
    fs::write(world.root().join(format!("{live}-1")), "staged").unwrap();
    fs::write(world.root().join(format!("d/{live}-2")), "staged").unwrap();
    let second = DiskFs::open(&world.root()).unwrap();
    assert_eq!(leftovers(&world.root()).len(), 3);
    assert_eq!(listed(&second), ["d"]);
    // The lock ends with its process.
    drop(intent);
    DiskFs::open(&world.root()).unwrap();
    assert_eq!(leftovers(&world.root()), NOTHING);
}

#[test]
fn opening_while_others_write_never_disturbs_them() {
    let world = World::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..300 {
                world.fs.apply(&[write("a", round.to_string()), write("d/b", round.to_string())]).unwrap();
            }
        });
        while !writer.is_finished() {
            DiskFs::open(&world.root()).unwrap();
        }
        writer.join().unwrap();
    });
    assert_eq!(leftovers(&world.root()), NOTHING);
}

const KILLED: &str = "crash::a_killed_writer_leaves_whole_files_and_the_next_open_cleans_up";
const SIZE: usize = 100_000;

#[test]
fn a_killed_writer_leaves_whole_files_and_the_next_open_cleans_up() {
    if let Ok(root) = std::env::var("TGP_VFS_ROOT") {
        write_until_killed(Path::new(&root));
    }
    let world = World::new();
    for round in 0..10 {
        let mut writer =
            child(KILLED).env("TGP_VFS_ROOT", world.root()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        // Killed after a different number of batches each time, somewhere within the next one.
        let mut batches = lines.map(Result::unwrap).filter(|line| line.contains("batch"));
        batches.nth(round % 5).unwrap();
        writer.kill().unwrap();
        writer.wait().unwrap();
        let fs = DiskFs::open(&world.root()).unwrap();
        assert_eq!(leftovers(&world.root()), NOTHING);
        for file in ["d/a", "d/e/b", "c"] {
            let content = fs.read(&path(file)).unwrap();
            assert_eq!(content.len(), SIZE);
            assert!(content.iter().all(|byte| *byte == content[0]), "{file} is torn");
        }
    }
}

fn write_until_killed(root: &Path) -> ! {
    let fs = DiskFs::open(root).unwrap();
    loop {
        for letter in b'a'..=b'z' {
            let content = vec![letter; SIZE];
            fs.apply(&[write("d/a", &content), write("d/e/b", &content), write("c", &content)]).unwrap();
            std::io::stdout().write_all(b"batch\n").unwrap();
        }
    }
}
