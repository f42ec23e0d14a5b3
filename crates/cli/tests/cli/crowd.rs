//! A project on one database whose tools insert a row and write a file, and the check that both agree with the audit.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::processes::{send, start_session};
use crate::project::Project;

pub const POSTGRES: &str = "TGP_TEST_POSTGRES_URL";
pub const MYSQL: &str = "TGP_TEST_MYSQL_URL";

/// What a hanging program is killed after. A loaded machine takes a while; a hang lasts forever.
pub const WATCHDOG: Duration = Duration::from_secs(120);

/// What the second number of a run is more than its first.
pub const SECOND: u64 = 1000;

static TABLES: AtomicUsize = AtomicUsize::new(0);

/// See the module's documentation.
pub struct Crowd {
    pub project: Project,
    pub table: String,
}

/// How a run was reported to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    Success,
    Failure,
    /// The caller has gone away before it could be informed.
    Nothing,
}

/// Every database there is: SQLite always, the servers where their variables name them.
pub fn databases() -> Vec<Option<String>> {
    let mut all = vec![None];
    for variable in [POSTGRES, MYSQL] {
        match std::env::var(variable) {
            Ok(url) => all.push(Some(url)),
            Err(_) => println!("skipped: {variable} is not set"),
        }
    }
    all
}

impl Crowd {
    pub fn new(url: Option<&str>) -> Self {
        let project = Project::initialised();
        let number = TABLES.fetch_add(1, Ordering::Relaxed);
        let table = format!("crowd_{}_{number}", std::process::id());
        let crowd = Self { project, table };
        crowd.configure(url);
        crowd.project.run(&["sql", &crowd.text("CREATE TABLE {t} (n INTEGER PRIMARY KEY)")]).expect_code(0);
        let body = "await tgp.exec_sql('INSERT INTO {t} (n) VALUES (:n)', { n: args.n });\n  \
                    await tgp.write_file(`out/${args.n}.txt`, `${args.n}`);";
        crowd.tool("both", &format!("{body}\n  return args.n;"));
        crowd.tool("nested", "return await tgp.exec_tool('tools/both.ts', { n: args.n });");
        let inner = |number: &str| format!("tgp.exec_tool('tools/both.ts', {{ n: {number} }})");
        let (first, second) = (inner("args.n"), inner(&format!("args.n + {SECOND}")));
        crowd.tool("fans", &format!("return await Promise.all([{first}, {second}]);"));
        crowd.tool("fails", &format!("{body}\n  throw new Error('no');"));
        crowd.tool("spins", &format!("{body}\n  for (;;) {{}}"));
        crowd.tool("waits", &format!("{body}\n  await new Promise((end) => setTimeout(end, 60_000));"));
        crowd
    }

    /// Another way to the same database.
    pub fn configure(&self, url: Option<&str>) {
        let database = url.map(|url| format!("db: {{ url: '{url}' }}, ")).unwrap_or_default();
        self.project.write(
            "tgp.config.ts",
            &format!(
                "export default {{ {database}fs: {{ allowedDirs: ['./out'] }}, tdd: {{ mode: 'explore' }},\n  \
                 sandbox: {{ cpuMs: 1000, wallMs: 60000 }} }};\n"
            ),
        );
        // Other programs may be at work in the project.
        let trusted = self.project.command(&["trust", "--yes"]).output().unwrap();
        assert!(trusted.status.success(), "{trusted:?}");
    }

    fn tool(&self, name: &str, body: &str) {
        let source = format!(
            "/** Part of a crowd. */\nexport default async function run(args: {{ n: number }}): Promise<unknown> {{\n  {}\n}}\n",
            self.text(body)
        );
        self.project.write(&format!(".tgp/tools/{name}.ts"), &source);
    }

    pub fn text(&self, template: &str) -> String {
        template.replace("{t}", &self.table)
    }

    pub fn rows(&self) -> BTreeSet<u64> {
        let ran = self.project.run(&["--json", "sql", &self.text("SELECT n FROM {t}")]).expect_code(0);
        let document = ran.document();
        let rows = document["data"]["rows"].as_array().unwrap();
        rows.iter().map(|row| row["n"].as_u64().unwrap()).collect()
    }

    pub fn files(&self) -> BTreeSet<u64> {
        let Ok(entries) = std::fs::read_dir(self.project.file("out")) else { return BTreeSet::new() };
        let number = |name: &str| name.strip_suffix(".txt").unwrap().parse().unwrap();
        entries.flatten().map(|entry| number(entry.file_name().to_str().unwrap())).collect()
    }

    /// The records of runs that a caller made directly, by the number that they are about.
    pub fn records(&self) -> BTreeMap<u64, Vec<Value>> {
        let tail = ["--json", "audit", "tail", "-n", "1000", "--tool", "exec_tool"];
        let document = self.project.run(&tail).expect_code(0).document();
        let mut records: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        for entry in document["data"]["entries"].as_array().unwrap() {
            let (record, number) = (&entry["entry"], &entry["entry"]["arguments"]["args"]["n"]);
            if record["depth"] == 0 && number.is_u64() {
                records.entry(number.as_u64().unwrap()).or_default().push(record.clone());
            }
        }
        records
    }

    /// Rows, files and audit say the same, and nothing is left of any run.
    pub fn check(self, reported: &BTreeMap<u64, Reported>) {
        let (rows, files, records) = (self.rows(), self.files(), self.records());
        assert_eq!(rows, files, "rows and files differ");
        for (number, reported) in reported {
            let found = records.get(number).map(Vec::as_slice).unwrap_or_default();
            let ok = found.iter().filter(|record| record["outcome"]["ok"] == true).count();
            let (row, told) = (rows.contains(number), format!("{number} {reported:?}: {found:?}"));
            match reported {
                Reported::Success => assert!(row && ok == 1 && found.len() == 1, "{told}"),
                Reported::Failure => assert!(!row && ok == 0 && found.len() == 1, "{told}"),
                // The request of a caller that has gone away may never have been read.
                Reported::Nothing => assert!(row == (ok == 1) && found.len() <= 1, "{told}"),
            }
        }
        assert!(rows.iter().all(|number| reported.contains_key(&(number % SECOND))), "{rows:?}");
        self.project.run(&["audit", "verify"]).expect_code(0);
        self.close();
    }

    /// A lock that is still held prevents dropping the table.
    pub fn close(self) {
        self.project.run(&["sql", &self.text("DROP TABLE {t}")]).expect_code(0);
        self.project.assert_clean();
    }
}

/// Starts a program whose output is caught, in its own session.
pub fn start(mut command: Command) -> Child {
    start_session(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Waits for the end of a program; one that hangs is killed, and fails the test.
pub fn finish(child: Child) -> Output {
    let id = child.id();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    match end.recv_timeout(WATCHDOG) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            send(id, libc::SIGKILL);
            panic!("the program hangs: {:?}", end.recv());
        }
    }
}
