//! Clippy as a part of the build that the tests need. `cargo clippy` would compile every dependency a second time: it
//! wraps the compiler for `cargo check`, and this wraps it for the build instead.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run;

/// What the wrapper reads its arguments from, and how they are separated there.
const ARGUMENTS: (&str, &str) = ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");

/// The feature that is off by default.
const FEATURE: &str = "tgp-cli/graph-bolt";

/// How cargo has to be called for a build with lints.
pub struct Lints {
    setting: String,
    environment: Vec<(String, String)>,
}

impl Lints {
    pub fn new() -> Result<Self> {
        let wrapper = wrapper()?;
        let setting = format!("build.rustc-workspace-wrapper={:?}", wrapper.display().to_string());
        Ok(Self { setting, environment: vec![(ARGUMENTS.0.to_owned(), ARGUMENTS.1.to_owned())] })
    }

    /// The arguments with those that add the lints. They are no variable, which the tests would pass on to the cargo of their
    /// own projects.
    pub fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let (command, rest) = arguments.split_at(arguments.len().min(1));
        [command, &["--config", self.setting.as_str()], rest].concat()
    }

    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Builds everything that is tested, and the program with the feature that is off otherwise. The latter with one test,
    /// since its dependencies would have other features without any, and be compiled again.
    pub fn build(&self, root: &Path) -> Result<()> {
        let all = ["test", "--workspace", "--no-run", "--quiet"];
        let with_feature = [all.as_slice(), &["--test", "docs", "--features", FEATURE]].concat();
        for command in [with_feature.as_slice(), &all] {
            run::cargo(root, &self.arguments(command), &self.environment)?;
        }
        Ok(())
    }
}

/// The compiler of clippy, which is beside cargo.
fn wrapper() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from);
    let beside = cargo.as_deref().and_then(Path::parent).map(|folder| folder.join("clippy-driver"));
    let name = Path::new("clippy-driver");
    let found = beside.filter(|path| path.is_file()).or_else(|| {
        let folders = std::env::var_os("PATH").context("PATH is not set").ok()?;
        std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
    });
    match found {
        Some(path) => Ok(path),
        None => bail!("clippy is not installed; run `rustup component add clippy`"),
    }
}
