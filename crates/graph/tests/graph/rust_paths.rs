//! Imports of Rust that no `use` shows (security review 3, A7).

use serde_json::json;

use crate::support::{Project, ingest, rows};

const ROOT: &str = "pub mod domain;\npub mod web;\nuse crate as root;\npub use web as given;\npub use web::page::Page as Given;\n\
                    extern crate self as me;\n";

const PAGE: &str = "pub fn page() {}\npub struct Page;\npub trait T {}\n#[macro_export]\n\
                    macro_rules! shown { () => {} }\n";

fn layered() -> Project {
    let project = Project::new();
    project.write("Cargo.toml", "[package]\nname = \"my-shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    project.write("src/lib.rs", ROOT);
    project.write("src/web/mod.rs", "pub mod page;\npub mod r#type;\npub const X: u8 = 1;\n");
    project.write("src/web/page.rs", PAGE);
    project.write("src/web/type.rs", "pub fn page() {}\n");
    project.write("src/ok/mod.rs", "");
    project.write("src/domain/names.rs", "use crate as k;\n");
    project.write("src/domain/mod.rs", "pub mod inner;\nuse crate::web as near;\n");
    project
}

/// What each of the sources imports as a file of the domain: paths, and `?` with the specifier of what is unresolved.
fn imported(project: &Project, sources: &[&str]) -> Vec<Vec<String>> {
    for (number, source) in sources.iter().enumerate() {
        project.write(&format!("src/domain/c{number}.rs"), source);
    }
    let store = project.open();
    ingest(&store, "WORKTREE");
    let query = "MATCH (:File {path: $path})-[i:IMPORTS]->(t) WHERE NOT t:Package \
                 RETURN t.path, t.specifier, i.line";
    let found = |number: usize| {
        let query = query.replace("$path", &format!("'src/domain/c{number}.rs'"));
        let mut found: Vec<String> = rows(&store, "WORKTREE", &query)
            .iter()
            .map(|row| match row[0].as_str() {
                Some(path) => path.trim_start_matches("src/").to_owned(),
                None => format!("?{}", row[1].as_str().unwrap()),
            })
            .collect();
        found.sort();
        found
    };
    (0..sources.len()).map(found).collect()
}

fn assert_all_import(file: &str, sources: &[&str]) {
    for (found, source) in imported(&layered(), sources).iter().zip(sources) {
        assert!(found.iter().any(|path| path == file), "{source}\n{found:?}");
    }
}

#[test]
fn bug_a_rust_path_without_use_was_no_import() {
    assert_all_import(
        "web/page.rs",
        &[
            "pub fn f() { crate::web::page::page(); }",
            "pub fn f() { super::super::web::page::page(); }",
            "pub fn f() { self::super::super::web::page::page(); }",
            "pub fn f() { crate::/* why */web // not\n::page::page(); }",
            "pub fn f() { crate::r#web::page::page(); }",
            "pub fn f(p: crate::web::page::Page) {}",
            "pub fn f() -> Vec<crate::web::page::Page> { Vec::new() }",
            "pub fn f(p: &dyn crate::web::page::T) {}",
            "pub fn f<P: crate::web::page::T>(p: P) {}",
            "pub fn f<P>(p: P) where P: crate::web::page::T {}",
            "struct S; impl crate::web::page::T for S {}",
            "struct S; impl S { fn f() { super::super::web::page::page(); } }",
            "trait U: crate::web::page::T {}",
            "pub fn f() { let _ = crate::web::page::Page {}; }",
            "pub fn f(x: u8) { match x { crate::web::page::X => {} _ => {} } }",
            "pub fn f() { if let crate::web::page::Page { .. } = x() {} }",
            "pub fn f() { <crate::web::page::Page as Default>::default(); }",
            "pub fn f() { Vec::<crate::web::page::Page>::new(); }",
            "pub fn f() { x.map(crate::web::page::page) }",
            "type P = crate::web::page::Page;",
            "const C: u8 = crate::web::page::X;",
            "static S: [u8; crate::web::page::X] = [];",
            "#[derive(crate::web::page::Make)]\nstruct S;",
            "#[cfg_attr(test, derive(crate::web::page::Make))]\nstruct S;",
            "#[crate::web::page::make]\nfn f() {}",
            "#[crate::web::page::make(x)]\nfn f() {}",
            "#[serde(with = \"crate::web::page\")]\nstruct S;",
            "pub fn f() { crate::web::page::make!(); }",
            "mod inner { pub fn f() { super::super::super::web::page::page(); } }",
            "mod inner { impl X { fn f() { super::super::super::web::page::page(); } } }",
            "fn f() { mod inner { fn g() { super::super::super::web::page::page(); } } }",
            "fn f() { my_shop::web::page::page(); }",
            "fn f() { ::my_shop::web::page::page(); }",
        ],
    );
}

#[test]
fn bug_a_rust_path_through_another_name_was_no_import() {
    assert_all_import(
        "web/page.rs",
        &[
            "use crate as k;\nfn f() { k::web::page::page(); }",
            "use crate as k;\nuse k::web::page;",
            "use crate as k;\nuse k::web::{page as p};",
            "use crate::{self as k};\nfn f() { k::web::page::page(); }",
            "use super::super as root;\nfn f() { root::web::page::page(); }",
            "use super::{super as root};\nuse root::web::page;",
            "use super as up;\nfn f() { up::super::web::page::page(); }",
            "use super as up;\nuse up::near::page;",
            "use crate as a;\nuse self::a as b;\nuse self::b::web as c;\nuse c::page;",
            "fn f() { use crate as k; k::web::page::page(); }",
            "fn f() { use crate::ok as k; k::f(); }\nfn g() { use crate as k; k::web::page::page(); }",
            "mod m { use crate as k; fn f() { k::web::page::page(); } }\nuse crate::ok as k;",
            "use super::super::*;\nfn f() { web::page::page(); }",
            "use crate::*;\nuse web::page;",
            "use super::*;\nfn f() { near::page::page(); }",
            "fn f() { crate::given::page::page(); }",
            "use crate::given::page;",
            "fn f() { crate::root::web::page::page(); }",
            "fn f() { super::near::page::page(); }",
            "use me::web::page;",
            "fn f() { me::web::page::page(); }",
            "fn f() { ::me::web::page::page(); }",
            "use crate::root::given as g;\nfn f() { g::page::page(); }",
            "use crate::{web as w};\nfn f() { w::page::page(); }",
            "use crate::web;\nfn f() { web::page::page(); }",
            "use crate::{web::{self}};\ntype P = web::page::Page;",
            "use crate::/* x */web::page;",
            "use crate::web /* x */ ::page /* x */ ::*;",
            "use crate::r#web::r#page;",
            "mod m { pub use crate::*; }\nuse m::*;\nfn f() { web::page::page(); }",
            "use crate as k;\nuse k::*;\nfn f() { web::page::page(); }",
            "use my_shop as s;\nfn f() { s::web::page::page(); }",
            "extern crate my_shop as s;\nfn f() { s::web::page::page(); }",
            "include!(\"names.rs\");\nfn f() { k::web::page::page(); }",
            "use super as k;\nmod m { use crate as k; fn f() { k::web::page::page(); } }",
        ],
    );
}

#[test]
fn bug_a_rust_path_in_a_macro_was_no_import() {
    assert_all_import(
        "web/page.rs",
        &[
            "fn f() { println!(\"{}\", crate::web::page::page()); }",
            "fn f() { vec![crate::web::page::X]; }",
            "fn f() { vec![(1, [super::super::web::page::X])]; }",
            "fn f() { outer!(inner!({ crate::web::page::page() })); }",
            "fn f() { vec![Vec::<crate::web::page::Page>::new()]; }",
            "fn f() { vec![crate::/* x */web::page::X]; }",
            "macro_rules! m { () => { crate::web::page::page() } }",
            "macro_rules! m { () => { $crate::web::page::page() } }",
            "macro_rules! m { ($x:expr) => { $( $crate::web::page::$x )* } }",
            "macro_rules! m { (a) => {}; (b) => { use $crate::web::page; } }",
            "fn f() { macro_rules! m { () => { $crate::web::page::page() } } }",
            "id! { use crate::web::page; }",
            "id! { use crate::{ok, web::{page}}; }",
            "id! { use crate as k; }\nfn f() { k::web::page::page(); }",
            "id! { use crate as k; fn f() { k::web::page::page(); } }",
            "id! { use crate::*; }\nfn f() { web::page::page(); }",
            "use crate as k;\nfn f() { vec![k::web::page::X]; }",
            "id! { mod m { fn f() { super::super::super::web::page::page(); } } }",
            "id! { #[path = \"../web/page.rs\"] mod page; }",
            "id! { include!(\"../web/page.rs\"); }",
            "fn f() { with!(crate::web::page); }",
            "fn f() { me!(me::web::page::X); }",
            "fn f() { assert!(::me::web::page::page() == ()); }",
            "fn f() { println!(include_str!(\"../web/page.rs\")); }",
            "fn f() { crate::shown!(); }",
            "use crate::shown;",
            "fn f() { me::shown!(); }",
            "macro_rules! m { () => { $crate::shown!() } }",
            "fn f() { vec![crate::shown![1]]; }",
        ],
    );
}

#[test]
fn bug_a_rust_file_was_taken_by_its_path_unseen() {
    assert_all_import(
        "web/page.rs",
        &[
            "#[path = \"../web/page.rs\"]\nmod page;",
            "#[path = \"../web/page.rs\"] // why\nmod page;",
            "#[path = \"../web/page.rs\"]\n/* why */\n#[allow(dead_code)]\nmod page;",
            "#[path /* x */ = \"../web/page.rs\"]\nmod page;",
            "#[path = r\"../web/page.rs\"]\nmod page;",
            "#[path = r#\"../web/page.rs\"#]\nmod page;",
            "#[cfg_attr(a, path = \"none.rs\")]\n#[cfg_attr(b, path = \"../web/page.rs\")]\nmod page;",
            "#[cfg_attr(a, cfg_attr(b, path = r\"../web/page.rs\"))]\nmod page;",
            "fn f() { #[path = \"../web/page.rs\"] mod page; }",
            "#[path = \"../web\"]\nmod m { pub mod page; }",
            "#[path = \"..\"]\nmod m { pub mod web { pub mod page; } }",
            "#[path = \"../web\"]\nmod m { #[path = \"page.rs\"] mod other; }",
            "mod m { #![path = \"../web\"] pub mod page; }",
            "mod m { #[path = \"../../../web/page.rs\"] mod page; }",
            "include!(\"../web/page.rs\");",
            "include!(r\"../web/page.rs\",);",
            "std::include!(/* x */ \"../web/page.rs\");",
            "mod m { include!(\"../web/page.rs\"); }",
            "const T: &str = include_str!(\"../web/page.rs\");",
            "const T: &[u8] = core::include_bytes!(\"../web/page.rs\");",
            "#[doc = include_str!(\"../web/page.rs\")]\nstruct S;",
        ],
    );
}

#[test]
fn a_rust_path_that_cannot_be_followed_is_unresolved() {
    let sources = [
        ("include!(concat!(\"../web\", \"/page.rs\"));", "?(concat!(\"../web\", \"/page.rs\"))"),
        ("include!(\"../w\\x65b/page.rs\");", "?(\"../w\\x65b/page.rs\")"),
        ("use std::include as load;\nload!(\"../web/page.rs\");", "?std::include as load"),
        ("macro_rules! m { ($f:literal) => { include!($f); } }", "?include!($f); } }"),
        ("macro_rules! m { ($a:ident) => { $crate::$a::page() } }", "?crate::$a::page"),
        ("#[path = \"../w\\x65b/page.rs\"]\nmod page;", "?#[path] mod page"),
        ("#[path = \"../web/none.rs\"]\nmod page;", "?page"),
        ("fn f() { super::super::super::x::y(); }", "?super::super::super::x"),
    ];
    let texts: Vec<&str> = sources.iter().map(|(source, _)| *source).collect();
    let found = imported(&layered(), &texts);
    let expected: Vec<Vec<String>> =
        sources.iter().map(|(_, specifier)| vec![(*specifier).to_owned()]).collect();
    assert_eq!(found, expected);
    // Without a crate nothing is known.
    let project = Project::new();
    project.write("src/web.rs", "");
    let found = imported(&project, &["fn f() { crate::web::page(); }"]);
    assert_eq!(found, [["?crate::web"]]);
}

#[test]
fn other_rust_paths_are_no_imports() {
    let sources = [
        "//! crate::web::page\n/// [crate::web::page::page]\nfn f() {}",
        "pub(in crate::domain) fn f() {}",
        "fn f() { let a = \"crate::web::page\"; }",
        "fn f() { String::from(\"\"); std::mem::take(&mut x); serde_json::to_string(&x); Self::f(); }",
        "fn f() { vec![String::new(), std::mem::take(&mut x), serde_json::json!({})]; }",
        "enum Kind { A } fn f() { Kind::A; self::Kind::A; use Kind::*; }",
        "mod a { pub fn f() {} } mod b { fn f() { super::a::f(); } }",
        "use serde::Serialize as S;\nfn f() { S::x(); }",
        "#[cfg_attr(unix, path = \"mod.rs\")]\nmod other { }",
        "use a as b;\nuse b as a;\nfn f() { a::x::y(); b::x::y(); }",
        "use self::x::*;\nmod x { pub use super::*; }\nfn f() { none::y(); }",
        "macro_rules! own { () => {} }\nfn f() { own!(); other!(); std::println!(); }",
    ];
    for (found, source) in imported(&layered(), &sources).iter().zip(sources) {
        assert!(found.is_empty(), "{source}\n{found:?}");
    }
}

#[test]
fn a_rust_path_is_one_import_with_its_first_line() {
    let project = layered();
    let source = "fn f() {\n crate::web::page::page();\n crate::web::page::x(crate::Given::new());\n \
                  crate::web::X;\n}\nuse crate::domain;\nfn g() { domain::h(); }\n";
    project.write("src/domain/a.rs", source);
    let store = project.open();
    ingest(&store, "WORKTREE");
    let query = "MATCH (:File {path: 'src/domain/a.rs'})-[i:IMPORTS]->(t) \
                 RETURN t.path, i.specifier, i.names, i.line ORDER BY i.line, t.path";
    // Who uses what a file gives on does not use the file where it is from.
    let expected = json!([
        ["src/web/page.rs", "crate::web::page::page", [], 2],
        ["src/lib.rs", "crate::Given::new", [], 3],
        ["src/web/mod.rs", "crate::web::X", [], 4],
        ["src/domain/mod.rs", "crate", ["domain"], 6],
    ]);
    assert_eq!(json!(rows(&store, "WORKTREE", query)), expected);
}

#[test]
fn names_that_rust_modules_get_later_are_seen() {
    let project = layered();
    project.write("src/lib.rs", "mod domain;\nmod web;\n");
    project.write("src/domain/a.rs", "fn f() { crate::later::page::page(); }\n");
    project.write("src/domain/b.rs", "use super::*;\nfn f() { later::page::page(); }\n");
    let store = project.open();
    ingest(&store, "WORKTREE");
    let query = "MATCH (f:File)-[:IMPORTS]->(:File {path: 'src/web/page.rs'}) \
                 WHERE f.path STARTS WITH 'src/domain/' RETURN f.path ORDER BY f.path";
    assert!(rows(&store, "WORKTREE", query).is_empty());
    for (lib, module, count) in [
        ("use web as later;\n", "", 1),
        ("id! { use web as later; }\n", "use crate::web as later;\n", 2),
        ("", "pub use crate::*;\n", 0),
        ("use crate as c;\nuse c::web as later;\n", "pub use crate::*;\n", 2),
        ("", "", 0),
    ] {
        project.write("src/lib.rs", format!("mod domain;\nmod web;\n{lib}"));
        project.write("src/domain/mod.rs", module);
        ingest(&store, "WORKTREE");
        assert_eq!(rows(&store, "WORKTREE", query).len(), count, "{lib}{module}");
    }
}

#[test]
fn a_rust_path_of_2015_begins_at_the_root() {
    let project = layered();
    project.write("Cargo.toml", "[package]\nname = \"my-shop\"\nversion = \"0.1.0\"\n");
    let sources = [
        "fn f() { ::web::page::page(); }",
        "use my_shop as s;\nfn f() { s::web::page::page(); }",
        "fn f() { assert!(::web::page::page() == ()); }",
        "use web::page;",
        "use ::web::page;",
        "fn f() { vec![::web::page::X]; }",
    ];
    for (found, source) in imported(&project, &sources).iter().zip(sources) {
        assert!(found.contains(&"web/page.rs".to_owned()), "{source}\n{found:?}");
    }
}

#[test]
fn other_targets_name_their_own_package() {
    let project = layered();
    for path in ["src/main.rs", "src/bin/tool.rs", "tests/all.rs", "examples/show.rs"] {
        project.write(path, "fn main() { my_shop::web::page::page(); }\n");
    }
    let store = project.open();
    ingest(&store, "WORKTREE");
    let query = "MATCH (f:File)-[:IMPORTS {specifier: 'my_shop::web::page::page'}]->\
                 (:File {path: 'src/web/page.rs'}) RETURN count(f)";
    assert_eq!(rows(&store, "WORKTREE", query), [[json!(4)]]);
}
