//! Subscriptions by regular expression.

use super::*;
use crate::group::regex;
use crate::outcome::Effect;
use crate::record::Record;

impl Rig {
    /// Answers the question about expressions, which has to be open.
    #[track_caller]
    fn resolve(&mut self) {
        let effects = self.bench.effects();
        let [Effect::ResolveRegex { group_id, expressions }] = &effects[..] else {
            panic!("expressions are not asked for: {effects:?}")
        };
        let matches = regex::resolve(expressions, self.bench.topics());
        self.bench.ask(Command::RegexResolved { group_id: group_id.clone(), matches, image_version: 1 });
    }
}

/// `c1` reads `o.*` and has what matches.
fn reading() -> Rig {
    let mut rig = Rig::new();
    assert_eq!(rig.ok(joins("c1").no_names().regex("o.*")), (1, Some(vec![])));
    rig.resolve();
    assert_eq!(rig.ok(beat("c1", 1)), (2, Some(vec![0, 1, 2, 3])));
    rig
}

#[test]
fn gk_17_what_re2_does_not_accept_is_refused_and_leaves_nothing() {
    let mut rig = Rig::new();
    for expression in ["[abc", "(?!x).*"] {
        let refused = rig.refused(joins("c1").no_names().regex(expression));
        assert_eq!(refused, ErrorCode::InvalidRegularExpression);
    }
    assert!(rig.bench.shard().state().group(GROUP).is_none());
    assert!(rig.bench.records().is_empty());
}

