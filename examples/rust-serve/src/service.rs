//! The routes: `/predict` runs the network, `/model` describes it, `/health` says that the service answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use mxnet::{Array, DType, Graph};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::json::{to_array, to_json};

/// Larger bodies are refused with status 413.
const MAX_BODY_BYTES: usize = 32 << 20;

/// Content type of a request whose body is a safetensors file with the inputs `0`, `1`, ...
const SAFETENSORS: &str = "application/safetensors";

/// What the handlers share. The graph is run by several threads at once and exists once.
struct Service {
    graph: Graph,
    /// One permit for each core: more runs at a time need memory and gain nothing.
    permits: Semaphore,
}

/// An answer whose body is JSON.
struct Json(Value);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (kind, self.0.to_string()).into_response()
    }
}

/// The result of a run, in the form of the request.
enum Answer {
    Json(Value),
    /// The bytes of a safetensors file with the outputs `0`, `1`, ...
    Binary(Vec<u8>),
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Answer::Json(value) => Json(value).into_response(),
            Answer::Binary(bytes) => ([(header::CONTENT_TYPE, SAFETENSORS)], bytes).into_response(),
        }
    }
}

/// An error as the client sees it: a status and `{"error": ...}`.
struct Failure(StatusCode, String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

fn bad_request(message: impl Into<String>) -> Failure {
    Failure(StatusCode::BAD_REQUEST, message.into())
}

fn internal(error: impl ToString) -> Failure {
    Failure(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// The `inputs` of a request: for each argument of the network its numbers, as nested lists.
fn inputs_of(body: &[u8]) -> Result<Vec<Value>, Failure> {
    let request = serde_json::from_slice(body);
    let request: Value =
        request.map_err(|error| bad_request(format!("the body is not JSON: {error}")))?;
    let Value::Object(mut fields) = request else {
        return Err(bad_request("the body must be an object with `inputs`"));
    };
    let inputs = fields.remove("inputs");
    if let Some(name) = fields.keys().next() {
        return Err(bad_request(format!(
            "unknown field `{name}`; there is `inputs`"
        )));
    }
    match inputs {
        Some(Value::Array(inputs)) => Ok(inputs),
        _ => Err(bad_request(
            "`inputs` must be a list with one item for each argument of the network",
        )),
    }
}

impl Service {
    /// Reads the request and runs the network. It takes a thread for the whole time.
    fn predict(&self, body: &[u8], is_binary: bool) -> Result<Answer, Failure> {
        let inputs = match is_binary {
            true => self.binary_inputs(body)?,
            false => self.json_inputs(body)?,
        };
        let inputs: Vec<&Array> = inputs.iter().collect();
        // Arguments of another shape are the only thing that a client can do wrong here.
        let results = self
            .graph
            .run(&inputs)
            .map_err(|error| bad_request(error.to_string()))?;
        if is_binary {
            let names: Vec<String> = (0..results.len()).map(|i| i.to_string()).collect();
            let named = names.iter().map(String::as_str).zip(&results);
            return Ok(Answer::Binary(mxnet::to_bytes(named).map_err(internal)?));
        }
        let outputs: mxnet::Result<Vec<Value>> = results.iter().map(to_json).collect();
        Ok(Answer::Json(
            json!({ "outputs": outputs.map_err(internal)? }),
        ))
    }

    fn json_inputs(&self, body: &[u8]) -> Result<Vec<Array>, Failure> {
        let given = inputs_of(body)?;
        self.check_count(given.len())?;
        let forms = given.iter().zip(self.graph.arguments()).enumerate();
        let arrays = forms.map(|(i, (value, (_, dtype)))| {
            to_array(value, dtype).map_err(|why| bad_request(format!("input {i}: {why}")))
        });
        arrays.collect()
    }

    fn binary_inputs(&self, body: &[u8]) -> Result<Vec<Array>, Failure> {
        let named = mxnet::from_bytes(body).map_err(|error| bad_request(error.to_string()))?;
        self.check_count(named.len())?;
        let mut named: HashMap<String, Array> = named.into_iter().collect();
        let forms = self.graph.arguments().into_iter().enumerate();
        let arrays = forms.map(|(i, (_, dtype))| {
            let array = named.remove(&i.to_string());
            let array = array.ok_or_else(|| bad_request(format!("there is no input `{i}`")))?;
            match array.dtype() == dtype {
                true => Ok(array),
                false => Err(bad_request(format!(
                    "input {i} must have dtype {dtype}, found {}",
                    array.dtype()
                ))),
            }
        });
        arrays.collect()
    }

    fn check_count(&self, found: usize) -> Result<(), Failure> {
        match self.graph.arguments().len() {
            takes if takes == found => Ok(()),
            takes => Err(bad_request(format!(
                "the network takes {takes} inputs, found {found}"
            ))),
        }
    }
}

async fn predict(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer, Failure> {
    let body = body.map_err(|rejected| Failure(rejected.status(), rejected.body_text()))?;
    let _permit = service.permits.acquire().await.map_err(internal)?;
    let running = Arc::clone(&service);
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()?.split(';').next());
    let is_binary = kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(SAFETENSORS));
    let answer = spawn_blocking(move || running.predict(&body, is_binary)).await;
    answer.map_err(internal)?
}

async fn model(State(service): State<Arc<Service>>) -> Json {
    let form = |(i, (shape, dtype)): (usize, (Vec<usize>, DType))| {
        // Null for an axis of any length.
        let dynamic = service.graph.dynamic_axes(i);
        let shape = shape.into_iter().enumerate();
        let shape: Vec<Option<usize>> = shape
            .map(|(axis, n)| (!dynamic.contains(&axis)).then_some(n))
            .collect();
        json!({"shape": shape, "dtype": dtype.to_string()})
    };
    let arguments = service.graph.arguments().into_iter().enumerate();
    let inputs: Vec<Value> = arguments.map(form).collect();
    Json(json!({ "inputs": inputs }))
}

/// The service for one network.
pub fn router(graph: Graph) -> Router {
    let cores = available_parallelism().map_or(1, usize::from);
    let permits = Semaphore::new(cores);
    Router::new()
        .route("/predict", post(predict))
        .route("/model", get(model))
        .route("/health", get(|| async { "ok" }))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Arc::new(Service { graph, permits }))
}
