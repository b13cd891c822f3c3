//! Arguments and results of gradient rules.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use mxnet_tensor::{DType, Device};
use smallvec::SmallVec;

use crate::args::Args;
use crate::autograd::node::{Inputs, Node, Recorded, SavedArray, SavedAs, Spec};
use crate::error::{Error, Result};
use crate::opdef::{Grads, OpDef};
use crate::{Array, creation, methods};

/// One recorded call in the backward pass. Rules call operators on these arrays, so that gradients have gradients.
pub struct GradContext<'a> {
    /// The operator.
    pub op: &'static OpDef,
    /// Attributes of the call, by name.
    pub args: Args<'a>,
    /// Whether the call was made in training mode.
    pub training: bool,
    pub(crate) node: &'a Arc<Node>,
    pub(crate) call: &'a Recorded,
    pub(crate) inputs: SmallVec<[Option<SavedArray>; 2]>,
    pub(crate) outputs: SmallVec<[Option<SavedArray>; 1]>,
    pub(crate) dys: SmallVec<[Array; 1]>,
    pub(crate) given: u32,
    /// The input whose gradient is computed row-sparse.
    pub(crate) by_rows: Option<usize>,
    /// The error for a saved array that the rule read although it was overwritten.
    pub(crate) overwritten: Cell<Option<Error>>,
}

impl<'a> Deref for GradContext<'a> {
    type Target = Args<'a>;

    fn deref(&self) -> &Args<'a> {
        &self.args
    }
}

/// Rules read the arrays that their `Keep` names. Anything else is a defect of the operator's definition, which the first call finds.
const NOT_KEPT: &str = "gradient rules read only the arrays that their `Keep` names";

/// As [`NOT_KEPT`], for the shape of an absent input.
const NOT_GIVEN: &str = "rules ask only for inputs that were given";

impl GradContext<'_> {
    /// Cotangent of output `i`: zeros if none has arrived.
    pub fn dy(&self, i: usize) -> &Array {
        &self.dys[i]
    }

    /// Whether a cotangent has arrived at output `i`.
    pub fn has_dy(&self, i: usize) -> bool {
        self.given >> i & 1 == 1
    }

    /// Input `i`.
    ///
    /// # Panics
    /// If the operator's `Keep` does not name it, or if it was absent.
    pub fn input(&self, i: usize) -> &Array {
        self.intact(self.inputs[i].as_ref().expect(NOT_KEPT), SavedAs::Input(i))
    }

    /// Input `i`, if it was given.
    pub fn opt_input(&self, i: usize) -> Option<&Array> {
        let kept = self.inputs.get(i).and_then(Option::as_ref);
        kept.map(|kept| self.intact(kept, SavedAs::Input(i)))
    }

    /// Output `i`.
    ///
    /// # Panics
    /// If the operator's `Keep` does not name it.
    pub fn output(&self, i: usize) -> &Array {
        self.intact(
            self.outputs[i].as_ref().expect(NOT_KEPT),
            SavedAs::Output(i),
        )
    }

    /// The saved array. If it was overwritten, notes the error with which the pass ends. Saved arrays that a rule does not read may be overwritten.
    fn intact<'k>(&self, kept: &'k SavedArray, saved_as: SavedAs) -> &'k Array {
        if !kept.is_intact() {
            self.overwritten
                .set(Some(kept.overwritten(self.op.name, self.node, saved_as)));
        }
        kept.array()
    }

    /// Number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.node.outputs.len()
    }

    /// Number of inputs, absent ones included.
    pub fn num_inputs(&self) -> usize {
        self.node.edges.len()
    }

    /// Shape of input `i`.
    pub fn shape(&self, i: usize) -> &[usize] {
        self.spec(i).map_or(&[], |spec| &spec.shape)
    }

    /// Dtype of input `i`.
    pub fn dtype_of(&self, i: usize) -> DType {
        match (self.spec(i), self.call.number(i)) {
            (None, Some(value)) => Array::weak_dtype(value),
            (spec, _) => spec.expect(NOT_GIVEN).dtype,
        }
    }

    /// Device of input `i`.
    pub fn device_of(&self, i: usize) -> Device {
        self.spec(i).map_or(Device::cpu(0), |spec| spec.device)
    }

    /// Shape, dtype and device of input `i`; `None` for a Python number, which the node stores.
    fn spec(&self, i: usize) -> Option<&Spec> {
        match &self.call.inputs {
            Inputs::LikeOutput { .. } if self.call.number(i).is_some() => None,
            Inputs::LikeOutput { .. } => Some(&self.node.outputs[0]),
            Inputs::Each(specs) => Some(specs[i].as_ref().expect(NOT_GIVEN)),
        }
    }

    /// Whether a gradient with respect to input `i` is wanted.
    pub fn wants(&self, i: usize) -> bool {
        self.by_rows != Some(i) && self.node.edges.get(i).is_some_and(Option::is_some)
    }

    /// Whether input `i` is a variable with a row-sparse gradient.
    pub fn takes_rows(&self, i: usize) -> bool {
        let edge = self.node.edges.get(i).and_then(Option::as_ref);
        edge.and_then(|(node, index)| node.leaf(*index))
            .is_some_and(|leaf| leaf.is_row_sparse())
    }

    /// `gradient`, summed over the axes along which input `i` was broadcast, and converted to the input's dtype.
    ///
    /// # Errors
    /// What the sum reports.
    pub fn fitted(&self, gradient: Array, i: usize) -> Result<Array> {
        let gradient = methods::sum_to(&gradient, self.shape(i))?;
        if gradient.dtype() == self.dtype_of(i) {
            Ok(gradient)
        } else {
            gradient.astype(self.dtype_of(i))
        }
    }

    /// The gradients of an elementwise operator, one closure per input. Each is called only if its gradient is wanted; the result is summed over
    /// broadcast axes.
    ///
    /// # Errors
    /// What the computations report.
    pub fn elementwise(&self, rules: &[&dyn Fn() -> Result<Array>]) -> Result<Grads> {
        let grads = rules.iter().enumerate().map(|(i, rule)| {
            if self.wants(i) {
                self.fitted(rule()?, i).map(Some)
            } else {
                Ok(None)
            }
        });
        grads.collect()
    }

    /// The gradients of an elementwise operator with one output, from its partial derivatives: cotangent times the complex conjugate of each.
    ///
    /// # Errors
    /// What the computations report.
    pub fn slopes(&self, slopes: &[&dyn Fn() -> Result<Array>]) -> Result<Grads> {
        let grads = slopes.iter().enumerate().map(|(i, slope)| {
            if self.wants(i) {
                self.fitted(self.dy(0).mul(&slope()?.conj()?)?, i).map(Some)
            } else {
                Ok(None)
            }
        });
        grads.collect()
    }

    /// The gradient of an operator with one array input.
    ///
    /// # Errors
    /// Never; returns a `Result` because rules end with this call.
    pub fn one(&self, gradient: Array) -> Result<Grads> {
        Ok(SmallVec::from_iter([Some(gradient)]))
    }

    /// Attribute `name` as axes of input 0; `None` means all of them.
    ///
    /// # Errors
    /// None: the call itself has checked the axes.
    pub fn reduced_axes(&self, name: &str) -> Result<SmallVec<[usize; 4]>> {
        self.normal_axes(name, self.shape(0).len())
    }

    /// Zeros with the shape and dtype of input `i`.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn zeros(&self, i: usize) -> Result<Array> {
        creation::zeros(self.shape(i), self.dtype_of(i), self.device_of(i))
    }
}
