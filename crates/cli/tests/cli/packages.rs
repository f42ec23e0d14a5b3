//! `package_install` with the real package managers: what is asked, what is put in place, and what is refused. Tests that
//! need an index are skipped in one line where it cannot be reached.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::{Project, Ran};

/// A person's rules for packages. `--yes` does not cover the manifests, so the rules name them.
pub const RULES: &str = "version: 1
rules:
  - {id: npm, effect: allow, tools: [package_install], where: {path: package.json}}
  - {id: pip, effect: allow, tools: [package_install], where: {path: requirements.txt}}
  - {id: cargo, effect: allow, tools: [package_install], where: {path: Cargo.toml}}
  - {id: versions, effect: allow, tools: [package_install], where: {path: package-lock.json}}
";

/// The longest that the index is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn can_jail() -> bool {
    let complete = tgp::sandbox::process_support().complete();
    if !complete {
        println!("skipped: commands cannot be jailed here");
    }
    complete
}

/// Whether a program that asks an index ends well in time.
pub fn reaches(manager: &str, arguments: &[&str]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let child = Command::new(manager)
        .args(arguments)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: {manager} is not installed");
        return false;
    };
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            if !status.success() {
                println!("skipped: the index of {manager} cannot be reached");
            }
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
    println!("skipped: the index of {manager} does not answer");
    false
}

/// Toolchains live in the home of the user who runs the tests, and the certificates of its network are named by variables.
pub fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.output().unwrap().into()
}

fn install(project: &Project, arguments: &Value, options: &[&str]) -> Ran {
    let arguments = arguments.to_string();
    run(project, &[&["call", "package_install", &arguments], options].concat())
}

fn npm_project() -> Project {
    let project = Project::initialised();
    project.write("package.json", "{\n  \"name\": \"shop\",\n  \"private\": true\n}\n");
    project
}

#[test]
fn a_package_is_installed_after_the_change_of_the_manifest_was_agreed_to() {
    if !can_jail() || !reaches("npm", &["view", "left-pad@1.3.0", "version"]) {
        return;
    }
    let project = npm_project();
    let before = project.read("package.json");
    let wanted = json!({ "packages": ["left-pad@1.3.0"] });
    // Nobody is asked here, and `--yes` does not cover what is listed to run later.
    let refused = install(&project, &wanted, &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL") && refused.stdout.contains("package.json"), "{refused:?}");
    assert_eq!(project.read("package.json"), before);
    assert!(!project.file("node_modules").exists() && !project.file("package-lock.json").exists());

    project.write("tgp.policy.yaml", RULES);
    let shown = install(&project, &wanted, &["--yes", "--dry-run"]).expect_code(0).document();
    assert_eq!(shown["data"]["installed"], json!(["left-pad@1.3.0"]));
    let diff = shown["data"]["changes"].to_string();
    assert!(diff.contains("+    \\\"left-pad\\\"") || diff.contains("left-pad"), "{diff}");
    assert!(!project.file("node_modules").exists());

    let done = install(&project, &wanted, &["--yes"]).expect_code(0).document();
    let data = &done["data"];
    assert_eq!((&data["manager"], &data["applied"]), (&json!("npm"), &json!(true)), "{done}");
    assert_eq!(data["installed"], json!(["left-pad@1.3.0"]));
    let schema = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/schemas/package_install.json"),
    );
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema["output_schema"]).unwrap();
    assert!(validator.is_valid(data) && validator.is_valid(&shown["data"]), "{data}");
    assert!(project.file("node_modules/left-pad/index.js").is_file());
    let manifest: Value = serde_json::from_str(&project.read("package.json")).unwrap();
    assert!(manifest["dependencies"]["left-pad"].is_string(), "{manifest}");
    let records = run(&project, &["audit", "tail", "-n", "1", "--json"]).expect_code(0).stdout;
    assert!(records.contains("\"host\"") && records.contains("package.json"), "{records}");
    // A command in the jail has the package, and no other tool writes where it is.
    let used = r#"{"command": "node -p \"require('left-pad')('x', 3, '-')\""}"#;
    let ran = run(&project, &["call", "shell_exec", used, "--yes"]).expect_code(0).document();
    assert_eq!(ran["data"]["stdout"], "--x\n", "{ran}");
    let write = r#"{"path": "node_modules/left-pad/index.js", "content": "x"}"#;
    run(&project, &["call", "fs_write", write, "--yes"]).expect_code(3);

    // A second package joins the first, in a tree that takes the place of the old one.
    let more = json!({ "packages": ["is-number@7.0.0"], "dev": true });
    let done = install(&project, &more, &["--yes"]).expect_code(0).document();
    assert_eq!(done["data"]["installed"], json!(["is-number@7.0.0"]));
    assert!(project.file("node_modules/left-pad/index.js").is_file());
    assert!(project.file("node_modules/is-number/index.js").is_file());
    let manifest: Value = serde_json::from_str(&project.read("package.json")).unwrap();
    assert!(manifest["devDependencies"]["is-number"].is_string(), "{manifest}");
    assert!(
        !project.file(".tgp/.state/packages").exists()
            || project.file(".tgp/.state/packages").read_dir().unwrap().next().is_none(),
        "the old tree is left"
    );

    // A rule about files of packages sees every one of them.
    let rule = "  - {id: no-left-pad, effect: deny, tools: '*', where: {path: '**/left-pad/package.json'}}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{rule}"));
    std::fs::remove_dir_all(project.file("node_modules")).unwrap();
    let refused = install(&project, &json!({}), &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("no-left-pad"), "{refused:?}");
    assert!(!project.file("node_modules").exists());
    run(&project, &["audit", "verify"]).expect_code(0);
}

