//! Several brokers: who coordinates a group, who leads a partition, and what to do when the answer is "not now" or "not
//! here".

use std::collections::BTreeMap;
use std::time::Duration;

use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::metadata_request::MetadataRequest;
use wire::messages::metadata_response::MetadataResponse;
use wire::{ApiKey, KStr, Request};

use crate::connection::Connection;
use crate::error::ClientError;

/// How often a request is repeated, and how long to wait between; some ten seconds in all.
const ATTEMPTS: u32 = 20;
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_millis(1_000);

/// A client of a cluster. Connections are opened when needed and kept.
pub struct Client {
    bootstrap: Vec<String>,
    client_id: String,
    timeout: Duration,
    connections: BTreeMap<String, Connection>,
}

impl Client {
    /// `bootstrap` is a list `host:port,host:port`; nothing is sent yet.
    pub fn new(bootstrap: &str, client_id: &str, timeout: Duration) -> Client {
        Client {
            bootstrap: bootstrap.split(',').map(|address| address.trim().to_owned()).collect(),
            client_id: client_id.to_owned(),
            timeout,
            connections: BTreeMap::new(),
        }
    }

    /// How long an answer may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A connection to the first broker of the list that answers.
    pub async fn any(&mut self) -> Result<&mut Connection, ClientError> {
        let mut last = None;
        for address in self.bootstrap.clone() {
            match self.ensure(&address).await {
                Ok(()) => return self.at(&address).await,
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ClientError::Connect {
            address: String::new(),
            source: std::io::Error::other("no bootstrap address was given"),
        }))
    }

    /// A connection to one broker.
    pub async fn at(&mut self, address: &str) -> Result<&mut Connection, ClientError> {
        self.ensure(address).await?;
        // `ensure` has just put it there.
        self.connections.get_mut(address).ok_or_else(|| ClientError::Connect {
            address: address.to_owned(),
            source: std::io::Error::other("the connection is gone"),
        })
    }

    /// Whether the cluster has an API at all.
    pub async fn offers(&mut self, key: ApiKey) -> Result<bool, ClientError> {
        Ok(self.any().await?.offers(key))
    }

    /// Sends a request to any broker.
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let mut retry = Retry::default();
        loop {
            let address = self.any().await?.address().to_owned();
            let outcome = self.send(&address, request, i16::MAX).await;
            let again = outcome.as_ref().err().is_some_and(ClientError::is_retriable);
            if !again || !retry.wait().await {
                return outcome;
            }
        }
    }

    /// Sends a request to one broker. A connection that broke since it was last used is opened anew.
    pub async fn call_broker<R: Request>(&mut self, address: &str, request: &R) -> Result<R::Response, ClientError> {
        let mut retry = Retry::default();
        loop {
            let outcome = self.send(address, request, i16::MAX).await;
            let again = outcome.as_ref().err().is_some_and(ClientError::is_retriable);
            if !again || !retry.wait().await {
                return outcome;
            }
        }
    }

    /// Sends a request to the coordinator of a group, and again while `error_of` finds an error in the response that says
    /// that the coordinator is elsewhere or not ready.
    pub async fn call_coordinator<R: Request>(
        &mut self,
        group_id: &str,
        request: &R,
        error_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClientError> {
        self.call_coordinator_up_to(group_id, request, i16::MAX, error_of).await
    }

    /// The same in version `newest` at most, for requests whose later versions name topics by id only.
    pub async fn call_coordinator_up_to<R: Request>(
        &mut self,
        group_id: &str,
        request: &R,
        newest: i16,
        error_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClientError> {
        let mut retry = Retry::default();
        loop {
            let outcome = match self.coordinator(group_id).await {
                Ok(address) => self.send(&address, request, newest).await,
                Err(error) => Err(error),
            };
            let again = match &outcome {
                Ok(response) => ClientError::check(error_of(response), None).err().is_some_and(|e| e.is_retriable()),
                Err(error) => error.is_retriable(),
            };
            if !again || !retry.wait().await {
                return outcome;
            }
        }
    }

    /// `host:port` of the coordinator of a group.
    pub async fn coordinator(&mut self, group_id: &str) -> Result<String, ClientError> {
        let connection = self.any().await?;
        let version = connection.version_of::<FindCoordinatorRequest>()?;
        let key = KStr::copy(group_id);
        let request = if version >= 4 {
            FindCoordinatorRequest { coordinator_keys: vec![key], ..Default::default() }
        } else {
            FindCoordinatorRequest { key, ..Default::default() }
        };
        let response = connection.call(&request).await?;
        if version < 4 {
            ClientError::check(response.error_code, response.error_message.as_deref())?;
            return Ok(format!("{}:{}", response.host, response.port));
        }
        let found = response.coordinators.first().ok_or(ClientError::Correlation)?;
        ClientError::check(found.error_code, found.error_message.as_deref())?;
        Ok(format!("{}:{}", found.host, found.port))
    }

    /// All topics, or the named ones, and all brokers.
    pub async fn metadata(&mut self, topics: Option<&[&str]>) -> Result<MetadataResponse, ClientError> {
        use wire::messages::metadata_request::MetadataRequestTopic;
        let topics = topics.map(|names| {
            let topic = |name: &&str| MetadataRequestTopic { name: Some(KStr::copy(name)), ..Default::default() };
            names.iter().map(topic).collect()
        });
        let request = MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() };
        self.call(&request).await
    }

    /// `host:port` of every broker.
    pub async fn brokers(&mut self) -> Result<Vec<String>, ClientError> {
        let metadata = self.metadata(Some(&[])).await?;
        Ok(metadata.brokers.iter().map(|broker| format!("{}:{}", broker.host, broker.port)).collect())
    }

    async fn send<R: Request>(&mut self, address: &str, request: &R, newest: i16) -> Result<R::Response, ClientError> {
        let connection = self.at(address).await?;
        let version = connection.version_of::<R>()?.min(newest);
        let outcome = connection.call_at(request, version).await;
        if outcome.is_err() {
            self.connections.remove(address);
        }
        outcome
    }

    async fn ensure(&mut self, address: &str) -> Result<(), ClientError> {
        if !self.connections.contains_key(address) {
            let connection = Connection::open(address, &self.client_id, self.timeout).await?;
            self.connections.insert(address.to_owned(), connection);
        }
        Ok(())
    }
}

/// Counts attempts and grows the time between them.
struct Retry {
    attempt: u32,
    backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { attempt: 1, backoff: BACKOFF }
    }
}

impl Retry {
    /// False when it was the last attempt, else after a pause.
    async fn wait(&mut self) -> bool {
        if self.attempt == ATTEMPTS {
            return false;
        }
        self.attempt += 1;
        tokio::time::sleep(self.backoff).await;
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        true
    }
}
