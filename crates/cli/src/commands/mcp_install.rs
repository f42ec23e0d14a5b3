//! `tgp mcp install` and `uninstall`: the entry of the server in the configuration files of hosts.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tgp::audit::Decision;
use tgp::contract::{Code, ToolError, canonical};
use tgp::files::{open_plain, real_place, unified_diff, user_name};
use tgp_mcp::install::{
    EditError, ForeignServer, Host, Scope, ServerEntry, servers, with_server, without_server,
};

use super::done;
use crate::approval;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

/// What the copy of a file before the first change is called.
const BACKUP: &str = "tgp-backup";
/// What is said of a host that has the server now.
const INSTALLED: &str = "installed";
/// A configuration that is larger is not one.
const MAX_BYTES: u64 = 16 << 20;
/// Others may read a new configuration as little as the hosts let them.
const NEW_FILE_MODE: u32 = 0o600;

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Only this host; default: all that are found.
    #[arg(long, value_enum, value_name = "NAME")]
    host: Vec<HostArg>,
    /// Change the project's files instead of the user's own.
    #[arg(long)]
    project: bool,
    /// The name of the server in the host.
    #[arg(long, value_name = "NAME", default_value = "tgp", value_parser = server_name)]
    name: String,
    /// Let forms of the host answer what is asked by default.
    #[arg(long)]
    forms: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
    /// Options of `tgp mcp`, after `--`.
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

impl InstallArgs {
    /// What the server is started with besides the project.
    pub fn server_words(&self) -> Vec<String> {
        self.forms.then(|| "--forms".to_owned()).into_iter().chain(self.options.iter().cloned()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HostArg {
    Claude,
    Codex,
    Cursor,
    Vscode,
    Zed,
    Gemini,
}

impl From<HostArg> for Host {
    fn from(host: HostArg) -> Self {
        match host {
            HostArg::Claude => Self::ClaudeCode,
            HostArg::Codex => Self::Codex,
            HostArg::Cursor => Self::Cursor,
            HostArg::Vscode => Self::VsCode,
            HostArg::Zed => Self::Zed,
            HostArg::Gemini => Self::Gemini,
        }
    }
}

fn server_name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    match !text.is_empty() && text.len() <= 40 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 40 letters, digits, `-` and `_`".to_owned()),
    }
}

/// The change of one file.
struct PlannedChange {
    host: Host,
    file: PathBuf,
    /// `None` where the file does not exist.
    before: Option<String>,
    /// `None` where it is removed again.
    after: Option<String>,
    backup: Backup,
}

/// What happens to the copy of a file from before the installation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backup {
    Write,
    Keep,
    /// The file is as it was then.
    Remove,
}

impl PlannedChange {
    fn is_needed(&self) -> bool {
        self.before != self.after
    }

    fn diff(&self) -> String {
        let file = self.file.display().to_string();
        unified_diff(file.trim_start_matches('/'), self.before.as_deref(), self.after.as_deref()).0
    }
}

pub async fn install(arguments: &InstallArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let project = absolute(&session::directory(global)?)?;
    let scope = if arguments.project { Scope::Project } else { Scope::User };
    let entry = entry(arguments, scope, &project)?;
    let mut changes = Vec::new();
    for (host, file) in hosts(arguments, scope, &project)? {
        let before = read(&file)?;
        let after = with_server(host, before.as_deref().unwrap_or_default(), &entry)
            .map_err(|error| unusable(&file, &error))?;
        // The copy shows the file without the server, so a later installation leaves it alone.
        let known = before.as_deref().and_then(|text| without_server(host, text, &entry.name).ok()?);
        let backup = if known.is_some() { Backup::Keep } else { Backup::Write };
        changes.push(PlannedChange { host, file, before, after: Some(after), backup });
    }
    for change in changes.iter().filter(|change| change.backup == Backup::Keep && change.is_needed()) {
        let (name, file) = (&arguments.name, change.file.display());
        printer.note(&format!("replaces the server `{name}` in {file}; `--name NAME` keeps both"));
    }
    apply(arguments, &changes, INSTALLED, global, printer).await
}

