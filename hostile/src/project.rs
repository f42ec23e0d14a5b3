//! A separate project for each run of a case, in an environment with nothing of the machine's user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::case::CaseFile;
use crate::needs::{MYSQL_VARIABLE, POSTGRES_VARIABLE};
use crate::process::{self, Ran};

/// Every process of a run has it, so that those which are left can be found.
pub const MARK: &str = "TGP_HOSTILE_MARK";

/// How long a step may take where its case says nothing.
const STEP_LIMIT: Duration = Duration::from_secs(60);

/// How long the person's scripts may take.
const SETUP_LIMIT: Duration = Duration::from_secs(300);

/// What the configuration of each project begins with: a loaded machine must not end a tool by its CPU time.
const CONFIG_BEGINNING: &str = "\
import { defineTGPConfig } from '@tgp/core';
export default defineTGPConfig({
  sandbox: { cpuMs: 5000, wallMs: 20000 },
";

/// Commits that scripts make have an author without a configuration of git.
const GIT_IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "person"),
    ("GIT_AUTHOR_EMAIL", "person@example.com"),
    ("GIT_COMMITTER_NAME", "person"),
    ("GIT_COMMITTER_EMAIL", "person@example.com"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
];

/// Whether the person has confirmed what the configuration of a case names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigTrust {
    Confirmed,
    /// The families about trust: the configuration is the attack.
    Unconfirmed,
}

/// `here` is the project; `home`, `cache`, `tmp`, `bin` and `aside` (what the runner itself keeps) are beside it.
pub struct Project {
    /// Removes everything when the project is dropped.
    root: TempDir,
    mark: String,
}

impl Project {
    /// An initialised project below `parent`, whose processes have `mark`.
    ///
    /// # Errors
    /// When the folders cannot be made, or `tgp init` fails.
    pub fn new(parent: &Path, binary: &Path, mark: &str) -> Result<Self> {
        let root = tempfile::Builder::new().prefix("p").tempdir_in(parent)?;
        for name in ["here", "home", "cache", "tmp", "bin", "aside"] {
            fs::create_dir(root.path().join(name))?;
        }
        std::os::unix::fs::symlink(binary, root.path().join("bin/tgp"))?;
        let project = Self { root, mark: mark.to_owned() };
        project.prepare(&["init", "--json"])?;
        Ok(project)
    }

    /// Lays out what the person has made before the attack.
    ///
    /// # Errors
    /// When a file cannot be written or the setup fails.
    pub fn lay_out(&self, case: &CaseFile, trust: ConfigTrust) -> Result<()> {
        self.configure(case.config.as_deref().unwrap_or_default())?;
        if case.config.is_some() && trust == ConfigTrust::Confirmed {
            self.prepare(&["trust", "--yes"])?;
        }
        for (name, text) in &case.files {
            self.write(name, text)?;
        }
        if let Some(setup) = &case.setup {
            let ran = self.bash(&format!("set -e\n{setup}"), SETUP_LIMIT)?;
            if ran.code != Some(0) {
                bail!("the setup ended with {:?}:\n{}", ran.code, ran.said());
            }
        }
        Ok(())
    }

    /// Writes the configuration with these fields.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn configure(&self, fields: &str) -> Result<()> {
        self.write("tgp.config.ts", &format!("{CONFIG_BEGINNING}{fields}\n}});\n"))
    }

    /// A path in the project.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.path().join("here").join(name)
    }

    /// A path beside the project, for the runner's own files.
    #[must_use]
    pub fn aside(&self, name: &str) -> PathBuf {
        self.root.path().join("aside").join(name)
    }

    /// The folder that holds everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The folder of temporary files that all processes of this project use.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Writes a file of the project.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.file(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// A program in the clean environment.
    #[must_use]
    pub fn program(&self, program: &str) -> Command {
        let own = self.root.path().join("bin");
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&system)));
        let mut command = Command::new(program);
        command
            .current_dir(self.file(""))
            .env_clear()
            .env("PATH", path.unwrap_or(system))
            .env("HOME", self.root.path().join("home"))
            .env("TGP_HOME", self.root.path().join("home/.tgp"))
            .env("TGP_CACHE_DIR", self.root.path().join("cache"))
            .env("TMPDIR", self.temporary())
            .env("LC_ALL", "C.UTF-8")
            .env(MARK, &self.mark)
            .envs(GIT_IDENTITY);
        // The authority of a server of the case, which speaks TLS.
        let authority = self.root.path().join("home/authority.pem");
        command.envs(authority.is_file().then_some(("SSL_CERT_FILE", authority)));
        for name in [POSTGRES_VARIABLE, MYSQL_VARIABLE] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
    }

    /// Runs `tgp` with these arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn tgp(&self, arguments: &[&str], limit: Duration) -> Result<Ran> {
        self.tgp_with_input(arguments, "", limit)
    }

    /// The same with something on its standard input.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn tgp_with_input(&self, arguments: &[&str], input: &str, limit: Duration) -> Result<Ran> {
        let mut command = self.command();
        command.args(arguments);
        process::run(command, input, limit, &self.aside(""))
    }

    /// `tgp` of this project, to be given arguments.
    #[must_use]
    pub fn command(&self) -> Command {
        self.program(&self.root.path().join("bin/tgp").to_string_lossy())
    }

    /// Runs bash in the project.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn bash(&self, text: &str, limit: Duration) -> Result<Ran> {
        let mut command = self.program("bash");
        command.args(["-c", text]);
        process::run(command, "", limit, &self.aside(""))
    }

    /// Runs a script of the person, who may take longer than an attacker.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn person(&self, text: &str) -> Result<Ran> {
        self.bash(text, SETUP_LIMIT)
    }

    /// Runs a command of the person that must succeed, and gives what it printed.
    ///
    /// # Errors
    /// When it does not.
    pub fn prepare(&self, arguments: &[&str]) -> Result<String> {
        let ran = self.tgp(arguments, SETUP_LIMIT)?;
        if ran.code != Some(0) {
            bail!("`tgp {}` ended with {:?}:\n{}", arguments.join(" "), ran.code, ran.said());
        }
        Ok(ran.stdout)
    }

    /// How long a step of this case may take.
    #[must_use]
    pub fn step_limit(&self, case: &CaseFile) -> Duration {
        case.seconds.map_or(STEP_LIMIT, Duration::from_secs)
    }
}
