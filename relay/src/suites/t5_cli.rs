//! T5: the command line shows what a model says, and asks before it lets it change anything.

use serde_json::{Value, json};
use tgp_contract::{Effect, StreamEvent};
use tgp_relay_fakes::ScriptedModel;

use super::{Case, Running, t5_tools};
use crate::conversation::{end, say, wants};
use crate::fault::{Fault, holds, same};
use crate::program::{Ran, run, run_at_terminal};
use crate::world::{CliModel, World};

pub(super) const CASES: &[Case] = &[
    Case { id: "t5.streamed-line", title: "what comes in pieces is shown as one line", run: streamed_line },
    Case {
        id: "t5.mutator-approval",
        title: "a mutating tool is asked for, and a no prevents it",
        run: mutator_approval,
    },
    Case {
        id: "t5.deterministic-snapshot",
        title: "the same conversation is printed the same, as it was stored",
        run: deterministic_snapshot,
    },
    Case {
        id: "t5.safe-defaults",
        title: "reads run unasked, and every other tool that is offered needs a yes",
        run: safe_defaults,
    },
];

const SNAPSHOT_TURNS: &str = include_str!("../../fixtures/cli-snapshot/turns.json");
const SNAPSHOT: &str = include_str!("../../fixtures/cli-snapshot/output.txt");
/// How the command line asks.
const QUESTION: &str = "Allow it? [y/N]";
const NOTES: &str = "notes.md";
/// Calls that the model makes in one turn.
const CALLS_OF_A_TURN: usize = 8;

/// An initialised project with a note in it.
async fn begin(world: &World) -> Result<(), Fault> {
    let made = run(world, &["init"]).await?;
    made.ended_well("init")?;
    world.workspace.write(NOTES, "the answer is 42\n")
}

/// The arguments of a session whose model takes these turns.
fn session(world: &World, turns: &[Vec<StreamEvent>]) -> Result<Vec<String>, Fault> {
    let model = match world.cli_model()? {
        CliModel::Script => {
            world.workspace.write("model.json", &json!(turns).to_string())?;
            vec!["--provider".to_owned(), "script:model.json".to_owned()]
        }
        CliModel::Http(server) => {
            let base = server.base_url().to_owned();
            vec!["--provider".to_owned(), base, "--model".to_owned(), "test-1".to_owned()]
        }
    };
    Ok([ScriptedModel::task(turns)].into_iter().chain(model).collect())
}

/// Runs a session, with options of `tgp` itself and of `tgp run`.
async fn start(world: &World, options: &[&str], turns: &[Vec<StreamEvent>]) -> Result<Ran, Fault> {
    start_with(world, options, &[], turns).await
}

async fn start_with(
    world: &World,
    options: &[&str],
    run_options: &[&str],
    turns: &[Vec<StreamEvent>],
) -> Result<Ran, Fault> {
    let session = session(world, turns)?;
    let run_options = ["run"].iter().chain(run_options).copied();
    let arguments: Vec<&str> =
        options.iter().copied().chain(run_options).chain(session.iter().map(String::as_str)).collect();
    run(world, &arguments).await
}

fn streamed_line(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let turns = [vec![say("SAGE "), say("rea"), say("dy\n"), end()]];
        let ran = start(world, &[], &turns).await?;
        ran.ended_well("run")?;
        let is_shown = ran.stdout.lines().any(|line| line == "SAGE ready");
        holds(is_shown, "the line `SAGE ready` on standard output", &ran.stdout)?;
        let ran = start(world, &["--json"], &turns).await?;
        let events = ran.events()?;
        let text: String = events
            .iter()
            .filter(|event| event.get("type") == Some(&json!("text")))
            .filter_map(|event| event.get("value").and_then(Value::as_str))
            .collect();
        same("the text of all events", text.as_str(), "SAGE ready\n")?;
        let last = events.last().and_then(|event| event.get("type")).cloned();
        same("the type of the last event", &last, &Some(json!("end")))
    })
}

/// Tool, verdict and code of each result.
fn results(events: &[Value]) -> Vec<(String, String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    events
        .iter()
        .filter(|event| event.get("type") == Some(&json!("tool_result")))
        .map(|event| {
            let code = event.pointer("/result/error/code");
            (text(event.get("toolName")), text(event.get("verdict")), text(code))
        })
        .collect()
}

fn mutator_approval(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let write = |name: &str| wants("Write", "c", json!({ "path": name, "content": "new\n" }));
        let turns = [
            vec![say("First."), write("first.md"), end()],
            vec![say("Then."), write("second.md"), end()],
            vec![say("So be it."), end()],
        ];
        // The user says no, and then yes.
        let session = session(world, &turns)?;
        let arguments: Vec<&str> = ["run"].into_iter().chain(session.iter().map(String::as_str)).collect();
        let ran = run_at_terminal(world, &arguments, QUESTION, &["n", "y"]).await?;
        same("how often was asked", &ran.stdout.matches(QUESTION).count(), &2)?;
        same("the file that was refused", &world.workspace.read("first.md"), &None)?;
        same("the file that was agreed to", &world.workspace.read("second.md"), &Some("new\n".to_owned()))?;
        holds(ran.stdout.contains("So be it."), "the model to go on after a no", &ran.stdout)
    })
}

fn deterministic_snapshot(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let turns: Vec<Vec<StreamEvent>> = serde_json::from_str(SNAPSHOT_TURNS)
            .map_err(|error| Fault::new("a fixture that can be read", error.to_string()))?;
        for time in ["first", "second"] {
            let ran = start(world, &[], &turns).await?;
            ran.ended_well("run")?;
            let shown = conversation(&ran.stdout);
            same(&format!("what is printed the {time} time"), shown.as_str(), SNAPSHOT)?;
        }
        same(
            "the note, which was not to be written",
            &world.workspace.read(NOTES),
            &Some("the answer is 42\n".to_owned()),
        )
    })
}

