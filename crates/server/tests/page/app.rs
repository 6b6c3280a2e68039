//! A Kafka Streams application, as its requests make it: threads that heartbeat and do what they are told.

use std::collections::BTreeMap;

use wire::KStr;
use wire::messages::streams_group_heartbeat_request::{
    Endpoint, StreamsGroupHeartbeatRequest, Subtopology, TaskIds, TaskOffset, TopicInfo, Topology,
};
use wire::messages::streams_group_heartbeat_response::TaskIds as Told;

use super::common::{Client, TestBroker};

pub const APP: &str = "orders-app";

/// One thread.
pub struct Thread {
    client: Client,
    request: StreamsGroupHeartbeatRequest,
    /// Offset of its copy of each stateful task.
    restored: BTreeMap<i32, i64>,
}

/// Records in each changelog.
const END: i64 = 40_000;

/// Orders are enriched, sent on by customer, and counted.
fn topology() -> Topology {
    let topic = |name: &str, partitions| TopicInfo { name: KStr::copy(name), partitions, ..Default::default() };
    let enrich = Subtopology {
        subtopology_id: "0".into(),
        source_topics: vec!["orders".into()],
        repartition_sink_topics: vec!["orders-app-by-customer-repartition".into()],
        ..Default::default()
    };
    let count = Subtopology {
        subtopology_id: "1".into(),
        repartition_source_topics: vec![topic("orders-app-by-customer-repartition", 6)],
        state_changelog_topics: vec![topic("orders-app-totals-changelog", 0)],
        ..Default::default()
    };
    Topology { epoch: 0, subtopologies: vec![enrich, count] }
}

impl Thread {
    pub async fn new(broker: &TestBroker, number: usize) -> Thread {
        let request = StreamsGroupHeartbeatRequest {
            group_id: APP.into(),
            member_id: KStr::from(format!("thread-{number}")),
            rebalance_timeout_ms: 30_000,
            topology: Some(topology()),
            process_id: Some(KStr::from(format!("process-{number}"))),
            user_endpoint: Some(Endpoint { host: KStr::from(format!("orders-{number}.local")), port: 8080 }),
            active_tasks: Some(Vec::new()),
            standby_tasks: Some(Vec::new()),
            warmup_tasks: Some(Vec::new()),
            client_tags: Some(Vec::new()),
            ..Default::default()
        };
        let mut client = broker.connect().await;
        client.client_id = format!("{APP}-{number}");
        Thread { client, request, restored: BTreeMap::new() }
    }

    /// One heartbeat. Copies of state grow by `restore` records.
    pub async fn beat(&mut self, restore: i64) {
        let offsets = |of: &dyn Fn(i64) -> i64| {
            let each = self.restored.iter().map(|(partition, offset)| TaskOffset {
                subtopology_id: "1".into(),
                partition: *partition,
                offset: of(*offset),
            });
            Some(each.collect::<Vec<_>>())
        };
        (self.request.task_offsets, self.request.task_end_offsets) = (offsets(&|offset| offset), offsets(&|_| END));
        let response = self.client.call(1, &self.request).await;
        assert_eq!(response.error_code, 0, "{:?}", response.error_message);
        self.request.member_epoch = response.member_epoch;
        self.request.topology = None;
        let own = |tasks: Option<Vec<Told>>| {
            let tasks = tasks.unwrap_or_default().into_iter();
            Some(tasks.map(|ids| TaskIds { subtopology_id: ids.subtopology_id, partitions: ids.partitions }).collect())
        };
        if response.active_tasks.is_some() {
            self.request.active_tasks = own(response.active_tasks);
            self.request.standby_tasks = own(response.standby_tasks);
            self.request.warmup_tasks = own(response.warmup_tasks);
        }
        let copies = self.request.standby_tasks.iter().chain(&self.request.warmup_tasks).flatten();
        let copies = copies.filter(|ids| ids.subtopology_id == "1").flat_map(|ids| ids.partitions.clone());
        let before = std::mem::take(&mut self.restored);
        for partition in copies {
            let offset = before.get(&partition).copied().unwrap_or(0);
            self.restored.insert(partition, (offset + restore).min(END));
        }
    }

    pub fn active(&self) -> usize {
        self.request.active_tasks.iter().flatten().map(|ids| ids.partitions.len()).sum()
    }
}
