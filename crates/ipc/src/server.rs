//! The socket itself: who may connect, and how many.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tgp::Kernel;
use tgp_contract::{Code, Consent, ToolError};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::frames::connection::{self, Connection};
use crate::memory::Memory;
use crate::rpc::{self, RpcConnection};

/// How a server treats its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Whether clients' effects are agreed to within their tokens, or the user is asked.
    pub consent: Consent,
    /// Clients at a time.
    pub connections: usize,
    /// Calls of one client at a time.
    pub calls: usize,
    /// How long a client may take to say hello, to send the rest of a frame, or to take an answer.
    pub patience: Duration,
    /// How long a client may stay silent.
    pub idle: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            consent: Consent::Ask,
            connections: 64,
            calls: 16,
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(600),
        }
    }
}

/// The longest name of a socket that the system lets a client connect to.
const MAX_PATH_BYTES: usize = 107;

/// Clients that are turned away at a time and are waited for.
const MAX_TURNED_AWAY: usize = 64;
/// How long such a client may take to show what it speaks.
const TURN_AWAY_WAIT: Duration = Duration::from_millis(200);

/// A socket that listens. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    options: ServeOptions,
    memory: Arc<Memory>,
}

impl Server {
    /// Makes the socket, for this user only. One that a dead kernel left behind is replaced.
    ///
    /// # Errors
    /// `ECONFLICT` when another process listens there, `ECONFIG` when the path cannot hold a socket.
    pub fn bind(path: &Path, options: ServeOptions) -> Result<Self, ToolError> {
        let length = path.as_os_str().len();
        if length > MAX_PATH_BYTES {
            let message = format!(
                "the path of the socket has {length} bytes, and no client connects to more than {MAX_PATH_BYTES}"
            );
            return Err(ToolError::new(Code::Config, message)
                .help("name a shorter path with `--socket`, such as one below /tmp or $XDG_RUNTIME_DIR"));
        }
        clear(path)?;
        let wrong = |error: io::Error| {
            ToolError::new(Code::Config, format!("cannot listen at `{}`: {error}", path.display()))
                .help("name a path in a directory you can write to")
        };
        // The socket is made in a private directory and moved to its place, so that there is no moment at which it is
        // open to others.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let private = directory.unwrap_or(Path::new(".")).join(format!(".tgp-{}", std::process::id()));
        let listener = bind_privately(&private, path).map_err(wrong);
        let _ = std::fs::remove_dir_all(&private);
        Ok(Self { listener: listener?, path: path.to_owned(), options, memory: Memory::new() })
    }

    /// Serves clients until the future is dropped; with it every open call is cancelled, and recorded as such.
    ///
    /// # Errors
    /// When the socket itself breaks.
    pub async fn serve(&self, kernel: Arc<Kernel>) -> Result<(), ToolError> {
        let places = Places {
            served: Arc::new(Semaphore::new(self.options.connections)),
            turned_away: Arc::new(Semaphore::new(MAX_TURNED_AWAY)),
        };
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.admit(stream, &places, &mut clients, &kernel),
                    // Out of descriptors, or a client that was gone at once: neither is the socket's end.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(_) = clients.join_next() => {}
            }
        }
    }

    fn admit(&self, stream: UnixStream, places: &Places, clients: &mut JoinSet<()>, kernel: &Arc<Kernel>) {
        let Ok(place) = Arc::clone(&places.served).try_acquire_owned() else {
            turn_away(stream, places, clients, "too many clients are connected", "try again later");
            return;
        };
        if !same_user(&stream) {
            let reason = "only the user who runs this kernel may connect";
            turn_away(stream, places, clients, reason, "run a kernel of your own");
            return;
        }
        let (kernel, memory) = (Arc::clone(kernel), Arc::clone(&self.memory));
        let options = self.options;
        clients.spawn(async move {
            match first_byte(&stream, options.patience).await {
                Some(b'{') => RpcConnection { kernel, options, memory }.run(stream).await,
                _ => Connection { kernel, options, memory }.run(stream).await,
            }
            drop(place);
        });
    }
}

/// How many clients there can be.
struct Places {
    served: Arc<Semaphore>,
    /// Those that are not served, until they know why.
    turned_away: Arc<Semaphore>,
}

/// Informs a client that it is not served, in the protocol that it speaks. A client that sends nothing for a moment, and
/// every client beyond [`MAX_TURNED_AWAY`], gets a frame.
fn turn_away(stream: UnixStream, places: &Places, clients: &mut JoinSet<()>, reason: &str, help: &str) {
    let error = ToolError::new(Code::Permission, reason).help(help);
    let Ok(place) = Arc::clone(&places.turned_away).try_acquire_owned() else {
        connection::turn_away(stream, error);
        return;
    };
    clients.spawn(async move {
        match first_byte(&stream, TURN_AWAY_WAIT).await {
            Some(b'{') => rpc::turn_away(stream, error),
            _ => connection::turn_away(stream, error),
        }
        drop(place);
    });
}

/// What a client begins with, which says what it speaks: no length of a frame begins with a brace. It stays to be read.
async fn first_byte(stream: &UnixStream, patience: Duration) -> Option<u8> {
    let peek = async {
        loop {
            stream.readable().await.ok()?;
            let mut byte = [0_u8; 1];
            let peeked = recv(stream.as_raw_fd(), &mut byte, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT);
            match peeked {
                Ok(0) => return None,
                Ok(_) => return byte.first().copied(),
                Err(Errno::EAGAIN) => {
                    // It was not readable after all; the readiness is asked for anew.
                    let _ =
                        stream.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
                }
                Err(_) => return None,
            }
        }
    };
    tokio::time::timeout(patience, peek).await.ok().flatten()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn bind_privately(private: &Path, path: &Path) -> io::Result<UnixListener> {
    std::fs::create_dir(private)?;
    std::fs::set_permissions(private, std::fs::Permissions::from_mode(0o700))?;
    let inside = private.join("s");
    let listener = UnixListener::bind(&inside)?;
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o600))?;
    // A link, not a move: it does not replace what another process has put there meanwhile.
    std::fs::hard_link(&inside, path)?;
    Ok(listener)
}

/// Removes a socket without a listener.
fn clear(path: &Path) -> Result<(), ToolError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let taken = |what: &str| {
        ToolError::new(Code::Conflict, format!("`{}` {what}", path.display()))
            .help("name another path, or end what uses it")
    };
    if !metadata.file_type().is_socket() {
        return Err(taken("exists and is not a socket"));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| taken(&format!("cannot be replaced: {error}")))
        }
        _ => Err(taken("is in use by another program")),
    }
}

/// Whether the other end belongs to the user this process runs as. Root is not an exception: what root does to a user's
/// kernel, it does not do through this door.
fn same_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == nix::unistd::geteuid().as_raw())
}
