//! Valid TypeScript and JavaScript is read whole, in all its forms: what is imported behind it is an edge.

use serde_json::json;

use crate::support::{Project, committed, ingest, rows};

/// Code that a compiler accepts, by the ending of its file. An import of the page follows each of them.
const VALID: &[(&str, &str)] = &[
    ("ts", "export interface G {\n  <K extends string>(key: K): K\n  <K extends number>(key: K): K\n}\n"),
    ("ts", "export interface G {\n  (a: string): void\n  (a: number): void\n}\n"),
    ("ts", "export interface G {\n  new <T>(a: T): G\n  new <T>(a: T, b: T): G\n}\n"),
    ("ts", "export interface G {\n  get<T>(a: T): T\n  <T>(b: T): T\n  readonly x: 1\n}\n"),
    ("ts", "export type F = {\n  <A>(a: A): A\n  <A, B>(a: A, b: B): B\n}\n"),
    ("ts", "export declare class C {\n  f<T>(a: T): T\n  f<T>(a: T[]): T[]\n}\n"),
    ("ts", "export type * from './t'\n"),
    ("ts", "export type * as ns from './t'\n"),
    ("ts", "export * as default from './t'\n"),
    ("ts", "export { type A, B as 'string name' } from './t'\n"),
    ("ts", "import { 'string name' as b } from './t'\n"),
    ("ts", "import D, { type E } from './t'\n"),
    ("ts", "import type { A } from './t'\n"),
    ("ts", "import type from './t'\ntype\n"),
    ("ts", "import type X = require('./t')\n"),
    ("ts", "import data from './d.json' with { type: 'json' }\n"),
    ("js", "import data from './d.json' assert { type: 'json' }\n"),
    ("js", "import defer * as late from './t'\n"),
    ("js", "import source wasm from './m.wasm'\n"),
    ("ts", "namespace N.M { export const a = 1 }\nimport X = N.M\n"),
    ("ts", "declare module 'x' { export const a: number; export default a }\n"),
    ("ts", "declare module '*.svg'\n"),
    ("ts", "declare global { interface Window { a: 1 } var b: string }\nexport {}\n"),
    ("ts", "export declare const a: number, b: string\ndeclare let c\ndeclare function f(): void\n"),
    ("ts", "export const a: number;\nexport function f(): void;\nexport class C { m(): void }\n"),
    ("ts", "function f(a: string): string\nfunction f(a: number): number\nfunction f(a: any) { return a }\n"),
    ("ts", "export default function (a: string): void\nexport default function (a: any) {}\n"),
    ("ts", "export abstract class A<in out T> { abstract f(): T; protected abstract accessor x: T }\n"),
    (
        "ts",
        "interface Both<in T, out U> { f(a: T): U }\nfunction c<const T extends readonly unknown[]>(t: T) {}\n",
    ),
    ("ts", "class C { static { this.x = 1 } static x = 0; #p = 1; has(o) { return #p in o } }\n"),
    ("ts", "class C { accessor a = 1; static accessor b: string; declare c: number; override d!: 1 }\n"),
    (
        "ts",
        "@a @b() @c.d() class C { @e f = 1; @g() h() {} constructor(@i private readonly j: string) {} }\n",
    ),
    ("ts", "export @a class C {}\n@b export default class D {}\n"),
    ("ts", "using a = open(); {\n  await using b = open()\n}\nfor (using c of d) {}\n"),
    ("ts", "const a = { x: 1 } satisfies Record<string, number>\nconst b = a as const satisfies object\n"),
    ("ts", "const enum E { A = 1 << 2, B = A | 4, 'c d' = `x`.length }\ndeclare enum F { A }\n"),
    (
        "ts",
        "type T = abstract new (...args: any[]) => object\ntype U = typeof import('./t', { with: { 'resolution-mode': 'import' } })\n",
    ),
    ("ts", "type A<T> = T extends [infer H extends string, ...infer R] ? A<R> : never\n"),
    ("ts", "type M = { readonly [K in keyof T as `get${Capitalize<K>}`]-?: T[K] }\n"),
    ("ts", "type N = [a: string, b?: number, ...rest: boolean[]]\ntype L = `${number}px` | unique symbol\n"),
    (
        "ts",
        "function is(a: unknown): asserts a is string {}\nfunction at(this: Window): this is Window { return true }\n",
    ),
    (
        "ts",
        "let a = <string>b; let c = b!; let d = b!.c![0]!; let e = f<string>; new Map<string, Array<number>>()\n",
    ),
    ("ts", "const f = async <T,>(a: T) => a\nconst g = <T extends object>(a: T): a is T => true\n"),
    ("ts", "const a = b < c, d = e > (f)\nconst g = h<i>(j)\nif (a < b || c > d) {}\n"),
    ("ts", "let a = b ? (c) : d => e\nlet f = g ? (h): i => j : k\n"),
    ("ts", "label: for (;;) { continue label }\nlet async = 1, of = 2, type = 3, get = 4\ntype = async\n"),
    ("ts", "declare var module: any\nmodule.exports = 1\nnamespace\ntype\nabstract\n"),
    (
        "ts",
        "class C { get; set; static; async; get x() { return 1 } set x(v) {} static async *g() {} 'quoted'() {} 1() {} [a]() {} }\n",
    ),
    (
        "ts",
        "const o = { get, set, async, await: 1, get a() { return 1 }, async *b() {}, [`c`]: 1, 'd': 2, __proto__: null }\n",
    ),
    ("ts", "export = { a: 1 }\n"),
    ("ts", "export as namespace Lib\n"),
    (
        "ts",
        "function assertIsString(val: any): asserts val {}\nlet x: unique symbol\nlet y: (new () => A)[]\n",
    ),
    ("ts", "var x: typeof y.z<string>[]\ntype Q = (A | B)[number]['c']\ntype R = | A | B\n"),
    ("ts", "#!/usr/bin/env node\n"),
    (
        "ts",
        "const r = /[/`'\"]+(?<n>\\d)\\k<n>/dgimsuy, s = a / b / c, t = `a${`b${c}`}`, u = 1_000n ** 2n\n",
    ),
    ("ts", "const v = a ?? b?.c?.[d]?.(e) ?? f\na ||= b; a &&= c; a ??= d; a **= 2; a >>>= 1\n"),
    ("ts", "try { f() } catch { g() } finally { h() }\ndo x++; while (x < 5) y()\nif (a) ; else ;\n"),
    (
        "tsx",
        "const C = <T,>({ a }: P<T>) => <a.B<T> {...a} b={1} c-d='e' f:g={h}>{/* */}&nbsp;text it's {...k}</a.B>\n",
    ),
    ("tsx", "export default function App() { return <><Page key={`a`} />{x && <p>'</p>}</> }\n"),
    ("tsx", "const g = <T extends unknown>(x: T) => x\nconst h = (x as any) satisfies Y\n"),
    ("jsx", "const a = <div>`{b}`</div>, c = <A b=\"&quot;\" d='\n' />\n"),
    ("js", "const a = <div className=\"x\">JSX in a script</div>\n"),
    ("js", "async function* f() { for await (const x of y) yield* x }\nawait f()\n"),
    ("js", "export { default } from './t'\nexport { default as a, b as c } from './t'\n"),
    ("js", "import * as ns from './t'\nimport d, * as e from './t'\nimport {} from './t'\nimport './t'\n"),
    ("js", "export const { a, b: [c, ...d], ...e } = f, [g = 1] = h\n"),
    ("js", "function F() { return new.target }\nimport.meta.url\nsuper_\n"),
    ("js", "a\n++b\nc\n/d/g\n;[1].map(f)\n;(function () {})()\nvar e = 1\n"),
    ("js", "class A extends (b, c) { constructor() { super(); super.x() } static async #y() {} }\n"),
    ("js", "switch (a) { case 1: case 2: { let b } default: c() }\nthrow new Error('x', { cause: d })\n"),
    ("js", "let \\u0061b = 1, ünï = '\\u{1F600}', 变量 = 2\n"),
    ("mjs", "const x = await import('./t'); export { x as 'a-b' }\n"),
    ("cjs", "'use strict'; return require('./t')\n"),
    ("mts", "export const x = await fetch('y')\nexport type { Z } from './t.mjs'\n"),
    ("cts", "import t = require('./t')\nexport = t\n"),
];

