//! From the bytes of one file to what it defines, imports and calls. Nothing here knows of any other file.

mod component;
mod constant;
mod go;
mod index;
mod java;
mod javascript;
mod names;
mod python;
mod python_loads;
mod python_values;
mod reader;
mod rust;
mod rust_paths;
mod rust_use;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::language::Language;
use super::manifest::Manifest;
pub(crate) use index::Meaning;
use index::{MeaningIndex, NameIndex};
pub(crate) use javascript::STACK_BYTES;
use reader::{Kinds, Reader};

/// A larger blob is not parsed, and marked so: no one writes two megabytes of code by hand.
pub(crate) const MAX_BLOB_BYTES: usize = 2 << 20;

/// The parser is stopped after this; the file is then marked as broken. A megabyte takes a tenth of it.
const MAX_PARSE_TIME: Duration = Duration::from_secs(5);

/// Symbols, imports and calls of one file, each; what is beyond was made by a machine.
const MAX_ITEMS: usize = 20_000;

/// Before a path of Python, the directory of the file.
pub(crate) const OWN_DIRECTORY: &str = "$";

/// Patterns of one file; more are taken as what is only known when the code runs.
const MAX_PATTERNS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    Function,
    Method,
    Class,
    Interface,
    Type,
    Enum,
    Struct,
    Trait,
    Const,
    Variable,
    Module,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Method => "method",
            Self::Class => "class",
            Self::Interface => "interface",
            Self::Type => "type",
            Self::Enum => "enum",
            Self::Struct => "struct",
            Self::Trait => "trait",
            Self::Const => "const",
            Self::Variable => "variable",
            Self::Module => "module",
        }
    }

    /// Whether members can be asked of it by name.
    pub(crate) fn is_container(self) -> bool {
        matches!(self, Self::Class | Self::Interface | Self::Enum | Self::Struct | Self::Trait | Self::Module)
    }
}

/// Something with a name. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Symbol {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// With the names of its containers.
    pub(crate) qualified: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) end_line: u32,
    pub(crate) exported: bool,
    /// The container, where it is in the same file.
    pub(crate) container: Option<u32>,
    /// How many before it have the same kind and qualified name.
    pub(crate) occurrence: u32,
}

/// One name that an import brings in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name {
    /// Its name there; `*` for everything, `default` for the default export.
    pub(crate) there: String,
    /// Its name here; empty where it is not bound.
    pub(crate) here: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ImportKind {
    /// Names are bound here.
    Bind,
    /// Names are given on to those who import this file; some languages bind them as well.
    ReExport,
    /// A file that this one declares as its part (`mod name;`).
    Part,
    /// What is loaded is only known when the code runs; the specifier is the expression as written.
    Computed,
    /// Every file that fits the specifier, and none of the patterns in `names`.
    Pattern,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Import {
    pub(crate) kind: ImportKind,
    /// As written; Rust paths with `::`, Python modules with their leading dots.
    pub(crate) specifier: String,
    pub(crate) names: Vec<Name>,
    /// The module itself under this name (`import * as name`, `import a.b`, a Go package).
    pub(crate) module: Option<String>,
    pub(crate) line: u32,
    /// The inline module that contains the import, for Rust. The directories where it is searched beside the usual ones, one
    /// a line, for Python.
    pub(crate) scope: String,
    /// Whether it is gone when the code runs: only types are taken.
    pub(crate) type_only: bool,
}

/// A path of Rust that stands in code, and not in a `use`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Path {
    pub(crate) written: String,
    /// The name that a `use` in a macro gives it, `*` for all names in it.
    pub(crate) here: Option<String>,
    /// The first of the same.
    pub(crate) line: u32,
    /// The inline module that contains it.
    pub(crate) scope: String,
}

/// A type that another one is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heritage {
    pub(crate) symbol: u32,
    /// As written, without its type arguments.
    pub(crate) name: String,
    /// Whether the other one is an interface or a trait that this one fulfils.
    pub(crate) implements: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// What precedes the name (`console`, `this`, `module::Type`); none for a plain name.
    pub(crate) receiver: Option<String>,
    /// The type of the receiver as it is written, where its declaration shows it.
    pub(crate) of: Option<String>,
    pub(crate) line: u32,
    /// The symbol whose body it is in; none for top-level code.
    pub(crate) enclosing: Option<u32>,
}

/// A use of a name that is not a call: of a type, a constant, or a function that is passed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// What precedes the name (`module`, `module::Type`).
    pub(crate) receiver: Option<String>,
    /// The symbol that uses it; none for top-level code.
    pub(crate) enclosing: Option<u32>,
}

