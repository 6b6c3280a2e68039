//! ListGroups (16), C D-4, S 9.3: the groups of all shards.

use coordinator::runtime::{Unavailable, listing_order};
use coordinator::{Command, Reply};
use wire::messages::list_groups_request::ListGroupsRequest;
use wire::messages::list_groups_response::ListGroupsResponse;

use super::group::{error_of, mismatch};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ListGroupsRequest,
) -> Result<Handled<ListGroupsResponse>, HandlerError> {
    let command = || Command::ListGroups { states: request.states_filter.clone(), types: request.types_filter.clone() };
    let mut response = ListGroupsResponse::default();
    for replied in cx.broker.groups.call_all(command).await {
        match replied {
            Ok(Reply::ListGroups(groups)) => response.groups.extend(groups),
            Ok(other) => return Err(mismatch(&other)),
            // What is not here is not listed.
            Err(Unavailable::NotCoordinator) => {}
            Err(why) => response.error_code = error_of(&why).code(),
        }
    }
    response.groups.sort_by(|a, b| listing_order(&a.group_id).cmp(&listing_order(&b.group_id)));
    Ok(response.into())
}
