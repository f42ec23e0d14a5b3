//! Modules below the tool root, and what a tool may name at all.

use tgp_contract::{
    Code, EntryKind, FileSystem, FsError, PathError, RelativePath, SourceLocation, ToolError,
};
use tgp_text::{nearest, nearest_names};

use super::GraphHost;
use super::refusal::{Refusal, refused};
use crate::names::{is_listed, is_node_module};
use crate::{MAX_SOURCE_BYTES, ModuleRequest, SourceRole, Unit};

/// The read-only mount of the tools, and the folder it shows.
const MOUNT: &str = "/lib/";
const MOUNTED: &str = "tools";

const MODULE_EXTENSIONS: [&str; 7] = ["ts", "js", "json", "mts", "mjs", "cts", "cjs"];

/// What can be run. Nothing else may: files of other names are not held to tests.
const ENTRY_EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

/// More suggestions in one message are not read.
pub(super) const MAX_SUGGESTED: usize = 3;

/// Types alone, with nothing to run or import.
const DECLARATION_ENDINGS: [&str; 3] = [".d.ts", ".d.mts", ".d.cts"];

/// `./x`, `../x` and `/lib/x` name tools.
pub(super) fn is_tool_specifier(specifier: &str) -> bool {
    specifier.starts_with("./")
        || specifier.starts_with("../")
        || matches!(specifier, "." | "..")
        || specifier.starts_with(MOUNT)
}

/// Refuses everything that is neither a tool nor an allowed package.
pub(super) fn refuse_foreign(host: &GraphHost, request: &ModuleRequest) -> Result<(), ToolError> {
    let specifier = request.specifier.as_str();
    if specifier.starts_with("node:") {
        return Err(refused(request, Refusal::NodeBuiltin));
    }
    let is_odd = specifier.contains(['\\', ':', '%', '#', '?'])
        || specifier.chars().any(char::is_control)
        || specifier.split('/').any(|part| matches!(part, "" | "." | ".."));
    if is_odd {
        return Err(refused(request, Refusal::Outside));
    }
    if host.allowed_imports.iter().any(|allowed| is_listed(specifier, allowed)) {
        return Ok(());
    }
    if is_node_module(specifier) {
        return Err(refused(request, Refusal::NodeBuiltin));
    }
    let mut error = refused(request, Refusal::NotAllowed(&host.allowed_imports));
    let meant = nearest(specifier, host.allowed_imports.iter().map(String::as_str));
    let is_tool = RelativePath::new(specifier)
        .ok()
        .and_then(|path| candidates(&path).into_iter().find(|path| is_file(host.tools.as_ref(), path)));
    if let Some(tool) = is_tool {
        let shown =
            tool.as_str().strip_prefix("tools/").map_or(tool.to_string(), |rest| format!("{MOUNT}{rest}"));
        error = error.help(format!("a tool is imported by its path: `{shown}`, or `./…` from beside it"));
    } else if let Some(name) = meant {
        error = error.help(format!("did you mean `{name}`?"));
    }
    Err(error)
}

/// The path that a tool's specifier names.
fn named(importer: &RelativePath, specifier: &str) -> Result<RelativePath, PathError> {
    match specifier.strip_prefix(MOUNT) {
        // The rest is resolved alone, so that `/lib/../x` cannot leave the mount.
        Some(rest) => {
            RelativePath::new(rest).and_then(|rest| RelativePath::new(MOUNTED)?.join(rest.as_str()))
        }
        None => importer.parent().join(specifier),
    }
}

/// Every file that a tool's specifier could mean, whether it is there or not.
pub(super) fn possible(importer: &RelativePath, specifier: &str) -> Vec<RelativePath> {
    named(importer, specifier).map(|path| candidates(&path)).unwrap_or_default()
}

/// The file a tool's specifier means.
pub(super) fn locate(
    files: &dyn FileSystem,
    importer: &RelativePath,
    request: &ModuleRequest,
) -> Result<RelativePath, ToolError> {
    let path = named(importer, request.specifier.as_str()).map_err(|error| match error {
        PathError::TooLong(_) => ToolError::from(error).place(&request.place),
        _ => refused(request, Refusal::Outside),
    })?;
    let tried = candidates(&path);
    for candidate in &tried {
        match files.entry(candidate) {
            Ok(Some(entry)) if entry.kind == EntryKind::File => {
                return if is_module(candidate) {
                    Ok(candidate.clone())
                } else {
                    Err(refused(
                        request,
                        Refusal::NoModule { reason: format!("`{candidate}` is not a module") },
                    ))
                };
            }
            Ok(Some(entry)) if entry.kind == EntryKind::Other => {
                return Err(refused(request, Refusal::Outside));
            }
            // A file where a directory is needed on the way is nothing found, too.
            Ok(_) | Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => {}
            Err(error) => return Err(ToolError::from(error).place(&request.place)),
        }
    }
    let tried = tried.iter().map(ToString::to_string).collect();
    let near = nearest_tools(files, &path);
    let help = "write the tool first, or list the files to see what there is".to_owned();
    Err(refused(request, Refusal::NotFound { tried, nearest: near, help }))
}

