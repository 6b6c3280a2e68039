//! Which cluster a command talks to.

use std::time::Duration;

use client::Client;
use client::admin::configs::{self, Resource};

use crate::failure::{Failure, Kind};

const CLIENT_ID: &str = "millstream-cli";
const HTTP_LISTENER: &str = "admin.http.listener";

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connection and output")]
pub struct Connect {
    /// Brokers to begin with
    #[arg(short, long, visible_alias = "bootstrap", value_name = "HOST:PORT,...", default_value = "localhost:9092")]
    pub bootstrap_server: String,
    /// How long an answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// JSON for programs instead of tables for people
    #[arg(long)]
    pub json: bool,
}

impl Connect {
    pub fn client(&self) -> Client {
        Client::new(&self.bootstrap_server, CLIENT_ID, self.timeout())
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Runs a command that waits for the network.
pub fn block_on<R>(work: impl Future<Output = Result<R, Failure>>) -> Result<R, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}

/// The admin HTTP address of the broker: as given, or as the broker's own settings say.
pub async fn http_address(connect: &Connect, client: &mut Client, given: Option<&str>) -> Result<String, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let reached = client.any().await?.address().to_owned();
    let metadata = client.metadata(Some(&[])).await?;
    let node = metadata.brokers.first().map_or(1, |broker| broker.node_id).to_string();
    let settings = configs::describe(client, Resource::Broker(&node)).await?;
    let listener = settings.into_iter().find(|setting| setting.name == HTTP_LISTENER);
    let Some(listener) = listener.map(|setting| setting.value.unwrap_or_default()) else {
        return Err(Failure::failed(format!(
            "the broker at {} has no admin HTTP interface: it is not Millstream. Kafka's protocol has no message for this",
            connect.bootstrap_server
        )));
    };
    beside(&reached, &listener)
}

/// Where a listener is found by who reached the broker at `reached`.
fn beside(reached: &str, listener: &str) -> Result<String, Failure> {
    let Some((host, port)) = listener.rsplit_once(':').filter(|(_, port)| *port != "0") else {
        return Err(Failure::failed(format!(
            "the broker does not say where its admin HTTP interface is ({HTTP_LISTENER} is {listener:?}): switch it on, \
             or give its address with --http"
        )));
    };
    let reached_host = reached.rsplit_once(':').map_or(reached, |(host, _)| host);
    let anywhere = matches!(host, "" | "0.0.0.0" | "[::]" | "::");
    let host = if anywhere { reached_host } else { host };
    Ok(format!("{host}:{port}"))
}

/// What is wrong when the HTTP interface cannot be reached, which is by default only possible on the broker's machine.
pub fn http_hint(error: client::ClientError, address: &str) -> Failure {
    let failure = Failure::from(error);
    match failure.kind {
        Kind::Unreachable => failure.context(format!(
            "the broker's admin HTTP interface at {address} is not reached; by default it listens on the broker's machine \
             only ({HTTP_LISTENER})"
        )),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_address_follows_from_the_listener_and_the_broker_that_was_reached() {
        for (reached, listener, expected) in [
            ("localhost:9092", "localhost:8090", Some("localhost:8090")),
            ("10.0.0.7:9092", ":8090", Some("10.0.0.7:8090")),
            ("10.0.0.7:9092", "0.0.0.0:9", Some("10.0.0.7:9")),
            ("[::1]:9092", "[::]:8090", Some("[::1]:8090")),
            ("10.0.0.7:9092", "admin.example:80", Some("admin.example:80")),
            ("localhost:9092", "", None),
            ("localhost:9092", "localhost:0", None),
        ] {
            assert_eq!(beside(reached, listener).ok().as_deref(), expected, "{reached} {listener}");
        }
    }
}
