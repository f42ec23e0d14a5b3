//! The servers of the tests, databases above all: taken from the environment, or started here and stopped at the end.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::git_servers::{self, HTTPS_FOLDER_VARIABLE, HTTPS_VARIABLE, SSH_FOLDER_VARIABLE, SSH_VARIABLE};
use crate::graph_server::{self, BOLT_VARIABLE};
use crate::setup::{is_root, postgres_programs, program_or};

pub(crate) const POSTGRES_VARIABLE: &str = "TGP_TEST_POSTGRES_URL";
pub(crate) const MYSQL_VARIABLE: &str = "TGP_TEST_MYSQL_URL";

/// Only for servers that listen on the loopback address and are gone after the tests.
pub(crate) const PASSWORD: &str = "tgp-test-password";

/// How long a server may take to make its data directory and to answer.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long a server may take to stop before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The servers that were started here; dropping them stops them and removes their data.
pub struct Databases {
    environment: Vec<(String, String)>,
    servers: Vec<Server>,
}

impl Databases {
    /// The variables with the addresses of the servers for the tests.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}

/// Starts what the environment does not name. A server that cannot be had is one line, and its tests skip themselves.
pub fn start(target: &Path) -> Databases {
    let mut databases = Databases { environment: Vec::new(), servers: Vec::new() };
    let kinds: [(&str, Option<&str>, &str, Start); 5] = [
        (POSTGRES_VARIABLE, None, "PostgreSQL", |_| postgres()),
        (MYSQL_VARIABLE, None, "MariaDB", |_| mariadb()),
        (BOLT_VARIABLE, None, "a graph server", graph_server::start),
        (HTTPS_VARIABLE, Some(HTTPS_FOLDER_VARIABLE), "git over https", |_| git_servers::https()),
        (SSH_VARIABLE, Some(SSH_FOLDER_VARIABLE), "git over ssh", |_| git_servers::ssh()),
    ];
    for (variable, folder_variable, name, start) in kinds {
        if std::env::var_os(variable).is_some() {
            continue;
        }
        match start(target) {
            Ok(server) => {
                databases.environment.push((variable.to_owned(), server.url.clone()));
                let folder = server.folder.display().to_string();
                databases.environment.extend(folder_variable.map(|variable| (variable.to_owned(), folder)));
                databases.servers.push(server);
            }
            Err(error) => println!("xtask: skipped: tests on {name} ({error:#})"),
        }
    }
    databases
}

type Start = fn(&Path) -> Result<Server>;

pub struct Server {
    process: Child,
    /// The signal that ends it at once and in order.
    stop: &'static str,
    folder: PathBuf,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(&self.process, self.stop);
        let until = Instant::now() + STOP_LIMIT;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.process.kill();
                let _ = self.process.wait();
                break;
            }
            std::thread::sleep(PAUSE);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn signal(process: &Child, name: &str) {
    let _ = Command::new("kill").args(["-s", name, &process.id().to_string()]).stderr(Stdio::null()).status();
}

fn postgres() -> Result<Server> {
    let programs = postgres_programs().context("postgresql is not installed; run `cargo xtask setup`")?;
    let owner = owner(&["postgres", "nobody"])?;
    let folder = folder("postgres", owner.as_deref())?;
    let (data, port) = (folder.join("data"), free_port()?);
    let secret = folder.join("secret");
    fs::write(&secret, PASSWORD)?;
    let mut make = as_user(owner.as_deref(), "KILL", &programs.join("initdb"));
    make.arg("--pgdata").arg(&data).arg("--pwfile").arg(&secret).args([
        "--username=tgp",
        "--auth-host=scram-sha-256",
        "--auth-local=trust",
        "--locale=C",
        "--encoding=UTF8",
        "--no-sync",
    ]);
    run(&mut make, &folder)?;
    let mut server = as_user(owner.as_deref(), "QUIT", &programs.join("postgres"));
    server.arg("-D").arg(&data).args(["-p", &port.to_string()]).arg("-k").arg(&folder);
    for setting in
        ["listen_addresses=127.0.0.1", "fsync=off", "synchronous_commit=off", "shared_buffers=32MB"]
    {
        server.args(["-c", setting]);
    }
    let url = format!("postgres://tgp:{PASSWORD}@127.0.0.1:{port}/postgres");
    let server = launch(server, "INT", folder, url)?;
    let ready = programs.join("pg_isready");
    wait(server, || {
        Command::new(&ready)
            .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
            .status()
            .is_ok_and(|status| status.success())
    })
}

fn mariadb() -> Result<Server> {
    let program = program_or(&["mariadbd", "mysqld"])?;
    let make = program_or(&["mariadb-install-db", "mysql_install_db"])?;
    let owner = owner(&["mysql", "nobody"])?;
    let folder = folder("mariadb", owner.as_deref())?;
    let (data, port) = (folder.join("data"), free_port()?);
    let data_option = format!("--datadir={}", data.display());
    let mut make = as_user(owner.as_deref(), "KILL", &make);
    make.args(["--no-defaults", &data_option, "--auth-root-authentication-method=normal", "--skip-test-db"]);
    run(&mut make, &folder)?;
    let first = folder.join("first.sql");
    fs::write(
        &first,
        format!(
            "CREATE DATABASE tgp_test CHARACTER SET utf8mb4;\n\
             CREATE USER 'tgp'@'%' IDENTIFIED BY '{PASSWORD}';\n\
             GRANT ALL ON *.* TO 'tgp'@'%';\n"
        ),
    )?;
    let mut server = as_user(owner.as_deref(), "KILL", &program);
    server
        .args(["--no-defaults", &data_option, "--bind-address=127.0.0.1", "--skip-name-resolve"])
        .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-log-bin"])
        .args([format!("--port={port}"), format!("--init-file={}", first.display())])
        .args([format!("--socket={}", folder.join("mariadb.sock").display())])
        .args([format!("--pid-file={}", folder.join("mariadb.pid").display())]);
    let url = format!("mysql://tgp:{PASSWORD}@127.0.0.1:{port}/tgp_test");
    let server = launch(server, "TERM", folder, url)?;
    wait(server, || greets(port))
}

/// A MySQL server speaks first; before its first file has run it does not listen.
fn greets(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PAUSE) else { return false };
    let mut greeting = [0; 5];
    stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok() && stream.read_exact(&mut greeting).is_ok()
}

