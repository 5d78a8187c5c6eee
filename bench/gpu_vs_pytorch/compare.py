#!/usr/bin/env python3
"""Times Darknet networks on one GPU with Tenon and with PyTorch, side by side in one run.

    compare.py [--build BUILD] [--rounds N] CFG[:WEIGHTS]...   and, with --matmul, the 128x128 MatMul-Softmax-MatMul net

PyTorch runs the same layers eagerly, captured in a CUDA graph, float32 with tf32 off and cudnn.benchmark on; "folded"
has the batch normalisation folded into the convolutions. Tenon runs `tenon bench`. Both are timed by the host's clock
around launch and wait, batch 1, inputs and outputs in GPU memory; rounds take turns, and the median of all is printed.
Without WEIGHTS both sides have made-up ones: time does not depend on them. Needs torch; prints a Markdown table.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNS = 300  # timed runs a round


def sections(path):
    """[(name, {key: value})] of a cfg file."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        line = line.split("#")[0].replace(" ", "").strip()
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif "=" in line:
            key, value = line.split("=", 1)
            found[-1][1].setdefault(key, value)
    return found


class Darknet(nn.Module):
    """The layers of a cfg without the activations of its heads."""

    def __init__(self, path, folded):
        super().__init__()
        (_, net), *layers = sections(path)
        self.shape = [1, int(net.get("channels", 3)), int(net["height"]), int(net["width"])]
        self.layers, self.modules_of, channels = [], nn.ModuleList(), []
        for index, (name, options) in enumerate(layers):
            get = lambda key, default, o=options: int(o.get(key, default))
            inputs = channels[-1] if channels else self.shape[1]
            module, outputs, sources = nn.Identity(), inputs, []
            if name == "convolutional":
                size, outputs = get("size", 1), get("filters", 1)
                padding = size // 2 if get("pad", 0) else get("padding", 0)
                normed = get("batch_normalize", 0) and not folded
                parts = [nn.Conv2d(inputs, outputs, size, get("stride", 1), padding, groups=get("groups", 1), bias=not normed)]
                if normed:
                    parts.append(nn.BatchNorm2d(outputs))
                parts += {
                    "leaky": [nn.LeakyReLU(0.1, inplace=True)], "relu": [nn.ReLU(inplace=True)],
                    "relu6": [nn.ReLU6(inplace=True)], "linear": [],
                }[options.get("activation", "logistic")]
                module = nn.Sequential(*parts)
            elif name == "maxpool":
                stride = get("stride", 1)
                size = get("size", stride)
                total = get("padding", size - 1)
                module = nn.Sequential(nn.ZeroPad2d((total // 2, total - total // 2) * 2), nn.MaxPool2d(size, stride))
            elif name == "upsample":
                module = nn.Upsample(scale_factor=get("stride", 2), mode="nearest")
            elif name == "reorg":
                module, outputs = nn.PixelUnshuffle(get("stride", 1)), inputs * get("stride", 1) ** 2
            elif name in ("route", "shortcut"):
                numbers = [int(n) for n in options["layers" if name == "route" else "from"].split(",")]
                sources = [index + n if n < 0 else n for n in numbers]
                outputs = sum(channels[n] for n in sources) if name == "route" else inputs
                if get("groups", 1) > 1:
                    outputs //= get("groups", 1)
            elif name not in ("yolo", "region", "dropout"):
                sys.exit(f"{path}: [{name}] is not known here")
            self.layers.append((name, sources, options))
            self.modules_of.append(module)
            channels.append(outputs)

    def forward(self, x):
        kept, heads = [], []
        for (name, sources, options), module in zip(self.layers, self.modules_of):
            if name == "route":
                x = torch.cat([kept[n] for n in sources], 1) if len(sources) > 1 else kept[sources[0]]
                groups = int(options.get("groups", 1))
                if groups > 1:
                    x = x.chunk(groups, 1)[int(options.get("group_id", 0))]
            elif name == "shortcut":
                x = x + kept[sources[0]]
            elif name in ("yolo", "region"):
                heads.append(x)
            else:
                x = module(x)
            kept.append(x)
        return heads or [x]


class MatMuls(nn.Module):
    shape = [128, 128]

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(128, 128)), nn.Parameter(torch.randn(128, 128))

    def forward(self, x):
        return [torch.softmax(x @ self.first, 1) @ self.second]


def graph_of(model):
    """A function that replays the model's captured launches and waits."""
    model = model.cuda().eval()
    x = torch.randn(model.shape, device="cuda")
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(5):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        outputs = model(x)

    def run(keep=(model, x, outputs)):
        graph.replay()
        torch.cuda.synchronize()

    return run


def torch_ms(run):
    for end in [time.perf_counter() + 0.3]:
        while time.perf_counter() < end:
            run()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def tenon(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder with bin/tenon")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--matmul", type=pathlib.Path, help="engine file of the 128x128 net (example 01 keeps one)")
    parser.add_argument("nets", nargs="*", help="CFG or CFG:WEIGHTS")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True

    program = options.build / "bin/tenon"
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}\n")
    print("| net | PyTorch eager in a graph, ms | the same, folded | Tenon, ms | faster than eager | than folded |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for net in options.nets:
            cfg, _, weights = net.partition(":")
            engine = pathlib.Path(folder) / (pathlib.Path(cfg).stem + ".tenon")
            made_up = ["--weights", weights] if weights else ["--import-option", "random_weights=1"]
            tenon([program, "build", cfg, *made_up, "--device", "cuda", "-o", engine])
            cases.append((pathlib.Path(cfg).stem, engine, Darknet(pathlib.Path(cfg), False), Darknet(pathlib.Path(cfg), True)))
        if options.matmul:
            cases.append(("matmul 128x128", options.matmul, MatMuls(), MatMuls()))
        for name, engine, eager, folded in cases:
            runs = [graph_of(eager), graph_of(folded)]
            times = [[], [], []]
            for _ in range(options.rounds):
                for index, run in enumerate(runs):
                    times[index] += torch_ms(run)
                report = json.loads(tenon([program, "bench", engine, "--device", "cuda", "--iterations", str(RUNS), "--json", "-"]))
                times[2].append(report["latency_ms"]["median"])
            a, b, c = (statistics.median(t) for t in times)
            print(f"| {name} | {a:.4f} | {b:.4f} | {c:.4f} | {a / c:.2f} | {b / c:.2f} |", flush=True)


if __name__ == "__main__":
    main()
