//! The git servers of the tests: Apache with `git http-backend` behind TLS and a token, and sshd with a key. Each
//! serves the bare repositories that the tests make in its folder.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::databases::{PASSWORD, PAUSE, Server, as_user, folder, free_port, launch, owner, run, wait};
use crate::setup::{is_root, program_or};

pub(crate) const HTTPS_VARIABLE: &str = "TGP_TEST_GIT_HTTPS_URL";
pub(crate) const SSH_VARIABLE: &str = "TGP_TEST_GIT_SSH_URL";

/// The folder beside the URL: `repositories`, `certificate.pem`, `token` and `access.txt` of the one server,
/// `repositories`, `client_key` and `host_key.pub` of the other.
pub(crate) const HTTPS_FOLDER_VARIABLE: &str = "TGP_TEST_GIT_HTTPS_FOLDER";
pub(crate) const SSH_FOLDER_VARIABLE: &str = "TGP_TEST_GIT_SSH_FOLDER";

/// Where Debian has the modules of Apache.
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";
const APACHE_MODULE_NAMES: [&str; 10] = [
    "mpm_prefork",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_user",
    "auth_basic",
    "alias",
    "cgi",
    "env",
    "ssl",
];

/// sshd gives up its rights in here, and Debian's service makes it at the start of the machine.
const SSHD_FOLDER: &str = "/run/sshd";

/// Who may come with the token.
const HTTPS_USERS: [&str; 2] = ["git", "name"];

pub(crate) fn https() -> Result<Server> {
    let apache = program_or(&["apache2"])?;
    let openssl = program_or(&["openssl"])?;
    let backend = backend()?;
    let owner = owner(&["www-data"])?;
    let folder = folder("git-https", None)?;
    let made = https_in(&folder, owner.as_deref(), &openssl, &backend);
    let (port, configuration) = made.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
    let mut server = as_user(None, "TERM", &apache);
    // Its own process group: when Apache stops, it sends the signal to every process in its group.
    server.args(["-D", "FOREGROUND", "-f"]).arg(configuration).process_group(0);
    let url = format!("https://127.0.0.1:{port}/git");
    let server = launch(server, "TERM", folder, url)?;
    wait(server, || TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PAUSE).is_ok())
}

fn https_in(folder: &Path, owner: Option<&str>, openssl: &Path, backend: &Path) -> Result<(u16, PathBuf)> {
    fs::create_dir(folder.join("repositories"))?;
    fs::write(folder.join("token"), PASSWORD)?;
    let mut certificate = Command::new(openssl);
    certificate
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]);
    run(&mut certificate, folder)?;
    let hashed = Command::new(openssl).args(["passwd", "-apr1", PASSWORD]).output()?;
    let hashed = String::from_utf8_lossy(&hashed.stdout).trim().to_owned();
    if hashed.is_empty() {
        bail!("openssl could not hash the token");
    }
    let users: String = HTTPS_USERS.iter().map(|user| format!("{user}:{hashed}\n")).collect();
    fs::write(folder.join("users"), users)?;
    let port = free_port()?;
    let at = folder.display();
    let modules: String = APACHE_MODULE_NAMES
        .iter()
        .map(|name| format!("LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n"))
        .collect();
    // Only root's server changes its user, and it has to.
    let user = owner.map(|owner| format!("User {owner}\nGroup {owner}\n")).unwrap_or_default();
    let configuration = format!(
        "ServerRoot {at}\nServerName 127.0.0.1\nListen 127.0.0.1:{port}\n{modules}{user}\
         PidFile {at}/apache.pid\nDefaultRuntimeDir {at}\nMutex file:{at}\nErrorLog {at}/errors.txt\n\
         StartServers 2\nMinSpareServers 1\nMaxSpareServers 4\n\
         LogFormat \"%u %m %U%q %>s\" access\nCustomLog {at}/access.txt access\n\
         SSLEngine on\nSSLSessionCache none\n\
         SSLCertificateFile {at}/certificate.pem\nSSLCertificateKeyFile {at}/key.pem\n\
         SetEnv GIT_PROJECT_ROOT {at}/repositories\nSetEnv GIT_HTTP_EXPORT_ALL 1\n\
         SetEnv GIT_CONFIG_COUNT 2\n\
         SetEnv GIT_CONFIG_KEY_0 safe.directory\nSetEnv GIT_CONFIG_VALUE_0 *\n\
         SetEnv GIT_CONFIG_KEY_1 http.receivepack\nSetEnv GIT_CONFIG_VALUE_1 true\n\
         ScriptAlias /git/ {}/\n\
         <Location /git/>\nAuthType Basic\nAuthName git\nAuthUserFile {at}/users\nRequire valid-user\n</Location>\n",
        backend.display()
    );
    let file = folder.join("apache.conf");
    fs::write(&file, configuration)?;
    Ok((port, file))
}

