//! The clients in `sdk/`: their own tests, on the built program and with the packages that people use them with.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::setup::{self, Need};
use crate::{databases, fixtures, run};

/// The groups of `sdk/python/pyproject.toml` that its tests need.
const PYTHON_GROUPS: [&str; 2] = ["test", "check"];

/// `cargo xtask sdk [node] [python]`.
pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    if let Some(other) = arguments.iter().find(|name| !["node", "python"].contains(&name.as_str())) {
        bail!("unknown client `{other}`: expected node or python");
    }
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name);
    setup::ensure(&[Need::Fixtures, Need::Servers])?;
    // With the features of the whole workspace, as the tests build it: the dependencies are compiled once.
    run::cargo(root, &["build", "--workspace", "--bin", "tgp"], &[])?;
    // Held until the tests are over, then stopped.
    let databases = databases::start(&fixtures::target(root));
    let mut environment = databases.environment().to_vec();
    let program = fixtures::target(root).join("debug/tgp");
    environment.push(("TGP_BIN".to_owned(), program.display().to_string()));
    if is_wanted("node") {
        let directory = root.join("sdk/node");
        for script in ["setup", "build", "check", "test"] {
            step("npm", &["run", script], &directory, &environment)?;
        }
        step("npm", &["run", "generate", "--", "--check"], &directory, &environment)?;
    }
    if is_wanted("python") {
        python(root, &environment)?;
    }
    Ok(())
}

fn python(root: &Path, environment: &[(String, String)]) -> Result<()> {
    let directory = root.join("sdk/python");
    let folder = fixtures::target(root).join("tgp-sdk-python");
    let python = folder.join("bin/python").display().to_string();
    if !Path::new(&python).exists() {
        step("python3", &["-m", "venv", &folder.display().to_string()], root, environment)?;
    }
    // Groups of dependencies are new in pip.
    step(&python, &["-m", "pip", "install", "--quiet", "--upgrade", "pip"], &directory, environment)?;
    let groups = PYTHON_GROUPS.iter().flat_map(|group| ["--group", group]);
    let install: Vec<&str> = ["-m", "pip", "install", "--quiet"].into_iter().chain(groups).collect();
    step(&python, &install, &directory, environment)?;
    for check in [
        ["-m", "ruff", "check"].as_slice(),
        &["-m", "mypy"],
        &["-m", "pytest"],
        &["scripts/generate_protocol.py", "--check"],
        &["scripts/generate_definitions.py", "--check"],
    ] {
        step(&python, check, &directory, environment)?;
    }
    Ok(())
}

fn step(program: &str, arguments: &[&str], directory: &Path, environment: &[(String, String)]) -> Result<()> {
    println!("xtask: {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    if status.success() { Ok(()) } else { bail!("`{program} {}` failed", arguments.join(" ")) }
}
