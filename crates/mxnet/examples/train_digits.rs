//! Trains a network of two dense layers on handwritten digits, saves it, and loads it again.
//!
//! `train_digits DIGITS.safetensors NETWORK.safetensors`: the first file has `images` (n, 64), float32 from 0 to 1, and `labels` (n,), int64. The
//! last fifth is the test set. `python -m mxnet.demo` uses the same digits.

use std::error::Error;

use mxnet::optimizer::{Adam, Optimizer};
use mxnet::{Array, DType, load, random, record, save};

const BATCH: i64 = 64;
const EPOCHS: usize = 15;

/// Weights and biases of two layers.
struct Network {
    parameters: Vec<(&'static str, Array)>,
}

impl Network {
    fn new(inputs: usize, hidden: usize, outputs: usize) -> mxnet::Result<Network> {
        let layer = |from: usize, to: usize| -> mxnet::Result<(Array, Array)> {
            // He initialisation.
            let deviation = (2.0 / from as f64).sqrt();
            let weight = random::normal(0.0, deviation, &[from, to], DType::F32)?;
            Ok((weight, Array::zeros(&[to], DType::F32)?))
        };
        let ((w1, b1), (w2, b2)) = (layer(inputs, hidden)?, layer(hidden, outputs)?);
        let mut parameters = vec![("w1", w1), ("b1", b1), ("w2", w2), ("b2", b2)];
        for (_, x) in &mut parameters {
            x.attach_grad()?;
        }
        Ok(Network { parameters })
    }

    fn variables(&self) -> Vec<&Array> {
        self.parameters.iter().map(|(_, x)| x).collect()
    }

    fn scores(&self, images: &Array) -> mxnet::Result<Array> {
        let [w1, b1, w2, b2] = self.variables()[..] else {
            return Array::zeros(&[0], DType::F32);
        };
        let hidden = (images.matmul(w1) + b1)?.relu()?;
        hidden.matmul(w2) + b2
    }
}

/// Mean cross entropy: the negative logarithm of the probability of the right class.
fn loss(scores: &Array, labels: &Array) -> mxnet::Result<Array> {
    -&scores.log_softmax(-1)?.pick(labels)?.mean()?
}

fn accuracy(network: &Network, images: &Array, labels: &Array) -> mxnet::Result<f64> {
    let predicted = network.scores(images)?.argmax(-1)?;
    predicted.equal(labels)?.astype(DType::F32)?.mean()?.item()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args().skip(1);
    let (Some(digits), Some(target)) = (paths.next(), paths.next()) else {
        return Err("usage: train_digits DIGITS.safetensors NETWORK.safetensors".into());
    };
    let all = load(&digits)?;
    let find = |name: &str| {
        let found = all.iter().find(|(known, _)| known == name);
        found
            .map(|(_, x)| x)
            .ok_or(format!("{digits} has no array `{name}`"))
    };
    let (images, labels) = (find("images")?, find("labels")?);
    let num_train = images.shape()[0] as i64 * 4 / 5;
    let (train, test) = (images.at(..num_train)?, images.at(num_train..)?);
    let (train_labels, test_labels) = (labels.at(..num_train)?, labels.at(num_train..)?);

    random::seed(1);
    let network = Network::new(64, 64, 10)?;
    let mut optimizer = Adam::new(3e-3);
    for epoch in 0..EPOCHS {
        let mut last = 0.0;
        for start in (0..num_train - BATCH).step_by(BATCH as usize) {
            let batch = start..start + BATCH;
            let (x, y) = (train.at(batch.clone())?, train_labels.at(batch)?);
            let value = record(|| loss(&network.scores(&x)?, &y))?;
            value.backward()?;
            optimizer.step(&network.variables())?;
            last = value.item()?;
        }
        println!("epoch {epoch}: loss {last:.4}");
    }
    let found = accuracy(&network, &test, &test_labels)?;
    println!("accuracy: {found:.4}");

    save(
        &target,
        network.parameters.iter().map(|(name, x)| (*name, x)),
    )?;
    let back = load(&target)?;
    let same = back.iter().all(|(name, x)| {
        let ours = network.parameters.iter().find(|(known, _)| known == name);
        ours.is_some_and(|(_, y)| x.to_vec::<f32>().ok() == y.to_vec::<f32>().ok())
    });
    println!("loaded as saved: {same}");
    Ok(())
}
