//! Streams of random numbers of their own.

use std::sync::Arc;

use mxnet::ops::random::{Generator, with_generator};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A stream of random numbers that functions can be told to draw from.
#[pyclass(frozen, module = "mxnet._core")]
pub struct RandomStream(Arc<Generator>);

#[pymethods]
impl RandomStream {
    /// The stream made of 32-bit words of entropy.
    #[new]
    fn new(entropy: Vec<u32>) -> RandomStream {
        RandomStream(Arc::new(Generator::from_entropy(&entropy)))
    }

    /// Key, next counter block, and how many streams were spawned.
    fn state(&self) -> (u64, u64, u64) {
        self.0.state()
    }

    /// Goes on from what `state` returned.
    fn set_state(&self, key: u64, counter: u64, spawned: u64) {
        self.0.set_state((key, counter, spawned));
    }

    /// A stream of another key.
    fn spawn(&self) -> RandomStream {
        RandomStream(Arc::new(self.0.spawn()))
    }

    /// Calls `function`; what it draws on this thread comes from this stream.
    #[pyo3(signature = (function, /, *args, **kwargs))]
    fn call<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_generator(&self.0, || function.call(args, kwargs))
    }
}
