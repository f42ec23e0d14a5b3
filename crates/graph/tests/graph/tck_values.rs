//! The values of the TCK's tables, and whether an answer is one of them.

use serde_json::Value as Json;

#[derive(Clone, Debug)]
pub enum Expected {
    /// Null, booleans, numbers and texts.
    Scalar(Json),
    List(Vec<Expected>),
    Map(Vec<(String, Expected)>),
    Node {
        labels: Vec<String>,
        props: Vec<(String, Expected)>,
    },
    Relationship {
        kind: String,
        props: Vec<(String, Expected)>,
    },
    /// Nodes and relationships in turn; whether each relationship points to the right.
    Path {
        elements: Vec<Expected>,
        forward: Vec<bool>,
    },
}

pub fn parse(text: &str) -> Result<Expected, String> {
    let mut parser = Parser { letters: text.chars().collect(), at: 0 };
    let value = parser.value()?;
    parser.space();
    if parser.at == parser.letters.len() { Ok(value) } else { Err(format!("`{text}` goes on after a value")) }
}

struct Parser {
    letters: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.space();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, wanted: char) -> Result<(), String> {
        if self.eat(wanted) { Ok(()) } else { Err(format!("`{wanted}` is missing at {}", self.at)) }
    }

    fn word(&mut self) -> String {
        self.space();
        if self.eat('`') {
            let mut word = String::new();
            while let Some(letter) = self.peek() {
                self.at += 1;
                if letter == '`' {
                    break;
                }
                word.push(letter);
            }
            return word;
        }
        let start = self.at;
        while self.peek().is_some_and(|letter| letter.is_alphanumeric() || "_.+-".contains(letter)) {
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect()
    }

    fn name(&mut self) -> String {
        self.space();
        let start = self.at;
        while self.peek().is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect()
    }

    fn value(&mut self) -> Result<Expected, String> {
        self.space();
        match self.peek() {
            Some('\'') => self.text().map(|text| Expected::Scalar(Json::String(text))),
            Some('[') => {
                self.at += 1;
                if self.eat(':') {
                    let kind = self.name();
                    let props = self.properties()?;
                    self.need(']')?;
                    return Ok(Expected::Relationship { kind, props });
                }
                let mut items = Vec::new();
                while !self.eat(']') {
                    items.push(self.value()?);
                    self.eat(',');
                }
                Ok(Expected::List(items))
            }
            Some('{') => self.properties().map(Expected::Map),
            Some('(') => self.node(),
            Some('<') => self.path(),
            _ => {
                let word = self.word();
                scalar(&word).map(Expected::Scalar).ok_or_else(|| format!("`{word}` is not a value"))
            }
        }
    }

    fn text(&mut self) -> Result<String, String> {
        self.need('\'')?;
        let mut text = String::new();
        while let Some(letter) = self.peek() {
            self.at += 1;
            match letter {
                '\'' => return Ok(text),
                '\\' => {
                    let escaped = self.peek().ok_or("a text ends with a backslash")?;
                    self.at += 1;
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        other => other,
                    });
                }
                other => text.push(other),
            }
        }
        Err("a text has no end".to_owned())
    }

    fn properties(&mut self) -> Result<Vec<(String, Expected)>, String> {
        let mut entries = Vec::new();
        if self.eat('{') {
            while !self.eat('}') {
                self.space();
                let key = if self.peek() == Some('`') { self.word() } else { self.name() };
                self.need(':')?;
                entries.push((key, self.value()?));
                self.eat(',');
            }
        }
        Ok(entries)
    }

    fn node(&mut self) -> Result<Expected, String> {
        self.need('(')?;
        let mut labels = Vec::new();
        while self.eat(':') {
            labels.push(self.name());
        }
        let props = self.properties()?;
        self.need(')')?;
        labels.sort();
        Ok(Expected::Node { labels, props })
    }

    fn path(&mut self) -> Result<Expected, String> {
        self.need('<')?;
        let mut elements = vec![self.node()?];
        let mut forward = Vec::new();
        while !self.eat('>') {
            let left = self.eat('<');
            self.need('-')?;
            elements.push(self.value()?);
            self.need('-')?;
            if !left {
                self.need('>')?;
            }
            forward.push(!left);
            elements.push(self.node()?);
        }
        Ok(Expected::Path { elements, forward })
    }
}

