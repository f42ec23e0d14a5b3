//! Resource limits, soft and hard alike: a soft limit alone could be raised again.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Refusal;
use crate::ResourceLimits;

const STEP: &str = "set the resource limits";

#[derive(Clone, Copy, Debug)]
pub(crate) struct RlimitSet {
    entries: [Option<(Resource, u64)>; 7],
}

impl RlimitSet {
    pub(crate) fn new(limits: &ResourceLimits) -> Self {
        let entry = |resource, value: Option<u64>| value.map(|value| (resource, value));
        Self {
            entries: [
                entry(Resource::RLIMIT_AS, limits.address_space),
                entry(Resource::RLIMIT_DATA, limits.data),
                // With the hard limit at the soft one the kernel sends SIGKILL, not a SIGXCPU that could be caught.
                entry(Resource::RLIMIT_CPU, limits.cpu_seconds),
                entry(Resource::RLIMIT_NOFILE, limits.open_files),
                entry(Resource::RLIMIT_FSIZE, limits.file_size),
                entry(Resource::RLIMIT_NPROC, limits.processes),
                entry(Resource::RLIMIT_CORE, if limits.core_dump { None } else { Some(0) }),
            ],
        }
    }

    pub(crate) fn apply(&self) -> Result<(), Refusal> {
        for (resource, value) in self.entries.iter().flatten() {
            match setrlimit(*resource, *value, *value) {
                Ok(()) => {}
                // What was inherited is stricter and cannot be raised: take all of that.
                Err(Errno::EPERM) => {
                    let (_, hard) = getrlimit(*resource).map_err(Refusal::of(STEP))?;
                    let value = hard.min(*value);
                    setrlimit(*resource, value, value).map_err(Refusal::of(STEP))?;
                }
                Err(errno) => return Err(Refusal { step: STEP, errno }),
            }
        }
        Ok(())
    }
}
