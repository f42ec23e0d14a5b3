//! `cargo xtask dist-check`: installs every package as a user does, into a directory tree without Rust, and runs the
//! demonstration and the clients there.

mod clients;
mod guest;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::clients::{check_answer, check_printed};
use self::guest::Guest;
use self::server::FileServer;
use crate::dist::platform::{PLATFORMS, Platform};
use crate::dist::{CHECKSUMS, megabytes, sha256};
use crate::setup;

/// The largest that a package may be.
const MAX_MEGABYTES: f64 = 45.0;

/// How soon `tgp demo` must print something.
const FIRST_OUTPUT: Duration = Duration::from_secs(10);

/// `cargo xtask dist-check [DIR]`.
pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    let folder = match arguments {
        [] => root.join("dist"),
        [folder] => std::path::absolute(folder).context("cannot find the folder")?,
        _ => bail!("expected at most one folder"),
    };
    if !setup::is_root()? {
        bail!("only root can enter another root directory: run the command with sudo");
    }
    let names = verified_names(&folder)?;
    let mut problems = Vec::new();
    sizes(&folder, &names, &mut problems)?;
    let packages = Packages::select(&folder, &names)?;
    let checks = [
        ("install.sh", packages.check_archive()),
        ("npm", packages.check_npm()),
        ("pip", packages.check_wheel()),
    ];
    for (name, result) in checks {
        problems.extend(result.err().map(|error| format!("{name}: {error:#}")));
    }
    if !problems.is_empty() {
        bail!("these packages cannot be released:\n  {}", problems.join("\n  "));
    }
    Ok(())
}

