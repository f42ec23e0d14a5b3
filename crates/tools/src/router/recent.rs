//! A recorder that keeps the last calls in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tgp_contract::{CallRecord, Recorder, ToolError};

/// The last calls, oldest first, never more than a fixed number.
#[derive(Debug)]
pub struct RecentCalls {
    capacity: usize,
    records: Mutex<VecDeque<CallRecord>>,
}

impl RecentCalls {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, records: Mutex::default() }
    }

    #[must_use]
    pub fn all(&self) -> Vec<CallRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[async_trait]
impl Recorder for RecentCalls {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= self.capacity {
            records.pop_front();
        }
        records.push_back(record);
        Ok(())
    }
}
