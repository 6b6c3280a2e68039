//! A data directory that fails under a running broker: whoever waits is told, and the broker's owner learns that it has to end.

mod common;

use std::sync::Arc;

use common::{Client, PATIENCE, config};
use log::{Faults, MemFs};
use server::RunningServer;
use wire::KStr;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};

const NOT_COORDINATOR: i16 = 16;

async fn commit(client: &mut Client) -> i16 {
    let partition = OffsetCommitRequestPartition { committed_offset: 5, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: KStr::from("t"), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: KStr::from("g"),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    client.call(9, &request).await.topics[0].partitions[0].error_code
}

/// A broker whose group `g` has an offset, for a topic that exists.
async fn committed(disk: &MemFs, dir: &std::path::Path) -> (RunningServer, Client) {
    let settings = [("offsets.topic.num.partitions", "1"), ("auto.create.topics.enable", "true")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let running = server::start_on(config(dir, &settings), Arc::new(disk.clone())).await.expect("the broker starts");
    let mut client = Client::connect(running.addresses()[0]).await;
    let topic = wire::messages::create_topics_request::CreatableTopic {
        name: KStr::from("t"),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let create =
        wire::messages::create_topics_request::CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    assert_eq!(client.call(7, &create).await.topics[0].error_code, 0);
    let find = FindCoordinatorRequest { coordinator_keys: vec![KStr::from("g")], ..Default::default() };
    assert_eq!(client.call(6, &find).await.coordinators[0].error_code, 0);
    assert_eq!(commit(&mut client).await, 0);
    (running, client)
}

async fn reason(running: &RunningServer) -> String {
    tokio::time::timeout(PATIENCE, running.storage_failed()).await.expect("the failure is noticed")
}

/// the write fails in the middle of a command, the sync after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_log_cannot_be_written_answers_with_an_error_and_the_broker_is_to_end() {
    for faults in [Faults { fail_writes: true, ..Faults::default() }, Faults { fail_syncs: true, ..Faults::default() }]
    {
        let (disk, dir) = (MemFs::new(), tempfile::tempdir().unwrap());
        let (running, mut client) = committed(&disk, dir.path()).await;
        disk.set_faults(faults);
        assert_eq!(commit(&mut client).await, NOT_COORDINATOR);
        let reason = reason(&running).await;
        assert!(reason.starts_with("__consumer_offsets-0: "), "{reason}");
        // The broker still answers whoever asks, and nothing is taken that cannot be kept.
        disk.set_faults(Faults::default());
        assert_eq!(commit(&mut client).await, NOT_COORDINATOR);
        running.abort().await;
    }
}

/// Open files can still be written to, so only looking tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_taken_away_is_noticed() {
    let (disk, dir) = (MemFs::new(), tempfile::tempdir().unwrap());
    let (running, _client) = committed(&disk, dir.path()).await;
    log::Fs::remove_dir_all(&disk, dir.path()).unwrap();
    reason(&running).await;
    running.abort().await;
}

/// A full disk is not a failed one.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_commits_until_there_is_space() {
    let (disk, dir) = (MemFs::new(), tempfile::tempdir().unwrap());
    let (running, mut client) = committed(&disk, dir.path()).await;
    disk.set_faults(Faults { capacity: Some(disk.used()), ..Faults::default() });
    assert_eq!(commit(&mut client).await, 15, "COORDINATOR_NOT_AVAILABLE");
    disk.set_faults(Faults::default());
    assert_eq!(commit(&mut client).await, 0);
    running.shutdown().await.expect("nothing has failed");
}
