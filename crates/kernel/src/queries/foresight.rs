//! What the gates would say of a query's calls, before it runs.

use tgp_aql::{Explanation, Foreseen, Plan, PlannedCall, explain};
use tgp_contract::{CallContext, GateVerdict, ToolCall};

use crate::Kernel;

/// Verdicts of gates that have nothing to say are left out.
const SILENT: &str = "allow";

impl Kernel {
    /// What a query would do: its steps, how much they may use, and which gates will ask or deny. Nothing runs.
    pub async fn explain_query(&self, plan: &Plan, context: &CallContext) -> Explanation {
        let mut explanation = explain(plan);
        for step in &mut explanation.steps {
            for planned in &mut step.planned {
                planned.gates = self.foresee(&step.step, planned, context).await;
            }
        }
        explanation
    }

    async fn foresee(&self, step: &str, planned: &PlannedCall, context: &CallContext) -> Vec<Foreseen> {
        let Some(arguments) = &planned.arguments else {
            // Only a call with all its arguments can be judged.
            return vec![foreseen("policy", "depends", "on values that are known when it runs")];
        };
        let call = ToolCall { id: step.to_owned(), tool: planned.tool.clone(), arguments: arguments.clone() };
        let (router, ..) = self.session_parts();
        match router.foresee(&call, context).await {
            Ok(verdicts) => {
                let spoke = |verdict: &&GateVerdict| verdict.verdict != SILENT;
                let shown = |verdict: &GateVerdict| foreseen(&verdict.gate, &verdict.verdict, &verdict.rule);
                verdicts.iter().filter(spoke).map(shown).collect()
            }
            Err(error) => vec![foreseen("arguments", "deny", &error.message)],
        }
    }
}

fn foreseen(gate: &str, verdict: &str, rule: &str) -> Foreseen {
    Foreseen { gate: gate.to_owned(), verdict: verdict.to_owned(), rule: rule.to_owned() }
}
