//! AlterClientQuotas (49): each entity by itself.

use wire::messages::alter_client_quotas_request::{AlterClientQuotasRequest, EntryData as Asked};
use wire::messages::alter_client_quotas_response::{AlterClientQuotasResponse, EntityData, EntryData};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::{QuotaAlteration, Refusal};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: AlterClientQuotasRequest,
) -> Result<Handled<AlterClientQuotasResponse>, HandlerError> {
    let alterations: Vec<_> = request.entries.iter().map(alteration).collect();
    let results = match cx.broker.topics.alter_quotas(alterations, request.validate_only).await {
        Ok(results) => results,
        Err(refusal) => vec![Err(refusal); request.entries.len()],
    };
    let entries = request.entries.into_iter().zip(results).map(|(asked, result)| answer(asked, result));
    Ok(AlterClientQuotasResponse { entries: entries.collect(), ..Default::default() }.into())
}

fn alteration(asked: &Asked) -> QuotaAlteration {
    let entity = asked.entity.iter().map(|each| (each.entity_type.clone(), each.entity_name.clone()));
    let values = asked.ops.iter().map(|op| (op.key.clone(), (!op.remove).then_some(op.value)));
    QuotaAlteration { entity: entity.collect(), values: values.collect() }
}

fn answer(asked: Asked, result: Result<(), Refusal>) -> EntryData {
    let (error, message) = match result {
        Ok(()) => (ErrorCode::None, None),
        Err(Refusal { code, message }) => (code, message.map(KStr::from)),
    };
    let entity = asked.entity.into_iter();
    EntryData {
        error_code: error.code(),
        error_message: message,
        entity: entity
            .map(|each| EntityData { entity_type: each.entity_type, entity_name: each.entity_name })
            .collect(),
    }
}