fn scalar(word: &str) -> Option<Json> {
    match word {
        "null" => Some(Json::Null),
        "true" => Some(Json::Bool(true)),
        "false" => Some(Json::Bool(false)),
        "NaN" => Some(Json::String("NaN".to_owned())),
        "Inf" => Some(Json::String("Infinity".to_owned())),
        "-Inf" => Some(Json::String("-Infinity".to_owned())),
        _ => match (word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(number), _) => Some(number.into()),
            (_, Ok(number)) => serde_json::Number::from_f64(number).map(Json::Number),
            _ => None,
        },
    }
}

/// The value as a parameter of a query.
pub fn parameter(value: &Expected) -> Option<Json> {
    Some(match value {
        Expected::Scalar(json) => json.clone(),
        Expected::List(items) => Json::Array(items.iter().map(parameter).collect::<Option<_>>()?),
        Expected::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| Some((key.clone(), parameter(value)?)))
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

/// Whether the order of the items of a list matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lists {
    Ordered,
    AnyOrder,
}

pub fn fits(expected: &Expected, actual: &Json, lists: Lists) -> bool {
    match expected {
        Expected::Scalar(Json::Number(wanted)) => match actual {
            Json::Number(number) if wanted.is_f64() => {
                number.is_f64() && close(wanted.as_f64().unwrap(), number.as_f64().unwrap())
            }
            Json::Number(number) => !number.is_f64() && wanted == number,
            _ => false,
        },
        Expected::Scalar(wanted) => wanted == actual,
        Expected::List(items) => match actual {
            Json::Array(actual) if items.len() == actual.len() => match lists {
                Lists::Ordered => items.iter().zip(actual).all(|(item, actual)| fits(item, actual, lists)),
                Lists::AnyOrder => same_bag(items, actual, |item, actual| fits(item, actual, lists)),
            },
            _ => false,
        },
        Expected::Map(entries) => match actual {
            Json::Object(_) => has_properties(entries, actual, &[], lists),
            _ => false,
        },
        Expected::Node { labels, props } => {
            let mut found: Vec<String> = actual["_labels"]
                .as_array()
                .map(|labels| labels.iter().map(|label| label.as_str().unwrap().to_owned()).collect())
                .unwrap_or_default();
            found.sort();
            actual["_labels"].is_array()
                && found == *labels
                && has_properties(props, actual, &["_id", "_labels"], lists)
        }
        Expected::Relationship { kind, props } => {
            actual["_type"].as_str() == Some(kind)
                && has_properties(props, actual, &["_id", "_type", "_from", "_to"], lists)
        }
        Expected::Path { elements, forward } => {
            let Json::Array(actual) = actual else { return false };
            let directed = forward.iter().enumerate().all(|(at, forward)| {
                let (Some(left), Some(edge), Some(right)) =
                    (actual.get(2 * at), actual.get(2 * at + 1), actual.get(2 * at + 2))
                else {
                    return false;
                };
                let (from, to) = if *forward { (left, right) } else { (right, left) };
                edge["_from"] == from["_id"] && edge["_to"] == to["_id"]
            });
            elements.len() == actual.len()
                && directed
                && elements.iter().zip(actual).all(|(element, actual)| fits(element, actual, lists))
        }
    }
}

fn close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= one.abs().max(other.abs()) * 1e-12
}

fn has_properties(props: &[(String, Expected)], actual: &Json, own: &[&str], lists: Lists) -> bool {
    let Json::Object(map) = actual else { return false };
    map.keys().filter(|key| !own.contains(&key.as_str())).count() == props.len()
        && props.iter().all(|(key, value)| map.get(key).is_some_and(|actual| fits(value, actual, lists)))
}

/// Whether two collections have the same members, however they are ordered.
pub fn same_bag<E, A>(expected: &[E], actual: &[A], fits: impl Fn(&E, &A) -> bool) -> bool {
    let mut left: Vec<&A> = actual.iter().collect();
    expected.len() == actual.len()
        && expected.iter().all(|expected| match left.iter().position(|actual| fits(expected, actual)) {
            Some(at) => {
                left.swap_remove(at);
                true
            }
            None => false,
        })
}
