//! The static module graph of a tool.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tgp_contract::{FileSystem, RelativePath, ToolError};

use crate::{Compiled, Unit};

/// Where modules come from.
#[derive(Clone)]
pub struct GraphHost {
    /// The tool repository (`.tgp`). `/lib/x.ts` names `tools/x.ts` in it.
    pub tools: Arc<dyn FileSystem>,
    /// The project directory whose `node_modules` hold the packages.
    pub project: PathBuf,
    /// Package names tools may import; `zod` also allows `zod/v4`.
    pub allowed_imports: Vec<String>,
}

/// Every module a tool can reach, compiled, and how they are linked.
#[derive(Clone, Debug)]
pub struct ModuleGraph {
    pub entry: String,
    pub modules: BTreeMap<String, Compiled>,
    /// For each module: specifier to module id.
    pub links: BTreeMap<String, BTreeMap<String, String>>,
}

/// Why a graph cannot be built. Carries a finished [`ToolError`] with the place of the offending import.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct GraphError(#[from] pub ToolError);

/// Builds a graph without doing input or output of its own beyond reading sources: ask for the [`Unit`]s to
/// compile, supply what they compiled to, until nothing is pending.
pub struct GraphBuilder {}

impl GraphBuilder {
    /// # Errors
    /// When the entry does not exist.
    pub fn new(_host: GraphHost, _entry: &RelativePath) -> Result<Self, GraphError> {
        Ok(Self {})
    }

    /// The sources that must be compiled next; empty when the graph is complete.
    pub fn pending(&mut self) -> Vec<Unit> {
        Vec::new()
    }

    /// Takes one compiled source and resolves what it asks for.
    ///
    /// # Errors
    /// `ENOTFOUND` for a missing module, `ESECURITY` for one outside the allow-list or the tool root.
    pub fn supply(&mut self, _compiled: Compiled) -> Result<(), GraphError> {
        Ok(())
    }

    /// # Errors
    /// When something is still pending.
    pub fn finish(self) -> Result<ModuleGraph, GraphError> {
        Ok(ModuleGraph { entry: String::new(), modules: BTreeMap::new(), links: BTreeMap::new() })
    }
}
