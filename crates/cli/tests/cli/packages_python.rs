//! `package_install` with pip, in a home of its own: what comes into the project and its environment, and what is refused. Tests
//! that need the index are skipped in one line where it cannot be reached.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::agent::{call, say, script};
use crate::packages::{can_jail, reaches};
use crate::project::{Project, Ran};

/// A person's rules for packages of Python.
const RULES: &str = "version: 1
rules:
  - {id: project, effect: allow, tools: [package_install], where: {path: '**/pyproject.toml'}}
  - {id: list, effect: allow, tools: [package_install], where: {path: '**/requirements.txt'}}
  - {id: dev-list, effect: allow, tools: [package_install], where: {path: '**/requirements-dev.txt'}}
";

/// The directory of the real Python, which may be behind a program that chooses one.
fn python() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let program = "import os, sys; print(os.path.dirname(os.path.realpath(sys._base_executable)))";
        let output = Command::new("python3").args(["-I", "-c", program]).output().ok()?;
        let place = String::from_utf8(output.stdout).ok()?;
        Some(PathBuf::from(place.trim())).filter(|place| place.join("python3").is_file())
    });
    if found.is_none() {
        println!("skipped: python3 is not installed");
    }
    found.as_deref()
}

/// A project whose user has Python, and nothing else.
fn python_project() -> Option<Project> {
    python()?;
    let project = Project::initialised();
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from)
        && home.join(".pyenv").is_dir()
    {
        std::os::unix::fs::symlink(home.join(".pyenv"), project.path("home/.pyenv")).unwrap();
    }
    project.write("tgp.policy.yaml", RULES);
    Some(project)
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        [project.path("bin"), python().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(path).unwrap());
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "PIP_INDEX_URL"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.output().unwrap().into()
}

fn install(project: &Project, arguments: &Value, options: &[&str]) -> Ran {
    let mut arguments = arguments.clone();
    arguments["manager"] = json!("pip");
    let arguments = arguments.to_string();
    run(project, &[&["call", "package_install", &arguments], options].concat())
}

fn shell(project: &Project, line: &str) -> Value {
    let arguments = json!({ "command": line }).to_string();
    run(project, &["call", "shell_exec", &arguments, "--yes"]).expect_code(0).document()
}

