//! Cumulative sums and products along one axis.
