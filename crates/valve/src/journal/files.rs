//! What is known of each file, and the rules by which it was seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Row, params};
use tgp_contract::RelativePath;

use super::{JournalTx, signed, unsigned};
use crate::failure::Failure;
use crate::tree::{Scope, Stamp};

/// What was known of a file when it was last scanned.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) stamp: Stamp,
    pub(crate) sha256: String,
    pub(crate) is_settled: bool,
}

impl Known {
    /// A file of which only the last reported content is known.
    pub(crate) fn recalled(sha256: String) -> Self {
        let stamp = Stamp { size: 0, mtime_ns: 0, ctime_ns: 0, device: 0, inode: 0, born_ns: None };
        Self { stamp, sha256, is_settled: false }
    }
}

const COLUMNS: &str = "path, size, mtime_ns, ctime_ns, device, inode, born_ns, sha256, is_settled";

impl JournalTx<'_> {
    /// All that is known of a part of the tree.
    pub(crate) fn known(&self, scope: &Scope) -> Result<HashMap<RelativePath, Known>, Failure> {
        let mut known = HashMap::new();
        match scope {
            Scope::Whole => {
                let mut statement =
                    self.transaction.prepare_cached(&format!("SELECT {COLUMNS} FROM file"))?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let (path, entry) = read(row)?;
                    known.insert(path, entry);
                }
            }
            Scope::Paths(paths) if paths.contains(&RelativePath::root()) => return self.known(&Scope::Whole),
            Scope::Paths(paths) => self.known_below(paths, &mut known)?,
        }
        Ok(known)
    }

    fn known_below(
        &self,
        paths: &BTreeSet<RelativePath>,
        known: &mut HashMap<RelativePath, Known>,
    ) -> Result<(), Failure> {
        // `0` is the character after `/`, so the second range is all below the path.
        let mut statement = self.transaction.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM file WHERE path = ?1
             UNION ALL SELECT {COLUMNS} FROM file WHERE path > ?1 || '/' AND path < ?1 || '0'"
        ))?;
        for path in paths {
            let mut rows = statement.query([path.as_str()])?;
            while let Some(row) = rows.next()? {
                let (path, entry) = read(row)?;
                known.insert(path, entry);
            }
        }
        Ok(())
    }

    /// The files that were known by one of some inodes.
    pub(crate) fn known_as(&self, stamps: &[Stamp]) -> Result<Vec<(RelativePath, Known)>, Failure> {
        let mut statement =
            self.transaction.prepare_cached(&format!("SELECT {COLUMNS} FROM file WHERE inode = ?1"))?;
        let mut found = Vec::new();
        for stamp in stamps {
            let mut rows = statement.query([signed(stamp.inode)])?;
            while let Some(row) = rows.next()? {
                let (path, known) = read(row)?;
                if known.stamp.is_same_inode(stamp) {
                    found.push((path, known));
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn file_count(&self) -> Result<u64, Failure> {
        let mut statement = self.transaction.prepare_cached("SELECT count(*) FROM file")?;
        Ok(unsigned(statement.query_row([], |row| row.get(0))?))
    }

    pub(crate) fn remember(&self, path: &RelativePath, known: &Known) -> Result<(), Failure> {
        let mut statement = self.transaction.prepare_cached(
            "INSERT OR REPLACE INTO file
                 (path, size, mtime_ns, ctime_ns, device, inode, born_ns, sha256, is_settled)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let stamp = &known.stamp;
        statement.execute(params![
            path.as_str(),
            signed(stamp.size),
            stamp.mtime_ns,
            stamp.ctime_ns,
            signed(stamp.device),
            signed(stamp.inode),
            stamp.born_ns,
            known.sha256,
            known.is_settled,
        ])?;
        Ok(())
    }

    pub(crate) fn forget(&self, path: &RelativePath) -> Result<(), Failure> {
        self.transaction.prepare_cached("DELETE FROM file WHERE path = ?1")?.execute([path.as_str()])?;
        Ok(())
    }

    /// Files that were reported and are ignored now, with the content that was last reported.
    pub(crate) fn hidden(&self) -> Result<Vec<(RelativePath, String)>, Failure> {
        let mut statement = self.transaction.prepare_cached("SELECT path, sha256 FROM hidden")?;
        let mut rows = statement.query([])?;
        let mut hidden = Vec::new();
        while let Some(row) = rows.next()? {
            hidden.push((relative(row.get(0)?)?, row.get(1)?));
        }
        Ok(hidden)
    }

    pub(crate) fn hide(&self, path: &RelativePath, sha256: &str) -> Result<(), Failure> {
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO hidden (path, sha256) VALUES (?1, ?2)")?
            .execute(params![path.as_str(), sha256])?;
        Ok(())
    }

    pub(crate) fn unhide(&self, path: &RelativePath) -> Result<(), Failure> {
        self.transaction.prepare_cached("DELETE FROM hidden WHERE path = ?1")?.execute([path.as_str()])?;
        Ok(())
    }

    /// The texts of the rules by which the files were seen.
    pub(crate) fn rules(&self) -> Result<BTreeMap<RelativePath, String>, Failure> {
        let mut statement = self.transaction.prepare_cached("SELECT path, text FROM rule")?;
        let mut rows = statement.query([])?;
        let mut texts = BTreeMap::new();
        while let Some(row) = rows.next()? {
            texts.insert(relative(row.get(0)?)?, row.get(1)?);
        }
        Ok(texts)
    }

    pub(crate) fn set_rules(&self, texts: &BTreeMap<RelativePath, String>) -> Result<(), Failure> {
        self.transaction.prepare_cached("DELETE FROM rule")?.execute([])?;
        let mut statement =
            self.transaction.prepare_cached("INSERT INTO rule (path, text) VALUES (?1, ?2)")?;
        for (path, text) in texts {
            statement.execute(params![path.as_str(), text])?;
        }
        Ok(())
    }
}

fn read(row: &Row<'_>) -> Result<(RelativePath, Known), Failure> {
    let stamp = Stamp {
        size: unsigned(row.get(1)?),
        mtime_ns: row.get(2)?,
        ctime_ns: row.get(3)?,
        device: unsigned(row.get(4)?),
        inode: unsigned(row.get(5)?),
        born_ns: row.get(6)?,
    };
    Ok((relative(row.get(0)?)?, Known { stamp, sha256: row.get(7)?, is_settled: row.get(8)? }))
}

/// A path that was a path when it was written.
pub(super) fn relative(text: String) -> Result<RelativePath, Failure> {
    RelativePath::try_from(text).map_err(|error| Failure::Nonsense(error.to_string()))
}
