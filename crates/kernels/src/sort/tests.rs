use super::*;
use crate::reduce::fixtures::{Noise, Strided};
use crate::threads::Scoped;
use crate::{Elem, Serial, Threads};

/// NumPy's order: first by which parts are NaN, then by value.
fn compare(a: (f64, f64), b: (f64, f64)) -> std::cmp::Ordering {
    let class = |v: (f64, f64)| (v.0.is_nan(), v.1.is_nan());
    let part = |a: f64, b: f64| {
        if a.is_nan() || b.is_nan() {
            std::cmp::Ordering::Equal
        } else {
            a.partial_cmp(&b).expect("no NaN here")
        }
    };
    class(a)
        .cmp(&class(b))
        .then(part(a.0, b.0))
        .then(part(a.1, b.1))
}

fn data(noise: &mut Noise, elem: Elem, rows: usize, n: usize) -> Strided {
    let spread = if noise.below(2) == 0 { 5.0 } else { 1e6 };
    Strided::contiguous(elem, &[rows, n], || {
        // Not negative for U64, whose wrapped values f64 cannot distinguish.
        let real = (noise.unit() * spread).round();
        let real = if elem == Elem::U64 { real.abs() } else { real };
        let special = |noise: &mut Noise, x: f64| match noise.below(12) {
            0 if elem >= Elem::F16 => f64::NAN,
            1 if elem >= Elem::F16 => -0.0,
            2 if elem >= Elem::F16 => f64::NEG_INFINITY,
            _ => x,
        };
        let real = if elem == Elem::Bool {
            noise.below(2) as f64
        } else {
            special(noise, real)
        };
        (
            real,
            if elem >= Elem::C64 {
                special(noise, 1.0)
            } else {
                0.0
            },
        )
    })
}

fn view(x: &Strided) -> Rows {
    Rows {
        ptr: x.source().ptr,
        elem: x.elem,
        rows: x.shape[0],
        n: x.shape[1],
    }
}

fn same(a: (f64, f64), b: (f64, f64)) -> bool {
    compare(a, b).is_eq()
}

/// The stable argsort of a row by comparison.
fn reference_order(order: Order, row: &[(f64, f64)]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..row.len()).collect();
    numbers.sort_by(|&a, &b| {
        if order == Order::Ascending {
            compare(row[a], row[b])
        } else {
            compare(row[b], row[a])
        }
    });
    numbers
}

