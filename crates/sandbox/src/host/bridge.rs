//! The calls of a running tool, from the worker's frames to the kernel's functions and back.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tgp_contract::{Code, ToolError};

use crate::protocol::{Attachment, CallReply, ReplyValue, ToWorker, encode};

/// The kernel functions a tool can call by way of `tgp`.
#[async_trait]
pub trait Bridge: Send + Sync {
    /// Arguments and result are JSON, because nothing else crosses.
    async fn call(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError>;

    /// A call with the content of a file beside its arguments, or with one as its answer. Bytes do not cross as JSON.
    async fn transfer(
        &self,
        name: &str,
        arguments: Vec<Value>,
        bytes: Option<Vec<u8>>,
    ) -> Result<BridgeAnswer, ToolError> {
        match bytes {
            None => self.call(name, arguments).await.map(BridgeAnswer::Json),
            Some(_) => Err(ToolError::new(Code::Validation, format!("tgp.{name} takes no bytes"))),
        }
    }

    /// How long calls of this run have waited for a person's answer, up to now. That time is none of the run's.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

/// The answer to one call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum BridgeAnswer {
    Json(Value),
    Bytes(Vec<u8>),
}

/// The frame of an answer. One that is too large becomes an error the tool can catch.
pub(super) fn reply(call: u32, result: Result<ReplyValue, (Code, String)>) -> Vec<u8> {
    encode(&ToWorker::Reply(CallReply { call, result })).unwrap_or_else(|error| {
        let result = Err((Code::Validation, format!("the answer cannot be handed to the tool: {error}")));
        encode(&ToWorker::Reply(CallReply { call, result })).unwrap_or_default()
    })
}

pub(super) async fn answer(
    bridge: &dyn Bridge,
    name: &str,
    arguments: &str,
    bytes: Option<Attachment>,
) -> Result<ReplyValue, (Code, String)> {
    let arguments: Vec<Value> = serde_json::from_str(arguments)
        .map_err(|error| (Code::Validation, format!("the arguments of `{name}` are not JSON: {error}")))?;
    match bridge.transfer(name, arguments, bytes.map(|Attachment(bytes)| bytes)).await {
        Ok(BridgeAnswer::Json(value)) => Ok(ReplyValue::Json(value.to_string())),
        Ok(BridgeAnswer::Bytes(bytes)) => Ok(ReplyValue::Bytes(bytes)),
        Err(error) => Err((error.code, error.message)),
    }
}