fn has_index() -> bool {
    can_jail()
        && reaches("python3", &["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "six==1.16.0"])
}

const MANIFEST: &str = "# our shop\n[project]\nname = \"shop\"\nversion = \"1.0\"\nrequires-python = \">=3.8\"\ndependencies = []\n";

#[test]
fn a_package_is_installed_after_the_list_of_packages_was_agreed_to() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    project.write("pyproject.toml", MANIFEST);
    project.write("src/shop/__init__.py", "name = 'shop'\n");
    project.write("tgp.policy.yaml", "version: 1\nrules: []\n");
    let wanted = json!({ "packages": ["six==1.16.0"] });
    // Nobody is asked here, and `--yes` does not cover packages.
    let refused = install(&project, &wanted, &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL") && refused.stdout.contains("pyproject.toml"), "{refused:?}");
    assert!(!project.file(".venv").exists() && project.read("pyproject.toml") == MANIFEST);

    project.write("tgp.policy.yaml", RULES);
    let shown = install(&project, &wanted, &["--yes", "--dry-run"]).expect_code(0).document();
    assert_eq!(shown["data"]["installed"], json!(["six@1.16.0"]), "{shown}");
    let changes = shown["data"]["changes"].to_string();
    assert!(changes.contains(".venv/packages.txt") && changes.contains("six==1.16.0"), "{changes}");
    assert!(changes.contains("+dependencies = [\\\"six==1.16.0\\\"]"), "{changes}");
    assert!(!project.file(".venv").exists() && project.read("pyproject.toml") == MANIFEST);

    let done = install(&project, &wanted, &["--yes"]).expect_code(0).document();
    let data = &done["data"];
    assert_eq!((&data["applied"], &data["installed"]), (&json!(true), &json!(["six@1.16.0"])), "{done}");
    assert_eq!(data["command"], "pip download --only-binary=:all: 'six==1.16.0'");
    assert_eq!(project.read("pyproject.toml"), MANIFEST.replace("[]", "[\"six==1.16.0\"]"));
    assert!(
        project
            .read(".venv/packages.txt")
            .starts_with("six==1.16.0  six-1.16.0-py2.py3-none-any.whl  sha256:")
    );
    let used = shell(&project, ".venv/bin/python -c 'import six, shop; print(six.__version__, shop.name)'");
    assert_eq!(used["data"]["stdout"], "1.16.0 shop\n", "{used}");
    // No other tool writes where it is.
    let write = r#"{"path": ".venv/pyvenv.cfg", "content": "x"}"#;
    run(&project, &["call", "fs_write", write, "--yes"]).expect_code(3);

    // Another package joins it, with what it depends on and its command. What is installed stays as it is.
    let more = json!({ "packages": ["python-dateutil", "pygments"], "dev": true });
    let done = install(&project, &more, &["--yes"]).expect_code(0).document();
    let installed = done["data"]["installed"].to_string();
    assert!(installed.contains("python-dateutil@") && !installed.contains("six@"), "{done}");
    let manifest = project.read("pyproject.toml");
    assert!(manifest.contains("[dependency-groups]\ndev = [\"python-dateutil>="), "{manifest}");
    let used = shell(
        &project,
        ".venv/bin/pygmentize -V && .venv/bin/python -c 'import dateutil, six; print(six.__version__)'",
    );
    assert!(used["data"]["stdout"].as_str().unwrap().ends_with("\n1.16.0\n"), "{used}");

    // A new version takes the place of the old one.
    install(&project, &json!({ "packages": ["six==1.17.0"] }), &["--yes"]).expect_code(0);
    assert!(project.read("pyproject.toml").contains("dependencies = [\"six==1.17.0\"]"));
    let site = shell(&project, "ls .venv/lib/python3*/site-packages");
    let names = site["data"]["stdout"].as_str().unwrap();
    assert!(names.contains("six-1.17.0.dist-info") && !names.contains("six-1.16.0.dist-info"), "{names}");
    assert!(
        project
            .file(".tgp/.state/packages")
            .read_dir()
            .map_or(true, |mut left| { left.all(|entry| !entry.unwrap().file_type().unwrap().is_dir()) })
    );
    // Nothing is left to do.
    let done = install(&project, &json!({}), &["--yes"]).expect_code(0).document();
    assert_eq!(done["data"]["installed"], json!([]), "{done}");
    run(&project, &["audit", "verify"]).expect_code(0);
}

#[test]
fn lists_of_requirements_are_followed_and_made() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    // Python and pip read nothing of the project.
    for name in ["pip.py", "json.py", "sitecustomize.py", "usercustomize.py", "pip/__init__.py"] {
        project.write(name, "raise SystemExit(9)\n");
    }
    for name in ["pip.conf", "pip.ini", ".config/pip/pip.conf"] {
        project.write(name, "[global]\nindex-url = https://packages.example.com/simple\n");
    }
    project.write(".python-version", "2.0.0\n");
    // Extras are named with spaces as people write them.
    let done = install(&project, &json!({ "packages": ["idna[all, flake8]==3.7"] }), &["--yes", "--dry-run"]);
    assert!(done.stdout.contains("idna[all,flake8]==3.7"), "{done:?}");
    install(&project, &json!({ "packages": ["six"] }), &["--yes"]).expect_code(0);
    let list = project.read("requirements.txt");
    assert!(list.starts_with("six>=1."), "{list}");
    // Another version keeps the extras that are listed.
    project.write("requirements.txt", &format!("# ours\n{list}idna[all]==3.6  # names\n"));
    install(&project, &json!({ "packages": ["idna==3.7"] }), &["--yes"]).expect_code(0);
    assert_eq!(project.read("requirements.txt"), format!("# ours\n{list}idna[all]==3.7  # names\n"));
    project.write("requirements.txt", &format!("# ours\n{list}idna==3.7  # names\n"));
    install(&project, &json!({ "packages": ["iniconfig"], "dev": true }), &["--yes"]).expect_code(0);
    assert_eq!(project.read("requirements.txt"), format!("# ours\n{list}idna==3.7  # names\n"));
    assert!(project.read("requirements-dev.txt").starts_with("iniconfig>="));
    let packages = project.read(".venv/packages.txt");
    assert!(["idna==3.7 ", "iniconfig==", "six=="].iter().all(|name| packages.contains(name)), "{packages}");
}

#[test]
fn bug_a_package_with_sources_only_was_built() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    let refused = install(&project, &json!({ "packages": ["docopt==0.6.2"] }), &["--yes"]);
    assert!(
        refused.stdout.contains("`docopt` has no wheel for this Python, and packages are not built"),
        "{refused:?}"
    );
    let missing = install(&project, &json!({ "packages": ["no-such-package-of-tgp"] }), &["--yes"]);
    assert!(
        missing.stdout.contains("pip failed: No matching distribution found for no-such-package-of-tgp"),
        "{missing:?}"
    );
    project.write("pyproject.toml", &MANIFEST.replace(">=3.8", ">=99"));
    let refused = install(&project, &json!({ "packages": ["six"] }), &["--yes"]);
    assert!(refused.stdout.contains("the project needs Python >=99"), "{refused:?}");
    assert!(!project.file(".venv").exists() && !project.file("requirements.txt").exists());
}

