//! A wheel: its name, its metadata and its list of files, which have to agree before one of them is unpacked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};
use sha2::{Digest, Sha256};

use crate::archive::{Archive, ArchiveEntry};
use crate::entry_points::{self, EntryPoint};
use crate::metadata::{self, Metadata};
use crate::record::{self, Checksum, Record};
use crate::{Name, WheelError};

/// Bytes that are read at a time. Whether to stop is asked between them.
const CHUNK: usize = 1 << 16;

/// A package of an index, checked but for the contents of its files: these are compared with its list when they are unpacked.
pub struct Wheel {
    archive: Archive,
    file_name: String,
    metadata: Metadata,
    dist_info: String,
    data: String,
    record: Record,
    checksum: Checksum,
}

impl Wheel {
    /// Opens a wheel. `stop` is asked again and again.
    ///
    /// # Errors
    /// For everything that an installer should not have to trust.
    pub fn open(mut file: File, file_name: &str, stop: &dyn Fn() -> bool) -> Result<Self, WheelError> {
        let (name, version) = of_file_name(file_name)?;
        let checksum = checksum_of_file(&mut file, stop)?;
        let mut archive = Archive::open(file, stop)?;
        let dist_info = dist_info(&archive, &name, &version)?;
        let stem = dist_info.strip_suffix(".dist-info").unwrap_or_default();
        let data = format!("{stem}.data");
        let content = archive.content(&format!("{dist_info}/METADATA"), metadata::MAX_BYTES)?;
        let metadata = Metadata::parse(&content)?;
        if metadata.name != name || metadata.version != version {
            let message = format!("it is {} {} by its METADATA", metadata.name, metadata.version);
            return Err(WheelError::Metadata(message));
        }
        metadata.refuse_addresses()?;
        metadata::check_wheel(&archive.content(&format!("{dist_info}/WHEEL"), metadata::MAX_BYTES)?)?;
        let content = archive.content(&format!("{dist_info}/RECORD"), record::MAX_BYTES)?;
        let record = record::parse(&content).map_err(WheelError::Record)?;
        let wheel =
            Self { archive, file_name: file_name.to_owned(), metadata, dist_info, data, record, checksum };
        wheel.check_record()?;
        Ok(wheel)
    }

    /// Every file is listed with a checksum, and everything that is listed is there.
    fn check_record(&self) -> Result<(), WheelError> {
        let refused =
            |path: &str, why: &str| WheelError::Record(format!("`{}` {why}", path.escape_default()));
        for path in self.archive.entries().keys().filter(|path| !self.is_signature(path)) {
            match self.record.get(path) {
                Some(Some(_)) => {}
                Some(None) => return Err(refused(path, "has no checksum")),
                None => return Err(refused(path, "is not listed")),
            }
        }
        match self.record.keys().find(|path| !self.archive.entries().contains_key(*path)) {
            Some(path) => Err(refused(path, "is listed, and is not there")),
            None => Ok(()),
        }
    }

    /// RECORD and its signatures, which cannot list themselves.
    fn is_signature(&self, path: &str) -> bool {
        let inside = path.strip_prefix(self.dist_info.as_str()).and_then(|inside| inside.strip_prefix('/'));
        matches!(inside, Some("RECORD" | "RECORD.jws" | "RECORD.p7s"))
    }

    #[must_use]
    pub fn name(&self) -> &Name {
        &self.metadata.name
    }

    #[must_use]
    pub fn version(&self) -> &Version {
        &self.metadata.version
    }

    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The versions of Python that it runs on; none where it does not say so.
    #[must_use]
    pub fn requires_python(&self) -> Option<VersionSpecifiers> {
        self.metadata.python()
    }

    /// What it depends on, as it is written. None of it is an address.
    #[must_use]
    pub fn requires(&self) -> &[String] {
        &self.metadata.requires
    }

