//! `x[key]` and `x[key] = value`: translates any NumPy index expression to operators.

use std::sync::Arc;

use mxnet_tensor::{DType, Dims, IndexItem, Indexed, Layout};
use smallvec::SmallVec;

use super::advanced::{assign_kernel, positions_at, single_step};
use super::element_write::is_written_already;
use super::resolve::resolved_or_unchanged;
use super::{GATHER, INDEX_ADD, INDEX_ASSIGN, element_read, nonzero};
use crate::args::{Attrs, Value};
use crate::autograd;
use crate::creation::zeros;
use crate::eager::kernel_on;
use crate::elementwise::select;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{Call, dispatch, invoke1, only};
use crate::launch::{Kernel, cost_ns, launch};
use crate::mode::{Flags, Scope};
use crate::types::check_element;
use crate::{Array, Outputs, cpu, fp_errors, shape};

/// Index arrays of an expression.
type Indices = SmallVec<[Array; 2]>;

/// An index expression in canonical form (see `advanced`).
struct Canonical {
    key: Arc<[IndexItem]>,
    /// Positions, one array for each index array of the key.
    indices: Indices,
    /// The key applied to the layout it was made for.
    indexed: Indexed,
    /// Whether no element is named twice. True if the key has masks and no index arrays.
    unique: bool,
}

/// `x[key]`: a view if the key has no arrays, else a copy. `arrays` are the key's index arrays and masks, in order.
///
/// # Errors
/// [`Error::Index`] for what does not fit the axes: number of entries, an index out of bounds, a mask of another shape, index arrays that do
/// not broadcast; [`Error::DType`] for index arrays that are neither integers nor booleans.
pub fn get(x: &Array, key: &[IndexItem], arrays: &[Array]) -> Result<Array> {
    if arrays.is_empty() {
        return x.index(key.into());
    }
    let moved = on_device_of(x, arrays)?;
    let arrays = moved.as_deref().unwrap_or(arrays);
    let shortly = match (key, arrays) {
        ([IndexItem::Array { .. }], [index]) => element_read::take_positions(x, 0, &[index])?,
        ([IndexItem::Mask { .. }], [mask]) => element_read::masked(x, mask)?,
        _ => None,
    };
    if let Some(y) = shortly {
        return Ok(y);
    }
    if let Some((x, mask)) = flattened(x, key, arrays)? {
        let key = [IndexItem::Mask {
            shape: Dims::from_slice(mask.shape()),
        }];
        return get(&x, &key, &[mask]);
    }
    let canonical = canonical(x.layout(), key, arrays)?;
    let inputs: SmallVec<[&Array; 4]> = std::iter::once(x).chain(&canonical.indices).collect();
    let attrs: Attrs = [Value::Index(canonical.key)].into_iter().collect();
    invoke1(&GATHER, &inputs, &attrs)
}

/// `x[key] = value`; the value is broadcast and converted. If a gradient is recorded through `x` or `value`, returns the array that replaces `x`:
/// the recorded result of the assignment.
///
/// # Errors
/// As [`get`]; [`Error::Shape`] if the value does not broadcast to `x[key]`; [`Error::Value`] if `x` is read-only or the value is a Python NaN
/// for integers; [`Error::Overflow`] if it is a Python integer out of range of the dtype; [`Error::Autograd`] if `x` is a variable or a
/// recorded view and a gradient is recorded.
pub fn set(x: &Array, key: &[IndexItem], arrays: &[Array], value: &Array) -> Result<Option<Array>> {
    let flags = Flags::current();
    let recorded = flags.is_recording() && (x.entry().is_some() || value.entry().is_some());
    if recorded || x.tensor().is_read_only() {
        x.check_writable("assignment", "assignment destination")?;
    }
    if let Some(number) = value.number() {
        check_element("assignment", &number, x.dtype())?;
    }
    let converted = fp_errors::checked_cast(value, x.dtype())?;
    let value = converted.as_ref().unwrap_or(value);
    let moved = on_device_of(x, arrays)?;
    let arrays = moved.as_deref().unwrap_or(arrays);
    if !recorded {
        // Elements that share memory must be written one after the other.
        return match !arrays.is_empty() && x.shares_elements() {
            true => in_place_by_element(x, key, arrays, value),
            false => in_place(x, key, arrays, value),
        }
        .map(|()| None);
    }
    let canonical = canonical(x.layout(), key, arrays)?;
    let value = broadcast_value(value, &canonical.indexed, x)?;
    let mut inputs: SmallVec<[Option<&Array>; 4]> = SmallVec::from_iter([Some(x), Some(&value)]);
    inputs.extend(canonical.indices.iter().map(Some));
    let attrs: Attrs = [
        Value::Index(canonical.key.clone()),
        Value::Bool(canonical.unique),
    ]
    .into_iter()
    .collect();
    let outs = [Some(x)];
    let call = Call {
        op: &INDEX_ASSIGN,
        inputs: &inputs,
        attrs: &attrs,
        outs: &outs,
        dtype: None,
    };
    if flags.is_stacked() {
        return only(&INDEX_ASSIGN, dispatch(&call)?).map(Some);
    }
    // The elements change in place, so that views of them see the new values. Only the operation is recorded.
    let outputs = autograd::record_as(&call, || {
        let _paused = Scope::enter(false, flags.is_training());
        write(x, &canonical, &value.detach())?;
        Ok(Outputs::from_iter([x.detach()]))
    });
    outputs
        .and_then(|outputs| only(&INDEX_ASSIGN, outputs))
        .map(Some)
        .map_err(|error| call.explain(error))
}

