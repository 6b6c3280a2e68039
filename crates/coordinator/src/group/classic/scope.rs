//! What the handlers of one classic group work on: the live group, its timers, the outcome.

use wire::KStr;

use super::Timer;
use super::live::{Live, Member};
use super::refused::Unconfirmed;
use crate::config::BrokerConfig;
use crate::env::{Env, IdSource, Moment};
use crate::group::Group;
use crate::journal;
use crate::outcome::Outcome;
use crate::shard::{self, Ctx, Soft};
use crate::timer::Timers;

pub(super) struct Scope<'a> {
    pub group: &'a mut Live,
    pub out: &'a mut Outcome,
    pub config: &'a BrokerConfig,
    pub ids: &'a mut dyn IdSource,
    pub at: Moment,
    pub unconfirmed: &'a mut Option<Unconfirmed>,
    pub journal: &'a mut journal::Soft,
    timers: &'a mut Timers<shard::Timer>,
}

impl<'a> Scope<'a> {
    /// The group, if it exists and is a classic one.
    pub(super) fn open(ctx: &'a mut Ctx<'_, '_>, group_id: &KStr) -> Option<Self> {
        if !ctx.soft.classic.contains_key(group_id) {
            let Some(Group::Classic(stored)) = ctx.state.group(group_id) else {
                return None;
            };
            let live = stored.restore(group_id);
            ctx.soft.classic.insert(live.group_id.clone(), live);
        }
        Scope::of(ctx.soft, ctx.out, ctx.env, ctx.at, group_id)
    }

    /// The live group, if there is one.
    pub(super) fn of(
        soft: &'a mut Soft,
        out: &'a mut Outcome,
        env: &'a mut Env<'_>,
        at: Moment,
        group_id: &KStr,
    ) -> Option<Self> {
        Some(Scope {
            group: soft.classic.get_mut(group_id)?,
            out,
            config: &env.config.broker,
            ids: &mut *env.ids,
            at,
            unconfirmed: &mut soft.classic_unconfirmed,
            journal: &mut soft.journal,
            timers: &mut soft.timers,
        })
    }

    /// The member is alive: its session starts anew.
    pub(super) fn restart_session(&mut self, member_id: &str) {
        if let Some((member_id, member)) = self.group.members().get_key_value(member_id) {
            let member_id = member_id.clone();
            self.expect_sign_of_life(member_id, session_timeout_ms(member));
        }
    }

    /// The member or pending id is dropped unless it is heard of within `ms`. `member_id` must own its memory.
    pub(super) fn expect_sign_of_life(&mut self, member_id: KStr, ms: u64) {
        let group_id = self.group.group_id.clone();
        let timer = Timer::Session { group_id, member_id };
        self.set_timer(timer, ms);
    }

    pub(super) fn end_session(&mut self, member_id: &KStr) {
        let group_id = self.group.group_id.clone();
        let member_id = member_id.clone();
        self.timers.cancel(&shard::Timer::Classic(Timer::Session { group_id, member_id }));
    }

    pub(super) fn set_join_timer(&mut self, ms: u64) {
        let group_id = self.group.group_id.clone();
        self.set_timer(Timer::Join { group_id }, ms);
    }

    pub(super) fn cancel_join_timer(&mut self) {
        let group_id = self.group.group_id.clone();
        self.timers.cancel(&shard::Timer::Classic(Timer::Join { group_id }));
    }

    pub(super) fn set_sync_timer(&mut self, ms: u64) {
        let group_id = self.group.group_id.clone();
        self.set_timer(Timer::Sync { group_id }, ms);
    }

    pub(super) fn cancel_sync_timer(&mut self) {
        let group_id = self.group.group_id.clone();
        self.timers.cancel(&shard::Timer::Classic(Timer::Sync { group_id }));
    }

    fn set_timer(&mut self, timer: Timer, ms: u64) {
        self.timers.set(&shard::Timer::Classic(timer), self.at.mono_ms + ms);
    }
}

fn session_timeout_ms(member: &Member) -> u64 {
    member.session_timeout_ms.max(0) as u64
}
