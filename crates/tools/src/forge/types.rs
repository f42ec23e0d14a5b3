//! Types, by the native TypeScript compiler of the project where it has one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tgp_compiler::Unit;
use tgp_contract::{Code, Finding, Place, Severity, ToolError};
use tgp_jail::{FileAccess, PathAccess, Profile, jailed_command};
use tokio::io::AsyncReadExt;

/// A type check that takes longer than this is given up.
const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;
/// Declares what a tool finds on its global object; written by `tgp init`.
const DECLARATIONS: &str = "tgp.d.ts";

/// What tools may do that TypeScript does not know: `return` and `await` at the top of a script.
const SCRIPT_CODES: [&str; 4] = ["TS1108", "TS1375", "TS1378", "TS1309"];

/// Finds and runs the compiler.
#[derive(Debug)]
pub(super) struct TypeChecker {
    compiler: Option<PathBuf>,
    project: PathBuf,
    tool_root: PathBuf,
}

impl TypeChecker {
    pub(super) fn new(project: &Path, tool_root: &Path) -> Self {
        let compiler = native_type_checker(project);
        Self { compiler, project: project.to_owned(), tool_root: tool_root.to_owned() }
    }

    /// The type errors in this tool, or nothing when the project has no native compiler.
    pub(super) async fn check(&self, unit: &Unit) -> Result<Option<Vec<Finding>>, ToolError> {
        let Some(compiler) = &self.compiler else { return Ok(None) };
        let mut command = Command::new(compiler);
        command
            .args(["--noEmit", "--pretty", "false", "--ignoreConfig", "--strict", "--skipLibCheck"])
            .args([
                "--target",
                "es2023",
                "--lib",
                "es2023",
                "--module",
                "esnext",
                "--moduleResolution",
                "bundler",
            ])
            .args(["--moduleDetection", "force", "--allowImportingTsExtensions", "--types", ""])
            // With its directory in front, no file name can pass for an option.
            .arg(format!("./{}", unit.id))
            .current_dir(&self.tool_root)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if self.tool_root.join(DECLARATIONS).is_file() {
            command.arg(DECLARATIONS);
        }
        let output = self.output(command).await?;
        Ok(Some(findings(&output, &unit.id)))
    }

    /// Runs the compiler in a jail where it can read the project and change nothing.
    async fn output(&self, command: Command) -> Result<String, ToolError> {
        let failed = |reason: String| {
            ToolError::new(Code::Internal, format!("the TypeScript compiler failed: {reason}"))
                .help("remove `typescript` from the project to check without types")
        };
        let mut profile = Profile::process(&self.project);
        if let FileAccess::Paths(rules) = &mut profile.files {
            rules.retain(|rule| rule.access != PathAccess::ReadWrite || rule.path != self.project);
        }
        let mut profile =
            profile.allow(&self.project, PathAccess::ReadExecute).allow(&self.tool_root, PathAccess::Read);
        // Package managers link: what stands in node_modules may lie outside the project.
        let packages = self.project.join("node_modules").canonicalize().ok();
        let compiler = self.compiler.as_ref().and_then(|path| path.canonicalize().ok());
        let library = compiler.as_deref().and_then(Path::parent).map(Path::to_owned);
        for path in [packages, library].into_iter().flatten() {
            profile = profile.allow(path, PathAccess::ReadExecute);
        }
        let command = jailed_command(&profile, command).map_err(|error| failed(error.to_string()))?;
        let mut command = tokio::process::Command::from(command);
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| failed(error.to_string()))?;
        let stdout = child.stdout.take().ok_or_else(|| failed("it has no output".to_owned()))?;
        let read = async {
            let mut text = Vec::new();
            stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut text).await?;
            child.wait().await?;
            Ok::<_, std::io::Error>(text)
        };
        match tokio::time::timeout(TIMEOUT, read).await {
            Ok(Ok(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!("it did not finish within {} seconds", TIMEOUT.as_secs()))),
        }
    }
}

/// The platform's own executable inside the `typescript` package, version 7 or newer.
#[must_use]
pub fn native_type_checker(project: &Path) -> Option<PathBuf> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let package = format!("node_modules/@typescript/typescript-{}-{architecture}", std::env::consts::OS);
    let executable = project.join(package).join("lib/tsc");
    executable.is_file().then_some(executable)
}

/// Lines of the form `file(line,column): error TS2322: text`. Only those of the checked file count: what it imports
/// is checked when it is checked itself.
fn findings(output: &str, id: &str) -> Vec<Finding> {
    output.lines().filter_map(|line| finding(line, id)).collect()
}

fn finding(line: &str, id: &str) -> Option<Finding> {
    let rest = line.strip_prefix(id)?.strip_prefix('(')?;
    let (position, rest) = rest.split_once("): error ")?;
    let (line, column) = position.split_once(',')?;
    let (code, message) = rest.split_once(": ")?;
    if SCRIPT_CODES.contains(&code) || (code == "TS2307" && message.contains("'/lib/")) {
        return None;
    }
    let place = Place { file: id.to_owned(), line: line.parse().ok()?, column: column.parse().ok()? };
    Some(Finding {
        end: place.clone(),
        place,
        rule: "types".to_owned(),
        severity: Severity::Error,
        message: format!("{message} ({code})"),
        reason: "a tool whose types do not fit fails when it runs".to_owned(),
        fix: "make the types agree".to_owned(),
    })
}
