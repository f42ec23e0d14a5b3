//! Rules by name, and the list their findings go to.

use oxc::span::Span;
use tgp_contract::{Finding, Severity};

use crate::places::LineTable;

/// A hostile source can break a rule in every other byte; beyond this many findings of one severity nobody reads on.
const MAX_FINDINGS: usize = 200;

/// What every finding of a rule has in common.
pub(super) struct Rule {
    /// Stable, kebab-case.
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    /// Why the rule exists, with the standard it serves.
    pub(super) reason: &'static str,
}

/// Collects findings.
pub(super) struct Report<'s> {
    lines: LineTable<'s>,
    /// Each with the offset where it begins.
    findings: Vec<(u32, Finding)>,
    errors: usize,
    warnings: usize,
}

impl<'s> Report<'s> {
    pub(super) fn new(file: &'s str, source: &'s str) -> Self {
        Self { lines: LineTable::new(file, source), findings: Vec::new(), errors: 0, warnings: 0 }
    }

    /// Adds a finding with the severity of its rule.
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        span: Span,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add_as(rule.severity, rule, span, message, fix);
    }

    /// Adds a finding whose severity differs from that of its rule.
    pub(super) fn add_as(
        &mut self,
        severity: Severity,
        rule: &Rule,
        span: Span,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *count >= MAX_FINDINGS {
            return;
        }
        *count += 1;
        let finding = Finding {
            place: self.lines.place(span.start),
            end: self.lines.place(span.end),
            rule: rule.name.to_owned(),
            severity,
            message: message.into(),
            reason: rule.reason.to_owned(),
            fix: fix.into(),
        };
        self.findings.push((span.start, finding));
    }

    /// Keeps only the findings that a test accepts; it is given each with its offset.
    pub(super) fn retain(&mut self, mut accepts: impl FnMut(&Finding, u32) -> bool) {
        self.findings.retain(|(start, finding)| accepts(finding, *start));
    }

    /// The findings by place, each once.
    pub(super) fn finish(self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.findings.into_iter().map(|(_, finding)| finding).collect();
        findings.sort();
        findings.dedup();
        findings
    }
}
