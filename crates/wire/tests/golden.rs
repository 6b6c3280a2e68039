//! Every vector that Kafka's own classes wrote is read, and written again to the same bytes.

mod vectors;

use std::collections::BTreeSet;

use wire::messages::*;
use wire::{Message, Reader, Writer};

use vectors::{Vector, vectors};

/// Reads and writes the vector; says what went wrong.
fn round_trip<M: Message>(vector: &Vector) -> Result<(), String> {
    let mut r = Reader::new(&vector.body);
    let message = M::decode(&mut r, vector.version).map_err(|e| format!("decode: {e}"))?;
    r.finish().map_err(|e| format!("decode: {e}"))?;
    let mut w = Writer::new();
    let written = message.encode(&mut w, vector.version);
    written.map_err(|e| format!("encode: {e} in {message:?}"))?;
    if w.into_bytes() != vector.body {
        return Err(format!("other bytes for {message:?}"));
    }
    Ok(())
}

macro_rules! round_trips {
    ($($message:ident)*) => {
        fn by_name(name: &str) -> Option<fn(&Vector) -> Result<(), String>> {
            Some(match name {
                $(stringify!($message) => round_trip::<$message>,)*
                _ => return None,
            })
        }
    };
}

wire::for_each_message!(round_trips);

#[test]
fn all_vectors_round_trip() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 4152 + 91);
    let mut failures = Vec::new();
    for vector in &vectors {
        let Some(round_trip) = by_name(&vector.name) else {
            failures.push(format!("{} is not generated", vector.name));
            continue;
        };
        if let Err(error) = round_trip(vector) {
            failures.push(format!("{} v{}: {error}", vector.name, vector.version));
        }
    }
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn every_version_of_every_message_has_vectors() {
    let vectors = vectors();
    let covered: BTreeSet<(&str, i16)> = vectors.iter().map(|v| (&*v.name, v.version)).collect();
    let mut missing = Vec::new();
    macro_rules! look {
        ($($message:ident)*) => {$(
            for version in $message::versions() {
                if !covered.contains(&($message::NAME, version)) {
                    missing.push(format!("{} v{version}", $message::NAME));
                }
            }
        )*};
    }
    wire::for_each_message!(look);
    assert_eq!(missing, Vec::<String>::new());
}
