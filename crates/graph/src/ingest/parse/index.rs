//! The symbols of a file by their qualified names.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Kind, Symbol};

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
