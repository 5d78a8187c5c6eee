"""Trains the digits model and writes it as a Darknet weights file.

    python train.py --cfg ../../models/digits/digits.cfg --out ../../models/digits/digits.weights --minutes 8

Worker processes draw scenes from the training glyphs without pause; the device keeps a pool of the newest ones and
trains on random batches of it. The run ends after --steps or --minutes, whichever comes first, and the learning rate
follows that. Scenes are seeded; the pool's content depends on timing, so two runs give equal quality, not equal bytes.
"""

import argparse
import copy
import math
import os
import threading
import time
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from model import Network, letterbox, split_head
from scenes import SceneOptions, load_glyphs, make_scene

MOST_DIGITS = 16  # rows of a target, at least the most digits of a scene
LETTERBOXED = 0.25  # share of the scenes that leave bars above and below, or left and right
IGNORE_IOU = 0.6  # as `thresh` in the cfg: a prediction this close to some digit is never told that it is background
BOX_WEIGHT = 4.0
NOTHING = -1  # class of an unused target row


class SceneStream(torch.utils.data.IterableDataset):
    """Endless chunks (pictures uint8 [K, 3, H, W], targets float32 [K, MOST_DIGITS, 5]).

    A target row is centre x, centre y, width, height as shares of the picture, then the class.
    """

    def __init__(self, glyphs, width, height, chunk, seed):
        super().__init__()
        self.glyphs, self.width, self.height, self.chunk, self.seed = glyphs, width, height, chunk, seed
        self.options = SceneOptions(width, height, warp=0.8)

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        rng = np.random.default_rng([self.seed, worker.id if worker else 0])
        while True:
            pictures = np.zeros((self.chunk, 3, self.height, self.width), np.uint8)
            targets = np.full((self.chunk, MOST_DIGITS, 5), NOTHING, np.float32)
            for k in range(self.chunk):
                pictures[k], targets[k] = self.scene(rng)
            yield torch.from_numpy(pictures), torch.from_numpy(targets)

    def scene(self, rng):
        """One scene that fills the input, or that is letterboxed into it."""
        options = self.options
        if rng.random() < LETTERBOXED:
            shrunk = rng.uniform(0.6, 0.95)
            if rng.random() < 0.5:
                options = replace(options, width=int(self.width * shrunk))
            else:
                options = replace(options, height=int(self.height * shrunk))
        picture, boxes, labels = make_scene(rng, self.glyphs, options)
        data, (left, top, _, _) = letterbox(picture, self.width, self.height)
        target = np.full((MOST_DIGITS, 5), NOTHING, np.float32)
        size = np.array([self.width, self.height], np.float32)
        target[: len(boxes), 0:2] = (boxes[:, :2] + boxes[:, 2:] / 2 + [left, top]) / size
        target[: len(boxes), 2:4] = boxes[:, 2:] / size
        target[: len(boxes), 4] = labels
        return (data * 255 + 0.5).astype(np.uint8), target


class ScenePool:
    """The newest scenes, on the device; a thread fills it from worker processes, oldest first out.

    Thread rule: `batch` is called from one thread while the pool's own thread writes; a row read in the middle of a
    write mixes two scenes, which is rare and harmless.
    """

    def __init__(self, stream, capacity, workers, device):
        self.pictures = torch.empty(capacity, 3, stream.height, stream.width, dtype=torch.uint8, device=device)
        self.targets = torch.empty(capacity, MOST_DIGITS, 5, device=device)
        self.drawn = 0
        self.stopped = False
        loader = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers, prefetch_factor=4)
        self.thread = threading.Thread(target=self._fill, args=(loader, capacity), daemon=True)
        self.thread.start()

    def _fill(self, loader, capacity):
        for pictures, targets in loader:
            rows = (self.drawn + torch.arange(len(pictures))) % capacity
            self.pictures[rows.to(self.pictures.device)] = pictures.to(self.pictures.device)
            self.targets[rows.to(self.targets.device)] = targets.to(self.targets.device)
            self.drawn += len(pictures)
            if self.stopped:
                return

    def wait_for(self, count):
        """Returns once `count` scenes were drawn. Raises RuntimeError if the workers died."""
        while self.drawn < count:
            if not self.thread.is_alive():
                raise RuntimeError("the worker processes stopped: run with --workers 1 to see why")
            time.sleep(0.05)

    def batch(self, size):
        """Random (pictures, targets) of `size` scenes."""
        rows = torch.randint(min(self.drawn, len(self.pictures)), (size,), device=self.pictures.device)
        return self.pictures[rows], self.targets[rows]

    def stop(self):
        """Ends the thread and the workers."""
        self.stopped = True
        self.thread.join()


