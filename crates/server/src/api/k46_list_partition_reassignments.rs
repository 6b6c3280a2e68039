//! ListPartitionReassignments (46): nothing is ever on the move.

use wire::messages::list_partition_reassignments_request::ListPartitionReassignmentsRequest;
use wire::messages::list_partition_reassignments_response::ListPartitionReassignmentsResponse;

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _: &RequestContext<'_>,
    _: ListPartitionReassignmentsRequest,
) -> Result<Handled<ListPartitionReassignmentsResponse>, HandlerError> {
    Ok(ListPartitionReassignmentsResponse { error_message: None, ..Default::default() }.into())
}
