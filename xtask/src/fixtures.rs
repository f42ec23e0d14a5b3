//! What the tests need in addition to cargo and Debian packages: a few npm packages. Installed here, or skipped in
//! one line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run::quiet;
use crate::setup::{DEBIAN_PYTHON, has_pytest};

/// The packages tests import, pinned so that a test means the same everywhere.
const PACKAGES: [&str; 4] = ["zod@4.4.0", "date-fns@4.4.0", "typescript@7.0.2", "tsx@4.20.6"];

/// Names the folder that holds `node_modules` for the tests.
const NODE_MODULES_VARIABLE: &str = "TGP_TEST_NODE_MODULES";

/// Names a Python that has pytest.
const PYTEST_VARIABLE: &str = "TGP_TEST_PYTEST";

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

pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}
