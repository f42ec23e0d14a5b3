//! The command line under test, as the process that a person starts.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::fault::{Expecting, Fault};
use crate::world::World;

/// Bytes of one output that are read.
const MAX_OUTPUT: u64 = 4 << 20;
/// How long one run of the program may take.
const PATIENCE: Duration = Duration::from_secs(45);

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Fails, with what was said on standard error, unless the exit code is 0.
    pub(crate) fn ended_well(&self, what: &str) -> Result<(), Fault> {
        if self.code == Some(0) {
            return Ok(());
        }
        let came = format!("{:?}: {}", self.code, self.stderr.trim());
        Err(Fault::new(format!("`tgp {what}` to end with exit code 0"), came))
    }

    /// The events of a run with `--json`.
    pub(crate) fn events(&self) -> Result<Vec<Value>, Fault> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line)
                    .map_err(|error| Fault::new("one JSON object a line", format!("{error} in `{line}`")))
            })
            .collect()
    }
}

/// A program in the project, with nothing of the machine's own environment.
fn command(world: &World, program: &str) -> Result<Command, Fault> {
    let mut command = Command::new(program);
    command.current_dir(world.workspace.project()).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    for (variable, folder) in [("HOME", "home"), ("TGP_CACHE_DIR", "cache"), ("TMPDIR", "tmp")] {
        let folder = world.workspace.beside(folder);
        std::fs::create_dir_all(&folder).expecting("a folder for the program")?;
        command.env(variable, folder);
    }
    command.env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Runs `tgp` to its end where no person can be asked.
pub(crate) async fn run(world: &World, arguments: &[&str]) -> Result<Ran, Fault> {
    let tgp = world.ground.tgp.display().to_string();
    let mut command = command(world, &tgp)?;
    command.args(arguments).stdin(Stdio::null());
    let mut child = command
        .spawn()
        .map_err(|error| Fault::unable(format!("the program `{tgp}` cannot be started: {error}")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (stdout, stderr) = tokio::join!(text(stdout), text(stderr));
        (child.wait().await, stdout, stderr)
    };
    let (status, stdout, stderr) = tokio::time::timeout(PATIENCE, work).await.map_err(|_| late(arguments))?;
    Ok(Ran { code: status.expecting("a program that ends")?.code(), stdout, stderr })
}

async fn text(output: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(output) = output {
        let _ = output.take(MAX_OUTPUT).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn late(arguments: &[&str]) -> Fault {
    Fault::new(format!("`tgp {}` to end within {} s", arguments.join(" "), PATIENCE.as_secs()), "no end")
}

/// A user at a terminal who answers each question with the next of the keys. The terminal is made by the program
/// `script` of util-linux.
pub(crate) async fn run_at_terminal(
    world: &World,
    arguments: &[&str],
    question: &str,
    keys: &[&str],
) -> Result<Ran, Fault> {
    let mut version = Command::new("script");
    let version = version.arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let is_there = matches!(tokio::time::timeout(PATIENCE, version).await, Ok(Ok(output)) if output.stdout.starts_with(b"script from util-linux"));
    if !is_there {
        return Err(Fault::unable(
            "the program `script` of util-linux, which makes a terminal, is not there",
        ));
    }
    let words: Vec<String> = [world.ground.tgp.display().to_string()]
        .into_iter()
        .chain(arguments.iter().map(|argument| (*argument).to_owned()))
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    let mut command = command(world, "script")?;
    command.args(["--quiet", "--return", "--flush", "--command", &words.join(" "), "/dev/null"]);
    command.stdin(Stdio::piped());
    let child = command.spawn().expecting("a terminal")?;
    tokio::time::timeout(PATIENCE, answer(child, question, keys)).await.map_err(|_| late(arguments))?
}

async fn answer(mut child: Child, question: &str, keys: &[&str]) -> Result<Ran, Fault> {
    let (Some(mut keyboard), Some(screen)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Fault::new("a terminal", "a process without pipes"));
    };
    let mut screen = screen.take(MAX_OUTPUT);
    let (mut shown, mut answered) = (Vec::new(), 0);
    let mut buffer = [0; 4096];
    loop {
        let length = screen.read(&mut buffer).await.expecting("a screen that can be read")?;
        if length == 0 {
            break;
        }
        shown.extend_from_slice(buffer.get(..length).unwrap_or_default());
        let asked = String::from_utf8_lossy(&shown).matches(question).count();
        while answered < asked {
            let Some(key) = keys.get(answered) else { break };
            keyboard.write_all(format!("{key}\r").as_bytes()).await.expecting("a keyboard")?;
            keyboard.flush().await.expecting("a keyboard")?;
            answered += 1;
        }
    }
    drop(keyboard);
    let code = child.wait().await.expecting("a program that ends")?.code();
    let stdout = String::from_utf8_lossy(&shown).replace("\r\n", "\n");
    Ok(Ran { code, stdout, stderr: String::new() })
}
