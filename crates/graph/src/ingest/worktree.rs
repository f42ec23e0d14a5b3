//! The files as they are: which ones count, and what they hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use git2::{ObjectType, Oid};
use rusqlite::{Connection, params};
use tgp_contract::{Code, LeftOutFiles, LeftOutReason, RelativePath, ToolError};
use tgp_fs::{Directory, HardLinks, Stamp};

use super::blobs::{Content, Keep, ParseCache};
use super::ignores::Ignores;
use super::language::{Language, file_name, has_chronicle_content, is_chronicle, join, parent};
use super::link::pattern::Pattern;
use super::parse::MAX_BLOB_BYTES;
use super::repository::{Changed, blob_of};
use super::state::{Blob, State};
use crate::tables::failure::GraphError;

/// More files than any project has; beyond, the walk has gone astray.
pub(crate) const MAX_FILES: usize = 500_000;

/// Names of a directory that are searched for one import.
const MAX_LISTED: usize = 20_000;

/// Names below a directory that are searched for one pattern.
const MAX_BELOW: usize = 100_000;

/// Files that are in memory at once while they are hashed.
const MAX_AT_ONCE: usize = 128;

/// The project's files, as they are on the disk.
pub(crate) struct WorkTree<'p> {
    pub(crate) project: &'p Path,
    /// Files that git knows: they count though they are ignored.
    pub(crate) tracked: Arc<BTreeSet<String>>,
    pub(crate) ignores: Ignores<'p>,
    /// Files that a sparse checkout leaves out: they are not on the disk, and not deleted.
    pub(crate) absent: BTreeMap<String, Blob>,
}

/// A file that was met on the walk.
pub(crate) struct WalkedFile {
    pub(crate) path: String,
    stamp: Stamp,
}

impl WalkedFile {
    /// The file at a path of the project; none where there is no plain one.
    pub(crate) fn at(project: &Path, path: &str) -> Option<Self> {
        let stamp = stamp_of(&open(&Directory::open(project).ok()?, path)?)?;
        Some(Self { path: path.to_owned(), stamp })
    }
}