pub async fn uninstall(arguments: &InstallArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let project = absolute(&session::directory(global)?)?;
    let scope = if arguments.project { Scope::Project } else { Scope::User };
    let mut changes = Vec::new();
    for (host, file) in hosts(arguments, scope, &project)? {
        let Some(before) = read(&file)? else { continue };
        let name = &arguments.name;
        let Some(edited) = without_server(host, &before, name).map_err(|error| unusable(&file, &error))?
        else {
            continue;
        };
        let (after, backup) = match original(host, &file, name, &edited)? {
            Some(original) => (original, Backup::Remove),
            None => (Some(edited), Backup::Keep),
        };
        changes.push(PlannedChange { host, file, before: Some(before), after, backup });
    }
    apply(arguments, &changes, "uninstalled", global, printer).await
}

/// The servers that the configurations of hosts name, of the project and of the user.
pub(super) fn foreign_servers(
    named: &[Host],
    global: &Global,
) -> Result<Vec<(Host, Scope, PathBuf, ForeignServer)>, Failure> {
    let (home, project) = (home()?, absolute(&session::directory(global)?)?);
    let mut found = Vec::new();
    // Of two servers with one name, the user's own counts, whichever host it is of.
    for scope in [Scope::User, Scope::Project] {
        for host in Host::ALL.into_iter().filter(|host| named.is_empty() || named.contains(host)) {
            let file = host.file(scope, &home, &project);
            let Some(text) = read(&file)? else { continue };
            let servers = servers(host, &text).map_err(|error| unusable(&file, &error))?;
            found.extend(servers.into_iter().map(|server| (host, scope, file.clone(), server)));
        }
    }
    Ok(found)
}

/// Replaces servers of a host's file by tgp. Any change is shown, and the file from before is kept beside it.
pub(super) async fn put_in_place(
    host: Host,
    file: &Path,
    names: &[&str],
    global: &Global,
    yes: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let project = absolute(&session::directory(global)?)?;
    let scope = if file.starts_with(&project) { Scope::Project } else { Scope::User };
    let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if scope == Scope::Project && !place.starts_with(&project) {
        let message = format!("`{}` leads to `{}`, outside the project", file.display(), place.display());
        return Err(ToolError::new(Code::Security, message).help("change that file by hand").into());
    }
    let arguments = InstallArgs {
        host: Vec::new(),
        project: scope == Scope::Project,
        name: "tgp".to_owned(),
        forms: false,
        yes,
        options: Vec::new(),
    };
    let before = read(file)?.unwrap_or_default();
    let changed = |error: EditError| unusable(file, &error);
    let mut after = with_server(host, &before, &entry(&arguments, scope, &project)?).map_err(changed)?;
    for name in names {
        after = without_server(host, &after, name).map_err(changed)?.unwrap_or(after);
    }
    // The first copy is the one to go back to.
    let kept = backup_of(file);
    let backup = if kept.exists() { Backup::Keep } else { Backup::Write };
    let change =
        PlannedChange { host, file: file.to_owned(), before: Some(before), after: Some(after), backup };
    apply(&arguments, &[change], INSTALLED, global, printer).await?;
    printer.note(&format!("the file from before is {}; move it back to undo this", kept.display()));
    Ok(())
}

/// The file as it was before the installation, where nothing else was changed since: `Some(None)` when it did not exist.
fn original(host: Host, file: &Path, name: &str, edited: &str) -> Result<Option<Option<String>>, Failure> {
    let Some(backup) = read(&backup_of(file))? else { return Ok(None) };
    if backup.is_empty() {
        let bare = without_server(host, &with_nothing(host, name), name).ok().flatten();
        return Ok((bare.as_deref() == Some(edited)).then_some(None));
    }
    // The backup with the entry put in and taken out again is what a file looks like that only the installation changed.
    let entry = ServerEntry { name: name.to_owned(), command: String::new(), arguments: Vec::new() };
    let same = with_server(host, &backup, &entry)
        .and_then(|with| without_server(host, &with, name))
        .is_ok_and(|without| without.as_deref() == Some(edited));
    Ok(same.then_some(Some(backup)))
}

/// A configuration with nothing but the server.
fn with_nothing(host: Host, name: &str) -> String {
    let entry = ServerEntry { name: name.to_owned(), command: String::new(), arguments: Vec::new() };
    with_server(host, "", &entry).unwrap_or_default()
}

