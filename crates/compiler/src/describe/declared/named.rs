//! Types by name: those of the file, and those that every program knows.

use oxc::ast::ast::{
    IdentifierReference, TSInterfaceDeclaration, TSType, TSTypeName, TSTypeParameterInstantiation,
};
use oxc::semantic::SymbolFlags;
use tgp_contract::{DeclaredField, DeclaredObject, DeclaredType};

use super::super::declarations::TypeDeclaration;
use super::super::schema::members as enum_members;
use super::{MAX_DEPTH, MAX_OPEN, TypeReader, height};

/// What a name in a type refers to.
enum Referent {
    /// A type alias, an interface or an enumeration of the file.
    File,
    /// Nothing in the file.
    Global,
    /// A type parameter.
    Parameter,
    /// A class, an import.
    Other,
}

impl<'a> TypeReader<'_, 'a> {
    pub(super) fn reference(
        &mut self,
        name: &'a TSTypeName<'a>,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        depth: usize,
    ) -> DeclaredType {
        match name {
            TSTypeName::IdentifierReference(identifier) => match self.referent(identifier) {
                Referent::File => self.of_file(identifier.name.as_str(), arguments, depth),
                Referent::Parameter => self.argument_of(identifier.name.as_str(), depth),
                Referent::Global => self.built_in(identifier.name.as_str(), arguments, depth),
                Referent::Other => DeclaredType::Any,
            },
            // `Level.High`
            TSTypeName::QualifiedName(qualified) => match &qualified.left {
                TSTypeName::IdentifierReference(left) if matches!(self.referent(left), Referent::File) => {
                    self.enum_member(left.name.as_str(), qualified.right.name.as_str())
                }
                _ => DeclaredType::Any,
            },
            TSTypeName::ThisExpression(_) => DeclaredType::Any,
        }
    }

    fn referent(&self, identifier: &IdentifierReference<'a>) -> Referent {
        let scoping = &self.source.scoping;
        let Some(reference) = identifier.reference_id.get() else { return Referent::Other };
        let Some(symbol) = scoping.get_reference(reference).symbol_id() else { return Referent::Global };
        let flags = scoping.symbol_flags(symbol);
        if flags.intersects(SymbolFlags::TypeParameter) {
            return Referent::Parameter;
        }
        let others = SymbolFlags::Class
            | SymbolFlags::Import
            | SymbolFlags::TypeImport
            | SymbolFlags::Namespace.difference(SymbolFlags::Enum);
        let is_type = flags.intersects(SymbolFlags::TypeAlias | SymbolFlags::Interface | SymbolFlags::Enum);
        let is_at_top = scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
        if is_type && is_at_top && !flags.intersects(others) { Referent::File } else { Referent::Other }
    }

    /// A type of the file. It is read once, so that it may mention itself.
    fn of_file(
        &mut self,
        name: &'a str,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        depth: usize,
    ) -> DeclaredType {
        if let Some(at) = self.known.get(name) {
            return DeclaredType::Named(*at);
        }
        if self.open >= MAX_OPEN {
            return DeclaredType::Any;
        }
        let source = self.source;
        let declared = source.declarations.types(name);
        let is_plain = |declaration: &TypeDeclaration<'a>| match declaration {
            TypeDeclaration::Alias { parameters, foreign, .. } => parameters.is_none() && !foreign,
            TypeDeclaration::Interface(interface) => interface.type_parameters.is_none(),
            TypeDeclaration::Enum(_) => true,
        };
        if declared.is_empty() {
            return DeclaredType::Any;
        }
        if !declared.iter().all(is_plain) {
            return self.instance(name, arguments, depth);
        }
        // The parameters of a generic type that mentions this one are not its own.
        let bound = std::mem::take(&mut self.bound);
        let at = self.named.len();
        self.known.insert(name, at);
        self.named.push(DeclaredType::Any);
        self.open += 1;
        let ty = match declared {
            [TypeDeclaration::Alias { value, .. }] => self.of(value, 0),
            [TypeDeclaration::Enum(_), ..] => self.enumeration(declared),
            _ => self.interfaces(declared),
        };
        self.open -= 1;
        self.bound = bound;
        if let Some(place) = self.named.get_mut(at) {
            place.clone_from(&ty);
        }
        // What is short is shown where it is used.
        match ty {
            DeclaredType::Object(_) | DeclaredType::OneOf(_) | DeclaredType::List(_) => {
                DeclaredType::Named(at)
            }
            other => other,
        }
    }

    /// A generic type of the file with its arguments. One that mentions itself is not known inside of itself.
    fn instance(
        &mut self,
        name: &'a str,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        depth: usize,
    ) -> DeclaredType {
        let source = self.source;
        let [declaration] = source.declarations.types(name) else { return DeclaredType::Any };
        let parameters = match declaration {
            TypeDeclaration::Alias { parameters, foreign: false, .. } => *parameters,
            TypeDeclaration::Interface(interface) => interface.type_parameters.as_deref(),
            TypeDeclaration::Alias { .. } | TypeDeclaration::Enum(_) => None,
        };
        let Some(parameters) = parameters.filter(|_| self.open < MAX_OPEN && !self.instances.contains(&name))
        else {
            return DeclaredType::Any;
        };
        let given = arguments.map_or(&[][..], |arguments| &arguments.params);
        let given: Vec<DeclaredType> = given.iter().map(|argument| self.of(argument, depth)).collect();
        let outer = std::mem::take(&mut self.bound);
        self.instances.push(name);
        self.open += 1;
        for (at, parameter) in parameters.params.iter().enumerate() {
            let value = match (given.get(at), &parameter.default) {
                (Some(given), _) => given.clone(),
                (None, Some(default)) => self.of(default, depth),
                (None, None) => DeclaredType::Any,
            };
            self.bound.push((parameter.name.name.as_str(), value));
        }
        let ty = match declaration {
            TypeDeclaration::Alias { value, .. } => self.of(value, depth),
            TypeDeclaration::Interface(interface) => self.interface(interface, depth),
            TypeDeclaration::Enum(_) => DeclaredType::Any,
        };
        self.open -= 1;
        self.instances.pop();
        self.bound = outer;
        ty
    }

    /// What a type parameter stands for, unless types would be too deep or too many with it.
    fn argument_of(&mut self, name: &str, depth: usize) -> DeclaredType {
        let Some((_, ty)) = self.bound.iter().find(|(known, _)| *known == name) else {
            return DeclaredType::Any;
        };
        let ty = ty.clone();
        if depth + height(&ty) <= MAX_DEPTH && self.spend(&ty, 1) { ty } else { DeclaredType::Any }
    }

    /// Several declarations of one interface are one type.
    fn interfaces(&mut self, declared: &[TypeDeclaration<'a>]) -> DeclaredType {
        let mut whole = DeclaredObject::default();
        for declaration in declared {
            let TypeDeclaration::Interface(interface) = declaration else { return DeclaredType::Any };
            match self.interface(interface, 0) {
                DeclaredType::Object(object) => {
                    whole.fields.extend(object.fields);
                    whole.others = match (whole.others, object.others) {
                        (None, others) | (others, None) => others,
                        (Some(_), Some(_)) => Some(Box::new(DeclaredType::Any)),
                    };
                }
                // An empty one beside others adds nothing.
                DeclaredType::Any if interface.body.body.is_empty() && interface.extends.is_empty() => {}
                _ => return DeclaredType::Any,
            }
        }
        if whole == DeclaredObject::default() { DeclaredType::Any } else { DeclaredType::Object(whole) }
    }

    fn interface(&mut self, interface: &'a TSInterfaceDeclaration<'a>, depth: usize) -> DeclaredType {
        let depth = depth + 1;
        let mut whole = DeclaredObject::default();
        let mut is_open = false;
        for heritage in &interface.extends {
            let base = self.reference(&heritage.type_name, heritage.type_arguments.as_deref(), depth);
            match self.copy(&base) {
                Some(object) => {
                    is_open |= object.others.is_some();
                    whole.fields.extend(object.fields);
                }
                // A base from elsewhere may have any field; what this one adds is known all the same.
                None => is_open = true,
            }
        }
        match self.members(&interface.body.body, depth) {
            DeclaredType::Object(own) => {
                whole.others = own.others;
                whole.fields.extend(own.fields);
            }
            _ if !interface.body.body.is_empty() => return DeclaredType::Any,
            _ => {}
        }
        if is_open {
            whole.others = Some(Box::new(DeclaredType::Any));
        }
        if whole == DeclaredObject::default() { DeclaredType::Any } else { DeclaredType::Object(whole) }
    }

    /// The values of an enumeration; unknown when one of them has to be computed.
    fn enumeration(&mut self, declared: &[TypeDeclaration<'a>]) -> DeclaredType {
        let mut options = Vec::new();
        for declaration in declared {
            let TypeDeclaration::Enum(declaration) = declaration else { return DeclaredType::Any };
            for (_, value) in enum_members(declaration) {
                self.left = self.left.saturating_sub(1);
                match value {
                    Some(value) if self.left > 0 => options.push(DeclaredType::Literal(value)),
                    _ => return DeclaredType::Any,
                }
            }
        }
        DeclaredType::OneOf(options)
    }

    fn enum_member(&mut self, name: &str, member: &str) -> DeclaredType {
        let source = self.source;
        let found = source.declarations.types(name).iter().find_map(|declaration| match declaration {
            TypeDeclaration::Enum(declaration) => {
                enum_members(declaration).find(|(known, _)| known == member).and_then(|(_, value)| value)
            }
            _ => None,
        });
        found.map_or(DeclaredType::Any, DeclaredType::Literal)
    }

    fn built_in(
        &mut self,
        name: &str,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        depth: usize,
    ) -> DeclaredType {
        let argument = |at: usize| arguments.and_then(|arguments| arguments.params.get(at));
        match name {
            "Array" | "ReadonlyArray" => DeclaredType::List(Box::new(self.nth(argument(0), depth))),
            "Promise" | "PromiseLike" | "Readonly" => self.nth(argument(0), depth),
            "String" => DeclaredType::String,
            "Number" => DeclaredType::Number,
            "Boolean" => DeclaredType::Boolean,
            "Date" => DeclaredType::Date,
            "Record" => {
                let (keys, value) = (self.nth(argument(0), depth), self.nth(argument(1), depth));
                self.record(&keys, value)
            }
            "Partial" | "Required" => {
                let inner = self.nth(argument(0), depth);
                self.with_optional(&inner, name == "Partial")
            }
            "Pick" | "Omit" => {
                let (inner, keys) = (self.nth(argument(0), depth), self.nth(argument(1), depth));
                self.filtered(&inner, &keys, name == "Pick")
            }
            _ => DeclaredType::Any,
        }
    }

    fn nth(&mut self, argument: Option<&'a TSType<'a>>, depth: usize) -> DeclaredType {
        argument.map_or(DeclaredType::Any, |argument| self.of(argument, depth))
    }

    /// `Record<K, V>`
    fn record(&mut self, keys: &DeclaredType, value: DeclaredType) -> DeclaredType {
        let Some(names) = self.texts(keys) else {
            return DeclaredType::Object(DeclaredObject {
                others: Some(Box::new(value)),
                ..DeclaredObject::default()
            });
        };
        if names.is_empty() || !self.spend(&value, names.len()) {
            return DeclaredType::Any;
        }
        let optional = self.may_be_absent(&value);
        let fields =
            names.into_iter().map(|name| (name, DeclaredField { ty: value.clone(), optional })).collect();
        DeclaredType::Object(DeclaredObject { fields, others: None })
    }

    /// An object type that is to be changed; none when it is something else, or too much.
    fn copy(&mut self, ty: &DeclaredType) -> Option<DeclaredObject> {
        let DeclaredType::Object(object) = self.resolved(ty) else { return None };
        let object = object.clone();
        self.spend(&DeclaredType::Object(object.clone()), 1).then_some(object)
    }

    /// `Partial` and `Required`.
    fn with_optional(&mut self, inner: &DeclaredType, is_optional: bool) -> DeclaredType {
        let Some(mut object) = self.copy(inner) else { return DeclaredType::Any };
        for field in object.fields.values_mut() {
            field.optional = is_optional || self.may_be_absent(&field.ty);
        }
        DeclaredType::Object(object)
    }

    /// `Pick` and `Omit`.
    fn filtered(&mut self, inner: &DeclaredType, keys: &DeclaredType, keeps: bool) -> DeclaredType {
        let (Some(mut object), Some(names)) = (self.copy(inner), self.texts(keys)) else {
            return DeclaredType::Any;
        };
        object.fields.retain(|name, _| names.contains(name) == keeps);
        if object.fields.is_empty() { DeclaredType::Any } else { DeclaredType::Object(object) }
    }

    /// The texts that a type is made of, when it is made of nothing else. Numbers are keys as text.
    fn texts(&self, ty: &DeclaredType) -> Option<Vec<String>> {
        let text = |ty: &DeclaredType| match self.resolved(ty) {
            DeclaredType::Literal(serde_json::Value::String(text)) => Some(text.clone()),
            DeclaredType::Literal(serde_json::Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        match self.resolved(ty) {
            DeclaredType::OneOf(options) => options.iter().map(text).collect(),
            ty => text(ty).map(|text| vec![text]),
        }
    }
}
