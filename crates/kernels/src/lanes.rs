//! Folds of rows in lanes that stay in registers.

/// A fold over `i` in `start..end` in `L` independent lanes: `in_lanes!(L; neutral, |a, b| join; i in start, end, |lane| next)`.
///
/// `next` combines a lane with term `i`; `join` combines two lanes. Lane `l` takes every `L`-th term from `start + l` on. Then the upper half of the
/// lanes is joined to the lower half until one is left; after each halving the next terms follow, if there are as many as lanes. The order depends on
/// the number of terms only, not on the instruction set. No lane is indexed by a variable, so that all of them stay in registers. Through memory, the
/// last elements would wait for the stores before them.
macro_rules! in_lanes {
    (16; $($rest:tt)*) => { $crate::lanes::in_lanes!(@fold 16 [8 4 2 1] $($rest)*) };
    (32; $($rest:tt)*) => { $crate::lanes::in_lanes!(@fold 32 [16 8 4 2 1] $($rest)*) };
    (64; $($rest:tt)*) => { $crate::lanes::in_lanes!(@fold 64 [32 16 8 4 2 1] $($rest)*) };
    (128; $($rest:tt)*) => { $crate::lanes::in_lanes!(@fold 128 [64 32 16 8 4 2 1] $($rest)*) };
    (256; $($rest:tt)*) => { $crate::lanes::in_lanes!(@fold 256 [128 64 32 16 8 4 2 1] $($rest)*) };
    (@fold $lanes:literal [$($half:literal)*]
     $neutral:expr, |$a:ident, $b:ident| $join:expr; $i:ident in $start:expr, $end:expr, |$lane:ident| $next:expr) => {{
        let (mut at, end) = ($start, $end);
        let mut lanes = [$neutral; $lanes];
        while at + $lanes <= end {
            for l in 0..$lanes {
                let ($i, $lane) = (at + l, lanes[l]);
                lanes[l] = $next;
            }
            at += $lanes;
        }
        $(
            let mut half = [$neutral; $half];
            for l in 0..$half {
                let ($a, $b) = (lanes[l], lanes[l + $half]);
                half[l] = $join;
            }
            if end - at >= $half {
                for l in 0..$half {
                    let ($i, $lane) = (at + l, half[l]);
                    half[l] = $next;
                }
                at += $half;
            }
            let lanes = half;
        )*
        debug_assert_eq!(at, end);
        lanes[0]
    }};
}
pub(crate) use in_lanes;
