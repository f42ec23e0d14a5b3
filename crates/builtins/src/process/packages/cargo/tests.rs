//! cargo: its arguments and errors, and what comes into the registry of a user.

use std::fs;

use tgp_contract::canonical;

use super::archive::tests::{checksum, packed};
use super::lock::{DEFAULT_INDEX, LockFile};
use super::registry::Step;
use super::*;
use crate::process::ProcessOptions;
use crate::process::packages::managers::Manager;
use crate::process::shell_exec::{CommandEnd, StreamBytes};

const INDEX: &str = "index.example-0123456789abcdef";

fn plan(packages: &[&str], features: &[&str]) -> Plan {
    Plan {
        manager: Manager::Cargo,
        directory: RelativePath::new("rust app").unwrap(),
        packages: packages.iter().map(|name| (*name).to_owned()).collect(),
        features: features.iter().map(|name| (*name).to_owned()).collect(),
        dev: false,
    }
}

#[test]
fn only_packages_and_features_of_an_index_are_arguments() {
    for good in ["serde", "serde@1", "serde@1.0.219", "serde@=1.0.1-rc.1", "serde_json@>=1, <2", "a-b@*"] {
        Cargo.check(&plan(&[good], &[])).unwrap_or_else(|error| panic!("{good}: {}", error.message));
    }
    for bad in [
        "",
        "-p",
        "--path=x",
        "./x",
        "../x",
        "x/y",
        "serde@",
        "serde@1'; id #",
        "serde@$(id)",
        "serde@1\n",
        "https://example.org/x",
        "git+https://example.org/x",
        "serde@@1",
        "séerde",
        &"a".repeat(200),
    ] {
        assert_eq!(Cargo.check(&plan(&[bad], &[])).unwrap_err().code, Code::Validation, "{bad:?}");
    }
    Cargo.check(&plan(&["serde"], &["derive", "serde/rc", "dep_x"])).unwrap();
    Cargo.check(&plan(&["serde", "toml"], &["serde/derive"])).unwrap();
    for (packages, feature) in [
        (&["serde"][..], "a,b"),
        (&["serde"], "a b"),
        (&["serde"], "--x"),
        (&["serde"], "a/b/c"),
        (&["serde"], ""),
        (&["serde", "toml"], "derive"),
        (&[], "derive"),
    ] {
        assert_eq!(
            Cargo.check(&plan(packages, &[feature])).unwrap_err().code,
            Code::Validation,
            "{feature:?}"
        );
    }
}

#[test]
fn the_command_line_says_what_is_run() {
    assert_eq!(Cargo.command(&plan(&[], &[])), "cargo fetch --manifest-path 'rust app/Cargo.toml'");
    let mut wanted = plan(&["serde@>=1, <2"], &["derive", "rc"]);
    wanted.dev = true;
    wanted.directory = RelativePath::root();
    assert_eq!(
        Cargo.command(&wanted),
        "cargo add --manifest-path Cargo.toml --dev --features 'derive,rc' -- 'serde@>=1, <2' && cargo fetch --manifest-path Cargo.toml"
    );
    assert_eq!(quoted("it's"), r"'it'\''s'");
    assert_eq!(shell_path(Path::new("/a b/$x")), "'/a b/$x'");
}

#[test]
fn what_cargo_refused_is_named() {
    let failed = |stderr: &str| {
        let none = StreamBytes { total: 0, omitted: 0 };
        failure(&CommandOutput {
            exit_code: Some(101),
            ended: CommandEnd::Exit,
            stdout: String::new(),
            stderr: stderr.to_owned(),
            stdout_bytes: none,
            stderr_bytes: none,
            duration_ms: 1,
            help: None,
        })
    };
    let git = failed(
        "    Updating git repository `https://example.org/x`\nfatal: transport 'https' not allowed\nerror: failed to get `foo` as a dependency of package `g v0.1.0 (/g)`\n\nCaused by:\n  failed to load source for dependency `foo`\n",
    );
    assert_eq!((git.code, git.message.as_str()), (Code::Security, "`foo` comes from a repository of git"));
    let other = failed(
        "error: failed to parse manifest at `/g/Cargo.toml`\n\nCaused by:\n  registry index was not found in any configuration: `mine`\n",
    );
    assert!(other.code == Code::Security && other.message.contains("`mine`"), "{}", other.message);
    let missing =
        failed("    Updating index\nerror: the crate `no-such` could not be found in registry index.\n");
    assert!(missing.message.contains("`no-such` could not be found"), "{}", missing.message);
    assert!(failed("").message.contains("exit code 101"));
}

