//! Programs are run here as the kernel runs them, for every number there is.

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule, sock_filter};

use super::*;

const HERE: u32 = 0xC000_003E;

/// The part of the kernel's machine that filters use.
fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut words = vec![number, architecture, 0, 0];
    words.extend(arguments.iter().flat_map(|argument| [*argument as u32, (argument >> 32) as u32]));
    let (mut place, mut accumulator) = (0, 0);
    loop {
        let step = &program[place];
        let branch = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
        place += 1;
        match u32::from(step.code) {
            code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                accumulator = words[step.k as usize / 4];
            }
            code if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K => accumulator &= step.k,
            code if code == libc::BPF_JMP | libc::BPF_JA => place += step.k as usize,
            code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                place += branch(accumulator == step.k);
            }
            code if code == libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K => {
                place += branch(accumulator > step.k);
            }
            code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => {
                place += branch(accumulator >= step.k);
            }
            code if code == libc::BPF_RET | libc::BPF_K => return step.k,
            code => panic!("instruction {code:#x}"),
        }
    }
}

/// A rule that fits when the first argument has this value.
fn first_is(value: u64) -> SeccompRule {
    let test = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    SeccompRule::new(vec![test.unwrap()]).unwrap()
}

#[test]
fn every_number_gets_its_own_decision() {
    // Enough of them, and with long leaves, that the tree has branches farther than 255 instructions.
    let decisions: Decisions = (3..400)
        .step_by(3)
        .map(|number| {
            let decision = match number % 4 {
                0 => Decision::Always(Action::Allow),
                1 => Decision::Always(Action::Kill),
                2 => Decision::When(vec![first_is(7), first_is(8)], Action::Allow, Action::Kill),
                _ => Decision::Always(Action::Fail(libc::EACCES)),
            };
            (number, decision)
        })
        .collect();
    let default = Action::Fail(libc::EPERM);
    let program = assemble(HERE, decisions.clone(), default, 450);
    assert!(program.len() > 600 && program.len() < 4096, "{}", program.len());
    for number in (0..1000).chain([0x4000_0003, u32::MAX]) {
        for first in [0, 7, 8, 7 | 1 << 32] {
            let expected = match decisions.get(&number) {
                _ if number >= 450 => Action::Fail(libc::ENOSYS),
                None => default,
                Some(Decision::Always(action)) => *action,
                Some(Decision::When(_, fits, otherwise)) if [7, 8].contains(&(first as u32)) => {
                    let _ = otherwise;
                    *fits
                }
                Some(Decision::When(_, _, otherwise)) => *otherwise,
            };
            let answer = run(&program, HERE, number, [first, 0, 0, 0, 0, 0]);
            assert_eq!(answer, code(expected), "call {number} with {first}");
        }
    }
}

#[test]
fn another_processors_calls_end_the_process() {
    let program = assemble(HERE, Decisions::new(), Action::Allow, 450);
    assert_eq!(run(&program, HERE, 1, [0; 6]), libc::SECCOMP_RET_ALLOW);
    assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
}
