//! The test runners of the sample projects in `crates/cli/tests/cli/projects`: vitest, jest and pytest, each as a project has
//! it. Installed once into the target directory, or skipped in one line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::fixtures::target;
use crate::run::{quiet, quiet_within};

/// Names the folder with the runners.
const VARIABLE: &str = "TGP_TEST_RUNNERS";

/// The folders of npm, each with its packages; pinned so that a test means the same everywhere.
const NPM: [(&str, &[&str]); 2] = [
    ("vitest", &["vitest@3.2.4"]),
    ("jest", &["jest@29.7.0", "ts-jest@29.4.15", "typescript@5.9.3", "@types/jest@29.5.14"]),
];
/// An environment of Python, with its package.
const PYTHON: (&str, &str) = ("venv", "pytest==8.4.2");

/// The longest that one of them may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Installs them, and gives the variable that names their folder.
pub fn install(root: &Path) -> Result<Option<(String, String)>> {
    let folder = target(root).join("tgp-test-runners");
    let stamp = folder.join("installed");
    let wanted: Vec<&str> =
        NPM.iter().flat_map(|(_, packages)| packages.iter().copied()).chain([PYTHON.1]).collect();
    let wanted = wanted.join(" ");
    let variable = || Some((VARIABLE.to_owned(), folder.display().to_string()));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(variable());
    }
    let _ = fs::remove_dir_all(&folder);
    println!("xtask: installing the test runners of the sample projects: {wanted}");
    for (name, packages) in NPM {
        let place = folder.join(name);
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        fs::write(place.join("package.json"), "{ \"private\": true }\n")?;
        let mut arguments =
            vec!["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
        arguments.extend(packages);
        if !quiet_within(PATIENCE, "npm", &arguments, &place) {
            return Ok(skipped("npm"));
        }
    }
    let (name, package) = PYTHON;
    let is_made = quiet("python3", &["-m", "venv", name], &folder);
    let python = folder.join(name).join("bin/python").display().to_string();
    if !is_made || !quiet_within(PATIENCE, &python, &["-m", "pip", "install", "--quiet", package], &folder) {
        return Ok(skipped("pip"));
    }
    fs::write(stamp, wanted)?;
    Ok(variable())
}

fn skipped(manager: &str) -> Option<(String, String)> {
    println!(
        "xtask: skipped: sample projects with vitest, jest and pytest ({manager} could not install them)"
    );
    None
}
