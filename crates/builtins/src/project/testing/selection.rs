//! Which runners a filter is for.

use super::runner::{Language, Runner, is_script};

/// A runner, and what it is asked for: all of its tests, or those that the filter selects. A file is named from the
/// runner's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedRunner {
    pub runner: Runner,
    pub only: Option<String>,
}

impl SelectedRunner {
    /// The command line for `sh -c` in the runner's folder.
    #[must_use]
    pub fn command(&self) -> String {
        self.runner.command(self.only.as_deref())
    }

    /// The same as a person reads it: with the folder.
    #[must_use]
    pub fn shown_command(&self) -> String {
        self.runner.shown_command(self.only.as_deref())
    }
}

/// The runners that run what `only` names. A file goes to the runners of its language, of those to the nearest folder
/// above it; a name goes to all. Nothing is selected when the file belongs to a language without a runner.
#[must_use]
pub fn select(runners: Vec<Runner>, only: Option<&str>) -> Vec<SelectedRunner> {
    let Some(only) = only else {
        return runners.into_iter().map(|runner| SelectedRunner { runner, only: None }).collect();
    };
    let language = language_of(only);
    let mut fitting = runners;
    if let Some(language) = language {
        fitting.retain(|runner| runner.language().is_none_or(|own| own == language));
    }
    let is_path = language.is_some() || only.contains('/');
    let nearest = fitting
        .iter()
        .filter(|runner| is_path && below(only, runner.folder()).is_some())
        .map(|runner| runner.folder().to_owned())
        .max_by_key(String::len);
    // A name that only looks like a path belongs to no folder, and goes to all.
    if let Some(folder) = nearest.filter(|folder| language.is_some() || !folder.is_empty()) {
        fitting.retain(|runner| runner.folder() == folder);
    }
    fitting
        .into_iter()
        .map(|runner| {
            let own = match below(only, runner.folder()) {
                // Without its folder a path of one part would look like the name of a test.
                Some(rest) if rest.len() < only.len() && !rest.contains('/') && language.is_none() => {
                    format!("./{rest}")
                }
                Some(rest) => rest.to_owned(),
                None => only.to_owned(),
            };
            SelectedRunner { runner, only: Some(own) }
        })
        .collect()
}

/// The rest of a path that is in a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(path);
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    path.strip_prefix(folder)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

/// The language of a file that `only` names, by its ending. `a.py::test_b` is a test in a file.
fn language_of(only: &str) -> Option<Language> {
    let path = only.split("::").next().unwrap_or(only);
    if path.contains(char::is_whitespace) {
        return None;
    }
    if is_script(path) {
        return Some(Language::JavaScript);
    }
    [(".rs", Language::Rust), (".py", Language::Python), (".go", Language::Go)]
        .into_iter()
        .find(|(end, _)| path.ends_with(end))
        .map(|(_, language)| language)
}
