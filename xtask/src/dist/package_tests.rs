//! Packages with a shell script as the program, installed by the tools that users have.

use std::process::{Output, Stdio};

use super::*;
use crate::run::quiet;

/// Prints its arguments and ends with a code of its own.
const PROGRAM: &[u8] = b"#!/bin/sh\necho \"tgp: $*\"\n[ \"$1\" = wait ] && sleep 20\nexit 7\n";

/// A client for Node with one module; the real one has to be compiled.
const NODE_CLIENT: &str = r#"{ "name": "@tgp/core", "version": "1.2.3", "main": "./dist/index.js" }"#;

fn release() -> Release {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    Release {
        version: "1.2.3".to_owned(),
        platform: Platform::of_target(&target).unwrap(),
        program: PROGRAM.into(),
        documents: Documents {
            licence: PackageFile::text("LICENSE", "licence\n"),
            notices: PackageFile::text("THIRD-PARTY-LICENSES", "notices\n"),
            sbom: PackageFile::text("tgp.cdx.json", "{}\n"),
            extras: vec![
                PackageFile::text("completions/tgp.bash", "complete\n"),
                PackageFile::text(MANUAL, "manual\n"),
            ],
        },
        clients: Clients {
            python: clients::python(&root).unwrap(),
            node: vec![
                PackageFile::text("package.json", clients::node_manifest(NODE_CLIENT, "1.2.3").unwrap()),
                PackageFile::text("dist/index.js", "exports.answer = 42;\n"),
            ],
        },
    }
}

fn packages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    release().write(folder.path()).unwrap();
    folder
}

fn find(folder: &Path, start: &str, end: &str) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = entries.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    });
    found.next().unwrap_or_else(|| panic!("there is no {start}*{end}"))
}

fn install(folder: &Path, base_url: &str, target: &Path) -> Output {
    Command::new("sh")
        .arg(folder.join("install.sh"))
        .env("TGP_BASE_URL", base_url)
        .env("TGP_INSTALL_DIR", target)
        .output()
        .unwrap()
}

