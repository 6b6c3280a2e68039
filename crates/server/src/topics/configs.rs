//! Dynamic configuration of topics, the broker and groups (M-12, S 9.6).

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::{ErrorCode, KStr};

use super::error::Refusal;
use super::record::MetadataRecord;
use super::state::{ResourceType, State, config_record};
use super::{Topics, names};
use crate::config::key::{Key, Kind, Update};
use crate::config::keys::Known;
use crate::config::{Layers, ServerConfig, Values, keys, validate, validate_group, value};

/// What is done to one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Set(KStr),
    Delete,
    /// To a list.
    Append(KStr),
    /// From a list.
    Subtract(KStr),
    /// An operation that there is not.
    Unknown(i8),
}

impl Operation {
    fn unknown(&self) -> Option<i8> {
        match self {
            Operation::Unknown(code) => Some(*code),
            _ => None,
        }
    }
}

/// What is done to one resource: all of it or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Alteration {
    pub kind: ResourceType,
    pub name: KStr,
    /// No key twice.
    pub operations: Vec<(KStr, Operation)>,
    /// Whatever is not named is deleted (AlterConfigs).
    pub replace: bool,
}

/// The one key that always has a value for the whole cluster (M-11).
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// The record that gives it its first one, which is that of the configuration file.
pub(super) fn missing_cluster_default(state: &State, fixed: &Values) -> Option<MetadataRecord> {
    if state.config(ResourceType::Broker, "").contains_key(MIN_INSYNC_REPLICAS) {
        return None;
    }
    let default = keys::find_broker(MIN_INSYNC_REPLICAS).and_then(|key| key.default).unwrap_or("1");
    let value = fixed.get(MIN_INSYNC_REPLICAS).map_or(default, String::as_str);
    Some(config_record(ResourceType::Broker, KStr::EMPTY, MIN_INSYNC_REPLICAS, Some(value)))
}

impl Topics {
    /// Alters what can be altered, all in one step, and says of each resource what became of it, in order.
    pub async fn alter_configs(
        self: &Arc<Self>,
        alterations: Vec<Alteration>,
        validate_only: bool,
    ) -> Result<Vec<Result<(), Refusal>>, Refusal> {
        self.change(move |registry, writer| {
            let mut state = registry.state().clone();
            let mut records = Vec::new();
            let mut results = Vec::with_capacity(alterations.len());
            for alteration in &alterations {
                results.push(registry.plan_alteration(&state, alteration).and_then(|planned| {
                    // Broker defaults and this broker's values may come in one request: each sees those before it.
                    for record in &planned {
                        state.replay(record).map_err(|why| Refusal::new(ErrorCode::UnknownServerError, why))?;
                    }
                    records.extend(planned);
                    Ok(())
                }));
            }
            if !validate_only && let Err(refusal) = registry.commit(writer, &records) {
                for result in results.iter_mut().filter(|result| result.is_ok()) {
                    *result = Err(refusal.clone());
                }
            }
            Ok(results)
        })
        .await
    }

    /// The records that an alteration comes to, if what results from it is allowed.
    fn plan_alteration(&self, state: &State, alteration: &Alteration) -> Result<Vec<MetadataRecord>, Refusal> {
        if alteration.kind == ResourceType::Broker {
            if !alteration.name.is_empty() {
                check_node_id(&alteration.name, self.node_id)?;
            }
            if let Some(code) = alteration.operations.iter().find_map(|(_, operation)| operation.unknown()) {
                return Err(Refusal::invalid_request(format!("Unknown operations type {code}")));
            }
        }
        let current = state.config(alteration.kind, &alteration.name);
        let mut next = (*current).clone();
        if alteration.replace {
            next.retain(|name, _| alteration.kind == ResourceType::Broker && name == MIN_INSYNC_REPLICAS);
        }
        for (name, operation) in &alteration.operations {
            match altered(alteration.kind, name, operation, current.get(name.as_str()))? {
                Some(value) => next.insert(name.as_str().to_owned(), value),
                None => next.remove(name.as_str()),
            };
        }
        self.check(state, alteration, &next)?;
        let names: BTreeSet<&String> = current.keys().chain(next.keys()).collect();
        let changed = names.into_iter().filter(|name| current.get(*name) != next.get(*name));
        let record = |name: &String| {
            let value = next.get(name).map(String::as_str);
            config_record(alteration.kind, alteration.name.to_owned_detached(), name, value)
        };
        Ok(changed.map(record).collect())
    }

    fn check(&self, state: &State, alteration: &Alteration, next: &Values) -> Result<(), Refusal> {
        let name = alteration.name.as_str();
        match alteration.kind {
            ResourceType::Topic => {
                if name.is_empty() {
                    return Err(Refusal::invalid_request("Default topic resources are not allowed."));
                }
                names::validate(name)?;
                let layers = &self.config.current().layers;
                validate(next, layers).map_err(|error| Refusal::invalid_config(error.to_string()))?;
                match state.topic(name) {
                    Some(_) => Ok(()),
                    None => Err(Refusal::new(
                        ErrorCode::UnknownTopicOrPartition,
                        format!("The topic '{name}' does not exist."),
                    )),
                }
            }
            ResourceType::Group => {
                if name.is_empty() {
                    return Err(Refusal::invalid_request("Default group resources are not allowed."));
                }
                validate_group(next, &self.config.current().groups)
                    .map_err(|error| Refusal::invalid_config(error.to_string()))
            }
            ResourceType::Broker => self.check_broker(state, name, alteration, next),
        }
    }

