//! T6: changes that follow one another faster than a valve looks, between two scans and under a watch.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::Running;
use super::t6_valve::{begin, changes, events, scan, time};
use crate::fault::{Expecting, Fault, holds, same};
use crate::valves::Watching;
use crate::world::World;

const SECRETS: &str = "src/core/secrets.txt";
/// Files that come at once.
const BURST: usize = 20;
/// How often one file is replaced without a pause.
const REPLACED: usize = 20;
/// How long a watch may take to report a change; it is not waited for longer than until it does.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often is looked whether it has.
const POLL: Duration = Duration::from_millis(10);

pub(super) fn rapid_changes(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let workspace = &world.workspace;
        for number in 0..5 {
            workspace.write(SECRETS, &format!("KEY={number}\n"))?;
        }
        workspace.write("src/brief_secrets.txt", "A=1\n")?;
        workspace.remove("src/brief_secrets.txt")?;
        workspace.write("src/old_secrets.txt", "OLD=2\n")?;
        workspace.write("src/old_secrets.txt", "OLD=1\n")?;
        workspace.write("src/gone_secrets.txt", "B=1\n")?;
        scan(world).await?;
        let expect = async |file: &str, expected: &[&str], when: &str| {
            let told = events(world, file).await?;
            same(&format!("the changes of {file} {when}"), changes(&told).as_slice(), expected)
        };
        let when = "after five changes without a scan between them";
        expect(SECRETS, &["created"], when).await?;
        expect("src/brief_secrets.txt", &[], "which was made and removed between two scans").await?;
        expect("src/old_secrets.txt", &[], "which has its old content again").await?;
        expect("src/gone_secrets.txt", &["created"], when).await?;
        // Removed and made again is changed, or nothing where the content is the same; what stays away is deleted.
        for (file, content) in [(SECRETS, "KEY=4\n"), ("src/old_secrets.txt", "OLD=3\n")] {
            workspace.remove(file)?;
            workspace.write(file, content)?;
        }
        workspace.write("src/gone_secrets.txt", "B=2\n")?;
        workspace.remove("src/gone_secrets.txt")?;
        for _ in 0..2 {
            scan(world).await?;
            expect(SECRETS, &["created"], "which was removed and made again as it was").await?;
            expect("src/old_secrets.txt", &["changed"], "which was removed and made again").await?;
            expect("src/gone_secrets.txt", &["created", "deleted"], "which was changed and removed").await?;
        }
        Ok(())
    })
}

/// What was reported about each file, as far as it was asked for. What was there once has to stay.
#[derive(Default)]
struct Seen {
    events: BTreeMap<String, Vec<Value>>,
    bytes: BTreeMap<String, Vec<u8>>,
}

impl Seen {
    /// The events about a file. Those of before have to be there, in their order and with their bytes.
    async fn look(&mut self, world: &World, file: &str) -> Result<Vec<Value>, Fault> {
        let told = events(world, file).await?;
        let before = self.events.insert(file.to_owned(), told.clone()).unwrap_or_default();
        let kept = told.get(..before.len()).unwrap_or_default();
        same(&format!("the events about {file} that were there before"), kept, before.as_slice())?;
        Ok(told)
    }

    /// The bytes of chronicles that are files only grow.
    fn check_bytes(&mut self, world: &World) -> Result<(), Fault> {
        let now = world.workspace.picture()?;
        for (name, content) in now.into_iter().filter(|(name, _)| name.ends_with(".sage")) {
            let before = self.bytes.insert(name.clone(), content.clone()).unwrap_or_default();
            holds(content.starts_with(&before), format!("the past bytes of {name} to stay"), "other bytes")?;
        }
        Ok(())
    }

    /// Waits for more events about a file than there were.
    async fn more_than(
        &mut self,
        world: &World,
        watching: &Watching,
        file: &str,
        count: usize,
    ) -> Result<usize, Fault> {
        let until = Instant::now() + PATIENCE;
        loop {
            let told = self.look(world, file).await?;
            if told.len() > count {
                return Ok(told.len());
            }
            let is_waiting = Instant::now() < until && !watching.is_over();
            let expected = format!("more than {count} events about {file} from a watch within {PATIENCE:?}");
            holds(is_waiting, expected, changes(&told))?;
            tokio::time::sleep(POLL).await;
        }
    }
}

pub(super) fn watched_changes(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let watching = world.valve()?.watch().await.expecting("a watch that begins")?;
        let mut seen = Seen::default();
        let burst: Vec<String> = (0..BURST).map(|number| format!("src/burst/{number}_secrets.txt")).collect();
        // Nobody waits between these changes. Each file is put in its place at once, so that no part of it is seen.
        for (number, file) in burst.iter().enumerate() {
            world.workspace.place(file, &format!("BURST={number}\n"))?;
            world.workspace.place(SECRETS, &format!("KEY={number}\n"))?;
        }
        for file in &burst {
            seen.more_than(world, &watching, file, 0).await?;
        }
        let mut told = seen.more_than(world, &watching, SECRETS, 0).await?;
        // Again and again: what a watch has reported once does not make it blind for the next time.
        let rounds = 4;
        for round in 0..rounds {
            for number in 0..REPLACED {
                world.workspace.place(SECRETS, &format!("ROUND={round} KEY={number}\n"))?;
            }
            told = seen.more_than(world, &watching, SECRETS, told).await?;
            seen.check_bytes(world)?;
        }
        let gone = burst.last().map(String::as_str).unwrap_or_default();
        world.workspace.remove(gone)?;
        seen.more_than(world, &watching, gone, 1).await?;
        world.workspace.place("src/last_secrets.txt", "LAST=1\n")?;
        seen.more_than(world, &watching, "src/last_secrets.txt", 0).await?;
        watching.stop().await.expecting("a watch that ends")?;
        // The last state that a watch has missed at its end is found by a scan, and nothing is told again.
        scan(world).await?;
        let secrets = seen.look(world, SECRETS).await?;
        let changed = BURST + rounds * REPLACED;
        let is_possible = secrets.len() <= changed;
        holds(is_possible, format!("at most {changed} events about {SECRETS}"), secrets.len())?;
        let expected: Vec<&str> =
            ["created"].into_iter().chain(std::iter::repeat_n("changed", secrets.len() - 1)).collect();
        same(&format!("the changes of {SECRETS}"), &changes(&secrets), &expected)?;
        let times: Vec<OffsetDateTime> = secrets.iter().filter_map(time).collect();
        same("how many events have a time of RFC 3339", &times.len(), &secrets.len())?;
        holds(times.is_sorted(), "times that do not run backwards", &times)?;
        for file in burst.iter().map(String::as_str) {
            let expected = if file == gone { vec!["created", "deleted"] } else { vec!["created"] };
            same(&format!("the changes of {file}"), &changes(&seen.look(world, file).await?), &expected)?;
        }
        seen.check_bytes(world)?;
        scan(world).await?;
        same("the events after another scan", &seen.look(world, SECRETS).await?, &secrets)
    })
}
