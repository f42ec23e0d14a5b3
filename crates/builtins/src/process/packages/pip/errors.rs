//! What goes wrong, as a caller reads it.

use tgp_contract::{Code, RelativePath, ToolError};
use tgp_wheels::{EnvironmentError, InstallError, ManifestError, WheelError};

use super::super::Plan;
use crate::process::shell_exec::CommandOutput;

/// How the driver ends without pip: see `driver.py`.
const WRONG_PYTHON: i32 = 65;
const NO_PIP: i32 = 66;

/// Longest line of pip that becomes a message.
const MAX_LINE: usize = 400;

pub(super) fn of_manifest(directory: &RelativePath, name: &str, error: &ManifestError) -> ToolError {
    let path = directory.join(name).map_or_else(|_| name.to_owned(), |path| path.to_string());
    let (code, help) = match error {
        ManifestError::Unsupported(_) => {
            (Code::Capability, "ask the user to install the packages; nothing was changed")
        }
        _ => (
            Code::Validation,
            "list packages of an index by their names, such as `httpx>=0.27`; paths, addresses and options are not installed",
        ),
    };
    ToolError::new(code, format!("`{path}`: {error}")).detail("path", path).help(help)
}

pub(super) fn of_environment(error: &EnvironmentError) -> ToolError {
    let (code, help) = match error {
        EnvironmentError::NotAnEnvironment(_) => (
            Code::Capability,
            "ask the user to remove `.venv`, so that a new one is made; nothing was installed",
        ),
        EnvironmentError::Files(error) => (error.code(), "nothing was installed"),
        EnvironmentError::Limit { .. } => {
            (Code::Security, "nothing was installed; ask the user to remove `.venv`")
        }
        EnvironmentError::Stopped => (Code::Runtime, "nothing was installed; it took too long"),
    };
    ToolError::new(code, format!("`.venv` cannot be used: {error}")).help(help)
}

pub(super) fn of_wheel(file_name: &str, error: &WheelError) -> ToolError {
    let (code, help) = match error {
        // What is wrong in an archive is reported so while it is unpacked.
        WheelError::Io(error) if !is_of_data(error) => (Code::Internal, "nothing was installed"),
        WheelError::Stopped => (Code::Runtime, "nothing was installed; it took too long"),
        WheelError::Address(_) => (
            Code::Security,
            "nothing was installed; a package is installed when it depends on packages of an index by their names",
        ),
        _ => {
            (Code::Security, "nothing was installed; ask for another version, or ask the user to install it")
        }
    };
    let file_name: String = file_name.chars().take(MAX_LINE).flat_map(char::escape_default).collect();
    ToolError::new(code, format!("`{file_name}` cannot be installed: {error}"))
        .detail("file", file_name)
        .help(help)
}

fn is_of_data(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

pub(super) fn of_installation(error: &InstallError) -> ToolError {
    match error {
        InstallError::Wheel { file, source } => of_wheel(file, source),
        InstallError::Environment(error) => of_environment(error),
        InstallError::Conflict { .. } | InstallError::Twice(_) => {
            ToolError::new(Code::Security, format!("the packages cannot be installed together: {error}"))
                .help("nothing was installed; leave one of them out")
        }
        InstallError::Location(_) => ToolError::new(Code::Capability, error.to_string())
            .help("nothing was installed; ask the user to move the project"),
        InstallError::Io(_) => {
            ToolError::new(Code::Internal, error.to_string()).help("nothing was installed")
        }
        InstallError::Stopped => ToolError::new(Code::Runtime, "the packages took too long to unpack")
            .help("nothing was installed; install fewer packages"),
    }
}

/// A run that failed, by what the driver and pip have printed.
pub(super) fn failure(_plan: &Plan, output: &CommandOutput) -> Option<ToolError> {
    let lines = || output.stderr.lines().map(str::trim).rev();
    let of_driver = || lines().find_map(|line| line.strip_prefix("tgp: ")).map(shown);
    match output.exit_code {
        Some(WRONG_PYTHON) => Some(
            ToolError::new(Code::Capability, of_driver()?)
                .help("nothing was installed; ask the user for another version of Python"),
        ),
        Some(NO_PIP) => Some(ToolError::new(Code::Capability, of_driver()?).help(
            "ask the user to install pip for it (`python3-pip` or `python3-venv`); nothing was installed",
        )),
        _ => {
            let without: Vec<String> =
                lines().filter_map(|line| line.strip_prefix("tgp: no wheel of ")).map(shown).collect();
            if let Some(name) = without.last() {
                let message = format!("`{name}` has no wheel for this Python, and packages are not built");
                return Some(ToolError::new(Code::Capability, message).detail("package", name.as_str()).help(
                    "nothing was installed; ask for another version or another package, or ask the user to build it",
                ));
            }
            if let Some(line) = lines().find_map(|line| line.strip_prefix("tgp: no version ")).map(shown) {
                return Some(
                    ToolError::new(Code::NotFound, format!("the index has no version for {line}"))
                        .help("nothing was installed; ask for another version"),
                );
            }
            if let Some(address) = lines().find_map(|line| line.strip_prefix("tgp: address ")).map(shown) {
                let message = format!("{address} is an address, and not a package of an index");
                return Some(ToolError::new(Code::Security, message).help(
                    "nothing was installed; a package is installed when it depends on packages of an index by their names",
                ));
            }
            // After this line pip prints where it failed, and why in the last one.
            let errors = || lines().filter_map(|line| line.strip_prefix("ERROR: "));
            // Of a conflict the last line says nothing.
            let failed =
                errors().find(|line| line.starts_with("Cannot install ")).or_else(|| errors().next())?;
            let line = if failed.starts_with("Exception:") {
                lines().find(|line| !line.is_empty()).unwrap_or(failed)
            } else {
                failed
            };
            if line.contains("is not opened here") || line.contains("are not started here") {
                let message = "the index led pip to a file of this machine, or to an archive of sources";
                return Some(ToolError::new(Code::Security, message).help(
                    "nothing was installed; only wheels of the index are; `stderr` is what pip reported",
                ));
            }
            let line = shown(line);
            Some(
                ToolError::new(Code::Runtime, format!("pip failed: {line}"))
                    .help("nothing was installed; `stderr` is what pip reported"),
            )
        }
    }
}

fn shown(line: &str) -> String {
    line.chars().take(MAX_LINE).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
