//! An agent's session as a process: how soon a streamed byte is seen, and what a thousand calls leave in memory.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::project::Project;
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

/// What the server says first, and what is looked for.
const FIRST: &str = "streamed-byte";
/// Time enough for a client to have its connection idle before the first byte comes.
const PAUSE: Duration = Duration::from_millis(50);
/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls of the long session, and the call after which memory is first measured.
const CALLS: usize = 1000;
const SETTLED: usize = 100;

pub fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    first_byte(section, settings.processes)?;
    ten_reads(section, settings.processes)?;
    long_session(section, settings.or_smoke((SETTLED, CALLS), (2, 6)))
}

/// The time between a byte's way into the socket and its way out of the program.
fn first_byte(section: &mut Section, rounds: usize) -> Result<()> {
    let project = Project::new()?;
    let server = TcpListener::bind("127.0.0.1:0").context("no port")?;
    let base = format!("http://{}/v1", server.local_addr()?);
    let (sent, moments) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in server.incoming().flatten() {
            let Ok(moment) = answer(connection) else { continue };
            if sent.send(moment).is_err() {
                return;
            }
        }
    });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let words = ["run", "say something", "--model", "m", "--provider", &base];
        ours.push(seen(&mut project.command(&words)?, &moments).context("tgp run")?);
        let mut curl = Command::new("curl");
        curl.args(["--no-buffer", "--silent", "--data", "{}", &format!("{base}/chat/completions")]);
        match seen(&mut curl, &moments) {
            Ok(time) => theirs.push(time),
            Err(error) if theirs.is_empty() => section.skipped("curl", &format!("{error:#}")),
            Err(error) => return Err(error),
        }
    }
    let ours: Samples = ours.into_iter().collect();
    section.contender("first streamed byte", Side::Ours, "tgp run", &ours);
    let mut row = Row::new("first streamed byte, socket to screen, p95", Unit::Milliseconds)
        .ours(ours.percentile(95))
        .budget(Budget::Below(20.0));
    if !theirs.is_empty() {
        let theirs: Samples = theirs.into_iter().collect();
        row = row.peer("curl --no-buffer", theirs.percentile(95));
        section.contender("first streamed byte", Side::Peer, "curl --no-buffer", &theirs);
    }
    section.row(row);
    section.note(format!(
        "{rounds} sessions against a server on the loopback: median {:.3} ms, {}",
        ours.median(),
        ours.tail()
    ));
    Ok(())
}

