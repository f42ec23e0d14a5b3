//! The types and queries that each file knows, and what its types come to.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tgp_text::nearest;

use super::load;
use crate::problem::Findings;
use crate::suggest::hint;
use crate::syntax::Unit;
use crate::syntax::text::Span;
use crate::syntax::tree::{Item, Name, TypeExpr, TypeForm};
use crate::types::{MAX_SIZE, union};
use crate::{Field, QueryType, Record};

/// Types inside of each other, through names too. It bounds the stack of all code that walks a type.
const MAX_DEPTH: usize = 64;

const BUILT_IN: [&str; 5] = ["String", "Int", "Float", "Bool", "Any"];

/// What other languages call our types.
const ELSEWHERE: [(&str, &str); 12] = [
    ("number", "Float"),
    ("double", "Float"),
    ("boolean", "Bool"),
    ("integer", "Int"),
    ("long", "Int"),
    ("str", "String"),
    ("text", "String"),
    ("object", "{ field: Type }"),
    ("array", "[Type]"),
    ("list", "[Type]"),
    ("null", "Type?"),
    ("unknown", "Any"),
];

/// A declaration: the number of its file, and of the item in it.
pub(super) type Id = (usize, usize);

pub(super) struct Declarations<'a> {
    units: &'a [Unit],
    /// By file: the names it knows, its own and those of the files it imports.
    known: Vec<BTreeMap<String, Id>>,
    resolved: HashMap<Id, QueryType>,
    /// By file: names that it would know if all had been parsed; `None` where they can be any.
    lost: Vec<Option<BTreeSet<String>>>,
}

impl<'a> Declarations<'a> {
    pub fn new(units: &'a [Unit], findings: &mut Findings) -> Self {
        let (mut known, mut lost) = (Vec::new(), Vec::new());
        for (number, unit) in units.iter().enumerate() {
            let mut names: BTreeMap<String, Id> = BTreeMap::new();
            for (id, name) in names_of(unit, number) {
                if BUILT_IN.contains(&name.text.as_str()) {
                    let message = format!("`{}` is the name of a built-in type", name.text);
                    let problem = unit.text.problem(name.span, "duplicate-name", message);
                    findings.add(problem.help("choose another name"));
                } else if let Some(first) = names.get(&name.text) {
                    findings.add(duplicate(units, unit, name.span, &name.text, *first));
                } else {
                    names.insert(name.text.clone(), id);
                }
            }
            let mut unknown =
                (!unit.file.blind).then(|| unit.file.lost.iter().cloned().collect::<BTreeSet<_>>());
            for import in load::imports(unit) {
                let target = import.path.constant().and_then(|path| load::target(unit, &path.text));
                let other = target.and_then(|target| {
                    units.iter().position(|other| load::normal(&other.text.path) == target)
                });
                let Some((other, imported)) = other.and_then(|at| Some((at, units.get(at)?))) else {
                    unknown = None;
                    continue;
                };
                match &mut unknown {
                    // An unclosed text can hold any declaration of that file.
                    Some(_) if imported.file.blind => unknown = None,
                    Some(unknown) => unknown.extend(imported.file.lost.iter().cloned()),
                    None => {}
                }
                for (id, name) in names_of(imported, other) {
                    match names.get(&name.text) {
                        Some(first) if *first != id => {
                            findings.add(duplicate(units, unit, import.path.span, &name.text, *first));
                        }
                        _ => {
                            names.insert(name.text.clone(), id);
                        }
                    }
                }
            }
            known.push(names);
            lost.push(unknown);
        }
        Self { units, known, resolved: HashMap::new(), lost }
    }

    /// Resolves every declared type, so that problems in unused types are reported too.
    pub fn types(&mut self, findings: &mut Findings) {
        // Types that many others are made of are resolved once.
        let mut resolver = Resolver { declarations: self, findings, done: HashMap::new() };
        for (number, unit) in self.units.iter().enumerate() {
            for (at, item) in unit.file.items.iter().enumerate() {
                if matches!(item, Item::Type(_)) {
                    resolver.declared((number, at), &mut Vec::new(), 0);
                }
            }
        }
        self.resolved = resolver.done;
    }

