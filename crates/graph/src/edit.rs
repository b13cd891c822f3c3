//! Reading and changing graphs by code from outside, which names nodes and values by numbers. Each change is checked, so wrong numbers are errors.

use std::collections::HashMap;

use mxnet_core::serialised::{from_json as attrs_from_json, value_to_json};
use mxnet_core::{Attrs, Error, OpDef, ParamKind, Result, Rng, Value, registry};
use mxnet_tensor::Scalar;
use serde_json::{Map, Value as Json};

use crate::ir::{BufferId, Graph, Node, Operand, View};
use crate::verify;

/// An attribute of a new call.
#[derive(Clone, Debug, PartialEq)]
pub enum NewAttribute {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Real(f64),
    /// Text, or a word of a choice.
    Text(String),
    /// A value of another kind, as files of graphs write it.
    Json(String),
}

/// A call of an operator that is to be inserted.
pub struct NewCall<'a> {
    /// Name of the operator.
    pub op: &'a str,
    /// Its operands.
    pub inputs: Vec<Operand>,
    /// Its attributes; those that are missing get their defaults.
    pub attributes: Vec<(String, NewAttribute)>,
}

/// A graph that is being read and changed.
pub struct Editor {
    /// Without its nodes.
    graph: Graph,
    /// By number; `None`: removed.
    nodes: Vec<Option<Node>>,
    /// Numbers of the nodes in their order.
    order: Vec<usize>,
    /// By number.
    values: Vec<View>,
    of_buffer: HashMap<BufferId, Vec<usize>>,
}

#[cold]
fn wrong(problem: String) -> Error {
    Error::value("graph", problem)
}

fn op_called(name: &str) -> Result<&'static OpDef> {
    registry::find(name).ok_or_else(|| wrong(format!("there is no operator `{name}`")))
}

impl Editor {
    /// Starts to change a graph.
    pub fn new(mut graph: Graph) -> Editor {
        let nodes: Vec<Option<Node>> = std::mem::take(&mut graph.nodes)
            .into_iter()
            .map(Some)
            .collect();
        Editor {
            graph,
            order: (0..nodes.len()).collect(),
            nodes,
            values: Vec::new(),
            of_buffer: HashMap::new(),
        }
    }

    /// The changed graph, which may be inconsistent: callers must verify it.
    pub fn finish(mut self) -> Graph {
        let nodes = &mut self.nodes;
        self.graph.nodes = self.order.iter().filter_map(|&i| nodes[i].take()).collect();
        self.graph
    }

    /// Numbers of the nodes, in their order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// A node by its number.
    ///
    /// # Errors
    /// [`Error::Value`] if there is none.
    pub fn node(&self, node: usize) -> Result<&Node> {
        let found = self.nodes.get(node).and_then(Option::as_ref);
        found.ok_or_else(|| wrong(format!("there is no node {node}")))
    }

    /// A value by its number.
    ///
    /// # Errors
    /// [`Error::Value`] if there is none.
    pub fn value(&self, value: usize) -> Result<&View> {
        let found = self.values.get(value);
        found.ok_or_else(|| wrong(format!("there is no value {value}")))
    }

    /// The number of a view.
    pub fn number_of(&mut self, view: &View) -> usize {
        let of_buffer = self.of_buffer.entry(view.buffer).or_default();
        if let Some(&known) = of_buffer.iter().find(|&&i| self.values[i] == *view) {
            return known;
        }
        self.values.push(view.clone());
        of_buffer.push(self.values.len() - 1);
        self.values.len() - 1
    }

    /// Numbers of the inputs' values.
    pub fn inputs(&mut self) -> Vec<usize> {
        let views: Vec<View> = self.graph.inputs.iter().map(|x| x.view.clone()).collect();
        views.iter().map(|view| self.number_of(view)).collect()
    }

    /// Numbers of the results.
    pub fn results(&mut self) -> Vec<usize> {
        let views = self.graph.outputs.clone();
        views.iter().map(|view| self.number_of(view)).collect()
    }

