//! What tools find on their global object, beyond what Node 20 can be compared with.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tgp_sandbox::{RunLimits, ToolRunOptions};

use crate::Test;
use crate::worker::{Echo, Tested, Workers, limits, module};

pub const TESTS: &[Test] = &[
    ("bug_a_date_stayed_valid_when_a_field_was_set_to_nan", invalid_dates),
    ("bug_code_of_a_tool_ran_while_a_sample_was_taken", sampled),
    ("platform_language_is_newer_than_node", language),
    ("platform_windows_1252_is_that_of_the_standard", windows_1252),
    ("platform_globals_are_there", globals),
    ("platform_declarations_name_what_is_there", declarations),
    ("platform_code_from_text_is_refused", code_from_text),
    ("platform_fetch_goes_through_the_bridge", fetch),
    ("platform_fetch_asks_for_what_was_written", fetch_as_written),
    ("platform_fetch_sends_bytes_forms_and_streams", fetch_bodies),
    ("platform_fetch_can_be_aborted", fetch_aborted),
    ("platform_polluted_prototypes_do_not_change_a_request", polluted),
    ("platform_frozen_clock_and_seed_reach_everything", frozen),
    ("platform_a_replaced_global_stays_replaced", replaced),
    ("bug_a_setter_of_a_tool_got_the_natives", natives),
    ("bug_a_race_of_no_list_threw_instead_of_failing", races),
];

fn language(workers: &Workers) -> Tested {
    for (code, expected) in [
        ("Array.fromAsync([1, Promise.resolve(2)])", json!([1, 2])),
        ("Object.groupBy([1, 2, 3], (x) => (x % 2 ? 'odd' : 'even'))", json!({"odd": [1, 3], "even": [2]})),
        ("Promise.try(() => 1)", json!(1)),
        (
            "(() => { const { promise, resolve } = Promise.withResolvers(); resolve(2); return promise; })()",
            json!(2),
        ),
        ("[...new Set([1, 2]).union(new Set([3]))]", json!([1, 2, 3])),
        ("[1, 2, 3].values().map((x) => x * 2).filter((x) => x > 2).toArray()", json!([4, 6])),
        ("URL.parse('nope')", Value::Null),
        ("[...new Response('x').headers.keys()]", json!(["content-type"])),
        ("[...(await new Response('hi').bytes())]", json!([104, 105])),
        ("[typeof navigator, typeof Intl === 'object' || true]", json!(["undefined", true])),
        ("(() => { const f = (n) => (n ? 1 + f(n - 1) : 0); return f(10_000); })()", json!(10_000)),
        (
            "(() => { const o = {}; Error.captureStackTrace(o); return o.stack.includes('test.js'); })()",
            json!(true),
        ),
        ("self === globalThis && global === globalThis", json!(true)),
    ] {
        workers.check(code, &expected)?;
    }
    Ok(())
}

fn windows_1252(workers: &Workers) -> Tested {
    // Node 20 decodes it as ISO 8859-1.
    workers
        .check("new TextDecoder('windows-1252').decode(new Uint8Array([0x80, 0xe4, 0x9f]))", &json!("€äŸ"))?;
    workers.check(
        "new TextDecoder('x-user-defined').decode(new Uint8Array([0x80])).charCodeAt(0)",
        &json!(0xf780),
    )
}

fn globals(workers: &Workers) -> Tested {
    // Each is looked up on its own, in a worker that has loaded no part yet.
    workers.check(
        "Object.getOwnPropertyNames(globalThis).filter((name) => name !== 'undefined' && globalThis[name] === undefined)",
        &json!([]),
    )
}

fn declarations(workers: &Workers) -> Tested {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/src/scaffold/templates");
    let read = |name: &str| std::fs::read_to_string(templates.join(name));
    let text = read("tgp.d.ts")? + &read("platform.d.ts")?;
    let declared: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("declare "))
        .filter_map(|line| line.split_once(' '))
        .filter(|(kind, _)| matches!(*kind, "class" | "const" | "function"))
        .filter_map(|(_, rest)| rest.split([' ', '<', '(', ':']).next())
        // The wrapper of a CommonJS module hands it in.
        .filter(|name| *name != "require")
        .collect();
    let missing = workers.value(&format!("{}.filter((name) => !(name in globalThis))", json!(declared)))?;
    if missing != json!([]) {
        return Err(format!("tgp.d.ts declares what is not there: {missing}").into());
    }
    // What the prelude adds to the language comes after the language's own names.
    let added = workers.value(
        "(() => { const all = Object.getOwnPropertyNames(globalThis); return all.slice(all.indexOf('self')); })()",
    )?;
    let undeclared: Vec<&Value> = added
        .as_array()
        .into_iter()
        .flatten()
        // TypeScript's own library describes `Intl`.
        .filter(|name| name.as_str().is_some_and(|name| name != "Intl" && !declared.contains(name)))
        .collect();
    if undeclared.is_empty() {
        Ok(())
    } else {
        Err(format!("tgp.d.ts does not declare {undeclared:?}").into())
    }
}

