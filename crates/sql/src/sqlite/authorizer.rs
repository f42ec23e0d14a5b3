//! What a statement may do in SQLite, asked by SQLite itself while it compiles the statement.

use std::sync::{Arc, Mutex, PoisonError};

use super::actions::{Actions, changes_data, only_looks};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use tgp_contract::ToolError;

use crate::failure::esql;

const TRANSACTIONS: &str = "transactions are opened and closed by the kernel";
const TRANSACTIONS_HELP: &str = "return to commit, throw to roll back";

const WRITES_BEHIND: &str = "the query changes something while it runs";
const WRITES_BEHIND_HELP: &str = "use INSERT, UPDATE or DELETE for that";

/// Pragmas that only look, or whose effect is part of the transaction.
const PRAGMAS: [&str; 22] = [
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "defer_foreign_keys",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "module_list",
    "page_count",
    "pragma_list",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Functions that reach outside the database.
const FUNCTIONS: [&str; 6] = ["load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir"];

/// Virtual tables that keep their data in the database itself.
const MODULES: [&str; 6] = ["fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"];

/// Whose statement is being compiled, and why one was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Authorizer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    watch: Watch,
    refusal: Option<(String, &'static str)>,
    actions: Actions,
}

/// Whose statement is under way, and how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watch {
    /// It is our own.
    #[default]
    Off,
    /// A caller's is compiled, to be inspected and thrown away.
    Inspecting,
    /// A caller's is compiled, to be run.
    Compiling,
    /// A caller's runs, and is one that only reads.
    Reading,
    /// A caller's runs, and is one that writes.
    Writing,
}

impl Authorizer {
    fn with<T>(&self, use_state: impl FnOnce(&mut State) -> T) -> T {
        use_state(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From here on statements come from a caller.
    pub fn guard(&self, watch: Watch) {
        self.with(|state| *state = State { watch, ..State::default() });
    }

    /// From here on statements are our own. Gives the refusal of the caller's last one.
    pub fn release(&self) -> Option<ToolError> {
        let refusal = self.with(|state| {
            state.watch = Watch::Off;
            state.refusal.take()
        });
        refusal.map(|(message, help)| esql(message).detail("sqlCode", "SQLITE_AUTH").help(help))
    }

    /// What SQLite asked for while it compiled the caller's last statement.
    pub fn actions(&self) -> Actions {
        self.with(|state| std::mem::take(&mut state.actions))
    }

    /// SQLite's question.
    pub fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        self.with(|state| {
            let refusal = match state.watch {
                Watch::Off => return Authorization::Allow,
                Watch::Inspecting | Watch::Compiling => {
                    state.actions.note(context);
                    verdict(&context.action)
                }
                // What an extension of SQLite does behind a query must not be more than reading either.
                Watch::Reading if changes_data(&context.action) => {
                    Some((WRITES_BEHIND.to_owned(), WRITES_BEHIND_HELP))
                }
                Watch::Reading | Watch::Writing => verdict(&context.action),
            };
            // Some pragmas take effect while they are compiled, so one that is only inspected is passed over.
            let sets = matches!(&context.action, AuthAction::Pragma { pragma_name, pragma_value }
                if !only_looks(pragma_name, *pragma_value));
            match refusal {
                None if sets && state.watch == Watch::Inspecting => Authorization::Ignore,
                None => Authorization::Allow,
                Some((message, help)) => {
                    state.refusal = Some((message, help));
                    Authorization::Deny
                }
            }
        })
    }
}

/// Nothing when the action is allowed.
fn verdict(action: &AuthAction<'_>) -> Option<(String, &'static str)> {
    match action {
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            Some((TRANSACTIONS.to_owned(), TRANSACTIONS_HELP))
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Some((
            "other database files cannot be attached".to_owned(),
            "work in the one configured database",
        )),
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let name = pragma_name.to_ascii_lowercase();
            // R-trees ask for the size of a page. Setting it would take effect outside of the transaction.
            let is_size = name == "page_size" && pragma_value.is_none();
            (!is_size && !PRAGMAS.contains(&name.as_str())).then(|| {
                (format!("PRAGMA {name} is not allowed"), "only pragmas that describe the database are")
            })
        }
        AuthAction::Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            FUNCTIONS
                .contains(&name.as_str())
                .then(|| (format!("the function {name} is not allowed"), "it reaches outside the database"))
        }
        AuthAction::CreateVtable { module_name, .. } => {
            let name = module_name.to_ascii_lowercase();
            (!MODULES.contains(&name.as_str()))
                .then(|| (format!("virtual tables of the kind {name} are not allowed"), "use fts5 or rtree"))
        }
        AuthAction::Unknown { .. } => {
            Some(("the statement is not allowed".to_owned(), "it is of an unknown kind"))
        }
        _ => None,
    }
}
