//! Writing to the disk what the operating system still has in memory.

use std::fs::File;
use std::io;

/// Writes everything of the file system that has this file. Systems without such a call write all file systems.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(file)?;
    #[cfg(not(target_os = "linux"))]
    {
        // The call reports no failure, so the file itself is asked too.
        rustix::fs::sync();
        file.sync_all()?;
    }
    Ok(())
}
