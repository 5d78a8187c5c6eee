"""Mean average precision of the digits model on held-out scenes, from PyTorch or from the output of `tenon run`.

    python evaluate.py --data DIR                               # runs the exported weights in PyTorch
    python evaluate.py --data DIR --detections found.json       # reads `tenon run ... --json found.json`

DIR is written by `scenes.py --held-out`. Average precision of a class: detections by falling score, each takes the
digit of its class with which its IoU is highest; it is right if that IoU is at least 0.5 and the digit is not taken
yet. The area under the precision-recall curve is summed over all points, with precision made non-increasing (Pascal
VOC 2010 and later). mAP is the mean over the ten classes.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

from model import Network, detect, iou_with

MODEL = Path(__file__).resolve().parents[2] / "models" / "digits"
MATCH_IOU = 0.5


def match(truth, found, label):
    """Detections of one class over all scenes.

    truth, found: {picture name: [(class id, score or None, box)]}.
    Returns (scores [M] falling, right bool [M], number of true digits).
    """
    total, rows = 0, []
    for name, digits in truth.items():
        boxes = np.array([box for class_id, _, box in digits if class_id == label]).reshape(-1, 4)
        total += len(boxes)
        taken = set()
        for _, score, box in sorted((d for d in found.get(name, []) if d[0] == label), key=lambda d: -d[1]):
            overlaps = iou_with(np.asarray(box), boxes)
            best = int(overlaps.argmax()) if len(boxes) else -1
            right = best >= 0 and overlaps[best] >= MATCH_IOU and best not in taken
            if right:
                taken.add(best)
            rows.append((score, right))
    rows.sort(key=lambda row: -row[0])
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows], bool), total


def average_precision(right, total):
    """All-point area under the precision-recall curve of detections in falling order of score."""
    if len(right) == 0:
        return 0.0
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float(precision[right].sum() / total)


def report(truth, found, shown_threshold):
    """Prints AP per class, precision and recall at `shown_threshold`, and mAP; returns mAP."""
    precisions, counts = [], np.zeros(3, int)
    print("class  digits      AP")
    for label in range(10):
        scores, right, total = match(truth, found, label)
        precisions.append(average_precision(right, total))
        shown = scores > shown_threshold
        counts += [right[shown].sum(), shown.sum(), total]
        print(f"{label:5}  {total:6}  {precisions[-1]:.4f}")
    mean = float(np.mean(precisions))
    print(
        f"score above {shown_threshold}: precision {counts[0] / max(counts[1], 1):.4f}, recall {counts[0] / counts[2]:.4f}\n"
        f"mAP@0.5 {mean:.4f} on {len(truth)} scenes with {counts[2]} digits"
    )
    return mean


def read_truth(path):
    """truth.json -> {picture name: [(class id, None, box)]}."""
    scenes = json.loads(Path(path).read_text())["scenes"]
    return {s["input"]: [(d["class_id"], None, d["box"]) for d in s["digits"]] for s in scenes}


def read_detections(path):
    """Output of `tenon run --json` -> {picture name: [(class id, score, box)]}."""
    results = json.loads(Path(path).read_text())["results"]
    return {Path(r["input"]).name: [(d["class_id"], d["score"], d["box"]) for d in r["detections"]] for r in results}


def main():
    parser = argparse.ArgumentParser(description="mAP@0.5 on held-out scenes.")
    parser.add_argument("--data", required=True, help="folder written by scenes.py --held-out")
    parser.add_argument("--detections", help="JSON of `tenon run`; without it PyTorch runs the model")
    parser.add_argument("--cfg", default=MODEL / "digits.cfg")
    parser.add_argument("--weights", default=MODEL / "digits.weights")
    parser.add_argument("--threshold", type=float, default=0.005, help="a detection's score is above this")
    parser.add_argument("--nms", type=float, default=0.45)
    parser.add_argument("--save", help="write PyTorch's detections in the form of `tenon run --json`")
    parser.add_argument("--shown", type=float, default=0.5, help="threshold for precision and recall")
    args = parser.parse_args()

    truth = read_truth(Path(args.data) / "truth.json")
    if args.detections:
        found = read_detections(args.detections)
        missing = sorted(set(truth) - set(found))
        if missing:
            parser.error(f"{args.detections} has no result for {len(missing)} scenes, first {missing[0]}")
    else:
        network = Network(args.cfg).eval()
        network.load_weights(args.weights)
        found = {}
        for name in truth:
            picture = np.asarray(Image.open(Path(args.data) / "scenes" / name).convert("RGB"))
            found[name] = detect(network, picture, args.threshold, args.nms)
        if args.save:
            results = [
                {
                    "input": name,
                    "detections": [
                        {"class": str(c), "class_id": c, "score": s, "box": [round(float(v), 4) for v in box]}
                        for c, s, box in detections
                    ],
                }
                for name, detections in found.items()
            ]
            Path(args.save).write_text(json.dumps({"results": results}) + "\n")
    report(truth, found, args.shown)


if __name__ == "__main__":
    main()
