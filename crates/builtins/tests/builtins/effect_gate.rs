//! A gate with the defaults of the policy and nothing else: reads pass, everything else is asked for.

use async_trait::async_trait;
use tgp_contract::{ApprovalOrigin, ApprovalReason, Effect, Gate, GateRequest, Stage, Verdict};

/// Reads are allowed; writes, execution and network ask.
#[derive(Clone, Copy, Debug)]
pub struct EffectGate;

#[async_trait]
impl Gate for EffectGate {
    fn stage(&self) -> Stage {
        Stage::Policy
    }

    fn name(&self) -> &str {
        "effect"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        let rule = format!("default/{}", request.definition.effect.as_str());
        match request.definition.effect {
            Effect::Read => Verdict::Allow { rule },
            effect @ (Effect::Write | Effect::Execute | Effect::Network) => Verdict::Ask(ApprovalReason {
                origin: ApprovalOrigin::Default(rule),
                reason: format!("`{}` has the effect `{}`", request.definition.name, effect.as_str()),
            }),
        }
    }
}
