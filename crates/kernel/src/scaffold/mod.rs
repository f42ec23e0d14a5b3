//! `tgp init`: an empty folder becomes a project an agent can work in. Run twice it changes nothing.

mod foreign_types;
mod generated;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tgp_fs::search_variable;

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};
use tgp_registry::Index;

use crate::project_access::ForeignOwner;
pub(crate) use foreign_types::{declarations, refresh as refresh_foreign};
pub(crate) use generated::refresh;

const CONFIG: &str = include_str!("templates/tgp.config.ts");
/// The client for Node.
const CLIENT: &str = "@tgp/core";
const TOOL_GITIGNORE: &str = "# What is not source stays on this machine.\n/.state/\n/data.sqlite\n/data.sqlite-*\n/upstream.d.ts\n/host.d.ts\n\
     .tgp-tmp-*\n";

/// What was done and what was there already, as paths relative to the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scaffolded {
    pub created: Vec<String>,
    pub updated: Vec<String>,
    pub kept: Vec<String>,
    /// What could not be done, one sentence each.
    pub warnings: Vec<String>,
}

/// Why a project could not be initialised.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    #[error("cannot write `{path}`: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("`{path}` is a link, a pipe or a device")]
    Special { path: PathBuf },
    #[error(transparent)]
    Owner(ToolError),
    #[error("`{path}` is not valid JSON: {source}")]
    PackageJson { path: PathBuf, source: serde_json::Error },
}

impl From<ScaffoldError> for ToolError {
    fn from(error: ScaffoldError) -> Self {
        if let ScaffoldError::Owner(error) = error {
            return error;
        }
        let code = match &error {
            ScaffoldError::Write { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Code::Permission
            }
            ScaffoldError::Write { .. } => Code::Internal,
            ScaffoldError::Special { .. } => Code::Security,
            ScaffoldError::PackageJson { .. } | ScaffoldError::Owner(_) => Code::Config,
        };
        ToolError::new(code, error.to_string())
            .help("correct that file or its permissions and run `tgp init` again")
    }
}

/// Scaffolds `project`.
///
/// # Errors
/// When a file cannot be written. What was made before stays; running it again completes the rest.
pub fn initialise(project: &Path) -> Result<Scaffolded, ScaffoldError> {
    ForeignOwner::check_new_project(project).map_err(ScaffoldError::Owner)?;
    let mut work = Work { project, done: Scaffolded::default() };
    // A broken package.json is found before anything is written.
    let package = work.read_package_json()?;
    let uses_client = package.as_ref().is_some_and(|(_, package)| depends_on_client(package));
    work.file("tgp.config.ts", &config(uses_client))?;
    work.directory(".tgp/tools")?;
    work.directory(".tgp/bin")?;
    work.file(".tgp/meta.json", &String::from_utf8_lossy(&Index::default().to_bytes()))?;
    work.file(".tgp/.gitignore", TOOL_GITIGNORE)?;
    for file in &generated::FILES {
        work.file(&format!(".tgp/{}", file.name), &file.text())?;
    }
    work.repository(".tgp")?;
    work.gitignore()?;
    work.gitattributes()?;
    if let Some(package) = package.filter(|_| uses_client) {
        work.package_json(package)?;
    }
    Ok(work.done)
}

/// Whether a package.json names the client, and with it the program `tgp` and the types of a configuration.
fn depends_on_client(package: &Value) -> bool {
    ["dependencies", "devDependencies"]
        .iter()
        .any(|list| package.get(list).and_then(|list| list.get(CLIENT)).is_some_and(Value::is_string))
}

/// The configuration. Without the client an import of it would fail in the project's type check.
fn config(uses_client: bool) -> String {
    if !uses_client {
        return CONFIG.to_owned();
    }
    let typed = CONFIG.replacen("export default {", "export default defineTGPConfig({", 1);
    let typed = typed.strip_suffix("};\n").map_or(typed.clone(), |typed| format!("{typed}}});\n"));
    format!("import {{ defineTGPConfig }} from '{CLIENT}';\n\n{typed}")
}

struct Work<'a> {
    project: &'a Path,
    done: Scaffolded,
}

