//! A whole conversation: the kernel's end asks, the terminal's end shows and answers.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tgp::contract::{
    Actor, ApprovalAnswer, ApprovalRequest, Approver, CallContext, Consent, ExecutionPath, ToolCall,
    ToolDefinition, ToolName,
};
use tokio::sync::{mpsc, watch};

use super::questions::Typed;
use super::*;
use crate::conversation::session_renderer::SessionRenderer;
use crate::conversation::{ApprovalMode, InterruptState, Keyboard, Question, approver};

/// Asks for a write of this file, as the router would.
async fn ask(approver: &dyn Approver, path: &str) -> ApprovalAnswer {
    let arguments = json!({ "path": path, "content": "1" });
    let call = ToolCall { id: "r1.1".to_owned(), tool: "fs_write".to_owned(), arguments };
    let definition = ToolDefinition {
        name: ToolName::new("fs_write").unwrap(),
        aliases: Vec::new(),
        description: String::new(),
        input_schema: json!({}),
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };
    let context = CallContext {
        actor: Actor::Agent("agent".to_owned()),
        session: "s-7f3a".to_owned(),
        consent: Consent::Ask,
        dry_run: false,
        depth: 0,
        token: None,
    };
    let request = ApprovalRequest {
        call: &call,
        definition: &definition,
        context: &context,
        targets: &[file(path, "write")],
        reasons: vec![by_default("writes are asked for unless a rule allows them")],
        preview: None,
        no_preview: None,
        reach: None,
        hash: format!("hash of {path}"),
    };
    approver.ask(request).await
}

struct Stage {
    approver: Arc<dyn Approver>,
    questions: mpsc::Receiver<Question>,
    events: mpsc::Sender<AgentEvent>,
    shown: mpsc::Receiver<AgentEvent>,
    say: watch::Sender<InterruptState>,
    out: Paper,
    aside: Paper,
}

impl Stage {
    fn new() -> Self {
        let (approver, questions) = approver(ApprovalMode::Terminal);
        let (events, shown) = mpsc::channel(16);
        // Both are the same terminal.
        let out = Paper::new(TERMINAL);
        Self { approver, questions, events, shown, say: watch::Sender::default(), aside: out.clone(), out }
    }

    fn follower<K: Keyboard>(&self, keyboard: K) -> SessionRenderer<Paper, Paper, K> {
        SessionRenderer {
            screen: Screen::new(self.out.clone(), Form::Words(Verbosity::Brief)),
            aside: self.aside.clone(),
            keyboard,
            heard: self.say.subscribe(),
        }
    }
}

fn approved(by: &str, path: &str) -> ApprovalAnswer {
    ApprovalAnswer::Approved { by: by.to_owned(), hash: format!("hash of {path}") }
}

fn refused(reason: &str) -> ApprovalAnswer {
    ApprovalAnswer::Refused { reason: reason.to_owned() }
}

#[tokio::test]
async fn events_stand_before_their_question_and_always_is_remembered() {
    let stage = Stage::new();
    let follower = stage.follower(Typed::new(&["a", "y"]));
    let Stage { approver, questions, events, shown, out, .. } = stage;
    let work = async {
        events.send(step(1, 0)).await.unwrap();
        events.send(text("I write two files.")).await.unwrap();
        events.send(call("r1.1", "fs_write", json!({ "path": "src/a" }))).await.unwrap();
        // Three at once: the second waits for its turn, and is agreed to by then.
        let answers = tokio::join!(
            ask(approver.as_ref(), "src/a"),
            ask(approver.as_ref(), "src/b"),
            ask(approver.as_ref(), "other/c"),
        );
        events.send(result("r1.1", "fs_write", done(json!({})), "approved", 1.0)).await.unwrap();
        drop(events);
        answers
    };
    let (answers, summary) = tokio::join!(work, follower.run(shown, questions));
    let always = "terminal, always: fs_write on files directly in `src/`";
    assert_eq!(
        answers,
        (approved(always, "src/a"), approved(always, "src/b"), approved("terminal", "other/c"))
    );
    assert_eq!(summary, None);
    let text = out.text();
    assert_eq!(text.matches("Allow it?").count(), 2, "{text}");
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words} in {text}"));
    assert!(place("I write two files.\n") < place("wants to call"), "{text}");
    assert!(place("always    fs_write on files directly in `src/`") < place("Allow it?"), "{text}");
    assert!(place("`other/`") < place("✓ fs_write src/a"), "{text}");
}

/// A keyboard on which nothing is ever typed; it reports when it is waited for.
struct Silent(mpsc::Sender<()>);

impl Keyboard for Silent {
    async fn line(&mut self) -> io::Result<Option<String>> {
        self.0.send(()).await.unwrap();
        std::future::pending().await
    }