/// Code for a script, in which some words of modules are names.
const SLOPPY: &[(&str, &str)] = &[
    ("js", "var await = 1, yield = 2, let_ = 010, static = 3; with (a) b()\n"),
    ("js", "delete x; arguments = 1; function f(a, a) {}\n"),
    ("cjs", "#!/usr/bin/env node\nif (a) return; var interface = '\\145', package = 1\n"),
    ("cjs", "if (a) function f() {}\nlabel: function g() {}\n"),
    ("js", "<!-- a comment of old\nvar a = 1\n--> another one\n"),
];

#[test]
fn valid_code_is_read_whole() {
    let mut project = Project::new();
    project.write("src/web/page.ts", "export const page = 1\n");
    let mut expected = Vec::new();
    let files =
        VALID.iter().map(|(ending, code)| (*ending, format!("{code}import {{ page }} from '../web/page'\n")));
    let scripts =
        SLOPPY.iter().map(|(ending, code)| (*ending, format!("{code}const page = require('../web/page')\n")));
    let files: Vec<(&str, String)> = files.chain(scripts).collect();
    for (number, (ending, code)) in files.iter().enumerate() {
        let path = format!("src/domain/f{number:03}.{ending}");
        project.write(&path, code);
        expected.push((path, code));
    }
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let broken = rows(&store, "HEAD", "MATCH (f:File {broken: true}) RETURN f.path ORDER BY f.path");
    let code = |path: &str| expected.iter().find(|(known, _)| known == path).map(|(_, code)| (*code).clone());
    let broken: Vec<_> = broken.iter().map(|row| code(row[0].as_str().unwrap())).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let importers = rows(
        &store,
        "HEAD",
        "MATCH (f:File)-[:IMPORTS]->(:File {path: 'src/web/page.ts'}) RETURN DISTINCT f.path",
    );
    let importers: Vec<&str> = importers.iter().map(|row| row[0].as_str().unwrap()).collect();
    let missing: Vec<_> = expected.iter().filter(|(path, _)| !importers.contains(&path.as_str())).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(expected.len() >= 60, "{}", expected.len());
}

