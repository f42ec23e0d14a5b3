//! Random histories: whatever way they are ingested, every commit looks the same.

use std::collections::BTreeMap;

use git2::Oid;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tgp_contract::Graph;
use tgp_graph::{GraphOptions, GraphStore};

use crate::support::{Project, ingest, picture, rows, run, without_history};

/// Small projects, one for each language and one of all, so that files, directories and manifests come and go.
const PROJECTS: [&[&str]; 8] = [
    &["a.ts", "b.ts", "lib/c.ts", "lib/index.ts", "lib/b.tsx", "package.json", "tsconfig.json"],
    &["d.py", "pkg/e.py", "pkg/__init__.py", "pkg/sub/e.py"],
    &["src/lib.rs", "src/m.rs", "src/m/n.rs", "Cargo.toml"],
    &[
        "Cargo.toml",
        "crates/a/Cargo.toml",
        "crates/b/Cargo.toml",
        "crates/a/src/lib.rs",
        "crates/b/src/lib.rs",
        "crates/b/src/m.rs",
    ],
    &[
        "package.json",
        "packages/a/package.json",
        "packages/b/package.json",
        "packages/a/index.ts",
        "packages/b/index.ts",
        "packages/b/tsconfig.json",
        "tsconfig.json",
        "packages/b/c.ts",
    ],
    &["go.mod", "x.go", "y.go", "w.go", "sub/z.go", "sub/y.go"],
    &["p/A.java", "p/B.java", "p/C.java", "q/A.java"],
    &[
        "a.ts",
        "b.ts",
        "lib/b.tsx",
        "package.json",
        "d.py",
        "src/lib.rs",
        "src/m.rs",
        "x.go",
        "p/A.java",
        "notes.md",
    ],
];

/// Asked at every commit.
const QUERIES: [&str; 6] = [
    "MATCH (a)-[:REFERENCES]->(b:Symbol) RETURN a.path, a.name, b.path, b.qualifiedName ORDER BY a.path, a.name, b.path, b.qualifiedName",
    "MATCH (f:File)-[i:IMPORTS]->(t) RETURN f.path, i.specifier, t.path, t.name ORDER BY f.path, i.line, i.specifier, t.path",
    "MATCH (a)-[:CALLS]->(b:Symbol) RETURN a.path, a.name, b.path, b.qualifiedName ORDER BY a.path, a.name, b.path, b.qualifiedName",
    "MATCH (f:File)-[c:CHANGED_IN]->(k:Commit) RETURN f.path, c.change, k.message ORDER BY f.path, k.message",
    "MATCH (f:File)-[r:WAS_RENAMED_FROM]->(o:File) RETURN f.path, o.path, r.commit ORDER BY f.path, o.path, r.commit",
    "MATCH (f:File)-[:IMPORTS*1..3]->(t:File) RETURN DISTINCT f.path, t.path ORDER BY f.path, t.path",
];

/// A package in a workspace, and who uses it; the workspace comes and goes with its manifest.
fn workspace_content(path: &str) -> Option<[&'static str; 4]> {
    Some(match path {
        "crates/a/Cargo.toml" | "crates/b/Cargo.toml" => [
            "[package]\nname = \"a\"\nversion.workspace = true\n",
            "[package]\nname = \"b\"\nversion = \"1.0.0\"\n[dependencies]\na = { path = \"../a\" }\n",
            "[package]\nname = \"other\"\nedition = \"2015\"\n[lib]\nname = \"a\"\n[dependencies]\na = { workspace = true }\n",
            "[package]\nname = \"b\"\nedition = \"2021\"\n[lib]\npath = \"src/m.rs\"\n[dependencies]\nq = { package = \"a\", path = \"../a\" }\n",
        ],
        "crates/a/src/lib.rs" | "crates/b/src/lib.rs" | "crates/b/src/m.rs" => [
            "pub fn f() {}\npub struct K;\nimpl K { pub fn m(&self) {} }\n",
            "mod m;\nuse a::{f, K};\npub fn g(k: K) { f(); k.m(); m::f(); }\n",
            "use q::f;\nuse ::m::f as h;\nfn g() { f(); h(); b::f(); other::f(); }\n",
            "use b::*;\nuse crate::m::f;\nfn g() { f(); a::f(); }\n",
        ],
        "packages/a/package.json" | "packages/b/package.json" => [
            "{\"name\": \"@own/a\", \"version\": \"1.0.0\", \"main\": \"index.js\"}",
            "{\"name\": \"@own/b\", \"exports\": {\".\": \"./c.ts\"}, \"dependencies\": {\"@own/a\": \"workspace:*\"}}",
            "{\"name\": \"@own/a\", \"imports\": {\"#c\": \"./c.ts\", \"#a\": \"@own/a\"}}",
            "{\"private\": true, \"imports\": {\"#c\": \"./index.ts\"}}",
        ],
        "packages/a/index.ts" | "packages/b/index.ts" | "packages/b/c.ts" => [
            "export function f() {}\nexport class K { m() {} }\n",
            "import { f, K } from '@own/a';\nexport { f as g } from '@own/b';\nf(); new K().m();\n",
            "import { f } from '#c';\nimport { g } from '#a';\nimport { K } from '@/c';\nf(); g(); export class L extends K {}\n",
            "import { f } from 'c';\nimport pad from 'left-pad';\nexport * from '@own/b';\nimport.meta.glob('/packages/*/*.ts');\nf(); pad();\n",
        ],
        _ => return None,
    })
}