    fn forget(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn ctrl_c_at_the_question_refuses_it_and_all_that_follow() {
    let stage = Stage::new();
    let (waits, mut waited_for) = mpsc::channel(1);
    let follower = stage.follower(Silent(waits));
    let Stage { approver, questions, events, shown, say, out, .. } = stage;
    let work = async {
        events.send(call("r1.1", "fs_write", json!({ "path": "src/a" }))).await.unwrap();
        let (first, ()) = tokio::join!(ask(approver.as_ref(), "src/a"), async {
            waited_for.recv().await.unwrap();
            say.send_replace(InterruptState::AfterCall);
        });
        let second = ask(approver.as_ref(), "src/b").await;
        say.send_replace(InterruptState::Now);
        // The words of the second signal are said before the end is seen.
        tokio::task::yield_now().await;
        drop(events);
        (first, second)
    };
    let (answers, _) = tokio::join!(work, follower.run(shown, questions));
    let no = refused("the session is being stopped");
    assert_eq!(answers, (no.clone(), no));
    let text = out.text();
    assert_eq!(text.matches("Allow it?").count(), 1, "{text}");
    assert_eq!(text.matches("\nstopping after this call; Ctrl-C again stops now\n").count(), 1, "{text}");
    assert_eq!(text.matches("stopping now; Ctrl-C again ends at once\n").count(), 1, "{text}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_takes_its_question_back() {
    let stage = Stage::new();
    let (waits, mut waited_for) = mpsc::channel(1);
    let follower = stage.follower(Silent(waits));
    let Stage { approver, questions, events, shown, out, .. } = stage;
    let work = async {
        tokio::select! {
            answer = ask(approver.as_ref(), "src/a") => panic!("nobody answered: {answer:?}"),
            asked = waited_for.recv() => asked.unwrap(),
        }
        drop(events);
    };
    tokio::join!(work, follower.run(shown, questions));
    assert!(out.text().ends_with("\nthe call has ended, so its question is void\n"), "{}", out.text());
}

#[tokio::test]
async fn nobody_to_ask_is_said() {
    let stage = Stage::new();
    drop(stage.questions);
    assert_eq!(ask(stage.approver.as_ref(), "a").await, refused("the terminal was closed"));
    for (how, why) in [
        (
            ApprovalMode::Nobody,
            "standard input is not a terminal, so no person can be asked; pass --yes to agree to everything",
        ),
        (
            ApprovalMode::Unseen,
            "standard error is not a terminal, so no question can be seen; pass --yes to agree to everything",
        ),
    ] {
        let (approver, _) = approver(how);
        assert_eq!(ask(approver.as_ref(), "a").await, ApprovalAnswer::Later { reason: why.to_owned() });
    }
}

#[tokio::test]
async fn json_lines_share_the_terminal_with_no_question() {
    let stage = Stage::new();
    let (out, aside) = (Paper::new(PIPE), Paper::new(TERMINAL));
    let follower = SessionRenderer {
        screen: Screen::new(out.clone(), Form::JsonLines),
        aside: aside.clone(),
        keyboard: Typed::new(&["y"]),
        heard: stage.say.subscribe(),
    };
    let Stage { approver, questions, events, shown, .. } = stage;
    let work = async {
        events.send(text("half a line")).await.unwrap();
        let answer = ask(approver.as_ref(), "a").await;
        drop(events);
        answer
    };
    let (answer, _) = tokio::join!(work, follower.run(shown, questions));
    assert_eq!(answer, approved("terminal", "a"));
    assert_eq!(out.text(), "{\"type\":\"text\",\"value\":\"half a line\"}\n");
    assert!(aside.text().contains("Allow it?"));
}

/// What is said when a signal comes while the model speaks.
async fn heard_while_speaking(out: TextStyle, heard: InterruptState) -> (String, String) {
    let stage = Stage::new();
    let (out, aside) = (Paper::new(out), Paper::new(TERMINAL));
    let follower = SessionRenderer {
        screen: Screen::new(out.clone(), Form::Words(Verbosity::Brief)),
        aside: aside.clone(),
        keyboard: Typed::new(&[]),
        heard: stage.say.subscribe(),
    };
    let Stage { questions, events, shown, say, .. } = stage;
    let work = async {
        events.send(step(1, 0)).await.unwrap();
        events.send(text("Hel")).await.unwrap();
        while !out.text().contains("Hel") {
            tokio::task::yield_now().await;
        }
        say.send_replace(heard);
        let summary = super::screens::summary(tgp::agent::Ending::Interrupted);
        events.send(AgentEvent::End { summary: Box::new(summary) }).await.unwrap();
        drop(events);
    };
    tokio::join!(work, follower.run(shown, questions));
    (out.text(), aside.text())
}

#[tokio::test]
async fn words_about_a_signal_begin_a_line_of_their_own() {
    let (out, aside) = heard_while_speaking(TERMINAL, InterruptState::AfterCall).await;
    assert!(out.starts_with("Hel\n"), "{out}");
    assert_eq!(aside, "stopping; Ctrl-C again stops now\n", "no call runs");
    // Both may end at the same terminal, as with `tgp … | cat`.
    let (out, aside) = heard_while_speaking(PIPE, InterruptState::AfterCall).await;
    assert!(out.starts_with("Hel\n"), "{out}");
    assert_eq!(aside, "\nstopping; Ctrl-C again stops now\n");
}

#[tokio::test]
async fn only_a_wish_of_the_person_is_called_so() {
    for (heard, words, ending) in [
        (InterruptState::AfterCall, "stopping; ", "s-7f3a was stopped, as you wished.\n"),
        (InterruptState::Now, "stopping now; ", "s-7f3a was stopped, as you wished.\n"),
        (InterruptState::Terminated, "asked to end by SIGTERM", "s-7f3a was stopped by SIGTERM.\n"),
        (
            InterruptState::HungUp,
            "asked to end by SIGHUP",
            "s-7f3a was stopped by SIGHUP: its terminal is gone.\n",
        ),
    ] {
        let (out, aside) = heard_while_speaking(TERMINAL, heard).await;
        assert!(aside.starts_with(words), "{aside}");
        assert!(out.contains(ending), "{out}");
    }
}

#[tokio::test]
async fn an_error_is_shown_when_no_summary_tells_it() {
    let stage = Stage::new();
    let follower = stage.follower(Typed::new(&[]));
    let Stage { questions, events, shown, out, .. } = stage;
    let error = tgp::contract::ToolError::new(tgp::contract::Code::Internal, "the disk is full");
    events.send(AgentEvent::Error { error }).await.unwrap();
    drop(events);
    follower.run(shown, questions).await;
    assert_eq!(out.text(), "  ✗ EINTERNAL: the disk is full\n");
}
