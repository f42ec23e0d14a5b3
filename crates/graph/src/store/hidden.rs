//! What of the graph belongs to files that the caller may not see.
//!
//! A node belongs to a hidden file where it is the file, a symbol of it, or the package that it describes. So does the
//! file under a name that it had before: where a rename led to a hidden file, the older name is hidden at every moment
//! at which the rename has not happened yet. A package outside the tree is hidden where only hidden files import it. An
//! import that leads to no file is hidden where the file that it would lead to would be: whether a hidden file exists does
//! not show in what is missing.
//! What comes out is a list of nodes for one moment, which the compiler puts before every match.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, params};
use tgp_contract::{RelativePath, Root, Visibility};

use crate::ingest::language::{Language, parent};
use crate::tables::connect::meta;
use crate::tables::failure::GraphError;
use crate::tables::schema::RENAME;

/// Nodes of one moment as a JSON array, for the SQL of a query.
pub(crate) type HiddenNodes = Arc<str>;

/// Lists that are kept: a session asks about the head and the work tree, and names a commit now and then.
const KEPT: usize = 8;

/// A file or a tool that the graph knows at any moment.
#[derive(Debug)]
struct KnownFile {
    id: i64,
    root: Root,
    /// `None` for a name that no call can have: only a caller that may see everything sees it.
    path: Option<RelativePath>,
    /// As the graph has it.
    name: String,
}

/// Every file that the graph knows, with what never changes about who sees it.
#[derive(Debug)]
struct Catalogue {
    fixed: Visibility,
    /// Hidden by the fixed part.
    hidden: Vec<usize>,
    /// Shown by the fixed part.
    open: Vec<usize>,
    files: Vec<KnownFile>,
}

impl Catalogue {
    fn read(connection: &Connection, visible: &Visibility) -> Result<Self, GraphError> {
        let mut statement = connection.prepare_cached(
            "SELECT DISTINCT n.id, l.name, json_extract(n.props, '$.path') FROM label AS l \
             CROSS JOIN node AS n ON n.id = l.node WHERE l.name IN ('File', 'Tool')",
        )?;
        let rows = statement.query_map([], |row| {
            let name: Option<String> = row.get(2)?;
            Ok((row.get(0)?, row.get::<_, String>(1)?, name.unwrap_or_default()))
        })?;
        let mut files = Vec::new();
        for row in rows {
            let (id, label, name) = row?;
            let root = if label == "Tool" { Root::Tools } else { Root::Project };
            // Where a path is spelled in another way than calls spell it, no rule can be trusted to mean it.
            let path = RelativePath::new(&name).ok().filter(|path| path.as_str() == name);
            files.push(KnownFile { id, root, path, name });
        }
        files.extend(missing_files(connection)?);
        let fixed = visible.fixed_part();
        let (open, hidden) =
            (0..files.len()).partition(|at| files.get(*at).is_some_and(|file| file.is_shown(&fixed)));
        Ok(Self { fixed, hidden, open, files })
    }

    /// The places of the hidden files, in order.
    fn hidden_by(&self, visible: &Visibility) -> Vec<usize> {
        let varying = visible.varying_part();
        let mut hidden = self.hidden.clone();
        if !varying.is_everything() {
            let is_hidden = |at: &&usize| self.files.get(**at).is_some_and(|file| !file.is_shown(&varying));
            hidden.extend(self.open.iter().filter(is_hidden));
        }
        hidden.sort_unstable();
        hidden
    }
}

/// What may follow the path that an import names, so that it is the path of a file.
const ENDINGS: [&str; 14] = [
    "",
    ".ts",
    ".tsx",
    ".js",
    ".jsx",
    ".json",
    ".py",
    ".rs",
    ".go",
    ".java",
    "/index.ts",
    "/index.js",
    "/__init__.py",
    "/mod.rs",
];

/// The files that unresolved imports would lead to, each with the node that represents the import.
fn missing_files(connection: &Connection) -> Result<Vec<KnownFile>, GraphError> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT n.id, json_extract(n.props, '$.target') FROM label AS l \
         CROSS JOIN node AS n ON n.id = l.node \
         WHERE l.name = 'Unresolved' AND json_extract(n.props, '$.target') IS NOT NULL",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    let mut files = Vec::new();
    for row in rows {
        let (id, target) = row?;
        files.extend(ENDINGS.iter().map(|ending| {
            let name = format!("{target}{ending}");
            KnownFile { id, root: Root::Project, path: RelativePath::new(&name).ok(), name }
        }));
    }
    Ok(files)
}