    /// Whether a node changes a part of a buffer. Such nodes cannot be replaced.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such node.
    pub fn writes_in_place(&self, node: usize) -> Result<bool> {
        let node = self.node(node)?;
        Ok(node.is_assignment || !node.versions.is_empty())
    }

    /// The node that defines the buffer of a value; `None` for inputs.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such value.
    pub fn producer(&self, value: usize) -> Result<Option<usize>> {
        let buffer = self.value(value)?.buffer;
        let mut order = self.order.iter().copied();
        Ok(order.find(|&i| {
            let node = self.nodes[i].as_ref();
            node.is_some_and(|node| node.defines().any(|defined| defined == buffer))
        }))
    }

    /// The nodes that read the buffer of a value.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such value.
    pub fn readers(&self, value: usize) -> Result<Vec<usize>> {
        let buffer = self.value(value)?.buffer;
        let order = self.order.iter().copied();
        let reads = |&i: &usize| {
            let node = self.nodes[i].as_ref();
            node.is_some_and(|node| node.reads().any(|read| read == buffer))
        };
        Ok(order.filter(reads).collect())
    }

    /// Whether the graph's results, or arrays that it writes, have the buffer of a value.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such value.
    pub fn is_result(&self, value: usize) -> Result<bool> {
        let buffer = self.value(value)?.buffer;
        Ok(self.graph.results().any(|result| result == buffer))
    }

    /// An attribute of a node; `None` if its operator has none of this name.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such node.
    pub fn attribute(&self, node: usize, name: &str) -> Result<Option<&Value>> {
        Ok(self.node(node)?.attribute(name))
    }

    /// Inserts a call before a node, or at the end. Its outputs are new buffers, with shapes and dtypes by the operator's rules. It runs in the mode
    /// (training or inference) of that node; at the end in that of the last node, or for inference if there is none.
    ///
    /// # Errors
    /// [`Error::Value`] for unknown nodes, operators and attributes, and for operators that draw random numbers or change operands; errors of the
    /// operator's rules.
    pub fn insert(&mut self, before: Option<usize>, call: NewCall<'_>) -> Result<usize> {
        let at = match before {
            None => self.order.len(),
            Some(node) => self.position_of(node)?,
        };
        let neighbour = before.or(self.order.last().copied());
        let training = match neighbour {
            None => false,
            Some(node) => self.node(node)?.training,
        };
        let mut node = self.new_node(call, training)?;
        for y in verify::infer(&self.graph, &node)? {
            let len_bytes = y.len() * y.dtype().size();
            let device = self.device();
            node.outputs.push(View {
                buffer: self.graph.add_buffer(len_bytes, device),
                layout: y.layout().clone(),
                dtype: y.dtype(),
                is_read_only: false,
            });
        }
        self.nodes.push(Some(node));
        self.order.insert(at, self.nodes.len() - 1);
        Ok(self.nodes.len() - 1)
    }

    /// Replaces the call that computes the outputs of a node.
    ///
    /// # Errors
    /// As [`Editor::insert`]; [`Error::Shape`] if it makes other outputs, [`Error::Value`] if the node changes a part of a buffer.
    pub fn replace(&mut self, node: usize, call: NewCall<'_>) -> Result<()> {
        let old = self.node(node)?;
        if self.writes_in_place(node)? {
            let problem = format!(
                "`{}` changes a part of a buffer and cannot be replaced",
                old.op.name
            );
            return Err(wrong(problem));
        }
        let (outputs, line, caller) = (old.outputs.clone(), old.line.clone(), old.caller);
        let mut new = self.new_node(call, old.training)?;
        let found = verify::infer(&self.graph, &new)?;
        if !verify::has_outputs(&found, &outputs) {
            let problem = format!(
                "`{}` makes {}, the node it replaces {}",
                new.op.name,
                verify::describe_arrays(&found),
                verify::describe_views(&outputs)
            );
            return Err(Error::shape("graph", problem));
        }
        (new.outputs, new.line, new.caller) = (outputs, line, caller);
        self.nodes[node] = Some(new);
        Ok(())
    }

