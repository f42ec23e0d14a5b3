//! Wheels in an environment: where files go, what no wheel may bring, and what goes with an old version.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tgp_fs::Directory;
use tgp_wheels::{
    Environment, EnvironmentChange, InstallError, InstallOptions, Installation, Interpreter, Name, Wheel,
};

use crate::support::{Builder, apply};

const SITE: &str = "lib/python3.11/site-packages";

/// A project with an environment, which may not be there yet.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join(".venv")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn environment(&self) -> Option<Environment> {
        let root = Directory::open(&self.root()).ok()?;
        Some(Environment::read(root, &|| false).unwrap_or_else(|error| panic!("{error}")))
    }

    fn plan(&self, wheels: Vec<Wheel>) -> Result<Installation, InstallError> {
        let staging = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let interpreter =
            Interpreter { version: "3.11.7".parse().unwrap(), program: PathBuf::from("/usr/bin/python3.11") };
        Installation::of(
            self.environment().as_ref(),
            wheels,
            &InstallOptions {
                interpreter: &interpreter,
                location: &self.root(),
                staging: &staging,
                requested: &BTreeSet::from([Name::new("shop").unwrap()]),
                project: Some(Path::new("/home/ada/shop/src")),
                stop: &|| false,
            },
        )
    }

    #[track_caller]
    fn install(&self, builders: &[Builder]) -> Installation {
        let wheels = builders.iter().map(|builder| builder.open().unwrap_or_else(|error| panic!("{error}")));
        let plan = self.plan(wheels.collect()).unwrap_or_else(|error| panic!("{error}"));
        let _ = fs::create_dir(self.root());
        apply(&self.root(), &plan.changes);
        plan
    }

    #[track_caller]
    fn refused(&self, builders: &[Builder], expected: &str) {
        let wheels = builders.iter().map(|builder| builder.open().unwrap_or_else(|error| panic!("{error}")));
        match self.plan(wheels.collect()) {
            Ok(_) => panic!("it was accepted; expected: {expected}"),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                let text = format!("{error} {cause}");
                assert!(text.contains(expected), "{text}; expected: {expected}");
            }
        }
    }
}

fn shop(version: &str) -> Builder {
    Builder::new("shop", version).file("shop/__init__.py", &format!("version = '{version}'\n"))
}

fn writes(plan: &Installation) -> Vec<&str> {
    plan.changes.iter().map(EnvironmentChange::path).collect()
}

#[test]
fn a_new_environment_has_what_venv_makes() {
    let place = Place::new();
    let plan = place.install(&[shop("1.0")
        .file(
            "shop-1.0.dist-info/entry_points.txt",
            "[console_scripts]\nshop = shop.cli:main.run [extra]\n[other]\nx = y\n",
        )
        .file("shop-1.0.data/scripts/tool", "#!python\nprint(1)\n")
        .file("shop-1.0.data/scripts/binary", "\u{7f}ELF")
        .file("shop-1.0.data/data/share/man/shop.1", "manual")
        .file("shop-1.0.data/headers/shop.h", "int x;")
        .file("shop-1.0.data/purelib/shop/pure.py", "")
        .file("shop-1.0.data/platlib/shop/plat.py", "")]);
    assert_eq!(plan.installed, ["shop@1.0"]);
    assert_eq!(plan.before, None);
    assert!(plan.after.starts_with("shop==1.0  shop-1.0-py3-none-any.whl  sha256:"), "{}", plan.after);
    assert_eq!(place.read("packages.txt"), plan.after);
    assert!(
        place
            .read("pyvenv.cfg")
            .starts_with("home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n")
    );
    for (link, target) in
        [("bin/python3", "/usr/bin/python3.11"), ("bin/python", "python3"), ("lib64", "lib")]
    {
        assert_eq!(fs::read_link(place.path(link)).unwrap(), Path::new(target));
    }
    assert!(place.read("bin/activate").contains(&format!("VIRTUAL_ENV=\"{}\"", place.root().display())));
    assert_eq!(place.read(".gitignore"), "*\n");
    let python = place.path("bin/python");
    let first = format!("#!{}\n", python.display());
    assert_eq!(place.read("bin/tool"), format!("{first}print(1)\n"));
    let program = place.read("bin/shop");
    assert!(program.starts_with(&first) && program.contains("from shop.cli import main\n"), "{program}");
    assert!(program.ends_with("    sys.exit(main.run())\n"), "{program}");
    assert_eq!(place.read("include/site/python3.11/shop/shop.h"), "int x;");
    assert_eq!(place.read("share/man/shop.1"), "manual");
    assert_eq!(place.read(&format!("{SITE}/_project.pth")), "/home/ada/shop/src\n");
    let information = format!("{SITE}/shop-1.0.dist-info");
    assert_eq!(place.read(&format!("{information}/INSTALLER")), "tgp\n");
    assert_eq!(place.read(&format!("{information}/REQUESTED")), "");
    let record = place.read(&format!("{information}/RECORD"));
    for row in [
        "shop/pure.py,sha256=",
        "shop/plat.py,",
        "../../../bin/shop,",
        "../../../share/man/shop.1,",
        "shop-1.0.dist-info/RECORD,,",
    ] {
        assert!(record.contains(row), "{row}: {record}");
    }
    let environment = place.environment().unwrap();
    assert_eq!(environment.python(), (3, 11));
    // Nothing is left to do.
    assert!(
        place
            .plan(vec![shop("1.0").open().unwrap_or_else(|error| panic!("{error}"))])
            .unwrap()
            .changes
            .is_empty()
    );
}

