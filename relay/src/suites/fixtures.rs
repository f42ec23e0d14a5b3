//! The normative fixtures, checked through the eyes of a chronicle.

use serde_json::{Value, json};
use tgp_contract::{
    Chronicle, ChronicleEvent, ChronicleLayout, Code, MAX_CHRONICLE_LINE_BYTES, RelativePath, canonical,
};

use super::{Case, Running};
use crate::fault::{Expecting, Fault, holds, same};
use crate::world::World;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "fixtures.canonical-json",
        title: "an event's id is the hash of its canonical JSON",
        run: canonical_json,
    },
    Case {
        id: "fixtures.chronicle-events",
        title: "events come back as the fixtures have them, each once",
        run: chronicle_events,
    },
    Case {
        id: "fixtures.kept",
        title: "a chronicle that is started again has every event, and its file is that of the fixtures",
        run: kept,
    },
    Case {
        id: "fixtures.refused-events",
        title: "what is not an event, or stands out of scope, is refused and leaves nothing",
        run: refused_events,
    },
];

/// Events that are read of a chronicle's end: more than a fixture has.
const MOST: usize = 100;

/// Lists and objects inside of each other that the value of a field may have.
const MAX_LEVELS: usize = 64;

/// Name, input and canonical text.
const CANONICAL: [(&str, &str, &str, &str); 6] = [
    (
        "input",
        include_str!("../../fixtures/canonical-json/input.json"),
        include_str!("../../fixtures/canonical-json/output.txt"),
        include_str!("../../fixtures/canonical-json/output.sha256"),
    ),
    (
        "empty",
        include_str!("../../fixtures/canonical-json/empty.input.json"),
        include_str!("../../fixtures/canonical-json/empty.output.txt"),
        include_str!("../../fixtures/canonical-json/empty.output.sha256"),
    ),
    (
        "nesting",
        include_str!("../../fixtures/canonical-json/nesting.input.json"),
        include_str!("../../fixtures/canonical-json/nesting.output.txt"),
        include_str!("../../fixtures/canonical-json/nesting.output.sha256"),
    ),
    (
        "numbers",
        include_str!("../../fixtures/canonical-json/numbers.input.json"),
        include_str!("../../fixtures/canonical-json/numbers.output.txt"),
        include_str!("../../fixtures/canonical-json/numbers.output.sha256"),
    ),
    (
        "sorting",
        include_str!("../../fixtures/canonical-json/sorting.input.json"),
        include_str!("../../fixtures/canonical-json/sorting.output.txt"),
        include_str!("../../fixtures/canonical-json/sorting.output.sha256"),
    ),
    (
        "strings",
        include_str!("../../fixtures/canonical-json/strings.input.json"),
        include_str!("../../fixtures/canonical-json/strings.output.txt"),
        include_str!("../../fixtures/canonical-json/strings.output.sha256"),
    ),
];

/// Name, events and the file afterwards.
const EVENTS: [(&str, &str, &str); 10] = [
    (
        "basic-append",
        include_str!("../../fixtures/chronicle-events/basic-append.input.json"),
        include_str!("../../fixtures/chronicle-events/basic-append.output.ndjson"),
    ),
    (
        "appended-twice",
        include_str!("../../fixtures/chronicle-events/appended-twice.input.json"),
        include_str!("../../fixtures/chronicle-events/appended-twice.output.ndjson"),
    ),
    (
        "nested",
        include_str!("../../fixtures/chronicle-events/nested.input.json"),
        include_str!("../../fixtures/chronicle-events/nested.output.ndjson"),
    ),
    (
        "no-file-path",
        include_str!("../../fixtures/chronicle-events/no-file-path.input.json"),
        include_str!("../../fixtures/chronicle-events/no-file-path.output.ndjson"),
    ),
    (
        "numbers",
        include_str!("../../fixtures/chronicle-events/numbers.input.json"),
        include_str!("../../fixtures/chronicle-events/numbers.output.ndjson"),
    ),
    (
        "own-event-id",
        include_str!("../../fixtures/chronicle-events/own-event-id.input.json"),
        include_str!("../../fixtures/chronicle-events/own-event-id.output.ndjson"),
    ),
    (
        "big-integers",
        include_str!("../../fixtures/chronicle-events/big-integers.input.json"),
        include_str!("../../fixtures/chronicle-events/big-integers.output.ndjson"),
    ),
    (
        "empty-values",
        include_str!("../../fixtures/chronicle-events/empty-values.input.json"),
        include_str!("../../fixtures/chronicle-events/empty-values.output.ndjson"),
    ),
    (
        "times",
        include_str!("../../fixtures/chronicle-events/times.input.json"),
        include_str!("../../fixtures/chronicle-events/times.output.ndjson"),
    ),
    (
        "unicode",
        include_str!("../../fixtures/chronicle-events/unicode.input.json"),
        include_str!("../../fixtures/chronicle-events/unicode.output.ndjson"),
    ),
];

