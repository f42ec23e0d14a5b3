//! Which files are tests, which are code, and which do not matter here.

use std::sync::{LazyLock, OnceLock};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Serialize;
use tgp_contract::{ChronicleLayout, Code, RelativePath, Root, TddMode, ToolError};

use crate::Scope;
use crate::scope::stem;

/// The most patterns of one list: more is a generated list, and each is tried on every file.
const MAX_PATTERNS: usize = 256;

/// The longest pattern; it bounds the automaton that is built from it.
const MAX_PATTERN_BYTES: usize = 512;

/// Where tests are in the usual languages. Rust's unit tests inside a source file cannot be recognised by its
/// name.
const TEST_PATTERNS: &[&str] = &[
    "**/tests/**",
    "**/test/**",
    "**/__tests__/**",
    "**/__snapshots__/**",
    "**/__mocks__/**",
    "**/testdata/**",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*_test.*",
    "**/*_tests.*",
    "**/*-test.*",
    "**/test_*.*",
    "**/tests.rs",
    "**/tests.py",
    "**/conftest.py",
    "**/*_spec.rb",
    "**/*Test.{java,kt,php,cs,scala,swift}",
    "**/*Tests.{java,kt,php,cs,scala,swift}",
];

/// What no test is about although it may have the ending of a source: prose, settings of tools, declarations without
/// code, and what builds leave behind. Files of other endings are data and need no pattern.
const EXEMPT_PATTERNS: &[&str] = &[
    "**/*.{md,mdx,rst,adoc}",
    "docs/**",
    "**/{LICENSE,LICENCE}-*",
    "**/.{eslintrc,prettierrc,stylelintrc,babelrc,mocharc}",
    "**/.{eslintrc,prettierrc,stylelintrc,babelrc,mocharc}.{js,cjs,mjs,json,yaml,yml}",
    "**/*.config.{js,cjs,mjs,ts,cts,mts}",
    "**/*.d.{ts,cts,mts}",
    "**/*.lock",
    // Data by their endings, also among tests.
    "**/{Cargo,pyproject,rust-toolchain}.toml",
    "**/{package,package-lock,npm-shrinkwrap,tsconfig,tsconfig.*,jsconfig,deno,composer}.json",
    "**/{setup.cfg,tox.ini,pytest.ini,go.mod,go.sum}",
    "**/*requirements*.txt",
    "**/{pnpm-lock,pnpm-workspace}.yaml",
    ".{github,gitlab,circleci,vscode,idea}/**",
    ".git/**",
    "target/**",
    "dist/**",
    "coverage/**",
    // Where forged tools put their data, unless they are configured otherwise.
    "tmp/**",
    "**/node_modules/**",
    "**/{__pycache__,.pytest_cache,.mypy_cache,.ruff_cache,.venv,.tox,.nyc_output}/**",
];

/// Endings of files that are written in a programming language. Files of other endings are data: style sheets, pages,
/// migrations, tables, settings.
const SOURCE_EXTENSIONS: &[&str] = &[
    "adb", "ads", "asm", "astro", "awk", "bash", "bat", "c", "cbl", "cc", "cjs", "clj", "cljc", "cljs",
    "cmd", "cob", "coffee", "cpp", "cr", "cs", "cts", "cu", "cxx", "d", "dart", "el", "elm", "erl", "ex",
    "exs", "f", "f90", "fish", "fs", "fsx", "gd", "gleam", "glsl", "go", "groovy", "h", "hh", "hpp", "hrl",
    "hs", "hx", "ipynb", "java", "jl", "js", "jsp", "jsx", "kt", "kts", "lisp", "lua", "m", "mjs", "ml",
    "mli", "mm", "move", "mts", "nim", "odin", "pas", "php", "pl", "phtml", "pm", "ps1", "psm1", "py", "pyc",
    "pyd", "pyo", "pyw", "pyx", "r", "rake", "rb", "rkt", "rs", "s", "sage", "scala", "scm", "sh", "so",
    "sol", "sv", "svelte", "swift", "tcl", "ts", "tsx", "v", "vb", "vue", "wasm", "wat", "wgsl", "zig",
    "zsh",
];

/// Names without an ending that are settings and lists. Any other such name may be a program.
const DATA_NAMES: &[&str] = &[
    "authors",
    "brewfile",
    "changelog",
    "cname",
    "codeowners",
    "containerfile",
    "copying",
    "dockerfile",
    "gemfile",
    "gnumakefile",
    "justfile",
    "licence",
    "license",
    "makefile",
    "manifest",
    "notice",
    "owners",
    "pipfile",
    "procfile",
    "readme",
    "tiltfile",
    "vagrantfile",
    "version",
];

