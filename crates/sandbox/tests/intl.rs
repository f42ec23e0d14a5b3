//! `Intl` in a real worker. This binary is the worker, too: it starts itself.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};
use tgp_sandbox::{
    Bridge, EmitRequest, Frontend, FrontendReply, ModuleCode, ModuleKind, Program, RunError, RunErrorKind,
    RunInput, RunLimits, Sandbox, SandboxOptions, ToolRunOptions, ToolRunReport, WorkerCommand, worker_main,
};

/// Rows of what Node.js gives, and of what ICU4X gives instead.
const TABLE: &str = include_str!("../../intl/tests/table.tsv");
const DIFFERENCES: &str = include_str!("../../intl/tests/differences.tsv");

/// Takes JavaScript as it is.
struct Plain;

impl Frontend for Plain {
    fn handle(&self, request: &[u8]) -> FrontendReply {
        let (id, code) = serde_json::from_slice::<(String, String)>(request).unwrap();
        let kind = if id == "tool" { ModuleKind::Module } else { ModuleKind::CommonJs };
        let emit = EmitRequest { id, kind, code, keep_debug_info: true };
        FrontendReply { answer: Vec::new(), emit: Some(emit) }
    }
}

struct NoCalls;

#[async_trait]
impl Bridge for NoCalls {
    async fn call(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, ToolError> {
        Err(ToolError::new(Code::Security, format!("no call of {name}")))
    }
}

struct Worker(Sandbox);

impl Worker {
    async fn start() -> Self {
        let limits = RunLimits {
            cpu: Duration::from_secs(20),
            wall: Duration::from_secs(60),
            heap_bytes: 128 << 20,
            ..RunLimits::default()
        };
        let options =
            SandboxOptions { worker: WorkerCommand::this_binary(), pool_size: 1, limits, ceiling: limits };
        let sandbox = Self(Sandbox::new(options).unwrap());
        sandbox.0.warm().await.unwrap();
        sandbox
    }

    async fn compile(&self, id: &str, code: &str) -> Vec<u8> {
        let request = serde_json::to_vec(&(id, code)).unwrap();
        self.0.compile(request).await.unwrap().bytecode.unwrap()
    }

    async fn report(&self, code: &str, arguments: Value) -> ToolRunReport {
        let bytecode = self.compile("tool", code).await;
        let module = ModuleCode { id: "tool".into(), kind: ModuleKind::Module, bytecode, links: Vec::new() };
        let program = Program { entry: "tool".into(), modules: vec![Arc::new(module)] };
        let input = RunInput { arguments, call_default: true, environment: Vec::new() };
        let options = ToolRunOptions { limits: self.0.options().limits, ..ToolRunOptions::default() };
        self.0.run(&program, input, options, &NoCalls).await.unwrap()
    }

    /// The result of a function's body.
    async fn run(&self, body: &str, arguments: Value) -> Result<Value, RunError> {
        let report = self.report(&format!("export default (args) => {{ {body} }};"), arguments).await;
        report.result
    }

    async fn check(&self, expression: &str, expected: Value) {
        let result = self.run(&format!("return {expression};"), json!({})).await;
        assert_eq!(result, Ok(expected), "{expression}");
    }

    /// Class and message of what `expression` throws.
    async fn thrown(&self, expression: &str) -> String {
        let body = format!(
            "try {{ const value = {expression}; return 'no error: ' + JSON.stringify(value); }} \
             catch (error) {{ return error.name + ': ' + error.message; }}"
        );
        self.run(&body, json!({})).await.unwrap().as_str().unwrap().to_owned()
    }
}

const EVALUATE: &str = r"
function resultOf([kind, locale, options, input]) {
  switch (kind) {
    case 'Collator': return new Intl.Collator(locale, options).compare(...input);
    case 'RelativeTimeFormat': return new Intl.RelativeTimeFormat(locale, options).format(...input);
    case 'PluralRules': return new Intl.PluralRules(locale, options).select(input);
    case 'Segmenter': return [...new Intl.Segmenter(locale, options).segment(input)].map(({ segment }) => segment);
    case 'DisplayNames': return new Intl.DisplayNames(locale, options).of(input);
    case 'Upper': return input.toLocaleUpperCase(locale);
    case 'Lower': return input.toLocaleLowerCase(locale);
    case 'NumberParts': return new Intl.NumberFormat(locale, options).formatToParts(input).map(({ type, value }) => type + ':' + value);
    case 'DateParts': return new Intl.DateTimeFormat(locale, options).formatToParts(input).map(({ type, value }) => type + ':' + value);
    case 'NumberFormat': return Number(input).toLocaleString(locale, options);
    default: return new Intl[kind](locale, options).format(input);
  }
}
return args.rows.map(resultOf);
";

async fn every_row_of_the_table(worker: &Worker) {
    let listed: std::collections::BTreeMap<&str, &str> =
        DIFFERENCES.lines().filter_map(|line| line.rsplit_once('\t')).collect();
    let mut rows = Vec::new();
    let mut expected = Vec::new();
    for line in TABLE.lines() {
        let (key, node) = line.rsplit_once('\t').unwrap();
        let mut columns = key.split('\t');
        let mut text = || columns.next().unwrap();
        let (kind, locale) = (text(), text());
        let parsed: Vec<Value> = columns.map(|column| serde_json::from_str(column).unwrap()).collect();
        rows.push(json!([kind, locale, parsed[0], parsed[1]]));
        expected.push(serde_json::from_str::<Value>(listed.get(key).unwrap_or(&node)).unwrap());
    }
    let results = worker.run(EVALUATE, json!({ "rows": rows })).await.unwrap();
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), expected.len());
    for ((row, result), expected) in rows.iter().zip(results).zip(&expected) {
        assert_eq!(result, expected, "{row}");
    }
}