/// A user's home of cargo, a home in the jail with one package, and a lock file that names it.
struct Fixture {
    root: tempfile::TempDir,
    lock: LockFile,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let archive = packed(&[
            ("a-1.0.0/Cargo.toml", tar::EntryType::Regular, b"[package]\nname = \"a\"\n"),
            ("a-1.0.0/src/lib.rs", tar::EntryType::Regular, b"pub fn a() {}\n"),
        ]);
        let sum = checksum(&archive);
        for folder in ["user", "project", "workshop"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let jail = root.path().join("jail/registry");
        let put = |path: String, content: &[u8]| {
            fs::create_dir_all(jail.join(&path).parent().unwrap()).unwrap();
            fs::write(jail.join(&path), content).unwrap();
        };
        put(format!("cache/{INDEX}/a-1.0.0.crate"), &archive);
        // What a process of the jail has unpacked is not what is put into the registry.
        put(format!("src/{INDEX}/a-1.0.0/src/lib.rs"), b"pub fn forged() {}\n");
        put(format!("src/{INDEX}/a-1.0.0/.cargo-ok"), b"{\"v\":1}");
        let line = format!("x\0{}\0{{\"name\":\"a\",\"vers\":\"1.0.0\",\"cksum\":\"{sum}\"}}\0", "1.0.0");
        put(format!("index/{INDEX}/.cache/1/a"), line.as_bytes());
        put(format!("index/{INDEX}/config.json"), b"{\"dl\": \"https://example.org/dl\"}");
        let lock = format!(
            "version = 4\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"{DEFAULT_INDEX}\"\nchecksum = \"{sum}\"\n"
        );
        Self { root, lock: LockFile::parse(lock.as_bytes()).unwrap() }
    }

    fn options(&self, home: &str) -> ProcessOptions {
        let path = |name: &str| self.root.path().join(name);
        crate::process::test_options(&path("project"), &path(home), vec![path("user/registry")])
    }

    fn registry(&self) -> Registry {
        Registry::of(&self.options("user")).unwrap()
    }

    fn jail(&self) -> Directory {
        Directory::open(&self.root.path().join("jail")).unwrap()
    }

    fn prepare(&self) -> Result<RegistryUpdate, ToolError> {
        let workshop = self.root.path().join("workshop");
        fs::remove_dir_all(&workshop).unwrap();
        fs::create_dir(&workshop).unwrap();
        self.registry().prepare(&self.jail(), INDEX, &self.lock, &workshop)
    }

    fn user(&self, path: &str) -> PathBuf {
        self.root.path().join("user/registry").join(path.replace("INDEX", INDEX))
    }

    /// Whether cargo finds the package, and everything that it would not look at again is whole.
    fn is_sound(&self) -> bool {
        let archive = self.user("cache/INDEX/a-1.0.0.crate");
        let has_archive = archive.exists();
        let is_whole = !has_archive
            || canonical::sha256_hex(&fs::read(&archive).unwrap())
                == self.lock.published().next().unwrap().checksum;
        let complete = self.user("src/INDEX/a-1.0.0/.cargo-ok").exists();
        let sources = fs::read(self.user("src/INDEX/a-1.0.0/src/lib.rs"));
        is_whole
            && (!complete || sources.is_ok_and(|text| text == b"pub fn a() {}\n"))
            && (!has_archive || complete)
    }
}

#[test]
fn a_package_is_put_into_the_registry_from_its_checked_archive() {
    let fixture = Fixture::new();
    let update = fixture.prepare().unwrap();
    assert!(!update.is_empty() && update.bytes() > 0);
    assert!(!fixture.user("cache").exists(), "nothing is there before it was agreed to");
    update.put().unwrap();
    assert!(fixture.is_sound() && fixture.user("cache/INDEX/a-1.0.0.crate").is_file());
    assert!(
        fixture.user("index/INDEX/.cache/1/a").is_file() && fixture.user("index/INDEX/config.json").is_file()
    );
    assert!(fixture.prepare().unwrap().is_empty(), "everything is there");
}

