//! What Node.js 20 gives, row by row. `table.mjs` writes the rows; `differences.tsv` lists where ICU4X differs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tgp_intl::{
    Collator, DateTimeFormat, DisplayNames, IntlError, ListFormat, NumberFormat, NumberValue, Part,
    PluralSelector, RelativeTimeFormat, Segmenter, join, lower_case, upper_case,
};

const TABLE: &str = include_str!("../table.tsv");
const DIFFERENCES: &str = include_str!("../differences.tsv");

fn number(value: &Value) -> NumberValue {
    let text = value.to_string();
    // JSON has one zero.
    text.parse().unwrap()
}

fn shown(parts: &[Part]) -> Value {
    json!(parts.iter().map(|part| format!("{}:{}", part.kind, part.value)).collect::<Vec<_>>())
}

fn evaluate(kind: &str, locale: &str, options: &str, input: &Value) -> Result<Value, IntlError> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(options).unwrap();
    fields.insert("locales".to_owned(), json!([locale]));
    let options = Value::Object(fields).to_string();
    let text = || input.as_str().unwrap_or_default();
    let at = |index: usize| input[index].as_str().unwrap_or_default();
    let locales = [locale.to_owned()];
    Ok(match kind {
        "NumberFormat" => json!(NumberFormat::new(&options)?.format(&number(input))?),
        "NumberParts" => shown(&NumberFormat::new(&options)?.format_to_parts(&number(input))?),
        "DateTimeFormat" => json!(DateTimeFormat::new(&options)?.format(input.as_f64().unwrap())?),
        "DateParts" => shown(&DateTimeFormat::new(&options)?.format_to_parts(input.as_f64().unwrap())?),
        "Collator" => json!(Collator::new(&options)?.compare(at(0), at(1)) as i8),
        "PluralRules" => json!(PluralSelector::new(&options)?.select(&number(input))),
        "ListFormat" => {
            let items: Vec<String> = serde_json::from_value(input.clone()).unwrap();
            json!(ListFormat::new(&options)?.format(&items))
        }
        "RelativeTimeFormat" => {
            json!(join(&RelativeTimeFormat::new(&options)?.format_to_parts(&number(&input[0]), at(1))?.0))
        }
        "DisplayNames" => json!(DisplayNames::new(&options)?.of(text())?),
        "Segmenter" => {
            let units: Vec<u16> = text().encode_utf16().collect();
            let mut start = 0;
            let mut segments = Vec::new();
            for end in Segmenter::new(&options)?.ends(text())? {
                segments.push(String::from_utf16_lossy(&units[start..end.index]));
                start = end.index;
            }
            json!(segments)
        }
        "Upper" => json!(upper_case(text(), &locales)?),
        "Lower" => json!(lower_case(text(), &locales)?),
        other => panic!("unknown kind {other}"),
    })
}

#[test]
fn every_row_is_what_node_gives_or_a_listed_difference() {
    let listed: BTreeMap<&str, &str> =
        DIFFERENCES.lines().filter_map(|line| line.rsplit_once('\t')).collect();
    let mut used = 0;
    let mut wrong = Vec::new();
    for line in TABLE.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kind, locale, options, input, expected] = columns[..] else { panic!("bad row {line}") };
        let parsed: Value = serde_json::from_str(input).unwrap();
        let result = evaluate(kind, locale, options, &parsed).map_err(|error| error.to_string());
        let result = result.unwrap_or_else(|error| json!({ "error": error })).to_string();
        let key = format!("{kind}\t{locale}\t{options}\t{input}");
        let allowed = listed.get(key.as_str()).copied();
        used += usize::from(allowed.is_some());
        if result != allowed.unwrap_or(expected) {
            wrong.push(format!("{key}\t{result}\t<- {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(used, listed.len(), "a listed difference has no row, or is listed twice");
}
