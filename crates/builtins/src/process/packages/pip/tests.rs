//! The driver against a hostile index and what is refused before anything runs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tgp_contract::{Code, RelativePath};

use super::super::managers::{Manager, PackageManager};
use super::*;
use crate::process::shell_exec::{CommandEnd, StreamBytes};

fn plan(packages: &[&str]) -> Plan {
    Plan {
        manager: Manager::Pip,
        directory: RelativePath::root(),
        packages: packages.iter().map(|package| (*package).to_owned()).collect(),
        features: Vec::new(),
        dev: false,
    }
}

#[test]
fn the_command_is_made_of_parsed_parts() {
    let command = |packages: &[&str]| Pip.command(&plan(packages));
    assert_eq!(command(&[]), "pip download --only-binary=:all:");
    assert_eq!(
        command(&["Uvicorn[standard, x] >= 0.30", "six"]),
        "pip download --only-binary=:all: 'uvicorn[standard,x]>=0.30' 'six'"
    );
    for bad in [
        "-r x",
        "six @ https://example.org/x",
        "../six",
        "six'; id; '",
        "six\nattrs",
        "six\u{a0}",
        "six>=1 -i x",
        "six.whl",
        "",
        "six>=-1",
        "git+https://example.org/six",
    ] {
        let error = Pip.check(&plan(&[bad])).unwrap_err();
        assert_eq!(error.code, Code::Validation, "{bad}");
    }
    assert_eq!(Pip.check(&plan(&["six", "Six>=1"])).unwrap_err().code, Code::Validation);
}

/// A server of the files of a folder.
struct Index(Child, u16);

impl Index {
    fn start(folder: &Path) -> Option<Self> {
        let mut child = Command::new("python3")
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1)?.parse().ok()?;
        Some(Self(child, port))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a wheel that depends on the address of a source archive, and a source archive whose build leaves a mark.
const HOSTILE: &str = r#"
import base64, hashlib, io, os, sys, tarfile, zipfile
folder, port, mark = sys.argv[1:]
def wheel(name, requires):
    os.makedirs(folder + "/simple/" + name)
    info = name + "-1.0.dist-info/"
    files = {name + ".py": "x = 1\n", info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             info + "METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n%s\n" % (name, requires)}
    with zipfile.ZipFile("%s/simple/%s/%s-1.0-py3-none-any.whl" % (folder, name, name), "w") as out:
        for path, text in files.items():
            out.writestr(path, text)
        rows = ["%s,sha256=%s,%d" % (p, base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).rstrip(b"=").decode(), len(t)) for p, t in files.items()]
        out.writestr(info + "RECORD", "\n".join(rows + [info + "RECORD,,"]) + "\n")
def sources(name, place):
    os.makedirs(folder + place, exist_ok=True)
    files = {"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
             "backend.py": "open(%r, 'w').close()\n" % mark, "setup.py": "open(%r, 'w').close()\n" % mark,
             "PKG-INFO": "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name}
    with tarfile.open("%s%s/%s-1.0.tar.gz" % (folder, place, name), "w:gz") as out:
        for path, text in files.items():
            entry = tarfile.TarInfo("%s-1.0/%s" % (name, path))
            entry.size = len(text)
            out.addfile(entry, io.BytesIO(text.encode()))
wheel("good", "")
wheel("bait", "Requires-Dist: evil @ http://127.0.0.1:%s/files/evil-1.0.tar.gz\n" % port)
wheel("local", "")
os.makedirs(folder + "/project")
local = folder + "/project/local-1.0-py3-none-any.whl"
os.rename(folder + "/simple/local/local-1.0-py3-none-any.whl", local)
with open(folder + "/simple/local/index.html", "w") as page:
    page.write("<a href='file://%s'>local-1.0-py3-none-any.whl</a>" % local)
wheel("hidden", "Summary: x\rRequires-Dist: local @ file://%s\n" % local)
sources("evil", "/files")
sources("plain", "/simple/plain")
"#;

struct Hostile {
    folder: tempfile::TempDir,
    index: Index,
}

impl Hostile {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::start(folder.path())?;
        let mark = folder.path().join("mark");
        let made = Command::new("python3")
            .args(["-c", HOSTILE])
            .arg(folder.path())
            .args([index.1.to_string().as_str(), mark.to_str().unwrap()])
            .status();
        (made.is_ok_and(|status| status.success())).then_some(Self { folder, index })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("python3");
        command.env_clear().current_dir(self.folder.path());
        for name in ["PATH", "HOME"] {
            command.env(name, std::env::var_os(name).unwrap_or_default());
        }
        command.env("PIP_INDEX_URL", format!("http://127.0.0.1:{}/simple/", self.index.1));
        command.env("NO_PROXY", "127.0.0.1");
        command
    }

    fn was_built(&self) -> bool {
        self.folder.path().join("mark").exists()
    }

    /// Runs the driver, and returns the downloaded files too.
    fn drive(&self, requirements: &str, requires_python: &str) -> (Output, Vec<String>) {
        let place = self.folder.path().join("place");
        let _ = fs::remove_dir_all(&place);
        for name in [WHEELS, "tmp"] {
            fs::create_dir_all(place.join(name)).unwrap();
        }
        for (name, text) in [
            ("driver.py", DRIVER),
            ("requirements.txt", requirements),
            ("constraints.txt", ""),
            ("requires-python", requires_python),
        ] {
            fs::write(place.join(name), text).unwrap();
        }
        let mut command = self.command();
        // What a project or a person may have set is not looked at.
        command.env("PIP_NO_BINARY", ":all:").env("PIP_CONFIG_FILE", self.folder.path().join("pip.conf"));
        command.env("TMPDIR", place.join("tmp"));
        command.env("PYTHONSTARTUP", "/nonexistent").env("PYTHONPATH", self.folder.path());
        let output = command.args(["-I", "-B"]).arg(place.join("driver.py")).arg(&place).arg("free").output();
        let names = fs::read_dir(place.join(WHEELS)).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        (output.unwrap(), names)
    }
}

