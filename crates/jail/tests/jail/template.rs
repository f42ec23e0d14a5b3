//! Workers that were forked from a template: as closed as those that locked themselves, and away from their template.

use crate::harness::{Locked, Verdict, Who, everybody, run_probe, verdict};
use crate::probes;

#[test]
fn every_way_out_fails_in_a_forked_worker() {
    for who in everybody() {
        for probe in probes::ALL {
            let got = verdict(probe.name, &run_probe(probe.name, Locked::Forked, who));
            assert_ne!(got, Verdict::Allowed, "`{}` got through as {who:?}", probe.name);
        }
    }
}

#[test]
fn a_forked_worker_cannot_reach_its_template_or_act_as_one() {
    for who in everybody() {
        for probe in probes::ON_TEMPLATE {
            let got = verdict(probe.name, &run_probe(probe.name, Locked::Forked, who));
            assert_ne!(got, Verdict::Allowed, "`{}` got through as {who:?}", probe.name);
        }
    }
}

#[test]
fn hostile_calls_end_a_forked_worker() {
    for name in ["ptrace", "mount", "unshare", "io_uring_setup", "bpf", "process_vm_readv"] {
        let got = verdict(name, &run_probe(name, Locked::Forked, Who::Caller));
        assert_eq!(got, Verdict::Killed, "`{name}`");
    }
}
