//! T2: a graph knows the files of every commit, and of no other.

use std::collections::BTreeSet;

use serde_json::Value;
use tgp_contract::{Change, Code, Graph, GraphQuery, GraphRows, RelativePath};
use tgp_relay_fakes::Question;

use super::{Case, Running, t2_composed};
use crate::fault::{Expecting, Fault, holds, same};
use crate::world::World;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "t2.files-at-commit",
        title: "files are known, and asked for by commit",
        run: files_at_commit,
    },
    Case {
        id: "t2.add-then-remove",
        title: "a file that was removed is there before and not afterwards",
        run: add_then_remove,
    },
    Case {
        id: "t2.rename-chain",
        title: "a file renamed twice leads back to both its names",
        run: rename_chain,
    },
    Case {
        id: "t2.propose",
        title: "a proposal is answered with and without its changes, and makes none of them",
        run: propose,
    },
    Case {
        id: "t2.composed-questions",
        title: "questions that are composed at run time are answered about names made at run time",
        run: t2_composed::composed_questions,
    },
    Case { id: "t2.idempotent-ingest", title: "ingesting again adds nothing", run: idempotent_ingest },
];

/// The rows of the answer to a question.
pub(super) async fn rows(graph: &dyn Graph, question: GraphQuery) -> Result<Vec<Vec<String>>, Fault> {
    let asked = asked(&question);
    let answer = graph.query(question).await.expecting(&format!("an answer to {asked}"))?;
    sorted(&answer, &asked)
}

/// A question as a fault names it.
pub(super) fn asked(question: &GraphQuery) -> String {
    format!("`{}` at {:?} with {}", question.query, question.commit, Value::Object(question.params.clone()))
}

/// The rows of an answer as texts, sorted. A row that comes twice is a fault.
pub(super) fn sorted(answer: &GraphRows, asked: &str) -> Result<Vec<Vec<String>>, Fault> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows: Vec<Vec<String>> = answer.rows.iter().map(|row| row.iter().map(text).collect()).collect();
    let each: BTreeSet<Vec<String>> = rows.iter().cloned().collect();
    holds(each.len() == rows.len(), format!("no row twice in the answer to {asked}"), &rows)?;
    Ok(each.into_iter().collect())
}

/// The paths of a commit's files.
async fn files(graph: &dyn Graph, commit: &str) -> Result<Vec<String>, Fault> {
    let rows = rows(graph, GraphQuery::new(Question::Files.text()).at(commit)).await?;
    Ok(rows.concat())
}

async fn by_path(graph: &dyn Graph, commit: &str, path: &str) -> Result<usize, Fault> {
    let question = GraphQuery::new(Question::FileByPath.text()).param("path", path).at(commit);
    Ok(rows(graph, question).await?.len())
}

pub(super) async fn ingest(graph: &dyn Graph, commit: &str) -> Result<tgp_contract::IngestSummary, Fault> {
    graph.ingest(commit).await.expecting(&format!("an ingest of {commit}"))
}

fn files_at_commit(world: &World) -> Running<'_> {
    Box::pin(async move {
        let graph = world.graph()?;
        world.workspace.write("src/A.ts", "export const a = 1;\n")?;
        world.workspace.write("README.md", "# A\n")?;
        let first = world.workspace.commit("first").await?;
        world.workspace.write("src/B.ts", "import { a } from './A';\nexport const b = a;\n")?;
        let second = world.workspace.commit("second").await?;
        let unknown = GraphQuery::new(Question::Files.text()).at(second.clone());
        let early = graph.query(unknown).await;
        let is_refused = early.as_ref().is_err_and(|error| error.code == Code::NotFound);
        holds(is_refused, "ENOTFOUND for a commit that was not ingested", &early)?;
        let ingested = ingest(graph.as_ref(), &second).await?;
        same("the commit that was ingested", &ingested.commit, &second)?;
        same(
            "files at the first commit",
            &files(graph.as_ref(), &first).await?,
            &vec!["README.md".to_owned(), "src/A.ts".to_owned()],
        )?;
        let both = vec!["README.md".to_owned(), "src/A.ts".to_owned(), "src/B.ts".to_owned()];
        same("files at the second commit", &files(graph.as_ref(), &second).await?, &both)?;
        // Without a commit the latest is meant, never any time.
        let latest = rows(graph.as_ref(), GraphQuery::new(Question::Files.text())).await?;
        same("files where no commit is named", &latest.concat(), &both)
    })
}

fn add_then_remove(world: &World) -> Running<'_> {
    Box::pin(async move {
        let graph = world.graph()?;
        world.workspace.write("x.ts", "export function x() {}\n")?;
        world.workspace.write("y.ts", "import { x } from './x';\nx();\n")?;
        let added = world.workspace.commit("add").await?;
        world.workspace.remove("x.ts")?;
        let removed = world.workspace.commit("remove").await?;
        world.workspace.write("x.ts", "export function x() { return 2; }\n")?;
        let again = world.workspace.commit("add again").await?;
        ingest(graph.as_ref(), &again).await?;
        for (commit, times, when) in
            [(&added, 1, "added"), (&removed, 0, "removed"), (&again, 1, "added again")]
        {
            let found = by_path(graph.as_ref(), commit, "x.ts").await?;
            same(&format!("how often x.ts is found in the commit in which it was {when}"), &found, &times)?;
            let found = by_path(graph.as_ref(), commit, "y.ts").await?;
            same("how often y.ts is found, which nobody has touched", &found, &1)?;
        }
        Ok(())
    })
}

