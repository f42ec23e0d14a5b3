//! What was read from blobs, each one once for all; new ones are read on all cores.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, OptionalExtension, params};

use super::language::Language;
use super::parse::Parse;
use super::state::Blob;
use crate::tables::failure::GraphError;

/// Results that are kept in memory in each of two generations; the rest is read from the store again.
const MAX_KEPT: usize = 4096;

/// Blobs that are in memory at once while they are read. With [`super::parse::MAX_BLOB_BYTES`] each, and most of them
/// far smaller.
const MAX_AT_ONCE: usize = 128;

/// More threads would only wait for the one that writes.
const MAX_THREADS: usize = 8;

/// The walk through a syntax tree is recursive, to a bounded depth.
const STACK_BYTES: usize = 16 << 20;

/// A blob as one reader reads it.
pub(crate) type BlobKey = (Blob, Language);

#[derive(Default)]
pub(crate) struct ParseCache {
    young: HashMap<BlobKey, Arc<Parse>>,
    old: HashMap<BlobKey, Arc<Parse>>,
    /// What was read since the last transaction ended. Where it is undone, they are not in the store.
    fresh: Vec<BlobKey>,
}

impl ParseCache {
    /// What was read from a blob. It must have been read: what is not there is an empty file.
    pub(crate) fn get(
        &mut self,
        connection: &Connection,
        blob: Blob,
        language: Language,
    ) -> Result<Arc<Parse>, GraphError> {
        let key = (blob, language);
        if let Some(parse) = self.young.get(&key) {
            return Ok(Arc::clone(parse));
        }
        let parse = match self.old.remove(&key) {
            Some(parse) => parse,
            None => {
                let data: Option<Vec<u8>> = connection
                    .prepare_cached("SELECT data FROM parse WHERE blob = ?1 AND language = ?2")?
                    .query_row(params![blob, language as i64], |row| row.get(0))
                    .optional()?;
                let parse = data.map(|data| postcard::from_bytes(&data)).transpose()?;
                Arc::new(parse.unwrap_or_default())
            }
        };
        self.keep(key, Arc::clone(&parse));
        Ok(parse)
    }

    /// The transaction is committed.
    pub(crate) fn confirm(&mut self) {
        self.fresh.clear();
    }

    /// The transaction was undone: what was read in it must be read again.
    pub(crate) fn undo(&mut self) {
        for key in std::mem::take(&mut self.fresh) {
            self.young.remove(&key);
            self.old.remove(&key);
        }
    }

    fn keep(&mut self, key: BlobKey, parse: Arc<Parse>) {
        if self.young.len() >= MAX_KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, parse);
    }

    /// Reads the blobs that were never read. `content` gives the bytes of one, or its size where it is too large; it
    /// is called by one thread alone. Returns how many were read.
    pub(crate) fn read(
        &mut self,
        connection: &Connection,
        wanted: impl IntoIterator<Item = BlobKey>,
        mut content: impl FnMut(Blob) -> Result<Content, GraphError>,
    ) -> Result<u64, GraphError> {
        let mut seen = HashSet::new();
        let mut missing = Vec::new();
        for key in wanted {
            if seen.insert(key) && !self.young.contains_key(&key) && !self.old.contains_key(&key) {
                let known = connection
                    .prepare_cached("SELECT 1 FROM parse WHERE blob = ?1 AND language = ?2")?
                    .exists(params![key.0, key.1 as i64])?;
                if !known {
                    missing.push(key);
                }
            }
        }
        for chunk in missing.chunks(MAX_AT_ONCE) {
            let mut contents = Vec::with_capacity(chunk.len());
            for (blob, language) in chunk {
                contents.push((*language, content(*blob)?));
            }
            let parses = read_all(&contents);
            for (key, parse) in chunk.iter().zip(parses) {
                connection
                    .prepare_cached("INSERT OR IGNORE INTO parse (blob, language, data) VALUES (?1, ?2, ?3)")?
                    .execute(params![key.0, key.1 as i64, postcard::to_stdvec(&parse)?])?;
                self.fresh.push(*key);
                self.keep(*key, Arc::new(parse));
            }
        }
        Ok(missing.len() as u64)
    }
}

/// The bytes of a blob, or how many there would be.
pub(crate) enum Content {
    Bytes(Arc<[u8]>),
    TooLarge(u64),
}

impl Content {
    pub(crate) fn share(&self) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(Arc::clone(bytes)),
            Self::TooLarge(size) => Self::TooLarge(*size),
        }
    }
}

fn read_one(language: Language, content: &Content) -> Parse {
    match content {
        Content::Bytes(bytes) => Parse::read(language, bytes),
        Content::TooLarge(size) => Parse::unread(language, *size),
    }
}

fn read_all(contents: &[(Language, Content)]) -> Vec<Parse> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.min(MAX_THREADS).min(contents.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, (language, content))) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            contents.get(index).map(|item| (index, item))
        } {
            done.push((index, read_one(*language, content)));
        }
        done
    };
    let mut parses: Vec<Option<Parse>> = contents.iter().map(|_| None).collect();
    let mut place = |done: Vec<(usize, Parse)>| {
        for (index, parse) in done {
            if let Some(slot) = parses.get_mut(index) {
                *slot = Some(parse);
            }
        }
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .filter_map(|_| {
                std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()
            })
            .collect();
        for handle in handles {
            if let Ok(done) = handle.join() {
                place(done);
            }
        }
    });
    // A thread that could not be started, or a grammar that fell over one file: the file is kept and marked.
    parses
        .into_iter()
        .zip(contents)
        .map(|(parse, (_, content))| {
            let unread = || Parse { broken: true, unparsed: true, ..read_one(Language::Plain, content) };
            parse.unwrap_or_else(unread)
        })
        .collect()
}
