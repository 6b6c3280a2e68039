//! Quotas of clients: kept and shown. They are not enforced: no request is ever throttled (N-5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::KStr;
use wire::messages::client_quota_record::{ClientQuotaRecord, EntityData};

use super::Topics;
use super::error::Refusal;
use super::record::MetadataRecord;

/// Whose quota it is: a name by entity type, `None` for all that have no quota of their own.
pub(crate) type Entity = BTreeMap<KStr, Option<KStr>>;

/// What is set, by entity and key.
pub(crate) type Quotas = BTreeMap<Entity, BTreeMap<KStr, f64>>;

pub(crate) const USER: &str = "user";
pub(crate) const CLIENT_ID: &str = "client-id";
pub(crate) const IP: &str = "ip";

/// Quotas of users and client ids, and whether they are whole numbers.
const CLIENT_KEYS: &[(&str, bool)] = &[
    ("producer_byte_rate", true),
    ("consumer_byte_rate", true),
    ("request_percentage", false),
    ("controller_mutation_rate", false),
];
const IP_KEY: &str = "connection_creation_rate";
/// Whole numbers may be off by so much, since they come as floating point.
const TOLERANCE: f64 = 1e-6;

/// What is done to one entity: all of it or nothing.
#[derive(Clone, Debug)]
pub(crate) struct QuotaAlteration {
    /// As sent: a type may be there twice.
    pub entity: Vec<(KStr, Option<KStr>)>,
    /// `None` removes the key.
    pub values: Vec<(KStr, Option<f64>)>,
}

impl Topics {
    /// Alters what can be altered, all in one step, and says of each entity what became of it, in order.
    pub async fn alter_quotas(
        self: &Arc<Self>,
        alterations: Vec<QuotaAlteration>,
        validate_only: bool,
    ) -> Result<Vec<Result<(), Refusal>>, Refusal> {
        // Names may be long in coming: not while nobody else can change anything.
        let unknown = unknown_hosts(&alterations).await;
        self.change(move |registry, writer| {
            let state = registry.state();
            let planned: Vec<_> =
                alterations.iter().map(|alteration| plan(&state.quotas, &unknown, alteration)).collect();
            let records: Vec<_> = planned.iter().flatten().flatten().cloned().collect();
            let mut results: Vec<_> = planned.into_iter().map(|planned| planned.map(drop)).collect();
            if !validate_only && !records.is_empty() {
                tracing::warn!("quotas of clients are stored and shown, but not enforced");
                if let Err(refusal) = registry.commit(writer, &records) {
                    results
                        .iter_mut()
                        .filter(|result| result.is_ok())
                        .for_each(|result| *result = Err(refusal.clone()));
                }
            }
            Ok(results)
        })
        .await
    }
}

/// The hosts among the entities that are no address and have none.
async fn unknown_hosts(alterations: &[QuotaAlteration]) -> BTreeSet<KStr> {
    let named = alterations.iter().flat_map(|alteration| &alteration.entity);
    let hosts: BTreeSet<&KStr> = named.filter(|(kind, _)| kind == IP).filter_map(|(_, name)| name.as_ref()).collect();
    let mut unknown = BTreeSet::new();
    for host in hosts {
        if tokio::net::lookup_host((host.as_str(), 0)).await.is_err() {
            unknown.insert(host.to_owned_detached());
        }
    }
    unknown
}

fn plan(
    quotas: &Quotas,
    unknown: &BTreeSet<KStr>,
    alteration: &QuotaAlteration,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let entity = check_entity(&alteration.entity)?;
    if let Some(Some(ip)) = entity.get(IP)
        && unknown.contains(ip)
    {
        return Err(Refusal::invalid_request(format!("{ip} is not a valid IP or resolvable host.")));
    }
    let is_ip = entity.contains_key(IP);
    let current = |key: &KStr| quotas.get(&entity).and_then(|values| values.get(key)).copied();
    let mut seen = BTreeSet::new();
    let mut records = Vec::new();
    for (key, value) in &alteration.values {
        if !seen.insert(key) {
            return Err(Refusal::invalid_request(format!("Duplicate quota key {key}")));
        }
        // Whatever has no value can be removed.
        if let Some(value) = value {
            check_key(key, *value, is_ip)?;
        }
        if *value != current(key) {
            records.push(record(&entity, key, *value));
        }
    }
    Ok(records)
}

