"""Anchors of the [region] layer: k-means over the box sizes of training scenes, distance 1 - IoU (YOLO9000, 2.).

    python anchors.py --cfg ../../models/digits/digits.cfg      # replaces the anchors line of the cfg

The boxes come from seeded scenes, so the line is reproducible.
"""

import argparse
import re
from pathlib import Path

import numpy as np

from model import Network
from scenes import SceneOptions, load_glyphs, make_scene

STRIDE = 16  # pixels of the input for each cell of the grid


def shape_iou(sizes, anchors):
    """IoU of boxes [N, 2] and anchors [A, 2] laid on one centre: [N, A]."""
    common = np.minimum(sizes[:, None], anchors).prod(-1)
    return common / (sizes.prod(-1)[:, None] + anchors.prod(-1) - common)


def find_anchors(sizes, count, seed=0):
    """Returns anchors [count, 2] by area and the mean IoU of the boxes with their nearest anchor."""
    anchors = np.random.default_rng(seed).choice(sizes, count, replace=False)
    for _ in range(100):
        nearest = shape_iou(sizes, anchors).argmax(1)
        anchors = np.stack([np.median(sizes[nearest == a], axis=0) for a in range(count)])
    return anchors[anchors.prod(1).argsort()], shape_iou(sizes, anchors).max(1).mean()


def main():
    parser = argparse.ArgumentParser(description="Write k-means anchors into a cfg file.")
    parser.add_argument("--cfg", required=True)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--glyphs", help=".npz file with `images` and `target`, in place of scikit-learn")
    args = parser.parse_args()
    network = Network(args.cfg)
    glyphs, options = load_glyphs("train", args.glyphs), SceneOptions(network.width, network.height)
    scenes = (make_scene(np.random.default_rng([1, i]), glyphs, options) for i in range(args.scenes))
    sizes = np.concatenate([boxes[:, 2:] for _, boxes, _ in scenes]) / STRIDE
    anchors, mean_iou = find_anchors(sizes, len(network.anchors))
    line = "anchors=" + ", ".join(f"{w:.3f},{h:.3f}" for w, h in anchors)
    path = Path(args.cfg)
    path.write_text(re.sub(r"(?m)^anchors=.*$", line, path.read_text()))
    print(f"{line}\n{len(sizes)} boxes, mean IoU with the nearest anchor {mean_iou:.3f}")


if __name__ == "__main__":
    main()
