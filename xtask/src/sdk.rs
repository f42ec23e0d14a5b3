//! The clients in `sdk/` and the examples: their own tests, on the built program and with the packages that people use them
//! with. They work on a copy in the target directory, so that nothing is left in the repository.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::databases::{PAUSE, as_user};
use crate::setup::{self, Need};
use crate::{databases, fixtures, run};

/// Names the program that the tests start; without it the one of this repository is built.
const PROGRAM_VARIABLE: &str = "TGP_BIN";

/// What the tests read. npm, pip, pytest and compilers write beside what they work on, hence the copy.
const COPIED: [&str; 4] = ["sdk", "examples", "docs", "xtask/src/dist"];

/// The folder in the target directory, with the copy in `tree`, npm packages and Python's environment.
const FOLDER: &str = "tgp-sdk";
/// Where `npm run setup` installs, in the copy; kept from one run to the next.
const NPM_PACKAGES: &str = "sdk/node/.dev";

/// The oldest Node of `@tgp/core`. Tests that need a newer one run with that of the npm package `node`.
const OLDEST_NODE: (u32, u32) = (20, 3);
const OLDEST_PYTHON: (u32, u32) = (3, 10);
/// Tried in this order.
const PYTHONS: [&str; 6] = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];

/// The groups of `sdk/python/pyproject.toml` that its tests need.
const PYTHON_GROUPS: [&str; 2] = ["test", "check"];

/// The longest that one command may take; it is killed then. All tests of a client usually take three minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// `cargo xtask sdk [node] [python]`.
pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    if let Some(other) = arguments.iter().find(|name| !["node", "python"].contains(&name.as_str())) {
        bail!("unknown client `{other}`: expected node or python");
    }
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name);
    setup::ensure(&[Need::Fixtures, Need::Servers])?;
    let program = program(root)?;
    // Held until the tests are over, then stopped.
    let databases = databases::start(&fixtures::target(root));
    check(root, &program, databases.environment(), is_wanted)
}

/// All clients on the program that the tests have built, with the databases that are running.
pub fn check_all(root: &Path, environment: &[(String, String)]) -> Result<()> {
    check(root, &fixtures::target(root).join("debug/tgp"), environment, |_| true)
}

fn check(
    root: &Path,
    program: &Path,
    environment: &[(String, String)],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<()> {
    let folder = fixtures::target(root).join(FOLDER);
    let tree = copy(root, &folder)?;
    let mut environment = environment.to_vec();
    environment.push((PROGRAM_VARIABLE.to_owned(), program.display().to_string()));
    if is_wanted("node") {
        node(&tree, &environment)?;
    }
    if is_wanted("python") {
        python(&tree, &folder, &environment)?;
    }
    Ok(())
}

fn program(root: &Path) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE) {
        return std::path::absolute(named).context("the present directory cannot be found");
    }
    // With the features of the whole workspace, as the tests build it: the dependencies are compiled once.
    run::cargo(root, &["build", "--workspace", "--bin", "tgp"], &[])?;
    Ok(fixtures::target(root).join("debug/tgp"))
}

/// Copies the files that git knows or would add. The npm packages of the last run stay.
fn copy(root: &Path, folder: &Path) -> Result<PathBuf> {
    let tree = folder.join("tree");
    let (packages, kept) = (tree.join(NPM_PACKAGES), folder.join("npm-packages"));
    if packages.exists() {
        remove(&kept)?;
        fs::rename(&packages, &kept).context("cannot keep the npm packages")?;
    }
    remove(&tree)?;
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])
        .args(COPIED)
        .current_dir(root)
        .output()
        .context("cannot start git")?;
    if !listing.status.success() {
        bail!("`git ls-files` failed: {}", String::from_utf8_lossy(&listing.stderr).trim());
    }
    let names = String::from_utf8(listing.stdout).context("a path is not UTF-8")?;
    for name in names.split('\0').filter(|name| !name.is_empty() && root.join(name).is_file()) {
        let target = tree.join(name);
        let parent = target.parent().context("a path has no parent")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::copy(root.join(name), &target).with_context(|| format!("cannot copy {name}"))?;
    }
    if kept.exists() {
        fs::rename(&kept, &packages).context("cannot restore the npm packages")?;
    }
    Ok(tree)
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Also tests the examples of Node.
fn node(tree: &Path, environment: &[(String, String)]) -> Result<()> {
    if version("node", &["--version"]).is_none_or(|found| found < OLDEST_NODE) {
        let (major, minor) = OLDEST_NODE;
        println!(
            "xtask: skipped: the client and the examples for Node (Node {major}.{minor} or newer is not installed)"
        );
        return Ok(());
    }
    let directory = tree.join("sdk/node");
    if let Err(error) = step("npm", &["run", "setup"], &directory, environment) {
        println!(
            "xtask: skipped: the client and the examples for Node (npm cannot install its packages: {error:#})"
        );
        return Ok(());
    }
    for script in ["build", "check", "test"] {
        step("npm", &["run", script], &directory, environment)?;
    }
    step("npm", &["run", "generate", "--", "--check"], &directory, environment)
}

