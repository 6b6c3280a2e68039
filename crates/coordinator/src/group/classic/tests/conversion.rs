//! A classic group on its way to and from the consumer protocol: what `group::migration` promises of this side. The
//! conversions as a whole are tested where they are decided, in `consumer`.

use super::*;
use crate::env::{Env, Moment, SeededIds};
use crate::group::classic;
use crate::group::migration::{ClassicMember, Snapshot};
use crate::outcome::Outcome;
use crate::shard::{Ctx, Soft, State};

/// Runs `act` as a handler of a shard with this state would be run.
fn with_ctx<R>(state: &State, soft: &mut Soft, out: &mut Outcome, act: impl FnOnce(&mut Ctx<'_, '_>) -> R) -> R {
    let (topics, config, mut ids) = (Default::default(), Default::default(), SeededIds::default());
    let mut env = Env { topics: &topics, config: &config, ids: &mut ids, members_total: 0 };
    act(&mut Ctx {
        at: Moment { mono_ms: 5, wall_ms: 1_005 },
        env: &mut env,
        state,
        soft,
        out,
        ticket: crate::command::Ticket(99),
    })
}

fn snapshot() -> Snapshot {
    let member = |id: &str, instance: Option<&str>| ClassicMember {
        member_id: text(id),
        instance_id: instance.map(text),
        client_id: text("client"),
        client_host: text("/127.0.0.1"),
        rebalance_timeout_ms: REBALANCE_MS,
        session_timeout_ms: SESSION_MS,
        protocols: vec![(text("range"), subscription(&["t"]))],
        assignment: Bytes::from_static(b"share"),
    };
    Snapshot {
        protocol_type: text("consumer"),
        generation: 7,
        protocol: Some(text("range")),
        leader: Some(text("b")),
        members: vec![member("a", None), member("b", Some("i1"))],
    }
}

#[test]
fn g13_a_group_comes_back_as_it_was_handed_over() {
    let (state, mut soft, mut out) = (State::default(), Soft::default(), Outcome::default());
    with_ctx(&state, &mut soft, &mut out, |ctx| {
        classic::downgraded(ctx, &text(GROUP), snapshot(), false);
    });
    let live = &soft.classic[GROUP];
    assert_eq!((live.state().name(), live.generation), ("Stable", 7));
    assert_eq!((live.leader(), live.member_of_instance("i1")), (Some(&text("b")), Some(&text("b"))));
    assert_eq!(live.subscribed, Some([text("t")].into()));
    assert_eq!(soft.timers.len(), 2, "a session for each");
    assert!(out.replies.is_empty() && out.records.is_empty());

    with_ctx(&state, &mut soft, &mut out, |ctx| classic::refused(&state, ctx.soft, ctx.at, ctx.env));
    assert!(soft.classic.is_empty() && soft.timers.is_empty(), "it did not happen");
}

#[test]
fn g13_with_a_rebalance_everybody_has_to_join_again() {
    let (state, mut soft, mut out) = (State::default(), Soft::default(), Outcome::default());
    with_ctx(&state, &mut soft, &mut out, |ctx| {
        classic::downgraded(ctx, &text(GROUP), snapshot(), true);
    });
    let live = &soft.classic[GROUP];
    assert_eq!((live.state().name(), live.generation), ("PreparingRebalance", 7));
    assert_eq!(soft.timers.len(), 3);
}

/// The live group of a bench, apart from it.
fn take_live(rig: &Rig) -> Soft {
    let mut soft = Soft::default();
    let live = rig.bench.shard().soft().classic[GROUP].clone();
    soft.classic.insert(text(GROUP), live);
    soft
}

#[test]
fn g3_open_joins_and_syncs_are_told_to_join_again() {
    for prepare in [false, true] {
        let mut rig = Rig::new();
        let ids = rig.joined_group(2);
        rig.open_sync(&ids[1], 1);
        if prepare {
            rig.assign(&[ids[0].clone()], 1);
            rig.send_join(j(&ids[0]));
        }
        let mut soft = take_live(&rig);
        let mut out = Outcome::default();
        let state = rig.bench.shard().state();
        with_ctx(state, &mut soft, &mut out, |ctx| {
            let before = classic::snapshot(ctx.state, ctx.soft, &text(GROUP)).unwrap();
            assert_eq!((before.generation, before.members.len()), (1, 2));
            assert_eq!(before.leader, Some(text(&ids[0])));
            classic::upgraded(ctx, &text(GROUP));
        });
        let errors: Vec<_> = out
            .replies
            .iter()
            .map(|(_, reply)| match reply {
                Reply::JoinGroup(response) => (true, error(response.error_code)),
                Reply::SyncGroup(response) => (false, error(response.error_code)),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(errors, [(prepare, ErrorCode::RebalanceInProgress)]);
        assert!(soft.classic.is_empty() && soft.timers.is_empty());

        // The log refuses it: the group is back, and its members have a session.
        with_ctx(state, &mut soft, &mut out, |ctx| classic::refused(ctx.state, ctx.soft, ctx.at, ctx.env));
        let live = &soft.classic[GROUP];
        assert_eq!(live.members().len(), 2);
        assert_eq!(soft.timers.len(), 3, "two sessions, and the phase that ran");
    }
}