async fn methods_of_values(worker: &Worker) {
    let cases = [
        ("(1234567.891).toLocaleString('en-US',{style:'currency',currency:'USD'})", json!("$1,234,567.89")),
        (
            "new Date('2024-03-10T02:00:00Z').toLocaleDateString('en-US',{timeZone:'America/New_York'})",
            json!("3/9/2024"),
        ),
        ("['a','B','ä','Z'].sort((a,b)=>a.localeCompare(b))", json!(["a", "ä", "B", "Z"])),
        (
            "['item10','item9'].sort((a,b)=>a.localeCompare(b,undefined,{numeric:true}))",
            json!(["item9", "item10"]),
        ),
        ("'a'.localeCompare('A',undefined,{sensitivity:'base'})", json!(0)),
        ("(1234.5).toLocaleString()", json!("1,234.5")),
        ("12345678901234567890n.toLocaleString('de')", json!("12.345.678.901.234.567.890")),
        ("new Date(0).toLocaleString()", json!("1/1/1970, 12:00:00 AM")),
        ("new Date(0).toLocaleTimeString('de')", json!("00:00:00")),
        ("new Date(0).toLocaleDateString('ja')", json!("1970/1/1")),
        ("new Date(NaN).toLocaleString()", json!("Invalid Date")),
        (
            "[1234.5, null, new Date(0), [1000]].toLocaleString('de', {timeZone:'UTC'})",
            json!("1.234,5,,1.1.1970, 00:00:00,1.000"),
        ),
        ("(() => { const a = [1]; a.push(a); return a.toLocaleString(); })()", json!("1,")),
        ("new Uint16Array([1000, 2]).toLocaleString('en')", json!("1,000,2")),
        // dayjs reads such a text back.
        (
            "new Date(new Date(1.7e12).toLocaleString('en-US', {timeZone: 'America/New_York'})).toISOString()",
            json!("2023-11-14T17:13:20.000Z"),
        ),
        ("'I'.toLocaleLowerCase('tr')", json!("ı")),
        ("'straße'.toLocaleUpperCase()", json!("STRASSE")),
    ];
    for (expression, expected) in cases {
        worker.check(expression, expected).await;
    }
}

