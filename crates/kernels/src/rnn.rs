//! LSTM over time, forward and gradient.
