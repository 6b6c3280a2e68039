//! What waits to be sent: bytes, and parts of files that the kernel sends by itself.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use log::FileRange;
use rustix::net::SendFlags;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;
use wire::Payload;

/// Pieces per write call.
const SLICES: usize = 32;

enum Part {
    Bytes(Bytes),
    /// `sent` bytes of it are gone already.
    File {
        range: Arc<FileRange>,
        sent: usize,
    },
    /// Something that nobody knows how to send.
    Unknown(usize),
}

/// In the order in which it has to leave.
#[derive(Default)]
pub(super) struct Unsent {
    parts: VecDeque<Part>,
    bytes: usize,
}

impl Unsent {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, chunk: Payload) {
        self.bytes += chunk.len();
        self.parts.push_back(match chunk {
            Payload::Bytes(bytes) => Part::Bytes(bytes),
            Payload::Remote(remote) => match remote.source().clone().downcast::<FileRange>() {
                Ok(range) => Part::File { range, sent: 0 },
                Err(_) => Part::Unknown(remote.len()),
            },
        });
    }

    /// Sends something of it, with one call.
    pub fn poll_send(&mut self, socket: &mut WriteHalf<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = match self.parts.front() {
            None => return Poll::Ready(Ok(())),
            Some(Part::Bytes(bytes)) => match self.parts.get(1) {
                // Most answers are one piece, for which a plain write costs the kernel less.
                None => ready!(Pin::new(socket).poll_write(cx, bytes))?,
                // So that the few bytes before a file leave with it.
                Some(Part::File { .. }) => {
                    let send = |socket: &TcpStream| Ok(rustix::net::send(socket, bytes, SendFlags::MORE)?);
                    ready!(poll_io(socket.as_ref(), cx, send))?
                }
                Some(_) => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let mut count = 0;
                    for (slice, part) in slices.iter_mut().zip(&self.parts) {
                        let Part::Bytes(bytes) = part else { break };
                        *slice = IoSlice::new(bytes);
                        count += 1;
                    }
                    ready!(Pin::new(socket).poll_write_vectored(cx, &slices[..count]))?
                }
            },
            Some(Part::File { range, sent }) => ready!(poll_send_file(socket.as_ref(), cx, range, *sent))?,
            Some(Part::Unknown(_)) => return Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        };
        if sent == 0 {
            // Of a file: it was cut, and what was promised cannot be sent any more.
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.sent(sent);
        Poll::Ready(Ok(()))
    }

    fn sent(&mut self, count: usize) {
        self.bytes -= count;
        let mut left = count;
        while left > 0
            && let Some(first) = self.parts.front_mut()
        {
            let len = match first {
                Part::Bytes(bytes) => bytes.len(),
                Part::File { range, sent } => range.len() - *sent,
                Part::Unknown(len) => *len,
            };
            if left < len {
                match first {
                    Part::Bytes(bytes) => bytes.advance(left),
                    Part::File { sent, .. } => *sent += left,
                    Part::Unknown(_) => {}
                }
                break;
            }
            left -= len;
            self.parts.pop_front();
        }
        if self.parts.is_empty() && self.parts.capacity() > SLICES {
            self.parts = VecDeque::new();
        }
    }
}

/// From the page cache to the socket, within the kernel.
fn poll_send_file(socket: &TcpStream, cx: &mut Context<'_>, range: &FileRange, sent: usize) -> Poll<io::Result<usize>> {
    let Some(file) = range.descriptor() else { return Poll::Ready(Err(io::ErrorKind::Unsupported.into())) };
    poll_io(socket, cx, |socket| {
        let mut position = range.position() + sent as u64;
        Ok(rustix::fs::sendfile(socket, file, Some(&mut position), range.len() - sent)?)
    })
}

/// Tries `send` whenever the socket may have room, until it has.
fn poll_io(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    mut send: impl FnMut(&TcpStream) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_write_ready(cx))?;
        match socket.try_io(Interest::WRITABLE, || send(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return Poll::Ready(done),
        }
    }
}