async fn shape_of_the_object(worker: &Worker) {
    let cases = [
        ("Object.prototype.toString.call(Intl)", json!("[object Intl]")),
        ("Object.keys(Intl)", json!([])),
        ("Intl.NumberFormat('de').format(1.5)", json!("1,5")),
        ("new Intl.NumberFormat() instanceof Intl.NumberFormat", json!(true)),
        ("[1, 2].map(new Intl.NumberFormat('en', {minimumFractionDigits: 1}).format)", json!(["1.0", "2.0"])),
        ("['b', 'a'].sort(new Intl.Collator('en').compare)", json!(["a", "b"])),
        (
            "class extends Intl.DateTimeFormat {}.name + typeof new (class extends Intl.DateTimeFormat {})('en').format",
            json!("function"),
        ),
        ("Intl.getCanonicalLocales(['EN-us', 'de', 'en-US'])", json!(["en-US", "de"])),
        ("Intl.NumberFormat.supportedLocalesOf(['de-AT', 'tlh'])", json!(["de-AT"])),
        ("new Intl.DateTimeFormat().resolvedOptions().timeZone", json!("UTC")),
        ("new Intl.DateTimeFormat().resolvedOptions().locale", json!("en-US")),
        ("new Intl.NumberFormat('tlh').resolvedOptions().locale", json!("en-US")),
        (
            "new Intl.DateTimeFormat('en', {timeZone: 'us/pacific'}).resolvedOptions().timeZone",
            json!("America/Los_Angeles"),
        ),
        ("Intl.DateTimeFormat('en-US', {hour: 'numeric'}).resolvedOptions().hourCycle", json!("h12")),
        (
            "new Intl.PluralRules('ru').resolvedOptions().pluralCategories",
            json!(["few", "many", "one", "other"]),
        ),
        ("new Intl.Locale('zh-TW').maximize().toString()", json!("zh-Hant-TW")),
        (
            "[new Intl.Locale('en-Latn-US-u-hc-h23')].map((l) => [l.language, l.script, l.region, l.hourCycle, l.baseName])[0]",
            json!(["en", "Latn", "US", "h23", "en-Latn-US"]),
        ),
        ("Intl.supportedValuesOf('timeZone').includes('Europe/Berlin')", json!(true)),
        (
            "new Intl.Segmenter('en', {granularity: 'word'}).segment('Hi you').containing(4)",
            json!({"segment": "you", "index": 3, "input": "Hi you", "isWordLike": true}),
        ),
        (
            "new Intl.RelativeTimeFormat('en').formatToParts(-2, 'days')[0]",
            json!({"type": "integer", "value": "2", "unit": "day"}),
        ),
        (
            "new Intl.NumberFormat('en').format('12345678901234567890.5')",
            json!("12,345,678,901,234,567,890.5"),
        ),
        ("new Intl.NumberFormat('en').format(-0)", json!("-0")),
        ("new Intl.NumberFormat('en', {maximumFractionDigits: 100}).format(0.1)", json!("0.1")),
    ];
    for (expression, expected) in cases {
        worker.check(expression, expected).await;
    }
}

async fn hostile_input_throws_and_never_ends_the_worker(worker: &Worker) {
    let cases = [
        ("new Intl.NumberFormat('x'.repeat(1e6))", "RangeError: invalid language tag"),
        ("new Intl.NumberFormat('en-' + 'a-'.repeat(1e5))", "RangeError: invalid language tag"),
        ("new Intl.NumberFormat('not a tag')", "RangeError: invalid language tag"),
        ("new Intl.NumberFormat(Array(1e9))", "RangeError: too many locales"),
        ("new Intl.NumberFormat([1])", "TypeError: a locale must be"),
        ("new Intl.NumberFormat(null)", "TypeError: locales must be"),
        ("new Intl.NumberFormat('en', null)", "TypeError: options must be"),
        ("new Intl.NumberFormat('en', {get style() { throw new Error('mine'); }})", "Error: mine"),
        ("new Intl.NumberFormat('en', {style: Symbol('s')})", "TypeError"),
        ("new Intl.NumberFormat('en', {style: 'x'.repeat(1e6)})", "RangeError: invalid value"),
        ("new Intl.NumberFormat('en', {maximumFractionDigits: 101})", "RangeError"),
        ("new Intl.NumberFormat('en', {maximumFractionDigits: NaN})", "RangeError"),
        ("new Intl.NumberFormat('en', {minimumFractionDigits: 5, maximumFractionDigits: 2})", "RangeError"),
        ("new Intl.NumberFormat('en', {style: 'currency'})", "TypeError: option `currency` is required"),
        ("new Intl.NumberFormat('en', {style: 'currency', currency: '€'})", "RangeError: invalid currency"),
        ("new Intl.NumberFormat('en', {style: 'unit', unit: 'parsec'})", "RangeError: unsupported unit"),
        ("new Intl.NumberFormat('sw', {style: 'unit', unit: 'meter'})", "RangeError: units have no data"),
        ("new Intl.NumberFormat('en').format(10n ** 40000n)", "RangeError: cannot format the number"),
        ("new Intl.NumberFormat('en').format(Symbol())", "TypeError"),
        (
            "new Intl.NumberFormat('en').formatRange(1, 2)",
            "TypeError: Intl.NumberFormat.formatRange is not supported",
        ),
        ("Intl.NumberFormat.prototype.formatToParts.call({}, 1)", "TypeError"),
        ("new Intl.DateTimeFormat('en', {timeZone: 'Mars/Olympus'})", "RangeError: invalid time zone"),
        ("new Intl.DateTimeFormat('en', {timeZone: '../../etc/passwd'})", "RangeError: invalid time zone"),
        ("new Intl.DateTimeFormat('en', {timeZone: '+25:00'})", "RangeError: invalid time zone"),
        ("new Intl.DateTimeFormat('en').format(NaN)", "RangeError: invalid time value"),
        ("new Intl.DateTimeFormat('en').format(8.65e15)", "RangeError: invalid time value"),
        (
            "new Intl.DateTimeFormat('en', {dayPeriod: 'short'})",
            "RangeError: option `dayPeriod` is not supported",
        ),
        (
            "new Intl.DateTimeFormat('en', {year: 'numeric', day: 'numeric'})",
            "RangeError: unsupported combination",
        ),
        ("new Intl.DateTimeFormat('en', {calendar: 'hebrew'})", "RangeError: unsupported calendar"),
        ("new Intl.DateTimeFormat('en', {dateStyle: 'short', month: 'long'})", "TypeError"),
        ("new Date(0).toLocaleDateString('en', {timeStyle: 'short'})", "TypeError"),
        ("Date.prototype.toLocaleString.call({})", "TypeError"),
        ("new Intl.Collator('en', {usage: 'search'})", "RangeError: usage `search` is not supported"),
        ("new Intl.ListFormat('en').format([1])", "TypeError: an item of the list"),
        ("new Intl.ListFormat('en', 'x')", "TypeError: options must be"),
        ("new Intl.RelativeTimeFormat('en').format(Infinity, 'day')", "RangeError"),
        ("new Intl.RelativeTimeFormat('en').format(1, 'fortnight')", "RangeError: invalid unit"),
        ("new Intl.DisplayNames('en')", "TypeError"),
        ("new Intl.DisplayNames('en', {type: 'region'}).of('nowhere')", "RangeError: invalid region code"),
        ("Intl.supportedValuesOf('x')", "RangeError"),
        ("Intl.Segmenter('en')", "TypeError"),
        ("new Intl.Segmenter('en').segment('a'.repeat(3e6))", "RangeError: the text is too long"),
        ("new Intl.Segmenter('en').segment('\\ud800a').containing(0).segment.length", "no error: 1"),
        ("new Intl.Collator('en').compare('\\ud800', '\\udfff')", "no error: 0"),
        (
            "[...'abc'].map((c, i) => new Date(i * 8.64e15 / 3).toLocaleString('th', {dateStyle: 'full', timeZone: 'Africa/Monrovia'})).length",
            "no error: 3",
        ),
    ];
    for (expression, expected) in cases {
        let thrown = worker.thrown(expression).await;
        assert!(thrown.starts_with(expected), "{expression}: {thrown}");
    }
}

