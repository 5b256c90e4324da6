"""Networks of images: a small CNN, ResNet, VGG, Inception v3, ShuffleNet v2, a vision transformer.

They follow the papers layer by layer, with the parameter counts of the usual implementations.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_CLASSES = 1000
#: Convolutions of each stage of VGG.
_VGG = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def cnn_mnist() -> nn.Module:
    """Two convolutions and two linear layers for 28 x 28 grey images."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )


def vgg(depth: int) -> nn.Module:
    """VGG with 16 or 19 layers (Simonyan and Zisserman, ICLR 2015)."""
    layers: list[nn.Module] = []
    channels = 3
    for convolutions, width in zip(_VGG[depth], (64, 128, 256, 512, 512), strict=True):
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    head = [
        nn.AdaptiveAvgPool2d(7),
        nn.Flatten(),
        nn.Linear(512 * 7 * 7, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(4096, _CLASSES),
    ]
    return nn.Sequential(*layers, *head)


def _convolution(
    channels: int,
    width: int,
    size: int | tuple[int, int],
    stride: int = 1,
    padding: int | tuple[int, int] = 0,
    *,
    groups: int = 1,
    relu: bool = True,
) -> nn.Module:
    """Convolution without bias, batch normalisation and, by default, ReLU."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, width, size, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(width),
    ]
    if relu:
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


class _Residual(nn.Module):
    """Sum of a branch and a shortcut, with ReLU."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.branch(x) + self.shortcut(x))


def resnet(depth: int) -> nn.Module:
    """ResNet with 18 or 50 layers (He et al., CVPR 2016)."""
    blocks, expansion = {18: ((2, 2, 2, 2), 1), 50: ((3, 4, 6, 3), 4)}[depth]
    layers: list[nn.Module] = [_convolution(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512), strict=True)):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            out = width * expansion
            if expansion == 1:
                branch = [
                    _convolution(channels, width, 3, stride, 1),
                    _convolution(width, out, 3, 1, 1, relu=False),
                ]
            else:
                branch = [
                    _convolution(channels, width, 1),
                    _convolution(width, width, 3, stride, 1),
                    _convolution(width, out, 1, relu=False),
                ]
            shortcut: nn.Module = nn.Identity()
            if stride > 1 or channels != out:
                shortcut = _convolution(channels, out, 1, stride, relu=False)
            layers.append(_Residual(nn.Sequential(*branch), shortcut))
            channels = out
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, _CLASSES)]
    return nn.Sequential(*layers, *head)