    /// The names of the packages that it depends on, under whatever conditions.
    pub fn dependencies(&self) -> impl Iterator<Item = Name> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
        self.metadata.requires.iter().filter_map(move |text| {
            let text = text.trim_start();
            Name::new(text.split(|letter| !is_name(letter)).next().unwrap_or_default()).ok()
        })
    }

    /// How many files it has.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.archive.entries().len()
    }

    /// The SHA-256 of the file, in hexadecimal.
    #[must_use]
    pub fn checksum(&self) -> String {
        self.checksum.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn dist_info(&self) -> &str {
        &self.dist_info
    }

    pub(crate) fn data(&self) -> &str {
        &self.data
    }

    /// The files to install, without RECORD.
    pub(crate) fn files(&self) -> Vec<(String, ArchiveEntry)> {
        let files = self.archive.entries().iter().filter(|(path, _)| !self.is_signature(path));
        files.map(|(path, entry)| (path.clone(), *entry)).collect()
    }

    pub(crate) fn entry_points(&mut self) -> Result<BTreeMap<String, EntryPoint>, WheelError> {
        let path = format!("{}/entry_points.txt", self.dist_info);
        if !self.archive.entries().contains_key(&path) {
            return Ok(BTreeMap::new());
        }
        entry_points::parse(&self.archive.content(&path, entry_points::MAX_BYTES)?)
    }

    /// Unpacks a file, and compares it with its checksum. Returns that and the number of bytes.
    pub(crate) fn unpack(
        &mut self,
        path: &str,
        entry: ArchiveEntry,
        into: &mut impl Write,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Checksum, u64), WheelError> {
        let expected = self.record.get(path).copied().flatten();
        let reader = self.archive.reader(entry)?.take(entry.bytes.saturating_add(1));
        let (checksum, bytes) = copy(reader, into, stop)?;
        if bytes != entry.bytes || Some(checksum) != expected {
            return Err(WheelError::Record(format!("`{}` has another content", path.escape_default())));
        }
        Ok((checksum, bytes))
    }
}

/// Name and version of `NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl`.
fn of_file_name(file_name: &str) -> Result<(Name, Version), WheelError> {
    let refused =
        || WheelError::FileName(file_name.chars().take(200).flat_map(char::escape_default).collect());
    let stem = file_name.strip_suffix(".whl").ok_or_else(refused)?;
    let is_plain = |part: &&str| {
        !part.is_empty()
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "._+!".contains(letter))
    };
    let parts: Vec<&str> = stem.split('-').collect();
    if !parts.iter().all(is_plain) {
        return Err(refused());
    }
    let (name, version) = match parts.as_slice() {
        [name, version, _, _, _] => (name, version),
        [name, version, build, _, _, _] if build.starts_with(|letter: char| letter.is_ascii_digit()) => {
            (name, version)
        }
        _ => return Err(refused()),
    };
    let name = Name::new(name).map_err(|_| refused())?;
    Ok((name, version_of(version).ok_or_else(refused)?))
}

/// A version of a file name, where `_` is in the place of `-`.
fn version_of(text: &str) -> Option<Version> {
    Version::from_str(text).or_else(|_| Version::from_str(&text.replace('_', "-"))).ok()
}

/// The only directory of metadata, which has the name and the version of the file.
fn dist_info(archive: &Archive, name: &Name, version: &Version) -> Result<String, WheelError> {
    let refused = |why: &str| WheelError::Archive(why.to_owned());
    let mut found: Option<&str> = None;
    for path in archive.entries().keys() {
        let Some((first, _)) = path.split_once('/') else { continue };
        if first.to_lowercase().ends_with(".dist-info") && found != Some(first) {
            if found.is_some() {
                return Err(refused("it has more than one `.dist-info`"));
            }
            found = Some(first);
        }
    }
    let found = found.ok_or_else(|| refused("it has no `.dist-info`"))?;
    let own = found.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
    let is_own = own.is_some_and(|(own_name, own_version)| {
        Name::new(own_name).is_ok_and(|own| own == *name)
            && version_of(own_version).is_some_and(|own| own == *version)
    });
    if is_own { Ok(found.to_owned()) } else { Err(refused("its `.dist-info` is that of another package")) }
}

fn checksum_of_file(file: &mut File, stop: &dyn Fn() -> bool) -> Result<Checksum, WheelError> {
    file.seek(SeekFrom::Start(0))?;
    Ok(copy(&mut *file, &mut std::io::sink(), stop)?.0)
}

/// Copies everything, and returns its checksum and length.
pub(crate) fn copy(
    mut from: impl Read,
    into: &mut impl Write,
    stop: &dyn Fn() -> bool,
) -> Result<(Checksum, u64), WheelError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut sum = 0;
    loop {
        if stop() {
            return Err(WheelError::Stopped);
        }
        let count = from.read(&mut buffer)?;
        let part = buffer.get(..count).unwrap_or_default();
        if part.is_empty() {
            return Ok((hasher.finalize().into(), sum));
        }
        hasher.update(part);
        into.write_all(part)?;
        sum += count as u64;
    }
}
