//! From one state of the tree to the next: changed files are read, and linked together with those they concern.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use globset::GlobSet;

use super::blobs::ParseCache;
use super::language::{Language, parent};
use super::link::{self, LinkContext, Linked, Memo, interface};
use super::repository::Changed;
use super::state::{FileState, State};
use crate::tables::facts::FactSource;
use crate::tables::failure::GraphError;
use crate::tables::write::{NextFacts, Writer};

/// Brings state and store from one tree to the next. Every changed blob must have been read.
pub(crate) fn apply_changes(
    writer: &mut Writer<'_>,
    state: &mut State,
    parses: &mut ParseCache,
    tests: &GlobSet,
    changes: &[Changed],
) -> Result<(), GraphError> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut touched = HashSet::new();
    let mut again: BTreeSet<String> = BTreeSet::new();
    let mut packages: BTreeSet<String> = BTreeSet::new();
    let mut manifests = false;
    // Where all files are new, none of them needs to be found by what it reads.
    let is_first = state.files().is_empty();
    let java_roots: Vec<String> = state.java_roots().cloned().collect();
    for change in changes {
        let language = Language::of(&change.path);
        let before = state.file(&change.path).cloned();
        let mut after = None;
        match change.blob {
            Some(blob) => {
                let parse = parses.get(writer.connection, blob, language)?;
                let file = FileState::new(blob, language, &parse)?;
                // What others see of a file has the names of all its symbols.
                let is_known = before.as_ref().is_some_and(|before| before.interface == file.interface);
                if !is_known || parse.manifest.is_some() {
                    link::claim(writer.connection, writer.ids, &change.path, &parse)?;
                }
                state.insert(change.path.clone(), file.clone());
                again.insert(change.path.clone());
                after = Some(file);
            }
            None => {
                state.remove(&change.path);
                again.remove(&change.path);
                if let Some(held) = writer.clear(FactSource::File, &change.path)? {
                    packages.extend(held.packages);
                }
            }
        }
        manifests |= [&before, &after].into_iter().flatten().any(|file| file.has_manifest);
        if is_first {
            continue;
        }
        if before.is_none() || after.is_none() {
            touched.insert(link::existence_key(&change.path));
            touched.insert(link::listing_key(parent(&change.path)));
            let mut above = change.path.as_str();
            while !above.is_empty() {
                above = parent(above);
                touched.insert(link::below_key(above));
            }
        }
        if before.as_ref().map(|file| file.interface) != after.as_ref().map(|file| file.interface) {
            let mut parts = |file: Option<FileState>| match file {
                Some(file) => {
                    let parse = parses.get(writer.connection, file.blob, file.language)?;
                    interface::parts(&change.path, file.language, &parse)
                }
                None => Ok(BTreeMap::new()),
            };
            touched.extend(interface::differing(&parts(before)?, &parts(after)?));
        }
    }
    if manifests {
        touched.extend(state.read_manifests(writer.connection, parses)?);
    }
    if !is_first {
        again.extend(concerned(writer, &touched)?);
    }
    if !state.java_roots().eq(&java_roots) {
        let sources = state.files().iter().filter(|(_, file)| file.language == Language::Java);
        again.extend(sources.map(|(path, _)| path.clone()));
    }
    relink(writer, state, parses, tests, &again, &mut packages)?;
    writer.write_keys()?;
    settle_packages(writer, &packages)
}

/// Files whose links depend on something that has changed.
fn concerned(writer: &Writer<'_>, touched: &HashSet<i64>) -> Result<Vec<String>, GraphError> {
    let mut names = Vec::new();
    for key in touched {
        writer.readers(*key, &mut names)?;
    }
    Ok(names)
}

fn relink(
    writer: &mut Writer<'_>,
    state: &State,
    parses: &mut ParseCache,
    tests: &GlobSet,
    paths: &BTreeSet<String>,
    packages: &mut BTreeSet<String>,
) -> Result<(), GraphError> {
    // The links share the reader's memory; it comes back when all are made.
    let shared = RefCell::new(std::mem::take(parses));
    let memo = RefCell::new(Memo::default());
    let world = LinkContext { connection: writer.connection, state, parses: &shared, tests, memo };
    let done = paths.iter().try_for_each(|path| {
        let Some(file) = state.file(path) else { return Ok(()) };
        let Linked { facts, keys, packages: named } = link::link(&world, writer.ids, path, file)?;
        packages.extend(named.iter().cloned());
        let bytes = postcard::to_stdvec(file)?;
        let holding = NextFacts { file: Some(&bytes), facts, keys, packages: named };
        if let Some(before) = writer.set(FactSource::File, path, holding)? {
            packages.extend(before.packages);
        }
        Ok(())
    });
    *parses = shared.into_inner();
    done
}

/// A package outside the tree, and an import that leads nowhere, is there as long as a file names it.
fn settle_packages(writer: &mut Writer<'_>, packages: &BTreeSet<String>) -> Result<(), GraphError> {
    for package in packages {
        let named = writer.is_read(link::package_key(package))?;
        let held = writer.held(FactSource::Package, package)?.is_some();
        if named && !held {
            let fact = link::Outside::parse(package).node(writer.connection, writer.ids)?;
            writer.set(
                FactSource::Package,
                package,
                NextFacts { facts: vec![fact], ..NextFacts::default() },
            )?;
        } else if !named && held {
            writer.clear(FactSource::Package, package)?;
        }
    }
    Ok(())
}