class _Branches(nn.Module):
    """Branches on the same input, their outputs side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def _inception_a(channels: int, pool_width: int) -> nn.Module:
    """Module of Inception v3 on the grid of 35 x 35."""
    return _Branches(
        _convolution(channels, 64, 1),
        nn.Sequential(_convolution(channels, 48, 1), _convolution(48, 64, 5, 1, 2)),
        nn.Sequential(
            _convolution(channels, 64, 1),
            _convolution(64, 96, 3, 1, 1),
            _convolution(96, 96, 3, 1, 1),
        ),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), _convolution(channels, pool_width, 1)),
    )


def _inception_c(width: int) -> nn.Module:
    """Module of Inception v3 on the grid of 17 x 17, with convolutions of 1 x 7 and 7 x 1."""
    row = (1, 7), 1, (0, 3)
    column = (7, 1), 1, (3, 0)
    return _Branches(
        _convolution(768, 192, 1),
        nn.Sequential(
            _convolution(768, width, 1),
            _convolution(width, width, *row),
            _convolution(width, 192, *column),
        ),
        nn.Sequential(
            _convolution(768, width, 1),
            _convolution(width, width, *column),
            _convolution(width, width, *row),
            _convolution(width, width, *column),
            _convolution(width, 192, *row),
        ),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), _convolution(768, 192, 1)),
    )


def _inception_e(channels: int) -> nn.Module:
    """Module of Inception v3 on the grid of 8 x 8."""

    def split() -> nn.Module:
        return _Branches(
            _convolution(384, 384, (1, 3), 1, (0, 1)), _convolution(384, 384, (3, 1), 1, (1, 0))
        )

    return _Branches(
        _convolution(channels, 320, 1),
        nn.Sequential(_convolution(channels, 384, 1), split()),
        nn.Sequential(_convolution(channels, 448, 1), _convolution(448, 384, 3, 1, 1), split()),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), _convolution(channels, 192, 1)),
    )


class InceptionV3(nn.Module):
    """Inception v3 with its auxiliary classifier (Szegedy et al., CVPR 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            _convolution(3, 32, 3, 2),
            _convolution(32, 32, 3),
            _convolution(32, 64, 3, 1, 1),
            nn.MaxPool2d(3, 2),
            _convolution(64, 80, 1),
            _convolution(80, 192, 3),
            nn.MaxPool2d(3, 2),
            _inception_a(192, 32),
            _inception_a(256, 64),
            _inception_a(288, 64),
            _Branches(
                _convolution(288, 384, 3, 2),
                nn.Sequential(
                    _convolution(288, 64, 1),
                    _convolution(64, 96, 3, 1, 1),
                    _convolution(96, 96, 3, 2),
                ),
                nn.MaxPool2d(3, 2),
            ),
            _inception_c(128),
            _inception_c(160),
            _inception_c(160),
            _inception_c(192),
        )
        self.auxiliary = nn.Sequential(
            nn.AvgPool2d(5, 3),
            _convolution(768, 128, 1),
            _convolution(128, 768, 5),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(768, _CLASSES),
        )
        self.tail = nn.Sequential(
            _Branches(
                nn.Sequential(_convolution(768, 192, 1), _convolution(192, 320, 3, 2)),
                nn.Sequential(
                    _convolution(768, 192, 1),
                    _convolution(192, 192, (1, 7), 1, (0, 3)),
                    _convolution(192, 192, (7, 1), 1, (3, 0)),
                    _convolution(192, 192, 3, 2),
                ),
                nn.MaxPool2d(3, 2),
            ),
            _inception_e(1280),
            _inception_e(2048),
            nn.AdaptiveAvgPool2d(1),
            nn.Dropout(),
            nn.Flatten(),
            nn.Linear(2048, _CLASSES),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the classifier and of the auxiliary classifier."""
        features = self.stem(x)
        return self.tail(features), self.auxiliary(features)


class _Shuffle(nn.Module):
    """Unit of ShuffleNet v2.

    With stride 1, half of the channels go through the branch and the others stay as they are. With
    stride 2, all channels go through the branch and through a shortcut of convolutions.
    """

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        half = width // 2
        self.splits = stride == 1
        inside = half if self.splits else channels
        self.branch = nn.Sequential(
            _convolution(inside, half, 1),
            _convolution(half, half, 3, stride, 1, groups=half, relu=False),
            _convolution(half, half, 1),
        )
        self.shortcut: nn.Module = nn.Identity()
        if not self.splits:
            self.shortcut = nn.Sequential(
                _convolution(channels, channels, 3, stride, 1, groups=channels, relu=False),
                _convolution(channels, half, 1),
            )

    def forward(self, x: Tensor) -> Tensor:
        kept, passed = x.chunk(2, 1) if self.splits else (x, x)
        y = torch.cat([self.shortcut(kept), self.branch(passed)], 1)
        # channel shuffle of two groups
        return y.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)


def shufflenet() -> nn.Module:
    """ShuffleNet v2 of width 1 (Ma et al., ECCV 2018)."""
    layers: list[nn.Module] = [_convolution(3, 24, 3, 2, 1), nn.MaxPool2d(3, 2, 1)]
    channels = 24
    for count, width in ((4, 116), (8, 232), (4, 464)):
        layers.append(_Shuffle(channels, width, 2))
        layers += [_Shuffle(width, width, 1) for _ in range(count - 1)]
        channels = width
    head = [
        _convolution(channels, 1024, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(1024, _CLASSES),
    ]
    return nn.Sequential(*layers, *head)


class VisionTransformer(nn.Module):
    """ViT-S/16 (Dosovitskiy et al., ICLR 2021; Touvron et al., ICML 2021) for 224 x 224 images."""

    def __init__(
        self, width: int = 384, heads: int = 6, depth: int = 12, patches: int = 196
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, patches + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, _CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the class token."""
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), tokens], 1)
        logits: Tensor = self.head(self.blocks(tokens + self.positions)[:, 0])
        return logits
