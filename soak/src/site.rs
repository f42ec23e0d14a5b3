//! A project under load: its database, its remote, its tools and its server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;
use tgp_hostile::needs::{MYSQL_VARIABLE, POSTGRES_VARIABLE};
use tgp_hostile::process::{self, Ran};
use tgp_hostile::project::Project;

use crate::ledger::{Ledger, Reported};
use crate::load::{socket_tools, tool_source};
use crate::program::LIMIT;
use crate::server::Server;

/// Where rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
    Mariadb,
}

impl Database {
    /// The name in messages and in the names of folders.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        }
    }

    /// The variable that names the server; nothing where there is no server.
    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(POSTGRES_VARIABLE),
            Self::Mariadb => Some(MYSQL_VARIABLE),
        }
    }

    /// Every database of this machine, and the variables of those that it does not have.
    #[must_use]
    pub fn present() -> (Vec<Self>, Vec<&'static str>) {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let mut missing = Vec::new();
        let mut present = Vec::new();
        for database in [Self::Sqlite, Self::Postgres, Self::Mariadb] {
            match database.variable() {
                Some(variable) if !is_set(variable) => missing.push(variable),
                _ => present.push(database),
            }
        }
        (present, missing)
    }
}

/// The tools of the load. `{t}` is the table, `{n}` the table of the valve's tool.
const TOOLS: [(&str, &str); 6] = [
    ("both", "{body}\n  return args.n;"),
    ("nested", "return await tgp.exec_tool('tools/both.ts', { n: args.n, ms: args.ms });"),
    (
        "fans",
        "return await Promise.all([\n    tgp.exec_tool('tools/both.ts', { n: args.n, ms: args.ms }),\n    \
         tgp.exec_tool('tools/both.ts', { n: args.n + 1, ms: args.ms }),\n  ]);",
    ),
    (
        "catches",
        "{body}\n  let caught = 0;\n  try {\n    await tgp.exec_tool('tools/fails.ts', { n: args.n + 1, ms: 0 });\n  \
         } catch {\n    caught = 1;\n  }\n  return caught;",
    ),
    ("fails", "{body}\n  throw new Error('it fails');"),
    (
        "note",
        "await tgp.exec_sql('INSERT INTO {n} (event) VALUES (:event)', { event: args.trigger.eventId });\n  return 1;",
    ),
];

const BODY: &str = "await tgp.write_file(`out/${args.n}.txt`, `${args.n}\\n`);\n  \
     if (args.ms > 0) await new Promise((end) => setTimeout(end, args.ms));\n  \
     await tgp.exec_sql('INSERT INTO {t} (n) VALUES (:n)', { n: args.n });";

/// What the valve does.
const PERSONAS: &str = "personas:\n  - name: noter\n    filters: [\"src/watch/\"]\n    \
     action: {tool: \"tools/note.ts\"}\n";

/// What a query of the load does.
const QUERY: &str = "query Soak($both: [Int], $nested: [Int], $fails: [Int], $ms: Int) {\n  \
     both: map(n in $both, concurrency: 4) { run: exec(\"tools/both.ts\", on_error: skip) { n: n, ms: $ms } }\n  \
     nested: map(n in $nested, concurrency: 2) { run: exec(\"tools/nested.ts\", on_error: skip) { n: n, ms: $ms } }\n  \
     fails: map(n in $fails, concurrency: 2) { run: exec(\"tools/fails.ts\", on_error: skip) { n: n, ms: $ms } }\n}\n";

/// See the module's documentation.
pub struct Site {
    pub database: Database,
    pub project: Project,
    pub ledger: Ledger,
    pub server: Server,
    /// The bare repository that tools are pushed to, not on the small disk.
    pub remote: PathBuf,
    /// Where the soak keeps its own files, not on the small disk.
    pub aside: PathBuf,
    token: String,
    rows: String,
    notes: String,
}

impl Site {
    /// Makes the project in `disk`, its remote in `aside`, and its tools and tables.
    ///
    /// # Errors
    /// When something of it cannot be made.
    pub fn new(database: Database, disk: &Path, aside: &Path, binary: &Path, mark: &str) -> Result<Self> {
        let aside = aside.join(database.name());
        std::fs::create_dir_all(&aside)?;
        let remote = aside.join("remote.git");
        let project = Project::new(disk, binary, mark)?;
        let socket = project.root().join("s");
        let id = std::process::id();
        let mut site = Self {
            database,
            server: Server::new(socket, aside.join("server.log")),
            project,
            ledger: Ledger::default(),
            remote,
            aside,
            token: String::new(),
            rows: format!("soak_rows_{id}"),
            notes: format!("soak_notes_{id}"),
        };
        site.prepare()?;
        Ok(site)
    }