#[test]
fn bug_a_package_took_the_name_of_the_project() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    let manifest =
        MANIFEST.replace("\"shop\"", "\"Six\"").replace("[]", "[\"python-dateutil==2.9.0.post0\"]");
    project.write("pyproject.toml", &manifest);
    let refused = install(&project, &json!({}), &["--yes"]);
    assert!(refused.stdout.contains("ESECURITY"), "{refused:?}");
    assert!(refused.stdout.contains("has the name of this project"), "{refused:?}");
    assert!(!project.file(".venv").exists() && project.read("pyproject.toml") == manifest);
}

#[test]
fn a_rule_about_hosts_decides_and_nothing_is_changed() {
    if !can_jail() {
        return;
    }
    let Some(project) = python_project() else { return };
    let deny =
        "  - {id: no-hosts, effect: deny, tools: [package_install], where: {host: '*'}, reason: none}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{deny}"));
    let refused = install(&project, &json!({ "packages": ["six"] }), &["--yes"]);
    if refused.stdout.contains("has no pip") {
        println!("skipped: pip is not installed");
        return;
    }
    let refused = refused.expect_code(3);
    assert!(refused.stdout.contains("no-hosts"), "{refused:?}");
    assert!(!project.file(".venv").exists() && !project.file("requirements.txt").exists());
}

#[test]
fn what_pip_would_read_elsewhere_is_refused() {
    let Some(project) = python_project() else { return };
    let check = |files: &[(&str, &str)], packages: &[&str], expected: &[&str]| {
        let _ = std::fs::remove_dir_all(project.file("app"));
        std::fs::create_dir(project.file("app")).unwrap();
        files.iter().for_each(|(name, text)| project.write(&format!("app/{name}"), text));
        let refused = install(&project, &json!({ "directory": "app", "packages": packages }), &["--yes"]);
        for text in expected {
            assert!(refused.stdout.contains(text), "{files:?} {packages:?}: {text}: {refused:?}");
        }
        assert!(refused.code != Some(0) && !project.file("app/.venv").exists(), "{refused:?}");
    };
    let manifest = |line: &str| format!("[project]\nname = \"shop\"\n{line}\n");
    check(&[], &[], &["ENOTFOUND", "requirements.txt"]);
    check(&[], &["../six"], &["EVALIDATION", "`../six` is not a package of an index"]);
    check(&[], &["six @ https://example.org/six.whl"], &["EVALIDATION"]);
    check(&[], &["--index-url=https://example.org"], &["EVALIDATION"]);
    check(&[("pyproject.toml", &manifest(""))], &["Shop"], &["EVALIDATION", "is this project itself"]);
    check(&[("pyproject.toml", MANIFEST), ("uv.lock", "")], &["six"], &["ECAPABILITY", "of uv"]);
    check(&[("pyproject.toml", MANIFEST), ("poetry.lock", "")], &["six"], &["ECAPABILITY", "of Poetry"]);
    check(&[("Pipfile.lock", "")], &["six"], &["ECAPABILITY", "of Pipenv"]);
    check(
        &[("pyproject.toml", "[tool.poetry.dependencies]\nsix = \"1\"\n")],
        &["six"],
        &["ECAPABILITY", "Poetry"],
    );
    check(
        &[("pyproject.toml", &manifest("dynamic = [\"dependencies\"]"))],
        &[],
        &["ECAPABILITY", "nothing is built"],
    );
    check(
        &[("pyproject.toml", &manifest("dependencies = [\"six @ file:///six\"]"))],
        &[],
        &["EVALIDATION", "project.dependencies"],
    );
    for line in [
        "-e .",
        "-r ../x.txt",
        "--index-url=https://example.org",
        "./six",
        "https://example.org/six.whl",
        "--find-links .",
    ] {
        check(
            &[("requirements.txt", &format!("six\n{line}\n"))],
            &[],
            &["EVALIDATION", "app/requirements.txt", "line 2"],
        );
    }
    check(&[("requirements.txt", "-r other.txt\n")], &[], &["EVALIDATION", "app/other.txt"]);
    // The program that an environment names is not run, wherever it is: a package may have brought it.
    project.write("app/requirements.txt", "six\n");
    let beside = project.path("beside");
    std::fs::create_dir_all(&beside).unwrap();
    for home in [project.file("app/bin"), beside] {
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("python3"), "#!/bin/sh\necho HOSTILE >&2\n").unwrap();
        let program = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(home.join("python3"), program).unwrap();
        project.write("app/.venv/pyvenv.cfg", &format!("home = {}\nversion = 3.11.7\n", home.display()));
        std::fs::create_dir_all(project.file("app/.venv/lib/python3.11/site-packages")).unwrap();
        let arguments = json!({ "directory": "app", "packages": ["six"] });
        let ran = install(&project, &arguments, &["--yes", "--dry-run"]);
        assert!(!ran.stdout.contains("HOSTILE"), "{ran:?}");
    }
    std::fs::remove_dir_all(project.file("app/.venv")).unwrap();
    std::os::unix::fs::symlink("/usr", project.file("app/.venv")).unwrap();
    let refused = install(&project, &json!({ "directory": "app", "packages": ["six"] }), &["--yes"]);
    assert!(refused.stdout.contains("ESECURITY"), "{refused:?}");
    std::fs::remove_file(project.file("app/.venv")).unwrap();
    std::fs::remove_file(project.file("app/requirements.txt")).unwrap();
    project.shell("mkfifo app/requirements.txt").expect_code(0);
    let refused = install(&project, &json!({ "directory": "app", "packages": ["six"] }), &["--yes"]);
    assert!(
        refused.stdout.contains("ESECURITY") && refused.stdout.contains("not a plain file"),
        "{refused:?}"
    );
}

