"""A Darknet network in PyTorch, built by parsing the cfg file, with Darknet's region decode, letterbox and NMS.

Only the layers of the digits model exist: convolutional, maxpool, route, reorg, region. Anything else is refused.

    python model.py ../../models/digits/digits.cfg      # self-check, then the table of layers
"""

import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HEADER = struct.pack("<iii", 0, 2, 5)  # version 0.2.5: the count of seen pictures is 64-bit


def parse_cfg(path):
    """Returns the sections of a cfg file in order: a list of (name, {key: text})."""
    sections = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].replace(" ", "").replace("\t", "").strip()
            if line.startswith("["):
                sections.append((line.strip("[]"), {}))
            elif line:
                key, value = line.split("=", 1)
                sections[-1][1].setdefault(key, value)
    return sections


def reorg(x, stride):
    """Darknet's reorg: [N, C, H, W] -> [N, C*s*s, H/s, W/s], C divisible by s*s.

    It is no space-to-depth. Darknet calls its routine with the sizes of the input where those of the output are meant,
    so the input is read as [C/(s*s), H*s, W*s], cut into s x s phases as [C, H, W], and that memory is then taken for
    the output.
    """
    n, c, h, w = x.shape
    s = stride
    phases = x.reshape(n, c // (s * s), h, s, w, s).permute(0, 3, 5, 1, 2, 4)
    return phases.reshape(n, c * s * s, h // s, w // s)


class Convolution(nn.Module):
    """Convolution, optional batch normalisation (epsilon 1e-5, inside the root), then leaky (slope 0.1) or linear."""

    def __init__(self, channels, options):
        super().__init__()
        size = int(options.get("size", 1))
        padding = size // 2 if int(options.get("pad", 0)) else int(options.get("padding", 0))
        self.activation = options.get("activation", "logistic")
        if self.activation not in ("leaky", "linear"):
            raise ValueError(f"activation {self.activation!r} is not supported: leaky or linear")
        normalized = int(options.get("batch_normalize", 0)) != 0
        self.conv = nn.Conv2d(
            channels, int(options["filters"]), size, int(options.get("stride", 1)), padding, bias=not normalized
        )
        self.norm = nn.BatchNorm2d(self.conv.out_channels, eps=1e-5) if normalized else None

    def forward(self, x):
        x = self.conv(x)
        if self.norm is not None:
            x = self.norm(x)
        return functional.leaky_relu(x, 0.1) if self.activation == "leaky" else x

    def tensors(self):
        """The tensors in the order of a weights file: biases, scales, means, variances, weights."""
        if self.norm is None:
            return [self.conv.bias, self.conv.weight]
        norm = self.norm
        return [norm.bias, norm.weight, norm.running_mean, norm.running_var, self.conv.weight]


class Reorg(nn.Module):
    """The layer form of `reorg`."""

    def __init__(self, stride):
        super().__init__()
        self.stride = stride

    def forward(self, x):
        return reorg(x, self.stride)


class Network(nn.Module):
    """The network of a cfg file that ends in [region].

    forward: pictures float32 [N, 3, height, width], RGB in 0..1 -> raw head [N, num*(5+classes), grid_h, grid_w].
    Attributes: width, height (pixels), anchors float32 [num, 2] (width, height in grid cells), classes, shapes (a
    list of (section, output channels)).
    """

    def __init__(self, cfg_path):
        super().__init__()
        sections = parse_cfg(cfg_path)
        net = sections[0][1]
        self.width, self.height = int(net["width"]), int(net["height"])
        self.layers = nn.ModuleList()
        self.sources = []  # for each layer, None (the layer before) or the list of layers that a route joins
        self.shapes = []
        channels = int(net["channels"])
        for index, (name, options) in enumerate(sections[1:]):
            source = None
            if name == "convolutional":
                layer = Convolution(channels, options)
                channels = layer.conv.out_channels
            elif name == "maxpool":
                if (int(options["size"]), int(options["stride"])) != (2, 2):
                    raise ValueError(f"layer {index}: only [maxpool] of size 2 and stride 2 is supported")
                layer = nn.MaxPool2d(2, 2)
            elif name == "route":
                source = [int(v) if int(v) >= 0 else index + int(v) for v in options["layers"].split(",")]
                layer = nn.Identity()
                channels = sum(self.shapes[s][1] for s in source)
            elif name == "reorg":
                layer = Reorg(int(options["stride"]))
                channels *= layer.stride**2
            elif name == "region":
                self.classes = int(options["classes"])
                self.anchors = np.array(options["anchors"].split(","), np.float32).reshape(int(options["num"]), 2)
                if (options["coords"], options["softmax"]) != ("4", "1") or index != len(sections) - 2:
                    raise ValueError("[region] must come last, with coords=4 and softmax=1")
                if channels != len(self.anchors) * (5 + self.classes):
                    raise ValueError(f"[region] gets {channels} channels, expected num * (5 + classes)")
                break
            else:
                raise ValueError(f"layer {index}: section [{name}] is not supported")
            self.layers.append(layer)
            self.sources.append(source)
            self.shapes.append((name, channels))
        self.routed = {s for source in self.sources if source for s in source}

    def forward(self, x):
        kept = {}
        for index, (layer, source) in enumerate(zip(self.layers, self.sources)):
            if source:
                x = torch.cat([kept[s] for s in source], 1) if len(source) > 1 else kept[source[0]]
            x = layer(x)
            if index in self.routed:
                kept[index] = x
        return x

    def enlarge_variances(self, least=0.1):
        """Rescales filters so that no stored variance is below `least`; the network computes the same.

        Programs disagree on where batch normalisation adds its epsilon and on its size. Next to a variance of 0.001
        that shows in the detections; next to 0.1 it is lost in rounding. Factors are powers of two, so weights stay
        exact.
        """
        with torch.no_grad():
            for norm, conv in ((layer.norm, layer.conv) for layer in self.layers if isinstance(layer, Convolution)):
                if norm is not None:
                    factor = 2.0 ** (0.5 * torch.log2(least / norm.running_var)).ceil().clamp(min=0)
                    conv.weight *= factor[:, None, None, None]
                    norm.running_mean *= factor
                    norm.running_var.copy_(factor**2 * (norm.running_var + norm.eps) - norm.eps)

    def stored_tensors(self):
        """All tensors of the weights file, in its order."""
        return [t for layer in self.layers if isinstance(layer, Convolution) for t in layer.tensors()]

    def parameter_count(self):
        """Number of float32 values in the weights file."""
        return sum(t.numel() for t in self.stored_tensors())

    def load_weights(self, path):
        """Reads a Darknet weights file with a 64-bit count of seen pictures. Raises ValueError on a wrong length."""
        with open(path, "rb") as file:
            data = file.read()
        expected = len(HEADER) + 8 + 4 * self.parameter_count()
        if data[: len(HEADER)] != HEADER or len(data) != expected:
            raise ValueError(f"{path}: {len(data)} bytes, expected {expected} with the header of version 0.2.5")
        values = torch.from_numpy(np.frombuffer(data, "<f4", offset=len(HEADER) + 8).copy())
        at = 0
        with torch.no_grad():
            for tensor in self.stored_tensors():
                tensor.copy_(values[at : at + tensor.numel()].view_as(tensor))
                at += tensor.numel()

    def save_weights(self, path, seen):
        """Writes a Darknet weights file, version 0.2.5; `seen` is the number of pictures trained on."""
        with open(path, "wb") as file:
            file.write(HEADER + struct.pack("<Q", seen))
            file.writelines(t.detach().cpu().numpy().astype("<f4").tobytes() for t in self.stored_tensors())


def split_head(raw, anchors):
    """Raw head [N, A*(5+K), H, W] -> (boxes [N, A, H, W, 4], objectness logits [N, A, H, W], class logits [..., K]).

    Boxes are centre x, centre y, width, height as shares of the network's input: x = (column + sigmoid(tx)) / W and
    width = exp(tw) * anchor_width / W, likewise y and height (YOLO9000, arXiv 1612.08242, section 2).
    """
    n, _, h, w = raw.shape
    anchors = torch.as_tensor(anchors, device=raw.device, dtype=raw.dtype)
    raw = raw.view(n, len(anchors), -1, h, w).permute(0, 1, 3, 4, 2)
    column = torch.arange(w, device=raw.device, dtype=raw.dtype)
    row = torch.arange(h, device=raw.device, dtype=raw.dtype)[:, None]
    boxes = torch.stack(
        [
            (column + raw[..., 0].sigmoid()) / w,
            (row + raw[..., 1].sigmoid()) / h,
            raw[..., 2].exp() * anchors[:, 0, None, None] / w,
            raw[..., 3].exp() * anchors[:, 1, None, None] / h,
        ],
        -1,
    )
    return boxes, raw[..., 4], raw[..., 5:]


def decode(raw, anchors):
    """Raw head -> (boxes float [N, M, 4] centre form, shares of the input; scores [N, M, K]), M = anchors * cells."""
    boxes, objectness, classes = split_head(raw, anchors)
    scores = objectness.sigmoid()[..., None] * classes.softmax(-1)
    return boxes.flatten(1, 3), scores.flatten(1, 3)


def resize(picture, width, height):
    """Darknet's corner-aligned bilinear resize of float32 [H, W, 3]: x first, then y."""

    def along(values, size, axis):
        have = values.shape[axis]
        at = np.arange(size, dtype=np.float32) * np.float32((have - 1) / max(size - 1, 1))
        low = np.minimum(at.astype(np.int64), max(have - 2, 0))
        high = np.minimum(low + 1, have - 1)
        share = (at - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(3)])
        return values.take(low, axis) * (1 - share) + values.take(high, axis) * share

    return along(along(picture, width, 1), height, 0)


def letterbox(picture, width, height):
    """Fits a uint8 picture [H, W, 3] into the network's input as Darknet does, filler 0.5.

    Returns (float32 [3, height, width] in 0..1, (left, top, content width, content height) in pixels of the input).
    """
    have_h, have_w = picture.shape[:2]
    if width / have_w < height / have_h:
        new_w, new_h = width, have_h * width // have_w
    else:
        new_w, new_h = have_w * height // have_h, height
    content = picture.astype(np.float32) / 255
    if (new_w, new_h) != (have_w, have_h):
        content = resize(content, new_w, new_h)
    left, top = (width - new_w) // 2, (height - new_h) // 2
    canvas = np.full((height, width, 3), 0.5, np.float32)
    canvas[top : top + new_h, left : left + new_w] = content
    return canvas.transpose(2, 0, 1), (left, top, new_w, new_h)


def iou_with(box, boxes):
    """IoU of one box with boxes [M, 4], all left, top, width, height."""
    across = np.minimum(box[0] + box[2], boxes[:, 0] + boxes[:, 2]) - np.maximum(box[0], boxes[:, 0])
    down = np.minimum(box[1] + box[3], boxes[:, 1] + boxes[:, 3]) - np.maximum(box[1], boxes[:, 1])
    common = across.clip(0) * down.clip(0)
    return common / (box[2] * box[3] + boxes[:, 2] * boxes[:, 3] - common)


def suppress(boxes, scores, threshold, nms):
    """Detections of one picture: score strictly above `threshold`, then non-maximum suppression within each class.

    boxes [M, 4] left, top, width, height; scores [M, K]; nms: IoU above which the lower score goes.
    Returns a list of (class id, score, box), highest score first.
    """
    found = []
    for label in range(scores.shape[1]):
        order = np.flatnonzero(scores[:, label] > threshold)
        order = order[np.argsort(-scores[order, label], kind="stable")]
        while len(order):
            best, order = order[0], order[1:]
            found.append((label, float(scores[best, label]), boxes[best]))
            order = order[iou_with(boxes[best], boxes[order]) <= nms]
    return sorted(found, key=lambda item: -item[1])


def detect(network, picture, threshold, nms):
    """Letterboxes a uint8 picture [H, W, 3], runs the network and returns `suppress`'s list, boxes in its pixels."""
    data, (left, top, content_w, content_h) = letterbox(picture, network.width, network.height)
    device = next(network.parameters()).device
    with torch.no_grad():
        boxes, scores = decode(network(torch.from_numpy(data)[None].to(device)), network.anchors)
    boxes, scores = boxes[0].double().cpu().numpy(), scores[0].double().cpu().numpy()
    height, width = picture.shape[:2]
    x = (boxes[:, 0] * network.width - left) / content_w * width
    y = (boxes[:, 1] * network.height - top) / content_h * height
    w = boxes[:, 2] * network.width / content_w * width
    h = boxes[:, 3] * network.height / content_h * height
    return suppress(np.stack([x - w / 2, y - h / 2, w, h], 1), scores, threshold, nms)


def self_check():
    """Compares reorg, region decode and letterbox with hand-computed values of Darknet. Raises AssertionError."""
    order = reorg(torch.arange(64.0).view(1, 4, 4, 4), 2)
    assert order.shape == (1, 16, 2, 2)
    starts = [0, 16, 32, 48, 1, 17, 33, 49, 8, 24, 40, 56, 9, 25, 41, 57]
    assert order.flatten().tolist() == [first + step for first in starts for step in (0, 2, 4, 6)]

    raw = torch.zeros(1, 7, 2, 2)
    raw[0, 3, 0, 1] = np.log(2.0)
    raw[0, 6, 0, 1] = np.log(3.0)
    boxes, scores = decode(raw, [[1.0, 2.0]])
    assert np.allclose(boxes[0, 1], [0.75, 0.25, 0.5, 2.0]) and np.allclose(scores[0, 1], [0.125, 0.375])

    assert letterbox(np.zeros((480, 640, 3), np.uint8), 416, 416)[1] == (0, 52, 416, 312)
    assert letterbox(np.zeros((500, 333, 3), np.uint8), 416, 416)[1] == (69, 0, 277, 416)


def main():
    self_check()
    network = Network(sys.argv[1])
    x = torch.zeros(1, 3, network.height, network.width)
    kept = {}
    for index, (layer, source) in enumerate(zip(network.layers, network.sources)):
        x = layer(torch.cat([kept[s] for s in source], 1) if source else x)
        kept[index] = x
        shape = "x".join(str(v) for v in x.shape[1:])
        count = sum(t.numel() for t in layer.tensors()) if isinstance(layer, Convolution) else 0
        print(f"{index:3} {network.shapes[index][0]:14} {shape:12} {count:7}")
    print(f"{network.parameter_count()} float32 values; reorg, region decode and letterbox agree with Darknet's")


if __name__ == "__main__":
    main()
