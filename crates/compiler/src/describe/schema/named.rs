//! Types by name: those of the file, type parameters, and those every program knows.

use oxc::ast::ast::{
    Expression, TSEnumDeclaration, TSEnumMemberName, TSInterfaceDeclaration, TSType, TSTypeName,
    TSTypeParameterInstantiation,
};
use serde_json::{Value, json};

use super::super::declarations::TypeDeclaration;
use super::super::values::{literal, number};
use super::super::zod::zod;
use super::combine::{enumeration, merge};
use super::{Env, Schemas};

impl<'a> Schemas<'_, 'a> {
    pub(super) fn reference(
        &mut self,
        name: &'a TSTypeName<'a>,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        env: &Env<'a>,
        depth: usize,
    ) -> Value {
        match name {
            TSTypeName::IdentifierReference(identifier) => {
                self.named(identifier.name.as_str(), arguments, env, depth)
            }
            TSTypeName::QualifiedName(qualified) => match &qualified.left {
                TSTypeName::IdentifierReference(_)
                    if matches!(qualified.right.name.as_str(), "infer" | "input" | "output" | "TypeOf") =>
                {
                    self.inferred(arguments)
                }
                TSTypeName::IdentifierReference(left) => {
                    self.enum_member(left.name.as_str(), qualified.right.name.as_str())
                }
                _ => Value::Bool(true),
            },
            TSTypeName::ThisExpression(_) => Value::Bool(true),
        }
    }

    fn named(
        &mut self,
        name: &'a str,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        env: &Env<'a>,
        depth: usize,
    ) -> Value {
        if let Some(bound) = env.get(name).cloned() {
            return bound.value.map_or(Value::Bool(true), |value| self.of(value, &bound.env, depth));
        }
        let source = self.source;
        let declared = source.declarations.types(name);
        if declared.is_empty() {
            return self.built_in(name, arguments, env, depth);
        }
        let is_generic = declared.iter().any(|declaration| match declaration {
            TypeDeclaration::Alias { parameters, .. } => parameters.is_some(),
            TypeDeclaration::Interface(interface) => interface.type_parameters.is_some(),
            TypeDeclaration::Enum(_) => false,
        });
        let key = definition_key(name);
        let reference = json!({ "$ref": format!("#/$defs/{key}") });
        if self.definitions.contains_key(&key) && !is_generic {
            return reference;
        }
        if self.open.contains(&name) {
            // Every use of a generic type may be another type, so a recursive one is not followed.
            if is_generic {
                return Value::Bool(true);
            }
            self.recursive.insert(name);
            return reference;
        }
        self.open.push(name);
        let mut schema: Option<Value> = None;
        for declaration in declared {
            let next = self.declared(declaration, arguments, env, depth);
            schema = Some(match schema {
                Some(known) => merge(known, next),
                None => next,
            });
        }
        self.open.pop();
        let schema = schema.unwrap_or(Value::Bool(true));
        if self.recursive.remove(name) {
            self.definitions.insert(key, schema);
            return reference;
        }
        schema
    }

    fn declared(
        &mut self,
        declaration: &TypeDeclaration<'a>,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        env: &Env<'a>,
        depth: usize,
    ) -> Value {
        match declaration {
            TypeDeclaration::Alias { value, parameters, foreign } => {
                let mut inner = Env::bind(*parameters, arguments, env);
                inner.foreign = *foreign;
                self.of(value, &inner, depth)
            }
            TypeDeclaration::Interface(interface) => self.interface(interface, arguments, env, depth),
            TypeDeclaration::Enum(enumeration) => self.enumeration(enumeration),
        }
    }

    fn interface(
        &mut self,
        interface: &'a TSInterfaceDeclaration<'a>,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        env: &Env<'a>,
        depth: usize,
    ) -> Value {
        let inner = Env::bind(interface.type_parameters.as_deref(), arguments, env);
        let mut whole: Option<Value> = None;
        for heritage in &interface.extends {
            let base =
                self.reference(&heritage.type_name, heritage.type_arguments.as_deref(), &inner, depth + 1);
            let base = self.resolved(base);
            // A base from elsewhere may have any property; what this one adds is known all the same.
            if base.get("type") == Some(&json!("object")) {
                whole = Some(whole.map_or(base.clone(), |known| merge(known, base)));
            }
        }
        let own = self.object(&interface.body.body, &inner, depth + 1);
        match whole {
            Some(known) if own.is_object() => merge(known, own),
            _ => own,
        }
    }

    /// The values of an enumeration; unknown when one of them has to be computed.
    fn enumeration(&mut self, declaration: &'a TSEnumDeclaration<'a>) -> Value {
        let mut values = Vec::new();
        for (_, value) in members(declaration) {
            match value {
                Some(value) if self.spend() => values.push(value),
                _ => return Value::Bool(true),
            }
        }
        enumeration(&values).unwrap_or(Value::Bool(true))
    }

    /// `z.infer<typeof schema>`.
    fn inferred(&mut self, arguments: Option<&'a TSTypeParameterInstantiation<'a>>) -> Value {
        match arguments.and_then(|arguments| arguments.params.first()) {
            Some(TSType::TSTypeQuery(query)) => {
                let schema = self.constant(query).map_or(Value::Bool(true), |value| zod(self.source, value));
                if self.spend_copy(&schema) { schema } else { Value::Bool(true) }
            }
            _ => Value::Bool(true),
        }
    }

    /// `Level.High` as a type.
    fn enum_member(&mut self, name: &str, member: &str) -> Value {
        let source = self.source;
        for declaration in source.declarations.types(name) {
            if let TypeDeclaration::Enum(declaration) = declaration
                && let Some((_, Some(value))) = members(declaration).find(|(known, _)| known == member)
            {
                return json!({ "const": value });
            }
        }
        Value::Bool(true)
    }
}

/// The members of an enumeration with their values, as far as those can be read.
pub(in super::super) fn members<'a>(
    declaration: &'a TSEnumDeclaration<'a>,
) -> impl Iterator<Item = (String, Option<Value>)> + use<'a> {
    let mut next = Some(0.0);
    declaration.body.members.iter().map(move |member| {
        let name = match &member.id {
            TSEnumMemberName::Identifier(identifier) => identifier.name.to_string(),
            TSEnumMemberName::String(text) | TSEnumMemberName::ComputedString(text) => text.value.to_string(),
            TSEnumMemberName::ComputedTemplateString(template) => {
                template.single_quasi().map(|text| text.to_string()).unwrap_or_default()
            }
        };
        let value = match &member.initializer {
            Some(initializer) => constant(initializer),
            None => next.and_then(number),
        };
        next = value.as_ref().and_then(Value::as_f64).map(|value| value + 1.0);
        (name, value)
    })
}

fn constant(initializer: &Expression<'_>) -> Option<Value> {
    literal(initializer).filter(|value| value.is_string() || value.is_number())
}

/// The name of a definition, made of letters that need no escape in a reference. Two names that differ in nothing
/// else stay two.
fn definition_key(name: &str) -> String {
    let mut key = String::new();
    for character in name.chars() {
        if character.is_ascii_alphanumeric() || character == '_' {
            key.push(character);
        } else {
            key.push_str(&format!("-{:x}-", u32::from(character)));
        }
    }
    key
}
