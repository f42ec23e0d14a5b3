//! Pins: which definitions of a server's tools a person has seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::UpstreamTool;

/// The tools of a server as a person has seen them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// By name, as they were: the difference is shown from them.
    tools: BTreeMap<String, UpstreamTool>,
}

/// How a tool differs from its pin.
#[derive(Clone, Debug, PartialEq)]
pub enum PinChange<'a> {
    Added(&'a UpstreamTool),
    Removed(&'a UpstreamTool),
    Changed { before: &'a UpstreamTool, now: &'a UpstreamTool },
}

impl Pin {
    /// The pin of these definitions. Of two tools with one name the first counts, as it does for callers.
    #[must_use]
    pub fn of(tools: &[UpstreamTool]) -> Self {
        let mut pinned = BTreeMap::new();
        for tool in tools {
            pinned.entry(tool.name.clone()).or_insert_with(|| tool.clone());
        }
        Self { tools: pinned }
    }

    /// What has changed since, by name.
    #[must_use]
    pub fn changes<'a>(&'a self, now: &'a Self) -> Vec<PinChange<'a>> {
        let mut names: Vec<&String> = self.tools.keys().chain(now.tools.keys()).collect();
        names.sort();
        names.dedup();
        let change = |name: &String| match (self.tools.get(name), now.tools.get(name)) {
            (Some(before), Some(now)) if before.hash() == now.hash() => None,
            (Some(before), Some(now)) => Some(PinChange::Changed { before, now }),
            (Some(before), None) => Some(PinChange::Removed(before)),
            (None, Some(now)) => Some(PinChange::Added(now)),
            (None, None) => None,
        };
        names.into_iter().filter_map(change).collect()
    }

    /// Whether a tool is as it was pinned. An unknown one is not.
    #[must_use]
    pub fn covers(&self, tool: &UpstreamTool) -> bool {
        self.tools.get(&tool.name).is_some_and(|pinned| pinned.hash() == tool.hash())
    }

    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&UpstreamTool> {
        self.tools.get(name)
    }

    pub fn tools(&self) -> impl Iterator<Item = &UpstreamTool> {
        self.tools.values()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Pin, PinChange};
    use crate::UpstreamTool;

    fn tool(name: &str, description: &str) -> UpstreamTool {
        UpstreamTool {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            input_schema: json!({ "type": "object" }),
            output_schema: None,
            hints: None,
        }
    }

    #[test]
    fn every_change_of_a_definition_is_a_change_of_the_pin() {
        let before = Pin::of(&[tool("a", "one"), tool("b", "two"), tool("c", "three")]);
        let mut narrower = tool("a", "one");
        narrower.input_schema = json!({ "type": "object", "required": ["x"] });
        let mut answers = tool("c", "three");
        answers.output_schema = Some(json!({ "type": "string" }));
        let now = Pin::of(&[narrower.clone(), tool("b", "two"), answers, tool("d", "new")]);
        let changes = before.changes(&now);
        assert!(
            matches!(
                &changes[..],
                [PinChange::Changed { .. }, PinChange::Changed { .. }, PinChange::Added(_)]
            ),
            "{changes:?}"
        );
        assert!(matches!(now.changes(&before)[..], [_, _, PinChange::Removed(_)]));
        assert!(
            before.covers(&tool("b", "two"))
                && !before.covers(&narrower)
                && !before.covers(&tool("d", "new"))
        );
        // The order of fields in a schema means nothing.
        let (one, other) =
            (json!({ "type": "object", "title": "x" }), json!({ "title": "x", "type": "object" }));
        let with = |schema| UpstreamTool { input_schema: schema, ..tool("a", "one") };
        assert_eq!(with(one).hash(), with(other).hash());
        // A second tool of the same name cannot take its place.
        let twice = Pin::of(&[tool("b", "two"), tool("b", "another")]);
        assert!(twice.covers(&tool("b", "two")) && !twice.covers(&tool("b", "another")));
    }
}
