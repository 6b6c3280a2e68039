//! `listeners`, `advertised.listeners` and what goes with them.

use std::collections::BTreeMap;

use super::keys::network;
use super::layers::{Layers, Lookup};
use super::load::ConfigError;

/// One address to listen on, and the one that clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Upper case, as Kafka keeps it.
    pub name: String,
    /// Empty: all interfaces.
    pub host: String,
    /// 0: any free port.
    pub port: u16,
    pub advertised_host: String,
    /// 0: the port that was bound.
    pub advertised_port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Endpoint {
    name: String,
    host: String,
    port: u16,
}

/// The client listeners: those of Kafka's quorum are left out, and every other one must be PLAINTEXT.
pub fn resolve(layers: &Layers) -> Result<Vec<Listener>, ConfigError> {
    let controllers: Vec<String> =
        layers.list(&network::CONTROLLER_LISTENER_NAMES).iter().map(|name| name.to_uppercase()).collect();
    let protocols = protocol_map(layers)?;
    let mut endpoints = parse_all(network::LISTENERS.name, &layers.list(&network::LISTENERS))?;
    endpoints.retain(|endpoint| !controllers.contains(&endpoint.name));
    if endpoints.is_empty() {
        return Err(ConfigError::Conflict("listeners: there is no listener for clients".to_owned()));
    }
    for endpoint in &endpoints {
        check_protocol(&protocols, &endpoint.name)?;
    }
    check_distinct(&endpoints)?;
    let mut advertised = parse_all(network::ADVERTISED_LISTENERS.name, &layers.list(&network::ADVERTISED_LISTENERS))?;
    advertised.retain(|endpoint| !controllers.contains(&endpoint.name));
    if let Some(stray) = advertised.iter().find(|a| endpoints.iter().all(|e| e.name != a.name)) {
        return Err(ConfigError::Conflict(format!("advertised.listeners: {} is not one of the listeners", stray.name)));
    }
    endpoints.into_iter().map(|endpoint| advertise(endpoint, &advertised)).collect()
}

fn advertise(endpoint: Endpoint, advertised: &[Endpoint]) -> Result<Listener, ConfigError> {
    let Endpoint { name, host, port } = endpoint;
    let (advertised_host, advertised_port) = match advertised.iter().find(|a| a.name == name) {
        Some(a) if is_any(&a.host) && !a.host.is_empty() => {
            return Err(ConfigError::Conflict(format!(
                "advertised.listeners: clients cannot connect to the meta-address {}",
                a.host
            )));
        }
        Some(a) => (a.host.clone(), a.port),
        None => (host.clone(), port),
    };
    let advertised_host = if is_any(&advertised_host) { host_name() } else { advertised_host };
    Ok(Listener { name, host, port, advertised_host, advertised_port })
}

fn is_any(host: &str) -> bool {
    matches!(host, "" | "0.0.0.0" | "::")
}

/// The machine's name, for listeners on all interfaces that say nothing else.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() || name == "(none)" { "localhost".to_owned() } else { name }
}

fn protocol_map(layers: &Layers) -> Result<BTreeMap<String, String>, ConfigError> {
    let text = layers.text(&network::LISTENER_SECURITY_PROTOCOL_MAP).unwrap_or_default();
    let mut map = BTreeMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((name, protocol)) = pair.split_once(':') else {
            return Err(ConfigError::Conflict(format!(
                "listener.security.protocol.map: '{pair}' is not NAME:PROTOCOL"
            )));
        };
        map.insert(name.trim().to_uppercase(), protocol.trim().to_uppercase());
    }
    Ok(map)
}

fn check_protocol(protocols: &BTreeMap<String, String>, name: &str) -> Result<(), ConfigError> {
    match protocols.get(name).map(String::as_str) {
        Some("PLAINTEXT") => Ok(()),
        Some(_) => Err(ConfigError::Security { name: format!("listener {name}") }),
        None => Err(ConfigError::Conflict(format!("No security protocol defined for listener {name}"))),
    }
}

fn check_distinct(endpoints: &[Endpoint]) -> Result<(), ConfigError> {
    for (at, endpoint) in endpoints.iter().enumerate() {
        if endpoints[..at].iter().any(|other| other.name == endpoint.name) {
            return Err(ConfigError::Conflict(format!("Each listener must have a different name: {}", endpoint.name)));
        }
        let same = |other: &Endpoint| other.port == endpoint.port && other.host == endpoint.host && endpoint.port != 0;
        if endpoints[..at].iter().any(same) {
            return Err(ConfigError::Conflict(format!("Each listener must have a different port: {}", endpoint.port)));
        }
    }
    Ok(())
}

fn parse_all(key: &str, list: &[String]) -> Result<Vec<Endpoint>, ConfigError> {
    list.iter()
        .map(|text| {
            parse(text).ok_or_else(|| ConfigError::Conflict(format!("{key}: '{text}' is not NAME://HOST:PORT")))
        })
        .collect()
}

fn parse(text: &str) -> Option<Endpoint> {
    let (name, address) = text.split_once("://")?;
    let (host, port) = split_address(address)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if name.is_empty() || !name.bytes().all(plain) {
        return None;
    }
    Some(Endpoint { name: name.to_uppercase(), host, port })
}

/// `HOST:PORT`, an IPv6 address in brackets.
pub fn split_address(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    Some((host.to_owned(), port.parse().ok()?))
}
