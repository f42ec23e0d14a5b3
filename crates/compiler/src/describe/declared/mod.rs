//! The declared types of a tool: what its annotations say, and nothing that would have to be guessed.
//!
//! A call is refused by these types, so what is not certain is [`DeclaredType::Any`]: imported, conditional and
//! mapped types, classes, and whatever a comment says.

mod named;

use std::collections::BTreeMap;

use oxc::ast::ast::{
    BindingPattern, Declaration, FormalParameter, PropertyKey, Statement, TSSignature, TSTupleElement,
    TSTupleType, TSType, TSTypeOperatorOperator,
};
use tgp_contract::{DeclaredField, DeclaredObject, DeclaredType, DeclaredTypes};

use super::Source;
use super::arguments::contract;
use super::entry::{Kind, Tool};
use super::outcome;
use super::reads::{Read, Subject, pattern_names, reads};
use super::schema::peel_type;
use super::values::literal_type;

/// How many types are read for one tool; what comes after them is not checked. The largest hand-written types of
/// arguments have some dozens, and a generated enumeration some hundreds.
const MAX_TYPES: usize = 4_000;

/// How deep a type nests; what is deeper is not checked. Their JSON must stay readable, too.
const MAX_DEPTH: usize = 12;

/// Types of the file that are read inside of each other; further ones are not checked.
const MAX_OPEN: usize = 24;

/// Alternatives that are looked at to find out whether a field may be left out. With more of them it may.
const MAX_ALTERNATIVES: usize = 1_000;

/// The types that a tool declares.
pub(super) fn declared(source: &Source<'_>) -> DeclaredTypes {
    let tool = Tool::find(source);
    let mut reader = TypeReader {
        source,
        left: MAX_TYPES,
        named: Vec::new(),
        known: BTreeMap::new(),
        open: 0,
        bound: Vec::new(),
        instances: Vec::new(),
    };
    let parameter = tool.callable.and_then(|callable| callable.params().items.first());
    let parameters = parameter_type(source, &tool, parameter);
    let parameters = parameters.map_or(DeclaredType::Any, |ty| reader.of(ty, 0));
    let result = match tool.callable {
        Some(callable) if !callable.is_generator() => {
            outcome::annotation(source, &tool).map_or(DeclaredType::Any, |(ty, _)| reader.of(ty, 0))
        }
        _ => DeclaredType::Any,
    };
    let is_optional = |parameter: &FormalParameter<'_>| parameter.optional || parameter.initializer.is_some();
    let mut types = DeclaredTypes {
        parameters,
        may_be_empty: parameter.is_some_and(is_optional),
        more_parameters: tool
            .callable
            .is_some_and(|callable| callable.params().items.iter().skip(1).any(|other| !is_optional(other))),
        result,
        named: reader.named,
    };
    with_defaults(source, parameter, &mut types);
    types
}

/// The annotation of the arguments: of the parameter, of the function type that the tool is given, or of the `args` that
/// a script declares.
fn parameter_type<'a>(
    source: &Source<'a>,
    tool: &Tool<'a>,
    parameter: Option<&'a FormalParameter<'a>>,
) -> Option<&'a TSType<'a>> {
    if tool.kind == Kind::Script {
        return source.program.body.iter().find_map(script_type);
    }
    if let Some(own) = parameter.and_then(|parameter| parameter.type_annotation.as_deref()) {
        return Some(&own.type_annotation);
    }
    // A function that ignores its arguments takes all of them.
    parameter?;
    let outside = contract(source, tool)?.params.items.first()?.type_annotation.as_deref()?;
    Some(&outside.type_annotation)
}

/// `declare const args: T`
fn script_type<'a>(statement: &'a Statement<'a>) -> Option<&'a TSType<'a>> {
    let Some(Declaration::VariableDeclaration(variables)) = statement.as_declaration() else { return None };
    let declarator = variables.declarations.iter().find(|declarator| {
        variables.declare && declarator.id.get_identifier_name().is_some_and(|name| name == "args")
    })?;
    declarator.type_annotation.as_deref().map(|annotation| &annotation.type_annotation)
}

