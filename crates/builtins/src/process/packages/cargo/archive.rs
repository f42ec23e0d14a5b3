//! Archives of packages: checked against the lock file, and unpacked by the kernel. What a process in the jail has unpacked
//! itself is not used.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

/// Bytes of one archive. The index takes far smaller ones.
const MAX_ARCHIVE_BYTES: u64 = 256 << 20;

/// Bytes and entries of one package.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;
const MAX_ENTRIES: usize = 50_000;

/// Longest path in an archive, and how deep its directories nest.
const MAX_PATH_BYTES: usize = 1024;
const MAX_DEPTH: usize = 64;

/// What cargo writes when the sources of a package are complete, and the name of that file.
pub(super) const COMPLETE: &[u8] = b"{\"v\":1}";
pub(super) const COMPLETE_NAME: &str = ".cargo-ok";

/// What is left for the packages of one installation.
#[derive(Debug)]
pub(super) struct Allowance {
    pub(super) bytes: u64,
    pub(super) files: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: 8 << 30, files: 1_000_000 }
    }
}

/// Copies an archive whose checksum is that of the lock file, and nothing else. Returns how long it is.
pub(super) fn copy_checked(from: &mut File, to: &Path, checksum: &str) -> io::Result<u64> {
    let mut target = File::options().write(true).create_new(true).mode(0o644).open(to)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut bytes = 0_u64;
    loop {
        let count = from.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else { break };
        bytes = bytes.saturating_add(part.len() as u64);
        if bytes > MAX_ARCHIVE_BYTES {
            return Err(refused(format!("is larger than {} MB", MAX_ARCHIVE_BYTES >> 20)));
        }
        hash.update(part);
        target.write_all(part)?;
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found == checksum {
        Ok(bytes)
    } else {
        Err(refused("has another checksum than the lock file says".to_owned()))
    }
}

/// Unpacks an archive into a directory that does not exist yet, which is complete for cargo afterwards. `stem` is how every path
/// in the archive begins. Returns how many bytes the files have.
pub(super) fn unpack(archive: &Path, stem: &str, into: &Path, allowance: &mut Allowance) -> io::Result<u64> {
    fs::DirBuilder::new().mode(0o755).create(into)?;
    // The headers count as well: an archive of a million empty files is as much work.
    let limit = MAX_UNPACKED_BYTES.saturating_add(MAX_ENTRIES as u64 * 1024);
    let mut tar = tar::Archive::new(GzDecoder::new(File::open(archive)?).take(limit));
    let (mut bytes, mut count) = (0_u64, 0_usize);
    for entry in tar.entries()? {
        let mut entry = entry?;
        count += 1;
        if count > MAX_ENTRIES || allowance.files == 0 {
            return Err(refused("has too many files".to_owned()));
        }
        allowance.files -= 1;
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let Some(inside) = inside(&entry.path()?, stem)? else { continue };
        let target = into.join(&inside);
        if kind.is_dir() {
            directories(into, &inside)?;
            continue;
        }
        if !kind.is_file() {
            return Err(refused(format!(
                "has `{}`, which is neither a file nor a directory",
                inside.display()
            )));
        }
        // Written last, by the kernel.
        if inside == Path::new(COMPLETE_NAME) {
            continue;
        }
        directories(into, inside.parent().unwrap_or(Path::new("")))?;
        let size = entry.size();
        bytes = bytes.saturating_add(size);
        if bytes > MAX_UNPACKED_BYTES || size > allowance.bytes {
            return Err(refused(format!("has more than {} MB of files", MAX_UNPACKED_BYTES >> 20)));
        }
        allowance.bytes -= size;
        let mode = if entry.header().mode()? & 0o111 == 0 { 0o644 } else { 0o755 };
        // Only the first of two entries of one name counts as an archive of the index; a second one is refused.
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&target)?;
        let written = io::copy(&mut entry, &mut file)?;
        if written != size {
            return Err(refused("ends in the middle of a file".to_owned()));
        }
    }
    if count == 0 {
        return Err(refused("is empty".to_owned()));
    }
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(into.join(COMPLETE_NAME))?
        .write_all(COMPLETE)?;
    Ok(bytes)
}

/// Where an entry goes below the directory of its package; none for that directory itself.
fn inside(path: &Path, stem: &str) -> io::Result<Option<PathBuf>> {
    let odd = || refused(format!("has an entry at `{}`", path.display()));
    let mut parts = path.components();
    let first = parts.next().ok_or_else(odd)?;
    let names: Option<Vec<&str>> = parts
        .map(|part| match part {
            Component::Normal(name) => name.to_str().filter(|name| !name.contains(['\\', '\0'])),
            _ => None,
        })
        .collect();
    let names = names.ok_or_else(odd)?;
    let is_long = path.as_os_str().len() > MAX_PATH_BYTES || names.len() > MAX_DEPTH;
    if first.as_os_str() != stem || is_long {
        return Err(odd());
    }
    Ok((!names.is_empty()).then(|| names.iter().collect()))
}

