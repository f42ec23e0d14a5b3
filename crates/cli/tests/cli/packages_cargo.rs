//! `package_install` with cargo, in a home of its own: what comes into the project and into the registry, and what is refused.
//! Tests that need the index are skipped in one line where it cannot be reached.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::packages::{RULES, can_jail, reaches};
use crate::project::{Project, Ran};

/// A small package without dependencies.
const WANTED: &str = "itoa@=1.0.15";

/// Where the toolchains of the user who runs the tests are.
struct Toolchain {
    programs: PathBuf,
    rustup: Option<PathBuf>,
}

fn toolchain() -> Option<&'static Toolchain> {
    static FOUND: OnceLock<Option<Toolchain>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let path = std::env::var_os("PATH")?;
        let programs = std::env::split_paths(&path).find(|entry| entry.join("cargo").is_file())?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let rustup =
            std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".rustup")));
        Some(Toolchain {
            programs: programs.canonicalize().ok()?,
            rustup: rustup.filter(|path| path.is_dir()),
        })
    });
    if found.is_none() {
        println!("skipped: cargo is not installed");
    }
    found.as_ref()
}

/// A project whose user has the toolchain, and a home of cargo in which nothing was ever downloaded.
pub fn cargo_home(project: &Project) -> bool {
    let Some(toolchain) = toolchain() else { return false };
    let home = project.path("home");
    std::fs::create_dir_all(home.join(".cargo")).unwrap();
    // Where commands may read toolchains: the links lead to those of the user who runs the tests.
    std::os::unix::fs::symlink(&toolchain.programs, home.join(".cargo/bin")).unwrap();
    if let Some(rustup) = &toolchain.rustup {
        std::os::unix::fs::symlink(rustup, home.join(".rustup")).unwrap();
    }
    true
}

/// Runs a program as that user.
pub fn with_home(project: &Project, mut command: Command) -> Ran {
    set_home(project, &mut command);
    command.output().unwrap().into()
}

/// The environment of that user.
fn set_home(project: &Project, command: &mut Command) {
    let home = project.path("home");
    command.env("HOME", &home).env("CARGO_HOME", home.join(".cargo"));
    if let Some(rustup) = toolchain().and_then(|toolchain| toolchain.rustup.as_ref()) {
        command.env("RUSTUP_HOME", rustup);
    }
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "CARGO_HTTP_CAINFO"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    with_home(project, project.command(arguments))
}

fn install(project: &Project, arguments: &Value, options: &[&str]) -> Ran {
    let mut arguments = arguments.clone();
    arguments["manager"] = json!("cargo");
    let arguments = arguments.to_string();
    run(project, &[&["call", "package_install", &arguments], options].concat())
}

/// Whether the index can be reached; nothing of the home of the user who runs the tests is touched.
pub fn reaches_index() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    if toolchain().is_none() {
        return false;
    }
    *FOUND.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let manifest = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = \"=1.0.15\"\n";
        std::fs::create_dir_all(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        let manifest = folder.path().join("Cargo.toml").display().to_string();
        let home = folder.path().join("home").display().to_string();
        reaches("env", &[&format!("CARGO_HOME={home}"), "cargo", "fetch", "--manifest-path", &manifest])
    })
}

