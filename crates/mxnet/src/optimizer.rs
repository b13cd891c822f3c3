//! Update rules. An optimizer updates variables in place by their gradients, all of them in one call of an operator.

use mxnet_core::bind::Given;
use mxnet_core::{Error, Result};

use crate::autograd::without_recording;
use crate::{Array, call};

/// Updates variables by their gradients.
pub trait Optimizer {
    /// Makes one step. `variables` must be the same in every call.
    ///
    /// # Errors
    /// [`Error::Autograd`] if a variable has no gradient; [`Error::Value`] if the variables differ from those of earlier calls.
    fn step(&mut self, variables: &[&Array]) -> Result<()>;
}

/// Buffers with the shapes of the variables, initially zeros.
fn buffers<'a>(kept: &'a mut Vec<Array>, variables: &[&Array]) -> Result<&'a [Array]> {
    if kept.is_empty() {
        for x in variables {
            kept.push(Array::zeros(x.shape(), x.dtype())?.to_device(x.device())?);
        }
    }
    let are_same = kept.len() == variables.len()
        && kept
            .iter()
            .zip(variables)
            .all(|(y, x)| y.shape() == x.shape());
    match are_same {
        true => Ok(kept),
        false => {
            let problem = format!(
                "the variables differ in number or shape from the {} variables of the previous step",
                kept.len()
            );
            Err(Error::value("step", problem))
        }
    }
}

type Cores<'a> = Vec<Option<&'a mxnet_core::Array>>;

fn cores<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Cores<'a> {
    arrays.into_iter().map(|x| Some(x.as_ref())).collect()
}

/// Gradient descent, with momentum if that is not 0.
#[derive(Debug)]
pub struct Sgd {
    /// Step size.
    pub learning_rate: f64,
    /// Factor of the previous step.
    pub momentum: f64,
    /// Factor of the weights, which is added to the gradients.
    pub weight_decay: f64,
    moments: Vec<Array>,
}

impl Sgd {
    /// Gradient descent without momentum.
    pub fn new(learning_rate: f64) -> Sgd {
        Sgd::with_momentum(learning_rate, 0.0)
    }

    /// Gradient descent with momentum.
    pub fn with_momentum(learning_rate: f64, momentum: f64) -> Sgd {
        Sgd {
            learning_rate,
            momentum,
            weight_decay: 0.0,
            moments: Vec::new(),
        }
    }
}

impl Optimizer for Sgd {
    fn step(&mut self, variables: &[&Array]) -> Result<()> {
        let grads: Vec<Array> = variables.iter().map(|x| x.grad()).collect::<Result<_>>()?;
        let moments = buffers(&mut self.moments, variables)?;
        let (weights, grads, moments) = (
            cores(variables.iter().copied()),
            cores(&grads),
            cores(moments),
        );
        let rates = vec![self.learning_rate; variables.len()];
        let decays = vec![self.weight_decay; variables.len()];
        let lists = [&weights, &grads, &moments].map(|list| Given::Arrays(list));
        let named = [
            ("lrs", rates.as_slice().into()),
            ("wds", decays.as_slice().into()),
            ("momentum", self.momentum.into()),
        ];
        without_recording(|| call("sgd_update", &lists, &named)).map(drop)
    }
}

/// Adam. Source: Kingma and Ba, "Adam: a method for stochastic optimization", algorithm 1.
#[derive(Debug)]
pub struct Adam {
    /// Step size.
    pub learning_rate: f64,
    /// Decay rate of the running means of the gradients.
    pub beta1: f64,
    /// Decay rate of the running means of the squared gradients.
    pub beta2: f64,
    /// Added to the square root, for numerical stability.
    pub epsilon: f64,
    steps: i32,
    means: Vec<Array>,
    variances: Vec<Array>,
}

impl Adam {
    /// Adam with `beta1` 0.9 and `beta2` 0.999.
    pub fn new(learning_rate: f64) -> Adam {
        Adam {
            learning_rate,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            steps: 0,
            means: Vec::new(),
            variances: Vec::new(),
        }
    }
}

impl Optimizer for Adam {
    fn step(&mut self, variables: &[&Array]) -> Result<()> {
        let grads: Vec<Array> = variables.iter().map(|x| x.grad()).collect::<Result<_>>()?;
        let means = cores(buffers(&mut self.means, variables)?);
        let variances = cores(buffers(&mut self.variances, variables)?);
        let steps = self.steps + 1;
        // Bias correction of the running means, which start at zero, as a factor of the learning rate.
        let correction = (1.0 - self.beta2.powi(steps)).sqrt() / (1.0 - self.beta1.powi(steps));
        let rates = vec![self.learning_rate * correction; variables.len()];
        let (weights, grads) = (cores(variables.iter().copied()), cores(&grads));
        let lists = [&weights, &grads, &means, &variances].map(|list| Given::Arrays(list));
        let named = [
            ("lrs", rates.as_slice().into()),
            ("beta1", self.beta1.into()),
            ("beta2", self.beta2.into()),
            ("epsilon", self.epsilon.into()),
        ];
        without_recording(|| call("adam_update", &lists, &named))?;
        self.steps = steps;
        Ok(())
    }
}
