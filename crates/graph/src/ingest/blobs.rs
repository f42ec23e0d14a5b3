//! What was read from blobs, each one once for all; new ones are read on all cores.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use tgp_fs::RepositoryAccess;

use super::language::Language;
use super::parse::{Parse, STACK_BYTES};
use super::repository::Repo;
use super::state::Blob;
use crate::tables::failure::GraphError;

/// Results that are kept in memory in each of two generations; the rest is read from the store again.
const MAX_KEPT: usize = 4096;

/// Bytes of the blobs whose results are in one generation: what was read takes about as much as the source.
const MAX_KEPT_BYTES: u64 = 32 << 20;

/// Blobs that are in memory at once while they are read. With [`super::parse::MAX_BLOB_BYTES`] each, and most of them
/// far smaller.
const MAX_AT_ONCE: usize = 128;

/// More threads would only wait for the one that writes.
const MAX_THREADS: usize = 8;

/// A blob as one reader reads it.
pub(crate) type BlobKey = (Blob, Language);

/// Where what was read from blobs stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// In the store: for what is current, which is asked for again and again.
    InStore,
    /// In memory alone: for history, in which a blob is there for some commits. It is read from git again.
    InMemory,
}

#[derive(Default)]
pub(crate) struct ParseCache {
    young: HashMap<BlobKey, Arc<Parse>>,
    /// Bytes of the blobs that are in it.
    bytes: u64,
    old: HashMap<BlobKey, Arc<Parse>>,
    /// Where blobs are read again that are neither in memory nor in the store.
    objects: Option<Repo>,
    /// What was read since the last transaction ended. Where it is undone, they are not in the store.
    fresh: Vec<BlobKey>,
}

impl ParseCache {
    /// Gives the repository from which blobs are read again.
    pub(crate) fn read_from(&mut self, project: &Path, access: &RepositoryAccess) -> Result<(), GraphError> {
        if !self.objects.as_ref().is_some_and(Repo::is_current) {
            self.objects = Repo::open(project, access)?;
        }
        Ok(())
    }

    /// What was read from a blob. It must have been read: what is nowhere is an empty file.
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
                let again = || match &self.objects {
                    Some(repo) => Ok(read_all(&[(language, repo.content(blob)?)]).pop()),
                    None => Ok::<_, GraphError>(None),
                };
                Arc::new(parse.map_or_else(again, |parse| Ok(Some(parse)))?.unwrap_or_default())
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
        if self.young.len() >= MAX_KEPT || self.bytes >= MAX_KEPT_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        // A file that is not code has no symbols: its result is small, whatever its size.
        if key.1 != Language::Plain && !parse.unparsed {
            self.bytes += parse.bytes;
        }
        self.young.insert(key, parse);
    }

    /// Reads the blobs that were never read. `content` gives the bytes of one, or its size where it is too large; it
    /// is called by one thread alone. Returns how many were read.
    pub(crate) fn read(
        &mut self,
        connection: &Connection,
        wanted: Vec<BlobKey>,
        keep: Keep,
        content: impl FnMut(Blob) -> Result<Content, GraphError>,
    ) -> Result<u64, GraphError> {
        self.read_in_turn(connection, &[wanted], keep, content, |_, _| Ok(()))
    }

    /// Reads groups of blobs in their order, and does the work of each group as soon as its own are read: those of the groups
    /// behind it are read meanwhile.
    pub(crate) fn read_in_turn(
        &mut self,
        connection: &Connection,
        groups: &[Vec<BlobKey>],
        keep: Keep,
        mut content: impl FnMut(Blob) -> Result<Content, GraphError>,
        mut work: impl FnMut(&mut Self, usize) -> Result<(), GraphError>,
    ) -> Result<u64, GraphError> {
        let mut seen = HashSet::new();
        let mut missing = Vec::new();
        // How many of the missing ones are needed before the work of a group can be done.
        let mut needed = Vec::new();
        for group in groups {
            for key in group.iter().filter(|key| seen.insert(**key)) {
                if !self.is_held(connection, *key, keep)? {
                    missing.push(*key);
                }
            }
            needed.push(missing.len());
        }
        let mut turns = Turns { read: vec![false; missing.len()], ready: 0, next: 0 };
        read_each(&missing, &mut content, |index, parse| {
            if let Some(key) = missing.get(index) {
                let parse = Arc::new(parse);
                if keep == Keep::InStore {
                    self.store(connection, *key, &parse)?;
                }
                self.keep(*key, parse);
            }
            turns.done(index);
            while let Some(group) = turns.next(&needed) {
                work(self, group)?;
            }
            Ok(())
        })?;
        // Groups behind the last blob that had to be read. No group is left out, even if blobs were: they are read again.
        while turns.next < groups.len() {
            turns.next += 1;
            work(self, turns.next - 1)?;
        }
        Ok(missing.len() as u64)
    }

    /// Whether a blob was read, and is where it is to be kept.
    fn is_held(&mut self, connection: &Connection, key: BlobKey, keep: Keep) -> Result<bool, GraphError> {
        let held = self.young.get(&key).or_else(|| self.old.get(&key)).map(Arc::clone);
        if held.is_some() && keep == Keep::InMemory {
            return Ok(true);
        }
        let is_stored = connection
            .prepare_cached("SELECT 1 FROM parse WHERE blob = ?1 AND language = ?2")?
            .exists(params![key.0, key.1 as i64])?;
        if let Some(parse) = held.as_ref().filter(|_| !is_stored) {
            self.store(connection, key, parse)?;
        }
        Ok(is_stored || held.is_some())
    }

    fn store(&mut self, connection: &Connection, key: BlobKey, parse: &Parse) -> Result<(), GraphError> {
        connection
            .prepare_cached("INSERT OR IGNORE INTO parse (blob, language, data) VALUES (?1, ?2, ?3)")?
            .execute(params![key.0, key.1 as i64, postcard::to_stdvec(parse)?])?;
        self.fresh.push(key);
        Ok(())
    }
}

