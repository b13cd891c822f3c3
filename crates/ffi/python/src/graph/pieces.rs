//! Graphs in pieces, for functions in which shapes depend on values.

use std::sync::Arc;

use mxnet::core::autograd::{self as tape};
use mxnet::core::{Array, Error, Outputs, Result, mode};
use mxnet::graph::{Program, RunDraws, Source};

use super::compiled::{Backward, Binding, RecordedCall, bound_array};
use super::traced::TracedFunction;

/// A function whose graph is in pieces.
pub struct SplitFunction {
    program: Program,
    traced: TracedFunction,
    /// What each input is bound to; `None` for constants and cotangents.
    bindings: Vec<Option<Binding>>,
}

impl SplitFunction {
    /// A function from a program and its trace.
    pub fn new(program: Program, traced: TracedFunction) -> SplitFunction {
        let inputs = program.template().traced().inputs.iter();
        let binding = |source: &Source| match source {
            Source::Argument(i) if *i >= traced.num_arguments => None,
            source => traced.binding(source),
        };
        SplitFunction {
            bindings: inputs.map(|input| binding(&input.source)).collect(),
            program,
            traced,
        }
    }

    /// Whether the values that the function read during tracing are unchanged.
    pub fn is_current(&self) -> bool {
        self.traced.is_current()
    }

    /// The number of pieces.
    pub fn num_pieces(&self) -> usize {
        self.program.num_pieces()
    }

    /// Storages of the arrays that the function captured.
    pub fn captured_storages(&self) -> Vec<usize> {
        let found = self.bindings.iter().filter_map(|binding| match binding {
            Some(Binding::Array(x)) => Some(Arc::as_ptr(x.tensor().storage()) as usize),
            _ => None,
        });
        found.collect()
    }

    /// Whether an argument shares its storage with an array that the function captured, and one of them is written.
    pub fn meets_captured(&self, arguments: &[&Array]) -> bool {
        let inputs = &self.program.template().traced().inputs;
        let bound = || self.bindings.iter().zip(inputs);
        let writes_argument = bound().any(|(binding, input)| {
            matches!(binding, Some(Binding::Argument(_))) && input.written.is_some()
        });
        bound().any(|(binding, input)| {
            let Some(Binding::Array(x)) = binding else {
                return false;
            };
            let same = |y: &&Array| Arc::ptr_eq(x.tensor().storage(), y.tensor().storage());
            (writes_argument || input.written.is_some()) && arguments.iter().any(same)
        })
    }

    /// Runs the pieces; records the call if gradients are recorded. `None` if the run failed without changing anything: the caller then calls the
    /// function itself, which reports the error or succeeds.
    ///
    /// # Errors
    /// Errors of operators.
    pub fn run(&self, arguments: &[&Array], sizes: &[i64]) -> Result<Option<Outputs>> {
        let bound = |binding: &Option<Binding>| -> Option<Array> {
            match binding.as_ref()? {
                Binding::Argument(i) => Some(arguments[*i].clone()),
                Binding::Array(x) => Some(x.clone()),
                Binding::Gradient(leaf) => Some(leaf.gradient()),
                Binding::GradientOf(i) => {
                    tape::gradient_of(arguments[*i]).map(|leaf| leaf.gradient())
                }
            }
        };
        let held: Vec<Option<Array>> = self.bindings.iter().map(bound).collect();
        let finished = {
            let _paused = mode::Scope::enter(false, mode::is_training());
            match self
                .program
                .run(sizes, &|i| held[i].as_ref().map(Array::detach))
            {
                Ok(finished) => finished,
                Err((_, true)) => return Ok(None),
                Err((error, false)) => return Err(error),
            }
        };
        let mut outputs = finished.outputs;
        let Some(executable) = finished.backward else {
            return Ok(Some(outputs));
        };
        let variables: Vec<&Array> = (self.traced.variables.iter())
            .map(|x| x.argument.map_or(&x.array, |i| arguments[i]))
            .collect();
        let bindings = self.bindings.iter().zip(&held);
        let placed = bindings.filter_map(|(binding, array)| match binding {
            Some(Binding::Array(_)) => Some(bound_array(array.as_ref()?, &variables)),
            _ => array.clone(),
        });
        let rule = Backward {
            residuals: finished.residuals,
            executable,
            call: RecordedCall {
                forward: finished.graph.clone(),
                bindings: placed.collect(),
                random: RunDraws {
                    of_process: finished.random,
                    own: Vec::new(),
                },
                heads: self.traced.heads.clone(),
                variables: variables.iter().map(|&x| x.clone()).collect(),
                training: mode::is_training(),
            },
        };
        let heads = &self.traced.heads;
        let found: Vec<Array> = heads.iter().map(|&i| outputs[i].clone()).collect();
        let name = &finished.graph.name;
        let recorded = tape::record_custom(name, &variables, found, |_| true, Box::new(rule))?;
        for (&i, y) in heads.iter().zip(recorded) {
            *outputs
                .get_mut(i)
                .ok_or_else(|| Error::internal("jit", "a result is missing"))? = y;
        }
        Ok(Some(outputs))
    }
}
