//! Follows a session to its end: events are shown in order, questions are asked one at a time, signals are answered.

use std::time::Duration;

use tgp::agent::{AgentEvent, Summary};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::approval_prompt::STOPPING;
use super::screen::{Form, Screen};
use super::{
    Answer, ApprovalView, InterruptState, Keyboard, Offer, Output, Question, StandardError, StandardOutput,
    TerminalKeyboard, Verbosity, interview,
};
use crate::printer::Printer;

/// How long nothing must have happened before the status is shown: a call of a millisecond needs none.
const STATUS_AFTER: Duration = Duration::from_millis(100);
/// How often it is redrawn.
const STATUS_EVERY: Duration = Duration::from_millis(250);

/// Shows a session at this terminal until its events end. Answers its summary, when there was one.
pub async fn follow(
    events: mpsc::Receiver<AgentEvent>,
    questions: mpsc::Receiver<Question>,
    heard: watch::Receiver<InterruptState>,
    printer: &Printer,
    verbosity: Verbosity,
) -> Option<Summary> {
    let form = if printer.json() { Form::JsonLines } else { Form::Words(verbosity) };
    let follower = SessionRenderer {
        screen: Screen::new(StandardOutput::new(printer), form),
        aside: StandardError::new(),
        keyboard: TerminalKeyboard::default(),
        heard,
    };
    follower.run(events, questions).await
}

/// Everything that a conversation is held with.
pub struct SessionRenderer<B: Output, A: Output, K: Keyboard> {
    pub screen: Screen<B>,
    /// Where questions and words to the person go.
    pub aside: A,
    pub keyboard: K,
    pub heard: watch::Receiver<InterruptState>,
}

impl<B: Output, A: Output, K: Keyboard> SessionRenderer<B, A, K> {
    pub async fn run(
        mut self,
        mut events: mpsc::Receiver<AgentEvent>,
        mut questions: mpsc::Receiver<Question>,
    ) -> Option<Summary> {
        let began = Instant::now();
        let mut ticker = interval(STATUS_EVERY);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_watched, mut is_asked) = (true, true);
        let mut summary = None;
        loop {
            tokio::select! {
                biased;
                changed = self.heard.changed(), if is_watched => match changed {
                    Ok(()) => self.say_heard(),
                    Err(_) => is_watched = false,
                },
                event = events.recv() => match event {
                    Some(event) => {
                        self.show(event, &mut summary);
                        ticker.reset_after(STATUS_AFTER);
                    }
                    None => break,
                },
                question = questions.recv(), if is_asked => match question {
                    Some(question) => {
                        // What led to the question is read before it. The loop waits for the answer, so no more than
                        // the channel holds can be on its way.
                        for _ in 0..events.max_capacity() {
                            let Ok(event) = events.try_recv() else { break };
                            self.show(event, &mut summary);
                        }
                        self.put(question).await;
                        ticker.reset_after(STATUS_AFTER);
                    }
                    None => is_asked = false,
                },
                _ = ticker.tick(), if self.screen.has_status() => self.screen.tick(began.elapsed()),
            }
        }
        self.screen.finish();
        summary
    }

    fn show(&mut self, event: AgentEvent, summary: &mut Option<Summary>) {
        self.screen.hear(*self.heard.borrow());
        self.screen.show(&event);
        if let AgentEvent::End { summary: ended } = event {
            *summary = Some(*ended);
        }
    }

    fn say_heard(&mut self) {
        let heard = *self.heard.borrow_and_update();
        if let Some(words) = heard.words(self.screen.has_call()) {
            self.screen.make_room();
            // What was streamed into a pipe may be on the same terminal all the same.
            let is_begun = self.screen.is_within_line() && self.aside.manner().terminal;
            let begin = if is_begun { "\n" } else { "" };
            self.aside.write(&format!("{begin}{words}\n"));
        }
    }

    async fn put(&mut self, question: Question) {
        let Question { asked, pattern, mut reply } = question;
        // A user who wants to stop is not asked any more.
        let stopping = || Answer::no(STOPPING);
        if *self.heard.borrow() != InterruptState::Nothing {
            // The asker may have gone, and then needs no answer.
            let _ = reply.send(stopping());
            return;
        }
        self.screen.make_room();
        let sheet = ApprovalView::new(&asked);
        let offer = pattern.map_or(Offer::Once, |pattern| pattern.offer());
        let answer = tokio::select! {
            biased;
            // A sender that is gone says nothing; only a signal ends the question.
            Ok(()) = self.heard.changed() => {
                self.aside.write("\n");
                // The loop above handles the request.
                self.heard.mark_changed();
                stopping()
            }
            () = reply.closed() => {
                self.aside.write("\nthe call has ended, so its question is void\n");
                return;
            }
            answer = interview(&self.aside, &mut self.keyboard, &sheet, &offer) => answer,
        };
        let _ = reply.send(answer);
    }
}