/// `x[key] += value` in place, recorded; repeated positions accumulate. Returns the array that replaces `x`.
///
/// # Errors
/// As [`set`].
pub fn accumulate(x: &Array, key: &[IndexItem], arrays: &[Array], value: &Array) -> Result<Array> {
    // The operator needs index arrays: basic indexing becomes an array of flat positions.
    let numbers;
    let (x_flat, key, arrays): (Array, Arc<[IndexItem]>, &[Array]) = if arrays.is_empty() {
        let all = crate::creation::arange(x.len(), DType::I64)?.reshape(x.shape())?;
        let found = get(&all, key, &[])?;
        numbers = [found.contiguous()?];
        let item = IndexItem::Array {
            shape: Dims::from_slice(numbers[0].shape()),
        };
        (x.reshape(&[x.len()])?, [item].into(), &numbers)
    } else {
        (x.clone(), key.into(), arrays)
    };
    let moved = on_device_of(x, arrays)?;
    let arrays = moved.as_deref().unwrap_or(arrays);
    let canonical = canonical(x_flat.layout(), &key, arrays)?;
    let value = broadcast_value(value, &canonical.indexed, &x_flat)?;
    let mut inputs: SmallVec<[&Array; 4]> = SmallVec::from_iter([&x_flat, &value]);
    inputs.extend(&canonical.indices);
    let attrs: Attrs = [Value::Index(canonical.key.clone())].into_iter().collect();
    let summed = invoke1(&INDEX_ADD, &inputs, &attrs)?.reshape(x.shape())?;
    let outs = [Some(x)];
    let call = Call {
        op: &shape::COPY,
        inputs: &[Some(&summed)],
        attrs: &Attrs::none(),
        outs: &outs,
        dtype: None,
    };
    only(&shape::COPY, dispatch(&call)?)
}

/// The index arrays, copied to the device of `x` where needed; `None` if all are on it. Programs often create positions on the CPU.
fn on_device_of(x: &Array, arrays: &[Array]) -> Result<Option<Indices>> {
    if arrays.iter().all(|index| index.device() == x.device()) {
        return Ok(None);
    }
    let moved = arrays.iter().map(|index| index.to_device(x.device()));
    moved.collect::<Result<Indices>>().map(Some)
}

fn in_place(x: &Array, key: &[IndexItem], arrays: &[Array], value: &Array) -> Result<()> {
    if arrays.is_empty() {
        let at = x.layout().index(key)?.view;
        if is_written_already(x, &at, value) {
            return Ok(());
        }
        let view = x.seen_as(at);
        if let Some(number) = value.number()
            && !Flags::current().is_stacked()
            && !Flags::current().is_profiled()
            && cpu::try_fill(view.tensor(), &number)
        {
            return Ok(());
        }
        return shape::assign(&view, value);
    }
    if let ([IndexItem::Mask { shape }], [mask]) = (key, arrays)
        && value.len() == 1
        && value.ndim() == 0
        && !x.layout().may_self_overlap()
    {
        // A single value needs no positions: `where` writes it under the mask.
        x.layout().check_masks(key)?;
        let mut aligned = shape.clone();
        aligned.resize(x.ndim().max(shape.len()), 1);
        if aligned.len() == x.ndim() && mask.dtype() == DType::Bool {
            let value = value.detach().astype(x.dtype())?;
            let (mask, target) = (mask.detach().reshape(&aligned)?, x.detach());
            dispatch(&Call {
                op: &select::WHERE,
                inputs: &[Some(&mask), Some(&value), Some(&target)],
                attrs: &Attrs::none(),
                outs: &[Some(&target)],
                dtype: None,
            })?;
            return Ok(());
        }
    }
    if let Some((row, mask)) = flattened(x, key, arrays)? {
        let shape = Dims::from_slice(mask.shape());
        return in_place(&row, &[IndexItem::Mask { shape }], &[mask], value);
    }
    let mut canonical = canonical(x.layout(), key, arrays)?;
    for index in &mut canonical.indices {
        // Indices that overlap the array would change while it is written.
        if cpu::overlaps(x.tensor(), index.tensor()) {
            *index = index.copy()?;
        }
    }
    let value = broadcast_value(&value.detach(), &canonical.indexed, x)?;
    write(x, &canonical, &value)
}

