//! Who is at the other end.

use std::net::SocketAddr;
use std::sync::OnceLock;

use wire::KStr;

/// A connection, as handlers see it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub remote: SocketAddr,
    /// The address that this client is told to connect to.
    pub advertised: Advertised,
    /// As group records and describe show it: a slash and the address, `/127.0.0.1`.
    pub client_host: KStr,
    software: OnceLock<ClientSoftware>,
}

/// Host and port of an advertised address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advertised {
    pub host: KStr,
    pub port: u16,
}

/// What the client called itself in ApiVersions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientSoftware {
    name: KStr,
    version: KStr,
}

impl Peer {
    pub fn new(remote: SocketAddr, advertised: Advertised) -> Self {
        let client_host = KStr::from(format!("/{}", remote.ip()));
        Peer { remote, advertised, client_host, software: OnceLock::new() }
    }

    /// Name and version of the client's software, for the log.
    pub fn software(&self) -> String {
        match self.software.get() {
            Some(ClientSoftware { name, version }) => format!("{name} {version}"),
            None => "unknown".to_owned(),
        }
    }

    /// Keeps the first introduction; the texts are copied out of the frame.
    pub fn introduce(&self, name: &KStr, version: &KStr) {
        let software = ClientSoftware { name: name.to_owned_detached(), version: version.to_owned_detached() };
        let _ = self.software.set(software);
    }
}