#[track_caller]
fn check_program(path: &Path) {
    let output = Command::new(path).args(["a b", "c"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "tgp: a b c\n", "{output:?}");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn the_script_installs_what_the_checksums_name() {
    let (folder, target) = (packages(), tempfile::tempdir().unwrap());
    let base_url = format!("file://{}", folder.path().display());
    let output = install(folder.path(), &base_url, target.path());
    assert!(output.status.success(), "{output:?}");
    check_program(&target.path().join("tgp"));
}

#[test]
fn the_script_refuses_a_changed_archive() {
    let (folder, target) = (packages(), tempfile::tempdir().unwrap());
    fs::write(find(folder.path(), "tgp-1.2.3-", ".tar.gz"), "changed").unwrap();
    let base_url = format!("file://{}/", folder.path().display());
    let output = install(folder.path(), &base_url, target.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.starts_with("install.sh: the checksum of tgp-1.2.3-"), "{errors}");
    assert!(errors.trim_end().ends_with("nothing was installed"), "{errors}");
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}

#[test]
fn bug_the_script_reported_success_when_nothing_usable_was_installed() {
    let folder = packages();
    let base_url = format!("file://{}", folder.path().display());
    // A directory in the program's place.
    let target = tempfile::tempdir().unwrap();
    std::fs::create_dir(target.path().join("tgp")).unwrap();
    let output = install(folder.path(), &base_url, target.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("is a directory; nothing was installed"),
        "{output:?}"
    );
    assert_eq!(std::fs::read_dir(target.path().join("tgp")).unwrap().count(), 0);
    // A link in the place of the file that is written first, as earlier versions named it, and of the program.
    let target = tempfile::tempdir().unwrap();
    let other = target.path().join("other");
    std::fs::write(&other, "kept").unwrap();
    std::os::unix::fs::symlink(&other, target.path().join(".tgp.new")).unwrap();
    std::os::unix::fs::symlink(&other, target.path().join("tgp")).unwrap();
    assert!(install(folder.path(), &base_url, target.path()).status.success());
    check_program(&target.path().join("tgp"));
    assert!(std::fs::symlink_metadata(target.path().join("tgp")).unwrap().is_file());
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    let left = std::fs::read_dir(target.path()).unwrap().count();
    assert_eq!(left, 3, "a temporary file stays");
}

#[test]
fn the_script_reads_checksums_in_every_form_they_are_written_in() {
    let folder = packages();
    let sums = std::fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
    for text in [sums.trim_end().to_owned(), sums.replace("  ", " *"), sums.replace('\n', "\r\n")] {
        std::fs::write(folder.path().join("SHA256SUMS"), &text).unwrap();
        let target = tempfile::tempdir().unwrap();
        let output = install(folder.path(), &format!("file://{}", folder.path().display()), target.path());
        assert!(output.status.success(), "{text}: {output:?}");
        check_program(&target.path().join("tgp"));
    }
}

#[test]
fn the_script_says_what_it_needs() {
    let (folder, target) = (packages(), tempfile::tempdir().unwrap());
    for (base_url, expected) in [
        ("", "install.sh: set TGP_BASE_URL to the address of the folder with the archives\n"),
        ("ftp://x", "install.sh: invalid TGP_BASE_URL `ftp://x`: expected http://, https:// or file://\n"),
        ("file:///nowhere", "install.sh: cannot read file:///nowhere/SHA256SUMS\n"),
    ] {
        let output = install(folder.path(), base_url, target.path());
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn the_same_files_give_the_same_packages() {
    let sums = |folder: &tempfile::TempDir| fs::read_to_string(folder.path().join(CHECKSUMS)).unwrap();
    let (one, other) = (packages(), packages());
    assert_eq!(sums(&one), sums(&other));
    assert_eq!(sums(&one).lines().count(), 7);
}

#[test]
fn npm_installs_the_packages_and_the_launcher_passes_everything_on() {
    if !quiet("npm", &["--version"], Path::new(".")) {
        println!("skipped: npm is not installed");
        return;
    }
    let (folder, project) = (packages(), tempfile::tempdir().unwrap());
    let main = folder.path().join("tgp-1.2.3.tgz");
    let platform = find(folder.path(), "tgp-linux-", ".tgz");
    let npm = |packages: &[&Path]| {
        let output = Command::new("npm")
            .args(["install", "--offline", "--no-audit", "--no-fund", "--no-update-notifier"])
            .args(packages)
            .current_dir(project.path())
            .env("npm_config_cache", project.path().join(".npm"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let program = project.path().join("node_modules/.bin/tgp");

    npm(&[&main]);
    let output = Command::new(&program).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.starts_with("tgp: the package @tgp/linux-"), "{errors}");

    npm(&[&main, &platform]);
    check_program(&program);
    assert!(project.path().join("node_modules/tgp").join(MANUAL).exists());

    npm(&[&main, &platform, &folder.path().join("tgp-core-1.2.3.tgz")]);
    let output = Command::new("node")
        .args(["-p", "require('@tgp/core').answer"])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n", "{output:?}");

    // A signal reaches the program, and its end by a signal is the launcher's.
    let mut child = Command::new(&program).arg("wait").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 10];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert!(quiet("kill", &["-TERM", &child.id().to_string()], Path::new(".")));
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15), "{status}");
}

#[test]
fn pip_installs_the_wheel() {
    if !quiet("python3", &["-m", "pip", "--version"], Path::new(".")) {
        println!("skipped: pip is not installed");
        return;
    }
    let (folder, target) = (packages(), tempfile::tempdir().unwrap());
    let wheel = find(folder.path(), "tgp_kernel-1.2.3-py3-none-", ".whl");
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir", "--target"])
        .arg(target.path())
        .arg(&wheel)
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    check_program(&target.path().join("bin/tgp"));
    assert!(target.path().join("tgp_kernel-1.2.3.dist-info/licenses/LICENSE").exists());
    assert!(target.path().join("share/man/man1/tgp.1").exists());
    assert!(target.path().join("share/bash-completion/completions/tgp").exists());

    // The client is beside it, knows its own version, and finds the program.
    assert!(target.path().join("tgp/py.typed").exists());
    let output = Command::new("python3")
        .args(["-c", "import tgp, tgp.adapters; print(tgp.__version__, tgp.find_binary())"])
        .env("PYTHONPATH", target.path())
        .env_remove("TGP_BIN")
        .output()
        .unwrap();
    let expected = format!("1.2.3 {}\n", target.path().join("bin/tgp").display());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
}

#[test]
fn options_have_values() {
    let parse = |arguments: &[&str]| {
        Options::parse(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    };
    let options = parse(&["--target", "t", "--binary", "b"]).unwrap();
    assert_eq!(options, Options { target: Some("t".to_owned()), binary: Some("b".into()), output: None });
    assert_eq!(parse(&["--target"]).unwrap_err().to_string(), "`--target` needs a value after it");
    assert!(parse(&["fast"]).unwrap_err().to_string().starts_with("unknown option `fast`"));
}
