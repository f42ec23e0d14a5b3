//! The chapters about what is known of the code: asked at two commits, and held against a plan.

use std::path::Path;

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Decision, Plan, PlanStep};
use tgp::guardian::PlanOutcome;
use tgp::results::GraphQueryResult;

use super::super::result_of;
use super::memory::{Places, git};
use super::{Demo, cannot_write};
use crate::exit::Failure;
use crate::session;
use crate::text::visible;

const PRICE: &str = "export function price(weight: number): number {\n  return 4 + weight * 0.5;\n}\n";
const APP: &str =
    "import { price } from './price';\n\nexport const total = (weight: number): number => price(weight);\n";

impl Demo<'_> {
    /// Asks the same question at two commits.
    pub(super) async fn ask_the_code(&mut self, kernel: &Kernel, places: &Places) -> Result<(), Failure> {
        self.chapter("The code is a graph, and can be asked at every commit");
        let project = &places.first;
        let has_history = commit_twice(project).map_err(|error| cannot_write(&error))?;
        let commit = if has_history { "HEAD" } else { "WORKTREE" };
        self.call(kernel, "graph_ingest", json!({ "commit": commit })).await.into_result()?;
        let question = "MATCH (f:File)-[:IMPORTS]->(g:File) RETURN f.path AS file, g.path AS imports";
        self.say(&format!("tgp graph query \"{question}\""));
        let moments: &[(&str, &str)] = if has_history {
            &[("HEAD~1", "src/price.ts"), ("HEAD", "src/cost.ts")]
        } else {
            self.say("(git is not installed here, so there is one moment only)");
            &[("WORKTREE", "src/cost.ts")]
        };
        let mut answers = Vec::new();
        for (commit, expected) in moments {
            let asked = json!({ "query": question, "commit": commit });
            let data = self.call(kernel, "graph_query", asked).await.into_result()?;
            let first = result_of::<GraphQueryResult>(data)?.results.into_iter().next();
            let imports = first.and_then(|row| Some(row.get("imports")?.as_str()?.to_owned()));
            let imports = imports.unwrap_or_default();
            self.expect(imports == *expected, "what the file imported then")?;
            self.say(&format!("  {commit:8} src/app.ts imports {imports}"));
            answers.push(json!({ "commit": commit, "imports": imports }));
        }
        self.steps.push(json!({ "step": "graph", "answers": answers }));
        Ok(())
    }

    /// A plan that contradicts the code makes not one call.
    pub(super) async fn veto_a_plan(&mut self, kernel: &Kernel, project: &Path) -> Result<(), Failure> {
        self.chapter("A plan that the code contradicts is vetoed before its first step");
        let step = |kind: &str, file: &str, fields: Value| PlanStep {
            kind: kind.to_owned(),
            file_path: Some(file.to_owned()),
            fields: fields.as_object().cloned().unwrap_or_default(),
        };
        let plan = Plan {
            id: "tidy-up".to_owned(),
            steps: vec![
                step("CREATE_FILE", "src/notes.md", json!({ "content": "costs are gone\n" })),
                step("DELETE_FILE", "src/cost.ts", json!({})),
            ],
        };
        self.say("step 1: CREATE_FILE src/notes.md    step 2: DELETE_FILE src/cost.ts");
        let report = kernel.carry_out(&plan, session::typed(false)).await?;
        self.expect(report.outcome == PlanOutcome::Denied, "the veto of the plan")?;
        if let Decision::Deny { reason } = &report.review.decision {
            self.say(&format!("denied: {}", visible(reason)));
        }
        let untouched = project.join("src/cost.ts").is_file() && !project.join("src/notes.md").exists();
        self.expect(untouched, "the files after the veto")?;
        self.say("no call was made: src/cost.ts is there, and src/notes.md was never written");
        self.steps.push(json!({ "step": "veto", "decision": report.review.decision }));
        Ok(())
    }
}

/// Two commits, the second with a file renamed; false where there is no git and the files are all there is.
fn commit_twice(project: &Path) -> std::io::Result<bool> {
    let source = project.join("src");
    std::fs::create_dir_all(&source)?;
    std::fs::write(source.join("price.ts"), PRICE)?;
    std::fs::write(source.join("app.ts"), APP)?;
    let commit = |message: &str| {
        git(project, &["add", "--all", "src"])?;
        let author = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "-m"];
        git(project, &[&author[..], &[message]].concat())
    };
    let first = git(project, &["init", "--quiet", "--initial-branch=main", "--template="])
        .and_then(|_| commit("Prices"));
    std::fs::rename(source.join("price.ts"), source.join("cost.ts"))?;
    std::fs::write(source.join("app.ts"), APP.replace("./price", "./cost"))?;
    Ok(first.and_then(|_| commit("Prices are costs")).is_some())
}