#[test]
fn bug_a_wheel_wrote_what_other_packages_and_python_itself_read() {
    let place = Place::new();
    let data = |path: &str| format!("shop-1.0.data/{path}");
    for (path, expected) in [
        ("sitecustomize.py", "whenever Python starts"),
        ("usercustomize/__init__.py", "whenever Python starts"),
        ("SiteCustomize.py", "whenever Python starts"),
        ("sitecustomize.cpython-311-x86_64-linux-gnu.so", "whenever Python starts"),
        ("pip/__init__.py", "a file of pip"),
        ("pip.py", "a file of pip"),
        ("pytest.egg-info/entry_points.txt", "known of another package"),
        ("pytest.egg-link", "known of another package"),
        (&data("purelib/pytest-8.0.dist-info/entry_points.txt"), "known of another package"),
        (&data("platlib/PyTest-8.0.DIST-INFO/x"), "known of another package"),
        (&data("data/lib/python3.11/site-packages/pytest-8.0.dist-info/x"), "known of another package"),
        (&data("data/lib/python3.11/site-packages/sitecustomize.py"), "whenever Python starts"),
        (&data("data/lib/python3.11/os.py"), "not in the directory of packages"),
        (&data("data/lib/python3.12/site-packages/x.py"), "not in the directory of packages"),
        (&data("data/LIB/python3.11/site-packages/x.py"), "not in the directory of packages"),
        (&data("data/lib64/python3.11/site-packages/x.py"), "of the environment itself"),
        (&data("data/pyvenv.cfg"), "of the environment itself"),
        (&data("data/PyVenv.cfg"), "of the environment itself"),
        (&data("data/packages.txt"), "of the environment itself"),
        (&data("data/.gitignore"), "hidden"),
        (&data("data/bin/python"), "program of the environment"),
        (&data("data/bin"), "in the place of a directory"),
        (&data("data/bin/sub/x"), "in the place of a directory"),
        (&data("scripts/python3"), "program of the environment"),
        (&data("scripts/pyvenv.cfg"), "a file of settings"),
        (&data("data/bin/PyVenv.cfg"), "a file of settings"),
        (&data("scripts/python311._pth"), "a file of settings"),
        ("apport_python_hook.py", "whenever Python starts"),
        (&data("scripts/Python3.11"), "program of the environment"),
        (&data("scripts/activate"), "program of the environment"),
        (&data("scripts/activate.fish"), "program of the environment"),
        (&data("scripts/pip3"), "program of pip"),
        (&data("scripts/sub/x"), "program in a directory"),
        (&data("other/x"), "unknown directory"),
        (&data("x"), "not in a directory of its data"),
        ("pytest-8.0.data/scripts/pytest", "data of another package"),
        ("SHOP-1.0.data/scripts/x", "data of another package"),
    ] {
        place.refused(&[shop("1.0").file(path, "x")], expected);
    }
    let points = |line: &str| {
        shop("1.0").file("shop-1.0.dist-info/entry_points.txt", &format!("[console_scripts]\n{line}\n"))
    };
    for (line, expected) in [
        ("python = shop:main", "program of the environment"),
        ("pip = shop:main", "program of pip"),
        ("../x = shop:main", "invalid entry point"),
        ("x y = shop:main", "invalid entry point"),
        ("-x = shop:main", "invalid entry point"),
        ("x = shop:main; import os", "invalid entry point"),
        ("x = sh\u{2028}op:main", "invalid entry point"),
        ("x = shop", "invalid entry point"),
        ("x = os:system('id')", "invalid entry point"),
        ("x", "invalid entry point"),
    ] {
        place.refused(&[points(line)], expected);
    }
    // pip itself may.
    place.install(&[Builder::new("pip", "24.0").file("pip/__init__.py", "")]);
}