    /// Only this broker, or all brokers (the empty name), and only keys that may change while it runs.
    fn check_broker(&self, state: &State, name: &str, alteration: &Alteration, next: &Values) -> Result<(), Refusal> {
        if let Some((_, operation)) = alteration.operations.iter().find(|(key, _)| key == MIN_INSYNC_REPLICAS) {
            if !name.is_empty() {
                let why = format!("{MIN_INSYNC_REPLICAS} is altered for the whole cluster, or for a topic");
                return Err(Refusal::invalid_config(why));
            }
            if *operation == Operation::Delete {
                return Err(Refusal::invalid_config(format!("{MIN_INSYNC_REPLICAS} of the cluster cannot be removed")));
            }
        }
        let set = alteration.operations.iter().filter(|(_, operation)| *operation != Operation::Delete);
        for (key, _) in set {
            check_dynamic(key, !name.is_empty())?;
        }
        for (key, text) in next {
            if let Some(key) = keys::find_described_broker(key) {
                value::parse(key, text).map_err(|error| Refusal::invalid_request(error.to_string()))?;
            }
        }
        let other = |name: &str| -> Values { (*state.config(ResourceType::Broker, name)).clone() };
        let (broker, cluster) = match name {
            "" => (other(&self.node_id.to_string()), next.clone()),
            _ => (next.clone(), other("")),
        };
        let fixed = self.config.current().layers.fixed.clone();
        ServerConfig::build(Layers { broker, cluster, fixed })
            .map_err(|error| Refusal::invalid_request(error.to_string()))?;
        Ok(())
    }
}

/// A broker resource names this node.
pub(crate) fn check_node_id(name: &str, node_id: i32) -> Result<(), Refusal> {
    match name.parse::<i32>() {
        Ok(id) if id == node_id => Ok(()),
        Ok(_) => {
            Err(Refusal::invalid_request(format!("Unexpected broker id, expected {node_id}, but received {name}")))
        }
        Err(_) => Err(Refusal::invalid_request(format!("Node id must be an integer, but it is: {name}"))),
    }
}

/// Unknown keys are accepted, as with Kafka, which has plug-ins; security that is not built never is.
fn check_dynamic(name: &str, per_broker: bool) -> Result<(), Refusal> {
    let update = match keys::classify(name) {
        Known::Refused { .. } => {
            return Err(Refusal::invalid_request(format!(
                "{name}: encryption, authentication, authorisation and policies are not built"
            )));
        }
        Known::Key(key) => key.update,
        Known::Inert(_) => keys::find_described_broker(name).map_or(Update::ClusterWide, |key| key.update),
        Known::Unknown => {
            tracing::warn!("unknown configuration key {name} is stored, and has no effect");
            Update::ClusterWide
        }
    };
    match update {
        Update::ClusterWide => Ok(()),
        Update::PerBroker if per_broker => Ok(()),
        Update::PerBroker => Err(Refusal::invalid_request(format!(
            "Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
        ))),
        Update::ReadOnly => Err(Refusal::invalid_request(format!("Cannot update these configs dynamically: [{name}]"))),
    }
}

/// The value of a key after an operation; `None` unsets it.
fn altered(
    kind: ResourceType,
    name: &KStr,
    operation: &Operation,
    current: Option<&String>,
) -> Result<Option<String>, Refusal> {
    let (elements, append) = match operation {
        Operation::Set(value) => return Ok(Some(value.as_str().to_owned())),
        Operation::Delete => return Ok(None),
        Operation::Append(elements) => (elements, true),
        Operation::Subtract(elements) => (elements, false),
        Operation::Unknown(_) => return Err(Refusal::plain(ErrorCode::UnknownServerError)),
    };
    let key = splittable(kind, name).ok_or_else(|| {
        let verb = if append { "append" } else { "subtract" };
        Refusal::invalid_config(match kind {
            ResourceType::Broker => format!("Config value {verb} is not allowed for config key: {name}"),
            _ => format!("Can't {} to key {name} because its type is not LIST.", verb.to_uppercase()),
        })
    })?;
    let present = current.map(String::as_str).or(key.default).unwrap_or("");
    let mut list: Vec<&str> = present.split(',').filter(|element| !element.is_empty()).collect();
    for element in elements.split(',') {
        match list.iter().position(|present| *present == element) {
            Some(at) if !append => {
                list.remove(at);
            }
            None if append => list.push(element),
            _ => {}
        }
    }
    Ok(Some(list.join(",")))
}

/// S 9.6.4: lists of groups cannot be appended to.
fn splittable(kind: ResourceType, name: &str) -> Option<&'static Key> {
    let key = match kind {
        ResourceType::Topic => keys::find_topic(name),
        ResourceType::Broker => keys::find_described_broker(name),
        ResourceType::Group => None,
    };
    key.filter(|key| key.kind == Kind::List)
}
