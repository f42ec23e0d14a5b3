//! Which part takes which role: every combination that means something, in a stable order.

use serde::{Deserialize, Serialize};

use crate::substitutes::Substitutes;

/// A part that a suite leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Tools,
    Llm,
    /// The model of the command line, which is another process.
    CliLlm,
    Chronicle,
    Graph,
    Valve,
    /// The runner of a query's agents.
    Agents,
}

/// The chronicle whose files are beside those that they are about, instead of in their own tree.
pub(crate) const BESIDE: &str = "beside";

/// Who makes a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    /// This product; the name distinguishes its variants.
    Real(&'static str),
    Fake(&'static str),
    /// A command line.
    External(String),
    /// One of the [`Substitutes`].
    Substitute,
}

/// A role and who takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) role: Role,
    pub(crate) maker: Provider,
}

impl Choice {
    /// As it is in a table, such as `llm (script)`.
    pub(crate) fn label(&self) -> String {
        let role = self.role.name();
        match &self.maker {
            Provider::Real("") | Provider::Fake("") => role.to_owned(),
            Provider::Real(word) | Provider::Fake(word) => format!("{role} ({word})"),
            Provider::External(_) | Provider::Substitute => role.to_owned(),
        }
    }
}

impl Role {
    pub(crate) const ALL: [Self; 7] =
        [Self::Tools, Self::Llm, Self::CliLlm, Self::Chronicle, Self::Graph, Self::Valve, Self::Agents];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Llm | Self::CliLlm => "llm",
            Self::Chronicle => "chronicle",
            Self::Graph => "graph",
            Self::Valve => "valve",
            Self::Agents => "agents",
        }
    }

    /// Everybody of this product who can take it.
    fn makers(self) -> Vec<Provider> {
        match self {
            Self::Llm => vec![Provider::Real("script"), Provider::Real("http"), Provider::Fake("puppet")],
            Self::CliLlm => vec![Provider::Real("script"), Provider::Fake("puppet")],
            Self::Chronicle => vec![Provider::Real(""), Provider::Real(BESIDE), Provider::Fake("")],
            _ => vec![Provider::Real(""), Provider::Fake("")],
        }
    }

    /// Who takes it from outside, if anybody does.
    fn outsider(self, externals: &Externals, substitutes: &Substitutes) -> Option<Provider> {
        let command = match self {
            Self::Tools => externals.tools.as_ref(),
            Self::Llm | Self::CliLlm => externals.llm.as_ref(),
            Self::Chronicle => externals.chronicle.as_ref(),
            Self::Graph => externals.graph.as_ref(),
            Self::Valve | Self::Agents => None,
        };
        command.cloned().map(Provider::External).or(substitutes.has(self).then_some(Provider::Substitute))
    }
}

/// Command lines of programs that take a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Externals {
    pub llm: Option<String>,
    pub tools: Option<String>,
    pub chronicle: Option<String>,
    pub graph: Option<String>,
}

impl Externals {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whom a part is tried with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// The parts of this product and the fakes, in every combination.
    #[default]
    Everything,
    /// The fakes only, which need no kernel.
    Fakes,
}

/// Every combination of makers for the roles of a suite. With parts from outside only those in which one of them takes
/// part; with fakes alone none for a suite that needs the product.
pub(crate) fn combinations(
    roles: &[Role],
    needs_product: bool,
    externals: &Externals,
    substitutes: &Substitutes,
    against: Against,
) -> Vec<Vec<Choice>> {
    let takes_part = roles.iter().any(|role| role.outsider(externals, substitutes).is_some());
    let has_outsiders = !externals.is_empty() || !substitutes.is_empty();
    if has_outsiders && !takes_part {
        return Vec::new();
    }
    if against == Against::Fakes && needs_product {
        return Vec::new();
    }
    let mut all: Vec<Vec<Choice>> = vec![Vec::new()];
    for role in roles {
        let makers = match role.outsider(externals, substitutes) {
            Some(outsider) => vec![outsider],
            None => role
                .makers()
                .into_iter()
                .filter(|maker| against == Against::Everything || matches!(maker, Provider::Fake(_)))
                .collect(),
        };
        all = all
            .into_iter()
            .flat_map(|choices| {
                makers.iter().map(move |maker| {
                    let mut choices = choices.clone();
                    choices.push(Choice { role: *role, maker: maker.clone() });
                    choices
                })
            })
            .collect();
    }
    all
}
