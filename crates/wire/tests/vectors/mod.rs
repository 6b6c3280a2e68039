//! The golden vectors, made with Kafka's own classes: `name version hex` on each line. `golden.txt` has the protocol and the
//! records of `__consumer_offsets`, `golden-internal.txt` those of `__transaction_state` and of the metadata log.

use wire::Bytes;

/// A message as Kafka wrote it.
pub struct Vector {
    pub name: String,
    pub version: i16,
    pub body: Bytes,
}

/// All of them.
pub fn vectors() -> Vec<Vector> {
    let files = [include_str!("../golden.txt"), include_str!("../golden-internal.txt")];
    files.iter().flat_map(|f| f.lines()).map(parse).collect()
}

fn parse(line: &str) -> Vector {
    // A message may be empty, and then nothing follows the version.
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (name, version, hex) = (word(), word(), word());
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).expect("hex is ASCII");
        u8::from_str_radix(digits, 16).expect("hex")
    };
    Vector {
        name: name.to_owned(),
        version: version.parse().expect("a version"),
        body: hex.as_bytes().chunks(2).map(byte).collect(),
    }
}