/// The user a server runs as: ourselves, but never root, which the servers refuse.
pub(crate) fn owner(names: &[&str]) -> Result<Option<String>> {
    if !is_root()? {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").context("the users cannot be read")?;
    let has = |name: &&&str| users.lines().any(|line| line.split(':').next() == Some(**name));
    let name = names.iter().find(has).context("there is no user to run the server as")?;
    Ok(Some((*name).to_owned()))
}

/// A new folder of the owner in the temporary directory, where every user may reach it.
pub(crate) fn folder(name: &str, owner: Option<&str>) -> Result<PathBuf> {
    let prefix = format!("tgp-test-{name}-");
    sweep(&prefix)?;
    let folder = std::env::temp_dir().join(format!("{prefix}{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if let Some(owner) = owner {
        run(Command::new("chown").arg(owner).arg(&folder), &folder)?;
    }
    Ok(folder)
}

/// Removes what a killed predecessor could not.
fn sweep(prefix: &str) -> Result<()> {
    for entry in fs::read_dir(std::env::temp_dir()).context("the temporary directory cannot be read")? {
        let entry = entry?;
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(prefix)).and_then(|id| id.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// `setpriv` changes the user, and has the kernel send `signal` to the program when this process dies before it.
pub(crate) fn as_user(owner: Option<&str>, signal: &str, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal]);
    if let Some(owner) = owner {
        command.args(["--reuid", owner, "--regid", owner, "--clear-groups"]);
    }
    command.arg(program);
    command
}

pub(crate) fn run(command: &mut Command, folder: &Path) -> Result<()> {
    let output =
        command.current_dir(folder).stdin(Stdio::null()).output().context("a program cannot be started")?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        let _ = fs::remove_dir_all(folder);
        bail!("{} failed: {errors}", command.get_program().display());
    }
    Ok(())
}

pub(crate) fn launch(
    mut command: Command,
    stop: &'static str,
    folder: PathBuf,
    url: String,
) -> Result<Server> {
    let log = fs::File::create(folder.join("output.txt")).context("the server's log cannot be written")?;
    let process = command
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("the server cannot be started")?;
    Ok(Server { process, stop, folder, url })
}

pub(crate) fn wait(mut server: Server, ready: impl Fn() -> bool) -> Result<Server> {
    let until = Instant::now() + START_LIMIT;
    while !ready() {
        if let Ok(Some(status)) = server.process.try_wait() {
            let log = fs::read_to_string(server.folder.join("output.txt")).unwrap_or_default();
            bail!("the server ended with {status}: {}", log.lines().last().unwrap_or_default());
        }
        if Instant::now() >= until {
            bail!("the server did not answer in {} s", START_LIMIT.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(server)
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
