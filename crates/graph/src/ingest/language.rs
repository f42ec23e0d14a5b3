//! Which reader a file gets, by its name alone, and which files are chronicles.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tgp_contract::{
    CHRONICLE_DIRECTORY, MAX_CHRONICLE_LINE_BYTES, RelativePath, ends_as_chronicle, has_chronicle_name,
    is_chronicle_content, is_in_chronicle_tree,
};

/// How a blob is read. The number is in the store: new ones are added at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Language {
    /// Counted, not parsed.
    Plain = 0,
    TypeScript = 1,
    Tsx = 2,
    JavaScript = 3,
    Rust = 4,
    Python = 5,
    Go = 6,
    Java = 7,
    PackageJson = 8,
    TsConfig = 9,
    CargoToml = 10,
    PyProject = 11,
    GoMod = 12,
    Pom = 13,
    /// Script in the elements of a page's template: Vue and Svelte.
    Component = 14,
    /// Which packages a workspace of pnpm has.
    PnpmWorkspace = 15,
    /// JSON of any name, which may be a configuration of TypeScript that others extend.
    Json = 16,
}

/// Where packages of a language come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Ecosystem {
    Npm,
    Cargo,
    Pypi,
    Go,
    Maven,
}

impl Ecosystem {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Cargo => "cargo",
            Self::Pypi => "pypi",
            Self::Go => "go",
            Self::Maven => "maven",
        }
    }
}

impl Language {
    pub(crate) fn of(path: &str) -> Self {
        let name = file_name(path);
        match name {
            "package.json" => return Self::PackageJson,
            "pnpm-workspace.yaml" => return Self::PnpmWorkspace,
            "jsconfig.json" => return Self::TsConfig,
            "Cargo.toml" => return Self::CargoToml,
            "pyproject.toml" => return Self::PyProject,
            "go.mod" | "go.work" => return Self::GoMod,
            "pom.xml" => return Self::Pom,
            // `tsconfig.base.json` and similar files, which others extend.
            _ if name.starts_with("tsconfig") && name.ends_with(".json") => return Self::TsConfig,
            _ => {}
        }
        // Who loads `.ts` takes it for code, though it is a name without an extension.
        let extension = match extension(name) {
            "" => name.strip_prefix('.').unwrap_or_default(),
            extension => extension,
        };
        match extension.to_ascii_lowercase().as_str() {
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "go" => Self::Go,
            "java" => Self::Java,
            "vue" | "svelte" | "astro" => Self::Component,
            "json" => Self::Json,
            _ => Self::Plain,
        }
    }

    pub(crate) fn is_manifest(self) -> bool {
        matches!(
            self,
            Self::PackageJson
                | Self::PnpmWorkspace
                | Self::TsConfig
                | Self::CargoToml
                | Self::PyProject
                | Self::GoMod
                | Self::Pom
        )
    }

    pub(crate) fn ecosystem(self) -> Option<Ecosystem> {
        Some(match self {
            Self::TypeScript
            | Self::Tsx
            | Self::JavaScript
            | Self::Component
            | Self::PackageJson
            | Self::PnpmWorkspace
            | Self::TsConfig => Ecosystem::Npm,
            Self::Rust | Self::CargoToml => Ecosystem::Cargo,
            Self::Python | Self::PyProject => Ecosystem::Pypi,
            Self::Go | Self::GoMod => Ecosystem::Go,
            Self::Java | Self::Pom => Ecosystem::Maven,
            Self::Json | Self::Plain => return None,
        })
    }
}

/// The language's name as it is in the graph; none for what has no well-known one.
pub(crate) fn language_name(path: &str) -> Option<&'static str> {
    Some(match extension(file_name(path)).to_ascii_lowercase().as_str() {
        "ts" | "mts" | "cts" | "tsx" => "typescript",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "rs" => "rust",
        "py" | "pyi" => "python",
        "go" => "go",
        "java" => "java",
        "vue" => "vue",
        "svelte" => "svelte",
        "astro" => "astro",
        "json" => "json",
        "md" => "markdown",
        "toml" => "toml",
        "yml" | "yaml" => "yaml",
        "html" | "htm" => "html",
        "css" => "css",
        "sh" => "shell",
        "sql" => "sql",
        "c" | "h" => "c",
        "cc" | "cpp" | "hpp" => "c++",
        "xml" => "xml",
        _ => return None,
    })
}

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a path is in the directory of chronicles and is one of them, or what belongs to one.
pub(crate) fn is_in_chronicles(path: &str) -> bool {
    let is_own = |path: &RelativePath| {
        is_in_chronicle_tree(path)
            || has_chronicle_name(path) && path.parts().any(|part| part == CHRONICLE_DIRECTORY)
    };
    // Asked of every file of a project; this answers for most of them.
    let has_directory = path.split('/').any(|part| part.eq_ignore_ascii_case(CHRONICLE_DIRECTORY));
    has_directory && RelativePath::new(path).is_ok_and(|path| is_own(&path))
}

/// Chronicles describe the code and are not part of it. One beside its source is recognised by its content, which is
/// read only where the name could be that of a chronicle.
pub(crate) fn is_chronicle(path: &str, has_content: impl FnOnce() -> bool) -> bool {
    ends_as_chronicle(file_name(path)) && has_content() || is_in_chronicles(path)
}

/// Whether the file at this place begins as a chronicle does.
pub(crate) fn has_chronicle_content(place: &Path) -> bool {
    let Ok(file) = tgp_fs::open_plain(place) else { return false };
    let mut beginning = Vec::new();
    let read = file.take(MAX_CHRONICLE_LINE_BYTES as u64).read_to_end(&mut beginning);
    read.is_ok() && is_chronicle_content(&beginning)
}

/// What follows the last dot of a name; empty where there is none, and for a name that begins with its only dot.
pub(crate) fn extension(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

/// The directory of a path; the root is the empty one.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// A name below a directory.
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// `relative`, as seen from `directory`; none when it leaves the tree.
pub(crate) fn normalise(directory: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
