//! What a session needs and a newcomer lacks: a provider, its key, a model, and a command that runs the tests.

use tgp::Kernel;
use tgp::agent::{KeySetup, ModelSetup, TestSetup};
use tgp::contract::ToolError;

use super::{Health, Row, explained};
use crate::session;
use crate::text::single_line;

const NO_PROVIDER: &str = "not known without a provider";

pub(super) fn rows(kernel: &Kernel) -> Vec<Row> {
    let mut rows = model_rows(kernel.model_setup());
    rows.push(match kernel.test_setup() {
        Some(TestSetup { command, problem: None }) => good("tests", single_line(&command)),
        Some(TestSetup { problem: Some(problem), .. }) => weak("tests", &single_line(&problem)),
        None => weak(
            "tests",
            "no test command was found (set tdd.command in tgp.config.ts to the command that runs them)",
        ),
    });
    rows
}

/// The same for a folder that is not a project yet: what the user and the environment have set up.
pub(super) fn rows_without_project() -> Vec<Row> {
    model_rows(ModelSetup::of_user(&session::environment()))
}

fn model_rows(setup: Result<ModelSetup, ToolError>) -> Vec<Row> {
    let setup = match setup {
        Ok(setup) => setup,
        Err(error) => {
            let row = |name| weak(name, NO_PROVIDER);
            return vec![weak("provider", &explained(&error)), row("key"), row("model")];
        }
    };
    let ModelSetup { provider, base_url, key, model } = setup;
    let address = base_url.as_ref().unwrap_or(&provider);
    let named = match &base_url {
        Some(url) => format!("{provider} at {url}"),
        None => provider.clone(),
    };
    let key = match key {
        KeySetup::NotNeeded => good("key", "a script needs none".to_owned()),
        KeySetup::NotSent => good(
            "key",
            format!(
                "none is sent to {address} (a server that needs one: --key-variable NAME, or [keys] of the user configuration)"
            ),
        ),
        KeySetup::Set(variable) => good("key", format!("{variable} is set")),
        KeySetup::Missing(variable) => weak(
            "key",
            &format!(
                "{variable} is not set (export {variable}=..., or name another variable with --key-variable)"
            ),
        ),
    };
    let model = match model {
        Some(model) => good("model", single_line(&model)),
        None if provider.starts_with("script:") => good("model", "the script".to_owned()),
        None => weak(
            "model",
            "none is named (`tgp models` lists them; pass --model NAME, or set model in the user configuration)",
        ),
    };
    vec![good("provider", single_line(&named)), key, model]
}

fn good(name: &'static str, text: String) -> Row {
    Row { name, health: Health::Good, text }
}

fn weak(name: &'static str, text: &str) -> Row {
    Row { name, health: Health::Weak, text: text.to_owned() }
}
