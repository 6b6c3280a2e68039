//! ListTransactions (66), D-2.

use coordinator::txn::ListFilter;
use wire::messages::list_transactions_request::ListTransactionsRequest;
use wire::messages::list_transactions_response::ListTransactionsResponse;

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ListTransactionsRequest,
) -> Result<Handled<ListTransactionsResponse>, HandlerError> {
    let mut response = ListTransactionsResponse::default();
    let listed = match ListFilter::new(&request) {
        Err(error) => Err(error),
        Ok((filter, unknown)) => {
            response.unknown_state_filters = unknown;
            cx.broker.transactions.list(&filter).await
        }
    };
    match listed {
        Ok(listed) => response.transaction_states = listed,
        Err(error) => {
            response = ListTransactionsResponse { error_code: error.code(), ..Default::default() };
        }
    }
    Ok(response.into())
}
