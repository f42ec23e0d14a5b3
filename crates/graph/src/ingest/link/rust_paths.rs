//! What paths of Rust lead to, through the names that `use` and `extern crate` give to modules.

use std::collections::{BTreeSet, HashMap};

use super::Link;
use super::exports::MAX_MODULES;
use super::imports::Module;
use super::lookup::MAX_VISITS;
use super::rust::{MAX_PARTS, above, bare, children_named, library_of, part, root, root_of_2015};
use crate::ingest::parse::{ImportKind, Meaning, Parse};
use crate::tables::failure::GraphError;

/// Something that a path leads to.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    module: Module,
    /// Whether it is a module, and not what is in one.
    is_module: bool,
    /// Whether it has its name by a `use`.
    is_bound: bool,
}

impl Place {
    fn module(module: Module) -> Self {
        Self { module, is_module: true, is_bound: false }
    }
}

/// The target of a path.
pub(super) struct Reached {
    /// The modules, and the files of what is in them.
    pub(super) modules: Vec<Module>,
    /// The file of each of those that were only found by what is in them.
    pub(super) others: Vec<Module>,
    /// Files on the way that give a module on under another name.
    pub(super) through: BTreeSet<String>,
    /// Whether it is in no crate of the tree.
    pub(super) is_lost: bool,
    /// Whether there was too much to look through.
    pub(super) is_given_up: bool,
}

/// Where the module of a `use` is: a name that it gives on counts as the module it means.
pub(super) fn of_use(link: &Link<'_>, file: &str, path: &str, scope: &str) -> Result<Reached, GraphError> {
    Search::new(link).run(file, path, scope, true)
}

/// Where the last name of a path in code is from: who gives on an item is asked for it, and no one else.
pub(super) fn of_code(link: &Link<'_>, file: &str, path: &str, scope: &str) -> Result<Reached, GraphError> {
    let mut reached = Search::new(link).run(file, path, scope, false)?;
    for module in &reached.others {
        if let (Some(name), Some(file)) = (module.inner.strip_suffix('!'), module.files.first())
            && let Some(found) = macro_of_root(link, file, name)?
        {
            reached.is_given_up |= found.is_empty();
            reached.through.extend(Some(found).filter(|file| !file.is_empty()));
        }
    }
    Ok(reached)
}

/// The file of a macro that only `#[macro_export]` can give to the root of a crate. It is empty where there are too many files.
pub(super) fn macro_of_root(link: &Link<'_>, file: &str, name: &str) -> Result<Option<String>, GraphError> {
    if !name.starts_with(|first: char| first.is_lowercase() || first == '_') {
        return Ok(None);
    }
    let Some(parse) = link.name(file, name)? else { return Ok(None) };
    let mut bound = parse.imports.iter().flat_map(|import| &import.names).map(|name| name.here.as_str());
    let is_here = parse.symbol(name).is_some() || bound.any(|here| bare(here) == name);
    if is_here || root(link, file).is_none_or(|root| root != file) {
        return Ok(None);
    }
    let question = (file.to_owned(), format!("{name}!"), true);
    let found = link.answer(question, |(root, name, _)| {
        let (mut open, mut seen) = (vec![root.clone()], BTreeSet::new());
        while let Some(file) = open.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            if seen.len() > MAX_MODULES {
                return Ok(Some((String::new(), 0)));
            }
            let Some(parse) = link.words(&file)? else { continue };
            if parse.paths.iter().any(|path| path.here.as_ref() == Some(name)) {
                return Ok(Some((file, 0)));
            }
            let parts = parse.imports.iter().filter(|import| import.kind == ImportKind::Part);
            open.extend(parts.flat_map(|import| part(link, &file, import).module.files));
        }
        Ok(None)
    })?;
    Ok(found.map(|(file, _)| file))
}

struct Search<'l, 'w> {
    link: &'l Link<'w>,
    /// Meanings of names in modules. One that is asked for while it is looked up means nothing yet.
    known: HashMap<(String, String, String), Vec<Place>>,
    through: BTreeSet<String>,
    is_lost: bool,
    /// The number of paths that were followed.
    steps: usize,
    is_given_up: bool,
}

