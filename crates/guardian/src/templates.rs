//! Common rules that need no Cypher: each becomes the query of an invariant.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tgp_contract::RelativePath;

use crate::invariants::{Expect, Probe};
use crate::undecided::Dependence;

/// Layers of one rule: each pair of them is a condition of its query.
const MAX_LAYERS: usize = 20;
/// Files and folders that one rule lists.
const MAX_PATHS: usize = 100;
/// Lines of a file: a larger limit is none.
const MAX_LINES: u64 = 1_000_000;
/// The whole project, where a rule names a folder.
const PROJECT: &str = ".";

/// `ownership`: who may import what is in a folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ownership {
    folder: String,
    /// Files and folders outside of it that may.
    #[serde(default)]
    users: Vec<String>,
    /// Files of it that everybody may import.
    #[serde(default)]
    public: Vec<String>,
}

/// `size`: how long a file may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    folder: String,
    lines: u64,
}

/// A rule as the file has it.
#[derive(Clone, Debug)]
pub(super) enum Template {
    Layers(Vec<String>),
    Cycles(String),
    PublicApi(Vec<String>),
    Ownership(Ownership),
    Size(Size),
}

/// What a rule becomes.
pub(super) struct Rule {
    pub(super) query: String,
    pub(super) expect: Expect,
    pub(super) params: Map<String, Value>,
    /// The message where the file has none.
    pub(super) message: String,
    pub(super) probes: Vec<Probe>,
    pub(super) dependence: Dependence,
}

impl Template {
    /// The rule, or what is wrong with it and the next step.
    pub(super) fn rule(self) -> Result<Rule, (String, &'static str)> {
        match self {
            Self::Layers(layers) => rule_of_layers(&layers),
            Self::Cycles(folder) => rule_of_cycles(&folder),
            Self::PublicApi(files) => rule_of_public_api(&files),
            Self::Ownership(ownership) => rule_of_ownership(&ownership),
            Self::Size(size) => rule_of_size(&size),
        }
    }
}

