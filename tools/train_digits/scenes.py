"""Seeded generator of scenes with handwritten digits.

The glyphs are real handwriting: the 1,797 samples of 8x8 pixels of scikit-learn's `load_digits` (UCI "Optical
Recognition of Handwritten Digits", test part). They are split by sample, stratified by class and with a fixed seed, so
that a held-out scene never shows a glyph that was trained on. Only numpy and Pillow draw.

    python scenes.py --held-out 400 --out DIR       # DIR/scenes/scene_0000.png ..., DIR/truth.json

A box is the ink's bounding box (alpha above one half) widened on each side by 5 % of the glyph's height and by at
least one pixel: [left, top, width, height] in pixels, inside the picture.
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

GLYPH = 8  # side of a sample, pixels
MARGIN = 2  # empty cells put around a sample before it is enlarged
UPSCALE = 12  # pixels of the enlarged sample for each pixel of the sample
SPLIT_SEED = 20240
HELD_OUT_SHARE = 0.2
LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601


@dataclass
class SceneOptions:
    """What a scene may contain. Lengths are pixels, angles degrees, contrast is a difference of luma in 0..1."""

    width: int = 320
    height: int = 320
    digits: tuple = (6, 14)  # fewest and most in a scene
    glyph_height: tuple = (12.0, 80.0)  # before rotation; log-uniform
    max_angle: float = 20.0
    min_contrast: float = 0.25
    max_overlap: float = 0.08  # intersection over the area of the smaller box
    warp: float = 0.0  # greatest strength of shear and elastic deformation; 0 in held-out scenes
    max_clutter: int = 10
    max_noise: float = 0.05  # standard deviation of the pixel noise, 0..1


@dataclass
class Glyphs:
    """Samples: `images` float32 [N, 8, 8] in 0..1 (1 is ink), `labels` int64 [N] in 0..9."""

    images: np.ndarray
    labels: np.ndarray


def load_glyphs(part, path=None):
    """Returns the 'train' or 'held_out' Glyphs, from scikit-learn or from an .npz file with `images` and `target`."""
    if path:
        data = np.load(path)
        images, labels = data["images"], data["target"]
    else:
        from sklearn.datasets import load_digits

        data = load_digits()
        images, labels = data.images, data.target
    rng = np.random.default_rng(SPLIT_SEED)
    held_out = np.zeros(len(labels), bool)
    for digit in range(10):
        members = rng.permutation(np.flatnonzero(labels == digit))
        held_out[members[: round(len(members) * HELD_OUT_SHARE)]] = True
    chosen = {"train": ~held_out, "held_out": held_out}[part]
    return Glyphs((images[chosen] / 16.0).astype(np.float32), labels[chosen].astype(np.int64))


def sample_bilinear(field, x, y):
    """Bilinear samples of `field` [H, W] at float pixel positions x, y (any equal shape); outside is the edge value."""
    height, width = field.shape
    x = np.clip(x, 0, width - 1.001)
    y = np.clip(y, 0, height - 1.001)
    x0 = x.astype(np.int32)
    y0 = y.astype(np.int32)
    dx = x - x0
    dy = y - y0
    flat = field.ravel()
    at = y0 * width + x0
    top = flat[at] * (1 - dx) + flat[at + 1] * dx
    bottom = flat[at + width] * (1 - dx) + flat[at + width + 1] * dx
    return top * (1 - dy) + bottom * dy


def smooth_field(rng, width, height, cells):
    """Smooth random field float32 [height, width], roughly in -1..1, with `cells` bumps along the longer side."""
    step = max(width, height) / cells
    coarse = rng.uniform(-1, 1, (int(height / step) + 3, int(width / step) + 3)).astype(np.float32)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC))


def render_glyph(rng, sample, height, angle, warp):
    """Draws one sample with smooth strokes.

    sample: float32 [8, 8]; height: pixels; angle: degrees; warp: greatest strength of shear and elastic deformation.
    Returns (alpha float32 [h, w] in 0..1, ink box (left, top, right, bottom) within it, float pixels).
    """
    padded = np.pad(sample, MARGIN)
    side = padded.shape[0] * UPSCALE
    field = np.asarray(Image.fromarray(padded).resize((side, side), Image.BICUBIC))

    sampling = 3 if height < 40 else 2
    extent = math.ceil(height * 1.6) + 2
    axis = (np.arange(extent * sampling, dtype=np.float32) + 0.5) / sampling - extent / 2
    x, y = np.meshgrid(axis, axis)
    if warp > 0:
        warp = rng.uniform(0, warp)
        reach = warp * 0.07 * height
        x = x + reach * smooth_field(rng, len(axis), len(axis), 3)
        y = y + reach * smooth_field(rng, len(axis), len(axis), 3)
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    u = cos * x - sin * y
    v = sin * x + cos * y
    u = u + warp * rng.uniform(-0.2, 0.2) * v
    aspect = math.exp(rng.uniform(-0.12, 0.12) * (1 + warp))
    scale = GLYPH * UPSCALE / height
    ink = sample_bilinear(field, u * scale * aspect + side / 2, v * scale + side / 2)

    level = rng.uniform(0.44, 0.60)  # low gives thick strokes
    softness = rng.uniform(0.12, 0.34)
    t = np.clip((ink - level) / (2 * softness) + 0.5, 0, 1)
    alpha = (t * t * (3 - 2 * t)).astype(np.float32)

    inside = alpha > 0.5
    rows = np.flatnonzero(inside.any(axis=1))
    columns = np.flatnonzero(inside.any(axis=0))
    if len(rows) == 0:
        return None, None
    box = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]) / sampling
    alpha = alpha.reshape(extent, sampling, extent, sampling).mean(axis=(1, 3))
    return alpha, box


def random_colour(rng):
    """Colour float32 [3] in 0..1: mostly muted, sometimes vivid, sometimes grey."""
    colour = rng.uniform(0.03, 0.97, 3)
    grey = colour.mean()
    return (grey + (colour - grey) * rng.choice([0.0, 0.3, 0.6, 1.0])).clip(0.0, 1.0).astype(np.float32)


def draw_background(rng, width, height):
    """Uneven background float32 [height, width, 3]: a gradient between two near colours, texture, sometimes ruled."""
    first = random_colour(rng)
    second = (first + rng.uniform(-0.25, 0.25, 3).astype(np.float32)).clip(0, 1)
    turn = rng.uniform(0, 2 * math.pi)
    x, y = np.meshgrid(np.linspace(-1, 1, width, dtype=np.float32), np.linspace(-1, 1, height, dtype=np.float32))
    t = (0.5 + 0.35 * (x * math.cos(turn) + y * math.sin(turn))).clip(0, 1)[..., None]
    picture = first * (1 - t) + second * t
    picture += rng.uniform(0, 0.10) * smooth_field(rng, width, height, rng.integers(3, 8))[..., None]
    picture += rng.uniform(0, 0.05) * smooth_field(rng, width, height, rng.integers(20, 60))[..., None]
    if rng.random() < 0.2:
        pitch = int(rng.integers(14, 40))
        shade = float(rng.choice([-1, 1]) * rng.uniform(0.05, 0.16))
        picture[int(rng.integers(pitch)) :: pitch] += shade
        if rng.random() < 0.5:
            picture[:, int(rng.integers(pitch)) :: pitch] += shade
    return picture.clip(0, 1).astype(np.float32)


def draw_clutter(rng, picture, count):
    """Adds `count` things that are no digits to `picture` [H, W, 3]: long lines, blobs, polygons, crosses, waves, dots.

    Ring shapes and short upright strokes are left out: they would be a zero and a one.
    """
    height, width = picture.shape[:2]
    short = min(width, height)
    image = Image.fromarray((picture * 255).astype(np.uint8))
    for _ in range(count):
        layer = Image.new("L", (width, height), 0)
        draw = ImageDraw.Draw(layer)
        cx, cy = rng.uniform(0, width), rng.uniform(0, height)
        reach = rng.uniform(0.03, 0.15) * short
        kind = rng.choice(["line", "blob", "polygon", "cross", "wave", "dots"])
        blur = 0.6
        if kind == "line":
            turn = rng.uniform(0, math.pi)
            reach = rng.uniform(0.35, 1.2) * short
            dx, dy = reach * math.cos(turn), reach * math.sin(turn)
            draw.line([cx - dx, cy - dy, cx + dx, cy + dy], fill=255, width=int(rng.integers(1, 5)))
        elif kind == "blob":
            squeeze = rng.uniform(0.5, 1.0)
            draw.ellipse([cx - reach, cy - reach * squeeze, cx + reach, cy + reach * squeeze], fill=255)
            blur = rng.uniform(0.6, 0.4 * reach + 1)
        elif kind == "polygon":
            corners = int(rng.integers(3, 6))
            turns = rng.uniform(0, 2 * math.pi) + np.arange(corners) * 2 * math.pi / corners
            turns += rng.uniform(-0.3, 0.3, corners)
            points = [(cx + reach * math.cos(a), cy + reach * math.sin(a)) for a in turns]
            if rng.random() < 0.5:
                draw.polygon(points, fill=255)
            else:
                draw.line(points + points[:2], fill=255, width=int(rng.integers(1, 4)), joint="curve")
        elif kind == "cross":
            turn = rng.uniform(0, math.pi)
            for a in (turn, turn + math.pi / 2):
                dx, dy = reach * math.cos(a), reach * math.sin(a)
                draw.line([cx - dx, cy - dy, cx + dx, cy + dy], fill=255, width=int(rng.integers(1, 5)))
        elif kind == "wave":
            turn = rng.uniform(0, 2 * math.pi)
            s = np.linspace(-2.0, 2.0, 60)
            bend = rng.uniform(0.15, 0.4) * np.sin(s * rng.uniform(4, 8) + rng.uniform(0, 6))
            xs = cx + reach * (s * math.cos(turn) - bend * math.sin(turn))
            ys = cy + reach * (s * math.sin(turn) + bend * math.cos(turn))
            draw.line(list(zip(xs.tolist(), ys.tolist())), fill=255, width=int(rng.integers(1, 4)), joint="curve")
        else:
            for _ in range(int(rng.integers(4, 16))):
                px, py = rng.normal(cx, reach), rng.normal(cy, reach)
                r = rng.uniform(0.7, 2.5)
                draw.ellipse([px - r, py - r, px + r, py + r], fill=255)
        layer = layer.filter(ImageFilter.GaussianBlur(blur))
        opacity = rng.uniform(0.2, 0.9)
        colour = tuple(int(c * 255) for c in random_colour(rng))
        image.paste(colour, mask=layer.point([int(value * opacity) for value in range(256)]))
    return np.asarray(image).astype(np.float32) / 255


def find_place(rng, options, size, taken):
    """Position (left, top) for a box of `size` (w, h) that overlaps those `taken` little enough, or None."""
    width, height = size
    room_x, room_y = options.width - width - 1, options.height - height - 1
    if room_x <= 0 or room_y <= 0:
        return None
    for _ in range(40):
        left, top = rng.uniform(1, room_x), rng.uniform(1, room_y)
        for l, t, w, h in taken:
            across = min(left + width, l + w) - max(left, l)
            down = min(top + height, t + h) - max(top, t)
            if across > 0 and down > 0 and across * down > options.max_overlap * min(width * height, w * h):
                break
        else:
            return left, top
    return None


def choose_ink(rng, under, min_contrast):
    """Ink colour float32 [3] whose luma differs by at least `min_contrast` from that of the pixels `under` [N, 3]."""
    luma = float((under @ LUMA).mean())
    while True:
        colour = random_colour(rng)
        if rng.random() < 0.35:
            colour = colour * 0.3 if luma > 0.5 else 1 - (1 - colour) * 0.3
        if abs(float(colour @ LUMA) - luma) >= min_contrast:
            return colour


def make_scene(rng, glyphs, options):
    """Draws one scene.

    Returns (picture uint8 [H, W, 3] RGB, boxes float32 [N, 4] left, top, width, height in pixels, labels int64 [N]).
    """
    picture = draw_background(rng, options.width, options.height)
    picture = draw_clutter(rng, picture, int(rng.integers(options.max_clutter + 1)))

    low, high = np.log(options.glyph_height)
    count = int(rng.integers(options.digits[0], options.digits[1] + 1))
    heights = np.sort(np.exp(rng.uniform(low, high, count)))[::-1]
    boxes, labels = [], []
    for height in heights:
        index = int(rng.integers(len(glyphs.labels)))
        angle = rng.uniform(-options.max_angle, options.max_angle)
        alpha, ink = render_glyph(rng, glyphs.images[index], height, angle, options.warp)
        if alpha is None:
            continue
        margin = max(1.0, 0.05 * height)
        size = ink[2:] - ink[:2] + 2 * margin
        place = find_place(rng, options, size, boxes)
        if place is None:
            continue
        # The glyph is pasted at whole pixels; the box follows it.
        left, top = (round(place[i] + margin - ink[i]) for i in range(2))
        box = [left + ink[0] - margin, top + ink[1] - margin, *size]
        x0, y0 = max(left, 0), max(top, 0)
        x1, y1 = min(left + alpha.shape[1], options.width), min(top + alpha.shape[0], options.height)
        region = picture[y0:y1, x0:x1]
        alpha = alpha[y0 - top : y1 - top, x0 - left : x1 - left]
        colour = choose_ink(rng, region[alpha > 0.3], options.min_contrast)
        alpha = alpha[..., None] * rng.uniform(0.88, 1.0)
        region += (colour - region) * alpha
        boxes.append(box)
        labels.append(int(glyphs.labels[index]))

    light = 1 + rng.uniform(0, 0.22) * smooth_field(rng, options.width, options.height, rng.uniform(0.7, 2.5))
    picture = picture * light[..., None]
    if rng.random() < 0.3:
        image = Image.fromarray((picture.clip(0, 1) * 255).astype(np.uint8))
        picture = np.asarray(image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.7)))).astype(np.float32) / 255
    noise = rng.standard_normal(picture.shape, dtype=np.float32)
    picture = picture + rng.uniform(0, options.max_noise) * noise
    return (
        (picture.clip(0, 1) * 255 + 0.5).astype(np.uint8),
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(labels, np.int64),
    )


def write_scenes(out, glyphs, options, count, seed):
    """Writes out/scenes/scene_NNNN.png and out/truth.json. Returns the number of digits."""
    folder = Path(out) / "scenes"
    folder.mkdir(parents=True, exist_ok=True)
    truth = []
    for index in range(count):
        picture, boxes, labels = make_scene(np.random.default_rng([seed, index]), glyphs, options)
        name = f"scene_{index:04d}.png"
        Image.fromarray(picture).save(folder / name)
        digits = [
            {"class": str(label), "class_id": int(label), "box": [round(float(v), 3) for v in box]}
            for box, label in zip(boxes, labels)
        ]
        truth.append({"input": name, "width": options.width, "height": options.height, "digits": digits})
    lines = ",\n".join(json.dumps(scene) for scene in truth)
    (Path(out) / "truth.json").write_text(f'{{"scenes": [\n{lines}\n]}}\n')
    return sum(len(scene["digits"]) for scene in truth)


def main():
    parser = argparse.ArgumentParser(description="Write held-out scenes as PNG files with their true boxes.")
    parser.add_argument("--held-out", type=int, default=400, metavar="N", help="number of scenes")
    parser.add_argument("--out", required=True, help="folder to write to")
    parser.add_argument("--seed", type=int, default=900001)
    parser.add_argument("--size", type=int, nargs=2, default=(320, 320), metavar=("W", "H"), help="pixels")
    parser.add_argument("--digits", type=int, nargs=2, default=(6, 14), metavar=("MIN", "MAX"), help="per scene")
    parser.add_argument("--glyph-height", type=float, nargs=2, default=(12, 80), metavar=("MIN", "MAX"), help="pixels")
    parser.add_argument("--glyphs", help=".npz file with `images` and `target`, in place of scikit-learn")
    args = parser.parse_args()
    options = SceneOptions(*args.size, tuple(args.digits), tuple(args.glyph_height))
    total = write_scenes(args.out, load_glyphs("held_out", args.glyphs), options, args.held_out, args.seed)
    print(f"{args.held_out} scenes with {total} digits in {args.out}")


if __name__ == "__main__":
    main()
