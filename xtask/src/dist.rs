//! `cargo xtask dist`: the packages of a release in `dist/`. Nothing is downloaded once cargo has the dependencies and npm
//! the compiler of the client for Node.

pub(crate) mod archive;
mod build;
mod clients;
pub(crate) mod npm;
pub(crate) mod platform;
mod sbom;
pub(crate) mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use self::archive::{PackageFile, write_tar_gz, write_zip};
use self::clients::Clients;
use self::platform::{Platform, hex};
use self::sbom::Composition;
use crate::setup;

const INSTALL_SCRIPT: &str = include_str!("dist/install.sh");
pub(crate) const CHECKSUMS: &str = "SHA256SUMS";

/// What the program prints of itself: the words, the path in the archive, and where shells and `man` look for it.
const PRINTED: [(&[&str], &str, &str); 4] = [
    (&["completions", "bash"], "completions/tgp.bash", "share/bash-completion/completions/tgp"),
    (&["completions", "zsh"], "completions/_tgp", "share/zsh/site-functions/_tgp"),
    (&["completions", "fish"], "completions/tgp.fish", "share/fish/vendor_completions.d/tgp.fish"),
    (&["man"], MANUAL, "share/man/man1/tgp.1"),
];

/// The path of the manual page in the archive and in the npm package.
const MANUAL: &str = "man/tgp.1";

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    target: Option<String>,
    binary: Option<PathBuf>,
    output: Option<PathBuf>,
}

/// `cargo xtask dist [--target TARGET] [--binary FILE] [--output DIR]`.
pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let output = options.output.unwrap_or_else(|| root.join("dist"));
    let scratch = output.join(".scratch");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let written = build::program(root, options.target.as_deref(), options.binary.as_deref(), &scratch)
        .and_then(|(platform, program)| {
            let composition = Composition::read(root, platform.target)?;
            let version = composition.version()?;
            let release = Release {
                clients: Clients::read(root, &version)?,
                version,
                platform,
                documents: documents(root, &composition, platform, &program, &scratch)?,
                program,
            };
            release.write(&output)
        });
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    for path in written? {
        println!("{:>8.1} MB  {}", megabytes(&path)?, path.display());
    }
    Ok(())
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let mut value =
                || arguments.next().cloned().with_context(|| format!("`{name}` needs a value after it"));
            match name.as_str() {
                "--target" => options.target = Some(value()?),
                "--binary" => options.binary = Some(value()?.into()),
                "--output" => options.output = Some(value()?.into()),
                _ => bail!("unknown option `{name}`: expected --target, --binary or --output"),
            }
        }
        Ok(options)
    }
}

/// What is beside the program in a package.
struct Documents {
    licence: PackageFile,
    notices: PackageFile,
    sbom: PackageFile,
    /// Completion scripts and the manual page, by the paths of the archive.
    extras: Vec<PackageFile>,
}

impl Documents {
    fn common(&self) -> Vec<PackageFile> {
        vec![self.licence.clone(), self.notices.clone(), self.sbom.clone()]
    }

    fn manual(&self) -> Option<&PackageFile> {
        self.extras.iter().find(|file| file.path == MANUAL)
    }

    /// The extras below the folder that `bin` is in.
    fn shared(&self) -> Vec<PackageFile> {
        let share = |file: &PackageFile| {
            let (_, _, path) = PRINTED.iter().find(|(_, name, _)| *name == file.path)?;
            Some(PackageFile { path: (*path).to_owned(), ..file.clone() })
        };
        self.extras.iter().filter_map(share).collect()
    }
}

fn documents(
    root: &Path,
    composition: &Composition,
    platform: &Platform,
    program: &Rc<[u8]>,
    scratch: &Path,
) -> Result<Documents> {
    let licence = fs::read_to_string(root.join("LICENSE")).context("cannot read LICENSE")?;
    Ok(Documents {
        licence: PackageFile::text("LICENSE", licence),
        notices: PackageFile::text("THIRD-PARTY-LICENSES", composition.notices(root)),
        sbom: PackageFile::text("tgp.cdx.json", format!("{:#}\n", composition.sbom(platform.target)?)),
        extras: printed(platform, program, scratch)?,
    })
}