/// How work is held to its tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TddOptions {
    pub mode: TddMode,
    /// Globs of test files below the project's root. `*` does not cross a `/`, `**` does.
    pub test_patterns: Vec<String>,
    /// Globs of files that need no test. They go before `test_patterns`.
    pub exempt_patterns: Vec<String>,
    /// Globs of files that are code whatever the other two say. They go first.
    pub code_patterns: Vec<String>,
    /// Where the tool repository is in the project, so that both ways to name a tool's file mean the same.
    pub tool_root: RelativePath,
    /// Where chronicles are, which the kernel writes itself.
    pub layout: ChronicleLayout,
}

impl Default for TddOptions {
    fn default() -> Self {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Self {
            mode: TddMode::Strict,
            test_patterns: owned(TEST_PATTERNS),
            exempt_patterns: owned(EXEMPT_PATTERNS),
            code_patterns: Vec::new(),
            tool_root: RelativePath::new(".tgp").unwrap_or_default(),
            layout: ChronicleLayout::default(),
        }
    }
}

/// What a file is to test-driven work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Test,
    Code,
    Exempt,
}

/// What a file is, and to which piece of work it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    pub kind: FileKind,
    /// `None` for exempt files.
    pub scope: Option<Scope>,
    /// The path below the scope's root.
    pub path: RelativePath,
}

/// Compiled patterns. Making them takes milliseconds, so it is done for the first file of a project that is
/// classified.
#[derive(Debug)]
struct Globs {
    tests: GlobSet,
    exempt: GlobSet,
    code: GlobSet,
}

/// The defaults are the same for all projects.
static DEFAULTS: LazyLock<Globs> = LazyLock::new(|| Globs::compile(&TddOptions::default()));

