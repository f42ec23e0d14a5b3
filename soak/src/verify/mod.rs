//! After the load: everything is started once more, recovers, and is compared with what was reported.

mod leftovers;
mod library;
mod records;
mod recovery;
mod rows;

use anyhow::Result;

pub use leftovers::processes as find_processes;

use crate::load::Soak;
use crate::program::Runner;
use crate::site::Site;

/// One project after the load.
struct Check<'a> {
    soak: &'a Soak,
    site: &'a Site,
    runner: Runner<'a>,
}

impl Check<'_> {
    fn find(&self, what: impl AsRef<str>) {
        self.soak.report.find(format!("{}: {}", self.site.database.name(), what.as_ref()));
    }
}

/// Ends what the load has left running in order.
pub fn stop(soak: &Soak, site: &Site) {
    site.server.stop(soak, site, nix::sys::signal::Signal::SIGTERM, 143);
    site.server.read_log(soak);
}

type Step = fn(&Check<'_>) -> Result<()>;

/// Recovers a project and makes all checks. A check that cannot be made is a finding.
///
/// # Errors
/// When there is no place for the output of the checks.
pub fn project(soak: &Soak, site: &Site) -> Result<()> {
    let runner = Runner::new(&soak.programs, &soak.report, &site.aside, "verify")?;
    let check = Check { soak, site, runner };
    let steps: [(&str, Step); 11] = [
        ("start", recovery::start),
        ("sessions", recovery::sessions),
        ("queries", recovery::queries),
        ("valve", recovery::valve),
        ("audit", records::audit),
        ("chronicle", records::chronicle),
        ("triggers", records::triggers),
        ("rows", rows::rows),
        ("tools", library::tools),
        ("remote", library::remote),
        ("files", leftovers::files),
    ];
    for (name, step) in steps {
        let started = std::time::Instant::now();
        if let Err(error) = step(&check) {
            check.find(format!("the check `{name}` failed: {error:#}"));
        }
        let seconds = started.elapsed().as_secs();
        if seconds > 5 {
            soak.report.note(format!("{}: the check `{name}` took {seconds} seconds", site.database.name()));
        }
    }
    Ok(())
}