#[test]
fn bug_an_address_ran_code_of_a_package_or_took_a_file_of_the_project() {
    let Some(hostile) = Hostile::new() else {
        println!("skipped: python3 is not installed");
        return;
    };
    // What pip does by itself, though it is told to take wheels only.
    let plain =
        ["-I", "-m", "pip", "download", "--only-binary=:all:", "--no-cache-dir", "-d", "plain", "bait"];
    let Ok(output) = hostile.command().args(plain).output() else { return };
    if String::from_utf8_lossy(&output.stderr).contains("No module named pip") {
        println!("skipped: pip is not installed");
        return;
    }
    assert!(hostile.was_built(), "pip does not build it by itself any more: {output:?}");
    fs::remove_file(hostile.folder.path().join("mark")).unwrap();

    fs::write(hostile.folder.path().join("pip.conf"), "[global]\nno-binary = :all:\n").unwrap();
    let (output, names) = hostile.drive("bait\n", "");
    assert!(!hostile.was_built(), "code of a package was run: {output:?}");
    assert!(!output.status.success() && !names.contains(&"evil-1.0.tar.gz".to_owned()), "{names:?}");
    for name in ["bait", "hidden", "local"] {
        let (output, names) = hostile.drive(&format!("{name}\n"), "");
        assert!(!output.status.success() && !names.iter().any(|name| name.starts_with("local")), "{names:?}");
        let error = errors::failure(&plan(&[name]), &said(1, &String::from_utf8_lossy(&output.stderr)));
        assert_eq!(error.unwrap().code, Code::Security, "{name}: {output:?}");
    }
    let (output, names) = hostile.drive("good\n", ">=3.8");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(names, ["good-1.0-py3-none-any.whl"]);
    let (output, _) = hostile.drive("plain\n", "");
    assert!(!output.status.success() && !hostile.was_built());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("tgp: no wheel of plain"), "{error}");
    let error = errors::failure(&plan(&["plain"]), &said(1, &error)).unwrap();
    assert_eq!(error.message, "`plain` has no wheel for this Python, and packages are not built");
    let (output, _) = hostile.drive("good\n", ">=99");
    assert_eq!(output.status.code(), Some(65));
    let error = errors::failure(&plan(&[]), &said(65, &String::from_utf8_lossy(&output.stderr))).unwrap();
    assert!(error.message.starts_with("the project needs Python >=99, and "), "{}", error.message);
}

fn said(exit_code: i32, stderr: &str) -> CommandOutput {
    CommandOutput {
        exit_code: Some(exit_code),
        ended: CommandEnd::Exit,
        stdout: String::new(),
        stderr: stderr.to_owned(),
        stdout_bytes: StreamBytes { total: 0, omitted: 0 },
        stderr_bytes: StreamBytes { total: 0, omitted: 0 },
        duration_ms: 0,
        help: None,
    }
}

#[test]
fn the_last_error_of_pip_becomes_the_message() {
    let stderr = "ERROR: first\nWARNING: x\nERROR: No matching distribution found for no\u{1b}such\nnote\n";
    let error = errors::failure(&plan(&[]), &said(1, stderr)).unwrap();
    assert_eq!(error.message, "pip failed: No matching distribution found for no such");
    assert!(errors::failure(&plan(&[]), &said(1, "nothing")).is_none());
    let error = errors::failure(&plan(&[]), &said(66, "tgp: /usr/bin/python3 has no pip\n")).unwrap();
    assert_eq!((error.code, error.message.as_str()), (Code::Capability, "/usr/bin/python3 has no pip"));
}