/// Returns the path of this program as it was typed, or as PATH found it. A link stays one: it leads to the next version after an
/// upgrade. What leads to another program is not used.
fn typed_program() -> Result<PathBuf, Failure> {
    let unknown = |error: io::Error| {
        Failure::from(
            ToolError::new(Code::Internal, format!("the path of tgp itself is not known: {error}"))
                .help("start tgp by its full path"),
        )
    };
    let running = std::env::current_exe().map_err(unknown)?;
    let is_it = |path: &PathBuf| match (fs::canonicalize(path), fs::canonicalize(&running)) {
        (Ok(path), Ok(running)) => path == running,
        _ => false,
    };
    let Some(typed) = std::env::args_os().next().map(PathBuf::from) else { return Ok(running) };
    if typed.components().count() > 1 {
        let whole = std::path::absolute(&typed).map_err(unknown)?;
        return Ok(Some(whole).filter(is_it).unwrap_or(running));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = places.map(|folder| folder.join(&typed)).find(|path| path.is_file());
    Ok(found.filter(is_it).unwrap_or(running))
}

/// The server as the host starts it.
fn entry(arguments: &InstallArgs, scope: Scope, project: &Path) -> Result<ServerEntry, Failure> {
    let program = typed_program()?;
    // What a project shares names neither this machine's folders nor its programs: hosts start it in the project.
    let (command, mut words) = match scope {
        Scope::User => (
            program.display().to_string(),
            vec!["-C".to_owned(), project.display().to_string(), "mcp".to_owned()],
        ),
        Scope::Project => ("tgp".to_owned(), vec!["mcp".to_owned()]),
    };
    words.extend(arguments.server_words());
    Ok(ServerEntry { name: arguments.name.clone(), command, arguments: words })
}

/// The hosts that are meant, with their files.
fn hosts(arguments: &InstallArgs, scope: Scope, project: &Path) -> Result<Vec<(Host, PathBuf)>, Failure> {
    let home = home()?;
    let named: Vec<Host> = arguments.host.iter().map(|host| Host::from(*host)).collect();
    let is_here = |host: &Host| {
        host.traces().iter().any(|trace| home.join(trace).exists())
            || host.file(scope, &home, project).exists()
    };
    let chosen: Vec<Host> = match named.is_empty() {
        true => Host::ALL.into_iter().filter(is_here).collect(),
        false => named,
    };
    if chosen.is_empty() {
        let names: Vec<&str> = Host::ALL.iter().map(|host| host.id()).collect();
        return Err(ToolError::new(Code::NotFound, "no host was found by its configuration")
            .help(format!("name one with --host: {}", names.join(", ")))
            .into());
    }
    Ok(chosen.into_iter().map(|host| (host, host.file(scope, &home, project))).collect())
}

fn home() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let unknown = || ToolError::new(Code::Config, "the home directory is not known").help("set HOME");
    home.ok_or_else(|| unknown().into())
}

/// Refuses a file in a place of another user, and one of the project that a link leads out of it.
fn check_place(file: &Path, is_of_project: bool, global: &Global) -> Result<(), Failure> {
    let place = real_place(file);
    let project = absolute(&session::directory(global)?)?;
    if is_of_project && !place.starts_with(real_place(&project)) {
        let (file, place) = (file.display(), place.display());
        let message = format!("a link leads `{file}` to `{place}`, which is outside of the project");
        return Err(ToolError::new(Code::Security, message)
            .help("remove the link, or enter the server for yourself, without `--project`")
            .into());
    }
    let own = nix::unistd::geteuid().as_raw();
    let nearest = place.ancestors().find_map(|place| Some((place, place.symlink_metadata().ok()?.uid())));
    match nearest {
        Some((place, owner)) if owner != own => {
            let (place, owner, own) = (place.display(), user_name(owner), user_name(own));
            let message = format!("`{place}` belongs to {owner}, and this command runs as {own}");
            Err(ToolError::new(Code::Config, message)
                .help(format!("run `sudo -u {owner} tgp mcp install …`"))
                .into())
        }
        _ => Ok(()),
    }
}

