//! T2: questions that nobody has written down before. Names, files and relations are made for each run, and the answers
//! are worked out here, from what was made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;
use tgp_contract::GraphQuery;

use super::Running;
use super::t2_graph::{asked, ingest, rows, sorted};
use crate::fault::{Expecting, Fault, same};
use crate::world::World;

/// Sources of a project. Each imports only such as come before it.
const SOURCES: usize = 9;
/// Folders of a project.
const FOLDERS: usize = 3;

/// Numbers that differ from run to run.
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(RandomState::new().hash_one("relay"))
    }

    /// The next number of the sequence splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    /// A name that is new: it begins with a letter and is no word of any language.
    fn name(&mut self, begins: &str) -> String {
        format!("{begins}{:012x}", self.next() >> 16)
    }

    fn one_of<'t, T>(&mut self, items: &'t [T]) -> Result<&'t T, Fault> {
        let at = self.below(items.len());
        items.get(at).ok_or_else(|| Fault::new("a project with files", "none, which is a bug of the kit"))
    }
}

/// A source and what it says.
#[derive(Clone)]
struct Source {
    folder: String,
    name: String,
    symbols: Vec<String>,
    /// Paths of other sources.
    imports: BTreeSet<String>,
}

impl Source {
    fn path(&self) -> String {
        format!("{}/{}.ts", self.folder, self.name)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (number, path) in self.imports.iter().enumerate() {
            let path = path.strip_suffix(".ts").unwrap_or(path);
            let up = "../".repeat(self.folder.split('/').count());
            let _ = writeln!(text, "import * as m{number} from '{up}{path}';");
        }
        for (number, symbol) in self.symbols.iter().enumerate() {
            let _ = match number % 2 {
                0 => writeln!(text, "export function {symbol}() {{\n  return {number};\n}}"),
                _ => writeln!(text, "export const {symbol} = {number};"),
            };
        }
        text
    }
}

/// A project of sources with names of this run.
fn project(random: &mut Random) -> Result<Vec<Source>, Fault> {
    let mut folders: Vec<String> = (0..FOLDERS).map(|_| random.name("d")).collect();
    // The name of one folder is also in the middle of a path.
    let inner = folders.first().map(|first| format!("{}/{first}", random.name("d")));
    folders.extend(inner);
    let mut sources: Vec<Source> = Vec::new();
    for number in 0..SOURCES {
        let folder = folders.get(number % folders.len()).cloned().unwrap_or_default();
        let mut imports = BTreeSet::new();
        if let Some(last) = sources.last() {
            imports.insert(last.path());
            imports.insert(random.one_of(&sources)?.path());
        }
        let symbols = (0..=random.below(3)).map(|_| random.name("s")).collect();
        sources.push(Source { folder, name: random.name("f"), symbols, imports });
    }
    Ok(sources)
}

/// The next state of a project: one source is gone, one has other symbols, one is new.
fn changed(random: &mut Random, sources: &[Source]) -> Result<Vec<Source>, Fault> {
    let mut sources = sources.to_vec();
    let gone = sources.remove(random.below(sources.len())).path();
    for source in &mut sources {
        source.imports.remove(&gone);
    }
    let at = random.below(sources.len());
    if let Some(source) = sources.get_mut(at) {
        source.symbols = vec![random.name("s")];
    }
    let imports = [random.one_of(&sources)?.path(), random.one_of(&sources)?.path()].into();
    let folder = random.one_of(&sources)?.folder.clone();
    sources.push(Source { folder, name: random.name("f"), symbols: vec![random.name("s")], imports });
    Ok(sources)
}

fn by_path<'s>(sources: &'s [Source], path: &str) -> Option<&'s Source> {
    sources.iter().find(|source| source.path() == path)
}

/// A question with its answer.
struct Composed {
    question: GraphQuery,
    columns: Vec<String>,
    rows: BTreeSet<Vec<String>>,
}

/// Puts questions together: every name in them is new, and values are parameters or are written out.
struct Composer<'r> {
    random: &'r mut Random,
    question: GraphQuery,
    columns: Vec<String>,
}

impl<'r> Composer<'r> {
    fn new(random: &'r mut Random) -> Self {
        Self { random, question: GraphQuery::default(), columns: Vec::new() }
    }

    /// A value as it is in the text.
    fn value(&mut self, text: &str) -> String {
        if self.random.below(2) == 0 {
            return format!("'{text}'");
        }
        let name = self.random.name("p");
        self.question.params.insert(name.clone(), Value::from(text));
        format!("${name}")
    }

