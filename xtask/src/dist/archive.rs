//! The two archive formats of the packages, tar.gz and zip. The same files always give the same bytes.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use libdeflater::{CompressionLvl, Compressor};

/// The date of every file in an archive: 26 October 1985, as npm has it.
const TAR_DATE: u64 = 499_162_500;

/// 1 January 1980, where the dates of zip begin.
const ZIP_DATE: u16 = 0x0021;

const ZIP_LOCAL: u32 = 0x0403_4b50;
const ZIP_CENTRAL: u32 = 0x0201_4b50;
const ZIP_END: u32 = 0x0605_4b50;
const ZIP_DEFLATED: u16 = 8;
const ZIP_VERSION: u16 = 20;
/// The system whose file modes the archive has.
const ZIP_MADE_ON_UNIX: u16 = 3 << 8;

/// A file of a package: its path with `/`, its bytes, and whether it can be run.
#[derive(Clone)]
pub struct PackageFile {
    pub path: String,
    pub data: Rc<[u8]>,
    pub is_program: bool,
}

impl PackageFile {
    pub fn text(path: impl Into<String>, text: impl AsRef<str>) -> Self {
        Self { path: path.into(), data: text.as_ref().as_bytes().into(), is_program: false }
    }

    pub fn program(path: impl Into<String>, data: &Rc<[u8]>) -> Self {
        Self { path: path.into(), data: Rc::clone(data), is_program: true }
    }

    /// The same file below a folder.
    pub fn below(mut self, folder: &str) -> Self {
        self.path = format!("{folder}/{}", self.path);
        self
    }

    fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

/// Writes a tar.gz with all files below one folder.
pub fn write_tar_gz(path: &Path, folder: &str, files: &[PackageFile]) -> Result<()> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.data.len() as u64);
        header.set_mode(file.mode());
        header.set_mtime(TAR_DATE);
        let name = format!("{folder}/{}", file.path);
        archive
            .append_data(&mut header, &name, &*file.data)
            .with_context(|| format!("cannot write {name} to {}", path.display()))?;
    }
    let plain = archive.into_inner()?;
    let mut compressor = compressor();
    let mut bytes = vec![0; compressor.gzip_compress_bound(plain.len())];
    let length = compressor.gzip_compress(&plain, &mut bytes).context("the archive cannot be compressed")?;
    bytes.truncate(length);
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// It takes its time and finds 2 % that zlib does not.
fn compressor() -> Compressor {
    Compressor::new(CompressionLvl::best())
}

/// Writes a zip file.
pub fn write_zip(path: &Path, files: &[PackageFile]) -> Result<()> {
    let bytes = zip(files).with_context(|| format!("cannot write {}", path.display()))?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn zip(files: &[PackageFile]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for file in files {
        let offset = size(bytes.len())?;
        let fields = ZipFields::new(file)?;
        put32(&mut bytes, ZIP_LOCAL);
        fields.put(&mut bytes);
        bytes.extend_from_slice(file.path.as_bytes());
        bytes.extend_from_slice(&fields.compressed);
        put32(&mut directory, ZIP_CENTRAL);
        put16(&mut directory, ZIP_MADE_ON_UNIX | ZIP_VERSION);
        fields.put(&mut directory);
        // No comment, disk 0, no internal attributes; the mode of a regular file is in the upper half.
        for _ in 0..3 {
            put16(&mut directory, 0);
        }
        put32(&mut directory, (0o100_000 | file.mode()) << 16);
        put32(&mut directory, offset);
        directory.extend_from_slice(file.path.as_bytes());
    }
    let start = size(bytes.len())?;
    bytes.extend_from_slice(&directory);
    put32(&mut bytes, ZIP_END);
    put32(&mut bytes, 0);
    let count = u16::try_from(files.len()).context("too many files for a zip")?;
    put16(&mut bytes, count);
    put16(&mut bytes, count);
    put32(&mut bytes, size(directory.len())?);
    put32(&mut bytes, start);
    put16(&mut bytes, 0);
    Ok(bytes)
}

/// What the local header and the directory both have.
struct ZipFields {
    checksum: u32,
    compressed: Vec<u8>,
    compressed_size: u32,
    size: u32,
    name_length: u16,
}

impl ZipFields {
    fn new(file: &PackageFile) -> Result<Self> {
        let mut compressor = compressor();
        let mut compressed = vec![0; compressor.deflate_compress_bound(file.data.len())];
        let length = compressor.deflate_compress(&file.data, &mut compressed)?;
        compressed.truncate(length);
        Ok(Self {
            checksum: libdeflater::crc32(&file.data),
            compressed_size: size(compressed.len())?,
            compressed,
            size: size(file.data.len())?,
            name_length: u16::try_from(file.path.len()).context("a path is too long for a zip")?,
        })
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        put16(bytes, ZIP_VERSION);
        put16(bytes, 0);
        put16(bytes, ZIP_DEFLATED);
        put16(bytes, 0);
        put16(bytes, ZIP_DATE);
        put32(bytes, self.checksum);
        put32(bytes, self.compressed_size);
        put32(bytes, self.size);
        put16(bytes, self.name_length);
        put16(bytes, 0);
    }
}

fn size(length: usize) -> Result<u32> {
    u32::try_from(length).context("a zip cannot be larger than 4 GB")
}

fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zip_has_its_files_twice_and_an_end() {
        let program: Rc<[u8]> = Rc::from(*b"#!/bin/sh\n");
        let files = [PackageFile::text("a/b.txt", "text"), PackageFile::program("run", &program)];
        let bytes = zip(&files).unwrap();
        let count = |wanted: &[u8]| bytes.windows(wanted.len()).filter(|window| *window == wanted).count();
        assert_eq!(count(&ZIP_LOCAL.to_le_bytes()), 2);
        assert_eq!(count(&ZIP_CENTRAL.to_le_bytes()), 2);
        assert_eq!(count(b"a/b.txt"), 2);
        assert_eq!(count(&ZIP_END.to_le_bytes()), 1);
        assert_eq!(count(&(0o100_755_u32 << 16).to_le_bytes()), 1);
        assert_eq!(bytes, zip(&files).unwrap());
    }
}
