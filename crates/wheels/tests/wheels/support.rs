//! Wheels that the tests make.

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use tgp_wheels::{EnvironmentChange, Wheel, WheelError};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A wheel that is made.
pub struct Builder {
    pub name: String,
    pub version: String,
    pub files: Vec<(String, Vec<u8>, u32)>,
    /// Further lines of METADATA.
    pub headers: String,
    /// The whole METADATA, WHEEL or RECORD instead.
    pub metadata: Option<String>,
    pub wheel: String,
    pub record: Option<String>,
}

impl Builder {
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            files: Vec::new(),
            headers: String::new(),
            metadata: None,
            wheel: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
            record: None,
        }
    }

    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((path.to_owned(), content.as_bytes().to_vec(), 0o644));
        self
    }

    pub fn header(mut self, line: &str) -> Self {
        self.headers.push_str(&format!("{line}\n"));
        self
    }

    pub fn file_name(&self) -> String {
        format!("{}-{}-py3-none-any.whl", self.name, self.version)
    }

    pub fn stem(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let stem = self.stem();
        let metadata = self.metadata.clone().unwrap_or_else(|| {
            format!(
                "Metadata-Version: 2.1\nName: {}\nVersion: {}\n{}\ntext\n",
                self.name, self.version, self.headers
            )
        });
        let mut files = self.files.clone();
        files.push((format!("{stem}.dist-info/METADATA"), metadata.into_bytes(), 0o644));
        files.push((format!("{stem}.dist-info/WHEEL"), self.wheel.clone().into_bytes(), 0o644));
        let record_name = format!("{stem}.dist-info/RECORD");
        let record = self.record.clone().unwrap_or_else(|| {
            let rows = files.iter().map(|(path, content, _)| {
                let checksum = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
                format!("{path},sha256={checksum},{}\n", content.len())
            });
            rows.chain([format!("{record_name},,\n")]).collect()
        });
        files.push((record_name, record.into_bytes(), 0o644));
        archive(&files)
    }

    pub fn open(&self) -> Result<Wheel, WheelError> {
        open(&self.bytes(), &self.file_name())
    }
}

/// An archive of files with their modes.
pub fn archive(files: &[(String, Vec<u8>, u32)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content, mode) in files {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        if mode & 0o170_000 == 0o120_000 {
            writer.add_symlink(path.as_str(), String::from_utf8_lossy(content), options).unwrap();
        } else if path.ends_with('/') {
            writer.add_directory(path.as_str(), options).unwrap();
        } else {
            writer.start_file(path.as_str(), options).unwrap();
            writer.write_all(content).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

pub fn open(bytes: &[u8], file_name: &str) -> Result<Wheel, WheelError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Wheel::open(file, file_name, &|| false)
}

/// Gives every occurrence of a text another one of the same length: names are in the archive twice.
pub fn patched(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut patched = bytes.to_vec();
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "{from} is not there");
    places.iter().for_each(|at| patched[*at..*at + to.len()].copy_from_slice(to.as_bytes()));
    patched
}

/// Carries changes out as the kernel does.
pub fn apply(root: &Path, changes: &[EnvironmentChange]) {
    for change in changes.iter().rev() {
        match change {
            EnvironmentChange::Remove { path } => fs::remove_file(root.join(path)).unwrap(),
            EnvironmentChange::RemoveDirectory { path } => fs::remove_dir(root.join(path)).unwrap(),
            _ => {}
        }
    }
    for change in changes {
        match change {
            EnvironmentChange::Remove { .. } | EnvironmentChange::RemoveDirectory { .. } => {}
            EnvironmentChange::MakeDirectory { path } => fs::create_dir(root.join(path)).unwrap(),
            EnvironmentChange::Link { path, target } => {
                std::os::unix::fs::symlink(target, root.join(path)).unwrap();
            }
            EnvironmentChange::Write { path, content, bytes, .. } => {
                let _ = fs::remove_file(root.join(path));
                assert_eq!(fs::copy(content, root.join(path)).unwrap(), *bytes);
                File::open(root.join(path)).unwrap();
            }
        }
    }
}