def jitter(pictures):
    """uint8 [N, 3, H, W] -> float32 in 0..1 with random inversion, gamma, gain, offset, noise, and order of channels."""
    device, n = pictures.device, len(pictures)

    def uniform(low, high):
        return low + (high - low) * torch.rand(n, 1, 1, 1, device=device)

    x = pictures[:, torch.randperm(3, device=device)].float() / 255
    x = torch.where(uniform(0, 1) < 0.2, 1 - x, x)
    x = x ** uniform(-0.35, 0.35).exp()
    x = x * uniform(0.75, 1.25) + uniform(-0.1, 0.1)
    x = x + uniform(0, 0.03) * torch.randn_like(x)
    return x.clamp(0, 1)


def corners(boxes):
    """Centre form [..., 4] -> (left, top, right, bottom)."""
    half = boxes[..., 2:] / 2
    left, top = (boxes[..., :2] - half).unbind(-1)
    right, bottom = (boxes[..., :2] + half).unbind(-1)
    return left, top, right, bottom


def iou(first, second):
    """IoU of boxes in centre form, broadcast over [..., 4]."""
    l0, t0, r0, b0 = corners(first)
    l1, t1, r1, b1 = corners(second)
    across = (torch.minimum(r0, r1) - torch.maximum(l0, l1)).clamp(min=0)
    down = (torch.minimum(b0, b1) - torch.maximum(t0, t1)).clamp(min=0)
    common = across * down
    return common / (first[..., 2:].prod(-1) + second[..., 2:].prod(-1) - common + 1e-9)


def complete_iou(first, second):
    """CIoU of boxes in centre form (Zheng et al., arXiv 1911.08287): IoU less distance and aspect penalties."""
    l0, t0, r0, b0 = corners(first)
    l1, t1, r1, b1 = corners(second)
    outer_w = torch.maximum(r0, r1) - torch.minimum(l0, l1)
    outer_h = torch.maximum(b0, b1) - torch.minimum(t0, t1)
    diagonal = outer_w**2 + outer_h**2
    distance = ((first[..., :2] - second[..., :2]) ** 2).sum(-1)
    turn = torch.atan(second[..., 2] / second[..., 3]) - torch.atan(first[..., 2] / first[..., 3])
    aspect = 4 / math.pi**2 * turn**2
    plain = iou(first, second)
    with torch.no_grad():
        share = aspect / (1 - plain + aspect + 1e-9)
    return plain - distance / (diagonal + 1e-9) - share * aspect


def detection_loss(raw, targets, anchors):
    """Loss of a raw head [N, A*(5+K), H, W] against targets [N, M, 5]: (box, objectness, class), each per digit.

    The cell that holds a digit's centre and the anchor nearest in shape answer for it.
    """
    boxes, objectness, classes = split_head(raw, anchors)
    n, _, h, w = objectness.shape
    used = (targets[..., 4] >= 0).float()
    count = used.sum().clamp(min=1)
    wanted = torch.where(used[..., None] > 0, targets[..., :4], torch.full_like(targets[..., :4], 0.5))

    size = wanted[..., 2:] * torch.tensor([w, h], device=raw.device)
    common = torch.minimum(size[..., None, :], anchors).prod(-1)
    anchor = (common / (size.prod(-1)[..., None] + anchors.prod(-1) - common)).argmax(-1)
    column = (wanted[..., 0] * w).long().clamp(0, w - 1)
    row = (wanted[..., 1] * h).long().clamp(0, h - 1)
    picture = torch.arange(n, device=raw.device)[:, None].expand_as(anchor)
    place = (picture, anchor, row, column)

    box_loss = ((1 - complete_iou(boxes[place], wanted)) * used).sum() / count
    labels = targets[..., 4].long().clamp(min=0)
    class_loss = functional.cross_entropy(classes[place].flatten(0, 1), labels.flatten(), reduction="none")
    class_loss = (class_loss * used.flatten()).sum() / count

    with torch.no_grad():
        truth = torch.zeros_like(objectness).index_put(place, used, accumulate=True).clamp(max=1)
        near = (iou(boxes.flatten(1, 3)[:, :, None], wanted[:, None]) * used[:, None]).amax(-1).view_as(truth)
        weight = torch.where((near > IGNORE_IOU) & (truth == 0), 0.0, 1.0)
    object_loss = functional.binary_cross_entropy_with_logits(objectness, truth, weight, reduction="sum") / count
    return box_loss, object_loss, class_loss