fn content(path: &str, variant: usize) -> String {
    if let Some(variants) = workspace_content(path) {
        return variants[variant % 4].to_owned();
    }
    let variants: [&str; 4] = match path.rsplit('.').next().unwrap() {
        "ts" | "tsx" => [
            "export function f() {}\nexport class K { m() { this.n(); } n() {} }\nexport const MAX = 1;\nexport default f;\n",
            "import { f, K } from './b';\nimport * as c from './lib/c';\nexport function g(k: K) { f(); c.f(); c.g(); k.m(); return c.MAX; }\nexport class L extends K { m() { super.m(); this.n(); } }\n",
            "export * from './lib';\nimport pad from 'left-pad';\nimport { f } from '@/b';\npad(); f();\n",
            "import { f, g as h } from './lib/index.js';\nimport k, { K, L } from 'own';\nexport { f };\nh(); f(); new K().m(); const l = new L(); l.n(); l.m(); const all = [f, MAX];\nimport.meta.glob(['./lib/**/*.ts', '!**/c.ts']);\n",
        ],
        "py" => [
            "def f():\n    pass\nclass K:\n    def m(self):\n        self.n()\n    def n(self):\n        pass\nX = K\n",
            "from pkg import e\nimport os.path\ne.f()\nos.path.join()\n",
            "from .e import f as h, K\nfrom .. import d\ndef g(k: K):\n    h()\n    K()\n    d.f()\n    k.m()\n    return d.X\nclass L(K):\n    def m(self):\n        super().m()\n        self.n()\n",
            "import pkg.e\nfrom d import *\nX = 1\npkg.e.f()\nf()\n",
        ],
        "rs" => [
            "pub fn f() {}\npub struct K;\nimpl K { pub fn m(&self) { self.n(); f(); } fn n(&self) {} }\n",
            "mod m;\nmod n;\npub use m::f;\nconst X: u8 = 1;\nfn g(k: K) -> u8 { f(); m::f(); crate::m::f(); k.m(); X }\n",
            "use crate::m::{f, K};\nuse serde::Serialize;\nstruct S { k: K }\nimpl S { fn s(&self) { self.k.m(); let _ = f; } }\nmod inner { use super::*; fn h() { f(); K::m(); } }\n",
            "use own::m::f;\nuse super::K;\nfn x() { f(); assert!(f()); other::f(); }\n",
        ],
        "go" => [
            "package x\n\ntype K struct{}\n\nconst Max = 1\n\nfunc (k *K) M() { F() }\n\nfunc F() {}\n",
            "package x\n\nimport (\n\t\"example.com/own/sub\"\n\t\"fmt\"\n)\n\nfunc G(k *K) int { sub.F(); fmt.Println(); F(); k.M(); return Max }\n",
            "package sub\n\nfunc F() { H() }\nfunc H() {}\n",
            "package x\n\nimport s \"example.com/own\"\n\nfunc G() { s.F(); k.M() }\n",
        ],
        "java" => [
            "package p;\npublic class A { public static void f() { g(); } static void g() {} }\n",
            "package p;\npublic class B extends A { A a; void x() { A.f(); new A(); a.f(); super.f(); } }\n",
            "package p;\nimport p.A;\nimport static p.A.f;\nimport java.util.*;\nclass B { void x() { f(); } class In {} }\n",
            "package q;\nimport p.*;\nclass A { void y() { B.x(); B b = new B(); b.x(); } }\n",
        ],
        "json" if path == "package.json" => [
            "{\"name\": \"own\", \"version\": \"1.0.0\", \"main\": \"lib/index.js\"}",
            "{\"name\": \"own\", \"version\": \"1.1.0\", \"exports\": {\".\": \"./b.ts\"}}",
            "{\"name\": \"left-pad\", \"main\": \"a\", \"workspaces\": [\"packages/*\"]}",
            "{ broken",
        ],
        "json" => [
            "{\"compilerOptions\": {\"paths\": {\"@/*\": [\"./*\"]}}}",
            "{\"compilerOptions\": {\"baseUrl\": \"lib\", /* comment */ \"paths\": {\"@/*\": [\"*\"],}}}",
            "{}",
            "[",
        ],
        "toml" => [
            "[package]\nname = \"own\"\nversion = \"1.0.0\"\n",
            "[package]\nname = \"own\"\nversion = \"2.0.0\"\n[lib]\npath = \"src/m.rs\"\n",
            "[package]\nname = \"serde\"\nversion = \"1.0.0\"\n[dependencies]\nother = { package = \"own\", version = \"1\" }\n",
            "[workspace]\nmembers = [\"crates/*\"]\n[workspace.package]\nversion = \"3.0.0\"\n[workspace.dependencies]\na = { path = \"crates/a\" }\n",
        ],
        "mod" => ["module example.com/own\n", "module example.com/own/sub\n", "module other\n", ""],
        _ => ["one\n", "two\nlines\n", "", "no end"],
    };
    variants[variant % 4].to_owned()
}

