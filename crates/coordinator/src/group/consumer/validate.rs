//! What can be said of a heartbeat without looking at its group (C K-4, K-5), in Kafka's order.

use wire::ErrorCode;
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;

use super::fault::Fault;
use super::member::{AWAY_EPOCH, LEAVE_EPOCH};
use crate::config::BrokerConfig;

pub(super) fn check(
    broker: &BrokerConfig,
    api_version: i16,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<(), Fault> {
    if !broker.consumer_protocol_enabled {
        return Err(Fault::new(ErrorCode::UnsupportedVersion, ""));
    }
    let is_empty = |text: &Option<wire::KStr>| text.as_ref().is_some_and(|text| text.is_empty());
    let joins = request.member_epoch == 0;
    // The broker makes the id of a member that joins with version 0.
    let rules = [
        (request.member_id.is_empty() && (api_version >= 1 || !joins), "MemberId can't be empty."),
        (request.group_id.is_empty(), "GroupId can't be empty."),
        (is_empty(&request.instance_id), "InstanceId can't be empty."),
        (is_empty(&request.rack_id), "RackId can't be empty."),
        (joins && request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        (
            joins && request.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty()),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            joins && request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none(),
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (request.member_epoch == AWAY_EPOCH && request.instance_id.is_none(), "InstanceId can't be null."),
        (request.member_epoch < AWAY_EPOCH, "MemberEpoch is invalid."),
    ];
    if let Some((_, message)) = rules.iter().find(|(broken, _)| *broken) {
        return Err(Fault::new(ErrorCode::InvalidRequest, *message));
    }
    let assignors = &broker.consumer_assignors;
    match &request.server_assignor {
        Some(name) if !assignors.contains(name) => {
            let message = format!(
                "ServerAssignor {name} is not supported. Supported assignors: {}.",
                assignors.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
            );
            Err(Fault::new(ErrorCode::UnsupportedAssignor, message))
        }
        _ => Ok(()),
    }
}

/// Leaves for good or for a while.
pub(super) fn leaves(request: &ConsumerGroupHeartbeatRequest) -> bool {
    request.member_epoch == LEAVE_EPOCH || request.member_epoch == AWAY_EPOCH
}

#[cfg(test)]
mod tests {
    use wire::KStr;
    use wire::messages::consumer_group_heartbeat_request::TopicPartitions;

    use super::*;

    fn joining() -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: KStr::from("g"),
            member_id: KStr::from("m"),
            rebalance_timeout_ms: 1000,
            subscribed_topic_names: Some(Vec::new()),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        }
    }

    #[test]
    fn k_5_each_rule_is_kept_and_named() {
        type Change = fn(&mut ConsumerGroupHeartbeatRequest);
        let cases: &[(&str, Change)] = &[
            ("MemberId can't be empty.", |r| r.member_id = KStr::EMPTY),
            ("GroupId can't be empty.", |r| r.group_id = KStr::EMPTY),
            ("InstanceId can't be empty.", |r| r.instance_id = Some(KStr::EMPTY)),
            ("RackId can't be empty.", |r| r.rack_id = Some(KStr::EMPTY)),
            ("RebalanceTimeoutMs must be provided in first request.", |r| r.rebalance_timeout_ms = -1),
            ("TopicPartitions must be empty when (re-)joining.", |r| r.topic_partitions = None),
            ("TopicPartitions must be empty when (re-)joining.", |r| {
                r.topic_partitions = Some(vec![TopicPartitions::default()]);
            }),
            ("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.", |r| {
                r.subscribed_topic_names = None
            }),
            ("InstanceId can't be null.", |r| r.member_epoch = -2),
            ("MemberEpoch is invalid.", |r| r.member_epoch = -3),
        ];
        let broker = BrokerConfig::default();
        assert_eq!(check(&broker, 1, &joining()), Ok(()));
        for (message, change) in cases {
            let mut request = joining();
            change(&mut request);
            assert_eq!(check(&broker, 1, &request), Err(Fault::new(ErrorCode::InvalidRequest, *message)));
        }
    }

    #[test]
    fn k_4_a_disabled_protocol_is_refused_without_a_word() {
        let broker = BrokerConfig { consumer_protocol_enabled: false, ..BrokerConfig::default() };
        let fault = check(&broker, 1, &joining()).expect_err("disabled");
        let response = fault.into_response();
        assert_eq!((response.error_code, response.error_message), (ErrorCode::UnsupportedVersion.code(), None));
    }

    #[test]
    fn k_5_version_0_may_join_without_a_member_id() {
        let broker = BrokerConfig::default();
        let mut request = ConsumerGroupHeartbeatRequest { member_id: KStr::EMPTY, ..joining() };
        assert_eq!(check(&broker, 0, &request), Ok(()));
        for epoch in [1, -1] {
            request.member_epoch = epoch;
            assert!(check(&broker, 0, &request).is_err());
        }
    }

    #[test]
    fn k_5_an_assignor_has_to_be_known() {
        let request = ConsumerGroupHeartbeatRequest { server_assignor: Some(KStr::from("zz")), ..joining() };
        let fault = check(&BrokerConfig::default(), 1, &request).expect_err("there is no such assignor");
        assert_eq!(fault.error, ErrorCode::UnsupportedAssignor);
    }

    #[test]
    fn k_4_the_protocol_can_be_disabled() {
        let broker = BrokerConfig { consumer_protocol_enabled: false, ..BrokerConfig::default() };
        let fault = check(&broker, 1, &joining()).expect_err("it is disabled");
        assert_eq!(fault.error, ErrorCode::UnsupportedVersion);
    }
}