#[test]
fn bug_an_installation_that_was_killed_left_a_package_without_its_sources() {
    let fixture = Fixture::new();
    let count = fixture.prepare().unwrap().steps().len();
    assert_eq!(count, 4);
    for done in 0..=count {
        let _ = fs::remove_dir_all(fixture.user(""));
        let update = fixture.prepare().unwrap();
        for part in ["cache/INDEX", "src/INDEX", "index/INDEX"] {
            fs::create_dir_all(fixture.user(part)).unwrap();
        }
        // As after kill -9 between two steps, or in the middle of one.
        update.steps().into_iter().take(done).for_each(|step| update.take(step).unwrap());
        fs::create_dir_all(fixture.user("src/INDEX/.tgp-sources/src")).unwrap();
        fs::write(fixture.user("cache/INDEX/.tgp-file"), "half").unwrap();
        assert!(fixture.is_sound(), "after {done} steps");
        fixture.prepare().unwrap().put().unwrap();
        assert!(fixture.is_sound() && fixture.prepare().unwrap().is_empty(), "after {done} steps");
        assert!(
            !fixture.user("src/INDEX/.tgp-sources").exists()
                && !fixture.user("cache/INDEX/.tgp-file").exists()
        );
    }
}

#[test]
fn sources_that_are_missing_though_the_archive_is_there_are_put() {
    let fixture = Fixture::new();
    fixture.prepare().unwrap().put().unwrap();
    // Unpacked by half, and by somebody else.
    fs::remove_file(fixture.user("src/INDEX/a-1.0.0/.cargo-ok")).unwrap();
    fs::remove_file(fixture.user("src/INDEX/a-1.0.0/Cargo.toml")).unwrap();
    let update = fixture.prepare().unwrap();
    assert!(matches!(update.steps().as_slice(), [Step::Sources("a-1.0.0", _)]), "{:?}", update.steps());
    update.put().unwrap();
    assert!(fixture.is_sound() && fixture.user("src/INDEX/a-1.0.0/Cargo.toml").is_file());
}

#[test]
fn bug_what_the_jail_had_written_came_into_the_registry() {
    for (path, content) in [
        (format!("cache/{INDEX}/a-1.0.0.crate"), "forged"),
        (
            format!("index/{INDEX}/.cache/1/a"),
            "x\x001.0.0\0{\"name\":\"a\",\"vers\":\"1.0.0\",\"cksum\":\"00\"}\0",
        ),
    ] {
        let fixture = Fixture::new();
        fs::write(fixture.root.path().join("jail/registry").join(path), content).unwrap();
        assert_eq!(fixture.prepare().unwrap_err().code, Code::Security);
    }
    // Links lead out of the directory that the jail could write.
    let fixture = Fixture::new();
    let cache = fixture.root.path().join("jail/registry/cache");
    fs::rename(&cache, fixture.root.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(fixture.root.path().join("elsewhere"), &cache).unwrap();
    assert!(fixture.prepare().unwrap().stems().is_empty(), "an archive behind a link is not there");
}

#[test]
fn a_registry_that_no_command_sees_or_that_is_in_the_project_is_not_filled() {
    let fixture = Fixture::new();
    for (home, code) in
        [("user", None), ("other", Some(Code::Capability)), ("project/.cargo", Some(Code::Capability))]
    {
        let found = Registry::of(&fixture.options(home)).map(drop).map_err(|error| error.code);
        assert_eq!(found.err(), code, "{home}");
    }
    let unknown = ProcessOptions { cargo_home: None, ..fixture.options("user") };
    assert_eq!(Registry::of(&unknown).unwrap_err().code, Code::Capability);
}

#[test]
fn the_jail_gets_links_to_what_the_user_has() {
    let fixture = Fixture::new();
    fixture.prepare().unwrap().put().unwrap();
    fs::create_dir_all(fixture.user("src/INDEX/.tgp-left")).unwrap();
    let home = fixture.root.path().join("shared");
    fs::create_dir(&home).unwrap();
    fixture.registry().share(&home).unwrap();
    let archive = home.join(format!("registry/cache/{INDEX}/a-1.0.0.crate"));
    assert!(archive.is_symlink() && fs::read(&archive).is_ok());
    assert!(home.join(format!("registry/src/{INDEX}/a-1.0.0")).is_symlink());
    assert!(!home.join(format!("registry/src/{INDEX}/.tgp-left")).exists());
    let index = home.join(format!("registry/index/{INDEX}/.cache/1/a"));
    assert!(
        index.is_file() && !index.is_symlink(),
        "cargo writes the index again, and a link would lead to the user's"
    );
}
