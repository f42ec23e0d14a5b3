//! `@tgp/std` as tools use it: what it computes does not depend on how fast it is.

use serde_json::json;

use crate::support::{Project, code, result, run};

/// The parser as it was before it became native, character by character, and texts made at random.
const CSV: &str = r#"
import { parseCsv, parseCsvRows } from '@tgp/std';

function plainRows(text: string, { separator = ',' }: { separator?: string } = {}): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = '';
  let quoted = false;
  let started = false;
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const endField = (): void => {
    row.push(field);
    field = '';
  };
  const endRow = (): void => {
    endField();
    rows.push(row);
    row = [];
    started = false;
  };
  for (let index = 0; index < source.length; index++) {
    const character = source.charAt(index);
    if (quoted) {
      if (character !== '"') field += character;
      else if (source.charAt(index + 1) === '"') {
        field += '"';
        index++;
      } else quoted = false;
      continue;
    }
    if (character === '\r' && source.charAt(index + 1) === '\n') continue;
    if (character === '\n' || character === '\r') {
      endRow();
      continue;
    }
    started = true;
    if (character === separator) endField();
    else if (character === '"' && field === '') quoted = true;
    else field += character;
  }
  if (quoted) throw new SyntaxError('parseCsv: a quoted field is not closed');
  if (started) endRow();
  return rows;
}

function plainRecords(text: string, options: { separator?: string } = {}): Record<string, string>[] {
  const [header = [], ...rows] = plainRows(text, options);
  return rows
    .filter((row) => row.length > 1 || row[0] !== '')
    .map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ''])));
}

const PIECES = [
  'a', 'b', ',', ',', '"', '"', '""', '\n', '\r', '\r\n', ' ', 'é', 'ÿ', '€', '😀', '\uD83D', '\uDE00', ';', '\t', '\uFEFF', '__proto__',
  'toString', '1', '0', '\u0000', '\u2028', 'x'.repeat(1100), '€'.repeat(600),
];
// Texts of few of them have longer rows, and more quotes that close.
const FEW = ['a', ',', ',', ';', '"', '"', '\n', '€'];
const SEPARATORS = [undefined, ',', ';', '\t', '', ',,', '"', '\n', '\r', 'a', 'é', '€', '\uD83D', '\uDE00', '\uFEFF', '\u0000'];

const outcome = (work: () => unknown): string => {
  try {
    return JSON.stringify(work());
  } catch (error: any) {
    return `${error.name}: ${error.message}`;
  }
};

export default (args: { seed: number; texts: number }): unknown => {
  let state = args.seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
  };
  for (let count = 0; count < args.texts; count++) {
    const pieces = random(3) === 0 ? FEW : PIECES;
    const text = Array.from({ length: random(24) }, () => pieces[random(pieces.length)]).join('');
    const separator = SEPARATORS[random(SEPARATORS.length)];
    const options = separator === undefined ? {} : { separator };
    const rows = [outcome(() => parseCsvRows(text, options)), outcome(() => plainRows(text, options))];
    const records = [outcome(() => parseCsv(text, options)), outcome(() => plainRecords(text, options))];
    if (rows[0] !== rows[1] || records[0] !== records[1]) return { text, separator, rows, records };
  }
  return 'the same';
};
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn csv_is_read_as_before_whatever_the_text() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 60_000, "wallMs": 120_000 } })).await;
    for seed in [1, 77, 4242] {
        let answer = run(&kernel, &project, CSV, json!({ "seed": seed, "texts": 2_000 })).await;
        assert_eq!(result(&answer), "the same", "seed {seed}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn csv_of_every_kind_is_read() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "import { parseCsv, parseCsvRows, toCsv } from '@tgp/std';
export default () => [
  parseCsv('\\uFEFFid,name\\r\\n1,\"Müller, \"\"Ada\"\"\"\\r\\n\\r\\n2,\"two\\nlines\"\\r\\n3'),
  parseCsvRows('a;b\\n;\\n\"\";\"\"', { separator: ';' }),
  parseCsv(toCsv([{ a: 'x,y', b: 'say \"hi\"', c: 'l1\\nl2' }])),
  Object.keys(parseCsv('__proto__,constructor\\n1,2')[0]),
];";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(
        result(&answer),
        json!([
            [{ "id": "1", "name": "Müller, \"Ada\"" }, { "id": "2", "name": "two\nlines" }, { "id": "3", "name": "" }],
            [["a", "b"], ["", ""], ["", ""]],
            [{ "a": "x,y", "b": "say \"hi\"", "c": "l1\nl2" }],
            ["__proto__", "constructor"],
        ])
    );
    kernel.shutdown().await;
}