const REFUSED: &str = include_str!("../../fixtures/chronicle-events/refused.json");

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::new("a fixture that can be read", error.to_string()))
}

fn path(text: &str) -> Result<RelativePath, Fault> {
    RelativePath::new(text).map_err(|error| Fault::new("a path of the project", error.to_string()))
}

fn canonical_json(world: &World) -> Running<'_> {
    Box::pin(async move {
        let chronicle = world.chronicle()?;
        for (name, input, output, hash) in CANONICAL {
            same(
                &format!("the hash of {name}"),
                canonical::sha256_hex(output.as_bytes()).as_str(),
                hash.trim(),
            )?;
            let event: ChronicleEvent = parse(
                &json!({
                    "type": "FIXTURE", "timestamp": "2026-01-01T00:00:00Z",
                    "actor": { "agent": "relay", "id": name }, "value": parse::<Value>(input)?,
                })
                .to_string(),
            )?;
            // The fields are in their order already, and the value is as the fixture writes it.
            let text = format!(
                r#"{{"actor":{{"agent":"relay","id":"{name}"}},"timestamp":"2026-01-01T00:00:00Z","type":"FIXTURE","value":{output}}}"#
            );
            let appended = chronicle.append(&path(".sage/canonical.sage")?, event).await;
            let appended = appended.expecting(&format!("the event of {name} to be kept"))?;
            let expected = canonical::sha256_hex(text.as_bytes());
            same(&format!("the eventId of {name}"), &appended.event_id, &expected)?;
        }
        Ok(())
    })
}

fn chronicle_events(world: &World) -> Running<'_> {
    Box::pin(async move {
        let chronicle = world.chronicle()?;
        for (name, input, output) in EVENTS {
            let file = path(&format!("src/{name}.sage"))?;
            for event in inputs(input)? {
                let appended = chronicle.append(&file, event.clone()).await;
                let appended = appended.expecting(&format!("an event of {name} to be kept"))?;
                // Given again, it is known.
                let again = chronicle.append(&file, event).await.expecting("a known event to be taken")?;
                same("whether a known event is appended again", &again.appended, &false)?;
                same("the id of a known event", &again.event_id, &appended.event_id)?;
            }
            same(
                &format!("the lines of {name}"),
                &lines(chronicle.as_ref(), &file).await?,
                &output.to_owned(),
            )?;
        }
        // The end of a chronicle is asked for, and not its beginning.
        let file = path("src/appended-twice.sage")?;
        let all = chronicle.tail(&file, MOST).await.expecting("a chronicle that can be read")?;
        let last = chronicle.tail(&file, 1).await.expecting("the last event")?;
        same("the last event of two", &last.as_slice(), &all.get(1..).unwrap_or_default())?;
        let last = chronicle.tail(&path("src/basic-append.sage")?, 0).await;
        same("the last 0 events", &last.expecting("an empty tail")?.len(), &0)?;
        let none = chronicle.tail(&path("src/never.sage")?, MOST).await;
        same("the events of a chronicle that is not there", &none.expecting("an empty tail")?.len(), &0)?;
        let files = chronicle.files().await.expecting("a list of chronicles")?;
        let mut expected = EVENTS
            .iter()
            .map(|(name, ..)| path(&format!("src/{name}.sage")))
            .collect::<Result<Vec<_>, _>>()?;
        expected.sort();
        same("the chronicles, sorted", &files, &expected)
    })
}

/// The events of a fixture.
fn inputs(input: &str) -> Result<Vec<ChronicleEvent>, Fault> {
    let events = match parse(input)? {
        Value::Array(events) => events,
        event => vec![event],
    };
    events.iter().map(|event| parse(&event.to_string())).collect()
}

