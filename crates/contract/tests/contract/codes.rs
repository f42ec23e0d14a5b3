//! The codes are stable: this list is the contract, and changing it breaks programs.

use tgp_contract::Code;

const CODES: [&str; 24] = [
    "EVALIDATION",
    "ESTATE",
    "EPOLICY",
    "EAPPROVAL",
    "EPERMISSION",
    "EHALT",
    "ESECURITY",
    "ECAPABILITY",
    "ECOMPILE",
    "ERR_ISOLATE_MEMORY",
    "ERR_ISOLATE_TIMEOUT",
    "ERUNTIME",
    "ENOTFOUND",
    "ECONFLICT",
    "EGIT",
    "ESQL",
    "EFETCH",
    "EUPSTREAM",
    "EPIN",
    "EPROVIDER",
    "EBUDGET",
    "EINTEGRITY",
    "ECONFIG",
    "EINTERNAL",
];

#[test]
fn codes_are_the_documented_ones() {
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names, CODES);
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert!(code.meaning().ends_with('.'), "{code} has no sentence");
    }
}

#[test]
fn every_code_is_in_the_documentation() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    let page = std::fs::read_to_string(page).unwrap();
    for code in Code::ALL {
        let row = format!("| `{}` | {} |", code.as_str(), code.meaning());
        assert!(page.contains(&row), "docs/errors.md lacks the row\n{row}");
    }
}