#[test]
fn rows_are_sorted_and_selected_in_numpys_order() {
    let mut noise = Noise(41);
    for elem in Elem::ALL {
        for (rows, n) in [(0, 3), (3, 0), (2, 1), (5, 40), (2, 1500), (1, 70_000)] {
            if n > 10_000 && !matches!(elem, Elem::F32 | Elem::I64 | Elem::C64 | Elem::F16) {
                continue;
            }
            let x = data(&mut noise, elem, rows, n);
            let threads: &dyn Threads = if n % 2 == 0 { &Scoped(3) } else { &Serial };
            let values = x.values();
            for order in [Order::Ascending, Order::Descending] {
                let mut sorted = Strided::contiguous(elem, &[rows, n], || (0.0, 0.0));
                let mut at = vec![-1i64; rows * n];
                let k = if n > 1000 { n / 10 } else { n / 2 };
                let (mut top, mut top_at, mut mask) = (
                    Strided::contiguous(elem, &[rows, k], || (0.0, 0.0)),
                    vec![-1i64; rows * k],
                    vec![7u8; rows * n],
                );
                // SAFETY: every output has the required size.
                unsafe {
                    sort(threads, order, &view(&x), sorted.target().ptr);
                    argsort(threads, order, &view(&x), at.as_mut_ptr());
                    let chosen = Chosen {
                        values: top.target().ptr,
                        indices: top_at.as_mut_ptr(),
                        mask: mask.as_mut_ptr(),
                    };
                    topk(threads, order, k, &view(&x), &chosen);
                }
                let (sorted, top) = (sorted.values(), top.values());
                for r in 0..rows {
                    let row = &values[r * n..(r + 1) * n];
                    let want = reference_order(order, row);
                    for (i, &w) in want.iter().enumerate() {
                        assert!(
                            same(sorted[r * n + i], row[w]),
                            "{elem:?} {order:?} sort {i} of {n}: {:?}, not {:?}",
                            sorted[r * n + i],
                            row[w]
                        );
                        assert_eq!(
                            at[r * n + i],
                            w as i64,
                            "{elem:?} {order:?} argsort {i} of {n}"
                        );
                        assert_eq!(mask[r * n + w], (i < k) as u8);
                        if i < k {
                            assert_eq!(
                                top_at[r * k + i],
                                w as i64,
                                "{elem:?} {order:?} topk {i} of {n}"
                            );
                            assert!(same(top[r * k + i], row[w]));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn partitions_put_one_element_in_place() {
    let mut noise = Noise(43);
    for elem in [Elem::F32, Elem::U8, Elem::C128, Elem::I64] {
        for n in [1, 2, 50, 700] {
            let x = data(&mut noise, elem, 2, n);
            let values = x.values();
            let kth = noise.below(n);
            let mut y = Strided::contiguous(elem, &[2, n], || (0.0, 0.0));
            let mut at = vec![-1i64; 2 * n];
            // SAFETY: both outputs have the required size.
            unsafe {
                partition(&Serial, kth, &view(&x), y.target().ptr);
                argpartition(&Serial, kth, &view(&x), at.as_mut_ptr());
            }
            let y = y.values();
            for r in 0..2 {
                let row = &values[r * n..(r + 1) * n];
                let by_index: Vec<(f64, f64)> = at[r * n..(r + 1) * n]
                    .iter()
                    .map(|&i| row[i as usize])
                    .collect();
                for out in [&y[r * n..(r + 1) * n], &by_index[..]] {
                    assert!(same(
                        out[kth],
                        row[reference_order(Order::Ascending, row)[kth]]
                    ));
                    assert!(out[..kth].iter().all(|&v| compare(v, out[kth]).is_le()));
                    assert!(out[kth..].iter().all(|&v| compare(v, out[kth]).is_ge()));
                    let (mut a, mut b) = (out.to_vec(), row.to_vec());
                    a.sort_by(|&a, &b| compare(a, b));
                    b.sort_by(|&a, &b| compare(a, b));
                    assert!(a.iter().zip(&b).all(|(&a, &b)| same(a, b)));
                }
            }
        }
    }
}

#[test]
fn searches_and_runs() {
    let nan = f64::NAN;
    for elem in [Elem::F32, Elem::F64, Elem::F16, Elem::C64] {
        let sorted = [-2.0, -0.0, 0.0, 1.0, 1.0, 5.0, nan, nan];
        let mut i = 0;
        let x = Strided::contiguous(elem, &[8], || {
            i += 1;
            (sorted[i - 1], 0.0)
        });
        let wanted = [-3.0, 0.0, 1.0, 4.0, nan];
        let mut i = 0;
        let v = Strided::contiguous(elem, &[5], || {
            i += 1;
            (wanted[i - 1], 0.0)
        });
        for (side, want) in [
            (Side::Left, [0, 1, 3, 5, 6]),
            (Side::Right, [0, 3, 5, 5, 8]),
        ] {
            let mut out = [-1i64; 5];
            // SAFETY: arrays of eight and five elements.
            unsafe {
                search_sorted(
                    &Serial,
                    side,
                    elem,
                    x.source().ptr,
                    8,
                    v.source().ptr,
                    5,
                    out.as_mut_ptr(),
                )
            };
            assert_eq!(out, want, "{elem:?} {side:?}");
        }
        for (nans, want) in [
            (Nans::Equal, vec![0, 1, 3, 5, 6]),
            (Nans::Distinct, vec![0, 1, 3, 5, 6, 7]),
        ] {
            let mut out = [-1i64; 8];
            // SAFETY: eight elements, and room for eight positions.
            let count = unsafe {
                let runs = Runs::of(&Serial, elem, nans, x.source().ptr, 8);
                runs.write(&Serial, std::ptr::null_mut(), out.as_mut_ptr());
                runs.count()
            };
            assert_eq!(out[..count], want, "{elem:?} {nans:?}");
        }
    }
}

#[test]
fn sorting_in_place_keeps_zeros() {
    let mut x = [3f32, 0.0, -0.0, -1.0, 0.0];
    let rows = Rows {
        ptr: x.as_ptr().cast(),
        elem: Elem::F32,
        rows: 1,
        n: 5,
    };
    // SAFETY: one row of five elements, sorted in place.
    unsafe { sort(&Serial, Order::Ascending, &rows, x.as_mut_ptr().cast()) };
    assert_eq!(
        x.map(f32::to_bits),
        [-1f32, -0.0, 0.0, 0.0, 3.0].map(f32::to_bits)
    );
}

#[test]
fn argsort_of_64_bit_elements_that_differ_in_low_bits() {
    // One far element makes the span of the keys so large that their lowest bits are dropped to hold the positions.
    let mut noise = Noise(11);
    let mut x: Vec<f64> = (0..3000)
        .map(|_| 1.0 + noise.below(50) as f64 * f64::EPSILON)
        .collect();
    x[1234] = -1e300;
    x[77] = f64::NAN;
    let rows = Rows {
        ptr: x.as_ptr().cast(),
        elem: Elem::F64,
        rows: 1,
        n: x.len(),
    };
    let mut want: Vec<i64> = (0..x.len() as i64).collect();
    want.sort_by(|&a, &b| compare((x[a as usize], 0.0), (x[b as usize], 0.0)));
    let (mut at, mut top, mut parted) = (vec![0; x.len()], vec![0; 100], vec![0; x.len()]);
    let chosen = Chosen {
        values: std::ptr::null_mut(),
        indices: top.as_mut_ptr(),
        mask: std::ptr::null_mut(),
    };
    // SAFETY: one row of 3000 elements, outputs of 3000, 100 and 3000.
    unsafe {
        argsort(&Serial, Order::Ascending, &rows, at.as_mut_ptr());
        topk(&Serial, Order::Ascending, 100, &rows, &chosen);
        argpartition(&Serial, 1500, &rows, parted.as_mut_ptr());
    }
    assert_eq!(at, want);
    assert_eq!(top, want[..100]);
    assert_eq!(x[parted[1500] as usize], x[want[1500] as usize]);
    parted[..1500].sort_unstable();
    let mut smaller = want[..1500].to_vec();
    smaller.sort_unstable();
    assert_eq!(parted[..1500], smaller);
}

#[test]
fn runs_of_many_elements_are_the_same_on_any_number_of_threads() {
    let mut noise = Noise(11);
    let n = 70_001;
    let mut x: Vec<i32> = (0..n).map(|_| noise.below(40_000) as i32).collect();
    x.sort_unstable();
    let starts: Vec<i64> = (0..n)
        .filter(|&i| i == 0 || x[i] != x[i - 1])
        .map(|i| i as i64)
        .collect();
    for threads in [&Serial as &dyn Threads, &Scoped(3)] {
        let (mut values, mut at) = (vec![-1_i32; starts.len()], vec![-1_i64; starts.len()]);
        // SAFETY: `n` elements, room for as many runs as there are.
        unsafe {
            let runs = Runs::of(threads, Elem::I32, Nans::Equal, x.as_ptr().cast(), n);
            assert_eq!(runs.count(), starts.len());
            runs.write(threads, values.as_mut_ptr().cast(), at.as_mut_ptr());
        }
        assert_eq!(at, starts);
        assert!(
            at.iter()
                .zip(&values)
                .all(|(&i, &value)| x[i as usize] == value)
        );
    }
}

#[test]
fn long_rows_of_every_element_size_are_sorted() {
    let mut noise = Noise(21);
    for n in [129, 1000, 70_000, 200_001] {
        for spread in [5, 1 << 20] {
            let x: Vec<f64> = (0..n).map(|_| noise.below(spread) as f64 - 7.0).collect();
            let mut wanted = x.clone();
            wanted.sort_by(f64::total_cmp);
            let narrow: Vec<f32> = x.iter().map(|&v| v as f32).collect();
            for threads in [&Serial as &dyn Threads, &Scoped(3)] {
                let (mut wide, mut half) = (vec![0.0_f64; n], vec![0.0_f32; n]);
                let rows = |elem, ptr| Rows {
                    ptr,
                    elem,
                    rows: 1,
                    n,
                };
                // SAFETY: rows of `n` elements on both sides.
                unsafe {
                    let (from, to) = (x.as_ptr().cast(), wide.as_mut_ptr().cast());
                    sort(threads, Order::Ascending, &rows(Elem::F64, from), to);
                    let (from, to) = (narrow.as_ptr().cast(), half.as_mut_ptr().cast());
                    sort(threads, Order::Ascending, &rows(Elem::F32, from), to);
                }
                assert_eq!(wide, wanted, "{n} numbers below {spread}");
                assert!(half.iter().zip(&wanted).all(|(&a, &b)| f64::from(a) == b));
            }
        }
    }
}
