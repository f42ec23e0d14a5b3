//! `entry_points.txt`: the commands of a package, and the small programs that start them.

use std::collections::BTreeMap;

use crate::WheelError;

pub(crate) const MAX_BYTES: u64 = 1 << 20;
const MAX_SCRIPTS: usize = 1000;

/// A command of a package: a function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryPoint {
    module: String,
    function: String,
}

/// The commands of a package by their names.
pub(crate) fn parse(content: &[u8]) -> Result<BTreeMap<String, EntryPoint>, WheelError> {
    let text = String::from_utf8_lossy(content);
    let mut is_script = false;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            is_script = matches!(section.trim_end_matches(']').trim(), "console_scripts" | "gui_scripts");
            continue;
        }
        if !is_script {
            continue;
        }
        let refused =
            || WheelError::EntryPoint(line.chars().take(120).flat_map(char::escape_default).collect());
        let (name, place) = line.split_once('=').ok_or_else(refused)?;
        // Extras in brackets are not looked at any more.
        let place = place.split('[').next().unwrap_or_default().trim();
        let (module, function) = place.split_once(':').ok_or_else(refused)?;
        let (name, module, function) = (name.trim(), module.trim(), function.trim());
        if !is_file_name(name) || !is_dotted(module) || !is_dotted(function) {
            return Err(refused());
        }
        let entry = EntryPoint { module: module.to_owned(), function: function.to_owned() };
        found.insert(name.to_owned(), entry);
        if found.len() > MAX_SCRIPTS {
            return Err(WheelError::Limit { what: "the number of commands", limit: MAX_SCRIPTS as u64 });
        }
    }
    Ok(found)
}

impl EntryPoint {
    /// The program of the command, as pip writes it.
    pub(crate) fn program(&self, first_line: &str) -> String {
        let Self { module, function } = self;
        let import = function.split('.').next().unwrap_or(function);
        format!(
            "{first_line}# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom {module} import {import}\nif __name__ == '__main__':\n    \
             sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit({function}())\n"
        )
    }
}

/// Whether a name is that of one file, which no shell and no program takes for an option.
pub(crate) fn is_file_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.+".contains(letter);
    name.len() <= 128
        && name.chars().all(is_plain)
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
}

fn is_dotted(text: &str) -> bool {
    let is_word = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    text.len() <= 256 && text.split('.').all(is_word)
}
