use super::*;
use crate::reduce::Source;
use crate::reduce::fixtures::{Noise, Strided, indices};
use crate::threads::Scoped;
use crate::{Serial, Threads};

fn resolved(mode: Mode, limit: usize, x: &Strided) -> Result<Vec<i64>, BadIndex> {
    let mut out = vec![0; x.shape.iter().product()];
    // SAFETY: the view lies in its buffer and `out` has room.
    unsafe { resolve(&Scoped(2), mode, limit, &x.source(), out.as_mut_ptr()) }.map(|()| out)
}

#[test]
fn indices_are_checked_and_made_contiguous() {
    let mut noise = Noise(31);
    for elem in [Elem::I8, Elem::U8, Elem::I32, Elem::I64, Elem::U64] {
        let signed = matches!(elem, Elem::I8 | Elem::I32 | Elem::I64);
        let x = Strided::new(elem, &[3, 1, 5], &[2, 0, 1], &[-1, 1, 2], || {
            (
                noise.below(20) as f64 - if signed { 10.0 } else { 0.0 },
                0.0,
            )
        });
        let values: Vec<i64> = x.values().iter().map(|v| v.0 as i64).collect();
        assert_eq!(
            resolved(Mode::Wrap, 7, &x),
            Ok(values.iter().map(|v| v.rem_euclid(7)).collect())
        );
        assert_eq!(
            resolved(Mode::Clip, 7, &x),
            Ok(values.iter().map(|v| (*v).clamp(0, 6)).collect())
        );
        assert_eq!(
            resolved(Mode::Raise, 20, &x),
            Ok(values
                .iter()
                .map(|v| if *v < 0 { v + 20 } else { *v })
                .collect())
        );
        let first = values
            .iter()
            .position(|&v| !(-4..4).contains(&v))
            .expect("some index is out of range");
        assert_eq!(
            resolved(Mode::Raise, 4, &x),
            Err(BadIndex {
                position: first,
                value: values[first]
            })
        );
    }
    let empty = Strided::contiguous(Elem::I64, &[0], || (0.0, 0.0));
    assert_eq!(resolved(Mode::Raise, 0, &empty), Ok(vec![]));
    let one = Strided::contiguous(Elem::I64, &[1], || (0.0, 0.0));
    assert_eq!(
        resolved(Mode::Wrap, 0, &one),
        Err(BadIndex {
            position: 0,
            value: 0
        })
    );
}

/// A view, which of its axes are indexed, and an index for every position and indexed axis.
fn picks(noise: &mut Noise, elem: Elem) -> (Strided, Vec<usize>, Vec<usize>, Vec<Vec<i64>>, usize) {
    let ndim = 1 + noise.below(4);
    let shape: Vec<usize> = (0..ndim).map(|_| [1, 2, 5, 40][noise.below(4)]).collect();
    let mut order: Vec<usize> = (0..ndim).collect();
    (0..ndim).for_each(|i| order.swap(i, noise.below(ndim)));
    let steps: Vec<isize> = (0..ndim).map(|_| [1, 2, -1][noise.below(3)]).collect();
    let view = Strided::new(elem, &shape, &order, &steps, || {
        (noise.below(100) as f64, 0.0)
    });
    let (picked, block): (Vec<usize>, Vec<usize>) = (0..ndim).partition(|_| noise.below(2) == 0);
    let positions = [0, 1, 7, 600][noise.below(4)];
    let at = picked
        .iter()
        .map(|&a| {
            (0..positions)
                .map(|_| noise.below(shape[a]) as i64)
                .collect()
        })
        .collect();
    (view, picked, block, at, positions)
}

