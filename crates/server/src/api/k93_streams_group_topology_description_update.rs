//! StreamsGroupTopologyDescriptionUpdate (93), S 9.2 and decision 15.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest;
use wire::messages::streams_group_topology_description_update_response::StreamsGroupTopologyDescriptionUpdateResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: StreamsGroupTopologyDescriptionUpdateRequest,
) -> Result<Handled<StreamsGroupTopologyDescriptionUpdateResponse>, HandlerError> {
    let group_id = request.group_id.clone();
    let command = Command::StreamsTopologyDescriptionUpdate(caller(cx), Box::new(request));
    let response = reply!(call(cx, &group_id, command).await, StreamsTopologyDescriptionUpdate, |error: ErrorCode| {
        Box::new(StreamsGroupTopologyDescriptionUpdateResponse { error_code: error.code(), ..Default::default() })
    });
    Ok((*response).into())
}
