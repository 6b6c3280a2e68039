//! InitProducerId (22): an identity for a producer. A transactional id is the coordinator's to give (I-3), any other is
//! fresh and forgotten at once (I-2).

use wire::ErrorCode;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::init_producer_id_response::InitProducerIdResponse;

use super::{Handled, HandlerError, RequestContext};
use crate::transactions::producer_id;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: InitProducerIdRequest,
) -> Result<Handled<InitProducerIdResponse>, HandlerError> {
    if (request.producer_id == -1) != (request.producer_epoch == -1) {
        return Ok(refused(ErrorCode::InvalidRequest).into());
    }
    let granted = if request.transactional_id.is_some() {
        cx.broker.transactions.init_producer_id(cx.api_version, request).await
    } else {
        let fresh = producer_id(&cx.broker.topics).await;
        fresh.map(|producer_id| InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() })
    };
    Ok(granted.unwrap_or_else(refused).into())
}

/// I-10.
fn refused(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse { error_code: error.code(), producer_id: -1, producer_epoch: -1, ..Default::default() }
}
