//! Reductions over any set of axes with a fixed blocking.