/// The files on the disk that an import may mean which would lead to `target`: that file, one with another extension,
/// or the index files of a directory.
pub(crate) fn meant(project: &Path, target: &str) -> Vec<String> {
    let (directory, name) = (parent(target), file_name(target));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let names = |directory: &str| -> Vec<String> {
        let rows = std::fs::read_dir(project.join(directory)).into_iter().flatten().flatten();
        rows.take(MAX_LISTED).filter_map(|row| row.file_name().into_string().ok()).collect()
    };
    let is_named = |other: &String| {
        [name, stem]
            .iter()
            .any(|own| other.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let beside = names(directory).into_iter().filter(is_named).map(|name| join(directory, &name));
    let is_entry = |name: &String| {
        name.starts_with("index.")
            || matches!(name.as_str(), "__init__.py" | "mod.rs")
            || name.ends_with(".go")
    };
    let inside = names(target).into_iter().filter(is_entry).map(|name| join(target, &name));
    beside.chain(inside).collect()
}

/// The files on the disk that a pattern means. Installed packages and directories of repositories are not looked into.
pub(crate) fn below(project: &Path, pattern: &Pattern) -> Result<Vec<String>, GraphError> {
    let mut found = Vec::new();
    let mut directories = vec![pattern.directory.clone()];
    let mut looked_at = 0;
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(project.join(&directory)) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > MAX_BELOW {
                let message = format!("a pattern of an import is about more than {MAX_BELOW} files");
                return Err(ToolError::new(Code::Budget, message)
                    .help("let the pattern begin with a directory that has fewer files below it")
                    .into());
            }
            let name = entry.file_name();
            let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { continue };
            let path = join(&directory, name);
            if kind.is_dir() && ![".git", "node_modules"].contains(&name) {
                directories.push(path);
            } else if kind.is_file() && pattern.means(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// What differs from a state of the tree.
pub(crate) struct Differences {
    pub(crate) changes: Vec<Changed>,
    /// Blobs that were read.
    pub(crate) parsed: u64,
    /// Files and directories that can be neither named nor opened.
    pub(crate) left_out: LeftOutFiles,
}

impl WorkTree<'_> {
    fn has_tracked(&self, directory: &str) -> bool {
        let below = format!("{directory}/");
        self.tracked.range(below.clone()..).next().is_some_and(|path| path.starts_with(&below))
    }

    /// Returns the files that count, by their paths, and those that can be neither named nor opened.
    pub(crate) fn walk(&self) -> Result<(Vec<WalkedFile>, LeftOutFiles), GraphError> {
        let mut met: BTreeMap<String, WalkedFile> = BTreeMap::new();
        let mut left_out = LeftOutFiles::default();
        let mut directories = vec![String::new()];
        let is_tracked = |directory: &str| self.has_tracked(directory);
        while let Some(directory) = directories.pop() {
            let entries = match std::fs::read_dir(self.project.join(&directory)) {
                Ok(entries) => entries,
                Err(error) => {
                    if error.kind() == ErrorKind::PermissionDenied {
                        left_out.add(directory, LeftOutReason::Permission);
                    }
                    continue;
                }
            };
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                let Some(name) = name.to_str() else {
                    let shown = join(&directory, &name.to_string_lossy());
                    let is_code = kind.is_file() && !self.ignores.leaves_out_file(&shown)
                        || kind.is_dir() && !self.ignores.leaves_out_directory(&shown, &is_tracked);
                    if is_code {
                        left_out.add(shown, LeftOutReason::Name);
                    }
                    continue;
                };
                let path = join(&directory, name);
                if kind.is_dir() {
                    if !self.ignores.leaves_out_directory(&path, &is_tracked) {
                        directories.push(path);
                    }
                } else if kind.is_file()
                    && !self.ignores.leaves_out_file(&path)
                    && !is_chronicle(&path, || has_chronicle_content(&entry.path()))
                {
                    let Ok(metadata) = entry.metadata() else { continue };
                    met.insert(path.clone(), WalkedFile { path, stamp: Stamp::of(&metadata) });
                }
            }
            if met.len().max(directories.len()) > MAX_FILES {
                return Err(ToolError::new(
                    Code::Validation,
                    format!("the project has more than {MAX_FILES} files"),
                )
                .help("let a `.gitignore` name what is not source")
                .into());
            }
        }
        for path in self.tracked.iter() {
            if !met.contains_key(path)
                && let Some(file) = WalkedFile::at(self.project, path)
            {
                met.insert(path.clone(), file);
            }
        }
        Ok((met.into_values().collect(), left_out))
    }

    /// What differs from `state`; blobs that were never read are read.
    pub(crate) fn changes(
        &self,
        connection: &Connection,
        state: &State,
        parses: &mut ParseCache,
    ) -> Result<Differences, GraphError> {
        let known = known(connection)?;
        let (met, mut left_out) = self.walk()?;
        let mut blobs: BTreeMap<String, Blob> = BTreeMap::new();
        let mut unsure: Vec<&WalkedFile> = Vec::new();
        for file in &met {
            match known.get(&file.path) {
                Some((seen, blob)) if *seen == sight(&file.stamp) => {
                    blobs.insert(file.path.clone(), *blob);
                }
                _ => unsure.push(file),
            }
        }
        let parsed = read(self.project, connection, parses, &unsure, &mut blobs)?;
        for file in met.iter().filter(|file| !blobs.contains_key(&file.path)) {
            // A file that is gone meanwhile is not left out.
            if self.project.join(&file.path).symlink_metadata().is_ok_and(|data| data.is_file()) {
                left_out.add(file.path.clone(), LeftOutReason::Permission);
            }
        }
        for (path, blob) in &self.absent {
            blobs.entry(path.clone()).or_insert(*blob);
        }
        // A settled file whose parse was thrown away with an old form is read once more.
        let mut changes: Vec<Changed> = Vec::new();
        for (path, blob) in &blobs {
            if state.file(path).is_none_or(|file| file.blob != *blob) {
                changes.push(Changed { path: path.clone(), blob: Some(*blob) });
            }
        }
        for path in state.files().keys().filter(|path| !blobs.contains_key(*path)) {
            changes.push(Changed { path: path.clone(), blob: None });
        }
        let gone = known.keys().filter(|path| !blobs.contains_key(*path));
        for path in gone {
            connection.prepare_cached("DELETE FROM stat WHERE path = ?1")?.execute([path])?;
        }
        changes.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(Differences { changes, parsed, left_out })
    }
}

impl WorkTree<'_> {
    /// Returns the files that are left out when all others are exactly `files`. Nothing is written.
    pub(crate) fn left_out_if_same(
        &self,
        connection: &Connection,
        files: &BTreeMap<String, Blob>,
    ) -> Result<Option<LeftOutFiles>, GraphError> {
        let root = open_root(self.project)?;
        let known = known(connection)?;
        let (met, left_out) = self.walk()?;
        let absent = self
            .absent
            .iter()
            .filter(|(path, _)| met.binary_search_by(|file| file.path.as_str().cmp(path.as_str())).is_err());
        let mut count = met.len();
        for (path, blob) in absent {
            count += 1;
            if files.get(path) != Some(blob) {
                return Ok(None);
            }
        }
        // What is there and what is gone is seen before anything is read.
        if count != files.len() || met.iter().any(|file| !files.contains_key(&file.path)) {
            return Ok(None);
        }
        for file in &met {
            let blob = match known.get(&file.path) {
                Some((seen, blob)) if *seen == sight(&file.stamp) => Some(*blob),
                _ => read_file(&root, file)?.map(|(blob, _)| blob),
            };
            if blob.as_ref() != files.get(&file.path) {
                return Ok(None);
            }
        }
        Ok(Some(left_out))
    }
}

fn open_root(project: &Path) -> Result<Directory, ToolError> {
    Directory::open(project).map_err(|error| {
        let message = format!("the project `{}` cannot be opened: {error}", project.display());
        ToolError::new(Code::Permission, message).help("see that the directory is there and can be read")
    })
}

/// Opens a regular file that no link leads to.
fn open(project: &Directory, path: &str) -> Option<File> {
    let path = RelativePath::new(path).ok()?;
    project.descend(&path.parent()).ok()?.open_file(path.name()?, HardLinks::Read).ok()
}

fn stamp_of(file: &File) -> Option<Stamp> {
    Some(Stamp::of(&file.metadata().ok()?))
}

/// What a changed file cannot keep.
fn sight(stamp: &Stamp) -> String {
    format!("{}:{}:{}:{}:{}", stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.device, stamp.inode)
}

fn known(connection: &Connection) -> Result<HashMap<String, (String, Blob)>, GraphError> {
    let mut statement = connection.prepare_cached("SELECT path, seen, blob FROM stat")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads files, a bounded number at once. Returns how many of their blobs were never read before.
pub(crate) fn read(
    project: &Path,
    connection: &Connection,
    parses: &mut ParseCache,
    files: &[&WalkedFile],
    blobs: &mut BTreeMap<String, Blob>,
) -> Result<u64, GraphError> {
    let root = open_root(project)?;
    let mut parsed = 0;
    for chunk in files.chunks(MAX_AT_ONCE) {
        parsed += read_chunk(&root, connection, parses, chunk, blobs)?;
    }
    Ok(parsed)
}

/// Hashes and parses the same bytes, so that no other content can get into the memory of a blob.
fn read_chunk(
    project: &Directory,
    connection: &Connection,
    parses: &mut ParseCache,
    chunk: &[&WalkedFile],
    blobs: &mut BTreeMap<String, Blob>,
) -> Result<u64, GraphError> {
    let mut contents: HashMap<Blob, Content> = HashMap::new();
    let mut wanted = Vec::new();
    for file in chunk {
        let Some((blob, content)) = read_file(project, file)? else { continue };
        blobs.insert(file.path.clone(), blob);
        wanted.push((blob, Language::of(&file.path)));
        contents.insert(blob, content);
        let sql = if file.stamp.is_settled(SystemTime::now()) {
            "INSERT OR REPLACE INTO stat (path, seen, blob) VALUES (?1, ?2, ?3)"
        } else {
            "DELETE FROM stat WHERE path = ?1 AND ?2 <> '' AND ?3 IS NOT NULL"
        };
        connection.prepare_cached(sql)?.execute(params![file.path, sight(&file.stamp), blob])?;
    }
    parses.read(connection, wanted, Keep::InStore, |blob| {
        Ok(contents.get(&blob).map_or(Content::TooLarge(0), Content::share))
    })
}

/// The id of a file's content, and the content; none when the file is gone meanwhile.
fn read_file(project: &Directory, file: &WalkedFile) -> Result<Option<(Blob, Content)>, GraphError> {
    let Some(opened) = open(project, &file.path) else { return Ok(None) };
    if file.stamp.size <= MAX_BLOB_BYTES as u64 {
        let mut bytes = Vec::new();
        // It may have grown since it was met; then its size is all that counts.
        if (&opened).take(MAX_BLOB_BYTES as u64 + 1).read_to_end(&mut bytes).is_err() {
            return Ok(None);
        }
        if bytes.len() <= MAX_BLOB_BYTES {
            return Ok(Some((hash(&bytes)?, Content::Bytes(bytes.into()))));
        }
    }
    let size = opened.metadata().map_or(file.stamp.size, |data| data.len());
    // Through the handle: what has the file's name by now may be another one.
    let handles = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    match Oid::hash_file(ObjectType::Blob, format!("{handles}/{}", opened.as_raw_fd())) {
        Ok(id) => Ok(Some((blob_of(id), Content::TooLarge(size)))),
        Err(_) => Ok(None),
    }
}

pub(crate) fn hash(bytes: &[u8]) -> Result<Blob, GraphError> {
    Ok(blob_of(Oid::hash_object(ObjectType::Blob, bytes)?))
}
