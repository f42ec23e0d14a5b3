//! The approver of a session: it remembers what was agreed to for the whole session, and asks the user at the
//! terminal about the rest.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use async_trait::async_trait;
use tgp::contract::{ApprovalAnswer, ApprovalRequest, Approver};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::pattern::Pattern;
use super::{Answer, ApprovalQuestion};

/// Questions on their way to the terminal. One at a time is asked, so more would only hide how many wait.
const WAITING_QUESTIONS: usize = 1;
/// Patterns that a session remembers: more than a person will ever answer. The next `always` holds just once.
const MAX_PATTERNS: usize = 256;

/// Who answers a session's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// A person at this terminal.
    Terminal,
    /// No one can be asked, since nothing can be typed.
    Nobody,
    /// No one can be asked, since no question can be seen.
    Unseen,
}

impl ApprovalMode {
    /// The user can be asked where answers can be typed and the question can be seen.
    pub fn found() -> Self {
        match (io::stdin().is_terminal(), io::stderr().is_terminal()) {
            (true, true) => Self::Terminal,
            (false, _) => Self::Nobody,
            (true, false) => Self::Unseen,
        }
    }
}

/// One question, and where its answer goes.
#[derive(Debug)]
pub struct Question {
    pub asked: ApprovalQuestion,
    /// What `always` would agree to, where it can be offered.
    pub pattern: Option<Pattern>,
    pub reply: oneshot::Sender<Answer>,
}

/// The end that the kernel asks, and the questions it passes on to [`super::session_renderer`].
pub fn approver(how: ApprovalMode) -> (Arc<dyn Approver>, mpsc::Receiver<Question>) {
    let (questions, asked) = mpsc::channel(WAITING_QUESTIONS);
    let approver: Arc<dyn Approver> = match how {
        ApprovalMode::Terminal => Arc::new(SessionApprover { questions, agreed: Mutex::default() }),
        ApprovalMode::Nobody => {
            Arc::new(Nobody("standard input is not a terminal, so no person can be asked"))
        }
        ApprovalMode::Unseen => {
            Arc::new(Nobody("standard error is not a terminal, so no question can be seen"))
        }
    };
    (approver, asked)
}

/// Has questions kept; the reason goes to the model and to the line of the call.
struct Nobody(&'static str);

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        // What runs later is not covered by it.
        let hint = if request.runs_later() { "" } else { "; pass --yes to agree to everything" };
        ApprovalAnswer::Later { reason: format!("{}{hint}", self.0) }
    }
}

struct SessionApprover {
    questions: mpsc::Sender<Question>,
    /// What was agreed to for the whole session. The holder of the lock asks; the other calls wait, and may
    /// already be approved when their turn comes.
    agreed: Mutex<Vec<Pattern>>,
}

#[async_trait]
impl Approver for SessionApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let mut agreed = self.agreed.lock().await;
        let asked = ApprovalQuestion::new(&request);
        let hash = request.hash;
        if let Some(pattern) = agreed.iter().find(|pattern| pattern.covers(&asked)) {
            return ApprovalAnswer::Approved { by: format!("terminal, always: {pattern}"), hash };
        }
        let pattern = Pattern::of(&asked).filter(|_| agreed.len() < MAX_PATTERNS);
        let (reply, answer) = oneshot::channel();
        let question = Question { asked, pattern: pattern.clone(), reply };
        let gone = || ApprovalAnswer::Refused { reason: "the terminal was closed".to_owned() };
        if self.questions.send(question).await.is_err() {
            return gone();
        }
        match answer.await {
            Ok(Answer::Yes) => ApprovalAnswer::Approved { by: "terminal".to_owned(), hash },
            Ok(Answer::Always) => {
                let by = match &pattern {
                    Some(pattern) => format!("terminal, always: {pattern}"),
                    None => "terminal".to_owned(),
                };
                agreed.extend(pattern);
                ApprovalAnswer::Approved { by, hash }
            }
            Ok(Answer::No { reason }) => ApprovalAnswer::Refused { reason },
            Err(_) => gone(),
        }
    }
}
