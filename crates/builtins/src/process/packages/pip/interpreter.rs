//! The Python that runs pip, and that an environment is for: never one of the project.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tgp_contract::{Code, ToolError};
use tgp_fs::read_plain;
use tgp_wheels::{Environment, Interpreter, Version};

use super::super::managers::Site;
use super::super::programs;
use super::{INTERPRETER, is_in_project};

/// Bytes of what the driver reports.
const MAX_REPORT_BYTES: u64 = 16 << 10;

/// A program that is run in the jail.
#[derive(Debug)]
pub(super) struct Python(PathBuf);

impl Python {
    /// `python3` of `PATH`, or the one for the version that an environment has. Which program it was made with is said by a
    /// file of the project (`home` in `pyvenv.cfg`), which may name anything that a package has brought: it is not run.
    pub(super) fn find(site: &Site, environment: Option<&Environment>) -> Result<Self, ToolError> {
        let options = site.options();
        let of_version = environment.map(Environment::python);
        let of_version = of_version.map(|(major, minor)| format!("python{major}.{minor}"));
        let find = |name: &str| programs::find(name, &options.environment, &options.project);
        let program = match of_version.and_then(|name| find(&name).ok()) {
            Some(program) => program,
            None => find("python3")?,
        };
        require_name(&program.file)?;
        Self(program.named).checked()
    }

    fn checked(self) -> Result<Self, ToolError> {
        let is_plain = self.0.to_str().is_some_and(|path| !path.chars().any(char::is_control));
        if is_plain { Ok(self) } else { Err(unusable(&self.0, "has a name that cannot be run")) }
    }

    /// As a word for a shell.
    pub(super) fn quoted(&self) -> String {
        format!("'{}'", self.0.to_string_lossy().replace('\'', r"'\''"))
    }
}

fn unusable(path: &Path, why: &str) -> ToolError {
    ToolError::new(Code::Security, format!("`{}` {why}", path.display().to_string().escape_default()))
        .detail("path", path.display().to_string())
        .help("nothing was installed; ask the user to install Python outside of the project")
}

/// `python3`, or `python3.11`: another program under this name would be run with the network.
fn require_name(file: &Path) -> Result<(), ToolError> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = name.strip_prefix("python3").map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    let is_python =
        rest.is_some_and(|rest| rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_digit()));
    if is_python { Ok(()) } else { Err(unusable(file, "is not Python by its name")) }
}

fn require_program(file: &Path) -> Result<(), ToolError> {
    let runs = file
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    if runs { Ok(()) } else { Err(unusable(file, "is not a program")) }
}

/// What the driver reports of the Python that ran it.
#[derive(Deserialize)]
struct Report {
    version: String,
    program: PathBuf,
    implementation: String,
}

/// Reads the report. It decides where the links of a new environment lead, so it is checked.
pub(super) fn read_report(site: &Site) -> Result<Interpreter, ToolError> {
    let unreadable =
        || ToolError::new(Code::Runtime, "the version of Python is not known").help("nothing was installed");
    let text = read_plain(&site.downloads.join(INTERPRETER), MAX_REPORT_BYTES).ok_or_else(unreadable)?;
    let report: Report = serde_json::from_slice(&text).map_err(|_| unreadable())?;
    let version: Version = report.version.parse().map_err(|_| unreadable())?;
    if report.implementation != "cpython" {
        let message = format!("packages are installed for CPython, and not for {:?}", report.implementation);
        return Err(ToolError::new(Code::Capability, message).help("ask the user to install them"));
    }
    let program = report.program;
    if !program.is_absolute() || program.canonicalize().ok().as_ref() != Some(&program) {
        return Err(unusable(&program, "is not the real path of a program"));
    }
    if is_in_project(&program, &site.options().project) {
        return Err(unusable(&program, "is in the project"));
    }
    require_name(&program)?;
    require_program(&program)?;
    Ok(Interpreter { version, program })
}
