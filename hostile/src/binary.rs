//! The `tgp` that is attacked: the one of this build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

/// Names another binary, such as a release to be tried.
pub const VARIABLE: &str = "TGP_HOSTILE_BINARY";

/// The binary beside this program, built first when it is missing or older than its sources: `cargo test` builds the
/// binaries of a package for the tests of that package alone.
///
/// # Errors
/// When there is none and none can be built.
pub fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("{VARIABLE} names {}, which is not a file", named.display());
        }
        return Ok(named.canonicalize()?);
    }
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let folder = program.parent().context("this program is in no folder")?;
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let binary = folder.join("tgp");
    if !is_current(&binary)? {
        build(folder)?;
    }
    if !binary.is_file() {
        bail!(
            "there is no {}; build it with `cargo build --workspace --bin tgp`, or name one with {VARIABLE}",
            binary.display()
        );
    }
    Ok(binary)
}

/// Whether the binary is there and no source of the product is newer.
fn is_current(binary: &Path) -> Result<bool> {
    let Ok(built) = fs::metadata(binary).and_then(|metadata| metadata.modified()) else { return Ok(false) };
    Ok(newest(&workspace().join("crates"))? <= built)
}

/// When a source below this folder was changed last; tests are not part of the binary.
fn newest(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                if entry.file_name() != "tests" {
                    open.push(entry.path());
                }
            } else {
                newest = newest.max(entry.metadata()?.modified()?);
            }
        }
    }
    Ok(newest)
}

fn build(folder: &Path) -> Result<()> {
    let profile = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let target = folder.parent().context("the build folder has no parent")?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--workspace", "--bin", "tgp", "--target-dir"]).arg(target);
    match profile.as_str() {
        "debug" => {}
        other => {
            command.args(["--profile", other]);
        }
    }
    let status = command.current_dir(workspace()).status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("`cargo build --workspace --bin tgp` failed");
    }
    Ok(())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
