//! EndTxn (26): a producer commits or aborts (E-1 to E-10).

use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::end_txn_response::EndTxnResponse;

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: EndTxnRequest,
) -> Result<Handled<EndTxnResponse>, HandlerError> {
    let response = match cx.broker.transactions.end(cx.api_version, request).await {
        Ok(response) => response,
        Err(error) => EndTxnResponse { error_code: error.code(), ..Default::default() },
    };
    Ok(response.into())
}
