//! The natives behind `parseCsv` of `@tgp/std`: limits, and what a tool can do to them.

use std::time::Duration;

use serde_json::{Value, json};
use tgp_sandbox::{RunErrorKind, RunLimits, ToolRunOptions, ToolRunReport};

use crate::Test;
use crate::worker::{Echo, Tested, Workers, limits};

pub const TESTS: &[Test] = &[
    ("csv_rows_and_records_are_plain_values", values),
    ("csv_asks_nothing_that_a_tool_can_replace", tampering),
    ("csv_memory_is_counted", memory),
    ("csv_time_is_limited_within_one_call", cpu),
    ("csv_stops_a_tool_that_catches_its_limit", caught),
];

/// What a function's body gives in which `csvRows` and `csvRecords` are known.
fn run(workers: &Workers, body: &str, limits: RunLimits) -> ToolRunReport {
    let code = format!(
        "import {{ csvRecords, csvRows }} from 'tgp:csv';\nexport default async () => {{\n{body}\n}};"
    );
    let options = ToolRunOptions { limits, ..ToolRunOptions::default() };
    workers.run(&code, Value::Null, options, &Echo::default())
}

fn check(workers: &Workers, body: &str, expected: &Value) -> Tested {
    match run(workers, body, limits()).result {
        Ok(value) if value == *expected => Ok(()),
        other => Err(format!("{body}\n  expected: {expected}\n  but was:  {other:?}").into()),
    }
}

fn fails(workers: &Workers, body: &str, limits: RunLimits, kind: RunErrorKind) -> Tested {
    match run(workers, body, limits).result {
        Err(error) if error.kind == kind => Ok(()),
        other => Err(format!("{body}\n  expected: {kind:?}\n  but was:  {other:?}").into()),
    }
}

fn values(workers: &Workers) -> Tested {
    let cases = [
        ("csvRows('a,b\\r\\n\"c,\"\"\"d', ',')", json!([["a", "b"], ["c,\"d"]])),
        ("csvRows('', ',')", json!([])),
        ("[csvRows('\"a', ',') === undefined, csvRecords('a\\n\"', ',') === undefined]", json!([true, true])),
        ("csvRecords('a,b,a\\n1,2,3,4\\n\\n5', ',')", json!([{ "a": "3", "b": "2" }, { "a": "", "b": "" }])),
        // Integers come first, as in every object.
        ("csvRecords('b,1,a,0\\n1,2,3,4', ',').map(Object.keys)", json!([["0", "1", "b", "a"]])),
        ("csvRows(['a', 'b'], { toString: () => ',' })", json!([["a", "b"]])),
        ("csvRows('a' + ','.repeat(5000) + 'é€', ',')[0].slice(-2)", json!(["", "é€"])),
        ("[...csvRows('\\uD83Dx\\uDE00ÿ', 'x')[0].join()].map((c) => c.codePointAt(0))", {
            json!([0xd83d, 0x2c, 0xde00, 0xff])
        }),
        ("Array.from(csvRows('😀', '\\uD83D')[0][1], (c) => c.charCodeAt(0))", json!([0xde00])),
        // Texts are equal and name the same property, whether the engine has them as bytes or not.
        (
            "(() => { const [row] = csvRecords('k€,é,k\\n€,é,1', ','); return [row.k, row['\\u00e9'] === 'é', row['k€']]; })()",
            json!(["1", true, "€"]),
        ),
        (
            "(() => { const [row] = csvRecords('__proto__,x\\n1,2', ',');
               return [Object.getPrototypeOf(row) === Object.prototype, Object.getOwnPropertyDescriptors(row)['__proto__']]; })()",
            json!([true, { "value": "1", "writable": true, "enumerable": true, "configurable": true }]),
        ),
        (
            "(() => { const rows = csvRows('a,b\\nc', ','); rows.push(1); rows[0].push(2); delete rows[1][0];
               return [rows.length, rows[0], Array.isArray(rows[1]), rows[1].length]; })()",
            json!([3, ["a", "b", 2], true, 1]),
        ),
        (
            "(() => { try { csvRows(Symbol('a'), ','); } catch (error) { return error.name; } })()",
            json!("TypeError"),
        ),
        ("[typeof globalThis.csvRows, Object.keys(globalThis).length]", json!(["undefined", 0])),
    ];
    for (expression, expected) in cases {
        check(workers, &format!("return {expression};"), &expected)?;
    }
    Ok(())
}

