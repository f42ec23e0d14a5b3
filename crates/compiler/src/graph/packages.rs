//! Files of packages, found as Node finds them and never outside a `node_modules`.

use crate::names::is_node_module;
use std::fmt;
use std::path::{Path, PathBuf};

use oxc_resolver::{ResolveError, ResolveOptions, Resolver};
use tgp_contract::{Code, ToolError};

use super::refusal::{Refusal, refused};
use crate::transpile::{MAX_LIBRARY_BYTES, quoted};
use crate::{ModuleRequest, RequestKind, SourceRole, Unit};

/// A file of a package.
pub(super) struct Found {
    pub(super) id: String,
    /// Its real path, links followed.
    pub(super) file: PathBuf,
    /// The `browser` field of the package replaces it by nothing.
    is_ignored: bool,
}

/// The module in place of everything that a `browser` field replaces by nothing.
const EMPTY_ID: &str = "npm:empty";
const EMPTY_SOURCE: &str = "module.exports = {};\n";

/// Bytes of the message of a missing module: its name may be as long as a line.
const MAX_MISSING_MESSAGE: usize = 1_000;

/// The packages that a project can reach.
pub(super) struct Packages {
    import: Resolver,
    require: Resolver,
    /// The real `node_modules` of the project and of the directories above it, nearest first.
    roots: Vec<PathBuf>,
}

impl fmt::Debug for Packages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Packages").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl Packages {
    pub(super) fn new(project: &Path) -> Self {
        let options = |conditions: &[&str], main_fields: &[&str]| ResolveOptions {
            condition_names: conditions.iter().map(ToString::to_string).collect(),
            main_fields: main_fields.iter().map(ToString::to_string).collect(),
            // A tool is closer to a browser than to Node: it has `fetch` and `crypto`, and no modules of Node. It is a
            // worker there: a package that knows the difference must not expect a `document`.
            alias_fields: vec![vec!["browser".to_owned()]],
            extensions: [".js", ".mjs", ".cjs", ".json"].map(String::from).to_vec(),
            // The environment of the kernel must not decide what a tool loads.
            node_path: false,
            ..ResolveOptions::default()
        };
        let import = Resolver::new(options(
            &["import", "worker", "browser", "module", "default"],
            &["browser", "module", "main"],
        ));
        let require = import
            .clone_with_options(options(&["require", "worker", "browser", "default"], &["browser", "main"]));
        let real = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let roots = real
            .ancestors()
            .filter_map(|directory| directory.join("node_modules").canonicalize().ok())
            .collect();
        Self { import, require, roots }
    }

    /// The file that `request` means when it stands in `directory`.
    pub(super) fn locate(&self, directory: &Path, request: &ModuleRequest) -> Result<Found, ToolError> {
        let specifier = request.specifier.as_str();
        if specifier.starts_with("node:") {
            return Err(refused(request, Refusal::NodeBuiltin));
        }
        if specifier.starts_with('/') || specifier.contains(['\\', ':']) {
            return Err(refused(request, Refusal::Outside));
        }
        let resolver = if request.kind == RequestKind::Require { &self.require } else { &self.import };
        let resolution = match resolver.resolve(directory, specifier) {
            Err(ResolveError::Ignored(file)) => {
                return Ok(Found { id: EMPTY_ID.to_owned(), file, is_ignored: true });
            }
            resolved => resolved.map_err(|error| explain(request, directory, &error))?,
        };
        // The resolver follows links itself; asking the system again makes this check its own proof.
        let file = resolution.path().canonicalize().map_err(|error| unreadable(request, &error))?;
        let id = self.id(&file).ok_or_else(|| refused(request, Refusal::Escapes))?;
        Ok(Found { id, file, is_ignored: false })
    }

    /// `npm:` and the path below `node_modules`; one `../` for each root that is nearer to the project.
    fn id(&self, file: &Path) -> Option<String> {
        self.roots.iter().enumerate().find_map(|(distance, root)| {
            let below = file.strip_prefix(root).ok()?;
            let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
            Some(format!("npm:{}{}", "../".repeat(distance), names?.join("/")))
        })
    }
}

