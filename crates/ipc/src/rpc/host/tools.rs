//! The host's functions for forged tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tgp_contract::{Code, Effect, HostFunction, HostTools, ToolError};

use super::PATIENCE;
use crate::rpc::peer::{HostFailure, Peer};
use crate::rpc::protocol::{HostCallParams, HostCallResult, HostEffect, HostTool, callback};

/// Functions behind the connection.
#[derive(Debug)]
pub(super) struct HostFunctions {
    peer: Peer,
    functions: Vec<HostFunction>,
}

impl HostFunctions {
    /// None where the host offers none.
    pub(super) fn shared(peer: &Peer, offered: &[HostTool]) -> Option<Arc<dyn HostTools>> {
        if offered.is_empty() {
            return None;
        }
        let functions = offered.iter().map(function).collect();
        Some(Arc::new(Self { peer: peer.clone(), functions }))
    }
}

fn function(offered: &HostTool) -> HostFunction {
    let HostTool { module, name, description, input_schema, output_schema, effect } = offered.clone();
    HostFunction { module, name, description, input_schema, output_schema, effect: effect.into() }
}

impl From<HostEffect> for Effect {
    fn from(effect: HostEffect) -> Self {
        match effect {
            HostEffect::Read => Self::Read,
            HostEffect::Write => Self::Write,
            HostEffect::Execute => Self::Execute,
            HostEffect::Network => Self::Network,
        }
    }
}

#[async_trait]
impl HostTools for HostFunctions {
    fn functions(&self) -> Vec<HostFunction> {
        self.functions.clone()
    }

    async fn call(
        &self,
        module: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, ToolError> {
        let params = HostCallParams { module: module.to_owned(), name: name.to_owned(), arguments };
        let answer = self.peer.request(callback::CALL, &params, PATIENCE, Code::Runtime).await;
        match answer {
            Ok(HostCallResult { result }) => Ok(result),
            Err(HostFailure::Answered(error)) => Err(error),
            // It may have done everything but answer.
            Err(HostFailure::Silent(error)) => Err(error.of_unknown_outcome()),
        }
    }
}