impl Globs {
    /// What cannot be compiled matches nothing; so its files are code, of which most is asked.
    fn compile(options: &TddOptions) -> Self {
        let set = |patterns: &[String]| {
            let mut builder = GlobSetBuilder::new();
            for pattern in patterns.iter().filter_map(|pattern| glob(pattern).ok()) {
                builder.add(pattern);
            }
            builder.build().unwrap_or_else(|_| GlobSet::empty())
        };
        Self {
            tests: set(&options.test_patterns),
            exempt: set(&options.exempt_patterns),
            code: set(&options.code_patterns),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Classifier {
    options: TddOptions,
    uses_defaults: bool,
    own: OnceLock<Globs>,
}

impl Classifier {
    pub fn new(options: &TddOptions) -> Result<Self, ToolError> {
        let defaults = TddOptions {
            mode: options.mode,
            tool_root: options.tool_root.clone(),
            layout: options.layout,
            ..TddOptions::default()
        };
        let uses_defaults = *options == defaults;
        if !uses_defaults {
            check("tests", &options.test_patterns)?;
            check("exempt", &options.exempt_patterns)?;
            check("code", &options.code_patterns)?;
        }
        Ok(Self { options: options.clone(), uses_defaults, own: OnceLock::new() })
    }

    fn globs(&self) -> &Globs {
        if self.uses_defaults { &DEFAULTS } else { self.own.get_or_init(|| Globs::compile(&self.options)) }
    }

    /// The tool that a file belongs to, if any; needs no pattern.
    pub fn tool_scope(&self, root: Root, path: &RelativePath) -> Option<Scope> {
        match root {
            Root::Tools => tool_file(path.clone()).scope,
            Root::Project => self.inside_tool_root(path).and_then(|inner| tool_file(inner).scope),
            Root::Host => None,
        }
    }

    pub fn classify(&self, root: Root, path: &RelativePath) -> Classified {
        match root {
            Root::Project => match self.inside_tool_root(path) {
                Some(inner) => tool_file(inner),
                None => self.project_file(path),
            },
            Root::Tools => tool_file(path.clone()),
            // Outside of the project there is no suite that could say anything.
            Root::Host => Classified { kind: FileKind::Exempt, scope: None, path: path.clone() },
        }
    }

    fn inside_tool_root(&self, path: &RelativePath) -> Option<RelativePath> {
        let tool_root = &self.options.tool_root;
        if tool_root.is_root() || !path.is_inside(tool_root) {
            return None;
        }
        let inner = path.as_str().get(tool_root.as_str().len()..).unwrap_or_default();
        RelativePath::new(inner.trim_start_matches('/')).ok()
    }

    fn project_file(&self, path: &RelativePath) -> Classified {
        let (name, globs) = (path.as_str(), self.globs());
        // The kernel's own files are about the work and no part of it, whatever the patterns say.
        let kind = if self.options.layout.reserves(path) {
            FileKind::Exempt
        } else if globs.code.is_match(name) {
            FileKind::Code
        } else if globs.exempt.is_match(name) {
            FileKind::Exempt
        } else if globs.tests.is_match(name) {
            FileKind::Test
        } else if is_data(path) {
            FileKind::Exempt
        } else {
            FileKind::Code
        };
        let scope = (kind != FileKind::Exempt).then_some(Scope::Project);
        Classified { kind, scope, path: path.clone() }
    }

    /// Why a file that is not written in a programming language counts as code, and what changes that; `None` for a source.
    pub fn why_code(&self, scope: &Scope, path: &RelativePath) -> Option<String> {
        if is_source(path) {
            return None;
        }
        Some(match scope {
            Scope::Tool(_) => format!(
                "`{path}` counts as code because it is below `tools/`, where only Markdown is exempt; keep data elsewhere"
            ),
            Scope::Project => format!(
                "`{path}` counts as code because its name has no ending that says otherwise; if it needs no test, a \
                 person adds a pattern for it to `tdd.exempt`"
            ),
        })
    }

    /// A test for `code` that would count as one, in words for a person.
    pub fn suggest_test(&self, scope: &Scope, code: &RelativePath) -> String {
        let name = code.name().unwrap_or_default();
        let stem = stem(name);
        let folder = code.parent();
        let beside = |test: String| folder.join(&test).ok();
        let apart = |test: String| RelativePath::new(&format!("tests/{test}")).ok();
        let extension = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.'));
        let guess = match (scope, extension) {
            (Scope::Tool(tool), _) => {
                let tool_stem = crate::scope::stem(tool.name().unwrap_or_default());
                tool.parent().join(&format!("{tool_stem}.test.ts")).ok()
            }
            (Scope::Project, Some("rs")) => apart(format!("{stem}.rs")),
            (Scope::Project, Some("py")) => apart(format!("test_{stem}.py")),
            (Scope::Project, Some("go")) => beside(format!("{stem}_test.go")),
            (Scope::Project, Some("java")) => beside(format!("{stem}Test.java")),
            (Scope::Project, Some(extension)) if is_source(code) => {
                beside(format!("{stem}.test.{extension}"))
            }
            (Scope::Project, _) => None,
        };
        let counts = |path: &RelativePath| self.classify(scope.root(), path).kind == FileKind::Test;
        match (guess.filter(counts), self.options.test_patterns.first()) {
            (Some(path), _) => format!("`{path}`"),
            (None, Some(pattern)) => format!("a test file (one that matches `{pattern}`)"),
            (None, None) => "a test file (`tdd.tests` names none)".to_owned(),
        }
    }
}

fn is_source(path: &RelativePath) -> bool {
    ending(path).is_some_and(|own| is_in(SOURCE_EXTENSIONS, own))
}

/// Whether a file is not written in a programming language, judged by its name.
fn is_data(path: &RelativePath) -> bool {
    match (ending(path), path.name()) {
        (Some(ending), _) => !is_in(SOURCE_EXTENSIONS, ending),
        (None, Some(name)) => name.starts_with('.') || is_in(DATA_NAMES, name),
        (None, None) => false,
    }
}

/// What follows the last dot, if there is something before it.
fn ending(path: &RelativePath) -> Option<&str> {
    let (before, ending) = path.name()?.rsplit_once('.')?;
    (!before.is_empty() && !ending.is_empty()).then_some(ending)
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// In the tool repository all below `tools/` is work, and so is whatever can be executed or imported elsewhere; what else
/// must not be touched is the policy's business.
fn tool_file(path: RelativePath) -> Classified {
    let name = path.name().unwrap_or_default().to_owned();
    match Scope::of_tool(&path) {
        Some(scope) if !name.ends_with(".md") => {
            // Only what `tgp test` runs: to the compiler any other name is a tool, and so is code.
            let is_test = name.strip_suffix(".test.ts").is_some_and(|stem| !stem.is_empty());
            let kind = if is_test { FileKind::Test } else { FileKind::Code };
            Classified { kind, scope: Some(scope), path }
        }
        _ => Classified { kind: FileKind::Exempt, scope: None, path },
    }
}

/// Refuses what is not a pattern while the user can still correct it.
fn check(field: &str, patterns: &[String]) -> Result<(), ToolError> {
    let wrong = |message: String| {
        ToolError::new(Code::Config, format!("tdd.{field}: {message}"))
            .detail("field", format!("tdd.{field}"))
            .help("write globs such as `**/*.test.ts` or `legacy/**`")
    };
    if patterns.len() > MAX_PATTERNS {
        return Err(wrong(format!("{} patterns, at most {MAX_PATTERNS}", patterns.len())));
    }
    for pattern in patterns {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(wrong(format!("a pattern has {} bytes, at most {MAX_PATTERN_BYTES}", pattern.len())));
        }
        glob(pattern).map_err(|error| wrong(format!("`{pattern}`: {}", error.kind())))?;
    }
    Ok(())
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}
