//! Properties of layouts, compared with explicit lists of element positions.

use mxnet_tensor::{Layout, broadcast_shapes};
use proptest::prelude::*;

/// A model of an array: its shape and the position of every element, in C order.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    shape: Vec<usize>,
    offsets: Vec<usize>,
}

impl Model {
    fn of(layout: &Layout) -> Model {
        Model {
            shape: layout.shape().to_vec(),
            offsets: layout.offsets().collect(),
        }
    }

    /// The model of shape `shape` whose element at `c` is the element at `from(c)`.
    fn map(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let offsets = (0..shape.iter().product())
            .map(|n| {
                let at = from(&coordinates(n, &shape));
                self.offsets[at
                    .iter()
                    .zip(&self.shape)
                    .fold(0, |flat, (i, size)| flat * size + i)]
            })
            .collect();
        Model { shape, offsets }
    }
}

fn coordinates(mut n: usize, shape: &[usize]) -> Vec<usize> {
    let mut result = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        result[axis] = n % shape[axis];
        n /= shape[axis];
    }
    result
}

/// Python's `range(size)[start:stop:step]`, element by element.
fn python_slice(size: usize, start: Option<isize>, stop: Option<isize>, step: isize) -> Vec<usize> {
    let n = size as isize;
    let fix = |bound: isize| if bound < 0 { bound + n } else { bound };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let start = start.map_or(if step > 0 { 0 } else { n - 1 }, |bound| {
        fix(bound).clamp(low, high)
    });
    let stop = stop.map_or(if step > 0 { n } else { -1 }, |bound| {
        fix(bound).clamp(low, high)
    });
    let mut at = start;
    let mut result = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        result.push(at as usize);
        at += step;
    }
    result
}

/// A random view operation. Its numbers are reduced to values that are valid for the layout.
#[derive(Clone, Debug)]
struct Step {
    kind: u8,
    a: usize,
    b: usize,
    start: Option<isize>,
    stop: Option<isize>,
    step: isize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bound = || prop::option::of(-7..7isize);
    let one = (
        0..9u8,
        0..8usize,
        0..8usize,
        bound(),
        bound(),
        prop::sample::select(vec![-3, -2, -1, 1, 2, 3]),
    )
        .prop_map(|(kind, a, b, start, stop, step)| Step {
            kind,
            a,
            b,
            start,
            stop,
            step,
        });
    prop::collection::vec(one, 0..6)
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, 1, 2, 2, 3, 3, 4, 5]), 0..6)
}

