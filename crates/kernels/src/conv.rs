//! Convolution 2-D, forward and both gradients.