impl<'l, 'w> Search<'l, 'w> {
    fn new(link: &'l Link<'w>) -> Self {
        Self {
            link,
            known: HashMap::new(),
            through: BTreeSet::new(),
            is_lost: false,
            steps: 0,
            is_given_up: false,
        }
    }

    fn run(mut self, file: &str, path: &str, scope: &str, is_use: bool) -> Result<Reached, GraphError> {
        let places = self.reach(file, path, scope, is_use)?;
        let (modules, others): (Vec<_>, Vec<_>) = places.into_iter().partition(|place| place.is_module);
        let of = |places: Vec<Place>| places.into_iter().map(|place| place.module).collect();
        let Self { through, is_lost, is_given_up, .. } = self;
        Ok(Reached { modules: of(modules), others: of(others), through, is_lost, is_given_up })
    }

    fn reach(&mut self, file: &str, path: &str, scope: &str, is_use: bool) -> Result<Vec<Place>, GraphError> {
        let parts: Vec<&str> = path.split("::").map(bare).collect();
        self.steps += 1;
        self.is_given_up |= parts.len() > MAX_PARTS || self.steps > MAX_VISITS;
        if self.is_given_up {
            return Ok(Vec::new());
        }
        let Some((first, mut rest)) = parts.split_first() else { return Ok(Vec::new()) };
        let mut places = match *first {
            "Self" => Vec::new(),
            "crate" => self.there(root(self.link, file).map(Module::file)),
            "self" => self.there(Some(Module { files: vec![file.to_owned()], inner: scope.to_owned() })),
            "super" => self.there(above(self.link, file, scope)),
            "" => {
                let Some((name, after)) = rest.split_first() else { return Ok(Vec::new()) };
                rest = after;
                self.outer(file, name)?
            }
            name => {
                let mut places = self.meaning(file, scope, name)?;
                // What is around a module that is written out is taken too, as its functions are no scopes here.
                if places.is_empty() && !scope.is_empty() {
                    places = self.meaning(file, "", name)?;
                }
                if places.is_empty() { self.outer(file, name)? } else { places }
            }
        };
        for (index, part) in rest.iter().take(MAX_PARTS).enumerate() {
            if places.is_empty() || *part == "self" {
                continue;
            }
            let is_last = index + 1 == rest.len() && !is_use;
            let mut next = Vec::new();
            for place in places {
                match *part {
                    "super" => {
                        let Module { files, inner } = &place.module;
                        let above = files.first().and_then(|file| above(self.link, file, inner));
                        next.extend(self.there(above));
                    }
                    part => next.extend(self.below(&place, part, is_last)?),
                }
            }
            next.dedup();
            places = next;
        }
        Ok(places)
    }

    fn there(&mut self, module: Option<Module>) -> Vec<Place> {
        self.is_lost |= module.is_none();
        module.map(Place::module).into_iter().collect()
    }

    /// What a name of a module means to those outside of it.
    fn below(&mut self, place: &Place, name: &str, is_last: bool) -> Result<Vec<Place>, GraphError> {
        let Module { files, inner } = &place.module;
        let file = files.first().cloned().unwrap_or_default();
        let mut found = Vec::new();
        if place.is_module {
            found = self.meaning(&file, inner, name)?;
            // What a file gives on is its own to give, but for modules, which are only ways to what they hold.
            found.retain(|found| found.is_module && !(is_last && found.is_bound));
            if file != self.link.path && found.iter().any(|found| found.is_bound) {
                self.through.insert(file.clone());
            }
        }
        if found.is_empty() {
            let inner = if inner.is_empty() { name.to_owned() } else { format!("{inner}::{name}") };
            let module = Module { files: vec![file], inner };
            found.push(Place { module, is_module: false, is_bound: false });
        }
        Ok(found)
    }