    /// What a type that is written in a file means.
    pub fn resolve(&self, unit: usize, ty: &TypeExpr, findings: &mut Findings) -> QueryType {
        let mut resolver = Resolver { declarations: self, findings, done: HashMap::new() };
        let resolved = resolver.expression(unit, ty, &mut Vec::new(), 0);
        self.bounded(unit, ty.span, resolved, findings)
    }

    fn bounded(&self, unit: usize, span: Span, ty: QueryType, findings: &mut Findings) -> QueryType {
        if ty.size() <= MAX_SIZE {
            return ty;
        }
        if let Some(unit) = self.units.get(unit) {
            let message = format!("this type is made of more than {MAX_SIZE} parts");
            let problem = unit.text.problem(span, "too-large", message);
            findings.add(problem.help("use `Any` for the parts that need no check"));
        }
        QueryType::Any
    }

    /// A query that a file knows.
    pub fn query(&self, unit: usize, name: &str) -> Option<Id> {
        let id = *self.known.get(unit)?.get(name)?;
        matches!(self.item(id)?, Item::Query(_)).then_some(id)
    }

    /// Whether a name that a file does not know may be one that could not be parsed or read, which was
    /// already reported.
    pub fn may_be_lost(&self, unit: usize, name: &str) -> bool {
        let lost = self.lost.get(unit);
        lost.is_some_and(|lost| lost.as_ref().is_none_or(|names| names.contains(name)))
    }

    /// The names of the queries that a file knows.
    pub fn queries(&self, unit: usize) -> Vec<&str> {
        self.names(unit, |item| matches!(item, Item::Query(_)))
    }

    fn names(&self, unit: usize, wanted: impl Fn(&Item) -> bool) -> Vec<&str> {
        let known = self.known.get(unit).into_iter().flatten();
        known.filter(|(_, id)| self.item(**id).is_some_and(&wanted)).map(|(name, _)| name.as_str()).collect()
    }

    pub fn item(&self, (unit, at): Id) -> Option<&'a Item> {
        self.units.get(unit)?.file.items.get(at)
    }
}

fn names_of(unit: &Unit, number: usize) -> impl Iterator<Item = (Id, &Name)> {
    unit.file.items.iter().enumerate().filter_map(move |(at, item)| match item {
        Item::Type(item) => Some(((number, at), &item.name)),
        Item::Query(query) => Some(((number, at), &query.name)),
        Item::Import(_) => None,
    })
}

fn duplicate(units: &[Unit], unit: &Unit, span: Span, name: &str, first: Id) -> crate::QueryProblem {
    let problem = unit.text.problem(span, "duplicate-name", format!("`{name}` is there twice"));
    let problem = problem.help("give one of them another name");
    let place = units.get(first.0).and_then(|unit| {
        let (_, name) = names_of(unit, first.0).find(|(id, _)| *id == first)?;
        Some(unit.text.range(name.span))
    });
    match place {
        Some(place) => problem.label(place, "the first one"),
        None => problem,
    }
}

struct Resolver<'d, 'a> {
    declarations: &'d Declarations<'a>,
    findings: &'d mut Findings,
    done: HashMap<Id, QueryType>,
}

impl Resolver<'_, '_> {
    fn tell(
        &mut self,
        unit: usize,
        span: Span,
        kind: &'static str,
        message: String,
        help: Option<String>,
    ) -> QueryType {
        if let Some(unit) = self.declarations.units.get(unit) {
            self.findings.add(unit.text.problem(span, kind, message).maybe_help(help));
        }
        QueryType::Any
    }

