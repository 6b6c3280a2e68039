//! Laws of the assignors of streams groups, on random groups.

mod groups;

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::warmup::{WarmupInput, Warmups, refine};
use coordinator::assign::{AssignError, StreamsInput, StreamsTarget, balanced, sticky, tasks_of};
use groups::{ANY, Shape, active_of, carried_out, check_laws, groups, holders_of, is_stateful, process_of};
use proptest::prelude::*;

type Assignor = fn(&StreamsInput) -> Result<StreamsTarget, AssignError>;

const ASSIGNORS: [(&str, Assignor); 2] = [("sticky", sticky::assign), ("balanced", balanced::assign)];

fn assign(assignor: Assignor, input: &StreamsInput) -> StreamsTarget {
    assignor(input).expect("the group has members")
}

fn processes(input: &StreamsInput) -> usize {
    input.members.iter().map(|member| &member.process_id).collect::<BTreeSet<_>>().len()
}

/// Numbers of something per process, with the number of its members.
fn per_process(input: &StreamsInput, count: impl Fn(&wire::KStr) -> usize) -> Vec<(usize, usize)> {
    let mut loads: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for member in &input.members {
        let load = loads.entry(&member.process_id).or_default();
        load.0 += count(&member.member_id);
        load.1 += 1;
    }
    loads.into_values().collect()
}

/// No task can go from one process to another that has fewer per member even with it.
fn no_move_lowers_the_skew(loads: &[(usize, usize)]) -> bool {
    loads.iter().all(|(tasks, members)| loads.iter().all(|(others, of)| tasks * of <= (others + 1) * members))
}

fn spread_by_one(counts: impl Iterator<Item = usize> + Clone) -> bool {
    counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0) <= 1
}

fn moved(before: &StreamsTarget, after: &StreamsTarget) -> usize {
    let after = active_of(after);
    active_of(before).iter().filter(|(task, member)| after.get(*task) != Some(*member)).count()
}

