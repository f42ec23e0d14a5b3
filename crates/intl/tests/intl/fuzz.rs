//! Options and values at random: every answer is a text or an error, never a panic.

use serde_json::{Value, json};
use tgp_intl::{
    Collator, DateTimeFormat, DisplayNames, ListFormat, NumberFormat, PluralSelector, RelativeTimeFormat,
    Segmenter,
};

/// xorshift64*, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        let at = usize::try_from(self.next() >> 33).unwrap() % values.len();
        values[at].clone()
    }

    /// An object with some of the fields, each with one of its values.
    fn options(&mut self, fields: &[(&str, &[Value])]) -> String {
        let mut object = serde_json::Map::new();
        object.insert("locales".into(), json!([self.pick(&LOCALES)]));
        for (name, values) in fields {
            if self.next().is_multiple_of(3) {
                object.insert((*name).into(), self.pick(values));
            }
        }
        Value::Object(object).to_string()
    }
}

const LOCALES: [&str; 28] = [
    "en",
    "de-CH",
    "ar-EG",
    "fa",
    "th",
    "ja",
    "zh-TW",
    "hi",
    "he",
    "ko",
    "sr-Latn",
    "bn",
    "my",
    "km",
    "pt-PT",
    "es-419",
    "en-u-nu-arab-hc-h11",
    "de-u-co-phonebk",
    "th-u-ca-gregory-nu-thai",
    "ja-u-ca-japanese",
    "xx",
    "und",
    "en-x-private",
    "en-US-u-nu-bogus",
    "zh-u-ca-chinese",
    "en-u-hc-h24",
    "ur-PK",
    "lt-LT",
];
const NUMBERS: [&str; 14] = [
    "0",
    "-0",
    "1",
    "-1.5",
    "999999.99999",
    "1e21",
    "5e-324",
    "1.7976931348623157e308",
    "NaN",
    "Infinity",
    "-Infinity",
    "123456789012345678901234567890.5",
    "0.000001",
    "99.95",
];
const MOMENTS: [f64; 10] = [
    0.0,
    -1.0,
    1.7e12,
    8.64e15,
    -8.64e15,
    -62_135_596_800_000.0,
    -62_167_219_200_001.0,
    253_402_300_800_000.0,
    -2_208_988_800_000.5,
    32_503_680_000_000.0,
];