/// All that is read from a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parse {
    pub(crate) bytes: u64,
    /// None for a binary, and for what is too large to be read.
    pub(crate) lines: Option<u32>,
    pub(crate) broken: bool,
    /// Whether the file may hold more than was read of it, as it is too large, too deep, or took too long.
    pub(crate) unparsed: bool,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) imports: Vec<Import>,
    pub(crate) paths: Vec<Path>,
    pub(crate) calls: Vec<Call>,
    pub(crate) heritage: Vec<Heritage>,
    pub(crate) references: Vec<Reference>,
    /// Names given to others under another name or after the definition: theirs, ours.
    pub(crate) exports: Vec<(String, String)>,
    /// The package clause of Go and Java.
    pub(crate) package: Option<String>,
    pub(crate) manifest: Option<Manifest>,
    /// For [`Parse::symbol`].
    #[serde(skip)]
    pub(super) index: NameIndex,
    /// For [`Parse::meanings`].
    #[serde(skip)]
    pub(super) meanings: MeaningIndex,
}

impl Parse {
    /// A symbol by its qualified name; a definition before a mere variable, the first before later ones.
    pub(crate) fn symbol(&self, qualified: &str) -> Option<u32> {
        self.index.find(&self.symbols, qualified)
    }

    /// What gives a name of Rust a meaning; `*` for what gives all of them.
    pub(crate) fn meanings(&self, name: &str) -> &[Meaning] {
        self.meanings.find(self, name)
    }

    /// A blob that is too large to be read. What could be code must not pass for code that imports nothing.
    pub(crate) fn unread(language: Language, bytes: u64) -> Self {
        let hides = !matches!(language, Language::Plain | Language::Json);
        let may_configure = matches!(language, Language::Json | Language::TsConfig);
        let manifest = may_configure.then(Manifest::unreadable);
        Self { bytes, broken: hides, unparsed: hides, manifest, ..Self::default() }
    }

