//! Modules that are loaded by calls, `require` under any name among them.

use std::collections::HashSet;

use oxc::ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, BindingPattern, BindingProperty, CallExpression,
    Declaration, ExportNamedDeclaration, Expression, ExpressionStatement, ImportSpecifier, NewExpression,
    Program, VariableDeclarator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};

use super::values::{argument, call, constant, member, plain};
use super::walk::Walker;
use crate::ingest::parse::{ImportKind, MAX_PATTERNS, Name};

/// What makes a function like `require`.
const CREATOR: &str = "createRequire";

/// Names that a file gives to what loads modules.
#[derive(Debug, Default)]
pub(super) struct Loaders<'a> {
    requires: HashSet<&'a str>,
    creators: HashSet<&'a str>,
}

/// A value that may be `require`, or what makes it.
enum Value<'a> {
    Name(&'a str),
    CallOf(&'a str),
    Require,
    Creator,
}

fn value<'a>(expression: &Expression<'a>) -> Option<Value<'a>> {
    let expression = plain(expression);
    if let Expression::Identifier(name) = expression {
        return Some(Value::Name(name.name.as_str()));
    }
    if let Some(call) = call(expression) {
        let callee = plain(&call.callee);
        return match callee {
            Expression::Identifier(name) => Some(Value::CallOf(name.name.as_str())),
            _ => member(callee).filter(|(_, name)| name == CREATOR).map(|_| Value::Require),
        };
    }
    // `module.require`, `process.mainModule.require`.
    match member(expression)?.1.as_str() {
        "require" => Some(Value::Require),
        CREATOR => Some(Value::Creator),
        _ => None,
    }
}

/// Finds where names are given to values.
struct Search<'a> {
    loaders: Loaders<'a>,
    pairs: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Search<'a> {
    fn pair(&mut self, name: &'a str, given: &Expression<'a>) {
        if let Some(value) = value(given) {
            self.pairs.push((name, value));
        }
    }
}

impl<'a> Visit<'a> for Search<'a> {
    fn visit_import_specifier(&mut self, specifier: &ImportSpecifier<'a>) {
        let local = specifier.local.name.as_str();
        match specifier.imported.name().as_str() {
            CREATOR => self.loaders.creators.insert(local),
            "require" => self.loaders.requires.insert(local),
            _ => false,
        };
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let (BindingPattern::BindingIdentifier(name), Some(init)) = (&declarator.id, &declarator.init) {
            self.pair(name.name.as_str(), init);
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        if let AssignmentTarget::AssignmentTargetIdentifier(name) = &assignment.left {
            self.pair(name.name.as_str(), &assignment.right);
        }
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_binding_property(&mut self, property: &BindingProperty<'a>) {
        let key = property.key.static_name();
        if let (Some(key), BindingPattern::BindingIdentifier(name)) = (key, &property.value) {
            match key.as_ref() {
                CREATOR => self.loaders.creators.insert(name.name.as_str()),
                "require" => self.loaders.requires.insert(name.name.as_str()),
                _ => false,
            };
        }
        walk::walk_binding_property(self, property);
    }
}

impl<'a> Loaders<'a> {
    /// Finds the names by which `require` and `createRequire` go in a file, wherever they are given.
    pub(super) fn find(program: &Program<'a>) -> Self {
        // A name can be written with escapes.
        let text = program.source_text;
        if !(text.contains("equire") || text.contains('\\')) {
            return Self::default();
        }
        let mut search = Search { loaders: Self::default(), pairs: Vec::new() };
        search.visit_program(program);
        let Search { mut loaders, pairs } = search;
        // A name may be given to what has its name from another one; each round finds one step of that.
        for _ in 0..4 {
            let before = loaders.requires.len() + loaders.creators.len();
            for (name, value) in &pairs {
                let (is_require, is_creator) = loaders.kinds(value);
                if is_require {
                    loaders.requires.insert(name);
                } else if is_creator {
                    loaders.creators.insert(name);
                }
            }
            if loaders.requires.len() + loaders.creators.len() == before {
                break;
            }
        }
        loaders
    }

    /// Whether a value is `require`, and whether it makes one.
    fn kinds(&self, value: &Value<'_>) -> (bool, bool) {
        let is_creator = |name: &str| name == CREATOR || self.creators.contains(name);
        match value {
            Value::Name(name) => (*name == "require" || self.requires.contains(name), is_creator(name)),
            Value::CallOf(maker) => (is_creator(maker), false),
            Value::Require => (true, false),
            Value::Creator => (false, true),
        }
    }

    /// Whether an expression is `require`, or what makes it, so that who has it can load modules.
    fn is_loader(&self, expression: &Expression<'_>) -> bool {
        value(expression).is_some_and(|value| self.kinds(&value) != (false, false))
    }

    fn is_loader_name(&self, name: &str) -> bool {
        self.kinds(&Value::Name(name)) != (false, false)
    }

    /// Whether an expression is `require`, under whatever name.
    fn is_require(&self, expression: &Expression<'_>) -> bool {
        value(expression).is_some_and(|value| self.kinds(&value).0)
    }
}

/// The way in which a call finds the module that it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As a module: `./x` is a file, `x` a package.
    Module,
    /// As an address relative to the file: `x` and `./x` are the same.
    Address,
    /// A pattern, or a list of them, for many files.
    Pattern,
    /// Files that are only known when the code runs.
    Computed,
}

