//! InitProducerId (22): an identity for an idempotent producer (I-1, I-2).

use wire::ErrorCode;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::init_producer_id_response::InitProducerIdResponse;

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: InitProducerIdRequest,
) -> Result<Handled<InitProducerIdResponse>, HandlerError> {
    if (request.producer_id == -1) != (request.producer_epoch == -1) {
        return Ok(refused(ErrorCode::InvalidRequest).into());
    }
    if request.transactional_id.is_some() {
        // There is no transaction coordinator in this build, and none of its APIs is advertised.
        return Ok(refused(ErrorCode::CoordinatorNotAvailable).into());
    }
    match cx.broker.topics.next_producer_id().await {
        Ok(producer_id) => Ok(InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() }.into()),
        Err(error) => {
            tracing::error!("no producer id can be given out: {error:?}");
            Ok(refused(ErrorCode::CoordinatorNotAvailable).into())
        }
    }
}

/// I-10.
fn refused(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse { error_code: error.code(), producer_id: -1, producer_epoch: -1, ..Default::default() }
}