fn tampering(workers: &Workers) -> Tested {
    let body = "let seen = '';
      const note = (on, name) => Object.defineProperty(on, name, {
        configurable: true, get() { seen += `get ${name} `; return 'wrong'; }, set() { seen += `set ${name} `; },
      });
      note(Object.prototype, 'a'); note(Object.prototype, '1'); note(Array.prototype, '0'); note(Array.prototype, '5');
      note(Object.prototype, '__proto__');
      Array.prototype.push = Array.prototype.map = String.prototype.split = String.prototype.slice = () => { seen += 'called '; };
      Object.freeze(Object.prototype); Object.freeze(Array.prototype);
      Object.fromEntries = Object.defineProperty = globalThis.Array = globalThis.String = undefined;
      const rows = csvRows('a,b\\n\"c\"\"\",d', ',');
      const [record] = csvRecords('a,1,__proto__,toString\\n1,2,3,4,5,6', ',');
      const asked = seen;
      return [asked, rows, Object.keys(record), Object.values(record)];";
    let expected =
        json!(["", [["a", "b"], ["c\"", "d"]], ["1", "a", "__proto__", "toString"], ["2", "1", "3", "4"]]);
    check(workers, body, &expected)
}

fn memory(workers: &Workers) -> Tested {
    let limits = RunLimits { heap_bytes: 16 << 20, ..limits() };
    for body in [
        // The copy of the text, many rows, many fields in a row, many columns, a field with quotes, wide characters.
        "return csvRows('x'.repeat(7_000_000), ',').length",
        "return csvRows('a\\n'.repeat(500_000), ',').length",
        "return csvRows(','.repeat(2_000_000), ',').length",
        "return csvRecords(','.repeat(3_000_000) + '\\n1', ',').length",
        "return csvRecords(Array.from({ length: 1000 }, (_, i) => `c${i}`).join() + '\\n1'.repeat(2000), ',').length",
        "return csvRows('\"' + '\"\"x'.repeat(1_500_000) + '\"', ',').length",
        "return csvRows('\"' + '€'.repeat(3_000_000) + '\"€', ',').length",
        "const kept = []; for (;;) kept.push(csvRecords('a,b\\n1,\"2\"\"\"x', ','));",
    ] {
        fails(workers, body, limits, RunErrorKind::Memory)?;
    }
    // What is not kept is given back.
    let body = "const text = 'a,b\\n' + '1,\"2\"\"\"x\\n'.repeat(2_000);
      for (let round = 0; round < 20; round++) {
        csvRows(text, ','); csvRecords(text, ','); csvRows(text + '\"', ','); csvRecords(text + '\"', ',');
      }
      return csvRecords(text, ',').length;";
    match run(workers, body, limits).result {
        Ok(value) if value == json!(2_000) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn cpu(workers: &Workers) -> Tested {
    let limits = RunLimits { cpu: Duration::from_millis(100), ..limits() };
    for body in [
        "return csvRows('\"' + 'x'.repeat(60_000_000), ',') === undefined",
        "return csvRows('\"' + '\"\"'.repeat(30_000_000), ',') === undefined",
        "return csvRecords('a' + 'x'.repeat(60_000_000), ',').length",
        "return csvRecords('a\\n' + ','.repeat(60_000_000), ',').length",
        "const text = 'a,b\\n1,2\\n'.repeat(1_000); for (;;) csvRecords(text, ',');",
    ] {
        let report = run(workers, body, limits);
        // Much less than what the call would take in a build without optimisation.
        let is_prompt = report.stats.cpu_ms < 400.0;
        match report.result {
            Err(error) if error.kind == RunErrorKind::CpuTime && is_prompt => {}
            other => return Err(format!("{body}\n  {} ms, {other:?}", report.stats.cpu_ms).into()),
        }
    }
    Ok(())
}

fn caught(workers: &Workers) -> Tested {
    let limits = RunLimits { cpu: Duration::from_millis(100), ..limits() };
    let body = "const text = '\"' + 'x'.repeat(30_000_000);
      for (;;) { try { csvRows(text, ','); } catch { /* goes on */ } }";
    fails(workers, body, limits, RunErrorKind::CpuTime)
}
