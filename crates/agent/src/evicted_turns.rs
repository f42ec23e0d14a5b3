//! What is left of exchanges that the conversation no longer holds: a line for each call, and every word of the user.

use std::collections::VecDeque;

use tgp_contract::Block;

use crate::render::one_line;

/// What the model said in a turn without calls, in a summary.
const SAID_BYTES: usize = 160;

/// The summary of what is no longer in the conversation.
#[derive(Clone, Debug)]
pub(crate) struct EvictedTurns {
    lines: VecDeque<String>,
    line_bytes: usize,
    /// Lines for which there was no room.
    left_out: u64,
    /// What the user said after the task, in full.
    heard: Vec<String>,
    most_bytes: usize,
}

impl EvictedTurns {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { lines: VecDeque::new(), line_bytes: 0, left_out: 0, heard: Vec::new(), most_bytes }
    }

    /// Another bound.
    pub(crate) fn resize(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        self.trim();
    }

    /// A call and its outcome.
    pub(crate) fn list(&mut self, line: String) {
        self.line_bytes += line.len() + 1;
        self.lines.push_back(line);
        self.trim();
    }

    fn trim(&mut self) {
        while self.line_bytes > self.most_bytes {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.line_bytes = self.line_bytes.saturating_sub(oldest.len() + 1);
            self.left_out += 1;
        }
    }

    /// A turn without calls.
    pub(crate) fn remember(&mut self, step: u64, text: &str) {
        if !text.trim().is_empty() {
            self.list(format!("- step {step}: you said: {}", one_line(text, SAID_BYTES)));
        }
    }

    /// Something the user said.
    pub(crate) fn hear(&mut self, text: String) {
        self.heard.push(text);
    }

    pub(crate) fn bytes(&self) -> usize {
        // The sentences around the lines are about so long.
        const SENTENCES: usize = 256;
        let heard: usize = self.heard.iter().map(|text| text.len() + SENTENCES / 8).sum();
        if self.lines.is_empty() && self.left_out == 0 { heard } else { self.line_bytes + heard + SENTENCES }
    }

    /// What comes after the task.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !self.lines.is_empty() || self.left_out > 0 {
            let mut text = String::from(
                "[Earlier steps are no longer shown in full. What you did in them, oldest first; recall {\"id\": \"r1.1\"} reads a result again:]",
            );
            if self.left_out > 0 {
                text.push_str(&format!("\n- ({} older lines are left out)", self.left_out));
            }
            for line in &self.lines {
                text.push('\n');
                text.push_str(line);
            }
            blocks.push(Block::Text { text });
        }
        blocks
            .extend(self.heard.iter().map(|text| Block::Text { text: format!("[The user added:]\n{text}") }));
        blocks
    }
}
