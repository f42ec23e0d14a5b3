//! What stands around the printed code: the CommonJS function, `require`, helpers. All of it on one line before the
//! code, so that only lines shift in the source map.

use tgp_contract::{Finding, Severity, SourceLocation};

use super::survey::Findings;
use super::{CompiledModule, ModuleFormat, SourceMap, ToolShape};
use crate::{CompileError, SourceRole, Unit};

/// The sandbox deletes the global, and packages ask `x instanceof Function`.
const FUNCTION: &str = "const Function = (() => {}).constructor; ";

const OPENING: &str = "function (exports, require, module, __filename, __dirname) {";

/// The text before and after the printed code.
pub(super) struct Wrapping {
    before: String,
    after: &'static str,
    needs_require: bool,
}

impl Wrapping {
    pub(super) fn new(unit: &Unit, format: ModuleFormat, found: &Findings, helpers: String) -> Self {
        let mut outside = helpers;
        if unit.role == SourceRole::Library && found.uses_function {
            outside.push_str(FUNCTION);
        }
        match format {
            ModuleFormat::Module => {
                if found.uses_require {
                    let local = unused_name("__requireFrom", &unit.source);
                    let id = quoted(&unit.id);
                    outside.push_str(&format!(
                        "import {{ requireFrom as {local} }} from \"tgp:require\"; const require = {local}({id}); "
                    ));
                }
                Self { before: outside, after: "", needs_require: found.uses_require }
            }
            ModuleFormat::CommonJs => {
                let strict = if unit.role == SourceRole::Library { "" } else { "\"use strict\";" };
                // The function's own directives must stay its first statements, so everything else goes around it.
                let (before, after) = if outside.is_empty() {
                    (format!("({OPENING}{strict}"), "\n})")
                } else {
                    (format!("(() => {{ {outside}return {OPENING}{strict}"), "\n}; })()")
                };
                Self { before, after, needs_require: false }
            }
        }
    }

    pub(super) fn needs_require(&self) -> bool {
        self.needs_require
    }

    pub(super) fn lines_before(&self) -> u32 {
        u32::from(!self.before.is_empty())
    }

    pub(super) fn around(&self, code: &str) -> String {
        let newline = if self.before.is_empty() { "" } else { "\n" };
        [self.before.trim_end(), newline, code.trim_end(), self.after, "\n"].concat()
    }
}

/// A name that begins with `base` and that the source does not contain, also not with escapes in it.
pub(super) fn unused_name(base: &str, source: &str) -> String {
    let unescaped = source.contains("\\u").then(|| without_escapes(source));
    let mut name = base.to_owned();
    while source.contains(&name) || unescaped.as_ref().is_some_and(|source| source.contains(&name)) {
        name.push('_');
    }
    name
}

/// The text with every `\uXXXX` and `\u{X}` as the character that it is in an identifier.
fn without_escapes(source: &str) -> String {
    let mut parts = source.split("\\u");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = match part.strip_prefix('{') {
            Some(inner) => inner.split_once('}').unwrap_or((inner, "")),
            None => part.split_at_checked(4).unwrap_or((part, "")),
        };
        text.extend(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
        text.push_str(rest);
    }
    text
}

/// A text as a JavaScript string literal; JSON strings are one.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A JSON file is a CommonJS module. `JSON.parse` and not a literal: a key `__proto__` is only a key there.
pub(super) fn json(unit: &Unit, source: &str) -> Result<CompiledModule, CompileError> {
    let value: serde_json::Value = serde_json::from_str(source).map_err(|error| {
        let place = SourceLocation {
            file: unit.id.clone(),
            line: u32::try_from(error.line()).unwrap_or(1).max(1),
            column: u32::try_from(error.column()).unwrap_or(1).max(1),
        };
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or("invalid JSON").to_owned();
        CompileError {
            findings: vec![Finding {
                end: place.clone(),
                place,
                rule: "syntax".to_owned(),
                severity: Severity::Error,
                message,
                reason: "only a valid JSON document can be imported".to_owned(),
                fix: "correct the JSON at this place".to_owned(),
            }],
        }
    })?;
    let exports = value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default();
    Ok(CompiledModule {
        id: unit.id.clone(),
        format: ModuleFormat::CommonJs,
        shape: ToolShape::CommonJs,
        code: format!("({OPENING}\nmodule.exports = JSON.parse({});\n}})\n", quoted(source)),
        map: SourceMap::default(),
        loops: super::LoopTable::default(),
        requests: Vec::new(),
        exports,
        reexports: Vec::new(),
        needs_require: false,
        environment: Vec::new(),
        literal: None,
        declared: tgp_contract::DeclaredTypes::default(),
        errors: Vec::new(),
    })
}
