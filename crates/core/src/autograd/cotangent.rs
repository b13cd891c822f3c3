//! Cotangents: a dense array, or some rows of an array whose other rows are zero.

use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Value};
use crate::builtins::builtins;
use crate::error::{Error, Result};
use crate::invoke::{invoke, invoke1};

/// A row-sparse array: some rows of an array of `shape`, the others are zero. It is a list of parts: row `indices[k]` has the value `data[k]`. A row
/// that occurs several times has the sum of its values.
#[derive(Clone)]
pub struct RowSparse {
    shape: Dims,
    /// Indices and data of each part. Adding two cotangents appends parts and sums nothing.
    parts: SmallVec<[(Array, Array); 1]>,
}

impl RowSparse {
    /// Rows of an array of `shape`: `indices` are int64 of shape (k,), `data` has the shape (k, ...).
    ///
    /// # Errors
    /// [`Error::Internal`] if the parts are not of these shapes.
    pub fn new(indices: Array, data: Array, shape: &[usize]) -> Result<RowSparse> {
        let fits = indices.dtype() == DType::I64
            && indices.ndim() == 1
            && data.shape().first() == indices.shape().first()
            && data.shape().get(1..) == shape.get(1..);
        if !fits {
            return Err(Error::internal(
                "row_sparse",
                format!(
                    "rows of shape {} at {} indices do not fit shape {}",
                    crate::Tuple(data.shape()),
                    indices.len(),
                    crate::Tuple(shape)
                ),
            ));
        }
        Ok(RowSparse {
            shape: Dims::from_slice(shape),
            parts: SmallVec::from_iter([(indices, data)]),
        })
    }

    /// No rows of an array with the shape and dtype of `like`.
    ///
    /// # Errors
    /// [`Error::Shape`] if it has no axis; [`Error::Memory`].
    pub fn empty(like: &Array) -> Result<RowSparse> {
        if like.ndim() == 0 {
            return Err(Error::shape(
                "attach_grad",
                "a 0-d array has no rows, so its gradient cannot be row-sparse",
            )
            .with_hint("leave `stype` out for a dense gradient"));
        }
        let mut shape = Dims::from_slice(like.shape());
        shape[0] = 0;
        let indices = crate::creation::zeros(&[0], DType::I64, like.device())?;
        let data = crate::creation::zeros(&shape, like.dtype(), like.device())?;
        RowSparse::new(indices, data, like.shape())
    }

    /// Every row of `x`.
    fn all_of(x: &Array) -> Result<RowSparse> {
        let indices: Vec<i64> = (0..x.shape()[0] as i64).collect();
        let indices = Array::from_slice(&indices, &[indices.len()])?.to_device(x.device())?;
        RowSparse::new(indices, x.clone(), x.shape())
    }

    /// Shape of the whole array.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Dtype of the values.
    pub fn dtype(&self) -> DType {
        self.parts[0].1.dtype()
    }

    /// Indices and values of the first part, which is the only one after [`RowSparse::summed`].
    pub(crate) fn part(&self) -> &(Array, Array) {
        &self.parts[0]
    }

    /// The sum of both, not computed: the rows of both in one list.
    pub(crate) fn join(mut self, others: RowSparse) -> RowSparse {
        self.parts.extend(others.parts);
        self
    }

    fn astype(mut self, dtype: DType) -> Result<RowSparse> {
        for (_, data) in &mut self.parts {
            if data.dtype() != dtype {
                *data = data.astype(dtype)?;
            }
        }
        Ok(self)
    }

    /// The indices and the values of all parts, each concatenated to one array.
    fn joined(&self) -> Result<(Array, Array)> {
        if let [(indices, data)] = self.parts.as_slice() {
            return Ok((indices.clone(), data.clone()));
        }
        let join = |arrays: SmallVec<[&Array; 4]>| {
            let attrs = [Value::Int(0), Value::None, Value::Word("same_kind")];
            invoke1(
                builtins().concatenate,
                &arrays,
                &attrs.into_iter().collect(),
            )
        };
        let indices = join(self.parts.iter().map(|(indices, _)| indices).collect())?;
        let data = join(self.parts.iter().map(|(_, data)| data).collect())?;
        Ok((indices, data))
    }

    /// Ascending indices without duplicates, and the sum of the values of each.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn summed(&self) -> Result<(Array, Array)> {
        let (indices, data) = self.joined()?;
        let mut parts = invoke(
            builtins().row_sparse_sum,
            &[&indices, &data],
            &Attrs::none(),
        )?
        .into_iter();
        match (parts.next(), parts.next()) {
            (Some(indices), Some(data)) => Ok((indices, data)),
            _ => Err(Error::internal(
                "row_sparse_sum",
                "two outputs were expected",
            )),
        }
    }

    /// The whole array, zeros included.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn to_dense(&self) -> Result<Array> {
        let (indices, data) = self.joined()?;
        let attrs: Attrs = [Value::Int(self.shape[0] as i64)].into_iter().collect();
        invoke1(builtins().row_sparse_to_dense, &[&indices, &data], &attrs)
    }
}

/// What flows back along an edge of the graph.
#[derive(Clone)]
pub(crate) enum Cotangent {
    /// An array of all elements.
    Dense(Array),
    /// Some rows; the others are zero.
    Rows(Box<RowSparse>),
}

impl Cotangent {
    pub fn shape(&self) -> &[usize] {
        match self {
            Cotangent::Dense(x) => x.shape(),
            Cotangent::Rows(rows) => rows.shape(),
        }
    }

    pub fn astype(self, dtype: DType) -> Result<Cotangent> {
        Ok(match self {
            Cotangent::Dense(x) if x.dtype() == dtype => Cotangent::Dense(x),
            Cotangent::Dense(x) => Cotangent::Dense(x.astype(dtype)?),
            Cotangent::Rows(rows) => Cotangent::Rows(Box::new(rows.astype(dtype)?)),
        })
    }

    /// The sum. Two row-sparse cotangents give a row-sparse one; with a dense one the sum is dense.
    pub fn add(self, other: Cotangent) -> Result<Cotangent> {
        Ok(match (self, other) {
            (Cotangent::Rows(a), Cotangent::Rows(b)) => Cotangent::Rows(Box::new(a.join(*b))),
            (a, b) => Cotangent::Dense(a.into_dense()?.add(&b.into_dense()?)?),
        })
    }

    /// As a dense array.
    pub fn into_dense(self) -> Result<Array> {
        match self {
            Cotangent::Dense(x) => Ok(x),
            Cotangent::Rows(rows) => rows.to_dense(),
        }
    }

    /// As rows: a dense array becomes all rows.
    pub fn into_rows(self) -> Result<RowSparse> {
        match self {
            Cotangent::Dense(x) => RowSparse::all_of(&x),
            Cotangent::Rows(rows) => Ok(*rows),
        }
    }
}
