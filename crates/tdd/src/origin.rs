//! Where the lines of a new file come from: a file that is moved or split off is no new code.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tgp_contract::{RelativePath, Root};

use crate::machine::FileHashes;
use crate::rules::{Contents, Origin, Write};
use crate::{FileHasher, WriteKind};

/// How many of a hundred lines have to be known.
const KNOWN_PERCENT: usize = 80;

/// A larger file is not compared, and so is new.
const MAX_NEW_BYTES: usize = 1 << 20;

/// The most bytes that are read for one comparison. What is beyond is not known.
const MAX_READ_BYTES: usize = 64 << 20;

/// The new files of one call, and what they are made of.
pub(crate) struct Origins<'a> {
    /// Hashes of the files of the last green run that the call deletes.
    deleted: BTreeSet<String>,
    /// The first file that is not simply moved. Others have to wait for the next green run.
    split_off: Option<&'a RelativePath>,
}

impl<'a> Origins<'a> {
    /// `writes` are all files of the call, `is_code` says which of them are code of the scope, and `seen` are the files of the
    /// last green run. A file that was not among them, such as one that git ignores, is new wherever it is moved.
    pub(crate) fn of_call(
        writes: &'a [Write],
        is_code: &dyn Fn(&Write) -> bool,
        seen: &FileHashes,
        current: &dyn FileHasher,
    ) -> Self {
        let code = || writes.iter().filter(|write| is_code(write));
        let deleted: BTreeSet<String> = code()
            .filter(|write| write.kind == WriteKind::Delete)
            .filter_map(|write| {
                let hash = current.hash(write.root, &write.path)?;
                (seen.get(&write.path)? == &Some(hash.clone())).then_some(hash)
            })
            .collect();
        let split_off = code()
            .filter(|write| write.kind == WriteKind::Create)
            .find(|write| !is_moved(&deleted, write))
            .map(|write| &write.path);
        Self { deleted, split_off }
    }

    /// Where one of them comes from. `seen` are the files of the last green run.
    pub(crate) fn of_file(&self, write: &Write, seen: &FileHashes, current: &dyn FileHasher) -> Origin {
        match &write.after {
            Contents::Unknown => Origin::New,
            Contents::JudgedLater => Origin::JudgedLater,
            Contents::Known(_) if is_moved(&self.deleted, write) => Origin::Moved,
            Contents::Known(content) => {
                let is_first = self.split_off == Some(&write.path);
                if is_first && has_known_lines(write.root, &write.path, content, seen, current) {
                    Origin::KnownLines
                } else {
                    Origin::New
                }
            }
        }
    }
}

fn is_moved(deleted: &BTreeSet<String>, write: &Write) -> bool {
    match &write.after {
        Contents::Known(content) => deleted.contains(&tgp_contract::canonical::sha256_hex(content)),
        Contents::Unknown | Contents::JudgedLater => false,
    }
}

fn has_known_lines(
    root: Root,
    path: &RelativePath,
    content: &[u8],
    seen: &FileHashes,
    current: &dyn FileHasher,
) -> bool {
    if content.len() > MAX_NEW_BYTES {
        return false;
    }
    let text = String::from_utf8_lossy(content);
    // A line counts as often as it is there: otherwise one known line, repeated, would cover any amount of new code.
    let mut wanted: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    // By lines, and by bytes as well: one line can hold any amount of code.
    let (mut lines, mut line_bytes) = (0, 0);
    for line in telling(&text) {
        *wanted.entry(without_place(line)).or_default() += 1;
        lines += 1;
        line_bytes += line.len();
    }
    // Python's packages have an empty file; another one would only wait to be filled.
    if lines == 0 {
        return content.is_empty() && path.name() == Some("__init__.py");
    }
    let share = |all: usize| (all * KNOWN_PERCENT).div_ceil(100);
    let (needed, needed_bytes) = (share(lines), share(line_bytes));
    let (mut known, mut known_bytes, mut read) = (0, 0, 0);
    for file in nearest_first(path, seen) {
        if known >= needed && known_bytes >= needed_bytes {
            break;
        }
        // A file that the caller may not read tells nothing, or guesses at its lines could be tried out.
        if !current.shows(root, file) {
            continue;
        }
        let Some(bytes) = current.read(root, file) else { continue };
        read += bytes.len();
        if read > MAX_READ_BYTES {
            return false;
        }
        for line in telling(&String::from_utf8_lossy(&bytes)) {
            if let Some(left) = wanted.get_mut(without_place(line).as_ref())
                && *left > 0
            {
                *left -= 1;
                known += 1;
                known_bytes += line.len();
            }
        }
    }
    known >= needed && known_bytes >= needed_bytes
}

/// The longest line without a letter or digit that says nothing. Code can be written without either.
const MAX_BRACES: usize = 4;

/// Lines that say something: braces and blank lines are in every file. Some languages end a line with a lone carriage return.
fn telling(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split(['\n', '\r']).map(str::trim);
    lines.filter(|line| line.len() > MAX_BRACES || line.chars().any(char::is_alphanumeric))
}

/// A line that imports from a relative path, without that path: a moved file reaches the same modules by another one.
fn without_place(line: &str) -> Cow<'_, str> {
    let place = || {
        let imports = line.starts_with("import ") || line.starts_with("export ");
        let (names, from) = line.rsplit_once(" from ").filter(|_| imports)?;
        let from = from.strip_suffix(';').unwrap_or(from);
        let quote = from.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let path = from.strip_prefix(quote)?.strip_suffix(quote)?;
        (path.starts_with('.') && !path.contains([quote, '\\'])).then_some(names)
    };
    place().map_or(Cow::Borrowed(line), |names| Cow::Owned(format!("{names} from .")))
}

/// The files of the run, those first that the new one was probably made of.
fn nearest_first<'s>(path: &RelativePath, seen: &'s FileHashes) -> Vec<&'s RelativePath> {
    let extension = |path: &RelativePath| {
        path.name().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension.to_owned())
    };
    let (folder, own) = (path.parent(), extension(path));
    let mut files: Vec<&RelativePath> =
        seen.iter().filter(|(_, hash)| hash.is_some()).map(|(path, _)| path).collect();
    files.sort_by_key(|file| (extension(file) != own, file.parent() != folder));
    files
}