/// Knowledge review 3, A1: two call signatures without a semicolon hid what came behind them.
#[test]
fn bug_overloads_without_semicolons_hid_the_imports_behind_them() {
    let overloads =
        "export interface G {\n  <K extends string>(key: K): K\n  <K extends number>(key: K): K\n}\n";
    for (behind, edges) in [
        ("import { q } from '../db/q'\nexport const y = q\n", "IMPORTS"),
        ("export { q } from '../db/q'\n", "IMPORTS"),
        ("export * from '../db/q'\n", "IMPORTS"),
        ("export const y = () => import('../db/q')\n", "IMPORTS"),
    ] {
        let (_project, store) = committed(&[
            ("src/db/q.ts", "export const q = 1\n"),
            ("src/web/a.ts", &format!("{overloads}{behind}")),
        ]);
        let query = format!(
            "MATCH (f:File {{path: 'src/web/a.ts'}})-[:{edges}]->(t:File) RETURN f.broken, f.unparsed, t.path"
        );
        assert_eq!(
            rows(&store, "HEAD", &query),
            [[json!(false), json!(null), json!("src/db/q.ts")]],
            "{behind}"
        );
    }
}

/// The reverse of it: names below such an interface were missing from what a file gives to others.
#[test]
fn bug_names_below_overloads_were_not_exported() {
    let (_project, store) = committed(&[(
        "src/api.ts",
        "export interface G {\n  <K extends string>(key: K): K\n  <K extends number>(key: K): K\n}\n\
         export const first = 1\nexport class Second {}\n",
    )]);
    let names = rows(
        &store,
        "HEAD",
        "MATCH (:File {path: 'src/api.ts'})-[e:EXPORTS]->() RETURN e.name ORDER BY e.name",
    );
    assert_eq!(names, [[json!("G")], [json!("Second")], [json!("first")]]);
}

/// Knowledge review 3, A2.
#[test]
fn bug_an_export_of_all_types_broke_a_file() {
    let (_project, store) = committed(&[
        ("t.ts", "export type T = 1\nexport interface U {}\n"),
        ("all.ts", "export type * from './t'\nexport const after = 1\n"),
        ("named.ts", "export type * as ns from './t'\nexport const after = 1\n"),
    ]);
    assert!(rows(&store, "HEAD", "MATCH (f:File {broken: true}) RETURN f.path").is_empty());
    let edges = "MATCH (f:File)-[i:IMPORTS]->(:File {path: 't.ts'}) RETURN f.path, i.names, i.typeOnly ORDER BY f.path";
    assert_eq!(
        json!(rows(&store, "HEAD", edges)),
        json!([["all.ts", ["*"], true], ["named.ts", ["*"], true]])
    );
    let exports = "MATCH (:File {path: 'all.ts'})-[e:EXPORTS]->() RETURN e.name ORDER BY e.name";
    assert_eq!(json!(rows(&store, "HEAD", exports)), json!([["T"], ["U"], ["after"]]));
}