/// A field with a default may be left out, whatever its type says.
fn with_defaults(source: &Source<'_>, parameter: Option<&FormalParameter<'_>>, types: &mut DeclaredTypes) {
    let found: Vec<Read> = match parameter.map(|parameter| &parameter.pattern) {
        Some(BindingPattern::ObjectPattern(pattern)) => pattern_names(pattern),
        Some(BindingPattern::BindingIdentifier(name)) => name
            .symbol_id
            .get()
            .map(|symbol| reads(source, Subject::Symbol(symbol)).found)
            .unwrap_or_default(),
        _ => return,
    };
    let names: Vec<String> =
        found.into_iter().filter(|read| read.has_default).map(|read| read.name).collect();
    if names.is_empty() {
        return;
    }
    let mut root = types.resolve(&types.parameters).clone();
    if let DeclaredType::Object(object) = &mut root {
        for name in names {
            if let Some(field) = object.fields.get_mut(&name) {
                field.optional = true;
            }
        }
        types.parameters = root;
    }
}

/// Reads types, each one of the file once.
struct TypeReader<'t, 'a> {
    source: &'t Source<'a>,
    left: usize,
    named: Vec<DeclaredType>,
    known: BTreeMap<&'a str, usize>,
    /// How many types of the file are being read.
    open: usize,
    /// What the type parameters of the generic type stand for that is being read.
    bound: Vec<(&'a str, DeclaredType)>,
    /// The generic types that are being read.
    instances: Vec<&'a str>,
}

impl<'a> TypeReader<'_, 'a> {
    fn of(&mut self, ty: &'a TSType<'a>, depth: usize) -> DeclaredType {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > MAX_DEPTH {
            return DeclaredType::Any;
        }
        let depth = depth + 1;
        match peel_type(ty) {
            TSType::TSStringKeyword(_) | TSType::TSTemplateLiteralType(_) => DeclaredType::String,
            TSType::TSNumberKeyword(_) => DeclaredType::Number,
            TSType::TSBooleanKeyword(_) => DeclaredType::Boolean,
            TSType::TSNullKeyword(_) => DeclaredType::Null,
            TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_) => DeclaredType::Absent,
            TSType::TSNeverKeyword(_) => DeclaredType::OneOf(Vec::new()),
            TSType::TSLiteralType(literal) => {
                literal_type(&literal.literal).map_or(DeclaredType::Any, DeclaredType::Literal)
            }
            TSType::TSArrayType(array) => DeclaredType::List(Box::new(self.of(&array.element_type, depth))),
            TSType::TSTupleType(tuple) => self.tuple(tuple, depth),
            TSType::TSTypeLiteral(literal) => self.members(&literal.members, depth),
            TSType::TSUnionType(union) => {
                let mut options = Vec::new();
                for option in &union.types {
                    match self.of(option, depth) {
                        DeclaredType::OneOf(inner) => options.extend(inner),
                        option => options.push(option),
                    }
                }
                // One that is not known may be anything.
                if options.contains(&DeclaredType::Any) {
                    return DeclaredType::Any;
                }
                DeclaredType::OneOf(options)
            }
            TSType::TSIntersectionType(intersection) => {
                let parts = intersection.types.iter().map(|part| self.of(part, depth)).collect();
                self.meet(parts)
            }
            TSType::TSTypeOperatorType(operator) if operator.operator == TSTypeOperatorOperator::Readonly => {
                self.of(&operator.type_annotation, depth)
            }
            TSType::TSTypeReference(reference) => {
                self.reference(&reference.type_name, reference.type_arguments.as_deref(), depth)
            }
            // Functions, symbols and big integers have no JSON; the rest would need a type checker.
            _ => DeclaredType::Any,
        }
    }

    fn tuple(&mut self, tuple: &'a TSTupleType<'a>, depth: usize) -> DeclaredType {
        let (mut items, mut required) = (Vec::new(), 0);
        for (at, element) in tuple.element_types.iter().enumerate() {
            let (mut element, mut is_optional) = (element, false);
            if let TSTupleElement::TSNamedTupleMember(named) = element {
                element = &named.element_type;
                is_optional = named.optional;
            }
            let item = match element {
                TSTupleElement::TSRestType(inner) => {
                    // What follows a rest is counted from the end.
                    if at + 1 < tuple.element_types.len() {
                        return DeclaredType::List(Box::new(DeclaredType::Any));
                    }
                    let list = match &inner.type_annotation {
                        TSType::TSNamedTupleMember(named) => named.element_type.as_ts_type(),
                        value => Some(value),
                    };
                    let list = list.map_or(DeclaredType::Any, |list| self.of(list, depth));
                    let rest = match list {
                        DeclaredType::List(item) => item,
                        _ => Box::new(DeclaredType::Any),
                    };
                    return DeclaredType::Tuple { items, required, rest: Some(rest) };
                }
                TSTupleElement::TSOptionalType(inner) => {
                    is_optional = true;
                    self.of(&inner.type_annotation, depth)
                }
                other => other.as_ts_type().map_or(DeclaredType::Any, |inner| self.of(inner, depth)),
            };
            required += usize::from(!is_optional && required == items.len());
            items.push(item);
        }
        DeclaredType::Tuple { items, required, rest: None }
    }

    /// A type literal, or the body of an interface.
    fn members(&mut self, members: &'a [TSSignature<'a>], depth: usize) -> DeclaredType {
        let mut object = DeclaredObject::default();
        for member in members {
            match member {
                TSSignature::TSPropertySignature(property) => {
                    let Some(name) = static_key(&property.key, property.computed) else {
                        object.others = Some(Box::new(DeclaredType::Any));
                        continue;
                    };
                    let ty = property.type_annotation.as_deref();
                    let ty = ty.map_or(DeclaredType::Any, |known| self.of(&known.type_annotation, depth));
                    let optional = property.optional || self.may_be_absent(&ty);
                    object.fields.insert(name, DeclaredField { ty, optional });
                }
                TSSignature::TSMethodSignature(method) => {
                    if let Some(name) = static_key(&method.key, method.computed) {
                        let field = DeclaredField { ty: DeclaredType::Any, optional: true };
                        object.fields.insert(name, field);
                    }
                }
                TSSignature::TSIndexSignature(index) => {
                    let is_text = matches!(
                        peel_type(&index.parameter.type_annotation.type_annotation),
                        TSType::TSStringKeyword(_)
                    );
                    let others = match is_text && object.others.is_none() {
                        true => self.of(&index.type_annotation.type_annotation, depth),
                        false => DeclaredType::Any,
                    };
                    object.others = Some(Box::new(others));
                }
                TSSignature::TSCallSignatureDeclaration(_)
                | TSSignature::TSConstructSignatureDeclaration(_) => return DeclaredType::Any,
            }
        }
        // `{}` is every value but null.
        if object.fields.is_empty() && object.others.is_none() {
            return DeclaredType::Any;
        }
        DeclaredType::Object(object)
    }

    /// Whether JSON may leave out a value of this type. Of one that is not known it may.
    fn may_be_absent(&self, ty: &DeclaredType) -> bool {
        let mut rest = vec![ty];
        for _ in 0..MAX_ALTERNATIVES {
            match rest.pop().map(|ty| self.resolved(ty)) {
                None => return false,
                Some(DeclaredType::Any | DeclaredType::Absent) => return true,
                Some(DeclaredType::OneOf(options)) => rest.extend(options),
                Some(_) => {}
            }
        }
        true
    }

    /// Pays for copies of a type as if each part of them were read; false when that is too much.
    fn spend(&mut self, ty: &DeclaredType, times: usize) -> bool {
        self.left = self.left.saturating_sub(weight(ty).saturating_mul(times));
        self.left > 0
    }

    /// What a name stands for, as far as it was read: one that is being read is not known yet.
    fn resolved<'s>(&'s self, ty: &'s DeclaredType) -> &'s DeclaredType {
        let mut found = ty;
        for _ in 0..MAX_DEPTH {
            let DeclaredType::Named(at) = found else { return found };
            found = self.named.get(*at).unwrap_or(&DeclaredType::Any);
        }
        &DeclaredType::Any
    }

    /// The type of an intersection.
    fn meet(&mut self, parts: Vec<DeclaredType>) -> DeclaredType {
        // `string & { brand: … }` is a string to everyone but the type checker.
        let is_plain = |part: &&DeclaredType| {
            use DeclaredType::{Boolean, Literal, Number, String};
            matches!(self.resolved(part), String | Number | Boolean | Literal(_))
        };
        if let Some(plain) = parts.iter().find(is_plain) {
            return plain.clone();
        }
        let mut whole = DeclaredObject::default();
        let mut is_open = false;
        for part in parts {
            let object = match self.resolved(&part).clone() {
                DeclaredType::Object(object) => object,
                // What is known of the other parts holds all the same.
                DeclaredType::Any => {
                    is_open = true;
                    continue;
                }
                _ => return DeclaredType::Any,
            };
            // With an index signature in one part, the fields of the others are anything beside it.
            is_open |= object.others.is_some();
            if !self.spend(&DeclaredType::Object(object.clone()), 1) {
                return DeclaredType::Any;
            }
            for (name, field) in object.fields {
                let both = match whole.fields.remove(&name) {
                    Some(known) => {
                        let optional = known.optional && field.optional;
                        let mut types = match known.ty {
                            DeclaredType::AllOf(types) => types,
                            ty => vec![ty],
                        };
                        types.push(field.ty);
                        DeclaredField { ty: DeclaredType::AllOf(types), optional }
                    }
                    None => field,
                };
                whole.fields.insert(name, both);
            }
        }
        if is_open {
            whole.others = Some(Box::new(DeclaredType::Any));
        }
        if whole.fields.is_empty() { DeclaredType::Any } else { DeclaredType::Object(whole) }
    }
}