async fn apply(
    arguments: &InstallArgs,
    changes: &[PlannedChange],
    done_word: &str,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let needed: Vec<&PlannedChange> = changes.iter().filter(|change| change.is_needed()).collect();
    for change in &needed {
        check_place(&change.file, arguments.project, global)?;
    }
    if !printer.json() {
        needed.iter().for_each(|change| printer.lines(&change.diff()));
    }
    if !needed.is_empty() && !arguments.yes {
        let files: Vec<String> = needed.iter().map(|change| change.file.display().to_string()).collect();
        let text = format!("{} would be changed.\n", visible(&files.join(", ")));
        if printer.json() || !approval::confirm(&text, "Write it?").await {
            return Err(ToolError::new(
                Code::Approval,
                "the configuration was not changed: it was not confirmed",
            )
            .help("confirm at a terminal, or pass --yes")
            .into());
        }
    }
    let mut decisions = Vec::new();
    if done_word == INSTALLED {
        for change in &needed {
            decisions
                .push(session::record_decision(global, decision("mcp_install", arguments, change)).await?);
        }
    }
    let mut decisions = decisions.into_iter();
    let mut report: Vec<Value> = Vec::new();
    for change in changes {
        if change.is_needed() {
            if let Some(decision) = decisions.next() {
                decision.take_effect();
            }
            write(change).map_err(|error| {
                let file = change.file.display();
                ToolError::new(Code::Config, format!("`{file}` cannot be written: {error}"))
                    .help("check its permissions; nothing was changed in it")
            })?;
        }
        if change.is_needed() && done_word != INSTALLED {
            session::record_tightening(global, decision("mcp_uninstall", arguments, change), printer).await?;
        }
        let word = if change.is_needed() { done_word } else { "unchanged" };
        report.push(
            json!({ "host": change.host.id(), "file": change.file, "state": word, "diff": change.diff() }),
        );
        if !printer.json() {
            printer.line(&format!("{}: {word} in {}", change.host.title(), change.file.display()));
        }
    }
    if printer.json() {
        printer.document(&done(json!({ "hosts": report })));
    } else if changes.is_empty() {
        printer.note("the server is in none of the configurations");
    } else if done_word == INSTALLED && !needed.is_empty() {
        printer.note(
            "restart the host; a call that changes something waits until you answer it with `tgp approve`",
        );
    }
    Ok(())
}

/// Returns the decision to change a host's file: the options of its server, and the hashes of the file. Its other texts may hold
/// keys.
fn decision(name: &'static str, arguments: &InstallArgs, change: &PlannedChange) -> Decision {
    let hash = |text: Option<&str>| text.map(|text| canonical::sha256_hex(text.as_bytes()));
    let content = json!({
        "host": change.host.id(),
        "file": change.file,
        "name": arguments.name,
        "options": arguments.server_words(),
        "before": hash(change.before.as_deref()),
        "after": hash(change.after.as_deref()),
    });
    Decision::new(name, content)
}

/// Replaces a file in one step, after a copy of what was there. A link stays a link.
fn write(change: &PlannedChange) -> io::Result<()> {
    let file = fs::canonicalize(&change.file).unwrap_or_else(|_| change.file.clone());
    let backup = backup_of(&change.file);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mode = fs::metadata(&file).map_or(NEW_FILE_MODE, |metadata| metadata.mode() & 0o777);
    if change.backup == Backup::Write {
        replace(&backup, change.before.as_deref().unwrap_or_default(), mode)?;
    }
    match &change.after {
        Some(after) => replace(&file, after, mode)?,
        None => fs::remove_file(&file)?,
    }
    if change.backup == Backup::Remove {
        let _ = fs::remove_file(&backup);
    }
    Ok(())
}

fn replace(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let beside = file.with_file_name(name);
    let _ = fs::remove_file(&beside);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&beside, file)
}

fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(BACKUP);
    file.with_file_name(name)
}

fn read(file: &Path) -> Result<Option<String>, Failure> {
    let wrong = |reason: String| {
        Failure::from(
            ToolError::new(Code::Config, format!("`{}` cannot be read: {reason}", file.display()))
                .help("check the file, or name the other hosts: --host NAME, more than once"),
        )
    };
    // People link their configurations; a pipe is not waited for.
    let opened = match fs::canonicalize(file).and_then(|place| open_plain(&place)) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mut text = String::new();
    let read = opened.take(MAX_BYTES + 1).read_to_string(&mut text);
    let read = read.map_err(|error| wrong(error.to_string()))?;
    if u64::try_from(read).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(wrong("it is too large".to_owned()));
    }
    Ok(Some(text))
}

fn unusable(file: &Path, error: &EditError) -> Failure {
    ToolError::new(Code::Config, format!("`{}` cannot be changed: {error}", file.display()))
        .help(
            "correct the file, or leave its host out with --host; docs/mcp.md shows the entry to add by hand",
        )
        .into()
}

fn absolute(directory: &Path) -> Result<PathBuf, Failure> {
    fs::canonicalize(directory).map_err(|error| {
        ToolError::new(Code::Config, format!("`{}` cannot be entered: {error}", directory.display()))
            .help("name another directory with -C")
            .into()
    })
}