/// What the parser gives up on is left out, and the rest of the file is read; the file counts as broken.
#[test]
fn a_syntax_error_hides_its_own_statement_alone() {
    let (_project, store) = committed(&[
        ("b.ts", "export const b = 1\n"),
        (
            "a.ts",
            "import { b } from './b'\nexport function ((( {\n  x\n}\nexport const after = b\nexport * from './b'\n",
        ),
        (
            "open.ts",
            "import { b } from './b'\nexport const first = b\nexport function open() {\n  if (b) {\n",
        ),
        (
            "flow.js",
            "// @flow\nimport { b } from './b'\nexport type A = {| a: ?string |}\nexport const c = (b: any)\n",
        ),
        (
            "conflict.ts",
            "import { b } from './b'\n<<<<<<< HEAD\nconst x = 1\n=======\nconst x = 2\n>>>>>>> other\nexport const y = b\n",
        ),
    ]);
    let broken = "MATCH (f:File) WHERE f.broken RETURN f.path, f.unparsed ORDER BY f.path";
    let paths = ["a.ts", "conflict.ts", "flow.js", "open.ts"];
    let marked: Vec<String> =
        rows(&store, "HEAD", broken).iter().map(|row| row[0].as_str().unwrap().into()).collect();
    assert_eq!(marked, paths);
    let edges =
        "MATCH (f:File)-[:IMPORTS]->(:File {path: 'b.ts'}) RETURN DISTINCT f.path AS path ORDER BY path";
    let importers: Vec<String> =
        rows(&store, "HEAD", edges).iter().map(|row| row[0].as_str().unwrap().into()).collect();
    assert_eq!(importers, paths);
    let symbols = "MATCH (:File {path: 'a.ts'})-[:DEFINES]->(s:Symbol) RETURN s.name, s.line";
    assert_eq!(json!(rows(&store, "HEAD", symbols)), json!([["after", 5]]));
}

/// What only the checker of types refuses does not make a file one that cannot be read.
#[test]
fn what_is_declared_twice_is_not_broken() {
    let (_project, store) = committed(&[
        ("a.ts", "const a = 1\nconst a = 2\nlet b\nfunction b() {}\nclass C {}\nclass C {}\nbreak\n"),
        (
            "a.vue",
            "<script>\nexport default {}\nconst a = 1\n</script>\n<script setup>\nconst a = 2\n</script>\n",
        ),
        (
            "a.svelte",
            "<svelte:head><script type=\"application/ld+json\">{\"a\": 1}</script></svelte:head>\n<script>\nlet a\n</script>\n",
        ),
    ]);
    let unparsed = "MATCH (f:File {unparsed: true}) RETURN f.path";
    assert!(rows(&store, "HEAD", unparsed).is_empty());
    assert!(rows(&store, "HEAD", "MATCH (f:File {path: 'a.svelte', broken: true}) RETURN f.path").is_empty());
}

#[test]
fn symbols_are_where_their_names_are_declared() {
    let (_project, store) = committed(&[(
        "a.ts",
        "@mark()\nexport class A {\n  @mark() private b() {}\n  accessor c = () => 1\n}\nexport declare function d(): void\n\
         export abstract class E { abstract f(): void }\ndeclare namespace G.H { const i: 1 }\n  /* ü */ enum J { k }\n",
    )]);
    let found = "MATCH (s:Symbol) RETURN s.qualifiedName, s.kind, s.line, s.column, s.exported ORDER BY s.line, s.column";
    assert_eq!(
        json!(rows(&store, "HEAD", found)),
        json!([
            ["A", "class", 2, 8, true],
            ["A.b", "method", 3, 11, false],
            ["A.c", "method", 4, 3, true],
            ["d", "function", 6, 16, true],
            ["E", "class", 7, 8, true],
            ["E.f", "method", 7, 27, true],
            ["G.H", "module", 8, 9, false],
            ["G.H.i", "const", 8, 31, false],
            ["J", "enum", 9, 11, false],
        ])
    );
}
