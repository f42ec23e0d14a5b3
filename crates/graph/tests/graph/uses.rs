//! Uses of types, constants and functions, and calls of members whose type is known.

use tgp_graph::GraphStore;

use crate::support::{committed, ingest, rows};

fn lines(store: &GraphStore, query: &str) -> Vec<String> {
    let rows = rows(store, "HEAD", query);
    rows.iter().map(|row| row[0].as_str().unwrap_or("nothing").to_owned()).collect()
}

/// `a -> b` for each use, without files.
fn uses(store: &GraphStore) -> Vec<String> {
    lines(
        store,
        "MATCH (a)-[:REFERENCES]->(b:Symbol) \
         RETURN coalesce(a.qualifiedName, a.path) + ' -> ' + b.qualifiedName AS line ORDER BY line",
    )
}

fn calls(store: &GraphStore) -> Vec<String> {
    lines(
        store,
        "MATCH (a)-[c:CALLS]->(b:Symbol) \
         RETURN coalesce(a.qualifiedName, a.path) + ' -> ' + b.path + ' ' + b.qualifiedName + ' ' + c.how AS line ORDER BY line",
    )
}

#[test]
fn types_constants_and_passed_functions_are_referenced() {
    let (_project, store) = committed(&[
        (
            "lib.ts",
            "export interface Shape { area: number }\nexport type Shapes = Shape[];\nexport const LIMIT = 3;\nexport enum Kind { A, B }\nexport function order(a: Shape, b: Shape) { return a.area - b.area; }\nexport class Store {}\n",
        ),
        (
            "app.ts",
            "import { LIMIT, Kind, order, Store, type Shapes } from './lib';\nimport * as lib from './lib';\n\
             export const first: Kind = Kind.A;\n\
             export function top(all: Shapes): lib.Shape[] { return all.sort(order).slice(0, LIMIT); }\n\
             export class Page { store?: Store; limit() { return lib.LIMIT; } }\n\
             const table = { order };\n",
        ),
    ]);
    assert_eq!(
        uses(&store),
        [
            "Page -> Store",
            "Page.limit -> LIMIT",
            "Shapes -> Shape",
            "first -> Kind",
            "order -> Shape",
            "table -> order",
            "top -> LIMIT",
            "top -> Shape",
            "top -> Shapes",
            "top -> order",
        ]
    );
}

#[test]
fn python_rust_go_and_java_have_references() {
    let (_project, store) = committed(&[
        ("m.py", "LIMIT = 3\nclass Item:\n    pass\ndef wrap(f):\n    return f\n"),
        (
            "n.py",
            "import m\nfrom m import Item, wrap, LIMIT as MOST\n@wrap\ndef pick(item: Item) -> int:\n    global count\n    return MOST\ndef other():\n    return m.LIMIT\n",
        ),
        (
            "src/lib.rs",
            "mod k;\nuse k::{Kind, MAX};\npub struct Row { kind: Kind }\npub fn row(n: u32) -> Option<Row> { println!(\"{}\", MAX); let all = [1]; all.iter().map(double); None }\nfn double(n: &i32) -> i32 { n * k::MAX }\n",
        ),
        (
            "src/k.rs",
            "pub enum Kind { A }\npub const MAX: i32 = 1;\npub fn kind(k: &Kind) -> bool { matches!(k, Kind::A) }\n",
        ),
        ("Cargo.toml", "[package]\nname = \"own\"\n"),
        ("go.mod", "module example.com/own\n"),
        ("a.go", "package own\n\ntype Server struct { Limit Limits }\n\ntype Limits struct{}\n"),
        (
            "b.go",
            "package own\n\nconst Most = 3\n\nfunc Serve(s *Server) Limits { _ = Most; return Limits{} }\n",
        ),
        ("p/A.java", "package p;\npublic class A { B b; A make(C c) { return null; } }\n"),
        ("p/B.java", "package p;\n@Mark public class B extends A { }\n@interface Mark {}\n"),
        ("p/C.java", "package p;\npublic class C { static Object o = B.class; }\n"),
    ]);
    assert_eq!(
        uses(&store),
        [
            "A -> B",
            "A.make -> A",
            "A.make -> C",
            "B -> A",
            "B -> Mark",
            "C -> B",
            "Row -> Kind",
            "Serve -> Limits",
            "Serve -> Most",
            "Serve -> Server",
            "Server -> Limits",
            "double -> MAX",
            "kind -> Kind",
            "other -> LIMIT",
            "pick -> Item",
            "pick -> LIMIT",
            "pick -> wrap",
            "row -> MAX",
            "row -> Row",
            "row -> double",
        ]
    );
}