/// Also tests `examples/fastapi`.
fn python(tree: &Path, folder: &Path, environment: &[(String, String)]) -> Result<()> {
    let is_new = |name: &&&str| version(name, &["--version"]).is_some_and(|found| found >= OLDEST_PYTHON);
    let Some(system_python) = PYTHONS.iter().find(is_new) else {
        let (major, minor) = OLDEST_PYTHON;
        println!(
            "xtask: skipped: the client and the example for Python (Python {major}.{minor} or newer is not installed)"
        );
        return Ok(());
    };
    let directory = tree.join("sdk/python");
    let python = folder.join("python/bin/python").display().to_string();
    if let Err(error) = install_python(system_python, &python, folder, &directory, environment) {
        println!(
            "xtask: skipped: the client and the example for Python (pip cannot install its packages: {error:#})"
        );
        return Ok(());
    }
    // pyright is a program for Node, which PyPI's package fetches through npm.
    if version("node", &["--version"]).is_some_and(|found| found >= OLDEST_NODE) {
        let check = ["-m", "pyright", "--warnings", "--pythonpath", python.as_str()];
        step(&python, &check, &directory, environment)?;
    } else {
        println!("xtask: skipped: pyright (Node is not installed)");
    }
    for check in [
        ["-m", "ruff", "check"].as_slice(),
        &["-m", "mypy"],
        &["-m", "pytest"],
        &["scripts/generate_protocol.py", "--check"],
        &["scripts/generate_definitions.py", "--check"],
    ] {
        step(&python, check, &directory, environment)?;
    }
    // Installed as an application has it.
    step(&python, &["-m", "pip", "install", "--quiet", "--no-deps", "."], &directory, environment)?;
    step(&python, &["-m", "pytest"], &tree.join("examples/fastapi"), environment)
}

fn install_python(
    system_python: &str,
    python: &str,
    folder: &Path,
    directory: &Path,
    environment: &[(String, String)],
) -> Result<()> {
    if !Path::new(python).exists() {
        let place = folder.join("python").display().to_string();
        step(system_python, &["-m", "venv", &place], folder, environment)?;
    }
    // Groups of dependencies are new in pip.
    step(python, &["-m", "pip", "install", "--quiet", "--upgrade", "pip"], directory, environment)?;
    let groups = PYTHON_GROUPS.iter().flat_map(|group| ["--group", group]);
    let install: Vec<&str> = ["-m", "pip", "install", "--quiet"].into_iter().chain(groups).collect();
    step(python, &install, directory, environment)
}

/// The first two numbers of what a program reports as its version.
fn version(program: &str, arguments: &[&str]) -> Option<(u32, u32)> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let numbers = text.trim_start_matches(|character: char| !character.is_ascii_digit());
    let mut parts = numbers.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

fn step(program: &str, arguments: &[&str], directory: &Path, environment: &[(String, String)]) -> Result<()> {
    println!("xtask: {program} {}", arguments.join(" "));
    // A group of its own, so that the end of the time ends all its processes.
    let mut child = as_user(None, "KILL", Path::new(program))
        .args(arguments)
        .current_dir(directory)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().with_context(|| format!("cannot wait for `{program}`"))? {
            return if status.success() {
                Ok(())
            } else {
                bail!("`{program} {}` failed", arguments.join(" "))
            };
        }
        if started.elapsed() >= PATIENCE {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
            let _ = child.wait();
            bail!("`{program} {}` was killed after {} s", arguments.join(" "), PATIENCE.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}
