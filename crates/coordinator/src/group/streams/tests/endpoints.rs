//! Decision 27: endpoint data is never stale.

use super::app::{App, immediate};

/// m1 with an endpoint has all tasks.
fn app() -> App {
    let mut app = App::new(immediate(), 2, false);
    let mut client = app.client("m1", "p1");
    client.endpoint = Some(("h1".to_owned(), 1));
    app.add(client);
    app.beat("m1");
    app
}

fn listed(app: &mut App, id: &str) -> Option<Vec<(String, usize)>> {
    let answer = app.beat(id);
    let entries = answer.partitions_by_user_endpoint?;
    let each = entries.iter().map(|entry| {
        let partitions = entry.active_partitions.iter().map(|topic| topic.partitions.len()).sum();
        (entry.user_endpoint.host.to_string(), partitions)
    });
    Some(each.collect())
}

#[test]
fn a_member_that_leaves_is_not_asked_any_more() {
    let mut app = app();
    app.join("m2", "p2");
    app.settle(12_000);
    app.beat("m2");
    assert_eq!(listed(&mut app, "m2"), None);
    app.leave("m1", -1);
    assert_eq!(listed(&mut app, "m2"), Some(vec![]));
}

#[test]
fn a_topic_that_grows_changes_the_list() {
    let mut app = app();
    app.join("m2", "p2");
    app.settle(12_000);
    app.beat("m2");
    app.bench.set_topic("in", 4);
    app.run_for(11_000);
    let total: usize = app.clients.values().map(|client| client.active.len()).sum();
    assert_eq!(total, 4);
    let entries = app.clients["m2"].last.partitions_by_user_endpoint.clone();
    let known = entries.or_else(|| {
        let mut fresh = app.request("m2");
        fresh.endpoint_information_epoch = -1;
        app.send(1, fresh).partitions_by_user_endpoint
    });
    let partitions: usize =
        known.expect("a list")[0].active_partitions.iter().map(|topic| topic.partitions.len()).sum();
    assert_eq!(partitions, app.clients["m1"].active.len());
}

#[test]
fn after_a_failover_everybody_is_sent_the_list_whatever_epoch_it_has() {
    let mut app = app();
    app.join("m2", "p2");
    app.settle(12_000);
    app.run_for(11_000);
    app.bench.restart();
    let mut request = app.request("m2");
    request.endpoint_information_epoch = 0;
    let answer = app.send(1, request.clone());
    assert_eq!(answer.endpoint_information_epoch, 0);
    assert_eq!(answer.partitions_by_user_endpoint.map(|list| list.len()), Some(1), "its 0 may be that of before");
    assert_eq!(app.send(1, request).partitions_by_user_endpoint, None, "once");
}

#[test]
fn there_is_no_endpoint_data_while_the_topology_is_unresolved() {
    let mut app = app();
    app.bench.delete_topic("in");
    let mut request = app.request("m1");
    request.endpoint_information_epoch = -1;
    let answer = app.send(1, request);
    assert_eq!(answer.error_code, 0);
    assert_eq!(answer.status.as_ref().map(|status| status[0].status_code), Some(1));
    assert_eq!(answer.partitions_by_user_endpoint, Some(vec![]));
}
