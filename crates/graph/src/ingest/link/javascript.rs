//! Where the specifiers of TypeScript and JavaScript lead.

use super::Link;
use super::imports::{Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, file_name, join, normalise, parent};
use crate::ingest::manifests::{Package, Part};
use crate::ingest::parse::Import;

/// Extensions in the order in which they are tried.
const EXTENSIONS: [&str; 15] = [
    "ts", "tsx", "d.ts", "js", "jsx", "mjs", "cjs", "mts", "cts", "d.mts", "d.cts", "vue", "svelte", "astro",
    "json",
];

/// What a written extension may mean, when such a file is not there.
const MEANINGS: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts", ".jsx"]),
    (".jsx", &[".tsx"]),
    (".mjs", &[".mts", ".d.mts"]),
    (".cjs", &[".cts", ".d.cts"]),
];

/// Configurations that extend one another; where there are more, names may mean anything.
const MAX_EXTENDS: usize = 64;

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    let directory = parent(file);
    let mut resolved = of_specifier(link, directory, resource(&import.specifier));
    // Who loads it may see no loader and no query in it, but a path with such signs in a name.
    for reading in readings(&import.specifier) {
        let files = of_specifier(link, directory, &reading).module.files;
        add(&mut resolved.module.files, files);
    }
    resolved
}

fn add(files: &mut Vec<String>, others: impl IntoIterator<Item = String>) {
    for file in others {
        if !files.contains(&file) {
            files.push(file);
        }
    }
}

fn of_specifier(link: &Link<'_>, directory: &str, specifier: &str) -> Resolved {
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
    named(link, directory, specifier)
}

