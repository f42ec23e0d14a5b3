//! Types, by the native TypeScript compiler of the project where it has one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tgp_compiler::Unit;
use tgp_contract::{
    Code, Entry, EntryKind, FileSystem, Finding, RelativePath, Severity, SourceLocation, ToolError,
    background,
};
use tgp_jail::{FileAccess, PathAccess, Profile, jailed_command};
use tokio::io::AsyncReadExt;

/// A type check that takes longer than this is given up.
const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;
/// What a tool finds on its global object, and what it can import from other programs; written by the kernel.
const DECLARATIONS: [&str; 3] = ["tgp.d.ts", "upstream.d.ts", "host.d.ts"];

/// What the engine has of the language's library; `tsconfig.json` of `tgp init` says the same. `esnext` as a whole would
/// promise `Temporal`.
const LIBRARIES: &str = "es2025,esnext.array,esnext.collection,esnext.decorators,esnext.disposable,esnext.error,esnext.typedarrays";

/// Endings of files that a module can be, or be typed by.
const SOURCES: [&str; 9] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "json"];
/// Sources that a jail is opened for, each by its own rule.
const MAX_SOURCES: usize = 20_000;

/// What the compiler says of a module or a file that is not there, cannot be read, or is there in another form.
const ABSENT_CODES: [&str; 8] =
    ["TS2307", "TS2732", "TS2792", "TS5083", "TS6053", "TS6054", "TS6231", "TS7016"];
/// What is said of all of them.
const ABSENT: (&str, &str) = ("TS2307", "Cannot find a module or file that is named here.");

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
    pub(super) fn new(project: &Path, tool_root: Option<&Path>) -> Self {
        let compiler = tool_root.and_then(|_| native_type_checker(project));
        Self {
            compiler,
            project: project.to_owned(),
            tool_root: tool_root.map(Path::to_owned).unwrap_or_default(),
        }
    }

    /// The type errors in this tool, or nothing when the project has no native compiler. `tools` is the tool repository
    /// as the caller may see it: the compiler reads these files, the packages, and nothing else.
    pub(super) async fn check(
        &self,
        unit: &Unit,
        tools: &Arc<dyn FileSystem>,
    ) -> Result<Option<Vec<Finding>>, ToolError> {
        let Some(compiler) = &self.compiler else { return Ok(None) };
        let sources = self.sources(tools).await?;
        let mut command = Command::new(compiler);
        command
            .args(["--noEmit", "--pretty", "false", "--ignoreConfig", "--strict", "--skipLibCheck"])
            .args([
                "--target",
                "esnext",
                "--lib",
                LIBRARIES,
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
        for name in DECLARATIONS {
            if sources.iter().any(|source| *source == self.tool_root.join(name)) {
                command.arg(name);
            }
        }
        let output = self.output(command, sources).await?;
        Ok(Some(findings(&output, &unit.id)))
    }

    /// The files of the tool repository that a tool can import and the caller may see.
    async fn sources(&self, tools: &Arc<dyn FileSystem>) -> Result<Vec<PathBuf>, ToolError> {
        let (tools, root) = (Arc::clone(tools), self.tool_root.clone());
        let list = move || -> Result<Vec<PathBuf>, ToolError> {
            let entries = tools.list(&RelativePath::new("")?)?;
            let is_source = |entry: &Entry| {
                let name = entry.path.name().and_then(|name| name.rsplit_once('.'));
                entry.kind == EntryKind::File && name.is_some_and(|(_, ending)| SOURCES.contains(&ending))
            };
            let found: Vec<PathBuf> = entries
                .iter()
                .filter(|entry| is_source(entry))
                .map(|entry| root.join(entry.path.as_str()))
                .collect();
            if found.len() > MAX_SOURCES {
                let message = format!("the tool repository has more than {MAX_SOURCES} sources");
                return Err(ToolError::new(Code::Budget, message)
                    .help("remove `typescript` from the project to check without types"));
            }
            Ok(found)
        };
        background::run(list).await
    }

    /// Runs the compiler in a jail where it can read the packages and these sources, and change nothing. Of the rest of
    /// the project it reads no file.
    async fn output(&self, command: Command, sources: Vec<PathBuf>) -> Result<String, ToolError> {
        let failed = |reason: String| {
            ToolError::new(Code::Internal, format!("the TypeScript compiler failed: {reason}"))
                .help("remove `typescript` from the project to check without types")
        };
        let mut profile = Profile::process(&self.project);
        if let FileAccess::Paths(rules) = &mut profile.files {
            rules.retain(|rule| rule.access != PathAccess::ReadWrite || rule.path != self.project);
        }
        // A file that has vanished meanwhile cannot be granted, and need not be.
        for source in sources.into_iter().filter(|source| source.is_file()) {
            profile = profile.allow(source, PathAccess::Read);
        }
        // Package managers link: what is in node_modules may lie outside the project.
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
    // Whether a file is missing or may not be read is the same to a caller that may not read it.
    let (code, message) = if ABSENT_CODES.contains(&code) { ABSENT } else { (code, message) };
    let place =
        SourceLocation { file: id.to_owned(), line: line.parse().ok()?, column: column.parse().ok()? };
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
