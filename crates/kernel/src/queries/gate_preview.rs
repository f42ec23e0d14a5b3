//! What the gates would say of a query's calls, before it runs.

use serde_json::{Value, json};
use tgp_aql::{PlannedCall, PredictedVerdict, QueryExplanation, QueryPlan, explain};
use tgp_contract::{Actor, CallContext, GateDecision, GateVerdict, ToolCall};

use crate::Kernel;

impl Kernel {
    /// What a query would do: its steps, how much they may use, and which gates will ask or deny. Nothing runs.
    pub async fn explain_query(&self, plan: &QueryPlan, context: &CallContext) -> QueryExplanation {
        let mut explanation = explain(plan);
        for step in &mut explanation.steps {
            let context = of_step(context, &explanation.query, &step.step);
            for planned in &mut step.planned {
                planned.gates = self.predict_verdicts(&step.step, planned, &context).await;
            }
        }
        explanation
    }

    async fn predict_verdicts(
        &self,
        step: &str,
        planned: &PlannedCall,
        context: &CallContext,
    ) -> Vec<PredictedVerdict> {
        let depends = || vec![predicted("policy", "depends", "its values")];
        let definition = self.definitions().find(|tool| tool.name.as_str() == planned.tool);
        let (Some(known), Some(definition)) = (&planned.arguments, definition) else { return depends() };
        let arguments = if planned.partial { filled(known, &definition.input_schema) } else { known.clone() };
        let call = ToolCall { id: step.to_owned(), tool: planned.tool.clone(), arguments };
        let (router, ..) = self.session_parts();
        match router.evaluate_gates(&call, context).await {
            Ok(verdicts) => {
                let spoke = |verdict: &&GateVerdict| verdict.verdict != GateDecision::Allow;
                let shown =
                    |verdict: &GateVerdict| predicted(&verdict.gate, verdict.verdict.as_str(), &verdict.rule);
                let spoken: Vec<PredictedVerdict> = verdicts.iter().filter(spoke).map(shown).collect();
                // A gate that is silent about what is known may speak about the rest.
                if spoken.is_empty() && planned.partial { depends() } else { spoken }
            }
            Err(_) if planned.partial => depends(),
            Err(error) => vec![predicted("arguments", GateDecision::Deny.as_str(), &error.message)],
        }
    }
}

/// The context that a step's calls would have: rules may name the step.
fn of_step(context: &CallContext, query: &str, path: &str) -> CallContext {
    let step = path.rsplit('.').next().unwrap_or(path);
    let actor = match &context.actor {
        Actor::Agent(name) => Actor::Agent(format!("{name}:{query}.{step}")),
        other => other.clone(),
    };
    CallContext { actor, ..context.clone() }
}

/// The arguments that are known, and something in the place of those that a call must have.
fn filled(known: &Value, schema: &Value) -> Value {
    let mut arguments = known.as_object().cloned().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        let kind = schema.pointer(&format!("/properties/{name}/type")).and_then(Value::as_str);
        arguments.entry(name).or_insert_with(|| match kind {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("unknown"),
        });
    }
    Value::Object(arguments)
}

fn predicted(gate: &str, verdict: &str, rule: &str) -> PredictedVerdict {
    PredictedVerdict { gate: gate.to_owned(), verdict: verdict.to_owned(), rule: rule.to_owned() }
}