/// What is printed between the lines about the session, without durations and without the ids of questions.
fn conversation(stdout: &str) -> String {
    let lines = stdout.lines().skip_while(|line| !line.is_empty()).skip(1);
    let lines: Vec<String> = lines
        .take_while(|line| !line.starts_with("Session "))
        .map(|line| match line.rsplit_once("  ") {
            Some((text, time)) if time.ends_with(" ms") || time.ends_with(" s") => format!("{text}  <time>"),
            _ => without_id(line),
        })
        .collect();
    format!("{}\n", lines.join("\n").trim_end())
}

/// A question that waits has another id in every session.
fn without_id(line: &str) -> String {
    const COMMAND: &str = "`tgp approve ";
    match line.split_once(COMMAND).and_then(|(before, rest)| Some((before, rest.split_once('`')?.1))) {
        Some((before, after)) => format!("{before}{COMMAND}<id>`{after}"),
        None => line.to_owned(),
    }
}

/// Makes what calls of all tools could change: an author, a test, a forged tool, and a session that has written a file.
/// What cannot be done at all is not asked for. Gives the id of the session.
async fn something_to_change(world: &World) -> Result<String, Fault> {
    world.workspace.name_author().await?;
    world.workspace.write("package.json", r#"{ "private": true, "scripts": { "test": "true" } }"#)?;
    let source = "/** The answer. */\nexport default function relay(): number {\n  return 42;\n}\n";
    run(world, &["write", t5_tools::FORGED, "--content", source]).await?.ended_well("write")?;
    let write = wants("Write", "c", json!({ "path": "other.md", "content": "new\n" }));
    let turns = [vec![write, end()], vec![say("Done."), end()]];
    let ran = start_with(world, &["--json"], &["--yes"], &turns).await?;
    ran.ended_well("run --yes")?;
    let events = ran.events()?;
    let begun = events.iter().find(|event| event.get("type") == Some(&json!("session")));
    let id = begun.and_then(|event| event.get("id")).and_then(Value::as_str);
    id.map(str::to_owned).ok_or_else(|| Fault::new("a session that names its id", format!("{events:?}")))
}

fn safe_defaults(world: &World) -> Running<'_> {
    Box::pin(async move {
        begin(world).await?;
        let session = something_to_change(world).await?;
        world.workspace.commit("project").await?;
        world.workspace.write("draft.md", "what is not committed yet\n")?;
        let tools = t5_tools::offered(world).await?;
        let mut before = world.workspace.picture()?;
        // What is promised by name comes first, and then every tool that there is.
        let named = [
            ("Read", json!({ "path": NOTES }), Effect::Read),
            (
                "GraphQuery",
                json!({ "query": "MATCH (f:File) RETURN f.path AS path", "commit": "WORKTREE" }),
                Effect::Read,
            ),
            ("Write", json!({ "path": NOTES, "content": "gone" }), Effect::Write),
            ("Edit", json!({ "path": NOTES, "search": "42", "replace": "43" }), Effect::Write),
            ("Bash", json!({ "command": "rm notes.md" }), Effect::Execute),
        ]
        .map(|(name, arguments, effect)| (name.to_owned(), arguments, effect));
        let all =
            tools.iter().map(|tool| (tool.name.to_string(), t5_tools::fitting(tool, &session), tool.effect));
        let calls: Vec<(String, Value, Effect)> = named.into_iter().chain(all).collect();
        let mut turns: Vec<Vec<StreamEvent>> = Vec::new();
        for (turn, calls) in calls.chunks(CALLS_OF_A_TURN).enumerate() {
            let wanted = calls.iter().enumerate().map(|(number, (tool, arguments, _))| {
                wants(tool, &format!("c{turn}-{number}"), arguments.clone())
            });
            turns.push(wanted.chain([end()]).collect());
        }
        turns.push(vec![say("I was not allowed to."), end()]);
        // In `explore`, because what a gate denies is not asked for.
        let ran = start_with(world, &["--json"], &["--mode", "explore"], &turns).await?;
        let results = results(&ran.events()?);
        let asked: Vec<&str> = calls.iter().map(|(tool, ..)| tool.as_str()).collect();
        let answered: Vec<&str> = results.iter().map(|(tool, ..)| tool.as_str()).collect();
        same("the tools that have answered", &answered, &asked)?;
        for ((tool, arguments, effect), (_, verdict, code)) in calls.iter().zip(&results) {
            let came = (verdict.as_str(), code.as_str());
            let asked = format!("{tool} {arguments}, which is of the effect {},", effect.as_str());
            if *effect == Effect::Read {
                let is_unasked = came.0 == "allowed" || came.1 != "EAPPROVAL";
                holds(is_unasked, format!("{asked} to run unasked"), came)?;
            } else {
                same(&format!("verdict and code of {asked}"), &came, &("refused", "EAPPROVAL"))?;
            }
        }
        // The two reads that are promised by name do answer.
        for (tool, verdict, code) in results.iter().take(2) {
            same(
                &format!("verdict and code of {tool}"),
                &(verdict.as_str(), code.as_str()),
                &("allowed", ""),
            )?;
        }
        let mut after = world.workspace.picture()?;
        // The script of the model is the kit's own.
        after.remove("model.json");
        before.remove("model.json");
        holds(after == before, "not one byte to change", after.keys().collect::<Vec<_>>())
    })
}
