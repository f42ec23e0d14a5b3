//! A recorder that keeps the last calls in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tgp_contract::{CallRecord, Recorder, ToolError, ToolResult};

/// Bytes of arguments and results that are kept at most; older records go first.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The last calls, oldest first, never more than a fixed number nor more than a fixed size.
#[derive(Debug)]
pub struct RecentCalls {
    capacity: usize,
    records: Mutex<VecDeque<(usize, CallRecord)>>,
}

impl RecentCalls {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, records: Mutex::default() }
    }

    #[must_use]
    pub fn all(&self) -> Vec<CallRecord> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(_, record)| record.clone())
            .collect()
    }
}

impl RecentCalls {
    fn keep(&self, record: CallRecord) {
        if self.capacity == 0 {
            return;
        }
        let result = match &record.result {
            ToolResult::Done(data) => weight(data),
            ToolResult::Failed(error) => error.details.values().map(weight).sum(),
        };
        let size = weight(&record.call.arguments) + result;
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held: usize = records.iter().map(|(size, _)| size).sum();
        while !records.is_empty() && (records.len() >= self.capacity || held + size > MAX_BYTES) {
            held -= records.pop_front().map_or(held, |(size, _)| size);
        }
        records.push_back((size, record));
    }
}

#[async_trait]
impl Recorder for RecentCalls {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        self.keep(record);
        Ok(())
    }

    fn record_cancelled(&self, record: CallRecord) {
        self.keep(record);
    }
}

/// About how many bytes a value takes in memory.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, item)| name.len() + weight(item)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}
