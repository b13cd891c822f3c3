use super::{Fold, Malformed, Segments, check, cumsum, fold, softmax};
use crate::Elem;
use crate::softmax::Kind;
use crate::threads::Scoped;

#[test]
fn invalid_offsets_are_reported() {
    assert_eq!(check(&[], 0), Err(Malformed::Empty));
    assert_eq!(check(&[1, 2], 2), Err(Malformed::First(1)));
    assert_eq!(check(&[0, 3, 2, 4], 4), Err(Malformed::Decreases(2)));
    assert_eq!(check(&[0, 3], 4), Err(Malformed::Last(3)));
    assert_eq!(check(&[0, 0, 4], 4), Ok(()));
}

/// Segments that are empty, short, and longer than several tasks.
fn offsets() -> Vec<i64> {
    let lengths = [0, 3, 1, 0, 70_000, 5, 40_000, 0];
    let mut offsets = vec![0];
    for n in lengths {
        offsets.push(offsets.last().copied().unwrap_or(0) + n);
    }
    offsets
}

#[test]
fn sums_do_not_depend_on_the_number_of_threads() {
    let offsets = offsets();
    for inner in [1, 3] {
        let rows = offsets[offsets.len() - 1] as usize;
        let x: Vec<f32> = (0..rows * inner)
            .map(|i| (i % 1013) as f32 - 500.25)
            .collect();
        let g = Segments {
            offsets: &offsets,
            inner,
        };
        let run = |threads: usize| {
            let mut out = vec![f32::NAN; g.count() * inner];
            // SAFETY: the sizes match the contract.
            unsafe {
                fold(
                    &Scoped(threads),
                    &g,
                    Fold::Sum,
                    Elem::F32,
                    x.as_ptr().cast(),
                    out.as_mut_ptr().cast(),
                );
            }
            out
        };
        let (one, four) = (run(1), run(4));
        assert_eq!(one, four);
        for s in 0..g.count() {
            for j in 0..inner {
                let want: f64 = g.range(s).map(|r| f64::from(x[r * inner + j])).sum();
                let got = f64::from(one[s * inner + j]);
                // Lanes and blocks of rows: about sqrt(n) rounding errors of sums below 500 n.
                let bound = 1e-6 * 500.0 * (g.range(s).len() as f64 + 1.0);
                assert!((got - want).abs() <= bound, "{got} {want}");
            }
        }
    }
}

#[test]
fn exponentials_of_a_long_segment_add_up_to_one() {
    let offsets = offsets();
    for inner in [1, 3] {
        let rows = offsets[offsets.len() - 1] as usize;
        let x: Vec<f64> = (0..rows * inner).map(|i| (i % 37) as f64 * 0.1).collect();
        let g = Segments {
            offsets: &offsets,
            inner,
        };
        let mut y = vec![f64::NAN; x.len()];
        // SAFETY: the sizes match the contract.
        unsafe {
            softmax(
                &Scoped(3),
                &g,
                Kind::Softmax,
                Elem::F64,
                x.as_ptr().cast(),
                y.as_mut_ptr().cast(),
            );
        }
        for s in 0..g.count() {
            for j in 0..inner {
                let sum: f64 = g.range(s).map(|r| y[r * inner + j]).sum();
                let want = f64::from(!g.range(s).is_empty());
                assert!((sum - want).abs() < 1e-12, "{sum}");
            }
        }
    }
}

#[test]
fn running_sums_of_long_segments_are_those_of_a_loop() {
    let offsets = offsets();
    for (inner, reverse) in [(1, false), (3, false), (1, true), (3, true)] {
        let rows = offsets[offsets.len() - 1] as usize;
        let x: Vec<i64> = (0..rows * inner).map(|i| (i % 37) as i64 - 9).collect();
        let g = Segments {
            offsets: &offsets,
            inner,
        };
        for threads in [1, 3] {
            let mut y = vec![i64::MIN; x.len()];
            // SAFETY: the sizes match the contract.
            unsafe {
                cumsum(
                    &Scoped(threads),
                    &g,
                    Elem::I64,
                    reverse,
                    x.as_ptr().cast(),
                    y.as_mut_ptr().cast(),
                );
            }
            for s in 0..g.count() {
                for j in 0..inner {
                    let mut sum = 0;
                    let mut rows: Vec<usize> = g.range(s).collect();
                    if reverse {
                        rows.reverse();
                    }
                    for r in rows {
                        sum += x[r * inner + j];
                        assert_eq!(y[r * inner + j], sum);
                    }
                }
            }
        }
    }
}
