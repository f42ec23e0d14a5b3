//! Wheels and an environment become a list of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pep440_rs::Version;

use crate::builder::Builder;
use crate::environment::Environment;
use crate::layout::Layout;
use crate::removal::{self, Removal};
use crate::{EnvironmentError, InstallError, InstalledDistribution, Name, Wheel};

/// Longest line of the list of packages that is taken over.
const MAX_LINE: usize = 1000;
/// Longest first line that every system reads.
const MAX_FIRST_LINE: usize = 120;

/// The Python that an environment is for.
#[derive(Clone, Debug)]
pub struct Interpreter {
    pub version: Version,
    /// Its real program, such as `/usr/bin/python3.11`.
    pub program: PathBuf,
}

impl Interpreter {
    pub(crate) fn minor(&self) -> (u64, u64) {
        let mut release = self.version.release().iter().copied();
        (release.next().unwrap_or_default(), release.next().unwrap_or_default())
    }
}

/// How wheels are installed.
pub struct InstallOptions<'a> {
    pub interpreter: &'a Interpreter,
    /// The absolute path that the environment has where it is used.
    pub location: &'a Path,
    /// An empty directory for the contents of the new files. Nobody else writes it.
    pub staging: &'a Path,
    /// The packages that are named by a person or a manifest.
    pub requested: &'a BTreeSet<Name>,
    /// A directory of the project that programs of the environment import from.
    pub project: Option<&'a Path>,
    /// Asked again and again.
    pub stop: &'a dyn Fn() -> bool,
}

/// One change in an environment. Paths are relative to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentChange {
    Remove { path: String },
    RemoveDirectory { path: String },
    MakeDirectory { path: String },
    Write { path: String, content: PathBuf, bytes: u64, executable: bool },
    Link { path: String, target: PathBuf },
}

impl EnvironmentChange {
    /// What it changes, relative to the environment.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Remove { path }
            | Self::RemoveDirectory { path }
            | Self::MakeDirectory { path }
            | Self::Write { path, .. }
            | Self::Link { path, .. } => path,
        }
    }
}

/// What has to change for some wheels to be installed, and what is installed before and after.
pub struct Installation {
    /// Sorted by path; a removal comes before what takes its place. Removals are carried out from the last to the first, then
    /// the others from the first to the last.
    pub changes: Vec<EnvironmentChange>,
    /// One line for each package.
    pub before: Option<String>,
    pub after: String,
    /// `name@version` of what was not there in this version.
    pub installed: Vec<String>,
}

impl Installation {
    /// Unpacks wheels to a staging directory. A package that is installed in the version of its wheel stays as it is.
    ///
    /// # Errors
    /// For wheels that cannot be installed, alone or together.
    pub fn of(
        environment: Option<&Environment>,
        wheels: Vec<Wheel>,
        options: &InstallOptions<'_>,
    ) -> Result<Self, InstallError> {
        let first_line = first_line(options.location)?;
        let layout = Layout::new(options.interpreter.minor());
        if let Some(environment) = environment.filter(|environment| environment.layout != layout) {
            let (major, minor) = environment.python();
            let message =
                format!("it is for Python {major}.{minor}, and not for {}", options.interpreter.version);
            return Err(EnvironmentError::NotAnEnvironment(message).into());
        }
        let wheels = new_wheels(environment, wheels)?;
        let names: BTreeSet<Name> = wheels.iter().map(|wheel| wheel.name().clone()).collect();
        let installed =
            environment.map(|environment| environment.distributions.as_slice()).unwrap_or_default();
        let (replaced, kept): (Vec<&InstalledDistribution>, Vec<_>) =
            installed.iter().partition(|one| names.contains(&one.name));
        let mut builder = Builder::new(options, &layout, first_line, owners(&kept));
        let removal = match environment {
            Some(environment) => removal::find(environment, &replaced, options.stop)?,
            None => {
                builder.new_environment()?;
                Removal::default()
            }
        };
        let mut lines = list_of(environment, &kept);
        let mut installed = Vec::new();
        for mut wheel in wheels {
            let line = builder.wheel(&mut wheel)?;
            lines.insert(wheel.name().to_string(), line);
            installed.push(format!("{}@{}", wheel.name(), wheel.version()));
        }
        installed.sort();
        let after: String = lines.into_values().collect();
        let before = environment
            .map(|environment| list_of(Some(environment), &all(environment)).into_values().collect());
        builder.own_files(environment, &after)?;
        let changes = builder.changes(environment, removal)?;
        Ok(Self { changes, before, after, installed })
    }
}

fn all(environment: &Environment) -> Vec<&InstalledDistribution> {
    environment.distributions.iter().collect()
}

/// The wheels that are not installed already.
fn new_wheels(environment: Option<&Environment>, wheels: Vec<Wheel>) -> Result<Vec<Wheel>, InstallError> {
    let installed = environment.map(|environment| environment.distributions.as_slice()).unwrap_or_default();
    let mut found: BTreeMap<Name, Wheel> = BTreeMap::new();
    for wheel in wheels {
        let same: Vec<_> = installed.iter().filter(|one| one.name == *wheel.name()).collect();
        if matches!(same.as_slice(), [one] if one.version == *wheel.version()) {
            continue;
        }
        let name = wheel.name().clone();
        if found.insert(name.clone(), wheel).is_some() {
            return Err(InstallError::Twice(name.to_string()));
        }
    }
    Ok(found.into_values().collect())
}

/// Which distribution has which file.
fn owners(kept: &[&InstalledDistribution]) -> BTreeMap<String, String> {
    let paths = kept
        .iter()
        .flat_map(|one| one.record.keys().map(move |path| (path.to_lowercase(), one.name.to_string())));
    paths.collect()
}

/// The list of installed packages: what the environment's own list says of a package, where it is still true.
fn list_of(
    environment: Option<&Environment>,
    distributions: &[&InstalledDistribution],
) -> BTreeMap<String, String> {
    let old = environment.map(|environment| environment.list.as_str()).unwrap_or_default();
    let line = |one: &&InstalledDistribution| {
        let start = format!("{}=={}", one.name, one.version);
        // The list may be a file of a repository that was cloned: only what the kernel may have written is shown.
        let is_same = |line: &&str| {
            line.split(' ').next() == Some(start.as_str())
                && line.len() <= MAX_LINE
                && line.chars().all(|letter| matches!(letter, ' '..='~'))
        };
        let text = old.lines().find(is_same).unwrap_or(&start);
        (one.name.to_string(), format!("{text}\n"))
    };
    distributions.iter().map(line).collect()
}

/// The first line of programs in the environment.
fn first_line(location: &Path) -> Result<String, InstallError> {
    let path = location.join("bin/python");
    let shown = || InstallError::Location(location.display().to_string());
    let path = path.to_str().ok_or_else(shown)?;
    if !path.starts_with('/') || path.chars().any(|letter| letter.is_control() || "\"'\\$`".contains(letter))
    {
        return Err(shown());
    }
    if path.len() <= MAX_FIRST_LINE && !path.contains(' ') {
        return Ok(format!("#!{path}\n"));
    }
    // A shell reads the second line as a command, and Python both as a text.
    Ok(format!("#!/bin/sh\n'''exec' \"{path}\" \"$0\" \"$@\"\n' '''\n"))
}