/// How many types a type is made of.
fn weight(ty: &DeclaredType) -> usize {
    let sum = |types: &[DeclaredType]| types.iter().map(weight).sum::<usize>();
    1 + match ty {
        DeclaredType::List(item) => weight(item),
        DeclaredType::Tuple { items, rest, .. } => sum(items) + rest.as_deref().map_or(0, weight),
        DeclaredType::Object(object) => {
            object.fields.values().map(|field| weight(&field.ty)).sum::<usize>()
                + object.others.as_deref().map_or(0, weight)
        }
        DeclaredType::OneOf(types) | DeclaredType::AllOf(types) => sum(types),
        _ => 0,
    }
}

/// How many types are inside of each other.
fn height(ty: &DeclaredType) -> usize {
    let most = |types: &[DeclaredType]| types.iter().map(height).max().unwrap_or_default();
    1 + match ty {
        DeclaredType::List(item) => height(item),
        DeclaredType::Tuple { items, rest, .. } => most(items).max(rest.as_deref().map_or(0, height)),
        DeclaredType::Object(object) => {
            let fields = object.fields.values().map(|field| height(&field.ty)).max();
            fields.unwrap_or_default().max(object.others.as_deref().map_or(0, height))
        }
        DeclaredType::OneOf(types) | DeclaredType::AllOf(types) => most(types),
        _ => 0,
    }
}

/// The name of a field, when it is written out.
fn static_key(key: &PropertyKey<'_>, computed: bool) -> Option<String> {
    key.static_name().filter(|_| !computed).map(std::borrow::Cow::into_owned)
}