fn code_from_text(workers: &Workers) -> Tested {
    for code in [
        "new Function('return 1')",
        "Function('a', 'return a')",
        "eval('1')",
        "(0, eval)('1')",
        "(async () => {}).constructor('return 1')",
        "(function* () {}).constructor('yield 1')",
        "Reflect.construct(Function, ['return 1'])",
        "new (class extends Function {})('return 1')",
    ] {
        let caught =
            format!("(() => {{ try {{ return typeof {code}; }} catch (error) {{ return error.name; }} }})()");
        workers.check(&caught, &json!("EvalError"))?;
    }
    workers.check(
        "[eval(5), Function.prototype.constructor === Function, Function.length]",
        &json!([5, true, 0]),
    )
}

fn fetch(workers: &Workers) -> Tested {
    workers.check(
        "(async () => { const r = await fetch('https://a.test/x', { headers: { B: '1' } }); return [r.status, r.ok, r.url, r.type, await r.json()]; })()",
        &json!([200, true, "https://a.test/x", "basic", {"url": "https://a.test/x", "method": "GET", "headers": [["b", "1"]]}]),
    )?;
    workers.check(
        "(async () => { const r = await tgp.fetch('https://bytes.test/'); return [r.status, r.headers.getSetCookie(), [...(await r.clone().bytes())], (await r.blob()).type]; })()",
        &json!([201, ["a=1", "b=2"], [0, 1, 255], "application/octet-stream"]),
    )?;
    workers.check(
        "(async () => { const parts = []; for await (const part of (await fetch('https://bytes.test/')).body) parts.push(...part); return parts; })()",
        &json!([0, 1, 255]),
    )?;
    workers.check(
        "fetch('https://denied.test/').catch((error) => [error.name, error.code, error.message])",
        &json!(["Error", "EPOLICY", "denied"]),
    )
}

/// The kernel sees what a tool asks for as it was written, and refuses it with a code of its own.
fn fetch_as_written(workers: &Workers) -> Tested {
    for (input, init, url, method) in [
        ("'https://user:pw@a.test/x'", "{}", "https://user:pw@a.test/x", "GET"),
        ("'https://a.test/b/../c'", "{ method: 'po st' }", "https://a.test/b/../c", "PO ST"),
        ("'nonsense'", "{ body: 'x', headers: { a: 'b\\r\\nhost: evil' } }", "nonsense", "GET"),
    ] {
        let sent = workers.value(&format!("(await fetch({input}, {init})).json()"))?;
        if sent.get("url") != Some(&json!(url)) || sent.get("method") != Some(&json!(method)) {
            return Err(format!("{input} was sent as {sent}").into());
        }
    }
    Ok(())
}

fn fetch_bodies(workers: &Workers) -> Tested {
    let sent = |body: &str| {
        workers.value(&format!("(await fetch('https://a.test/', {{ method: 'POST', body: {body} }})).json()"))
    };
    let field = |request: &Value, name: &str| {
        request.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for (body, expected, encoding) in [
        ("'text'", "text", "utf8"),
        ("new Uint8Array([0, 255])", "AP8=", "base64"),
        ("new Blob(['blob'])", "YmxvYg==", "base64"),
        ("new URLSearchParams({ a: 'b c' })", "a=b+c", "utf8"),
        ("ReadableStream.from([Buffer.from('a'), Buffer.from('b')])", "YWI=", "base64"),
    ] {
        let request = sent(body)?;
        if field(&request, "body") != expected || field(&request, "bodyEncoding") != encoding {
            return Err(format!("{body} was sent as {request}").into());
        }
    }
    let form = sent("(() => { const form = new FormData(); form.append('a', 'b'); return form; })()")?;
    let headers = form.get("headers").map(Value::to_string).unwrap_or_default();
    if headers.contains("multipart/form-data; boundary=----formdata-tgp-") {
        Ok(())
    } else {
        Err(headers.into())
    }
}

fn fetch_aborted(workers: &Workers) -> Tested {
    workers.check(
        "fetch('https://a.test/', { signal: AbortSignal.abort() }).catch((error) => error.name)",
        &json!("AbortError"),
    )
}

fn polluted(workers: &Workers) -> Tested {
    let code = "(async () => {
        Object.prototype.toJSON = () => 'polluted';
        Array.prototype.toJSON = () => 'polluted';
        JSON.stringify = () => '[]';
        Object.prototype.url = 'https://evil.test/';
        Object.prototype.get = () => 'x';
        try { await fetch('https://a.test/'); } catch {}
        return 1;
    })()";
    let bridge = Echo::default();
    let options = ToolRunOptions { limits: limits(), ..ToolRunOptions::default() };
    workers.run(&module(code), Value::Null, options, &bridge);
    let calls = bridge.calls.lock().map_err(|error| error.to_string())?;
    for (name, arguments) in calls.iter() {
        let url = arguments.first().and_then(|request| request.get("url")).and_then(Value::as_str);
        if name != "fetch" || url != Some("https://a.test/") {
            return Err(format!("the kernel was asked for {name} {arguments:?}").into());
        }
    }
    Ok(())
}

