//! Whole graphs run in Node, with its module system driven by our links: what the engine will do.

use std::path::{Path, PathBuf};
use std::process::Command;

use tgp_compiler::{GraphBuilder, ModuleGraph};
use tgp_contract::RelativePath;

use crate::support::{Project, build};

const RUNNER: &str = r#"
import vm from 'node:vm';
import { readFileSync } from 'node:fs';
const { entry, modules, links, args } = JSON.parse(readFileSync(0, 'utf8'));
const context = vm.createContext({ console });
const esm = new Map();
const cache = new Map();
const load = (id) => {
  if (cache.has(id)) return cache.get(id).exports;
  const module = { exports: {} };
  cache.set(id, module);
  const wrapper = vm.runInContext(modules[id].code, context, { filename: id });
  wrapper.call(module.exports, module.exports, requireFrom(id), module, id, id);
  return module.exports;
};
const requireFrom = (id) => (specifier) => {
  const target = links[id]['require:' + specifier] ?? links[id][specifier];
  if (!target) throw new Error('cannot find ' + specifier);
  return modules[target].format === 'common_js' ? load(target) : esm.get(target).namespace;
};
const native = new vm.SyntheticModule(['requireFrom', 'load'], function () {
  this.setExport('requireFrom', requireFrom);
  this.setExport('load', load);
}, { context });
// The engine's parser, as far as these tests use it.
const csvRows = (text, separator) => {
  const quoted = (field) => field.slice(1, -1).replaceAll('""', '"');
  const row = (line) => line.split(new RegExp(`${separator}(?=(?:[^"]*"[^"]*")*[^"]*$)`))
    .map((field) => (field.startsWith('"') ? quoted(field) : field));
  return text.replace(/\r?\n$/, '').split(/\r?\n(?=(?:[^"]*"[^"]*")*[^"]*$)/).map(row);
};
const csvRecords = (text, separator) => {
  const [header, ...rows] = csvRows(text, separator);
  return rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ''])));
};
const csv = new vm.SyntheticModule(['csvRows', 'csvRecords'], function () {
  this.setExport('csvRows', csvRows);
  this.setExport('csvRecords', csvRecords);
}, { context });
const get = (id) => {
  if (id === 'tgp:require') return native;
  if (id === 'tgp:csv') return csv;
  if (!esm.has(id)) {
    esm.set(id, new vm.SourceTextModule(modules[id].code, {
      context, identifier: id,
      importModuleDynamically: async (specifier) => { const m = get(links[id][specifier]); await ready(m); return m; },
    }));
  }
  return esm.get(id);
};
const ready = async (m) => {
  if (m.status === 'unlinked') await m.link((specifier, from) => get(links[from.identifier][specifier]));
  await m.evaluate();
};
for (const id of Object.keys(modules)) if (modules[id].format === 'module') get(id);
const main = modules[entry].format === 'module' ? await (async () => { await ready(get(entry)); return get(entry).namespace.default; })() : load(entry);
const result = typeof main === 'function' ? await main(args) : main;
console.log(JSON.stringify(result));
"#;

/// The JSON a tool returns when its graph runs in Node, or nothing where there is no Node.
fn run(project: &Project, entry: &str, arguments: &str) -> Option<String> {
    let graph = project.graph(entry).unwrap();
    run_graph(&graph, project.path(), arguments)
}

fn run_graph(graph: &ModuleGraph, scratch: &Path, arguments: &str) -> Option<String> {
    let modules: serde_json::Value = serde_json::to_value(&graph.modules).unwrap();
    let input = serde_json::json!({
        "entry": graph.entry, "modules": modules, "links": graph.links,
        "args": serde_json::from_str::<serde_json::Value>(arguments).unwrap(),
    });
    let runner = scratch.join("runner.mjs");
    std::fs::write(&runner, RUNNER).unwrap();
    let data = scratch.join("input.json");
    std::fs::write(&data, input.to_string()).unwrap();
    let output = Command::new("node")
        .args(["--no-warnings", "--experimental-vm-modules"])
        .arg(&runner)
        .stdin(std::fs::File::open(&data).unwrap())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: node is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn es_modules_and_commonjs_meet() {
    let project = Project::new(&[
        (
            "tools/a.ts",
            "import whole, { named, hidden } from 'cjs';
             import * as star from 'esm';
             import { double } from './script';
             const again = require('cjs');
             export default async (args: { n: number }) => ({
               same: whole === again, named, hidden, star: [star.shown, star.fromCjs], kind: typeof double,
               lazy: (await import('cjs')).named, n: await require('./common')(args),
             });",
        ),
        ("tools/script.ts", "export const double = (n: number) => n * 2;"),
        ("tools/common.ts", "import maths = require('./script'); module.exports = (args: { n: number }) => maths.double(args.n);"),
    ])
    .allow(&["cjs", "esm"])
    .file("node_modules/cjs/index.js", "exports.named = 'named'; Object.assign(exports, { ['hid' + 'den']: 'hidden' }); exports.fromCjs = require('./part').part instanceof Function;")
    .file("node_modules/cjs/part.js", "'use strict'; exports.part = function () {};")
    .file("node_modules/esm/index.js", "export * from 'cjs'; export const shown = process.env.NODE_ENV;");
    if let Some(result) = run(&project, "tools/a.ts", r#"{"n": 21}"#) {
        assert_eq!(
            result,
            r#"{"same":true,"named":"named","hidden":"hidden","star":["production",true],"kind":"function","lazy":"named","n":42}"#
        );
    }
}

#[test]
fn the_standard_library_does_what_it_says() {
    let project = Project::new(&[(
        "tools/a.ts",
        "import * as std from '@tgp/std';
         const rows = [{ id: 2, city: 'Köln' }, { id: 1, city: 'Bonn' }, { id: 3, city: 'Köln' }];
         return {
           chunk: std.chunk([1, 2, 3], 2), groupBy: Object.keys(std.groupBy(rows, (row) => row.city)),
           keyBy: std.keyBy(rows, (row) => row.id)['1'], countBy: std.countBy(rows, (row) => row.city),
           uniq: std.uniq([1, 1, 2]), uniqBy: std.uniq(rows, (row) => row.city).length,
           partition: std.partition([1, 2, 3], (n) => n > 1),
           sortBy: std.sortBy(rows, [(row) => row.city, (row) => -row.id]).map((row) => row.id),
           descending: std.sortBy([1, 3, 2], (n) => n, { descending: true }),
           zip: std.zip([1, 2], ['a', 'b', 'c']), range: [std.range(3), std.range(1, 4), std.range(3, 0, -1)],
           numbers: [std.sum([1, 2, 3]), std.mean([1, 2]), std.median([3, 1, 2, 4]), std.quantile([1, 2, 3], 1), std.clamp(5, 0, 3)],
           empty: [std.sum([]), std.mean([]) ?? null, std.median([]) ?? null],
           round: [std.round(1.005, 2), std.round(-2.5), std.round(1234, -2), std.round(0.1 + 0.2, 10)],
           objects: [std.pick({ a: 1, b: 2 }, ['a']), std.omit({ a: 1, b: 2 }, ['a']), std.mapValues({ a: 1 }, (n) => n + 1)],
           equal: [std.deepEqual({ a: [1, { b: new Date(0) }] }, { a: [1, { b: new Date(0) }] }), std.deepEqual([1], [2]), std.deepEqual(NaN, NaN), std.deepEqual({ a: 1 }, { b: 1 }), std.deepEqual(new Map([[1, { a: 1 }]]), new Map([[1, { a: 1 }]]))],
           text: [std.slugify('Crème brûlée, fooBar!'), std.words('fooBar baz_qux'), std.capitalize('ab'), std.truncate('abcdef', 4)],
           csv: std.parseCsv('a,b\\r\\n1,\"x, \"\"y\"\"\\n\"\\n2,\\n'), toCsv: std.toCsv([{ a: 1, b: 'x,\"y\"' }, { a: null, b: { c: 1 } }]),
           round_trip: std.parseCsv(std.toCsv([{ a: 'line\\nbreak', b: '' }])),
         };",
    )]);
    if let Some(result) = run(&project, "tools/a.ts", "{}") {
        let expected = r#"{"chunk":[[1,2],[3]],"groupBy":["Köln","Bonn"],"keyBy":{"id":1,"city":"Bonn"},"countBy":{"Köln":2,"Bonn":1},"uniq":[1,2],"uniqBy":2,"partition":[[2,3],[1]],"sortBy":[1,3,2],"descending":[3,2,1],"zip":[[1,"a"],[2,"b"]],"range":[[0,1,2],[1,2,3],[3,2,1]],"numbers":[6,1.5,2.5,3,3],"empty":[0,null,null],"round":[1.01,-3,1200,0.3],"objects":[{"a":1},{"b":2},{"a":2}],"equal":[true,false,true,false,true],"text":["creme-brulee-foo-bar",["foo","Bar","baz","qux"],"Ab","abc…"],"csv":[{"a":"1","b":"x, \"y\"\n"},{"a":"2","b":""}],"toCsv":"a,b\n1,\"x,\"\"y\"\"\"\n,\"{\"\"c\"\":1}\"","round_trip":[{"a":"line\nbreak","b":""}]}"#;
        assert_eq!(result, expected);
    }
}

/// Real packages, when `TGP_PACKAGES` names a directory in which they are installed:
/// `npm i zod date-fns lodash react semver dayjs rxjs yaml papaparse ajv uuid`.
#[test]
fn real_packages_run_unmodified() {
    let Some(directory) = std::env::var_os("TGP_PACKAGES").map(PathBuf::from) else {
        eprintln!("skipped: TGP_PACKAGES names no directory with packages");
        return;
    };
    let samples = [
        (
            "import { z } from 'zod'; z.object({ n: z.number().min(1), s: z.string().email() }).safeParse({ n: 2, s: 'a@b.co' }).success",
            "true",
        ),
        ("import * as z from 'zod/v4'; z.toJSONSchema(z.object({ n: z.number() })).type", "\"object\""),
        ("const { z } = require('zod'); module.exports = () => z.string().parse('x');", "\"x\""),
        (
            "import { format, addDays } from 'date-fns'; format(addDays(new Date(2024, 0, 31), 1), 'yyyy-MM-dd')",
            "\"2024-02-01\"",
        ),
        ("import { format } from 'date-fns/format'; format(new Date(2024, 0, 31), 'EEEE')", "\"Wednesday\""),
        (
            "import _, { chunk } from 'lodash'; [chunk([1, 2, 3], 2), _.camelCase('a b')]",
            "[[[1,2],[3]],\"aB\"]",
        ),
        ("import { createElement } from 'react'; createElement('a').type", "\"a\""),
        (
            "import dayjs from 'dayjs'; dayjs('2024-01-31').add(1, 'day').format('YYYY-MM-DD')",
            "\"2024-02-01\"",
        ),
        (
            "import { of, map, lastValueFrom } from 'rxjs'; await lastValueFrom(of(1).pipe(map((n) => n + 1)))",
            "2",
        ),
        ("import { v5, validate } from 'uuid'; validate(v5('a', v5.DNS))", "true"),
        ("import { parse } from 'yaml'; parse('a: [1, 2]')", "{\"a\":[1,2]}"),
    ];
    let mut wrong = Vec::new();
    for (source, expected) in samples {
        let scratch = Project::new(&[("tools/a.ts", source)]).allow(&[
            "zod",
            "date-fns",
            "lodash",
            "react",
            "semver",
            "dayjs",
            "rxjs",
            "yaml",
            "papaparse",
            "ajv",
            "uuid",
        ]);
        let started = std::time::Instant::now();
        let entry = RelativePath::new("tools/a.ts").unwrap();
        match build(GraphBuilder::new(scratch.host_in(directory.clone()), &entry)) {
            Ok(graph) => {
                let took = started.elapsed();
                let bytes: usize = graph.modules.values().map(|compiled| compiled.code.len()).sum();
                eprintln!("{} modules, {bytes} bytes, {took:?}: {source}", graph.modules.len());
                let result = run_graph(&graph, scratch.path(), "{}");
                if result.is_some_and(|result| result != expected) {
                    wrong.push(format!("{source}: not {expected}"));
                }
            }
            Err(error) => wrong.push(format!("{source}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
