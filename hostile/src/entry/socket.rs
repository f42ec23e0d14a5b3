//! A client with a token at `tgp serve`. One server serves the whole attack, and is inspected before and after it.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::{Client, Made};
use crate::baseline::{Finding, Marks};
use crate::case::{Act, CaseFile, Frame, Step};
use crate::endurance::Server;
use crate::outcome::Outcome;
use crate::project::Project;

/// The placeholder for the client's token in a `hello`.
const TOKEN: &str = "$TOKEN";

/// The seconds before the end within which an idle client is still waited for.
const LAST: Duration = Duration::from_secs(5);

/// Makes all steps. The server is restarted where the approver changes from one step to the next.
pub(super) fn steps(project: &Project, case: &CaseFile) -> Result<Made> {
    let minted = case.token.as_deref().unwrap_or("--all");
    let mut words = vec!["token", "mint"];
    words.extend(minted.split_whitespace());
    let token = project.prepare(&words)?.trim().to_owned();
    let mut made = Made { outcomes: Vec::new(), findings: Vec::new() };
    for steps in case.steps.chunk_by(|one, next| one.approve == next.approve) {
        let approve = steps.first().is_some_and(|step| step.approve);
        let server = Server::start(project, approve)?;
        let before = server.marks_when_warm(&token)?;
        let mut attacker = Attacker { server: &server, token: &token, client: None, case, project };
        for step in steps {
            made.outcomes.push(attacker.step(step));
        }
        drop(attacker);
        made.findings.extend(server.compare(&before, &Marks::ROOM_OF_A_CASE));
        if !server.stop()? {
            made.findings.push(Finding::new("the server did not end when it was interrupted"));
        }
    }
    Ok(made)
}

struct Attacker<'a> {
    server: &'a Server,
    token: &'a str,
    client: Option<Client>,
    case: &'a CaseFile,
    project: &'a Project,
}

impl Attacker<'_> {
    fn step(&mut self, step: &Step) -> Outcome {
        let answer = match step.act() {
            Some(Act::Hello(fields)) => self.hello(fields),
            Some(Act::Frame(frame)) => self.frame(frame),
            _ => {
                let (tool, arguments) = step.as_call().unwrap_or_default();
                self.connected().and_then(|client| client.call(tool, &arguments, step.dry_run))
            }
        };
        match answer {
            // The answer to a hello that was let in is not a result, but it is an `ok`.
            Ok(answer) if answer.get("session").is_some() && answer.get("ok").is_none() => {
                Outcome { code: crate::expected::OK.to_owned(), text: answer.to_string() }
            }
            Ok(answer) => Outcome::of_result(&answer, ""),
            Err(error) => {
                // The next step has its own connection.
                self.client = None;
                Outcome::none("no answer", format!("{error:#}"))
            }
        }
    }

    /// Sends a frame as it is. One with a false length ends the connection, so the next step has its own.
    fn frame(&mut self, frame: &Frame) -> Result<Value> {
        let client = self.connected()?;
        let answer = client.frame(frame).and_then(|()| client.receive())?;
        if frame.length.is_some() {
            self.client = None;
        }
        Ok(answer.get("result").cloned().unwrap_or(answer))
    }

    fn limit(&self) -> Duration {
        self.project.step_limit(self.case) + LAST
    }

    fn connected(&mut self) -> Result<&mut Client> {
        if self.client.is_none() {
            self.client = Some(Client::with_token(self.server.socket(), self.token, self.limit())?);
        }
        self.client.as_mut().context("there is no connection")
    }

    fn hello(&mut self, fields: &Map<String, Value>) -> Result<Value> {
        let mut fields = fields.clone();
        for (_, value) in &mut fields {
            if let Value::String(text) = value {
                *text = text.replace(TOKEN, self.token);
            }
        }
        self.client = None;
        let mut client = Client::connect(self.server.socket(), self.limit())?;
        let answer = client.ask(&Value::Object(fields))?;
        if answer.get("session").is_some() {
            self.client = Some(client);
        }
        Ok(answer)
    }
}