impl KnownFile {
    fn is_shown(&self, visible: &Visibility) -> bool {
        visible.is_everything() || self.path.as_ref().is_some_and(|path| visible.shows(self.root, path))
    }
}

/// What was found out for the questions before.
#[derive(Default)]
pub(crate) struct HiddenCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The state of the store that all of it is about.
    generation: Option<String>,
    catalogue: Option<Arc<Catalogue>>,
    /// By moment and hidden files, the newest last.
    nodes: Vec<(i64, Vec<usize>, HiddenNodes)>,
}

/// The files of one store that one caller may not see.
pub(crate) struct Hidden<'c> {
    connection: &'c Connection,
    catalogue: Arc<Catalogue>,
    files: Vec<usize>,
    cache: Option<&'c HiddenCache>,
}

impl HiddenCache {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalogue(&self, connection: &Connection, visible: &Visibility) -> Result<Arc<Catalogue>, GraphError> {
        let generation = meta(connection, "generation")?;
        {
            let mut kept = self.kept();
            if kept.generation != generation {
                *kept = Kept { generation: generation.clone(), ..Kept::default() };
            }
            if let Some(known) = kept.catalogue.as_ref().filter(|known| known.fixed.same_fixed(visible)) {
                return Ok(Arc::clone(known));
            }
        }
        let read = Arc::new(Catalogue::read(connection, visible)?);
        let mut kept = self.kept();
        if kept.generation == generation {
            kept.catalogue = Some(Arc::clone(&read));
            kept.nodes.clear();
        }
        Ok(read)
    }
}

impl<'c> Hidden<'c> {
    /// `None` when the graph has nothing that the caller may not see. Without a cache everything is looked up: a trial
    /// has no generation.
    pub(crate) fn of(
        connection: &'c Connection,
        visible: &Visibility,
        cache: Option<&'c HiddenCache>,
    ) -> Result<Option<Self>, GraphError> {
        if visible.is_everything() {
            return Ok(None);
        }
        let catalogue = match cache {
            Some(cache) => cache.catalogue(connection, visible)?,
            None => Arc::new(Catalogue::read(connection, visible)?),
        };
        let files = catalogue.hidden_by(visible);
        Ok((!files.is_empty()).then_some(Self { connection, catalogue, files, cache }))
    }

    /// The nodes that are hidden at a moment.
    pub(crate) fn at(&self, moment: i64) -> Result<HiddenNodes, GraphError> {
        let is_this =
            |(at, files, _): &&(i64, Vec<usize>, HiddenNodes)| *at == moment && *files == self.files;
        if let Some(cache) = self.cache {
            let kept = cache.kept();
            // Another generation has another catalogue.
            let same = kept.catalogue.as_ref().is_some_and(|known| Arc::ptr_eq(known, &self.catalogue));
            if same && let Some((.., nodes)) = kept.nodes.iter().find(is_this) {
                return Ok(Arc::clone(nodes));
            }
        }
        let ids: Vec<String> = self.nodes(moment)?.iter().map(i64::to_string).collect();
        let nodes: HiddenNodes = format!("[{}]", ids.join(",")).into();
        if let Some(cache) = self.cache {
            let mut kept = cache.kept();
            if kept.catalogue.as_ref().is_some_and(|known| Arc::ptr_eq(known, &self.catalogue)) {
                if kept.nodes.len() >= KEPT {
                    kept.nodes.remove(0);
                }
                kept.nodes.push((moment, self.files.clone(), Arc::clone(&nodes)));
            }
        }
        Ok(nodes)
    }