/// What a name means that is no path: an alias, a package of the tree, or one from elsewhere.
fn named(link: &Link<'_>, directory: &str, specifier: &str) -> Resolved {
    let files = match aliased(link, directory, specifier) {
        Alias::Unknown => return Resolved::nothing(None),
        Alias::Files(files) => files,
        Alias::None => packaged(link, directory, specifier),
    };
    if !files.is_empty() {
        return Resolved { module: Module { files, inner: String::new() }, ..Resolved::default() };
    }
    // A path with backslashes, as on Windows, cannot name a package.
    if specifier.starts_with(".\\") || specifier.starts_with("..\\") {
        return Resolved::nothing(None);
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

/// What else a specifier may mean: the path as it is written, each part beside a `!`, and both as addresses are read,
/// without blanks and with `\\` for `/`.
fn readings(specifier: &str) -> Vec<String> {
    let mut readings: Vec<String> = Vec::new();
    if specifier.contains(['!', '?']) {
        readings.push(specifier.to_owned());
        let parts = specifier.split('!');
        add(&mut readings, parts.map(|part| part.split('?').next().unwrap_or_default().to_owned()));
    }
    if specifier.contains(['\\', '\t', '\n', '\r']) {
        let plain = specifier.replace(['\t', '\n', '\r'], "").replace('\\', "/");
        add(&mut readings, [resource(&plain).to_owned(), plain]);
    }
    readings
}

/// Code within the specifier itself, and files by their address, in which letters are small or large alike.
fn is_address(specifier: &str) -> bool {
    let specifier = specifier.replace(['\t', '\n', '\r'], "").to_ascii_lowercase();
    let specifier = specifier.trim_start_matches(|letter: char| letter <= ' ');
    ["data:", "blob:", "file:", "http:", "https:"].iter().any(|scheme| specifier.starts_with(scheme))
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
        let Some(base) = normalise(directory, specifier) else { continue };
        // What ends like a directory is one, though a file has the same name.
        let is_directory = matches!(specifier.rsplit('/').next(), Some("" | "." | ".."));
        add(&mut files, if is_directory { of_directory(link, &base) } else { candidates(link, &base) });
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
    let mut files: Vec<String> = match aliased(link, directory, specifier) {
        Alias::Files(files) => files,
        Alias::None | Alias::Unknown => Vec::new(),
    };
    let mut package = None;
    let mut target = None;
    let is_package = |package: &Package| package.language == Language::PackageJson;
    let own = link.manifests().nearest(directory, Part::Aliases, is_package);
    if let Some(own) = own
        && let Some((targets, rest)) = best(&own.manifest.imports, specifier)
    {
        for meant in targets.iter().map(|target| target.replace('*', rest)) {
            if !meant.starts_with('.') {
                let resolved =
                    if meant.starts_with('#') { Resolved::default() } else { named(link, directory, &meant) };
                files.extend(resolved.module.files);
                package = package.or(resolved.package);
                continue;
            }
            let path = normalise(&own.directory, &meant);
            add(&mut files, path.iter().flat_map(|path| candidates(link, path)));
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

/// The files that a path without its extension, or a directory, may refer to.
fn candidates(link: &Link<'_>, base: &str) -> Vec<String> {
    let mut files: Vec<String> = file(link, base).into_iter().collect();
    if files.is_empty() {
        return of_directory(link, base);
    }
    // Who does not know the file goes to the package in the directory of the same name.
    add(&mut files, entries(link, base));
    files
}

/// The file that a path refers to, with its extension or without.
fn file(link: &Link<'_>, base: &str) -> Option<String> {
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
    named.find(|path| link.exists(path))
}

/// The files that a directory may refer to: its index, and where its `package.json` leads.
fn of_directory(link: &Link<'_>, base: &str) -> Vec<String> {
    let mut files: Vec<String> = index(link, base).into_iter().collect();
    add(&mut files, entries(link, base));
    files
}

/// The main files of the package in a directory, under every condition.
fn entries(link: &Link<'_>, directory: &str) -> Vec<String> {
    let Some(package) = link.manifests().at(directory, Language::PackageJson, Part::Entries) else {
        return Vec::new();
    };
    let main = package.manifest.entries.iter().filter(|(entry, _)| entry == ".");
    let paths = main.filter_map(|(_, target)| normalise(directory, target));
    paths.filter_map(|path| file(link, &path).or_else(|| index(link, &path))).collect()
}

/// The file that a directory refers to.
fn index(link: &Link<'_>, base: &str) -> Option<String> {
    let mut names = EXTENSIONS.iter().map(|extension| join(base, &format!("index.{extension}")));
    names.find(|path| link.exists(path))
}

/// The targets that configurations of TypeScript give a name.
enum Alias {
    None,
    Files(Vec<String>),
    /// A configuration is in the tree, and what it says is not known.
    Unknown,
}

/// Whether a file is a configuration that holds for what is below its directory, under a name that tools look for.
fn is_configuration(package: &Package) -> bool {
    let name = file_name(&package.path);
    ["tsconfig.", "jsconfig."].iter().any(|start| name.starts_with(start))
}

/// Path aliases and base directories of all configurations up the tree. Compilers, editors and bundlers choose among
/// them in different ways, so that none of them hides what another one says.
fn aliased(link: &Link<'_>, directory: &str, specifier: &str) -> Alias {
    let above = link.manifests().above(directory, Part::Aliases, is_configuration);
    let mut files = Vec::new();
    let mut is_known = true;
    for main in &above {
        is_known &= ask(link, main, specifier, &mut files);
    }
    // What is referred to is another project, which may have the same names for its own files.
    if files.is_empty() {
        for main in referenced(link, &above) {
            is_known &= ask(link, main, specifier, &mut files);
        }
    }
    match files.is_empty() {
        false => Alias::Files(files),
        true if is_known => Alias::None,
        true => Alias::Unknown,
    }
}

/// Adds the files that a name means in a configuration. Returns whether all that it extends is known.
fn ask(link: &Link<'_>, main: &Package, specifier: &str, files: &mut Vec<String>) -> bool {
    let (configs, is_known) = configurations(link, main);
    let of_config = |config: &Package, path: &str| match path.strip_prefix("${configDir}") {
        Some(rest) => normalise(&main.directory, rest.trim_start_matches('/')),
        None => normalise(&config.directory, path),
    };
    let bases: Vec<String> =
        configs.iter().filter_map(|config| of_config(config, config.manifest.base_url.as_deref()?)).collect();
    let mut has_found = false;
    for &config in &configs {
        let Some((targets, rest)) = best(&config.manifest.aliases, specifier) else { continue };
        for target in targets.iter().map(|target| target.replacen('*', rest, 1)) {
            // Paths are relative to the base directory, which another configuration may give, or to their own.
            let based = bases.first().and_then(|base| normalise(base, &target));
            let paths = based.into_iter().chain(of_config(config, &target));
            let found = paths.map(|path| candidates(link, &path)).find(|found| !found.is_empty());
            has_found |= found.is_some();
            add(files, found.into_iter().flatten());
        }
        // What counts most is all that counts.
        if has_found {
            return is_known;
        }
    }
    let paths = bases.iter().filter_map(|base| normalise(base, specifier));
    add(files, paths.flat_map(|path| candidates(link, &path)));
    is_known
}

/// The projects that configurations refer to and that hold for files outside of their own directories.
fn referenced<'w>(link: &Link<'w>, above: &[&'w Package]) -> Vec<&'w Package> {
    let mut asked = above.to_vec();
    let mut next = 0;
    while let Some(config) = asked.get(next).copied() {
        next += 1;
        let others = config.manifest.references.iter().filter_map(|path| extended(link, config, path));
        for other in others.collect::<Vec<_>>() {
            let is_new = asked.iter().all(|known| known.path != other.path);
            let holds = file_name(&other.path) != "tsconfig.json" || other.manifest.leads_out;
            if is_new && holds && asked.len() < above.len() + MAX_EXTENDS {
                asked.push(other);
            }
        }
    }
    asked.split_off(above.len())
}

/// The configuration that another one names, if it is in the tree and says anything about names.
fn extended<'w>(link: &Link<'w>, config: &Package, name: &str) -> Option<&'w Package> {
    let places = if name.starts_with("./") || name.starts_with("../") || matches!(name, "." | "..") {
        normalise(&config.directory, name).into_iter().collect()
    } else if let Some(path) = name.strip_prefix('/') {
        vec![path.to_owned()]
    } else {
        let package = package_name(name);
        let rest = name.get(package.len()..).unwrap_or_default().trim_start_matches('/');
        let rest = if rest.is_empty() { "tsconfig.json" } else { rest };
        directories(link, &config.directory, &package)
            .iter()
            .map(|directory| join(directory, rest))
            .collect::<Vec<String>>()
    };
    let files = |place: &String| [place.clone(), format!("{place}.json"), join(place, "tsconfig.json")];
    let file = places.iter().flat_map(files).find(|path| link.exists(path))?;
    link.manifests().of_path(&file, Part::Aliases)
}

/// A configuration and all that it extends, what counts most first, and whether all of them that are in the tree are known.
fn configurations<'w>(link: &Link<'w>, main: &'w Package) -> (Vec<&'w Package>, bool) {
    let mut configs = vec![main];
    let mut is_known = true;
    let mut next = 0;
    while let Some(config) = configs.get(next).copied() {
        next += 1;
        is_known &= !config.manifest.is_unreadable;
        for name in config.manifest.extends.iter().rev() {
            match extended(link, config, name) {
                Some(above) if configs.iter().any(|known| known.path == above.path) => {}
                Some(above) if configs.len() < MAX_EXTENDS => configs.push(above),
                Some(_) => is_known = false,
                // It says nothing about names, or is in a package from elsewhere, whose paths do not lead into the tree.
                None => {}
            }
        }
    }
    (configs, is_known)
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

/// The directories of the tree in which a package is that has a name for who is in a directory: a package of the
/// workspace, or one that a manifest above gives as a path, under whatever name.
fn directories(link: &Link<'_>, from: &str, name: &str) -> Vec<String> {
    let manifests = link.manifests();
    let mut found: Vec<String> =
        manifests.named(Ecosystem::Npm, name, from).map(str::to_owned).into_iter().collect();
    let mut above = from;
    loop {
        if let Some(package) = manifests.at(above, Language::PackageJson, Part::Locals) {
            let locals = package.manifest.locals.iter();
            let paths = locals.filter(|(local, path)| local == name && !path.is_empty());
            for directory in paths.filter_map(|(_, path)| normalise(above, path)) {
                if !found.contains(&directory) {
                    found.push(directory);
                }
            }
        }
        if above.is_empty() {
            return found;
        }
        above = parent(above);
    }
}

/// A package of the same tree: its entry under every condition, or a file of it.
fn packaged(link: &Link<'_>, from: &str, specifier: &str) -> Vec<String> {
    let name = package_name(specifier);
    let rest = specifier.get(name.len()..).unwrap_or_default();
    let sub_path = format!(".{rest}");
    let mut files: Vec<String> = Vec::new();
    for directory in directories(link, from, &name) {
        let package = link.manifests().at(&directory, Language::PackageJson, Part::Entries);
        let entries = package.into_iter().flat_map(|package| &package.manifest.entries);
        let targets = entries.filter_map(|(entry, target)| match entry.contains('*') {
            true => matched(entry, &sub_path).map(|star| target.replace('*', star)),
            false => (*entry == sub_path).then(|| target.clone()),
        });
        let mut found: Vec<String> = targets
            .filter_map(|target| normalise(&directory, &target))
            .flat_map(|path| candidates(link, &path))
            .collect();
        if found.is_empty() {
            let rest = rest.trim_start_matches('/');
            // What is published is built from `src`, which is what is in the tree.
            let places = if rest.is_empty() {
                vec!["src/index".to_owned(), "index".to_owned(), "src/main".to_owned()]
            } else {
                vec![rest.to_owned(), format!("src/{rest}")]
            };
            let paths = places.iter().filter_map(|place| normalise(&directory, place));
            found =
                paths.map(|path| candidates(link, &path)).find(|found| !found.is_empty()).unwrap_or_default();
        }
        add(&mut files, found);
    }
    files
}
