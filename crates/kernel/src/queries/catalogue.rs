//! What a query may use: the tools of this kernel, the forged ones, and other files of queries.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tgp_aql::{ForgedToolSchema, QueryCatalogue, Source};
use tgp_contract::{Code, DeclaredTypes, RelativePath, ToolDefinition, ToolError, ToolMetadata, canonical};

use crate::Kernel;
use crate::knowledge::known_tools;

/// Bytes of a file of queries: people write it.
pub(super) const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// What there is now.
pub(crate) struct KernelCatalogue {
    tools: Vec<ToolDefinition>,
    forged: BTreeMap<String, ToolMetadata>,
    root: PathBuf,
    project: PathBuf,
    /// Files as they were when a run began; a resumed run uses them even if they have changed since.
    kept: Option<Vec<Source>>,
}

impl KernelCatalogue {
    pub(crate) fn new(kernel: &Kernel, kept: Option<Vec<Source>>) -> Self {
        let forged = known_tools(kernel.root()).into_iter();
        Self {
            tools: kernel.definitions().cloned().collect(),
            forged: forged.map(|tool| (tool.path.to_string(), tool)).collect(),
            root: kernel.root().to_owned(),
            project: kernel.project().to_owned(),
            kept,
        }
    }
}

impl QueryCatalogue for KernelCatalogue {
    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn forged(&self, path: &str) -> Option<ForgedToolSchema> {
        // The disk says what is there; the register only what is known of it.
        let file = RelativePath::new(path).ok()?;
        let file = self.root.join(file.as_str());
        if !file.is_file() {
            return None;
        }
        let known = self.forged.get(path).filter(|tool| tool.problem.is_none() && is_current(&file, tool));
        // Only what a tool declares may refuse a query. What a description has read from the code is as good for fields
        // that are taken from a result, because it allows others.
        let declared = known.and_then(|tool| tool.declared.as_ref());
        let parameters = declared.map_or(Value::Bool(true), DeclaredTypes::parameters_schema);
        let result = declared.map(DeclaredTypes::result_schema).filter(|schema| *schema != Value::Bool(true));
        let described = || known.map_or(Value::Bool(true), |tool| tool.result.clone());
        Some(ForgedToolSchema { parameters, result: result.unwrap_or_else(described) })
    }

    fn forged_paths(&self) -> Vec<String> {
        self.forged.keys().cloned().collect()
    }

    fn cypher(&self, query: &str) -> Result<Option<Vec<String>>, ToolError> {
        tgp_graph::query_columns(query).map(Some)
    }

    fn source(&self, path: &str) -> Result<String, ToolError> {
        match &self.kept {
            None => read_import(&self.project, path),
            Some(kept) => {
                let found = kept.iter().find(|source| source.path == path);
                found.map(|source| source.text.clone()).ok_or_else(|| {
                    ToolError::new(Code::Integrity, format!("the run has kept no `{path}`"))
                        .help("begin another run")
                })
            }
        }
    }
}

/// Whether what is known of a tool is about its file as it is now. A larger file is none that the kernel has described.
fn is_current(file: &Path, tool: &ToolMetadata) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut bytes));
    read.is_ok() && canonical::sha256_hex(&bytes) == tool.hash
}

/// A file that another one imports: one of the project, and not by a link.
fn read_import(project: &Path, path: &str) -> Result<String, ToolError> {
    let outside = || {
        ToolError::new(Code::Permission, format!("`{path}` is not a file of the project"))
            .help("import files of the project only, by their own names")
    };
    let relative = Path::new(path).strip_prefix(project).unwrap_or(Path::new(path));
    let inside = RelativePath::new(relative.to_str().unwrap_or_default()).map_err(|_| outside())?;
    let file = project.join(inside.as_str());
    let found = file.canonicalize().map_err(|error| {
        ToolError::new(Code::NotFound, format!("`{path}` cannot be read: {error}"))
            .help("name a file of queries, such as ./shared.aql")
    })?;
    if found != file {
        return Err(outside());
    }
    read_source(&file, path)
}

/// A file of queries, as errors call it `shown`.
pub(super) fn read_source(file: &Path, shown: &str) -> Result<String, ToolError> {
    let unreadable = |code: Code, why: &str| {
        ToolError::new(code, format!("`{shown}` cannot be read: {why}"))
            .help("name a file of queries, such as review.aql")
    };
    let found = std::fs::metadata(file).map_err(|error| unreadable(Code::NotFound, &error.to_string()))?;
    // Opening a pipe without a writer would block forever.
    if !found.is_file() {
        return Err(unreadable(Code::Validation, "it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(Code::NotFound, &error.to_string()))?;
    if bytes.len() as u64 > MAX_SOURCE_BYTES {
        return Err(unreadable(Code::Validation, &format!("it has more than {MAX_SOURCE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| unreadable(Code::Validation, "it is not UTF-8"))
}
