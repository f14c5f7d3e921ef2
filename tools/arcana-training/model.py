"""arcana-mini: an encoder of phones, a language model that plans their lengths and pitch, and a language model that writes the codes of the codec."""

import torch
import torch.nn.functional as F
from torch import nn

# The number of values of each field that describes a phone, in the order of phones.ts.
PHONE_FIELDS = [41, 2, 2, 4, 2, 5, 2, 5, 16, 16]
SPEAKERS = 3
CODES = 256
GROUPS = 4
NOISES = 16
PITCHES = 128
LONGEST = 48
PLACES = 24  # the number of positions that the model distinguishes, from the start and from the end of a phone
WIDTH = 128
HEADS = 4
HEAD = WIDTH // HEADS
INNER = 320
# The number of steps that a layer attends to, including the current step.
WINDOW = 64
PLAN_LAYERS = 2
CODE_LAYERS = 3
FRAME_HEADS = [CODES] * GROUPS + [NOISES]
PLAN_HEADS = [LONGEST, PITCHES]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, WIDTH) for n in PHONE_FIELDS)
        self.speaker = nn.Embedding(SPEAKERS, WIDTH)
        self.convolutions = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 5, padding=2) for _ in range(3))
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(3))

    def forward(self, phones, speaker, mask):
        """phones [b, p, fields], speaker [b], mask [b, p] → [b, p, WIDTH]"""
        x = sum(table(phones[..., i]) for i, table in enumerate(self.tables))
        x = x + self.speaker(speaker)[:, None]
        mask = mask[..., None]
        for convolution, norm in zip(self.convolutions, self.norms):
            x = x * mask
            x = x + F.gelu(convolution(norm(x).mul(mask).transpose(1, 2)).transpose(1, 2))
        return x * mask


def rotation(positions):
    """Returns cos and sin [..., HEAD / 2] of rotary positions."""
    rates = 10000.0 ** (-torch.arange(0, HEAD, 2, dtype=torch.float32) / HEAD)
    angles = positions[..., None] * rates
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    a, b = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.inner_norm = nn.RMSNorm(WIDTH)
        self.gate_up = nn.Linear(WIDTH, 2 * INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def split(self, x, cos, sin):
        """[..., t, WIDTH] → query, key, value [..., HEADS, t, HEAD], rotated"""
        parts = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, HEADS, HEAD))
        query, key, value = (part.transpose(-2, -3) for part in parts.unbind(-3))
        return rotate(query, cos, sin), rotate(key, cos, sin), value

    def feed(self, x, heard):
        x = x + self.out(heard)
        gate, up = self.gate_up(self.inner_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)

    def forward(self, x, cos, sin, mask):
        """Computes whole sequences. Their length is a multiple of WINDOW. Each block of WINDOW steps attends to itself and to the block before."""
        b, t, _ = x.shape
        query, key, value = (p.unflatten(2, (-1, WINDOW)).transpose(1, 2) for p in self.split(x, cos, sin))
        key, value = (torch.cat([F.pad(p, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1], p], 3) for p in (key, value))
        heard = F.scaled_dot_product_attention(query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1), attn_mask=mask.repeat(b, 1, 1, 1))
        return self.feed(x, heard.unflatten(0, (b, -1)).permute(0, 1, 3, 2, 4).reshape(b, t, WIDTH))

    def step(self, x, cos, sin, keys, values, mask):
        """Computes one step: x [1, 1, WIDTH]; keys, values [HEADS, WINDOW - 1, HEAD]; mask [WINDOW], which is added. Its last item is for the step itself."""
        query, key, value = (p[0] for p in self.split(x, cos, sin))
        scores = torch.cat([query @ keys.transpose(1, 2), query @ key.transpose(1, 2)], 2) / HEAD**0.5 + mask
        weights = torch.softmax(scores, 2)
        heard = weights[..., :-1] @ values + weights[..., -1:] @ value
        return self.feed(x, heard.transpose(0, 1).reshape(1, 1, WIDTH)), key, value


def block_mask(blocks):
    """Returns the mask [blocks, 1, WINDOW, 2 * WINDOW]: the steps to which each step of a block attends."""
    step = torch.arange(WINDOW)[:, None]
    other = torch.arange(2 * WINDOW)[None] - WINDOW
    near = (other <= step) & (other > step - WINDOW)
    mask = near[None].repeat(blocks, 1, 1)
    mask[0] &= other >= 0
    return mask[:, None]


class Decoder(nn.Module):
    """A Llama-like language model that writes several codes in each step."""

    def __init__(self, layers, heads, places=()):
        super().__init__()
        self.sizes = heads
        # The additional code stands for "no code", before the first step.
        self.tables = nn.ModuleList(nn.Embedding(n + 1, WIDTH) for n in heads)
        self.places = nn.ModuleList(nn.Embedding(n, WIDTH) for n in places)
        self.context = nn.Linear(WIDTH, WIDTH, bias=False)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, sum(heads))
        for table in [*self.tables, *self.places]:
            nn.init.normal_(table.weight, std=0.3)

    def embed(self, context, last, places):
        x = self.context(context)
        for i, table in enumerate(self.tables):
            x = x + table(last[..., i])
        for i, table in enumerate(self.places):
            x = x + table(places[..., i])
        return x

    def forward(self, context, last, places=None):
        """context [b, t, WIDTH], last [b, t, codes] (the codes of the step before), places [b, t, n] → logits [b, t, sum(heads)]"""
        t = context.shape[1]
        blocks = -(-t // WINDOW)
        x = F.pad(self.embed(context, last, places), (0, 0, 0, blocks * WINDOW - t))
        cos, sin = rotation(torch.arange(blocks * WINDOW).float())
        mask = block_mask(blocks)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.head(self.norm(x[:, :t]))

    def step(self, context, last, places, position, keys, values, mask):
        """Computes one step: context [WIDTH], last [codes], places [n], position [1]; keys, values [layers, HEADS, WINDOW - 1, HEAD]."""
        x = self.embed(context, last, places)[None, None]
        cos, sin = rotation(position)
        made = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer.step(x, cos, sin, keys[i], values[i], mask)
            made.append((key, value))
        logits = self.head(self.norm(x))[0, 0]
        return logits, torch.stack([k for k, _ in made]), torch.stack([v for _, v in made])


class Mini(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.plan = Decoder(PLAN_LAYERS, PLAN_HEADS)
        self.codes = Decoder(CODE_LAYERS, FRAME_HEADS, (PLACES, PLACES, PITCHES))
