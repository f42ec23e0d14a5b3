#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tgp_fuzz::check("source", input));
