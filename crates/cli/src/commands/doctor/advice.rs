//! What a person can do about a machine on which workers cannot be started or locked.

use tgp::contract::ToolError;

/// The system has no seccomp filters, or a container or emulator hides them.
pub(super) const NO_LOCK: &str = "use Linux with seccomp filters and Landlock; in a container, choose a seccomp profile that allows \
                                  seccomp, prctl and landlock_*; an emulator of a processor alone, such as qemu-user, has neither";

/// A start that the system refuses, by what it reports. The texts are those of the C library, so a system with others
/// gets the last row.
const STARTS: [(&[&str], &str); 3] = [
    (
        &["Exec format error"],
        "the system cannot start this program by itself: install the package for this processor, or register its emulator \
         with binfmt_misc",
    ),
    (
        &["Permission denied", "Operation not permitted"],
        "the program may not be started again: put it on a file system without noexec, and allow it in AppArmor or SELinux",
    ),
    (&["No such file"], "mount /proc: the program starts itself through /proc/self/exe"),
];

/// The step of an error that says that a program was not started.
const START_STEP: &str = "start";

/// The next step after an `ECAPABILITY`.
pub(super) fn for_machine(error: &ToolError) -> &'static str {
    let detail = |name: &str| error.details.get(name).and_then(serde_json::Value::as_str);
    let (Some(START_STEP), Some(cause)) = (detail("step"), detail("cause")) else { return NO_LOCK };
    let known = STARTS.iter().find(|(causes, _)| causes.iter().any(|text| cause.starts_with(text)));
    known.map_or("free memory, processes or descriptors, and try again", |(_, advice)| advice)
}
