//! The Debian packages that tests need, in one list, and their installation. Only root can install them, so there is a
//! command for it: `cargo xtask setup`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::databases::{MYSQL_VARIABLE, POSTGRES_VARIABLE};
use crate::git_servers::{HTTPS_VARIABLE, SSH_VARIABLE};
use crate::graph_server::BOLT_VARIABLE;
use crate::run::quiet;

/// Debian's own Python, which its package of pytest is for.
pub(crate) const DEBIAN_PYTHON: &str = "/usr/bin/python3";

/// Prevents Debian's package scripts from starting services.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";

/// What needs a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The programs and libraries that tests and measurements call.
    Fixtures,
    /// The servers that tests connect to.
    Servers,
}

/// A Debian package that some tests need.
#[derive(Clone, Copy)]
struct Package {
    name: &'static str,
    need: Need,
    is_installed: fn() -> bool,
    /// The variable that names a server of the user's own, with which the package is not needed.
    replaced_by: Option<&'static str>,
}

const PACKAGES: [Package; 12] = [
    fixture("git", || quiet("git", &["--version"], Path::new("."))),
    fixture("npm", || quiet("npm", &["--version"], Path::new("."))),
    fixture("python3-pytest", has_pytest),
    // One of the sample projects is a Go module.
    fixture("golang-go", || program(&["go"]).is_some()),
    // The ratchet counts with them.
    fixture("strace", || program(&["strace"]).is_some()),
    fixture("valgrind", || program(&["valgrind"]).is_some()),
    server("postgresql", || postgres_programs().is_some(), POSTGRES_VARIABLE),
    server("mariadb-server", || program(&["mariadbd", "mysqld"]).is_some(), MYSQL_VARIABLE),
    server("apache2", || program(&["apache2"]).is_some(), HTTPS_VARIABLE),
    server("openssl", || program(&["openssl"]).is_some(), HTTPS_VARIABLE),
    server("openssh-server", || program(&["sshd"]).is_some(), SSH_VARIABLE),
    // The graph server is on PyPI.
    server("python3-pip", || quiet("python3", &["-m", "pip", "--version"], Path::new(".")), BOLT_VARIABLE),
];

const fn fixture(name: &'static str, is_installed: fn() -> bool) -> Package {
    Package { name, need: Need::Fixtures, is_installed, replaced_by: None }
}

const fn server(name: &'static str, is_installed: fn() -> bool, variable: &'static str) -> Package {
    Package { name, need: Need::Servers, is_installed, replaced_by: Some(variable) }
}

/// `cargo xtask setup [PACKAGE...]`: installs every missing package, or prints the command that does it.
pub fn command(arguments: &[String]) -> Result<()> {
    for name in arguments {
        if !PACKAGES.iter().any(|package| package.name == name) {
            bail!(
                "unknown package `{name}`: expected one of {}",
                PACKAGES.map(|package| package.name).join(", ")
            );
        }
    }
    let mut missing = missing(&[Need::Fixtures, Need::Servers]);
    missing.retain(|name| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name));
    if missing.is_empty() {
        println!("xtask: all packages are installed");
        return Ok(());
    }
    if !is_root()? {
        println!("{}", install_command(&missing));
        bail!("only root can install packages: run the command above");
    }
    println!("xtask: installing {}", missing.join(" "));
    let failed = install(&missing);
    if !failed.is_empty() {
        bail!("apt-get could not install {}", failed.join(" "));
    }
    Ok(())
}