    fn nodes(&self, moment: i64) -> Result<BTreeSet<i64>, GraphError> {
        let files: BTreeMap<i64, &KnownFile> = self
            .files
            .iter()
            .filter_map(|at| self.catalogue.files.get(*at))
            .map(|file| (file.id, file))
            .collect();
        let older = self.older_names(&files)?;
        let all: BTreeMap<i64, &KnownFile> = self
            .catalogue
            .files
            .iter()
            .map(|file| (file.id, file))
            .filter(|(id, _)| older.contains(id))
            .collect();
        let mut hidden = BTreeSet::new();
        let mut renamed = self.connection.prepare_cached(
            "SELECT 1 FROM edge WHERE target = ?1 AND type = ?2 AND since <= ?3 AND until > ?3",
        )?;
        for file in files.values() {
            self.add_file(file, &mut hidden)?;
        }
        for (id, file) in all {
            // After the rename, a file of the older name is another file.
            if !renamed.exists(params![id, RENAME, moment])? {
                self.add_file(file, &mut hidden)?;
            }
        }
        self.add_imported(moment, &mut hidden)?;
        Ok(hidden)
    }

    /// The names that hidden files had before, as far back as the graph knows, without those that are hidden anyway.
    fn older_names(&self, files: &BTreeMap<i64, &KnownFile>) -> Result<BTreeSet<i64>, GraphError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT DISTINCT target FROM edge WHERE source = ?1 AND type = ?2")?;
        let mut open: Vec<i64> = files.keys().copied().collect();
        let mut found = BTreeSet::new();
        while let Some(id) = open.pop() {
            let rows = statement.query_map(params![id, RENAME], |row| row.get::<_, i64>(0))?;
            for row in rows {
                let older = row?;
                if !files.contains_key(&older) && found.insert(older) {
                    open.push(older);
                }
            }
        }
        Ok(found)
    }

    /// The file, its symbols, and the package that it describes.
    fn add_file(&self, file: &KnownFile, hidden: &mut BTreeSet<i64>) -> Result<(), GraphError> {
        hidden.insert(file.id);
        if file.root != Root::Project {
            return Ok(());
        }
        let mut symbols = self.connection.prepare_cached(
            "SELECT DISTINCT n.id FROM node AS n WHERE json_extract(n.props, '$.path') = ?1 \
             AND EXISTS (SELECT 1 FROM label WHERE name = 'Symbol' AND node = n.id)",
        )?;
        for id in symbols.query_map([&file.name], |row| row.get::<_, i64>(0))? {
            hidden.insert(id?);
        }
        let language = Language::of(&file.name);
        let Some(ecosystem) = language.ecosystem().filter(|_| language.is_manifest()) else { return Ok(()) };
        let mut packages = self.connection.prepare_cached(
            "SELECT DISTINCT n.id FROM node AS n WHERE json_extract(n.props, '$.path') = ?1 \
             AND json_extract(n.props, '$.ecosystem') = ?2 \
             AND EXISTS (SELECT 1 FROM label WHERE name = 'Package' AND node = n.id)",
        )?;
        let rows =
            packages.query_map(params![parent(&file.name), ecosystem.name()], |row| row.get::<_, i64>(0))?;
        for id in rows {
            hidden.insert(id?);
        }
        Ok(())
    }

    /// Nodes for something outside the tree, which exist only because hidden files name them.
    fn add_imported(&self, moment: i64, hidden: &mut BTreeSet<i64>) -> Result<(), GraphError> {
        let mut named = self.connection.prepare_cached(
            "SELECT DISTINCT e.target FROM edge AS e WHERE e.source = ?1 AND e.type = 'IMPORTS' \
             AND EXISTS (SELECT 1 FROM node AS n WHERE n.id = e.target AND json_extract(n.props, '$.path') IS NULL) \
             AND NOT EXISTS (SELECT 1 FROM label WHERE name IN ('File', 'Symbol', 'Tool', 'Commit') AND node = e.target)",
        )?;
        let mut outside = BTreeSet::new();
        for id in hidden.iter() {
            for row in named.query_map([id], |row| row.get::<_, i64>(0))? {
                outside.insert(row?);
            }
        }
        let mut importers = self.connection.prepare_cached(
            "SELECT source FROM edge WHERE target = ?1 AND type = 'IMPORTS' AND since <= ?2 AND until > ?2",
        )?;
        for id in outside {
            let mut rows = importers.query(params![id, moment])?;
            let mut is_named = false;
            while let Some(row) = rows.next()? {
                is_named = is_named || !hidden.contains(&row.get(0)?);
            }
            if !is_named {
                hidden.insert(id);
            }
        }
        Ok(())
    }
}
