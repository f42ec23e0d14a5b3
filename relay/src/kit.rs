//! The kit: it runs every case with every combination of parts, and reports row by row.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use tgp_contract::{Code, ToolError};

use crate::fault::Fault;
use crate::matrix::{Against, Choice, Externals, Provider, combinations};
use crate::report::{RelayReport, Row, SuiteOutcome};
use crate::substitutes::Substitutes;
use crate::suites::{Case, Suite};
use crate::world::{Fixture, World};

/// How long one case may take, the start of its parts not included.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the parts of one row may take to start: a kernel has workers, and an external program may load a lot.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The options of a run of the kit.
#[derive(Clone, Debug)]
pub struct KitOptions {
    /// The program `tgp`: the command line under test, and the worker of real tools.
    pub tgp: PathBuf,
    pub externals: Externals,
    pub substitutes: Substitutes,
    /// Suites and cases by name, such as `t1` or `t3.veto`; all of them where there is none.
    pub suites: Vec<String>,
    pub against: Against,
    /// For one case; a program from outside has half of it for one answer.
    pub timeout: Duration,
}

impl KitOptions {
    #[must_use]
    pub fn new(tgp: impl Into<PathBuf>) -> Self {
        Self {
            tgp: tgp.into(),
            externals: Externals::default(),
            substitutes: Substitutes::default(),
            suites: Vec::new(),
            against: Against::default(),
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// A case as `tgp relay list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub suite: &'static str,
    pub case: &'static str,
    pub title: &'static str,
    pub under_test: Vec<String>,
}

/// One row before it is run.
struct Planned {
    suite: Suite,
    case: &'static Case,
    choices: Vec<Choice>,
}

impl Planned {
    fn row(&self) -> Row {
        let named = |wanted: fn(&Provider) -> bool| -> Vec<String> {
            self.choices.iter().filter(|choice| wanted(&choice.maker)).map(Choice::label).collect()
        };
        let mut real = named(|maker| matches!(maker, Provider::Real(_)));
        real.splice(0..0, self.suite.always_real().iter().map(|part| (*part).to_owned()));
        Row {
            suite: self.suite.name().to_owned(),
            case: self.case.id.to_owned(),
            title: self.case.title.to_owned(),
            under_test: self.suite.under_test(),
            real,
            fake: named(|maker| matches!(maker, Provider::Fake(_))),
            external: named(|maker| matches!(maker, Provider::External(_) | Provider::Substitute)),
            result: SuiteOutcome::Skipped,
            duration_ms: 0,
            fault: None,
        }
    }
}

/// The conformance kit.
pub struct Kit {
    ground: Fixture,
    timeout: Duration,
    planned: Vec<Planned>,
}

impl Kit {
    /// Works out the matrix.
    ///
    /// # Errors
    /// `EVALIDATION` for a suite or case that there is not, and where nothing is left to run.
    pub fn new(options: KitOptions) -> Result<Self, ToolError> {
        let KitOptions { tgp, externals, substitutes, suites, against, timeout } = options;
        for wanted in &suites {
            let is_known = Suite::ALL.iter().any(|suite| {
                suite.name() == wanted || suite.cases().iter().any(|case| case.id == wanted.as_str())
            });
            if !is_known {
                let names: Vec<&str> = Suite::ALL.iter().map(|suite| suite.name()).collect();
                let message = format!("there is no suite or case `{wanted}`");
                return Err(ToolError::new(Code::Validation, message)
                    .help(format!("the suites are {}; `tgp relay list` names all cases", names.join(", "))));
            }
        }
        let is_wanted = |suite: Suite, case: &Case| {
            suites.is_empty() || suites.iter().any(|wanted| wanted == suite.name() || wanted == case.id)
        };
        let mut planned = Vec::new();
        for suite in Suite::ALL {
            let all = combinations(suite.roles(), suite.needs_product(), &externals, &substitutes, against);
            for choices in all {
                for case in suite.cases().iter().filter(|case| is_wanted(suite, case)) {
                    planned.push(Planned { suite, case, choices: choices.clone() });
                }
            }
        }
        if planned.is_empty() {
            return Err(ToolError::new(Code::Validation, "no row of the matrix is left to run")
                .help("a program takes a role only in suites that have it; name fewer filters"));
        }
        Ok(Self { ground: Fixture { tgp, substitutes, patience: timeout / 2 }, timeout, planned })
    }

    /// Every case there is, in the order of the matrix.
    #[must_use]
    pub fn list() -> Vec<Listed> {
        let listed = |suite: Suite| {
            suite.cases().iter().map(move |case| Listed {
                suite: suite.name(),
                case: case.id,
                title: case.title,
                under_test: suite.under_test(),
            })
        };
        Suite::ALL.into_iter().flat_map(listed).collect()
    }

    /// How many rows a run has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.planned.len()
    }

    /// Runs every row, one after the other, and reports each when it is done.
    pub async fn run(&self, mut on_row: impl FnMut(&Row)) -> RelayReport {
        let mut report = RelayReport::default();
        for planned in &self.planned {
            let row = self.run_one(planned).await;
            on_row(&row);
            report.rows.push(row);
        }
        report
    }

    async fn run_one(&self, planned: &Planned) -> Row {
        let started = Instant::now();
        let outcome = self.try_one(planned).await;
        let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        planned.row().ended(outcome, elapsed)
    }

    async fn try_one(&self, planned: &Planned) -> Result<(), Fault> {
        let late = |what: &str, patience: Duration| {
            Fault::new(format!("{what} within {} s", patience.as_secs_f64()), "nothing until then")
        };
        let world = World::new(self.ground.clone(), &planned.choices);
        let world = tokio::time::timeout(START_PATIENCE, world)
            .await
            .map_err(|_| late("parts that have started", START_PATIENCE))??;
        let outcome = tokio::time::timeout(self.timeout, (planned.case.run)(&world)).await;
        world.close().await;
        outcome.unwrap_or_else(|_| Err(late("an end", self.timeout)))
    }
}
