//! The static module graph of a tool.
//!
//! The builder knows where modules may come from and nothing else does: below the tool root, from packages that the
//! project allows, or built in. It reads sources and never runs or compiles them.

mod facade;
mod packages;
mod refusal;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tgp_contract::{Code, FileSystem, RelativePath, SourceLocation, ToolError};

use self::packages::Packages;
use self::refusal::{Refusal, refused};
use crate::builtin::{self, CORE, CSV, FOREIGN, STANDARD, TEST, TEST_MAIN};
use crate::{CompiledModule, ModuleRequest, RequestKind, SourceRole, Unit};

/// A graph with more modules is refused.
const MAX_MODULES: usize = 2_000;

/// A graph with more source is refused.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// Where modules come from.
#[derive(Clone)]
pub struct GraphHost {
    /// The tool repository (`.tgp`). `/lib/x.ts` names `tools/x.ts` in it.
    pub tools: Arc<dyn FileSystem>,
    /// The project directory whose `node_modules` hold the packages.
    pub project: PathBuf,
    /// Package names tools may import; `zod` also allows `zod/v4`.
    pub allowed_imports: Vec<String>,
    /// What stands behind `mcp:SERVER` and `host:MODULE`; without it no tool has such an import.
    pub foreign: Option<Arc<dyn ForeignModules>>,
}

/// The modules of other programs: of upstream servers and of the embedding program.
pub trait ForeignModules: fmt::Debug + Send + Sync {
    /// The source of `mcp:SERVER` or `host:MODULE`.
    ///
    /// # Errors
    /// Why a tool cannot import it.
    fn source(&self, specifier: &str) -> Result<String, ToolError>;

    /// The hash of the definition of a tool that the module of an upstream server was made from.
    fn pin(&self, server: &str, tool: &str) -> Option<String>;
}

impl fmt::Debug for GraphHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GraphHost")
            .field("project", &self.project)
            .field("allowed_imports", &self.allowed_imports)
            .finish_non_exhaustive()
    }
}

/// Every module a tool can reach, compiled, and how they are linked.
#[derive(Clone, Debug)]
pub struct ModuleGraph {
    pub entry: String,
    /// Modules by id. `esm:X` is the ES module through which others import the CommonJS module `X`.
    pub modules: BTreeMap<String, CompiledModule>,
    /// For each module: specifier to module id.
    ///
    /// A module that both imports and requires the same specifier and gets two modules for it has the required one
    /// under `require:SPECIFIER`.
    pub links: BTreeMap<String, BTreeMap<String, String>>,
}

/// Why a graph cannot be built. Carries a finished [`ToolError`] with the place of the offending import.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ModuleGraphError(#[from] pub ToolError);

/// Where a module was found; it decides what the module itself may ask for.
#[derive(Clone, Debug)]
enum Origin {
    /// A file below the tool root.
    Tool(RelativePath),
    /// A file of a package, by its real path.
    Package(PathBuf),
    /// `tgp.config.ts`.
    Config,
    /// The module that runs the tests of the test file with this id.
    TestMain(String),
    /// The module of another program.
    Foreign,
    /// Part of this crate.
    Builtin,
}

/// A resolved request.
#[derive(Clone, Debug)]
struct Edge {
    request: ModuleRequest,
    target: String,
}

/// Builds a graph without doing input or output of its own beyond reading sources: ask for the [`Unit`]s to
/// compile, supply what they compiled to, until nothing is pending.
#[derive(Debug)]
pub struct GraphBuilder {
    host: GraphHost,
    entry: String,
    origins: BTreeMap<String, Origin>,
    queue: Vec<Unit>,
    awaited: BTreeSet<String>,
    modules: BTreeMap<String, CompiledModule>,
    edges: BTreeMap<String, Vec<Edge>>,
    bytes: usize,
    /// What the import that failed could have meant.
    missed: Vec<RelativePath>,
    /// Made when the first package is asked for.
    packages: Option<Packages>,
}

impl GraphBuilder {
    /// The graph of a tool.
    ///
    /// # Errors
    /// When the entry does not exist or cannot be read; `EVALIDATION` when its name is not that of code.
    pub fn new(host: GraphHost, entry: &RelativePath) -> Result<Self, ModuleGraphError> {
        let mut builder = Self::empty(host, entry.as_str());
        let unit = tools::read_entry(builder.host.tools.as_ref(), entry)?;
        builder.add(unit, Origin::Tool(entry.clone()), None)?;
        Ok(builder)
    }

    /// The graph of a source that stands outside the tool root, such as `tgp.config.ts`. It may import `@tgp/core`
    /// and nothing else.
    ///
    /// # Errors
    /// When the source is larger than a whole graph may be.
    pub fn for_unit(host: GraphHost, unit: Unit) -> Result<Self, ModuleGraphError> {
        let mut builder = Self::empty(host, &unit.id);
        builder.add(unit, Origin::Config, None)?;
        Ok(builder)
    }

