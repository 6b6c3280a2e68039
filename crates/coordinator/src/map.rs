//! The hash map of the core: a fixed seed, so that two runs of the same history are the same to the bit.
//!
//! Iteration order still depends on insertion history, which recovery does not repeat. Never let it reach a record
//! or a reply: sort first, or use a `BTreeMap`.

/// Hash map with a fixed seed; for look-ups only, see the module's rule on iteration.
pub type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;
