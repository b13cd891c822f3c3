//! Elementwise rows and the N-d driver that feeds them.