    /// The graph of a test file, behind the module that runs its tests.
    ///
    /// # Errors
    /// When the file does not exist or cannot be read.
    pub fn for_test(host: GraphHost, file: &RelativePath) -> Result<Self, ModuleGraphError> {
        let mut builder = Self::empty(host, TEST_MAIN);
        let unit = tools::read_entry(builder.host.tools.as_ref(), file)?;
        let main = Origin::TestMain(unit.id.clone());
        builder.add(unit, Origin::Tool(file.clone()), None)?;
        builder.add(builtin::test_main(), main, None)?;
        Ok(builder)
    }

    fn empty(host: GraphHost, entry: &str) -> Self {
        Self {
            host,
            entry: entry.to_owned(),
            origins: BTreeMap::new(),
            queue: Vec::new(),
            awaited: BTreeSet::new(),
            modules: BTreeMap::new(),
            edges: BTreeMap::new(),
            bytes: 0,
            missed: Vec::new(),
            packages: None,
        }
    }

    /// The sources that must be compiled next; empty when the graph is complete.
    pub fn pending(&mut self) -> Vec<Unit> {
        std::mem::take(&mut self.queue)
    }

    /// Takes one compiled source and resolves what it asks for.
    ///
    /// # Errors
    /// `ENOTFOUND` for a missing module, `ESECURITY` for one outside the allow-list or the tool root, `ECOMPILE` for a
    /// file that is none, or is a test.
    pub fn supply(&mut self, compiled: CompiledModule) -> Result<(), ModuleGraphError> {
        let origin = self.origins.get(&compiled.id).cloned().filter(|_| self.awaited.remove(&compiled.id));
        let Some(origin) = origin else {
            let message = format!("module `{}` was supplied and not asked for", compiled.id);
            return Err(ToolError::new(Code::Internal, message).into());
        };
        let mut edges = Vec::with_capacity(compiled.requests.len());
        for request in &compiled.requests {
            match self.resolve(&origin, request) {
                Ok(target) => edges.push(Edge { request: request.clone(), target }),
                // A package that catches a failed `require` runs without it, here as anywhere.
                Err(_) if request.optional && matches!(origin, Origin::Package(_)) => {}
                // What a package loads only in some environments fails there, and only when it is loaded.
                Err(error)
                    if matches!(origin, Origin::Package(_)) && packages::may_be_missing(request, &error) =>
                {
                    let target = self.add_missing(packages::missing(request, &error))?;
                    edges.push(Edge { request: request.clone(), target });
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.edges.insert(compiled.id.clone(), edges);
        self.modules.insert(compiled.id.clone(), compiled);
        Ok(())
    }

    /// After an import of a tool has failed: every file below the tool root that it could have meant, whether it is there or
    /// not. Why it failed depends on which of them are there.
    #[must_use]
    pub fn missed(&self) -> &[RelativePath] {
        &self.missed
    }

    /// The files on disk that belong to packages, so that a caller can tell when one of them changed.
    #[must_use]
    pub fn package_files(&self) -> Vec<PathBuf> {
        let file = |origin: &Origin| match origin {
            Origin::Package(path) => Some(path.clone()),
            Origin::Tool(_) | Origin::Config | Origin::TestMain(_) | Origin::Foreign | Origin::Builtin => {
                None
            }
        };
        self.origins.values().filter_map(file).collect()
    }

    /// # Errors
    /// When something is still pending, or a tool imports a name that does not exist.
    pub fn finish(self) -> Result<ModuleGraph, ModuleGraphError> {
        if let Some(id) = self.awaited.first() {
            let message = format!("module `{id}` was asked for and not supplied");
            return Err(ToolError::new(Code::Internal, message).into());
        }
        facade::check_names(&self.modules, &self.edges, |id| {
            matches!(self.origins.get(id), Some(Origin::Tool(_)))
        })?;
        Ok(facade::link(self.entry, self.modules, &self.edges))
    }

    /// The id of the module that `request` means, queued for compilation when it is new.
    fn resolve(&mut self, origin: &Origin, request: &ModuleRequest) -> Result<String, ToolError> {
        let specifier = request.specifier.as_str();
        match origin {
            Origin::Builtin if specifier == CSV => Ok(CSV.to_owned()),
            Origin::Builtin => Err(refused(request, Refusal::NotAllowed(&self.host.allowed_imports))),
            Origin::Foreign if specifier == FOREIGN => Ok(FOREIGN.to_owned()),
            Origin::Foreign => Err(refused(request, Refusal::Outside)),
            Origin::Config if specifier == CORE.0 => self.add_builtin(CORE.1),
            Origin::Config => Err(refused(request, Refusal::OnlyCore)),
            Origin::TestMain(_) if specifier == TEST.0 => self.add_builtin(TEST.1),
            Origin::TestMain(file) => Ok(file.clone()),
            Origin::Tool(importer) => {
                if specifier == STANDARD.0 {
                    return self.add_builtin(STANDARD.1);
                }
                if specifier == CORE.0 {
                    return Err(refused(request, Refusal::CoreInTool));
                }
                if specifier == TEST.0 && builtin::is_test_file(importer.as_str()) {
                    return self.add_builtin(TEST.1);
                }
                if specifier == TEST.0 {
                    return Err(refused(request, Refusal::TestInTool));
                }
                if builtin::is_foreign(specifier) {
                    return self.add_foreign(request);
                }
                if tools::is_tool_specifier(specifier) {
                    let added = self.import_tool(importer, request);
                    if added.is_err() {
                        self.missed = tools::possible(importer, specifier);
                    }
                    return added;
                }
                tools::refuse_foreign(&self.host, request)?;
                let project = self.host.project.clone();
                self.add_package(&project, request)
            }
            Origin::Package(file) => {
                let directory = file.parent().map(PathBuf::from).unwrap_or_default();
                self.add_package(&directory, request)
            }
        }
    }

    fn add_builtin(&mut self, id: &str) -> Result<String, ToolError> {
        if let (false, Some(unit)) = (self.origins.contains_key(id), builtin::unit(id)) {
            self.add(unit, Origin::Builtin, None)?;
        }
        Ok(id.to_owned())
    }

    fn add_foreign(&mut self, request: &ModuleRequest) -> Result<String, ToolError> {
        let id = request.specifier.clone();
        if !self.origins.contains_key(&id) {
            let Some(modules) = &self.host.foreign else {
                return Err(refused(request, Refusal::NoForeign));
            };
            let source = modules.source(&id).map_err(|error| refused(request, Refusal::Foreign(error)))?;
            let unit = Unit { id: id.clone(), source, role: SourceRole::Library };
            self.add(unit, Origin::Foreign, Some(&request.place))?;
        }
        Ok(id)
    }

    fn add_missing(&mut self, unit: Unit) -> Result<String, ToolError> {
        let id = unit.id.clone();
        if !self.origins.contains_key(&id) {
            self.add(unit, Origin::Builtin, None)?;
        }
        Ok(id)
    }

    fn import_tool(&mut self, importer: &RelativePath, request: &ModuleRequest) -> Result<String, ToolError> {
        let path = tools::locate(self.host.tools.as_ref(), importer, request)?;
        // Tests may be written at any time; code may not, and so must not stand in them.
        if builtin::is_test_file(path.as_str()) && !builtin::is_test_file(importer.as_str()) {
            return Err(refused(request, Refusal::TestFile(&path)));
        }
        self.add_tool(path, request)
    }

    fn add_tool(&mut self, path: RelativePath, request: &ModuleRequest) -> Result<String, ToolError> {
        let id = path.as_str().to_owned();
        if !self.origins.contains_key(&id) {
            let source = tools::read(self.host.tools.as_ref(), &path, &request.place)?;
            let unit = Unit { id: id.clone(), source, role: SourceRole::Tool };
            self.add(unit, Origin::Tool(path), Some(&request.place))?;
        }
        Ok(id)
    }

    fn add_package(
        &mut self,
        directory: &std::path::Path,
        request: &ModuleRequest,
    ) -> Result<String, ToolError> {
        let packages = self.packages.get_or_insert_with(|| Packages::new(&self.host.project));
        let found = packages.locate(directory, request)?;
        if !self.origins.contains_key(&found.id) {
            let source = packages::read(&found, request)?;
            let unit = Unit { id: found.id.clone(), source, role: SourceRole::Library };
            self.add(unit, Origin::Package(found.file), Some(&request.place))?;
        }
        Ok(found.id)
    }

    fn add(&mut self, unit: Unit, origin: Origin, place: Option<&SourceLocation>) -> Result<(), ToolError> {
        self.bytes += unit.source.len();
        let message = if self.origins.len() >= MAX_MODULES {
            format!("`{}` reaches more than {MAX_MODULES} modules", self.entry)
        } else if self.bytes > MAX_TOTAL_BYTES {
            format!("`{}` reaches more than {MAX_TOTAL_BYTES} bytes of source", self.entry)
        } else {
            self.origins.insert(unit.id.clone(), origin);
            self.awaited.insert(unit.id.clone());
            self.queue.push(unit);
            return Ok(());
        };
        let error = ToolError::new(Code::Compile, message)
            .help("import the part of the package that is needed, such as `date-fns/format`");
        Err(match place {
            Some(place) => error.place(place),
            None => error,
        })
    }
}

/// True for requests that an ES module linker makes.
fn is_import(kind: RequestKind) -> bool {
    matches!(kind, RequestKind::Import | RequestKind::DynamicImport)
}
