"""Writes a trained arcana-mini as ONNX graphs with 8-bit weights, and the tables of the codec.

Usage: export.py MODEL.pt CODEC.npz CORPUS SEED FOLDER

It writes encoder.onnx, plan.onnx, codes.onnx, codec.json and manifest.json to FOLDER. The manifest describes the training, and keeps
its earlier entry `measured`. Each weight is stored as int8 with one scale for each output. ONNX Runtime multiplies both once, when it
loads the graph. Each graph is compared with the PyTorch model.
"""

import hashlib
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

import features
import model as m

OPSET = 18
EPSILON = float(torch.finfo(torch.float32).eps)


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value):
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def floats(self, value):
        return self.constant(np.asarray(value, np.float32))

    def weight(self, tensor, axes):
        """Adds a weight as int8. It has one scale for each index of the axes that are not in `axes`."""
        value = tensor.detach().numpy().astype(np.float32)
        scale = np.maximum(np.abs(value).max(axis=axes, keepdims=True), 1e-8) / 127
        whole = np.clip(np.round(value / scale), -127, 127).astype(np.int8)
        return self.op("Mul", self.op("Cast", self.constant(whole), to=TensorProto.FLOAT), self.floats(scale))

    def linear(self, x, layer):
        product = self.op("MatMul", x, self.weight(layer.weight.T, (0,)))
        return product if layer.bias is None else self.op("Add", product, self.floats(layer.bias.detach().numpy()))

    def norm(self, x, layer):
        weight = self.floats(layer.weight.detach().numpy())
        return self.op("SimplifiedLayerNormalization", x, weight, axis=-1, epsilon=EPSILON)

    def save(self, path, inputs, outputs):
        ends = [self.nodes.append(helper.make_node("Identity", [v], [n])) for n, v, _ in outputs]
        del ends
        graph = helper.make_graph(
            self.nodes,
            "arcana-mini",
            [helper.make_tensor_value_info(n, k, s) for n, k, s in inputs],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, _, s in outputs],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="svc-tts")
        made.ir_version = 9
        onnx.save(made, path)


def encoder(net, path):
    """Writes the encoder: phones [p, fields + 1], as rows of one table with the speaker as last field → context of both decoders [p, WIDTH]."""
    g = Graph()
    e = net.encoder
    table = torch.cat([t.weight for t in e.tables] + [e.speaker.weight])
    x = g.op("ReduceSum", g.op("Gather", g.weight(table, (1,)), "phones"), g.ints(1), keepdims=0)
    for convolution, norm in zip(e.convolutions, e.norms):
        y = g.op("Transpose", g.op("Unsqueeze", g.norm(x, norm), g.ints(0)), perm=[0, 2, 1])
        weight, bias = g.weight(convolution.weight, (1, 2)), g.floats(convolution.bias.detach().numpy())
        y = g.op("Squeeze", g.op("Transpose", g.op("Conv", y, weight, bias, pads=[2, 2]), perm=[0, 2, 1]), g.ints(0))
        erf = g.op("Erf", g.op("Mul", y, g.floats(2**-0.5)))
        x = g.op("Add", x, g.op("Mul", g.op("Mul", y, g.floats(0.5)), g.op("Add", erf, g.floats(1))))
    g.save(
        path,
        [("phones", TensorProto.INT64, ["p", len(m.PHONE_FIELDS) + 1])],
        [(n, g.linear(x, d.context), ["p", m.WIDTH]) for n, d in (("plan", net.plan), ("codes", net.codes))],
    )