    /// A declared type. `open` are those that are being resolved.
    fn declared(&mut self, id: Id, open: &mut Vec<Id>, depth: usize) -> QueryType {
        if let Some(ty) = self.declarations.resolved.get(&id).or_else(|| self.done.get(&id)) {
            return ty.clone();
        }
        let Some(Item::Type(item)) = self.declarations.item(id) else { return QueryType::Any };
        open.push(id);
        let ty = self.expression(id.0, &item.ty, open, depth + 1);
        open.pop();
        let ty = self.declarations.bounded(id.0, item.name.span, ty, self.findings);
        self.done.insert(id, ty.clone());
        ty
    }

    fn expression(&mut self, unit: usize, ty: &TypeExpr, open: &mut Vec<Id>, depth: usize) -> QueryType {
        if depth > MAX_DEPTH {
            let message = format!("this type is more than {MAX_DEPTH} levels deep");
            return self.tell(
                unit,
                ty.span,
                "too-deep",
                message,
                Some("use `Any` for what is inside".to_owned()),
            );
        }
        match &ty.form {
            TypeForm::Choice(text) => QueryType::Choice(vec![text.clone()]),
            TypeForm::List(item) => QueryType::list(self.expression(unit, item, open, depth + 1)),
            TypeForm::Optional(inner) => self.expression(unit, inner, open, depth + 1).nullable(),
            TypeForm::OneOf(types) => {
                let types: Vec<QueryType> =
                    types.iter().map(|ty| self.expression(unit, ty, open, depth + 1)).collect();
                union(types)
            }
            TypeForm::Record(fields) => {
                let mut record = Record::default();
                for field in fields {
                    let ty = self.expression(unit, &field.ty, open, depth + 1);
                    let ty = if field.optional { ty.nullable() } else { ty };
                    let optional =
                        field.optional || matches!(field.ty.form, TypeForm::Optional(_)) || ty.may_be_null();
                    if record.fields.insert(field.name.text.clone(), Field { ty, optional }).is_some() {
                        let message = format!("the field `{}` is there twice", field.name.text);
                        let help = Some("leave one of them out".to_owned());
                        self.tell(unit, field.name.span, "duplicate-name", message, help);
                    }
                }
                QueryType::Record(record)
            }
            TypeForm::Name(name) => self.name(unit, name, ty.span, open, depth),
        }
    }

    fn name(&mut self, unit: usize, name: &str, span: Span, open: &mut Vec<Id>, depth: usize) -> QueryType {
        match name {
            "String" => return QueryType::String,
            "Int" => return QueryType::Int,
            "Float" => return QueryType::Float,
            "Bool" => return QueryType::Bool,
            "Any" => return QueryType::Any,
            _ => {}
        }
        let id = self.declarations.known.get(unit).and_then(|known| known.get(name)).copied();
        match id.and_then(|id| Some((id, self.declarations.item(id)?))) {
            Some((id, Item::Type(_))) if open.contains(&id) => {
                let message = format!("the type `{name}` is inside of itself");
                let help = Some("use `Any` where it goes round".to_owned());
                self.tell(unit, span, "recursive-type", message, help)
            }
            Some((id, Item::Type(_))) => self.declared(id, open, depth),
            Some(_) => {
                let message = format!("`{name}` is a query, not a type");
                self.tell(unit, span, "unknown-type", message, None)
            }
            None if self.declarations.may_be_lost(unit, name) => QueryType::Any,
            None => {
                let declared = self.declarations.names(unit, |item| matches!(item, Item::Type(_)));
                let names: Vec<&str> = BUILT_IN.into_iter().chain(declared).collect();
                let elsewhere = ELSEWHERE.iter().find(|(other, _)| name.eq_ignore_ascii_case(other));
                let help = match (nearest(name, names.iter().copied()), elsewhere) {
                    (None, Some((_, ours))) => Some(format!("did you mean `{ours}`?")),
                    _ => hint(name, names.iter().copied()),
                };
                self.tell(unit, span, "unknown-type", format!("there is no type `{name}`"), help)
            }
        }
    }
}