/// Each case is the text, the separator, and the rows and records or the error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn csv_of_unusual_forms_is_read() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "import { parseCsv, parseCsvRows } from '@tgp/std';
const outcome = (work: () => unknown): unknown => {
  try { return work(); } catch (error: any) { return `${error.name}: ${error.message}`; }
};
export default (args: { cases: { text: string; separator: string }[] }) =>
  args.cases.map(({ text, separator }) => [
    outcome(() => parseCsvRows(text, { separator })), outcome(() => parseCsv(text, { separator })),
  ]);";
    let unclosed = "SyntaxError: parseCsv: a quoted field is not closed";
    let table = [
        ("", ",", json!([]), json!([])),
        ("\n", ",", json!([[""]]), json!([])),
        ("\n\n1", ",", json!([[""], [""], ["1"]]), json!([{ "": "1" }])),
        ("a,b\n\n1\n1,2,3", ",", json!([["a", "b"], [""], ["1"], ["1", "2", "3"]]), {
            json!([{ "a": "1", "b": "" }, { "a": "1", "b": "2" }])
        }),
        ("a\r\rb\n\rc\r\n", ",", json!([["a"], [""], ["b"], [""], ["c"]]), {
            json!([{ "a": "b" }, { "a": "c" }])
        }),
        ("a\n\"\"\n,", ",", json!([["a"], [""], ["", ""]]), json!([{ "a": "" }])),
        ("a,a,b\n1,2,3\n4", ",", json!([["a", "a", "b"], ["1", "2", "3"], ["4"]]), {
            json!([{ "a": "2", "b": "3" }, { "a": "", "b": "" }])
        }),
        ("a\n\"x\"y\"z\"\n x\"y", ",", json!([["a"], ["xy\"z\""], [" x\"y"]]), {
            json!([{ "a": "xy\"z\"" }, { "a": " x\"y" }])
        }),
        ("a\n\"\"\"x\"\"\"", ",", json!([["a"], ["\"x\""]]), json!([{ "a": "\"x\"" }])),
        ("\u{feff}\"a\"\n\u{feff}1", ",", json!([["a"], ["\u{feff}1"]]), json!([{ "a": "\u{feff}1" }])),
        ("\u{feff}\u{feff}a\n1", ",", json!([["\u{feff}a"], ["1"]]), json!([{ "\u{feff}a": "1" }])),
        ("a;b\n1,\"2\";3", ";", json!([["a", "b"], ["1,\"2\"", "3"]]), json!([{ "a": "1,\"2\"", "b": "3" }])),
        ("a\"b\n\"1", "\"", json!([["a", "b"], ["", "1"]]), json!([{ "a": "", "b": "1" }])),
        ("a,b\n1,2", "", json!([["a,b"], ["1,2"]]), json!([{ "a,b": "1,2" }])),
        ("a,b\n1,2", "\n", json!([["a,b"], ["1,2"]]), json!([{ "a,b": "1,2" }])),
        ("a::b\n1::2", "::", json!([["a::b"], ["1::2"]]), json!([{ "a::b": "1::2" }])),
        ("ключ€é\n😀", "€", json!([["ключ", "é"], ["😀"]]), json!([{ "ключ": "😀", "é": "" }])),
        ("a,\"b", ",", json!(unclosed), json!(unclosed)),
        ("a\n\"b\"\"", ",", json!(unclosed), json!(unclosed)),
    ];
    let cases: Vec<_> =
        table.iter().map(|(text, separator, ..)| json!({ "text": text, "separator": separator })).collect();
    let answer = run(&kernel, &project, source, json!({ "cases": cases })).await;
    let answers = result(&answer);
    for (index, (text, separator, rows, records)) in table.iter().enumerate() {
        assert_eq!(answers[index], json!([rows, records]), "{text:?} by {separator:?}");
    }
    kernel.shutdown().await;
}

/// What has no type in TypeScript fails as it did, or is taken as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn csv_of_what_is_no_text_is_refused() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "import { parseCsv, parseCsvRows } from '@tgp/std';
const outcome = (...values: unknown[]): unknown => {
  try { return (parseCsvRows as any)(...values); } catch (error: any) { return error.name; }
};
export default () => {
  const before = outcome('a;b\\n\"1', undefined);
  Object.defineProperty(Object.prototype, 'a', { configurable: true, set() { throw new Error('asked'); } });
  Object.defineProperty(Array.prototype, '0', { configurable: true, set() { throw new Error('asked'); } });
  return [
    before, outcome(), outcome(null), outcome(5), outcome({}), outcome(Symbol('a')), outcome('a', null), outcome('a', { separator: null }),
    outcome('1,2', { separator: 5 }), outcome('1,2', 7), outcome(new String('1,2')), outcome('1,2', { separator: undefined }),
    parseCsv('a,__proto__\\n1,2').map((record) => [Object.keys(record), record.a]),
  ];
};";
    let answer = run(&kernel, &project, source, json!({})).await;
    let (wrong, two) = (json!("TypeError"), json!([["1", "2"]]));
    assert_eq!(
        result(&answer),
        json!([
            "SyntaxError",
            wrong,
            wrong,
            wrong,
            wrong,
            wrong,
            wrong,
            wrong,
            [["1,2"]],
            two,
            two,
            two,
            [[["a", "__proto__"], "1"]],
        ])
    );
    kernel.shutdown().await;
}