/// Knowledge review, A8.
#[test]
fn bug_a_parameter_that_hides_an_import_was_taken_for_it() {
    let (_project, store) = committed(&[
        ("lib.ts", "export function parse(x: string) { return x; }\nexport const size = 1;\n"),
        (
            "app.ts",
            "import { parse, size } from './lib';\n\
             export function user(parse: (x: string) => number) { return parse('x'); }\n\
             export const inner = (x: number) => { const size = x; return size; };\n\
             export function good() { function parse() {} parse(); return size; }\n\
             export function each(all: string[]) { return all.map(({ size }) => size); }\n",
        ),
        ("m.py", "def run():\n    pass\nLIMIT = 1\n"),
        (
            "n.py",
            "from m import run, LIMIT\ndef user(run):\n    run()\ndef good():\n    run()\ndef limit():\n    for LIMIT in []:\n        print(LIMIT)\n",
        ),
        ("src/lib.rs", "mod k;\nuse k::go;\npub fn user(go: fn()) { go(); }\npub fn good() { go(); }\n"),
        ("src/k.rs", "pub fn go() {}\n"),
        ("Cargo.toml", "[package]\nname = \"own\"\n"),
    ]);
    assert_eq!(
        calls(&store),
        ["good -> app.ts good.parse same-file", "good -> m.py run import", "good -> src/k.rs go import",]
    );
    assert_eq!(uses(&store), ["good -> size"]);
}

/// `let verdict = verdict();` was no call: the name was taken for the variable that the call is assigned to.
#[test]
fn bug_a_call_was_hidden_by_the_variable_that_it_is_assigned_to() {
    let (_project, store) = committed(&[
        (
            "src/lib.rs",
            "mod k;\nuse k::{kind, list, Size, size};\nfn verdict() -> u8 { 1 }\n\
             pub fn a() -> u8 { let verdict = verdict(); verdict }\n\
             pub fn b() { if let Some(kind) = kind() { kind(); } for list in list() { list(); } }\n\
             pub fn c() { let (x, size): (u8, Size) = (1, size()); size(); }\n\
             pub fn d(verdict: fn()) { let verdict = verdict(); }\n",
        ),
        (
            "src/k.rs",
            "pub struct Size;\npub fn kind() -> Option<fn()> { None }\npub fn list() -> Vec<fn()> { Vec::new() }\npub fn size() -> Size { Size }\n",
        ),
        ("Cargo.toml", "[package]\nname = \"own\"\n"),
        ("go.mod", "module example.com/own\n"),
        (
            "a.go",
            "package own\n\nfunc size() func() int { return nil }\n\nfunc list() []int { return nil }\n\n\
             func A() { size := size(); size() }\n\nfunc B() { for _, list := range list() { _ = list }; var size = size() ; _ = size }\n\n\
             func C(size func()) { size() }\n",
        ),
        (
            "p/A.java",
            "package p;\nclass A { int size() { return 1; } int get(int size) { int got = size(); return size; } }\n",
        ),
    ]);
    assert_eq!(
        calls(&store),
        [
            "A -> a.go size same-file",
            "A.get -> p/A.java A.size same-file",
            "B -> a.go list same-file",
            "B -> a.go size same-file",
            "a -> src/lib.rs verdict same-file",
            "b -> src/k.rs kind import",
            "b -> src/k.rs list import",
            "c -> src/k.rs size import",
        ]
    );
}

#[test]
fn what_is_asked_of_the_class_above_is_found_through_files() {
    let (mut project, store) = committed(&[
        ("base.py", "class Root:\n    def save(self):\n        pass\n    def load(self):\n        pass\n"),
        ("mid.py", "from base import Root as R\nclass Mid(R):\n    pass\n"),
        (
            "leaf.py",
            "import mid\nclass Other:\n    def save(self):\n        pass\nclass Leaf(mid.Mid):\n    def save(self):\n        super().save()\n        self.load()\n",
        ),
        ("a.ts", "export class A { go() {} }\n"),
        ("b.ts", "import { A } from './a';\nexport class B extends A {}\n"),
        (
            "c.ts",
            "import { B } from './b';\nclass Z { go() {} }\nexport class C extends B { constructor() { super(); } go() { super.go(); } run() { this.go(); } }\nexport class D extends C { stop() { this.run(); } }\n",
        ),
    ]);
    let found = [
        "C.go -> a.ts A.go receiver-type",
        "C.run -> c.ts C.go same-file",
        "D.stop -> c.ts C.run receiver-type",
        "Leaf.save -> base.py Root.load receiver-type",
        "Leaf.save -> base.py Root.save receiver-type",
    ];
    assert_eq!(calls(&store), found);
    // The class between gets another parent; the files at both ends are not touched.
    project.write("mid.py", "class Mid:\n    def save(self):\n        pass\n");
    project.write("b.ts", "export class B { go() {} }\n");
    project.commit("another parent");
    ingest(&store, "HEAD");
    assert_eq!(
        calls(&store),
        [
            "C.go -> b.ts B.go receiver-type",
            "C.run -> c.ts C.go same-file",
            "D.stop -> c.ts C.run receiver-type",
            "Leaf.save -> mid.py Mid.save receiver-type",
        ]
    );
}