def learning_rate(progress, peak):
    """Warms up over the first 3 % of the run, then falls along a cosine to 0. progress in 0..1."""
    if progress < 0.03:
        return peak * progress / 0.03
    return peak * 0.5 * (1 + math.cos(math.pi * (progress - 0.03) / 0.97))


def follow(averaged, network, decay):
    """Moves the parameters of `averaged` towards those of `network`: decay * old + (1 - decay) * new."""
    with torch.no_grad():
        for old, new in zip(averaged.parameters(), network.parameters()):
            old.lerp_(new, 1 - decay)


def export(averaged, pool, batch, path, seen, batches=50):
    """Writes a weights file of the averaged weights; `seen` is the number of pictures trained on.

    The batch-norm statistics are measured for these weights: their mean over batches of scenes as they are, in float32.
    """
    network = copy.deepcopy(averaged).train()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # cumulative mean
    with torch.no_grad():
        for _ in range(batches):
            pictures, _ = pool.batch(batch)
            network(pictures.float() / 255)
    network.enlarge_variances()
    network.save_weights(path, seen)


def main():
    parser = argparse.ArgumentParser(description="Train the digits model.")
    parser.add_argument("--cfg", required=True)
    parser.add_argument("--out", required=True, help="weights file to write")
    parser.add_argument("--minutes", type=float, default=8.0, help="end the training after this time")
    parser.add_argument("--steps", type=int, default=20000, help="end the training after this many batches")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=4e-3, help="peak learning rate")
    parser.add_argument("--pool", type=int, default=100000, help="scenes kept on the device (0.3 MB each)")
    parser.add_argument("--first", type=int, default=4000, help="scenes drawn before the first batch")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--glyphs", help=".npz file with `images` and `target`, in place of scikit-learn")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    network = Network(args.cfg).to(device, memory_format=torch.channels_last)
    averaged = copy.deepcopy(network)
    anchors = torch.tensor(network.anchors, device=device)
    decayed = [p for p in network.parameters() if p.dim() == 4]
    plain = [p for p in network.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}], lr=args.rate
    )

    stream = SceneStream(load_glyphs("train", args.glyphs), network.width, network.height, 16, args.seed)
    pool = ScenePool(stream, args.pool, args.workers, device)
    start = time.time()
    pool.wait_for(args.first)
    print(f"{pool.drawn} scenes after {time.time() - start:.0f} s; training on {device}", flush=True)

    saved = start = time.time()
    step = 0
    while True:
        elapsed = time.time() - start
        progress = max(step / args.steps, elapsed / (args.minutes * 60))
        if progress >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(progress, args.rate)
        pictures, targets = pool.batch(args.batch)
        with torch.autocast(device.type, torch.bfloat16):
            raw = network(jitter(pictures).contiguous(memory_format=torch.channels_last))
        box, objectness, label = detection_loss(raw.float(), targets, anchors)
        optimizer.zero_grad()
        (BOX_WEIGHT * box + objectness + label).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimizer.step()
        follow(averaged, network, min(0.999, (1 + step) / (10 + step)))
        if step % 200 == 0:
            print(
                f"{elapsed:6.0f} s  step {step:6}  scenes {pool.drawn:7}  box {box.item():.4f}  "
                f"object {objectness.item():.4f}  class {label.item():.4f}",
                flush=True,
            )
        step += 1
        if time.time() - saved > 60:
            export(averaged, pool, args.batch, args.out, step * args.batch)
            saved = time.time()
    export(averaged, pool, args.batch, args.out, step * args.batch)
    print(f"{time.time() - start:.0f} s, {step} batches of {args.batch}, {pool.drawn} scenes drawn: {args.out}")
    pool.stop()


if __name__ == "__main__":
    main()