fn address(way: Way, specifier: String) -> String {
    let is_relative = !specifier.starts_with(['.', '/', '#']) && !specifier.contains(':');
    if way == Way::Address && is_relative && !specifier.is_empty() {
        format!("./{specifier}")
    } else {
        specifier
    }
}

/// Returns the name of what is called, without what it is a member of.
fn last_name(callee: &Expression<'_>) -> Option<String> {
    match plain(callee) {
        Expression::Identifier(name) => Some(name.name.as_str().to_owned()),
        callee => member(callee).map(|(_, name)| name),
    }
}

/// Loaders that are given to who is not followed. One import of something unknown stands for all that they load.
impl<'a> Walker<'a> {
    /// Says that a loader is used in a way that is followed.
    pub(super) fn follow(&mut self, loader: &Expression<'a>) {
        let loader = plain(loader);
        if self.loaders.is_loader(loader) {
            self.followed.insert(loader.span());
        }
    }

    /// As [`Self::follow`], for what is only asked for a member, unless that is a way to call it.
    pub(super) fn follow_object(&mut self, of: &Expression<'a>) {
        if let Some((object, name)) = member(of)
            && !matches!(name.as_str(), "call" | "apply" | "bind" | "constructor")
        {
            self.follow(object);
        }
    }

    pub(super) fn follow_callee(&mut self, callee: &Expression<'a>) {
        self.follow(callee);
        self.follow_object(plain(callee));
    }

