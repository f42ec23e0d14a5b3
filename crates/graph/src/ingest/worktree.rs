//! The files as they are: which ones count, and what they hold.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{ObjectType, Oid};
use ignore::WalkBuilder;
use ignore::gitignore::GitignoreBuilder;
use rusqlite::{Connection, params};
use tgp_contract::{Code, ToolError};

use super::blobs::{Content, Parses};
use super::language::Language;
use super::parse::MAX_BLOB_BYTES;
use super::repository::{Changed, blob_of};
use super::state::{Blob, State};
use crate::store::failure::GraphError;

/// Directories that are never part of a project's own code, whatever is ignored.
const NEVER: [&str; 4] = [".git", ".tgp", "node_modules", "target"];

/// More files than any project has; beyond, the walk has gone astray.
const MAX_FILES: usize = 500_000;

/// Files that are in memory at once while they are hashed.
const MAX_AT_ONCE: usize = 128;

/// A file that was changed so shortly before it was hashed could change again without a trace in its times.
const SETTLED: Duration = Duration::from_secs(2);

/// The project's files, as they are on the disk.
pub(crate) struct WorkTree<'p> {
    pub(crate) project: &'p Path,
    /// Files of the commit below: they count though they are ignored.
    pub(crate) committed: HashSet<String>,
}

/// A file that was met on the walk.
struct Met {
    path: String,
    place: PathBuf,
    metadata: Metadata,
}

impl WorkTree<'_> {
    fn walk(&self) -> Result<Vec<Met>, GraphError> {
        let mut met = Vec::new();
        let mut seen = HashSet::new();
        let walk = WalkBuilder::new(self.project)
            .hidden(false)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .filter_entry(|entry| {
                let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                let never = entry.file_name().to_str().is_some_and(|name| NEVER.contains(&name));
                entry.depth() == 0 || !(never && (directory || entry.file_name() == ".git"))
            })
            .build();
        for entry in walk {
            // What cannot be read is not there for git either.
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            let place = entry.into_path();
            let path = place.strip_prefix(self.project).ok().and_then(Path::to_str).map(str::to_owned);
            if let Some(path) = path {
                seen.insert(path.clone());
                met.push(Met { path, place, metadata });
            }
            if met.len() > MAX_FILES {
                return Err(ToolError::new(
                    Code::Validation,
                    format!("the project has more than {MAX_FILES} files"),
                )
                .help("let a `.gitignore` name what is not source")
                .into());
            }
        }
        for path in self.committed.iter().filter(|path| !seen.contains(*path)) {
            let place = self.project.join(path);
            if let Some(metadata) = plain_file(self.project, &place) {
                met.push(Met { path: path.clone(), place, metadata });
            }
        }
        met.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(met)
    }

    /// What differs from `state`; blobs that were never read are read. Answers also how many those were.
    pub(crate) fn changes(
        &self,
        connection: &Connection,
        state: &State,
        parses: &mut Parses,
    ) -> Result<(Vec<Changed>, u64), GraphError> {
        let known = known(connection)?;
        let met = self.walk()?;
        let mut blobs: BTreeMap<String, Blob> = BTreeMap::new();
        let mut unsure: Vec<&Met> = Vec::new();
        for file in &met {
            match known.get(&file.path) {
                Some((seen, blob)) if *seen == sight(&file.metadata) => {
                    blobs.insert(file.path.clone(), *blob);
                }
                _ => unsure.push(file),
            }
        }
        let mut parsed = 0;
        for chunk in unsure.chunks(MAX_AT_ONCE) {
            parsed += read_chunk(connection, parses, chunk, &mut blobs)?;
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
        Ok((changes, parsed))
    }
}

/// A regular file that no link leads to.
fn plain_file(project: &Path, place: &Path) -> Option<Metadata> {
    let metadata = place.symlink_metadata().ok().filter(Metadata::is_file)?;
    let parent = place.parent()?;
    let inside = parent.strip_prefix(project).ok()?;
    let real = parent.canonicalize().ok()?;
    (real == project.canonicalize().ok()?.join(inside)).then_some(metadata)
}