#[test]
fn a_receiver_has_the_type_of_its_declaration() {
    let (_project, store) = committed(&[
        (
            "lib.ts",
            "export class Store { get() {} }\nexport class Shop { get() {} includes() {} }\nexport interface Port { send(): void }\n",
        ),
        (
            "app.ts",
            "import { Store, Port } from './lib';\n\
             const main = new Store();\nmain.get();\n\
             export function a(s: Store, t: string, port: Port | undefined) { s.get(); t.includes('x'); port?.send(); }\n\
             export function b() { const s = new Store(); s.get(); 'x'.includes('y'); }\n\
             export class Page { private other: Store; constructor(private store: Store) {} run() { this.store.get(); this.other.get(); } }\n\
             export function c<T>(t: T) { return t; }\n",
        ),
        (
            "m.py",
            "class Db:\n    def get(self):\n        pass\nclass Web:\n    def get(self):\n        pass\n",
        ),
        (
            "n.py",
            "from m import Db, Web\ndef a(db: Db, web: 'Web'):\n    db.get()\n    web.get()\nclass V:\n    def __init__(self):\n        self.db = Db()\n    def b(self):\n        self.db.get()\n        w = Web()\n        w.get()\n        'x'.get()\n",
        ),
        (
            "src/lib.rs",
            "mod k;\nuse k::{Db, Web};\npub struct App { db: Box<Db> }\nimpl App { pub fn run(&self, web: &Web) { self.db.get(); web.get(); let d = Db::new(); d.get(); } }\n",
        ),
        (
            "src/k.rs",
            "pub struct Db;\nimpl Db { pub fn new() -> Self { Db } pub fn get(&self) {} }\npub struct Web;\nimpl Web { pub fn get(&self) {} }\n",
        ),
        ("Cargo.toml", "[package]\nname = \"own\"\n"),
        ("go.mod", "module example.com/own\n"),
        (
            "a.go",
            "package own\n\ntype Db struct{}\n\nfunc (d *Db) Get() {}\n\ntype Web struct{ db Db }\n\nfunc (w *Web) Get() { w.db.Get() }\n\nfunc G(w *Web) { w.Get(); d := Db{}; d.Get() }\n",
        ),
        ("p/A.java", "package p;\npublic class A { void get() {} }\n"),
        (
            "p/B.java",
            "package p;\npublic class B { A a; void get() { this.a.get(); } void run(A x) { x.get(); var b = new B(); b.get(); } }\n",
        ),
    ]);
    let found: Vec<String> = calls(&store).into_iter().filter(|line| !line.ends_with(" same-file")).collect();
    assert_eq!(
        found,
        [
            "App::run -> src/k.rs Db::get receiver-type",
            "App::run -> src/k.rs Db::new import",
            "App::run -> src/k.rs Web::get receiver-type",
            "B.get -> p/A.java A.get receiver-type",
            "B.run -> p/A.java A.get receiver-type",
            "B.run -> p/B.java B.get receiver-type",
            "G -> a.go Db.Get receiver-type",
            "G -> a.go Web.Get receiver-type",
            "Page.run -> lib.ts Store.get receiver-type",
            "V.__init__ -> m.py Db import",
            "V.b -> m.py Db.get receiver-type",
            "V.b -> m.py Web import",
            "V.b -> m.py Web.get receiver-type",
            "Web.Get -> a.go Db.Get receiver-type",
            "a -> lib.ts Port.send receiver-type",
            "a -> lib.ts Store.get receiver-type",
            "a -> m.py Db.get receiver-type",
            "a -> m.py Web.get receiver-type",
            "app.ts -> lib.ts Store.get receiver-type",
            "b -> lib.ts Store import",
            "b -> lib.ts Store.get receiver-type",
            "main -> lib.ts Store import",
        ]
    );
}

