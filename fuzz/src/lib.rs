//! Oracles for everything that reads foreign bytes, and a small deterministic fuzzer that runs them.
//!
//! An oracle is a plain function of some bytes that reports a broken invariant, so that three runners share it: the bounded
//! test (`tests/fuzz.rs`), the binary `tgp-fuzz` and the targets of cargo-fuzz (`cargo-fuzz/`).
#![forbid(unsafe_code)]

mod known;
pub mod minimise;
pub mod mutate;
pub mod run;
pub mod targets;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;

pub use known::{KNOWN, KnownFailure};
pub use targets::TARGETS;

/// The longest input. Everything above it costs time and finds little: the bounds of the readers have their own tests.
pub const MAX_INPUT_BYTES: usize = 4096;

/// Checks one input. The error says which invariant is broken; a panic counts as one too.
pub type Oracle = fn(&[u8]) -> Result<(), String>;

/// Something that reads foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// What holds for every input, in one line.
    pub about: &'static str,
    pub oracle: Oracle,
    /// Words of the format, which random bytes would not hit.
    pub dictionary: &'static [&'static str],
    /// Makes a whole input, for formats in which most mutations are refused at once.
    pub generate: Option<fn(&mut SmallRng) -> Vec<u8>>,
    /// Random inputs of the bounded test: about two seconds in a debug build.
    pub iterations: usize,
}

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Where its seeds are kept.
    #[must_use]
    pub fn seeds_folder(&self) -> PathBuf {
        folder().join("seeds").join(self.name)
    }

    /// The seeds that have to hold, by name, without those of [`KNOWN`] failures.
    ///
    /// # Errors
    /// When the folder cannot be read, or has no seed.
    pub fn seeds(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let root = self.seeds_folder();
        let mut paths = files(&root)?;
        let fixed = root.join("known");
        if fixed.is_dir() {
            paths.extend(files(&fixed)?);
        }
        let mut seeds = Vec::new();
        for path in paths {
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            if !KNOWN.iter().any(|known| known.target == self.name && known.seed == name) {
                seeds.push((name, fs::read(&path)?));
            }
        }
        if seeds.is_empty() {
            return Err(io::Error::other(format!("{} has no seeds", root.display())));
        }
        Ok(seeds)
    }
}

/// Panics when an invariant of a target does not hold, unless the failure is known: for libFuzzer, which counts panics.
#[expect(clippy::panic, reason = "a panic is how libFuzzer learns of a failure")]
pub fn check(target: &str, input: &[u8]) {
    let Some(target) = Target::named(target) else { panic!("there is no target `{target}`") };
    if let Err(message) = (target.oracle)(input)
        && !KnownFailure::covers(target.name, &message)
    {
        panic!("{message}");
    }
}

/// The folder of this crate.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder, sorted, so that every machine makes the same inputs of them.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