/// What a changed file cannot keep.
fn sight(metadata: &Metadata) -> String {
    format!(
        "{}:{}.{}:{}.{}:{}",
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        metadata.ino()
    )
}

fn is_settled(metadata: &Metadata) -> bool {
    let newest = metadata.mtime().max(metadata.ctime());
    let newest = UNIX_EPOCH + Duration::from_secs(u64::try_from(newest).unwrap_or(0));
    SystemTime::now().duration_since(newest).is_ok_and(|age| age > SETTLED)
}

fn known(connection: &Connection) -> Result<HashMap<String, (String, Blob)>, GraphError> {
    let mut statement = connection.prepare_cached("SELECT path, seen, blob FROM stat")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Hashes and parses the same bytes, so that no other content can get into the memory of a blob.
fn read_chunk(
    connection: &Connection,
    parses: &mut Parses,
    chunk: &[&Met],
    blobs: &mut BTreeMap<String, Blob>,
) -> Result<u64, GraphError> {
    let mut contents: HashMap<Blob, Content> = HashMap::new();
    let mut wanted = Vec::new();
    for file in chunk {
        let Some((blob, content)) = read_file(file)? else { continue };
        blobs.insert(file.path.clone(), blob);
        wanted.push((blob, Language::of(&file.path)));
        contents.insert(blob, content);
        let sql = if is_settled(&file.metadata) {
            "INSERT OR REPLACE INTO stat (path, seen, blob) VALUES (?1, ?2, ?3)"
        } else {
            "DELETE FROM stat WHERE path = ?1 AND ?2 <> '' AND ?3 IS NOT NULL"
        };
        connection.prepare_cached(sql)?.execute(params![file.path, sight(&file.metadata), blob])?;
    }
    parses
        .read(connection, wanted, |blob| Ok(contents.get(&blob).map_or(Content::TooLarge(0), Content::share)))
}

/// The id of a file's content, and the content; none when the file is gone meanwhile.
fn read_file(file: &Met) -> Result<Option<(Blob, Content)>, GraphError> {
    if usize::try_from(file.metadata.len()).is_ok_and(|size| size <= MAX_BLOB_BYTES) {
        return match std::fs::read(&file.place) {
            Ok(bytes) if bytes.len() > MAX_BLOB_BYTES => {
                let size = bytes.len() as u64;
                Ok(Some((hash(&bytes)?, Content::TooLarge(size))))
            }
            Ok(bytes) => Ok(Some((hash(&bytes)?, Content::Bytes(bytes.into())))),
            Err(_) => Ok(None),
        };
    }
    match Oid::hash_file(ObjectType::Blob, &file.place) {
        Ok(id) => Ok(Some((blob_of(id), Content::TooLarge(file.metadata.len())))),
        Err(_) => Ok(None),
    }
}

pub(crate) fn hash(bytes: &[u8]) -> Result<Blob, GraphError> {
    Ok(blob_of(Oid::hash_object(ObjectType::Blob, bytes)?))
}

/// Whether a file that is not there yet would be passed over: by its directory's name, or by an ignore file.
pub(crate) fn is_ignored(project: &Path, root: Option<&Path>, path: &str) -> bool {
    if path.split('/').any(|name| name == ".git") {
        return true;
    }
    let directories: Vec<&str> = path.split('/').collect();
    let directories = directories.split_last().map_or(&[][..], |(_, directories)| directories);
    if directories.iter().any(|name| NEVER.contains(name)) {
        return true;
    }
    let place = project.join(path);
    let top = root.filter(|root| project.starts_with(root)).unwrap_or(project);
    let mut directory = place.parent();
    while let Some(here) = directory.filter(|here| here.starts_with(top)) {
        // The more particular file is asked first, and within a directory `.ignore`.
        for name in [".ignore", ".gitignore", ".git/info/exclude"] {
            let file = here.join(name);
            if !file.is_file() {
                continue;
            }
            let mut builder = GitignoreBuilder::new(here);
            builder.add(&file);
            if let Ok(rules) = builder.build() {
                let verdict = rules.matched_path_or_any_parents(&place, false);
                if verdict.is_ignore() {
                    return true;
                }
                if verdict.is_whitelist() {
                    return false;
                }
            }
        }
        directory = here.parent();
    }
    false
}