/// What a path may stand for, in order.
fn candidates(path: &RelativePath) -> Vec<RelativePath> {
    let text = path.as_str();
    let mut names = vec![text.to_owned()];
    if path.is_root() {
        names = vec!["index.ts".to_owned()];
    } else {
        names.push(format!("{text}.ts"));
        names.extend(
            [(".js", ".ts"), (".mjs", ".mts"), (".cjs", ".cts")]
                .iter()
                .filter_map(|(written, real)| text.strip_suffix(written).map(|stem| format!("{stem}{real}"))),
        );
        names.extend([".js", ".json", "/index.ts", "/index.js"].map(|ending| format!("{text}{ending}")));
    }
    names.iter().filter_map(|name| RelativePath::new(name).ok()).collect()
}

fn is_module(path: &RelativePath) -> bool {
    has_code(path, &MODULE_EXTENSIONS)
}

/// Whether the name has one of the extensions and is not that of a declaration.
fn has_code(path: &RelativePath, extensions: &[&str]) -> bool {
    let name = path.name().unwrap_or_default();
    let is_declaration = DECLARATION_ENDINGS.iter().any(|ending| name.ends_with(ending));
    !is_declaration && name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

fn is_file(files: &dyn FileSystem, path: &RelativePath) -> bool {
    matches!(files.entry(path), Ok(Some(entry)) if entry.kind == EntryKind::File)
}

fn nearest_tools(files: &dyn FileSystem, wanted: &RelativePath) -> Vec<String> {
    let folder = RelativePath::new(wanted.parts().next().unwrap_or(MOUNTED)).unwrap_or_default();
    let (listed, prefix) = match files.list(&folder) {
        // A folder that all of them begin with does not make their names alike.
        Ok(listed) => (listed, format!("{folder}/")),
        Err(_) => (files.list(&RelativePath::root()).unwrap_or_default(), String::new()),
    };
    let stem = |path: &str| {
        let inner = path.strip_prefix(&prefix).unwrap_or(path);
        inner.rsplit_once('.').map_or(inner, |(stem, _)| stem).to_owned()
    };
    let wanted_stem = stem(wanted.as_str());
    let modules: Vec<String> = listed
        .iter()
        .filter(|entry| entry.kind == EntryKind::File && is_module(&entry.path))
        .map(|entry| entry.path.to_string())
        .collect();
    let stems: Vec<String> = modules.iter().map(|path| stem(path)).collect();
    let mut near = nearest_names(&wanted_stem, stems.iter().map(String::as_str), MAX_SUGGESTED);
    if near.is_empty() {
        // The right name in the wrong folder.
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let same = stems.iter().filter(|stem| name(stem) == name(&wanted_stem));
        near = same.take(MAX_SUGGESTED).map(String::as_str).collect();
    }
    near.iter().filter_map(|near| modules.iter().find(|path| stem(path) == *near).cloned()).collect()
}

/// The tool that is to be run.
pub(super) fn read_entry(files: &dyn FileSystem, entry: &RelativePath) -> Result<Unit, ToolError> {
    match files.entry(entry) {
        Ok(Some(found)) if found.kind == EntryKind::File => {}
        Ok(Some(_)) => return Err(FsError::IsDirectory(entry.clone()).into()),
        Ok(None) | Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => {
            let near = nearest_tools(files, entry);
            let help = if near.is_empty() {
                "write the tool first, or list the files to see what there is".to_owned()
            } else {
                format!("did you mean {}?", super::refusal::listed(&near))
            };
            return Err(ToolError::new(Code::NotFound, format!("there is no tool `{entry}`")).help(help));
        }
        Err(error) => return Err(error.into()),
    }
    if !has_code(entry, &ENTRY_EXTENSIONS) {
        let message = format!("`{entry}` is not a tool: it is neither TypeScript nor JavaScript by its name");
        return Err(ToolError::new(Code::Validation, message)
            .help("tools are called `name.ts` or `name.js`, and `name.d.ts` holds types only"));
    }
    let place = SourceLocation { file: entry.to_string(), line: 1, column: 1 };
    Ok(Unit { id: entry.to_string(), source: read(files, entry, &place)?, role: SourceRole::Tool })
}

/// The source of a tool.
pub(super) fn read(
    files: &dyn FileSystem,
    path: &RelativePath,
    place: &SourceLocation,
) -> Result<String, ToolError> {
    let at_place = |error: FsError| ToolError::from(error).place(place);
    if let Some(entry) = files.entry(path).map_err(at_place)?
        && entry.size > MAX_SOURCE_BYTES as u64
    {
        let limit = MAX_SOURCE_BYTES as u64;
        return Err(at_place(FsError::TooLarge { path: path.clone(), size: entry.size, limit }));
    }
    files.read_text(path).map_err(at_place)
}