/// Applies a step to a layout and to its model.
fn apply(layout: &Layout, model: &Model, step: &Step) -> (Layout, Model) {
    let (ndim, shape) = (layout.ndim(), layout.shape().to_vec());
    if ndim == 0 {
        let grown = layout.expand_dims(&[-1]).expect("one axis");
        return (grown, model.map(vec![1], |_| vec![]));
    }
    let (a, b) = (step.a % ndim, step.b % ndim);
    match step.kind {
        0 => {
            let picked = python_slice(shape[a], step.start, step.stop, step.step);
            let mut result = shape;
            result[a] = picked.len();
            let cut = layout.slice(
                a as isize - ndim as isize,
                step.start,
                step.stop,
                Some(step.step),
            );
            let model = model.map(result, |at| {
                let mut at = at.to_vec();
                at[a] = picked[at[a]];
                at
            });
            (cut.expect("a slice"), model)
        }
        1 if shape[a] > 0 => {
            let index = step.b % shape[a];
            let mut result = shape;
            result.remove(a);
            let model = model.map(result, |at| {
                let mut at = at.to_vec();
                at.insert(a, index);
                at
            });
            (
                layout.select(a as isize, index as isize).expect("inside"),
                model,
            )
        }
        2 => {
            let mut axes: Vec<usize> = (0..ndim).collect();
            axes.rotate_left(a);
            axes.swap(0, b);
            let result = axes.iter().map(|&axis| shape[axis]).collect();
            let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
            let model = model.map(result, |at| {
                let mut from = vec![0; ndim];
                axes.iter().zip(at).for_each(|(&axis, &i)| from[axis] = i);
                from
            });
            (
                layout.transpose(Some(&signed)).expect("a permutation"),
                model,
            )
        }
        3 => {
            let mut result = shape.clone();
            result.reverse();
            let model = model.map(result, |at| at.iter().rev().copied().collect());
            (layout.transpose(None).expect("all axes"), model)
        }
        4 => {
            let mut result = shape;
            result.swap(a, b);
            let model = model.map(result, |at| {
                let mut at = at.to_vec();
                at.swap(a, b);
                at
            });
            (
                layout.swap_axes(a as isize, b as isize).expect("axes"),
                model,
            )
        }
        5 => {
            let model = model.map(shape.clone(), |at| {
                let mut at = at.to_vec();
                at[a] = shape[a] - 1 - at[a];
                at
            });
            (layout.flip(Some(&[a as isize])).expect("an axis"), model)
        }
        6 if a != b => {
            let offset = step.start.unwrap_or(0);
            let (row, column) = (offset.min(0).unsigned_abs(), offset.max(0) as usize);
            let len = shape[a]
                .saturating_sub(row)
                .min(shape[b].saturating_sub(column));
            let others: Vec<usize> = (0..ndim).filter(|axis| *axis != a && *axis != b).collect();
            let result = others
                .iter()
                .map(|&axis| shape[axis])
                .chain([len])
                .collect();
            let model = model.map(result, |at| {
                let mut from = vec![0; ndim];
                others.iter().zip(at).for_each(|(&axis, &i)| from[axis] = i);
                (from[a], from[b]) = (at[others.len()] + row, at[others.len()] + column);
                from
            });
            (
                layout
                    .diagonal(offset, a as isize, b as isize)
                    .expect("two axes"),
                model,
            )
        }
        7 => {
            let from = layout.expand_dims(&[a as isize]).expect("one more");
            let mut result = from.shape().to_vec();
            result[a] = step.b % 4;
            let model = model.map(result.clone(), |at| {
                let mut at = at.to_vec();
                at.remove(a);
                at
            });
            (
                from.broadcast_to(&result).expect("length 1 stretches"),
                model,
            )
        }
        _ => {
            let moved = layout
                .move_axis(&[a as isize], &[b as isize])
                .expect("axes");
            let mut axes: Vec<usize> = (0..ndim).collect();
            axes.remove(a);
            axes.insert(b, a);
            let result = axes.iter().map(|&axis| shape[axis]).collect();
            let model = model.map(result, |at| {
                let mut from = vec![0; ndim];
                axes.iter().zip(at).for_each(|(&axis, &i)| from[axis] = i);
                from
            });
            (moved, model)
        }
    }
}