#[test]
fn gathered_and_scattered_blocks_agree_with_reference_loops() {
    let mut noise = Noise(33);
    for round in 0..300 {
        let elem = Elem::ALL[round % Elem::COUNT];
        let (mut view, picked, block, at, positions) = picks(&mut noise, elem);
        let axes: Vec<IndexAxis> = picked
            .iter()
            .zip(&at)
            .map(|(&a, at)| IndexAxis {
                indices: at.as_ptr(),
                stride: view.strides[a],
            })
            .collect();
        let block_shape: Vec<usize> = block.iter().map(|&a| view.shape[a]).collect();
        let strides: Vec<isize> = block.iter().map(|&a| view.strides[a]).collect();
        let what = Picked {
            elem,
            axes: &axes,
            positions,
            block: &block_shape,
            strides: &strides,
        };
        let mut shape = block_shape.clone();
        let at_axis = noise.below(shape.len() + 1);
        shape.insert(at_axis, positions);
        let mut dense = Strided::contiguous(elem, &shape, || (noise.below(100) as f64, 0.0));
        let position_stride = dense.strides[at_axis];
        let mut dense_strides = dense.strides.clone();
        dense_strides.remove(at_axis);
        // Index in the view of an element of the dense side.
        let home = |i: &[usize]| {
            let mut index = vec![0; view.shape.len()];
            picked
                .iter()
                .zip(&at)
                .for_each(|(&a, at)| index[a] = at[i[at_axis]] as usize);
            let mut rest = i.to_vec();
            rest.remove(at_axis);
            block.iter().zip(rest).for_each(|(&a, i)| index[a] = i);
            index
        };
        let homes: Vec<Vec<usize>> = indices(&shape).map(|i| home(&i)).collect();
        let threads: &dyn Threads = if round % 2 == 0 { &Serial } else { &Scoped(2) };
        let before = dense.values();
        for write in [Write::Set, Write::Add] {
            let mut want = std::collections::HashMap::new();
            // Positions are written in order, whichever axis of the dense side they lie on.
            let mut order: Vec<usize> = (0..homes.len()).collect();
            let all: Vec<Vec<usize>> = indices(&shape).collect();
            order.sort_by_key(|&i| all[i][at_axis]);
            for i in order {
                let entry = want
                    .entry(homes[i].clone())
                    .or_insert_with(|| view.at(&homes[i]).0);
                let (old, new) = (*entry, before[i].0);
                *entry = if write == Write::Set {
                    new
                } else {
                    round_to(elem, old + new)
                };
            }
            let target = view.target().ptr;
            // SAFETY: both views lie in their buffers and indices are in range.
            unsafe {
                scatter(
                    threads,
                    write,
                    &what,
                    target,
                    dense.source().ptr,
                    position_stride,
                    &dense_strides,
                )
            };
            for (at, want) in want {
                assert_eq!(
                    view.at(&at).0,
                    want,
                    "{write:?} {elem:?} {:?} at {at:?}",
                    view.shape
                );
            }
        }
        let target = dense.target().ptr;
        // SAFETY: as above.
        unsafe {
            gather(
                threads,
                &what,
                view.source().ptr,
                target,
                position_stride,
                &dense_strides,
            )
        };
        for (i, home) in indices(&shape).zip(&homes) {
            assert_eq!(
                dense.at(&i),
                view.at(home),
                "{elem:?} {:?} picked {picked:?}",
                view.shape
            );
        }
    }
}

/// `value` rounded to `elem`.
fn round_to(elem: Elem, value: f64) -> f64 {
    let mut bytes = [0; 16];
    let wrapped = match elem {
        Elem::I8 => (value as i64) as i8 as f64,
        Elem::U8 => (value as i64) as u8 as f64,
        _ => value,
    };
    crate::reduce::fixtures::put(elem, &mut bytes, (wrapped, 0.0));
    crate::reduce::fixtures::get(elem, &bytes).0
}