/// Whether a module that a package asks for may be missing until it is loaded: `require` and `import()` run when their line
/// does, in a `try` or in a branch that is never taken. A limit that was reached is no such reason.
pub(super) fn may_be_missing(request: &ModuleRequest, error: &ToolError) -> bool {
    let is_late = matches!(request.kind, RequestKind::Require | RequestKind::DynamicImport);
    is_late && matches!(error.code, Code::Security | Code::NotFound)
}

/// A module in place of one that is missing: it throws what the import would have been refused with.
pub(super) fn missing(request: &ModuleRequest, error: &ToolError) -> Unit {
    let specifier = &request.specifier;
    // The same name means another file elsewhere.
    let id = if specifier.starts_with('.') {
        format!("missing:{}:{specifier}", request.place.file)
    } else {
        format!("missing:{specifier}")
    };
    let message = match error.help_of() {
        Some(help) => format!("{}; {help}", error.message),
        None => error.message.clone(),
    };
    let message = tgp_text::head(&message, MAX_MISSING_MESSAGE);
    let source = format!(
        "module.exports = {{}};\nthrow Object.assign(new Error({}), {{ code: 'MODULE_NOT_FOUND' }});\n",
        quoted(message)
    );
    Unit { id, source, role: SourceRole::Library }
}

fn explain(request: &ModuleRequest, directory: &Path, error: &ResolveError) -> ToolError {
    let specifier = request.specifier.as_str();
    // An installed package of the same name (`events`, `buffer`) stands in for Node's; without one it is Node's.
    if is_node_module(specifier) {
        return refused(request, Refusal::NodeBuiltin);
    }
    let is_relative = specifier.starts_with('.');
    let package = package_name(specifier);
    let (reason, help) = match error {
        ResolveError::PackagePathNotExported { subpath, .. } => (
            format!("package `{package}` does not export `{subpath}` for this kind of import"),
            format!("look into `exports` of `node_modules/{package}/package.json` for what it offers"),
        ),
        ResolveError::NotFound(_) if is_relative => (
            format!("there is no such file below `{}`", directory.display()),
            "install the package again".to_owned(),
        ),
        ResolveError::NotFound(_) => (
            format!("package `{package}` is not installed where `{}` can see it", directory.display()),
            format!("run `npm install {package}` in the project"),
        ),
        error => (error.to_string(), format!("look into `node_modules/{package}/package.json`")),
    };
    refused(request, Refusal::Package { reason, help })
}

fn unreadable(request: &ModuleRequest, error: &std::io::Error) -> ToolError {
    let help = "install the package again".to_owned();
    refused(request, Refusal::Package { reason: format!("its file cannot be read: {error}"), help })
}

/// The source of a file, within the cap.
pub(super) fn read(found: &Found, request: &ModuleRequest) -> Result<String, ToolError> {
    if found.is_ignored {
        return Ok(EMPTY_SOURCE.to_owned());
    }
    let no_module = |reason: String| refused(request, Refusal::NoModule { reason });
    let size = found.file.metadata().map_err(|error| unreadable(request, &error))?.len();
    if size > MAX_LIBRARY_BYTES as u64 {
        return Err(no_module(format!(
            "`{}` has {size} bytes, more than the {MAX_LIBRARY_BYTES} allowed",
            found.id
        )));
    }
    let bytes = std::fs::read(&found.file).map_err(|error| unreadable(request, &error))?;
    String::from_utf8(bytes).map_err(|_| no_module(format!("`{}` is not UTF-8 text", found.id)))
}

/// `@scope/name` or `name`.
fn package_name(specifier: &str) -> String {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.split('/').take(parts).collect::<Vec<_>>().join("/")
}