/// The program by which git serves a repository over http.
fn backend() -> Result<PathBuf> {
    let programs = Command::new("git").arg("--exec-path").output().context("git is not installed")?;
    let backend = Path::new(String::from_utf8_lossy(&programs.stdout).trim()).join("git-http-backend");
    if backend.is_file() { Ok(backend) } else { bail!("git has no http-backend") }
}

pub(crate) fn ssh() -> Result<Server> {
    let sshd = program_or(&["sshd"])?;
    let folder = folder("git-ssh", None)?;
    let made = ssh_in(&folder, &sshd);
    let (port, user, configuration) = made.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
    let mut server = as_user(None, "TERM", &sshd);
    server.args(["-D", "-e", "-f"]).arg(configuration);
    let url = format!("ssh://{user}@127.0.0.1:{port}{}/repositories", folder.display());
    let client = folder.join("client_key");
    let server = wait(launch(server, "TERM", folder, url)?, || greets(port))?;
    // An account may be locked, whatever its key is.
    let lets_in = Command::new("ssh")
        .args(["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"])
        .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=15"])
        .args(["-p", &port.to_string(), "-i"])
        .arg(client)
        .args([&format!("{user}@127.0.0.1"), "git", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if lets_in { Ok(server) } else { bail!("sshd does not let {user} in with a key") }
}

fn ssh_in(folder: &Path, sshd: &Path) -> Result<(u16, String, PathBuf)> {
    fs::create_dir(folder.join("repositories"))?;
    for name in ["host_key", "client_key"] {
        run(
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name]),
            folder,
        )?;
    }
    fs::copy(folder.join("client_key.pub"), folder.join("authorized_keys"))?;
    if is_root()? {
        fs::create_dir_all(SSHD_FOLDER).with_context(|| format!("cannot make {SSHD_FOLDER}"))?;
    }
    let user = Command::new("id").arg("-un").output().context("the user has no name")?;
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    let (port, at) = (free_port()?, folder.display());
    let configuration = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host_key\nPidFile {at}/sshd.pid\n\
         AuthorizedKeysFile {at}/authorized_keys\nAllowUsers {user}\nPermitRootLogin prohibit-password\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n\
         PrintMotd no\nPrintLastLog no\nMaxStartups 100\n"
    );
    let file = folder.join("sshd_config");
    // Newer servers shut out an address from which refused keys came, and the tests bring some.
    fs::write(&file, format!("{configuration}PerSourcePenalties no\n"))?;
    let is_known = Command::new(sshd)
        .args(["-t", "-f"])
        .arg(&file)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_known {
        fs::write(&file, configuration)?;
    }
    Ok((port, user, file))
}

/// An ssh server speaks first.
fn greets(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PAUSE) else { return false };
    let mut greeting = [0; 4];
    stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
        && stream.read_exact(&mut greeting).is_ok()
        && greeting == *b"SSH-"
}
