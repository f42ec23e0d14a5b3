//! How types relate: which one can be used for another, and the common type of several.

use tgp_text::truncate;

use super::{Field, QueryType, Record};

/// Where a type of a message is cut off.
const LONGEST_SHOWN: usize = 80;

/// Nodes of a type that is worked with; what is larger is `Any`. Types can double with every step that uses one twice,
/// so without a bound a page of steps would fill the memory.
pub(crate) const MAX_SIZE: usize = 2_000;

/// Types inside of each other, for the same reason: every step can wrap the one before.
const MAX_DEPTH: usize = 64;

/// Where one type does not fit another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeMismatch {
    /// The fields on the way there, empty when it is the whole.
    pub path: String,
    pub found: QueryType,
    pub wanted: QueryType,
    /// A field that is wanted and not there, or there and not wanted.
    pub field: Option<(FieldMismatch, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldMismatch {
    Missing,
    MayBeMissing,
    Unknown,
}

impl QueryType {
    /// This or null.
    pub(crate) fn nullable(self) -> QueryType {
        union([self, QueryType::Null])
    }

    pub(crate) fn may_be_null(&self) -> bool {
        match self {
            QueryType::Null => true,
            QueryType::OneOf(types) => types.contains(&QueryType::Null),
            _ => false,
        }
    }

    /// What it is when it is not null.
    pub(crate) fn without_null(&self) -> QueryType {
        match self {
            QueryType::OneOf(types) => union(types.iter().filter(|ty| **ty != QueryType::Null).cloned()),
            QueryType::Null => QueryType::Any,
            ty => ty.clone(),
        }
    }

    /// How many types it is made of, as far as it is worth counting. One that is too deep is too large.
    pub(crate) fn size(&self) -> usize {
        let mut size = 0;
        let mut rest = vec![(self, 1)];
        while let Some((ty, depth)) = rest.pop() {
            size += 1;
            if size > MAX_SIZE || depth > MAX_DEPTH {
                return MAX_SIZE + 1;
            }
            match ty {
                QueryType::Choice(texts) => size += texts.len(),
                QueryType::List(item) => rest.push((item, depth + 1)),
                QueryType::Record(record) => {
                    rest.extend(record.fields.values().map(|field| (&field.ty, depth + 1)));
                }
                QueryType::OneOf(types) => rest.extend(types.iter().map(|ty| (ty, depth + 1))),
                _ => {}
            }
        }
        size
    }

    /// For a message.
    pub(crate) fn shown(&self) -> String {
        truncate(&self.to_string(), LONGEST_SHOWN).into_owned()
    }

    pub(crate) fn list(item: QueryType) -> QueryType {
        QueryType::List(Box::new(item))
    }

    /// An object with these fields, all of them there, and no others.
    pub(crate) fn record(fields: impl IntoIterator<Item = (String, QueryType)>) -> QueryType {
        let fields = fields.into_iter().map(|(name, ty)| (name, Field { ty, optional: false })).collect();
        QueryType::Record(Record { fields, open: false })
    }
}

/// What a value can be that is one of these.
pub(crate) fn union(types: impl IntoIterator<Item = QueryType>) -> QueryType {
    let mut members: Vec<QueryType> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut null = false;
    let mut rest: Vec<QueryType> = types.into_iter().collect();
    rest.reverse();
    while let Some(ty) = rest.pop() {
        match ty {
            QueryType::Any => return QueryType::Any,
            QueryType::Null => null = true,
            QueryType::Choice(more) => texts.extend(more),
            QueryType::OneOf(inner) => rest.extend(inner.into_iter().rev()),
            ty if !members.contains(&ty) => members.push(ty),
            _ => {}
        }
    }
    if !texts.is_empty() && !members.contains(&QueryType::String) {
        texts.sort();
        texts.dedup();
        members.push(QueryType::Choice(texts));
    }
    if members.contains(&QueryType::Float) {
        members.retain(|ty| *ty != QueryType::Int);
    }
    if null {
        members.push(QueryType::Null);
    }
    match members.len() {
        0 => QueryType::Any,
        1 => members.pop().unwrap_or(QueryType::Any),
        _ => QueryType::OneOf(members),
    }
}

/// Whether a value of one type can be used where the other is expected, and if not, why.
pub(crate) fn fits(found: &QueryType, wanted: &QueryType) -> Result<(), TypeMismatch> {
    let misfit = || {
        Err(TypeMismatch { path: String::new(), found: found.clone(), wanted: wanted.clone(), field: None })
    };
    match (found, wanted) {
        (QueryType::Any, _) | (_, QueryType::Any) => Ok(()),
        (QueryType::OneOf(members), _) => {
            let all = members.iter().all(|member| fits(member, wanted).is_ok());
            if all { Ok(()) } else { misfit() }
        }
        (_, QueryType::OneOf(members)) => {
            let fitting = members.iter().any(|member| fits(found, member).is_ok());
            let alike: Vec<&QueryType> = members.iter().filter(|member| same_shape(found, member)).collect();
            match alike.as_slice() {
                _ if fitting => Ok(()),
                [only] => fits(found, only),
                _ => misfit(),
            }
        }
        (QueryType::Int, QueryType::Float) | (QueryType::Choice(_), QueryType::String) => Ok(()),
        (QueryType::Choice(some), QueryType::Choice(all)) if some.iter().all(|text| all.contains(text)) => {
            Ok(())
        }
        (QueryType::List(found), QueryType::List(wanted)) => {
            fits(found, wanted).map_err(|misfit| misfit.below("[]"))
        }
        (QueryType::Record(found), QueryType::Record(wanted)) => records(found, wanted),
        (found, wanted) if found == wanted => Ok(()),
        _ => misfit(),
    }
}

fn same_shape(one: &QueryType, other: &QueryType) -> bool {
    matches!(
        (one, other),
        (QueryType::List(_), QueryType::List(_)) | (QueryType::Record(_), QueryType::Record(_))
    )
}

fn records(found: &Record, wanted: &Record) -> Result<(), TypeMismatch> {
    let misfit = |kind, name: &str| {
        let (found, wanted) = (QueryType::Record(found.clone()), QueryType::Record(wanted.clone()));
        Err(TypeMismatch { path: String::new(), found, wanted, field: Some((kind, name.to_owned())) })
    };
    for (name, field) in &wanted.fields {
        match found.fields.get(name) {
            Some(given) if given.optional && !field.optional => {
                return misfit(FieldMismatch::MayBeMissing, name);
            }
            Some(given) => fits(&given.ty, &field.ty).map_err(|misfit| misfit.below(name))?,
            None if field.optional || found.open => {}
            None => return misfit(FieldMismatch::Missing, name),
        }
    }
    match found.fields.keys().find(|name| !wanted.fields.contains_key(*name)) {
        Some(name) if !wanted.open => misfit(FieldMismatch::Unknown, name),
        _ => Ok(()),
    }
}

impl TypeMismatch {
    fn below(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }
}