async fn formatters_are_bounded_and_a_loop_meets_the_limit(worker: &Worker) {
    let many = "let text = ''; for (let digits = 0; digits < 3000; digits += 1) { \
                text = new Intl.NumberFormat('en', {minimumIntegerDigits: 1 + digits % 21, maximumFractionDigits: digits % 20}).format(digits); } return text;";
    worker.run(many, json!({})).await.unwrap();
    let looping = "new Intl.NumberFormat('en', {get style() { for (;;); }});";
    let bytecode = worker.compile("tool", &format!("export default () => {{ {looping} }};")).await;
    let module = ModuleCode { id: "tool".into(), kind: ModuleKind::Module, bytecode, links: Vec::new() };
    let program = Program { entry: "tool".into(), modules: vec![Arc::new(module)] };
    let input = RunInput { arguments: json!({}), call_default: true, environment: Vec::new() };
    let limits = RunLimits { cpu: Duration::from_millis(200), ..worker.0.options().limits };
    let options = ToolRunOptions { limits, ..ToolRunOptions::default() };
    let report = worker.0.run(&program, input, options, &NoCalls).await.unwrap();
    assert_eq!(report.result.unwrap_err().kind, RunErrorKind::CpuTime);
}

/// The getter is still in place, and the heap is smaller than that of a run that loads the script.
async fn a_tool_without_intl_does_not_load_it(worker: &Worker) {
    let getter = "typeof Object.getOwnPropertyDescriptor(globalThis, 'Intl').get";
    worker.check(&format!("['A'.toLocaleLowerCase(), {getter}]"), json!(["a", "function"])).await;
    worker.check(&format!("[typeof Intl, {getter}]"), json!(["object", "undefined"])).await;
    let without = worker.report("export default () => 1;", json!({})).await;
    let with = worker.report("export default () => typeof Intl;", json!({})).await;
    let (without, with) = (without.stats, with.stats);
    assert!(with.heap_peak_bytes > without.heap_peak_bytes + 20_000, "{without:?} {with:?}");
    println!("without Intl: {without:?}\nwith Intl: {with:?}");
}

fn main() -> std::process::ExitCode {
    if let Some(code) = worker_main(&Plain) {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let worker = Worker::start().await;
        a_tool_without_intl_does_not_load_it(&worker).await;
        methods_of_values(&worker).await;
        shape_of_the_object(&worker).await;
        hostile_input_throws_and_never_ends_the_worker(&worker).await;
        formatters_are_bounded_and_a_loop_meets_the_limit(&worker).await;
        every_row_of_the_table(&worker).await;
    });
    println!("test result: ok. Intl in a worker");
    std::process::ExitCode::SUCCESS
}
