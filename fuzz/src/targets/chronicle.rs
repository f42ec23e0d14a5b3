//! Lines of chronicles.

use tgp_contract::{ChronicleEvent, decode_line};

use super::{ensure, same};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "chronicle",
    about: "a line that is an event is the only line of that event, and every event has one that reads back",
    oracle: check,
    dictionary: &[
        "\"eventId\":",
        "\"type\":",
        "\"timestamp\":",
        "\"actor\":",
        "\"agent\":",
        "\"id\":",
        "\"filePath\":",
        "null",
        "\"2026-01-31T12:00:00Z\"",
        "\"2026-01-31T12:00:00.000+02:00\"",
        "1e400",
        "-0.0",
        "1e21",
        "9007199254740993",
        "18446744073709551615",
        "0.1",
        "1E-7",
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "{\"a\":{",
        "[[",
        "\"a\":1,\"a\":2",
        "\u{2028}",
        "é",
    ],
    generate: None,
    iterations: 10_000,
};

fn check(input: &[u8]) -> Result<(), String> {
    // A fuzzer cannot guess a hash, so every input that is an event at all is given its line.
    if let Ok(event) = serde_json::from_slice::<ChronicleEvent>(input) {
        has_line(event)?;
    }
    if let Ok(event) = decode_line(input) {
        is_line(&event, input)?;
    }
    Ok(())
}

/// An event that the chronicle takes has a line, and this line is the event.
fn has_line(event: ChronicleEvent) -> Result<(), String> {
    if event.check_form().is_err() {
        return Ok(());
    }
    // A number without an exact form is refused before anything is written.
    let Ok(id) = event.compute_id() else { return Ok(()) };
    let event = ChronicleEvent { event_id: Some(id.clone()), ..event };
    same("the id depends on itself", &event.compute_id().ok(), &Some(id))?;
    let line = event.to_canonical().map_err(|error| format!("an event with an id has no line: {error}"))?;
    ensure!(!line.contains(['\n', '\r']), "a line has a line end in it");
    let read =
        decode_line(line.as_bytes()).map_err(|error| format!("its own line is refused: {error}: {line}"))?;
    is_line(&read, line.as_bytes())
}

/// A line that was taken is canonical: nothing else is a line of this event.
fn is_line(event: &ChronicleEvent, line: &[u8]) -> Result<(), String> {
    let again =
        event.to_canonical().map_err(|error| format!("an event that was read has no line: {error}"))?;
    same("the line is not canonical", &again.as_bytes(), &line)?;
    same("the id is not the event's", &event.compute_id().ok(), &event.event_id)?;
    let json = serde_json::to_vec(event).map_err(|error| format!("the event is not JSON: {error}"))?;
    same("the event does not round-trip", &serde_json::from_slice(&json).ok().as_ref(), &Some(event))?;
    let spaced = [line, b" "].concat();
    ensure!(decode_line(&spaced).is_err(), "a line with a blank after it is the same event");
    Ok(())
}
