//! Index expressions compared with NumPy's results in `data/index.txt` (written by `data/index.py`).

use mxnet_tensor::{Dims, IndexItem, Indexed, Layout};

/// An index array with its values.
struct Values {
    shape: Vec<usize>,
    values: Vec<isize>,
}

fn sizes(text: &str) -> Vec<usize> {
    text.split('x')
        .filter(|n| !n.is_empty())
        .map(|n| n.parse().expect("a size"))
        .collect()
}

fn parse(entry: &str) -> (IndexItem, Option<Values>) {
    let rest = &entry[1..];
    let array = || {
        let (shape, values) = rest.split_once('=').expect("an array");
        let values = values
            .split(',')
            .filter(|n| !n.is_empty())
            .map(|n| n.parse().expect("a value"))
            .collect();
        Values {
            shape: sizes(shape),
            values,
        }
    };
    match &entry[..1] {
        "i" => (IndexItem::Int(rest.parse().expect("an integer")), None),
        "s" => {
            let parts: Vec<Option<isize>> = rest.split(':').map(|n| n.parse().ok()).collect();
            (
                IndexItem::Slice {
                    start: parts[0],
                    stop: parts[1],
                    step: parts[2],
                },
                None,
            )
        }
        "n" => (IndexItem::NewAxis, None),
        "e" => (IndexItem::Ellipsis, None),
        "a" => {
            let values = array();
            (
                IndexItem::Array {
                    shape: Dims::from_slice(&values.shape),
                },
                Some(values),
            )
        }
        _ => {
            let values = array();
            (
                IndexItem::Mask {
                    shape: Dims::from_slice(&values.shape),
                },
                Some(values),
            )
        }
    }
}

/// Coordinates of element `n` of an array in C order.
fn coordinates(mut n: usize, shape: &[usize]) -> Vec<usize> {
    let mut result = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        result[axis] = n % shape[axis];
        n /= shape[axis];
    }
    result
}

/// The index arrays that a mask is equivalent to, one per axis (one of zeros for a 0-d mask).
fn nonzero(mask: &Values) -> Vec<Vec<isize>> {
    let trues: Vec<usize> = (0..mask.values.len())
        .filter(|&n| mask.values[n] != 0)
        .collect();
    if mask.shape.is_empty() {
        return vec![vec![0; trues.len()]];
    }
    let axis = |axis: usize| {
        trues
            .iter()
            .map(|&n| coordinates(n, &mask.shape)[axis] as isize)
            .collect()
    };
    (0..mask.shape.len()).map(axis).collect()
}

/// Positions of the result's elements; `None` if a value of an index array is out of bounds.
fn gather(indexed: &Indexed, arrays: &[Option<Values>], is_mask: &[bool]) -> Option<Vec<usize>> {
    let Some(advanced) = &indexed.advanced else {
        return Some(indexed.view.offsets().collect());
    };
    let result = indexed.shape();
    let kept: Vec<usize> = advanced.kept_axes(indexed.view.ndim()).collect();
    let columns: Vec<(usize, Vec<usize>, Vec<isize>)> = advanced
        .indices
        .iter()
        .map(|index| {
            let array = arrays[index.item].as_ref().expect("an array");
            if is_mask[index.item] {
                let values = nonzero(array).swap_remove(index.part);
                (index.axis, vec![values.len()], values)
            } else {
                (index.axis, array.shape.clone(), array.values.clone())
            }
        })
        .collect();
    for (axis, _, values) in &columns {
        let size = indexed.view.shape()[*axis] as isize;
        if values.iter().any(|value| !(-size..size).contains(value)) {
            return None;
        }
    }
    let mut offsets = Vec::new();
    for n in 0..result.iter().product() {
        let at = coordinates(n, &result);
        let (before, rest) = at.split_at(advanced.axis);
        let (inner, after) = rest.split_at(advanced.shape.len());
        let mut view_at = vec![0; indexed.view.ndim()];
        for (&axis, &i) in kept.iter().zip(before.iter().chain(after)) {
            view_at[axis] = i;
        }
        for (axis, shape, values) in &columns {
            let inner = &inner[inner.len() - shape.len()..];
            let flat = inner.iter().zip(shape).fold(0, |flat, (&i, &size)| {
                flat * size + if size == 1 { 0 } else { i }
            });
            let size = indexed.view.shape()[*axis] as isize;
            view_at[*axis] = values[flat].rem_euclid(size) as usize;
        }
        let steps = view_at
            .iter()
            .zip(indexed.view.strides())
            .map(|(&i, &stride)| i as isize * stride);
        offsets.push(indexed.view.offset().wrapping_add_signed(steps.sum()));
    }
    Some(offsets)
}

#[test]
fn results_are_numpys() {
    let mut cases = 0;
    for line in include_str!("data/index.txt").lines() {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let x = Layout::contiguous(&sizes(fields[0]));
        let (items, arrays): (Vec<IndexItem>, Vec<Option<Values>>) =
            fields[1].split_whitespace().map(parse).unzip();
        let is_mask: Vec<bool> = items
            .iter()
            .map(|item| matches!(item, IndexItem::Mask { .. }))
            .collect();
        let counts: Vec<usize> = arrays
            .iter()
            .zip(&is_mask)
            .filter(|(_, is_mask)| **is_mask)
            .filter_map(|(mask, _)| Some(mask.as_ref()?.values.iter().filter(|v| **v != 0).count()))
            .collect();
        let result = x.index_counted(&items, &counts);
        let gathered = result
            .as_ref()
            .ok()
            .and_then(|indexed| gather(indexed, &arrays, &is_mask));
        if fields[2] == "error" {
            assert!(gathered.is_none(), "{line}: found {result:?}");
        } else {
            let indexed = result.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(indexed.shape()[..], sizes(fields[2])[..], "{line}");
            let elements: Vec<usize> = fields[3]
                .split(',')
                .filter(|n| !n.is_empty())
                .map(|n| n.parse().expect("an element"))
                .collect();
            assert_eq!(gathered.as_ref(), Some(&elements), "{line}");
        }
        cases += 1;
    }
    assert_eq!(cases, 600);
}
