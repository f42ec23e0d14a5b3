//! The caps of a run hold for what the prelude adds.

use std::time::Duration;

use serde_json::json;
use tgp_sandbox::{RunErrorKind, RunLimits, ToolRunOptions};

use crate::Test;
use crate::worker::{Tested, Workers, limits};

pub const TESTS: &[Test] = &[
    ("limits_endless_recursion_is_a_range_error", recursion),
    ("limits_memory_counts_what_natives_make", memory),
    ("limits_cpu_time_stops_streams", cpu),
];

fn recursion(workers: &Workers) -> Tested {
    for code in [
        "(() => { const f = () => f() + 1; return f(); })()",
        "(() => { const f = (x) => [1].map(() => f(x)); return f(); })()",
        "(() => { const p = new Proxy({}, { get: (_, key, self) => self[key] }); return p.x; })()",
        "(() => { const o = { toString: () => `${o}` }; return `${o}`; })()",
        "(() => { const o = { get a() { return structuredClone(o); } }; return structuredClone(o); })()",
    ] {
        let caught = format!(
            "(() => {{ try {{ {code}; }} catch (error) {{ return error.name; }} return 'none'; }})()"
        );
        workers.check(&caught, &json!("RangeError"))?;
    }
    Ok(())
}

fn memory(workers: &Workers) -> Tested {
    let limits = RunLimits { heap_bytes: 16 << 20, ..limits() };
    for code in [
        "Buffer.alloc(2 ** 30).length",
        "(() => { let blob = new Blob(['x']); for (;;) blob = new Blob([blob, blob]); })()",
        "(() => { let b = Buffer.from('x'); for (;;) b = Buffer.concat([b, b]); })()",
        "(() => { let s = 'ab'; for (;;) s = Buffer.from(s + s).toString('hex'); })()",
        "(() => { const kept = []; for (;;) kept.push(new TextDecoder('utf-16le').decode(new Uint8Array(100_000))); })()",
        "(() => { for (;;) new WeakRef(new Uint8Array(100_000)); })()",
        "new ReadableStream({ start(controller) { for (;;) controller.enqueue(new Uint8Array(10_000)); } })",
    ] {
        let error = workers.failure(code, ToolRunOptions { limits, ..ToolRunOptions::default() })?;
        if error.kind != RunErrorKind::Memory {
            return Err(format!("{code}\n  {error:?}").into());
        }
    }
    Ok(())
}

fn cpu(workers: &Workers) -> Tested {
    let limits = RunLimits { cpu: Duration::from_millis(200), ..limits() };
    for code in [
        "(async () => { for await (const x of new ReadableStream({ pull: (c) => c.enqueue(1) })) void x; })()",
        "(async () => { for (;;) await crypto.subtle.digest('SHA-512', new Uint8Array(1_000_000)); })()",
        "(() => { for (;;) console.dir({ a: [[1]] }.b); })()",
    ] {
        let error = workers.failure(code, ToolRunOptions { limits, ..ToolRunOptions::default() })?;
        if !matches!(error.kind, RunErrorKind::CpuTime | RunErrorKind::Cap) {
            return Err(format!("{code}\n  {error:?}").into());
        }
    }
    Ok(())
}