    /// A name that is given to a loader is one from then on.
    pub(super) fn follow_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let (BindingPattern::BindingIdentifier(_), Some(init)) = (&declarator.id, &declarator.init) {
            self.follow(init);
        }
    }

    /// Who gives a value to a name does not use the one that it had.
    pub(super) fn follow_target(&mut self, assignment: &AssignmentExpression<'a>) {
        if let AssignmentTarget::AssignmentTargetIdentifier(name) = &assignment.left {
            self.followed.insert(name.span);
        }
    }

    /// An assignment whose value is not used.
    pub(super) fn follow_statement(&mut self, statement: &ExpressionStatement<'a>) {
        if let Expression::AssignmentExpression(assignment) = &statement.expression
            && let AssignmentTarget::AssignmentTargetIdentifier(_) = &assignment.left
        {
            self.follow(&assignment.right);
        }
    }

    fn escape(&mut self, at: Span) {
        if !self.has_escaped && !self.followed.contains(&at) {
            self.has_escaped = true;
            let written = self.source.written(at);
            self.reader.computed_import(written, at);
        }
    }

    pub(super) fn note_escaped_name(&mut self, name: &str, at: Span) {
        if self.loaders.is_loader_name(name) {
            self.escape(at);
        }
    }

    /// `module.require` and the like; other values may have a member of this name.
    pub(super) fn note_escaped_member(&mut self, object: &Expression<'a>, name: &str, at: Span) {
        let object = self.source.written(plain(object).span());
        let is_module =
            matches!(object, "module" | "import.meta" | "require.main") || object.ends_with("mainModule");
        if name == CREATOR || name == "require" && is_module {
            self.escape(at);
        }
    }

    /// What makes a `require` and gives it away at once.
    pub(super) fn note_escaped_call(&mut self, call: &CallExpression<'a>) {
        let callee = plain(&call.callee);
        let is_creator = match callee {
            Expression::Identifier(name) => self.loaders.kinds(&Value::CallOf(name.name.as_str())).0,
            _ => member(callee).is_some_and(|(_, name)| name == CREATOR),
        };
        if is_creator {
            self.escape(call.span);
        }
    }

    /// `export const load = createRequire(..)`.
    pub(super) fn note_escaped_declaration(&mut self, declaration: &Declaration<'a>) {
        let Declaration::VariableDeclaration(declaration) = declaration else { return };
        for init in declaration.declarations.iter().filter_map(|declarator| declarator.init.as_ref()) {
            if self.loaders.is_loader(init) {
                self.escape(init.span());
            }
        }
    }

    /// `export { load }`.
    pub(super) fn note_escaped_names(&mut self, export: &ExportNamedDeclaration<'a>) {
        for specifier in &export.specifiers {
            self.note_escaped_name(&specifier.local.name(), specifier.span);
        }
    }
}

impl<'a> Walker<'a> {
    /// Whether a call loads what its first argument names.
    fn way(&self, callee: &Expression<'a>) -> Option<Way> {
        let callee = plain(callee);
        if self.loaders.is_require(callee) {
            return Some(Way::Module);
        }
        if let Expression::Identifier(name) = callee {
            return (name.name == "importScripts").then_some(Way::Address);
        }
        let (object, name) = member(callee)?;
        let object = plain(object);
        let on_meta = || matches!(object, Expression::ImportMeta(_));
        let on_require = || self.loaders.is_require(object);
        match name.as_str() {
            "resolve" if on_meta() || on_require() => Some(Way::Module),
            "glob" | "globEager" if on_meta() => Some(Way::Pattern),
            // What `require` itself calls.
            "_load" => Some(Way::Module),
            "context" if on_require() => Some(Way::Computed),
            "register" if self.source.written(object.span()).ends_with("serviceWorker") => Some(Way::Address),
            _ => None,
        }
    }

    /// Returns the specifier, when an expression is a call of `require` or a similar function with a text that is known.
    pub(super) fn required(&self, expression: &Expression<'a>) -> Option<String> {
        let call = call(expression)?;
        let way = self.way(&call.callee).filter(|way| !matches!(way, Way::Pattern | Way::Computed))?;
        Some(address(way, constant(argument(&call.arguments, 0)?)?))
    }

    /// Notes what a call loads. Returns whether it loads anything.
    pub(super) fn note_load(&mut self, call: &CallExpression<'a>) -> bool {
        if let Some(way) = self.way(&call.callee) {
            self.load(call.span, &call.arguments, way);
            return true;
        }
        // `fork("./x")` of a child process, `module.register("./x", import.meta.url)`.
        let is_known = match last_name(&call.callee).as_deref() {
            Some("fork") => argument(&call.arguments, 0)
                .and_then(constant)
                .is_some_and(|path| path.starts_with(['.', '/'])),
            Some("register") => argument(&call.arguments, 1).is_some_and(|base| self.is_own_address(base)),
            _ => false,
        };
        if is_known {
            self.load(call.span, &call.arguments, Way::Module);
        }
        is_known
    }

