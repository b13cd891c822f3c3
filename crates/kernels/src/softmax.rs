//! Softmax, log-softmax and cross-entropy along one axis.