/// Installs what is missing where this is allowed: as root, or on a CI machine with sudo. Elsewhere it names what is
/// missing and continues; the tests that need it are skipped.
pub fn ensure(needs: &[Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let failed = if is_root()? {
        println!("xtask: setup: installing {names}");
        install(&missing)
    } else if is_ci() && quiet("sudo", &["-n", "true"], Path::new(".")) {
        println!("xtask: setup: installing {names} with sudo");
        install_with_sudo(&missing)?
    } else {
        println!("xtask: not installed: {names}; tests that need them are skipped (see `cargo xtask setup`)");
        return Ok(());
    };
    if !failed.is_empty() {
        println!("xtask: not installed: {}; apt-get could not install them", failed.join(" "));
    }
    Ok(())
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// The names of the packages that are needed and missing.
fn missing(needs: &[Need]) -> Vec<&'static str> {
    let is_missing = |package: &&Package| {
        let is_replaced = package.replaced_by.is_some_and(|variable| std::env::var_os(variable).is_some());
        needs.contains(&package.need) && !is_replaced && !(package.is_installed)()
    };
    PACKAGES.iter().filter(is_missing).map(|package| package.name).collect()
}

/// What a user without rights gives to a person who has them.
fn install_command(packages: &[&str]) -> String {
    let packages = packages.join(" ");
    format!("sudo apt-get update && sudo apt-get install --yes --no-install-recommends {packages}")
}

/// Installs packages and gives those that could not be.
fn install(packages: &[&'static str]) -> Vec<&'static str> {
    let _policy = NoServices::new();
    // An outdated list may still have the packages.
    let _ = apt_get(&["update"]);
    let install = |packages: &[&str]| {
        apt_get(&[["install", "--yes", "--no-install-recommends"].as_slice(), packages].concat())
    };
    if !install(packages) {
        // One package that cannot be had keeps none of the others away.
        for package in packages {
            install(&[package]);
        }
    }
    still_missing(packages)
}

fn still_missing(packages: &[&'static str]) -> Vec<&'static str> {
    let is_missing = |package: &&Package| packages.contains(&package.name) && !(package.is_installed)();
    PACKAGES.iter().filter(is_missing).map(|package| package.name).collect()
}

/// Runs this program once more as root.
fn install_with_sudo(packages: &[&'static str]) -> Result<Vec<&'static str>> {
    let own = std::env::current_exe().context("cannot find the path of xtask")?;
    // Its own report says what failed; what counts here is what is missing afterwards.
    Command::new("sudo")
        .arg("-n")
        .arg(own)
        .arg("setup")
        .args(packages)
        .status()
        .context("cannot start sudo")?;
    Ok(still_missing(packages))
}

fn apt_get(arguments: &[&str]) -> bool {
    Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// While it lives, packages start no service.
struct NoServices {
    made: bool,
}

impl NoServices {
    fn new() -> Self {
        if Path::new(SERVICE_POLICY).exists() {
            return Self { made: false };
        }
        let made = fs::write(SERVICE_POLICY, "#!/bin/sh\nexit 101\n").is_ok()
            && fs::set_permissions(SERVICE_POLICY, fs::Permissions::from_mode(0o755)).is_ok();
        Self { made }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.made {
            let _ = fs::remove_file(SERVICE_POLICY);
        }
    }
}

pub(crate) fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self").context("cannot read /proc")?.uid() == 0)
}

pub(crate) fn has_pytest() -> bool {
    quiet(DEBIAN_PYTHON, &["-m", "pytest", "--version"], Path::new("."))
}

/// The newest installed version's folder of programs.
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, programs)| programs.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop().map(|(_, programs)| programs)
}

/// The first of some programs on the path. Servers are in a folder that is not on every user's path.
pub(crate) fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let folders: Vec<PathBuf> = folders.collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// The path of a program, or what to do without it.
pub(crate) fn program_or(names: &[&str]) -> Result<PathBuf> {
    program(names)
        .with_context(|| format!("{} is not installed; run `cargo xtask setup`", names.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_every_package() {
        assert_eq!(
            install_command(&["git", "npm"]),
            "sudo apt-get update && sudo apt-get install --yes --no-install-recommends git npm"
        );
    }

    #[test]
    fn a_package_is_in_the_list_once() {
        let mut names = PACKAGES.map(|package| package.name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair.first() != pair.last()));
    }

    #[test]
    fn programs_are_found_by_any_of_their_names() {
        assert!(program(&["no-such-program", "sh"]).is_some());
        assert!(program(&["no-such-program"]).is_none());
    }
}
