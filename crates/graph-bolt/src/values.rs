//! Values between JSON and the wire. Nodes and relationships look as those of the embedded store do.

use serde_json::{Map, Number, Value};
use tgp_contract::{Code, ToolError};

use super::failure::Failure;
use super::pack::Packed;

const NODE: u8 = b'N';
const RELATIONSHIP: u8 = b'R';
/// A relationship in a path, where its ends are the nodes beside it.
const UNBOUND: u8 = b'r';
const PATH: u8 = b'P';

/// A parameter of a question as it goes to the server.
pub(super) fn parameter(name: &str, value: &Value) -> Result<Packed, ToolError> {
    Ok(match value {
        Value::Null => Packed::Null,
        Value::Bool(value) => Packed::Boolean(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Packed::Integer(number),
            (None, Some(float)) if number.is_f64() => Packed::Float(float),
            _ => {
                let message =
                    format!("the parameter `{name}` holds {number}, which no integer of Cypher can");
                return Err(ToolError::new(Code::Validation, message).help("pass it as a text"));
            }
        },
        Value::String(text) => Packed::text(text),
        Value::Array(items) => {
            Packed::List(items.iter().map(|item| parameter(name, item)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| Ok((key.clone(), parameter(name, value)?));
            Packed::Map(fields.iter().map(pair).collect::<Result<_, ToolError>>()?)
        }
    })
}

/// A property as a server can keep it: lists of one kind of scalar, and everything else as JSON text.
pub(super) fn property(value: &Value) -> Option<Packed> {
    match value {
        Value::Null => None,
        Value::Array(items) if is_uniform(items) => parameter("", value).ok(),
        Value::Array(_) | Value::Object(_) => Some(Packed::text(value.to_string())),
        scalar => Some(parameter("", scalar).unwrap_or_else(|_| Packed::text(scalar.to_string()))),
    }
}

fn is_uniform(items: &[Value]) -> bool {
    let all = |kind: fn(&Value) -> bool| items.iter().all(kind);
    all(Value::is_string) || all(Value::is_boolean) || all(Value::is_i64) || all(Value::is_f64)
}

/// A value of an answer.
pub(super) fn json(value: Packed) -> Result<Value, Failure> {
    Ok(match value {
        Packed::Null => Value::Null,
        Packed::Boolean(value) => Value::Bool(value),
        Packed::Integer(number) => Value::from(number),
        // JSON has no such numbers; the embedded store says them in words, too.
        Packed::Float(number) => match Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None if number.is_nan() => Value::from("NaN"),
            None if number > 0.0 => Value::from("Infinity"),
            None => Value::from("-Infinity"),
        },
        Packed::Text(text) => Value::String(text),
        Packed::List(items) => Value::Array(items.into_iter().map(json).collect::<Result<_, _>>()?),
        Packed::Map(entries) => {
            let pair = |(key, value)| Ok::<_, Failure>((key, json(value)?));
            Value::Object(entries.into_iter().map(pair).collect::<Result<Map<_, _>, _>>()?)
        }
        Packed::Structure(tag, fields) => structure(tag, fields)?,
        Packed::Bytes(_) => return Err(strange("bytes")),
    })
}

fn strange(what: &str) -> Failure {
    Failure::Protocol(format!("an answer holds {what}, which nothing in this graph is"))
}

fn structure(tag: u8, fields: Vec<Packed>) -> Result<Value, Failure> {
    let mut fields = fields.into_iter();
    match tag {
        NODE => {
            let (labels, properties) = (fields.nth(1), fields.next());
            node(labels, properties)
        }
        RELATIONSHIP => {
            let (kind, properties) = (fields.nth(3), fields.next());
            relationship(kind, properties)
        }
        UNBOUND => {
            let (kind, properties) = (fields.nth(1), fields.next());
            relationship(kind, properties)
        }
        PATH => path(fields.next(), fields.next(), fields.next()),
        _ => Err(strange("a value of an unknown kind")),
    }
}

fn node(labels: Option<Packed>, properties: Option<Packed>) -> Result<Value, Failure> {
    let mut row = Row::new(properties)?;
    row.show("_id");
    row.shown.insert("_labels".to_owned(), json(labels.ok_or_else(|| strange("a node without labels"))?)?);
    Ok(Value::Object(row.shown))
}

fn relationship(kind: Option<Packed>, properties: Option<Packed>) -> Result<Value, Failure> {
    let mut row = Row::new(properties)?;
    row.show("_id");
    row.shown
        .insert("_type".to_owned(), json(kind.ok_or_else(|| strange("a relationship without a type"))?)?);
    row.show("_from");
    row.show("_to");
    Ok(Value::Object(row.shown))
}

/// The properties of a row: what others may see, and what the mirror has written beside it.
struct Row {
    shown: Map<String, Value>,
    hidden: Vec<(String, Packed)>,
}

impl Row {
    fn new(properties: Option<Packed>) -> Result<Self, Failure> {
        let Some(Packed::Map(entries)) = properties else { return Err(strange("a row without properties")) };
        let (hidden, shown): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(key, _)| key.starts_with('_'));
        let shown = shown.into_iter().map(|(key, value)| Ok((key, json(value)?)));
        Ok(Self { shown: shown.collect::<Result<_, Failure>>()?, hidden })
    }

    fn show(&mut self, name: &str) {
        let found = self.hidden.iter().find(|(key, _)| key == name);
        let number = found.and_then(|(_, value)| value.as_integer());
        self.shown.insert(name.to_owned(), number.map_or(Value::Null, Value::from));
    }
}

/// A path comes as its different nodes and relationships, and the order in which it visits them.
fn path(nodes: Option<Packed>, links: Option<Packed>, order: Option<Packed>) -> Result<Value, Failure> {
    let (Some(Packed::List(nodes)), Some(Packed::List(links)), Some(Packed::List(order))) =
        (nodes, links, order)
    else {
        return Err(strange("half a path"));
    };
    let nodes = nodes.into_iter().map(json).collect::<Result<Vec<_>, _>>()?;
    let links = links.into_iter().map(json).collect::<Result<Vec<_>, _>>()?;
    let at = |list: &[Value], index: i64| {
        let place = usize::try_from(index).ok();
        place.and_then(|place| list.get(place)).cloned().ok_or_else(|| strange("a path that leads nowhere"))
    };
    let mut steps = vec![at(&nodes, 0)?];
    for pair in order.chunks(2) {
        let [link, node] = pair else { return Err(strange("a path that leads nowhere")) };
        let (Some(link), Some(node)) = (link.as_integer(), node.as_integer()) else {
            return Err(strange("a path that leads nowhere"));
        };
        // Relationships count from 1, and with a minus where they are walked against their direction.
        steps.push(at(&links, link.checked_abs().unwrap_or_default() - 1)?);
        steps.push(at(&nodes, node)?);
    }
    Ok(Value::Array(steps))
}