#[test]
fn what_runs_whenever_python_starts_is_left_out() {
    let place = Place::new();
    let plan = place.install(&[shop("1.0")
        .file("evil.pth", "import os\n")
        .file("shop-1.0.data/purelib/Other.PTH", "import os\n")
        .file("__pycache__/six.cpython-311.pyc", "x")
        .file("six.pyc", "x")
        .file("shop/data.pth", "no top-level file\n")]);
    for path in ["evil.pth", "Other.PTH", "__pycache__", "six.pyc"] {
        assert!(!place.path(SITE).join(path).exists(), "{path}");
    }
    assert!(place.path(SITE).join("shop/data.pth").exists());
    assert!(plan.after.contains("without evil.pth"), "{}", plan.after);
    assert!(!place.read(&format!("{SITE}/shop-1.0.dist-info/RECORD")).contains("evil.pth"));
}

#[test]
fn two_packages_do_not_bring_the_same_file() {
    let place = Place::new();
    let other = || Builder::new("other", "1.0").file("shop/__init__.py", "evil\n");
    place.refused(&[shop("1.0"), other()], "brought by");
    place.refused(
        &[shop("1.0"), Builder::new("other", "1.0").file("Shop/__INIT__.py", "evil\n")],
        "brought by",
    );
    place.install(&[shop("1.0")]);
    place.refused(
        &[other()],
        "`lib/python3.11/site-packages/shop/__init__.py` is brought by shop and by other",
    );
    let script = |name: &str| {
        Builder::new(name, "1.0")
            .file(&format!("{name}-1.0.dist-info/entry_points.txt"), "[console_scripts]\nx = a:b\n")
    };
    place.refused(&[script("one"), script("two")], "brought by");
    place.refused(&[shop("2.0"), shop("3.0")], "twice");
}

#[test]
fn contents_are_compared_with_the_list() {
    let place = Place::new();
    let mut builder = shop("1.0");
    let whole = builder.bytes();
    let record = Builder::new("shop", "1.0").file("shop/__init__.py", "version = '6.6'\n").bytes();
    assert_ne!(whole, record);
    builder.record = Some(
        ["shop/__init__.py", "shop-1.0.dist-info/METADATA", "shop-1.0.dist-info/WHEEL"]
            .iter()
            .map(|path| format!("{path},sha256={},1\n", "A".repeat(43)))
            .collect(),
    );
    place.refused(&[builder], "has another content");
}

#[test]
fn an_old_version_goes_with_what_is_its_own() {
    let place = Place::new();
    let old = shop("1.0")
        .file("shop/old/deep/gone.py", "x\n")
        .file("shop/edited.py", "x\n")
        .file("shop-1.0.dist-info/entry_points.txt", "[console_scripts]\nshop-old = shop:main\n");
    place.install(&[old, Builder::new("other", "1.0").file("other/__init__.py", "")]);
    fs::write(place.path(SITE).join("shop/edited.py"), "changed by a person\n").unwrap();
    fs::create_dir(place.path(SITE).join("shop/old/deep/__pycache__")).unwrap();
    fs::write(place.path(SITE).join("shop/old/deep/__pycache__/gone.cpython-311.pyc"), "x").unwrap();
    fs::write(place.path("bin/mine"), "of a person\n").unwrap();
    let plan = place.install(&[shop("2.0")]);
    assert_eq!(plan.installed, ["shop@2.0"]);
    assert!(plan.before.unwrap().contains("shop==1.0 ") && !plan.after.contains("shop==1.0"));
    for gone in ["shop/old", "shop-1.0.dist-info"] {
        assert!(!place.path(SITE).join(gone).exists(), "{gone}");
    }
    assert!(!place.path("bin/shop-old").exists());
    for kept in [
        "shop/edited.py",
        "other/__init__.py",
        "other-1.0.dist-info/RECORD",
        "../../../bin/mine",
        "../../../bin/activate",
    ] {
        assert!(place.path(SITE).join(kept).exists(), "{kept}");
    }
    assert_eq!(place.read(&format!("{SITE}/shop/__init__.py")), "version = '2.0'\n");
    assert_eq!(place.environment().unwrap().distributions().len(), 2);
}

