//! What of a tool is compared with a question.

use serde_json::Value;
use tgp_contract::{ToolMetadata, canonical};

use crate::words;

/// Characters of a description that are embedded: what a tool does is in its first sentences, and a longer text
/// costs time with every new tool.
const MAX_DESCRIPTION_CHARACTERS: usize = 320;
/// Parameters and declared names that count.
const MAX_NAMES: usize = 24;

/// A tool as words.
#[derive(Debug)]
pub(crate) struct Document {
    /// The text that is embedded.
    pub(crate) text: String,
    /// The name as words joined by blanks, to compare with a question that is a name.
    pub(crate) name: String,
    /// Words of the name.
    pub(crate) title: Vec<String>,
    /// Words of the description, or of what replaces it.
    pub(crate) said: Vec<String>,
    /// Words of the name and the description: what the tool says it does.
    pub(crate) told: Vec<String>,
    /// Words of the folder, the parameters and the declared names.
    pub(crate) aside: Vec<String>,
}

impl Document {
    pub(crate) fn new(tool: &ToolMetadata) -> Self {
        let name = words::split(&tool.name);
        let folders: Vec<&str> = tool.path.parts().skip(1).collect();
        let folders =
            folders.split_last().map_or_else(Vec::new, |(_, folders)| words::split(&folders.join(" ")));
        let description: String = tool.description.chars().take(MAX_DESCRIPTION_CHARACTERS).collect();
        let names: Vec<String> = parameter_names(&tool.parameters)
            .chain(tool.identifiers.iter().map(String::as_str))
            .take(MAX_NAMES)
            .flat_map(words::split)
            .collect();
        // Without a description the names of the source are all there is.
        let said = if description.trim().is_empty() { names.join(" ") } else { description };
        let title = [folders.as_slice(), name.as_slice()].concat().join(" ");
        let text = format!("{title}: {said}");
        let said = words::split(&said);
        let told = [name.as_slice(), &said].concat();
        let aside = [folders, names].concat();
        Self { text, name: name.join(" "), title: name, said, told, aside }
    }
}

/// The key under which the vector of `text` is kept.
pub(crate) fn vector_key(fingerprint: &str, text: &str) -> String {
    canonical::hash_texts(&[fingerprint, text])
}

fn parameter_names(schema: &Value) -> impl Iterator<Item = &str> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|fields| fields.keys().map(String::as_str))
}
