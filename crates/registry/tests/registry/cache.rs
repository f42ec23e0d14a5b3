//! Vectors between runs: nothing is embedded twice, and no damage shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_contract::ToolMetadata;
use tgp_registry::{Calibration, Searcher};

use crate::support::{Counting, shop, tool};

fn many(count: usize) -> Vec<ToolMetadata> {
    (0..count)
        .map(|number| tool(&format!("tools/a/t{number}.ts"), &format!("Does thing number {number}.")))
        .collect()
}

async fn embedded(directory: &Path, tools: Vec<ToolMetadata>) -> usize {
    let embedder = Counting::new();
    let searcher = Searcher::new(Some(embedder.clone()), Calibration::builtin(), Some(directory.to_owned()));
    let updated = searcher.update(tools).await.unwrap();
    assert_eq!(updated.embedded, embedder.count());
    assert_eq!(searcher.search("thing number", 1).await.unwrap().pending, 0);
    updated.embedded
}

fn file(directory: &Path) -> PathBuf {
    directory.join("vectors-counting-1.bin")
}

#[tokio::test]
async fn only_new_texts_are_embedded() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("not/there/yet");
    assert_eq!(embedded(&state, shop()).await, shop().len());
    assert_eq!(embedded(&state, shop()).await, 0);
    let mut changed = shop();
    changed[1].description = "Total revenue for each quarter.".to_owned();
    changed[2].hash = "a new hash with the old text".to_owned();
    changed.remove(3);
    changed.push(tool("tools/new/one.ts", "Something new."));
    assert_eq!(embedded(&state, changed).await, 2);
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "no temporary file stays");
}

#[tokio::test]
async fn a_damaged_file_is_rebuilt_without_a_word() {
    let directory = tempfile::tempdir().unwrap();
    embedded(directory.path(), shop()).await;
    let whole = fs::read(file(directory.path())).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let half = whole[..whole.len() / 2].to_vec();
    let doubled = [whole.clone(), whole.clone()].concat();
    for damaged in [flipped, half, doubled, Vec::new(), vec![0xff; 300]] {
        fs::write(file(directory.path()), damaged).unwrap();
        assert_eq!(embedded(directory.path(), shop()).await, shop().len());
        assert_eq!(fs::read(file(directory.path())).unwrap(), whole, "the rebuilt file is the same");
    }
}

#[tokio::test]
async fn a_stop_in_the_middle_keeps_what_was_saved() {
    let directory = tempfile::tempdir().unwrap();
    let embedder = Counting::failing_after(160);
    let searcher = Searcher::new(Some(embedder), Calibration::builtin(), Some(directory.path().to_owned()));
    searcher.update(many(300)).await.unwrap_err();
    // What has a vector is compared by meaning, the rest by words.
    assert_eq!(searcher.search("number 250", 3).await.unwrap().pending, 140);
    assert_eq!(embedded(directory.path(), many(300)).await, 140);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_at_once_leave_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = Arc::new(directory.path().to_owned());
    let writers = (0..8).map(|writer| {
        let path = Arc::clone(&path);
        tokio::spawn(async move {
            let tools = many(200).into_iter().skip(writer * 20).take(60).collect();
            embedded(&path, tools).await
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let bytes = fs::read(file(&path)).unwrap();
    let (body, checksum) = bytes.split_at(bytes.len() - 64);
    assert_eq!(tgp_contract::canonical::sha256_hex(body).as_bytes(), checksum);
    // The last writer had at least its own, and the file serves the next run.
    assert!(embedded(&path, many(200)).await <= 140);
    assert_eq!(embedded(&path, many(200)).await, 0);
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_costs_only_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let blocked = directory.path().join("file");
    fs::write(&blocked, "not a directory").unwrap();
    assert_eq!(embedded(&blocked.join("state"), shop()).await, shop().len());
}