type Checked<T> = Result<T, (String, &'static str)>;

fn rule_of_layers(layers: &[String]) -> Checked<Rule> {
    if !(2..=MAX_LAYERS).contains(&layers.len()) {
        let message = format!("`layers` has {} folders, from 2 to {MAX_LAYERS} are needed", layers.len());
        return Err((
            message,
            "list the folders from the top layer to the lowest, such as [src/web, src/db]",
        ));
    }
    let mut params = Map::new();
    let mut probes = Vec::new();
    for (at, layer) in layers.iter().enumerate() {
        let folder = prefix(layer)?;
        if let Some(other) = layers.get(..at).unwrap_or_default().iter().find(|other| {
            prefix(other).is_ok_and(|other| other.starts_with(&folder) || folder.starts_with(&other))
        }) {
            let message = format!("the layers `{other}` and `{layer}` are in each other");
            return Err((message, "name folders that have no files in common"));
        }
        params.insert(format!("layer{at}"), json!(folder));
        probes.push(probe_of_prefix(layer, &format!("layer{at}")));
    }
    // A file may import its own layer and those below it.
    let upward = |target: &str| {
        let of_layer = |lower: usize| {
            let above: Vec<String> =
                (0..lower).map(|upper| format!("{target} STARTS WITH $layer{upper}")).collect();
            format!("(a.path STARTS WITH $layer{lower} AND ({}))", above.join(" OR "))
        };
        (1..layers.len()).map(of_layer).collect::<Vec<_>>().join(" OR ")
    };
    Ok(Rule {
        query: imports(&upward("b.path"), &upward("u.target")),
        expect: Expect::None,
        dependence: Dependence::ImportsBelow(
            layers.iter().map(|layer| prefix(layer)).collect::<Checked<_>>()?,
        ),
        params,
        message: format!("Imports go down through the layers {}, never up.", layers.join(", ")),
        probes,
    })
}

/// Imports of types alone are gone when the program runs, and make no circle.
fn rule_of_cycles(folder: &str) -> Checked<Rule> {
    let (filter, params) = within("f", folder)?;
    Ok(Rule {
        query: format!(
            "MATCH (f:File) WHERE {filter}(f)-[:IMPORTS* {{typeOnly: false}}]->(f) RETURN f.path AS file"
        ),
        expect: Expect::None,
        probes: if params.is_empty() { Vec::new() } else { vec![probe_of_prefix(folder, "folder")] },
        params,
        // A circle may leave the folder.
        dependence: Dependence::Contents,
        message: "Files do not import each other in a circle.".to_owned(),
    })
}

/// The names that files give to others, and the members of what they name: with `EXPORTS` where the language has it, so that
/// an index file has the names that it passes on.
const PUBLIC_NAMES: &str = "MATCH (f:File)-[e:EXPORTS]->() WHERE f.path IN $files RETURN f.path AS file, e.name AS name \
     UNION MATCH (f:File)-[e:EXPORTS]->(:Symbol)-[:CONTAINS]->(m:Symbol {exported: true}) WHERE f.path IN $files \
     RETURN f.path AS file, e.name + '.' + m.name AS name \
     UNION MATCH (f:File)-[:DEFINES]->(s:Symbol {exported: true}) \
     WHERE f.path IN $files AND NOT f.language IN ['typescript', 'javascript', 'vue', 'svelte', 'astro'] \
     AND NOT EXISTS { (f)-[:EXPORTS]->() } \
     RETURN f.path AS file, s.qualifiedName AS name";

fn rule_of_public_api(files: &[String]) -> Checked<Rule> {
    let files = paths("publicApi", files)?;
    Ok(Rule {
        query: PUBLIC_NAMES.to_owned(),
        expect: Expect::Kept,
        probes: files.iter().enumerate().map(|(at, file)| probe_of_file(file, at)).collect(),
        // What is passed on with `export *` is in other files.
        dependence: Dependence::Contents,
        message: "Others rely on what is exported here.".to_owned(),
        params: Map::from_iter([("files".to_owned(), json!(files))]),
    })
}

fn rule_of_ownership(ownership: &Ownership) -> Checked<Rule> {
    let folder = prefix(&ownership.folder)?;
    let mut users = Vec::new();
    for user in &ownership.users {
        let file = path(user.strip_suffix('/').unwrap_or(user))?;
        users.extend([file, prefix(user)?]);
    }
    let public = if ownership.public.is_empty() { Vec::new() } else { paths("public", &ownership.public)? };
    let outside = |target: &str| {
        format!(
            "{target} STARTS WITH $folder AND NOT {target} IN $public AND NOT a.path STARTS WITH $folder \
             AND NOT any(user IN $users WHERE a.path = user OR (user ENDS WITH '/' AND a.path STARTS WITH user))"
        )
    };
    Ok(Rule {
        query: imports(&outside("b.path"), &outside("u.target")),
        expect: Expect::None,
        probes: vec![probe_of_prefix(&ownership.folder, "folder")],
        params: Map::from_iter([
            ("folder".to_owned(), json!(folder)),
            ("users".to_owned(), json!(users)),
            ("public".to_owned(), json!(public)),
        ]),
        dependence: Dependence::Contents,
        message: format!("What is in {} belongs to its owner.", ownership.folder),
    })
}

fn rule_of_size(size: &Size) -> Checked<Rule> {
    if !(1..=MAX_LINES).contains(&size.lines) {
        return Err((format!("`lines` is {}", size.lines), "write a number from 1 to 1000000"));
    }
    let (filter, mut params) = within("f", &size.folder)?;
    let probes = if params.is_empty() { Vec::new() } else { vec![probe_of_prefix(&size.folder, "folder")] };
    params.insert("lines".to_owned(), json!(size.lines));
    let below = if size.folder == PROJECT { String::new() } else { prefix(&size.folder)? };
    Ok(Rule {
        query: format!(
            "MATCH (f:File) WHERE {filter}f.lines > $lines RETURN f.path AS file, f.lines AS lines"
        ),
        expect: Expect::None,
        params,
        dependence: Dependence::LengthBelow(below),
        message: format!("A file has at most {} lines.", size.lines),
        probes,
    })
}

/// Imports of files, and those that would lead to one that is not there.
fn imports(found: &str, unresolved: &str) -> String {
    format!(
        "MATCH (a:File)-[:IMPORTS]->(b:File) WHERE {found} RETURN a.path AS importer, b.path AS imported \
         UNION MATCH (a:File)-[:IMPORTS]->(u:Unresolved) WHERE {unresolved} \
         RETURN a.path AS importer, u.target AS imported"
    )
}

/// The condition that a file is in a folder; none for the whole project.
fn within(name: &str, folder: &str) -> Checked<(String, Map<String, Value>)> {
    if folder == PROJECT {
        return Ok((String::new(), Map::new()));
    }
    let params = Map::from_iter([("folder".to_owned(), json!(prefix(folder)?))]);
    Ok((format!("{name}.path STARTS WITH $folder AND "), params))
}

fn probe_of_prefix(folder: &str, param: &str) -> Probe {
    Probe {
        shown: format!("the folder `{folder}`"),
        query: format!("MATCH (f:File) WHERE f.path STARTS WITH ${param} RETURN 1 AS found LIMIT 1"),
    }
}

fn probe_of_file(file: &str, at: usize) -> Probe {
    Probe {
        shown: format!("the file `{file}`"),
        query: format!("MATCH (f:File {{path: $files[{at}]}}) RETURN 1 AS found LIMIT 1"),
    }
}

/// A path of the project.
fn path(text: &str) -> Checked<String> {
    match RelativePath::new(text) {
        Ok(path) if !text.is_empty() && path.as_str() == text => Ok(text.to_owned()),
        _ => Err((format!("`{}` is not a path of the project", text.escape_debug()), "write it as src/web")),
    }
}

/// What the paths in a folder begin with; `src/` is the folder `src`.
fn prefix(folder: &str) -> Checked<String> {
    Ok(format!("{}/", path(folder.strip_suffix('/').unwrap_or(folder))?))
}

fn paths(field: &str, all: &[String]) -> Checked<Vec<String>> {
    if !(1..=MAX_PATHS).contains(&all.len()) {
        let message = format!("`{field}` has {} files, from 1 to {MAX_PATHS} are needed", all.len());
        return Err((message, "list the files, such as [src/index.ts]"));
    }
    all.iter().map(|one| path(one)).collect()
}