def decoder(net, path):
    """Writes one step of a decoder: rows of one table for the last codes, the context, and the keys and values of earlier steps → logits."""
    g = Graph()
    table = torch.cat([t.weight for t in [*net.tables, *net.places]])
    x = g.op("ReduceSum", g.op("Gather", g.weight(table, (1,)), "rows"), g.ints(0), keepdims=1)
    x = g.op("Add", x, "context")  # [1, WIDTH]
    keys, values = [], []
    h, d, w, n = m.HEADS, m.HEAD, m.WINDOW - 1, len(net.layers)
    past_keys = g.op("Split", "keys", outputs=n, num_outputs=n, axis=0)
    past_values = g.op("Split", "values", outputs=n, num_outputs=n, axis=0)
    for i, layer in enumerate(net.layers):
        joined = g.linear(g.norm(x, layer.attention_norm), layer.query_key_value)
        query_key, value = g.op("Split", joined, g.ints(2 * h * d, h * d), outputs=2, axis=1)
        a, b = g.op("Split", g.op("Reshape", query_key, g.ints(2 * h, 1, d)), outputs=2, num_outputs=2, axis=2)
        turned = g.op(
            "Concat",
            g.op("Sub", g.op("Mul", a, "cos"), g.op("Mul", b, "sin")),
            g.op("Add", g.op("Mul", a, "sin"), g.op("Mul", b, "cos")),
            axis=2,
        )
        query, key = g.op("Split", turned, outputs=2, num_outputs=2, axis=0)  # [h, 1, d]
        value = g.op("Reshape", value, g.ints(h, 1, d))
        all_keys = g.op("Concat", g.op("Reshape", past_keys[i], g.ints(h, w, d)), key, axis=1)
        all_values = g.op("Concat", g.op("Reshape", past_values[i], g.ints(h, w, d)), value, axis=1)
        scores = g.op("MatMul", g.op("Mul", query, g.floats(d**-0.5)), g.op("Transpose", all_keys, perm=[0, 2, 1]))
        weights = g.op("Softmax", g.op("Add", scores, "mask"), axis=-1)
        heard = g.op("Reshape", g.op("MatMul", weights, all_values), g.ints(1, h * d))
        x = g.op("Add", x, g.linear(heard, layer.out))
        gate, up = g.op("Split", g.linear(g.norm(x, layer.inner_norm), layer.gate_up), outputs=2, num_outputs=2, axis=1)
        inner = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
        x = g.op("Add", x, g.linear(inner, layer.down))
        keys.append(key)
        values.append(value)
    logits = g.op("Reshape", g.linear(g.norm(x, net.norm), net.head), g.ints(-1))
    cache = [n, h, w, d]
    g.save(
        path,
        [
            ("rows", TensorProto.INT64, [len(net.tables) + len(net.places)]),
            ("context", TensorProto.FLOAT, [1, m.WIDTH]),
            ("cos", TensorProto.FLOAT, [d // 2]),
            ("sin", TensorProto.FLOAT, [d // 2]),
            ("keys", TensorProto.FLOAT, cache),
            ("values", TensorProto.FLOAT, cache),
            ("mask", TensorProto.FLOAT, [w + 1]),
        ],
        [
            ("logits", logits, [sum(net.sizes)]),
            ("key", g.op("Concat", *keys, axis=0), [n * h, 1, d]),
            ("value", g.op("Concat", *values, axis=0), [n * h, 1, d]),
        ],
    )


def offsets(tables):
    sizes = [t.num_embeddings for t in tables]
    return (np.cumsum(sizes) - sizes).astype(int).tolist()


def rounded(net):
    """Returns the model with its weights rounded to 8 bits."""

    def whole(value, axes):
        scale = value.abs().amax(axes, keepdim=True).clamp(min=1e-8) / 127
        return (value / scale).round().clamp(-127, 127) * scale

    for module in net.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            module.weight.data = whole(module.weight.data, (1,))
        elif isinstance(module, torch.nn.Conv1d):
            module.weight.data = whole(module.weight.data, (1, 2))
    return net


def compare(net, folder):
    """Compares the graphs, which it runs step by step like the server, with whole sequences in PyTorch. It runs more steps than the window of a layer."""
    torch.manual_seed(0)
    count = 100
    fields = torch.stack([torch.randint(n, (count,)) for n in m.PHONE_FIELDS], 1)
    starts = offsets([*net.encoder.tables, net.encoder.speaker])
    rows = torch.cat([fields, torch.ones(count, 1, dtype=torch.long)], 1) + torch.tensor(starts)
    contexts = onnxruntime.InferenceSession(f"{folder}/encoder.onnx").run(["plan", "codes"], {"phones": rows.numpy()})
    context = net.encoder(fields[None], torch.tensor([1]), torch.ones(1, count))
    for name, part, given in (("plan", net.plan, contexts[0]), ("codes", net.codes, contexts[1])):
        last = torch.stack([torch.randint(n + 1, (count,)) for n in part.sizes], 1)
        places = torch.stack([torch.randint(t.num_embeddings, (count,)) for t in part.places], 1) if len(part.places) else None
        whole = part(context, last[None], None if places is None else places[None])[0].detach().numpy()
        session = onnxruntime.InferenceSession(f"{folder}/{name}.onnx")
        cache = np.zeros((2, len(part.layers), m.HEADS, m.WINDOW - 1, m.HEAD), np.float32)
        mask = np.full(m.WINDOW, -1e9, np.float32)
        mask[-1] = 0
        together = last if places is None else torch.cat([last, places], 1)
        together = (together + torch.tensor(offsets([*part.tables, *part.places]))).numpy()
        worst = 0
        for at in range(count):
            cos, sin = m.rotation(torch.tensor(float(at)))
            logits, key, value = session.run(
                ["logits", "key", "value"],
                {
                    "rows": together[at],
                    "context": given[at : at + 1],
                    "cos": cos.numpy(),
                    "sin": sin.numpy(),
                    "keys": cache[0],
                    "values": cache[1],
                    "mask": mask,
                },
            )
            slot = at % (m.WINDOW - 1)
            cache[0, :, :, slot] = key.reshape(len(part.layers), m.HEADS, m.HEAD)
            cache[1, :, :, slot] = value.reshape(len(part.layers), m.HEADS, m.HEAD)
            mask[slot] = 0
            worst = max(worst, np.abs(logits - whole[at]).max())
        print(f"{name}.onnx: largest difference of a logit {worst:.5f}")
        if worst > 0.01:
            raise SystemExit(f"{name}.onnx differs from the PyTorch model: the largest difference of a logit is {worst:.5f}, and 0.01 is allowed")


def write_codec(path, codec, net):
    data = np.load(codec)
    listed = lambda name, digits: np.round(data[name].astype(float), digits).ravel().tolist()
    tables = lambda part: [*part.tables, *part.places]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(
            {
                "rate": features.RATE,
                "frameSamples": round(features.HOP * features.RATE),
                "coefficients": features.ORDER + 1,
                "warp": features.WARP,
                "speakers": features.SPEAKERS,
                "means": np.round(data["means"].astype(float), 4).tolist(),
                "heights": listed("heights", 4),
                "books": [np.round(data[f"book{i}"].astype(float), 4).ravel().tolist() for i in range(m.GROUPS)],
                "noiseDb": listed("levels", 2),
                "pitches": listed("pitches", 4),
                "heads": {"plan": m.PLAN_HEADS, "codes": m.FRAME_HEADS},
                "rows": {
                    "encoder": offsets([*net.encoder.tables, net.encoder.speaker]),
                    "plan": offsets(tables(net.plan)),
                    "codes": offsets(tables(net.codes)),
                },
                "layers": {"plan": m.PLAN_LAYERS, "codes": m.CODE_LAYERS},
                "attention": {"heads": m.HEADS, "size": m.HEAD, "window": m.WINDOW},
                "places": m.PLACES,
            },
            file,
            separators=(",", ":"),
        )


def sha256(*paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def write_manifest(folder, corpus, seed, steps):
    path = f"{folder}/manifest.json"
    measured = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            measured = json.load(file).get("measured", {})
    parts = [f"{corpus}/{name}.{kind}" for name in features.SPEAKERS for kind in ("jsonl", "s16")]
    manifest = {
        "kind": "arcana-mini",
        "language": "eng",
        "sourceVoices": [f"Flite 2.2 cmu_us_{name}" for name in features.SPEAKERS],
        "licence": "BSD-like (Flite, Carnegie Mellon University); these files as the rest of the repository",
        "corpus": {"sha256": sha256(*parts), "minutes": round(sum(map(os.path.getsize, parts[1::2])) / 2 / features.RATE / 60)},
        "training": {
            "command": f"STEPS={steps} SEED={seed} tools/arcana-training/all.sh",
            "seed": int(seed),
            "steps": steps,
        },
        "sha256": {name: sha256(f"{folder}/{name}") for name in ("codec.json", "encoder.onnx", "plan.onnx", "codes.onnx")},
        "measured": measured,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=2)
        file.write("\n")


def main(model, codec, corpus, seed, folder):
    net = m.Mini()
    saved = torch.load(model)
    net.load_state_dict(saved["model"])
    net.eval()
    encoder(net, f"{folder}/encoder.onnx")
    decoder(net.plan, f"{folder}/plan.onnx")
    decoder(net.codes, f"{folder}/codes.onnx")
    write_codec(f"{folder}/codec.json", codec, net)
    compare(rounded(net), folder)
    write_manifest(folder, corpus, seed, saved["step"])


if __name__ == "__main__":
    if len(sys.argv) != 6:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
