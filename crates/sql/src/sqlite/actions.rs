//! What SQLite wants to do for a statement, and which kinds of statements that makes it.

use std::collections::BTreeSet;

use rusqlite::hooks::{AuthAction, AuthContext, TransactionOperation};

/// Where SQLite keeps its definitions. Every definition writes there, and no other statement can.
const SCHEMA_TABLES: [&str; 4] =
    ["sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"];

/// Tables of SQLite's own that some definitions change.
const INTERNAL_PREFIX: &str = "sqlite_";

/// How the tables begin that run a pragma.
const PRAGMA_PREFIX: &str = "pragma_";

/// Pragmas whose argument says what to read. The argument of every other one is a value to set.
const QUERY_PRAGMAS: [&str; 14] = [
    "collation_list",
    "compile_options",
    "foreign_key_check",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "module_list",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Functions of a query that write. FTS3 has this one.
const WRITING_FUNCTIONS: [&str; 1] = ["optimize"];

/// Everything that SQLite asked for while it compiled one statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Actions {
    kinds: BTreeSet<&'static str>,
    /// Tables, in lower case, whose rows it changes, and how.
    changed: BTreeSet<(String, &'static str)>,
    /// Tables and views, in lower case, that it drops.
    dropped: BTreeSet<String>,
    /// It changes rows by itself, not by a trigger.
    changes_rows: bool,
    makes_index: bool,
    /// It has something that no kind has a name for, or that writes where a query is expected.
    is_doubtful: bool,
}

impl Actions {
    /// Takes one question of SQLite.
    pub fn note(&mut self, context: &AuthContext<'_>) {
        let (kind, table) = match &context.action {
            AuthAction::Insert { table_name } => ("insert", Some(*table_name)),
            AuthAction::Update { table_name, .. } => ("update", Some(*table_name)),
            AuthAction::Delete { table_name } => ("delete", Some(*table_name)),
            AuthAction::Function { function_name } => {
                self.is_doubtful |=
                    WRITING_FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name));
                return;
            }
            AuthAction::Pragma { pragma_name, pragma_value } => {
                self.is_doubtful |= !only_looks(pragma_name, *pragma_value);
                self.kinds.insert("pragma");
                return;
            }
            // SQLite asks for a pragma only when its function runs. Its table is read before that.
            AuthAction::Read { table_name, .. } => {
                if is_pragma_table(table_name) {
                    self.kinds.insert("pragma");
                }
                return;
            }
            AuthAction::Recursive => return,
            action => {
                self.note_definition(action);
                return;
            }
        };
        let Some(table) = table.map(str::to_ascii_lowercase) else { return };
        if SCHEMA_TABLES.contains(&table.as_str()) {
            return;
        }
        self.changes_rows |= context.accessor.is_none();
        self.changed.insert((table, kind));
    }

    fn note_definition(&mut self, action: &AuthAction<'_>) {
        let kind = match action {
            AuthAction::Select => "select",
            AuthAction::CreateTable { .. }
            | AuthAction::CreateTempTable { .. }
            | AuthAction::CreateTrigger { .. }
            | AuthAction::CreateTempTrigger { .. }
            | AuthAction::CreateView { .. }
            | AuthAction::CreateTempView { .. }
            | AuthAction::CreateVtable { .. } => "create",
            AuthAction::CreateIndex { .. } | AuthAction::CreateTempIndex { .. } => {
                self.makes_index = true;
                "create"
            }
            AuthAction::DropTable { table_name }
            | AuthAction::DropTempTable { table_name }
            | AuthAction::DropVtable { table_name, .. } => {
                self.dropped.insert(table_name.to_ascii_lowercase());
                "drop"
            }
            AuthAction::DropView { view_name } | AuthAction::DropTempView { view_name } => {
                self.dropped.insert(view_name.to_ascii_lowercase());
                "drop"
            }
            AuthAction::DropIndex { .. }
            | AuthAction::DropTempIndex { .. }
            | AuthAction::DropTrigger { .. }
            | AuthAction::DropTempTrigger { .. } => "drop",
            AuthAction::AlterTable { .. } => "alter",
            AuthAction::Reindex { .. } => "reindex",
            AuthAction::Analyze { .. } => "analyze",
            AuthAction::Attach { .. } => "attach",
            AuthAction::Detach { .. } => "detach",
            AuthAction::Savepoint { .. } => "savepoint",
            AuthAction::Transaction { operation } => match operation {
                TransactionOperation::Begin => "begin",
                TransactionOperation::Rollback => "rollback",
                _ => "commit",
            },
            _ => {
                self.is_doubtful = true;
                return;
            }
        };
        self.kinds.insert(kind);
    }

    /// The kinds of the statement `sql`, in a fixed order. None at all means that SQLite asked for nothing.
    pub fn kinds(&self, sql: &str) -> Vec<String> {
        let has = |kind: &str| self.kinds.contains(kind);
        let defines = ["drop", "alter", "analyze"].iter().any(|kind| has(kind));
        let mut kinds = self.kinds.clone();
        if self.makes_index {
            kinds.remove("reindex");
        }
        if has("analyze") {
            // It makes its own tables.
            kinds.remove("create");
        }
        // SQLite makes internal selections, for rows after `VALUES` and for definitions. A selection of the caller
        // needs the word, which SQLite knows in ASCII only.
        if !sql.to_ascii_lowercase().contains("select") {
            kinds.remove("select");
        }
        for (table, kind) in &self.changed {
            // A definition keeps SQLite's own tables up to date, and drops a table with its rows.
            let is_implied =
                defines && (table.starts_with(INTERNAL_PREFIX) || self.dropped.contains(table.as_str()));
            if !is_implied {
                kinds.insert(kind);
            }
        }
        kinds.into_iter().map(str::to_owned).collect()
    }

    /// Whether its count of changed rows is one of rows that the statement names itself.
    pub fn counts_changes(&self) -> bool {
        let defines = ["drop", "alter", "analyze", "create", "reindex", "pragma"];
        self.changes_rows && !defines.iter().any(|kind| self.kinds.contains(kind))
    }

    /// Whether it may do something that its kinds do not say.
    pub fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }
}

/// Whether a table is one of SQLite's functions for pragmas, such as `pragma_table_info('t')`. A table of the database
/// that has such a name counts as one.
fn is_pragma_table(table: &str) -> bool {
    table.get(..PRAGMA_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PRAGMA_PREFIX))
}

/// Whether a pragma that is allowed sets nothing.
pub(crate) fn only_looks(name: &str, value: Option<&str>) -> bool {
    value.is_none() || QUERY_PRAGMAS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether an action changes anything that a later statement could see.
pub(crate) fn changes_data(action: &AuthAction<'_>) -> bool {
    let is_schema = |table: &str| SCHEMA_TABLES.iter().any(|name| name.eq_ignore_ascii_case(table));
    match action {
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. } => !is_schema(table_name),
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive
        | AuthAction::Pragma { .. } => false,
        _ => true,
    }
}
