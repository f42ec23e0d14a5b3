//! Runs per second through the socket of the shipped binary, with one caller and with many.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::peer_process::PeerProcess;
use crate::project::{ARGUMENTS, Project, RESULT, TOOL};
use crate::report::{Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const CALLERS: [usize; 3] = [1, 4, 16];
/// Peers that can have several runs in flight: what the script of the peers calls them, with one caller and with more.
/// The synchronous calls of isolated-vm are the faster ones for a single caller.
const PARALLEL_PEERS: [(&str, &str); 4] = [
    ("isolated-vm", "isolated-vm-threads"),
    ("worker-threads", "worker-threads"),
    ("deno-worker", "deno-worker"),
    ("code-mode", "code-mode"),
];
/// Runs of each caller that do not count.
const WARM_UP: usize = 3;
/// How long the server may take to listen, and to answer one call.
const PATIENCE: Duration = Duration::from_secs(60);

/// `runs` are divided among the callers, so that each number of them makes as many.
pub fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let runs = settings.runs;
    let mut peers = PeerProcess::start_all(section, settings)?;
    let project = Project::new()?;
    let server = Server::start(&project)?;
    let mut alone = None;
    for callers in CALLERS.into_iter().take(settings.or_smoke(CALLERS.len(), 2)) {
        let load = load(&server, callers, runs)?;
        let what = if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
        let row = || Row::new(&format!("exec_tool through the socket, {what}"), Unit::RunsPerSecond);
        section.row(match alone {
            Some(alone) => row().ours(load.rate).peer("with 1 caller", alone),
            None => row().ours(load.rate),
        });
        alone.get_or_insert(load.rate);
        section.contender("one run through the socket", Side::Ours, &what, &load.times);
        for process in &mut peers {
            for contender in process.contenders().to_vec() {
                let Some((single, several)) = PARALLEL_PEERS.iter().find(|(key, _)| *key == contender.key)
                else {
                    continue;
                };
                let key = if callers == 1 { single } else { several };
                process.rate(key, callers, callers)?;
                let rate = process.rate(key, runs, callers)?;
                section.row(row().ours(load.rate).peer(&contender.name, rate));
            }
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    section.note(format!("{runs} runs for each number of callers, without pauses, {cores} cores"));
    Ok(())
}

/// `tgp serve` on a project; ended when it is dropped.
pub struct Server {
    process: Child,
    socket: PathBuf,
    token: String,
}

impl Server {
    pub fn start(project: &Project) -> Result<Self> {
        let token = project
            .command(&["token", "mint", "--all"])?
            .output()
            .context("`tgp token mint` cannot be started")?;
        let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
        let socket = project.beside("socket");
        let path = socket.to_str().context("the folder's name is no text")?.to_owned();
        let process = project
            .command(&["serve", "--yes", "--socket", &path])?
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("`tgp serve` cannot be started")?;
        let server = Self { process, socket, token };
        let started = Instant::now();
        while !server.socket.exists() {
            if started.elapsed() > PATIENCE {
                bail!("`tgp serve` does not listen");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    fn connect(&self) -> Result<UnixStream> {
        let mut stream = connect(&self.socket)?;
        send(&mut stream, &json!({ "token": self.token }))?;
        let welcome = receive(&mut stream)?;
        if welcome.get("session").is_none() {
            bail!("the server refuses its client: {welcome}");
        }
        Ok(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What callers without pauses got.
pub struct Load {
    /// Runs per second of all callers together.
    pub rate: f64,
    /// The time of each run, as its caller saw it.
    pub times: Samples,
}

/// `callers` connections of their own, each with its next call as soon as it has the answer to the last.
pub fn load(server: &Server, callers: usize, runs: usize) -> Result<Load> {
    let each = runs.div_ceil(callers);
    // The callers and the clock.
    let begin = Barrier::new(callers + 1);
    let (time, times) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|_| {
                scope.spawn(|| {
                    let ready = server.connect().and_then(|mut stream| {
                        (0..WARM_UP).try_for_each(|_| run(&mut stream).map(drop))?;
                        Ok(stream)
                    });
                    begin.wait();
                    let mut stream = ready?;
                    (0..each).map(|_| run(&mut stream)).collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        begin.wait();
        let started = Instant::now();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| anyhow::anyhow!("a caller panicked"))??);
        }
        anyhow::Ok((started.elapsed(), times))
    })?;
    let rate = (each * callers) as f64 / time.as_secs_f64();
    Ok(Load { rate, times: times.into_iter().collect() })
}

fn run(stream: &mut UnixStream) -> Result<Duration> {
    let arguments: Value = serde_json::from_str(ARGUMENTS)?;
    let arguments = json!({ "path": TOOL, "args": arguments });
    let started = Instant::now();
    send(stream, &json!({ "method": "call", "id": "1", "tool": "exec_tool", "arguments": arguments }))?;
    let answer = receive(stream)?;
    let time = started.elapsed();
    if answer.pointer("/result/data/result").and_then(Value::as_i64) != Some(RESULT) {
        bail!("the small tool gave {answer} instead of {RESULT}");
    }
    Ok(time)
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let stream = UnixStream::connect(socket).context("the socket cannot be reached")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn send(stream: &mut UnixStream, value: &Value) -> Result<()> {
    let text = value.to_string().into_bytes();
    stream.write_all(&u32::try_from(text.len())?.to_be_bytes())?;
    Ok(stream.write_all(&text)?)
}

fn receive(stream: &mut UnixStream) -> Result<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).context("the server does not answer")?;
    let mut text = vec![0; usize::try_from(u32::from_be_bytes(length))?];
    stream.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
