//! The heartbeat interval that members are told (decision 13), and how soon targets follow (decision 14b).

use super::*;

fn interval(rig: &mut Rig, beat: Beat) -> i32 {
    let response = rig.send(beat);
    assert_eq!(error(response.error_code), ErrorCode::None);
    response.heartbeat_interval_ms
}

fn adaptive() -> Rig {
    Rig::with(|config| {
        config.consumer_heartbeat_interval_ms = None;
        config.consumer_assignment_interval_ms = None;
    })
}

#[test]
fn what_is_configured_is_told_exactly() {
    let mut rig = Rig::with(|config| config.consumer_heartbeat_interval_ms = Some(7_000));
    assert_eq!(interval(&mut rig, joins("c1")), 7_000);
    // The group's own value is kept within the broker's limits.
    for (own, told) in [(6_000, 6_000), (1, 5_000), (99_000, 15_000)] {
        rig.configure(GroupOverrides { consumer_heartbeat_interval_ms: Some(own), ..Default::default() });
        assert_eq!(interval(&mut rig, beat("c1", 2)), told);
    }
    let mut rig = adaptive();
    rig.configure(GroupOverrides { consumer_heartbeat_interval_ms: Some(5_000), ..Default::default() });
    assert_eq!(interval(&mut rig, joins("c1")), 5_000);
}

#[test]
fn switched_off_the_intervals_are_kafkas() {
    let mut rig = adaptive();
    rig.bench.configure(|config| config.heartbeat_adaptive = false);
    assert_eq!(interval(&mut rig, joins("c1")), 5_000);
    assert_eq!(rig.ok(joins("c2")), (2, Some(vec![])), "the assignment interval is a second");
}

#[test]
fn members_that_wait_are_told_to_hurry_and_the_others_are_not() {
    let mut rig = adaptive();
    assert_eq!(interval(&mut rig, joins("c1")), 200);
    // The target of a small group follows at once, but c2 waits for c1.
    assert_eq!(interval(&mut rig, joins("c2")), 100);
    assert_eq!(interval(&mut rig, beat("c1", 2).owns(&[0, 1, 2, 3])), 100);
    assert_eq!(interval(&mut rig, beat("c1", 2).owns(&[0, 1])), 200);
    assert_eq!(interval(&mut rig, beat("c2", 3)), 200);
}

#[test]
fn a_long_wait_backs_off() {
    let mut rig = adaptive();
    rig.ok(joins("c1"));
    rig.ok(joins("c2"));
    for _ in 0..10 {
        rig.bench.advance(1_000);
        rig.ok(beat("c1", 2));
    }
    let after_10_s = interval(&mut rig, beat("c2", 3));
    assert!((200..1_000).contains(&after_10_s), "{after_10_s}");
}

/// PF-06: as for streams groups.
#[test]
fn a_storm_of_joins_is_assigned_a_few_times_only() {
    let mut rig = Rig { bench: Bench::with_config(BrokerConfig::default()) };
    rig.bench.set_topic("orders", 2_000);
    rig.bench.set_members_total(300);
    let mut epochs = Vec::new();
    for number in 0..300 {
        rig.bench.advance(17);
        let id = format!("c{number:03}");
        let (epoch, _) = rig.ok(joins(&id));
        epochs.push((id, epoch));
    }
    let computed = |rig: &mut Rig| {
        let records = rig.bench.records().into_iter();
        records.filter(|record| matches!(record, crate::record::Record::ConsumerTargetMetadata(..))).count()
    };
    let during = computed(&mut rig);
    assert!((2..60).contains(&during), "the target was computed {during} times for 300 joins in 5 s");
    rig.bench.advance(1_000);
    rig.ok(beat(&epochs[0].0, epochs[0].1));
    let (_, group_epoch, assignment_epoch) = rig.state();
    assert_eq!(assignment_epoch, group_epoch, "the last ones wait no longer than that");
}