    /// Replaces an operand of a node.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such operand.
    pub fn set_input(&mut self, node: usize, index: usize, operand: Operand) -> Result<()> {
        self.node(node)?;
        if self.writes_in_place(node)? {
            return Err(wrong(format!("node {node} changes a part of a buffer")));
        }
        let inputs = self.nodes[node].as_mut().map(|node| &mut node.inputs);
        match inputs.and_then(|inputs| inputs.get_mut(index)) {
            Some(entry) => {
                *entry = operand;
                Ok(())
            }
            None => Err(wrong(format!("node {node} has no operand {index}"))),
        }
    }

    /// Makes all nodes and results that read the value `old` read `new` instead.
    ///
    /// Results of a graph have memory of their own and the strides that the function gave them. So if `old` is a result, `new` must not share its
    /// buffer with an input, with another result or with an array that the graph changes, and must have the layout of `old`. A `copy` of `new` can
    /// take the place of such a result.
    ///
    /// # Errors
    /// [`Error::Value`] for unknown values, for results as above, and if a node that changes an operand reads `old`; [`Error::Shape`] if the values
    /// have other shapes or dtypes, or a node would compute other outputs from `new`. Nothing is replaced then.
    pub fn replace_value(&mut self, old: usize, new: usize) -> Result<()> {
        let (old, new) = (self.value(old)?.clone(), self.value(new)?.clone());
        if old.layout.shape() != new.layout.shape() || old.dtype != new.dtype {
            let problem = format!(
                "a value of {} cannot take the place of one of {}",
                verify::describe_views(std::slice::from_ref(&new)),
                verify::describe_views(std::slice::from_ref(&old))
            );
            return Err(Error::shape("graph", problem));
        }
        if old == new {
            return Ok(());
        }
        self.check_result(&old, &new)?;
        let mut changed = Vec::new();
        for &i in &self.order {
            let Some(node) = &self.nodes[i] else { continue };
            if !node
                .inputs
                .iter()
                .any(|operand| operand.view() == Some(&old))
            {
                continue;
            }
            if !node.is_assignment && !node.versions.is_empty() {
                let problem = format!("`{}` changes an operand and reads the value", node.op.name);
                return Err(wrong(problem));
            }
            let mut node = node.clone();
            for operand in &mut node.inputs {
                if operand.view() == Some(&old) {
                    *operand = Operand::View(new.clone());
                }
            }
            if !node.is_assignment && old.layout != new.layout {
                let found = verify::infer(&self.graph, &node)?;
                if !verify::has_outputs(&found, &node.outputs) {
                    let problem = format!(
                        "`{}` would make {} instead of {}",
                        node.op.name,
                        verify::describe_arrays(&found),
                        verify::describe_views(&node.outputs)
                    );
                    return Err(Error::shape("graph", problem));
                }
            }
            changed.push((i, node));
        }
        for (i, node) in changed {
            self.nodes[i] = Some(node);
        }
        for output in &mut self.graph.outputs {
            if *output == old {
                *output = new.clone();
            }
        }
        Ok(())
    }

    /// Whether `new` can take the place of `old` among the results.
    fn check_result(&self, old: &View, new: &View) -> Result<()> {
        if !self.graph.outputs.contains(old) {
            return Ok(());
        }
        let mut others = self.graph.outputs.iter().filter(|other| *other != old);
        let mut inputs = self.graph.inputs.iter();
        let shared_with = if self.graph.input_of(new.buffer).is_some() {
            "an input"
        } else if others.any(|other| other.buffer == new.buffer) {
            "another result"
        } else if inputs.any(|input| input.written == Some(new.buffer)) {
            "an array that the graph changes"
        } else if new.layout != old.layout || new.is_read_only != old.is_read_only {
            let described = |view: &View| {
                let access = if view.is_read_only {
                    "read-only"
                } else {
                    "writable"
                };
                format!(
                    "{access} {}",
                    verify::describe_views(std::slice::from_ref(view))
                )
            };
            let problem = format!(
                "a result is {}, the value is {}: insert a `copy`",
                described(old),
                described(new)
            );
            return Err(wrong(problem));
        } else {
            return Ok(());
        };
        let problem = format!(
            "a result must have memory of its own, but the value shares buffer {} with {shared_with}: insert a `copy`",
            new.buffer.0
        );
        Err(wrong(problem))
    }