    pub(crate) fn read(language: Language, content: &[u8]) -> Self {
        let bytes = content.len() as u64;
        if content.len() > MAX_BLOB_BYTES {
            return Self::unread(language, bytes);
        }
        let mut parse = Self { bytes, ..Self::default() };
        // Git's own rule: a NUL among the first 8,000 bytes. It holds for what is not code alone, as a compiler may
        // well take code with a NUL in it.
        if matches!(language, Language::Plain | Language::Json)
            && content.iter().take(8000).any(|byte| *byte == 0)
        {
            return parse;
        }
        let is_script = matches!(language, Language::TypeScript | Language::Tsx | Language::JavaScript);
        let marks_utf16 = matches!(content, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        // Frameworks know no UTF-16, and what is marked so and has no letter of it is other code for others.
        parse.unparsed =
            marks_utf16 && (language == Language::Component || is_script && !content.contains(&0));
        parse.broken = parse.unparsed;
        let content = if language == Language::Component {
            without_nul(Cow::Borrowed(content))
        } else {
            readable(content)
        };
        let content = &*content;
        let breaks = content.iter().filter(|byte| **byte == b'\n').count();
        let unended = usize::from(content.last().is_some_and(|byte| *byte != b'\n'));
        parse.lines = Some(u32::try_from(breaks + unended).unwrap_or(u32::MAX));
        if language.is_manifest() {
            let text = String::from_utf8_lossy(content);
            match Manifest::read(language, &text) {
                Some(manifest) => parse.manifest = Some(manifest),
                None => {
                    parse.broken = true;
                    parse.manifest = (language == Language::TsConfig).then(Manifest::unreadable);
                }
            }
            return parse;
        }
        if language == Language::Json {
            // Others extend it where it has one of these; data has neither.
            let has = |word: &[u8]| content.windows(word.len()).any(|part| part == word);
            if has(b"compilerOptions") || has(b"\"extends\"") {
                let manifest = Manifest::read(Language::TsConfig, &String::from_utf8_lossy(content));
                parse.broken = manifest.is_none();
                parse.manifest = manifest.or_else(|| Some(Manifest::unreadable()));
            }
            return parse;
        }
        if matches!(language, Language::Python | Language::Java) {
            read_code(language, &with_line_ends(content), &mut parse);
        } else if language != Language::Plain {
            read_code(language, content, &mut parse);
        }
        parse
    }
}

/// Code as the grammars can read it: they take a NUL for the end of the file, and know no UTF-16, which compilers of
/// TypeScript do.
fn readable(content: &[u8]) -> Cow<'_, [u8]> {
    let unit: Option<fn([u8; 2]) -> u16> = match content {
        [0xFF, 0xFE, ..] => Some(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    let text = match unit {
        Some(unit) => {
            let (pairs, _) = content.as_chunks::<2>();
            let units = pairs.iter().skip(1).map(|pair| unit(*pair));
            let text = char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
            Cow::Owned(text.collect::<String>().into_bytes())
        }
        None => Cow::Borrowed(content),
    };
    without_nul(text)
}

fn without_nul(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if text.contains(&0) {
        return Cow::Owned(text.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect());
    }
    text
}

/// Code in which a return alone ends a line, as the grammars know it: for them it is a part of a comment.
fn with_line_ends(content: &[u8]) -> Cow<'_, [u8]> {
    let is_alone = |at: usize| content.get(at) == Some(&b'\r') && content.get(at + 1) != Some(&b'\n');
    if !(0..content.len()).any(is_alone) {
        return Cow::Borrowed(content);
    }
    let byte = |(at, byte): (usize, &u8)| if is_alone(at) { b'\n' } else { *byte };
    Cow::Owned(content.iter().enumerate().map(byte).collect())
}

/// The names of the kinds of nodes in a grammar. They are made once for each language and stay, as the grammars do.
fn kinds(language: Language, grammar: &tree_sitter::Language) -> Kinds {
    static KNOWN: Mutex<BTreeMap<Language, Kinds>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(language).or_insert_with(|| {
        let count = u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let name = |id| grammar.node_kind_for_id(id).unwrap_or_default();
        let names = (0..count).map(|id| &*String::leak(name(id).to_owned()));
        names.collect::<Vec<_>>().leak()
    })
}

thread_local! {
    /// A parser has room for its work, which the next file takes over. Who fails over a file leaves none.
    static PARSER: Cell<Option<tree_sitter::Parser>> = const { Cell::new(None) };
}

fn read_code(language: Language, content: &[u8], parse: &mut Parse) {
    let grammar: tree_sitter::Language = match language {
        Language::TypeScript | Language::Tsx | Language::JavaScript => {
            return javascript::read(language, content, parse);
        }
        Language::Rust => tree_sitter_rust::LANGUAGE.into(),
        Language::Python => tree_sitter_python::LANGUAGE.into(),
        Language::Go => tree_sitter_go::LANGUAGE.into(),
        Language::Java => tree_sitter_java::LANGUAGE.into(),
        Language::Component => {
            return component::read(content, parse);
        }
        _ => return,
    };
    let mut parser = PARSER.take().unwrap_or_default();
    if parser.set_language(&grammar).is_err() {
        (parse.broken, parse.unparsed) = (true, true);
        return;
    }
    let started = Instant::now();
    let mut watch = |_: &tree_sitter::ParseState| {
        if started.elapsed() > MAX_PARSE_TIME { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = tree_sitter::ParseOptions::new().progress_callback(&mut watch);
    let mut source = |offset: usize, _: tree_sitter::Point| content.get(offset..).unwrap_or_default();
    let Some(tree) = parser.parse_with_options(&mut source, None, Some(options)) else {
        (parse.broken, parse.unparsed) = (true, true);
        return;
    };
    parse.broken = tree.root_node().has_error();
    let mut reader = Reader::new(content, language, kinds(language, &grammar));
    match language {
        Language::Rust => reader.walk(tree.root_node(), rust::node),
        Language::Python => {
            python::prepare(&mut reader, tree.root_node());
            reader.walk(tree.root_node(), python::node);
            python::finish(&mut reader);
        }
        Language::Go => reader.walk(tree.root_node(), go::node),
        _ => reader.walk(tree.root_node(), java::node),
    }
    reader.finish(parse, language);
    rust_paths::keep(parse);
    drop(tree);
    parser.reset();
    PARSER.set(Some(parser));
    if language == Language::Go || language == Language::Rust {
        attach_methods(parse);
    }
}

/// Methods that are outside their type (Go, `impl` in Rust) are contained in it where it is in the same file.
fn attach_methods(parse: &mut Parse) {
    let types: std::collections::HashMap<String, u32> = parse
        .symbols
        .iter()
        .enumerate()
        .filter(|(_, symbol)| symbol.kind.is_container() || symbol.kind == Kind::Type)
        .filter_map(|(index, symbol)| Some((symbol.qualified.clone(), u32::try_from(index).ok()?)))
        .collect();
    for symbol in &mut parse.symbols {
        if symbol.kind == Kind::Method && symbol.container.is_none() {
            let owner = symbol.qualified.strip_suffix(&symbol.name).unwrap_or_default();
            let owner = owner.trim_end_matches([':', '.']);
            symbol.container = types.get(owner).copied();
        }
    }
}