    fn prepare(&mut self) -> Result<()> {
        let remote = self.remote.display().to_string();
        self.must(self.git(&["init", "--quiet", "--bare", "--initial-branch=main", &remote]))?;
        let url = self.database.variable().and_then(|name| std::env::var(name).ok());
        let database = url.map(|url| format!("db: {{ url: '{url}' }},")).unwrap_or_default();
        self.project.configure(&format!(
            "git: {{ url: '{remote}' }},\nfs: {{ allowedDirs: ['./out'] }},\ntdd: {{ mode: 'explore' }},\n\
             audit: {{ durability: 'call' }},\n{database}"
        ))?;
        self.project.prepare(&["trust", "--yes"])?;
        self.project.prepare(&["sql", &format!("CREATE TABLE {} (n INTEGER)", self.rows)])?;
        self.project.prepare(&["sql", &format!("CREATE TABLE {} (event VARCHAR(80))", self.notes)])?;
        for (name, body) in TOOLS {
            let arguments = match name {
                "note" => "{ trigger: { eventId: string } }",
                _ => "{ n: number; ms: number }",
            };
            let body = body.replace("{body}", BODY).replace("{t}", &self.rows).replace("{n}", &self.notes);
            let source = format!(
                "/** Part of the soak: {name}. */\nexport default async function {name}(args: {arguments}): \
                 Promise<unknown> {{\n  {body}\n}}\n"
            );
            self.project.prepare(&["write", &format!("tools/{name}.ts"), "--content", &source])?;
        }
        let socket_tools = if self.database == Database::Sqlite { socket_tools() } else { Vec::new() };
        for path in socket_tools {
            let version = self.ledger.number();
            self.project.prepare(&["write", &path, "--content", &tool_source(&path, version)])?;
            self.ledger.forge_settled(&path, version, Reported::Success, &Value::Null);
        }
        self.project.write("soak.aql", QUERY)?;
        self.project.write(".sage/valve.yml", PERSONAS)?;
        self.project.write("src/watch/first.txt", "first\n")?;
        self.project.prepare(&["valve", "scan"])?;
        self.token = self.project.prepare(&["token", "mint", "--all"])?.trim().to_owned();
        Ok(())
    }

    /// The token of socket clients.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The table of the runs.
    #[must_use]
    pub fn rows(&self) -> &str {
        &self.rows
    }

    /// The table of the valve's tool.
    #[must_use]
    pub fn notes(&self) -> &str {
        &self.notes
    }

    /// `tgp` with these arguments.
    #[must_use]
    pub fn tgp(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.command();
        command.args(arguments);
        command
    }

    /// `git` with these arguments, in the clean environment of the project.
    #[must_use]
    pub fn git(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.program("git");
        // The remote belongs to this user also inside of a user namespace.
        command.args(["-c", "safe.directory=*"]).args(arguments);
        command
    }

    /// Runs a program while no actor is at work.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn quiet(&self, command: Command) -> Result<Ran> {
        process::run(command, "", LIMIT, &self.aside)
    }

    /// Runs a program that must succeed while no actor is at work, and gives what it printed.
    ///
    /// # Errors
    /// When it does not succeed.
    pub fn must(&self, command: Command) -> Result<String> {
        let shown = format!("{command:?}").chars().rev().take(200).collect::<String>();
        let ran = self.quiet(command)?;
        if ran.code != Some(0) {
            let shown: String = shown.chars().rev().collect();
            bail!("…{shown} ended with {:?}: {}", ran.code, ran.said());
        }
        Ok(ran.stdout)
    }

    /// The data of a command with `--json` that must succeed.
    ///
    /// # Errors
    /// When it does not succeed, or prints no document.
    pub fn data(&self, arguments: &[&str]) -> Result<Value> {
        let mut words = vec!["--json"];
        words.extend(arguments);
        let document: Value = serde_json::from_str(&self.must(self.tgp(&words))?)?;
        Ok(document.get("data").cloned().unwrap_or_default())
    }

    /// Removes what is not on the small disk: the tables of a database server.
    ///
    /// # Errors
    /// When a lock that is still held keeps a table from going.
    pub fn drop_tables(&self) -> Result<()> {
        for table in [&self.rows, &self.notes] {
            self.must(self.tgp(&["sql", &format!("DROP TABLE {table}")]))?;
        }
        Ok(())
    }
}