fn rename_chain(world: &World) -> Running<'_> {
    Box::pin(async move {
        let graph = world.graph()?;
        let body = "export function long() {\n  return 'a text that is long enough to be known again';\n}\n";
        world.workspace.write("A.ts", body)?;
        let first = world.workspace.commit("A").await?;
        world.workspace.rename("A.ts", "B.ts")?;
        let second = world.workspace.commit("B").await?;
        world.workspace.rename("B.ts", "C.ts")?;
        let third = world.workspace.commit("C").await?;
        ingest(graph.as_ref(), &third).await?;
        let pair = |new: &str, old: &str| vec![new.to_owned(), old.to_owned()];
        for (commit, expected) in [
            (&first, Vec::new()),
            (&second, vec![pair("B.ts", "A.ts")]),
            (&third, vec![pair("B.ts", "A.ts"), pair("C.ts", "B.ts")]),
        ] {
            let question = GraphQuery::new(Question::Renames.text()).at(commit.as_str());
            same("the renames, new name and old", &rows(graph.as_ref(), question).await?, &expected)?;
        }
        let chain = GraphQuery::new(Question::RenameChain.text()).param("path", "C.ts").at(third.as_str());
        let chain = rows(graph.as_ref(), chain).await?.concat();
        same("what C.ts was called before", &chain, &pair("A.ts", "B.ts"))?;
        same("the files after both renames", &files(graph.as_ref(), &third).await?, &vec!["C.ts".to_owned()])
    })
}

fn propose(world: &World) -> Running<'_> {
    Box::pin(async move {
        let graph = world.graph()?;
        world.workspace.write("src/a.ts", "export const a = 1;\n")?;
        world.workspace.write("src/b.ts", "import { a } from './a';\nexport const b = a;\n")?;
        world.workspace.write("src/c.ts", "export const c = 1;\n")?;
        let head = world.workspace.commit("project").await?;
        ingest(graph.as_ref(), &head).await?;
        // The files as they are are not those of the commit.
        world.workspace.write("src/d.ts", "import { c } from './c';\nexport const d = c;\n")?;
        let before = world.workspace.picture()?;
        let path = |text: &str| {
            RelativePath::new(text).map_err(|error| Fault::new("a path of the project", error.to_string()))
        };
        let changes = [
            Change::Write { path: path("src/a.ts")?, content: b"export const other = 1;\n".to_vec().into() },
            Change::Write {
                path: path("src/e.ts")?,
                content: b"import { a } from './a';\nexport const e = a;\n".to_vec().into(),
            },
            Change::Remove { path: path("src/d.ts")? },
        ];
        let questions = [
            GraphQuery::new(Question::Importers.text()).param("paths", vec!["src/a.ts", "src/c.ts"]),
            GraphQuery::new(Question::Files.text()),
            GraphQuery::new("MATCH (s:Symbol) WHERE s.path = $path RETURN DISTINCT s.name AS name")
                .param("path", "src/a.ts"),
        ];
        let row = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
        let names = |names: &[&str]| names.iter().map(|name| row(&[name])).collect::<Vec<_>>();
        let expected = [
            (
                vec![row(&["src/a.ts", "src/b.ts"]), row(&["src/c.ts", "src/d.ts"])],
                vec![row(&["src/a.ts", "src/b.ts"]), row(&["src/a.ts", "src/e.ts"])],
            ),
            (
                names(&["src/a.ts", "src/b.ts", "src/c.ts", "src/d.ts"]),
                names(&["src/a.ts", "src/b.ts", "src/c.ts", "src/e.ts"]),
            ),
            (names(&["a"]), names(&["other"])),
        ];
        // What was proposed is not remembered: the same proposal has the same answers.
        for _ in 0..2 {
            let answers = graph.propose(&changes, &questions).await.expecting("answers to a proposal")?;
            same("how many questions have two answers", &answers.len(), &questions.len())?;
            for ((question, (without, with)), (now, then)) in questions.iter().zip(&answers).zip(&expected) {
                let asked = asked(question);
                same(&format!("{asked} without the changes"), &sorted(without, &asked)?, now)?;
                same(&format!("{asked} with the changes"), &sorted(with, &asked)?, then)?;
            }
            holds(world.workspace.picture()? == before, "no change to be made by a proposal", "other files")?;
        }
        let known = files(graph.as_ref(), &head).await?;
        same("the files of the commit afterwards", &known, &row(&["src/a.ts", "src/b.ts", "src/c.ts"]))
    })
}

fn idempotent_ingest(world: &World) -> Running<'_> {
    Box::pin(async move {
        let graph = world.graph()?;
        world.workspace.write("src/a.ts", "export const a = 1;\n")?;
        let first = world.workspace.commit("first").await?;
        world.workspace.rename("src/a.ts", "src/b.ts")?;
        let second = world.workspace.commit("second").await?;
        let ingested = ingest(graph.as_ref(), &second).await?;
        same("commits that the first ingest has read", &ingested.commits, &2)?;
        let before = picture(graph.as_ref(), &first, &second).await?;
        for commit in [&second, &first, &second] {
            let again = ingest(graph.as_ref(), commit).await?;
            same("commits that an ingest of a known commit has read", &again.commits, &0)?;
            same("everything that is known", &picture(graph.as_ref(), &first, &second).await?, &before)?;
        }
        Ok(())
    })
}

/// All that can be asked about two commits.
async fn picture(graph: &dyn Graph, first: &str, second: &str) -> Result<Vec<Vec<String>>, Fault> {
    let mut all = Vec::new();
    for commit in [first, second] {
        for question in [Question::Files, Question::Renames] {
            all.extend(rows(graph, GraphQuery::new(question.text()).at(commit)).await?);
        }
    }
    Ok(all)
}
