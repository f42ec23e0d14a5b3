//! One TypeScript source to one JavaScript module that the engine can run.

mod commonjs;
mod emit;
mod environment;
mod helpers;
mod limits;
mod literal;
mod loops;
mod map;
mod problems;
mod refused;
mod script;
mod shape;
mod spread;
mod survey;
mod tidy;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use oxc::allocator::Allocator;
use oxc::ast::ast::Program;
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::{Scoping, SemanticBuilder};
use oxc::span::{SourceType, Span};
use oxc::transformer::{
    DecoratorOptions, ES2026Options, EnvOptions, HelperLoaderMode, HelperLoaderOptions, TransformOptions,
    Transformer, TypeScriptOptions,
};
use serde::{Deserialize, Serialize};
use tgp_contract::{DeclaredTypes, Finding, SourceLocation};

use self::emit::Wrapping;
pub(crate) use self::emit::quoted;
pub(crate) use self::limits::MAX_LIBRARY_BYTES;
pub use self::literal::LiteralValue;
pub use self::loops::LoopTable;
pub use self::map::SourceMap;
use self::script::ScriptResult;
use self::shape::Outline;
pub(crate) use self::shape::{is_erased, is_type_export};
use crate::builtin::is_test_file;
use crate::describe::declared_types;
use crate::places::LineTable;
use crate::{CompileError, SourceRole, Unit};

/// How the engine must load the emitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleFormat {
    /// An ES module.
    Module,
    /// A sloppy script whose value is `function (exports, require, module, __filename, __dirname) {…}`.
    CommonJs,
}

/// The four ways a tool may be written, and the one way it cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolShape {
    /// A module with a default export.
    DefaultExport,
    /// A script with a top-level `return`.
    ReturnScript,
    /// A script whose last expression is the result.
    ExpressionScript,
    /// `module.exports = …`.
    CommonJs,
    /// A module that exports names but no default: it can be imported, not executed.
    NamedExportsOnly,
}

/// How a module refers to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// `import`, `export … from`.
    Import,
    /// `require('…')`, `import x = require('…')`.
    Require,
    /// `import('…')` of a constant.
    DynamicImport,
}

/// One module another one asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRequest {
    pub specifier: String,
    pub kind: RequestKind,
    /// Where the specifier stands.
    pub place: SourceLocation,
    /// The names taken from it: `default`, and `*` for the whole of it. Empty for `import './x'`.
    pub names: Vec<String>,
    /// The members the source reads of a namespace import (`import * as x`).
    pub members: Vec<String>,
    /// Every request stands in a `try` with a `catch`: packages load optional dependencies like this.
    pub optional: bool,
}

/// A compiled source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompiledModule {
    pub id: String,
    pub format: ModuleFormat,
    pub shape: ToolShape,
    /// JavaScript for the engine.
    pub code: String,
    pub map: SourceMap,
    /// Where the loops of a tool are (only for [`crate::SourceRole::Tool`]).
    pub loops: LoopTable,
    /// What it asks for, types excluded, each specifier and kind once, in order of appearance.
    pub requests: Vec<ModuleRequest>,
    /// The names it exports, as far as the source shows them; `default` included.
    pub exports: Vec<String>,
    /// Specifiers whose every export it exports too: `export * from`, `module.exports = require(…)`.
    pub reexports: Vec<String>,
    /// The emitted code imports `tgp:require`, which is not a request of the source.
    pub needs_require: bool,
    /// The names read from `process.env` (only for [`crate::SourceRole::Config`]).
    pub environment: Vec<String>,
    /// The default export, when the source alone shows it (only for [`crate::SourceRole::Config`]).
    pub literal: Option<LiteralValue>,
    /// What a tool's annotations say of its arguments and its result (only for [`crate::SourceRole::Tool`]).
    pub declared: DeclaredTypes,
    /// The errors that the checker finds in a tool, as text; see [`crate::tool_errors`].
    pub errors: Vec<String>,
}

/// Compiles one source.
///
/// # Errors
/// When the source is too large, too deeply nested, or not valid TypeScript.
pub fn compile(unit: &Unit) -> Result<CompiledModule, CompileError> {
    // A fault of the parser must not take the worker and its other sources with it.
    catch_unwind(AssertUnwindSafe(|| compile_unit(unit))).unwrap_or_else(|_| {
        let table = LineTable::new(&unit.id, &unit.source);
        Err(refuse(table.refusal(
            Span::new(0, 0),
            "the compiler failed on this source".to_owned(),
            "this is a fault of the compiler, not of the source",
            "write it in a simpler way, and report the source that made it fail".to_owned(),
        )))
    })
}

