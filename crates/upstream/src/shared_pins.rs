//! Pins of the tool repository: the definitions that a team has agreed on. They come from a remote, so they only deny.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use tgp_contract::{Code, ToolError};
use tgp_fs::{append_log::at, open_plain, replace_plain};

use crate::Pin;

/// Bytes of the file; it holds a hash for each tool.
const MAX_BYTES: u64 = 4 << 20;

/// Hashes of definitions by server and tool.
pub(crate) type SharedPins = BTreeMap<String, BTreeMap<String, String>>;

/// Refuses a tool whose definition is not the one that the repository names. Servers that it does not name are free.
///
/// # Errors
/// `EPIN`, also for a file that cannot be read.
pub(crate) fn check(path: &Path, server: &str, tool: &str, hash: &str) -> Result<(), ToolError> {
    let refused = |why: &str| {
        let message = format!("`mcp:{server}/{tool}` was not called: {why}");
        Err(ToolError::new(Code::Pin, message)
            .help("the tool repository names the definitions that may be called; a person compares them"))
    };
    let pins = match read(path) {
        Ok(pins) => pins,
        Err(error) => return refused(&error.message),
    };
    let Some(tools) = pins.get(server) else { return Ok(()) };
    match tools.get(tool) {
        Some(known) if known == hash => Ok(()),
        Some(_) => refused("the tool repository pins another definition of it"),
        None => refused("the tool repository pins this server without it"),
    }
}

/// Names the definitions of a server in the repository.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn keep(path: &Path, server: &str, pin: &Pin) -> Result<(), ToolError> {
    let mut pins = read(path)?;
    pins.insert(server.to_owned(), pin.tools().map(|tool| (tool.name.clone(), tool.hash())).collect());
    let mut text = serde_json::to_vec_pretty(&pins)
        .map_err(|error| ToolError::new(Code::Internal, format!("pins cannot be kept: {error}")))?;
    text.push(b'\n');
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(at(folder))?;
    }
    replace_plain(path, &text).map_err(at(path))
}

fn read(path: &Path) -> Result<SharedPins, ToolError> {
    let file = match open_plain(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SharedPins::new()),
        Err(error) => return Err(at(path)(error)),
    };
    // A file that is cut off here is not valid JSON.
    serde_json::from_reader(BufReader::new(file.take(MAX_BYTES))).map_err(|error| {
        ToolError::new(Code::Config, format!("`{}` does not hold pins: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check, keep};
    use crate::{Pin, UpstreamTool};

    #[test]
    fn pins_of_the_repository_only_deny() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy/upstream.json");
        let tool = |description: &str| UpstreamTool {
            name: "greet".to_owned(),
            description: Some(description.to_owned()),
            input_schema: json!({}),
            output_schema: None,
            hints: None,
        };
        let (one, other) = (tool("one"), tool("other"));
        assert!(check(&path, "srv", "greet", &one.hash()).is_ok());
        keep(&path, "srv", &Pin::of(std::slice::from_ref(&one))).unwrap();
        assert!(check(&path, "srv", "greet", &one.hash()).is_ok());
        assert!(check(&path, "another", "greet", &other.hash()).is_ok());
        for (name, hash, why) in [
            ("greet", other.hash(), "pins another definition"),
            ("extra", one.hash(), "pins this server without it"),
        ] {
            let error = check(&path, "srv", name, &hash).unwrap_err();
            assert!(error.code == tgp_contract::Code::Pin && error.message.contains(why), "{error:?}");
        }
        std::fs::write(&path, "[]").unwrap();
        let error = check(&path, "another", "greet", &other.hash()).unwrap_err();
        assert!(error.message.contains("does not hold pins"), "{error:?}");
    }
}
