//! The code at every commit: read from git, kept in SQLite, asked in Cypher.
#![forbid(unsafe_code)]
#![allow(dead_code)]
use std::path::PathBuf;
use std::time::Duration;
use tgp_contract::*;
#[derive(Clone, Debug)]
pub struct GraphOptions {
    pub file: PathBuf,
    pub project: PathBuf,
    pub history: usize,
    pub max_rows: usize,
    pub patience: Duration,
    pub test_patterns: Vec<String>,
}
impl GraphOptions {
    pub fn new(file: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            project: project.into(),
            history: 1,
            max_rows: 1,
            patience: Duration::from_secs(1),
            test_patterns: vec![],
        }
    }
}
pub struct GraphStore;
#[derive(serde::Serialize)]
pub struct Stats;
#[derive(serde::Serialize)]
pub struct Export;
fn no() -> ToolError {
    ToolError::new(Code::Internal, "stub")
}
impl GraphStore {
    pub fn open(_: GraphOptions) -> Result<Self, ToolError> {
        Ok(Self)
    }
    pub async fn stats(&self, _: Option<&str>) -> Result<Stats, ToolError> {
        Err(no())
    }
    pub async fn export(&self, _: Option<&str>) -> Result<Export, ToolError> {
        Err(no())
    }
}
#[async_trait::async_trait]
impl Graph for GraphStore {
    async fn ingest(&self, _: &str) -> Result<Ingested, ToolError> {
        Err(no())
    }
    async fn query(&self, _: GraphQuestion) -> Result<GraphAnswer, ToolError> {
        Err(no())
    }
    async fn propose(
        &self,
        _: &[Change],
        _: &[GraphQuestion],
    ) -> Result<Vec<(GraphAnswer, GraphAnswer)>, ToolError> {
        Err(no())
    }
}