impl Work<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }

    fn wrong(&self, name: &str) -> impl Fn(io::Error) -> ScaffoldError {
        let path = self.path(name);
        move |source| ScaffoldError::Write { path: path.clone(), source }
    }

    /// Refuses a link, a pipe or a device in the place of what is made: it would be written elsewhere, or waited for.
    fn plain(&self, name: &str) -> Result<(), ScaffoldError> {
        let special =
            |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir() && !found.is_file());
        // The folders on the way as well, from the project downwards.
        let mut path = self.project.to_owned();
        for part in Path::new(name) {
            path.push(part);
            if special(&path) {
                return Err(ScaffoldError::Special { path });
            }
        }
        Ok(())
    }

    fn directory(&mut self, name: &str) -> Result<(), ScaffoldError> {
        self.plain(name)?;
        let path = self.path(name);
        if path.is_dir() {
            self.done.kept.push(format!("{name}/"));
            return Ok(());
        }
        fs::create_dir_all(&path).map_err(self.wrong(name))?;
        // Git keeps no empty directory, and the next clone must find this one.
        fs::write(path.join(".gitkeep"), "").map_err(self.wrong(name))?;
        self.done.created.push(format!("{name}/"));
        Ok(())
    }

    fn file(&mut self, name: &str, content: &str) -> Result<(), ScaffoldError> {
        self.plain(name)?;
        let path = self.path(name);
        if path.exists() {
            self.done.kept.push(name.to_owned());
            return Ok(());
        }
        fs::write(&path, content).map_err(self.wrong(name))?;
        self.done.created.push(name.to_owned());
        Ok(())
    }

    fn repository(&mut self, name: &str) -> Result<(), ScaffoldError> {
        let label = format!("{name}/.git");
        if self.path(&label).exists() {
            self.done.kept.push(label);
            return Ok(());
        }
        let search = std::env::var_os("PATH").unwrap_or_default();
        let project = fs::canonicalize(self.project).map_err(self.wrong(name))?;
        // Started with nothing of the user's own git: no template, no hooks, no configuration.
        let made = Command::new("git")
            .args(["init", "--quiet", "--initial-branch=main", "--template=", "--", "."])
            .current_dir(self.path(name))
            .env_clear()
            .env("PATH", search_variable(&search, |entry| entry.starts_with(&project)))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match made {
            Ok(status) if status.success() => self.done.created.push(label),
            Ok(status) => self
                .done
                .warnings
                .push(format!("`git init` failed in {name} ({status}); tools have no history yet")),
            Err(_) => self.done.warnings.push("git is not installed; tools have no history yet".to_owned()),
        }
        Ok(())
    }

    fn gitignore(&mut self) -> Result<(), ScaffoldError> {
        let is_there = |line: &str| matches!(line, ".tgp" | ".tgp/" | "/.tgp" | "/.tgp/");
        self.lines(".gitignore", is_there, "# The tool repository has a history of its own.\n/.tgp/\n")
    }

    /// Chronicles of two branches are merged line by line, and no line's end is ever changed.
    fn gitattributes(&mut self) -> Result<(), ScaffoldError> {
        // Earlier versions named every `*.sage`, which is for chronicles beside the sources.
        let is_there =
            |line: &str| matches!(line.split_whitespace().next(), Some("/.sage/**/*.sage" | "*.sage"));
        self.lines(".gitattributes", is_there, "/.sage/**/*.sage merge=union -text\n")
    }

    /// Adds lines to a file of the project, unless it has one that says the same.
    fn lines(
        &mut self,
        name: &str,
        is_there: impl Fn(&str) -> bool,
        lines: &str,
    ) -> Result<(), ScaffoldError> {
        self.plain(name)?;
        let path = self.path(name);
        let old = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.wrong(name)(error)),
        };
        if old.as_deref().unwrap_or_default().lines().map(str::trim).any(is_there) {
            self.done.kept.push(name.to_owned());
            return Ok(());
        }
        let gap = match &old {
            Some(text) if !text.is_empty() && !text.ends_with('\n') => "\n",
            _ => "",
        };
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(&path).map_err(self.wrong(name))?;
        write!(file, "{gap}{lines}").map_err(self.wrong(name))?;
        let list = if old.is_some() { &mut self.done.updated } else { &mut self.done.created };
        list.push(name.to_owned());
        Ok(())
    }

    fn read_package_json(&self) -> Result<Option<(String, Value)>, ScaffoldError> {
        self.plain("package.json")?;
        let path = self.path("package.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ScaffoldError::Write { path, source }),
        };
        let value =
            serde_json::from_str(&text).map_err(|source| ScaffoldError::PackageJson { path, source })?;
        Ok(Some((text, value)))
    }

    /// Adds the script `tgp`, and leaves order and indentation as they are.
    fn package_json(&mut self, (text, mut value): (String, Value)) -> Result<(), ScaffoldError> {
        let name = "package.json";
        let Some(fields) = value.as_object_mut() else {
            self.done.warnings.push("package.json is not an object; it was left alone".to_owned());
            return Ok(());
        };
        let scripts = fields.entry("scripts").or_insert_with(|| json!({}));
        match scripts.as_object_mut() {
            Some(scripts) if !scripts.contains_key("tgp") => {
                scripts.insert("tgp".to_owned(), json!("tgp"));
            }
            Some(_) => {
                self.done.kept.push(name.to_owned());
                return Ok(());
            }
            None => {
                self.done
                    .warnings
                    .push("`scripts` in package.json is not an object; it was left alone".to_owned());
                return Ok(());
            }
        }
        let has_lines = text.trim_end().contains('\n');
        let indent: String = text
            .lines()
            .find_map(|line| {
                let blank: String =
                    line.chars().take_while(|character| matches!(character, ' ' | '\t')).collect();
                (!blank.is_empty()).then_some(blank)
            })
            .unwrap_or_else(|| "  ".to_owned());
        let mut bytes = Vec::new();
        let written = if has_lines {
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
            serde::Serialize::serialize(&value, &mut serializer)
        } else {
            serde_json::to_writer(&mut bytes, &value)
        };
        written.map_err(|source| ScaffoldError::PackageJson { path: self.path(name), source })?;
        if text.ends_with('\n') {
            bytes.push(b'\n');
        }
        fs::write(self.path(name), bytes).map_err(self.wrong(name))?;
        self.done.updated.push(name.to_owned());
        Ok(())
    }
}
