"""Networks of texts, recommendations and reinforcement learning."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

#: Vocabulary of each text network.
VOCABULARY = {"bert": 30522, "gpt2": 50257, "lstm": 33278, "transformer": 9521}
#: Users and items of MovieLens-20M, for the embeddings and inputs of neumf.
USERS = 138_493
ITEMS = 26_744
#: Frames that an agent sees at once, and its actions.
FRAMES = 4
ACTIONS = 6


class TransformerLM(nn.Module):
    """BERT (masked, post-norm) or GPT-2 (causal, pre-norm), base size, with tied embeddings.

    Devlin et al., NAACL 2019; Radford et al., 2019.
    """

    def __init__(self, vocabulary: int, positions: int, *, causal: bool) -> None:
        super().__init__()
        width = 768
        self.causal = causal
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        layer = nn.TransformerEncoderLayer(
            width, 12, 4 * width, 0.1, "gelu", batch_first=True, norm_first=causal
        )
        self.blocks = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        if not causal:
            self.segments = nn.Embedding(2, width)
            self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
            self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of every position, (batch, tokens, vocabulary)."""
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions.weight[:length]
        if self.causal:
            mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
            x = self.norm(self.blocks(x, mask=mask, is_causal=True))
            return functional.linear(x, self.tokens.weight)
        x = self.blocks(self.norm(x + self.segments.weight[0]))
        return functional.linear(self.head(x), self.tokens.weight, self.bias)


class LstmLM(nn.Module):
    """Word language model of two LSTM layers of 650 units (Zaremba et al., 2014)."""

    def __init__(self, vocabulary: int, width: int = 650) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True, dropout=0.5)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of every position, (batch, tokens, vocabulary)."""
        logits: Tensor = self.head(self.lstm(self.tokens(tokens))[0])
        return logits


class Translation(nn.Module):
    """Transformer of 6 encoder and 6 decoder layers, base size (Vaswani et al., NeurIPS 2017)."""

    def __init__(self, vocabulary: int, width: int = 512) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.transformer = nn.Transformer(width, 8, 6, 6, 2048, 0.1, batch_first=True)
        self.head = nn.Linear(width, vocabulary)
        self.scale = math.sqrt(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of every position of the target, which is the source here."""
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) * self.scale
        logits: Tensor = self.head(self.transformer(x, x, tgt_mask=mask, tgt_is_causal=True))
        return logits


class NeuMF(nn.Module):
    """Neural matrix factorisation (He et al., WWW 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.factors = nn.ModuleList([nn.Embedding(USERS, 64), nn.Embedding(ITEMS, 64)])
        self.features = nn.ModuleList([nn.Embedding(USERS, 128), nn.Embedding(ITEMS, 128)])
        self.layers = nn.Sequential(
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
        )
        self.head = nn.Linear(128, 1)

    def forward(self, pairs: Tensor) -> Tensor:
        """Logit of each user-item pair, (pairs,)."""
        user, item = pairs.unbind(1)
        product = self.factors[0](user) * self.factors[1](item)
        deep = self.layers(torch.cat([self.features[0](user), self.features[1](item)], 1))
        logits: Tensor = self.head(torch.cat([product, deep], 1)).squeeze(1)
        return logits


def recoder(items: int = 20_108) -> nn.Module:
    """Autoencoder of the items of a user, with 600 and 200 units."""
    return nn.Sequential(
        nn.Linear(items, 600),
        nn.Tanh(),
        nn.Linear(600, 200),
        nn.Tanh(),
        nn.Linear(200, 600),
        nn.Tanh(),
        nn.Linear(600, items),
    )


class Agent(nn.Module):
    """Network of frames (Mnih et al., Nature 2015), with a value next to the actions for A2C."""

    def __init__(self, *, with_value: bool) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(FRAMES, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 512),
            nn.ReLU(),
        )
        self.actions = nn.Linear(512, ACTIONS)
        self.value = nn.Linear(512, 1) if with_value else None

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor | None]:
        """Logits or action values, and the value of the state for A2C."""
        features = self.features(frames)
        value = None if self.value is None else self.value(features).squeeze(1)
        return self.actions(features), value