#[test]
fn along_an_axis_agrees_with_reference_loops() {
    let mut noise = Noise(35);
    for round in 0..300 {
        let elem = [Elem::F32, Elem::I16, Elem::C128, Elem::F16, Elem::I8][round % 5];
        let ndim = 1 + noise.below(3);
        let shape: Vec<usize> = (0..ndim).map(|_| [0, 1, 4, 9][noise.below(4)]).collect();
        let axis = noise.below(ndim);
        let mut view_shape = shape.clone();
        view_shape[axis] = 6;
        let steps: Vec<isize> = (0..ndim).map(|_| [1, 2, -1][noise.below(3)]).collect();
        let mut view = Strided::new(
            elem,
            &view_shape,
            &(0..ndim).rev().collect::<Vec<_>>(),
            &steps,
            || (noise.below(9) as f64, 0.0),
        );
        let mut dense = Strided::new(elem, &shape, &(0..ndim).collect::<Vec<_>>(), &steps, || {
            (noise.below(9) as f64, 0.0)
        });
        let at: Vec<i64> = (0..shape.iter().product())
            .map(|_| noise.below(6) as i64)
            .collect();
        let (view_strides, dense_strides) = (view.strides.clone(), dense.strides.clone());
        let what = Along {
            elem,
            shape: &shape,
            axis,
            indices: at.as_ptr(),
            view_strides: &view_strides,
            dense_strides: &dense_strides,
        };
        let home = |i: &[usize], n: usize| {
            let mut index = i.to_vec();
            index[axis] = at[n] as usize;
            index
        };
        for write in [Write::Set, Write::Add] {
            let mut want = std::collections::HashMap::new();
            for (n, i) in indices(&shape).enumerate() {
                let entry = want
                    .entry(home(&i, n))
                    .or_insert_with(|| view.at(&home(&i, n)).0);
                *entry = if write == Write::Set {
                    dense.at(&i).0
                } else {
                    *entry + dense.at(&i).0
                };
            }
            let target = view.target().ptr;
            // SAFETY: both views lie in their buffers and indices are in range.
            unsafe { scatter_along(&Scoped(2), write, &what, target, dense.source().ptr) };
            want.iter()
                .for_each(|(i, want)| assert_eq!(view.at(i).0, *want));
        }
        let target = dense.target().ptr;
        // SAFETY: as above.
        unsafe { gather_along(&Serial, &what, view.source().ptr, target) };
        for (n, i) in indices(&shape).enumerate() {
            assert_eq!(dense.at(&i), view.at(&home(&i, n)));
        }
    }
}

#[test]
fn masks_become_index_arrays() {
    let mut noise = Noise(37);
    for (elem, shape, order, steps) in [
        (Elem::Bool, vec![4, 5, 6], vec![0, 1, 2], vec![1, 1, 1]),
        (Elem::F32, vec![70, 900], vec![1, 0], vec![1, -2]),
        (Elem::I64, vec![0, 3], vec![0, 1], vec![1, 1]),
        (Elem::C64, vec![1], vec![0], vec![1]),
    ] {
        let x = Strided::new(elem, &shape, &order, &steps, || {
            (noise.below(2) as f64, 0.0)
        });
        let want: Vec<Vec<usize>> = indices(&shape).filter(|i| x.at(i).0 != 0.0).collect();
        // SAFETY: the view lies in its buffer.
        let counted =
            unsafe { nonzero(&Serial, &x.source(), |_| Ok::<_, ()>(Destinations::new())) };
        assert_eq!(counted, Ok(want.len()));
        let mut out = vec![vec![0i64; want.len()]; shape.len()];
        let targets: Destinations = out.iter_mut().map(|o| o.as_mut_ptr()).collect();
        // SAFETY: there is room for all results on every axis.
        let found = unsafe { nonzero(&Scoped(3), &x.source(), |_| Ok::<_, ()>(targets)) };
        assert_eq!(found, Ok(want.len()));
        for (n, at) in want.iter().enumerate() {
            assert!(at.iter().zip(&out).all(|(&i, o)| o[n] == i as i64));
        }
    }
}

#[test]
fn one_hot_rows_leave_out_of_range_indices_off() {
    let at = [1i64, -1, 0, 3];
    let (on, off, mut out) = ([2f32], [1f32], [9f32; 12]);
    // SAFETY: four indices, rows of three.
    unsafe {
        one_hot(
            &Serial,
            Elem::F32,
            at.as_ptr(),
            4,
            3,
            on.as_ptr().cast(),
            off.as_ptr().cast(),
            out.as_mut_ptr().cast(),
        );
    }
    assert_eq!(
        out,
        [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    );
    let shape = [0usize];
    let none = Source {
        ptr: at.as_ptr().cast(),
        elem: Elem::I64,
        shape: &shape,
        strides: &[8],
    };
    // SAFETY: nothing is read.
    let found = unsafe { nonzero(&Serial, &none, |_| Ok::<_, ()>(Destinations::new())) };
    assert_eq!(found, Ok(0));
}
