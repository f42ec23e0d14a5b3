//! A tool's module graph, compiled and linked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tgp_compiler::{
    CompiledModule, ForeignModules, GraphBuilder, LiteralValue, ModuleGraph, SourceRole, ToolShape, Unit,
    is_foreign,
};
use tgp_contract::{Code, DeclaredTypes, FileSystem, RelativePath, ToolError, canonical};
use tgp_fs::Stamp;
use tgp_sandbox::{CompileFailure, ModuleCode, Program};

use super::cache::{BytecodeCache, CachedModule};
use super::frontend::{FrontendAnswer, FrontendRequest, kind};
use super::sources::Sources;
use super::{ToolRuntime, ToolRuntimeError, failure, sql_words};

/// A program and what is needed to explain its failures and to know when it is out of date.
#[derive(Debug)]
pub(super) struct CompiledTool {
    pub(super) program: Program,
    pub(super) graph: ModuleGraph,
    /// Content hash of each source below the tool root.
    tools: Vec<(RelativePath, String)>,
    /// Size and time of each package file.
    packages: Vec<(PathBuf, Option<Stamp>)>,
    /// Content hash of each module of another program, by its specifier.
    foreign: Vec<(String, String)>,
    proven: AtomicBool,
    /// A source names a statement that writes, or runs another tool.
    pub(super) may_write_rows: bool,
}

impl CompiledTool {
    /// True when every source still is what was compiled.
    pub(super) fn is_current(&self, tools: &dyn FileSystem, foreign: Option<&dyn ForeignModules>) -> bool {
        let is_same_module = |(specifier, hash): &(String, String)| {
            let source = foreign.and_then(|modules| modules.source(specifier).ok());
            source.is_some_and(|source| canonical::sha256_hex(source.as_bytes()) == *hash)
        };
        let same = |(path, hash): &(RelativePath, String)| {
            tools.read(path).is_ok_and(|bytes| canonical::sha256_hex(&bytes) == *hash)
        };
        self.tools.iter().all(same)
            && self.packages.iter().all(|(path, seen)| fingerprint(path) == *seen)
            && self.foreign.iter().all(is_same_module)
    }

    /// The files of packages that it consists of.
    pub(super) fn package_files(&self) -> impl Iterator<Item = &Path> {
        self.packages.iter().map(|(path, _)| path.as_path())
    }

    /// The sources below the tool root, by their hashes.
    pub(super) fn sources(&self) -> &[(RelativePath, String)] {
        &self.tools
    }

    /// The hash of a source of the tool root, when it is part of the program.
    pub(super) fn source_hash(&self, path: &RelativePath) -> Option<&str> {
        self.tools.iter().find(|(known, _)| known == path).map(|(_, hash)| hash.as_str())
    }

    /// A module without a default export can be imported, not executed.
    pub(super) fn must_be_runnable(&self, path: &RelativePath) -> Result<(), ToolError> {
        let shape = self.graph.modules.get(&self.graph.entry).map(|module| module.shape);
        if shape == Some(ToolShape::NamedExportsOnly) {
            return Err(ToolError::new(
                Code::Validation,
                format!("`{path}` has no default export to execute"),
            )
            .help("add `export default function (args) { … }`, or import it from another tool"));
        }
        Ok(())
    }

    /// The types that the tool declares.
    pub(super) fn declared(&self) -> Option<&DeclaredTypes> {
        self.graph.modules.get(&self.graph.entry).map(|module| &module.declared)
    }

    /// One sentence about the errors that the checker finds in the tool itself.
    pub(super) fn checker_errors(&self, path: &RelativePath) -> Option<String> {
        let errors = &self.graph.modules.get(&self.graph.entry)?.errors;
        let first = errors.first()?;
        let number = match errors.len() {
            1 => "an error".to_owned(),
            several => format!("{several} errors"),
        };
        Some(format!(
            "the checker finds {number} in `{path}`: {first}; `check_tool` (`tgp check`) lists what to correct"
        ))
    }

    /// The value of its entry, when that is a literal.
    pub(super) fn literal(&self) -> Option<&LiteralValue> {
        self.graph.modules.get(&self.graph.entry)?.literal.as_ref()
    }

    pub(super) fn environment(&self, entry: &str) -> Vec<String> {
        self.graph.modules.get(entry).map(|module| module.environment.clone()).unwrap_or_default()
    }

    /// True after its first good run, once.
    pub(super) fn proves_itself(&self) -> bool {
        !self.proven.swap(true, Ordering::Relaxed)
    }

    /// The standard library, when the tool uses it. Packages are never shared between runs.
    pub(super) fn standard_library(&self) -> impl Iterator<Item = Arc<ModuleCode>> {
        let is_standard = |module: &&Arc<ModuleCode>| module.id == tgp_compiler::STANDARD_LIBRARY;
        self.program.modules.iter().filter(is_standard).map(Arc::clone)
    }
}

fn fingerprint(path: &Path) -> Option<Stamp> {
    Some(Stamp::of(&std::fs::metadata(path).ok()?))
}

/// Why a program could not be prepared, and the files of packages that the reason may quote.
#[derive(Debug)]
pub(super) struct PrepareFailure {
    pub(super) error: ToolError,
    pub(super) packages: Vec<PathBuf>,
}

