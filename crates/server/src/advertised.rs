//! Doubts about the addresses that clients are told: the usual reason why a client connects once and never again.

use std::net::IpAddr;
use std::time::Duration;

use crate::listener::Listen;

/// A name server that takes longer says nothing.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// Looks up every address that somebody configured, and warns of those that clients will not get far with.
pub(crate) async fn look_at(listens: Vec<Listen>) {
    for listen in listens {
        let Some((host, port)) = &listen.advertised else { continue };
        let lookup = tokio::time::timeout(LOOKUP_LIMIT, tokio::net::lookup_host((host.as_str(), *port)));
        let Ok(found) = lookup.await else { continue };
        let found: Vec<IpAddr> = found.map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default();
        if let Some(doubt) = doubt(&listen.host, host, &found) {
            tracing::warn!("advertised.listeners: clients are told {host}:{port}, but {doubt}");
        }
    }
}

/// What speaks against telling clients `advertised`, which stands for the addresses `found`, if we listen on `host`.
fn doubt(host: &str, advertised: &str, found: &[IpAddr]) -> Option<String> {
    let local = |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if found.is_empty() {
        return Some(format!(
            "this machine does not know {advertised}. Give a name that clients can resolve (--advertise HOST:PORT), or \
             leave it out: clients are then told the address at which they reached the broker"
        ));
    }
    let loopback = found.iter().all(IpAddr::is_loopback);
    (loopback && !local(host)).then(|| {
        "that is the loopback address, which only this machine (or this container) can reach. Give the address that clients \
         use (--advertise HOST:PORT), or leave it out: clients are then told the address at which they reached the broker"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ux_01_addresses_that_clients_cannot_use_are_doubted() {
        let (loopback, remote): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [10, 0, 0, 7].into());
        let v6 = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
        for (host, advertised, found, part) in [
            ("", "kafka", vec![], Some("does not know kafka")),
            ("localhost", "kafka", vec![], Some("does not know kafka")),
            ("", "localhost", vec![loopback, v6], Some("loopback")),
            ("0.0.0.0", "localhost", vec![loopback], Some("loopback")),
            ("10.0.0.7", "127.0.0.1", vec![loopback], Some("loopback")),
            ("127.0.0.1", "localhost", vec![loopback], None),
            ("::1", "localhost", vec![v6], None),
            ("localhost", "localhost", vec![loopback, v6], None),
            ("", "kafka", vec![remote], None),
            ("", "kafka", vec![loopback, remote], None),
        ] {
            let doubt = doubt(host, advertised, &found);
            let as_wanted = match (&doubt, part) {
                (Some(doubt), Some(part)) => doubt.contains(part),
                (doubt, part) => doubt.is_none() && part.is_none(),
            };
            assert!(as_wanted, "{host} {advertised} {found:?}: {doubt:?}");
        }
    }
}