#[derive(Clone, Debug)]
pub enum Edit {
    Write(&'static str, usize),
    Delete(&'static str),
    Rename(&'static str, &'static str),
}

/// A commit: its parent (counted back from the newest), what it merges, and what it changes.
#[derive(Clone, Debug)]
pub struct Step {
    parent: usize,
    merge: Option<usize>,
    edits: Vec<Edit>,
}

fn written(paths: &'static [&'static str]) -> impl Strategy<Value = Edit> {
    (prop::sample::select(paths), 0usize..4).prop_map(|(path, variant)| Edit::Write(path, variant))
}

fn edits(paths: &'static [&'static str]) -> impl Strategy<Value = Vec<Edit>> {
    let path = prop::sample::select(paths);
    let edit = prop_oneof![
        6 => written(paths),
        2 => path.clone().prop_map(Edit::Delete),
        2 => (path.clone(), path).prop_map(|(from, to)| Edit::Rename(from, to)),
    ];
    prop::collection::vec(edit, 0..4)
}

fn steps(paths: &'static [&'static str]) -> impl Strategy<Value = Vec<Step>> {
    let parent = prop_oneof![3 => Just(0usize), 1 => 0usize..4];
    let merge = prop_oneof![3 => Just(None), 1 => (1usize..4).prop_map(Some)];
    let step = (parent, merge, edits(paths)).prop_map(|(parent, merge, edits)| Step { parent, merge, edits });
    // The first commit has much in it, else nothing is ever linked.
    let all = prop::collection::vec(written(paths), 6..16);
    (all, prop::collection::vec(step, 1..8)).prop_map(|(edits, mut steps)| {
        steps.insert(0, Step { parent: 0, merge: None, edits });
        steps
    })
}

/// A history, and the files on the disk after it.
pub fn story() -> impl Strategy<Value = (Vec<Step>, Vec<Edit>)> {
    prop::sample::select(&PROJECTS[..]).prop_flat_map(|paths| (steps(paths), edits(paths)))
}

pub type Tree = BTreeMap<String, String>;

pub fn edited(tree: &Tree, edits: &[Edit]) -> Tree {
    let mut tree = tree.clone();
    for edit in edits {
        match edit {
            Edit::Write(path, variant) => {
                tree.insert((*path).to_owned(), content(path, *variant));
            }
            Edit::Delete(path) => {
                tree.remove(*path);
            }
            Edit::Rename(from, to) => {
                if let Some(text) = tree.remove(*from) {
                    tree.insert((*to).to_owned(), text);
                }
            }
        }
    }
    tree
}

/// Makes the history; answers each commit with its tree.
pub fn build(project: &mut Project, steps: &[Step]) -> Vec<(String, Tree)> {
    let mut commits: Vec<(String, Tree)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let back = |distance: usize| number.checked_sub(1 + distance).and_then(|index| commits.get(index));
        let parent = back(step.parent.min(number.saturating_sub(1)));
        let merged =
            step.merge.and_then(back).filter(|other| Some(&other.0) != parent.map(|parent| &parent.0));
        let mut tree = parent.map(|parent| parent.1.clone()).unwrap_or_default();
        if let Some((_, other)) = merged {
            tree.extend(other.iter().map(|(path, text)| (path.clone(), text.clone())));
        }
        let tree = edited(&tree, &step.edits);
        let parents: Vec<Oid> =
            [parent, merged].into_iter().flatten().map(|(id, _)| Oid::from_str(id).unwrap()).collect();
        let git = project.git();
        let mut index = git2::Index::new().unwrap();
        for (path, text) in &tree {
            let id = git.blob(text.as_bytes()).unwrap();
            index.add(&entry(path, id)).unwrap();
        }
        let id = index.write_tree_to(git).unwrap();
        let id = project.commit_tree(&format!("commit {number}"), id, &parents);
        commits.push((id, tree));
    }
    let last = Oid::from_str(&commits.last().unwrap().0).unwrap();
    project.git().reference("refs/heads/main", last, true, "the last one").unwrap();
    commits
}

