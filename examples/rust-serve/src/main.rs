//! A small HTTP service that loads a network which Python exported and answers concurrent requests. There is no Python in the process.
//!
//! `rust-serve SYMBOL.json PARAMS [ADDRESS]`: ADDRESS is 127.0.0.1:8080 by default; port 0 takes a free one. The address is printed when the
//! service accepts connections. An interrupt or SIGTERM ends it when the running requests are answered.
//!
//! ```text
//! curl http://127.0.0.1:8080/model
//! curl -X POST http://127.0.0.1:8080/predict -H 'content-type: application/json' -d '{"inputs": [[[0.5, 1.0]]]}'
//! ```
//!
//! A body may also be a safetensors file with the arrays `0`, `1`, ..., of content type `application/safetensors`: the answer then is one, too. Numbers
//! need not be written as text and read again, which takes longer than a small network.

#![forbid(unsafe_code)]

use std::error::Error;

use mxnet::Graph;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

mod json;
mod service;

async fn stopped() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (symbol, params, address) = match &arguments[..] {
        [symbol, params] => (symbol, params, "127.0.0.1:8080"),
        [symbol, params, address] => (symbol, params, address.as_str()),
        _ => return Err("usage: rust-serve SYMBOL PARAMS [ADDRESS]".into()),
    };
    let graph = Graph::load(symbol, params)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on http://{}", listener.local_addr()?);
        axum::serve(listener, service::router(graph))
            .with_graceful_shutdown(stopped())
            .await?;
        Ok(())
    })
}
