//! An environment such as `.venv`, read as data: its version of Python, and what is installed in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::str::FromStr;

use pep440_rs::Version;
use tgp_contract::{EntryKind, FsError, RelativePath};
use tgp_fs::{Directory, HardLinks};

use crate::layout::{LIST, Layout, SETTINGS, in_environment};
use crate::metadata::{self, Metadata};
use crate::record::{self, Record};
use crate::{EnvironmentError, Name};

const MAX_SETTINGS_BYTES: u64 = 64 << 10;
/// Files and directories directly in one directory.
const MAX_ENTRIES: usize = 20_000;
/// Bytes of the lists of files of all distributions.
const MAX_RECORD_BYTES: u64 = 64 << 20;
/// Rows of these lists: each takes much more memory than its bytes.
const MAX_RECORD_ROWS: usize = 500_000;
const MAX_DISTRIBUTIONS: usize = 2000;

/// An existing environment. Nothing in it is executed, and no link in it is followed.
pub struct Environment {
    pub(crate) root: Directory,
    pub(crate) layout: Layout,
    python: (u64, u64),
    pub(crate) distributions: Vec<InstalledDistribution>,
    pub(crate) list: String,
}

/// What is installed in an environment, by its metadata.
#[derive(Clone, Debug)]
pub struct InstalledDistribution {
    pub(crate) name: Name,
    pub(crate) version: Version,
    /// The name of its `.dist-info`.
    pub(crate) dist_info: String,
    /// Its files, relative to the environment.
    pub(crate) record: Record,
}

impl InstalledDistribution {
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }
}

impl Environment {
    /// # Errors
    /// For a directory that is not an environment, and for one that is too large to be read.
    pub fn read(root: Directory, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        let refused = |why: &str| EnvironmentError::NotAnEnvironment(why.to_owned());
        let settings =
            content(&root, SETTINGS, MAX_SETTINGS_BYTES)?.ok_or_else(|| refused("it has no `pyvenv.cfg`"))?;
        let settings = settings_of(&String::from_utf8_lossy(&settings));
        let python = python(&root)?;
        let layout = Layout::new(python);
        let version = settings.get("version").or_else(|| settings.get("version_info"));
        if version.and_then(|version| minor_version(version)).is_some_and(|version| version != python) {
            return Err(refused("its `pyvenv.cfg` names another version of Python than its `lib`"));
        }
        let list = content(&root, LIST, record::MAX_BYTES)?.unwrap_or_default();
        let list = String::from_utf8_lossy(&list).into_owned();
        let mut environment = Self { root, layout, python, distributions: Vec::new(), list };
        environment.read_distributions(stop)?;
        Ok(environment)
    }

    fn read_distributions(&mut self, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        let site_packages =
            self.root.descend(&RelativePath::new(self.layout.site_packages()).map_err(FsError::from)?)?;
        let (mut bytes, mut rows) = (0, 0);
        for entry in site_packages.entries(MAX_ENTRIES)?.entries {
            if stop() {
                return Err(EnvironmentError::Stopped);
            }
            let name = entry.path.name().unwrap_or_default();
            // A link could give one package the metadata of another one.
            if !name.ends_with(".dist-info") || entry.kind != EntryKind::Directory {
                continue;
            }
            let Some(directory) = site_packages.step(name)? else { continue };
            let Some(text) = content(&directory, "METADATA", metadata::MAX_BYTES)? else { continue };
            // What an interrupted installation has left is not installed.
            let Ok(metadata) = Metadata::parse(&text) else { continue };
            let record = content(&directory, "RECORD", record::MAX_BYTES)?.unwrap_or_default();
            bytes += record.len() as u64;
            if bytes > MAX_RECORD_BYTES {
                let what = "the length of all lists of files";
                return Err(EnvironmentError::Limit { what, limit: MAX_RECORD_BYTES });
            }
            let record = record::parse(&record).unwrap_or_default();
            rows += record.len();
            if rows > MAX_RECORD_ROWS {
                let what = "the number of installed files";
                return Err(EnvironmentError::Limit { what, limit: MAX_RECORD_ROWS as u64 });
            }
            let site_packages = self.layout.site_packages();
            let inside =
                |(path, checksum): (String, _)| Some((in_environment(&path, site_packages)?, checksum));
            self.distributions.push(InstalledDistribution {
                name: metadata.name,
                version: metadata.version,
                dist_info: name.to_owned(),
                record: record.into_iter().filter_map(inside).collect(),
            });
            if self.distributions.len() > MAX_DISTRIBUTIONS {
                let what = "the number of installed packages";
                return Err(EnvironmentError::Limit { what, limit: MAX_DISTRIBUTIONS as u64 });
            }
        }
        self.distributions.sort_by(|one, other| one.dist_info.cmp(&other.dist_info));
        Ok(())
    }

    /// Major and minor version of Python.
    #[must_use]
    pub fn python(&self) -> (u64, u64) {
        self.python
    }

    #[must_use]
    pub fn distributions(&self) -> &[InstalledDistribution] {
        &self.distributions
    }
}

/// The only `lib/pythonX.Y` with a `site-packages`.
fn python(root: &Directory) -> Result<(u64, u64), EnvironmentError> {
    let refused = |why: &str| EnvironmentError::NotAnEnvironment(why.to_owned());
    let library = root.step("lib")?.ok_or_else(|| refused("it has no `lib`"))?;
    let mut found = None;
    for entry in library.entries(MAX_ENTRIES)?.entries {
        let name = entry.path.name().unwrap_or_default();
        let Some(version) = name.strip_prefix("python").and_then(minor_version) else { continue };
        if entry.kind != EntryKind::Directory || name != format!("python{}.{}", version.0, version.1) {
            continue;
        }
        let Some(inside) = library.step(name)? else { continue };
        if inside.step("site-packages")?.is_none() {
            continue;
        }
        if found.replace(version).is_some() {
            return Err(refused("its `lib` has more than one version of Python"));
        }
    }
    found.ok_or_else(|| refused("its `lib` has no `pythonX.Y/site-packages`"))
}

/// `3.11` of `3.11.7`.
pub(crate) fn minor_version(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.split('.');
    Some((u64::from_str(parts.next()?).ok()?, u64::from_str(parts.next()?).ok()?))
}

fn settings_of(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (name, value) = line.split_once('=')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

/// The content of a plain file; none where there is none.
pub(crate) fn content(
    directory: &Directory,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, EnvironmentError> {
    let Some(file) = open(directory, name)? else { return Ok(None) };
    let mut content = Vec::new();
    let source = |source| FsError::Io { path: directory.path().clone(), source };
    file.take(most + 1).read_to_end(&mut content).map_err(source)?;
    if content.len() as u64 > most {
        return Err(EnvironmentError::Limit { what: "the length of a list or of metadata", limit: most });
    }
    Ok(Some(content))
}

pub(crate) fn open(directory: &Directory, name: &str) -> Result<Option<File>, EnvironmentError> {
    // Other managers fill environments with links to their caches.
    match directory.open_file(name, HardLinks::Read) {
        Ok(file) => Ok(Some(file)),
        Err(FsError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