fn rust_project() -> Option<Project> {
    if !can_jail() {
        return None;
    }
    let project = Project::initialised();
    project.write("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    project.write("src/main.rs", "fn main() {}\n");
    cargo_home(&project).then_some(project)
}

fn registry(project: &Project, part: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for index in
        std::fs::read_dir(project.path("home/.cargo/registry").join(part)).into_iter().flatten().flatten()
    {
        let entries = std::fs::read_dir(index.path()).unwrap().flatten();
        names.extend(entries.map(|entry| entry.file_name().into_string().unwrap()));
    }
    names.sort();
    names
}

#[test]
fn a_package_is_added_and_later_builds_find_it_without_the_network() {
    let Some(project) = rust_project().filter(|_| reaches_index()) else { return };
    let before = project.read("Cargo.toml");
    let wanted = json!({ "packages": [WANTED] });
    let refused = install(&project, &wanted, &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL") && refused.stdout.contains("Cargo.toml"), "{refused:?}");
    assert_eq!(project.read("Cargo.toml"), before);
    assert!(!project.file("Cargo.lock").exists() && registry(&project, "cache").is_empty());

    project.write("tgp.policy.yaml", RULES);
    let shown = install(&project, &wanted, &["--yes", "--dry-run"]).expect_code(0).document();
    assert_eq!(shown["data"]["installed"], json!(["itoa@1.0.15"]), "{shown}");
    let list = shown["data"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|change| change["path"] == "target/packages.txt");
    assert!(
        list.is_some_and(|list| list["diff"].as_str().unwrap().contains("+itoa 1.0.15 sha256:")),
        "{shown}"
    );
    assert!(!project.file("Cargo.lock").exists() && registry(&project, "cache").is_empty());

    let done = install(&project, &wanted, &["--yes"]).expect_code(0).document();
    assert_eq!(done["data"]["applied"], true, "{done}");
    assert_eq!(done["data"]["installed"], json!(["itoa@1.0.15"]), "{done}");
    assert!(done["data"]["bytes"].as_u64().unwrap() > 1_000, "{done}");
    let command = done["data"]["command"].as_str().unwrap();
    assert!(
        command.starts_with("cargo add --manifest-path Cargo.toml -- 'itoa@=1.0.15' && cargo fetch"),
        "{command}"
    );
    assert!(project.read("Cargo.toml").contains("itoa = \"=1.0.15\""), "{}", project.read("Cargo.toml"));
    assert!(project.read("Cargo.lock").contains("name = \"itoa\""));
    assert_eq!(registry(&project, "cache"), ["itoa-1.0.15.crate"]);
    assert_eq!(registry(&project, "src"), ["itoa-1.0.15"]);
    assert!(!project.file("target/packages.txt").exists());

    project.write("src/main.rs", "fn main() { println!(\"{}\", itoa::Buffer::new().format(42)); }\n");
    let build = r#"{"command": "cargo run --quiet --offline", "template": "build"}"#;
    let ran = run(&project, &["call", "shell_exec", build, "--yes"]).expect_code(0).document();
    assert_eq!(ran["data"]["stdout"], "42\n", "{ran}");

    // A second time nothing is new, and no question is asked.
    project.write("tgp.policy.yaml", "version: 1\nrules: []\n");
    let again = install(&project, &json!({}), &["--yes"]).expect_code(0).document();
    assert_eq!(again["data"]["installed"], json!([]), "{again}");
    // What the registry lost is asked about again, though no manifest changes, and put there again.
    std::fs::remove_dir_all(project.path("home/.cargo/registry/src")).unwrap();
    let refused = install(&project, &json!({}), &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL"), "{refused:?}");
    project.write("tgp.policy.yaml", RULES);
    install(&project, &json!({}), &["--yes"]).expect_code(0);
    assert_eq!(registry(&project, "src"), ["itoa-1.0.15"]);
    run(&project, &["audit", "verify"]).expect_code(0);
}

#[test]
fn nothing_of_the_project_is_executed_or_believed() {
    let Some(project) = rust_project().filter(|_| reaches_index()) else { return };
    project.write("tgp.policy.yaml", RULES);
    let mark = project.file("ran.mark").display().to_string();
    let script = format!("#!/bin/sh\ntouch {mark}\nexit 1\n");
    for name in
        ["evil/cargo", "evil/rustc", "evil/bin/cargo", "evil/bin/rustc", "evil/credential", "evil/git"]
    {
        project.write(name, &script);
        project.shell(&format!("chmod +x {name}")).expect_code(0);
    }
    let evil = project.file("evil").display().to_string();
    project.write("build.rs", "fn main() { std::fs::write(\"ran.mark\", \"\").unwrap(); }\n");
    project.write("rust-toolchain.toml", &format!("[toolchain]\npath = \"{evil}\"\n"));
    project.write(
        ".cargo/config.toml",
        &format!(
            "[build]\nrustc = \"{evil}/rustc\"\nrustc-wrapper = \"{evil}/rustc\"\ntarget-dir = \"{evil}/out\"\n[registry]\nglobal-credential-providers = [\"{evil}/credential\"]\ncredential-provider = \"{evil}/credential\"\n[source.crates-io]\nreplace-with = \"evil\"\n[source.evil]\nregistry = \"sparse+https://127.0.0.1:9/\"\n[target.'cfg(all())']\nrunner = \"{evil}/rustc\"\n[net]\ngit-fetch-with-cli = true\n[env]\nPATH = \"{evil}\"\n[alias]\nadd = \"run\"\nfetch = \"run\"\n"
        ),
    );
    let done = install(&project, &json!({ "packages": [WANTED] }), &["--yes"]).expect_code(0).document();
    assert_eq!(done["data"]["installed"], json!(["itoa@1.0.15"]), "{done}");
    assert!(!project.file("ran.mark").exists() && !project.file("evil/out").exists());
    let lock = project.read("Cargo.lock");
    assert!(!lock.contains("127.0.0.1"), "{lock}");
}

#[test]
fn the_lock_file_of_a_workspace_is_the_one_at_its_root() {
    let Some(project) = rust_project().filter(|_| reaches_index()) else { return };
    project.write("tgp.policy.yaml", RULES);
    project.write("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n");
    for name in ["a", "b"] {
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        project.write(&format!("crates/{name}/Cargo.toml"), &manifest);
        project.write(&format!("crates/{name}/src/lib.rs"), "");
    }
    let at_root = install(&project, &json!({ "packages": [WANTED] }), &["--yes"]);
    assert!(
        at_root.stdout.contains("name the member that uses the packages with `directory`"),
        "{at_root:?}"
    );
    let wanted = json!({ "packages": [WANTED], "dev": true, "directory": "crates/a" });
    let done = install(&project, &wanted, &["--yes"]).expect_code(0).document();
    let changed: Vec<&str> = done["data"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| change["path"].as_str())
        .collect();
    assert_eq!(changed, ["Cargo.lock", "crates/a/Cargo.toml"], "{done}");
    assert!(project.file("Cargo.lock").is_file() && !project.file("crates/a/Cargo.lock").exists());
    assert!(project.read("crates/a/Cargo.toml").contains("[dev-dependencies]\nitoa"));
    assert!(!project.read("crates/b/Cargo.toml").contains("itoa"));
    // Features are of a package.
    let features =
        json!({ "packages": ["either@=1.15.0"], "features": ["use_std"], "directory": "crates/b" });
    install(&project, &features, &["--yes"]).expect_code(0);
    assert!(
        project.read("crates/b/Cargo.toml").contains("use_std"),
        "{}",
        project.read("crates/b/Cargo.toml")
    );
    // A dependency of the project on itself does not come from an index. The others are installed.
    project.write(
        "crates/b/Cargo.toml",
        &format!("{}a = {{ path = \"../a\" }}\n", project.read("crates/b/Cargo.toml")),
    );
    install(&project, &json!({ "directory": "crates/b" }), &["--yes"]).expect_code(0);
}

#[test]
fn what_is_no_package_of_the_default_index_is_refused_by_its_name() {
    let Some(project) = rust_project() else { return };
    project.write("tgp.policy.yaml", RULES);
    let shop = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let outside = project.path("outside");
    std::fs::create_dir_all(outside.join("src")).unwrap();
    std::fs::write(outside.join("src/lib.rs"), "").unwrap();
    std::fs::write(outside.join("Cargo.toml"), "[package]\nname = \"outer\"\nversion = \"0.1.0\"\n").unwrap();
    project.write("lib/src/lib.rs", "");
    for (manifest, code, what) in [
        (
            "[dependencies]\nhostile = { git = \"https://example.org/x\" }\n",
            "ESECURITY",
            "`hostile` comes from a repository of git",
        ),
        (
            "[build-dependencies]\nhostile = { git = \"ssh://git@example.org/x\", rev = \"1\" }\n",
            "ESECURITY",
            "`hostile`",
        ),
        ("[target.'cfg(unix)'.dependencies]\nhostile = { git = \"file:///\" }\n", "ESECURITY", "`hostile`"),
        (
            "[dependencies]\nitoa = \"1\"\n[patch.crates-io]\nitoa = { git = \"https://example.org/x\" }\n",
            "ESECURITY",
            "`itoa`",
        ),
        ("[dependencies]\nhostile = { version = \"1\", registry = \"mine\" }\n", "ESECURITY", "`mine`"),
        (
            "[dependencies]\nhostile = { version = \"1\", registry-index = \"https://example.org/\" }\n",
            "ESECURITY",
            "`hostile`",
        ),
        ("[dependencies]\nouter = { path = \"../outside\" }\n", "", "outer"),
        ("[dependencies]\nouter = { path = \"/usr/share\" }\n", "", "outer"),
        ("\n[package.metadata]\nx = \n", "EVALIDATION", "cannot be read as a manifest of cargo"),
    ] {
        project.write("Cargo.toml", &format!("{shop}{manifest}"));
        let refused = install(&project, &json!({}), &["--yes"]);
        assert_ne!(refused.code, Some(0), "{manifest}: {refused:?}");
        assert!(refused.stdout.contains(code) && refused.stdout.contains(what), "{manifest}: {refused:?}");
        assert!(!project.file("Cargo.lock").exists() && registry(&project, "cache").is_empty(), "{manifest}");
    }
    for (name, arguments) in [
        ("package", json!({ "packages": ["../lib"] })),
        ("package", json!({ "packages": ["itoa@git+https://example.org"] })),
        ("feature", json!({ "packages": ["itoa"], "features": ["--x"] })),
        ("feature", json!({ "features": ["x"] })),
    ] {
        let refused = install(&project, &arguments, &["--yes"]).expect_code(2);
        assert!(refused.stdout.contains("EVALIDATION") && refused.stdout.contains(name), "{refused:?}");
    }
    let of_npm = json!({ "packages": ["left-pad"], "features": ["x"] }).to_string();
    let refused = run(&project, &["call", "package_install", &of_npm, "--yes"]).expect_code(2);
    assert!(refused.stdout.contains("EVALIDATION") && refused.stdout.contains("features"), "{refused:?}");
}

/// A lock file that an agent writes names another source or another archive for a package.
#[test]
fn bug_a_lock_file_gave_a_package_another_source() {
    let Some(project) = rust_project().filter(|_| reaches_index()) else { return };
    project.write("tgp.policy.yaml", RULES);
    install(&project, &json!({ "packages": [WANTED] }), &["--yes"]).expect_code(0);
    let lock = project.read("Cargo.lock");
    let checksum = lock.split("checksum = \"").nth(1).unwrap().split('"').next().unwrap();
    std::fs::remove_dir_all(project.path("home/.cargo/registry")).unwrap();
    let forged = format!("{}{}", if checksum.starts_with('0') { "1" } else { "0" }, &checksum[1..]);
    project.write("Cargo.lock", &lock.replace(checksum, &forged));
    let refused = install(&project, &json!({}), &["--yes"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(registry(&project, "cache").is_empty() && registry(&project, "src").is_empty());
}

#[test]
fn bug_a_pipe_or_a_link_in_the_place_of_a_manifest_was_waited_for_or_followed() {
    let Some(project) = rust_project() else { return };
    project.write("tgp.policy.yaml", RULES);
    project.write("one/src/lib.rs", "");
    project.write("deep/member/Cargo.toml", "[package]\nname = \"m\"\nversion = \"0.1.0\"\n");
    std::fs::write(project.path("outside.toml"), "[package]\nname = \"o\"\nversion = \"0.1.0\"\n").unwrap();
    let manifest = "[package]\nname = \"one\"\nversion = \"0.1.0\"\n";
    for (line, directory) in [
        ("mkfifo one/Cargo.toml", "one"),
        ("ln -s ../../outside.toml one/Cargo.toml", "one"),
        ("ln -s ../Cargo.toml one/Cargo.toml", "one"),
        ("mkdir one/Cargo.toml", "one"),
        ("mkfifo one/Cargo.lock", "one"),
        ("ln -s /etc/hostname one/Cargo.lock", "one"),
        ("ln -s ../missing one/Cargo.lock", "one"),
        ("mkfifo deep/Cargo.toml", "deep/member"),
    ] {
        if line.contains("Cargo.lock") {
            project.write("one/Cargo.toml", manifest);
        }
        project.shell(line).expect_code(0);
        let started = std::time::Instant::now();
        let refused = install(&project, &json!({ "directory": directory }), &["--yes"]);
        assert!(refused.stdout.contains("ESECURITY"), "{line}: {refused:?}");
        assert!(refused.stdout.contains("is not a plain file"), "{line}: {refused:?}");
        assert!(started.elapsed().as_secs() < 30, "{line}");
        project.shell("rm -rf one/Cargo.toml one/Cargo.lock deep/Cargo.toml").expect_code(0);
    }
}

#[test]
fn bug_a_workspace_outside_of_the_project_was_installed_for() {
    let Some(project) = rust_project() else { return };
    project.write("tgp.policy.yaml", RULES);
    let member = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n";
    project.write("Cargo.toml", &format!("{member}workspace = \"..\"\n"));
    let refused = install(&project, &json!({}), &["--yes"]);
    assert!(
        refused.stdout.contains("ESECURITY") && refused.stdout.contains("outside of the project"),
        "{refused:?}"
    );
    // Found by walking up, which cargo in the jail cannot do.
    project.write("Cargo.toml", member);
    std::fs::write(project.path("Cargo.toml"), "[workspace]\nmembers = [\"here\"]\n").unwrap();
    let refused = install(&project, &json!({}), &["--yes"]);
    assert!(
        refused.stdout.contains("ESECURITY") && refused.stdout.contains("outside of the project"),
        "{refused:?}"
    );
    assert!(!project.file("Cargo.lock").exists());
}

/// Whenever the kernel is killed, cargo never finds an archive whose sources are not whole: it would not look at them again.
#[test]
fn bug_a_kernel_that_was_killed_left_a_registry_that_cargo_does_not_accept() {
    let Some(project) = rust_project().filter(|_| reaches_index()) else { return };
    project.write("tgp.policy.yaml", RULES);
    let wanted = json!({ "manager": "cargo", "packages": ["serde@=1.0.228"], "features": ["derive"] });
    let sources = project.path("home/.cargo/registry/src");
    let is_complete = |stem: &str| {
        let indexes = std::fs::read_dir(&sources).into_iter().flatten().flatten();
        indexes
            .map(|index| index.path().join(stem))
            .any(|folder| folder.join(".cargo-ok").is_file() && folder.join("Cargo.toml").is_file())
    };
    let arguments = wanted.to_string();
    for pause in [100_u64, 400, 700, 900, 1100, 1300, 1600] {
        let mut command = project.command(&["call", "package_install", &arguments, "--yes"]);
        set_home(&project, &mut command);
        let (out, err) = (std::process::Stdio::null(), std::process::Stdio::null());
        let mut child = command.stdout(out).stderr(err).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        for archive in registry(&project, "cache").iter().filter(|name| !name.starts_with('.')) {
            let stem = archive.strip_suffix(".crate").unwrap();
            assert!(is_complete(stem), "{stem} after {pause} ms");
        }
    }
    install(&project, &wanted, &["--yes"]).expect_code(0);
    let left = |part: &str| registry(&project, part).into_iter().any(|name| name.starts_with(".tgp-"));
    assert!(!left("cache") && !left("src") && !left("index"));
    let mut cargo = project.program("cargo");
    cargo.args(["fetch", "--offline", "--locked"]);
    with_home(&project, cargo).expect_code(0);
}

#[test]
fn cargo_is_asked_for_in_a_directory_of_cargo_only() {
    let Some(project) = rust_project() else { return };
    project.write("tgp.policy.yaml", RULES);
    project.write("web/package.json", "{}");
    project.write("target/x/Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n");
    for (directory, code) in
        [("web", "ENOTFOUND"), ("empty", "ENOTFOUND"), ("target/x", "ESECURITY"), ("../other", "ESECURITY")]
    {
        let refused = install(&project, &json!({ "directory": directory }), &["--yes"]);
        assert!(refused.stdout.contains(code), "{directory}: {refused:?}");
    }
    // The call of npm says which manager is meant.
    let refused = run(&project, &["call", "package_install", "{}", "--yes"]);
    assert!(
        refused.stdout.contains("ECAPABILITY") && refused.stdout.contains("set `manager` to `cargo`"),
        "{refused:?}"
    );
    let deny =
        "  - {id: no-hosts, effect: deny, tools: [package_install], where: {host: '*'}, reason: none}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{deny}"));
    let refused = install(&project, &json!({ "packages": [WANTED] }), &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("no-hosts"), "{refused:?}");
    assert!(!project.file("Cargo.lock").exists() && registry(&project, "cache").is_empty());
}