fn view(shape: &[usize], steps: &[Step]) -> Layout {
    let base = Layout::contiguous(shape);
    steps
        .iter()
        .fold((base.clone(), Model::of(&base)), |(l, m), step| {
            apply(&l, &m, step)
        })
        .0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn views_equal_a_model(shape in shapes(), steps in steps()) {
        let base = Layout::contiguous(&shape);
        let model = Model { offsets: (0..shape.iter().product()).collect(), shape };
        prop_assert_eq!(&Model::of(&base), &model);
        let (mut layout, mut model) = (base, model);
        for step in &steps {
            (layout, model) = apply(&layout, &model, step);
            prop_assert_eq!(&Model::of(&layout), &model, "{:?}", step);
        }
    }

    #[test]
    fn properties_are_those_of_the_offsets(shape in shapes(), steps in steps()) {
        let layout = view(&shape, &steps);
        let offsets: Vec<usize> = layout.offsets().collect();
        let span = offsets.iter().min().copied().zip(offsets.iter().max().copied());
        prop_assert_eq!(layout.span(), span);
        prop_assert_eq!(layout.len(), offsets.len());
        prop_assert_eq!(layout.is_empty(), offsets.is_empty());
        let in_order = |offsets: &[usize]| offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
        prop_assert_eq!(layout.is_contiguous(), in_order(&offsets));
        let transposed: Vec<usize> = layout.transpose(None).expect("all axes").offsets().collect();
        prop_assert_eq!(layout.is_fortran(), in_order(&transposed));
        let mut unique = offsets.clone();
        unique.sort_unstable();
        unique.dedup();
        prop_assert!(unique.len() == offsets.len() || layout.may_self_overlap());
    }

    #[test]
    fn overlap_is_never_missed(shape in shapes(), a in steps(), b in steps()) {
        let (a, b) = (view(&shape, &a), view(&shape, &b));
        let elements: Vec<usize> = a.offsets().collect();
        let overlap = b.offsets().any(|offset| elements.contains(&offset));
        prop_assert!(!overlap || a.may_overlap(&b));
        prop_assert_eq!(a.may_overlap(&b), b.may_overlap(&a));
    }

    #[test]
    fn reshaping_keeps_the_elements(shape in shapes(), steps in steps(), cuts in prop::collection::vec(1..7usize, 0..5)) {
        let layout = view(&shape, &steps);
        // Divisors of the length, and -1 for the remaining factor.
        let (mut left, mut target) = (layout.len(), Vec::new());
        for cut in cuts {
            if left % cut == 0 && left > 0 {
                target.push(cut as isize);
                left /= cut;
            }
        }
        target.insert(target.len() / 2, if layout.is_empty() { 0 } else { -1 });
        let offsets: Vec<usize> = layout.offsets().collect();
        match layout.reshape(&target).expect("divisors") {
            Some(reshaped) => prop_assert!(reshaped.offsets().eq(offsets.iter().copied())),
            None => {
                // A copy is needed only if no strides give these positions in this shape.
                let mut dims: Vec<usize> = target.iter().map(|&n| n.max(0) as usize).collect();
                dims[target.iter().position(|&n| n < 0).expect("not empty")] = left;
                prop_assert!(!is_strided(&dims, &offsets), "{:?} as {:?}", layout, dims);
            }
        }
        let transposed: Vec<usize> = layout.transpose(None).expect("all axes").offsets().collect();
        if let Some(reshaped) = layout.reshape_fortran(&target).expect("divisors") {
            prop_assert!(reshaped.transpose(None).expect("all axes").offsets().eq(transposed));
        }
    }

    #[test]
    fn broadcasting_is_axis_by_axis(a in shapes(), b in shapes()) {
        let ndim = a.len().max(b.len());
        let size = |shape: &[usize], back: usize| shape.len().checked_sub(back + 1).map_or(1, |axis| shape[axis]);
        let expected: Option<Vec<usize>> = (0..ndim).rev().map(|back| match (size(&a, back), size(&b, back)) {
            (n, m) if n == m || m == 1 => Some(n),
            (1, m) => Some(m),
            _ => None,
        }).collect();
        let found = broadcast_shapes(&[&a, &b]).ok().map(|dims| dims.to_vec());
        prop_assert_eq!(&found, &expected);
        if let Some(shape) = expected {
            let layout = Layout::contiguous(&a);
            let stretched = layout.broadcast_to(&shape).expect("one of the two");
            let skip = ndim - a.len();
            let model = Model::of(&layout).map(shape, |at| {
                at[skip..].iter().zip(&a).map(|(&i, &size)| if size == 1 { 0 } else { i }).collect()
            });
            prop_assert_eq!(Model::of(&stretched), model);
        }
    }
}

/// Whether positions in C order have a constant step along every axis.
fn is_strided(dims: &[usize], offsets: &[usize]) -> bool {
    let mut inner = offsets.len();
    let mut strides = Vec::new();
    for &size in dims {
        inner /= size;
        strides.push(if size > 1 {
            offsets[inner] as isize - offsets[0] as isize
        } else {
            0
        });
    }
    (0..offsets.len()).all(|n| {
        let steps = coordinates(n, dims)
            .into_iter()
            .zip(&strides)
            .map(|(i, stride)| i as isize * stride);
        offsets[n] as isize == offsets[0] as isize + steps.sum::<isize>()
    })
}