    /// Notes what `new Worker("x")` and `new URL("x", import.meta.url)` lead to.
    pub(super) fn note_creation(&mut self, new: &NewExpression<'a>) {
        match last_name(&new.callee).as_deref() {
            Some("URL") if argument(&new.arguments, 1).is_some_and(|base| self.is_own_address(base)) => {
                self.load(new.span, &new.arguments, Way::Address);
            }
            Some("Worker" | "SharedWorker") => {
                // What is an address is noted where it is made.
                let first = argument(&new.arguments, 0).map(plain);
                if !matches!(first, Some(Expression::NewExpression(_))) {
                    self.load(new.span, &new.arguments, Way::Address);
                }
            }
            _ => {}
        }
    }

    /// Whether an expression is the address of the file itself.
    fn is_own_address(&self, expression: &Expression<'a>) -> bool {
        let text: String = self.source.written(plain(expression).span()).split_whitespace().collect();
        matches!(
            text.as_str(),
            "import.meta.url" | "__filename" | "document.baseURI" | "self.location" | "location.href"
        )
    }

    fn load(&mut self, at: Span, arguments: &[Argument<'a>], way: Way) {
        match arguments.split_first() {
            Some((Argument::SpreadElement(rest), _)) => {
                let written = self.source.written(rest.span);
                self.reader.computed_import(written, at);
            }
            Some((first, rest)) => {
                let options = rest.first().map(|options| self.source.written(options.span()));
                match (way, first.as_expression()) {
                    (_, None) => {}
                    (Way::Pattern, Some(first)) => self.load_patterns(at, first, options),
                    (_, Some(first)) => self.load_one(at, first, way),
                }
            }
            None => {}
        }
    }

    /// Notes what an expression names as a module.
    pub(super) fn load_module(&mut self, at: Span, first: &Expression<'a>) {
        self.load_one(at, first, Way::Module);
    }

    fn load_one(&mut self, at: Span, first: &Expression<'a>, way: Way) {
        match constant(first) {
            Some(specifier) if way != Way::Computed => {
                let specifier = self.reader.kept_whole(&address(way, specifier));
                self.reader.import(ImportKind::Bind, specifier, Vec::new(), None, at);
            }
            pattern => {
                let written = pattern.unwrap_or_else(|| self.source.written(first.span()).to_owned());
                self.reader.computed_import(&written, at);
            }
        }
    }

    /// `import.meta.glob("./a/*.ts")`, or with a list of patterns, of which those with `!` leave out what the others mean.
    fn load_patterns(&mut self, at: Span, first: &Expression<'a>, options: Option<&str>) {
        let texts: Vec<Option<String>> = match plain(first) {
            Expression::ArrayExpression(list) => {
                list.elements.iter().map(|item| item.as_expression().and_then(constant)).collect()
            }
            first => vec![constant(first)],
        };
        // Another base makes the patterns mean other files.
        let has_base = options.is_some_and(|options| options.contains("base"));
        let is_known = !has_base && texts.iter().all(Option::is_some);
        if !is_known || self.reader.count_of(ImportKind::Pattern) + texts.len() > MAX_PATTERNS {
            let written = self.source.written(first.span());
            return self.reader.computed_import(written, at);
        }
        let (without, wanted): (Vec<String>, Vec<String>) =
            texts.into_iter().flatten().partition(|pattern| pattern.starts_with('!'));
        let without: Vec<Name> = without.into_iter().map(|pattern| Name::new(pattern, "")).collect();
        for pattern in wanted {
            let pattern = self.reader.kept_whole(&pattern);
            self.reader.import(ImportKind::Pattern, pattern, without.clone(), None, at);
        }
    }
}