    /// Removes a node.
    ///
    /// # Errors
    /// [`Error::Value`] if there is none, or if its outputs are read.
    pub fn remove(&mut self, node: usize) -> Result<()> {
        let at = self.position_of(node)?;
        let gone = self.node(node)?;
        let others = self.order.iter().filter(|&&i| i != node);
        let others = others.filter_map(|&i| self.nodes[i].as_ref());
        let read: Vec<BufferId> = others
            .flat_map(Node::reads)
            .chain(self.graph.results())
            .collect();
        if let Some(buffer) = gone.defines().find(|buffer| read.contains(buffer)) {
            let problem = format!(
                "the graph reads buffer {}, which `{}` makes: it cannot be removed",
                buffer.0, gone.op.name
            );
            return Err(wrong(problem));
        }
        self.nodes[node] = None;
        self.order.remove(at);
        Ok(())
    }

    fn position_of(&self, node: usize) -> Result<usize> {
        let found = self.order.iter().position(|&i| i == node);
        found.ok_or_else(|| wrong(format!("there is no node {node}")))
    }

    fn device(&self) -> mxnet_tensor::Device {
        let first = self.graph.buffers.first();
        first.map_or(mxnet_tensor::Device::cpu(0), |buffer| buffer.device)
    }

    /// The node of a call, without outputs.
    fn new_node(&self, call: NewCall<'_>, training: bool) -> Result<Node> {
        let op = op_called(call.op)?;
        if !matches!(op.rng, Rng::No) {
            let problem = format!("`{}` draws random numbers, a pass cannot add it", op.name);
            return Err(wrong(problem));
        }
        if let Some(&changed) = op.mutates.first() {
            let name = op
                .array_params()
                .nth(changed)
                .map_or("", |param| param.name);
            let problem = format!(
                "`{}` changes its operand `{name}`, a pass cannot add it",
                op.name
            );
            return Err(wrong(problem));
        }
        Ok(Node {
            op,
            attrs: attributes(op, call.attributes)?,
            inputs: call.inputs.into_iter().collect(),
            outputs: Default::default(),
            versions: Default::default(),
            dtype: None,
            training,
            is_assignment: false,
            rng_block: 0,
            rng_stream: 0,
            caller: None,
            line: None,
            scope: Default::default(),
            is_backward: false,
        })
    }
}

/// Checked attributes of a call.
fn attributes(op: &'static OpDef, given: Vec<(String, NewAttribute)>) -> Result<Attrs> {
    let mut entries = Map::new();
    for (name, value) in given {
        let param = op.params.iter().find(|param| param.name == name);
        let is_scalar = param.is_some_and(|param| param.kind == ParamKind::Scalar);
        let text = match value {
            NewAttribute::None => value_to_json(&Value::None),
            NewAttribute::Bool(x) if is_scalar => value_to_json(&Value::Scalar(Scalar::Bool(x))),
            NewAttribute::Bool(x) => value_to_json(&Value::Bool(x)),
            NewAttribute::Int(x) if is_scalar => value_to_json(&Value::Scalar(Scalar::I64(x))),
            NewAttribute::Int(x) => value_to_json(&Value::Int(x)),
            NewAttribute::Real(x) if is_scalar => value_to_json(&Value::Scalar(Scalar::F64(x))),
            NewAttribute::Real(x) => value_to_json(&Value::Float(x)),
            NewAttribute::Text(x) => value_to_json(&Value::Str(x.into())),
            NewAttribute::Json(text) => text,
        };
        let json: Json = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("attribute `{name}` of `{}`: {error}", op.name)))?;
        entries.insert(name, json);
    }
    attrs_from_json(op, &Json::Object(entries).to_string())
}