fn kept(world: &World) -> Running<'_> {
    Box::pin(async move {
        let chronicle = world.chronicle()?;
        let append = async |chronicle: &dyn Chronicle, name: &str, event: ChronicleEvent| {
            let appended = chronicle.append(&path(&format!("src/{name}.sage"))?, event).await;
            appended.expecting(&format!("an event of {name} to be kept"))
        };
        for (name, input, _) in EVENTS {
            for event in inputs(input)? {
                append(chronicle.as_ref(), name, event).await?;
            }
        }
        let files = chronicle.files().await.expecting("a list of chronicles")?;
        drop(chronicle);
        let chronicle = world.restarted_chronicle().await?;
        let again = chronicle.files().await.expecting("a list of chronicles")?;
        same("the chronicles after another start", &again, &files)?;
        for (name, input, output) in EVENTS {
            let file = path(&format!("src/{name}.sage"))?;
            let told = lines(chronicle.as_ref(), &file).await?;
            same(&format!("the lines of {name} after another start"), told.as_str(), output)?;
            // What was known before is known still.
            for event in inputs(input)? {
                let known = append(chronicle.as_ref(), name, event).await?;
                same(&format!("whether an event of {name} is appended again"), &known.appended, &false)?;
            }
            same(&format!("the file of {name}"), whole_file(world, &file)?.as_str(), output)?;
        }
        // It goes on behind the last line.
        let (name, input, output) = EVENTS[0];
        let mut event = inputs(input)?.into_iter().next().ok_or_else(|| Fault::new("an event", "none"))?;
        event.fields.insert("note".to_owned(), json!("after another start"));
        let added = append(chronicle.as_ref(), name, event).await?;
        same("whether another event is appended", &added.appended, &true)?;
        let file = path(&format!("src/{name}.sage"))?;
        let grown = whole_file(world, &file)?;
        let line = grown.strip_prefix(output).unwrap_or_default();
        let is_line = line.ends_with('\n') && line.lines().count() == 1 && line.contains(&added.event_id);
        holds(is_line, format!("the file of {name} to have one line more, with the event"), &grown)
    })
}

/// The file of a chronicle: at the path of its name, or in the tree below `.sage`.
fn whole_file(world: &World, name: &RelativePath) -> Result<String, Fault> {
    let places: Vec<RelativePath> = [ChronicleLayout::Beside, ChronicleLayout::Tree]
        .into_iter()
        .filter_map(|layout| layout.file_of(name).ok())
        .collect();
    let found: Vec<String> = places.iter().filter_map(|place| world.workspace.read(place.as_str())).collect();
    let places: Vec<&str> = places.iter().map(RelativePath::as_str).collect();
    match found.as_slice() {
        [text] => Ok(text.clone()),
        _ => {
            let expected = format!("the chronicle `{name}` to be one text file, at {}", places.join(" or "));
            Err(Fault::new(expected, format!("{} files", found.len())))
        }
    }
}

/// A chronicle as the fixtures write it down: a canonical line for each event.
async fn lines(chronicle: &dyn Chronicle, file: &RelativePath) -> Result<String, Fault> {
    let events = chronicle.tail(file, MOST).await.expecting("a chronicle that can be read")?;
    let mut text = String::new();
    for event in events {
        let value = serde_json::to_value(&event).unwrap_or_default();
        let line = canonical::to_string(&value);
        text.push_str(
            &line.map_err(|error| Fault::new("an event with a canonical form", error.to_string()))?,
        );
        text.push('\n');
    }
    Ok(text)
}

fn refused_events(world: &World) -> Running<'_> {
    Box::pin(async move {
        let chronicle = world.chronicle()?;
        let refused: Value = parse(REFUSED)?;
        let list = refused.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
        holds(!list.is_empty(), "fixtures of refused events", list.len())?;
        for case in list {
            // What is not an event at all cannot be said with the contract's types.
            let Ok(event) =
                serde_json::from_value::<ChronicleEvent>(case.get("event").cloned().unwrap_or_default())
            else {
                continue;
            };
            let why = case.get("why").and_then(Value::as_str).unwrap_or_default();
            let answer = chronicle.append(&path("src/a.ts.sage")?, event).await;
            let is_refused = answer.as_ref().is_err_and(|error| error.code == Code::Validation);
            holds(is_refused, format!("EVALIDATION for an event with this fault: {why}"), &answer)?;
        }
        let (_, input, _) = EVENTS[0];
        let event: ChronicleEvent = parse(input)?;
        // Larger and deeper than an event may be.
        let deep = (0..=MAX_LEVELS).fold(json!(1), |inner, _| json!([inner]));
        for (what, value) in [("a MiB", json!("x".repeat(MAX_CHRONICLE_LINE_BYTES))), ("64 levels", deep)] {
            let mut large = event.clone();
            large.fields.insert("value".to_owned(), value);
            let answer = chronicle.append(&path("src/a.ts.sage")?, large).await;
            let is_refused = answer.as_ref().is_err_and(|error| error.code == Code::Validation);
            holds(is_refused, format!("EVALIDATION for an event of more than {what}"), &answer)?;
        }
        for outside in
            ["a.sage", "docs/a.md.sage", ".sage/deep/a.sage", "src/a.ts", "src/.git/a.sage", ".git/a.sage"]
        {
            let answer = chronicle.append(&path(outside)?, event.clone()).await;
            let is_refused = answer.as_ref().is_err_and(|error| error.code == Code::Permission);
            holds(is_refused, format!("EPERMISSION for the chronicle `{outside}`"), &answer)?;
        }
        let files = chronicle.files().await.expecting("a list of chronicles")?;
        same("the chronicles after refusals only", &files, &Vec::new())
    })
}