fn entry(path: &str, id: Oid) -> git2::IndexEntry {
    git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

/// The same files without any git, as a draft.
fn checkout(tree: &Tree) -> Vec<String> {
    let plain = Project::without_git();
    for (path, text) in tree {
        plain.write(path, text);
    }
    let store = plain.open();
    ingest(&store, "WORKTREE");
    picture(&store, "WORKTREE")
}

pub fn same(left: &[String], right: &[String], what: &str) -> Result<(), TestCaseError> {
    if left == right {
        return Ok(());
    }
    let only_left: Vec<&String> = left.iter().filter(|line| !right.contains(line)).collect();
    let only_right: Vec<&String> = right.iter().filter(|line| !left.contains(line)).collect();
    prop_assert!(false, "{what}\nonly in the first: {only_left:#?}\nonly in the second: {only_right:#?}");
    Ok(())
}

#[test]
fn incremental_equals_rebuild() {
    let mut runner = TestRunner::new(Config { cases: 20, failure_persistence: None, ..Config::default() });
    let strategy = (story(), prop::collection::vec(any::<prop::sample::Index>(), 8));
    runner
        .run(&strategy, |((steps, dirty), order)| {
            let mut project = Project::new();
            let commits = build(&mut project, &steps);
            // All at once, each tip in turn.
            let bulk = project.fresh("bulk.sqlite");
            for (id, _) in commits.iter().rev() {
                ingest(&bulk, id);
            }
            // One by one in any order, with a dirty work tree read in between.
            let random = project.fresh("random.sqlite");
            let tree = edited(&commits.last().unwrap().1, &dirty);
            for (path, text) in &tree {
                project.write(path, text);
            }
            let mut left: Vec<&String> = commits.iter().map(|(id, _)| id).collect();
            for (turn, index) in order.iter().enumerate() {
                if left.is_empty() {
                    break;
                }
                ingest(&random, left.remove(index.index(left.len())));
                if turn % 3 == 1 {
                    ingest(&random, "WORKTREE");
                    same(
                        &without_history(picture(&random, "WORKTREE")),
                        &checkout(&tree),
                        "draft and checkout",
                    )?;
                }
            }
            for id in left {
                ingest(&random, id);
            }
            for (number, (id, tree)) in commits.iter().enumerate() {
                let all = picture(&bulk, id);
                same(&all, &picture(&random, id), &format!("bulk and random order at commit {number}"))?;
                let alone = project.fresh(&format!("alone-{number}.sqlite"));
                ingest(&alone, id);
                for query in QUERIES {
                    prop_assert_eq!(
                        rows(&bulk, id, query),
                        rows(&alone, id, query),
                        "{} at {}",
                        query,
                        number
                    );
                }
                same(&all, &picture(&alone, id), &format!("bulk and alone at commit {number}"))?;
                same(
                    &without_history(all),
                    &checkout(tree),
                    &format!("bulk and checkout at commit {number}"),
                )?;
            }
            Ok(())
        })
        .unwrap();
}

/// Two processes' worth of stores on one file, both ingesting.
#[test]
fn two_stores_on_one_file_agree() {
    let mut project = Project::new();
    for number in 0..30 {
        project.write("a.ts", format!("export function f{number}() {{}}\n"));
        project.write(&format!("n{number}.ts"), "import * as a from './a';\na.f3();\n");
        project.commit(&format!("commit {number}"));
    }
    let open = || run(GraphStore::open(project.options())).unwrap();
    let (left, right) = (open(), open());
    std::thread::scope(|scope| {
        for store in [&left, &right] {
            scope.spawn(move || {
                for back in [20, 10, 0] {
                    run(store.ingest(&format!("HEAD~{back}"))).unwrap();
                    run(store.ingest("WORKTREE")).unwrap();
                }
            });
        }
    });
    let options: GraphOptions = project.options_at("alone.sqlite", &project.root());
    let alone = run(GraphStore::open(options)).unwrap();
    ingest(&alone, "HEAD");
    for back in [0, 7, 26] {
        let name = format!("HEAD~{back}");
        assert_eq!(picture(&left, &name), picture(&alone, &name));
        assert_eq!(picture(&right, &name), picture(&alone, &name));
    }
}
