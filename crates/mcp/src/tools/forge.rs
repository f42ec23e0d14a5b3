//! `forge`: a tool with its test, in the order that test-driven work has: test, red, source, green.

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};

use crate::arguments::ForgeArgs;
use crate::client::Caller;
use crate::options::{test_path, tool_name, tool_path};

/// One step of the work, as errors name it.
#[derive(Clone, Copy)]
enum Step {
    WriteTest,
    Red,
    WriteSource,
    Check,
    Green,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::WriteTest => "write_test",
            Self::Red => "red",
            Self::WriteSource => "write_source",
            Self::Check => "check",
            Self::Green => "green",
        }
    }
}

pub(super) async fn forge(caller: &Caller, arguments: ForgeArgs) -> Result<Value, ToolError> {
    let ForgeArgs { name, test, source, override_similar } = arguments;
    let path = tool_path(&name);
    let test_file = test_path(&path);
    let at = |step: Step| move |error: ToolError| error.detail("step", step.name());

    let call = json!({ "path": test_file, "content": test });
    caller.ask("write_file", call).await.map_err(at(Step::WriteTest))?;
    let red = caller.ask("test_tool", json!({ "path": test_file })).await.map_err(at(Step::Red))?;
    if failed(&red) == 0 {
        let message =
            format!("the test of `{name}` passes before the source was stored, so it shows nothing new");
        return Err(at(Step::Red)(
            ToolError::new(Code::State, message)
                .detail("tests", red)
                .help("write a test that fails without the change, and forge again"),
        ));
    }
    let call = json!({ "path": path, "content": source, "override_similar": override_similar });
    let written = caller.ask("write_file", call).await.map_err(at(Step::WriteSource))?;
    let check = caller.ask("check_tool", json!({ "path": path })).await.map_err(at(Step::Check))?;
    let green = caller.ask("test_tool", json!({ "path": test_file })).await.map_err(at(Step::Green))?;
    if failed(&green) > 0 {
        let message = format!("the test of `{name}` does not pass with the new source");
        return Err(at(Step::Green)(
            ToolError::new(Code::State, message)
                .detail("tests", green)
                .detail("check", check)
                .help("the source is stored and not green; correct it, and forge again with the same test"),
        ));
    }
    Ok(json!({
        "tool": tool_name(&path),
        "path": path,
        "test": test_file,
        "commit": written.get("commit"),
        "red": count(&red),
        "green": count(&green),
        "check": check,
    }))
}

fn failed(report: &Value) -> u64 {
    report.get("failed").and_then(Value::as_u64).unwrap_or_default()
}

fn count(report: &Value) -> Value {
    json!({ "passed": report.get("passed"), "failed": report.get("failed") })
}