/// Active tasks of each subtopology at each process.
fn places(input: &StreamsInput, target: &StreamsTarget) -> BTreeMap<(wire::KStr, wire::KStr), usize> {
    let mut places = BTreeMap::new();
    for (task, member) in active_of(target) {
        *places.entry((task.subtopology, process_of(input, &member).clone())).or_default() += 1;
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn targets_obey_the_laws_and_have_all_standbys(input in groups(ANY)) {
        for (name, assignor) in ASSIGNORS {
            let target = assign(assignor, &input);
            check_laws(&input, &target);
            let standbys = (input.num_standby_replicas as usize).min(processes(&input) - 1);
            for (task, members) in holders_of(&target) {
                let expected = if is_stateful(&input, &task) { 1 + standbys } else { 1 };
                prop_assert_eq!(members.len(), expected, "{} {:?}", name, task);
            }
            prop_assert!(target.values().all(|tasks| tasks.warmup.is_empty()));
        }
    }

    #[test]
    fn a_target_that_was_carried_out_comes_out_again(input in groups(ANY), zones in 0..4usize) {
        for input in [input.clone(), with_zones(input, zones)] {
            for (name, assignor) in ASSIGNORS {
                let target = assign(assignor, &input);
                let again = assign(assignor, &carried_out(&input, &target));
                prop_assert_eq!(&again, &target, "{}", name);
            }
        }
    }

    #[test]
    fn a_target_that_is_being_warmed_up_comes_out_again(input in groups(Shape { history: false, ..ANY })) {
        for (name, assignor) in ASSIGNORS {
            let before = assign(assignor, &input);
            let group = joined(&carried_out(&input, &before));
            let target = assign(assignor, &group);
            let waiting = refine(&WarmupInput {
                group: &group,
                target: &target,
                cannot_report: &BTreeSet::new(),
                revoking: &BTreeMap::new(),
                max_warmups: 3,
                acceptable_lag: 0,
                now_ms: 0,
                patience_ms: 1,
                previous: &Warmups::default(),
            });
            let again = assign(assignor, &carried_out(&group, &waiting.target));
            prop_assert_eq!(active_of(&again), active_of(&target), "{}", name);
        }
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(input in groups(ANY), seed in any::<u64>()) {
        let mut shuffled = input.clone();
        let by_hash = |text: &str| text.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        shuffled.members.sort_by_key(|member| by_hash(&member.member_id));
        shuffled.subtopologies.sort_by_key(|each| by_hash(&each.id));
        for (name, assignor) in ASSIGNORS {
            prop_assert_eq!(assign(assignor, &shuffled), assign(assignor, &input), "{}", name);
        }
    }

    #[test]
    fn standbys_are_on_as_many_zones_as_there_are(input in groups(Shape { zones: 4, ..ANY })) {
        let zone = |id: &wire::KStr| input.members.iter().find(|each| each.member_id == *id).unwrap().client_tags["zone"].clone();
        let zones: BTreeSet<_> = input.members.iter().map(|member| zone(&member.member_id)).collect();
        for (name, assignor) in ASSIGNORS {
            let target = assign(assignor, &input);
            check_laws(&input, &target);
            for (task, members) in holders_of(&target).iter().filter(|(task, _)| is_stateful(&input, task)) {
                let expected = zones.len().min(1 + input.num_standby_replicas as usize);
                let found: BTreeSet<_> = members.iter().map(&zone).collect();
                prop_assert_eq!(found.len(), expected, "{} {:?}", name, task);
                let standbys = (input.num_standby_replicas as usize).min(processes(&input) - 1);
                prop_assert_eq!(members.len(), 1 + standbys, "{} {:?}", name, task);
            }
        }
    }

    #[test]
    fn sticky_loads_members_evenly_when_each_is_a_process(input in groups(Shape { processes: 0, ..ANY })) {
        let target = assign(sticky::assign, &input);
        let active = target.values().map(|tasks| tasks_of(&tasks.active).count());
        prop_assert!(spread_by_one(active.clone()), "{:?}", active.collect::<Vec<_>>());
    }

    #[test]
    fn sticky_loads_processes_by_their_members_in_a_new_group(input in groups(Shape { history: false, ..ANY })) {
        let target = assign(sticky::assign, &input);
        let loads = per_process(&input, |id| tasks_of(&target[id].active).count());
        // One task more or less is at most one task per member more or less.
        for (tasks, members) in &loads {
            for (others, of) in &loads {
                prop_assert!(tasks * of <= others * members + members * of, "{:?}", loads);
            }
        }
    }

    #[test]
    fn balanced_leaves_no_move_that_lowers_the_skew(input in groups(ANY)) {
        let target = assign(balanced::assign, &input);
        let stateful = |id: &wire::KStr| tasks_of(&target[id].active).filter(|task| is_stateful(&input, task)).count();
        let loads = per_process(&input, stateful);
        prop_assert!(no_move_lowers_the_skew(&loads), "stateful {:?}", loads);
        for process in input.members.iter().map(|member| &member.process_id).collect::<BTreeSet<_>>() {
            let threads = input.members.iter().filter(|member| member.process_id == *process).map(|member| &member.member_id);
            prop_assert!(spread_by_one(threads.clone().map(stateful)));
            prop_assert!(spread_by_one(threads.map(|id| tasks_of(&target[id].active).count())));
        }
    }

    #[test]
    fn balanced_spreads_each_stateful_subtopology_over_equal_processes(input in groups(Shape { processes: 0, ..ANY })) {
        let target = assign(balanced::assign, &input);
        for subtopology in input.subtopologies.iter().filter(|each| each.stateful) {
            let count = |id: &wire::KStr| target[id].active.get(&subtopology.id).map_or(0, BTreeSet::len);
            prop_assert!(spread_by_one(input.members.iter().map(|member| count(&member.member_id))));
        }
    }

    #[test]
    fn balanced_moves_no_task_between_processes_without_need(input in groups(Shape { history: false, ..ANY })) {
        let before = assign(balanced::assign, &input);
        let (old, new) = (carried_out(&input, &before), joined(&carried_out(&input, &before)));
        let after = assign(balanced::assign, &new);
        let given_up = |(key, count): (&(wire::KStr, wire::KStr), &usize)| {
            count.saturating_sub(places(&new, &after).get(key).copied().unwrap_or(0))
        };
        let needed: usize = places(&old, &before).iter().map(given_up).sum();
        let after = active_of(&after);
        let crossed = active_of(&before).iter().filter(|(task, member)| {
            process_of(&new, &after[*task]) != process_of(&old, member)
        }).count();
        prop_assert_eq!(crossed, needed);
    }

    #[test]
    fn sticky_moves_only_a_fair_share_to_a_member_that_joins(input in groups(Shape { processes: 0, history: false, ..ANY })) {
        let before = assign(sticky::assign, &input);
        let new = joined(&carried_out(&input, &before));
        let after = assign(sticky::assign, &new);
        let share = active_of(&before).len().div_ceil(new.members.len());
        prop_assert!(moved(&before, &after) <= share, "{} moved, a share is {}", moved(&before, &after), share);
    }

    #[test]
    fn sticky_moves_only_the_tasks_of_a_member_that_leaves(
        input in groups(Shape { processes: 0, history: false, ..ANY }),
        who in any::<prop::sample::Index>(),
    ) {
        if input.members.len() == 1 {
            return Ok(());
        }
        let before = assign(sticky::assign, &input);
        let mut new = carried_out(&input, &before);
        let gone = new.members.remove(who.index(new.members.len()));
        let after = assign(sticky::assign, &new);
        prop_assert_eq!(moved(&before, &after), tasks_of(&gone.active).count());
    }
}

fn with_zones(mut input: StreamsInput, zones: usize) -> StreamsInput {
    for member in &mut input.members {
        let process: usize = member.process_id[1..].parse().expect("pNN");
        if process % 5 < zones {
            member.client_tags.insert("zone".into(), format!("z{}", process % zones).into());
        }
        member.client_tags.insert("row".into(), format!("r{}", process % 2).into());
    }
    input.rack_aware_tags = vec!["zone".into(), "row".into()];
    input
}

/// One more member, with a process of its own.
fn joined(input: &StreamsInput) -> StreamsInput {
    let mut input = input.clone();
    let number = input.members.len();
    input.members.push(coordinator::assign::StreamsMember {
        member_id: format!("m{number:02}").into(),
        process_id: format!("q{number:02}").into(),
        ..Default::default()
    });
    input
}

#[test]
fn a_group_without_members_or_with_one_twice_is_refused() {
    for (name, assignor) in ASSIGNORS {
        assert!(assignor(&StreamsInput::default()).is_err(), "{name}");
        let mut twice = joined(&joined(&StreamsInput::default()));
        twice.members[1].member_id = twice.members[0].member_id.clone();
        assert!(assignor(&twice).is_err(), "{name}");
    }
}

#[test]
fn among_equally_loaded_processes_the_one_that_runs_the_task_keeps_it() {
    let member = |id: &str, process: &str, active: &[i32]| coordinator::assign::StreamsMember {
        member_id: wire::KStr::copy(id),
        process_id: wire::KStr::copy(process),
        active: [("0".into(), active.iter().copied().collect())].into(),
        ..Default::default()
    };
    let input = StreamsInput {
        members: vec![member("a", "p1", &[0, 1, 2]), member("b", "p1", &[]), member("c", "p0", &[3])],
        subtopologies: vec![coordinator::assign::Subtopology { id: "0".into(), tasks: 4, stateful: false }],
        ..Default::default()
    };
    // Task 2 is too much for a; p0 and p1 have one task per member each.
    let target = assign(sticky::assign, &input);
    let partitions = |id: &str| tasks_of(&target[id].active).map(|task| task.partition).collect::<Vec<_>>();
    assert_eq!(["a", "b", "c"].map(partitions), [vec![0, 1], vec![2], vec![3]]);
}
