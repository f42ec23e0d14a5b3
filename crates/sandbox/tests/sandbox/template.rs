//! Workers that are forked from one template have nothing in common but how they began.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tgp_sandbox::WorkerCommand;

use crate::worker::{Tested, Workers};

type Test = (&'static str, fn(&Workers) -> Tested);

pub const TESTS: &[Test] = &[
    ("template_workers_differ_in_every_random_value", differ),
    ("template_workers_start_with_a_clean_heap", clean),
    ("template_workers_are_children_of_the_kernel", parents),
    ("template_that_was_killed_is_replaced", replaced),
    ("template_workers_count_their_own_heap_and_time", own_books),
    ("bug_a_worker_that_was_killed_while_it_started_failed_a_call", started_again),
    ("bug_a_compile_worker_that_was_killed_blamed_the_source", compiled_again),
    ("bug_the_end_of_a_worker_interrupted_the_start_of_the_next", undisturbed),
];

/// More than the workers of a pool.
const ROUNDS: usize = 12;

fn differ(workers: &Workers) -> Tested {
    let expression =
        "[Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(2)).join()]";
    let mut seen = BTreeSet::new();
    for _ in 0..ROUNDS {
        for value in workers.value(expression)?.as_array().into_iter().flatten() {
            if !seen.insert(value.to_string()) {
                return Err(format!("{value} came twice").into());
            }
        }
    }
    let mut clocks = BTreeSet::new();
    for _ in 0..ROUNDS {
        let read = workers.value("[performance.timeOrigin, performance.now()]")?;
        let now = read[1].as_f64().unwrap_or(f64::MAX);
        if now > 60_000.0 {
            return Err(format!("the clock of a run began {now} ms ago").into());
        }
        clocks.insert(read[0].to_string());
    }
    if clocks.len() < 2 {
        return Err("all runs began at the same time".into());
    }
    Ok(())
}

fn clean(workers: &Workers) -> Tested {
    for _ in 0..ROUNDS {
        let left = "[globalThis.left ?? null, [].left ?? null, Object.isFrozen(Math), [].concat(1).length]";
        workers.check(left, &json!([null, null, false, 1]))?;
        workers.check(
            "(globalThis.left = 1, Array.prototype.left = 2, Array.prototype.concat = () => [], Object.freeze(Math), 0)",
            &json!(0),
        )?;
    }
    Ok(())
}

/// The processes whose parent is this one, with their arguments.
fn children() -> Vec<(i32, String)> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("stat")).ok()?;
            let fields: Vec<&str> = status.rsplit_once(')')?.1.split_whitespace().collect();
            let arguments = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
            // A process that has ended and is not reaped yet has no arguments.
            (fields.get(1) == Some(&own.as_str()) && !arguments.is_empty()).then_some((pid, arguments))
        })
        .collect()
}

fn parents(workers: &Workers) -> Tested {
    for _ in 0..3 {
        workers.check("1", &json!(1))?;
    }
    // A forked worker has the arguments of its template, and both are ours.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let forked = children().iter().filter(|(_, arguments)| arguments.contains(" template ")).count();
        if forked >= 2 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{forked} children are a template or a worker of one").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn replaced(workers: &Workers) -> Tested {
    for _ in 0..3 {
        let own = |(_, arguments): &(i32, String)| !arguments.contains(" compile ");
        for (pid, _) in children().into_iter().filter(own) {
            // It may have ended in the meantime.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        while children().iter().any(own) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        for round in 0..4 {
            workers.check(&round.to_string(), &json!(round))?;
        }
    }
    Ok(())
}

/// The template: unlike its workers it can fork.
fn template() -> Option<i32> {
    let limits = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let forks = |pid: &i32| {
        let text = limits(pid);
        let line = text.lines().find_map(|line| line.strip_prefix("Max processes")).map(str::to_owned);
        line.is_some_and(|line| line.split_whitespace().nth(1) != Some("0"))
    };
    let all = children().into_iter().filter(|(_, arguments)| arguments.contains(" template "));
    all.map(|(pid, _)| pid).find(forks)
}

/// A program that handles the signal which each worker's end sends, as every one does that waits for processes.
fn undisturbed(workers: &Workers) -> Tested {
    let _handled = workers.handle_ends_of_children()?;
    workers.check("1", &json!(1))?;
    workers.check("2", &json!(2))?;
    let before = template();
    for round in 0..200 {
        workers.check(&round.to_string(), &json!(round))?;
    }
    let after = template();
    if before.is_none() || before != after {
        return Err(format!("the template was replaced: {before:?}, {after:?}").into());
    }
    Ok(())
}

fn own_books(workers: &Workers) -> Tested {
    let quiet = workers.evaluate("1").stats;
    let busy = workers.evaluate("(() => { const list = []; for (let i = 0; i < 100000; i += 1) list.push({ i }); return list.length; })()");
    if busy.result.as_ref().ok() != Some(&Value::from(100_000)) {
        return Err(format!("{:?}", busy.result).into());
    }
    let after = workers.evaluate("1").stats;
    if busy.stats.heap_peak_bytes < quiet.heap_peak_bytes + 4_000_000 {
        return Err(format!("{} bytes for 100,000 objects", busy.stats.heap_peak_bytes).into());
    }
    if after.heap_peak_bytes > quiet.heap_peak_bytes + 100_000 {
        return Err(format!("a run after it begins with {} bytes", after.heap_peak_bytes).into());
    }
    Ok(())
}

/// A command that ends at once for each first start of a kind of worker, as if somebody had killed it.
fn started_again(_: &Workers) -> Tested {
    let folder = tempfile::tempdir()?;
    let (script, own) = (folder.path().join("worker.sh"), std::env::current_exe()?);
    let text = format!(
        "#!/bin/sh\nmkdir '{}/'\"$2\" 2>/dev/null && exit 1\nexec '{}' \"$@\"\n",
        folder.path().display(),
        own.display()
    );
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700))?;
    let workers = Workers::start_with(WorkerCommand { program: script, arguments: Vec::new() })?;
    workers.check("1 + 1", &json!(2))?;
    let starts = fs::read_dir(folder.path())?.count();
    if starts != 3 {
        return Err(format!("{starts} entries: not every kind of worker was refused once").into());
    }
    Ok(())
}

fn compiled_again(workers: &Workers) -> Tested {
    let long = format!("[{}].length", "'element', ".repeat(200_000));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Kills the compile worker that the job has found, whatever it does at that moment. The next one is spared.
        let killer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (pid, arguments) in children() {
                    if arguments.contains("compile") {
                        return kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok();
                    }
                }
            }
            false
        });
        let checked = workers.check(&long, &json!(200_000));
        stop.store(true, Ordering::Relaxed);
        checked?;
        match killer.join() {
            Ok(true) => Ok(()),
            _ => Err("no compile worker was killed".into()),
        }
    })
}
