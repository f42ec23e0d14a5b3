//! The program that is packaged: built for the platform, or given, and stripped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, bail};

use super::platform::{Libc, Platform};
use super::sbom::PACKAGE;
use crate::run::quiet;
use crate::{fixtures, run, setup};

/// The oldest C library that a program runs with where cargo-zigbuild builds it.
const OLD_GLIBC: &str = "2.17";

/// How to compile and link the C code of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    Cargo,
    /// cargo-zigbuild, with the compiler of `ziglang`.
    Zig,
}

/// The program that was asked for, stripped, with its platform.
pub fn program(
    root: &Path,
    target: Option<&str>,
    binary: Option<&Path>,
    scratch: &Path,
) -> Result<(&'static Platform, Rc<[u8]>)> {
    let wanted = target.map(Platform::of_target).transpose()?;
    let (wanted, path) = match (binary, wanted) {
        (Some(binary), wanted) => (wanted, binary.to_owned()),
        (None, wanted) => {
            let platform = match wanted {
                Some(platform) => platform,
                None => default_platform()?,
            };
            (Some(platform), build(root, platform)?)
        }
    };
    let shown = path.display();
    let bytes = fs::read(&path).with_context(|| format!("cannot read {shown}"))?;
    let platform = Platform::of_program(&bytes).with_context(|| shown.to_string())?;
    if let Some(wanted) = wanted
        && wanted != platform
    {
        bail!("{shown} is a program for {}: expected {}", platform.target, wanted.target);
    }
    Ok((platform, strip(platform, &path, bytes, scratch)?.into()))
}

/// A static program where this machine can build one, otherwise one for its own C library.
fn default_platform() -> Result<&'static Platform> {
    let machine = std::env::consts::ARCH;
    if cfg!(target_os = "macos") {
        return Platform::of_target(&format!("{machine}-apple-darwin"));
    }
    let musl = Platform::of_target(&format!("{machine}-unknown-linux-musl"))?;
    match compiler(musl) {
        Ok(_) => Ok(musl),
        Err(reason) => {
            let gnu = Platform::of_target(&format!("{machine}-unknown-linux-gnu"))?;
            println!("xtask: building for {}, because {reason:#}", gnu.target);
            Ok(gnu)
        }
    }
}

/// What can build for a platform on this machine.
fn compiler(platform: &Platform) -> Result<Compiler> {
    let target = platform.target;
    if !has_standard_library(target) {
        bail!("the target {target} is not installed; run `rustup target add {target}`");
    }
    let is_own = platform.is_own();
    let has_zig = setup::program(&["cargo-zigbuild"]).is_some();
    match platform.libc {
        // With it the program also runs on older systems than this one.
        Libc::Glibc if has_zig => Ok(Compiler::Zig),
        Libc::Glibc if is_own => Ok(Compiler::Cargo),
        Libc::Static if is_own && setup::program(&["musl-gcc"]).is_some() => Ok(Compiler::Cargo),
        Libc::Static if has_zig => Ok(Compiler::Zig),
        Libc::System if is_own => Ok(Compiler::Cargo),
        Libc::System => bail!("{target} needs the libraries of macOS; run the command on a Mac"),
        _ => {
            let package = if is_own { "Debian's package musl-tools, or " } else { "" };
            bail!(
                "there is no C compiler for {target}; install {package}the PyPI packages ziglang and cargo-zigbuild"
            )
        }
    }
}

fn has_standard_library(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    output.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    })
}

fn build(root: &Path, platform: &Platform) -> Result<PathBuf> {
    let compiler = compiler(platform)?;
    let (command, target) = match (compiler, platform.libc) {
        (Compiler::Cargo, _) => ("build", platform.target.to_owned()),
        (Compiler::Zig, Libc::Glibc) => ("zigbuild", format!("{}.{OLD_GLIBC}", platform.target)),
        (Compiler::Zig, _) => ("zigbuild", platform.target.to_owned()),
    };
    let mut arguments = vec![command, "--locked", "--profile", "dist", "--package", PACKAGE, "--bin", "tgp"];
    arguments.extend(["--target", &target]);
    // libgit2 would otherwise use the zlib of this machine, which another may not have.
    let mut environment = vec![("LIBZ_SYS_STATIC".to_owned(), "1".to_owned())];
    // No panic passes through C code: the crates around it catch them before. Its tables for panics are of no use.
    if platform.libc != Libc::System {
        let name = format!("CFLAGS_{}", platform.target.replace('-', "_"));
        environment.push((name, "-fno-unwind-tables -fno-asynchronous-unwind-tables".to_owned()));
    }
    // For `tgp --version --verbose`.
    environment.extend(commit(root).map(|commit| ("TGP_COMMIT".to_owned(), commit)));
    run::cargo(root, &arguments, &environment)?;
    Ok(fixtures::target(root).join(platform.target).join("dist/tgp"))
}

/// The commit that is checked out, with a mark when files differ from it. None outside a repository.
fn commit(root: &Path) -> Option<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .current_dir(root)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A build of the profile `dist` is stripped already; a program that was given may not be.
fn strip(platform: &Platform, path: &Path, bytes: Vec<u8>, scratch: &Path) -> Result<Vec<u8>> {
    // A Mac runs only what is signed, and the linker signs.
    if !platform.is_own() || platform.libc == Libc::System {
        return Ok(bytes);
    }
    let stripped = scratch.join("tgp");
    let (from, to) = (path.to_string_lossy(), stripped.to_string_lossy());
    if !quiet("strip", &["-o", &to, &from], Path::new(".")) {
        println!("xtask: {from} is packaged as it is: strip failed (Debian's package binutils)");
        return Ok(bytes);
    }
    fs::read(&stripped).with_context(|| format!("cannot read {to}"))
}
