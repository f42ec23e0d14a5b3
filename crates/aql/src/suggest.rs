//! Names for messages: the one that was probably meant, or the ones that exist.

use tgp_text::did_you_mean;

/// How many names a list in a message has. More would not be read.
const MOST_LISTED: usize = 12;

/// Names for a message: `` `a`, `b` and `c` ``.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<String> =
        names.into_iter().take(MOST_LISTED + 1).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST_LISTED {
        names.truncate(MOST_LISTED);
        return format!("{}, …", names.join(", "));
    }
    match names.pop() {
        None => "none".to_owned(),
        Some(only) if names.is_empty() => only,
        Some(last) => format!("{} and {last}", names.join(", ")),
    }
}

/// `did you mean …?`, or which names there are.
pub(crate) fn hint<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    did_you_mean(wanted, names.clone()).or_else(|| match names.clone().into_iter().take(2).count() {
        0 => None,
        1 => Some(format!("there is {}", listed(names))),
        _ => Some(format!("there are {}", listed(names))),
    })
}