impl From<ToolError> for PrepareFailure {
    fn from(error: ToolError) -> Self {
        Self { error, packages: Vec::new() }
    }
}

impl From<PrepareFailure> for ToolError {
    fn from(failure: PrepareFailure) -> Self {
        failure.error
    }
}

/// Compiles everything the builder asks for and links it. `sources` is called with every source of the tool root before
/// it is compiled.
pub(super) async fn prepare(
    forge: &ToolRuntime,
    mut builder: GraphBuilder,
    sources: &mut Sources<'_>,
) -> Result<CompiledTool, PrepareFailure> {
    let mut bytecode = BTreeMap::<String, Arc<CachedModule>>::new();
    let mut tools = Vec::new();
    let mut foreign = Vec::new();
    let mut may_write_rows = false;
    loop {
        let units = builder.pending();
        if units.is_empty() {
            break;
        }
        for unit in units {
            if unit.role == SourceRole::Tool
                && let Ok(path) = RelativePath::new(&unit.id)
            {
                sources.meet(&path)?;
                tools.push((path, canonical::sha256_hex(unit.source.as_bytes())));
                may_write_rows |= sql_words::may_write(&unit.source);
            }
            if is_foreign(&unit.id) {
                foreign.push((unit.id.clone(), canonical::sha256_hex(unit.source.as_bytes())));
            }
            let quoting = |error| PrepareFailure { error, packages: builder.package_files() };
            let module = module(forge, unit).await.map_err(quoting)?;
            bytecode.insert(module.compiled.id.clone(), Arc::clone(&module));
            if let Err(error) = builder.supply(CompiledModule::clone(&module.compiled)) {
                sources.miss(builder.missed());
                return Err(PrepareFailure { error: error.0, packages: builder.package_files() });
            }
        }
    }
    let files = builder.package_files();
    let graph =
        builder.finish().map_err(|error| PrepareFailure { error: error.0, packages: files.clone() })?;
    let packages = files
        .into_iter()
        .map(|path| {
            let seen = fingerprint(&path);
            (path, seen)
        })
        .collect();
    let mut modules = Vec::new();
    for (id, compiled) in &graph.modules {
        let bytes = match bytecode.get(id) {
            Some(module) => module.bytecode.clone(),
            // The graph made it itself, to let an ES module import a CommonJS one.
            None => facade(forge, compiled).await?,
        };
        let links = graph.links.get(id).map(|links| links.clone().into_iter().collect()).unwrap_or_default();
        modules.push(Arc::new(ModuleCode {
            id: id.clone(),
            kind: kind(compiled.format),
            bytecode: bytes,
            links,
        }));
    }
    let program = Program { entry: graph.entry.clone(), modules };
    let proven = AtomicBool::new(false);
    Ok(CompiledTool { program, graph, tools, packages, foreign, proven, may_write_rows })
}

/// What the cache has a compiled source under.
pub(super) fn module_key(cache: &BytecodeCache, unit: &Unit) -> String {
    cache.key(&["module", &format!("{:?}", unit.role), &unit.id, &unit.source])
}

/// One source, compiled now or before.
async fn module(forge: &ToolRuntime, unit: Unit) -> Result<Arc<CachedModule>, ToolError> {
    let key = module_key(&forge.cache, &unit);
    if let Some(module) = forge.cache.module(&key) {
        return Ok(module);
    }
    let id = unit.id.clone();
    let request = serde_json::to_vec(&FrontendRequest::Compile { unit })
        .map_err(|_| ToolError::from(ToolRuntimeError::Protocol))?;
    let compiled = forge.sandbox.compile(request).await;
    let done = match compiled.inspect_err(|error| failure::log_worker(&id, error)) {
        Ok(done) => done,
        Err(CompileFailure::Sandbox(error)) => return Err(ToolRuntimeError::from(error).into()),
        Err(refused) => {
            let findings = vec![failure::crash_finding(&id, &refused)];
            return Err(tgp_compiler::CompileError { findings }.into());
        }
    };
    match serde_json::from_slice(&done.answer) {
        Ok(FrontendAnswer::Compiled(compiled)) => {
            let bytecode = done.bytecode.ok_or(ToolRuntimeError::Protocol)?;
            Ok(forge.cache.keep_module(&key, CachedModule { compiled: *compiled, bytecode }))
        }
        Ok(FrontendAnswer::Refused(error)) => Err(error.into()),
        _ => Err(ToolRuntimeError::Protocol.into()),
    }
}

async fn facade(forge: &ToolRuntime, compiled: &CompiledModule) -> Result<Vec<u8>, ToolError> {
    let key = forge.cache.key(&["facade", &compiled.id, &compiled.code]);
    if let Some(bytecode) = forge.cache.raw(&key) {
        return Ok(bytecode);
    }
    let request = FrontendRequest::Script {
        id: compiled.id.clone(),
        common_js: false,
        code: compiled.code.clone(),
        keep_debug_info: false,
    };
    let bytecode = forge.emit(&request).await?;
    forge.cache.keep_raw(&key, &bytecode);
    Ok(bytecode)
}