fn words(values: &[&str]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

fn numbers(values: &[f64]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

#[test]
fn numbers_never_panic() {
    let mut random = Random(7);
    let digits = numbers(&[0.0, 1.0, 2.0, 5.0, 20.0, 21.0, 100.0, 101.0, -1.0, 1.5]);
    let (style, notation) = (
        words(&["decimal", "percent", "currency", "unit"]),
        words(&["standard", "compact", "scientific", "engineering"]),
    );
    let fields: [(&str, &[Value]); 18] = [
        ("style", &style),
        ("notation", &notation),
        ("currency", &words(&["USD", "JPY", "xau", "XXX", "ZZZ", "CLF"])),
        ("currencyDisplay", &words(&["code", "symbol", "narrowSymbol", "name"])),
        ("currencySign", &words(&["standard", "accounting"])),
        ("unit", &words(&["meter", "kilometer-per-hour", "byte", "percent"])),
        ("unitDisplay", &words(&["short", "long", "narrow"])),
        ("compactDisplay", &words(&["short", "long"])),
        ("signDisplay", &words(&["auto", "always", "never", "exceptZero", "negative"])),
        ("useGrouping", &[json!(true), json!(false), json!("min2"), json!("always")]),
        ("minimumIntegerDigits", &digits),
        ("minimumFractionDigits", &digits),
        ("maximumFractionDigits", &digits),
        ("minimumSignificantDigits", &digits),
        ("maximumSignificantDigits", &digits),
        ("roundingIncrement", &numbers(&[1.0, 5.0, 25.0, 5000.0, 3.0])),
        ("roundingPriority", &words(&["auto", "morePrecision", "lessPrecision"])),
        ("roundingMode", &words(&["ceil", "floor", "expand", "trunc", "halfEven", "halfCeil"])),
    ];
    let mut formatted = 0;
    for _ in 0..20_000 {
        let options = random.options(&fields);
        let number = random.pick(&NUMBERS).parse().unwrap();
        if let Ok(format) = NumberFormat::new(&options) {
            assert!(!format.format(&number).unwrap().is_empty(), "{options}");
            let _ = format.resolved_options();
            formatted += 1;
        }
        if let Ok(rules) = PluralSelector::new(&options) {
            let _ = rules.select(&number);
        }
    }
    assert!(formatted > 2_000, "{formatted}");
}

#[test]
fn dates_never_panic() {
    let mut random = Random(11);
    let number = words(&["numeric", "2-digit"]);
    let text = words(&["narrow", "short", "long"]);
    let style = words(&["full", "long", "medium", "short"]);
    let fields: [(&str, &[Value]); 17] = [
        ("weekday", &text),
        ("era", &text),
        ("year", &number),
        ("month", &words(&["numeric", "2-digit", "narrow", "short", "long"])),
        ("day", &number),
        ("hour", &number),
        ("minute", &number),
        ("second", &number),
        ("fractionalSecondDigits", &numbers(&[1.0, 2.0, 3.0, 4.0])),
        (
            "timeZoneName",
            &words(&["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"]),
        ),
        (
            "timeZone",
            &words(&[
                "UTC",
                "Europe/Dublin",
                "Africa/Monrovia",
                "+05:30",
                "-23:59",
                "Etc/GMT+12",
                "Antarctica/Troll",
                "no",
            ]),
        ),
        ("hourCycle", &words(&["h11", "h12", "h23"])),
        ("hour12", &[json!(true), json!(false)]),
        ("calendar", &words(&["gregory", "buddhist", "japanese", "persian", "roc", "iso8601"])),
        ("required", &words(&["any", "date", "time"])),
        ("defaults", &words(&["all", "date", "time"])),
        ("numberingSystem", &words(&["latn", "arab", "thai", "hanidec", "roman"])),
    ];
    let styles: [(&str, &[Value]); 4] =
        [("dateStyle", &style), ("timeStyle", &style), fields[10], fields[13]];
    let mut formatted = 0;
    for round in 0..12_000 {
        let options = random.options(if round % 3 == 0 { &styles } else { &fields });
        if let Ok(format) = DateTimeFormat::new(&options) {
            let moment = random.pick(&MOMENTS);
            let text = format.format(moment).unwrap_or_else(|error| panic!("{options} {moment}: {error}"));
            assert!(!text.is_empty(), "{options}");
            let _ = format.resolved_options();
            formatted += 1;
        }
    }
    assert!(formatted > 2_000, "{formatted}");
}

#[test]
fn texts_never_panic() {
    let mut random = Random(13);
    let texts = [
        "",
        "a",
        "\u{0}",
        "e\u{301}",
        "ภาษาไทย",
        "日本語テキスト",
        "\u{200d}\u{200d}",
        "👩‍👩‍👧",
        "ไทยlatin中文",
        "  ",
    ];
    let style = words(&["long", "short", "narrow"]);
    let kind = words(&[
        "conjunction",
        "disjunction",
        "unit",
        "cardinal",
        "ordinal",
        "language",
        "region",
        "script",
        "currency",
    ]);
    let fields: [(&str, &[Value]); 6] = [
        ("style", &style),
        ("type", &kind),
        ("granularity", &words(&["grapheme", "word", "sentence"])),
        ("sensitivity", &words(&["base", "accent", "case", "variant"])),
        ("numeric", &[json!(true), json!(false)]),
        ("fallback", &words(&["code", "none"])),
    ];
    for _ in 0..5_000 {
        let options = random.options(&fields);
        let (left, right) = (random.pick(&texts), random.pick(&texts));
        if let Ok(collator) = Collator::new(&options) {
            assert_eq!(collator.compare(left, right), collator.compare(right, left).reverse());
        }
        if let Ok(segmenter) = Segmenter::new(&options) {
            let ends = segmenter.ends(left).unwrap();
            assert_eq!(
                ends.last().map_or(0, |end| end.index),
                left.encode_utf16().count(),
                "{options} {left}"
            );
        }
        if let Ok(list) = ListFormat::new(&options) {
            let _ = list.format(&[left.to_owned(), right.to_owned(), String::new()]);
        }
        if let Ok(names) = DisplayNames::new(&options) {
            for code in ["en", "de-AT", "DE", "419", "Latn", "USD", "zzz", left] {
                let _ = names.of(code);
            }
        }
        let options =
            options.replace("\"numeric\":true", "\"numeric\":\"auto\"").replace("\"numeric\":false,", "");
        if let Ok(relative) = RelativeTimeFormat::new(&options) {
            let _ = relative.format_to_parts(
                &random.pick(&NUMBERS).parse().unwrap(),
                random.pick(&["day", "years", "x"]),
            );
        }
    }
}