/// What makes a source too large or too deeply nested to be parsed. Whoever parses a source asks this first.
pub(crate) fn runaway(unit: &Unit) -> Option<Finding> {
    let source = text(unit);
    limits::refuse_runaway(source, unit.role, &LineTable::new(&unit.id, source))
}

/// The source without its byte order mark.
fn text(unit: &Unit) -> &str {
    unit.source.strip_prefix('\u{feff}').unwrap_or(&unit.source)
}

fn refuse(finding: Finding) -> CompileError {
    CompileError { findings: vec![finding] }
}

/// How a block of code begins in Markdown.
const FENCE: &str = "```";

fn compile_unit(unit: &Unit) -> Result<CompiledModule, CompileError> {
    if let Some(finding) = runaway(unit) {
        return Err(refuse(finding));
    }
    let source = text(unit);
    let table = LineTable::new(&unit.id, source);
    if extension(&unit.id) == "json" {
        return emit::json(unit, source);
    }
    if unit.role != SourceRole::Library && source.trim_start().starts_with(FENCE) {
        return Err(refuse(table.refusal(
            Span::new(0, 0),
            "the source is wrapped in a Markdown fence".to_owned(),
            "to the compiler the fence is a template without a meaning, with the source as text in it",
            "remove the Markdown fence: the first line (```ts) and the last one (```)".to_owned(),
        )));
    }
    let allocator = Allocator::default();
    let mut program = parse(unit, source, &allocator, &table)?;
    let findings = refused::refused(&program, &table);
    if !findings.is_empty() {
        return Err(CompileError { findings });
    }
    let loops = match unit.role {
        SourceRole::Tool => LoopTable::new(&program, &table),
        SourceRole::Config | SourceRole::Library => LoopTable::default(),
    };
    let literal = match unit.role {
        SourceRole::Config => literal::default_export(&program),
        SourceRole::Tool | SourceRole::Library => None,
    };
    let (shape, scoping) = settle_shape(unit, &mut program, &allocator, &table)?;
    let compiled = transform_and_emit(unit, program, scoping, shape, &allocator, &table)?;
    Ok(CompiledModule { loops, literal, ..compiled })
}

fn extension(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or(id);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// What the parser is told about a source.
fn source_type(unit: &Unit) -> SourceType {
    match (unit.role, extension(&unit.id)) {
        (_, "tsx" | "jsx") => SourceType::tsx(),
        (SourceRole::Library, "mjs") => SourceType::mjs(),
        (SourceRole::Library, "cjs") => SourceType::cjs(),
        (_, "ts" | "mts" | "cts") => SourceType::ts(),
        (SourceRole::Library, _) if unit.id.starts_with("npm:") => SourceType::unambiguous(),
        _ => SourceType::ts(),
    }
}

fn parse<'a>(
    unit: &Unit,
    source: &'a str,
    allocator: &'a Allocator,
    table: &LineTable<'_>,
) -> Result<Program<'a>, CompileError> {
    let options = ParseOptions {
        parse_regular_expression: unit.role != SourceRole::Library,
        allow_return_outside_function: true,
        preserve_parens: false,
        ..ParseOptions::default()
    };
    let source_type = source_type(unit);
    let parsed = crate::parse::parse(allocator, source, source_type, options);
    if parsed.diagnostics.is_empty() && !parsed.panicked {
        return Ok(parsed.program);
    }
    // What TypeScript reads as a broken type assertion may be an element.
    if source_type.is_typescript() && source.contains('<') {
        let with_jsx = Parser::new(allocator, source, SourceType::tsx()).with_options(options).parse();
        if with_jsx.diagnostics.is_empty() && !with_jsx.panicked {
            let findings = refused::refused(&with_jsx.program, table);
            if !findings.is_empty() {
                return Err(CompileError { findings });
            }
        }
    }
    Err(CompileError { findings: problems::findings(&parsed.diagnostics, table) })
}

/// What the emitted code will be.
#[derive(Clone, Copy)]
struct Settled {
    format: ModuleFormat,
    /// Nothing for an ES module: whether it has a default export shows only after types are gone.
    shape: Option<ToolShape>,
}