fn frozen(workers: &Workers) -> Tested {
    let code = "(async () => {
        const { privateKey } = await crypto.subtle.generateKey('Ed25519', true, ['sign']);
        const ec = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
        const signed = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, ec.privateKey, Buffer.from('m'));
        return [
            (await crypto.subtle.exportKey('jwk', privateKey)).d, Buffer.from(signed).toString('hex'), crypto.randomUUID(),
            new File([], 'a').lastModified, performance.now(), performance.timeOrigin, new Event('x').timeStamp, Date.now(),
            new Intl.DateTimeFormat('en', { timeStyle: 'medium' }).format(),
        ];
    })()";
    let options = ToolRunOptions { limits: limits(), seed: Some(7), frozen_clock_ms: Some(1_000.0) };
    let first = workers.evaluate_with(code, options).result.map_err(|error| format!("{error:?}"))?;
    let second = workers.evaluate_with(code, options).result.map_err(|error| format!("{error:?}"))?;
    if first != second {
        return Err(format!("a seeded run did not repeat:\n{first}\n{second}").into());
    }
    let times: Vec<&Value> = first.as_array().into_iter().flatten().skip(3).collect();
    let time = json!("12:00:01 AM");
    if times == [&json!(1000), &json!(0), &json!(1000), &json!(0), &json!(1000), &time] {
        Ok(())
    } else {
        Err(format!("the clock was not stopped: {times:?}").into())
    }
}

fn replaced(workers: &Workers) -> Tested {
    workers.check(
        "(() => { globalThis.Buffer = 5; fetch = 6; return [Buffer, globalThis.fetch]; })()",
        &json!([5, 6]),
    )?;
    workers.check("(() => { delete globalThis.Blob; return 'Blob' in globalThis; })()", &json!(false))
}

/// Parts that are loaded later add natives to an object which no tool may see.
fn natives(workers: &Workers) -> Tested {
    for (name, load) in [
        ("intl", "(1).toLocaleString('de')"),
        ("digest", "crypto.subtle.digest('SHA-256', new Uint8Array(1))"),
        ("date", "new Date(0).toLocaleString('de')"),
        ("part", "new URL('http://a.b')"),
    ] {
        let code = format!(
            "(() => {{ let got = 'nothing'; const {{ prototype }} = Object; \
             Object.defineProperty(prototype, '{name}', {{ set(value) {{ got = Object.keys(this); \
             Object.defineProperty(this, '{name}', {{ value }}); }}, configurable: true }}); \
             try {{ {load}; }} finally {{ delete prototype.{name}; }} return got; }})()"
        );
        workers.check(&code, &json!("nothing"))?;
    }
    Ok(())
}

fn races(workers: &Workers) -> Tested {
    for name in ["race", "any"] {
        let code = format!("Promise.{name}(5).catch((error) => error.name)");
        workers.check(&code, &json!("TypeError"))?;
    }
    Ok(())
}

fn invalid_dates(workers: &Workers) -> Tested {
    for field in ["Milliseconds", "Seconds", "Minutes", "Hours", "Date", "Month", "FullYear"] {
        for name in [format!("set{field}"), format!("setUTC{field}")] {
            let code = format!(
                "(() => {{ const [a, b, c] = [new Date(0), new Date(0), new Date(NaN)]; \
                 const given = [a.{name}(NaN), a.getTime(), c.{name}(1) === c.getTime()].map(String); \
                 b.{name}(1); const {{ {name}: set }} = Date.prototype; \
                 try {{ set.call({{}}, 1); }} catch (error) {{ given.push(error.name); }} \
                 return [...given, Number.isNaN(b.getTime()), set.name, Object.keys(Date.prototype).length]; }})()"
            );
            let nan_or_year = if field == "FullYear" { "true" } else { "false" };
            workers.check(&code, &json!(["NaN", "NaN", nan_or_year, "TypeError", false, name, 0]))?;
        }
    }
    Ok(())
}

/// While a tool's own code makes a stack the engine makes no other one, and a getter of the tool was asked instead.
fn sampled(workers: &Workers) -> Tested {
    let code = "(() => {
        let ran = 0;
        Object.defineProperty(Object.prototype, 'stack', { configurable: true, get() { ran++; return ''; } });
        Error.stackTraceLimit = { valueOf() {
            Error.stackTraceLimit = 10;
            for (const until = Date.now() + 150; Date.now() < until; ) ;
            return 5;
        } };
        new Error('x');
        delete Object.prototype.stack;
        return ran;
    })()";
    let limits = RunLimits { cpu: std::time::Duration::from_secs(1), ..limits() };
    let report = workers.evaluate_with(code, ToolRunOptions { limits, ..ToolRunOptions::default() });
    let ran = report.result.map_err(|error| format!("{error:?}"))?;
    if ran == json!(0) { Ok(()) } else { Err(format!("a getter ran {ran} times").into()) }
}
