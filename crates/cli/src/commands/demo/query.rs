//! The chapter about agents as a query: three of them, a forged tool, the graph and a merge.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tgp::Kernel;
use tgp::agent::ModelChoice;
use tgp::aql::{QueryRequest, RunEvent, choose_query};
use tgp::contract::Consent;
use tokio::sync::mpsc;

use super::{Demo, cannot_write};
use crate::exit::Failure;
use crate::text::visible;

const QUERY: &str = include_str!("../../../../../examples/review/review.aql");
const TALLY: &str = include_str!("../../../../../examples/review/tally.ts");
const MODELS: [(&str, &str); 3] = [
    ("bugs", include_str!("../../../../../examples/review/models/bugs.json")),
    ("style", include_str!("../../../../../examples/review/models/style.json")),
    ("editor", include_str!("../../../../../examples/review/models/editor.json")),
];
/// Events of the run; they are read when it has ended.
const EVENT_ROOM: usize = 256;

impl Demo<'_> {
    /// Runs the example of `examples/review` on the demo's own source.
    pub(super) async fn run_a_query(&mut self, kernel: &Kernel, project: &Path) -> Result<(), Failure> {
        self.chapter("Three agents, a forged tool and the graph work together as one query");
        let models = project.join("models");
        std::fs::create_dir_all(&models).map_err(|error| cannot_write(&error))?;
        for (name, turns) in MODELS {
            std::fs::write(models.join(format!("{name}.json")), turns)
                .map_err(|error| cannot_write(&error))?;
        }
        self.write(kernel, "tools/review/tally.ts", TALLY).await?;
        let compiled = kernel.compile_queries("review.aql", QUERY).map_err(|problems| problems.to_error())?;
        let plan = choose_query(&compiled, Some("Review"))?;
        let mut inputs = Map::new();
        inputs.insert("path".to_owned(), json!("src/cost.ts"));
        let request = QueryRequest {
            compiled: &compiled,
            plan: &plan,
            inputs,
            model: ModelChoice::default(),
            consent: Consent::Given,
            actor: "demo".to_owned(),
        };
        self.say("tgp aql run review.aql --input path=src/cost.ts");
        let (sender, mut events) = mpsc::channel(EVENT_ROOM);
        let run = kernel.run_query(request, sender, Box::pin(std::future::pending()));
        let collect = async {
            let mut kinds = BTreeMap::new();
            while let Some(event) = events.recv().await {
                if let RunEvent::Done { step, kind, .. } = event {
                    kinds.insert(step, kind);
                }
            }
            kinds
        };
        let (report, kinds) = tokio::join!(run, collect);
        // Which of two that run at the same time is faster is not part of the story.
        let order: Vec<&str> = plan.body.steps.iter().map(|step| step.name.as_str()).collect();
        for step in &order {
            let kind = kinds.get(*step).map_or("", String::as_str);
            self.say(&format!("  {kind:6} {}", visible(step)));
        }
        let report = report?;
        if let Some(error) = report.error {
            return Err(error.into());
        }
        let tally = report.outputs.pointer("/report/tally").cloned().unwrap_or_default();
        self.expect(tally == json!({ "high": 1, "low": 1 }), "what the reviewers found")?;
        let verdict = report.outputs.pointer("/report/verdict").and_then(Value::as_str).unwrap_or_default();
        self.say(&format!("verdict: {}", visible(verdict)));
        self.steps.push(json!({ "step": "query", "steps": order, "outputs": report.outputs }));
        Ok(())
    }
}
