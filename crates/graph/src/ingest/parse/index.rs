//! The symbols of a file by their qualified names.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{ImportKind, Kind, Parse, Symbol};

/// Made when the first name is asked for: of most files none is.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex(OnceLock<HashMap<String, u32>>);

impl NameIndex {
    /// A symbol with this name. A definition comes before a mere variable, the first before later ones; modules are asked for in
    /// other ways.
    pub(super) fn find(&self, symbols: &[Symbol], qualified: &str) -> Option<u32> {
        let names = self.0.get_or_init(|| {
            let mut names: HashMap<String, u32> = HashMap::new();
            let mut variables: HashMap<&str, u32> = HashMap::new();
            let numbered = (0..).zip(symbols).filter(|(_, symbol)| symbol.kind != Kind::Module);
            for (number, symbol) in numbered {
                if symbol.kind == Kind::Variable {
                    variables.entry(&symbol.qualified).or_insert(number);
                } else if !names.contains_key(&symbol.qualified) {
                    names.insert(symbol.qualified.clone(), number);
                }
            }
            for (name, number) in variables {
                if !names.contains_key(name) {
                    names.insert(name.to_owned(), number);
                }
            }
            names
        });
        names.get(qualified).copied()
    }
}

/// It is derived from the symbols: two files with the same symbols are the same, whether they were asked or not.
impl PartialEq for NameIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NameIndex {}

/// Something that gives a name of Rust a meaning: its number among what is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Module(usize),
    Import(usize),
    Path(usize),
}

/// What gives names of Rust a meaning, by the name. What is for all names is under `*`, as is what a file includes.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeaningIndex(OnceLock<HashMap<String, Vec<Meaning>>>);

impl MeaningIndex {
    pub(super) fn find(&self, parse: &Parse, name: &str) -> &[Meaning] {
        let names = self.0.get_or_init(|| {
            let mut names: HashMap<String, Vec<Meaning>> = HashMap::new();
            let mut add = |name: &str, meaning: Meaning| {
                let name = name.strip_prefix("r#").unwrap_or(name);
                names.entry(name.to_owned()).or_default().push(meaning);
            };
            let modules = parse.symbols.iter().enumerate().filter(|(_, symbol)| symbol.kind == Kind::Module);
            modules.for_each(|(number, symbol)| add(&symbol.name, Meaning::Module(number)));
            for (number, import) in parse.imports.iter().enumerate() {
                let meaning = Meaning::Import(number);
                match (&import.module, import.kind) {
                    (None, ImportKind::Part) => add("*", meaning),
                    (Some(name), _) => add(name, meaning),
                    (None, _) => {
                        for name in &import.names {
                            let is_star = name.there == "*" && name.here.is_empty();
                            add(if is_star { "*" } else { &name.here }, meaning);
                        }
                    }
                }
            }
            let bound = parse.paths.iter().enumerate();
            bound.for_each(|(number, path)| {
                if let Some(here) = &path.here {
                    add(here, Meaning::Path(number));
                }
            });
            names
        });
        names.get(name).map_or(&[], Vec::as_slice)
    }
}

/// As of [`NameIndex`].
impl PartialEq for MeaningIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MeaningIndex {}
