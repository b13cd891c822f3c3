//! Gather, scatter, take, put, masks and one-hot, by item size.
