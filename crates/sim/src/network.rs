//! The network between members and the coordinator: delays, loses and repeats.
//!
//! Requests of one member, and answers to it, stay in order, as on one connection after the other; a repeated one is what a client's
//! retry is to the coordinator: the same request once more, before anything newer.

use coordinator::Command;
use coordinator::assign::TaskId;
use wire::KStr;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;

use crate::event::{Event, FlightNo, MemberNo, Queue};
use crate::member::Answer;
use crate::rng::Rng;
use crate::settings::Weather;

/// Nobody waits for the answer.
const NO_FLIGHT: FlightNo = 0;

/// A member that joins once more has lost the connection on which the first answer would have come, and with the second join
/// it says that it owns nothing. A heartbeat that is sent again after a loss is no copy: it says everything.
fn is_join(request: &Request) -> bool {
    match request {
        Request::Command(command) => match &**command {
            Command::JoinGroup(..) => true,
            Command::ConsumerGroupHeartbeat(_, request) => request.member_epoch == 0,
            _ => false,
        },
        Request::Heartbeat(request) => request.member_epoch == 0,
        Request::Commit { .. } => false,
    }
}

/// A request on its way.
#[derive(Clone, Debug)]
pub enum Request {
    Heartbeat(Box<StreamsGroupHeartbeatRequest>),
    /// Of consumers of both protocols.
    Command(Box<Command>),
    /// Offsets of some tasks or partitions, with the epoch or generation of the member.
    Commit {
        tasks: Vec<TaskId>,
        epoch: i32,
        /// As whom the member had them.
        member_id: KStr,
    },
}

#[derive(Debug)]
pub struct Network {
    pub weather: Weather,
    flights: FlightNo,
    /// When the latest request of each member arrives.
    arrivals: Vec<u64>,
    /// When the latest answer to each member arrives.
    returns: Vec<u64>,
}

impl Network {
    pub fn new(weather: Weather) -> Self {
        Network { weather, flights: 0, arrivals: Vec::new(), returns: Vec::new() }
    }

    /// Sends a request, and says which flight it is.
    pub fn send(
        &mut self,
        now_ms: u64,
        member: MemberNo,
        request: Request,
        rng: &mut Rng,
        queue: &mut Queue,
    ) -> FlightNo {
        self.flights += 1;
        let flight = self.flights;
        let copies = match () {
            () if rng.chance(self.weather.lost) => 0,
            () if rng.chance(self.weather.repeated) => 2,
            () => 1,
        };
        for copy in 1..=copies {
            let at_ms = self.arrival(now_ms, member, rng);
            let flight = if copy < copies && is_join(&request) { NO_FLIGHT } else { flight };
            queue.push(at_ms, Event::Request { member, flight, request: request.clone() });
        }
        flight
    }

    /// Sends an answer back.
    pub fn answer(
        &mut self,
        now_ms: u64,
        member: MemberNo,
        flight: FlightNo,
        answer: Answer,
        rng: &mut Rng,
        queue: &mut Queue,
    ) {
        let copies = match () {
            () if rng.chance(self.weather.lost) => 0,
            () if rng.chance(self.weather.repeated) => 2,
            () => 1,
        };
        for _ in 0..copies {
            let at_ms = in_order(&mut self.returns, member, now_ms + rng.between(1, self.weather.delay_ms.max(1)));
            queue.push(at_ms, Event::Answer { member, flight, answer: answer.clone() });
        }
    }

    fn arrival(&mut self, now_ms: u64, member: MemberNo, rng: &mut Rng) -> u64 {
        in_order(&mut self.arrivals, member, now_ms + rng.between(1, self.weather.delay_ms.max(1)))
    }
}

/// Not before the latest one of the member.
fn in_order(latest: &mut Vec<u64>, member: MemberNo, at_ms: u64) -> u64 {
    if latest.len() <= member {
        latest.resize(member + 1, 0);
    }
    latest[member] = at_ms.max(latest[member]);
    latest[member]
}