/// The list of files of what is installed is an attacker's text too.
#[test]
fn bug_a_list_of_files_removed_what_was_not_its_own() {
    let place = Place::new();
    place.install(&[shop("1.0"), Builder::new("other", "1.0").file("other/__init__.py", "mine\n")]);
    fs::write(place.folder.path().join("outside.py"), "x\n").unwrap();
    let checksum = |text: &str| {
        use base64::Engine;
        use sha2::Digest;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(text))
    };
    let record = place.path(SITE).join("shop-1.0.dist-info/RECORD");
    let mut rows = fs::read_to_string(&record).unwrap();
    let settings = place.read("pyvenv.cfg");
    let activate = place.read("bin/activate");
    let metadata = place.read(&format!("{SITE}/other-1.0.dist-info/METADATA"));
    for (path, text) in [
        ("../../../../outside.py", "x\n"),
        ("../../../pyvenv.cfg", &settings),
        ("../../../bin/activate", &activate),
        ("other/__init__.py", "mine\n"),
        ("other-1.0.dist-info/METADATA", &metadata),
        ("linked/outside.py", "x\n"),
    ] {
        rows.push_str(&format!("{path},sha256={},1\n", checksum(text)));
    }
    rows.push_str(&format!(
        "{},sha256={},1\n",
        place.folder.path().join("outside.py").display(),
        checksum("x\n")
    ));
    fs::write(&record, rows).unwrap();
    symlink(place.folder.path(), place.path(SITE).join("linked")).unwrap();
    place.install(&[shop("2.0")]);
    assert!(place.folder.path().join("outside.py").exists());
    for kept in [
        "pyvenv.cfg",
        "bin/activate",
        &format!("{SITE}/other/__init__.py"),
        &format!("{SITE}/other-1.0.dist-info/METADATA"),
    ] {
        assert!(place.path(kept).exists(), "{kept}");
    }
}

#[test]
fn bug_a_link_was_taken_for_an_installed_package() {
    let place = Place::new();
    place.install(&[shop("1.0")]);
    let elsewhere = place.folder.path().join("pytest-8.0.dist-info");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("METADATA"), "Name: pytest\nVersion: 8.0\n\n").unwrap();
    symlink(&elsewhere, place.path(SITE).join("pytest-8.0.dist-info")).unwrap();
    let environment = place.environment().unwrap();
    let names: Vec<&str> = environment.distributions().iter().map(|one| one.name().as_str()).collect();
    assert_eq!(names, ["shop"]);
}

#[test]
fn what_is_not_an_environment_is_refused() {
    let read = |place: &Place| {
        let root = Directory::open(&place.root()).unwrap();
        Environment::read(root, &|| false).map(|_| ()).unwrap_err().to_string()
    };
    let place = Place::new();
    fs::create_dir(place.root()).unwrap();
    assert!(read(&place).contains("no `pyvenv.cfg`"));
    fs::write(place.path("pyvenv.cfg"), "home = /usr/bin\nversion = 3.11.7\n").unwrap();
    assert!(read(&place).contains("no `lib`"));
    fs::create_dir_all(place.path("lib/python3.12/site-packages")).unwrap();
    assert!(read(&place).contains("another version of Python"));
    fs::create_dir_all(place.path("lib/python3.11/site-packages")).unwrap();
    assert!(read(&place).contains("more than one version"));
    fs::remove_dir_all(place.path("lib/python3.12")).unwrap();
    assert!(place.environment().is_some());
    // A link in the place of a directory is not followed.
    fs::remove_dir_all(place.path("lib/python3.11")).unwrap();
    symlink("/usr/lib/python3.11", place.path("lib/python3.11")).unwrap();
    assert!(read(&place).contains("no `pythonX.Y/site-packages`"));
    fs::remove_dir_all(place.path("lib")).unwrap();
    symlink("/usr/lib", place.path("lib")).unwrap();
    assert!(!read(&place).is_empty());
    fs::remove_file(place.path("pyvenv.cfg")).unwrap();
    nix_fifo(&place.path("pyvenv.cfg"));
    assert!(!read(&place).is_empty());
}

