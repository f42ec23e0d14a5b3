//! The suites: each case is written once, over parts of which it knows nothing but the contract.

mod fixtures;
mod t1_files;
mod t1_tools_llm;
mod t2_composed;
mod t2_graph;
mod t3_agents;
mod t4_aql;
mod t4_forged;
mod t5_cli;
mod t5_tools;
mod t6_rapid;
mod t6_valve;

use std::pin::Pin;

use crate::fault::Fault;
use crate::matrix::Role;
use crate::world::World;

/// What a case gives back when it is run.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;

/// One thing that parts promise.
pub(crate) struct Case {
    /// Such as `t1.loop`.
    pub(crate) id: &'static str,
    /// What is promised, in a few words.
    pub(crate) title: &'static str,
    pub(crate) run: for<'a> fn(&'a World) -> Running<'a>,
}

/// Cases that belong together because the same parts take part in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    T1,
    T2,
    T3,
    T4,
    T5,
    T6,
    Fixtures,
}

impl Suite {
    pub(crate) const ALL: [Self; 7] =
        [Self::T1, Self::T2, Self::T3, Self::T4, Self::T5, Self::T6, Self::Fixtures];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::T1 => "t1",
            Self::T2 => "t2",
            Self::T3 => "t3",
            Self::T4 => "t4",
            Self::T5 => "t5",
            Self::T6 => "t6",
            Self::Fixtures => "fixtures",
        }
    }

    /// The roles that are given away, in the order in which their parts are made.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            Self::T1 => &[Role::Tools, Role::Llm],
            Self::T2 => &[Role::Graph],
            Self::T3 => &[Role::Graph, Role::Chronicle, Role::Tools],
            Self::T4 => &[Role::Tools, Role::Llm, Role::Agents],
            Self::T5 => &[Role::CliLlm],
            Self::T6 => &[Role::Chronicle, Role::Valve],
            Self::Fixtures => &[Role::Chronicle],
        }
    }

    pub(crate) fn under_test(self) -> Vec<String> {
        let names: &[&str] = match self {
            Self::T1 => &["tools", "llm"],
            Self::T2 => &["graph"],
            Self::T3 => &["agents"],
            Self::T4 => &["aql"],
            Self::T5 => &["cli"],
            Self::T6 => &["valve"],
            Self::Fixtures => &["chronicle"],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Parts of this product that take part in every row.
    pub(crate) fn always_real(self) -> &'static [&'static str] {
        match self {
            Self::T1 | Self::T3 => &["agents"],
            Self::T4 => &["aql"],
            Self::T5 => &["cli"],
            Self::T2 | Self::T6 | Self::Fixtures => &[],
        }
    }

    /// Whether it cannot be run without the program `tgp`.
    pub(crate) fn needs_product(self) -> bool {
        self == Self::T5
    }

    pub(crate) fn cases(self) -> &'static [Case] {
        match self {
            Self::T1 => t1_tools_llm::CASES,
            Self::T2 => t2_graph::CASES,
            Self::T3 => t3_agents::CASES,
            Self::T4 => t4_aql::CASES,
            Self::T5 => t5_cli::CASES,
            Self::T6 => t6_valve::CASES,
            Self::Fixtures => fixtures::CASES,
        }
    }
}
