//! Where the broker listens, and what address each client is told.
//!
//! Without a configured address a client is told the one at which it reached us, which is right on one machine, in a
//! container network and behind a bridge alike; only behind a translated port somebody has to say it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use wire::KStr;

use crate::broker::Broker;
use crate::connection::{Advertised, Peer, serve};

const BACKLOG: i32 = 1024;
/// How often another free port is tried, when one is wanted on several addresses.
const FREE_PORT_TRIES: usize = 20;
/// Pause after a failed accept: the usual reason is a lack of file descriptors, which ends when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    /// `localhost` stands for both loopback addresses, the empty string for all addresses.
    pub host: String,
    /// 0: any free port.
    pub port: u16,
    /// What clients are told instead of the address at which they reached us. Port 0 stands for the one listened on.
    pub advertised: Option<(String, u16)>,
}

/// A socket that accepts, and what it stands for.
pub(crate) struct Bound {
    pub address: SocketAddr,
    socket: TcpListener,
    listen: Arc<Listen>,
}

impl Bound {
    pub fn listen(&self) -> &Listen {
        &self.listen
    }

    /// For another protocol than Kafka's.
    pub fn into_socket(self) -> TcpListener {
        self.socket
    }
}

/// Listens on every address of one listener: two for `localhost`, on the same port.
pub(crate) async fn bind(listen: &Listen) -> io::Result<Vec<Bound>> {
    let addresses = addresses(&listen.host).await?;
    let mut tries = if listen.port == 0 { FREE_PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_each(listen, &addresses) {
            // The port that was free on the first address is taken on the second.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
            bound => return bound,
        }
    }
}

fn bind_each(listen: &Listen, addresses: &[(IpAddr, bool)]) -> io::Result<Vec<Bound>> {
    let listen = Arc::new(listen.clone());
    let mut bound: Vec<Bound> = Vec::new();
    for (ip, optional) in addresses {
        let port = bound.first().map_or(listen.port, |first| first.address.port());
        match bind_one(SocketAddr::new(*ip, port)) {
            Ok(socket) => bound.push(Bound { address: socket.local_addr()?, socket, listen: listen.clone() }),
            // A machine without IPv6 still has a localhost. A port that somebody else has is another matter.
            Err(error) if *optional && error.kind() != io::ErrorKind::AddrInUse => {
                tracing::debug!("not listening on [{ip}]:{port}: {error}");
            }
            Err(error) => return Err(io::Error::new(error.kind(), format!("cannot listen on {ip}:{port}: {error}"))),
        }
    }
    Ok(bound)
}

/// The addresses that a host name stands for, and whether one may be missing.
async fn addresses(host: &str) -> io::Result<Vec<(IpAddr, bool)>> {
    if host.is_empty() {
        let all = if bind_one((Ipv6Addr::UNSPECIFIED, 0).into()).is_ok() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        return Ok(vec![(all, false)]);
    }
    if host == "localhost" {
        return Ok(vec![(Ipv4Addr::LOCALHOST.into(), false), (Ipv6Addr::LOCALHOST.into(), true)]);
    }
    if let Ok(ip) = host.parse() {
        return Ok(vec![(ip, false)]);
    }
    let mut found: Vec<_> = tokio::net::lookup_host((host, 0)).await?.map(|address| (address.ip(), false)).collect();
    found.dedup();
    Ok(found)
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // The wildcard address takes IPv4 clients too; a specific one cannot.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A broker that is restarted takes its port back at once.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Accepts connections until the broker stops.
pub(crate) async fn accept(broker: Arc<Broker>, bound: Bound) {
    loop {
        let accepted = tokio::select! {
            // Those beyond max.connections wait in the backlog, as with Kafka.
            accepted = async { broker.connections.room().await; bound.socket.accept().await } => accepted,
            () = broker.shutdown.begun() => return,
        };
        match accepted {
            Ok((stream, remote)) => open(&broker, &bound.listen, stream, remote),
            Err(error) => {
                tracing::warn!(address = %bound.address, "cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn open(broker: &Arc<Broker>, listen: &Listen, stream: TcpStream, remote: SocketAddr) {
    let registration = match broker.connections.admit(remote) {
        Ok(registration) => {
            broker.metrics.accepted.fetch_add(1, Ordering::Relaxed);
            registration
        }
        Err(limit) => {
            tracing::warn!(%remote, "connection refused: {limit} is reached");
            return;
        }
    };
    let local = match stream.set_nodelay(true).and_then(|()| stream.local_addr()) {
        Ok(local) => local,
        Err(error) => {
            tracing::debug!(%remote, "connection lost at once: {error}");
            return;
        }
    };
    let peer = Arc::new(Peer::new(canonical(remote), told(listen, canonical(local))));
    let id = registration.id();
    let task = tokio::spawn(serve(broker.clone(), stream, peer, registration));
    broker.connections.started(id, task.abort_handle());
}

/// IPv4 clients of the wildcard IPv6 socket are IPv4 clients.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What a client that reached us at `local` is told.
fn told(listen: &Listen, local: SocketAddr) -> Advertised {
    match &listen.advertised {
        Some((host, port)) => {
            let port = if *port == 0 { local.port() } else { *port };
            Advertised { host: KStr::from(host.clone()), port }
        }
        // Both loopback addresses are listened on, and this name finds either.
        None if listen.host == "localhost" => Advertised { host: KStr::from_static("localhost"), port: local.port() },
        None => Advertised { host: KStr::from(local.ip().to_string()), port: local.port() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_the_address_it_used_unless_one_is_advertised() {
        let local: SocketAddr = "192.0.2.7:9092".parse().unwrap();
        let told_by = |host: &str, advertised: Option<(&str, u16)>| {
            let advertised = advertised.map(|(host, port)| (host.to_owned(), port));
            let told = told(&Listen { host: host.to_owned(), port: 0, advertised }, local);
            format!("{}:{}", told.host, told.port)
        };
        assert_eq!(told_by("", None), "192.0.2.7:9092");
        assert_eq!(told_by("localhost", None), "localhost:9092");
        assert_eq!(told_by("localhost", Some(("public", 19092))), "public:19092");
        assert_eq!(told_by("", Some(("public", 0))), "public:9092");
    }
}
