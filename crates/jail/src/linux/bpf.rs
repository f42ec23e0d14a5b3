//! A small assembler for filters: a balanced tree over the numbers of the calls.
//!
//! `seccompiler` compiles the argument checks. Its own programs compare the number with every call in the list, one after
//! the other; the kernel runs a new filter once for each call it knows, and so a list costs 0.3 ms to install, which a
//! worker would pay for each run. A tree also has room for more than two outcomes.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompRule, sock_filter};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    /// It fails with this error.
    Fail(i32),
    /// The process ends at once.
    Kill,
}

/// What happens to a call, depending on its arguments or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Always(Action),
    /// The first action when one of the rules fits, else the second.
    When(Vec<SeccompRule>, Action, Action),
}

/// Decisions by call number. Each holds for its own number only.
pub(crate) type Decisions = BTreeMap<u32, Decision>;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_IF_NOT_LESS: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Where a filter finds the number of the call and the processor it is meant for, in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// Builds the program. Calls without a decision get the default; those from `unknown` on, a range that no decision may
/// reach into, do not exist.
pub(crate) fn assemble(architecture: u32, decisions: Decisions, default: Action, unknown: u32) -> BpfProgram {
    let mut program = BpfProgram::with_capacity(512);
    program.extend([
        statement(LOAD, ARCHITECTURE),
        branch(JUMP_IF_EQUAL, architecture, 1, 0),
        // A call in the numbers of another processor: 32-bit code on a 64-bit machine.
        statement(RETURN, code(Action::Kill)),
        statement(LOAD, NUMBER),
    ]);
    tree(&mut program, &segments(decisions, default, unknown));
    program
}

/// The whole range of numbers as segments, each with its first number.
fn segments(decisions: Decisions, default: Action, unknown: u32) -> Vec<(u32, Decision)> {
    let mut segments: Vec<(u32, Decision)> = Vec::with_capacity(decisions.len() * 2 + 2);
    let mut next = 0;
    for (number, decision) in decisions {
        if number > next {
            extend(&mut segments, next, Decision::Always(default));
        }
        extend(&mut segments, number, decision);
        next = number + 1;
    }
    if unknown > next {
        extend(&mut segments, next, Decision::Always(default));
    }
    extend(&mut segments, unknown.max(next), Decision::Always(Action::Fail(libc::ENOSYS)));
    segments
}

/// Appends a segment, or extends the last one when it decides the same.
fn extend(segments: &mut Vec<(u32, Decision)>, start: u32, decision: Decision) {
    if let (Some((_, Decision::Always(before))), Decision::Always(action)) = (segments.last(), &decision)
        && before == action
    {
        return;
    }
    segments.push((start, decision));
}

/// Appends the decision tree of some segments. Every jump stays inside what is appended.
fn tree(program: &mut BpfProgram, segments: &[(u32, Decision)]) {
    match segments {
        [] => {}
        [(_, decision)] => leaf(program, decision),
        _ => {
            let (low, high) = segments.split_at(segments.len() / 2);
            let pivot = high.first().map_or(u32::MAX, |(start, _)| *start);
            let place = program.len();
            tree(program, low);
            let distance = program.len() - place;
            // A branch reaches 255 instructions far, a plain jump any distance.
            if let Ok(distance) = u8::try_from(distance) {
                program.insert(place, branch(JUMP_IF_NOT_LESS, pivot, distance, 0));
            } else {
                program.insert(place, statement(JUMP, u32::try_from(distance).unwrap_or(u32::MAX)));
                program.insert(place, branch(JUMP_IF_NOT_LESS, pivot, 0, 1));
            }
            tree(program, high);
        }
    }
}

fn leaf(program: &mut BpfProgram, decision: &Decision) {
    match decision {
        Decision::Always(action) => program.push(statement(RETURN, code(*action))),
        Decision::When(rules, fits, otherwise) => {
            for rule in rules {
                // A compiled rule falls through where it fits and skips one instruction where it does not.
                program.extend(BpfProgram::from(rule.clone()));
                program.push(statement(RETURN, code(*fits)));
            }
            program.push(statement(RETURN, code(*otherwise)));
        }
    }
}

fn code(action: Action) -> u32 {
    match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Fail(error) => libc::SECCOMP_RET_ERRNO | (error as u32 & libc::SECCOMP_RET_DATA),
        Action::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    }
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

fn branch(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
#[path = "bpf_tests.rs"]
mod tests;
