#!/usr/bin/env python3
"""Well-known networks with made-up weights: exports them from PyTorch to ONNX, and compares Tenon with PyTorch.

    torch_models.py export OUT [--models resnet50,mobilenet_v2,googlenet,bert_base] [--batches 1,8] [--device cpu]
                               [--dynamic]
    torch_models.py check  OUT --tenon BUILD/bin/tenon [--device cpu] [--tolerance 1e-4] [--profile 1,4,32]
                               [-- OPTIONS OF tenon]

export writes OUT/NAME.bN/: model.onnx, one NAME.npy per input, and expected/NAME.npy per output as PyTorch computes it
(float32, tf32 off). Beside the network's own output there are three tensors from inside it, unless --no-inner. Weights, batch-norm
statistics and inputs come from fixed seeds; an output whose standard deviation is not above 0.01 is an error, since it
would hide mistakes. check runs each with Tenon and prints the relative l2 distance of every output. With --dynamic there is
one model for all batches, OUT/NAME.dynamic/model.onnx, beside OUT/NAME.bN/ with inputs and outputs; check builds one
engine of it, whose batch has the profile given (least, optimum, largest).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

OPSET = 17


def conv_bn(nn, inputs, outputs, kernel, stride=1, groups=1, padding=None, act=True):
    padding = kernel // 2 if padding is None else padding
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, nn.ReLU()) if act else nn.Sequential(*layers)


def resnet50(torch):
    """He et al. 2015, with the stride in the 3x3 convolution."""
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.body = nn.Sequential(
                conv_bn(nn, inputs, width, 1), conv_bn(nn, width, width, 3, stride), conv_bn(nn, width, 4 * width, 1, act=False)
            )
            same = stride == 1 and inputs == 4 * width
            self.shortcut = nn.Identity() if same else conv_bn(nn, inputs, 4 * width, 1, stride, padding=0, act=False)

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(conv_bn(nn, 3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
            stages, inputs = [], 64
            for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
                stage = []
                for block in range(blocks):
                    stage.append(Bottleneck(inputs, width, stride if block == 0 else 1))
                    inputs = 4 * width
                stages.append(nn.Sequential(*stage))
            self.stages = nn.ModuleList(stages)
            self.pool, self.classify = nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, 1000)

        def forward(self, x):
            inner, x = [], self.stem(x)
            for stage in self.stages:
                x = stage(x)
                inner.append(x)
            return self.classify(torch.flatten(self.pool(x), 1)), inner[0], inner[1], inner[3]

    return Net(), {"image": (3, 224, 224)}


def mobilenet_v2(torch):
    """Sandler et al. 2018."""
    nn = torch.nn

    def conv6(inputs, outputs, kernel, stride=1, groups=1):
        return nn.Sequential(*list(conv_bn(nn, inputs, outputs, kernel, stride, groups, act=False)), nn.ReLU6())

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride, factor):
            super().__init__()
            wide = inputs * factor
            layers = [conv6(inputs, wide, 1)] if factor != 1 else []
            layers += [conv6(wide, wide, 3, stride, wide), conv_bn(nn, wide, outputs, 1, act=False)]
            self.body, self.adds = nn.Sequential(*layers), stride == 1 and inputs == outputs

        def forward(self, x):
            return x + self.body(x) if self.adds else self.body(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, blocks, inputs = conv6(3, 32, 3, 2), [], 32
            for factor, outputs, count, stride in (
                (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
            ):
                for n in range(count):
                    blocks.append(Block(inputs, outputs, stride if n == 0 else 1, factor))
                    inputs = outputs
            self.blocks, self.last = nn.ModuleList(blocks), conv6(inputs, 1280, 1)
            self.classify = nn.Linear(1280, 1000)

        def forward(self, x):
            inner, x = [], self.stem(x)
            for block in self.blocks:
                x = block(x)
                inner.append(x)
            return self.classify(self.last(x).mean([2, 3])), inner[2], inner[9], inner[16]

    return Net(), {"image": (3, 224, 224)}


def googlenet(torch):
    """Szegedy et al. 2014, with batch normalisation and without the side classifiers."""
    nn = torch.nn

    class Inception(nn.Module):
        def __init__(self, inputs, one, three_in, three, five_in, five, pool):
            super().__init__()
            self.branches = nn.ModuleList([
                conv_bn(nn, inputs, one, 1),
                nn.Sequential(conv_bn(nn, inputs, three_in, 1), conv_bn(nn, three_in, three, 3)),
                nn.Sequential(conv_bn(nn, inputs, five_in, 1), conv_bn(nn, five_in, five, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(nn, inputs, pool, 1)),
            ])

        def forward(self, x):
            return torch.cat([branch(x) for branch in self.branches], 1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
            self.parts = nn.ModuleList([
                nn.Sequential(conv_bn(nn, 3, 64, 7, 2), pool(), conv_bn(nn, 64, 64, 1), conv_bn(nn, 64, 192, 3), pool()),
                nn.Sequential(Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), pool()),
                nn.Sequential(
                    Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
                    Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
                    Inception(528, 256, 160, 320, 32, 128, 128), pool(),
                ),
                nn.Sequential(Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128)),
            ])
            self.pool, self.drop, self.classify = nn.AdaptiveAvgPool2d(1), nn.Dropout(0.2), nn.Linear(1024, 1000)

        def forward(self, x):
            inner = []
            for part in self.parts:
                x = part(x)
                inner.append(x)
            return self.classify(self.drop(torch.flatten(self.pool(x), 1))), inner[1], inner[2], inner[3]

    return Net(), {"image": (3, 224, 224)}


def bert_base(torch, layers=12, width=768, heads=12, length=128, words=30522):
    """Devlin et al. 2018: 12 layers of width 768, sequences of 128 words, with a mask."""
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
            self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
            self.up, self.down, self.gelu = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()

        def split(self, x):
            return x.view(x.size(0), x.size(1), heads, width // heads).permute(0, 2, 1, 3)

        def forward(self, x, mask):
            q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            scores = torch.matmul(q, k.transpose(-1, -2)) / (width // heads) ** 0.5 + mask
            mixed = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
            x = self.norm1(x + self.mix(mixed.view(x.size(0), x.size(1), width)))
            return self.norm2(x + self.down(self.gelu(self.up(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.place, self.kind = nn.Embedding(words, width), nn.Embedding(512, width), nn.Embedding(2, width)
            self.norm, self.layers = nn.LayerNorm(width, 1e-12), nn.ModuleList(Layer() for _ in range(layers))
            self.pool = nn.Linear(width, width)

        def forward(self, input_ids, attention_mask, token_type_ids):
            places = torch.arange(input_ids.size(1), device=input_ids.device).unsqueeze(0)
            x = self.norm(self.word(input_ids) + self.place(places) + self.kind(token_type_ids))
            mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
            inner = []
            for layer in self.layers:
                x = layer(x, mask)
                inner.append(x)
            return torch.tanh(self.pool(x[:, 0])), inner[0], inner[5], inner[11]

    return Net(), {"input_ids": (length,), "attention_mask": (length,), "token_type_ids": (length,)}


MODELS = {model.__name__: model for model in (resnet50, mobilenet_v2, googlenet, bert_base)}
OUTPUTS = ["output", "inner0", "inner1", "inner2"]


def randomise(torch, net):
    """Seeded statistics and scales for batch norms; without them their effect would not show."""
    generator = torch.Generator().manual_seed(2)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for tensor, low, high in (
                (module.running_mean, -0.1, 0.1), (module.running_var, 0.5, 1.5), (module.weight, 0.5, 1.5), (module.bias, -0.1, 0.1)
            ):
                tensor.data.uniform_(low, high, generator=generator)


def make_inputs(torch, shapes, batch):
    random, inputs = np.random.default_rng(batch), {}
    for name, shape in shapes.items():
        shape = (batch, *shape)
        if name == "input_ids":
            values = random.integers(0, 30522, shape)
        elif name == "attention_mask":
            values = (np.arange(shape[1]) < random.integers(shape[1] // 2, shape[1], (batch, 1))).astype(np.int64)
        elif name == "token_type_ids":
            values = random.integers(0, 2, shape)
        else:
            values = random.standard_normal(shape).astype(np.float32)
        inputs[name] = torch.from_numpy(values)
    return inputs


def export(args):
    import torch

    class OwnOutput(torch.nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, *inputs):
            return self.net(*inputs)[:1]

    names = OUTPUTS if args.inner else OUTPUTS[:1]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name in args.models.split(","):
        torch.manual_seed(1)
        net, shapes = MODELS[name](torch)
        randomise(torch, net)
        net = net if args.inner else OwnOutput(net)
        net.eval()
        for batch in map(int, args.batches.split(",")):
            folder = args.out / f"{name}.b{batch}"
            (folder / "expected").mkdir(parents=True, exist_ok=True)
            inputs = make_inputs(torch, shapes, batch)
            model = (args.out / f"{name}.dynamic" if args.dynamic else folder) / "model.onnx"
            with torch.no_grad():
                outputs = net.to(args.device)(*(value.to(args.device) for value in inputs.values()))
                net.to("cpu")
                if not model.exists() or not args.dynamic:
                    model.parent.mkdir(parents=True, exist_ok=True)
                    torch.onnx.export(
                        net, tuple(inputs.values()), str(model), input_names=list(inputs), output_names=names,
                        dynamic_axes={key: {0: "batch"} for key in [*inputs, *names]} if args.dynamic else None,
                        opset_version=OPSET, dynamo=False, do_constant_folding=True,
                    )
            for key, value in inputs.items():
                np.save(folder / f"{key}.npy", value.numpy())
            for key, value in zip(names, outputs):
                value = value.cpu().numpy()
                if not value.std() > 0.01:
                    sys.exit(f"error: {name}: output {key} has a standard deviation of {value.std()}; expected above 0.01")
                np.save(folder / "expected" / f"{key}.npy", value)
            print(f"{folder}: {', '.join(f'{k} std {v.float().std():.3g}' for k, v in zip(names, outputs))}", flush=True)


def run(args, what, folder, options):
    """Runs an engine or model on the inputs of a folder; prints and gives the largest relative l2 distance."""
    with tempfile.TemporaryDirectory() as dump:
        command = [args.tenon, "run", str(what), "--device", args.device, "--dump-tensors", dump]
        for path in sorted(folder.glob("*.npy")):
            command += ["--tensor", f"{path.stem}={path}"]
        subprocess.run(command + options, check=True, stdout=subprocess.DEVNULL)
        distances = {}
        for path in sorted((folder / "expected").glob("*.npy")):
            expected, found = np.load(path).astype(np.float64), np.load(pathlib.Path(dump) / path.name).astype(np.float64)
            distances[path.stem] = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        print(f"{folder.name} on {args.device}: {', '.join(f'{k} {d:.2e}' for k, d in distances.items())}", flush=True)
        return max(distances.values())


def check(args):
    worst = []
    for folder in sorted(path.parent for path in args.out.glob("*/model.onnx")):
        if folder.suffix != ".dynamic":
            worst.append(run(args, folder / "model.onnx", folder, args.options))
            continue
        batches = sorted(folder.parent.glob(folder.stem + ".b*"), key=lambda path: int(path.suffix[2:]))
        engine = folder / "engine.tenon"
        command = [args.tenon, "build", str(folder / "model.onnx"), "-o", str(engine), "--device", args.device]
        for path in sorted(batches[0].glob("*.npy")):
            rest = "".join(f"x{size}" for size in np.load(path).shape[1:])
            command += ["--shape", f"{path.stem}=" + ",".join(batch + rest for batch in args.profile.split(","))]
        subprocess.run(command + args.options, check=True, stdout=subprocess.DEVNULL)
        worst += [run(args, engine, batch, []) for batch in batches]
    print(f"{len(worst)} runs, largest relative l2 distance {max(worst):.2e}, allowed {args.tolerance:.0e}")
    return 0 if 0 < max(worst) <= args.tolerance else 1


def main():
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["export", "check"])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--dynamic", action="store_true", help="export: one model for all batches")
    parser.add_argument("--profile", default="1,4,32", help="check: least, optimal and largest batch of models for all batches")
    parser.add_argument("--no-inner", dest="inner", action="store_false", help="export: only the network's own output")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tenon", default="build/release/bin/tenon")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args(own)
    args.options = options
    return export(args) or 0 if args.command == "export" else check(args)


if __name__ == "__main__":
    sys.exit(main())
