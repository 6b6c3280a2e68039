//! Bytes that no honest peer sends end in a message or an error: never in a panic, never in memory out of proportion.

mod counting;
mod vectors;

use std::collections::BTreeMap;

use wire::messages::*;
use wire::{Bytes, DecodeError, Message, Reader, Writer};

use counting::{Cost, cost};
use vectors::vectors;

/// The densest thing there is on the wire is an empty string in an array of a flexible version: one byte, for which the
/// array holds 32. While the array grows, its old and its new place exist at once, which makes 64.
const MAX_BYTES_PER_BYTE: usize = 64;
/// An array may take 4 KiB before its first element, and arrays lie in arrays up to four deep.
const MAX_BYTES_BEFORE: usize = 16 * 1024;

type Decode = fn(&Bytes, i16) -> Result<(), DecodeError>;

fn decode<M: Message>(frame: &Bytes, version: i16) -> Result<(), DecodeError> {
    M::decode(&mut Reader::new(frame), version).map(drop)
}

macro_rules! decoders {
    ($($message:ident)*) => {
        fn decoders() -> BTreeMap<&'static str, (Decode, i16)> {
            [$(($message::NAME, (decode::<$message> as Decode, $message::MAX_VERSION)),)*].into()
        }
    };
}

wire::for_each_message!(decoders);

/// Decodes and checks what it cost, whatever came of it.
fn attempt(decode: Decode, name: &str, version: i16, body: &[u8]) -> Cost {
    let frame = Bytes::copy_from_slice(body);
    let (_, cost) = cost(|| decode(&frame, version));
    let bound = MAX_BYTES_BEFORE + MAX_BYTES_PER_BYTE * body.len();
    assert!(cost.peak_bytes <= bound, "{name} v{version}: {cost:?} for {} bytes: {body:02x?}", body.len());
    cost
}

/// A generator of numbers that are the same on every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// What a peer might put where a length belongs: huge, negative, and the ends of each encoding.
const LENGTHS: &[&[u8]] = &[
    &[0x7f, 0xff, 0xff, 0xff],
    &[0x10, 0x00, 0x00, 0x00],
    &[0x00, 0x00, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xfe],
    &[0x80, 0x00, 0x00, 0x00],
    &[0x7f, 0xff],
    &[0xff, 0xff],
    &[0x80, 0x00],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff],
    &[0x80, 0x80, 0x80, 0x80, 0x01],
    &[0xff, 0x7f],
    &[0x00],
];

/// All positions if there are few, else `most` of them.
fn positions(len: usize, most: usize, numbers: &mut Numbers) -> Vec<usize> {
    if len <= most {
        return (0..len).collect();
    }
    (0..most).map(|_| numbers.below(len)).collect()
}

#[test]
fn mutated_vectors_never_panic_and_never_cost_much() {
    let decoders = decoders();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for vector in vectors() {
        let (decode, newest) = decoders[vector.name.as_str()];
        let (name, version, body) = (&vector.name, vector.version, &vector.body[..]);
        let attempt = |body: &[u8]| attempt(decode, name, version, body);

        for end in positions(body.len(), 48, &mut numbers) {
            attempt(&body[..end]);
        }
        for at in positions(body.len(), 48, &mut numbers) {
            let mut mutated = body.to_vec();
            for byte in [0x00, 0x01, 0x7f, 0x80, 0xff, numbers.below(256) as u8] {
                mutated[at] = byte;
                attempt(&mutated);
            }
        }
        for at in positions(body.len(), 24, &mut numbers) {
            for length in LENGTHS {
                let mut replaced = body.to_vec();
                let end = body.len().min(at + length.len());
                replaced.splice(at..end, length.iter().copied());
                attempt(&replaced);
                let mut inserted = body.to_vec();
                inserted.splice(at..at, length.iter().copied());
                attempt(&inserted);
            }
        }
        for other in -1..=newest + 1 {
            self::attempt(decode, name, other, body);
        }
    }
}

#[test]
fn noise_never_panics_and_never_costs_much() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    // Small bytes make deep structures, and two-byte lengths make long arrays.
    let alphabet: &[&[u8]] = &[&[0], &[1], &[2], &[3], &[0, 0], &[0xff], &[0x90, 0x10], b"a"];
    for (name, (decode, newest)) in decoders() {
        for version in 0..=newest {
            for variety in 1..=alphabet.len() {
                let mut body = Vec::new();
                while body.len() < 4096 {
                    body.extend_from_slice(alphabet[numbers.below(variety)]);
                }
                attempt(decode, name, version, &body);
            }
        }
    }
}

#[test]
fn an_array_cannot_claim_more_elements_than_bytes() {
    for elements in [i32::MAX, 1 << 28, 8] {
        let frame = Bytes::copy_from_slice(&elements.to_be_bytes());
        let (result, cost) = cost(|| MetadataRequest::decode(&mut Reader::new(&frame), 1));
        let elements = elements as usize;
        assert_eq!(result, Err(DecodeError::ArrayLength { elements, left: 0 }));
        assert_eq!(cost.peak_bytes, 0);
    }
}

/// The worst case that [`MAX_BYTES_PER_BYTE`] is made for.
#[test]
fn an_array_of_empty_strings_stays_within_the_bound() {
    let request =
        ConsumerGroupHeartbeatRequest { subscribed_topic_names: Some(vec!["".into(); 100_000]), ..Default::default() };
    let mut w = Writer::new();
    request.encode(&mut w, 1).unwrap();
    let body = w.into_bytes();
    let cost = attempt(decode::<ConsumerGroupHeartbeatRequest>, ConsumerGroupHeartbeatRequest::NAME, 1, &body);
    assert!(cost.peak_bytes >= 32 * 100_000, "{cost:?}");
}

#[test]
fn a_steady_heartbeat_is_read_and_answered_without_an_allocation() {
    let request = StreamsGroupHeartbeatRequest {
        group_id: "orders".into(),
        member_id: "4e1c4f2c-8a0e-4f2b-9f06-3f5f0a6c8a11".into(),
        member_epoch: 12,
        instance_id: Some("instance-1".into()),
        ..Default::default()
    };
    let header = RequestHeader {
        request_api_key: ApiKey::StreamsGroupHeartbeat.code(),
        request_api_version: 1,
        correlation_id: 7,
        client_id: Some("streams".into()),
    };
    let mut w = Writer::new();
    header.encode(&mut w, 2).unwrap();
    request.encode(&mut w, 1).unwrap();
    let frame = w.into_bytes();
    // The first clone of a buffer makes it shared, which allocates; in the broker that is the buffer's owner's matter.
    let _shared = frame.clone();
    let (decoded, cost_of_reading) = cost(|| {
        let mut r = Reader::new(&frame);
        let header = RequestHeader::decode(&mut r, 2)?;
        Ok::<_, DecodeError>((header, StreamsGroupHeartbeatRequest::decode(&mut r, 1)?))
    });
    assert_eq!(decoded, Ok((header, request)));
    assert_eq!(cost_of_reading.allocations, 0);

    let response = StreamsGroupHeartbeatResponse {
        member_id: "4e1c4f2c-8a0e-4f2b-9f06-3f5f0a6c8a11".into(),
        member_epoch: 12,
        heartbeat_interval_ms: 5000,
        ..Default::default()
    };
    let mut w = Writer::with_capacity(256);
    let (result, cost_of_writing) = cost(|| response.encode(&mut w, 1));
    assert_eq!(result, Ok(()));
    assert_eq!(cost_of_writing.allocations, 0);
}
