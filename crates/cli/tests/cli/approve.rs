//! Calls that wait for an approval, in every way in which one is given: at a terminal, in a form of an MCP host, and by a
//! host that carries the question itself.

use serde_json::{Value, json};

use crate::mcp::McpHost;
use crate::project::{Project, Ran};
use crate::pty::Terminal;

const ASK_INSERTS: &str = "version: 1\nrules:\n  - {id: ask-inserts, effect: ask, tools: [exec_sql], where: {statement: \
                           [insert]}, reason: rows are precious}\n";
const NOTE: &str = "/** Notes a text. */\nexport default async (args: { text: string }): Promise<number> => {\n  \
                    await tgp.exec_sql('INSERT INTO notes VALUES (?)', [args.text]);\n  return 1;\n};\n";

/// A project whose rule asks before a row is inserted.
fn careful() -> Project {
    let project = Project::initialised();
    project.write("tgp.policy.yaml", ASK_INSERTS);
    project.write(".tgp/tools/note.ts", NOTE);
    project.run(&["sql", "CREATE TABLE notes (text TEXT)"]).expect_code(0);
    project
}

fn rows(project: &Project) -> Value {
    let found = project.run(&["--json", "sql", "SELECT count(*) AS n FROM notes"]).expect_code(0);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    found["data"]["rows"][0]["n"].clone()
}