    fn list(&mut self, texts: &[String]) -> String {
        let name = self.random.name("p");
        self.question.params.insert(name.clone(), Value::from(texts.to_vec()));
        format!("${name}")
    }

    /// A condition on a property: in the braces of the pattern, or behind `WHERE`.
    fn equals(&mut self, variable: &str, label: &str, property: &str, text: &str) -> (String, String) {
        let value = self.value(text);
        match self.random.below(2) {
            0 => (format!("({variable}:{label} {{{property}: {value}}})"), String::new()),
            _ => (format!("({variable}:{label})"), format!(" WHERE {variable}.{property} = {value}")),
        }
    }

    fn done(
        mut self,
        pattern: &str,
        returned: &[(&str, &str)],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Composed {
        let mut columns = Vec::new();
        for (variable, property) in returned {
            let column = self.random.name("c");
            columns.push(format!("{variable}.{property} AS {column}"));
            self.columns.push(column);
        }
        let space = if self.random.below(2) == 0 { " " } else { "\n  " };
        let text = format!("MATCH {pattern}{space}RETURN DISTINCT {}", columns.join(", "));
        let question = GraphQuery { query: text, ..self.question };
        Composed { question, columns: self.columns, rows: rows.into_iter().collect() }
    }
}

/// Everything that is asked about one state of the project.
fn questions(random: &mut Random, sources: &[Source]) -> Result<Vec<Composed>, Fault> {
    let one = random.one_of(sources)?.clone();
    let leaf = sources.last().cloned().unwrap_or_else(|| one.clone());
    let symbol = random.one_of(&one.symbols)?.clone();
    let importers = |path: &str| -> Vec<&Source> {
        sources.iter().filter(|source| source.imports.contains(path)).collect()
    };
    let used = sources.iter().max_by_key(|source| importers(&source.path()).len()).unwrap_or(&one).path();
    let (a, b, c) = (random.name("a"), random.name("b"), random.name("c"));
    let (a, b, c) = (a.as_str(), b.as_str(), c.as_str());
    let mut all = Vec::new();

    // The first folder, whose name is also inside of another path.
    let mut ask = Composer::new(random);
    let prefix = format!("{}/", sources.first().unwrap_or(&one).folder);
    let folder = ask.value(&prefix);
    let inside = sources.iter().filter(|source| source.path().starts_with(&prefix));
    let pattern = format!("({a}:File) WHERE {a}.path STARTS WITH {folder}");
    all.push(ask.done(
        &pattern,
        &[(a, "name"), (a, "path")],
        inside.map(|s| vec![format!("{}.ts", s.name), s.path()]),
    ));

    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(a, "File", "name", &format!("{}.ts", one.name));
    all.push(ask.done(&format!("{node}{condition}"), &[(a, "path")], [vec![one.path()]]));

    // What nothing is named.
    let mut ask = Composer::new(random);
    let name = ask.random.name("n");
    let (node, condition) = ask.equals(a, "Symbol", "name", &name);
    all.push(ask.done(&format!("{node}{condition}"), &[(a, "path")], []));

    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(b, "Symbol", "name", &symbol);
    let pattern = format!("({a}:File)-[:DEFINES]->{node}{condition}");
    all.push(ask.done(&pattern, &[(b, "name"), (a, "path")], [vec![symbol.clone(), one.path()]]));

    let mut ask = Composer::new(random);
    let paths = ask.list(&[one.path(), leaf.path()]);
    let pattern = format!("({a}:File)-[:DEFINES]->({b}:Symbol) WHERE {a}.path IN {paths}");
    let defined = [&one, &leaf].into_iter().flat_map(|s| s.symbols.iter().map(|name| vec![name.clone()]));
    all.push(ask.done(&pattern, &[(b, "name")], defined));

    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(a, "File", "path", &leaf.path());
    let pattern = format!("{node}-[:IMPORTS]->({b}:File){condition}");
    all.push(ask.done(&pattern, &[(b, "path")], leaf.imports.iter().map(|path| vec![path.clone()])));

    // The same relationship, read from the other end.
    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(a, "File", "path", &used);
    let pattern = format!("{node}<-[:IMPORTS]-({b}:File){condition}");
    all.push(ask.done(&pattern, &[(b, "path")], importers(&used).iter().map(|s| vec![s.path()])));

    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(a, "File", "path", &leaf.path());
    let pattern = format!("{node}-[:IMPORTS]->({b}:File)-[:IMPORTS]->({c}:File){condition}");
    let steps = leaf.imports.iter().filter_map(|path| by_path(sources, path));
    let pairs = steps.flat_map(|s| s.imports.iter().map(|path| vec![path.clone(), s.path()]));
    all.push(ask.done(&pattern, &[(c, "path"), (b, "path")], pairs));

    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(a, "File", "path", &leaf.path());
    let pattern = format!("{node}-[:IMPORTS*]->({b}:File){condition}");
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = leaf.imports.iter().cloned().collect();
    while let Some(path) = open.pop() {
        if reached.insert(vec![path.clone()]) {
            open.extend(by_path(sources, &path).into_iter().flat_map(|s| s.imports.iter().cloned()));
        }
    }
    all.push(ask.done(&pattern, &[(b, "path")], reached));

    // Who imports what defines a symbol, of one folder.
    let mut ask = Composer::new(random);
    let name = ask.value(&symbol);
    let folder = ask.value(&leaf.folder);
    let pattern = format!(
        "({a}:File)-[:IMPORTS]->({b}:File)-[:DEFINES]->({c}:Symbol) WHERE {c}.name = {name} AND {a}.path CONTAINS {folder}"
    );
    let found = importers(&one.path());
    let found = found.into_iter().map(Source::path).filter(|path| path.contains(&leaf.folder));
    all.push(ask.done(&pattern, &[(a, "path")], found.map(|path| vec![path])));

    // Two files that import the same one: a relationship is used once.
    let mut ask = Composer::new(random);
    let (node, condition) = ask.equals(b, "File", "path", &used);
    let pattern = format!("({a}:File)-[:IMPORTS]->{node}<-[:IMPORTS]-({c}:File){condition}");
    let users: Vec<String> = importers(&used).into_iter().map(Source::path).collect();
    let pairs = users.iter().flat_map(|first| {
        users.iter().filter(move |second| *second != first).map(|second| vec![first.clone(), second.clone()])
    });
    let pairs: Vec<_> = pairs.collect();
    all.push(ask.done(&pattern, &[(a, "path"), (c, "path")], pairs));
    Ok(all)
}

/// Makes the files of the project those of `sources`.
fn write(world: &World, before: &[Source], sources: &[Source]) -> Result<(), Fault> {
    for source in before.iter().filter(|source| by_path(sources, &source.path()).is_none()) {
        world.workspace.remove(&source.path())?;
    }
    for source in sources {
        world.workspace.write(&source.path(), &source.text())?;
    }
    Ok(())
}

pub(super) fn composed_questions(world: &World) -> Running<'_> {
    Box::pin(async move {
        let graph = world.graph()?;
        let random = &mut Random::new();
        let first = project(random)?;
        let second = changed(random, &first)?;
        let draft = changed(random, &second)?;
        write(world, &[], &first)?;
        let first_commit = world.workspace.commit("first").await?;
        write(world, &first, &second)?;
        let second_commit = world.workspace.commit("second").await?;
        ingest(graph.as_ref(), &second_commit).await?;
        write(world, &second, &draft)?;
        ingest(graph.as_ref(), "WORKTREE").await?;
        for (sources, commit) in
            [(&first, first_commit.as_str()), (&second, second_commit.as_str()), (&draft, "WORKTREE")]
        {
            for Composed { question, columns, rows: expected } in questions(random, sources)? {
                let question = question.at(commit);
                let asked = asked(&question);
                let answer = graph.query(question).await.expecting(&format!("an answer to {asked}"))?;
                same(&format!("the columns of {asked}"), &answer.columns, &columns)?;
                let expected: Vec<Vec<String>> = expected.into_iter().collect();
                same(&format!("the answer to {asked}"), &sorted(&answer, &asked)?, &expected)?;
            }
        }
        // A name that has never been asked for: the number of files, however they are found.
        let name = random.name("f");
        let question = GraphQuery::new(format!("MATCH ({name}:File) RETURN {name}.path AS {name}"));
        let paths: BTreeSet<Vec<String>> = second.iter().map(|source| vec![source.path()]).collect();
        let found = rows(graph.as_ref(), question.at(second_commit)).await?;
        same("all files", &found, &paths.into_iter().collect::<Vec<_>>())
    })
}