/// The caps of a run hold inside the parser.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn csv_of_any_size_stays_within_the_limits() {
    let project = Project::new();
    let small = json!({ "sandbox": { "cpuMs": 60_000, "wallMs": 120_000, "memoryMb": 32 } });
    let kernel = project.kernel(small).await;
    for text in ["'a,b\\n' + '1,2\\n'.repeat(1_000_000)", "','.repeat(8_000_000)", "'x'.repeat(12_000_000)"] {
        let source =
            format!("import {{ parseCsv }} from '@tgp/std';\nexport default () => parseCsv({text}).length;");
        let answer = run(&kernel, &project, &source, json!({})).await;
        assert_eq!(code(&answer), "ERR_ISOLATE_MEMORY", "{text}");
    }
    kernel.shutdown().await;
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 300 } })).await;
    let source = "import { parseCsv } from '@tgp/std';
export default () => { const text = 'a,b\\n1,\"2\"\\n'.repeat(10_000); for (;;) parseCsv(text); };";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(code(&answer), "ERR_ISOLATE_TIMEOUT");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_sorted_and_counted_as_before() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "import { countBy, omit, sortBy } from '@tgp/std';
const people = [{ n: 'b', a: 2 }, { n: 'a', a: 2 }, { n: 'c', a: 1 }];
let asked = 0;
export default () => [
  sortBy(people, [(p) => p.a, (p) => p.n]).map((p) => p.n).join(''),
  sortBy(people, (p) => p.a).map((p) => p.n).join(''),
  sortBy(people, (p) => p.a, { descending: true }).map((p) => p.n).join(''),
  sortBy([new Date(2), new Date(1)], (d) => d).map((d) => d.getTime()),
  sortBy([3, undefined, 1] as number[], (n) => n).length,
  sortBy([2n, 1n], (n) => n).join(),
  countBy(['x', 'y', 'x'], (text) => { asked++; return text; }),
  asked,
  omit({ a: 1, b: 2, c: 3 }, ['a', 'c']),
];";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(
        result(&answer),
        json!(["cab", "cba", "bac", [1, 2], 3, "1,2", { "x": 2, "y": 1 }, 3, { "b": 2 }])
    );
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_push_of_ones_own_got_a_long_list_in_parts() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "class Bag {
  calls: number[] = [];
  push(...items: number[]): number { this.calls.push(items.length); return items.length; }
}
export default () => {
  const bag = new Bag();
  const list = Array.from({ length: 60_000 }, (_, index) => index);
  return [bag.push(...list), bag.calls];
};";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(result(&answer), json!([60_000, [60_000]]));
    kernel.shutdown().await;
}

/// The engine takes 65,535 arguments in one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_lists_can_be_spread_where_parts_give_the_same() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "export default () => {
  const long = Array.from({ length: 100_000 }, (_, index) => (index * 7919) % 100_003);
  const rows: number[] = [-1];
  const length = rows.push(...long);
  const twice = [...long];
  twice.push(...twice);
  const { push } = rows;
  return [
    Math.max(...long), Math.min(...long), Math.max(1e9, ...long, ...long), Math.max(...new Set(long)),
    Math.min(...new Float64Array(long)), String(Math.max(...[])), String(Math.max(...[1, NaN])), Object.is(Math.min(...[0, -0]), -0),
    length, rows.length, rows[0], rows[1] === long[0], rows.at(-1) === long.at(-1), twice.length,
    typeof push, Math.max(...'123'), [1].push(...[2, 3]),
  ];
};";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(
        result(&answer),
        json!([
            100_002,
            0,
            1_000_000_000,
            100_002,
            0,
            "-Infinity",
            "NaN",
            true,
            100_001,
            100_001,
            -1,
            true,
            true,
            200_000,
            "function",
            3,
            3
        ])
    );
    // A name of the source is not the global, and what cannot be spread is named as the source writes it.
    let source = "const Math = { max: (...values: number[]) => values.length };
export default (args: { list?: number[] }) => {
  const rows: number[] = [];
  const __spread = Math.max(...[1, 2]);
  try { rows.push(...(args.list as number[])); } catch (error: any) { return [__spread, error.name]; }
};";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(result(&answer), json!([2, "TypeError"]));
    kernel.shutdown().await;
}
