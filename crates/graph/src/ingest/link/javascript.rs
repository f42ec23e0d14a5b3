//! Where the specifiers of TypeScript and JavaScript lead.

use super::Link;
use super::imports::{Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, join, normalise, parent};
use crate::ingest::manifests::{Package, Part};
use crate::ingest::parse::Import;

/// Extensions in the order in which they are tried.
const EXTENSIONS: [&str; 12] =
    ["ts", "tsx", "d.ts", "js", "jsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "json"];

/// What a written extension may mean, when such a file is not there.
const MEANINGS: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts", ".jsx"]),
    (".jsx", &[".tsx"]),
    (".mjs", &[".mts", ".d.mts"]),
    (".cjs", &[".cts", ".d.cts"]),
];

/// Configurations that extend one another.
const MAX_EXTENDS: usize = 8;

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    let specifier = resource(&import.specifier);
    let directory = parent(file);
    if specifier.starts_with("./") || specifier.starts_with("../") || matches!(specifier, "." | "..") {
        return of_path(link, directory, specifier);
    }
    // Servers and bundlers take it for a path from the root.
    if let Some(path) = specifier.strip_prefix('/') {
        return of_path(link, "", path);
    }
    if specifier.is_empty() || specifier.contains("://") || is_address(specifier) {
        return Resolved::nothing(None);
    }
    if specifier.starts_with('#') {
        return mapped(link, directory, specifier);
    }
    let found = aliased(link, directory, specifier).or_else(|| workspace(link, directory, specifier));
    if let Some(found) = found {
        return Resolved { module: Module::file(found), ..Resolved::default() };
    }
    Resolved { package: Some((Ecosystem::Npm, package_name(specifier))), ..Resolved::default() }
}

/// The specifier without what loaders and queries add: `./x?raw`, `text!./x`, `./x!text`.
fn resource(specifier: &str) -> &str {
    let mut parts = specifier.split('!');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
    let meant = last.filter(|last| last.starts_with('.')).unwrap_or(first);
    meant.split('?').next().unwrap_or_default()
}

/// Code within the specifier itself, and files by their address.
fn is_address(specifier: &str) -> bool {
    ["data:", "blob:", "file:"].iter().any(|scheme| specifier.starts_with(scheme))
}

/// The files that a path may mean: as written, and as an address, in which `%77` is a letter and `#` ends the path.
fn of_path(link: &Link<'_>, directory: &str, specifier: &str) -> Resolved {
    let before_mark = specifier.split('#').next().unwrap_or_default();
    let mut written = vec![specifier.to_owned()];
    written.extend((before_mark != specifier).then(|| before_mark.to_owned()));
    if let Some(decoded) = decoded(before_mark) {
        written.push(decoded);
    }
    let mut files: Vec<String> = Vec::new();
    for specifier in &written {
        let base = normalise(directory, specifier);
        // What ends like a directory is one, though a file has the same name.
        let is_directory = matches!(specifier.rsplit('/').next(), Some("" | "." | ".."));
        let found = if is_directory { index } else { candidate };
        files.extend(base.and_then(|base| found(link, &base)).filter(|file| !files.contains(file)));
    }
    let target = written.last().and_then(|specifier| normalise(directory, specifier));
    let module = Module { files, inner: String::new() };
    Resolved { module, ..Resolved::default() }.or_missing(target)
}

/// A path without its percent signs; none where it has none.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    let decoded = String::from_utf8(bytes).ok()?;
    (decoded != path).then_some(decoded)
}

/// `#name` by the `imports` of the nearest `package.json`, under every condition, or by an alias of TypeScript.
fn mapped(link: &Link<'_>, directory: &str, specifier: &str) -> Resolved {
    let mut files: Vec<String> = aliased(link, directory, specifier).into_iter().collect();
    let mut package = None;
    let mut target = None;
    let is_package = |package: &Package| package.language == Language::PackageJson;
    let own = link.manifests().nearest(directory, Part::Aliases, is_package);
    if let Some(own) = own
        && let Some((targets, rest)) = best(&own.manifest.imports, specifier)
    {
        for meant in targets.iter().map(|target| target.replace('*', rest)) {
            if !meant.starts_with('.') {
                package = Some((Ecosystem::Npm, package_name(&meant)));
                continue;
            }
            let path = normalise(&own.directory, &meant);
            files.extend(
                path.as_deref().and_then(|path| candidate(link, path)).filter(|file| !files.contains(file)),
            );
            target = target.or(path);
        }
    }
    let module = Module { files, inner: String::new() };
    Resolved { module, package, ..Resolved::default() }.or_missing(target)
}