#[test]
fn a_word_that_only_looks_like_a_symbol_is_no_use() {
    let (_project, store) = committed(&[
        ("lib.ts", "export const name = 1;\nexport const key = 2;\nexport type T = number;\n"),
        (
            "app.ts",
            "import { name, key, T } from './lib';\n\
             export function a(x: { name: string }) { return x.name; }\n\
             export function b<T>(key: T): T { return key; }\n\
             export const c = { name: 1, key: 2 };\n\
             export function d() { for (const key of []) { console.log(key); } }\n",
        ),
        ("m.py", "name = 1\n"),
        (
            "n.py",
            "from m import name\ndef a(x):\n    return x.name\ndef b():\n    return dict(name=2)\nc = [name for name in []]\n",
        ),
    ]);
    assert_eq!(uses(&store), Vec::<String>::new());
}

/// `super().save()` of a class that extends one of a package was found as the only `save` nearby.
#[test]
fn bug_a_member_of_a_class_from_elsewhere_was_found_by_its_name() {
    let (_project, store) = committed(&[
        (
            "n.py",
            "import other\nfrom lib import Base\nclass Leaf(Base):\n    def save(self):\n        super().save()\n        other.Disk()\n",
        ),
        ("other.py", "class Disk:\n    def save(self):\n        pass\n"),
    ]);
    let found: Vec<String> = calls(&store).into_iter().filter(|line| line.contains("other.py")).collect();
    assert_eq!(found, ["Leaf.save -> other.py Disk namespace"]);
}

#[test]
fn bug_the_package_around_an_imported_module_of_python_was_not_known() {
    let (_project, store) = committed(&[
        ("shop/__init__.py", "def open_shop():\n    pass\n"),
        ("shop/cart/__init__.py", ""),
        (
            "shop/cart/items.py",
            "class Item:\n    @staticmethod\n    def make():\n        pass\ndef add():\n    pass\n",
        ),
        (
            "app.py",
            "import shop.cart.items\ndef run():\n    shop.open_shop()\n    shop.cart.items.add()\n    shop.cart.items.Item.make()\n",
        ),
    ]);
    assert_eq!(
        calls(&store),
        [
            "run -> shop/__init__.py open_shop namespace",
            "run -> shop/cart/items.py Item.make namespace",
            "run -> shop/cart/items.py add namespace",
        ]
    );
}

fn exports(store: &GraphStore, file: &str) -> Vec<String> {
    lines(
        store,
        &format!(
            "MATCH (:File {{path: '{file}'}})-[e:EXPORTS]->(t) \
             RETURN e.name + ' ' + coalesce(t.path, t.name) AS line ORDER BY line"
        ),
    )
}

#[test]
fn a_python_package_exports_what_it_imports_and_a_module_what_it_lists() {
    let (_project, store) = committed(&[
        (
            "shop/__init__.py",
            "from typing import Any\nfrom . import cart\nfrom .cart import Cart as Basket, _hidden\nfrom .rest import *\nVERSION = 1\n",
        ),
        ("shop/cart.py", "class Cart:\n    pass\ndef _hidden():\n    pass\n"),
        (
            "shop/rest.py",
            "__all__ = ['one', \"two\"]\n__all__ += ('_three',)\ndef one(): pass\ndef two(): pass\ndef _three(): pass\ndef four(): pass\n",
        ),
        ("shop/listed.py", "import os\nfrom .cart import Cart\n__all__ = ['Cart', 'os']\n"),
        (
            "shop/computed.py",
            "from . import rest\n__all__ = ['one']\n__all__ += rest.__all__\ndef one(): pass\n",
        ),
        ("shop/appended.py", "__all__ = ['one']\n__all__.append('two')\ndef one(): pass\ndef two(): pass\n"),
    ]);
    assert_eq!(
        exports(&store, "shop/__init__.py"),
        [
            "Basket shop/cart.py",
            "VERSION shop/__init__.py",
            "_three shop/rest.py",
            "cart shop/cart.py",
            "one shop/rest.py",
            "two shop/rest.py",
        ]
    );
    assert_eq!(exports(&store, "shop/listed.py"), ["Cart shop/cart.py", "os os"]);
    assert_eq!(exports(&store, "shop/rest.py").len(), 3);
    // What is computed is not known, so the names are asked for as in a file without a list.
    assert!(exports(&store, "shop/computed.py").is_empty());
    assert!(exports(&store, "shop/appended.py").is_empty());
}
