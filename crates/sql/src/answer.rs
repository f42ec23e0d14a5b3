//! Collecting rows into an answer, up to the caps.

use serde_json::{Map, Value};
use tgp_contract::SqlRows;

use crate::options::Limits;

/// What an object key, its quotes and separators cost in addition to the text itself.
const FIELD_OVERHEAD: usize = 4;

/// An answer that is being read.
pub(crate) struct RowCollector {
    answer: SqlRows,
    room: usize,
    max_rows: usize,
}

/// Whether the caps leave room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    Left,
    Full,
}

impl RowCollector {
    pub fn new(columns: impl IntoIterator<Item = String>, limits: Limits) -> Self {
        let answer = SqlRows { columns: distinct(columns), ..SqlRows::default() };
        Self { answer, room: limits.max_bytes, max_rows: limits.max_rows }
    }

    /// Takes a row if it fits; if not, the answer is truncated here.
    pub fn push(&mut self, values: Vec<Value>) -> Capacity {
        let size: usize = values
            .iter()
            .zip(&self.answer.columns)
            .map(|(value, name)| weight(value) + name.len() + FIELD_OVERHEAD)
            .sum();
        if self.answer.rows.len() >= self.max_rows || size > self.room {
            self.answer.truncated = true;
            return Capacity::Full;
        }
        self.room -= size;
        self.answer.rows.push(self.answer.columns.iter().cloned().zip(values).collect::<Map<_, _>>());
        Capacity::Left
    }

    /// Applies `change` to every value of one column.
    pub fn change(&mut self, column: usize, change: impl Fn(Value) -> Value) {
        let Some(name) = self.answer.columns.get(column) else { return };
        for row in &mut self.answer.rows {
            if let Some(value) = row.get_mut(name) {
                *value = change(value.take());
            }
        }
    }

    pub fn finish(mut self, changed: u64) -> SqlRows {
        self.answer.changed = changed;
        self.answer
    }
}

/// A row is an object, so a second `id` becomes `id_2`, and no column is lost.
fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let mut candidate = name.clone();
        let mut number = 2;
        while taken.contains(&candidate) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        taken.push(candidate);
    }
    taken
}

/// About how many bytes a value is as JSON; the depth was bounded by the parser.
fn weight(value: &Value) -> usize {
    const SCALAR: usize = 8;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => 2 + values.iter().map(|value| weight(value) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + FIELD_OVERHEAD + weight(value)).sum::<usize>()
        }
    }
}