/// `@scope/name/rest` is a file of `@scope/name`.
fn package_name(specifier: &str) -> String {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.split('/').take(parts).collect::<Vec<_>>().join("/")
}

/// The file that a path without its extension, or a directory, refers to.
fn candidate(link: &Link<'_>, base: &str) -> Option<String> {
    if link.exists(base) {
        return Some(base.to_owned());
    }
    for (written, meanings) in MEANINGS {
        if let Some(stem) = base.strip_suffix(written) {
            let meant = meanings.iter().map(|meant| format!("{stem}{meant}")).find(|path| link.exists(path));
            if meant.is_some() {
                return meant;
            }
        }
    }
    let mut named = EXTENSIONS.iter().map(|extension| format!("{base}.{extension}"));
    named.find(|path| link.exists(path)).or_else(|| index(link, base))
}

/// The file that a directory refers to.
fn index(link: &Link<'_>, base: &str) -> Option<String> {
    let mut names = EXTENSIONS.iter().map(|extension| join(base, &format!("index.{extension}")));
    names.find(|path| link.exists(path))
}

/// Path aliases and the base directory of the nearest `tsconfig.json`.
fn aliased(link: &Link<'_>, directory: &str, specifier: &str) -> Option<String> {
    let manifests = link.manifests();
    let is_main = |package: &Package| {
        package.language == Language::TsConfig
            && (package.path.ends_with("tsconfig.json") || package.path.ends_with("jsconfig.json"))
    };
    let mut config = manifests.nearest(directory, Part::Aliases, is_main)?;
    for _ in 0..MAX_EXTENDS {
        let manifest = &config.manifest;
        let base = manifest.base_url.as_deref().unwrap_or(".");
        let base = normalise(&config.directory, base);
        if let Some((targets, rest)) = best(&manifest.aliases, specifier) {
            for target in targets {
                let path = base.as_deref().and_then(|base| normalise(base, &target.replacen('*', rest, 1)));
                if let Some(found) = path.and_then(|path| candidate(link, &path)) {
                    return Some(found);
                }
            }
        }
        if manifest.base_url.is_some() {
            let path = base.as_deref().and_then(|base| normalise(base, specifier));
            if let Some(found) = path.and_then(|path| candidate(link, &path)) {
                return Some(found);
            }
        }
        let above = normalise(&config.directory, manifest.extends.as_deref()?)?;
        let above = if above.ends_with(".json") { above } else { format!("{above}.json") };
        config = manifests.of_path(&above, Part::Aliases)?;
    }
    None
}

/// What a name refers to: one without a star first, then the one with the most before its star; the others are not
/// asked.
fn best<'m, 's>(aliases: &'m [(String, Vec<String>)], specifier: &'s str) -> Option<(&'m [String], &'s str)> {
    let fitting = aliases
        .iter()
        .filter_map(|(pattern, targets)| Some((pattern, targets, matched(pattern, specifier)?)));
    let best = fitting.max_by_key(|(pattern, ..)| pattern.find('*').unwrap_or(usize::MAX));
    best.map(|(_, targets, rest)| (targets.as_slice(), rest))
}

/// What `*` matches; the empty text for a pattern without one.
fn matched<'s>(pattern: &str, specifier: &'s str) -> Option<&'s str> {
    match pattern.split_once('*') {
        Some((before, after)) => specifier.strip_prefix(before)?.strip_suffix(after),
        None => (pattern == specifier).then_some(""),
    }
}

/// A package of the same tree: its entry, or a file of it.
fn workspace(link: &Link<'_>, from: &str, specifier: &str) -> Option<String> {
    let manifests = link.manifests();
    let name = package_name(specifier);
    let directory = manifests.named(Ecosystem::Npm, &name, from)?;
    let manifest = &manifests.at(directory, Language::PackageJson, Part::Entries)?.manifest;
    let rest = specifier.get(name.len()..).unwrap_or_default();
    let sub_path = format!(".{rest}");
    for (entry, target) in &manifest.entries {
        let target = if entry.contains('*') {
            matched(entry, &sub_path).map(|star| target.replacen('*', star, 1))
        } else {
            (*entry == sub_path).then(|| target.clone())
        };
        let path = target.and_then(|target| normalise(directory, &target));
        if let Some(found) = path.and_then(|path| candidate(link, &path)) {
            return Some(found);
        }
    }
    let rest = rest.trim_start_matches('/');
    // What is published is built from `src`, which is what is in the tree.
    let places = if rest.is_empty() {
        vec!["src/index".to_owned(), "index".to_owned(), "src/main".to_owned()]
    } else {
        vec![rest.to_owned(), format!("src/{rest}")]
    };
    places.iter().find_map(|place| candidate(link, &normalise(directory, place)?))
}
