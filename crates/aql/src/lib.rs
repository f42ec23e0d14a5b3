//! Agents as queries: a small typed language whose steps are agents, tools, questions and other queries.
#![forbid(unsafe_code)]