#[test]
fn a_rule_about_hosts_decides_and_nothing_is_changed() {
    if !can_jail() {
        return;
    }
    let project = npm_project();
    let deny =
        "  - {id: no-hosts, effect: deny, tools: [package_install], where: {host: '*'}, reason: none}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{deny}"));
    let before = project.read("package.json");
    let refused = install(&project, &json!({ "packages": ["left-pad"] }), &["--yes"]);
    if refused.stdout.contains("ECAPABILITY") {
        println!("skipped: npm is not installed where commands see it");
        return;
    }
    let refused = refused.expect_code(3);
    assert!(refused.stdout.contains("no-hosts"), "{refused:?}");
    assert_eq!(project.read("package.json"), before);
    assert!(!project.file("node_modules").exists());
}

#[test]
fn other_files_of_the_project_are_no_packages() {
    if !can_jail() || Command::new("npm").arg("--version").output().is_err() {
        println!("skipped: npm is not installed");
        return;
    }
    let project = npm_project();
    project.write("tgp.policy.yaml", RULES);
    project.write(
        "package.json",
        r#"{"name": "shop", "private": true, "devDependencies": {"vitest": "file:./vitest-9.0.0.tgz"}}"#,
    );
    project
        .shell(
            "mkdir package && printf '{\"name\": \"vitest\", \"version\": \"9.0.0\", \"scripts\": {\"postinstall\": \"touch ../../ran\"}}' > package/package.json && tar -czf vitest-9.0.0.tgz package && rm -r package",
        )
        .expect_code(0);
    let refused = install(&project, &json!({}), &["--yes"]);
    if refused.stdout.contains("ECAPABILITY") {
        println!("skipped: npm is not installed where commands see it");
        return;
    }
    assert!(refused.stdout.contains("ESECURITY") && refused.stdout.contains("vitest"), "{refused:?}");
    assert!(!project.file("node_modules").exists() && !project.file("ran").exists());
    // A member of a workspace is a link to its folder, which is no place where runners are looked for.
    project.write("package.json", r#"{"name": "shop", "private": true, "workspaces": ["lib"]}"#);
    project.write(
        "lib/package.json",
        r#"{"name": "shop-lib", "version": "1.0.0", "scripts": {"postinstall": "touch ../ran", "prepare": "touch ../ran"}}"#,
    );
    install(&project, &json!({}), &["--yes"]).expect_code(0);
    assert!(project.file("node_modules/shop-lib").read_link().unwrap().ends_with("lib"));
    assert!(!project.file("ran").exists() && !project.file("lib/ran").exists());
}

#[test]
fn a_package_of_python_is_installed_with_its_version_in_the_list() {
    if !can_jail() || !reaches("python3", &["-m", "pip", "download", "--no-deps", "--quiet", "six==1.16.0"]) {
        return;
    }
    let project = Project::initialised();
    project.write("tgp.policy.yaml", RULES);
    project.write("requirements.txt", "# The packages of the shop.\n");
    let done = install(&project, &json!({ "packages": ["six==1.16.0"] }), &["--yes"]);
    let done = done.expect_code(0).document();
    assert_eq!(done["data"]["manager"], "pip");
    let installed = done["data"]["installed"].to_string();
    assert!(installed.contains("six@1.16.0"), "{installed}");
    assert_eq!(project.read("requirements.txt"), "# The packages of the shop.\nsix==1.16.0\n");
    let six = r#"{"command": ".venv/bin/python -c 'import six; print(six.__version__)'"}"#;
    let ran = run(&project, &["call", "shell_exec", six, "--yes"]).expect_code(0).document();
    assert_eq!(ran["data"]["stdout"], "1.16.0\n", "{ran}");
}

#[test]
fn a_crate_is_added_to_the_registry_of_the_user() {
    if !can_jail() || !reaches("cargo", &["info", "--quiet", "itoa@1.0.15"]) {
        return;
    }
    // A registry of its own: tests add nothing to that of the person who runs them.
    let project = Project::initialised();
    let home = std::env::var("HOME").unwrap_or_default();
    let of_user =
        |name: &str, folder: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{folder}"));
    let (rustup, cargo) = (of_user("RUSTUP_HOME", ".rustup"), of_user("CARGO_HOME", ".cargo"));
    let own = project.path("cargo-home");
    std::fs::create_dir_all(own.join("registry")).unwrap();
    let readable = json!([rustup, format!("{cargo}/bin"), own.join("registry")]);
    project.write("tgp.config.ts", &format!("export default {{ jail: {{ readable: {readable} }} }};\n"));
    project.run(&["trust", "--yes"]).expect_code(0);
    project.write("tgp.policy.yaml", RULES);
    project.write("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    project.write("src/main.rs", "fn main() {\n    println!(\"{}\", itoa::Buffer::new().format(42));\n}\n");
    let run = |arguments: &[&str]| -> Ran {
        let mut command = project.command(arguments);
        command.env("CARGO_HOME", &own).env("RUSTUP_HOME", &rustup);
        if let Some(value) = std::env::var_os("SSL_CERT_FILE") {
            command.env("SSL_CERT_FILE", value);
        }
        command.output().unwrap().into()
    };
    let wanted = json!({ "packages": ["itoa@1.0.15"] }).to_string();
    let done = run(&["call", "package_install", &wanted, "--yes"]).expect_code(0).document();
    assert_eq!(done["data"]["manager"], "cargo");
    let installed = done["data"]["installed"][0].as_str().unwrap_or_default().to_owned();
    assert!(installed.starts_with("itoa@1."), "{done}");
    assert!(project.read("Cargo.toml").contains("itoa = \"1.0.15\""));
    let is_there = |folder: &str, name: &str| {
        let indexes = own.join("registry").join(folder).read_dir().unwrap();
        indexes.flatten().any(|index| Path::new(&index.path()).join(name).exists())
    };
    let name = installed.replace('@', "-");
    assert!(is_there("cache", &format!("{name}.crate")) && is_there("src", &format!("{name}/Cargo.toml")));
    let built =
        run(&["call", "shell_exec", r#"{"command": "cargo run --quiet", "template": "build"}"#, "--yes"]);
    assert_eq!(built.expect_code(0).document()["data"]["stdout"], "42\n");
}
