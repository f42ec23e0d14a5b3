//! Files larger than the memory that reading them may take.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};

use serde_json::Value;
use tgp_chronicle::Start;
use tgp_contract::Code;

use crate::support::{Project, assert_code, at, child, event, number};

const FILE: &str = "src/large.sage";
const CHILD: &str = "TGP_CHRONICLE_LARGE";
const BIG_LINES: usize = 40;
/// So long a line takes no room on the disk, and would take it in memory.
const HOLE: u64 = 176 << 20;
/// What the process may need at most; the file is far larger.
const MEMORY_KIB: u64 = 18 << 10;

/// The most memory this process has ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 40 lines of half a mebibyte, a line that is one long hole, and three small ones.
fn write_large(project: &Project) {
    let lines = Project::lines(4);
    project.write(FILE, b"");
    let mut writer = BufWriter::new(OpenOptions::new().write(true).open(project.disk(FILE)).unwrap());
    for index in 0..BIG_LINES {
        writer.write_all(&big_line(index)).unwrap();
    }
    writer.seek(SeekFrom::Current(i64::try_from(HOLE).unwrap())).unwrap();
    writer.write_all(b"\n").unwrap();
    for line in &lines[..3] {
        writer.write_all(line).unwrap();
    }
    writer.into_inner().unwrap().sync_data().ok();
}

/// Written without the crate, since so many appends of this size would take their time.
fn big_line(index: usize) -> Vec<u8> {
    let mut event = event(index);
    event.fields.insert("text".to_owned(), Value::from("x".repeat(1 << 19)));
    event.event_id = Some(event.compute_id().unwrap());
    let mut line =
        tgp_contract::canonical::to_string(&serde_json::to_value(event).unwrap()).unwrap().into_bytes();
    line.push(b'\n');
    line
}

#[test]
fn a_file_of_any_size_is_read_verified_and_appended_to_in_little_memory() {
    if std::env::var_os(CHILD).is_none() {
        let output = child("large::a_file_of_any_size_is_read_verified_and_appended_to_in_little_memory")
            .env(CHILD, "yes")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let project = Project::new();
    write_large(&project);
    let size = File::open(project.disk(FILE)).unwrap().metadata().unwrap().len();
    assert!(size > HOLE + (16 << 20));

    let mut events = 0;
    let mut broken = 0;
    for entry in project.chronicle.read(&at(FILE), Start::Beginning).unwrap() {
        match entry {
            Ok(_) => events += 1,
            Err(error) => {
                assert_eq!(error.code, Code::Integrity);
                assert_eq!(error.place_of().unwrap().line as usize, BIG_LINES + 1);
                broken += 1;
            }
        }
    }
    assert_eq!((events, broken), (BIG_LINES + 3, 1));
    assert_eq!(
        project.chronicle.tail_blocking(&at(FILE), 3).unwrap().iter().map(number).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    // Too much for one list is said, and not tried.
    assert_code(project.chronicle.tail_blocking(&at(FILE), 10), Code::Validation);
    let from = project.chronicle.read(&at(FILE), Start::Line(BIG_LINES as u64 + 3)).unwrap();
    assert_eq!(from.map(|entry| number(&entry.unwrap().event)).collect::<Vec<_>>(), [1, 2]);
    let report = project.chronicle.verify(&at(FILE)).unwrap();
    assert_eq!((report.events as usize, report.problems.len()), (BIG_LINES + 3, 1));
    assert_eq!(project.append(FILE, event(2)), Ok(false));
    assert_eq!(project.append(FILE, event(3)), Ok(true));
    let peak = peak();
    assert!(peak < MEMORY_KIB, "{peak} KiB for a file of {} KiB", size >> 10);
}