    /// What a name means in a module.
    fn meaning(&mut self, file: &str, scope: &str, name: &str) -> Result<Vec<Place>, GraphError> {
        let key = (file.to_owned(), scope.to_owned(), name.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        if self.known.len() >= MAX_VISITS {
            self.is_given_up = true;
            return Ok(Vec::new());
        }
        self.known.insert(key.clone(), Vec::new());
        let Some(parse) = self.link.name(file, name)? else {
            self.link.stars(file);
            return Ok(Vec::new());
        };
        let here = Module { files: vec![file.to_owned()], inner: scope.to_owned() };
        let modules = children_named(self.link, &here, name)?;
        let mut places: Vec<Place> = modules.into_iter().map(Place::module).collect();
        let mut meant: Vec<String> = Vec::new();
        for meaning in parse.meanings(name) {
            match *meaning {
                Meaning::Module(_) => {}
                Meaning::Import(number) => {
                    let import = parse.imports.get(number);
                    let Some(import) = import.filter(|import| binds(import.kind) && import.scope == scope)
                    else {
                        continue;
                    };
                    if import.module.is_some() {
                        meant.push(import.specifier.clone());
                    }
                    let names = import.names.iter().filter(|given| bare(&given.here) == name);
                    meant.extend(names.map(|given| format!("{}::{}", import.specifier, given.there)));
                }
                Meaning::Path(number) => {
                    let path = parse.paths.get(number).filter(|path| path.scope == scope);
                    meant.extend(path.map(|path| path.written.clone()));
                }
            }
            if meant.len() > MAX_VISITS {
                self.is_given_up = true;
                break;
            }
        }
        for path in meant {
            let found = self.reach(file, &path, scope, true)?;
            places.extend(found.into_iter().map(|place| Place { is_bound: true, ..place }));
        }
        if places.is_empty() {
            self.link.stars(file);
            // A glob import that leads nowhere does not make another import miss.
            let is_lost = self.is_lost;
            for meaning in parse.meanings("*") {
                if self.is_given_up {
                    break;
                }
                for module in self.of_all(file, scope, &parse, *meaning)? {
                    let Some(file) = module.files.first() else { continue };
                    let found = self.meaning(file, &module.inner, name)?;
                    let found = found.into_iter().filter(|found| found.is_module);
                    places.extend(found.map(|found| Place { is_bound: true, ..found }));
                }
            }
            self.is_lost = is_lost;
        }
        self.known.insert(key, places.clone());
        Ok(places)
    }

    /// The modules all of whose names something gives to a module.
    fn of_all(
        &mut self,
        file: &str,
        scope: &str,
        parse: &Parse,
        meaning: Meaning,
    ) -> Result<Vec<Module>, GraphError> {
        let path = match meaning {
            Meaning::Import(number) => match parse.imports.get(number).filter(|import| import.scope == scope)
            {
                // What a file includes is its own text.
                Some(import) if import.kind == ImportKind::Part => {
                    let Module { files, .. } = part(self.link, file, import).module;
                    return Ok(files.into_iter().map(Module::file).collect());
                }
                import => import.map(|import| &import.specifier),
            },
            Meaning::Path(number) => {
                parse.paths.get(number).filter(|path| path.scope == scope).map(|path| &path.written)
            }
            Meaning::Module(_) => None,
        };
        let Some(path) = path else { return Ok(Vec::new()) };
        let places = self.reach(file, path, scope, true)?.into_iter();
        Ok(places.filter(|place| place.is_module).map(|place| place.module).collect())
    }

    /// A name that begins a path and that no `use` gives: a crate, or in the edition of 2015 what the root has.
    fn outer(&mut self, file: &str, name: &str) -> Result<Vec<Place>, GraphError> {
        if let Some(root) = root_of_2015(self.link, file) {
            let places = self.meaning(&root, "", name)?;
            if !places.is_empty() {
                return Ok(places);
            }
        }
        // `extern crate self as name` in the root gives its name to the whole crate.
        if let Some(root) = root(self.link, file)
            && let Some(parse) = self.link.name(&root, name)?
        {
            let mut crates = parse.imports.iter().filter(|import| import.scope.is_empty());
            if crates.any(|import| import.specifier == "crate" && import.module.as_deref() == Some(name)) {
                return Ok(vec![Place::module(Module::file(root))]);
            }
        }
        let library = library_of(self.link, file, name);
        Ok(library.map(|root| Place::module(Module::file(root))).into_iter().collect())
    }
}

fn binds(kind: ImportKind) -> bool {
    matches!(kind, ImportKind::Bind | ImportKind::ReExport)
}
