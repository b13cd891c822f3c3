"""Drawings of graphs as Graphviz text and as SVG."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from mxnet import _core
from mxnet._atomic_file import write_atomically
from mxnet._graph_view import TracedGraph
from mxnet.base import PathLike

__all__ = ["plot", "view"]

# Sizes in pixels: of a character, of a box, and of the gaps between boxes and layers.
_CHARACTER, _HEIGHT, _GAP, _LAYER = 6.7, 34, 18, 64


def view(source: Any) -> TracedGraph:
    """A compiled graph as an object with nodes, inputs and outputs.

    Parameters
    ----------
    source : Compiled, HybridBlock, Graph, TracedGraph or one of `Compiled.graphs`
        Of what has several graphs the one that was used last.

    Returns
    -------
    TracedGraph
        Changes of it change nothing else.

    Raises
    ------
    TypeError
        If `source` is nothing that has a graph.
    ValueError
        If it has none yet: it was not called, or is not hybridized.

    Examples
    --------
    >>> f = mx.jit(lambda x: np.exp(x) * 2)
    >>> _ = f(np.ones(3))
    >>> [node.op for node in mx.graph.view(f).nodes]
    ['exp', 'multiply']
    """
    if isinstance(source, TracedGraph):
        return source
    if isinstance(source, _core.CompiledGraph):
        return TracedGraph(source.export({})[0])
    if isinstance(text := getattr(source, "_text", None), str):
        return TracedGraph(text)
    compiled = vars(source).get("_compiled") if hasattr(source, "hybridize") else source
    if isinstance(compiled, _core.JitFunction):
        graphs = compiled.graphs
        if graphs:
            return view(graphs[-1])
    elif not hasattr(source, "hybridize"):
        raise TypeError(f"view: a '{type(source).__name__}' has no graph")
    name = getattr(source, "__name__", type(source).__name__)
    raise ValueError(f"view: `{name}` has no graph yet: hybridize it and call it once")


def _boxes(graph: TracedGraph) -> tuple[list[tuple[str, str]], list[tuple[int, int, str]]]:
    """Text and kind of each box, and the edges between them with the shapes of the arrays."""
    boxes: list[tuple[str, str]] = []
    edges: list[tuple[int, int, str]] = []
    maker: dict[int, int] = {}
    for value in graph.inputs:
        maker[value.buffer] = len(boxes)
        kind = graph.source(value) or "input"
        shape = f"{value.dtype} {value.shape}" if kind.startswith("argument") else f"{value.num_bytes} bytes"
        boxes.append((f"{kind}\n{shape}", "input"))
    for node in graph.nodes:
        at = len(boxes)
        made = ", ".join(f"{y.dtype} {y.shape}" for y in node.outputs[:1])
        boxes.append((f"{node.op}\n{made}", "node"))
        for buffer in dict.fromkeys(x.buffer for x in node.inputs if hasattr(x, "buffer")):
            if buffer in maker:
                edges.append((maker[buffer], at, f"b{buffer}"))
        for y in node.outputs:
            maker[y.buffer] = at
        for _, new in node._before.get("versions", []):
            maker[new] = at
    for i, value in enumerate(graph.outputs):
        if value.buffer in maker:
            edges.append((maker[value.buffer], len(boxes), f"b{value.buffer}"))
        boxes.append((f"result {i}\n{value.dtype} {value.shape}", "output"))
    return boxes, edges


def _dot(graph: TracedGraph) -> str:
    boxes, edges = _boxes(graph)
    colours = {"input": "#e8eef7", "node": "#ffffff", "output": "#e9f5e9"}
    lines = ["digraph graph_ {", '  node [shape=box, style=filled, fontname="sans-serif"];']
    for i, (text, kind) in enumerate(boxes):
        label = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  n{i} [label="{label}", fillcolor="{colours[kind]}"];')
    lines += [f'  n{a} -> n{b} [label="{name}"];' for a, b, name in edges]
    return "\n".join([*lines, "}", ""])


def _layers(count: int, edges: list[tuple[int, int, str]], is_input: list[bool]) -> list[list[int]]:
    """The boxes by layer. Each is below all that it reads, inputs right above their first reader; few edges cross."""
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for a, b, _ in edges:
        below[a].append(b)
        above[b].append(a)
    depth = [0] * count
    for box in range(count):  # Boxes are in program order.
        depth[box] = max((depth[other] + 1 for other in above[box]), default=0)
    for box in range(count):
        if is_input[box] and below[box]:
            depth[box] = max(0, min(depth[other] for other in below[box]) - 1)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=0) + 1)]
    for box in range(count):
        layers[depth[box]].append(box)
    rank_of = {box: float(i) for layer in layers for i, box in enumerate(layer)}
    for turn in range(4):
        near = above if turn % 2 == 0 else below
        for layer in layers if turn % 2 == 0 else layers[::-1]:
            # Each box is centred below its neighbours.
            middle = {
                box: sum(rank_of[other] for other in near[box]) / len(near[box]) if near[box] else rank_of[box]
                for box in layer
            }
            layer.sort(key=middle.__getitem__)
            rank_of.update((box, float(i)) for i, box in enumerate(layer))
    return layers


def _svg(graph: TracedGraph) -> str:
    boxes, edges = _boxes(graph)
    layers = _layers(len(boxes), edges, [kind == "input" for _, kind in boxes])
    widths = [max(map(len, text.split("\n"))) * _CHARACTER + 16 for text, _ in boxes]
    rows = [sum(widths[box] for box in layer) + _GAP * (len(layer) - 1) for layer in layers]
    total = max(rows, default=0) + 2 * _GAP
    height = len(layers) * _LAYER + _GAP
    at: dict[int, tuple[float, float]] = {}
    for i, (layer, row) in enumerate(zip(layers, rows, strict=True)):
        x = (total - row) / 2
        for box in layer:
            at[box] = (x, _GAP + i * _LAYER)
            x += widths[box] + _GAP
    colours = {"input": "#e8eef7", "node": "#ffffff", "output": "#e9f5e9"}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {total:.0f} {height:.0f}" font-family="sans-serif" font-size="11">',
        f"<title>{html.escape(graph.name)}</title>",
        '<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#666"/></marker></defs>',
    ]
    for a, b, name in edges:
        x, y = at[a][0] + widths[a] / 2, at[a][1] + _HEIGHT
        u, v = at[b][0] + widths[b] / 2, at[b][1] - 1
        bend = (v - y) / 2
        parts.append(
            f'<path d="M{x:.1f},{y:.1f} C{x:.1f},{y + bend:.1f} {u:.1f},{v - bend:.1f} {u:.1f},{v:.1f}" fill="none" '
            f'stroke="#666" marker-end="url(#tip)"><title>{name}</title></path>'
        )
    for box, (text, kind) in enumerate(boxes):
        x, y = at[box]
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{widths[box]:.1f}" height="{_HEIGHT}" rx="4" '
            f'fill="{colours[kind]}" stroke="#456"/>'
        )
        for i, line in enumerate(text.split("\n")):
            weight = ' font-weight="bold"' if i == 0 else ""
            parts.append(
                f'<text x="{x + widths[box] / 2:.1f}" y="{y + 14 + 14 * i:.1f}" text-anchor="middle"{weight}>'
                f"{html.escape(line)}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


def plot(source: Any, path: PathLike | None = None, format: str | None = None) -> str:
    r"""Draw a graph.

    Parameters
    ----------
    source : Compiled, HybridBlock, Graph, TracedGraph or one of `Compiled.graphs`
        As for `view`.
    path : path, optional
        Where to write the drawing; the file appears whole or not at all.
    format : str, optional
        ``"svg"``, a picture that browsers show and that needs nothing else, or ``"dot"``, text for Graphviz. By default
        what the suffix of `path` says, else ``"svg"``.

    Returns
    -------
    str
        The drawing.

    Raises
    ------
    ValueError
        For another format; if `source` has no graph yet.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> f = mx.jit(lambda x: np.exp(x))
    >>> _ = f(np.ones(3))
    >>> print(mx.graph.plot(f, format="dot"))
    digraph graph_ {
      node [shape=box, style=filled, fontname="sans-serif"];
      n0 [label="argument 0\nfloat32 (3,)", fillcolor="#e8eef7"];
      n1 [label="exp\nfloat32 (3,)", fillcolor="#ffffff"];
      n2 [label="result 0\nfloat32 (3,)", fillcolor="#e9f5e9"];
      n0 -> n1 [label="b0"];
      n1 -> n2 [label="b1"];
    }
    <BLANKLINE>
    """
    suffix = "" if path is None else Path(path).suffix
    chosen = format if format is not None else {".dot": "dot", ".gv": "dot"}.get(suffix, "svg")
    if chosen not in ("svg", "dot"):
        raise ValueError(f"plot: `format` must be 'svg' or 'dot', found {chosen!r}")
    graph = view(source)
    text = _svg(graph) if chosen == "svg" else _dot(graph)
    if path is not None:

        def write(draft: str) -> None:
            Path(draft).write_text(text, encoding="utf-8")

        write_atomically(path, write)
    return text