/// Finds out how a source is written, and rewrites scripts into modules.
fn settle_shape<'a>(
    unit: &Unit,
    program: &mut Program<'a>,
    allocator: &'a Allocator,
    table: &LineTable<'_>,
) -> Result<(Settled, Scoping), CompileError> {
    program.hashbang = None;
    if unit.role == SourceRole::Library && program.source_type.is_javascript() {
        let is_module = program.source_type.is_module();
        if !is_module {
            program.source_type = program.source_type.with_commonjs(true);
        }
        let format = if is_module { ModuleFormat::Module } else { ModuleFormat::CommonJs };
        let shape = (!is_module).then_some(ToolShape::CommonJs);
        return Ok((Settled { format, shape }, analyse(unit, program, table)?));
    }
    let outline = Outline::new(program);
    // A test file is loaded for what it declares, and has no result.
    let may_be_script = unit.role == SourceRole::Tool && !is_test_file(&unit.id);
    let module = Settled { format: ModuleFormat::Module, shape: None };
    if outline.value_export.is_none() && (outline.export_assignment.is_some() || is_free_commonjs(program)) {
        refuse_module_syntax(&outline, table)?;
        program.source_type = program.source_type.with_commonjs(true);
        let settled = Settled { format: ModuleFormat::CommonJs, shape: Some(ToolShape::CommonJs) };
        return Ok((settled, analyse(unit, program, table)?));
    }
    if let Some(span) = outline.top_return {
        if outline.value_export.is_some() || !may_be_script {
            return Err(refuse(table.refusal(
                span,
                "a module cannot `return` at its top level".to_owned(),
                "a source is either a module with exports or a script that returns",
                "put the code into `export default function (args) { … }`, or remove the exports".to_owned(),
            )));
        }
        script::wrap(program, allocator, ScriptResult::Return);
        let scoping = analyse_script(unit, program, table)?;
        return Ok((Settled { shape: Some(ToolShape::ReturnScript), ..module }, scoping));
    }
    let only_types = outline.type_export && !outline.has_code;
    if outline.value_export.is_some() || only_types || !may_be_script {
        return Ok((module, analyse(unit, program, table)?));
    }
    script::wrap(program, allocator, ScriptResult::LastExpression);
    let scoping = analyse_script(unit, program, table)?;
    Ok((Settled { shape: Some(ToolShape::ExpressionScript), ..module }, scoping))
}

fn is_free_commonjs(program: &Program<'_>) -> bool {
    program.source_text.contains("exports")
        && shape::uses_commonjs(program, &SemanticBuilder::new().build(program).semantic.into_scoping())
}

/// CommonJS is a function body: `import` and a top-level `await` cannot stand in it.
fn refuse_module_syntax(outline: &Outline, table: &LineTable<'_>) -> Result<(), CompileError> {
    let (span, word) = match (outline.import, outline.top_await) {
        (Some(span), _) => (span, "import"),
        (None, Some(span)) => (span, "await"),
        (None, None) => return Ok(()),
    };
    Err(refuse(table.refusal(
        span,
        format!("`{word}` cannot be mixed with `module.exports`"),
        "a source is either an ES module or a CommonJS module",
        "write `export default …` instead of `module.exports = …`".to_owned(),
    )))
}

fn analyse(unit: &Unit, program: &Program<'_>, table: &LineTable<'_>) -> Result<Scoping, CompileError> {
    let analysed = SemanticBuilder::new()
        .with_check_syntax_error(unit.role != SourceRole::Library)
        .with_enum_eval(true)
        .with_excess_capacity(0.5)
        .build(program);
    if analysed.diagnostics.is_empty() {
        return Ok(analysed.semantic.into_scoping());
    }
    Err(CompileError { findings: problems::findings(&analysed.diagnostics, table) })
}

/// Namespaces of a script stand outside its function, where they cannot see the script's own names.
fn analyse_script(
    unit: &Unit,
    program: &Program<'_>,
    table: &LineTable<'_>,
) -> Result<Scoping, CompileError> {
    let scoping = analyse(unit, program, table)?;
    let root = scoping.root_scope_id();
    for (name, references) in scoping.root_unresolved_references() {
        let declared = scoping.iter_bindings().find_map(|(scope, bindings)| {
            let of_script =
                scoping.scope_parent_id(scope) == Some(root) && scoping.scope_flags(scope).is_function();
            bindings.get(name).copied().filter(|_| of_script)
        });
        let uses_value = references.iter().any(|reference| !scoping.get_reference(*reference).is_type());
        if let Some(symbol) = declared
            && uses_value
        {
            return Err(refuse(table.refusal(
                scoping.symbol_span(symbol),
                format!("a namespace or an import alias of a script cannot use `{name}`"),
                "it is made once, before the script runs",
                "export the tool as a function, `export default function (args) { … }`, or use an object instead of the namespace"
                    .to_owned(),
            )));
        }
    }
    Ok(scoping)
}