/// The files that the checksums name, all of them unchanged.
fn verified_names(folder: &Path) -> Result<Vec<String>> {
    let sums = folder.join(CHECKSUMS);
    let sums = fs::read_to_string(&sums)
        .with_context(|| format!("cannot read {}; run `cargo xtask dist`", sums.display()))?;
    let mut names = Vec::new();
    for line in sums.lines() {
        let (sum, name) =
            line.split_once("  ").with_context(|| format!("invalid line in {CHECKSUMS}: {line}"))?;
        if sha256(&folder.join(name))? != sum {
            bail!("the checksum of {name} is wrong");
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn sizes(folder: &Path, names: &[String], problems: &mut Vec<String>) -> Result<()> {
    for name in names {
        let size = megabytes(&folder.join(name))?;
        println!("{size:>8.1} MB  {name}");
        if size > MAX_MEGABYTES {
            problems.push(format!("{name} has {size:.1} MB; at most {MAX_MEGABYTES} MB are allowed"));
        }
    }
    Ok(())
}

/// The packages for this machine.
struct Packages {
    folder: PathBuf,
    /// Whether the program is not static.
    needs_c_library: bool,
    npm_main: PathBuf,
    npm_platform: PathBuf,
    npm_client: PathBuf,
    wheel: PathBuf,
}

impl Packages {
    fn select(folder: &Path, names: &[String]) -> Result<Self> {
        let machine = std::env::consts::ARCH;
        let platform = PLATFORMS.iter().find(|platform| platform.machine == machine);
        let platform = platform.with_context(|| format!("no packages are made for {machine}"))?;
        for other in others(names, platform) {
            println!("xtask: not run on this machine: {other}");
        }
        let one = |what: &str, is_wanted: &dyn Fn(&str) -> bool| {
            let found: Vec<&String> = names.iter().filter(|name| is_wanted(name)).collect();
            match found.as_slice() {
                [name] => Ok(folder.join(name)),
                [] => bail!("there is no {what} in {}; run `cargo xtask dist`", folder.display()),
                _ => bail!("there is more than one {what} in {}; remove the others", folder.display()),
            }
        };
        let npm = platform.npm_package().replace('@', "").replace('/', "-");
        let is_main = |name: &str| {
            let version = name.strip_prefix("tgp-").and_then(|rest| rest.strip_suffix(".tgz"));
            version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        };
        let archive = one("archive", &|name| {
            name.contains(&format!("{machine}-unknown-linux-")) && name.ends_with(".tar.gz")
        })?;
        Ok(Self {
            needs_c_library: archive.to_string_lossy().ends_with("-gnu.tar.gz"),
            folder: folder.to_owned(),
            npm_main: one("npm package tgp", &is_main)?,
            npm_platform: one("npm package of the platform", &|name| {
                name.starts_with(&npm) && name.ends_with(".tgz")
            })?,
            npm_client: one("npm package @tgp/core", &|name| {
                name.starts_with("tgp-core-") && name.ends_with(".tgz")
            })?,
            wheel: one("wheel", &|name| name.ends_with(&format!("{machine}.whl")))?,
        })
    }

    fn guest(&self) -> Result<Guest> {
        let guest = Guest::new()?;
        if self.needs_c_library {
            guest.add_c_library()?;
        }
        Ok(guest)
    }

    fn check_archive(&self) -> Result<()> {
        let guest = self.guest()?;
        let server = FileServer::start(&self.folder)?;
        let address = server.address();
        guest.run(&format!(
            "wget -q -O /tmp/install.sh {address}/install.sh && TGP_BASE_URL={address} sh /tmp/install.sh"
        ))?;
        demonstrate("install.sh", &guest, "exec /root/.local/bin/tgp demo")
    }

    fn check_npm(&self) -> Result<()> {
        let guest = self.guest()?;
        guest.add_program("node")?;
        guest.add_npm()?;
        let main = guest.add_package(&self.npm_main)?;
        let platform = guest.add_package(&self.npm_platform)?;
        let client = guest.add_package(&self.npm_client)?;
        guest.run(&format!(
            "npm install --offline --no-audit --no-fund --no-update-notifier {main} {platform} {client}"
        ))?;
        demonstrate("npm", &guest, "exec npx --offline tgp demo")?;
        guest.run("npx --offline tgp init")?;
        for (name, script) in clients::NODE {
            guest.write(name, script)?;
            check_answer(name, &guest, &format!("node {name}"))?;
        }
        Ok(())
    }

    fn check_wheel(&self) -> Result<()> {
        let guest = self.guest()?;
        guest.add_python()?;
        let wheel = guest.add_package(&self.wheel)?;
        guest.run("python3 -m venv --without-pip /venv")?;
        guest.run(&format!(
            "python3 -m pip --python /venv/bin/python install --quiet --no-index --no-cache-dir \
             --disable-pip-version-check --root-user-action ignore {wheel}"
        ))?;
        demonstrate("pip", &guest, "exec /venv/bin/tgp demo")?;
        let find = r#"/venv/bin/python -c "import tgp; print(tgp.find_binary())""#;
        check_printed(&guest, find, "/venv/bin/tgp\n")?;
        guest.run("/venv/bin/tgp init")?;
        let (name, script) = clients::PYTHON;
        guest.write(name, script)?;
        check_answer(name, &guest, &format!("/venv/bin/python {name}"))
    }
}

/// The packages of other processors.
fn others<'a>(names: &'a [String], platform: &Platform) -> Vec<&'a String> {
    let is_other = |name: &&String| {
        PLATFORMS.iter().filter(|other| other.machine != platform.machine).any(|other| {
            let is_npm = name.starts_with(&format!("tgp-{}-{}-", other.os, other.cpu));
            (name.contains(other.machine) && !name.ends_with(".json")) || is_npm
        })
    };
    names.iter().filter(is_other).collect()
}

fn demonstrate(name: &str, guest: &Guest, command: &str) -> Result<()> {
    let run = guest.measure(command)?;
    let (first, all) = (run.first_output.as_secs_f64(), run.all.as_secs_f64());
    println!("xtask: {name}: first output of `tgp demo` after {first:.2} s, all of it after {all:.2} s");
    if run.first_output > FIRST_OUTPUT {
        bail!("the first output took {first:.1} s; at most {} s are allowed", FIRST_OUTPUT.as_secs());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_other_processors_are_named() {
        let platform = Platform::of_target("x86_64-unknown-linux-musl").unwrap();
        let names = [
            "tgp-0.1.0-aarch64-unknown-linux-musl.tar.gz",
            "tgp-0.1.0-x86_64-unknown-linux-musl.tar.gz",
            "tgp-0.1.0.tgz",
            "tgp-linux-arm64-0.1.0.tgz",
            "tgp_kernel-0.1.0-py3-none-musllinux_1_1_aarch64.whl",
        ]
        .map(str::to_owned);
        let others: Vec<&str> = others(&names, platform).into_iter().map(String::as_str).collect();
        assert_eq!(
            others,
            [
                "tgp-0.1.0-aarch64-unknown-linux-musl.tar.gz",
                "tgp-linux-arm64-0.1.0.tgz",
                "tgp_kernel-0.1.0-py3-none-musllinux_1_1_aarch64.whl"
            ]
        );
    }

    #[test]
    fn changed_files_and_large_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        let sum = sha256(&folder.path().join("a")).unwrap();
        fs::write(folder.path().join(CHECKSUMS), format!("{sum}  a\n")).unwrap();
        assert_eq!(verified_names(folder.path()).unwrap(), ["a"]);
        fs::File::options().write(true).open(folder.path().join("a")).unwrap().set_len(46_000_000).unwrap();
        let mut problems = Vec::new();
        sizes(folder.path(), &["a".to_owned()], &mut problems).unwrap();
        assert_eq!(problems, ["a has 46.0 MB; at most 45 MB are allowed"]);
        assert_eq!(verified_names(folder.path()).unwrap_err().to_string(), "the checksum of a is wrong");
    }
}
