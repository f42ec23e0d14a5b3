//! Reading a JSON object field by field, collecting every problem instead of stopping at the first.

use serde_json::{Map, Value};
use tgp_text::did_you_mean;

use super::ConfigProblem;

/// One object of the configuration. Fields are taken out by name; what is left over is unknown.
pub(super) struct Fields<'a> {
    path: String,
    fields: Map<String, Value>,
    known: Vec<&'static str>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(path: &str, value: &Value, problems: &'a mut Vec<ConfigProblem>) -> Self {
        let fields = match value {
            Value::Object(fields) => fields.clone(),
            other => {
                let path = if path.is_empty() { "(the default export)".to_owned() } else { path.to_owned() };
                problems
                    .push(ConfigProblem { path, message: format!("must be an object, not {}", kind(other)) });
                Map::new()
            }
        };
        Self { path: path.to_owned(), fields, known: Vec::new(), problems }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn problem(&mut self, name: &str, message: &str) {
        let path = self.path_of(name);
        self.problems.push(ConfigProblem { path, message: message.to_owned() });
    }

    /// Null counts as absent, as `undefined` does in the file.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.fields.shift_remove(name).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, name: &str, wanted: &str, got: &Value) {
        self.problem(name, &format!("must be {wanted}, not {}", kind(got)));
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => {
                self.wrong(name, "a string", &other);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            other => {
                self.wrong(name, "true or false", &other);
                None
            }
        }
    }

    pub(super) fn number(&mut self, name: &'static str, (least, most): (u64, u64)) -> Option<u64> {
        let value = self.take(name)?;
        match value.as_u64().or_else(|| {
            value
                .as_f64()
                .filter(|number| number.fract() == 0.0 && *number >= 0.0)
                .map(|number| number as u64)
        }) {
            Some(number) if (least..=most).contains(&number) => Some(number),
            _ => {
                self.problem(name, &format!("must be a whole number from {least} to {most}, not {value}"));
                None
            }
        }
    }

    /// A number that need not be whole, from 0 to `most`.
    pub(super) fn amount(&mut self, name: &'static str, most: f64) -> Option<f64> {
        let value = self.take(name)?;
        match value.as_f64() {
            Some(number) if (0.0..=most).contains(&number) => Some(number),
            _ => {
                self.problem(name, &format!("must be a number from 0 to {most}, not {value}"));
                None
            }
        }
    }

    /// An object whose fields another reader checks.
    pub(super) fn object(&mut self, name: &'static str) -> Option<Map<String, Value>> {
        match self.take(name)? {
            Value::Object(fields) => Some(fields),
            other => {
                self.wrong(name, "an object", &other);
                None
            }
        }
    }

    /// A moment: milliseconds since the epoch.
    pub(super) fn moment(&mut self, name: &'static str) -> Option<f64> {
        let value = self.take(name)?;
        match value.as_f64() {
            Some(milliseconds) if milliseconds.is_finite() => Some(milliseconds),
            _ => {
                self.problem(name, "must be milliseconds since the epoch, such as Date.UTC(2026, 0, 1)");
                None
            }
        }
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        match self.take(name)? {
            Value::Array(items) => {
                let mut texts = Vec::new();
                for (index, item) in items.into_iter().enumerate() {
                    match item {
                        Value::String(text) if !text.is_empty() => texts.push(text),
                        other => {
                            self.wrong(&format!("{name}[{index}]"), "a string that is not empty", &other)
                        }
                    }
                }
                Some(texts)
            }
            other => {
                self.wrong(name, "a list of strings", &other);
                None
            }
        }
    }

    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let value = self.take(name)?;
        let found = value.as_str().and_then(|text| choices.iter().find(|(choice, _)| *choice == text));
        match found {
            Some((_, choice)) => Some(*choice),
            None => {
                let names: Vec<String> = choices.iter().map(|(choice, _)| format!("'{choice}'")).collect();
                self.problem(name, &format!("must be one of {}, not {value}", names.join(", ")));
                None
            }
        }
    }

    /// A value of any kind.
    pub(super) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.take(name)
    }

    /// Something is wrong with the object as a whole.
    pub(super) fn wrong_itself(&mut self, message: &str) {
        let path = self.path.clone();
        self.problems.push(ConfigProblem { path, message: message.to_owned() });
    }

    /// The entries of an object whose names the user has chosen.
    pub(super) fn entries<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&str, Fields<'_>) -> Option<T>,
    ) -> Vec<T> {
        let entries = self.object(name).unwrap_or_default();
        let path = self.path_of(name);
        let mut found = Vec::new();
        for (key, value) in &entries {
            let fields = Fields::new(&format!("{path}.{key}"), value, self.problems);
            found.extend(read(key, fields));
        }
        found
    }

    pub(super) fn section(&mut self, name: &'static str) -> Option<Fields<'_>> {
        let value = self.take(name)?;
        let path = self.path_of(name);
        Some(Fields::new(&path, &value, self.problems))
    }

    /// Reports what is left over: a typo must not pass for a setting.
    pub(super) fn done(mut self) {
        let unknown: Vec<String> = self.fields.keys().cloned().collect();
        for name in unknown {
            let hint = did_you_mean(&name, self.known.iter().copied())
                .unwrap_or_else(|| format!("the settings here are: {}", self.known.join(", ")));
            self.problem(&name, &format!("is not a setting; {hint}"));
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty string",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
