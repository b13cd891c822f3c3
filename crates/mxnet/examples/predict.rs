//! Loads a network that Python exported and calls it from several threads. There is no Python in the process.
//!
//! `predict SYMBOL.json PARAMS INPUTS.safetensors OUTPUTS.safetensors [THREADS [CALLS]]`: INPUTS has the arguments under the names "0", "1", ...;
//! the results are written to OUTPUTS under such names. Every thread makes CALLS calls; all must give the same bits.

use std::error::Error;
use std::time::Instant;

use mxnet::{Array, Graph, load, save};

fn bits(results: &[Array]) -> mxnet::Result<Vec<Vec<u8>>> {
    let bytes = |x: &Array| Ok(x.as_ref().contiguous()?.read()?.bytes().to_vec());
    results.iter().map(bytes).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [symbol, params, inputs, outputs, rest @ ..] = &arguments[..] else {
        return Err("usage: predict SYMBOL PARAMS INPUTS OUTPUTS [THREADS [CALLS]]".into());
    };
    let number = |i: usize| rest.get(i).map_or(Ok(1), |text| text.parse::<usize>());
    let (threads, calls) = (number(0)?, number(1)?);
    let graph = Graph::load(symbol, params)?;
    let mut given = load(inputs)?;
    given.sort_by_key(|(name, _)| name.parse::<usize>().unwrap_or(usize::MAX));
    let given: Vec<&Array> = given.iter().map(|(_, x)| x).collect();
    let results = graph.run(&given)?;
    let expected = bits(&results)?;
    let start = Instant::now();
    let wrong = std::thread::scope(|scope| {
        let call = || {
            let is_wrong = |_: &usize| {
                let found = graph.run(&given).and_then(|results| bits(&results));
                !found.is_ok_and(|found| found == expected)
            };
            (0..calls).filter(is_wrong).count()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(call)).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or(calls))
            .sum::<usize>()
    });
    let total = threads * calls;
    println!(
        "{total} calls, {wrong} with another result, {:.3} s",
        start.elapsed().as_secs_f64()
    );
    let named: Vec<String> = (0..results.len()).map(|i| i.to_string()).collect();
    save(outputs, named.iter().map(String::as_str).zip(&results))?;
    match wrong {
        0 => Ok(()),
        _ => Err("results differ".into()),
    }
}
