//! Finding the configuration file and getting its value.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tgp_compiler::{MAX_SOURCE_BYTES, SourceRole, Unit};
use tgp_fs::real_place;
use tgp_text::RulePurpose;

use super::ConfigError;

/// The names looked for, in this order.
const NAMES: &[&str] = RulePurpose::Config.paths();

/// The contents of a configuration file.
#[derive(Debug)]
pub(crate) enum ConfigSource {
    /// To be evaluated in a worker.
    Script(Unit),
    Json {
        file: String,
        value: Value,
    },
}

/// The configuration file of a project, if it has one.
pub(crate) fn find(project: &Path, named: Option<&Path>) -> Result<Option<ConfigSource>, ConfigError> {
    let path = match named {
        Some(path) => project.join(path),
        // A broken link, a directory or a pipe of this name counts as present: `read` refuses it.
        None => {
            match NAMES.iter().map(|name| project.join(name)).find(|path| path.symlink_metadata().is_ok()) {
                Some(path) => path,
                None => return Ok(None),
            }
        }
    };
    // What is outside the project is read only where a person names it: an error may show parts of it.
    let place = real_place(&path);
    if named.is_none() && !place.starts_with(project) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(ConfigError::Outside { file, place });
    }
    read(&path).map(Some)
}

/// The names that a configuration has.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

/// What no tool may write, wherever else it may: what configures the kernel, the packages it loads, and the environments
/// of Python whose interpreter runs the tests.
pub(crate) fn kept_files(named: Option<&Path>) -> Vec<PathBuf> {
    NAMES
        .iter()
        .copied()
        .chain(["node_modules", ".venv", "venv"])
        .map(PathBuf::from)
        .chain(named.map(Path::to_owned))
        .collect()
}

fn read(path: &PathBuf) -> Result<ConfigSource, ConfigError> {
    let file = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let failed = |reason: String| ConfigError::Read { file: file.clone(), reason };
    let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    // Opening a pipe or a device could wait forever, or never end.
    if !metadata.is_file() {
        return Err(failed("it is not a regular file".to_owned()));
    }
    if metadata.len() > MAX_SOURCE_BYTES as u64 {
        return Err(failed(format!("it has {} bytes, more than {MAX_SOURCE_BYTES}", metadata.len())));
    }
    let mut source = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_SOURCE_BYTES as u64).read_to_string(&mut source))
        .map_err(|error| failed(error.to_string()))?;
    if path.extension().is_some_and(|extension| extension == "json") {
        let value = serde_json::from_str(&source)
            .map_err(|error| ConfigError::Json { file: file.clone(), reason: error.to_string() })?;
        return Ok(ConfigSource::Json { file, value });
    }
    Ok(ConfigSource::Script(Unit { id: file, source, role: SourceRole::Config }))
}
