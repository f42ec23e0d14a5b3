//! Asking the gates, and which of their denials the caller reads.

use std::time::Instant;

use tgp_contract::{Code, Gate, GateDecision, GateRequest, GateVerdict, Stage, TddState, ToolError, Verdict};

use super::{ApprovalRequirement, GatePhase, Router};

impl Router {
    /// Asks every gate, in order. Returns why the user must be asked, if so.
    ///
    /// A denial ends the call. One by the state of the work is held back until the rules have been asked: a caller who is
    /// told to write a failing test first would meet a rule afterwards that no test changes.
    pub(super) async fn pass_gates(
        &self,
        request: GateRequest<'_>,
        phase: GatePhase,
        verdicts: &mut Vec<GateVerdict>,
    ) -> Result<Vec<ApprovalRequirement>, ToolError> {
        let mut reasons = Vec::new();
        let mut held_back = None;
        for gate in &self.gates {
            let asked = Instant::now();
            let Some(verdict) = ask_gate(gate.as_ref(), request, phase).await else { continue };
            let took_us = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
            let (decision, rule, denial) = match verdict {
                Verdict::Allow { rule } => (GateDecision::Allow, rule, None),
                Verdict::Ask(reason) => {
                    let rule = reason.origin.rule().to_owned();
                    reasons.push(ApprovalRequirement { reason, later: Vec::new() });
                    (GateDecision::Ask, rule, None)
                }
                Verdict::Deny { rule, error } => (GateDecision::Deny, rule, Some(error)),
            };
            tracing::debug!(
                target: "gates",
                stage = ?gate.stage(),
                gate = gate.name(),
                rule,
                code = denial.as_ref().map(|error| error.code.as_str()),
                us = took_us,
                "{decision:?}"
            );
            let gate_name = gate.name().to_owned();
            verdicts.push(GateVerdict { stage: gate.stage(), gate: gate_name, verdict: decision, rule });
            let Some(error) = denial else { continue };
            if gate.stage() == Stage::State && !is_halted(&error) {
                held_back.get_or_insert((gate, error));
                continue;
            }
            let (gate, error) = match held_back.take() {
                Some(held_back) if gate.stage() != Stage::Policy => held_back,
                _ => (gate, error),
            };
            return Err(self.concealed(gate.as_ref(), request, error).await);
        }
        match held_back {
            Some((gate, error)) => Err(self.concealed(gate.as_ref(), request, error).await),
            None => Ok(reasons),
        }
    }

    /// A denial as the caller may read it.
    async fn concealed(&self, gate: &dyn Gate, request: GateRequest<'_>, error: ToolError) -> ToolError {
        let asking = GateRequest { targets: &[], ..request };
        let visible = self.workspace.visibility(self.filter_for(asking).await);
        gate.conceal(request, error, &visible).await
    }
}

/// The verdict of one gate; nothing where it has no say.
async fn ask_gate(gate: &dyn Gate, request: GateRequest<'_>, phase: GatePhase) -> Option<Verdict> {
    Some(match phase {
        GatePhase::Call => gate.judge(request).await,
        GatePhase::Changes => gate.judge_changes(request).await,
        GatePhase::Directories if gate.stage() == Stage::Policy => gate.judge_changes(request).await,
        GatePhase::Packages if gate.stage() == Stage::Policy => gate.judge_packages(request).await,
        GatePhase::Further => gate.judge_further(request).await,
        GatePhase::Contents if gate.needs_proposed_files(request).await => gate.judge_changes(request).await,
        GatePhase::Commit => gate.judge_commit(request).await,
        GatePhase::Contents | GatePhase::Directories | GatePhase::Packages => return None,
    })
}

/// Whether a person has stopped all work: then nothing else matters.
fn is_halted(error: &ToolError) -> bool {
    let state = error.details.get("state").and_then(serde_json::Value::as_str);
    // A state that cannot be read stops everything as well.
    error.code != Code::State || state == Some(TddState::Halted.as_str())
}