fn exec(project: &Project) -> Ran {
    project.run(&["--json", "exec", "tools/note.ts", "--args", r#"{"text": "one"}"#])
}

/// The id of the question that a failed command waits for.
#[track_caller]
fn id_of(ran: &Ran) -> String {
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(answer["error"]["code"], "EAPPROVAL", "{answer}");
    answer["error"]["details"]["needs_approval"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

/// A person reads the question and answers it.
fn answer_at_terminal(project: &Project, arguments: &[&str], keys: &str) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(project.command(arguments));
    terminal.wait_for("Allow it?");
    terminal.type_keys(keys);
    terminal.finish()
}

#[test]
fn a_person_answers_at_a_terminal_and_the_command_works() {
    let project = careful();
    let asked = exec(&project);
    let id = id_of(&asked);
    assert_eq!((asked.code, rows(&project)), (Some(3), json!(0)), "{asked:?}");

    let listed = project.run(&["approve"]).expect_code(0);
    assert!(listed.stdout.contains(&id) && listed.stdout.contains("rows are precious"), "{listed:?}");
    // Input from a pipe does not count: a person has to read the content.
    let piped = project.run_with_input(&["--json", "approve", &id], "y\n");
    assert_eq!(piped.code, Some(3), "{piped:?}");
    assert!(piped.stdout.contains("EAPPROVAL") && piped.stdout.contains("terminal"), "{piped:?}");
    assert_eq!(exec(&project).code, Some(3));

    let (code, screen) = answer_at_terminal(&project, &["approve", &id[..6]], "y\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("INSERT INTO notes VALUES (?)") && screen.contains("approved"), "{screen}");
    exec(&project).expect_code(0);
    assert_eq!(rows(&project), json!(1));
    // The answer was for that run.
    assert_eq!(exec(&project).code, Some(3));
    project.run(&["audit", "verify"]).expect_code(0);
    let told = project.run(&["--json", "audit", "tail", "-n", "20"]).expect_code(0);
    assert!(told.stdout.contains("tgp approve"), "the record does not say who has agreed: {told:?}");
}

#[test]
fn a_denial_needs_no_terminal_and_tells_its_reason() {
    let project = careful();
    let id = id_of(&exec(&project));
    project.run(&["approve", &id, "--deny", "--reason", "use the archive"]).expect_code(0);
    let denied = exec(&project);
    assert_eq!(denied.code, Some(3));
    assert!(
        denied.stdout.contains("use the archive") && !denied.stdout.contains("needs_approval"),
        "{denied:?}"
    );
    // A person may change their mind, and that is all that changes it.
    project.run(&["approve", &id, "--deny", "--reason", "use the other one"]).expect_code(0);
    assert!(exec(&project).stdout.contains("use the other one"));
    let unknown = project.run(&["--json", "approve", "ffffffffffff"]).expect_code(1);
    assert!(unknown.stdout.contains("ENOTFOUND"), "{unknown:?}");
    let (_, screen) = {
        let second = project.run(&["--json", "exec", "tools/note.ts", "--args", r#"{"text": "two"}"#]);
        answer_at_terminal(&project, &["approve", &id_of(&second)], "n\n")
    };
    assert!(screen.contains("denied"), "{screen}");
    assert_eq!(rows(&project), json!(0));
}

#[test]
fn a_denial_can_be_turned_into_an_approval_and_an_approval_stays_one() {
    let project = careful();
    let id = id_of(&exec(&project));
    let (code, screen) = answer_at_terminal(&project, &["approve", &id], "n not now\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(exec(&project).stdout.contains("not now"));
    let (code, screen) = answer_at_terminal(&project, &["approve", &id], "y\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("denied before by") && screen.contains("not now"), "{screen}");
    let again = project.run(&["--json", "approve", &id, "--deny"]).expect_code(1);
    assert!(again.stdout.contains("ECONFLICT") && again.stdout.contains("--clear"), "{again:?}");
    exec(&project).expect_code(0);
    assert_eq!(rows(&project), json!(1));
}

#[test]
fn bug_a_typing_error_denied_a_question() {
    let project = careful();
    let id = id_of(&exec(&project));
    let mut terminal = Terminal::start(project.command(&["approve", &id, "--times", "3"]));
    for (number, keys) in ["yy\n", "?\n", "y\n"].into_iter().enumerate() {
        terminal.wait_until(|screen| screen.matches("Allow it?").count() > number);
        terminal.type_keys(keys);
    }
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("`yy` is none of the answers"), "{screen}");
    assert!(screen.contains("up to 3 times in this run"), "{screen}");
    exec(&project).expect_code(0);
    // The end of the input answers nothing.
    let id = id_of(&exec(&project));
    let (code, screen) = answer_at_terminal(&project, &["approve", &id], "\u{4}");
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("was not answered"), "{screen}");
    assert_eq!(id_of(&exec(&project)), id);
}

#[test]
fn bug_a_denial_bound_the_person_at_their_own_terminal() {
    let project = careful();
    let id = id_of(&exec(&project));
    project.run(&["approve", &id, "--deny"]).expect_code(0);
    let arguments = ["exec", "tools/note.ts", "--args", r#"{"text": "one"}"#];
    let (code, screen) = answer_at_terminal(&project, &arguments, "y\n");
    assert_eq!((code, rows(&project)), (Some(0), json!(1)), "{screen}");
}

#[test]
fn bug_a_question_was_not_found_from_another_folder() {
    let project = careful();
    let id = id_of(&exec(&project));
    let other = project.path("tmp").display().to_string();
    let listed = project.run(&["-C", &other, "approve"]).expect_code(0);
    let here = project.path("here").display().to_string();
    assert!(listed.stderr.contains(&format!("1 question in {here}: `tgp -C {here} approve`")), "{listed:?}");
    let (code, screen) = answer_at_terminal(&project, &["-C", &other, "approve", &id], "y\n");
    assert_eq!(code, Some(0), "{screen}");
    let at = screen.find("in the project").unwrap_or_else(|| panic!("{screen}"));
    assert!(at < screen.find("INSERT INTO").unwrap(), "the project is named before the question: {screen}");
    exec(&project).expect_code(0);
    project.run(&["-C", &other, "approve", "ffff"]).expect_code(1);
}

/// Two projects with the same files ask the same, under one id.
#[test]
fn bug_the_same_question_of_two_projects_was_not_found_from_a_third_folder() {
    let project = careful();
    project.shell("cp -r . ../there").expect_code(0);
    let id = id_of(&exec(&project));
    let there = project.path("there").display().to_string();
    let arguments = ["-C", &there, "--json", "exec", "tools/note.ts", "--args", r#"{"text": "one"}"#];
    assert_eq!(id_of(&project.run(&arguments)), id);
    let other = project.path("tmp").display().to_string();
    let refused = project.run(&["-C", &other, "approve", &id, "--deny"]).expect_code(1);
    assert!(refused.stderr.contains("questions of 2 projects have this id"), "{refused:?}");
    assert!(refused.stderr.contains(&format!("`tgp -C {there} approve {id}`")), "{refused:?}");
    project.run(&["-C", &there, "approve", &id, "--deny"]).expect_code(0);
}

#[test]
fn a_run_that_asks_something_else_each_time_is_told_why() {
    let project = careful();
    project.write(
        ".tgp/tools/random.ts",
        "/** Notes a number. */\nexport default async (): Promise<number> => {\n  await tgp.exec_sql('INSERT INTO notes \
         VALUES (?)', [String(Math.random())]);\n  return 1;\n};\n",
    );
    let run = || project.run(&["--json", "exec", "tools/random.ts"]);
    let id = id_of(&run());
    let (code, screen) = answer_at_terminal(&project, &["approve", &id], "y\n");
    assert_eq!(code, Some(0), "{screen}");
    let again = run();
    assert_ne!(id_of(&again), id);
    assert!(again.stdout.contains("pass them as arguments"), "{again:?}");
}

#[test]
fn bug_the_list_did_not_say_that_a_host_had_gone() {
    let mut host = McpHost::start(careful(), &["--yes"]);
    let asked = host.error("run", &program());
    let id = asked["details"]["needs_approval"]["id"].as_str().unwrap().to_owned();
    let listed = host.project.run(&["approve"]).expect_code(0);
    assert!(listed.stdout.contains(&id) && !listed.stdout.contains("has ended"), "{listed:?}");
    let (project, _) = host.close();
    let listed = project.run(&["approve"]).expect_code(0);
    assert!(listed.stdout.contains("its connection has ended"), "{listed:?}");
    let (code, screen) = answer_at_terminal(&project, &["approve", &id], "y\n");
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("asks again under another id"), "{screen}");
}

#[test]
fn a_query_waits_and_is_resumed() {
    let project = careful();
    project.write(
        "note.aql",
        "query Note($text: String) {\n  noted: exec(\"tools/note.ts\") { text: $text }\n  return noted\n}\n",
    );
    let mut ran = project.run(&["--json", "aql", "run", "note.aql", "-i", "text=one"]);
    // The tool itself is asked about by default, and then its statement by the rule.
    for tool in ["exec_tool", "exec_sql"] {
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("needs_approval"), "{ran:?}");
        let listed = project.run(&["--json", "approve"]).expect_code(0);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let waiting =
            listed["data"]["approvals"].as_array().unwrap().iter().find(|one| one["state"] == "pending");
        let waiting = waiting.unwrap_or_else(|| panic!("{listed}"));
        assert_eq!(waiting["tool"], tool);
        let (code, screen) =
            answer_at_terminal(&project, &["approve", waiting["id"].as_str().unwrap()], "y\n");
        assert_eq!((code, rows(&project)), (Some(0), json!(0)), "{screen}");
        ran = project.run(&["--json", "aql", "run", "--resume", "last"]);
    }
    assert_eq!((ran.code, rows(&project)), (Some(0), json!(1)), "{ran:?}");
}

fn program() -> Value {
    json!({ "code": "await tgp.exec_sql('INSERT INTO notes VALUES (?)', [args.text]); return 1;", "args": { "text": "one" } })
}

#[test]
fn an_mcp_host_waits_for_the_terminal_and_sees_its_own_questions_alone() {
    let mut host = McpHost::start(careful(), &["--yes"]);
    let asked = host.error("run", &program());
    let id =
        asked["details"]["needs_approval"]["id"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    assert!(asked["details"]["help"].as_str().unwrap().contains(&format!("tgp approve {id}")), "{asked}");
    let shown = host.done("approval", &json!({ "id": id }));
    assert_eq!((&shown["state"], &shown["tool"]), (&json!("pending"), &json!("exec_sql")), "{shown}");
    // The question of the command line is none of this connection.
    let other = id_of(&exec(&host.project));
    assert_eq!(host.error("approval", &json!({ "id": other }))["code"], "ENOTFOUND");
    let all = host.done("approval", &json!({}));
    assert_eq!(all["approvals"].as_array().unwrap().len(), 1, "{all}");

    let (code, screen) = answer_at_terminal(&host.project, &["approve", &id], "y\n");
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(host.done("approval", &json!({ "id": id }))["state"], "approved");
    assert_eq!(host.done("run", &program())["result"], 1);
    assert_eq!(rows(&host.project), json!(1));
    assert_eq!(host.error("approval", &json!({ "id": id }))["code"], "ENOTFOUND");
    assert_eq!(host.close().1, Some(0));
}

/// A host that shows forms.
fn with_forms(project: Project, arguments: &[&str]) -> McpHost {
    let mut host = McpHost::silent(project, arguments);
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "a test", "version": "1" },
    });
    host.request("initialize", &hello);
    host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    host
}

/// Calls a tool; the form, if one was shown, is answered so. What came of the call, and the form.
fn call_with_form(
    host: &mut McpHost,
    arguments: &Value,
    answer: &dyn Fn(&Value) -> Value,
) -> (Value, Option<Value>) {
    call_tool_with_form(host, "run", arguments, answer)
}

fn call_tool_with_form(
    host: &mut McpHost,
    tool: &str,
    arguments: &Value,
    answer: &dyn Fn(&Value) -> Value,
) -> (Value, Option<Value>) {
    let id = host.begin("tools/call", &json!({ "name": tool, "arguments": arguments }));
    let mut form = None;
    loop {
        let message = host.receive();
        if message["method"] == "elicitation/create" {
            let result = answer(&message["params"]);
            host.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            form = Some(message["params"].clone());
        } else if message["id"] == id {
            let text =
                message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"));
            return (serde_json::from_str(text).unwrap(), form);
        }
    }
}

/// The second of the choices agrees.
fn choices(form: &Value) -> Vec<String> {
    assert_eq!(form["requestedSchema"]["required"], json!(["choice"]), "{form}");
    let choices = form["requestedSchema"]["properties"]["choice"]["enum"].as_array().unwrap();
    choices.iter().map(|choice| choice.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_form_of_a_host_answers_what_the_defaults_ask() {
    let mut host = with_forms(careful(), &["--forms"]);
    let code = json!({ "code": "return 6 * 7;" });
    let agree = |form: &Value| json!({ "action": "accept", "content": { "choice": choices(form)[1] } });
    let (done, form) = call_with_form(&mut host, &code, &agree);
    let form = form.unwrap();
    assert_eq!(done["result"], 42, "{done}");
    let message = form["message"].as_str().unwrap();
    let prefix = choices(&form)[1].strip_prefix("approve ").unwrap().to_owned();
    assert!(message.contains("return 6 * 7;") && message.contains(&prefix), "{message}");

    // Accepted without a choice, with another one, or not at all: nothing runs, and the question waits.
    for answer in [
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": { "choice": "approve" } }),
        json!({ "action": "accept", "content": { "choice": format!("approve {}", "0".repeat(8)) } }),
        json!({ "action": "accept", "content": { "choice": true } }),
        json!({ "action": "cancel" }),
    ] {
        let (refused, form) = call_with_form(&mut host, &code, &|_| answer.clone());
        assert_eq!(refused["code"], "EAPPROVAL", "{answer}: {refused}");
        assert!(
            form.is_some() && refused["details"]["needs_approval"]["id"].is_string(),
            "{answer}: {refused}"
        );
    }
    let (declined, _) = call_with_form(&mut host, &code, &|_| json!({ "action": "decline" }));
    assert_eq!(declined["code"], "EAPPROVAL");
    assert!(declined["message"].as_str().unwrap().contains("declined"), "{declined}");

    // A rule that asks, and content that does not fit, are for the terminal.
    let long = json!({ "code": format!("return '{}';", "x".repeat(5_000)) });
    let (waits, form) = call_with_form(&mut host, &long, &agree);
    assert!(form.is_none() && waits["details"]["needs_approval"]["id"].is_string(), "{waits}");
    let (waits, form) = call_with_form(&mut host, &program(), &agree);
    assert!(form.is_some(), "the program itself is asked about by default");
    assert!(waits["message"].as_str().unwrap().contains("rows are precious"), "{waits}");
    assert_eq!(rows(&host.project), json!(0));
    host.close();
}

#[test]
fn without_the_consent_of_a_person_no_form_is_shown() {
    let mut host = with_forms(careful(), &[]);
    let (refused, form) =
        call_with_form(&mut host, &json!({ "code": "return 1;" }), &|_| json!({ "action": "accept" }));
    assert!(form.is_none() && refused["code"] == "EAPPROVAL", "{refused}");
    host.close();
}

/// A request of the revision without sessions.
fn stateless(host: &mut McpHost, parameters: Value) -> Value {
    let mut parameters = parameters;
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "a test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    host.request("tools/call", &parameters)
}

#[test]
fn a_host_of_the_revision_without_sessions_carries_the_question() {
    let mut host = McpHost::silent(careful(), &["--forms"]);
    let call = json!({ "name": "run", "arguments": { "code": "return 6 * 7;" } });
    let first = stateless(&mut host, call.clone());
    let asked = &first["result"];
    assert_eq!(asked["resultType"], "input_required", "{first}");
    let state = asked["requestState"].as_str().unwrap();
    let form = &asked["inputRequests"]["approval"];
    assert_eq!(form["method"], "elicitation/create", "{form}");
    let choice = choices(&form["params"])[1].clone();
    let answer = json!({ "approval": { "action": "accept", "content": { "choice": choice } } });

    // A state that was changed, and one of another request, are refused.
    let middle = state.len() / 2;
    let other_letter = if state.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let forged = format!("{}{other_letter}{}", &state[..middle], &state[middle + 1..]);
    let other = json!({ "name": "run", "arguments": { "code": "return 'another program';" } });
    for (mut request, state) in [(call.clone(), forged.as_str()), (other, state), (call.clone(), "x")] {
        request["requestState"] = json!(state);
        request["inputResponses"] = answer.clone();
        let refused = stateless(&mut host, request);
        assert!(
            refused["error"]["message"].as_str().is_some_and(|text| text.contains("requestState")),
            "{refused}"
        );
    }
    // An answer without its state answers nothing.
    let mut bare = call.clone();
    bare["inputResponses"] = answer.clone();
    assert_eq!(stateless(&mut host, bare)["result"]["resultType"], "input_required");

    let mut second = call;
    second["requestState"] = json!(state);
    second["inputResponses"] = answer;
    let done = stateless(&mut host, second.clone());
    let text = done["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["result"], 42);
    // The answer was for that run: the same request with the old answer asks again, however often it is sent.
    for _ in 0..3 {
        let replayed = stateless(&mut host, second.clone());
        assert_eq!(replayed["result"]["resultType"], "input_required", "{replayed}");
    }
    host.close();
}

#[test]
fn bug_forge_began_again_with_each_answer() {
    let test = "import { expect, test } from '@tgp/test';\nimport half from './half.ts';\ntest('halves', () => \
                expect(half({ n: 4 })).toBe(2));\n";
    let source = "/** Half of a number. */\nexport default (args: { n: number }): number => args.n / 2;\n";
    let forge = json!({ "name": "math/half", "test": test, "source": source });
    let mut host = with_forms(Project::initialised(), &["--forms"]);
    let agree = |form: &Value| json!({ "action": "accept", "content": { "choice": choices(form)[1] } });
    let (forged, form) = call_tool_with_form(&mut host, "forge", &forge, &agree);
    assert!(form.is_some() && forged["green"]["failed"] == 0, "{forged}");
    host.close();

    let mut host = McpHost::start(Project::initialised(), &[]);
    let mut steps = Vec::new();
    let forged = loop {
        assert!(steps.len() < 6, "{steps:?}");
        let (failed, text) = host.call("forge", &forge);
        let answer: Value = serde_json::from_str(&text).unwrap();
        if !failed {
            break answer;
        }
        let id = answer["details"]["needs_approval"]["id"].as_str().unwrap_or_else(|| panic!("{answer}"));
        steps.push(answer["details"]["step"].as_str().unwrap().to_owned());
        let (code, screen) = answer_at_terminal(&host.project, &["approve", id], "y\n");
        assert_eq!(code, Some(0), "{screen}");
    };
    assert_eq!(forged["green"]["failed"], 0, "{forged}");
    assert_eq!(steps, ["write_test", "red", "write_source", "green"]);
    host.close();
}

#[test]
fn bug_the_mode_without_programs_ran_programs() {
    let mut host = McpHost::start(Project::initialised(), &["--mode", "search", "--yes"]);
    let code = host.error("invoke", &json!({ "code": "return 1;" }));
    assert_eq!((&code["code"], &code["details"]["field"]), (&json!("EVALIDATION"), &json!("code")), "{code}");
    let tool = host.error("invoke", &json!({ "tool": "exec_code", "args": { "code": "return 1;" } }));
    assert_eq!(tool["code"], "EPOLICY", "{tool}");
    host.close();
}
