"""Trains arcana-mini on the codec's codes.

Usage: train.py CODES.npz OUT STEPS SEED

It writes OUT/model.pt every 100 steps. The learning rate is constant until the last quarter of the steps, in which it falls to 0. The
number of steps in a file OUT/finish replaces STEPS.
"""

import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import model as m

FRAMES_A_STEP = 1600
HELD_OUT = 24  # the number of sentences that are not used for training
WRONG_CODE = 0.08  # the share of codes that are replaced at random, so that the model recovers from sampling errors
NO_FRAME = 0.12  # the share of earlier frames that are hidden
WARM_UP = 40


class Sentences:
    def __init__(self, path):
        data = np.load(path)
        self.sentences = data["sentences"]
        self.phones = torch.from_numpy(data["phones"].astype(np.int64))
        self.plan = torch.from_numpy(np.stack([data["durations"], data["pitches"]], 1).astype(np.int64))
        self.lengths = torch.from_numpy(data["lengths"].astype(np.int64))
        self.frames = torch.from_numpy(data["frames"].astype(np.int64))
        if self.phones[:, -10:].shape[1] != len(m.PHONE_FIELDS):
            raise SystemExit(f"{path}: the phones do not have the {len(m.PHONE_FIELDS)} fields of the model")
        self.lasting = np.diff(self.sentences[:, 2])

    def batch(self, chosen):
        parts = []
        for i in chosen:
            (speaker, p0, f0), (_, p1, f1) = self.sentences[i], self.sentences[i + 1]
            lengths = self.lengths[p0:p1]
            of = torch.repeat_interleave(torch.arange(p1 - p0), lengths)
            begins = torch.cumsum(lengths, 0) - lengths
            since = torch.arange(f1 - f0) - begins[of]
            left = lengths[of] - 1 - since
            places = torch.stack([since.clamp(max=m.PLACES - 1), left.clamp(max=m.PLACES - 1), self.plan[p0:p1, 1][of]], 1)
            parts.append((torch.tensor(int(speaker)), self.phones[p0:p1], self.plan[p0:p1], of, places, self.frames[f0:f1]))
        return [torch.stack(column) if i == 0 else pad(column) for i, column in enumerate(zip(*parts))] + [
            torch.tensor([len(p[1]) for p in parts]),
            torch.tensor([len(p[5]) for p in parts]),
        ]


def pad(rows):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def delayed(codes, sizes):
    """Returns the codes of the step before each step. The code after the last valid code means that there is no earlier step."""
    return torch.cat([torch.tensor(sizes).expand(codes.shape[0], 1, -1), codes[:, :-1]], 1)


def wronged(last, sizes):
    none = torch.tensor(sizes)
    wrong = torch.rand(last.shape) < WRONG_CODE
    last = torch.where(wrong, (torch.rand(last.shape) * none).long(), last)
    return torch.where((torch.rand(last.shape[:2]) < NO_FRAME)[..., None], none, last)


def losses(net, batch, training):
    speaker, phones, plan, of, places, frames, phone_counts, frame_counts = batch
    phone_mask = torch.arange(phones.shape[1])[None] < phone_counts[:, None]
    frame_mask = torch.arange(frames.shape[1])[None] < frame_counts[:, None]
    context = net.encoder(phones, speaker, phone_mask.float())
    last_plan, last_frames = delayed(plan, m.PLAN_HEADS), delayed(frames, m.FRAME_HEADS)
    if training:
        last_plan, last_frames = wronged(last_plan, m.PLAN_HEADS), wronged(last_frames, m.FRAME_HEADS)
    found = {}
    planned = net.plan(context, last_plan)
    spread = torch.gather(context, 1, of[..., None].expand(-1, -1, m.WIDTH))
    written = net.codes(spread, last_frames, places)
    for name, logits, targets, sizes, mask in (
        ("plan", planned, plan, m.PLAN_HEADS, phone_mask),
        ("code", written, frames, m.FRAME_HEADS, frame_mask),
    ):
        for i, part in enumerate(logits.split(sizes, -1)):
            found[f"{name}{i}"] = F.cross_entropy(part[mask], targets[..., i][mask])
    return found


def optimizers(net):
    hidden = [p for n, p in net.named_parameters() if p.ndim == 2 and ".layers." in n]
    ids = {id(p) for p in hidden}
    rest = [p for p in net.parameters() if id(p) not in ids]
    return [
        torch.optim.Muon(hidden, lr=0.02, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(rest, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01),
    ]


def main(path, out, steps, seed):
    torch.manual_seed(int(seed))
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    random = np.random.default_rng(int(seed))
    data = Sentences(path)
    count = len(data.lasting)
    order = random.permutation(count)
    held, rest = order[:HELD_OUT], order[HELD_OUT:]
    net = m.Mini()
    print("parameters:", sum(p.numel() for p in net.parameters()), "sentences:", len(rest), flush=True)
    optims = optimizers(net)
    rates = [[g["lr"] for g in o.param_groups] for o in optims]
    os.makedirs(out, exist_ok=True)
    steps = int(steps)
    by_length = rest[np.argsort(data.lasting[rest], kind="stable")]
    began, cpu, seen = time.time(), time.process_time(), 0
    step = 0
    sums = {}
    while step < steps:
        if os.path.exists(f"{out}/finish"):
            with open(f"{out}/finish", encoding="utf-8") as file:
                steps = int(file.read())
        decay = max(1, steps // 4)
        at = random.integers(len(by_length))
        chosen, frames = [], 0
        while frames < FRAMES_A_STEP:
            chosen.append(by_length[at])
            frames += data.lasting[by_length[at]]
            # A batch contains sentences of similar length, which a random walk over the sorted sentences selects.
            at = min(len(by_length) - 1, max(0, at + random.integers(-12, 13)))
        share = min(1, (step + 1) / WARM_UP, (steps - step) / decay)
        for optim, own in zip(optims, rates):
            for group, rate in zip(optim.param_groups, own):
                group["lr"] = rate * share
        found = losses(net, data.batch(chosen), True)
        total = sum(found.values())
        net.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        for optim in optims:
            optim.step()
        step += 1
        seen += int(frames)
        for name, value in found.items():
            sums[name] = sums.get(name, 0) + value.item()
        if step % 50 == 0 or step == steps:
            shown = " ".join(f"{n} {v / (50 if step % 50 == 0 else step % 50):.3f}" for n, v in sums.items())
            spent = time.process_time() - cpu
            print(f"{step} {shown} | {seen / spent:.0f} frames a CPU second, {spent / 60:.1f} CPU, {(time.time() - began) / 60:.1f} minutes", flush=True)
            sums = {}
        if step % 100 == 0 or step == steps:
            torch.save({"model": net.state_dict(), "step": step}, f"{out}/model.pt")
        if step % 200 == 0 or step == steps:
            with torch.no_grad():
                held_losses = losses(net, data.batch(held), False)
            print("held out:", " ".join(f"{n} {v.item():.3f}" for n, v in held_losses.items()), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