fn transform_options(unit: &Unit) -> TransformOptions {
    TransformOptions {
        typescript: TypeScriptOptions {
            // In JavaScript an import that is not used still runs its module.
            only_remove_type_imports: matches!(extension(&unit.id), "js" | "mjs" | "cjs"),
            ..TypeScriptOptions::default()
        },
        decorator: DecoratorOptions { legacy: true, ..DecoratorOptions::default() },
        env: EnvOptions {
            es2026: ES2026Options { explicit_resource_management: true },
            ..EnvOptions::default()
        },
        helper_loader: HelperLoaderOptions {
            module_name: helpers::HELPER_PACKAGE.into(),
            mode: HelperLoaderMode::Runtime,
        },
        ..TransformOptions::default()
    }
}

fn transform_and_emit<'a>(
    unit: &Unit,
    mut program: Program<'a>,
    scoping: Scoping,
    settled: Settled,
    allocator: &'a Allocator,
    table: &LineTable<'_>,
) -> Result<CompiledModule, CompileError> {
    let is_library = unit.role == SourceRole::Library;
    let transformed = Transformer::new(allocator, Path::new(&unit.id), &transform_options(unit))
        .build_with_scoping(scoping, &mut program);
    if !transformed.diagnostics.is_empty() {
        return Err(CompileError { findings: problems::findings(&transformed.diagnostics, table) });
    }
    let scoping = transformed.scoping;
    let helpers = helpers::inline(&mut program, allocator).map_err(|helper| {
        refuse(table.refusal(
            Span::new(0, 0),
            format!("this source needs the helper `{helper}`, which does not exist"),
            "the syntax is too new for the engine and cannot be compiled away",
            "write it with older syntax".to_owned(),
        ))
    })?;
    tidy::drop_import_attributes(&mut program);
    if is_library {
        tidy::fold_globals(&mut program, &scoping, allocator);
    }
    let found = survey::survey(&program, &scoping, table);
    if let Some(span) = found.decorators.first() {
        return Err(refuse(refused::decorator(table, *span)));
    }
    let environment = match unit.role {
        SourceRole::Config => environment::environment(&program, &scoping, table)
            .map_err(|findings| CompileError { findings })?,
        SourceRole::Tool | SourceRole::Library => Vec::new(),
    };

    let helpers = helpers + &spread::protect(&mut program, &scoping, allocator);
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path: (!is_library).then(|| PathBuf::from(&unit.id)),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(&program);
    let wrapping = Wrapping::new(unit, settled.format, &found, helpers);
    let map = printed.map.map_or_else(SourceMap::default, |map| {
        SourceMap::pack(map.get_tokens(), table, program.source_text, &printed.code, wrapping.lines_before())
    });
    let (exports, reexports) = match settled.format {
        ModuleFormat::Module => (found.exports, found.reexports),
        ModuleFormat::CommonJs => (found.commonjs.names, found.commonjs.reexports),
    };
    let shape = settled.shape.unwrap_or_else(|| {
        let has_default = exports.iter().any(|name| name == "default");
        if has_default { ToolShape::DefaultExport } else { ToolShape::NamedExportsOnly }
    });
    let is_tool = unit.role == SourceRole::Tool && !is_test_file(&unit.id);
    let declared = match shape {
        ToolShape::NamedExportsOnly => DeclaredTypes::default(),
        _ if is_tool => declared_types(unit),
        _ => DeclaredTypes::default(),
    };
    Ok(CompiledModule {
        id: unit.id.clone(),
        format: settled.format,
        shape,
        needs_require: wrapping.needs_require(),
        code: wrapping.around(&printed.code),
        map,
        loops: LoopTable::default(),
        requests: found.requests,
        exports,
        reexports,
        environment,
        literal: None,
        declared,
        errors: Vec::new(),
    })
}
