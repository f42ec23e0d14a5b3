//! How long a worker takes to get ready and to run nothing. Printed for a person; nothing asserts on it.

use std::process::ExitCode;
use std::time::Instant;

use crate::worker::Workers;

const ROUNDS: u32 = 100;

pub fn measure(workers: &Workers) -> ExitCode {
    workers.evaluate("1");
    for expression in [
        "1",
        "new URL('https://a.test').href",
        "console.log({ a: 1 })",
        "Buffer.from('a').toString('hex')",
        "new Response('a').text()",
        "crypto.subtle.digest('SHA-256', new Uint8Array(1))",
    ] {
        let started = Instant::now();
        let mut cpu = 0.0;
        let mut heap = 0;
        for _ in 0..ROUNDS {
            let report = workers.evaluate(expression);
            cpu += report.stats.cpu_ms;
            heap = report.stats.heap_peak_bytes;
        }
        let wall = started.elapsed().as_secs_f64() * 1000.0 / f64::from(ROUNDS);
        println!(
            "{expression}: {wall:.2} ms a run with its start, {:.3} ms CPU, {} KB",
            cpu / f64::from(ROUNDS),
            heap >> 10
        );
    }
    ExitCode::SUCCESS
}
