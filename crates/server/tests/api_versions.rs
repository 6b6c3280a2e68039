//! Section 2 of the specification of transactions and the log: ApiVersions and features (A-rules).

mod common;

use std::collections::BTreeMap;

use common::TestBroker;
use wire::ApiKey;
use wire::messages::api_versions_request::ApiVersionsRequest;
use wire::messages::api_versions_response::ApiVersionsResponse;
use wire::messages::get_telemetry_subscriptions_request::GetTelemetrySubscriptionsRequest;
use wire::messages::push_telemetry_request::PushTelemetryRequest;

/// What Kafka 4.4 advertises on a broker's listener: key, oldest, newest version.
const KAFKA: &[(i16, i16, i16)] = &[
    (0, 0, 13),
    (1, 4, 18),
    (2, 1, 11),
    (3, 0, 13),
    (8, 2, 10),
    (9, 1, 10),
    (10, 0, 6),
    (11, 0, 9),
    (12, 0, 4),
    (13, 0, 5),
    (14, 0, 5),
    (15, 0, 6),
    (16, 0, 5),
    (17, 0, 1),
    (18, 0, 5),
    (19, 2, 7),
    (20, 1, 6),
    (21, 0, 2),
    (22, 0, 5),
    (23, 2, 4),
    (24, 0, 5),
    (25, 0, 4),
    (26, 0, 5),
    (27, 1, 2),
    (28, 0, 6),
    (29, 1, 3),
    (30, 1, 3),
    (31, 1, 3),
    (32, 1, 4),
    (33, 0, 2),
    (34, 1, 2),
    (35, 1, 5),
    (36, 0, 2),
    (37, 0, 3),
    (38, 1, 3),
    (39, 1, 2),
    (40, 1, 2),
    (41, 1, 3),
    (42, 0, 3),
    (43, 0, 2),
    (44, 0, 1),
    (45, 0, 1),
    (46, 0, 0),
    (47, 0, 0),
    (48, 0, 1),
    (49, 0, 1),
    (50, 0, 0),
    (51, 0, 0),
    (55, 0, 2),
    (57, 0, 2),
    (60, 0, 2),
    (61, 0, 0),
    (64, 0, 0),
    (65, 0, 0),
    (66, 0, 2),
    (68, 0, 1),
    (69, 0, 1),
    (74, 0, 1),
    (75, 0, 0),
    (88, 0, 1),
    (89, 0, 1),
    (93, 0, 0),
];

fn introduction() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "test-client".into(),
        client_software_version: "1.0.0".into(),
        ..Default::default()
    }
}

fn supported(response: &ApiVersionsResponse) -> Vec<(&str, i16, i16)> {
    let features = response.supported_features.iter();
    features.map(|feature| (feature.name.as_str(), feature.min_version, feature.max_version)).collect()
}

fn finalized(response: &ApiVersionsResponse) -> Vec<(&str, i16, i16)> {
    let features = response.finalized_features.iter();
    features.map(|feature| (feature.name.as_str(), feature.min_version_level, feature.max_version_level)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_1_every_api_has_the_versions_that_kafka_has() {
    let kafka: BTreeMap<_, _> = KAFKA.iter().map(|&(key, min, max)| (key, (min, max))).collect();
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    for version in 0..=5 {
        let response = client.call(version, &introduction()).await;
        assert_eq!(response.error_code, 0);
        for api in &response.api_keys {
            let known = kafka.get(&api.api_key);
            assert_eq!(known, Some(&(api.min_version, api.max_version)), "{:?}", ApiKey::try_from(api.api_key));
        }
        let shown: Vec<_> = response.api_keys.iter().map(|api| api.api_key).collect();
        // What every client needs to begin with, and what groups need.
        for needed in [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 32, 42, 44, 47, 60, 68, 69, 88, 89]
        {
            assert!(shown.contains(&needed), "{needed}");
        }
    }
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_2_telemetry_is_not_advertised_but_answered() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    let versions = client.call(4, &introduction()).await;
    assert!(versions.api_keys.iter().all(|api| ![71, 72].contains(&api.api_key)));
    let told = client.call(0, &GetTelemetrySubscriptionsRequest::default()).await;
    assert_eq!((told.error_code, told.push_interval_ms, told.telemetry_max_bytes), (0, 300_000, 1_048_576));
    assert_eq!(told.accepted_compression_types, [4, 3, 1, 2]);
    assert!(told.delta_temporality && told.requested_metrics.is_empty() && !told.client_instance_id.is_zero());
    let asked = GetTelemetrySubscriptionsRequest { client_instance_id: told.client_instance_id };
    assert_eq!(client.call(0, &asked).await.client_instance_id, told.client_instance_id);
    for (client_instance_id, subscription_id, error) in [
        (told.client_instance_id, told.subscription_id, 0),
        (told.client_instance_id, told.subscription_id + 1, 117),
        (wire::Uuid::ZERO, told.subscription_id, 42),
    ] {
        let push = PushTelemetryRequest { client_instance_id, subscription_id, ..Default::default() };
        assert_eq!(client.call(0, &push).await.error_code, error);
    }
    broker.running.shutdown().await.unwrap();
}

/// AV-02: version 3 cannot carry features whose lowest level is 0, so it shows the one that has none.
#[tokio::test(flavor = "multi_thread")]
async fn a_3_a_4_features_are_those_that_are_built() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    let old = client.call(3, &introduction()).await;
    assert_eq!(supported(&old), [("metadata.version", 7, 33)]);
    for version in [4, 5] {
        let response = client.call(version, &introduction()).await;
        let mut all = supported(&response);
        all.sort_unstable();
        let built = [
            ("group.version", 0, 1),
            ("metadata.version", 7, 33),
            ("streams.version", 0, 1),
            ("transaction.version", 0, 2),
        ];
        assert_eq!(all, built, "version {version}");
        let mut levels = finalized(&response);
        levels.sort_unstable();
        assert_eq!(levels, built.map(|(name, _, max)| (name, max, max)), "version {version}");
        assert!(response.finalized_features_epoch >= 0);
        // clients take these to mean that the APIs are there.
        let shown: Vec<_> = response.api_keys.iter().map(|api| api.api_key).collect();
        assert!([26, 68, 88].iter().all(|key| shown.contains(key)), "what is finalized is served: {shown:?}");
    }
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_5_clients_that_introduce_themselves_badly_are_told() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    let cluster = wire::KStr::copy(broker.running.cluster_id());
    let bad_name = ApiVersionsRequest { client_software_name: "-x".into(), ..introduction() };
    let no_version = ApiVersionsRequest { client_software_version: "".into(), ..introduction() };
    let aimed = |cluster_id: Option<&str>, node_id| ApiVersionsRequest {
        cluster_id: cluster_id.map(wire::KStr::copy),
        node_id,
        ..introduction()
    };
    for (version, request, error) in [
        (3, bad_name.clone(), 42),
        (4, no_version, 42),
        (2, bad_name, 0),
        (5, aimed(Some(&cluster), 1), 0),
        (5, aimed(Some("another-cluster"), 1), 129),
        (5, aimed(Some(&cluster), 2), 129),
        (5, aimed(Some(&cluster), -1), 42),
        (5, aimed(None, 1), 42),
    ] {
        let response = client.call(version, &request).await;
        assert_eq!(response.error_code, error, "version {version}: {request:?}");
        assert_eq!(response.api_keys.is_empty(), error != 0);
    }
    broker.running.shutdown().await.unwrap();
}
