//! The questions of `relay/fixtures/graph-questions`.

/// One of the normative questions. [`Question::text`] is how it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Files,
    FileByPath,
    FileByName,
    Renames,
    RenameChain,
    KnownFiles,
    Importers,
}

impl Question {
    pub const ALL: [Self; 7] = [
        Self::Files,
        Self::FileByPath,
        Self::FileByName,
        Self::Renames,
        Self::RenameChain,
        Self::KnownFiles,
        Self::Importers,
    ];

    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Files => include_str!("../../fixtures/graph-questions/files.cypher"),
            Self::FileByPath => include_str!("../../fixtures/graph-questions/file-by-path.cypher"),
            Self::FileByName => include_str!("../../fixtures/graph-questions/file-by-name.cypher"),
            Self::Renames => include_str!("../../fixtures/graph-questions/renames.cypher"),
            Self::RenameChain => include_str!("../../fixtures/graph-questions/rename-chain.cypher"),
            Self::KnownFiles => include_str!("../../fixtures/graph-questions/known-files.cypher"),
            Self::Importers => include_str!("../../fixtures/graph-questions/importers.cypher"),
        }
        .trim_end()
    }
}
