//! CreatePartitions (37): not built yet, so neither dispatched nor advertised.