fn check_entity(sent: &[(KStr, Option<KStr>)]) -> Result<Entity, Refusal> {
    if sent.is_empty() {
        return Err(Refusal::invalid_request("Invalid empty client quota entity"));
    }
    let mut entity = Entity::new();
    for (kind, name) in sent {
        if ![USER, CLIENT_ID, IP].contains(&kind.as_str()) {
            return Err(Refusal::invalid_request(format!("Unhandled client quota entity type: {kind}")));
        }
        if name.as_ref().is_some_and(|name| name.is_empty()) {
            return Err(Refusal::invalid_request(format!("Empty {kind} not supported")));
        }
        if entity.insert(kind.to_owned_detached(), name.as_ref().map(KStr::to_owned_detached)).is_some() {
            return Err(Refusal::invalid_request(format!(
                "Invalid client quota entity, duplicate entity type: {kind}"
            )));
        }
    }
    if entity.contains_key(IP) && entity.len() > 1 {
        let why = "Invalid quota entity combination, IP entity should not be combined with User or ClientId";
        return Err(Refusal::invalid_request(why));
    }
    Ok(entity)
}

fn check_key(key: &KStr, value: f64, is_ip: bool) -> Result<(), Refusal> {
    let largest_and_whole = match is_ip {
        true => (key == IP_KEY).then_some((f64::from(i32::MAX), true)),
        false => CLIENT_KEYS.iter().find(|(known, _)| key == known).map(|(_, whole)| (i64::MAX as f64, *whole)),
    };
    let Some((largest, whole)) = largest_and_whole else {
        return Err(Refusal::invalid_request(format!("Invalid configuration key {key}")));
    };
    if value.is_nan() || value <= 0.0 {
        return Err(Refusal::invalid_request(format!("Quota {key} must be greater than 0")));
    }
    if whole && (value - value.round()).abs() > TOLERANCE {
        return Err(Refusal::invalid_request(format!("Configuration {key} must be a whole number")));
    }
    if whole && value > largest {
        return Err(Refusal::invalid_request(format!("Configuration {key} must not be greater than {largest}")));
    }
    Ok(())
}

fn record(entity: &Entity, key: &KStr, value: Option<f64>) -> MetadataRecord {
    let entity = entity.iter().map(|(kind, name)| EntityData { entity_type: kind.clone(), entity_name: name.clone() });
    MetadataRecord::ClientQuota(ClientQuotaRecord {
        entity: entity.collect(),
        key: key.to_owned_detached(),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
    })
}

/// The records that say all of it.
pub(super) fn records(quotas: &Quotas) -> impl Iterator<Item = MetadataRecord> {
    let of = |(entity, values)| {
        let values: &BTreeMap<KStr, f64> = values;
        values.iter().map(move |(key, value)| record(entity, key, Some(*value)))
    };
    quotas.iter().flat_map(of)
}

pub(super) fn replay(quotas: &mut Quotas, record: &ClientQuotaRecord) {
    let own = KStr::to_owned_detached;
    let named = |data: &EntityData| (own(&data.entity_type), data.entity_name.as_ref().map(own));
    let entity: Entity = record.entity.iter().map(named).collect();
    let values = quotas.entry(entity.clone()).or_default();
    if record.remove {
        values.remove(&record.key);
    } else {
        values.insert(own(&record.key), record.value);
    }
    if values.is_empty() {
        quotas.remove(&entity);
    }
}