/// [`in_place`] for an array whose elements share memory: writes to its memory, one position after the other.
fn in_place_by_element(
    x: &Array,
    key: &[IndexItem],
    arrays: &[Array],
    value: &Array,
) -> Result<()> {
    let Some((row, positions_row)) = spanned(x)? else {
        return in_place(x, key, arrays, value);
    };
    let (item, positions_row) = selected_positions(&positions_row, key, arrays)?;
    in_place(
        &row,
        &[item],
        &[positions_row.to_device(x.device())?],
        value,
    )
}

/// The memory range of an array as a 1-d array, and the positions of the array's elements in it. `None` if it has no elements.
pub(crate) fn spanned(x: &Array) -> Result<Option<(Array, Array)>> {
    let Some((low, high)) = x.layout().span() else {
        return Ok(None);
    };
    let len = high - low + 1;
    let start = x.layout().offset() - low;
    let numbers = crate::creation::arange(len, DType::I64)?;
    let layout = Layout::strided(x.shape(), x.layout().strides(), start)?;
    let row = x.seen_as(Layout::contiguous(&[len]).with_offset(low));
    Ok(Some((row, numbers.seen_as(layout))))
}

/// The positions that an expression selects, as an expression with one index array.
pub(crate) fn selected_positions(
    positions_row: &Array,
    key: &[IndexItem],
    arrays: &[Array],
) -> Result<(IndexItem, Array)> {
    let found = get(positions_row, key, arrays)?.contiguous()?;
    let shape = Dims::from_slice(found.shape());
    Ok((IndexItem::Array { shape }, found))
}

/// Writes a value that has the dtype of `x` and the shape of the indexed elements.
fn write(x: &Array, canonical: &Canonical, value: &Array) -> Result<()> {
    let value = if cpu::overlaps(x.tensor(), value.tensor()) {
        value.copy()?
    } else {
        value.clone()
    };
    let target = x.detach();
    // The array is also an input: an error of the operation that computed it must propagate, although only some elements are overwritten.
    let mut inputs: SmallVec<[Option<&Array>; 4]> =
        SmallVec::from_iter([Some(&target), Some(&value)]);
    inputs.extend(canonical.indices.iter().map(Some));
    let attrs: Attrs = [Value::Index(canonical.key.clone()), Value::Bool(false)]
        .into_iter()
        .collect();
    let call = Call {
        op: &INDEX_ASSIGN,
        inputs: &inputs,
        attrs: &attrs,
        outs: &[Some(&target)],
        dtype: None,
    };
    if Flags::current().is_stacked() {
        return dispatch(&call).map(drop);
    }
    let outputs = Outputs::from_iter([target.clone()]);
    let cost_ns = cost_ns(&call.context(), target.tensor().len_bytes());
    let kernel = Kernel::Fn(assign_kernel, None);
    launch(
        &call,
        &kernel_on(target.device(), &INDEX_ASSIGN, kernel)?,
        &outputs,
        0,
        cost_ns,
        target.device(),
    )
}

/// Converts `value` to the dtype of `x` and broadcasts it to the indexed shape. Copies it unless a single stride walks its positions.
fn broadcast_value(value: &Array, indexed: &Indexed, x: &Array) -> Result<Array> {
    let shape = indexed.shape();
    // NumPy drops leading axes of length 1.
    let extra = value.ndim().saturating_sub(shape.len());
    let value = match extra > 0 && value.shape()[..extra].iter().all(|&n| n == 1) {
        true => value.reshape(&value.shape()[extra..])?,
        false => value.clone(),
    };
    let value = value.astype(x.dtype())?.to_device(x.device())?;
    if value.layout().broadcast_to(&shape).is_err() {
        let problem = format!(
            "value of shape {} does not broadcast to the shape {} of the indexed elements",
            Tuple(value.shape()),
            Tuple(&shape)
        );
        return Err(Error::shape("assignment", problem));
    }
    let value = if value.shape() == shape.as_slice() {
        value
    } else {
        value.broadcast_to(&shape)?
    };
    let (axis, count) = positions_at(indexed);
    if single_step(value.layout(), axis, count).is_some() {
        Ok(value)
    } else {
        value.copy()
    }
}

