//! Definitions, and the names of what is called.

use oxc::ast::ast::{
    BindingPattern, Class, Decorator, Expression, Function, PropertyKey, TSAccessibility, TSTypeAnnotation,
    VariableDeclaration, VariableDeclarationKind,
};
use oxc::ast_visit::Visit;
use oxc::span::{GetSpan, Span};

use super::values::is_function;
use super::walk::Walker;
use crate::ingest::parse::Kind;
use crate::ingest::parse::reader::Scope;

/// A field of a class, with `accessor` or without.
pub(super) struct Field<'f, 'a> {
    pub(super) span: Span,
    pub(super) decorators: &'f oxc::allocator::Vec<'a, Decorator<'a>>,
    pub(super) key: &'f PropertyKey<'a>,
    pub(super) computed: bool,
    pub(super) accessibility: Option<TSAccessibility>,
    pub(super) annotation: Option<&'f TSTypeAnnotation<'a>>,
    pub(super) value: Option<&'f Expression<'a>>,
}

impl<'a> Walker<'a> {
    /// A declaration without `declare` and decorators.
    pub(super) fn definition(&self, span: Span, decorators: &[Decorator<'a>], is_declared: bool) -> Span {
        let mut start = span.start;
        if let Some(last) = decorators.last().filter(|last| last.span.end > start) {
            start = last.span.end;
        }
        let blanks = |start: u32| {
            let rest = self.source.written(Span::new(start, span.end));
            start + u32::try_from(rest.len() - rest.trim_start().len()).unwrap_or(0)
        };
        start = blanks(start);
        if is_declared && self.source.written(Span::new(start, span.end)).starts_with("declare") {
            start = blanks(start + 7);
        }
        Span::new(start, span.end)
    }

    /// All of a function but its name.
    pub(super) fn visit_function_parts(&mut self, function: &Function<'a>) {
        if let Some(parameters) = &function.type_parameters {
            self.visit_ts_type_parameter_declaration(parameters);
        }
        if let Some(this) = &function.this_param {
            self.visit_ts_this_parameter(this);
        }
        self.visit_formal_parameters(&function.params);
        if let Some(of) = &function.return_type {
            self.visit_ts_type_annotation(of);
        }
        if let Some(body) = &function.body {
            self.visit_function_body(body);
        }
    }

    /// A class at the top, or one that is exported, with its members.
    pub(super) fn define_class(&mut self, class: &Class<'a>, name: &str, exported: bool) {
        let span = self.definition(class.span, &class.decorators, class.declare);
        let symbol = self.reader.symbol(Kind::Class, name, span, &self.scope, exported);
        if let Some(heritage) = &class.heritage {
            let written = self.source.written(heritage.expression.span());
            if matches!(
                heritage.expression,
                Expression::Identifier(_) | Expression::StaticMemberExpression(_)
            ) && !written.contains('(')
            {
                self.reader.heritage(symbol, &Self::name(written), false);
            }
        }
        for implemented in &class.implements {
            let written = self.source.written(implemented.expression.span());
            self.reader.heritage(symbol, &Self::name(written), true);
        }
        let scope = self.reader.inside(symbol, name, &self.scope, true);
        self.framed(scope, |walker| walker.visit_class_parts(class));
    }

    pub(super) fn visit_class_parts(&mut self, class: &Class<'a>) {
        self.visit_decorators(&class.decorators);
        if let Some(parameters) = &class.type_parameters {
            self.visit_ts_type_parameter_declaration(parameters);
        }
        if let Some(heritage) = &class.heritage {
            self.visit_class_heritage(heritage);
        }
        self.visit_ts_class_implements_list(&class.implements);
        self.visit_class_body(&class.body);
    }

    /// The scope of the body of a method, or of a field that holds a function.
    pub(super) fn method(&mut self, name: &str, is_private: bool, span: Span) -> Scope {
        let is_hidden = is_private || name.starts_with('#');
        let symbol = self.reader.symbol(Kind::Method, &Self::name(name), span, &self.scope, !is_hidden);
        self.scope.body(symbol)
    }

    pub(super) fn visit_field(&mut self, field: &Field<'_, 'a>) {
        self.visit_decorators(field.decorators);
        let name = self.source.key(field.key, field.computed);
        let of = self.source.declared(field.annotation).or_else(|| self.source.created(field.value));
        self.reader.declare_field(&name, of, &self.scope);
        let scope = if !self.scope.members {
            self.scope.clone()
        } else if field.value.is_some_and(is_function) {
            // A field that holds a function is a method to those who call it.
            let span = self.definition(field.span, field.decorators, false);
            self.method(&name, field.accessibility == Some(TSAccessibility::Private), span)
        } else {
            self.scope.body(self.scope.container)
        };
        self.within(scope, |walker| {
            walker.visit_property_key(field.key);
            if let Some(annotation) = field.annotation {
                walker.visit_ts_type_annotation(annotation);
            }
            if let Some(value) = field.value {
                walker.visit_expression(value);
            }
        });
    }

    /// Symbols of a declaration at the top. Returns the scope of its values.
    pub(super) fn define_variables(
        &mut self,
        declaration: &VariableDeclaration<'a>,
        exported: bool,
    ) -> Scope {
        let is_constant =
            !matches!(declaration.kind, VariableDeclarationKind::Let | VariableDeclarationKind::Var);
        let kind = if is_constant { Kind::Const } else { Kind::Variable };
        let mut last = None;
        for declarator in &declaration.declarations {
            if declarator.init.as_ref().is_some_and(|value| self.required(value).is_some()) {
                continue;
            }
            let BindingPattern::BindingIdentifier(id) = &declarator.id else {
                let mut names = declarator.id.get_binding_identifiers();
                names.sort_by_key(|name| name.span.start);
                for name in names {
                    let text = Self::name(&name.name);
                    self.reader.symbol(kind, &text, name.span, &self.scope, exported);
                }
                continue;
            };
            let kind = match &declarator.init {
                Some(value) if is_function(value) => Kind::Function,
                Some(Expression::ClassExpression(_)) => Kind::Class,
                _ => kind,
            };
            let name = Self::name(&id.name);
            last = self.reader.symbol(kind, &name, declarator.span, &self.scope, exported);
        }
        // With one name, what is called in its value is called by it.
        self.scope.body(if declaration.declarations.len() == 1 { last } else { None })
    }

    /// A function that is the value of a variable in the body of another one.
    pub(super) fn define_inner(&mut self, declaration: &VariableDeclaration<'a>) -> Scope {
        if let [declarator] = declaration.declarations.as_slice()
            && let BindingPattern::BindingIdentifier(id) = &declarator.id
            && declarator.init.as_ref().is_some_and(is_function)
        {
            return self.reader.inner_function(&Self::name(&id.name), declarator.span, &self.scope);
        }
        self.scope.clone()
    }

    /// Visits what is called, whose name is not a use of it.
    pub(super) fn visit_callee(&mut self, callee: &Expression<'a>) {
        match callee {
            Expression::Identifier(_) => {}
            Expression::StaticMemberExpression(member) => self.visit_expression(&member.object),
            _ => self.visit_expression(callee),
        }
    }

    pub(super) fn note_callee(&mut self, callee: &Expression<'a>, at: Span) {
        let (object, name) = match callee {
            Expression::Identifier(name) => {
                return self.reader.call(Self::name(&name.name), None, at, &self.scope);
            }
            Expression::Super(_) => {
                let receiver = Some("super".to_owned());
                return self.reader.call("constructor".to_owned(), receiver, at, &self.scope);
            }
            Expression::StaticMemberExpression(member) => (&member.object, Self::name(&member.property.name)),
            Expression::PrivateFieldExpression(member) => {
                (&member.object, Self::name(self.source.written(member.field.span)))
            }
            _ => return,
        };
        let receiver = match object {
            // What a text or a list can do is not in the tree.
            Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
            | Expression::ArrayExpression(_)
            | Expression::RegExpLiteral(_)
            | Expression::NumericLiteral(_) => return,
            Expression::Identifier(_)
            | Expression::ThisExpression(_)
            | Expression::Super(_)
            | Expression::StaticMemberExpression(_)
            | Expression::PrivateFieldExpression(_) => self.source.written(object.span()),
            _ => "",
        };
        // A chain of calls has no name; an empty receiver is some value.
        let receiver = if receiver.contains('(') { String::new() } else { Self::name(receiver) };
        self.reader.call(name, Some(receiver), at, &self.scope);
    }
}