/// Makes a directory and those above it. All of them were made here, so none is a link.
fn directories(root: &Path, inside: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(root.join(inside))
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An archive with these entries: path, kind and content.
    pub(in super::super) fn packed(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_old();
            // As an attacker writes it: the library itself refuses such paths.
            let name = path.as_bytes();
            header.as_old_mut().name[..name.len()].copy_from_slice(name);
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            if kind.is_symlink() || kind.is_hard_link() {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            tar.append(&header, *content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    pub(in super::super) fn checksum(bytes: &[u8]) -> String {
        tgp_contract::canonical::sha256_hex(bytes)
    }

    fn try_unpack(bytes: &[u8]) -> (tempfile::TempDir, io::Result<u64>) {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.crate");
        fs::write(&archive, bytes).unwrap();
        let done = unpack(&archive, "a-1.0.0", &folder.path().join("into"), &mut Allowance::default());
        (folder, done)
    }

    #[test]
    fn an_archive_is_unpacked_below_its_own_directory_only() {
        let file = tar::EntryType::Regular;
        let (folder, done) = try_unpack(&packed(&[
            ("a-1.0.0/Cargo.toml", file, b"[package]"),
            ("a-1.0.0/src/lib.rs", file, b""),
            ("a-1.0.0/.cargo-ok", file, b"x"),
        ]));
        assert_eq!(done.unwrap(), 9);
        let into = folder.path().join("into");
        assert_eq!(fs::read(into.join("Cargo.toml")).unwrap(), b"[package]");
        assert_eq!(fs::read(into.join(".cargo-ok")).unwrap(), COMPLETE);
        let link = tar::EntryType::Symlink;
        for entry in [
            ("../x", file),
            ("/etc/x", file),
            ("a-1.0.0/../x", file),
            ("a-1.0.0/../../x", file),
            ("b-1.0.0/x", file),
            ("x", file),
            ("a-1.0.0/x", link),
            ("a-1.0.0/x", tar::EntryType::Link),
            ("a-1.0.0/x", tar::EntryType::Fifo),
            ("a-1.0.0/x", tar::EntryType::Char),
            ("a-1.0.0/x\\y", file),
        ] {
            let (folder, done) = try_unpack(&packed(&[(entry.0, entry.1, b"")]));
            assert!(done.is_err(), "{entry:?}");
            assert!(
                !folder.path().join("into/.cargo-ok").exists() && !folder.path().join("x").exists(),
                "{entry:?}"
            );
        }
        let twice = packed(&[("a-1.0.0/x", file, b"1"), ("a-1.0.0/x", file, b"2")]);
        assert!(try_unpack(&twice).1.is_err());
        let below_file = packed(&[("a-1.0.0/x", file, b"1"), ("a-1.0.0/x/y", file, b"2")]);
        assert!(try_unpack(&below_file).1.is_err());
        assert!(try_unpack(b"no archive").1.is_err());
        assert!(try_unpack(&packed(&[])).1.is_err());
    }

    #[test]
    fn an_archive_with_too_many_files_or_bytes_is_refused() {
        let file = tar::EntryType::Regular;
        let names: Vec<String> = (0..10).map(|number| format!("a-1.0.0/{number}")).collect();
        let entries: Vec<_> = names.iter().map(|name| (name.as_str(), file, &b"12345"[..])).collect();
        let bytes = packed(&entries);
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.crate");
        fs::write(&archive, &bytes).unwrap();
        for (number, mut allowance) in
            [Allowance { bytes: 49, files: 10 }, Allowance { bytes: 50, files: 9 }].into_iter().enumerate()
        {
            let into = folder.path().join(number.to_string());
            assert!(unpack(&archive, "a-1.0.0", &into, &mut allowance).is_err());
        }
        let mut enough = Allowance { bytes: 50, files: 10 };
        assert_eq!(unpack(&archive, "a-1.0.0", &folder.path().join("into"), &mut enough).unwrap(), 50);
    }

    #[test]
    fn bug_an_archive_that_a_process_of_the_jail_wrote_was_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, b"forged").unwrap();
        let copied = copy_checked(&mut File::open(&from).unwrap(), &to, &checksum(b"published"));
        assert!(copied.unwrap_err().to_string().contains("checksum"));
        let good = folder.path().join("good");
        let copied = copy_checked(&mut File::open(&from).unwrap(), &good, &checksum(b"forged"));
        assert_eq!(copied.unwrap(), 6);
    }
}