/// A mask over several leading axes of a contiguous array, as a mask over one merged axis.
fn flattened(x: &Array, key: &[IndexItem], arrays: &[Array]) -> Result<Option<(Array, Array)>> {
    let ([IndexItem::Mask { shape }], [mask]) = (key, arrays) else {
        return Ok(None);
    };
    let k = shape.len();
    if k < 2 || mask.dtype() != DType::Bool || !x.layout().is_contiguous() {
        return Ok(None);
    }
    x.layout().check_masks(key)?;
    let mut merged = Dims::from_elem(mask.len(), 1);
    merged.extend_from_slice(&x.shape()[k..]);
    Ok(Some((x.reshape(&merged)?, mask.reshape(&[mask.len()])?)))
}

/// Checks arrays and masks and turns them into positions.
fn canonical(layout: &Layout, key: &[IndexItem], arrays: &[Array]) -> Result<Canonical> {
    layout.check_masks(key)?;
    let mut given = arrays.iter();
    let mut unique = true;
    // The key with index arrays in place of masks, and all index arrays.
    let mut items: SmallVec<[IndexItem; 4]> = SmallVec::new();
    let mut indices = Indices::new();
    // Index arrays whose values are still to be checked, and the axes they index.
    let mut unchecked: SmallVec<[(usize, usize); 4]> = SmallVec::new();
    let mut counts: SmallVec<[usize; 2]> = SmallVec::new();
    let consumed = |item: &IndexItem| match item {
        IndexItem::Int(_) | IndexItem::Slice { .. } | IndexItem::Array { .. } => 1,
        IndexItem::Mask { shape } => shape.len(),
        IndexItem::NewAxis | IndexItem::Ellipsis => 0,
    };
    let total: usize = key.iter().map(consumed).sum();
    let mut axis = 0;
    for item in key {
        match item {
            IndexItem::Array { .. } => {
                let index = next(&mut given)?;
                items.push(IndexItem::Array {
                    shape: Dims::from_slice(index.shape()),
                });
                indices.push(index.clone());
                unchecked.push((indices.len() - 1, axis));
                unique = false;
            }
            IndexItem::Mask { shape } => {
                let parts = nonzero::positions(next(&mut given)?)?;
                if shape.is_empty() {
                    let count = parts.shape()[1];
                    counts.push(count);
                    items.push(item.clone());
                    indices.push(zeros(&[count], DType::I64, parts.device())?);
                } else {
                    for part in 0..shape.len() {
                        let part = parts.index([IndexItem::Int(part as isize)].into())?;
                        items.push(IndexItem::Array {
                            shape: Dims::from_slice(part.shape()),
                        });
                        indices.push(part);
                    }
                }
            }
            other => items.push(other.clone()),
        }
        axis += match item {
            IndexItem::Ellipsis => layout.ndim() - total,
            other => consumed(other),
        };
    }
    let indexed = layout.index_counted(&items, &counts)?;
    if let Some(advanced) = &indexed.advanced {
        if advanced.shape.contains(&0) {
            // Nothing is selected: as in NumPy, the index values are not checked then.
            for index in &mut indices {
                *index = zeros(&advanced.shape, DType::I64, index.device())?;
            }
            unchecked.clear();
        }
        for (i, axis) in unchecked {
            indices[i] = resolved_or_unchanged(&indices[i], layout.shape()[axis], axis, "raise")?;
        }
        for index in &mut indices {
            if index.shape() != advanced.shape.as_slice() {
                *index = index.broadcast_to(&advanced.shape)?.contiguous()?;
            }
        }
        for item in &mut items {
            if let IndexItem::Array { shape } = item {
                shape.clone_from(&advanced.shape);
            }
        }
    }
    Ok(Canonical {
        key: items.into_vec().into(),
        indices,
        indexed,
        unique,
    })
}

fn next<'a>(given: &mut std::slice::Iter<'a, Array>) -> Result<&'a Array> {
    given
        .next()
        .ok_or_else(|| Error::internal("index", "an index array of the key was not given"))
}