/// Speaks the stream of OpenAI's chat; gives the moment at which the first piece of text was sent.
fn answer(mut connection: TcpStream) -> Result<Instant> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    connection.set_nodelay(true)?;
    let piece = |delta: Value, finish: Value| {
        let chunk =
            json!({ "id": "1", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        format!("data: {chunk}\n\n")
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    connection.write_all(head.as_bytes())?;
    connection.write_all(piece(json!({ "role": "assistant", "content": "" }), Value::Null).as_bytes())?;
    std::thread::sleep(PAUSE);
    let text = piece(json!({ "content": FIRST }), Value::Null);
    let moment = Instant::now();
    connection.write_all(text.as_bytes())?;
    // The end comes later, so that nothing is seen because the stream is over.
    std::thread::sleep(PAUSE);
    connection.write_all(piece(json!({}), json!("stop")).as_bytes())?;
    connection.write_all(b"data: [DONE]\n\n")?;
    Ok(moment)
}

fn seen(command: &mut Command, moments: &mpsc::Receiver<Instant>) -> Result<Duration> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdout = child.stdout.take().context("no output")?;
    let mut told = Vec::new();
    let mut buffer = [0; 4096];
    let mut at = None;
    loop {
        let length = stdout.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        let now = Instant::now();
        told.extend_from_slice(buffer.get(..length).unwrap_or_default());
        if at.is_none() && String::from_utf8_lossy(&told).contains(FIRST) {
            at = Some(now);
        }
    }
    let output = child.wait_with_output()?;
    let Some(at) = at else {
        bail!("it never printed the text: {}", String::from_utf8_lossy(&output.stderr));
    };
    let sent = moments.recv_timeout(PATIENCE).context("the server was not asked")?;
    Ok(at.saturating_duration_since(sent))
}

/// A whole session whose model answers at once: ten turns, each of which reads one file.
fn ten_reads(section: &mut Section, rounds: usize) -> Result<()> {
    const READS: usize = 10;
    let project = Project::new()?;
    let directory = project.directory();
    let mut turns = Vec::new();
    for number in 0..READS {
        let name = format!("src/file{number}.ts");
        fs::create_dir_all(directory.join("src"))?;
        fs::write(directory.join(&name), format!("export const value = {number};\n"))?;
        turns.push(json!([{ "type": "tool_call", "toolName": "fs_read", "callId": "c", "arguments": { "path": name } }]));
    }
    turns.push(json!([{ "type": "text", "value": "read" }]));
    fs::write(directory.join("model.json"), Value::from(turns).to_string())?;
    let words = ["--json", "run", "read the sources", "--provider", "script:model.json"];
    let peer = "for (let i = 0; i < 10; i++) require('node:fs').readFileSync(`src/file${i}.ts`, 'utf8')";
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let started = Instant::now();
        let output = project.command(&words)?.output().context("tgp cannot be started")?;
        ours.push(started.elapsed());
        let told = String::from_utf8_lossy(&output.stdout).matches("\"type\":\"tool_result\"").count();
        if !output.status.success() || told != READS {
            bail!("the session has read {told} files: {}", String::from_utf8_lossy(&output.stderr));
        }
        let started = Instant::now();
        match Command::new("node").args(["-e", peer]).current_dir(&directory).output() {
            Ok(output) if output.status.success() => theirs.push(started.elapsed()),
            _ if theirs.is_empty() => section.skipped("node", "it cannot be started"),
            _ => bail!("node failed after it had succeeded"),
        }
    }
    let ours: Samples = ours.into_iter().collect();
    section.contender("a session of ten reads", Side::Ours, "tgp run", &ours);
    let mut row = Row::new("a session of ten reads, the whole process", Unit::Milliseconds)
        .ours(ours.median())
        .budget(Budget::Below(60.0));
    if !theirs.is_empty() {
        let theirs: Samples = theirs.into_iter().collect();
        row = row.peer("node -e with ten reads", theirs.median());
        section.contender("a session of ten reads", Side::Peer, "node -e with ten reads", &theirs);
    }
    section.row(row);
    Ok(())
}

/// A session of `calls` calls; memory is first measured after `settled` of them.
fn long_session(section: &mut Section, (settled, calls): (usize, usize)) -> Result<()> {
    let project = Project::new()?;
    let directory = project.directory();
    let call =
        json!([{ "type": "tool_call", "toolName": "fs_list", "callId": "c", "arguments": { "path": "." } }]);
    let mut turns = vec![call; calls];
    turns.push(json!([{ "type": "text", "value": "done" }]));
    fs::write(directory.join("model.json"), Value::from(turns).to_string())?;
    let steps = (calls + 1).to_string();
    let started = Instant::now();
    let words = ["--json", "run", "look around", "--provider", "script:model.json", "--max-steps", &steps];
    let mut child =
        project.command(&words)?.stdout(Stdio::piped()).spawn().context("tgp cannot be started")?;
    let (mut early, mut late) = (0.0, 0.0);
    let mut results = 0;
    let mut ended = false;
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line?;
        if line.contains("\"type\":\"tool_result\"") {
            results += 1;
            if results == settled {
                early = resident(&child)?;
            }
            if results == calls {
                late = resident(&child)?;
            }
        }
        ended |= line.contains("\"kind\":\"done\"");
    }
    let time = started.elapsed();
    if !child.wait()?.success() || results != calls || !ended {
        bail!("the long session made {results} calls and did not come to its end");
    }
    let row = Row::new(&format!("memory after {calls} scripted calls"), Unit::Megabytes);
    section.row(
        row.ours(late)
            .peer(&format!("the same process after {settled}"), early)
            .budget(Budget::Below(early * 1.25)),
    );
    section.note(format!(
        "{calls} calls through all gates, transcript and audit included: {:.2} ms each",
        time.as_secs_f64() * 1000.0 / calls as f64
    ));
    Ok(())
}

fn resident(child: &Child) -> Result<f64> {
    let status = fs::read_to_string(Path::new("/proc").join(child.id().to_string()).join("status"))?;
    crate::memory::megabytes(&status, "VmRSS:").context("a process without memory")
}
