//! Sort, argsort, top-k along the last axis.
