//! Aggregates, and the four quantifiers over a list, which are aggregates over its items.

use std::collections::HashSet;

use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context};
use rusqlite::types::{Value as Sql, ValueRef};

use super::operators::{float, list, overflow};
use super::{pure, truth};
use crate::cypher::error::{met, met_by};
use crate::cypher::execute::made;
use crate::cypher::key::key;
use crate::cypher::value::{MAX_ITEMS, Value};

/// How many bytes the values that one aggregate keeps may have.
const MAX_BYTES: usize = 64 << 20;

/// What is done with the values of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Collect,
    /// As `Collect`, with nulls: what a comprehension gives.
    Gather,
    Count,
    Sum,
    Average,
    Least,
    Greatest,
    /// The deviation of a sample.
    Sample,
    /// The deviation of a population.
    Population,
    Continuous,
    Discrete,
}

#[derive(Clone, Copy)]
struct Over {
    name: &'static str,
    kind: Kind,
    distinct: bool,
}

#[derive(Default)]
struct State {
    values: Vec<Value>,
    seen: HashSet<Vec<u8>>,
    bytes: usize,
    percentile: Option<Value>,
}

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let all = [
        ("cy_collect", Kind::Collect, 1),
        ("cy_gather", Kind::Gather, -1),
        ("cy_number", Kind::Count, 1),
        ("cy_sum", Kind::Sum, 1),
        ("cy_avg", Kind::Average, 1),
        ("cy_min", Kind::Least, 1),
        ("cy_max", Kind::Greatest, 1),
        ("cy_stdev", Kind::Sample, 1),
        ("cy_stdevp", Kind::Population, 1),
        ("cy_percentilecont", Kind::Continuous, 2),
        ("cy_percentiledisc", Kind::Discrete, 2),
    ];
    for (name, kind, arity) in all {
        connection.create_aggregate_function(name, arity, pure(), Over { name, kind, distinct: false })?;
        let distinct = format!("{name}_d");
        connection.create_aggregate_function(
            distinct.as_str(),
            arity,
            pure(),
            Over { name, kind, distinct: true },
        )?;
    }
    connection.create_aggregate_function("cy_all", 2, pure(), Quantifier::All)?;
    connection.create_aggregate_function("cy_any", 2, pure(), Quantifier::Any)?;
    connection.create_aggregate_function("cy_none", 2, pure(), Quantifier::None)?;
    connection.create_aggregate_function("cy_single", 2, pure(), Quantifier::Single)
}

impl Over {
    /// What a whole group gives.
    fn value(&self, values: Vec<Value>, percentile: Option<Value>) -> rusqlite::Result<Value> {
        Ok(match self.kind {
            Kind::Collect | Kind::Gather => list(values)?,
            Kind::Count => Value::Int(i64::try_from(values.len()).unwrap_or(i64::MAX)),
            Kind::Sum => sum(&values)?,
            Kind::Average => average(&values)?,
            Kind::Least | Kind::Greatest => values.into_iter().next().unwrap_or(Value::Null),
            Kind::Sample => deviation(&values, 1)?,
            Kind::Population => deviation(&values, 0)?,
            Kind::Continuous => continuous(&values, percentile)?,
            Kind::Discrete => discrete(&values, percentile)?,
        })
    }
}

impl Aggregate<State, Sql> for Over {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<State> {
        Ok(State::default())
    }

    fn step(&self, context: &mut Context<'_>, state: &mut State) -> rusqlite::Result<()> {
        let raw = context.get_raw(0);
        if raw == ValueRef::Null && self.kind != Kind::Gather {
            return Ok(());
        }
        if matches!(self.kind, Kind::Continuous | Kind::Discrete) && state.percentile.is_none() {
            state.percentile = Some(Value::read(context.get_raw(1))?);
        }
        let value = Value::read(raw)?;
        if self.distinct && !state.seen.insert(key(&value)) {
            return Ok(());
        }
        if matches!(self.kind, Kind::Least | Kind::Greatest) {
            return keep_extreme(self.kind, state, value);
        }
        state.bytes += raw.as_bytes().map_or(16, <[u8]>::len) + 16;
        if state.bytes > MAX_BYTES || state.values.len() >= MAX_ITEMS {
            let message = format!("an aggregate has more than {MAX_ITEMS} values or {MAX_BYTES} bytes");
            return Err(met("LimitExceeded", message));
        }
        state.values.push(value);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<State>) -> rusqlite::Result<Sql> {
        let State { values, percentile, .. } = state.unwrap_or_default();
        let value = self.value(values, percentile).map_err(|error| met_by(self.name, error))?;
        made(value.into_sql()?)
    }
}

