//! DescribeTransactions (65), D-1.

use wire::messages::describe_transactions_request::DescribeTransactionsRequest;
use wire::messages::describe_transactions_response::{DescribeTransactionsResponse, TransactionState};

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeTransactionsRequest,
) -> Result<Handled<DescribeTransactionsResponse>, HandlerError> {
    let mut transaction_states = Vec::with_capacity(request.transactional_ids.len());
    for transactional_id in request.transactional_ids {
        let described = cx.broker.transactions.describe(&transactional_id).await;
        transaction_states.push(described.unwrap_or_else(|error| TransactionState {
            error_code: error.code(),
            transactional_id,
            ..Default::default()
        }));
    }
    Ok(DescribeTransactionsResponse { transaction_states, ..Default::default() }.into())
}
