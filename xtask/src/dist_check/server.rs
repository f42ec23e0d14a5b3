//! An HTTP server for the files of one folder, for as long as a check runs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Serves until the program ends.
pub(super) struct FileServer {
    address: SocketAddr,
}

impl FileServer {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot open a port")?;
        let address = listener.local_addr()?;
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The program that asked reports what it did not get.
                let _ = answer(stream, &folder);
            }
        });
        Ok(Self { address })
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn answer(mut stream: TcpStream, folder: &Path) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    match file(&request, folder).and_then(|path| fs::read(path).ok()) {
        Some(bytes) => {
            write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len())?;
            stream.write_all(&bytes)?;
        }
        None => write!(stream, "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")?,
    }
    Ok(())
}

/// The file of `GET /name HTTP/1.1`; names have no folders.
fn file(request: &str, folder: &Path) -> Option<PathBuf> {
    let name = request.strip_prefix("GET /")?.split(' ').next()?;
    (!name.is_empty() && !name.contains('/') && name != "..").then(|| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_served() {
        let folder = Path::new("/f");
        assert_eq!(file("GET /a.tgz HTTP/1.1\r\n", folder), Some("/f/a.tgz".into()));
        assert_eq!(file("GET /../a HTTP/1.1\r\n", folder), None);
        assert_eq!(file("GET /.. HTTP/1.1\r\n", folder), None);
        assert_eq!(file("GET / HTTP/1.1\r\n", folder), None);
    }
}