fn nix_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn another_version_of_python_is_not_mixed_in() {
    let place = Place::new();
    fs::create_dir_all(place.path("lib/python3.9/site-packages")).unwrap();
    fs::write(place.path("pyvenv.cfg"), "home = /usr/bin\nversion_info = 3.9.1.final.0\n").unwrap();
    place.refused(&[shop("1.0")], "it is for Python 3.9, and not for 3.11.7");
}

#[test]
fn programs_start_also_in_a_directory_with_spaces() {
    let place = Place::new();
    let staging = tempfile::tempdir().unwrap();
    let interpreter =
        Interpreter { version: "3.11.7".parse().unwrap(), program: PathBuf::from("/usr/bin/python3.11") };
    let plan = |location: &str| {
        let wheel = shop("1.0")
            .file("shop-1.0.dist-info/entry_points.txt", "[console_scripts]\nx = a:b\n")
            .open()
            .unwrap_or_else(|error| panic!("{error}"));
        let options = InstallOptions {
            interpreter: &interpreter,
            location: Path::new(location),
            staging: &tempfile::tempdir_in(staging.path()).unwrap().keep(),
            requested: &BTreeSet::new(),
            project: None,
            stop: &|| false,
        };
        Installation::of(place.environment().as_ref(), vec![wheel], &options)
    };
    let planned = plan("/home/ada l/.venv").unwrap();
    let program = planned.changes.iter().find_map(|change| match change {
        EnvironmentChange::Write { path, content, executable: true, .. } if path == "bin/x" => Some(content),
        _ => None,
    });
    let text = fs::read_to_string(program.unwrap()).unwrap();
    assert!(
        text.starts_with("#!/bin/sh\n'''exec' \"/home/ada l/.venv/bin/python\" \"$0\" \"$@\"\n' '''\n"),
        "{text}"
    );
    assert!(!writes(&planned).contains(&"lib/python3.11/site-packages/_project.pth"));
    for bad in
        ["/home/$(id)/.venv", "/home/a\"b/.venv", "/home/a\nb/.venv", "/home/`id`/.venv", "relative/.venv"]
    {
        assert!(plan(bad).is_err(), "{bad}");
    }
}

/// An environment may be a part of a repository that was cloned.
#[test]
fn bug_an_environment_of_a_stranger_took_gigabytes() {
    let place = Place::new();
    place.install(&[shop("1.0")]);
    // A file with holes is as long as the list says, and takes no room.
    let large = place.path(SITE).join("shop/large.bin");
    fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let record = place.path(SITE).join("shop-1.0.dist-info/RECORD");
    let rows = fs::read_to_string(&record).unwrap();
    fs::write(&record, format!("{rows}shop/large.bin,sha256={},1\n", "A".repeat(43))).unwrap();
    // Of the list of packages only what the kernel may have written is shown again.
    let list = place.read("packages.txt");
    fs::write(place.path("packages.txt"), format!("other==1.0 \u{1b}[2J\n{list}")).unwrap();
    place.install(&[Builder::new("other", "1.0").file("other.py", "")]);
    let plan = place.install(&[shop("2.0")]);
    assert!(large.exists() && !plan.after.contains('\u{1b}'), "{}", plan.after);
    for at in 0..20 {
        let folder = place.path(SITE).join(format!("many{at}-1.0.dist-info"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("METADATA"), format!("Name: many{at}\nVersion: 1.0\n\n")).unwrap();
        fs::write(
            folder.join("RECORD"),
            (0..39_000).map(|row| format!("m{at}/{row},,\n")).collect::<String>(),
        )
        .unwrap();
    }
    let root = Directory::open(&place.root()).unwrap();
    let error = Environment::read(root, &|| false).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("number of installed files"), "{error}");
}