fn keep_extreme(kind: Kind, state: &mut State, value: Value) -> rusqlite::Result<()> {
    let better = state.values.first().is_none_or(|best| {
        let ordering = key(&value).cmp(&key(best));
        if kind == Kind::Least { ordering.is_lt() } else { ordering.is_gt() }
    });
    if better {
        state.values = vec![value];
    }
    Ok(())
}

fn number(value: &Value) -> rusqlite::Result<f64> {
    float(value)
        .ok_or_else(|| met("InvalidArgumentType", format!("a number is needed, this is {}", value.noun())))
}

fn sum(values: &[Value]) -> rusqlite::Result<Value> {
    let mut whole = 0_i64;
    let mut broken = 0.0;
    let mut has_float = false;
    for value in values {
        match value {
            Value::Int(number) => whole = whole.checked_add(*number).ok_or_else(overflow)?,
            other => {
                broken += number(other)?;
                has_float = true;
            }
        }
    }
    if !has_float {
        return Ok(Value::Int(whole));
    }
    Ok(Value::Float(broken + number(&Value::Int(whole))?))
}

fn numbers(values: &[Value]) -> rusqlite::Result<Vec<f64>> {
    values.iter().map(number).collect()
}

fn count_of(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a group has at most a million values")]
    let count = values.len() as f64;
    count
}

fn average(values: &[Value]) -> rusqlite::Result<Value> {
    if values.is_empty() {
        return Ok(Value::Null);
    }
    let numbers = numbers(values)?;
    Ok(Value::Float(numbers.iter().sum::<f64>() / count_of(&numbers)))
}

fn deviation(values: &[Value], less: usize) -> rusqlite::Result<Value> {
    let numbers = numbers(values)?;
    if numbers.len() <= less {
        return Ok(Value::Float(0.0));
    }
    let mean = numbers.iter().sum::<f64>() / count_of(&numbers);
    let squares: f64 = numbers.iter().map(|number| (number - mean) * (number - mean)).sum();
    Ok(Value::Float((squares / (count_of(&numbers) - if less == 1 { 1.0 } else { 0.0 })).sqrt()))
}

fn share(percentile: Option<Value>) -> rusqlite::Result<f64> {
    let percentile = number(&percentile.unwrap_or(Value::Null))?;
    if (0.0..=1.0).contains(&percentile) {
        return Ok(percentile);
    }
    Err(met("NumberOutOfRange", "a percentile must be from 0 to 1"))
}

/// The rank below, as an index, and what is beyond it.
fn rank(place: f64) -> (usize, f64) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let below = place.floor() as usize;
    (below, place - place.floor())
}

fn continuous(values: &[Value], percentile: Option<Value>) -> rusqlite::Result<Value> {
    let mut numbers = numbers(values)?;
    if numbers.is_empty() {
        return Ok(Value::Null);
    }
    numbers.sort_by(f64::total_cmp);
    let (below, beyond) = rank(share(percentile)? * (count_of(&numbers) - 1.0));
    let low = numbers.get(below).copied().unwrap_or_default();
    let high = numbers.get(below + 1).copied().unwrap_or(low);
    Ok(Value::Float(low + (high - low) * beyond))
}

fn discrete(values: &[Value], percentile: Option<Value>) -> rusqlite::Result<Value> {
    if values.is_empty() {
        return Ok(Value::Null);
    }
    let count = count_of(&numbers(values)?);
    let mut values = values.to_vec();
    values.sort_by_key(key);
    let place = (share(percentile)? * count).ceil() - 1.0;
    let (place, _) = rank(place.max(0.0));
    Ok(values.get(place).cloned().unwrap_or(Value::Null))
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Any,
    None,
    Single,
}

/// How often a condition held, did not, and was unknown.
#[derive(Default)]
struct Tally {
    yes: u64,
    no: u64,
    unknown: u64,
}

impl Aggregate<Tally, Sql> for Quantifier {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Tally> {
        Ok(Tally::default())
    }

    fn step(&self, context: &mut Context<'_>, tally: &mut Tally) -> rusqlite::Result<()> {
        match context.get_raw(0) {
            ValueRef::Null => tally.unknown += 1,
            ValueRef::Integer(0) => tally.no += 1,
            _ => tally.yes += 1,
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, tally: Option<Tally>) -> rusqlite::Result<Sql> {
        let Tally { yes, no, unknown } = tally.unwrap_or_default();
        let known = |value: bool| (unknown == 0).then_some(value);
        Ok(truth(match self {
            Self::All if no > 0 => Some(false),
            Self::All => known(true),
            Self::Any if yes > 0 => Some(true),
            Self::Any => known(false),
            Self::None if yes > 0 => Some(false),
            Self::None => known(true),
            Self::Single if yes > 1 => Some(false),
            Self::Single => known(yes == 1),
        }))
    }
}
