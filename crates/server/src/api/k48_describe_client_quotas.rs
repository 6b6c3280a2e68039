//! DescribeClientQuotas (48): the quotas of the entities that pass a filter (M-13).

use std::collections::BTreeMap;

use wire::messages::describe_client_quotas_request::{ComponentData, DescribeClientQuotasRequest};
use wire::messages::describe_client_quotas_response::{DescribeClientQuotasResponse, EntityData, EntryData, ValueData};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::{Entity, QUOTA_CLIENT_ID, QUOTA_IP, QUOTA_USER, Refusal};

/// How a component of the filter matches.
const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const ANY: i8 = 2;

/// What is asked of one entity type.
enum Wanted {
    Is(Option<KStr>),
    IsThere,
}

type Filter = BTreeMap<KStr, Wanted>;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeClientQuotasRequest,
) -> Result<Handled<DescribeClientQuotasResponse>, HandlerError> {
    let filter = match filter(&request.components) {
        Ok(filter) => filter,
        Err(refusal) => {
            let response = DescribeClientQuotasResponse {
                error_code: refusal.code.code(),
                error_message: refusal.message.map(KStr::from),
                entries: None,
                ..Default::default()
            };
            return Ok(response.into());
        }
    };
    let state = cx.broker.topics.state();
    let found = state.quotas.iter().filter(|(entity, _)| matches(&filter, request.strict, entity));
    let entries = found.map(|(entity, values)| EntryData {
        entity: entity
            .iter()
            .map(|(kind, name)| EntityData { entity_type: kind.clone(), entity_name: name.clone() })
            .collect(),
        values: values.iter().map(|(key, value)| ValueData { key: key.clone(), value: *value }).collect(),
    });
    Ok(DescribeClientQuotasResponse { entries: Some(entries.collect()), ..Default::default() }.into())
}

fn filter(components: &[ComponentData]) -> Result<Filter, Refusal> {
    let mut filter = Filter::new();
    for ComponentData { entity_type: kind, match_type, match_: name, .. } in components {
        if kind.is_empty() {
            return Err(Refusal::invalid_request("Invalid empty entity type."));
        }
        if ![QUOTA_USER, QUOTA_CLIENT_ID, QUOTA_IP].contains(&kind.as_str()) {
            return Err(Refusal::new(ErrorCode::UnsupportedVersion, format!("Unsupported entity type {kind}")));
        }
        let needless = |what: &str| {
            Err(Refusal::invalid_request(format!("Request specified {what}, but also specified a match string.")))
        };
        let wanted = match (*match_type, name) {
            (EXACT, Some(name)) => Wanted::Is(Some(name.clone())),
            (EXACT, None) => {
                let why = "Request specified MATCH_TYPE_EXACT, but set match string to null.";
                return Err(Refusal::invalid_request(why));
            }
            (DEFAULT, None) => Wanted::Is(None),
            (DEFAULT, Some(_)) => return needless("MATCH_TYPE_DEFAULT"),
            (ANY, None) => Wanted::IsThere,
            (ANY, Some(_)) => return needless("MATCH_TYPE_SPECIFIED"),
            (unknown, _) => return Err(Refusal::invalid_request(format!("Unknown match type {unknown}"))),
        };
        if filter.insert(kind.clone(), wanted).is_some() {
            let why = format!("Entity type {kind} cannot appear more than once in the filter.");
            return Err(Refusal::invalid_request(why));
        }
    }
    if filter.contains_key(QUOTA_IP) && filter.len() > 1 {
        let why = "Invalid entity filter component combination, IP filter component should not be used with user or \
                   clientId filter component.";
        return Err(Refusal::invalid_request(why));
    }
    Ok(filter)
}

/// A strict filter leaves out entities with types that it does not name.
fn matches(filter: &Filter, strict: bool, entity: &Entity) -> bool {
    let all = filter.iter().all(|(kind, wanted)| match (entity.get(kind), wanted) {
        (Some(name), Wanted::Is(wanted)) => name == wanted,
        (Some(_), Wanted::IsThere) => true,
        (None, _) => false,
    });
    all && (!strict || filter.len() == entity.len())
}
