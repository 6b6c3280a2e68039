//! DescribeCluster (60): M-4.

use wire::messages::describe_cluster_request::DescribeClusterRequest;
use wire::messages::describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse};
use wire::{ErrorCode, KStr};

use super::admin::cluster_operations;
use super::{Handled, HandlerError, RequestContext};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeClusterRequest,
) -> Result<Handled<DescribeClusterResponse>, HandlerError> {
    let refusal = match request.endpoint_type {
        BROKERS => None,
        CONTROLLERS => Some((
            ErrorCode::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
                .to_owned(),
        )),
        other => Some((ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}"))),
    };
    if let Some((code, message)) = refusal {
        let response = DescribeClusterResponse {
            error_code: code.code(),
            error_message: Some(KStr::from(message)),
            ..Default::default()
        };
        return Ok(response.into());
    }
    Ok(DescribeClusterResponse {
        error_message: None,
        cluster_id: cx.broker.cluster_id.clone(),
        controller_id: cx.broker.node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: cx.broker.node_id,
            host: cx.peer.advertised.host.clone(),
            port: cx.peer.advertised.port.into(),
            rack: cx.broker.config.current().rack.clone().map(KStr::from),
            is_fenced: false,
        }],
        cluster_authorized_operations: cluster_operations(request.include_cluster_authorized_operations),
        ..Default::default()
    }
    .into())
}