/// Which blobs are read, and which group is next.
struct Turns {
    read: Vec<bool>,
    /// All before this one are read.
    ready: usize,
    next: usize,
}

impl Turns {
    fn done(&mut self, index: usize) {
        if let Some(read) = self.read.get_mut(index) {
            *read = true;
        }
        while self.read.get(self.ready) == Some(&true) {
            self.ready += 1;
        }
    }

    /// The next group whose blobs are all read.
    fn next(&mut self, needed: &[usize]) -> Option<usize> {
        let group = self.next;
        (*needed.get(group)? <= self.ready).then(|| {
            self.next += 1;
            group
        })
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

/// One that fails over a file leaves it marked.
fn read_safely(language: Language, content: &Content) -> Parse {
    let unread = |_| Parse { broken: true, unparsed: true, ..read_one(Language::Plain, content) };
    catch_unwind(AssertUnwindSafe(|| read_one(language, content))).unwrap_or_else(unread)
}

pub(super) fn read_all(contents: &[(Language, Content)]) -> Vec<Parse> {
    let mut parses = Vec::new();
    std::thread::scope(|scope| {
        for (language, content) in contents {
            let read = move || read_safely(*language, content);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read);
            let parse = thread.ok().and_then(|thread| thread.join().ok());
            // Without a thread there is no room for code, which is deep.
            parses.push(parse.unwrap_or_else(|| Parse { unparsed: true, ..Parse::unread(*language, 0) }));
        }
    });
    parses
}

/// The place of a blob among the others, and what is to be read.
type Job = (usize, Language, Content);

/// Reads blobs on all cores, while this thread brings their bytes and takes what was read, in whatever order that is.
fn read_each(
    keys: &[BlobKey],
    content: &mut impl FnMut(Blob) -> Result<Content, GraphError>,
    mut take: impl FnMut(usize, Parse) -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    if keys.is_empty() {
        return Ok(());
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.min(MAX_THREADS).min(keys.len());
    let (send, jobs): (SyncSender<Job>, Receiver<Job>) = sync_channel(MAX_AT_ONCE);
    let jobs = Mutex::new(jobs);
    let (done, results) = channel();
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads {
            let (jobs, done) = (&jobs, done.clone());
            let work = move || {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((index, language, content)) = job else { break };
                    if done.send((index, read_safely(language, &content))).is_err() {
                        break;
                    }
                }
            };
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            started += usize::from(thread.is_ok());
        }
        drop(done);
        // The threads end when there is no one to send, whatever happens here.
        let send = send;
        let (mut keys, mut flying) = (keys.iter().enumerate(), 0);
        loop {
            while flying < MAX_AT_ONCE
                && let Some((index, (blob, language))) = keys.next()
            {
                let content = content(*blob)?;
                if started == 0 {
                    take(index, Parse::unread(*language, 0))?;
                } else if send.send((index, *language, content)).is_ok() {
                    flying += 1;
                }
            }
            if flying == 0 {
                return Ok(());
            }
            let Ok((index, parse)) = results.recv() else { return Ok(()) };
            flying -= 1;
            take(index, parse)?;
        }
    })
}
