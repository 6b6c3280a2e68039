//! OffsetForLeaderEpoch (23): not built yet, so neither dispatched nor advertised.
