//! What comments import: `/// <reference path="x" />`, and the types of JSDoc in JavaScript.

use oxc::ast::ast::{Comment, Program};

use super::walk::Walker;
use crate::ingest::language::Language;
use crate::ingest::parse::ImportKind;

/// Returns the content of the string that a text begins with.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    text.get(1..)?.split_once(quote).map(|(value, _)| value)
}

impl<'a> Walker<'a> {
    pub(super) fn read_comments(&mut self, program: &Program<'a>, language: Language) {
        for comment in &program.comments {
            let written = self.source.written(comment.span);
            if let Some(content) = written.strip_prefix("///") {
                self.read_reference(content, comment);
            } else if language == Language::JavaScript && written.starts_with("/**") {
                // The compiler reads these in JavaScript alone.
                self.read_jsdoc(written, comment);
            }
        }
    }

    fn import_types(&mut self, specifier: &str, comment: &Comment) {
        let first = self.reader.out.imports.len();
        let specifier = self.reader.kept_whole(specifier);
        self.reader.import(ImportKind::Bind, specifier, Vec::new(), None, comment.span);
        self.reader.of_types(first);
    }

    /// `<reference path="x" />`: a path from the directory of the file, with or without a dot before it; `types="x"` is a
    /// module as an import names it.
    fn read_reference(&mut self, content: &str, comment: &Comment) {
        let content = content.trim_start();
        let is_reference = content.get(..10).is_some_and(|tag| tag.eq_ignore_ascii_case("<reference"));
        let mut rest = content.get(10..).filter(|_| is_reference).unwrap_or_default();
        while let Some((name, after)) = rest.split_once('=') {
            let Some(value) = quoted(after) else { return };
            match name.trim().to_ascii_lowercase().as_str() {
                "path" => {
                    let is_relative = ["./", "../", "/"].iter().any(|start| value.starts_with(start));
                    let specifier = if is_relative { value.to_owned() } else { format!("./{value}") };
                    let specifier = self.reader.kept_whole(&specifier);
                    self.reader.import(ImportKind::Bind, specifier, Vec::new(), None, comment.span);
                }
                "types" => self.import_types(value, comment),
                _ => {}
            }
            // Two quotes are around the value.
            let blanks = after.len() - after.trim_start().len();
            rest = after.get(blanks + value.len() + 2..).unwrap_or_default();
        }
    }

    /// `@type {import("x").T}` and `@import {T} from "x"`.
    fn read_jsdoc(&mut self, written: &str, comment: &Comment) {
        // A token at the beginning of a line does not continue the line before.
        let lines = written.lines().map(|line| line.trim_start().trim_start_matches('*'));
        let text = lines.collect::<Vec<_>>().join("\n");
        let mut rest = text.as_str();
        let mut depth = 0_usize;
        // A brace may be in a text, so that the end of a type is not known; in examples are no types.
        let (mut has_type, mut is_example) = (false, false);
        while let Some(at) = rest.find(['{', '}', 'i', '@']) {
            let here = rest.get(at..).unwrap_or_default();
            let mut skip = 1;
            if here.starts_with('{') {
                depth += 1;
                has_type = true;
            } else if here.starts_with('}') {
                depth = depth.saturating_sub(1);
            } else if let Some(after) =
                here.strip_prefix("import").filter(|_| depth > 0 || has_type && !is_example)
            {
                if let Some(specifier) = after.trim_start().strip_prefix('(').and_then(quoted) {
                    self.import_types(specifier, comment);
                }
            } else if let Some(after) = here.strip_prefix("@import") {
                // A name may have this word in it, and a list of names may be several lines long.
                let mut sources =
                    after.match_indices("from").filter_map(|(at, word)| after.get(at + word.len()..));
                if let Some(specifier) = sources.find_map(quoted) {
                    self.import_types(specifier, comment);
                }
                skip = "@import".len();
            } else if here.starts_with('@') {
                has_type = depth > 0;
                is_example = here.starts_with("@example");
            }
            rest = here.get(skip..).unwrap_or_default();
        }
    }
}