/// The completion scripts and the manual page. A program for another processor needs qemu-user to run.
fn printed(platform: &Platform, program: &Rc<[u8]>, scratch: &Path) -> Result<Vec<PackageFile>> {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch.join("printing-tgp");
    fs::write(&path, program).context("cannot write the program")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    let mut files = Vec::new();
    for (words, name, _) in PRINTED {
        let mut command = if platform.is_own() {
            Command::new(&path)
        } else {
            let emulator = match platform.os {
                "linux" => setup::program(&[&format!("qemu-{}", platform.machine)]),
                _ => None,
            };
            let Some(emulator) = emulator else {
                println!(
                    "xtask: the packages have no completions and no manual page: this machine cannot run the program (Debian's package qemu-user runs Linux programs for other processors)"
                );
                return Ok(Vec::new());
            };
            let mut command = Command::new(emulator);
            command.arg(&path);
            command
        };
        let output = command.args(words).output().context("cannot start the program")?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("`tgp {}` failed ({}): {}", words.join(" "), output.status, errors.trim());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        files.push(PackageFile::text(name, text));
    }
    Ok(files)
}

/// Everything that the packages of one platform have in them.
struct Release {
    version: String,
    platform: &'static Platform,
    program: Rc<[u8]>,
    documents: Documents,
    clients: Clients,
}

impl Release {
    /// Writes all packages and the checksums, and gives their paths.
    fn write(&self, output: &Path) -> Result<Vec<PathBuf>> {
        let Self { version, platform, program, documents, clients } = self;
        let common = documents.common();
        let mut written = Vec::new();
        let mut add = |name: &str| {
            let path = output.join(name);
            written.push(path.clone());
            path
        };

        let name = format!("tgp-{version}-{}", platform.target);
        let mut files = vec![PackageFile::program("tgp", program)];
        files.extend_from_slice(&common);
        files.extend_from_slice(&documents.extras);
        write_tar_gz(&add(&format!("{name}.tar.gz")), &name, &files)?;
        fs::write(add(&format!("{name}.cdx.json")), &documents.sbom.data).context("cannot write the SBOM")?;

        let licence = String::from_utf8_lossy(&documents.licence.data);
        let main = npm::main_package(version, &licence, documents.manual());
        write_tar_gz(&add(&npm::file_name("tgp", version)), npm::FOLDER, &main)?;
        let package = npm::platform_package(platform, version, program, &common);
        let name = npm::file_name(&platform.npm_package(), version);
        write_tar_gz(&add(&name), npm::FOLDER, &package)?;
        write_tar_gz(&add(&npm::file_name(npm::CLIENT, version)), npm::FOLDER, &clients.node)?;

        let tags = platform.wheel_tags(program);
        let contents = wheel::Contents {
            program,
            client: &clients.python,
            documents: &common,
            shared: &documents.shared(),
        };
        let wheel = wheel::files(version, &tags, &contents)?;
        write_zip(&add(&wheel::file_name(version, &tags)?), &wheel)?;

        let script = INSTALL_SCRIPT.replace("@VERSION@", version);
        fs::write(add("install.sh"), script).context("cannot write install.sh")?;
        let checksums = checksums(output)?;
        fs::write(add(CHECKSUMS), checksums).context("cannot write the checksums")?;
        Ok(written)
    }
}

/// The lines of `sha256sum` for all files of a folder: packages of other platforms may be there already.
fn checksums(folder: &Path) -> Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && name != CHECKSUMS {
            lines.push((name, sha256(&path)?));
        }
    }
    lines.sort();
    Ok(lines.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

pub(crate) fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hex(&Sha256::digest(bytes)))
}

#[expect(clippy::cast_precision_loss, reason = "files are far smaller than 2^52 bytes")]
pub(crate) fn megabytes(path: &Path) -> Result<f64> {
    let length = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    Ok(length as f64 / 1e6)
}

#[cfg(test)]
#[path = "dist/package_tests.rs"]
mod tests;