#[test]
fn gk_18_a_join_is_answered_before_its_expression_is_resolved() {
    let mut rig = Rig::new();
    assert_eq!(rig.ok(joins("c1").no_names().regex("o.*")), (1, Some(vec![])));
    assert_eq!(rig.ok(beat("c1", 1)), (1, None), "no answer yet, and no second question");
    rig.resolve();
    assert_eq!(rig.ok(beat("c1", 1)), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(rig.member("c1").expect("it joined").subscribed_topic_regex, Some(text("o.*")));
}

#[test]
fn gk_19_a_new_topic_that_matches_is_found_but_not_before_10_s() {
    let mut rig = reading();
    rig.bench.set_topic("offers", 1);
    rig.ok(beat("c1", 2));
    assert!(rig.bench.effects().is_empty());
    rig.bench.advance(10_001);
    rig.ok(beat("c1", 2));
    rig.resolve();
    let response = rig.send(beat("c1", 2));
    assert_eq!(response.member_epoch, 3);
    assert_eq!(response.assignment.expect("it changed").topic_partitions.len(), 2);
}

#[test]
fn k_35_without_new_topics_it_is_looked_at_after_10_minutes() {
    let mut rig = reading();
    for seconds in (0..600).step_by(30) {
        rig.ok(beat("c1", 2));
        assert!(rig.bench.effects().is_empty(), "after {seconds} s");
        rig.bench.advance(30_000);
    }
    rig.ok(beat("c1", 2));
    rig.bench.records();
    rig.resolve();
    // Nothing changed: it is noted, and the epoch stays.
    assert!(matches!(rig.bench.records()[..], [Record::ConsumerRegex(..)]));
    assert_eq!(rig.state().1, 2);
}

#[test]
fn k_35_growth_of_a_topic_is_no_reason_to_look_at_expressions() {
    let mut rig = reading();
    rig.bench.advance(10_001);
    rig.bench.set_topic("users", 3);
    rig.ok(beat("c1", 2));
    assert!(rig.bench.effects().is_empty());
}

#[test]
fn k_15_an_expression_that_others_use_needs_no_resolution() {
    let mut rig = reading();
    assert_eq!(rig.ok(joins("c2").no_names().regex("o.*")), (3, Some(vec![])));
    assert!(rig.bench.effects().is_empty());
}

#[test]
fn k_34_names_and_expressions_are_united() {
    let mut rig = reading();
    let response = rig.send(beat("c1", 2).names(&["users"]));
    assert_eq!(response.member_epoch, 3);
    assert_eq!(response.assignment.expect("it changed").topic_partitions.len(), 2);
}

#[test]
fn k_33_an_empty_expression_is_none_and_drops_what_it_matched() {
    let mut rig = reading();
    rig.bench.records();
    assert_eq!(rig.ok(beat("c1", 2).names(&["users"]).regex("").owns(&[])).0, 3);
    let tombstone = rig.bench.records().into_iter().any(|record| matches!(record, Record::ConsumerRegex(_, None)));
    assert!(tombstone, "nobody uses it any longer");
}

#[test]
fn an_expression_goes_with_the_last_member_that_uses_it() {
    let mut rig = reading();
    rig.ok(joins("c2").no_names().regex("o.*"));
    let tombstones = |rig: &mut Rig| {
        let records = rig.bench.records();
        records.iter().filter(|record| matches!(record, Record::ConsumerRegex(_, None))).count()
    };
    rig.ok(beat("c2", -1));
    assert_eq!(tombstones(&mut rig), 0);
    rig.ok(beat("c1", -1));
    assert_eq!(tombstones(&mut rig), 1);
}

#[test]
fn answers_for_expressions_that_nobody_uses_any_longer_are_dropped() {
    let mut rig = Rig::new();
    rig.ok(joins("c1").no_names().regex("o.*"));
    rig.ok(beat("c1", 1).names(&["users"]).regex(""));
    rig.bench.records();
    rig.resolve();
    assert!(rig.bench.records().is_empty());
}

#[test]
fn an_expression_that_cannot_be_resolved_is_not_asked_for_again_at_once() {
    let mut rig = Rig::new();
    rig.ok(joins("c1").no_names().regex("o.*"));
    rig.bench.effects();
    let matches = vec![(text("o.*"), Err(String::from("no luck")))];
    rig.bench.ask(Command::RegexResolved { group_id: text(GROUP), matches, image_version: 1 });
    rig.ok(beat("c1", 1));
    assert!(rig.bench.effects().is_empty());
    rig.bench.advance(10_001);
    rig.ok(beat("c1", 1));
    rig.resolve();
    assert_eq!(rig.ok(beat("c1", 1)), (2, Some(vec![0, 1, 2, 3])));
}

#[test]
fn k_35_an_expression_in_the_place_of_another_is_resolved_at_once_if_nobody_had_it() {
    let mut rig = reading();
    rig.bench.advance(10_001);
    rig.ok(beat("c1", 2).regex("of.*"));
    rig.resolve();
    let records = rig.bench.records();
    let resolved = |record: &&Record| matches!(record, Record::ConsumerRegex(_, Some(_)));
    assert_eq!(records.iter().filter(resolved).count(), 2, "of o.* and of of.*: {records:?}");
}

/// `c1` reads `orders` by name, and what else `o.*` matches.
fn reading_both() -> Rig {
    let mut rig = Rig::new();
    rig.bench.set_topic("others", 1);
    rig.ok(joins("c1").regex("o.*"));
    rig.resolve();
    rig.send(beat("c1", 2));
    rig
}

#[test]
fn k_15_a_refused_heartbeat_does_not_make_the_next_one_look_at_topics() {
    let [mut plain, mut refused] = [reading_both(), reading_both()];
    assert_eq!(refused.refused(beat("c1", 9)), ErrorCode::FencedMemberEpoch);
    for rig in [&mut plain, &mut refused] {
        // It reads less now; that is seen when the expression is resolved.
        rig.send(joins("c1").regex("nothing"));
        assert_eq!(rig.state().1, 3);
    }
}

#[test]
fn k_35_an_expression_that_matches_less_than_the_one_it_takes_the_place_of_moves_the_epoch() {
    let mut rig = reading_both();
    rig.bench.advance(10_001);
    rig.send(joins("c1").regex("nothing"));
    assert_eq!(rig.state().1, 3);
    rig.resolve();
    assert_eq!(rig.state().1, 4, "others is read no longer");
}