#[test]
fn tests_run_with_the_pytest_that_was_installed() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    project.write("pyproject.toml", MANIFEST);
    project.write("shop.py", "def price():\n    return 3\n");
    project.write("tests/test_shop.py", "import shop\n\n\ndef test_price():\n    assert shop.price() == 3\n");
    install(&project, &json!({ "packages": ["pytest"], "dev": true }), &["--yes"]).expect_code(0);
    let ran = run(&project, &["call", "test_run", "{}", "--yes"]).expect_code(0).document();
    assert_eq!(ran["data"]["passed"], json!(1), "{ran}");
}

#[test]
fn bug_undo_named_npm_for_packages_of_python() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    project.explore();
    project.write("app/requirements.txt", "idna==3.7\n");
    let wanted = json!({ "manager": "pip", "packages": ["six==1.17.0"], "directory": "app" });
    let turns = [vec![call("package_install", wanted)], vec![say("Done.")]];
    let provider = script(&project, "model.json", &turns);
    let ran = run(&project, &["install six", "--provider", &provider, "--yes"]).expect_code(0);
    assert_eq!(project.read("app/requirements.txt"), "idna==3.7\nsix==1.17.0\n", "{ran:?}");
    let shown = run(&project, &["undo", "last", "--dry-run"]).expect_code(0);
    let text = r#"`tgp call package_install '{"manager":"pip","directory":"app"}' --yes`"#;
    assert!(shown.stderr.contains(text), "{shown:?}");
}

/// The new version was installed against another list, and the manifest could not be installed any more.
#[test]
fn bug_a_package_was_added_against_what_another_list_wants() {
    if !has_index() {
        return;
    }
    let Some(project) = python_project() else { return };
    let manifest = MANIFEST.replace("[]", "[\"six==1.16.0\"]");
    project.write("pyproject.toml", &manifest);
    let wanted = json!({ "packages": ["six>=1.17"], "dev": true });
    let refused = install(&project, &wanted, &["--yes"]);
    assert!(refused.stdout.contains("ERUNTIME") && refused.stdout.contains("Cannot install"), "{refused:?}");
    // A version that nobody has published.
    let refused = install(&project, &json!({ "packages": ["six==99"] }), &["--yes"]);
    assert!(
        refused.stdout.contains("ENOTFOUND")
            && refused.stdout.contains("no version for six==99; the newest is"),
        "{refused:?}"
    );
    assert!(!project.file(".venv").exists() && project.read("pyproject.toml") == manifest);
    install(&project, &json!({ "packages": ["six>=1.15"], "dev": true }), &["--yes"]).expect_code(0);
    assert!(project.read(".venv/packages.txt").starts_with("six==1.16.0 "));
}
